"""One hopper that is watched while it hops: pure functions, to be vmapped."""

import dataclasses
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from playground.controllers.hopper.fsm import AIR2, ENTERED, PHASES, Fsm, transitions
from playground.controllers.hopper.gains import HopperCommand
from playground.controllers.hopper.perception import Perceived
from playground.physics.base import Data, Physics
from playground.robots.robot import Robot

# A torso this low, m, does not hop any more: the leg, 1.05 m below it, would lie.
FALLEN = 0.4


@flax.struct.dataclass
class Cases:
    """What each hopper is given; [n] in a batch.

    Attributes:
      gains: of its controller.
      command: what it is asked.
      model: which model of the population it is, int32.
      qpos: [nq] where it starts.
      qvel: [nv] how fast.
    """

    gains: Any
    command: HopperCommand
    model: jax.Array
    qpos: jax.Array
    qvel: jax.Array


@flax.struct.dataclass
class Log:
    """Events of one hopper; those beyond the first `max_events` are dropped.

    Attributes:
      step: [max_events] control step of each event, int32.
      phase: [max_events] the phase entered, int32.
      count: how many there were.
    """

    step: jax.Array
    phase: jax.Array
    count: jax.Array


@flax.struct.dataclass
class Trial:
    """One hopper under way; all as it was when it fell, if it did.

    Attributes:
      data: of its physics.
      memory: of its controller; its `fsm` is watched.
      steps: control steps before it fell, int32.
      fallen: whether it fell or diverged.
      diverged: whether its physics left the finite numbers.
      peak: m, highest torso of the flight under way.
      apex: m, highest torso of the last flight that ended; NaN: none did.
      phase_steps: [4] control steps in each phase, int32.
      marked: m, where the torso was when the last seconds began.
      log: its events; None if none are kept.
    """

    data: Data
    memory: Any
    steps: jax.Array
    fallen: jax.Array
    diverged: jax.Array
    peak: jax.Array
    apex: jax.Array
    phase_steps: jax.Array
    marked: jax.Array
    log: Log | None


@dataclasses.dataclass(frozen=True)
class TrialStep:
    """Begins trials and moves them by one control step.

    Attributes:
      robot: The hopper.
      physics: The engine, with the servos' gains as traced fields.
      controller: What decides.
      mark: Control step at which the last seconds begin.
      max_events: Events that are kept.
    """

    robot: Robot
    physics: Physics
    controller: Any
    mark: int
    max_events: int = 0

    def begin(self, case: Cases) -> Trial:
        """Puts a hopper where it starts."""
        still = jnp.zeros(self.robot.model.nu)
        data = self.physics.init(case.qpos, case.qvel, still, case.model)
        none = jnp.full(self.max_events, -1, jnp.int32)
        return Trial(
            data=data,
            memory=self.controller.init(self.robot.sense(data)),
            steps=jnp.int32(0),
            fallen=jnp.bool_(False),
            diverged=jnp.bool_(False),
            peak=jnp.float32(-jnp.inf),
            apex=jnp.float32(jnp.nan),
            phase_steps=jnp.zeros(len(PHASES), jnp.int32),
            marked=data.qpos[0],
            log=Log(none, none, jnp.int32(0)) if self.max_events else None,
        )

    def __call__(self, trial: Trial, case: Cases) -> Trial:
        """Moves a hopper by one control step; one that fell stays as it is."""
        sensed = self.robot.sense(trial.data)
        seen = self.controller.perception(sensed)
        memory, action = self.controller(case.gains, trial.memory, sensed, case.command)
        data = self.physics.step(trial.data, action.ctrl, fields=action.fields)
        now = self._watch(trial, memory, seen)
        after = self.controller.perception(self.robot.sense(data))
        diverged = ~(jnp.isfinite(data.qpos).all() & jnp.isfinite(data.qvel).all())
        now = dataclasses.replace(
            now, data=data, fallen=diverged | self._down(after), diverged=diverged
        )
        return jax.tree.map(
            lambda old, new: jnp.where(trial.fallen, old, new), trial, now
        )

    def _down(self, seen: Perceived) -> jax.Array:
        """Whether torso or leg touches the floor, or the torso is too low for a hop."""
        lowest = jnp.maximum(FALLEN, self.controller.perception.torso_radius)
        return ~((seen.height > lowest) & (seen.leg_clearance > 0))

    def _watch(self, trial: Trial, memory: Any, seen: Perceived) -> Trial:
        """Adds one control step to what is watched."""
        before, fsm = trial.memory.fsm, memory.fsm
        hopped = fsm.hops != before.hops
        peak = jnp.maximum(trial.peak, seen.height)
        flying = ~hopped & (fsm.phase == AIR2)
        return dataclasses.replace(
            trial,
            memory=memory,
            steps=trial.steps + 1,
            peak=jnp.where(flying, peak, -jnp.inf),
            apex=jnp.where(hopped, peak, trial.apex),
            phase_steps=trial.phase_steps + (jnp.arange(len(PHASES)) == fsm.phase),
            marked=jnp.where(trial.steps == self.mark, seen.x, trial.marked),
            log=_logged(trial.log, before, fsm),
        )


def _logged(log: Log | None, before: Fsm, after: Fsm) -> Log | None:
    """Writes the events of one call behind those before."""
    if log is None:
        return None
    entered = transitions(before, after)
    # Beyond the last place nothing is written.
    place = jnp.where(entered, log.count + jnp.cumsum(entered) - 1, len(log.step))
    return Log(
        step=log.step.at[place].set(before.step, mode="drop"),
        phase=log.phase.at[place].set(jnp.array(ENTERED, jnp.int32), mode="drop"),
        count=log.count + entered.sum(),
    )
