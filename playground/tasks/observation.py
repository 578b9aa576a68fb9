"""The one observation builder: a table of channels, used wherever a policy runs."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from playground.errors import PlaygroundError
from playground.policy.contract import Channel


@dataclasses.dataclass(frozen=True)
class ObservationTable:
    """An observation: its channels, in order, and where their values come from.

    Attributes:
      channels: Name, width, unit, scale and noise of each channel.
      sources: One function a channel: subject -> [width] in the channel's unit. The
        subject is whatever the task hands to `build`.
    """

    channels: tuple[Channel, ...]
    sources: tuple[Callable[..., jax.Array], ...]

    @property
    def width(self) -> int:
        """Numbers in the observation."""
        return sum(channel.width for channel in self.channels)

    @property
    def noise(self) -> np.ndarray:
        """[width] half-width of the uniform noise of each number, before scaling."""
        return np.concatenate([channel.noise for channel in self.channels])

    @property
    def scale(self) -> np.ndarray:
        """[width] factor of each number."""
        return np.repeat(
            [channel.scale for channel in self.channels],
            [channel.width for channel in self.channels],
        )

    def build(
        self,
        subject,
        key: jax.Array | None = None,
        noise_level: jax.Array | float = 0.0,
    ) -> jax.Array:
        """Returns the observation [width].

        Args:
          subject: What the sources read.
          key: Key of the noise; None: no noise. It is consumed.
          noise_level: Factor of the table's noise.
        """
        values = jnp.concatenate(
            [
                _checked(channel, jnp.asarray(source(subject), jnp.float32))
                for channel, source in zip(self.channels, self.sources, strict=True)
            ]
        )
        if key is not None:
            noise = jax.random.uniform(key, (self.width,), minval=-1.0, maxval=1.0)
            values = values + noise_level * noise * self.noise
        return values * self.scale


def table(
    *rows: tuple[Channel, Callable[..., jax.Array]],
) -> ObservationTable:
    """Makes a table from (channel, source) rows."""
    channels, sources = zip(*rows, strict=True)
    return ObservationTable(tuple(channels), tuple(sources))


def joint_noise(joints: Sequence[str], levels: dict[str, float]) -> tuple[float, ...]:
    """Returns the noise of each joint's encoder, found by the end of the joint's name.

    Args:
      joints: Joint names, actuator order.
      levels: Name ending ("knee", "hip_yaw") -> rad; the same left as right.

    Raises:
      PlaygroundError: a joint fits no ending.
    """
    noise = []
    for joint in joints:
        fitting = [level for ending, level in levels.items() if joint.endswith(ending)]
        if len(fitting) != 1:
            raise PlaygroundError(
                f"joint '{joint}' fits {len(fitting)} of the noise levels' endings: "
                f"{', '.join(levels)}"
            )
        noise.append(fitting[0])
    return tuple(noise)


def _checked(channel: Channel, value: jax.Array) -> jax.Array:
    if value.shape != (channel.width,):
        raise PlaygroundError(
            f"channel '{channel.name}' is {channel.width} wide, got shape {value.shape}"
        )
    return value
