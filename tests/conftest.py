"""What tests share: one noisy joystick task on the native engine, compiled once."""

import copy
import csv
import dataclasses
import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from playground.learning.checkpoint import Checkpoints
from playground.learning.config import (
    EvaluationConfig,
    NetworkConfig,
    PPOConfig,
    TrainConfig,
    WarmStartConfig,
)
from playground.learning.ppo import TrainingState
from playground.learning.run_folder import RunFolder
from playground.learning.train import Trainer
from playground.robots.registry import load_robot
from playground.robots.robot import Robot
from playground.tasks.brax_env import TrainingEnv
from playground.tasks.config import (
    DelayConfig,
    KickConfig,
    LocomotionConfig,
    RandomizationConfig,
)
from playground.tasks.locomotion import Locomotion
from playground.tasks.registry import TASKS

ROBOTS = 16
STEPS = 1600  # of `small_training`: ten iterations, an evaluation at every third
ROWS = [160 * i for i in range(1, 11)]


def small_task(**changes) -> LocomotionConfig:
    """The joystick task with all its disturbances, short episodes, coarse physics."""
    config = TASKS["open_duck_joystick"].config
    values = {
        "engine": "native",
        "sim_dt": 0.004,
        "episode_s": 0.8,
        "command": dataclasses.replace(config.command, resample_s=0.2),
        "delays": DelayConfig(action=3, imu=3),
        "kicks": KickConfig(speed=(0.1, 0.3), interval_s=(0.2, 0.4)),
        "randomization": RandomizationConfig(models=3),
    }
    return dataclasses.replace(config, **(values | changes))


def small_training(**changes) -> TrainConfig:
    """A training of 160 steps an iteration whose networks are next to nothing."""
    values = {
        "total_steps": STEPS,
        "env": small_task(),
        "ppo": PPOConfig(num_envs=32, unroll_length=5, num_epochs=2),
        "network": NetworkConfig(policy_layers=(32,), value_layers=(32,)),
        "warm_start": WarmStartConfig(steps=0),
        "evaluation": EvaluationConfig(every_steps=480, episodes_per_command=1),
    }
    return TrainConfig(**(values | changes))


def leaves(tree) -> dict[str, np.ndarray]:
    """{path: values}; keys as their numbers."""
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        found[jax.tree_util.keystr(path)] = np.asarray(leaf)
    return found


def assert_equal(one, other) -> None:
    """Equal to the last bit."""
    ones, others = leaves(one), leaves(other)
    assert list(ones) == list(others)
    for name, value in ones.items():
        np.testing.assert_array_equal(value, others[name], err_msg=name)


@dataclasses.dataclass(frozen=True)
class Batch:
    """A task and its functions for `ROBOTS` robots, compiled.

    Attributes:
      task: the task.
      reset: keys [B], commands [B, 7] -> (state, obs); NaN commands are drawn.
      step: state, action [B, nu] -> (state, outcome).
    """

    task: Locomotion
    reset: Callable
    step: Callable

    def start(self, seed: int = 0, command=None):
        """Returns (state, obs); all robots hold `command` if there is one."""
        command = [jnp.nan] * 7 if command is None else command
        command = jnp.asarray(command, jnp.float32)
        keys = jax.random.split(jax.random.key(seed), ROBOTS)
        return self.reset(keys, jnp.tile(command, (ROBOTS, 1)))


# For what takes longer to compile than to run.
QUICK = {"xla_backend_optimization_level": 0}
quick_jit = partial(jax.jit, compiler_options=QUICK)


@pytest.fixture(
    scope="session",
    params=["native", "mjx", pytest.param("warp", marks=pytest.mark.slow)],
)
def engine(request) -> str:
    """Each engine there is, by name."""
    if request.param == "warp":
        pytest.importorskip("warp")
    return request.param


@pytest.fixture(scope="session")
def duck() -> Robot:
    """The robot in the scene it trains in; not to be changed."""
    return load_robot("open_duck", "flat_backlash")


@pytest.fixture(scope="session")
def batch() -> Batch:
    task = Locomotion(small_task())
    reset, step = quick_jit(jax.vmap(task.reset)), quick_jit(jax.vmap(task.step))
    return Batch(task, reset, step)


def move_to(trainer: Trainer, folder: Path, **changes) -> Trainer:
    """Returns the trainer of another run that shares what is compiled."""
    moved = copy.copy(trainer)
    moved.config = dataclasses.replace(trainer.config, **changes)
    moved.run = RunFolder(folder)
    moved.checkpoints = Checkpoints(moved.run.checkpoints)
    return moved


@pytest.fixture(scope="session")
def trainer(tmp_path_factory) -> Trainer:
    """The trainer of `small_training`, to be moved to a folder of one's own."""
    trainer = Trainer(small_training(), RunFolder(tmp_path_factory.mktemp("none")))
    # The evaluator is made when it is first needed, and then shared.
    trainer.evaluate(trainer.ppo.init(jax.random.key(0)))
    return trainer


@pytest.fixture(scope="session")
def training_env(batch):
    """`TrainingEnv` of the same task with reset and step compiled."""
    env = TrainingEnv(batch.task)
    return Batch(batch.task, quick_jit(env.reset), quick_jit(env.step))


def digest(state) -> str:
    """SHA-256 of all parts of a training state."""
    parts, found = leaves(state), hashlib.sha256()
    fields = {name.split(".")[1].split("[")[0] for name in parts}
    assert fields == {f.name for f in dataclasses.fields(TrainingState)}
    for name, value in parts.items():
        found.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
    return found.hexdigest()


def saved_digest(trainer: Trainer) -> str:
    """That of the last checkpoint of a run."""
    return digest(trainer.checkpoints.restore("last", trainer.ppo, robots=True))


def logged_steps(run: RunFolder) -> list[int]:
    with run.metrics.open(newline="") as file:
        return [int(row["env_steps"]) for row in csv.DictReader(file)]


def finish(trainer, folder: Path, steps: int = STEPS) -> Trainer:
    """Goes on with the run in a folder until the end."""
    run = move_to(trainer, folder, total_steps=steps)
    result = run.train()
    assert (result.env_steps, result.signal) == (steps, None)
    return run


@pytest.fixture(scope="session")
def straight(trainer, tmp_path_factory) -> tuple[Trainer, str]:
    """A run that ran through, and its digest."""
    run = finish(trainer, tmp_path_factory.mktemp("straight"))
    return run, saved_digest(run)
