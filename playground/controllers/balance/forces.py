"""Which force the floor is asked for: ankle strategy and hip strategy.

The floor's force F acts at the centre of pressure p on the soles. Its line passes the
floor plane, seen from the centre of mass c, at the centroidal moment pivot r (Popovic
et al., 2005): F_xy = F_z (c - r) / z moves the body, F_z (r - p) turns it. The ankles
choose p; hips that swing the trunk put r beyond the soles.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from playground.controllers.balance.criteria import GRAVITY
from playground.controllers.balance.gains import BalanceGains
from playground.controllers.balance.perception import Perceived

# The floor can push up with so much of the weight.
_LIFT = (0.4, 1.4)


class Support(NamedTuple):
    """How the feet share a centre of pressure.

    Attributes:
      share: [2] of the force on each foot, sums to 1.
      point: [2, 3] centre of pressure of each foot, m, world frame.
      centre: [2] of both together, m.
    """

    share: jax.Array
    point: jax.Array
    centre: jax.Array


def share_pressure(
    seen: Perceived,
    target: jax.Array,
    stance: jax.Array,
    half_sole: jax.Array,
    margin: jax.Array | float,
) -> Support:
    """Puts the centre of pressure as near to a target as the soles allow.

    The feet share the force as the target divides the line between them; what is left
    is shifted on each sole.

    Args:
      seen: For the feet.
      target: [2] m.
      stance: [2] bool, feet that may carry; at least one.
      half_sole: [2] half-length and half-width of a sole, m.
      margin: rim of the sole that is kept clear, m.
    """
    left, right = seen.foot[:, :2]
    line = right - left
    along = ((target - left) @ line) / jnp.maximum(line @ line, 1e-6)
    along = jnp.clip(along, 0.0, 1.0)
    along = jnp.where(stance[0], jnp.where(stance[1], along, 0.0), 1.0)
    share = jnp.stack([1 - along, along])
    shift = target - (left + along * line)
    in_sole = jnp.einsum("fij,i->fj", seen.foot_frame[:, :2, :2], shift)
    room = half_sole - margin
    in_sole = jnp.clip(in_sole, -room, room)
    in_sole = jnp.concatenate([in_sole, jnp.zeros((2, 1))], 1)
    point = seen.foot + jnp.einsum("fij,fj->fi", seen.foot_frame, in_sole)
    return Support(share, point, share @ point[:, :2])


class Plan(NamedTuple):
    """What the floor is asked for.

    Attributes:
      capture: [2] the capture point, m.
      excess: [2] from the soles to the capture point, as far as hips serve it, m.
      support: where the soles are pressed.
      force: [2, 3] of the floor on each foot, N.
    """

    capture: jax.Array
    excess: jax.Array
    support: Support
    force: jax.Array


def plan_force(
    gains: BalanceGains,
    seen: Perceived,
    stance: jax.Array,
    lean: jax.Array,
    stand_height: jax.Array | float,
    mass: float,
    half_sole: jax.Array,
) -> Plan:
    """Chooses the floor's force that brings the body to rest above its feet.

    Args:
      gains: The numbers.
      seen: The biped.
      stance: [2] bool, feet that may carry.
      lean: [2] the trunk's lean asked for, rad.
      stand_height: of the centre of mass above the floor, m.
      mass: of the robot, kg.
      half_sole: [2] half-length and half-width of a sole, m.
    """
    weight = mass * GRAVITY
    capture = seen.capture_point(mass, gains.momentum)
    home = (stance @ seen.ankle[:, :2]) / stance.sum()
    # xi' = omega (xi - r): a pivot beyond the capture point draws it home.
    pivot = home + (1 + gains.capture) * (capture - home)
    margin = gains.sole_margin
    above = share_pressure(seen, capture, stance, half_sole, margin)
    served = share_pressure(seen, pivot, stance, half_sole, margin)
    moment = gains.trunk_kp * (lean - seen.lean) - gains.trunk_kd * seen.lean_rate
    # On one leg the trunk stays upright: the step brings the support.
    hips = stance.all() * _weigh(seen, 1.0, gains.sideways)
    moment = moment + gains.swing * weight * hips @ (pivot - served.centre)
    turn = gains.hip * _limit(moment, gains.trunk_torque) / weight
    support = share_pressure(seen, pivot - turn, stance, half_sole, margin)
    lift = gains.height_kp * (stand_height - seen.height)
    lift = GRAVITY + gains.hip * (lift - gains.height_kd * seen.velocity[2])
    lift = mass * jnp.clip(lift, _LIFT[0] * GRAVITY, _LIFT[1] * GRAVITY)
    push = lift * (seen.com[:2] - support.centre - turn) / seen.height
    total = jnp.concatenate([push, lift[None]])
    return Plan(
        capture=capture,
        excess=hips @ (capture - above.centre),
        support=support,
        force=support.share[:, None] * total,
    )


def follow_lean(
    gains: BalanceGains, asked: jax.Array, excess: jax.Array, period: float
) -> jax.Array:
    """Returns the next lean asked for, [2] rad: rises at once, is given up slowly.

    Args:
      gains: The numbers.
      asked: [2] the one before, rad.
      excess: [2] of the capture point beyond the soles, m.
      period: s between two calls.
    """
    wanted = _limit(gains.lean * excess, gains.lean_limit)
    kept = asked * jnp.exp(-period / gains.lean_decay)
    larger = jnp.linalg.norm(wanted) > jnp.linalg.norm(kept)
    return gains.hip * jnp.where(larger, wanted, kept)


def _weigh(
    seen: Perceived, ahead: jax.Array | float, aside: jax.Array | float
) -> jax.Array:
    """Returns [2, 2] what scales a vector ahead and aside of the trunk's heading."""
    frame = seen.heading[:2, :2]
    return frame @ (jnp.stack([jnp.float32(ahead), aside])[:, None] * frame.T)


def _limit(vector: jax.Array, longest: jax.Array | float) -> jax.Array:
    """Shortens a vector [2] to a length at most."""
    length = jnp.linalg.norm(vector)
    return vector * jnp.minimum(1.0, longest / jnp.maximum(length, 1e-9))
