"""Populations: copies of a model that differ in numbers, derived constants right."""

import copy
from collections.abc import Callable, Iterable, Sequence

import mujoco
import numpy as np

from playground.errors import PlaygroundError

# What all models of a population must have in common.
_SIZES = ("nq", "nv", "nu", "na", "nbody", "ngeom", "nsensordata")

Edit = Callable[[mujoco.MjModel, np.random.Generator], None]


def vary(
    model: mujoco.MjModel, count: int, edit: Edit, seed: int
) -> list[mujoco.MjModel]:
    """Returns `count` varied copies of a model; the model itself stays as it is.

    Each copy is drawn from the given model, never from another copy, and passed through
    `mj_setConst`, so that what MuJoCo derives from masses, inertias and reference poses
    (inverse weights, subtree masses, ...) fits the new numbers.

    Args:
      model: The model as designed.
      count: Number of copies.
      edit: Changes one copy in place, drawing from the generator it is given.
      seed: Seed of the draws; copy i depends on `seed` and i alone.
    """
    scratch = mujoco.MjData(model)
    copies = []
    for i in range(count):
        varied = copy.copy(model)
        edit(varied, np.random.default_rng([seed, i]))
        mujoco.mj_setConst(varied, scratch)
        copies.append(varied)
    return copies


def check_population(models: Sequence[mujoco.MjModel]) -> None:
    """Checks that models are one machine with other numbers.

    Raises:
      PlaygroundError: there is none, or sizes or solver options differ.
    """
    if not models:
        raise PlaygroundError("a population needs at least one model")
    options = [name for name in dir(models[0].opt) if not name.startswith("_")]
    for other in models[1:]:
        different = [n for n in _SIZES if getattr(models[0], n) != getattr(other, n)]
        different += [
            f"opt.{name}"
            for name in options
            if not np.array_equal(
                getattr(models[0].opt, name), getattr(other.opt, name)
            )
        ]
        if different:
            raise PlaygroundError(
                f"the models of a population differ in {', '.join(different)}"
            )


def differing_fields(
    models: Sequence[mujoco.MjModel], names: Iterable[str]
) -> dict[str, np.ndarray]:
    """Returns {name: [n_models, ...]} of the numeric fields that are not all equal."""
    found = {}
    for name in names:
        values = [np.asarray(getattr(model, name, "")) for model in models]
        if values[0].dtype.kind not in "fiu":
            continue
        if any(not np.array_equal(values[0], value) for value in values[1:]):
            found[name] = np.stack(values)
    return found
