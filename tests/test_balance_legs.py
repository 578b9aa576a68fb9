"""Legs: inverse kinematics, torques of a force, paths of a swing, shared load."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from playground.controllers.balance.forces import share_pressure
from playground.controllers.balance.gains import switches
from playground.controllers.balance.legs import (
    LegSize,
    about_x,
    about_y,
    joint_torques,
    leg_angles,
)
from playground.controllers.balance.perception import LEG, SIDES, Perceived, Perception
from playground.controllers.balance.stepping import standing, swing_path
from playground.robots.registry import load_robot
from playground.robots.robot import Robot

# Of the biped, by hand from its model: m; of what hangs on each joint of a leg, kg.
THIGH = SHANK = 0.45
ASIDE, HIP = 0.06, (0.12, -0.1)
LONGEST = THIGH + SHANK
BELOW = (7.2, 6.7, 3.2, 1.0, 0.8)
HALF_SOLE = np.array([0.11, 0.05])


@pytest.fixture(scope="module")
def biped() -> Robot:
    """Not to be changed."""
    return load_robot("biped", "flat")


def size(side: str) -> LegSize:
    sign = 1 if side == "left" else -1
    hip = jnp.array([0.0, sign * HIP[0], HIP[1]])
    return LegSize(
        hip, jnp.float32(THIGH), jnp.float32(SHANK), jnp.float32(sign * ASIDE)
    )


def dofs(robot: Robot, side: str) -> list[int]:
    return [int(robot.model.joint(f"{side}_{joint}").dofadr[0]) for joint in LEG]


def posed(robot: Robot, side: str, angles, rng) -> mujoco.MjData:
    """One leg bent so, the trunk tilted, turned and somewhere."""
    data = mujoco.MjData(robot.model)
    data.qpos[:] = robot.home_qpos
    data.qpos[:3] += rng.uniform(-1, 1, 3)
    turn = [np.cos(yaw := rng.uniform(-1.5, 1.5)), 0, 0, np.sin(yaw)]
    tilt = np.concatenate([[1.0], 0.25 * rng.normal(size=3)])
    mujoco.mju_mulQuat(data.qpos[3:7], turn, tilt / np.linalg.norm(tilt))
    for joint, angle in zip(LEG, angles, strict=True):
        data.qpos[robot.model.joint(f"{side}_{joint}").qposadr] = angle
    mujoco.mj_forward(robot.model, data)
    return data


@jax.jit
@jax.vmap
def solve(hip, ankle, attitude, sole, size):
    """[B, ...] -> [B, 5], compiled once."""
    return leg_angles(hip, ankle, attitude, sole, size)


def targets(robot: Robot, side: str, data: mujoco.MjData):
    """Where hip and ankle are, and how trunk and sole are turned."""
    at = {
        name: data.xanchor[robot.model.joint(f"{side}_{name}").id]
        for name in ("hip_pitch", "ankle_pitch")
    }
    sole = data.site(f"{side}_foot").xmat.reshape(3, 3)
    trunk = data.xmat[robot.base_body].reshape(3, 3)
    return at["hip_pitch"], at["ankle_pitch"], trunk, sole


def stack(parts):
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x), jnp.float32), *parts)


def test_angles_are_those_that_the_model_has():
    """Forward by MuJoCo, back by `leg_angles`: 100 postures of each leg."""
    robot, rng = load_robot("biped", "flat"), np.random.default_rng(0)
    low = np.array([-0.6, -1.0, 0.15, -0.9, -0.6])
    high = np.array([0.6, 0.5, 1.9, 0.9, 0.6])
    angles = rng.uniform(low, high, (200, 5))
    asked = []
    for i, each in enumerate(angles):
        side = SIDES[i % 2]
        data = posed(robot, side, each, rng)
        asked.append((*targets(robot, side, data), size(side)))
    found = solve(*stack(asked))
    # A straight leg's length tells little of its knee: float32 leaves 1e-3 rad there.
    np.testing.assert_allclose(found, angles, atol=1e-3)


def test_the_sole_can_be_level_whatever_the_trunk_does(biped):
    """Angles for a target that no posture gave; played forward in the model."""
    rng = np.random.default_rng(1)
    for side in SIDES:
        data = posed(biped, side, np.zeros(5), rng)
        hip, _, trunk, _ = targets(biped, side, data)
        yaw = np.arctan2(trunk[1, 0], trunk[0, 0])
        # Pitch and roll alone cannot turn the sole about its vertical: it may.
        level = np.array(
            [[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]]
        )
        ankle = hip + level @ [0.1, 0.04, -0.75]
        asked = stack([(hip, ankle, trunk, level, size(side))])
        played = data.qpos.copy()
        for joint, angle in zip(LEG, np.asarray(solve(*asked))[0], strict=True):
            played[biped.model.joint(f"{side}_{joint}").qposadr] = angle
        data.qpos[:] = played
        mujoco.mj_forward(biped.model, data)
        _, reached, _, sole = targets(biped, side, data)
        np.testing.assert_allclose(reached, ankle, atol=1e-5)
        assert sole[2, 2] > 0.99  # the tilt of the trunk was up to 0.5 rad


def test_a_target_out_of_reach_is_met_by_a_straight_leg(biped):
    directions = [(0, 0, -1), (0.5, 0, -1), (-0.5, 0.2, -1), (0, 0.4, -1), (1, 0, -0.1)]
    for side in SIDES:
        sign = 1 if side == "left" else -1
        hip, level = np.array([0.3, -0.2, 0.9]), np.eye(3)
        aims = [
            sign * ASIDE * np.array([0, 1, 0]) + 2 * np.array(d) for d in directions
        ]
        asked = stack([(hip, hip + a, level, level, size(side)) for a in aims])
        found = np.asarray(solve(*asked))
        assert np.isfinite(found).all()
        for aim, angles in zip(aims, found, strict=True):
            data = mujoco.MjData(biped.model)
            data.qpos[:] = biped.home_qpos
            for joint, angle in zip(LEG, angles, strict=True):
                data.qpos[biped.model.joint(f"{side}_{joint}").qposadr] = angle
            mujoco.mj_forward(biped.model, data)
            at, ankle, *_ = targets(biped, side, data)
            reach = ankle - at
            # The leg's own offset aside is on top of its length.
            assert np.linalg.norm(reach) == pytest.approx(
                np.hypot(LONGEST, ASIDE), abs=1e-4
            )
            cosine = reach @ aim / np.linalg.norm(reach) / np.linalg.norm(aim)
            assert cosine > 0.995, aim


def test_angles_stay_finite_anywhere(biped):
    rng = np.random.default_rng(2)
    aims = np.concatenate([rng.normal(size=(40, 3)), np.zeros((1, 3)), [[0, 0, 1.0]]])
    asked = stack([(np.zeros(3), a, np.eye(3), np.eye(3), size("left")) for a in aims])
    found = np.asarray(solve(*asked))
    assert np.isfinite(found).all()
    assert (found[:, 2] >= 0).all()  # the knee bends forward


def test_turns_are_right_handed():
    """About x it carries y to z, about y z to x; by hand at 90 deg and 0.3 rad."""
    quarter = jnp.float32(np.pi / 2)
    np.testing.assert_allclose(about_x(quarter) @ jnp.eye(3)[1], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(about_y(quarter) @ jnp.eye(3)[2], [1, 0, 0], atol=1e-6)
    c, s = np.cos(0.3), np.sin(0.3)
    np.testing.assert_allclose(about_x(0.3), [[1, 0, 0], [0, c, -s], [0, s, c]])
    np.testing.assert_allclose(about_y(0.3), [[c, 0, s], [0, 1, 0], [-s, 0, c]])


# Statics.


@pytest.fixture(scope="module")
def bent(biped) -> list[tuple[mujoco.MjData, Perceived]]:
    """Six postures at rest, both legs bent; as MuJoCo and the controller see them."""
    rng, perception = np.random.default_rng(3), jax.jit(Perception(biped))
    found = []
    for _ in range(6):
        data = posed(biped, "left", rng.uniform(-0.5, 0.5, 5), rng)
        for joint in biped.joints:
            data.qpos[biped.model.joint(joint).qposadr] = rng.uniform(-0.5, 0.5)
        mujoco.mj_forward(biped.model, data)
        found.append((data, perception(biped.sense(data))))
    return found


@jax.jit
def torques(seen, force, point):
    return joint_torques(seen, force, point, jnp.tile(jnp.array(BELOW), (2, 1)))


def pushed(seen: Perceived, seed: int):
    """Forces [2, 3] of up to some 300 N at points [2, 3] on the soles."""
    rng = np.random.default_rng(seed)
    force = rng.normal(size=(2, 3)) * [50, 50, 150]
    shift = np.concatenate([rng.uniform(-HALF_SOLE, HALF_SOLE, (2, 2)), [[0], [0]]], 1)
    point = seen.foot + np.einsum("fij,fj->fi", np.asarray(seen.foot_frame), shift)
    return force, np.asarray(point, float)


def test_legs_hold_their_own_weight(biped, bent):
    """Without a force: MuJoCo's inverse dynamics at rest, of the leg's joints."""
    for data, seen in bent:
        nothing = jnp.zeros((2, 3))
        found = np.asarray(torques(seen, nothing, seen.foot))
        for i, side in enumerate(SIDES):
            at_rest = data.qfrc_bias[dofs(biped, side)]
            np.testing.assert_allclose(found[i], at_rest, atol=1e-4)


def test_torques_do_the_work_of_the_force(biped, bent):
    """A joint that turns a little moves the foot: torque x angle = - force x way."""
    small = 1e-6
    for seed, (data, seen) in enumerate(bent):
        force, point = pushed(seen, seed)
        found = np.asarray(torques(seen, jnp.asarray(force), jnp.asarray(point)))
        for i, side in enumerate(SIDES):
            body = biped.model.body(f"{side}_foot").id
            frame = data.xmat[body].reshape(3, 3)
            local = frame.T @ (point[i] - data.xpos[body])
            for j, joint in enumerate(LEG):
                ways, moved = [], mujoco.MjData(biped.model)
                for sign in (1, -1):
                    moved.qpos[:] = data.qpos
                    moved.qpos[biped.model.joint(f"{side}_{joint}").qposadr] += (
                        sign * small
                    )
                    mujoco.mj_forward(biped.model, moved)
                    at = moved.xpos[body] + moved.xmat[body].reshape(3, 3) @ local
                    energy = biped.model.body_mass @ moved.xipos[:, 2] * 9.81
                    ways.append((at, energy))
                (ahead, up), (behind, down) = ways
                work = force[i] @ (ahead - behind) - (up - down)
                expected = -work / (2 * small)
                assert found[i, j] == pytest.approx(expected, abs=1e-3), (side, joint)


def test_torques_are_those_of_the_jacobian(biped, bent):
    for seed, (data, seen) in enumerate(bent):
        force, point = pushed(seen, 10 + seed)
        found = np.asarray(torques(seen, jnp.asarray(force), jnp.asarray(point)))
        for i, side in enumerate(SIDES):
            jacobian = np.zeros((3, biped.model.nv))
            body = biped.model.body(f"{side}_foot").id
            mujoco.mj_jac(biped.model, data, jacobian, None, point[i], body)
            expected = data.qfrc_bias - jacobian.T @ force[i]
            np.testing.assert_allclose(found[i], expected[dofs(biped, side)], atol=1e-3)


# Steps.


def flying(time: float = 0.0):
    return dataclasses.replace(
        standing(),
        swing=jnp.int32(1),
        time=jnp.float32(time),
        start=jnp.array([0.1, -0.2, 0.004]),
        target=jnp.array([0.4, -0.3]),
    )


@jax.jit
def path(gains, floor, times):
    """[T] s -> [T, 3] m."""
    return jax.vmap(lambda time: swing_path(flying(), gains, floor, time))(times)


def test_a_swing_goes_from_start_to_target_over_the_clearance():
    gains = dataclasses.replace(switches("step"), step_time=0.3, clearance=0.08)
    floor = 0.02
    times = np.linspace(0, 0.3, 61)
    way = np.asarray(path(gains, floor, times))
    np.testing.assert_allclose(way[0], [0.1, -0.2, 0.02], atol=1e-6)
    np.testing.assert_allclose(way[-1], [0.4, -0.3, 0.02], atol=1e-6)
    # Highest in the middle; never below the floor; straight ahead without return.
    assert way[:, 2].argmax() == 30
    assert way[30, 2] == pytest.approx(0.02 + 0.08, abs=1e-6)
    assert (way[:, 2] >= floor - 1e-6).all()
    along = (way[:, :2] - way[0, :2]) @ [0.3, -0.1] / 0.1
    np.testing.assert_allclose(along[[0, -1]], [0, 1], atol=1e-6)
    assert (np.diff(along) >= -1e-6).all()
    aside = (way[:, :2] - way[0, :2]) @ [0.1, 0.3]
    np.testing.assert_allclose(aside, 0, atol=1e-6)
    # At rest over the floor where it leaves, and over the target before it lands.
    speed = np.linalg.norm(np.diff(way[:, :2], axis=0), axis=1) / 0.005
    assert speed[0] < 0.1 * speed.max() and (way[58:, :2] == way[-1, :2]).all()
    assert speed.max() == pytest.approx(
        1.5 * np.hypot(0.3, 0.1) / (0.95 * 0.3), rel=0.02
    )


def test_a_foot_that_finds_no_floor_feels_its_way_down():
    gains = dataclasses.replace(switches("step"), step_time=0.3)
    times = np.full(61, 0.3)  # as many as above: compiled once
    times[1:3] = 0.35, 0.4
    late = path(gains, 0.0, times)[:3]
    heights = np.array(late)[:, 2]
    np.testing.assert_allclose(heights, [0, -0.01, -0.02], atol=1e-6)  # 0.2 m/s
    np.testing.assert_allclose(np.array(late)[:, :2], [[0.4, -0.3]] * 3, atol=1e-6)


# The centre of pressure.

MARGIN = 0.01


@jax.jit
@jax.vmap
def share(feet, frames, target, stance):
    seen = types.SimpleNamespace(foot=feet, foot_frame=frames)
    half = jnp.asarray(HALF_SOLE, jnp.float32)
    return share_pressure(seen, target, stance, half, MARGIN)


def feet(rng, batch: int):
    """Two feet [B, 2, 3] at least 0.1 m apart, turned about z and slightly tilted."""
    left = np.stack([0.3 * rng.normal(size=batch), rng.uniform(0.05, 0.3, batch)], 1)
    right = np.stack([0.3 * rng.normal(size=batch), -rng.uniform(0.05, 0.3, batch)], 1)
    flat = np.stack([left, right], 1)
    place = np.concatenate([flat, 0.01 * rng.normal(size=(batch, 2, 1))], 2)
    yaw = 0.5 * rng.normal(size=(batch, 2))
    frames = np.zeros((batch, 2, 9))
    for i in range(batch):
        for j in range(2):
            turn = [np.cos(yaw[i, j] / 2), *(0.02 * rng.normal(size=2)), 0]
            turn[3] = np.sin(yaw[i, j] / 2)
            mujoco.mju_quat2Mat(frames[i, j], turn / np.linalg.norm(turn))
    return (np.float32(x) for x in (place, frames.reshape(batch, 2, 3, 3)))


def test_shares_sum_to_one_and_stay_on_the_soles():
    rng = np.random.default_rng(5)
    place, frames = feet(rng, 200)
    target = np.float32(rng.uniform(-0.8, 0.8, (200, 2)))
    stance = np.ones((200, 2), bool)
    stance[::4, 0], stance[1::4, 1] = False, False
    found = share(place, frames, target, stance)
    np.testing.assert_allclose(found.share.sum(1), 1, atol=1e-6)
    assert (np.asarray(found.share) >= 0).all()
    # A foot in the air carries nothing; the other all of it.
    np.testing.assert_array_equal(found.share[::4], [[0, 1]] * 50)
    np.testing.assert_array_equal(found.share[1::4], [[1, 0]] * 50)
    local = np.einsum("bfij,bfi->bfj", frames, np.asarray(found.point) - place)
    assert (np.abs(local[..., :2]) <= HALF_SOLE - MARGIN + 1e-6).all()
    np.testing.assert_allclose(local[..., 2], 0, atol=1e-6)
    centre = np.einsum("bf,bfi->bi", found.share, np.asarray(found.point)[..., :2])
    np.testing.assert_allclose(found.centre, centre, atol=1e-6)


def test_a_target_between_the_feet_is_hit():
    """On the line between them, and off it by less than a sole."""
    rng = np.random.default_rng(6)
    place, frames = feet(rng, 100)
    along = np.float32(rng.uniform(0, 1, (100, 1)))
    flat = place[..., :2]
    target = flat[:, 0] + along * (flat[:, 1] - flat[:, 0])
    both = np.ones((100, 2), bool)
    found = share(place, frames, target, both)
    np.testing.assert_allclose(found.centre, target, atol=1e-6)
    np.testing.assert_allclose(found.share[:, 1:], along, atol=1e-5)
    np.testing.assert_allclose(found.point, place, atol=1e-5)
    # Level feet: a shift that all soles have room for is made by both.
    level = np.tile(np.eye(3, dtype=np.float32), (100, 2, 1, 1))
    near = target + np.float32(rng.uniform(-0.035, 0.035, (100, 2)))
    np.testing.assert_allclose(share(place, level, near, both).centre, near, atol=1e-6)


def test_standing_side_by_side_by_hand():
    """Feet at +-0.18 m; margin 0.01 m: 0.10 m ahead, 0.04 m aside of a middle."""
    place = np.array([[0.01, 0.18, 0.0], [0.01, -0.18, 0.0]])
    cases = [
        # target, stance, share of the left, centre
        ((0.01, 0.0), (True, True), 0.5, (0.01, 0.0)),
        ((0.06, 0.09), (True, True), 0.75, (0.06, 0.09)),
        ((0.20, 0.0), (True, True), 0.5, (0.11, 0.0)),  # the sole ends there
        ((-0.3, 0.3), (True, True), 1.0, (-0.09, 0.22)),
        ((0.01, 0.0), (True, False), 1.0, (0.01, 0.14)),
        ((0.05, 0.17), (True, False), 1.0, (0.05, 0.17)),
        ((0.01, 0.0), (False, True), 0.0, (0.01, -0.14)),
    ]
    target, stance, left, centre = (np.array(x) for x in zip(*cases, strict=True))
    many = len(cases)
    found = share(
        np.tile(place, (many, 1, 1)).astype(np.float32),
        np.tile(np.eye(3, dtype=np.float32), (many, 2, 1, 1)),
        target.astype(np.float32),
        stance,
    )
    np.testing.assert_allclose(found.share[:, 0], left, atol=1e-6)
    np.testing.assert_allclose(found.centre, centre, atol=1e-6)
