"""What is known of a robot besides its model."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class RobotSpec:
    """What is known of a robot besides its model.

    Attributes:
      name: As on the command line.
      scenes: Scene name -> MJCF file.
      base: The body that floats; pushes and kicks act on it.
      feet: Prefixes of the feet's sensor and geom names, left before right.
      servo: Default servo preset; None: the motors are the model's own.
      base_joints: Joints without a motor that carry the base of a robot that does not
        float; they are sensed as the actuated ones are.
    """

    name: str
    scenes: Mapping[str, Path]
    base: str
    feet: tuple[str, ...]
    servo: str | None
    base_joints: tuple[str, ...] = ()
