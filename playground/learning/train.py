"""A training run: iterate, evaluate, save, log; stop and resume without a trace."""

import contextlib
import dataclasses
import logging
import time

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from playground.config import to_dict
from playground.errors import PlaygroundError
from playground.learning.checkpoint import Checkpoints, Progress
from playground.learning.config import TrainConfig
from playground.learning.evaluator import Evaluator, Score
from playground.learning.logs import Logs, ProgressBar
from playground.learning.ppo import AXIS, PPO, TrainingState
from playground.learning.run_folder import RunFolder, write_config
from playground.signals import StopSignal
from playground.tasks.brax_env import TrainingEnv
from playground.tasks.registry import task_spec

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a run ended.

    Attributes:
      env_steps: environment steps done.
      score: last evaluation; None if there was none.
      diverged: robots whose physics diverged, in this process's lifetime.
      signal: the signal that stopped the run; None if it ran through.
    """

    env_steps: int
    score: Score | None
    diverged: int
    signal: int | None


class Trainer:
    """A run in a folder."""

    def __init__(self, config: TrainConfig, run: RunFolder):
        """Builds the task and the learner; nothing is written or compiled yet.

        Args:
          config: All that determines the run.
          run: Where it lies.

        Raises:
          PlaygroundError: sizes that do not fit.
        """
        self.config, self.run = config, run
        self.devices = jax.devices()
        config.ppo.check_devices(len(self.devices))
        spec = task_spec(config.task)
        self.task = spec.make(config.env, config.seed)
        self.ppo = PPO(
            TrainingEnv(self.task),
            config.ppo,
            config.network,
            config.warm_start,
            Mesh(np.array(self.devices), (AXIS,)),
        )
        self.checkpoints = Checkpoints(run.checkpoints)
        self._evaluator: Evaluator | None = None

    def saved(self, which: str) -> Progress | None:
        """Returns how far a checkpoint ("last" or "best") is; None: there is none.

        Raises:
          PlaygroundError: it is damaged, or of another task.
        """
        progress = self.checkpoints.progress(which)
        if progress and progress.task != self.config.task:
            raise PlaygroundError(
                f"the checkpoint in {self.run.path} is of task '{progress.task}', "
                f"not '{self.config.task}'"
            )
        return progress

    def start(self) -> tuple[TrainingState, Progress]:
        """Returns the state to go on from: the last checkpoint, else a fresh one.

        Raises:
          PlaygroundError: a checkpoint that does not do, or is not where it was.
        """
        key, num_envs = jax.random.key(self.config.seed), self.config.ppo.num_envs
        progress = self.saved("last")
        if progress is None:
            if self.run.metrics.exists():
                raise PlaygroundError(
                    f"the run in '{self.run.path}' has a log but no checkpoint to go "
                    "on with; begin another by --out"
                )
            return self.ppo.init(key), Progress(0, self.config.task, num_envs)
        done, total = progress.env_steps, self.config.total_steps
        # A run ends with the iteration that reaches its total.
        if done >= total + self.config.ppo.steps_per_iteration:
            raise PlaygroundError(
                f"the run in '{self.run.path}' has done {done:,} steps; total_steps "
                f"must be that or more, got {total:,}"
            )
        same = progress.num_envs == num_envs
        state = self.checkpoints.restore("last", self.ppo, robots=same)
        if not same:
            _log.warning(
                "the checkpoint has %d robots, this run starts %d new ones",
                progress.num_envs,
                num_envs,
            )
            fresh = self.ppo.new_robots(jax.random.fold_in(key, state.iteration))
            state = dataclasses.replace(state, env=fresh)
            progress = dataclasses.replace(progress, num_envs=num_envs)
        return state, progress

    def train(self) -> TrainResult:
        """Trains until `total_steps`, SIGINT or SIGTERM; saves the state either way."""
        state, progress = self.start()
        reporter = _Reporter(self.config, self.run, progress.env_steps)
        saved = progress.env_steps or None
        score, diverged = None, 0
        with StopSignal() as stop, contextlib.closing(reporter):
            while progress.env_steps < self.config.total_steps:
                if _agreed(stop):
                    if saved != progress.env_steps:
                        self.checkpoints.save("last", state, progress)
                    break
                started = time.perf_counter()
                state, metrics = self.ppo.iterate(state)
                values = {name: float(value) for name, value in metrics.items()}
                taken = self.config.ppo.steps_per_iteration
                values["steps_per_second"] = taken / (time.perf_counter() - started)
                diverged += int(values["count/diverged"])
                steps = progress.env_steps + taken
                due = self._evaluation_due(progress.env_steps, steps)
                progress = dataclasses.replace(progress, env_steps=steps, score=None)
                if due:
                    score = self.evaluate(state)
                    progress = dataclasses.replace(progress, score=score)
                    values |= {f"eval/{k}": float(v) for k, v in score.items()}
                # Logged before it is saved: a run killed in between does both again.
                reporter.report(steps, values, score)
                if due and score:
                    progress, saved = self._save(state, progress, score), steps
        return TrainResult(progress.env_steps, score, diverged, stop.number)

    def evaluate(self, state: TrainingState) -> Score:
        """Plays the fixed evaluation; every process of a distributed run does alike."""
        if self._evaluator is None:
            task = task_spec(self.config.task).make(self.config.env.undisturbed())
            self._evaluator = Evaluator(task, self.ppo.networks, self.config.evaluation)
        local = jax.tree.map(
            lambda x: x.addressable_data(0), (state.normalizer, state.params.policy)
        )
        return self._evaluator(*local)

    def _evaluation_due(self, before: int, now: int) -> bool:
        every = self.config.evaluation.every_steps
        return now // every > before // every or now >= self.config.total_steps

    def _save(self, state: TrainingState, progress: Progress, score: Score) -> Progress:
        if progress.best_score is None or score.reward > progress.best_score:
            progress = dataclasses.replace(progress, best_score=score.reward)
            self.checkpoints.save("best", state, progress)
        self.checkpoints.save("last", state, progress)
        return progress


class _Reporter:
    """Config, logs and progress bar of a run, written by the first process alone."""

    def __init__(self, config: TrainConfig, run: RunFolder, start_step: int):
        self._active = jax.process_index() == 0
        if self._active:
            write_config(run, config)
            self._logs = Logs(run, start_step, config.wandb, to_dict(config))
            self._bar = ProgressBar(config.total_steps, start_step)

    def report(self, step: int, values: dict[str, float], score: Score | None) -> None:
        if not self._active:
            return
        self._logs.write(step, values)
        self._bar.update(step, values["steps_per_second"])
        if any(name.startswith("eval/") for name in values) and score is not None:
            self._bar.say(f"{step:>12,} steps: {score}")

    def close(self) -> None:
        if self._active:
            self._logs.close()
            self._bar.stop()


def _agreed(stop: StopSignal) -> bool:
    """Whether to stop now; all processes of a distributed run say the same."""
    if jax.process_count() > 1:
        mine = np.array(stop.number or 0, np.int32)
        stop.number = int(multihost_utils.process_allgather(mine).max()) or None
    return stop.number is not None
