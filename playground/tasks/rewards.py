"""Reward terms: small functions of one moment, summed through a table of weights."""

import dataclasses
from collections.abc import Callable, Mapping

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from playground.robots.robot import Sensed
from playground.tasks.actions import ActionMemory
from playground.tasks.reward_weights import RewardWeights
from playground.tasks.state import Feet, Motion


@flax.struct.dataclass
class Moment:
    """What reward terms look at, after a control step.

    Attributes:
      sensed: noise-free perception.
      command: [7] see `config.COMMAND_NAMES`.
      moving: 1.0 where the command asks for motion, else 0.0.
      motion: velocities in the heading frame.
      feet: per-foot memory.
      actions: action memory after the step; `recent[0]` is this step's action.
      home: [nu] rad, home pose.
      head: [n_head] rows of the head joints among the actuators.
      legs: [n_leg] rows of the leg joints.
      leg_reference: [n_leg] rad, the reference gait's targets from home (0 at rest).
      sole_velocity: [n_feet, 3] m/s, world frame.
      base_rise: m, height of the base over the lower sole, less that of the home pose.
      terminated: fell or diverged, bool scalar.
    """

    sensed: Sensed
    command: jax.Array
    moving: jax.Array
    motion: Motion
    feet: Feet
    actions: ActionMemory
    home: jax.Array
    head: np.ndarray
    legs: np.ndarray
    leg_reference: jax.Array
    sole_velocity: jax.Array
    base_rise: jax.Array
    terminated: jax.Array


Term = Callable[[Moment], jax.Array]


def bell(error: jax.Array, width: float) -> jax.Array:
    """Returns exp(-|error|^2 / width^2): 1 at no error, 0.37 at an error of `width`."""
    return jnp.exp(-jnp.sum(jnp.square(error)) / width**2)


def alive(moment: Moment) -> jax.Array:
    """1 while up."""
    return 1.0 - moment.terminated


def track_velocity(moment: Moment) -> jax.Array:
    """Centre-of-mass velocity near the commanded one; 0.37 at 0.05 m/s off."""
    return bell(moment.motion.smooth[:2] - moment.command[:2], 0.05)


def track_yaw_rate(moment: Moment) -> jax.Array:
    """Yaw rate near the commanded one; 0.37 at 0.25 rad/s off."""
    return bell(moment.motion.smooth[2:] - moment.command[2:3], 0.25)


def track_velocity_linear(moment: Moment) -> jax.Array:
    """Minus the velocity error over 0.1 m/s: a slope that does not fade far away."""
    return -jnp.linalg.norm(moment.motion.smooth[:2] - moment.command[:2]) / 0.1


def track_yaw_rate_linear(moment: Moment) -> jax.Array:
    """Minus the yaw rate error over 0.5 rad/s."""
    return -jnp.abs(moment.motion.smooth[2] - moment.command[2]) / 0.5


def imitate(moment: Moment) -> jax.Array:
    """Leg servo targets near the reference gait's; 0.37 at 0.3 rad off in all."""
    targets = moment.actions.targets[moment.legs] - moment.home[moment.legs]
    return bell(targets - moment.leg_reference, 0.3)


def track_head(moment: Moment) -> jax.Array:
    """Head joints near the commanded offsets from home; 0.37 at 0.4 rad off."""
    head = moment.sensed.joint_position[moment.head] - moment.home[moment.head]
    return bell(head - moment.command[3:], 0.4)


def stand_still(moment: Moment) -> jax.Array:
    """At a zero command: minus the leg joints' squared distance from home (rad²)."""
    legs = moment.sensed.joint_position[moment.legs] - moment.home[moment.legs]
    return -jnp.sum(jnp.square(legs)) * (1.0 - moment.moving)


def upright(moment: Moment) -> jax.Array:
    """Minus the squared sine of the trunk's tilt."""
    return -jnp.sum(jnp.square(moment.sensed["upvector"][:2]))


def base_height(moment: Moment) -> jax.Array:
    """Minus the squared sag or rise of the base over 2 cm."""
    return -jnp.square(moment.base_rise / 0.02)


def action_rate(moment: Moment) -> jax.Array:
    """Minus the squared change of the action since the last step."""
    recent = moment.actions.recent
    return -jnp.sum(jnp.square(recent[0] - recent[1]))


def action_jerk(moment: Moment) -> jax.Array:
    """Minus the squared second difference of the action."""
    recent = moment.actions.recent
    return -jnp.sum(jnp.square(recent[0] - 2 * recent[1] + recent[2]))


def torque(moment: Moment) -> jax.Array:
    """Minus the sum of squared servo torques, (N·m)²."""
    return -jnp.sum(jnp.square(moment.sensed.joint_torque))


def foot_slip(moment: Moment) -> jax.Array:
    """Minus the squared sliding speed of the feet that touch, (m/s)²."""
    speed = moment.sole_velocity[:, :2]
    return -jnp.sum(moment.feet.contact[:, None] * jnp.square(speed))


def vertical_speed(moment: Moment) -> jax.Array:
    """Minus the squared vertical speed of the centre of mass, (m/s)²."""
    return -jnp.square(moment.sensed["com_linvel"][2])


def tumble_rate(moment: Moment) -> jax.Array:
    """Minus the squared roll and pitch rates of the trunk, (rad/s)²."""
    return -jnp.sum(jnp.square(moment.sensed["gyro"][:2]))


TERMS: Mapping[str, Term] = {
    term.__name__: term
    for term in (
        alive,
        track_velocity,
        track_yaw_rate,
        track_velocity_linear,
        track_yaw_rate_linear,
        imitate,
        track_head,
        stand_still,
        upright,
        base_height,
        action_rate,
        action_jerk,
        torque,
        foot_slip,
        vertical_speed,
        tumble_rate,
    )
}


def weighted_terms(weights: RewardWeights, moment: Moment) -> dict[str, jax.Array]:
    """Returns each term of non-zero weight times its weight.

    Args:
      weights: Its fields are the names in `TERMS`.
      moment: What the terms look at.
    """
    table = {f.name: getattr(weights, f.name) for f in dataclasses.fields(weights)}
    # A float32 weight keeps JAX's weak types out, which would compile a step twice.
    return {n: jnp.float32(w) * TERMS[n](moment) for n, w in table.items() if w}
