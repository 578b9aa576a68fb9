"""What tests share: one noisy joystick task on the native engine, compiled once."""

import copy
import dataclasses
from collections.abc import Callable
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
from playground.learning.run_folder import RunFolder
from playground.learning.train import Trainer
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
        "total_steps": 1600,
        "env": small_task(episode_s=1.0),
        "ppo": PPOConfig(num_envs=32, unroll_length=5, num_epochs=2),
        "network": NetworkConfig(policy_layers=(32,), value_layers=(32,)),
        "warm_start": WarmStartConfig(steps=40, updates=500, batch_size=256),
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


@pytest.fixture(scope="session")
def batch() -> Batch:
    task = Locomotion(small_task())
    return Batch(task, jax.jit(jax.vmap(task.reset)), jax.jit(jax.vmap(task.step)))


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
    return Trainer(small_training(), RunFolder(tmp_path_factory.mktemp("none")))


@pytest.fixture(scope="session")
def training_env(batch):
    """`TrainingEnv` of the same task with reset and step compiled."""
    env = TrainingEnv(batch.task)
    return Batch(batch.task, jax.jit(env.reset), jax.jit(env.step))
