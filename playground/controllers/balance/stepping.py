"""Capture-point stepping: when to step, with which foot, where to, and how it swings.

While one foot swings, the capture point leaves the pressure p under the other as
xi(t) = p + (xi - p) e^(omega t) (Pratt et al., 2006). The foot is set down where the
capture point will be then, as far as the leg reaches and the legs do not cross.
"""

import flax.struct
import jax
import jax.numpy as jnp

from playground.controllers.balance.criteria import pendulum_rate
from playground.controllers.balance.forces import share_pressure
from playground.controllers.balance.gains import BalanceGains
from playground.controllers.balance.perception import Perceived
from playground.controllers.balance.support import distance_outside

# A foot is set down so far beside the other, and so far from it at most, m.
_NARROW, _WIDE, _LONG = 0.17, 0.62, 0.6
# Feet nearer than this, sideways, m, are close together.
_CLOSE = 0.28
# A foot is lifted while the other is this near the floor, m.
_DOWN = 0.02
# A swing ends where the foot carries so much, N, after so much of its time.
_LANDED, _EARLIEST = 30.0, 0.6
# Share of the swing after which the target stays.
_SETTLED = 0.8
# A foot that finds no floor goes on down this fast, m/s, for half a swing at most.
_FEEL = 0.2
_LATEST = 1.5


@flax.struct.dataclass
class Step:
    """A step, or standing.

    Attributes:
      swing: the foot in the air, 0 or 1; -1: both stand. Scalar int32.
      time: s since it left the floor, or since the last one landed.
      start: [3] from where it left, m, world frame.
      target: [2] where it goes, m.
      count: steps begun so far.
    """

    swing: jax.Array
    time: jax.Array
    start: jax.Array
    target: jax.Array
    count: jax.Array

    @property
    def stance(self) -> jax.Array:
        """[2] bool, feet that carry."""
        return jnp.arange(2) != self.swing


def standing() -> Step:
    """Returns what to begin with."""
    return Step(
        swing=jnp.int32(-1),
        time=jnp.float32(1.0),
        start=jnp.zeros(3),
        target=jnp.zeros(2),
        count=jnp.int32(0),
    )


def advance(
    step: Step,
    gains: BalanceGains,
    seen: Perceived,
    capture: jax.Array,
    half_sole: jax.Array,
    period: float,
) -> Step:
    """Returns the next state: lifts a foot, moves its target, or sets it down.

    Args:
      step: The state.
      gains: The numbers.
      seen: The biped.
      capture: [2] capture point, m.
      half_sole: [2] half-length and half-width of a sole, m.
      period: s between two calls.
    """
    time = step.time + period
    flying = step.swing >= 0
    outside = distance_outside(seen.corner[:, :2], seen.pressure > 0, capture)
    lift = (
        ~flying
        & (gains.step > 0)
        & (time > gains.pause)
        & (outside > gains.trigger)  # False while undefined: both feet in the air
    )
    foot = jnp.where(flying, step.swing, foot_to_lift(seen, capture))
    lift = lift & (seen.foot[1 - foot, 2] - seen.floor < _DOWN)
    left = jnp.where(flying, gains.step_time - time, gains.step_time)
    moved = landing(foot, jnp.maximum(left, 0.0), gains, seen, capture, half_sole)
    settled = flying & (time > _SETTLED * gains.step_time)
    target = jnp.where(settled, step.target, moved)
    landed = flying & (
        ((seen.load[foot] > _LANDED) & (time > _EARLIEST * gains.step_time))
        | (time > _LATEST * gains.step_time)
    )
    swing = jnp.where(lift, foot, jnp.where(landed, -1, step.swing))
    return Step(
        swing=swing.astype(jnp.int32),
        time=jnp.where(lift | landed, 0.0, time),
        start=jnp.where(lift, seen.foot[foot], step.start),
        target=target,
        count=step.count + lift,
    )


def landing(
    foot: jax.Array,
    left: jax.Array,
    gains: BalanceGains,
    seen: Perceived,
    capture: jax.Array,
    half_sole: jax.Array,
) -> jax.Array:
    """Returns where to set a foot down, [2] m.

    Args:
      foot: 0 or 1.
      left: s until it lands.
      gains: The numbers.
      seen: The biped.
      capture: [2] capture point now, m.
      half_sole: [2] half-length and half-width of a sole, m.
    """
    other = 1 - foot
    held = share_pressure(
        seen, capture, jnp.arange(2) == other, half_sole, gains.sole_margin
    ).centre
    then = held + (capture - held) * jnp.exp(pendulum_rate(seen.height) * left)
    anchor = seen.foot[other, :2]
    ahead, aside = seen.heading[:2, 0], seen.heading[:2, 1]
    outward = jnp.where(foot == 0, 1.0, -1.0)
    wanted = then + gains.overstep * (then - anchor) - anchor
    x = jnp.clip(wanted @ ahead, -_LONG, _LONG)
    y = outward * jnp.clip(outward * (wanted @ aside), _NARROW, _WIDE)
    return anchor + x * ahead + y * aside


def foot_to_lift(seen: Perceived, capture: jax.Array) -> jax.Array:
    """Returns which foot to lift, 0 or 1: the one farther from the capture point.

    Beside close feet that only gathers them again; then the outer foot makes room.
    """
    feet = seen.foot[:, :2]
    away = jnp.linalg.norm(feet - capture, axis=-1)
    ahead, aside = seen.heading[:2, 0], seen.heading[:2, 1]
    beyond = capture - feet.mean(0)
    sideways = jnp.abs(beyond @ aside) > jnp.abs(beyond @ ahead)
    close = jnp.abs((feet[0] - feet[1]) @ aside) < _CLOSE
    farther = jnp.argmax(away)
    return jnp.where(close & sideways, 1 - farther, farther)


def swing_path(
    step: Step, gains: BalanceGains, floor: jax.Array, time: jax.Array
) -> jax.Array:
    """Returns where the swinging sole is to be at a time of its swing, [3] m.

    Args:
      step: The state.
      gains: The numbers.
      floor: height of the floor, m.
      time: s since it left the floor.
    """
    share = jnp.clip(time / gains.step_time, 0.0, 1.0)
    # At rest at both ends; there a little before the end.
    along = jnp.clip(share / 0.95, 0.0, 1.0)
    along = along * along * (3 - 2 * along)
    over = 4 * share * (1 - share) * gains.clearance
    late = jnp.maximum(time - gains.step_time, 0.0)
    ground = step.start[:2] + along * (step.target - step.start[:2])
    height = floor + over - _FEEL * late
    return jnp.concatenate([ground, height[None]])
