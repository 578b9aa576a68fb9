"""Random kicks: short forces on the floating base, in random directions."""

import flax.struct
import jax
import jax.numpy as jnp

from playground.physics.push import push_fraction
from playground.tasks.config import KickConfig


@flax.struct.dataclass
class Kick:
    """The kick under way or to come.

    Attributes:
      start: s into the episode.
      impulse: [3] N·s, world frame.
    """

    start: jax.Array
    impulse: jax.Array


def draw_kick(
    key: jax.Array, after: jax.Array | float, mass: float, config: KickConfig
) -> Kick:
    """Draws the kick that follows the time `after` (s); the key is consumed."""
    when, how_much, where = jax.random.split(key, 3)
    low, high = config.interval_s
    speed = jax.random.uniform(
        how_much, (), minval=config.speed[0], maxval=config.speed[1]
    )
    angle = jax.random.uniform(where, (), maxval=2 * jnp.pi)
    direction = jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0])
    return Kick(
        start=after + jax.random.uniform(when, (), minval=low, maxval=high),
        impulse=mass * speed * direction,
    )


def kick_wrench(
    kick: Kick, time: jax.Array, substeps: int, sim_dt: float, config: KickConfig
) -> jax.Array:
    """Returns [substeps, 6] the wrench (N, N·m, world frame) of a control step.

    Args:
      kick: The kick.
      time: s into the episode at the beginning of the control step.
      substeps: Physics steps in a control step.
      sim_dt: s, the physics period.
      config: For the duration.
    """
    share = push_fraction(time - kick.start, config.duration_s, substeps, sim_dt)
    force = kick.impulse / config.duration_s
    return share[:, None] * jnp.concatenate([force, jnp.zeros(3)])
