"""Servo presets: the numbers of a position servo and its gear play, as data.

The table is `configs/servos.yaml`; a servo of one's own is a YAML file with the keys
of one entry, under a name as there or without, whose path is given in place of a
preset's name.
"""

import dataclasses
from pathlib import Path

import mujoco
import numpy as np

from playground.config import read_yaml
from playground.errors import PlaygroundError, unknown
from playground.paths import asset_folder

_DRIVES = ("kp", "force_limit", "rate_limit")
_HUGE = 1e6  # no servo has a number like this, in whatever unit


@dataclasses.dataclass(frozen=True)
class Servo:
    """A position servo: torque = clip(kp (target - q) - kv dq, +-force_limit).

    Attributes:
      damping: N·m·s/rad, of the joint.
      frictionloss: N·m, dry friction of the joint.
      armature: kg·m², rotor inertia seen at the joint.
      kp: N·m/rad.
      kv: N·m·s/rad.
      force_limit: N·m.
      rate_limit: rad/s, how fast a target may move.
      backlash: rad, half the gear play.
      backlash_damping: N·m·s/rad, of the play.
      backlash_frictionloss: N·m, of the play.
      backlash_armature: kg·m², of the play.
      description: For people.
      source: Where the numbers come from.
    """

    damping: float
    frictionloss: float
    armature: float
    kp: float
    kv: float
    force_limit: float
    rate_limit: float
    backlash: float
    backlash_damping: float
    backlash_frictionloss: float
    backlash_armature: float
    description: str
    source: str

    def apply(
        self,
        model: mujoco.MjModel,
        dofs: np.ndarray,
        backlash_dofs: np.ndarray,
        backlash_joints: list[int],
    ) -> None:
        """Writes the servo into every actuated joint of a freshly loaded model.

        Args:
          model: Changed in place.
          dofs: [nu] degrees of freedom of the actuated joints.
          backlash_dofs: [<= nu] degrees of freedom of the gear play.
          backlash_joints: [<= nu] ids of the gear play's joints.
        """
        model.dof_damping[dofs] = self.damping
        model.dof_frictionloss[dofs] = self.frictionloss
        model.dof_armature[dofs] = self.armature
        model.dof_damping[backlash_dofs] = self.backlash_damping
        model.dof_frictionloss[backlash_dofs] = self.backlash_frictionloss
        model.dof_armature[backlash_dofs] = self.backlash_armature
        model.jnt_range[backlash_joints] = (-self.backlash, self.backlash)
        model.actuator_gainprm[:, 0] = self.kp
        model.actuator_biasprm[:, 1] = -self.kp
        model.actuator_biasprm[:, 2] = -self.kv
        model.actuator_forcerange[:] = (-self.force_limit, self.force_limit)
        mujoco.mj_setConst(model, mujoco.MjData(model))


def load_servo(name: str) -> Servo:
    """Returns the preset `name`, or the servo in the YAML file at the path `name`.

    Raises:
      PlaygroundError: no such preset or file, or a file with wrong or missing numbers.
    """
    if name.endswith((".yaml", ".yml")):
        if not Path(name).is_file():
            raise PlaygroundError(f"servo file '{name}' does not exist")
        values = read_yaml(Path(name))
        entries = [value for value in values.values() if isinstance(value, dict)]
        return _servo(name, entries[0] if len(values) == len(entries) == 1 else values)
    presets = read_yaml(asset_folder("configs") / "servos.yaml")
    if name not in presets:
        raise unknown("servo", name, presets)
    return _servo(name, presets[name])


def _servo(name: str, values: object) -> Servo:
    if not isinstance(values, dict):
        raise PlaygroundError(f"servo '{name}' is no table of numbers")
    kinds = {field.name: field.type for field in dataclasses.fields(Servo)}
    for key in values:
        if key not in kinds:
            raise unknown(f"key of servo '{name}'", str(key), kinds)
    for key, kind in kinds.items():
        if key not in values:
            raise PlaygroundError(f"servo '{name}' lacks the key '{key}'")
        fits, wanted = _is_size(values[key]), "a number of 0 or more"
        if kind is str:
            fits, wanted = isinstance(values[key], str), "a text"
        if key in _DRIVES and fits and not values[key]:
            fits, wanted = False, "above 0, or the servo cannot move a joint"
        if not fits:
            raise PlaygroundError(
                f"servo '{name}': {key} must be {wanted}, got {values[key]!r}"
            )
    numbers = {key: float(values[key]) for key in kinds if kinds[key] is float}
    return Servo(**(values | numbers))


def _is_size(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _HUGE  # False for NaN too
