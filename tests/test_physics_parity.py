"""The engines against each other and against plain MuJoCo, on the whole robot.

Robots walk in place with noise, on the ground and in the air, for 100 steps.
"""

import copy
import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import quick_jit

from playground.physics.base import Data
from playground.physics.engines import make_physics
from playground.robots.names import names
from playground.robots.registry import load_robot

STEPS, SUBSTEPS, EACH = 100, 10, 8
GROUND, AIR = slice(0, EACH), slice(EACH, 2 * EACH)
SCENES = ("flat", "flat_backlash")
# Iterations after which the solver has converged as far as its numbers allow; the
# models are shipped with 4, after which about one step in ten has not.
CONVERGED = {"iterations": 40, "ls_iterations": 50}

# One rounding of float32 at the size of the numbers compared (|q| < 30, |dq| < 10).
ROUNDING = 4e-6
# Where a whole physics step is calculated in float32: positions; 95 of 100 velocities
# (rad/s, m/s); sensors; forces and accelerations (N, m/s2), which are the solver's.
QPOS, MOST_QVEL, SENSOR, FORCE = 4e-6, 1e-5, 1e-5, 0.01


def targets(robot, steps: int, period: float) -> np.ndarray:
    """[steps, 2 EACH, nu] joint targets: sines of the gait's period, and noise."""
    rng = np.random.default_rng(0)
    time = period * np.arange(steps)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, (2 * EACH, len(robot.joints)))
    swing = 0.25 * np.sin(2 * np.pi * time / 0.54 + phase)
    noise = rng.normal(0, 0.05, swing.shape)
    return (robot.home_pose + swing + noise).astype(np.float32)


def starts(robot, height: float) -> np.ndarray:
    """[2 EACH, nq] home, the second half of the robots up in the air."""
    qpos = np.tile(robot.home_qpos, (2 * EACH, 1))
    qpos[AIR, 2] += height
    return qpos.astype(np.float32)


def begin(physics, qpos, ctrl) -> Data:
    qvel = jnp.zeros((len(qpos), physics.model.nv))
    return jax.jit(jax.vmap(physics.init))(jnp.asarray(qpos), qvel, jnp.asarray(ctrl))


def follow(data: Data, controls, step) -> Data:
    """[T, ...] the states under a control each step."""
    after = jax.vmap(step)

    def go(data, ctrl):
        data = after(data, ctrl)
        return data, data

    return jax.jit(lambda d, c: jax.lax.scan(go, d, c)[1])(data, jnp.asarray(controls))


def before(first: Data, then: Data) -> Data:
    """[T, ...] the states that the steps to `then` began with."""
    return jax.tree.map(lambda a, b: np.concatenate([a[None], b[:-1]]), first, then)


@dataclasses.dataclass
class Walk:
    """States of one engine before and after each control step."""

    robot: object
    controls: np.ndarray
    start: Data
    end: Data


@pytest.fixture(scope="module", params=SCENES)
def walk(request) -> Walk:
    robot = load_robot("open_duck", request.param)
    physics = make_physics(robot.model, "native", substeps=SUBSTEPS)
    controls = targets(robot, STEPS, physics.control_period)
    # They fall 20 m.
    first = begin(physics, starts(robot, 25.0), controls[0])
    end = follow(first, controls, physics.step)
    return Walk(robot, controls, before(first, end), jax.tree.map(np.asarray, end))


def mj_step(model, mj, start: Data, ctrl, row, warmstart=None) -> np.ndarray:
    """Takes one control step with plain MuJoCo; returns its last warm start."""
    mj.time, mj.qpos[:], mj.qvel[:] = start.time[row], start.qpos[row], start.qvel[row]
    mj.qacc_warmstart[:] = start.warmstart[row] if warmstart is None else warmstart
    mj.ctrl[:] = ctrl[row]
    for _ in range(SUBSTEPS):
        mujoco.mj_step(model, mj)
    return mj.qacc_warmstart.copy()


def test_native_is_mj_step(walk):
    model, mj = walk.robot.model, mujoco.MjData(walk.robot.model)
    for row in np.ndindex(STEPS, 2 * EACH):
        mj_step(model, mj, walk.start, walk.controls, row)
        for name in ("time", "qpos", "qvel", "sensordata"):
            expected = np.float32(getattr(mj, name))
            np.testing.assert_array_equal(getattr(walk.end, name)[row], expected, name)


def test_warm_start_is_as_good_as_mujocos_own(walk):
    """Each is as far from a converged solver as the other."""
    model, exact = walk.robot.model, copy.copy(walk.robot.model)
    exact.opt.iterations, exact.opt.ls_iterations = CONVERGED.values()
    mj = mujoco.MjData(model)
    errors, apart = [], []
    for robot in range(2 * EACH):
        own = np.zeros(model.nv)
        for row in ((k, robot) for k in range(STEPS)):
            mj_step(exact, mj, walk.start, walk.controls, row, own)
            best = mj.qpos.copy()
            own = mj_step(model, mj, walk.start, walk.controls, row, own)
            ours = walk.end.qpos[row]
            errors.append((np.abs(mj.qpos - best).max(), np.abs(ours - best).max()))
            apart.append(np.abs(mj.qpos - ours).max())
    (own, ours), far = np.percentile(errors, 99, axis=0), np.percentile(apart, [90, 99])
    assert ours < 1.1 * own + ROUNDING
    assert far[0] < ROUNDING and far[1] < own


def test_free_running_native_stays_with_mj_step(walk):
    model = walk.robot.model
    apart = np.zeros((STEPS, 2 * EACH))
    for robot in range(2 * EACH):
        mj = mujoco.MjData(model)
        mj.qpos[:] = walk.start.qpos[0, robot]
        for k in range(STEPS):
            mj.ctrl[:] = walk.controls[k, robot]
            for _ in range(SUBSTEPS):
                mujoco.mj_step(model, mj)
            apart[k, robot] = np.abs(mj.qpos - walk.end.qpos[k, robot]).max()
    # In the air nothing amplifies a rounding; on the ground every touch-down does.
    assert apart[:, AIR].max() < 3e-4
    assert apart[9, GROUND].max() < 1e-3
    assert np.median(apart[24, GROUND]) < 1e-4


def compare_with_native(engine: str, scene: str):
    """Steps both from native's states; returns robot and the two [T, ...] results."""
    robot = load_robot("open_duck", scene)
    model = copy.copy(robot.model)
    model.opt.iterations, model.opt.ls_iterations = CONVERGED.values()
    native, other = (make_physics(model, name) for name in ("native", engine))
    controls = targets(robot, STEPS, native.control_period)
    first = begin(native, starts(robot, 0.5), controls[0])
    end = follow(first, controls, native.step)
    each = jax.vmap(other.step)
    run = quick_jit(lambda d, c: jax.lax.map(lambda dc: each(*dc), (d, c)))
    theirs = run(before(first, end), jnp.asarray(controls))
    return robot, jax.tree.map(np.asarray, end), jax.tree.map(np.asarray, theirs)


def check_against_native(engine: str, scene: str, fewest_alike: float, qvel_max: float):
    robot, ours, theirs = compare_with_native(engine, scene)
    feet = [f"{foot}_contact" for foot in robot.spec.feet]
    where = {name: robot.model.sensor(name) for name in names(robot.model, "sensor")}
    span = {n: slice(s.adr[0], s.adr[0] + s.dim[0]) for n, s in where.items()}
    off = {n: np.abs(ours.sensordata - theirs.sensordata)[..., span[n]] for n in span}
    touch = np.concatenate([ours.sensordata[..., span[name]] for name in feet], -1)
    assert touch[:, GROUND].max() > 1 and not touch[:, AIR].any()
    alike = np.concatenate([off[name] for name in feet], -1).max(-1) == 0
    assert alike[:, GROUND].mean() > fewest_alike and alike[:, AIR].all()
    qpos = np.abs(ours.qpos - theirs.qpos)[alike]
    qvel = np.abs(ours.qvel - theirs.qvel)[alike].max(-1)
    most = np.percentile(qvel, 95)
    assert qpos.max() < QPOS and most < MOST_QVEL and qvel.max() < qvel_max
    for name, apart in off.items():
        if name not in feet:
            forced = name == "accelerometer" or name.endswith("_force")
            assert apart[alike].max() < (FORCE if forced else SENSOR), name


# Compiling MJX takes half a minute a scene.
ONE_SLOW = [pytest.param("flat", marks=pytest.mark.slow), "flat_backlash"]


@pytest.mark.parametrize("scene", ONE_SLOW)
def test_mjx_is_native(scene):
    # MJX keeps of a sole's corners those within 1 mm of the deepest, MuJoCo all that
    # are below the ground. Its solver stops short at the edge of dry friction and of
    # the gear's play.
    check_against_native("mjx", scene, fewest_alike=0.85, qvel_max=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_warp_is_native(scene):
    pytest.importorskip("warp")
    # A corner may touch the ground on one side of a rounding.
    check_against_native("warp", scene, fewest_alike=0.99, qvel_max=1e-5)
