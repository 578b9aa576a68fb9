"""Proves that an installation works: every part is used once, on something small."""

import functools
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.errors import PlaygroundError
from playground.interface.gl import find_gl
from playground.physics.engines import make_physics
from playground.policy.onnx_file import Network, write_onnx
from playground.policy.verify import verify_file
from playground.robots.registry import ROBOTS, load_robot
from playground.robots.robot import Robot
from playground.tasks.contract import task_contract
from playground.tasks.registry import task_spec

# How far an engine's joints may be from plain MuJoCo's after one control step, rad.
_CLOSE = 1e-3

Finding = tuple[str, bool, str]


def check_installation() -> Iterator[Finding]:
    """Yields (what, whether it works, detail) for each part."""
    for spec in ROBOTS.values():
        for scene in spec.scenes:
            yield _try(
                f"model {spec.name} {scene}", functools.partial(_load, spec.name, scene)
            )
    robot = load_robot("open_duck", "flat_backlash")
    engines = ["native", "mjx"]
    if importlib.util.find_spec("warp"):
        engines.append("warp")
    for engine in engines:
        yield _try(f"engine {engine}", functools.partial(_step, robot, engine))
    yield _try("policy file", _write_policy)
    yield _try("rendering", find_gl)


def _try(what: str, function: Callable[[], str]) -> Finding:
    try:
        return what, True, function()
    except (PlaygroundError, RuntimeError, ValueError, OSError) as error:
        return what, False, " ".join(str(error).split())[:200]


def _load(name: str, scene: str) -> str:
    model = load_robot(name, scene).model
    return f"{model.nv} degrees of freedom, {model.body_mass.sum():.3f} kg"


def _step(robot: Robot, engine: str) -> str:
    physics = make_physics(robot.model, engine, substeps=2)
    home = jnp.asarray(robot.home_pose, jnp.float32)
    qpos = jnp.asarray(robot.home_qpos, jnp.float32)
    data = physics.init(qpos, jnp.zeros(robot.model.nv), home)
    stepped = jax.jit(physics.step)(data, home + 0.1)
    plain = mujoco.MjData(robot.model)
    plain.qpos[:], plain.ctrl[:] = robot.home_qpos, robot.home_pose + 0.1
    mujoco.mj_step(robot.model, plain, 2)
    gap = float(np.abs(np.asarray(stepped.qpos) - plain.qpos).max())
    if not gap <= _CLOSE:
        raise PlaygroundError(f"differs from plain MuJoCo by {gap:.1e}")
    return f"within {gap:.0e} of plain MuJoCo"


def _write_policy() -> str:
    spec = task_spec("open_duck_joystick")
    task = spec.make(spec.config.undisturbed())
    contract = task_contract(task, "open_duck_joystick")
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(contract.n_obs, 2 * contract.n_act)) * 0.1
    network = Network(
        mean=np.zeros(contract.n_obs, np.float32),
        std=np.ones(contract.n_obs, np.float32),
        clip=5.0,
        kernels=(kernel.astype(np.float32),),
        biases=(np.zeros(2 * contract.n_act, np.float32),),
        activation="swish",
        n_act=contract.n_act,
    )

    def reference(obs: np.ndarray) -> np.ndarray:
        return np.tanh(np.clip(obs, -5, 5) @ network.kernels[0][:, : contract.n_act])

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.onnx"
        write_onnx(path, network, contract)
        errors = verify_file(path, reference, contract.n_obs, count=100)
    return f"within {max(errors.values()):.0e} of its network"
