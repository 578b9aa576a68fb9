"""The reference gait: feet where they are asked to be, left like right, in time."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from playground.controllers.gait_config import GaitConfig
from playground.controllers.reference_gait import (
    GaitShape,
    ReferenceGait,
    _Leg,
    solve_reference_gait,
)
from playground.robots.registry import load_robot

N, DT = 28, 0.02  # an even period, so that half of one is whole steps
PERIOD = N * DT
NONE = dict.fromkeys(("lift", "sway", "sway_phase", "stance_x", "stance_y"), 0.0)
# A leg of five joints cannot roll its foot: a place to the side and a level sole are
# weighed against each other, at 20 mm by 3 mm and 0.17 rad.
AHEAD, ASIDE = 2e-3, 4e-3


@dataclasses.dataclass(frozen=True)
class Feet:
    """Where a gait puts the feet, by forward kinematics under a trunk at home."""

    model: mujoco.MjModel
    robot: object
    gait: ReferenceGait

    def offsets(self, command=(0.0, 0.0, 0.0), stride=(1.0, 1.0, 1.0), **shape):
        """[N, n_leg] rad."""
        values = NONE | shape | {"stride": stride}
        shape = GaitShape(**{k: jnp.asarray(v, jnp.float32) for k, v in values.items()})
        targets = jax.vmap(self.gait.target_offsets, in_axes=(None, 0, None))
        return np.asarray(targets(shape, jnp.arange(N), jnp.asarray(command)))

    def poses(self, offsets) -> tuple[np.ndarray, np.ndarray]:
        """[N, 2, 3] m from the feet's home places, and [N, 2, 3, 3] their axes."""
        data, places, axes = mujoco.MjData(self.model), [], []
        for row in [np.zeros(len(self.gait.joints)), *offsets]:
            data.qpos = self.robot.home_qpos
            data.qpos[self.robot.qpos_index[self.gait.joints]] += row
            mujoco.mj_kinematics(self.model, data)
            sites = [data.site(foot) for foot in ("left_foot", "right_foot")]
            places.append([site.xpos.copy() for site in sites])
            axes.append([site.xmat.reshape(3, 3).copy() for site in sites])
        return np.array(places[1:]) - places[0], np.array(axes[1:])

    def places(self, **shape) -> np.ndarray:
        return self.poses(self.offsets(**shape))[0]


@pytest.fixture(scope="module")
def feet() -> Feet:
    robot = load_robot("open_duck", "flat_backlash")
    return Feet(robot.model, robot, solve_reference_gait(robot, N, DT))


def swing_height() -> np.ndarray:
    """[N, 2] a half sine of the left foot in the first half, then of the right."""
    wave = np.sin(2 * np.pi * np.arange(N) / N)
    return np.stack([np.maximum(wave, 0), np.maximum(-wave, 0)], axis=1)


def reach() -> np.ndarray:
    """[N, 2] s of travel that each foot is ahead: T/4 at the end of its swing."""
    i = np.arange(N)
    left = np.where(i < N / 2, 4 * i / N - 1, 3 - 4 * i / N)
    return PERIOD / 4 * np.stack([left, np.roll(left, N // 2)], axis=1)


def test_all_leg_joints_take_part_and_no_others(feet):
    names = {feet.robot.joints[i] for i in feet.gait.joints}
    legs = {j for j in feet.robot.joints if j.startswith(("left_", "right_"))}
    assert names == legs and len(feet.gait.joints) == 10


def test_soles_are_level_in_their_home_places(feet):
    places, axes = feet.poses(feet.offsets())
    assert np.abs(places).max() < 1e-3
    assert np.abs(axes[..., 2, 0]).max() < 1e-3 and np.abs(axes[..., 2, 1]).max() < 0.06


@pytest.mark.parametrize("foot", ["left_foot", "right_foot"])
def test_inverse_kinematics_reaches_what_the_knee_can(feet, foot):
    """The knee's stop allows a level sole to be lifted by 10 mm at home."""
    leg = _Leg(feet.robot, foot)
    for shift in np.array([[0, 0, 5], [0, 0, 10], [20, 0, 0], [-20, 0, 4]]) / 1000:
        data = mujoco.MjData(feet.model)
        data.qpos = feet.robot.home_qpos
        data.qpos[leg.qpos] += leg.solve(shift)
        mujoco.mj_kinematics(feet.model, data)
        place = data.site(foot).xpos - leg.home_position
        np.testing.assert_allclose(place, shift, atol=1.1e-3)
        assert abs(data.site(foot).xmat[6]) < 2e-3


def test_feet_are_lifted_in_turn(feet):
    for lift in (0.01, 0.02):
        height = feet.places(lift=lift)[..., 2]
        high = swing_height()
        assert (np.abs(height[high == 0]) < 1e-3).all()
        # Half of what is asked at the least: the knee's stop is near.
        assert (height >= 0.5 * lift * high - 1e-3).all()
        assert (height <= 1.1 * lift * high + 1e-3).all()


def test_a_foot_in_stance_is_not_lifted_and_each_swings_half_the_time(feet):
    lifted = np.abs(feet.gait.lift).reshape(N, 2, 5).max(2) > 1e-3
    high = swing_height() > 1e-9
    np.testing.assert_array_equal(lifted, high)
    assert not lifted.all(axis=1).any()
    assert (lifted.sum(0) == N // 2 - 1).all()


@pytest.mark.parametrize("axis", ["stance_x", "stance_y", "sway"])
def test_feet_stand_and_sway_where_the_shape_says(feet, axis):
    size = 0.02
    places = feet.places(**{axis: size})
    wanted = np.zeros((N, 2, 3))
    if axis == "stance_x":
        wanted[:, :, 0] = size
    elif axis == "stance_y":
        wanted[:, :, 1] = size * np.array([1.0, -1.0])
    else:  # to the left while the left foot swings: the trunk is over the right
        wanted[:, :, 1] = size * np.sin(2 * np.pi * np.arange(N) / N)[:, None]
    assert np.abs(places - wanted).max() < (ASIDE if axis == "sway" else AHEAD)


@pytest.mark.parametrize(("axis", "tolerance"), [(0, AHEAD), (1, ASIDE)])
def test_feet_in_stance_move_back_as_fast_as_the_robot_is_to_move(
    feet, axis, tolerance
):
    speed = 0.15
    command = speed * np.eye(3)[axis]
    for sign in (1, -1):
        places = feet.places(command=sign * command)
        wanted = np.zeros((N, 2, 3))
        wanted[:, :, axis] = sign * speed * reach()
        assert np.abs(places - wanted).max() < tolerance
    back = np.diff(feet.places(command=command)[N // 2 :, 0, axis]) / DT
    np.testing.assert_allclose(back, -speed, rtol=0.2)


def test_turning_yaws_the_feet_and_carries_them_round_the_trunk(feet):
    rate = 0.8
    places, axes = feet.poses(feet.offsets(command=(0, 0, rate)))
    yaw = np.arctan2(axes[..., 1, 0], axes[..., 0, 0])
    np.testing.assert_allclose(yaw, rate * reach(), atol=0.01)
    # The left foot, beside the trunk, is ahead where it is turned to the right.
    sideways = places[:, 0, 0] / np.where(np.abs(yaw[:, 0]) > 0.02, yaw[:, 0], np.nan)
    assert np.nanmax(sideways) < -0.02


def test_right_does_what_left_did_half_a_period_before(feet):
    """Mirrored: a path to the left becomes one to the right."""
    mirror = np.array([1.0, -1.0, 1.0])
    shape = {"lift": 0.02, "sway": 0.02, "stance_x": 0.01, "stance_y": 0.01}
    there = feet.places(command=(0.1, 0.05, 0.3), **shape)
    back = feet.places(command=(0.1, -0.05, -0.3), **shape)
    later = np.roll(back, -N // 2, axis=0)
    assert np.abs(there[:, 0] - later[:, 1] * mirror).max() < 2e-3
    assert np.abs(there[:, 1] - later[:, 0] * mirror).max() < 2e-3


def test_the_gait_is_linear_in_command_and_stride(feet):
    shape = {"lift": 0.02, "sway": 0.01}
    still = feet.offsets(**shape)
    one, other = np.array([0.1, 0.0, 0.2]), np.array([-0.05, 0.1, 0.3])
    slopes = [feet.offsets(command=c, **shape) - still for c in (one, other)]
    both = feet.offsets(command=one + 2 * other, **shape) - still
    np.testing.assert_allclose(both, slopes[0] + 2 * slopes[1], atol=1e-5)
    longer = feet.offsets(command=one, stride=(1.5, 9.0, 2.0), **shape) - still
    as_if = feet.offsets(command=one * (1.5, 9.0, 2.0), **shape) - still
    np.testing.assert_allclose(longer, as_if, atol=1e-5)


def test_the_gait_repeats_and_its_shape_is_traced(feet):
    """Another shape is another value, not another program."""
    target = jax.jit(feet.gait.target_offsets)
    shape, command = GaitShape.of(GaitConfig()), jnp.array([0.1, 0.0, 0.3])
    for phase in (0, 5, -1):
        one, later = (target(shape, jnp.int32(p), command) for p in (phase, phase + N))
        np.testing.assert_allclose(one, later, atol=1e-5)
    higher = dataclasses.replace(shape, lift=shape.lift + 0.01)
    moved = target(higher, jnp.int32(5), command) - target(shape, jnp.int32(5), command)
    np.testing.assert_allclose(moved, 0.01 * feet.gait.lift[5], atol=1e-6)
    assert target._cache_size() == 1
