"""Batched evolution of named numbers, by CMA-ES, that can be stopped and resumed.

The search runs in coordinates in which every number's range is 0..1; outside it nothing
is tried. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016); the package `cma`.
"""

import dataclasses
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cma
import numpy as np

from playground.errors import PlaygroundError
from playground.learning.run_folder import replacing

STATE = "evolution.pickle"


@dataclasses.dataclass(frozen=True)
class Best:
    """The best found so far.

    Attributes:
      values: name -> number.
      score: its score; larger is better.
      generation: in which it was found.
    """

    values: dict[str, float]
    score: float
    generation: int


class Evolution:
    """Asks for candidates to be scored; larger scores are better.

    Attributes:
      names: Of the numbers, in the order of the columns of `ask`.
      generation: Generations told so far.
      best: None before the first.
    """

    def __init__(
        self,
        space: Mapping[str, tuple[float, float]],
        start: Mapping[str, float],
        *,
        sigma: float,
        population: int,
        seed: int,
    ):
        """Begins a search.

        Args:
          space: name -> (least, largest).
          start: name -> where to begin, within `space`.
          sigma: first standard deviation, as a fraction of each range.
          population: candidates in a generation.
          seed: above 0; of the draws.
        """
        self.names = tuple(space)
        self._low, self._high = np.array(list(space.values()), float).T
        first = (np.array([start[n] for n in self.names]) - self._low) / self._span
        options = {
            "bounds": [0.0, 1.0],
            "popsize": population,
            "verbose": -9,
            "verb_log": 0,
            "randn": _draw,
        }
        # The package draws from numpy's global generator; this one is kept apart.
        self._random: Any = np.random.RandomState(seed).get_state()
        with _generator(self):
            self._search = cma.CMAEvolutionStrategy(
                np.clip(first, 0.02, 0.98), sigma, options | {"seed": np.nan}
            )
        self.generation = 0
        self.best: Best | None = None

    @property
    def _span(self) -> np.ndarray:
        return self._high - self._low

    def ask(self) -> np.ndarray:
        """Returns candidates [population, n_names], in their own units."""
        with _generator(self):
            self._asked = self._search.ask()
        return self._low + np.array(self._asked) * self._span

    def tell(self, scores: np.ndarray) -> None:
        """Takes the scores [population] of the candidates asked for last."""
        with _generator(self):
            self._search.tell(self._asked, list(-np.asarray(scores, float)))
        top = int(np.argmax(scores))
        if self.best is None or scores[top] > self.best.score:
            values = self._low + np.array(self._asked[top]) * self._span
            named = dict(zip(self.names, values.tolist(), strict=True))
            self.best = Best(named, float(scores[top]), self.generation)
        self.generation += 1

    @property
    def sigma(self) -> float:
        """The present standard deviation, as a fraction of a range."""
        return float(self._search.sigma)

    def save(self, folder: Path) -> None:
        """Stores all of it, so that `restore` goes on as if nothing had happened."""
        with replacing(folder / STATE) as path:
            path.write_bytes(pickle.dumps(self))

    @staticmethod
    def restore(folder: Path, names: tuple[str, ...]) -> "Evolution":
        """Returns the search stored in a folder.

        Raises:
          PlaygroundError: there is none, or it is over other numbers.
        """
        path = folder / STATE
        if not path.is_file():
            raise PlaygroundError(f"no search in '{folder}' ({STATE} is not there)")
        try:
            found = pickle.loads(path.read_bytes())
        except (pickle.UnpicklingError, EOFError, AttributeError, ImportError) as error:
            raise PlaygroundError(f"'{path}' is damaged: {error}") from error
        if not isinstance(found, Evolution):
            raise PlaygroundError(f"'{path}' holds no search")
        if found.names != names:
            raise PlaygroundError(
                f"'{path}' searches {', '.join(found.names)}, not {', '.join(names)}"
            )
        return found


def _draw(*shape: int) -> np.ndarray:
    """Draws from the generator that is global when it is called, restored or not."""
    return np.random.randn(*shape)


class _generator:
    """Lends numpy's global generator to the search, and takes its state back."""

    def __init__(self, evolution: Evolution):
        self._of = evolution

    def __enter__(self) -> None:
        self._before = np.random.get_state()
        np.random.set_state(self._of._random)

    def __exit__(self, *_: object) -> None:
        self._of._random = np.random.get_state()
        np.random.set_state(self._before)
