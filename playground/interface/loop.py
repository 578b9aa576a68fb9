"""The one loop in which a robot is watched: any policy, command source and views.

Sources and views know nothing of robots; the task is the very one that was trained on,
so what the policy observes here is what it observed there, number by number.
"""

import collections
import contextlib
import dataclasses
import enum
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from playground.errors import PlaygroundError
from playground.interface.scene import Frame
from playground.signals import StopSignal
from playground.tasks.locomotion import Locomotion

# A robot that fell lies for so long before it is set up again, s.
_LYING = 1.0
# Speeds are averaged from so long after it was set up, s: it gets going first.
_SETTLE = 1.0
# A loop that lost more time than this, s, does not rush to make it up.
_LATE = 0.1

Policy = Callable[[np.ndarray], np.ndarray]


class Event(enum.Enum):
    """What a source can ask for besides a command."""

    RESTART = "restart"
    QUIT = "quit"


class Source(Protocol):
    """Where commands come from."""

    def command(self, time: float) -> np.ndarray:
        """Returns the command [7] for the control step that begins at `time` (s)."""

    def events(self) -> Collection[Event]:
        """Returns what was asked for since the last call."""


class View(Protocol):
    """Where a robot is shown."""

    @property
    def closed(self) -> bool:
        """Whether the user closed it."""

    def show(self, frame: Frame) -> None:
        """Shows a frame."""

    def close(self) -> None:
        """Lets go of windows and files."""


@dataclasses.dataclass(frozen=True)
class FixedCommand:
    """A source that always asks for the same.

    Attributes:
      value: [7] the command.
    """

    value: np.ndarray

    def command(self, time: float) -> np.ndarray:
        """Returns the command."""
        del time
        return self.value

    def events(self) -> Collection[Event]:
        """Returns nothing."""
        return ()


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a run went; T is 0 where the player does not record.

    Attributes:
      seconds: simulated.
      steps: control steps.
      falls: how often the robot fell, divergences included.
      diverged: how often its physics left the finite numbers.
      velocity: [3] vx, vy (m/s) and yaw rate (rad/s) in the heading frame, mean while
        up and set up for more than 1 s; NaN if it never was.
      command: [7] last in force.
      realtime: simulated over real time.
      signal: that stopped the run; None if none did.
      obs: [T, n_obs] what the policy observed.
      action: [T, nu] what it did.
      positions: [T, 3] of the base after each step, m, world.
    """

    seconds: float
    steps: int
    falls: int
    diverged: int
    velocity: np.ndarray
    command: np.ndarray
    realtime: float
    signal: int | None
    obs: np.ndarray
    action: np.ndarray
    positions: np.ndarray

    def save_trace(self, path: Path) -> None:
        """Writes observations and actions as .npz, to compare another runner with.

        Raises:
          PlaygroundError: the file exists.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Opened here, as numpy would add a suffix and overwrite.
            with path.open("xb") as file:
                np.savez_compressed(file, obs=self.obs, action=self.action)
        except FileExistsError:
            raise PlaygroundError(f"'{path}' exists; give another name") from None


class Player:
    """One robot in a task, led by a policy; falls are counted and made good.

    Attributes:
      task: What it is in.
      command: [7] in force.
      state: The robot's.
      steps: Control steps so far.
      falls: How often it fell.
      diverged: How often its physics left the finite numbers.
    """

    def __init__(
        self,
        task: Locomotion,
        policy: Policy,
        command: np.ndarray,
        seed: int,
        record: bool = True,
    ):
        """Sets the robot up and compiles.

        Args:
          task: What it is in; its engine moves the robot.
          policy: obs [n_obs] -> action [nu].
          command: [7] to begin with.
          seed: Of the start and of whatever disturbs.
          record: Whether to keep what it observed and did, 1 kB a step.
        """
        self.task, self._policy, self._key = task, policy, jax.random.key(seed)
        self._reset, self._step = jax.jit(task.reset), jax.jit(task.step)
        self._observe = jax.jit(task.observe)
        self.command = np.asarray(command, np.float32)
        self.state, self._obs = self._reset(self._key, self.command)
        # All is compiled now, so that nothing stalls once time counts.
        jax.block_until_ready(self._step(self.state, jnp.zeros(task.action_size)))
        jax.block_until_ready(self._observe(self.state))
        self.steps = self.falls = self.diverged = self._lying = self._age = 0
        self._record = record
        self._rows: list[tuple[np.ndarray, ...]] = []
        self._sum, self._count = np.zeros(3), 0
        model, base = task.robot.model, task.robot.base_body
        self._base = model.jnt_qposadr[model.body_jntadr[base]] + np.arange(3)

    @property
    def time(self) -> float:
        """Simulated time since the start, s."""
        return self.steps * self.task.config.control_period

    def restart(self) -> None:
        """Sets the robot up anew; the command stays."""
        self._lying = self._age = 0
        self._key = jax.random.fold_in(self._key, self.steps)
        self.state, self._obs = self._reset(self._key, self.command)

    def step(self, command: np.ndarray) -> None:
        """Moves the robot by one control step under a command [7]."""
        command = np.asarray(command, np.float32)
        if not np.array_equal(command, self.command):
            # A copy: a source may go on writing into its own.
            self.command = command.copy()
            self.state = dataclasses.replace(
                self.state, command=jnp.asarray(self.command)
            )
            self._obs = self._observe(self.state)
        obs = np.asarray(self._obs["state"])
        action = np.asarray(self._policy(obs))
        self.state, outcome = self._step(self.state, jnp.asarray(action))
        self._obs = outcome.obs
        self.steps, self._age = self.steps + 1, self._age + 1
        self._note(bool(outcome.terminated), bool(outcome.diverged))
        if self._record:
            position = np.asarray(self.state.data.qpos)[self._base]
            self._rows.append((obs, action, position))
        if self._lying * self.task.config.control_period >= _LYING:
            self.restart()

    def _note(self, fell: bool, diverged: bool) -> None:
        if fell and not self._lying:
            self.falls += 1
            self.diverged += diverged
        if fell or self._lying:
            self._lying += 1
        elif self._age * self.task.config.control_period > _SETTLE:
            self._sum += np.asarray(self.state.motion.velocity)
            self._count += 1

    def frame(self, realtime: float) -> Frame:
        """Returns what there is to show."""
        return Frame(
            time=self.time,
            qpos=np.asarray(self.state.data.qpos),
            command=self.command,
            velocity=np.asarray(self.state.motion.smooth),
            falls=self.falls,
            realtime=realtime,
        )

    def summary(self, realtime: float, signal: int | None) -> Summary:
        """Returns how it went."""
        widths = self.task.observation.width, self.task.action_size, 3
        columns = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        obs, action, positions = (
            np.array(column, np.float32).reshape(-1, width)
            for column, width in zip(columns, widths, strict=True)
        )
        return Summary(
            seconds=self.time,
            steps=self.steps,
            falls=self.falls,
            diverged=self.diverged,
            velocity=self._sum / self._count if self._count else np.full(3, np.nan),
            command=self.command,
            realtime=realtime,
            signal=signal,
            obs=obs,
            action=action,
            positions=positions,
        )


class _Pace:
    """Keeps simulated time from running ahead of the clock, and compares the two."""

    def __init__(self, period: float):
        """Starts the clock; `period` (s) goes by between two calls of `keep`."""
        self._period, self._due = period, time.perf_counter()
        self._recent = collections.deque([self._due], maxlen=1 + round(1 / period))

    def keep(self) -> float:
        """Waits until it is time; returns simulated over real time of the last 1 s."""
        self._due = max(self._due + self._period, time.perf_counter() - _LATE)
        time.sleep(max(0.0, self._due - time.perf_counter()))
        self._recent.append(time.perf_counter())
        took = self._recent[-1] - self._recent[0]
        return self._period * (len(self._recent) - 1) / took


def run(
    player: Player,
    source: Source,
    views: Sequence[View] = (),
    seconds: float = float("inf"),
    paced: bool = False,
) -> Summary:
    """Runs a robot until the time is up, a view or the source ends it, or a signal.

    SIGINT and SIGTERM end it after the step under way; the summary tells which it was.

    Args:
      player: The robot.
      source: Of commands.
      views: Where it is shown; closed at the end.
      seconds: Simulated time.
      paced: Whether to keep pace with the clock.
    """
    lately, started = float("nan"), time.perf_counter()
    with StopSignal() as stop, contextlib.ExitStack() as stack:
        for view in views:
            stack.callback(view.close)
        pace = _Pace(player.task.config.control_period)
        while player.time < seconds - 1e-9 and not stop.number:
            events = source.events()
            if Event.QUIT in events or any(view.closed for view in views):
                break
            if Event.RESTART in events:
                player.restart()
            player.step(source.command(player.time))
            for view in views:
                view.show(player.frame(lately))
            if paced:
                lately = pace.keep()
        took = time.perf_counter() - started
    return player.summary(realtime=player.time / took, signal=stop.number)
