"""MuJoCo's own C engine on all CPU cores, called from inside jit.

A batch of robots is one host callback per control step into one persistent thread pool
(`mujoco.rollout`), so the time is spent in C. The results do not depend on the number
of threads or on the batch size.
"""

import dataclasses
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

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


class _Pool:
    """What a call needs for itself: threads, their scratch, models it may write."""

    def __init__(self, models: Sequence[mujoco.MjModel], fields, threads: int):
        self.rollout = rollout.Rollout(nthread=threads)
        self.scratch = [mujoco.MjData(models[0]) for _ in range(threads)]
        self.private = PrivateModels(models, fields)


class NativePhysics(Physics):
    """The engine `native`; calls at the same time do not wait for each other."""

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
          threads: Threads of a call; None: one for each core this process may use.
          double: Keep the state in double precision between steps, as MuJoCo itself
            does: for a machine whose events decide what it does next, where rounding
            to float32 at every step grows.
        """
        super().__init__(models, substeps, push_body, fields)
        if self.model.na or self.model.nplugin:
            raise PlaygroundError("native: activations and plugins are not supported")
        self.threads = threads or cores()
        self._free: list[_Pool] = []
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
        m, names = self.model, tuple(fields or ())
        given: list[Any] = [data.time, data.qpos, data.qvel, data.model_index, ctrl]
        given += [data.warmstart]
        given += [data.remainder] if self.double else []
        given += [] if push is None else [self._push_per_substep(push)]
        given += (fields or {}).values()
        # One array in and one out: the way to the host costs by the array.
        sizes = [1, m.nq, m.nv, m.nsensordata, m.nv]
        sizes += [self._state_size] if self.double else []
        ends = np.cumsum(sizes)
        found = jax.pure_callback(
            partial(self._advance, push is not None, names),
            jax.ShapeDtypeStruct((ends[-1],), jnp.float32),
            jnp.concatenate([jnp.ravel(x).astype(jnp.float32) for x in given]),
            vmap_method="broadcast_all",
        )
        time, qpos, qvel, sensordata, warmstart, *rest = jnp.split(found, ends[:-1])
        return dataclasses.replace(
            data,
            time=time[0],
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

    def _advance(self, pushed, names, packed):
        """Host side of `step`: [..., columns] as laid out there."""
        m = self.model
        rows = _flat(math.prod(packed.shape[:-1]), packed, packed.shape[-1])
        left = rows.T  # columns not taken yet

        def take(*shape):
            nonlocal left
            size = math.prod(shape)
            taken, left = left[:size], left[size:]
            return taken.T.reshape(len(rows), *shape)

        start = np.ascontiguousarray(take(1 + self._state_size))
        index, ctrl, warmstart = take(), take(m.nu), take(m.nv)
        if self.double:
            start[:, 1:] += take(self._state_size)
        control, spec = ctrl[:, None], _CTRL
        control = np.broadcast_to(control, (len(start), self.substeps, m.nu))
        wrench = take(self.substeps, 6) if pushed else np.zeros(0)
        # Without a wrench MuJoCo clears the forces that a robot before had.
        if wrench.any():
            full = np.zeros((len(start), self.substeps, m.nbody, 6))
            full[:, :, self.push_body] = wrench
            spec = _CTRL | _WRENCH
            # MuJoCo lays out user inputs in the order of the bits of its state enum.
            full = full.reshape(*full.shape[:2], -1)
            control = np.concatenate([control, full], axis=-1)
        values = {name: take(*getattr(m, name).shape) for name in names}
        state, sensed = self._roll(index, values, start, warmstart, control, spec)
        end = state[:, -1]
        end[self._lost(start, ctrl, end)] = np.nan
        before = state[:, -2] if self.substeps > 1 else start
        # The pool does not hand out the solver's accelerations. Those of the last
        # physics step, from its velocities, are as good a start: the result is no
        # further from a converged solver's (tests/test_physics_parity.py).
        change = (end[:, 1 + m.nq :] - before[:, 1 + m.nq :]) / m.opt.timestep
        found = np.concatenate([end, sensed[:, -1], change], axis=1, dtype=np.float32)
        if self.double:
            kept = found[:, 1 : 1 + self._state_size]
            lost = (end[:, 1:] - kept).astype(np.float32)
            found = np.concatenate([found, lost], axis=1)
        return found.reshape(*packed.shape[:-1], -1)

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
        with self._borrowed() as pool:
            return pool.rollout.rollout(
                self._models(index.astype(int), values, pool),
                pool.scratch,
                state,
                np.ascontiguousarray(control),
                control_spec=spec,
                skip_checks=True,
                nstep=steps,
                initial_warmstart=np.ascontiguousarray(warmstart),
                state=states,
                sensordata=sensed,
            )

    @contextmanager
    def _borrowed(self) -> Iterator[_Pool]:
        """A pool that no other call uses; a new one if none is free."""
        try:
            pool = self._free.pop()
        except IndexError:
            pool = _Pool(self.models, self.fields, self.threads)
        try:
            yield pool
        finally:
            self._free.append(pool)

    def _models(self, index: np.ndarray, values, pool) -> list[mujoco.MjModel]:
        """One model a robot; with `values`, a private copy that holds its own."""
        if values:
            return pool.private(index, values)
        return [self.models[i] for i in index]


def cores() -> int:
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
