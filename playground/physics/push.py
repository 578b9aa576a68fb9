"""Pushes whose impulse is the one asked, whatever the step sizes."""

import jax
import jax.numpy as jnp


def push_fraction(
    since: jax.Array, duration: jax.Array | float, substeps: int, sim_dt: float
) -> jax.Array:
    """Returns the share of each physics step that lies within a push.

    A force times this share delivers force x duration, also when the push begins or
    ends within a physics step.

    Args:
      since: s from the beginning of the push to the beginning of the control step,
        scalar; negative before the push.
      duration: s, how long the push lasts.
      substeps: Physics steps in a control step.
      sim_dt: s, the physics period.

    Returns:
      [substeps], each within 0..1.
    """
    start = since + sim_dt * jnp.arange(substeps)
    inside = jnp.minimum(start + sim_dt, duration) - jnp.maximum(start, 0.0)
    return jnp.clip(inside / sim_dt, 0.0, 1.0)
