"""What tells whether a biped will fall: capture point, ZMP, centre of pressure.

The linear inverted pendulum (Kajita et al., 2001): a mass at the constant height z
accelerates by omega^2 (c - p), omega = sqrt(g / z), away from the point p where the
floor pushes. Its capture point xi = c + v / omega (Pratt et al., 2006) is where p must
be for it to come to rest; a p held elsewhere drives xi away as e^(omega t).
"""

import jax
import jax.numpy as jnp

GRAVITY = 9.81  # m/s^2, that of the models


def pendulum_rate(height: jax.Array) -> jax.Array:
    """Returns omega = sqrt(g / height), 1/s, of a pendulum `height` (m) tall."""
    return jnp.sqrt(GRAVITY / height)


def capture_point(com: jax.Array, velocity: jax.Array, height: jax.Array) -> jax.Array:
    """Returns xi = c + v / omega, [2] m, world frame.

    Args:
      com: [3] centre of mass, m.
      velocity: [3] its velocity, m/s.
      height: of the centre of mass above the floor, m, above 0.
    """
    return com[:2] + velocity[:2] / pendulum_rate(height)


def momentum_offset(
    angular_momentum: jax.Array, mass: jax.Array | float, height: jax.Array
) -> jax.Array:
    """Returns what turning adds to the capture point, [2] m.

    A body that turns about its centre of mass moves, about its foot, like one whose
    centre of mass is faster by (L_y, -L_x) / (m z).

    Args:
      angular_momentum: [3] about the centre of mass, kg m^2/s, world frame.
      mass: kg.
      height: of the centre of mass above the floor, m.
    """
    sideways = jnp.stack([angular_momentum[1], -angular_momentum[0]])
    return sideways / (mass * height * pendulum_rate(height))


def zero_moment_point(
    com: jax.Array, acceleration: jax.Array, floor: jax.Array
) -> jax.Array:
    """Returns p = c - (z / g) a, [2] m, of the linear inverted pendulum.

    Args:
      com: [3] centre of mass, m.
      acceleration: [2] its horizontal acceleration, m/s^2.
      floor: height of the floor, m.
    """
    return com[:2] - (com[2] - floor) / GRAVITY * acceleration


def low_pass(smooth: jax.Array, value: jax.Array, keep: float) -> jax.Array:
    """Returns the next value of a first-order low-pass; `keep` within 0..1."""
    return keep * smooth + (1 - keep) * value


def centre_of_pressure(
    points: jax.Array, forces: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns where the floor's pressure acts, [2] m, and whether there is any.

    Args:
      points: [n, 2] where the floor is touched, m.
      forces: [n] normal forces, N.

    Returns:
      The point, NaN without contact; scalar bool.
    """
    total = forces.sum()
    touching = total > 0
    point = (forces[:, None] * points).sum(0) / jnp.where(touching, total, 1.0)
    return jnp.where(touching, point, jnp.nan), touching
