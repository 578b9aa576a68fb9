"""What every engine promises, on models small enough to know the answer."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from playground.errors import PlaygroundError
from playground.physics.engines import make_physics
from playground.physics.native import NativePhysics
from playground.physics.push import push_fraction
from playground.robots.registry import load_robot

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
CRATE = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0" integrator="implicitfast"/>
  <worldbody>
    <body name="crate">
      <freejoint/>
      <inertial pos="0.05 -0.03 0.02" mass="2.5" diaginertia="0.02 0.03 0.04"/>
      <body name="frame"><site name="mark"/></body>
    </body>
  </worldbody>
  <sensor><framepos name="mark" objtype="site" objname="mark"/></sensor>
</mujoco>
"""
ROUNDING = 2e-6  # of float32 over some steps, at numbers of about 1

# Here compiling takes longer than running.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(
    scope="module",
    params=["native", "mjx", pytest.param("warp", marks=pytest.mark.slow)],
)
def engine(request) -> str:
    if request.param == "warp":
        pytest.importorskip("warp")
    return request.param


def arm(engine: str, **options):
    return make_physics(mujoco.MjModel.from_xml_string(ARM), engine, **options)


def start(physics, q, dq=0.0, ctrl=0.0):
    one = jnp.ones(1)
    return physics.init(q * one, dq * one, ctrl * one)


@pytest.fixture(scope="module")
def duck():
    return load_robot("open_duck", "flat_backlash")


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


def equal(a, b) -> bool:
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, a, b)))


def close(a, b, tolerance: float) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=tolerance), a, b)


def test_native_does_not_depend_on_batch_or_threads(duck):
    states = list(duck_states(duck, 7))
    one, three = (NativePhysics([duck.model], 10, threads=n) for n in (1, 3))
    together = run_duck(one, *states)
    assert np.isfinite(together.qpos).all()
    assert equal(together, run_duck(three, *states))
    for i in range(7):
        alone = run_duck(three, *(x[i : i + 1] for x in states))
        assert equal(alone, jax.tree.map(lambda x, i=i: x[i : i + 1], together))


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
    assert equal((everyone.qpos, everyone.qvel), (qpos, qvel))
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


# Seconds from the first control step; nothing here is a whole number of steps.
BEGINS = np.array([0.0, 0.0, 0.0007, 0.0131, 0.02, 0.0333])
LASTS = np.array([0.0013, 0.02, 0.004, 0.0177, 0.05, 0.1003])


def test_push_delivers_its_impulse_at_the_centre_of_mass(engine):
    physics = make_physics(
        mujoco.MjModel.from_xml_string(CRATE), engine, substeps=10, push_body="crate"
    )
    impulse = jnp.array([0.3, -0.5, 0.2])

    def travel(begin, duration):
        data = physics.init(physics.model.qpos0, jnp.zeros(6), jnp.zeros(0))

        def step(data, k):
            since = k * physics.control_period - begin
            share = push_fraction(since, duration, 10, 0.002)
            force = jnp.concatenate([impulse / duration, jnp.zeros(3)])
            data = physics.step(data, jnp.zeros(0), share[:, None] * force)
            return data, data.qvel

        return jax.lax.scan(step, data, jnp.arange(10))[1]

    qvel = quick_jit(jax.vmap(travel))(jnp.asarray(BEGINS), jnp.asarray(LASTS))
    speed = np.asarray(impulse) / 2.5
    np.testing.assert_allclose(qvel[:, -1, :3], np.tile(speed, (6, 1)), atol=ROUNDING)
    # No spin: it acts at the centre of mass, which is not the body's origin.
    np.testing.assert_allclose(qvel[:, :, 3:], 0, atol=ROUNDING)
    for row, over in zip(qvel, BEGINS + LASTS, strict=True):
        after = row[int(np.ceil(over / 0.02)) :]
        np.testing.assert_allclose(after, np.tile(after[0], (len(after), 1)), atol=1e-7)


def test_push_acts_on_the_named_body_of_a_robot(duck):
    physics = make_physics(duck.model, "native", substeps=10, push_body="head")
    home = jnp.asarray(duck.home_pose, jnp.float32)
    qpos = jnp.asarray(duck.home_qpos, jnp.float32).at[2].add(5.0)

    def go(force):
        data = physics.init(qpos, jnp.zeros(duck.model.nv), home)
        for push in (force, jnp.zeros(6)):
            data = physics.step(data, home, push)
        return duck.sense(data)

    pushed, free = go(jnp.array([4.0, 0, 0, 0, 0, 0])), go(jnp.zeros(6))
    gained = pushed["com_linvel"] - free["com_linvel"]
    speed = 4.0 * 0.02 / duck.model.body_mass.sum()
    # Momentum is kept to the order of the step while the robot bends.
    np.testing.assert_allclose(gained, [speed, 0, 0], atol=1e-3 * speed)
    # The head is above the centre of mass of the whole: the robot tips forward.
    assert pushed["global_angvel"][1] > free["global_angvel"][1] + 0.1


def first_speed(torque):
    """rad/s of the arm one physics step from rest; its damping is implicit."""
    return PERIOD * torque / (INERTIA + PERIOD * DAMPING)


def test_fields_act_at_once_per_robot_without_recompiling(engine):
    names = ("actuator_gainprm", "actuator_biasprm")
    physics = arm(engine, fields=names)
    gain, bias = (jnp.asarray(getattr(physics.model, n), jnp.float32) for n in names)
    traces = []

    def speed(given):
        data = physics.step(start(physics, 0.1), jnp.array([0.3]), fields=given)
        return data.qvel[0]

    @quick_jit
    @jax.vmap
    def speed_with(kp):
        traces.append(kp)
        values = gain.at[0, 0].set(kp), bias.at[0, 1].set(-kp)
        return speed(dict(zip(names, values, strict=True)))

    for kp in (jnp.array([1.0, 2.0, 4.0]), jnp.array([7.0, 0.5, 3.0])):
        np.testing.assert_allclose(speed_with(kp), first_speed(kp * 0.2), rtol=1e-5)
    assert len(traces) == 1
    # A field that is not given is the model's own again.
    expected = pytest.approx(first_speed(KP * 0.2), rel=1e-5)
    assert float(quick_jit(speed)({names[0]: gain})) == expected
    assert float(quick_jit(speed)(None)) == expected


@pytest.mark.parametrize("substeps", [1, 4])
def test_lost_robot_is_not_finite_and_leaves_the_others_alone(
    engine, substeps, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
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
    assert equal(*last) and np.isfinite(last[0].qpos).all()
    assert not list(tmp_path.iterdir())


def test_wrong_use_is_told(engine):
    physics = arm(engine, push_body="arm", fields=("dof_damping",))
    data, ctrl = start(arm("native"), 0.1), jnp.zeros(1)
    with pytest.raises(PlaygroundError, match=r"'body_mass'.*allowed: dof_damping"):
        physics.step(data, ctrl, fields={"body_mass": jnp.ones(2)})
    with pytest.raises(PlaygroundError, match=r"'dof_damping' has shape \(1,\), got"):
        physics.step(data, ctrl, fields={"dof_damping": jnp.ones(3)})
    with pytest.raises(PlaygroundError, match="needs `push_body`"):
        arm(engine).step(data, ctrl, jnp.zeros(6))
    with pytest.raises(PlaygroundError, match="did you mean 'dof_damping'"):
        arm(engine, fields=("dof_dampin",))
    with pytest.raises(
        PlaygroundError, match=r"unknown body 'leg'.*allowed: arm, world"
    ):
        arm(engine, push_body="leg")
    crate = mujoco.MjModel.from_xml_string(CRATE)
    with pytest.raises(PlaygroundError, match=r"'frame' has no mass.*massive: crate"):
        make_physics(crate, engine, push_body="frame")
    with pytest.raises(PlaygroundError, match="at least 1, got 0"):
        arm(engine, substeps=0)


def test_mjx_refuses_sensors_that_it_would_leave_at_zero():
    forces = ARM.replace("<sensor>", '<sensor><actuatorfrc name="f" actuator="hinge"/>')
    with pytest.raises(PlaygroundError, match="cannot compute the sensor 'f'"):
        make_physics(mujoco.MjModel.from_xml_string(forces), "mjx")
