"""One robot under a balance controller, pushed once, and how that went."""

import dataclasses
import math

import jax
import numpy as np

from playground.experiments.push.config import PushConfig
from playground.experiments.push.record import Sample, observe, single_push
from playground.experiments.push.trial import Push, Trial
from playground.experiments.push.trials import PushTrials
from playground.interface.scene import Frame

# A step of the player, s: several of the controller, so that a loop can keep pace.
PERIOD = 0.02


@dataclasses.dataclass(frozen=True)
class PushSummary:
    """How a push went; after a restart, the last one.

    Attributes:
      strategy: Name of the balance strategy.
      outcome: "recovered", "fell", "diverged", or what has not come about yet.
        What is told of a robot that diverged is of the time before.
      impulse: N·s, given so far.
      height: m above the floor, where it acted.
      peak_lean: rad, of the trunk.
      peak_offset: m, of the centre of mass, horizontally.
      moved: m, how far an ankle ever was from its place.
      steps: begun by the robot.
      seconds: simulated, restarts included.
      realtime: simulated over real time.
      signal: that stopped the run; None if none did.
    """

    strategy: str
    outcome: str
    impulse: float
    height: float
    peak_lean: float
    peak_offset: float
    moved: float
    steps: int
    seconds: float
    realtime: float
    signal: int | None

    def text(self) -> str:
        """Returns it in a few lines."""
        return (
            f"{self.seconds:.1f} s, {self.realtime:.1f} x real time\n"
            f"{self.outcome}: {self.impulse:.2f} N·s at {self.height:.3f} m, "
            f"strategy {self.strategy}\n"
            f"peak lean {math.degrees(self.peak_lean):.1f} deg, "
            f"peak CoM offset {100 * self.peak_offset:.1f} cm, "
            f"an ankle moved {100 * self.moved:.1f} cm, steps {self.steps}"
        )


class PushPlayer:
    """One robot that stands under a balance strategy and is pushed once.

    It takes no commands. Set up anew, it stands as it did and is pushed again.

    Attributes:
      trials: How it stands, and for how long it is pushed, where.
      trial: The robot.
      period: Simulated time that a step takes, s.
      steps: So far, restarts included.
    """

    def __init__(self, trials: PushTrials, impulse: float, direction: float):
        """Sets the robot up and compiles.

        Args:
          trials: As above; the first of its strategies acts.
          impulse: N·s.
          direction: rad; 0 pushes forward, pi/2 to the robot's left.
        """
        self.trials, self._impulse, self._direction = trials, impulse, direction
        step = trials.step
        push = single_push(trials, impulse, direction)
        moves = max(1, round(PERIOD / step.physics.control_period))
        self.period, self.steps = moves * step.physics.control_period, 0

        def move(trial: Trial, push: Push) -> tuple[Trial, Sample]:
            trial, samples = jax.lax.scan(
                lambda trial, _: observe(step, trial, push), trial, None, length=moves
            )
            last = jax.tree.map(lambda x: x[-1], samples)
            return trial, last.replace(impulse=samples.impulse.sum(0))

        self._push, self._step = push, jax.jit(move)
        begin = jax.jit(step.begin)
        self._begun = begin(push.gains, np.int32(0), trials.config.settle)
        # All is compiled now, so that nothing stalls once time counts.
        jax.block_until_ready(self._step(self._begun, push))
        self.restart()

    @property
    def time(self) -> float:
        """Simulated time since the start, s."""
        return self.steps * self.period

    def restart(self) -> None:
        """Sets the robot up as it first stood."""
        self.trial = self._known = self._begun
        self._seen: Sample | None = None
        self._given = np.zeros(3)

    def step(self, command: np.ndarray) -> None:
        """Moves the robot by one period; there is nothing to command."""
        del command
        self.trial, seen = self._step(self.trial, self._push)
        self._seen, self._given = seen, self._given + np.asarray(seen.impulse)
        self.steps += 1
        if not self._diverged:
            self._known = self.trial

    def frame(self, realtime: float) -> Frame:
        """Returns what there is to show; where the robot last was if it diverged."""
        assert self._seen is not None, "a frame is shown after a step"
        rows = push_rows(self._seen, self.trials.config, self._impulse, self._direction)
        qpos = np.asarray(self._known.data.qpos)
        return Frame(self.time, qpos, rows, realtime)

    def summary(self, realtime: float, signal: int | None) -> PushSummary:
        """Returns how it went."""
        trial = self._known
        return PushSummary(
            strategy=self.trials.config.strategy_names[0],
            outcome=self._outcome(),
            impulse=float(np.linalg.norm(self._given)),
            height=self.trials.stance.push_height,
            peak_lean=float(trial.peak_lean),
            peak_offset=float(trial.peak_offset),
            moved=float(trial.moved),
            steps=int(trial.memory.step.count),
            seconds=self.time,
            realtime=realtime,
            signal=signal,
        )

    @property
    def _diverged(self) -> bool:
        return not np.isfinite(self.trial.data.qpos).all()

    def _outcome(self) -> str:
        if self._known.fallen:
            return "fell"  # whatever became of it on the floor
        if self._diverged:
            return "diverged"
        if self.trial.time < self.trials.config.duration:
            return "not pushed to the end"
        return "recovered" if self.trial.stands else "has not recovered"


def push_rows(
    seen: Sample, config: PushConfig, impulse: float, direction: float
) -> tuple[tuple[str, str], ...]:
    """Returns the (label, value) pairs that a frame of a pushed robot shows.

    Args:
      seen: One step.
      config: For the duration of the push and the strategy, the first.
      impulse: N·s, of the push.
      direction: rad.
    """
    force, degrees = impulse / config.duration, math.degrees(direction)
    time, margin = float(seen.time), float(seen.margin)
    if time < 0:
        when = f"in {-time:.1f} s"
    elif time < config.duration:
        when = "now"
    else:
        when = f"{time - config.duration:.1f} s ago"
    return (
        ("push", f"{force:.0f} N at {degrees:.0f} deg, {when}"),
        ("strategy", config.strategy_names[0]),
        ("margin", f"{100 * margin:+.1f} cm" if math.isfinite(margin) else "-"),
        ("lean", f"{math.degrees(seen.lean):.1f} deg"),
        ("state", _state(seen, config.duration)),
    )


def _state(seen: Sample, duration: float) -> str:
    if seen.fallen:
        return "fallen"
    if 0 <= seen.time < duration:
        return "pushed"
    # Until it is pushed it stands, even while it settles.
    return "standing" if seen.stands or seen.time < 0 else "recovering"
