"""A model of its own for every robot of a batch whose model fields are traced."""

import copy
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np


class PrivateModels:
    """Copies of a population's models, each written only where its robot changes.

    Row by row: which model of the population a copy is of and what its fields hold is
    remembered, so that one comparison of arrays finds the few rows to write.
    """

    def __init__(self, models: Sequence[mujoco.MjModel], fields: Sequence[str]):
        """Copies nothing yet.

        Args:
          models: The population.
          fields: Names of the fields that robots may hold values of their own in.
        """
        self._population = models
        self._stock = {
            name: np.stack([np.array(getattr(m, name)) for m in models])
            for name in fields
        }
        self._models: list[mujoco.MjModel] = []
        self._views: dict[str, list[np.ndarray]] = {name: [] for name in fields}
        self._index = np.zeros(0, int)
        self._held = {name: stock[:0].copy() for name, stock in self._stock.items()}

    def __call__(
        self, index: np.ndarray, values: Mapping[str, np.ndarray]
    ) -> list[mujoco.MjModel]:
        """Returns a model a robot, to be used before the next call.

        Args:
          index: [n] which model of the population each robot is.
          values: Field -> [n, ...] what each holds in it; other fields hold what they
            hold in the population.
        """
        n = len(index)
        self._grow(index)
        for row in np.flatnonzero(self._index[:n] != index):
            self._copy(int(row), int(index[row]))
        for name, stock in self._stock.items():
            wanted = values[name] if name in values else stock[index]
            held = self._held[name][:n]
            # What is no number differs from itself, and is written each time.
            differs = (held != wanted).reshape(n, -1).any(axis=1)
            views = self._views[name]
            for row in np.flatnonzero(differs):
                views[row][...] = held[row] = wanted[row]
        return self._models if n == len(self._models) else self._models[:n]

    def _grow(self, index: np.ndarray) -> None:
        """Makes room for as many robots."""
        first, n = len(self._models), len(index)
        if n <= first:
            return
        added = index[first:]
        self._index = np.concatenate([self._index, np.full(len(added), -1)])
        for name, stock in self._stock.items():
            self._held[name] = np.concatenate([self._held[name], stock[added]])
            self._views[name] += [stock[0]] * len(added)
        self._models += [self._population[0]] * len(added)

    def _copy(self, row: int, index: int) -> None:
        """Gives a row a fresh copy of one model of the population."""
        model = self._models[row] = copy.copy(self._population[index])
        self._index[row] = index
        for name, stock in self._stock.items():
            self._views[name][row] = getattr(model, name)
            self._held[name][row] = stock[index]
