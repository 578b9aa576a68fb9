"""MuJoCo on JAX: the engines `mjx` (implementation jax) and `warp` (NVIDIA Warp)."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

from playground.errors import PlaygroundError, unknown
from playground.physics.base import Data, FieldValues, Physics
from playground.physics.batch import told_batch_size
from playground.physics.population import differing_fields

# Contacts of one robot that Warp's buffers have room for: two soles and the shells of
# trunk and head have 4 each on a plane, more on rough ground.
_WARP_CONTACTS = 24
# What MJX traces; the rest is fixed when the model is loaded.
_TRACED = {f.name for f in dataclasses.fields(mjx.Model) if f.type is jax.Array}


class MjxPhysics(Physics):
    """The engines `mjx` and `warp`."""

    def __init__(
        self,
        models: Sequence[mujoco.MjModel],
        substeps: int,
        push_body: str | None = None,
        fields: Sequence[str] = (),
        impl: str = "jax",
    ):
        """See `Physics`.

        Args:
          models: As in `Physics`.
          substeps: As in `Physics`.
          push_body: As in `Physics`.
          fields: As in `Physics`.
          impl: "jax" or "warp".
        """
        super().__init__(models, substeps, push_body, fields)
        self._blanks: dict[int, mjx.Data] = {}
        self.engine = "mjx" if impl == "jax" else impl
        for name in fields:
            if name not in _TRACED:
                raise unknown(f"model field of engine '{self.engine}'", name, _TRACED)
        self._bare = copy.copy(self.model)
        # MJX never resets a robot by itself, and Warp refuses the flag that says so.
        self._bare.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        # The energy is only reported, and MJX does not know how.
        self._bare.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        try:
            self._model = _put(self._bare, impl)
        except NotImplementedError as error:
            raise PlaygroundError(f"engine '{self.engine}': {error}") from error
        self._check_sensors()
        self._varied = self._stack_differences()
        # The robots of a batch share Warp's buffer of contacts.
        told = told_batch_size if impl == "warp" else _one_by_one
        self._init_of, self._step_of = told(self._init), told(self._step)

    def init(self, qpos, qvel, ctrl, model_index=0, needed=True) -> Data:
        """See `Physics.init`."""
        del needed  # in a batch all robots are computed together
        state = (jnp.asarray(x, jnp.float32) for x in (qpos, qvel, ctrl))
        return self._init_of(*state, jnp.asarray(model_index, jnp.int32))

    def step(
        self,
        data: Data,
        ctrl: jax.Array,
        push: jax.Array | None = None,
        fields: FieldValues | None = None,
    ) -> Data:
        """See `Physics.step`."""
        self._check_step(push, fields)
        wrench = None if push is None else self._push_per_substep(push)
        return self._step_of(data, ctrl, wrench, dict(fields or {}))

    def _init(self, robots, qpos, qvel, ctrl, model_index) -> Data:
        data = self._blank(robots).replace(qpos=qpos, qvel=qvel, ctrl=ctrl)
        data = mjx.forward(self._model_of(model_index), data)
        data = data.replace(qacc_warmstart=jnp.zeros_like(qvel))
        return self._read(data, model_index)

    def _step(self, robots, data: Data, ctrl, wrench, fields) -> Data:
        model = self._model_of(data.model_index).replace(**fields)

        def substep(inner: Any, wrench: jax.Array | None) -> tuple[Any, None]:
            if wrench is not None:
                applied = jnp.zeros((model.nbody, 6)).at[self.push_body].set(wrench)
                inner = inner.replace(xfrc_applied=applied)
            return mjx.step(model, inner), None

        start = self._blank(robots).replace(
            time=data.time,
            qpos=data.qpos,
            qvel=data.qvel,
            qacc_warmstart=data.warmstart,
            ctrl=ctrl,
        )
        end, _ = jax.lax.scan(substep, start, wrench, length=self.substeps)
        return self._read(end, data.model_index)

    def _blank(self, robots: int) -> mjx.Data:
        """Data of one robot, with room for what a batch of `robots` shares."""
        if robots not in self._blanks:
            sizes = {}
            if self.engine == "warp":
                sizes = {
                    "naconmax": robots * _WARP_CONTACTS,
                    "njmax": _most_constraints(self._bare),
                }
            # Also where the caller is being traced: these are constants.
            with jax.ensure_compile_time_eval():
                self._blanks[robots] = mjx.make_data(
                    self._bare, impl=self._model.impl, **sizes
                )
        return self._blanks[robots]

    def _model_of(self, model_index: jax.Array) -> mjx.Model:
        picked = {name: stack[model_index] for name, stack in self._varied.items()}
        return self._model.replace(**picked)

    def _check_sensors(self) -> None:
        """MJX leaves forces and accelerations at 0 where nothing can be constrained."""
        late = self._bare.sensor_needstage == mujoco.mjtStage.mjSTAGE_ACC
        if self.engine == "mjx" and late.any() and not self._blank(1)._impl.efc_J.size:
            sensor = self._bare.sensor(int(np.argmax(late))).name
            raise PlaygroundError(
                f"engine 'mjx' cannot compute the sensor '{sensor}' of a model without "
                "contacts, limits or dry friction; engines 'native' and 'warp' can"
            )

    def _stack_differences(self) -> dict[str, jax.Array]:
        """{name: [n_models, ...]} the numbers in which the population differs."""
        names = [field.name for field in dataclasses.fields(mjx.Model)]
        stacks = differing_fields(self.models, names)
        if fixed := sorted(set(stacks) - _TRACED):
            raise PlaygroundError(
                f"engine '{self.engine}' cannot vary {', '.join(fixed)} in a population"
            )
        now = {name: getattr(self._model, name) for name in stacks}
        return {
            name: jnp.asarray(stack, now[name].dtype).reshape(-1, *now[name].shape)
            for name, stack in stacks.items()
        }

    def _read(self, data: mjx.Data, model_index: jax.Array) -> Data:
        # As in MuJoCo itself, numbers beyond the largest one allowed are lost ones.
        numbers = jnp.concatenate([data.qpos, data.qvel, data.ctrl])
        fine = (jnp.abs(numbers) < mujoco.mjMAXVAL).all()
        return Data(
            time=data.time,
            qpos=jnp.where(fine, data.qpos, jnp.nan),
            qvel=jnp.where(fine, data.qvel, jnp.nan),
            sensordata=data.sensordata,
            warmstart=data.qacc_warmstart,
            model_index=model_index,
        )


def _most_constraints(model: mujoco.MjModel) -> int:
    """Rows of constraints that one robot can have at once."""
    rows_of_contact = 2 * (max(1, model.geom_condim.max(initial=1)) - 1) or 1
    contacts = _WARP_CONTACTS * rows_of_contact
    # Dry friction of every joint, both limits of every joint, welds.
    return int(model.nv + 2 * model.njnt + 6 * model.neq + contacts)


def _one_by_one(function: Callable[..., Data]) -> Callable[..., Data]:
    """In JAX itself the robots of a batch share nothing."""
    return partial(function, 1)


def _put(model: mujoco.MjModel, impl: str) -> mjx.Model:
    """Loads a model, without what Warp would print of its own accord."""
    if impl == "jax":
        return mjx.put_model(model, impl=impl)
    import warp
    from mujoco.mjx.third_party.mujoco_warp import OverflowType

    warp.config.log_level = warp.LOG_WARNING
    loaded = mjx.put_model(model, impl=impl)
    # Few solver iterations are a choice here; buffers that overflow are reported.
    limits = OverflowType.ITERATIONS | OverflowType.LS_ITERATIONS
    reported = int(OverflowType.ALL & ~limits)
    return loaded.tree_replace({"opt._impl.warn_overflow": reported})
