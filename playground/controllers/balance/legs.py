"""Statics and kinematics of legs: hip roll and pitch, knee, ankle pitch and roll."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from playground.controllers.balance.criteria import GRAVITY
from playground.controllers.balance.perception import Perceived


class LegSize(NamedTuple):
    """Lengths of both legs, [2] each, m.

    Attributes:
      hip: [2, 3] where the hip's axes meet, in the trunk's frame.
      thigh: from hip to knee, down the leg.
      shank: from knee to ankle, down the leg.
      aside: of the ankle from the hip, to the left, legs straight.
    """

    hip: jax.Array
    thigh: jax.Array
    shank: jax.Array
    aside: jax.Array


def joint_torques(
    seen: Perceived, force: jax.Array, point: jax.Array, mass_below: jax.Array
) -> jax.Array:
    """Returns the joint torques [2, 5] (N m) at which the floor pushes back like this.

    What hangs on a joint at o with axis a is held still by the joint, by the floor's
    force f at p and by its own weight w at c: the joint exerts
    -a . ((p - o) x f + (c - o) x w).

    Args:
      seen: For the joints' places and axes.
      force: [2, 3] of the floor on each foot, N; 0 for a leg in the air.
      point: [2, 3] where it acts, m.
      mass_below: [2, 5] of what hangs on each joint, kg.
    """
    pushed = jnp.cross(point[:, None] - seen.anchor, force[:, None])
    weight = -GRAVITY * mass_below[..., None] * jnp.array([0.0, 0.0, 1.0])
    drawn = jnp.cross(seen.below - seen.anchor, weight)
    return -(seen.axis * (pushed + drawn)).sum(-1)


def leg_angles(
    hip: jax.Array,
    ankle: jax.Array,
    attitude: jax.Array,
    sole: jax.Array,
    size: LegSize,
) -> jax.Array:
    """Returns the angles [5] (rad) that put ankle and sole where they are to be.

    Roll turns about x, then pitch about y, knee about y; the ankle undoes it all. A
    target out of reach is taken at the leg's full length. The knee bends forward.

    Args:
      hip: [3] where the hip's axes meet, m, world frame.
      ankle: [3] where the ankle's are to meet.
      attitude: [3, 3] trunk to world.
      sole: [3, 3] sole to world.
      size: of this leg; scalars.
    """
    reach = attitude.T @ (ankle - hip)
    thigh, shank, aside = size.thigh, size.shank, size.aside
    down2 = jnp.square(reach[1]) + jnp.square(reach[2]) - jnp.square(aside)
    down = jnp.sqrt(jnp.maximum(down2, 1e-6))
    roll = jnp.arctan2(reach[1], -reach[2]) - jnp.arctan2(aside, down)
    longest = thigh + shank
    length = jnp.clip(jnp.hypot(reach[0], down), 0.3 * longest, longest)
    bend = (thigh**2 + shank**2 - length**2) / (2 * thigh * shank)
    knee = jnp.pi - jnp.arccos(jnp.clip(bend, -1.0, 1.0))
    lift = jnp.arctan2(shank * jnp.sin(knee), thigh + shank * jnp.cos(knee))
    pitch = jnp.arctan2(-reach[0], down) - lift
    turned = about_x(roll) @ about_y(pitch + knee)
    rest = (attitude @ turned).T @ sole
    # rest = Ry(ankle pitch) Rx(ankle roll), but for what only a turn about z could do.
    ankle_pitch = jnp.arctan2(-rest[2, 0], rest[0, 0])
    ankle_roll = jnp.arctan2(-rest[1, 2], rest[1, 1])
    return jnp.stack([roll, pitch, knee, ankle_pitch, ankle_roll])


def about_x(angle: jax.Array) -> jax.Array:
    """Returns [3, 3] the rotation about x by an angle in rad."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def about_y(angle: jax.Array) -> jax.Array:
    """Returns [3, 3] the rotation about y by an angle in rad."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
