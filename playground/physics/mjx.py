"""MuJoCo on JAX: the engines `mjx` (implementation jax) and `warp` (NVIDIA Warp)."""

import dataclasses
import importlib.util
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

from playground.errors import PlaygroundError
from playground.physics.base import Data, FieldValues, Physics
from playground.physics.population import differing_fields

# Room for contacts and constraint rows of one robot in Warp's fixed-size buffers.
_WARP_CONTACTS, _WARP_CONSTRAINTS = 24, 256


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
        self.engine = "mjx" if impl == "jax" else impl
        if impl == "warp" and importlib.util.find_spec("warp") is None:
            raise PlaygroundError(
                "engine 'warp' is not installed: pip install 'playground[warp]'"
            )
        try:
            self._model = mjx.put_model(self.model, impl=impl)
        except NotImplementedError as error:
            raise PlaygroundError(f"engine '{self.engine}': {error}") from error
        sizes = {"naconmax": None, "njmax": _WARP_CONSTRAINTS} if impl == "warp" else {}
        self._blank = mjx.make_data(self.model, impl=impl, **sizes)
        names = [f.name for f in dataclasses.fields(self._model)]
        # [n_models, ...] the numbers in which the population differs.
        self._varied = {
            name: jnp.asarray(stack, getattr(self._model, name).dtype)
            for name, stack in differing_fields(self.models, names).items()
        }

    def init(self, qpos, qvel, ctrl, model_index=0, needed=True) -> Data:
        """See `Physics.init`."""
        del needed  # in a batch all robots are computed together
        model_index = jnp.asarray(model_index, jnp.int32)
        data = self._blank.replace(qpos=qpos, qvel=qvel, ctrl=ctrl)
        data = mjx.forward(self._model_of(model_index), data)
        return self._read(
            data.replace(qacc_warmstart=jnp.zeros_like(qvel)), model_index
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
        model = self._model_of(data.model_index).replace(**(fields or {}))
        wrench = None if push is None else self._push_per_substep(push)

        def substep(inner: Any, wrench: jax.Array | None) -> tuple[Any, None]:
            if wrench is not None:
                applied = jnp.zeros((model.nbody, 6)).at[self.push_body].set(wrench)
                inner = inner.replace(xfrc_applied=applied)
            return mjx.step(model, inner), None

        start = self._blank.replace(
            time=data.time,
            qpos=data.qpos,
            qvel=data.qvel,
            qacc_warmstart=data.warmstart,
            ctrl=ctrl,
        )
        end, _ = jax.lax.scan(substep, start, wrench, length=self.substeps)
        return self._read(end, data.model_index)

    def _model_of(self, model_index: jax.Array) -> mjx.Model:
        picked = {name: stack[model_index] for name, stack in self._varied.items()}
        return self._model.replace(**picked)

    def _read(self, data: mjx.Data, model_index: jax.Array) -> Data:
        return Data(
            time=data.time,
            qpos=data.qpos,
            qvel=data.qvel,
            sensordata=data.sensordata,
            warmstart=data.qacc_warmstart,
            model_index=model_index,
        )
