"""The push-recovery biped's model: its figures, its sensors and what touches what."""

import copy

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from playground.controllers.balance.perception import (
    CORNERS,
    LEG,
    SIDES,
    Perceived,
    Perception,
)
from playground.robots.registry import load_robot
from playground.robots.robot import Robot

WEIGHT = 35.0 * 9.81  # N
ROUNDING = 1e-5  # of float32, at numbers of about 1


@pytest.fixture(scope="module")
def biped() -> Robot:
    """Not to be changed."""
    return load_robot("biped", "flat")


@pytest.fixture(scope="module")
def home(biped) -> mujoco.MjData:
    """At home, nothing computed but from there; not to be changed."""
    data = mujoco.MjData(biped.model)
    data.qpos[:] = biped.home_qpos
    mujoco.mj_forward(biped.model, data)
    return data


def at_random(biped: Robot, seed: int) -> mujoco.MjData:
    """Somewhere in the air, turned, its joints bent, everything moving."""
    model, data = biped.model, mujoco.MjData(biped.model)
    rng = np.random.default_rng(seed)
    data.qpos[:3] = rng.uniform((-1, -1, 1.5), (1, 1, 2))
    data.qpos[3:7] = rng.normal(size=4)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qpos[biped.qpos_index] = rng.uniform(*biped.joint_range.T)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    return data


def touches(data: mujoco.MjData, one: str, other: str) -> bool:
    pairs = {frozenset((c.geom1, c.geom2)) for c in data.contact if c.dist < 0}
    ids = (data.model.geom(one).id, data.model.geom(other).id)
    return frozenset(ids) in pairs


def test_fifteen_torque_motors_and_a_free_base(biped):
    legs = tuple(f"{side}_{joint}" for side in SIDES for joint in LEG)
    arms = tuple(f"{side}_{j}" for side in SIDES for j in ("shoulder_pitch", "elbow"))
    arms = tuple(n.replace("elbow", "elbow_pitch") for n in arms)
    assert biped.joints == (*legs, *arms, "neck_pitch")
    model = biped.model
    assert (model.nu, model.nq, model.nv, model.na) == (15, 22, 21, 0)
    np.testing.assert_array_equal(
        model.actuator_ctrlrange, np.tile([-300.0, 300.0], (15, 1))
    )
    # A control is a torque: no gain, no bias, no other gear.
    assert (model.actuator_gear[:, 0] == 1).all()
    assert (model.actuator_gainprm[:, 0] == 1).all()
    assert (model.actuator_biastype == mujoco.mjtBias.mjBIAS_NONE).all()
    # Nothing holds the base: no weld, no other joint of it, no gravity compensation.
    assert model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    assert model.neq == 0 and model.body_parentid[biped.base_body] == 0
    assert not model.body_gravcomp.any()
    for side in SIDES:
        ankle = model.joint(f"{side}_ankle_pitch")
        np.testing.assert_array_equal(ankle.range, [-0.9, 0.9])
    assert (model.jnt_limited[1:] == 1).all()


def test_axes_turn_the_same_way_on_both_sides(biped):
    for name in biped.joints:
        axis = [1, 0, 0] if name.endswith("roll") else [0, 1, 0]
        np.testing.assert_array_equal(biped.model.joint(name).axis, axis, err_msg=name)


def test_mass_and_rate(biped):
    model = biped.model
    assert model.body_mass.sum() == pytest.approx(35.0, abs=1e-9)
    assert (model.body_mass[1:] > 0).all() and (model.body_inertia[1:] > 0).all()
    assert model.opt.timestep == 0.002  # 500 Hz
    np.testing.assert_allclose(model.opt.gravity, [0, 0, -9.81])


def test_left_and_right_are_mirror_images(biped, home):
    model = biped.model
    for body in (model.body(i).name for i in range(1, model.nbody)):
        if body.startswith("left_"):
            other = body.replace("left_", "right_")
            assert model.body(body).mass == model.body(other).mass
            one, two = home.body(body).xipos, home.body(other).xipos
            np.testing.assert_allclose(one * [1, -1, 1], two, atol=1e-12)
    assert home.subtree_com[biped.base_body, 1] == pytest.approx(0, abs=1e-12)


def test_at_home_it_stands_on_its_soles(biped, home):
    assert biped.home_qpos[2] == 1.084
    assert (biped.home_pose == 0).all()
    for side in SIDES:
        ankle = home.xanchor[biped.model.joint(f"{side}_ankle_pitch").id]
        outward = 1 if side == "left" else -1
        for corner in CORNERS:
            end, edge = corner.split("_")
            ahead = 0.12 if end == "front" else -0.10
            aside = 0.05 if edge == "left" else -0.05
            place = [ankle[0] + ahead, outward * 0.18 + aside, 0.0]
            at = home.site(f"{side}_foot_{corner}").xpos
            np.testing.assert_allclose(at, place, atol=1e-12)
        # The box that touches the floor ends where those sites are.
        sole = home.geom(f"{side}_sole")
        size = biped.model.geom(f"{side}_sole").size
        low, high = sole.xpos - size, sole.xpos + size
        np.testing.assert_allclose(low, [-0.10, outward * 0.18 - 0.05, 0], atol=1e-12)
        np.testing.assert_allclose(high[:2], [0.12, outward * 0.18 + 0.05], atol=1e-12)
        middle = home.site(f"{side}_foot").xpos
        np.testing.assert_allclose(middle, [0.01, outward * 0.18, 0], atol=1e-12)
    corners = [home.site(f"{s}_foot_{c}").xpos[1] for s in SIDES for c in CORNERS]
    assert max(corners) - min(corners) == pytest.approx(0.46)  # outer width
    # The CoM is above the ankles, to a millimetre: 0.12 m ahead of it, 0.10 behind.
    assert abs(home.subtree_com[biped.base_body, 0]) < 1e-3


def test_the_soles_friction_is_what_acts_on_the_floor(biped):
    model, data = biped.model, mujoco.MjData(biped.model)
    for side in SIDES:
        np.testing.assert_array_equal(
            model.geom(f"{side}_sole").friction, [1.4, 0.7, 0.2]
        )
    data.qpos[:] = biped.home_qpos
    data.qpos[2] -= 1e-4
    mujoco.mj_forward(model, data)
    soles = {model.geom(f"{side}_sole").id for side in SIDES}
    assert {c.geom1 for c in data.contact} == {model.geom("floor").id}
    assert {c.geom2 for c in data.contact} == soles and data.ncon == 8
    for contact in data.contact:
        np.testing.assert_array_equal(contact.friction, [1.4, 1.4, 0.7, 0.2, 0.2])


def test_feet_carry_the_weight_where_the_body_is(biped):
    """A stiff posture of plain MuJoCo settles in 2 s; then the means of 0.2 s."""
    model, data = biped.model, mujoco.MjData(biped.model)
    data.qpos[:] = biped.home_qpos
    carried = []
    for step in range(1100):
        position, rate = data.qpos[biped.qpos_index], data.qvel[biped.dof_index]
        data.ctrl[:] = 1500 * (biped.home_pose - position) - 10 * rate
        mujoco.mj_step(model, data)
        if step >= 1000:
            feet = [f"{side}_foot_{corner}" for side in SIDES for corner in CORNERS]
            carried.append([data.sensor(name).data[0] for name in feet])
    mean = np.mean(carried, 0)
    assert mean.sum() == pytest.approx(WEIGHT, rel=0.02)
    # Each foot half; front and back as the CoM lies between them.
    assert mean[:4].sum() == pytest.approx(WEIGHT / 2, rel=0.02)
    assert (mean > 0).all()
    front = mean.reshape(2, 2, 2)[:, 0].sum() / mean.sum()
    com = data.subtree_com[biped.base_body, 0] - data.site("left_foot").xpos[0] + 0.01
    assert front == pytest.approx((com + 0.10) / 0.22, abs=0.02)


def test_com_sensors_read_what_moves(biped):
    model, data = biped.model, at_random(biped, 3)
    velocity = data.sensor("com_linvel").data.copy()
    place = data.sensor("com").data.copy()
    spin = data.sensor("angular_momentum").data.copy()
    np.testing.assert_allclose(place, data.subtree_com[biped.base_body])
    # By a finite difference, along the joints' own velocities.
    ahead, behind, step = mujoco.MjData(model), mujoco.MjData(model), 1e-5
    for moved, sign in ((ahead, 1), (behind, -1)):
        moved.qpos[:] = data.qpos
        mujoco.mj_integratePos(model, moved.qpos, data.qvel, sign * step)
        mujoco.mj_forward(model, moved)
    by_difference = ahead.subtree_com[1] - behind.subtree_com[1]
    assert np.linalg.norm(velocity) > 0.1
    np.testing.assert_allclose(velocity, by_difference / (2 * step), atol=1e-6)
    # Point masses of the bodies alone lack only the turning of each link.
    arm = data.xipos[1:] - place
    speed = (ahead.xipos[1:] - behind.xipos[1:]) / (2 * step) - velocity
    total = (model.body_mass[1:, None] * np.cross(arm, speed)).sum(0)
    for body in range(1, model.nbody):
        turn = np.zeros(6)
        kind = mujoco.mjtObj.mjOBJ_BODY
        mujoco.mj_objectVelocity(model, data, kind, body, turn, 1)
        frame = data.ximat[body].reshape(3, 3)
        total += frame @ (model.body_inertia[body] * turn[:3])
    np.testing.assert_allclose(spin, total, atol=1e-5)


def test_every_sensor_of_the_controller_reads_its_part(biped):
    """`Perception` against MuJoCo's own fields, in ten postures."""
    model, perception = biped.model, jax.jit(Perception(biped))
    for seed in range(10):
        data = at_random(biped, seed)
        seen = perception(biped.sense(data))
        assert isinstance(seen, Perceived)

        def equal(value, expected, data=data):
            np.testing.assert_allclose(value, expected, atol=ROUNDING)

        torso = data.xmat[biped.base_body].reshape(3, 3)
        equal(seen.attitude, torso)
        equal(seen.lean, torso[:2, 2])
        equal(seen.position, data.qpos[:3])
        equal(seen.trunk_velocity, data.qvel[:3])
        turning = torso @ data.qvel[3:6]
        equal(seen.lean_rate, np.cross(turning, torso[:, 2])[:2])
        for i, side in enumerate(SIDES):
            for j, name in enumerate(LEG):
                joint = model.joint(f"{side}_{name}")
                equal(seen.anchor[i, j], data.xanchor[joint.id])
                equal(seen.axis[i, j], data.xaxis[joint.id])
                equal(seen.below[i, j], data.subtree_com[joint.bodyid[0]])
                equal(seen.angle[i, j], data.qpos[joint.qposadr[0]])
                equal(seen.rate[i, j], data.qvel[joint.dofadr[0]])
            foot = data.site(f"{side}_foot")
            equal(seen.foot[i], foot.xpos)
            equal(seen.foot_frame[i], foot.xmat.reshape(3, 3))
            for k, corner in enumerate(CORNERS):
                equal(seen.corner[4 * i + k], data.site(f"{side}_foot_{corner}").xpos)
        equal(seen.floor, min(data.site(f"{s}_foot").xpos[2] for s in SIDES))
        assert not np.asarray(seen.pressure).any()  # in the air
        assert jnp.linalg.norm(seen.ahead) == pytest.approx(1, abs=ROUNDING)
        assert not np.isnan(seen.heading).any()


def test_torque_sensors_read_the_motors(biped):
    data = mujoco.MjData(biped.model)
    data.qpos[:] = biped.home_qpos
    data.ctrl[:] = np.linspace(-400, 400, 15)
    mujoco.mj_forward(biped.model, data)
    held = np.clip(np.linspace(-400, 400, 15), -300, 300)
    np.testing.assert_allclose(biped.sense(data).joint_torque, held, atol=1e-4)


@pytest.mark.parametrize(
    ("part", "bend"),
    [("sole", 0.0), ("shank", 0.5)],
    ids=["feet side by side", "one foot lifted"],
)
def test_legs_do_not_pass_through_each_other(biped, part, bend):
    """Hips pull the legs together, weightless: they meet, and stay apart."""
    model = copy.copy(biped.model)
    model.opt.gravity = 0
    data = mujoco.MjData(model)
    data.qpos[:] = biped.home_qpos
    data.qpos[2] = 3.0
    for joint, angle in (("hip_pitch", -bend), ("knee", 2 * bend)):
        data.qpos[model.joint(f"left_{joint}").qposadr] = angle
    held = data.qpos[biped.qpos_index].copy()
    met, deepest = False, 0.0
    for _ in range(500):
        position, rate = data.qpos[biped.qpos_index], data.qvel[biped.dof_index]
        data.ctrl[:] = 300 * (held - position) - 6 * rate
        data.ctrl[biped.joints.index("left_hip_roll")] = -10.0
        data.ctrl[biped.joints.index("right_hip_roll")] = 10.0
        data.qfrc_applied[:6] = -50 * data.qvel[:6]
        mujoco.mj_step(model, data)
        met |= touches(data, f"left_{part}", f"right_{part}")
        for each in ("sole", "shank"):
            ids = (model.geom(f"{side}_{each}").id for side in SIDES)
            gap = mujoco.mj_geomDistance(model, data, *ids, 1.0, None)
            deepest = min(deepest, gap)
    assert met
    assert deepest > -0.02  # of 0.08 to 0.10 m, in the blow


def test_it_can_be_watched_from_the_side(biped):
    model = biped.drawn_model()
    data = mujoco.MjData(model)
    data.qpos[:] = biped.home_qpos
    mujoco.mj_forward(model, data)
    camera = data.camera("track")
    right, _, back = camera.xmat.reshape(3, 3).T
    assert right[0] > 0.95 and back[1] < -0.9  # forward is to the right
    assert np.linalg.norm(camera.xpos - data.subtree_com[1]) > 2
    # It moves along with the robot.
    before = camera.xpos.copy()
    data.qpos[0] += 1.0
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.camera("track").xpos - before, [1, 0, 0])
    # A line across the floor tells how far the robot has moved; it touches nothing.
    line = model.geom("com_line")
    assert line.bodyid == 0 and data.geom("com_line").xpos[2] < 0.002
    assert line.size[1] > 0.3 and line.size[2] < 0.002 < 0.01
    assert line.contype == 0 and line.conaffinity == 0
    assert model.nq == biped.model.nq
