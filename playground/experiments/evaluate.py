"""Evaluates a policy over a grid of commands, undisturbed and disturbed.

An episode is determined by its own key, folded from the seed and its number, so that
its result depends neither on the batch nor on its place in it.
"""

import dataclasses
import functools
import importlib.metadata
import logging
import time
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

import playground
from playground.experiments.evaluate_config import EvaluateConfig, command_grid
from playground.experiments.metrics import SETTLE, Episodes, measure
from playground.experiments.summary import CommandResult, Summary, by_command, summarize
from playground.experiments.verdict import DISTURBED, UNDISTURBED, Verdict, judge
from playground.physics.engines import resolve_engine
from playground.tasks.config import COMMAND_NAMES, LocomotionConfig
from playground.tasks.episodes import Policy, Trace, play
from playground.tasks.locomotion import Locomotion
from playground.tasks.registry import TaskSpec

if TYPE_CHECKING:
    from playground.policy.runner import OnnxPolicy

__all__ = ["EvaluateConfig", "Evaluation", "evaluate", "onnx_policy_fn"]

_log = logging.getLogger(__name__)

_PACKAGES = ("jax", "jaxlib", "mujoco", "mujoco-mjx", "numpy", "onnxruntime")
_COMPARED = ("native", "mjx")
_SHOWN = 2.0  # s of one walk that are kept to be drawn


@dataclasses.dataclass(frozen=True)
class Condition:
    """All episodes under one condition.

    Attributes:
      episodes: every episode, command by command.
      summary: of all of them.
      commands: of each command.
    """

    episodes: Episodes
    summary: Summary
    commands: tuple[CommandResult, ...]

    @classmethod
    def of(cls, episodes: Episodes) -> "Condition":
        """Sums up episodes."""
        return cls(episodes, summarize(episodes), by_command(episodes))


@dataclasses.dataclass(frozen=True)
class Walk:
    """A piece of one episode, to be drawn.

    Attributes:
      command: [7] held.
      time: [T] s into the episode.
      sole_height: [T, n_feet] m, above where each is on average while it touches.
      contact: [T, n_feet] bool.
      feet: [n_feet] names.
    """

    command: np.ndarray
    time: np.ndarray
    sole_height: np.ndarray
    contact: np.ndarray
    feet: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What an evaluation found.

    Attributes:
      config: what was asked for.
      env: settings of the disturbed task; undisturbed all but the starts are exact.
      engine: that was used.
      device: that JAX used.
      versions: package -> version.
      conditions: "undisturbed" and, if asked for, "disturbed".
      verdict: whether the policy does what its task asks.
      engines: engine -> undisturbed condition, if engines were compared.
      walk: a piece of an undisturbed episode.
      wall_s: s that it took, compilation included.
    """

    config: EvaluateConfig
    env: LocomotionConfig
    engine: str
    device: str
    versions: dict[str, str]
    conditions: dict[str, Condition]
    verdict: Verdict
    engines: dict[str, Condition]
    walk: Walk
    wall_s: float


def evaluate(
    spec: TaskSpec, env: LocomotionConfig, policy: Policy, config: EvaluateConfig
) -> Evaluation:
    """Evaluates a policy.

    What disturbs, and how starts differ, is the task's own (`spec.config`), so that all
    policies of a task are asked the same; the rest is as in `env`. Undisturbed episodes
    start as varied as the others: else those of a command would all be the same one.

    Args:
      spec: The task.
      env: Its settings: robot, periods, command ranges, ... as the policy expects them.
      policy: obs [B, n_obs] -> action [B, nu], on jax arrays.
      config: What to play.

    Raises:
      PlaygroundError: an engine or command that there is not.
    """
    started = time.perf_counter()
    engine = resolve_engine(config.engine)
    commands = command_grid(config, env.command)
    disturbed = _with_disturbances(dataclasses.replace(env, engine=engine), spec.config)
    quiet = dataclasses.replace(disturbed.undisturbed(), start=disturbed.start)
    make = functools.partial(spec.make, seed=config.seed)

    task = make(quiet)
    episodes, walk = rollout(task, policy, commands, config)
    conditions = {UNDISTURBED: Condition.of(episodes)}
    engines = {engine: conditions[UNDISTURBED]} if config.compare_engines else {}
    if config.randomize:
        episodes, _ = rollout(make(disturbed), policy, commands, config)
        conditions[DISTURBED] = Condition.of(episodes)
    for other in _COMPARED if config.compare_engines else ():
        if other not in engines:
            task = make(dataclasses.replace(quiet, engine=other))
            engines[other] = Condition.of(rollout(task, policy, commands, config)[0])
    return Evaluation(
        config=config,
        env=disturbed,
        engine=engine,
        device=jax.devices()[0].device_kind,
        versions=_versions(),
        conditions=conditions,
        verdict=judge({n: (c.summary, c.commands) for n, c in conditions.items()}),
        engines=engines,
        walk=walk,
        wall_s=time.perf_counter() - started,
    )


def onnx_policy_fn(policy: "OnnxPolicy") -> Policy:
    """Returns a policy file as a function of jax arrays, run on the host."""
    n_act = policy.contract.n_act

    def run(obs) -> np.ndarray:
        obs = np.asarray(obs, np.float32)
        return policy(obs.reshape(-1, obs.shape[-1])).reshape(*obs.shape[:-1], n_act)

    def apply(obs: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct((*obs.shape[:-1], n_act), jnp.float32)
        return jax.pure_callback(run, shape, obs, vmap_method="broadcast_all")

    return apply


def rollout(
    task: Locomotion, policy: Policy, commands: np.ndarray, config: EvaluateConfig
) -> tuple[Episodes, Walk]:
    """Plays `config.seeds` episodes of each command, `config.batch` at once.

    Args:
      task: What to play.
      policy: obs [B, n_obs] -> action [B, nu].
      commands: [n, 7].
      config: What to play.

    Returns:
      All episodes, command by command, and a piece of the fastest walk.
    """
    grid = np.repeat(commands, config.seeds, axis=0)
    number, period = len(grid), task.config.control_period
    # Batches of one size, so that there is one program, and hardly a robot too many.
    size = -(-number // -(-number // config.batch))
    steps = round(config.seconds / period)
    head = _head_slice(task)

    @jax.jit
    def run(keys, commands):
        trace = play(task, policy, commands, keys, steps)
        # What is not measured stays where it is: observations are most of a trace.
        rest = dataclasses.replace(trace, obs=trace.obs[..., :0])
        return rest, trace.obs[..., head]

    key, shown, parts, walk = jax.random.key(config.seed), _walk_row(grid), [], None
    for start in range(0, number, size):
        rows = np.arange(start, start + size)
        held = grid[rows % number]
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, rows)
        trace, head_joints = jax.tree.map(
            np.asarray, run(keys, jnp.asarray(held, jnp.float32))
        )
        episodes = measure(
            trace,
            held,
            period,
            float(task.robot.model.body_mass.sum()),
            task.config.gait.phase_steps * period,
            head_joints,
        )
        parts.append(episodes[rows < number])
        if shown in rows:
            walk = _walk(task, trace, shown - start, grid[shown])
        _log.info("%d of %d episodes", min(start + size, number), number)
    assert walk is not None  # every row is in a batch
    return Episodes.join(parts), walk


def _with_disturbances(
    env: LocomotionConfig, task: LocomotionConfig
) -> LocomotionConfig:
    return dataclasses.replace(
        env,
        noise=task.noise,
        delays=task.delays,
        kicks=task.kicks,
        start=task.start,
        randomization=task.randomization,
    )


def _head_slice(task: Locomotion) -> np.ndarray:
    """Columns of the observation that hold the head joints, from home, as commanded."""
    channels = task.observation.channels
    names = [channel.name for channel in channels]
    before = channels[: names.index("joint_position")]
    rows = task.robot.joint_rows(*COMMAND_NAMES[3:])
    return sum(channel.width for channel in before) + rows


def _walk_row(grid: np.ndarray) -> int:
    """First episode of the fastest straight walk, else of the first command."""
    straight = ~grid[:, 1:].any(axis=1)
    return int(np.argmax(np.where(straight, grid[:, 0], 0.0)))


def _walk(task: Locomotion, trace: Trace, robot: int, command: np.ndarray) -> Walk:
    period = task.config.control_period
    first = round(SETTLE / period)
    up = max(int(trace.alive[:, robot].sum()), 1)
    end = min(first + round(_SHOWN / period), up)
    steps = slice(min(first, end - 1), end)
    height = np.asarray(trace.sole_height[steps, robot])
    contact = np.asarray(trace.contact[steps, robot])
    touching = np.maximum(contact.sum(0), 1)
    ground = np.where(contact, height, 0.0).sum(0) / touching
    return Walk(
        command=command,
        time=(np.arange(len(trace.alive))[steps] + 1) * period,
        sole_height=height - ground,
        contact=contact,
        feet=task.robot.spec.feet,
    )


def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"playground": playground.__version__} | found
