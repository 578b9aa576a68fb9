"""Delays of whole control steps."""

import dataclasses

import flax.struct
import jax
import jax.numpy as jnp


@flax.struct.dataclass
class DelayLine:
    """The last values of a signal, newest first.

    Attributes:
      values: [longest delay + 1, width].
      steps: the delay in control steps, scalar int32; drawn for an episode.
    """

    values: jax.Array
    steps: jax.Array

    @classmethod
    def start(cls, value: jax.Array, steps: jax.Array, longest: int) -> "DelayLine":
        """Returns a line that has held `value`, [width], for ever."""
        return cls(jnp.tile(value, (longest + 1, 1)), steps)

    def push(self, value: jax.Array) -> "DelayLine":
        """Returns the line one control step later, with its newest value."""
        values = jnp.concatenate([value[None], self.values[:-1]])
        return dataclasses.replace(self, values=values)

    @property
    def output(self) -> jax.Array:
        """[width] the signal of exactly `steps` control steps ago."""
        return self.values[self.steps]


def draw_delay(key: jax.Array, longest: int) -> jax.Array:
    """Draws a delay of 0..longest control steps, both ends included."""
    return jax.random.randint(key, (), 0, longest + 1)
