"""Velocity and head commands, drawn in training and held in evaluation."""

import jax
import jax.numpy as jnp

from playground.tasks.config import COMMAND_NAMES, CommandConfig


def draw_command(key: jax.Array, config: CommandConfig) -> jax.Array:
    """Draws a command [7]; the key is consumed."""
    keys = jax.random.split(key, 5)
    low, high = jnp.asarray(config.ranges.T, jnp.float32)
    command = jax.random.uniform(
        keys[0], (len(COMMAND_NAMES),), minval=low, maxval=high
    )
    axis = jax.nn.one_hot(jax.random.randint(keys[1], (), 0, 3), 3)
    single = jax.random.bernoulli(keys[2], config.single_axis_fraction)
    moves = jax.random.bernoulli(keys[3], config.head_fraction)
    mask = jnp.concatenate(
        [jnp.where(single, axis, jnp.ones(3)), jnp.broadcast_to(moves, 4)]
    )
    zero = jax.random.bernoulli(keys[4], config.zero_fraction)
    command = command * mask
    # What is nearly zero is zero: a robot cannot both stand and creep.
    small = (jnp.abs(command[:3]) < jnp.array(config.deadband)).all()
    command = command.at[:3].multiply(1.0 - small)
    return jnp.where(zero, 0.0, command)
