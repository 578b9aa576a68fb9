"""Criteria of balance: support polygon, capture point, ZMP and centre of pressure."""

import itertools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import quick_jit
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from playground.controllers.balance.criteria import (
    GRAVITY,
    capture_point,
    centre_of_pressure,
    low_pass,
    momentum_offset,
    pendulum_rate,
    zero_moment_point,
)
from playground.controllers.balance.perception import Perceived, Perception
from playground.controllers.balance.support import (
    convex_hull,
    distance_outside,
    signed_margin,
)
from playground.physics.engines import make_physics
from playground.robots.registry import load_robot
from playground.robots.robot import Robot

POINTS = 8  # two soles
CLOSE = 3e-6  # m, of float32 and of corners within 1 um of a line
SLOW = ("mjx", "warp")


@jax.jit
@jax.vmap
def margin(points, valid, point):
    """[B, 8, 2], [B, 8], [B, 2] -> [B], [B], compiled once for this file."""
    hull = convex_hull(points, valid)
    return signed_margin(hull, point), distance_outside(points, valid, point)


def margin_by_hand(points: np.ndarray, point: np.ndarray) -> float:
    """By half planes inside, and outside by the nearest convex combination."""
    inside = -(ConvexHull(points).equations @ [*point, 1.0]).max()
    if inside >= 0:
        return inside
    # Least |points.T w - point| with w >= 0 that sum to 1, held by a heavy row.
    heavy = 1e4
    rows = np.vstack([points.T, np.full(len(points), heavy)])
    return -nnls(rows, [*point, heavy])[1]


def check(points, valid, at) -> None:
    """Each [B, ...] against the margins by hand; both sides of the edge are met."""
    points, at = np.asarray(points, np.float32), np.asarray(at, np.float32)
    found, outside = (np.asarray(x) for x in margin(points, valid, at))
    expected = [
        margin_by_hand(p[v].astype(float), x.astype(float))
        for p, v, x in zip(points, valid, at, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=CLOSE)
    np.testing.assert_allclose(
        outside, np.maximum(np.negative(expected), 0), atol=CLOSE
    )
    assert (found > 0.01).any() and (found < -0.01).any()


def masks(rng, batch: int) -> np.ndarray:
    """[batch, 8] bool, at least three of each true."""
    order = rng.permuted(np.tile(np.arange(POINTS), (batch, 1)), axis=1)
    return order < rng.integers(3, POINTS + 1, batch)[:, None]


def test_margins_of_random_points():
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.3, 0.3, (300, POINTS, 2))
    check(points, masks(rng, 300), rng.uniform(-0.4, 0.4, (300, 2)))


def test_margins_of_points_that_coincide():
    rng = np.random.default_rng(1)
    points = rng.uniform(-0.3, 0.3, (200, POINTS, 2))
    points[:, 4:] = points[:, :4]  # all twice
    points[:100, 7] = points[:100, 0]  # one of them three times
    every = np.ones((200, POINTS), bool)
    check(points, every, rng.uniform(-0.4, 0.4, (200, 2)))


def soles(rng, batch: int, rattle: float, away: float) -> np.ndarray:
    """Corners of two level feet side by side: four on each long edge of the hull."""
    corner = itertools.product((0.12, -0.10), (0.23, 0.13, -0.13, -0.23))
    points = np.tile(np.array(list(corner)), (batch, 1, 1))
    points += rattle * rng.normal(size=points.shape)
    angle = rng.uniform(-np.pi, np.pi, batch)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.einsum("ijb,bnj->bni", turn, points) + away


@pytest.mark.parametrize("away", [0.0, 3.0], ids=["at the origin", "3 m from there"])
@pytest.mark.parametrize("rattle", [0.0, 1e-6, 1e-4, 1e-2])
def test_margins_of_points_on_a_line(rattle, away):
    rng = np.random.default_rng(2)
    points = soles(rng, 150, rattle, away)
    every = np.ones((150, POINTS), bool)
    check(points, every, rng.uniform(-0.4, 0.4, (150, 2)) + away)


def test_margins_by_hand():
    """A sole of 0.22 x 0.46 m: sides, a corner, an edge and its middle."""
    points = soles(np.random.default_rng(0), 1, 0.0, 0.0)[0]
    square = np.array([[0.12, 0.23], [0.12, -0.23], [-0.10, -0.23], [-0.10, 0.23]])
    points = np.concatenate([square, points[:4] * 0 + 7.0])  # the others do not count
    at = [(0.0, 0.0), (0.10, 0.0), (0.15, 0.1), (0.15, 0.27), (0.12, 0.1), (-0.3, 0.0)]
    valid = np.arange(POINTS) < 4
    found, outside = margin(
        jnp.asarray(np.tile(points, (6, 1, 1)), jnp.float32),
        np.tile(valid, (6, 1)),
        jnp.array(at),
    )
    by_hand = [0.10, 0.02, -0.03, -0.05, 0.0, -0.20]
    np.testing.assert_allclose(found, by_hand, atol=1e-7)
    np.testing.assert_allclose(outside, [0, 0, 0.03, 0.05, 0, 0.20], atol=1e-7)


def test_without_three_points_there_is_no_polygon():
    rng = np.random.default_rng(3)
    points = rng.uniform(-0.3, 0.3, (6, POINTS, 2)).astype(np.float32)
    valid = np.arange(POINTS) < np.array([0, 1, 2, 3, 8, 8])[:, None]
    points[4] = points[4, :1]  # all in one place
    points[5] = np.linspace(0, 1, POINTS)[:, None] * np.float32([0.3, 0.1])  # a line
    found, outside = margin(points, valid, np.zeros((6, 2), np.float32))
    np.testing.assert_array_equal(np.isnan(found), [True] * 3 + [False] + [True] * 2)
    np.testing.assert_array_equal(np.isnan(outside), [True] + [False] * 5)


def test_points_that_do_not_count_may_be_anything():
    """A foot in the air is far away, or no number at all."""
    points = np.array([[0.1, 0], [0, 0.1], [-0.1, -0.1], [9, 9]] + 4 * [[0, 0]])
    points = np.tile(points.astype(np.float32), (2, 1, 1))
    points[1, 4:] = np.nan
    valid = np.tile(np.arange(POINTS) < 3, (2, 1))
    found, outside = margin(points, valid, np.zeros((2, 2), np.float32))
    one, other = found
    assert one == pytest.approx(margin_by_hand(points[0, :3], np.zeros(2)), abs=1e-7)
    assert other == one
    assert outside[1] == outside[0] == 0.0


# The linear inverted pendulum.


def pendulum(state: np.ndarray, pressure: np.ndarray, height: float, time: float):
    """Position and velocity [2, 2] at a time, by its law x'' = g / z (x - p)."""
    steps = max(1, round(time / 1e-3))
    step = time / steps

    def rate(state):
        return np.stack([state[1], 9.81 / height * (state[0] - pressure)])

    for _ in range(steps):  # Runge-Kutta of the fourth order
        k1 = rate(state)
        k2 = rate(state + step / 2 * k1)
        k3 = rate(state + step / 2 * k2)
        k4 = rate(state + step * k3)
        state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def test_a_free_capture_point_runs_away_exponentially():
    height, floor = 0.9, 0.3
    start, pressure = np.array([[0.02, -0.01], [0.3, -0.2]]), np.array([0.05, 0.02])
    omega = np.sqrt(9.81 / height)
    assert pendulum_rate(height) == pytest.approx(omega)

    def away(time):
        place, speed = pendulum(start, pressure, height, time)
        com = jnp.array([*place, height + floor])
        return capture_point(com, jnp.array([*speed, 0.4]), height) - pressure

    first = away(0.0)
    for time in (0.1, 0.35, 0.8):
        np.testing.assert_allclose(away(time), first * np.exp(omega * time), rtol=1e-5)


def test_pressure_at_the_capture_point_brings_the_pendulum_to_rest_there():
    height, start = 0.9, np.array([[0.02, -0.01], [0.3, -0.2]])
    com = jnp.array([*start[0], height])
    xi = np.asarray(capture_point(com, jnp.array([*start[1], 0.0]), height), float)
    place, speed = pendulum(start, xi, height, 2.0)
    np.testing.assert_allclose(place, xi, atol=2e-4)
    np.testing.assert_allclose(speed, 0, atol=1e-3)


def test_the_zmp_of_a_pendulum_is_its_pressure():
    height, floor, pressure = 0.8, -0.2, np.array([0.05, 0.02])
    state = np.array([[0.02, -0.01], [0.3, -0.2]])
    for time in (0.0, 0.2, 0.5):
        place, _ = pendulum(state, pressure, height, time)
        acceleration = 9.81 / height * (place - pressure)
        com = jnp.array([*place, height + floor])
        zmp = zero_moment_point(com, jnp.asarray(acceleration), floor)
        np.testing.assert_allclose(zmp, pressure, atol=1e-6)


def test_what_turning_adds_to_the_capture_point():
    """With z = g the pendulum's rate is 1/s: (L_y, -L_x) / (m z) by hand."""
    turning = jnp.array([2.0, -3.0, 5.0])
    offset = momentum_offset(turning, 30.0, jnp.float32(GRAVITY))
    np.testing.assert_allclose(offset, [-3.0 / 294.3, -2.0 / 294.3], rtol=1e-6)
    # omega doubles at a quarter of the height: 1 / (m z omega) is twice that.
    quarter = momentum_offset(turning, 30.0, jnp.float32(GRAVITY / 4))
    np.testing.assert_allclose(quarter, 2 * offset, rtol=1e-6)
    # Who turns forward, about y, falls forward; about x, to the right (-y).
    forward = momentum_offset(jnp.array([0.0, 1.0, 0.0]), 35.0, jnp.float32(0.9))
    right = momentum_offset(jnp.array([1.0, 0.0, 0.0]), 35.0, jnp.float32(0.9))
    assert forward[0] > 0 and forward[1] == 0 and right[1] < 0 and right[0] == 0


def test_low_pass_closes_the_same_share_of_the_gap_each_time():
    smooth, seen = jnp.zeros(2), []
    for _ in range(4):
        smooth = low_pass(smooth, jnp.array([1.0, -2.0]), 0.7)
        seen.append(smooth)
    share = 1 - 0.7 ** np.arange(1, 5)
    expected = share[:, None] * [1.0, -2.0]
    np.testing.assert_allclose(np.array(seen), expected, rtol=1e-6)
    assert low_pass(3.0, 5.0, 0.0) == 5.0 and low_pass(3.0, 5.0, 1.0) == 3.0


def test_centre_of_pressure_by_hand():
    points = jnp.array([[0.1, 0.2], [-0.1, 0.2], [0.1, -0.2], [5.0, 5.0]])
    forces = jnp.array([[100.0, 200.0, 100.0, 0.0], [0.0, 0.0, 50.0, 0.0], [0.0] * 4])
    point, touching = jax.vmap(centre_of_pressure, (None, 0))(points, forces)
    assert point.shape == (3, 2)
    np.testing.assert_allclose(point[:2], [[0.0, 0.1], [0.1, -0.2]], atol=1e-7)
    assert np.isnan(point[2]).all()
    np.testing.assert_array_equal(touching, [True, True, False])


# The biped, on each engine.

STANDS, AIRBORNE = 0, 1  # rows of `states`; the others move


@pytest.fixture(
    scope="module",
    # MJX compiles for long.
    params=["native", *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW)],
)
def engine(request) -> str:
    if request.param == "warp":
        pytest.importorskip("warp")
    return request.param


@pytest.fixture(scope="module")
def biped() -> Robot:
    """Not to be changed."""
    return load_robot("biped", "flat")


@pytest.fixture(scope="module")
def states(biped) -> list[mujoco.MjData]:
    """At rest on the floor, moving in the air, and three that move, turned and bent."""
    model, rng = biped.model, np.random.default_rng(4)
    found = [mujoco.MjData(model) for _ in range(5)]
    stands, *others = found
    stands.qpos[:] = biped.home_qpos
    for _ in range(1200):  # a stiff posture settles
        position, rate = stands.qpos[biped.qpos_index], stands.qvel[biped.dof_index]
        stands.ctrl[:] = 1500 * (biped.home_pose - position) - 10 * rate
        mujoco.mj_step(model, stands)
    for data in others:
        data.qpos[:] = biped.home_qpos
        data.qpos[:3] += rng.uniform((-2, -2, 0), (2, 2, 0.5))
        data.qpos[3:7] += 0.3 * rng.normal(size=4)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        data.qpos[biped.qpos_index] += 0.3 * rng.normal(size=model.nu)
        data.qvel[:] = rng.normal(size=model.nv)
    others[0].qpos[2] += 1.0
    for data in found:
        mujoco.mj_forward(model, data)
    return found


@jax.jit
@jax.vmap
def judge(seen: Perceived) -> dict[str, jax.Array]:
    """What the criteria say of [B] robots, compiled once for all engines."""
    point, touching = centre_of_pressure(seen.corner[:, :2], seen.pressure)
    hull, middle = seen.support(), seen.foot[:, :2].mean(0)
    return {
        "capture": seen.capture_point(35.0, 0.0),
        "turned": seen.capture_point(35.0, 0.5),
        "pressure": point,
        "touching": touching,
        "defined": hull.defined,
        "middle": signed_margin(hull, middle),
        "beyond": signed_margin(hull, middle + jnp.array([0.0, 0.30])),
    }


@pytest.fixture(scope="module")
def seen(engine, biped, states) -> tuple[Perceived, dict]:
    """[5] the robots, perceived through an engine and judged; numpy arrays."""
    physics, perception = make_physics(biped.model, engine), Perception(biped)

    @quick_jit
    def look(qpos, qvel, ctrl):
        return perception(biped.sense(physics.init(qpos, qvel, ctrl)))

    each = [
        look(*(jnp.asarray(getattr(data, name), jnp.float32) for name in parts))
        for data in states
        for parts in [("qpos", "qvel", "ctrl")]
    ]
    all_of_them = jax.tree.map(lambda *x: np.stack(x), *each)
    return all_of_them, jax.tree.map(np.asarray, judge(all_of_them))


def height(data: mujoco.MjData) -> float:
    """Of the centre of mass above the lower sole, m."""
    feet = [data.site(f"{side}_foot").xpos[2] for side in ("left", "right")]
    return data.subtree_com[1, 2] - min(feet)


def test_the_capture_point_of_the_biped_is_ahead_by_its_velocity(seen, states):
    """xi - c = v sqrt(h / g), with c and v by MuJoCo's own sums over the bodies."""
    for i in range(2, len(states)):
        data = states[i]
        mujoco.mj_subtreeVel(data.model, data)
        place, velocity = data.subtree_com[1], data.subtree_linvel[1]
        ahead = velocity[:2] * np.sqrt(height(data) / 9.81)
        assert np.linalg.norm(ahead) > 0.1
        error = np.linalg.norm(seen[1]["capture"][i] - place[:2] - ahead)
        assert error < 0.01 * np.linalg.norm(ahead)


def test_turning_moves_the_capture_point_of_the_biped(seen, states):
    """By half of (L_y, -L_x) / (m z omega)."""
    for i in range(2, len(states)):
        data = states[i]
        mujoco.mj_subtreeVel(data.model, data)
        x, y, _ = data.subtree_angmom[1]
        by_hand = 0.5 * np.array([y, -x]) / (35 * np.sqrt(9.81 * height(data)))
        moved = seen[1]["turned"][i] - seen[1]["capture"][i]
        assert np.linalg.norm(by_hand) > 0.01
        np.testing.assert_allclose(moved, by_hand, atol=1e-5)


def test_at_rest_the_pressure_is_below_the_centre_of_mass(seen):
    robots, judged = seen
    assert judged["touching"][STANDS] and judged["defined"][STANDS]
    com = robots.com[STANDS, :2]
    np.testing.assert_allclose(judged["pressure"][STANDS], com, atol=2e-3)
    assert robots.load[STANDS].sum() == pytest.approx(35 * 9.81, rel=0.02)
    # All eight corners carry: the polygon is the outline of both soles, 0.22 m long
    # and 0.46 m wide, but for the millimetres by which stiff legs give way.
    assert (robots.pressure[STANDS] > 0).all()
    assert judged["middle"][STANDS] == pytest.approx(0.11, abs=2e-3)
    assert judged["beyond"][STANDS] == pytest.approx(0.23 - 0.30, abs=5e-3)


def test_in_the_air_there_is_neither_pressure_nor_polygon(seen):
    robots, judged = seen
    assert not robots.pressure[AIRBORNE].any() and not judged["touching"][AIRBORNE]
    assert np.isnan(judged["pressure"][AIRBORNE]).all()
    assert not judged["defined"][AIRBORNE]
    assert np.isnan(judged["middle"][AIRBORNE])
