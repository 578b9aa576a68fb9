"""One robot under a policy, step by step, and how that went."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from playground.errors import PlaygroundError
from playground.interface.scene import Frame
from playground.tasks.locomotion import Locomotion

# A robot that fell lies for so long before it is set up again, s.
_LYING = 1.0
# Speeds are averaged from so long after it was set up, s: it gets going first.
_SETTLE = 1.0

Policy = Callable[[np.ndarray], np.ndarray]


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
        return self.steps * self.period

    @property
    def period(self) -> float:
        """Simulated time that a step takes, s."""
        return self.task.config.control_period

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
        if not np.isfinite(action).all():
            raise PlaygroundError("the policy gives actions that are not finite")
        self.state, outcome = self._step(self.state, jnp.asarray(action))
        self._obs = outcome.obs
        self.steps, self._age = self.steps + 1, self._age + 1
        self._note(bool(outcome.terminated), bool(outcome.diverged))
        if self._record:
            position = np.asarray(self.state.data.qpos)[self._base]
            self._rows.append((obs, action, position))
        if self._lying * self.period >= _LYING:
            self.restart()

    def _note(self, fell: bool, diverged: bool) -> None:
        if fell and not self._lying:
            self.falls += 1
            self.diverged += diverged
        if fell or self._lying:
            self._lying += 1
        elif self._age * self.period > _SETTLE:
            self._sum += np.asarray(self.state.motion.velocity)
            self._count += 1

    def frame(self, realtime: float) -> Frame:
        """Returns what there is to show."""
        velocity = np.asarray(self.state.motion.smooth)
        rows = [
            ("asked", _velocity_text(self.command)),
            ("reached", _velocity_text(velocity)),
        ]
        if self.falls:
            rows.append(("falls", str(self.falls)))
        qpos = np.asarray(self.state.data.qpos)
        return Frame(self.time, qpos, tuple(rows), realtime)

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


def _velocity_text(velocity: np.ndarray) -> str:
    """Returns vx, vy (m/s) and yaw rate (rad/s) as text."""
    vx, vy, yaw_rate = velocity[:3]
    return f"{vx:+.2f} {vy:+.2f} m/s  {yaw_rate:+.2f} rad/s"
