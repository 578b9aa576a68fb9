"""Pushes robots in batches, each with its own strategy, push and model."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.controllers.balance.controller import BalanceController
from playground.controllers.balance.gains import BalanceGains, load_gains
from playground.controllers.balance.perception import CORNERS, SIDES
from playground.errors import PlaygroundError
from playground.experiments.push.bounds import Stance
from playground.experiments.push.cases import Cases, Outcomes
from playground.experiments.push.config import PushConfig
from playground.experiments.push.trial import Push, Trial, TrialStep
from playground.experiments.rollouts import Parallel
from playground.physics.engines import make_physics, resolve_engine
from playground.physics.population import vary
from playground.robots.registry import load_robot
from playground.robots.robot import Robot

# Robots are simulated in batches of these sizes: one program each. A step of a batch
# costs as much as so many robots more. Those that fell make room every so many seconds.
_SIZES, _OVERHEAD = (216, 144, 80, 40, 16), 25
_SEGMENT = 0.5


class PushTrials:
    """Runs trials: a robot stands for `settle` s, is pushed, is watched for `watch` s.

    See `trial.py` for what counts as recovered.

    Attributes:
      config: What a trial is.
      robot: Who is pushed.
      gains: Of each strategy of the config.
      engine: Of the physics, resolved.
      step: One control step of one robot.
      stance: How the robot as designed stands, and where it is pushed.
      move: trials [n], pushes [n], control steps -> trials [n]; compiled.
      steps_per_case: Physics steps of a robot that never falls, standing before the
        push left out: equal robots share that.
    """

    def __init__(self, config: PushConfig):
        """Loads the robot and its gains; compiles nothing yet.

        Raises:
          PlaygroundError: no such robot, engine or gains, or a height off the robot.
        """
        self.config = config
        self.robot = load_robot(config.robot, "flat")
        self.gains = [load_gains(n, config.gains) for n in config.strategy_names]
        self.engine = resolve_engine(config.engine)
        physics = make_physics(
            varied_models(self.robot, config),
            self.engine,
            push_body=self.robot.spec.base,
            threads=1,
        )
        self._parallel = Parallel(self.engine)
        self.stance, lever = _stance(self.robot, config.height)
        self.step = TrialStep(
            robot=self.robot,
            physics=physics,
            controller=BalanceController(self.robot, physics.control_period),
            duration=config.duration,
            lever=lever,
            position_noise=config.position_noise,
            velocity_noise=config.velocity_noise,
        )
        self.steps_per_case = round(config.watch / physics.control_period)
        self._begin = jax.jit(jax.vmap(self.step.begin, (0, 0, None)))
        self.move = jax.jit(self._segment)

    def compile(self) -> float:
        """Compiles for every batch size, so that no round waits; returns s it took."""
        started = time.perf_counter()
        for size in _SIZES:
            gains = stack_gains(self.gains[:1] * size)
            begun = self._begin(gains, np.zeros(size, np.int32), self.config.settle)
            pushes = Push(gains, jnp.zeros((size, 3)))
            jax.block_until_ready(self.move(_host(begun), pushes, 0))
        return time.perf_counter() - started

    def run(self, cases: Cases) -> Outcomes:
        """Pushes any number of robots; a robot's outcome depends on its case alone."""
        stacked = stack_gains(self.gains)
        gains = jax.tree.map(lambda x: x[np.asarray(cases.strategy)], stacked)
        return self.run_gains(gains, cases)

    def run_gains(self, gains: BalanceGains, cases: Cases) -> Outcomes:
        """The same with gains of their own, [n] each, in place of a strategy's."""
        trials, pushes = self.settled(gains, cases), self.pushes(gains, cases)
        trials = self.advance(trials, pushes, self.config.watch)
        return Outcomes(
            recovered=np.asarray(trials.stands),
            diverged=~np.isfinite(np.asarray(trials.data.qpos)).all(axis=1),
            moved=np.asarray(trials.moved),
            saturated_s=np.asarray(trials.saturated_s),
            peak_lean=np.asarray(trials.peak_lean),
            peak_offset=np.asarray(trials.peak_offset),
        )

    def pushes(self, gains: BalanceGains, cases: Cases) -> Push:
        """Returns what each robot is given, [n]."""
        angle, impulse = np.asarray(cases.direction), np.asarray(cases.impulse)
        along = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], 1)
        force = impulse[:, None] / self.config.duration * along
        return Push(gains, jnp.asarray(force, jnp.float32))

    def settled(self, gains: BalanceGains, cases: Cases) -> Trial:
        """Returns robots [n] about to be pushed; equal ones stood as one."""
        model = np.asarray(cases.model, np.int32)
        columns = [np.asarray(x, np.float32) for x in jax.tree.leaves(gains)]
        kinds = np.stack([*columns, model.astype(np.float32)], 1)
        _, first, kind = np.unique(
            kinds, axis=0, return_index=True, return_inverse=True
        )
        some = jax.tree.map(lambda x: np.asarray(x, np.float32)[first], gains)
        nothing = Push(some, jnp.zeros((len(first), 3)))
        settle = self.config.settle
        each = (some, model[first])
        parts = [
            _host(self._begin(*jax.tree.map(lambda x, r=rows: x[r], each), settle))
            for _, rows in _batches(np.arange(len(first)))
        ]
        trials = jax.tree.map(lambda *x: np.concatenate(x)[: len(first)], *parts)
        trials = self.advance(trials, nothing, settle)
        trials = jax.tree.map(lambda x: x[kind.reshape(-1)], trials)
        return dataclasses.replace(trials, key=self._keys(cases))

    def _keys(self, cases: Cases) -> np.ndarray:
        """Returns [n, 2] data of a key for each case: as a case, so its noise."""
        bits = np.stack([cases.direction, cases.impulse], 1).astype(np.float32)
        key = jax.random.key(self.config.seed)
        for column in bits.view(np.uint32).T:
            fold = jax.vmap(jax.random.fold_in, (None if key.ndim == 0 else 0, 0))
            key = fold(key, column)
        return np.asarray(jax.random.key_data(key))

    def advance(self, trials: Trial, pushes: Push, seconds: float) -> Trial:
        """Moves robots on; those that fell stay as they are."""
        period = self.step.physics.control_period
        left, segment = round(seconds / period), round(_SEGMENT / period)
        trials = jax.tree.map(np.array, trials)  # to be written into
        while left > 0:
            steps = min(left, segment)
            left -= steps
            parts = self._parallel.split(np.flatnonzero(~trials.fallen))
            self._parallel.each(partial(self._move, trials, pushes, steps), parts)
        return trials

    def _move(self, trials: Trial, pushes: Push, steps: int, part: np.ndarray) -> None:
        """Moves some rows of trials on, in place."""
        for rows, padded in _batches(part):
            batch = jax.tree.map(lambda x, p=padded: x[p], (trials, pushes))
            moved = _host(self.move(*batch, steps))
            for kept, new in zip(
                jax.tree.leaves(trials), jax.tree.leaves(moved), strict=True
            ):
                kept[rows] = new[: len(rows)]

    def _segment(self, trials: Trial, pushes: Push, steps: jax.Array) -> Trial:
        step = jax.vmap(self.step)
        return jax.lax.fori_loop(0, steps, lambda _, t: step(t, pushes), trials)


def stack_gains(gains: Sequence[BalanceGains]) -> BalanceGains:
    """Returns gains [n] each of n."""
    return jax.tree.map(lambda *x: np.array(x, np.float32), *gains)


def varied_models(robot: Robot, config: PushConfig) -> list[mujoco.MjModel]:
    """Returns the robot as designed and `config.models` varied ones."""
    corners = [(a, b) for a in (-1.0, 1.0) for b in (0.0, 1.0)]
    count = iter(range(config.models))

    def edit(model: mujoco.MjModel, rng: np.random.Generator) -> None:
        i = next(count)
        mass, slip = corners[i] if i < len(corners) else rng.uniform((-1, 0), (1, 1))
        torso = robot.base_body
        scale = 1 + config.torso_mass * mass
        model.body_mass[torso] *= scale
        model.body_inertia[torso] *= scale
        for side in SIDES:
            friction = model.geom(f"{side}_sole").friction
            friction[0] += slip * (config.friction - friction[0])

    return [robot.model, *vary(robot.model, config.models, edit, config.seed)]


def _stance(robot: Robot, height: str) -> tuple[Stance, float]:
    """Returns how a robot stands at home, and the lever of the push, m.

    Raises:
      PlaygroundError: the height is not on the robot.
    """
    model, data = robot.model, mujoco.MjData(robot.model)
    data.qpos[:] = robot.home_qpos
    mujoco.mj_forward(model, data)
    com = data.subtree_com[robot.base_body]
    torso, top = data.xipos[robot.base_body, 2], _top(model, data)
    named = {"torso": torso, "com": com[2]}
    where = float(named.get(height, height))
    if not 0 < where <= top:
        raise PlaygroundError(
            f"height {where:g} m is not on the robot: torso ({torso:.3f} m), com "
            f"({com[2]:.3f} m) or a number above 0 up to {top:.2f}"
        )
    inertia = np.zeros((3, 3))
    for body in range(1, model.nbody):
        frame, arm = data.ximat[body].reshape(3, 3), data.xipos[body] - com
        inertia += frame @ np.diag(model.body_inertia[body]) @ frame.T
        inertia += model.body_mass[body] * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    corners = [
        data.site(f"{side}_foot_{corner}").xpos[:2] - com[:2]
        for side in SIDES
        for corner in CORNERS
    ]
    stance = Stance(
        mass=float(model.body_mass.sum()),
        com_height=float(com[2]),
        inertia=inertia,
        corners=np.array(corners),
        push_height=where,
    )
    return stance, where - torso


def _top(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Returns how high the robot's highest shape reaches, m."""
    robot = model.geom_bodyid > 0
    return float((data.geom_xpos[robot, 2] + model.geom_size[robot].max(1)).max())


def _batches(rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields rows in batches, each also padded to one of `_SIZES` by its own first."""
    while len(rows):
        fits = [s for s in _SIZES if s >= len(rows)]
        full = [s for s in _SIZES if s <= len(rows)]
        # A little too large is better than a second batch.
        spare = fits and (fits[-1] - len(rows) <= _OVERHEAD or not full)
        size = fits[-1] if spare else full[0]
        part, rows = rows[:size], rows[size:]
        yield part, np.concatenate([part, np.repeat(part[:1], size - len(part))])


def _host(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)
