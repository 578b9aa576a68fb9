"""MuJoCo's own C engine on all CPU cores, called from inside jit.

A batch of robots is one host callback per control step into one persistent thread pool
(`mujoco.rollout`), so the time is spent in C. The results do not depend on the number
of threads or on the batch size.
"""

import dataclasses
import math
import os
import threading
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout

from playground.errors import PlaygroundError
from playground.physics.base import Data, FieldValues, Physics
from playground.physics.private_models import PrivateModels

# With asynchronous dispatch a host callback can wait for a computation that waits for
# the callback. It must be off before the CPU backend starts.
jax.config.update("jax_cpu_enable_async_dispatch", False)

_CTRL = int(mujoco.mjtState.mjSTATE_CTRL)
_WRENCH = int(mujoco.mjtState.mjSTATE_XFRC_APPLIED)


def _silence(_: str) -> None:
    """A diverged robot is reported by its state, not by a log file in the cwd."""


class NativePhysics(Physics):
    """The engine `native`."""

    engine = "native"

    def __init__(
        self,
        models: Sequence[mujoco.MjModel],
        substeps: int,
        push_body: str | None = None,
        fields: Sequence[str] = (),
        threads: int | None = None,
        double: bool = False,
    ):
        """See `Physics`.

        Args:
          models: As in `Physics`.
          substeps: As in `Physics`.
          push_body: As in `Physics`.
          fields: As in `Physics`.
          threads: Threads of the pool; None: one for each core this process may use.
          double: Keep the state in double precision between steps, as MuJoCo itself
            does: for a machine whose events decide what it does next, where rounding
            to float32 at every step grows.
        """
        super().__init__(models, substeps, push_body, fields)
        if self.model.na or self.model.nplugin:
            raise PlaygroundError("native: activations and plugins are not supported")
        self.threads = threads or _cores()
        self._pool = rollout.Rollout(nthread=self.threads)
        self._scratch = [mujoco.MjData(self.model) for _ in range(self.threads)]
        # Two devices of one process (or two threads of a test) share the pool.
        self._lock = threading.Lock()
        self._private = PrivateModels(self.models, self.fields)
        self.double = double
        mujoco.set_mju_user_warning(_silence)

    def init(self, qpos, qvel, ctrl, model_index=0, needed=True) -> Data:
        """See `Physics.init`."""
        qpos, qvel = (jnp.asarray(x, jnp.float32) for x in (qpos, qvel))
        model_index = jnp.asarray(model_index, jnp.int32)
        sensordata = jax.pure_callback(
            self._sense,
            jax.ShapeDtypeStruct((self.model.nsensordata,), jnp.float32),
            qpos,
            qvel,
            ctrl,
            model_index,
            jnp.asarray(needed),
            vmap_method="broadcast_all",
        )
        return Data(
            time=jnp.zeros(()),
            qpos=qpos,
            qvel=qvel,
            sensordata=sensordata,
            warmstart=jnp.zeros(self.model.nv),
            model_index=model_index,
            remainder=jnp.zeros(self._state_size) if self.double else None,
        )

    def step(
        self,
        data: Data,
        ctrl: jax.Array,
        push: jax.Array | None = None,
        fields: FieldValues | None = None,
    ) -> Data:
        """See `Physics.step`."""
        self._check_step(push, fields)
        m = self.model
        shapes = [(), (m.nq,), (m.nv,), (m.nsensordata,), (m.nv,)]
        shapes += [(self._state_size,)] if self.double else []
        time, qpos, qvel, sensordata, warmstart, *rest = jax.pure_callback(
            partial(self._advance, push is not None, tuple(fields or ())),
            tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes),
            data.time,
            data.qpos,
            data.qvel,
            data.warmstart,
            data.model_index,
            ctrl,
            *([data.remainder] if self.double else []),
            *([] if push is None else [self._push_per_substep(push)]),
            *(fields or {}).values(),
            vmap_method="broadcast_all",
        )
        return dataclasses.replace(
            data,
            time=time,
            qpos=qpos,
            qvel=qvel,
            sensordata=sensordata,
            warmstart=warmstart,
            remainder=rest[0] if rest else None,
        )

    @property
    def _state_size(self) -> int:
        return self.model.nq + self.model.nv

    def _sense(self, qpos, qvel, ctrl, model_index, needed):
        """Host side of `init`: sensors [..., nsensordata] of the robots asked for."""
        m, batch = self.model, np.shape(needed)
        flat = partial(_flat, math.prod(batch))
        rows = np.reshape(needed, -1)
        sensordata = np.zeros((len(rows), m.nsensordata), np.float32)
        if rows.any():
            time, warmstart = np.zeros(rows.sum()), np.zeros((rows.sum(), m.nv))
            _, sensed = self._roll(
                flat(model_index)[rows],
                {},
                _state(time, flat(qpos, m.nq)[rows], flat(qvel, m.nv)[rows]),
                warmstart,
                flat(ctrl, 1, m.nu)[rows],
                _CTRL,
            )
            sensordata[rows] = sensed[:, 0]
        return sensordata.reshape(*batch, m.nsensordata)

    def _advance(self, pushed, names, time, qpos, qvel, warmstart, index, ctrl, *rest):
        """Host side of `step`: arrays with any leading batch shape, as float32."""
        m, batch = self.model, np.shape(time)
        flat = partial(_flat, math.prod(batch))
        start = _state(flat(time), flat(qpos, m.nq), flat(qvel, m.nv))
        if self.double:
            start[:, 1:] += flat(rest[0], self._state_size)
            rest = rest[1:]
        control, spec = flat(ctrl, 1, m.nu), _CTRL
        control = np.broadcast_to(control, (len(start), self.substeps, m.nu))
        # Without a wrench MuJoCo clears the forces that a robot before had.
        if pushed and np.any(rest[0]):
            wrench = np.zeros((len(start), self.substeps, m.nbody, 6))
            wrench[:, :, self.push_body] = flat(rest[0], self.substeps, 6)
            spec = _CTRL | _WRENCH
            # MuJoCo lays out user inputs in the order of the bits of its state enum.
            wrench = wrench.reshape(*wrench.shape[:2], -1)
            control = np.concatenate([control, wrench], axis=-1)
        rest = rest[1:] if pushed else rest
        values = {
            name: flat(value, *getattr(m, name).shape)
            for name, value in zip(names, rest, strict=True)
        }
        state, sensed = self._roll(
            flat(index), values, start, flat(warmstart, m.nv), control, spec
        )
        end = state[:, -1]
        end[self._lost(start, flat(ctrl, m.nu), end)] = np.nan
        before = state[:, -2] if self.substeps > 1 else start
        qvel_end, qvel_before = end[:, 1 + m.nq :], before[:, 1 + m.nq :]
        # The pool does not hand out the solver's accelerations. Those of the last
        # physics step, from its velocities, are as good a start: the result is no
        # further from a converged solver's (tests/test_physics_parity.py).
        acceleration = (qvel_end - qvel_before) / m.opt.timestep
        outputs: tuple[np.ndarray, ...] = (
            end[:, 0],
            end[:, 1 : 1 + m.nq],
            qvel_end,
            sensed[:, -1],
            acceleration,
        )
        if self.double:
            kept = end[:, 1:].astype(np.float32)
            outputs += (end[:, 1:] - kept,)
        return tuple(
            out.reshape((*batch, *out.shape[1:])).astype(np.float32) for out in outputs
        )

    def _lost(self, start, ctrl, end) -> np.ndarray:
        """[n] whether a robot met numbers that the engine cannot step.

        The pool then stops its clock, but not where that was in the last physics step;
        and a control that is no number counts as zero there.
        """
        due = start[:, 0] + (self.substeps - 0.5) * self.model.opt.timestep
        numbers = np.abs(np.concatenate([end, ctrl], axis=1))
        return (end[:, 0] < due) | ~(numbers < mujoco.mjMAXVAL).all(axis=1)

    def _roll(self, index, values, state, warmstart, control, spec):
        # All shapes are known here: MuJoCo's checks of every model would cost more than
        # everything else around the physics.
        n, steps = control.shape[:2]
        states = np.empty((n, steps, state.shape[1]))
        sensed = np.empty((n, steps, self.model.nsensordata))
        with self._lock:
            return self._pool.rollout(
                self._models(index.astype(int), values),
                self._scratch,
                state,
                np.ascontiguousarray(control),
                control_spec=spec,
                skip_checks=True,
                nstep=steps,
                initial_warmstart=warmstart,
                state=states,
                sensordata=sensed,
            )

    def _models(self, index: np.ndarray, values) -> list[mujoco.MjModel]:
        """One model a robot; with `values`, a private copy that holds its own."""
        if values:
            return self._private(index, values)
        return [self.models[i] for i in index]


def _cores() -> int:
    """Cores this process may use; not every system can tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _flat(count: int, array, *shape: int) -> np.ndarray:
    """[count, *shape] float64 copy of a batched array with any leading shape."""
    return np.asarray(array, np.float64).reshape(count, *shape)


def _state(time, qpos, qvel) -> np.ndarray:
    """[n, nstate] MuJoCo's full physics state."""
    return np.concatenate([time[:, None], qpos, qvel], axis=1)
