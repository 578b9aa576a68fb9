"""Servo presets and files, and that their numbers act in the robot's joints."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import yaml

from playground.errors import PlaygroundError
from playground.paths import asset_folder
from playground.physics.engines import make_physics
from playground.robots.registry import load_robot
from playground.robots.servo import Servo, load_servo

PRESETS = yaml.safe_load((asset_folder("configs") / "servos.yaml").read_text())
# All different, and none of them the preset's.
OWN = {
    "description": "a servo of one's own",
    "source": "made up",
    "damping": 0.31,
    "frictionloss": 0.02,
    "armature": 0.011,
    "kp": 7.5,
    "kv": 0.12,
    "force_limit": 1.7,
    "rate_limit": 4,
    "backlash": 0.02,
    "backlash_damping": 0.03,
    "backlash_frictionloss": 0.001,
    "backlash_armature": 0.005,
}
ROUNDING = 2e-6  # of float32 at torques of some N.m


@pytest.fixture
def own(tmp_path):
    """Returns a function that writes a servo file and returns its path."""

    def write(values=OWN, **changes) -> str:
        path = tmp_path / "my servo.yaml"
        path.write_text(yaml.safe_dump(values | changes if changes else values))
        return str(path)

    return write


@pytest.mark.parametrize("name", PRESETS)
def test_presets_load(name):
    assert dataclasses.asdict(load_servo(name)) == PRESETS[name]


def test_servo_file_reaches_the_model(own):
    robot = load_robot("open_duck", "flat_backlash", own())
    model, servo = robot.model, robot.servo
    assert servo == Servo(**OWN) and isinstance(servo.rate_limit, float)
    assert len(robot.joints) == model.nu == 14
    for name in robot.joints:
        joint, play = model.joint(name), model.joint(f"{name}_backlash")
        actuator = model.actuator(name)
        for key in ("damping", "frictionloss", "armature"):
            assert getattr(joint, key)[0] == OWN[key]
            assert getattr(play, key)[0] == OWN[f"backlash_{key}"]
        np.testing.assert_array_equal(play.range, [-0.02, 0.02])
        np.testing.assert_array_equal(actuator.gainprm[:2], [7.5, 0])
        np.testing.assert_array_equal(actuator.biasprm[:3], [0, -7.5, -0.12])
        np.testing.assert_array_equal(actuator.forcerange, [-1.7, 1.7])
    # The joints of the trunk itself are no servo's.
    assert not model.dof_damping[:6].any() and not model.dof_armature[:6].any()
    plain = load_robot("open_duck", "flat").model
    assert plain.njnt == model.njnt - 14 and plain.dof_damping[6] != OWN["damping"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kp": -1.0}, "kp must be a number of 0 or more, got -1.0"),
        ({"kp": float("nan")}, "kp must be a number of 0 or more, got nan"),
        ({"kv": float("inf")}, "kv must be a number of 0 or more, got inf"),
        ({"damping": True}, "damping must be a number of 0 or more, got True"),
        ({"damping": "0.5"}, "damping must be a number of 0 or more, got '0.5'"),
        ({"backlash": None}, "backlash must be a number of 0 or more, got None"),
        ({"source": 3}, "source must be a text, got 3"),
        ({"dampin": 0.5}, "unknown key .*'dampin'; did you mean 'damping'"),
        ({7: 0.5}, "unknown key .*'7'"),
    ],
)
def test_wrong_numbers_are_refused(own, changes, message):
    with pytest.raises(PlaygroundError, match=message):
        load_servo(own(OWN | changes))


@pytest.mark.parametrize("key", OWN)
def test_missing_keys_are_refused(own, key):
    with pytest.raises(PlaygroundError, match=f"lacks the key '{key}'"):
        load_servo(own({k: v for k, v in OWN.items() if k != key}))


def test_other_mistakes_are_told(own, tmp_path):
    with pytest.raises(PlaygroundError, match="'sts3214'; did you mean 'sts3215'"):
        load_servo("sts3214")
    with pytest.raises(PlaygroundError, match=r"'nowhere\.yaml' does not exist"):
        load_servo("nowhere.yaml")
    with pytest.raises(PlaygroundError, match="holds no mapping"):
        load_servo(own([1, 2]))
    with pytest.raises(PlaygroundError, match="is empty"):
        load_servo(own(""))
    with pytest.raises(PlaygroundError, match=r"unknown key .*'mine'"):
        load_servo(own({"mine": OWN, "other": OWN}))
    bad = tmp_path / "bad.yml"
    bad.write_text("kp: [1")
    with pytest.raises(PlaygroundError, match=r"bad\.yml', line 1: ") as told:
        load_servo(str(bad))
    assert "\n" not in str(told.value)
    bad.write_text("kp: 1\nkv: 0\nkp: 2\n")
    with pytest.raises(PlaygroundError, match="line 3: the key 'kp' stands twice"):
        load_servo(str(bad))


def test_an_entry_under_its_name_is_a_servo_file_too(own):
    assert load_servo(own({"mine": OWN})) == load_servo(own()) == Servo(**OWN)


def state(robot, rng, spread: float):
    """Returns qpos and qvel of a robot in the air, joints and plays off home."""
    model, qpos = robot.model, robot.home_qpos.copy()
    qpos[2] += 1.0
    qpos[7:] += rng.uniform(-spread, spread, model.nq - 7)
    return jnp.asarray(qpos), jnp.asarray(rng.normal(0, 1, model.nv))


def test_torque_is_the_law_of_the_servo_within_its_limit(own):
    robot = load_robot("open_duck", "flat_backlash", own())
    physics = make_physics(robot.model, "native")
    rng = np.random.default_rng(0)
    limited = 0
    for size in (0.05, 0.2, 1.0):
        qpos, qvel = state(robot, rng, 0.01)
        offset = rng.uniform(-size, size, 14)
        # A target beyond a joint's range is clipped to it.
        target = np.clip(robot.home_pose + offset, *robot.joint_range.T)
        sensed = robot.sense(physics.init(qpos, qvel, jnp.asarray(target)))
        # The servo's own encoder is before the play of its gear.
        joint, speed = qpos[robot.qpos_index], qvel[robot.dof_index]
        law = 7.5 * (target - joint) - 0.12 * speed
        expected = np.clip(law, -1.7, 1.7)
        np.testing.assert_allclose(sensed.joint_torque, expected, atol=ROUNDING)
        limited += int((abs(law) > 1.7).sum())
    assert limited > 5


def test_encoder_reads_joint_and_play(own):
    robot = load_robot("open_duck", "flat_backlash", own())
    qpos, qvel = state(robot, np.random.default_rng(1), 0.01)
    physics = make_physics(robot.model, "native")
    sensed = robot.sense(physics.init(qpos, qvel, jnp.asarray(robot.home_pose)))
    model = robot.model
    for row, name in enumerate(robot.joints):
        both = [model.joint(name), model.joint(f"{name}_backlash")]
        angle = sum(float(qpos[joint.qposadr[0]]) for joint in both)
        speed = sum(float(qvel[joint.dofadr[0]]) for joint in both)
        assert float(sensed.joint_position[row]) == pytest.approx(angle, abs=ROUNDING)
        assert float(sensed.joint_velocity[row]) == pytest.approx(speed, abs=ROUNDING)
    plain = load_robot("open_duck", "flat", own())
    qpos, qvel = state(plain, np.random.default_rng(1), 0.01)
    physics = make_physics(plain.model, "native")
    sensed = plain.sense(physics.init(qpos, qvel, jnp.asarray(plain.home_pose)))
    np.testing.assert_array_equal(sensed.joint_position, np.float32(qpos[7:]))
    np.testing.assert_array_equal(sensed.joint_velocity, np.float32(qvel[6:]))


def test_play_moves_by_its_width_both_ways_and_no_more(own):
    robot = load_robot("open_duck", "flat_backlash", own())
    physics = make_physics(robot.model, "native", substeps=10)
    head = robot.joints.index("head_yaw")
    play = robot.model.joint("head_yaw_backlash").qposadr[0]
    qpos = jnp.asarray(robot.home_qpos).at[2].add(5.0)
    data = physics.init(qpos, jnp.zeros(robot.model.nv), robot.home_pose)
    seen = []
    for k in range(20):
        target = robot.home_pose.copy()
        target[head] += 0.1 * (-1) ** (k // 5)
        data = physics.step(data, jnp.asarray(target))
        seen.append(float(data.qpos[play]))
    # The stops are as soft as MuJoCo's limits are: some thousandths of a radian.
    assert -0.025 < min(seen) < -0.019 and 0.019 < max(seen) < 0.025
