"""The hopper's model, what is seen of it, and private models of the native engine."""

import math

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import quick_jit

from playground.controllers.hopper.gains import HopperGains
from playground.controllers.hopper.perception import Perception
from playground.controllers.hopper.seed import SeedController
from playground.controllers.hopper.servos import FIELDS, HopperServos
from playground.errors import PlaygroundError
from playground.physics.engines import make_physics
from playground.physics.population import vary
from playground.physics.private_models import PrivateModels
from playground.robots.registry import load_robot
from playground.robots.robot import Robot

GRAVITY = 9.81
ROUNDING = 1e-5  # of float32, at numbers of about 1


@pytest.fixture(scope="module")
def hopper() -> Robot:
    """Not to be changed."""
    return load_robot("hopper", "flat")


def test_model_is_that_of_the_facts(hopper):
    model = hopper.model
    assert (model.nq, model.nv, model.nu, model.na) == (4, 4, 4, 0)
    joints = [model.joint(i).name for i in range(4)]
    assert joints == ["x", "z", "hip", "knee"]
    bodies = [model.body(i).name for i in range(1, 4)]
    assert bodies == ["torso", "leg", "foot"]
    np.testing.assert_allclose(model.body_mass[1:], [1.0, 1.0, 0.1])
    assert model.opt.timestep == 0.001
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    np.testing.assert_allclose(model.opt.gravity, [0, 0, -GRAVITY])
    assert model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY
    assert not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    actuators = [model.actuator(i).name for i in range(4)]
    assert actuators == ["pservo-hip", "vservo-hip", "pservo-knee", "vservo-knee"]
    assert not model.actuator_gainprm.any() and not model.actuator_biasprm.any()
    np.testing.assert_allclose(model.geom("floor").size[:2], [100, 1])
    np.testing.assert_allclose(hopper.drawn_model().vis.headlight.ambient, 0.5)


def test_visual_rod_is_drawn_but_neither_weighs_nor_collides(hopper):
    drawn = hopper.drawn_model()
    rod = drawn.geom("foot_rod")
    assert not rod.contype[0] and not rod.conaffinity[0]
    np.testing.assert_array_equal(drawn.body_mass, hopper.model.body_mass)
    np.testing.assert_array_equal(drawn.body_inertia, hopper.model.body_inertia)
    assert hopper.model.ngeom == drawn.ngeom - 1


def test_each_joint_counts_once_though_it_has_two_servos(hopper):
    assert hopper.joints == ("hip", "knee")
    np.testing.assert_array_equal(hopper.qpos_index, [2, 3])
    np.testing.assert_array_equal(hopper.home_pose, [0.0, 0.0])
    assert hopper.joint_range.shape == (2, 2)


def at_random(hopper: Robot, seed: int) -> mujoco.MjData:
    data, rng = mujoco.MjData(hopper.model), np.random.default_rng(seed)
    data.qpos[:] = rng.uniform((-2, -1, -2, -0.3), (2, 1, 2, 0.2))
    data.qvel[:] = rng.normal(size=4)
    mujoco.mj_forward(hopper.model, data)
    return data


@pytest.mark.parametrize("seed", range(3))
def test_what_is_seen_is_what_mujoco_computes(hopper, seed):
    data = at_random(hopper, seed)
    sensed = hopper.sense(data)
    seen = Perception(hopper)(sensed)
    foot, torso = data.body("foot").xpos, data.body("torso").xpos
    leg = data.geom("leg")
    axis, size = leg.xmat.reshape(3, 3)[:, 2], hopper.model.geom("leg").size
    lowest = leg.xpos[2] - size[1] * abs(axis[2]) - size[0] * math.hypot(*axis[:2])
    wanted = {
        "x": torso[0],
        "height": torso[2],
        "foot_x": foot[0],
        "foot_height": foot[2],
        "leg_clearance": lowest,
        "forward_speed": data.qvel[0],
        "vertical_speed": data.qvel[1],
        "hip": data.qpos[2],
        "hip_rate": data.qvel[2],
        "knee": data.qpos[3],
        "knee_rate": data.qvel[3],
    }
    for name, value in wanted.items():
        np.testing.assert_allclose(getattr(seen, name), value, atol=ROUNDING)
    np.testing.assert_allclose(sensed["foot_pos"], foot, atol=ROUNDING)
    np.testing.assert_allclose(sensed["position"], torso, atol=ROUNDING)


def test_servos_add_up_on_a_joint(hopper):
    data = at_random(hopper, 3)
    model = load_robot("hopper", "flat").model
    action = HopperServos(hopper)(
        kp=(50.0, 700.0), kv=(3.0, 20.0), target=(0.1, -0.05), rate=(0.5, 0.2)
    )
    for name, value in action.fields.items():
        getattr(model, name)[:] = value
    data.ctrl[:] = action.ctrl
    mujoco.mj_forward(model, data)
    (q_hip, q_knee), (v_hip, v_knee) = data.qpos[2:], data.qvel[2:]
    hip = 50 * (0.1 - q_hip) + 3 * (0.5 - v_hip)
    knee = 700 * (-0.05 - q_knee) + 20 * (0.2 - v_knee)
    np.testing.assert_allclose(data.qfrc_actuator, [0, 0, hip, knee], rtol=1e-5)
    torque = Robot.sense(hopper, data).joint_torque
    np.testing.assert_allclose(torque, [hip, knee], rtol=1e-5)


@pytest.mark.parametrize("height", [0.3, 0.7])
def test_falls_as_a_stone_does(hopper, height):
    """Stiff servos at rest exert nothing: all parts fall alike."""
    physics = make_physics(hopper.model, "native", fields=FIELDS, double=True)
    controller = SeedController(hopper, physics.control_period)
    gains = jax.tree.map(jnp.float32, HopperGains())
    start = jnp.array([0.0, height - 0.7, 0.0, 0.0])
    data = physics.init(start, jnp.zeros(4), jnp.zeros(4))

    def one(carry, _):
        data, memory = carry
        memory, action = controller(gains, memory, hopper.sense(data))
        data = physics.step(data, action.ctrl, fields=action.fields)
        return (data, memory), data.qvel[1]

    steps = round(1000 * math.sqrt(2 * height / GRAVITY))
    memory = controller.init(hopper.sense(data))
    scan = quick_jit(lambda c: jax.lax.scan(one, c, length=steps + 3))
    (_, memory), speeds = scan((data, memory))
    np.testing.assert_allclose(
        speeds[: steps - 1], -GRAVITY * 1e-3 * np.arange(1, steps), rtol=1e-5
    )
    touched = int(memory.fsm.entered[1]) * 1e-3
    # Foot from `height` + 0.05 to 0.05 m; events are seen at the next step.
    assert 0 <= touched - math.sqrt(2 * height / GRAVITY) <= 1e-3 + 1e-9


PARAMETERS = ("actuator_gainprm", "dof_damping")


def population(hopper: Robot):
    def edit(model, rng):
        model.dof_damping[:] = rng.uniform(1, 2, model.nv)
        model.body_mass[1] = rng.uniform(1, 2)

    return (hopper.model, *vary(hopper.model, 2, edit, seed=0))


def test_private_models_hold_what_was_asked_last(hopper):
    models = population(hopper)
    private, rng = PrivateModels(models, PARAMETERS), np.random.default_rng(0)
    for round_ in range(30):
        n = int(rng.integers(1, 9))
        index = rng.integers(0, len(models), n)
        values = {}
        if round_ % 3:
            values["actuator_gainprm"] = rng.integers(0, 2, (n, 4, 10)).astype(float)
        if round_ % 4 > 1:
            values["dof_damping"] = rng.integers(0, 2, (n, 4)).astype(float)
        given = private(index, values)
        assert len(given) == n and len({id(model) for model in given}) == n
        for row, model in enumerate(given):
            stock = models[index[row]]
            assert model.body_mass[1] == stock.body_mass[1]
            for name in PARAMETERS:
                wanted = values[name][row] if name in values else getattr(stock, name)
                np.testing.assert_array_equal(getattr(model, name), wanted)
    for model, untouched in zip(models, population(hopper), strict=True):
        for name in PARAMETERS:
            np.testing.assert_array_equal(
                getattr(model, name), getattr(untouched, name)
            )


def test_private_models_write_numbers_that_are_none(hopper):
    private = PrivateModels([hopper.model], ("dof_damping",))
    index, wrong = np.zeros(2, int), np.full((2, 4), np.nan)
    assert np.isnan(private(index, {"dof_damping": wrong})[1].dof_damping).all()
    right = private(index, {"dof_damping": np.ones((2, 4))})
    np.testing.assert_array_equal(right[1].dof_damping, 1.0)


def test_batches_of_any_size_and_order_get_their_own_fields(hopper):
    """Through the engine: each robot as if it were alone with fresh models."""
    models = population(hopper)

    def step(physics, index, damping):
        def one(i, d):
            data = physics.init(jnp.zeros(4), jnp.ones(4), jnp.zeros(4), i)
            fields = {} if damping is None else {"dof_damping": d}
            return physics.step(data, jnp.zeros(4), fields=fields).qvel

        some = jnp.zeros((len(index), 4)) if damping is None else damping
        return np.asarray(jax.vmap(one)(jnp.asarray(index), some))

    shared = make_physics(models, "native", fields=PARAMETERS)
    rng = np.random.default_rng(1)
    for n, given in ((3, True), (5, True), (2, False), (4, True), (4, True)):
        index = rng.integers(0, len(models), n)
        damping = jnp.asarray(rng.uniform(0, 5, (n, 4)), jnp.float32)
        alone = make_physics(models, "native", fields=PARAMETERS)
        chosen = damping if given else None
        np.testing.assert_array_equal(
            step(shared, index, chosen), step(alone, index, chosen)
        )


def test_double_precision_loses_nothing_between_steps(hopper):
    """Against MuJoCo itself over 300 steps of flight, all joints moving."""
    velocity = np.array([0.3, 1.0, 0.7, -0.2])
    data = mujoco.MjData(hopper.model)
    data.qvel[:] = velocity.astype(np.float32)
    mujoco.mj_step(hopper.model, data, 300)
    gaps = []
    for double in (True, False):
        physics = make_physics(hopper.model, "native", double=double)
        start = physics.init(jnp.zeros(4), jnp.asarray(velocity), jnp.zeros(4))

        def one(_, now, physics=physics):
            return physics.step(now, jnp.zeros(4))

        end = quick_jit(lambda d, one=one: jax.lax.fori_loop(0, 300, one, d))(start)
        qpos = np.asarray(end.qpos, float)
        if double:
            qpos += np.asarray(end.remainder)[:4]
        else:
            assert end.remainder is None
        gaps.append(np.abs(qpos - data.qpos).max())
    assert gaps[0] < 1e-11 and gaps[1] > 1e-8


def test_gains_out_of_range_are_refused():
    with pytest.raises(PlaygroundError, match="stance_kp must be within 0 to"):
        HopperGains(stance_kp=-1.0)
    with pytest.raises(PlaygroundError, match="touch must be within"):
        HopperGains(touch=1.3)
