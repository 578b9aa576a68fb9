"""What every engine promises, on models small enough to know the answer."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import assert_equal, quick_jit

from playground.errors import PlaygroundError
from playground.physics.engines import make_physics
from playground.physics.native import NativePhysics

# Free of constraints: MJX then needs no solver, which takes half a minute to compile.
ARM = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0" integrator="implicitfast">
    <flag autoreset="disable"/>
  </option>
  <worldbody>
    <body name="arm">
      <joint name="hinge" axis="0 1 0" damping="0.02"/>
      <inertial pos="0.1 0 0" mass="0.5" diaginertia="0.001 0.002 0.002"/>
      <site name="tip" pos="0.2 0 0"/>
    </body>
  </worldbody>
  <actuator><position name="hinge" joint="hinge" kp="5" forcerange="-2 2"/></actuator>
  <sensor>
    <jointvel name="speed" joint="hinge"/>
    <framepos name="tip" objtype="site" objname="tip"/>
    <framelinvel name="tip_linvel" objtype="site" objname="tip"/>
  </sensor>
</mujoco>
"""
PERIOD, DAMPING, INERTIA, KP = 0.002, 0.02, 0.002 + 0.5 * 0.1**2, 5.0
ROUNDING = 2e-6  # of float32 over some steps, at numbers of about 1


def arm(engine: str, **options):
    return make_physics(mujoco.MjModel.from_xml_string(ARM), engine, **options)


def start(physics, q, dq=0.0, ctrl=0.0):
    one = jnp.ones(1)
    return physics.init(q * one, dq * one, ctrl * one)


def duck_states(duck, count: int):
    """Returns qpos, qvel, ctrl [count, ...]: about home, on and above the ground."""
    rng = np.random.default_rng(1)
    qpos = np.tile(duck.home_qpos, (count, 1))
    qpos[:, 2] += rng.uniform(-0.003, 0.01, count)
    qpos[:, 7:] += rng.normal(0, 0.01, (count, duck.model.nq - 7))
    qvel = rng.normal(0, 0.3, (count, duck.model.nv))
    ctrl = duck.home_pose + rng.normal(0, 0.1, (count, duck.model.nu))
    return (jnp.asarray(x, jnp.float32) for x in (qpos, qvel, ctrl))


def run_duck(physics, qpos, qvel, ctrl, steps=5):
    data = jax.vmap(physics.init)(qpos, qvel, ctrl)
    for _ in range(steps):
        data = quick_jit(jax.vmap(physics.step))(data, ctrl)
    return data


def close(a, b, tolerance: float) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=tolerance), a, b)


def test_native_does_not_depend_on_batch_or_threads(duck):
    states = list(duck_states(duck, 7))
    one, three = (NativePhysics([duck.model], 10, threads=n) for n in (1, 3))
    together = run_duck(one, *states)
    assert np.isfinite(together.qpos).all()
    assert_equal(together, run_duck(three, *states))
    for i in range(7):
        alone = run_duck(three, *(x[i : i + 1] for x in states))
        assert_equal(alone, jax.tree.map(lambda x, i=i: x[i : i + 1], together))


def test_native_steps_for_several_threads_at_once(duck):
    physics = NativePhysics([duck.model], 10, threads=1)
    states = [[x[i::4] for x in duck_states(duck, 64)] for i in range(4)]
    alone = [run_duck(physics, *state) for state in states]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda state: run_duck(physics, *state), states))
    for one, other in zip(alone, together, strict=True):
        assert_equal(one, other)


def test_vmap_of_vmap_scan_jit_and_eager_agree(engine):
    physics = arm(engine, substeps=3)
    ctrl = jnp.linspace(0.5, -0.3, 6)[:, None]
    data = jax.vmap(lambda q: start(arm("native"), q))(jnp.linspace(-1, 1, 6))

    def two_steps(data, ctrl):
        def step(data, _):
            return physics.step(data, ctrl), None

        return jax.lax.scan(step, data, length=2)[0]

    flat = quick_jit(jax.vmap(two_steps))(data, ctrl)
    fold = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), (data, ctrl))
    nested = quick_jit(jax.vmap(jax.vmap(two_steps)))(*fold)
    nested = jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), nested)
    # One operation at a time MJX takes a minute.
    step = physics.step if engine == "native" else quick_jit(physics.step)
    alone = jax.tree.map(lambda x: x[5], data)
    for _ in range(2):
        alone = step(alone, ctrl[5])
    assert float(alone.time) == pytest.approx(2 * physics.control_period)
    tolerance = 0.0 if engine == "native" else ROUNDING
    close(nested, flat, tolerance)
    close(alone, jax.tree.map(lambda x: x[5], flat), tolerance)


def test_init_senses_the_very_state(duck):
    physics = make_physics(duck.model, "native", substeps=10)
    qpos, qvel, ctrl = duck_states(duck, 6)
    needed = jnp.array([True, False] * 3)
    init = quick_jit(jax.vmap(lambda *a: physics.init(*a[:3], needed=a[3])))
    sensed = init(qpos, qvel, ctrl, needed).sensordata
    everyone = jax.vmap(physics.init)(qpos, qvel, ctrl)
    assert_equal((everyone.qpos, everyone.qvel), (qpos, qvel))
    assert not everyone.time.any() and not everyone.warmstart.any()
    mj = mujoco.MjData(duck.model)
    for i in range(6):
        mujoco.mj_resetData(duck.model, mj)
        mj.qpos[:], mj.qvel[:], mj.ctrl[:] = qpos[i], qvel[i], ctrl[i]
        mujoco.mj_forward(duck.model, mj)
        expected = np.float32(mj.sensordata)
        np.testing.assert_array_equal(everyone.sensordata[i], expected)
        np.testing.assert_array_equal(sensed[i], expected * bool(needed[i]))


def test_init_of_every_engine_senses_the_very_state(engine):
    physics = arm(engine)
    sensed = quick_jit(lambda q: start(physics, q, 0.7, 0.3))(0.4).sensordata
    mj = mujoco.MjData(physics.model)
    mj.qpos[:], mj.qvel[:], mj.ctrl[:] = 0.4, 0.7, 0.3
    mujoco.mj_forward(physics.model, mj)
    np.testing.assert_allclose(sensed, mj.sensordata, atol=10 * ROUNDING)


def first_speed(torque):
    """rad/s of the arm one physics step from rest; its damping is implicit."""
    return PERIOD * torque / (INERTIA + PERIOD * DAMPING)


def test_fields_act_at_once_per_robot_without_recompiling(engine):
    names = ("actuator_gainprm", "actuator_biasprm")
    physics = arm(engine, fields=names)
    gain, bias = (jnp.asarray(getattr(physics.model, n), jnp.float32) for n in names)
    traces = []

    @quick_jit
    @jax.vmap
    def speed(kp):
        traces.append(kp)
        values = gain.at[0, 0].set(kp), bias.at[0, 1].set(-kp)
        given = dict(zip(names, values, strict=True))
        data = physics.step(start(arm("native"), 0.1), jnp.array([0.3]), fields=given)
        return data.qvel[0]

    for kp in (jnp.array([1.0, 2.0, 4.0]), jnp.array([7.0, 0.5, 3.0])):
        np.testing.assert_allclose(speed(kp), first_speed(kp * 0.2), rtol=1e-5)
    assert len(traces) == 1


def test_field_that_is_not_given_is_the_models_own_again():
    names = ("actuator_gainprm", "actuator_biasprm")
    physics = arm("native", fields=names)
    gain, bias = (jnp.asarray(getattr(physics.model, n), jnp.float32) for n in names)
    data, ctrl = start(physics, 0.1), jnp.array([0.3])
    doubled = {names[0]: 2 * gain, names[1]: 2 * bias}
    for given, torque in ((doubled, 2 * KP * 0.2), ({names[0]: gain}, KP * 0.2)):
        speed = float(physics.step(data, ctrl, fields=given).qvel[0])
        assert speed == pytest.approx(first_speed(torque), rel=1e-5)


def check_lost_robots(engine, substeps):
    physics = arm(engine, substeps=substeps)
    run = quick_jit(jax.vmap(physics.step))
    ctrl = jnp.full((6, 1), 0.3)
    healthy = jax.vmap(lambda q: start(arm("native"), q))(jnp.linspace(-1, 1, 6))
    sick = healthy.replace(
        qpos=healthy.qpos.at[1].set(jnp.nan).at[2].set(1e11),
        qvel=healthy.qvel.at[3].set(jnp.nan).at[4].set(1e12),
    )
    good, bad = run(healthy, ctrl), run(sick, ctrl.at[0].set(jnp.nan))
    for data in (bad, run(bad, ctrl)):
        numbers = np.concatenate([data.qpos, data.qvel], axis=1)
        assert not np.isfinite(numbers[:5]).all(axis=1).any()
    last = [jax.tree.map(lambda x: x[5], data) for data in (good, bad)]
    assert_equal(*last)
    assert np.isfinite(last[0].qpos).all()


def test_lost_robot_is_not_finite_and_leaves_the_others_alone(engine):
    check_lost_robots(engine, substeps=4)


def test_native_tells_lost_robots_also_in_the_last_step_and_writes_no_log(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    check_lost_robots("native", substeps=1)
    assert not list(tmp_path.iterdir())


def test_wrong_use_is_told(engine):
    physics = arm(engine, fields=("dof_damping",))
    data, ctrl = start(arm("native"), 0.1), jnp.zeros(1)
    with pytest.raises(PlaygroundError, match=r"'body_mass'.*allowed: dof_damping"):
        physics.step(data, ctrl, fields={"body_mass": jnp.ones(2)})
    with pytest.raises(PlaygroundError, match=r"'dof_damping' has shape \(1,\), got"):
        physics.step(data, ctrl, fields={"dof_damping": jnp.ones(3)})
    with pytest.raises(PlaygroundError, match="did you mean 'dof_damping'"):
        arm(engine, fields=("dof_dampin",))
    with pytest.raises(PlaygroundError, match="at least 1, got 0"):
        arm(engine, substeps=0)


def test_mjx_refuses_sensors_that_it_would_leave_at_zero():
    forces = ARM.replace("<sensor>", '<sensor><actuatorfrc name="f" actuator="hinge"/>')
    with pytest.raises(PlaygroundError, match="cannot compute the sensor 'f'"):
        make_physics(mujoco.MjModel.from_xml_string(forces), "mjx")
