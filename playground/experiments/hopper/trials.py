"""Lets hoppers hop in batches, each with gains, command, model and start of its own."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.controllers.gains import check_batch
from playground.controllers.hopper.gains import HopperCommand
from playground.controllers.hopper.seed import SeedController
from playground.controllers.hopper.servos import FIELDS
from playground.errors import unknown
from playground.experiments.hopper.config import HopperConfig
from playground.experiments.hopper.trial import Cases, Trial, TrialStep
from playground.physics.engines import make_physics, resolve_engine
from playground.physics.population import vary
from playground.robots.registry import load_robot
from playground.robots.robot import Robot

_MAKE: Mapping[str, Callable[[Robot, float], Any]] = {"seed": SeedController}
# Hoppers in a batch at most: their private models take some 30 kB each.
_BATCH = 4096
# Robots that all fell are noticed, and Ctrl-C is heard, every so many seconds.
_SEGMENT = 1.0


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """How hoppers fared, [n] each.

    Attributes:
      hops: Hops counted, until it fell.
      apex: m, height of the torso at the top of the last hop; NaN: no hop.
      speed: m/s, mean over the last `window` s; NaN: it fell.
      fell_at: s; NaN: it did not fall.
      diverged: Its physics left the finite numbers; it counts as fallen too.
      phase_s: [n, 4] s in each phase, in the order of `PHASES`, until it fell.
      event_step: [n, max_events] control step of each event; -1: no event.
      event_phase: [n, max_events] the phase entered; -1: no event.
    """

    hops: np.ndarray
    apex: np.ndarray
    speed: np.ndarray
    fell_at: np.ndarray
    diverged: np.ndarray
    phase_s: np.ndarray
    event_step: np.ndarray
    event_phase: np.ndarray

    @property
    def fallen(self) -> np.ndarray:
        """[n] whether it fell."""
        return np.isfinite(self.fell_at)


class HopperTrials:
    """Runs trials of `seconds` s each; control acts every physics step.

    Attributes:
      config: What a trial is.
      robot: The hopper.
      gains: Of the config.
      engine: Of the physics, resolved.
      step: One control step of one hopper.
      period: s, of control and physics.
      begin: cases [n] -> trials [n]; compiled.
      move: trials [n], cases [n], control steps -> trials [n]; compiled.
    """

    def __init__(self, config: HopperConfig):
        """Loads the robot and its gains; compiles nothing yet.

        Raises:
          PlaygroundError: no such engine or gains.
        """
        self.config = config
        self.gains = config.load_gains()
        self.robot = load_robot("hopper", "flat")
        self.engine = resolve_engine(config.engine)
        physics = make_physics(
            varied_models(self.robot, config), self.engine, fields=FIELDS, double=True
        )
        self.period = physics.control_period
        self._steps = round(config.seconds / self.period)
        self.step = TrialStep(
            robot=self.robot,
            physics=physics,
            controller=_MAKE[config.controller](self.robot, self.period),
            mark=self._steps - round(config.window / self.period),
            max_events=config.events,
        )
        self.begin = jax.jit(jax.vmap(self.step.begin))
        self.move = jax.jit(self._segment)

    def cases(
        self,
        count: int,
        gains: Mapping[str, np.ndarray] | None = None,
        command: Mapping[str, np.ndarray] | None = None,
    ) -> Cases:
        """Returns `count` hoppers of the config, their models in turn, starts drawn.

        Args:
          count: n.
          gains: Name -> [n], in place of those of the config.
          command: Name -> [n], in place of that of the config.

        Raises:
          PlaygroundError: no such name, or a number out of its range.
        """
        model = self.robot.model
        rng = np.random.default_rng([self.config.seed, 1])
        angle, speed = rng.uniform(-1.0, 1.0, (2, count))
        qpos = np.tile(self.robot.home_qpos, (count, 1))
        qvel = np.zeros((count, model.nv))
        qpos[:, model.joint("hip").qposadr[0]] += self.config.start_angle * angle
        qvel[:, model.joint("x").dofadr[0]] += self.config.start_speed * speed
        return Cases(
            gains=spread(self.gains, count, gains),
            command=spread(self.config.command, count, command),
            model=jnp.arange(count) % len(self.step.physics.models),
            qpos=jnp.asarray(qpos, jnp.float32),
            qvel=jnp.asarray(qvel, jnp.float32),
        )

    def run(self, cases: Cases) -> Outcomes:
        """Lets any number of hoppers hop; each outcome depends on its case alone.

        Raises:
          PlaygroundError: a gain or command is out of its range.
        """
        check_batch(cases.gains)
        check_batch(cases.command, "command")
        count, parts = len(cases.model), []
        size = min(count, _BATCH)
        for first in range(0, count, size):
            rows = np.minimum(np.arange(first, first + size), count - 1)
            trials = self._hop(jax.tree.map(lambda x, r=rows: x[r], cases))
            parts.append(jax.tree.map(lambda x: np.asarray(x), trials))
        trials = jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)
        return self.outcomes(trials)

    def outcomes(self, trials: Trial) -> Outcomes:
        """Returns how trials [n] ended."""
        steps = np.asarray(trials.steps)
        fallen = np.asarray(trials.fallen)
        x = np.asarray(trials.data.qpos)[:, self.robot.model.joint("x").qposadr[0]]
        window = (self._steps - self.step.mark) * self.period
        none = np.empty((len(steps), 0), np.int32)
        log = trials.log
        return Outcomes(
            hops=np.asarray(trials.memory.fsm.hops),
            apex=np.asarray(trials.apex),
            speed=np.where(fallen, np.nan, (x - np.asarray(trials.marked)) / window),
            fell_at=np.where(fallen, steps * self.period, np.nan),
            diverged=np.asarray(trials.diverged),
            phase_s=np.asarray(trials.phase_steps) * self.period,
            event_step=np.asarray(log.step) if log else none,
            event_phase=np.asarray(log.phase) if log else none,
        )

    def _hop(self, cases: Cases) -> Trial:
        trials = self.begin(cases)
        left, segment = self._steps, round(_SEGMENT / self.period)
        while left > 0 and not np.asarray(trials.fallen).all():
            steps = min(left, segment)
            left -= steps
            trials = jax.block_until_ready(self.move(trials, cases, steps))
        return trials

    def _segment(self, trials: Trial, cases: Cases, steps: jax.Array) -> Trial:
        step = jax.vmap(self.step)
        return jax.lax.fori_loop(0, steps, lambda _, t: step(t, cases), trials)


def spread(numbers: Any, count: int, given: Mapping[str, Any] | None = None) -> Any:
    """Returns gains or a command, [count] each, some of them given.

    Raises:
      PlaygroundError: no such name, or a number out of its range.
    """
    names = [field.name for field in dataclasses.fields(numbers)]
    values = {name: np.full(count, getattr(numbers, name)) for name in names}
    what = "command" if isinstance(numbers, HopperCommand) else "gain"
    for name, value in (given or {}).items():
        if name not in values:
            raise unknown(what, name, names)
        values[name] = np.broadcast_to(np.asarray(value, float), (count,))
    every = type(numbers)(**values)
    check_batch(every, what)
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), every)


def varied_models(robot: Robot, config: HopperConfig) -> list[mujoco.MjModel]:
    """Returns the hopper as designed and `config.models` varied ones."""

    def edit(model: mujoco.MjModel, rng: np.random.Generator) -> None:
        bodies = np.flatnonzero(model.body_mass > 0)
        scale = 1 + config.mass * rng.uniform(-1.0, 1.0, len(bodies))
        model.body_mass[bodies] *= scale
        model.body_inertia[bodies] *= scale[:, None]
        # Of two shapes that touch the larger friction counts: all get the same.
        model.geom_friction[:, 0] *= 1 + config.friction * rng.uniform(-1.0, 1.0)

    return [robot.model, *vary(robot.model, config.models, edit, config.seed)]
