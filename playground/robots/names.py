"""Finds parts of a MuJoCo model by name; a miss lists the names that exist."""

import mujoco

from playground.errors import unknown


def find(model: mujoco.MjModel, kind: str, name: str) -> int:
    """Returns the id of the part `name`.

    Args:
      model: The model to look in.
      kind: "body", "joint", "actuator", "sensor", "geom", "site" or "key".
      name: The part's name in the model.

    Raises:
      PlaygroundError: the model has no such part.
    """
    index = mujoco.mj_name2id(model, _object(kind), name)
    if index < 0:
        raise unknown(kind, name, names(model, kind))
    return index


def names(model: mujoco.MjModel, kind: str) -> tuple[str, ...]:
    """Returns the names of all parts of one kind, in the model's order."""
    count = getattr(model, {"actuator": "nu", "joint": "njnt"}.get(kind, f"n{kind}"))
    found = (mujoco.mj_id2name(model, _object(kind), i) for i in range(count))
    return tuple(name for name in found if name)


def _object(kind: str) -> mujoco.mjtObj:
    return mujoco.mjtObj.__members__[f"mjOBJ_{kind.upper()}"]
