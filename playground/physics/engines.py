"""Chooses an engine by name and checks the step sizes."""

import copy
import importlib.util
from collections.abc import Sequence

import jax
import mujoco

from playground.errors import PlaygroundError
from playground.physics.base import Physics
from playground.physics.native import NativePhysics
from playground.physics.settings import check_engine


def resolve_engine(engine: str) -> str:
    """Returns the engine that "auto" stands for here, and checks any other name.

    Raises:
      PlaygroundError: no such engine, or it is not installed.
    """
    check_engine(engine)
    if engine == "warp" and importlib.util.find_spec("warp") is None:
        raise PlaygroundError(
            "engine 'warp' is not installed: pip install 'playground[warp]'"
        )
    if engine == "auto":
        return "mjx" if jax.default_backend() == "gpu" else "native"
    return engine


def make_physics(
    models: mujoco.MjModel | Sequence[mujoco.MjModel],
    engine: str = "auto",
    *,
    sim_dt: float | None = None,
    substeps: int = 1,
    push_body: str | None = None,
    fields: Sequence[str] = (),
    double: bool = False,
    threads: int | None = None,
) -> Physics:
    """Makes the physics of one robot model or of a population of N.

    Args:
      models: One model, or N that differ in numbers only.
      engine: One of `settings.ENGINES`; "auto": mjx where there is a GPU, else native.
      sim_dt: Physics period, s; None: the model's own.
      substeps: Physics steps in a control step.
      push_body: Body at whose centre of mass pushes act.
      fields: Model fields that `Physics.step` may be given as traced values.
      double: Let the engine `native` keep the state in double precision between steps;
        MJX computes in float32 and has no more than that.
      threads: Threads that the engine `native` takes in a call; None: all cores.
    """
    models = [models] if isinstance(models, mujoco.MjModel) else list(models)
    if sim_dt is not None:
        models = [copy.copy(model) for model in models]
        for model in models:
            model.opt.timestep = sim_dt
    engine = resolve_engine(engine)
    if engine == "native":
        return NativePhysics(models, substeps, push_body, fields, threads, double)
    # MJX takes a while to load.
    from playground.physics.mjx import MjxPhysics

    impl = "jax" if engine == "mjx" else "warp"
    return MjxPhysics(models, substeps, push_body, fields, impl=impl)
