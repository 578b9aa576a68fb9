"""Support polygon: the convex hull of the sole corners on the floor.

Fixed shapes and no branches, so that it can be vmapped: the hull is held as the set of
those ordered pairs of points that are its edges. With n points there are n (n - 1)
pairs; n is 8 for two soles.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_SMALL = 1e-9
# What is left, m2, of a cross product of equal points of float32.
_ROUNDED = 1e-7


class Hull(NamedTuple):
    """Edges of the convex hull of n points in the plane; E = n * n ordered pairs.

    Attributes:
      start: [E, 2] m, where an edge begins.
      along: [E, 2] m, from there to its end.
      is_edge: [E] whether the pair is an edge, counter-clockwise.
      defined: scalar bool; False without three points that span an area.
    """

    start: jax.Array
    along: jax.Array
    is_edge: jax.Array
    defined: jax.Array


def convex_hull(points: jax.Array, valid: jax.Array) -> Hull:
    """Returns the convex hull of the valid points.

    A pair is an edge if every point lies to its left, or on it and not beyond its ends.

    Args:
      points: [n, 2] m.
      valid: [n] bool, which of them count.
    """
    n = len(points)
    start = jnp.repeat(points, n, axis=0)
    along = jnp.tile(points, (n, 1)) - start
    pair = jnp.repeat(valid, n) & jnp.tile(valid, n)
    to_point = points[None] - start[:, None]
    left = _cross(along[:, None], to_point)
    length2 = jnp.square(along).sum(-1)
    scale = jnp.maximum(length2, _SMALL)
    on_line = jnp.abs(left) <= 1e-6 * jnp.sqrt(scale)[:, None]
    share = (along[:, None] * to_point).sum(-1) / scale[:, None]
    between = (share >= -1e-4) & (share <= 1 + 1e-4)
    fits = jnp.where(on_line, between, left > 0) | ~valid[None]
    is_edge = pair & (length2 > _SMALL) & fits.all(-1)
    # Seen from one of them: far from the origin the sum would be lost in rounding.
    corner = points[jnp.argmax(valid)]
    area2 = jnp.where(is_edge, _cross(start - corner, along), 0.0).sum()
    return Hull(start, along, is_edge, (is_edge.sum() >= 3) & (area2 > 1e-6))


def signed_margin(hull: Hull, point: jax.Array) -> jax.Array:
    """Returns how far inside the hull a point is, m; < 0 outside, NaN if undefined.

    Args:
      hull: The hull.
      point: [2] m.
    """
    to_point = point - hull.start
    length = jnp.linalg.norm(hull.along, axis=-1)
    inward = _cross(hull.along, to_point) / jnp.maximum(length, _SMALL)
    inside = jnp.where(hull.is_edge, inward, jnp.inf).min()
    away = jnp.linalg.norm(point - _nearest(hull, point), axis=-1)
    outside = jnp.where(hull.is_edge, away, jnp.inf).min()
    margin = jnp.where(inside >= 0, inside, -outside)
    return jnp.where(hull.defined, margin, jnp.nan)


def distance_outside(
    points: jax.Array, valid: jax.Array, point: jax.Array
) -> jax.Array:
    """Returns how far a point is from the convex hull of others, m; 0 inside.

    Cheaper than the hull: from outside, the nearest of all segments between two points
    is on its edge. NaN if no point is valid.

    Args:
      points: [n, 2] m.
      valid: [n] bool, which of them count.
      point: [2] m.
    """
    one, other = np.triu_indices(len(points), 1)
    # A point that does not count lies on one that does.
    seen = jnp.where(valid[:, None], points, points[jnp.argmax(valid)]) - point
    x, y = seen[:, 0], seen[:, 1]
    ax, ay = x[other] - x[one], y[other] - y[one]
    scale = jnp.maximum(ax * ax + ay * ay, _SMALL)
    share = jnp.clip(-(x[one] * ax + y[one] * ay) / scale, 0.0, 1.0)
    away2 = jnp.square(x[one] + share * ax) + jnp.square(y[one] + share * ay)
    # Outside, all others are to one side of the line through the first or last seen.
    left = x[:, None] * y[None] - y[:, None] * x[None] >= -_ROUNDED
    distance = jnp.where(left.all(1).any(), jnp.sqrt(away2.min()), 0.0)
    return jnp.where(valid.any(), distance, jnp.nan)


def _nearest(hull: Hull, point: jax.Array) -> jax.Array:
    """Returns [E, 2] the point of each pair's segment that is nearest to `point`."""
    length2 = jnp.maximum(jnp.square(hull.along).sum(-1), _SMALL)
    share = ((point - hull.start) * hull.along).sum(-1) / length2
    return hull.start + jnp.clip(share, 0.0, 1.0)[:, None] * hull.along


def _cross(a: jax.Array, b: jax.Array) -> jax.Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
