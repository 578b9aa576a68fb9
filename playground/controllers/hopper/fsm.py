"""Phases of a hop, and the events that lead from one to the next.

    AIR1 --foot below touch--> STANCE1 --torso rises--> STANCE2
    STANCE2 --foot above lift--> AIR2 --torso sinks--> AIR1, and a hop is counted

The four are looked at in this order, each after the one before has acted, so that a
step can pass through several phases.
"""

import flax.struct
import jax
import jax.numpy as jnp

from playground.controllers.hopper.gains import HopperGains
from playground.controllers.hopper.perception import Perceived

AIR1, STANCE1, STANCE2, AIR2 = range(4)
PHASES = ("AIR1", "STANCE1", "STANCE2", "AIR2")
# In the order in which they are entered within a step.
ENTERED = (STANCE1, STANCE2, AIR2, AIR1)


@flax.struct.dataclass
class Fsm:
    """Where in a hop a hopper is; all integers, so that no time drifts.

    Attributes:
      phase: AIR1, STANCE1, STANCE2 or AIR2, scalar int32.
      hops: hops counted, scalar int32.
      step: calls of the controller so far, scalar int32.
      entered: [4] call in which each phase was last entered, int32; -1: never. Times
        are these by the controller's period.
      below: calls in a row, this one included, with the foot below `touch`, int32.
      above: calls in a row with the foot above `lift`, int32.
    """

    phase: jax.Array
    hops: jax.Array
    step: jax.Array
    entered: jax.Array
    below: jax.Array
    above: jax.Array

    @property
    def in_stance(self) -> jax.Array:
        """Whether the foot carries, scalar bool."""
        return (self.phase == STANCE1) | (self.phase == STANCE2)


def begin() -> Fsm:
    """Returns AIR1, nothing counted."""
    zero = jnp.int32(0)
    never = jnp.full(len(PHASES), -1, jnp.int32)
    return Fsm(AIR1 + zero, zero, zero, never.at[AIR1].set(0), zero, zero)


def advance(fsm: Fsm, gains: HopperGains, seen: Perceived, period: float) -> Fsm:
    """Returns where the hopper is after one more call.

    Args:
      fsm: Where it was.
      gains: Thresholds of the foot, and how long it must have passed them.
      seen: The hopper now.
      period: s between two calls.
    """
    below = jnp.where(seen.foot_height < gains.touch, fsm.below + 1, 0)
    above = jnp.where(seen.foot_height > gains.lift, fsm.above + 1, 0)
    # The first call of a row is 0 s old; half a period is far from both sides.
    touches = (below - 0.5) * period > gains.debounce
    lifts = (above - 0.5) * period > gains.debounce
    phase, entered, hops = fsm.phase, fsm.entered, fsm.hops
    for left, event, to in (
        (AIR1, touches, STANCE1),
        (STANCE1, seen.vertical_speed > 0, STANCE2),
        (STANCE2, lifts, AIR2),
        (AIR2, seen.vertical_speed < 0, AIR1),
    ):
        goes = (phase == left) & event
        phase = jnp.where(goes, to, phase)
        here = goes & (jnp.arange(len(PHASES)) == to)
        entered = jnp.where(here, fsm.step, entered)
        hops = hops + (goes & (to == AIR1))
    return Fsm(phase, hops, fsm.step + 1, entered, below, above)


def transitions(before: Fsm, after: Fsm) -> jax.Array:
    """Returns [4] bool which phases one call entered, in the order of `ENTERED`."""
    changed = after.entered != before.entered
    # AIR1 counts as entered in call 0, where a whole hop could end as well.
    changed = changed.at[AIR1].set(after.hops != before.hops)
    return changed[jnp.array(ENTERED)]
