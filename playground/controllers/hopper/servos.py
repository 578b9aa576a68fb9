"""What a hopper's controllers put out: targets of the servos, and their gains."""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from playground.robots.names import find
from playground.robots.robot import Robot

FIELDS = ("actuator_gainprm", "actuator_biasprm")


@flax.struct.dataclass
class Action:
    """What acts on one hopper for a control step.

    Attributes:
      ctrl: [4] targets of the servos, rad, rad/s, m, m/s, in the model's order.
      fields: model field -> its value, [4, 10]: the servos' gains. See `Physics.step`.
    """

    ctrl: jax.Array
    fields: dict[str, jax.Array]


class HopperServos:
    """Position and velocity servos of hip and knee, found by name."""

    def __init__(self, robot: Robot):
        """Finds the servos.

        Raises:
          PlaygroundError: the model lacks one.
        """
        model = robot.model
        rows = [
            find(model, "actuator", f"{kind}servo-{joint}")
            for joint in ("hip", "knee")
            for kind in ("p", "v")
        ]
        # Servo i of hip p, hip v, knee p, knee v is row i of the model.
        self._order = np.argsort(rows)
        self._gain = jnp.asarray(model.actuator_gainprm, jnp.float32)
        self._bias = jnp.asarray(model.actuator_biasprm, jnp.float32)
        column = np.arange(self._gain.shape[1])
        # A servo's gain is against the position (column 1) or the velocity (column 2).
        state = np.array([1, 2, 1, 2])[self._order]
        self._is_gain = column == 0
        self._is_bias = column == state[:, None]

    def __call__(
        self, kp: tuple, kv: tuple, target: tuple, rate: tuple = (0.0, 0.0)
    ) -> Action:
        """Returns the action of hip and knee, each in a pair.

        Args:
          kp: N m/rad, N/m: gains of the position servos.
          kv: N m s/rad, N s/m: gains of the velocity servos.
          target: rad, m: of the position servos.
          rate: rad/s, m/s: targets of the velocity servos.
        """
        gain = jnp.stack([kp[0], kv[0], kp[1], kv[1]])[self._order][:, None]
        ctrl = jnp.stack([target[0], rate[0], target[1], rate[1]])[self._order]
        fields = (
            jnp.where(self._is_gain, gain, self._gain),
            jnp.where(self._is_bias, -gain, self._bias),
        )
        return Action(ctrl, dict(zip(FIELDS, fields, strict=True)))
