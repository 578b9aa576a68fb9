"""The one loop in which a robot is watched: any policy, command source and views.

Sources and views know nothing of robots; the task is the very one that was trained on,
so what the policy observes here is what it observed there, number by number.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from playground.errors import PlaygroundError
from playground.signals import StopSignal
from playground.tasks.locomotion import Locomotion

# A robot that fell lies for so long before it is set up again, s.
_LYING = 1.0
# Speeds are averaged from here on, s: the robot has then had time to get going.
_SETTLE = 1.0

Policy = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Frame:
    """What a view shows.

    Attributes:
      time: s since the start.
      qpos: [nq] the robot.
      command: [7] in force.
      velocity: [3] vx, vy (m/s) and yaw rate (rad/s) in the heading frame, smoothed.
      falls: so far.
      realtime: simulated over real time; NaN where the loop does not keep pace.
    """

    time: float
    qpos: np.ndarray
    command: np.ndarray
    velocity: np.ndarray
    falls: int
    realtime: float


class Source(Protocol):
    """Where commands come from."""

    def command(self, time: float) -> np.ndarray:
        """Returns the command [7] for the control step that begins at `time` (s)."""


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


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a run went.

    Attributes:
      seconds: simulated.
      falls: how often the robot fell.
      diverged: how often its physics left the finite numbers.
      velocity: [3] mean after 1 s while up: vx, vy (m/s) and yaw rate (rad/s).
      command: [7] last in force.
      realtime: simulated over real time.
      signal: that stopped the run; None if none did.
      obs: [T, n_obs] what the policy observed.
      action: [T, nu] what it did.
    """

    seconds: float
    falls: int
    diverged: int
    velocity: np.ndarray
    command: np.ndarray
    realtime: float
    signal: int | None
    obs: np.ndarray
    action: np.ndarray

    def save_trace(self, path: Path) -> None:
        """Writes observations and actions as .npz, to compare another runner with.

        Raises:
          PlaygroundError: the file exists.
        """
        if path.exists():
            raise PlaygroundError(f"'{path}' exists; give another name")
        np.savez_compressed(path, obs=self.obs, action=self.action)


class Player:
    """One robot in a task, led by a policy; falls are counted and made good.

    Attributes:
      task: What it is in.
      steps: Control steps so far.
      falls: How often it fell.
      diverged: How often its physics left the finite numbers.
      seen: Observations, one a step.
      done: Actions, one a step.
      speeds: [3] heading-frame velocities while up, after the first second.
    """

    def __init__(
        self, task: Locomotion, policy: Policy, command: np.ndarray, seed: int
    ):
        """Sets the robot up and compiles.

        Args:
          task: What it is in; its engine moves the robot.
          policy: obs [n_obs] -> action [nu].
          command: [7] to begin with.
          seed: Of the start and of whatever disturbs.
        """
        self.task, self._policy, self._key = task, policy, jax.random.key(seed)
        self._reset, self._step = jax.jit(task.reset), jax.jit(task.step)
        self._observe = jax.jit(task.observe)
        self.command = np.asarray(command, np.float32)
        self.state, self._obs = self._reset(self._key, self.command)
        jax.block_until_ready(self._step(self.state, jnp.zeros(task.action_size)))
        self.steps = self.falls = self.diverged = self._lying = 0
        self.seen: list[np.ndarray] = []
        self.done: list[np.ndarray] = []
        self.speeds: list[np.ndarray] = []

    @property
    def time(self) -> float:
        """Simulated time since the start, s."""
        return self.steps * self.task.config.control_period

    def step(self, command: np.ndarray) -> None:
        """Moves the robot by one control step under a command [7]."""
        command = np.asarray(command, np.float32)
        if not np.array_equal(command, self.command):
            self.command = command
            self.state = dataclasses.replace(self.state, command=jnp.asarray(command))
            self._obs = self._observe(self.state)
        obs = np.asarray(self._obs["state"])
        action = np.asarray(self._policy(obs))
        self.seen.append(obs)
        self.done.append(action)
        self.state, outcome = self._step(self.state, jnp.asarray(action))
        self._obs, self.steps = outcome.obs, self.steps + 1
        fell = bool(outcome.terminated)
        if fell and not self._lying:
            self.falls += 1
            self.diverged += int(outcome.diverged)
        elif self.time > _SETTLE and not self._lying:
            self.speeds.append(np.asarray(self.state.motion.velocity))
        self._lying = self._lying + 1 if fell or self._lying else 0
        if self._lying * self.task.config.control_period >= _LYING:
            self._lying = 0
            self._key = jax.random.fold_in(self._key, self.steps)
            self.state, self._obs = self._reset(self._key, self.command)

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


def run(
    player: Player,
    source: Source,
    views: Sequence[View] = (),
    seconds: float = float("inf"),
    paced: bool = False,
) -> Summary:
    """Runs a robot until the time is up, a view is closed, or SIGINT or SIGTERM.

    Args:
      player: The robot.
      source: Of commands.
      views: Where it is shown; closed at the end.
      seconds: Simulated time.
      paced: Whether to keep pace with the clock.
    """
    started, realtime = time.perf_counter(), float("nan")
    with StopSignal() as stop, contextlib.ExitStack() as stack:
        for view in views:
            stack.callback(view.close)
        while player.time < seconds - 1e-9 and not stop.number:
            if any(view.closed for view in views):
                break
            player.step(source.command(player.time))
            realtime = player.time / (time.perf_counter() - started)
            for view in views:
                view.show(player.frame(realtime if paced else float("nan")))
            if paced:
                time.sleep(max(0.0, started + player.time - time.perf_counter()))
    speeds = player.speeds
    return Summary(
        seconds=player.time,
        falls=player.falls,
        diverged=player.diverged,
        velocity=np.mean(speeds, axis=0) if speeds else np.full(3, np.nan),
        command=player.command,
        realtime=realtime,
        signal=stop.number,
        obs=np.array(player.seen),
        action=np.array(player.done),
    )
