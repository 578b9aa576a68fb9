"""What a locomotion task carries from one control step to the next."""

import flax.struct
import jax
import jax.numpy as jnp

from playground.physics.base import Data
from playground.robots.robot import Sensed
from playground.tasks.actions import ActionMemory
from playground.tasks.delay import DelayLine
from playground.tasks.kicks import Kick


@flax.struct.dataclass
class Motion:
    """Velocities that tracking is judged by, in the heading frame.

    The heading frame is the world frame turned about z to where the trunk faces.

    Attributes:
      recent: [steps of a gait period, 3] vx, vy (m/s, of the centre of mass) and yaw
        rate (rad/s), newest first.
    """

    recent: jax.Array

    @classmethod
    def start(cls, velocity: jax.Array, steps: int) -> "Motion":
        """Returns the motion of a robot that has had one velocity, [3], for ever."""
        return cls(jnp.tile(velocity, (steps, 1)))

    def push(self, velocity: jax.Array) -> "Motion":
        """Returns the motion one control step later."""
        return Motion(jnp.concatenate([velocity[None], self.recent[:-1]]))

    @property
    def velocity(self) -> jax.Array:
        """[3] now."""
        return self.recent[0]

    @property
    def smooth(self) -> jax.Array:
        """[3] mean over a gait period, in which the swaying of a walk cancels out."""
        return self.recent.mean(axis=0)


@flax.struct.dataclass
class Feet:
    """Per-foot memory, left before right.

    Attributes:
      contact: [n_feet] bool, touching the floor now.
      air_time: [n_feet] s since the foot last touched.
      peak: [n_feet] m, highest point of the sole since the foot last touched.
    """

    contact: jax.Array
    air_time: jax.Array
    peak: jax.Array


@flax.struct.dataclass
class State:
    """One robot in an episode; a reset renews every field.

    Attributes:
      data: physics.
      key: random stream; a reset continues it.
      step: control steps since the start, int32 scalar.
      phase: control steps of the gait clock, int32 scalar.
      command: [7] see `config.COMMAND_NAMES`.
      hold_command: whether the command stays for good, bool scalar.
      actions: action history and servo targets.
      imu: gyro and accelerometer on their way to the policy, [.., 6].
      kick: the kick under way or to come.
      motion: velocities.
      feet: per-foot memory.
    """

    data: Data
    key: jax.Array
    step: jax.Array
    phase: jax.Array
    command: jax.Array
    hold_command: jax.Array
    actions: ActionMemory
    imu: DelayLine
    kick: Kick
    motion: Motion
    feet: Feet


@flax.struct.dataclass
class Outcome:
    """What a control step led to.

    Attributes:
      obs: {"state": [n_obs], "privileged_state": [n_privileged]}.
      reward: scalar, the sum of the weighted terms x control period.
      terminated: fell or diverged, bool scalar.
      truncated: reached the episode's length without falling, bool scalar.
      diverged: the physics left the finite numbers, bool scalar.
      terms: the reward terms, weighted, before the control period is applied.
    """

    obs: dict[str, jax.Array]
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    diverged: jax.Array
    terms: dict[str, jax.Array]

    @property
    def done(self) -> jax.Array:
        """Whether the episode ended with this step, bool scalar."""
        return self.terminated | self.truncated


def heading_velocity(sensed: Sensed) -> jax.Array:
    """Returns [3] vx, vy (m/s) of the centre of mass and yaw rate (rad/s).

    In the heading frame, so that they are right whichever way the robot faces.
    """
    forward = sensed["forwardvector"]
    length = jnp.maximum(jnp.hypot(forward[0], forward[1]), 1e-6)
    cos, sin = forward[0] / length, forward[1] / length
    vx, vy = sensed["com_linvel"][:2]
    return jnp.array(
        [cos * vx + sin * vy, cos * vy - sin * vx, sensed["global_angvel"][2]]
    )


def track_feet(feet: Feet, sensed: Sensed, names: tuple[str, ...], dt: float) -> Feet:
    """Returns the feet one control step (dt, s) later."""
    contact = sensed.each(names, "contact")[:, 0] > 0
    height = sensed.each(names, "pos")[:, 2]
    return Feet(
        contact=contact,
        air_time=jnp.where(contact, 0.0, feet.air_time + dt),
        peak=jnp.where(contact, height, jnp.maximum(feet.peak, height)),
    )
