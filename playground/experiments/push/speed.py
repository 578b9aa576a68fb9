"""Speed of a push sweep, as ratios against what it could be compared with."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout

from playground.experiments.bench import Figure, Round, compare
from playground.experiments.push.cases import Cases
from playground.experiments.push.config import PushConfig
from playground.experiments.push.trial import Push, Trial
from playground.experiments.push.trials import PushTrials, stack_gains
from playground.physics.base import Data
from playground.physics.native import cores

ROBOTS = 432
# Control steps in a round, each of one physics step.
_STEPS = 100
_IMPULSE = 8.0  # N·s, from all sides


class SweepSpeed:
    """Robots that are pushed and balance, in a batch and by hand."""

    def __init__(self, robots: int = ROBOTS):
        """Puts robots on their feet, about to be pushed from all sides."""
        self._trials = PushTrials(PushConfig(strategies="ankle+hip", engine="native"))
        angles = np.linspace(0.0, 2 * np.pi, robots, endpoint=False)
        nothing = np.zeros(robots, int)
        cases = Cases(nothing, angles, np.full(robots, _IMPULSE), nothing)
        gains = stack_gains(self._trials.gains * robots)
        self._start = self._trials.settled(gains, cases)
        self._pushes = self._trials.pushes(gains, cases)
        self._robots = robots

    def against_rollout(self, rounds: int) -> Figure:
        """The sweep against `mujoco.rollout` fed with the same torques and pushes."""
        return compare(
            "push sweep / mujoco.rollout",
            self._batch,
            self._replay(),
            "physics steps/s",
            0.8,
            rounds,
        )

    def against_loop(self, rounds: int) -> Figure:
        """The sweep against the same controller on one robot, in a Python loop."""
        return compare(
            "push sweep / Python loop",
            self._batch,
            self._loop(),
            "physics steps/s",
            8.0,
            rounds,
        )

    def _batch(self) -> int:
        period = self._trials.step.physics.control_period
        self._trials.advance(self._start, self._pushes, _STEPS * period)
        return self._robots * _STEPS

    def _replay(self) -> Round:
        physics, step = self._trials.step.physics, jax.vmap(self._trials.step.inputs)
        advance = jax.vmap(self._trials.step)

        @jax.jit
        def record(trials: Trial, pushes: Push):
            def one(now: Trial, _):
                return advance(now, pushes), step(now, pushes)

            return jax.lax.scan(one, trials, length=_STEPS)[1]

        torques, wrenches = record(self._start, self._pushes)
        model, n = physics.model, self._robots
        forces = np.zeros((_STEPS, n, 1, model.nbody, 6))
        forces[:, :, 0, physics.push_body] = np.asarray(wrenches)[:, :, 0]
        controls = np.concatenate(
            [np.asarray(torques)[:, :, None], forces.reshape(_STEPS, n, 1, -1)], axis=-1
        )
        data = self._start.data
        first = np.concatenate([np.zeros((n, 1)), data.qpos, data.qvel], 1)
        pool = rollout.Rollout(nthread=cores())
        scratch = [mujoco.MjData(model) for _ in range(cores())]
        spec = mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_XFRC_APPLIED

        def round_() -> int:
            state = first
            for control in controls:
                states, _ = pool.rollout(
                    model, scratch, state, control, control_spec=int(spec)
                )
                state = states[:, -1]
            return n * _STEPS

        return round_

    def _loop(self) -> Round:
        robot, controller = self._trials.robot, self._trials.step.controller
        gains, model = self._trials.gains[0], robot.model
        first = jax.tree.map(lambda x: jnp.asarray(x[0]), self._start)

        @jax.jit
        def act(memory, qpos, qvel, sensordata, time):
            still = jnp.zeros(model.nv)
            data = Data(time, qpos, qvel, sensordata, still, jnp.int32(0))
            return controller(gains, memory, robot.sense(data))

        def round_() -> int:
            data, memory = mujoco.MjData(model), first.memory
            data.qpos[:], data.qvel[:] = first.data.qpos, first.data.qvel
            mujoco.mj_forward(model, data)
            for _ in range(_STEPS):
                memory, torque = act(
                    memory, data.qpos, data.qvel, data.sensordata, data.time
                )
                data.ctrl[:] = torque
                mujoco.mj_step(model, data)
            return _STEPS

        return round_
