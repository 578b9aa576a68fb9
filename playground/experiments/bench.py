"""Speed as ratios: each figure and its baseline are measured in turn, in one run.

Machines differ and drift; a ratio of two things timed side by side is what can be
compared. Every figure is the median over rounds of (candidate rate / baseline rate).
"""

import dataclasses
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax.sharding import Mesh
from mujoco import rollout

from playground.learning.config import NetworkConfig, PPOConfig, WarmStartConfig
from playground.learning.ppo import AXIS, PPO
from playground.physics.base import Data, Physics
from playground.physics.engines import make_physics
from playground.physics.native import NativePhysics
from playground.robots.registry import load_robot
from playground.robots.robot import Robot
from playground.tasks.brax_env import TrainingEnv
from playground.tasks.config import LocomotionConfig
from playground.tasks.registry import task_spec

# Half-width of the random servo targets about home, rad: the robots move and fall.
_SWING = 0.3

Round = Callable[[], int]


@dataclasses.dataclass(frozen=True)
class BenchConfig:
    """What to measure."""

    robots: int = 1024
    """Robots simulated at once."""
    rounds: int = 5
    """Rounds of baseline and candidate in turn; the median is the figure."""
    substeps: int = 10
    """Physics steps in a control step."""
    control_steps: int = 10
    """Control steps of all robots in a round."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured ratio.

    Attributes:
      name: What is compared.
      candidate: median rate of the candidate, in `unit`.
      baseline: median rate of the baseline.
      unit: of both rates.
      ratio: median over rounds of candidate / baseline.
      target: what the ratio should reach.
    """

    name: str
    candidate: float
    baseline: float
    unit: str
    ratio: float
    target: float

    @property
    def reached(self) -> bool:
        """Whether the ratio is at or above the target."""
        return self.ratio >= self.target


def compare(
    name: str, candidate: Round, baseline: Round, unit: str, target: float, rounds: int
) -> Figure:
    """Times two functions in turn; each returns how many steps it took.

    Args:
      name: Of the figure.
      candidate: What is judged.
      baseline: What it is judged by.
      unit: Of the rates.
      target: What the ratio should reach.
      rounds: How often; one more round at the start is not counted.
    """
    rates = [(_rate(candidate), _rate(baseline)) for _ in range(rounds + 1)][1:]
    ratio = statistics.median(a / b for a, b in rates)
    medians = [statistics.median(column) for column in zip(*rates, strict=True)]
    return Figure(name, medians[0], medians[1], unit, ratio, target)


def native_against_rollout(robot: Robot, config: BenchConfig) -> Figure:
    """The engine `native` inside jit against `mujoco.rollout` called by hand."""
    physics = make_physics(robot.model, "native", substeps=config.substeps)
    return compare(
        "native / mujoco.rollout",
        physics_round(physics, robot, config),
        rollout_round(physics.model, robot, config),
        "physics steps/s",
        0.85,
        config.rounds,
    )


def native_against_mjx(robot: Robot, config: BenchConfig) -> Figure:
    """The engine `native` against MJX (implementation jax) on the same device."""
    native, mjx = (
        make_physics(robot.model, engine, substeps=config.substeps)
        for engine in ("native", "mjx")
    )
    return compare(
        "native / mjx",
        physics_round(native, robot, config),
        physics_round(mjx, robot, dataclasses.replace(config, control_steps=2)),
        "physics steps/s",
        5.0,
        max(1, config.rounds // 2),
    )


def training_against_physics(env: LocomotionConfig, config: BenchConfig) -> Figure:
    """Training, updates included, against the engine `native` stepping alone."""
    env = dataclasses.replace(
        env, engine="native", sim_dt=env.control_period / config.substeps
    )
    task = task_spec("open_duck_joystick").make(env)
    physics = make_physics(
        task.robot.model, "native", sim_dt=env.sim_dt, substeps=config.substeps
    )
    alone = physics_round(physics, task.robot, config)
    return compare(
        "training / native physics",
        training_round(TrainingEnv(task), PPOConfig(num_envs=config.robots)),
        lambda: alone() // config.substeps,
        "environment steps/s",
        0.5,
        max(1, config.rounds // 2),
    )


def physics_round(physics: Physics, robot: Robot, config: BenchConfig) -> Round:
    """A round of an engine: all robots, controls of its own every control step."""
    start, targets = _start(physics, robot, config)

    @jax.jit
    def run(data: Data) -> Data:
        step = jax.vmap(lambda d, ctrl: physics.step(d, ctrl))
        return jax.lax.scan(lambda d, ctrl: (step(d, ctrl), None), data, targets)[0]

    def round_() -> int:
        jax.block_until_ready(run(start))
        return targets.shape[0] * config.robots * config.substeps

    return round_


def rollout_round(model: mujoco.MjModel, robot: Robot, config: BenchConfig) -> Round:
    """The same round through `mujoco.rollout` alone, on the same number of threads."""
    physics = NativePhysics([model], config.substeps)
    data, targets = _start(physics, robot, config)
    threads = physics.threads
    pool = rollout.Rollout(nthread=threads)
    scratch = [mujoco.MjData(model) for _ in range(threads)]
    first = np.concatenate(
        [np.zeros((config.robots, 1)), np.asarray(data.qpos), np.asarray(data.qvel)], 1
    )
    controls = np.repeat(np.asarray(targets, float)[:, :, None], config.substeps, 2)

    def round_() -> int:
        state = first
        for control in controls:
            states, _ = pool.rollout(model, scratch, state, control)
            state = states[:, -1]
        return len(controls) * config.robots * config.substeps

    return round_


def training_round(env: TrainingEnv, ppo: PPOConfig) -> Round:
    """A round of training: one rollout and its updates, on all devices."""
    mesh = Mesh(np.array(jax.devices()), (AXIS,))
    learner = PPO(env, ppo, NetworkConfig(), WarmStartConfig(steps=0), mesh)
    held = [learner.init(jax.random.key(0))]

    def round_() -> int:
        held[0], metrics = learner.iterate(held[0])
        jax.block_until_ready(metrics)
        return ppo.steps_per_iteration

    return round_


def bench_robot(scene: str = "flat_backlash") -> Robot:
    """The robot that the figures are measured with, as shipped."""
    return load_robot("open_duck", scene)


def _start(
    physics: Physics, robot: Robot, config: BenchConfig
) -> tuple[Data, jax.Array]:
    """Robots at home, [robots], and targets [control_steps, robots, nu] for them."""
    shape = (config.control_steps, config.robots, robot.model.nu)
    noise = jax.random.uniform(jax.random.key(0), shape, minval=-1.0, maxval=1.0)
    home = jnp.asarray(robot.home_pose, jnp.float32)
    qpos = jnp.tile(jnp.asarray(robot.home_qpos, jnp.float32), (config.robots, 1))
    qvel = jnp.zeros((config.robots, robot.model.nv))
    data = jax.jit(jax.vmap(lambda q, v: physics.init(q, v, home)))(qpos, qvel)
    return data, home + _SWING * noise


def _rate(round_: Round) -> float:
    start = time.perf_counter()
    steps = round_()
    return steps / (time.perf_counter() - start)
