"""Speed of hoppers in closed loop, as a ratio against MuJoCo alone."""

import copy
import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout

from playground.experiments.bench import Figure, Round, compare
from playground.experiments.hopper.config import HopperConfig
from playground.experiments.hopper.trial import Cases, Trial
from playground.experiments.hopper.trials import HopperTrials
from playground.physics.native import NativePhysics

ROBOTS = 4096
# Control steps in a round, each of one physics step; those before the first round
# bring the hoppers to different phases.
_STEPS, _BEFORE = 100, 400
_SPREAD = 2.0  # m/s, of the vertical speed at the start


class HopperSpeed:
    """Hoppers of the seed's rule in a batch, against the same motion replayed."""

    def __init__(self, robots: int = ROBOTS):
        """Lets hoppers hop until some are in the air and some in stance."""
        self._trials = HopperTrials(HopperConfig(engine="native"))
        cases = self._trials.cases(robots)
        z = self._trials.robot.model.joint("z").dofadr[0]
        speeds = jnp.linspace(-_SPREAD, _SPREAD, robots)
        qvel = cases.qvel.at[:, z].set(speeds)
        self._cases = dataclasses.replace(cases, qvel=qvel)
        begun = self._trials.begin(self._cases)
        self._start = self._trials.move(begun, self._cases, _BEFORE)
        self._robots = robots

    def against_rollout(self, rounds: int) -> Figure:
        """Closed loop against `mujoco.rollout` fed with the same targets and gains."""
        return compare(
            "hoppers / mujoco.rollout",
            self._batch,
            self._replay(),
            "physics steps/s",
            0.5,
            rounds,
        )

    def _batch(self) -> int:
        moved = self._trials.move(self._start, self._cases, _STEPS)
        jax.block_until_ready(moved)
        return self._robots * _STEPS

    def _replay(self) -> Round:
        """One call a step, each hopper with one of two models: in the air, in stance.

        To switch them costs nothing here, and two models stay in the cache.
        """
        step, n = self._trials.step, self._robots

        def decide(trial: Trial, case: Cases):
            sensed = step.robot.sense(trial.data)
            return step.controller(case.gains, trial.memory, sensed, case.command)

        @jax.jit
        def record(trials: Trial, cases: Cases):
            def one(now: Trial, _):
                memory, action = jax.vmap(decide)(now, cases)
                return jax.vmap(step)(now, cases), (memory.fsm.in_stance, action)

            return jax.lax.scan(one, trials, length=_STEPS)[1]

        stance, action = jax.tree.map(np.asarray, record(self._start, self._cases))
        kinds = []
        for carries in (False, True):
            model = copy.copy(step.robot.model)
            at, row = np.argwhere(stance == carries)[0]
            for name, value in action.fields.items():
                getattr(model, name)[:] = value[at, row]
            kinds.append(model)
        models = [[kinds[int(carries)] for carries in now] for now in stance]
        controls = action.ctrl[:, :, None].astype(float)
        data = self._start.data
        first = np.concatenate([np.zeros((n, 1)), data.qpos, data.qvel], 1)
        threads = NativePhysics(kinds[:1], 1).threads
        pool = rollout.Rollout(nthread=threads)
        scratch = [mujoco.MjData(kinds[0]) for _ in range(threads)]

        def round_() -> int:
            state = first
            for now, control in zip(models, controls, strict=True):
                states, _ = pool.rollout(now, scratch, state, control)
                state = states[:, -1]
            return n * _STEPS

        return round_
