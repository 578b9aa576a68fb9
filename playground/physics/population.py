"""Populations: copies of a model that differ in numbers, derived constants right."""

import copy
from collections.abc import Callable, Iterable, Sequence

import mujoco
import numpy as np

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
