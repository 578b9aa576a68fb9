"""What the reference gait asks of the legs under a command: teacher and yardstick."""

import jax
import jax.numpy as jnp

from playground.controllers.reference_gait import GaitShape, solve_reference_gait
from playground.robots.robot import Robot
from playground.tasks.config import COMMAND_NAMES, LocomotionConfig

# A command whose velocities (m/s, rad/s) are smaller than this asks to stand still.
_STILL = 1e-3


def moving(command: jax.Array) -> jax.Array:
    """Returns 1.0 where a command [7] asks for motion, else 0.0."""
    return (jnp.abs(command[:3]).max() > _STILL).astype(jnp.float32)


class GaitGuide:
    """The reference gait of a task.

    Attributes:
      gait: Its ingredients.
      joints: [n_leg] rows of the leg joints among the actuators.
      head: [n_head] rows of the head joints.
    """

    def __init__(self, robot: Robot, config: LocomotionConfig):
        """Solves the gait's inverse kinematics."""
        steps, period = config.gait.phase_steps, config.control_period
        self.gait = solve_reference_gait(robot, steps, period)
        self.joints = self.gait.joints
        self.head = robot.joint_rows(*COMMAND_NAMES[3:])
        self._shape = GaitShape.of(config.gait)
        self._scale, self._size = config.action_scale, len(robot.joints)

    def leg_targets(self, phase: jax.Array, command: jax.Array) -> jax.Array:
        """Returns [n_leg] rad, servo targets from home; 0 at a zero command."""
        targets = self.gait.target_offsets(self._shape, phase, command)
        # No action asks for more; the gait's shape was found with this limit too.
        return jnp.clip(targets, -self._scale, self._scale) * moving(command)

    def action(self, phase: jax.Array, command: jax.Array) -> jax.Array:
        """Returns [nu] the action that plays the gait and holds the head."""
        offsets = jnp.zeros(self._size).at[self.head].set(command[3:])
        legs = self.leg_targets(phase, command)
        return offsets.at[self.joints].set(legs) / self._scale
