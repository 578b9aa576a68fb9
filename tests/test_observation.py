"""What a policy observes, channel by channel, and what it must never observe."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import ROBOTS

from playground.errors import PlaygroundError
from playground.tasks.actions import ActionMemory, act
from playground.tasks.delay import DelayLine, draw_delay
from playground.tasks.observation import joint_noise
from playground.tasks.policy_observation import Subject, policy_table

LAYOUT = [
    ("gyro", 3),
    ("accelerometer", 3),
    ("command", 7),
    ("joint_position", 14),
    ("joint_velocity", 14),
    ("last_action", 14),
    ("second_last_action", 14),
    ("third_last_action", 14),
    ("motor_targets", 14),
    ("foot_contacts", 2),
    ("phase", 2),
]
FEET = ("left_foot", "right_foot")
STEPS = 8
MOVE = 5.24 * 0.02  # rad a servo target may move in a control step


def split(obs) -> dict[str, np.ndarray]:
    """The published observation by channel name, [..., width]."""
    ends = np.cumsum([width for _, width in LAYOUT])
    parts = np.split(np.asarray(obs), ends[:-1], axis=-1)
    return dict(zip([name for name, _ in LAYOUT], parts, strict=True))


def exact(obs) -> dict[str, np.ndarray]:
    """The observation without noise, which the critic sees first."""
    return split(obs["privileged_state"][..., :101])


@pytest.fixture(scope="module")
def rollout(batch):
    """STEPS steps with distinct actions; robot i has delays of i % 4 steps."""
    state, obs = batch.start(3)
    steps = jnp.arange(ROBOTS, dtype=jnp.int32) % 4
    state = dataclasses.replace(
        state,
        actions=dataclasses.replace(
            state.actions,
            delayed=dataclasses.replace(state.actions.delayed, steps=steps),
        ),
        imu=dataclasses.replace(state.imu, steps=steps),
    )
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (STEPS, ROBOTS, 14)).astype(np.float32)
    states, seen = [state], [obs]
    for action in actions:
        state, outcome = batch.step(state, action)
        states.append(state)
        seen.append(outcome.obs)
    return states, seen, actions


def test_the_table_is_the_published_layout(batch):
    channels = batch.task.observation.channels
    assert [(c.name, c.width) for c in channels] == LAYOUT
    assert batch.task.observation.width == 101
    scales = {c.name: c.scale for c in channels}
    assert scales.pop("joint_velocity") == 0.05
    assert set(scales.values()) == {1.0}


def test_encoders_read_joint_and_backlash_by_name_about_home(batch, rollout):
    states, seen, _ = rollout
    model, home = batch.task.robot.model, batch.task.robot.home_pose
    qpos, qvel = np.asarray(states[-1].data.qpos), np.asarray(states[-1].data.qvel)
    position, velocity = [], []
    for i in range(model.nu):
        joint = model.joint(model.actuator(i).trnid[0]).name
        both = [model.joint(joint), model.joint(f"{joint}_backlash")]
        position.append(sum(qpos[:, j.qposadr[0]] for j in both) - home[i])
        velocity.append(sum(qvel[:, j.dofadr[0]] for j in both))
        assert np.abs(qpos[:, both[1].qposadr[0]]).max() > 1e-4, "the play is used"
    obs = exact(seen[-1])
    np.testing.assert_allclose(obs["joint_position"], np.stack(position, 1), atol=1e-6)
    np.testing.assert_allclose(
        obs["joint_velocity"], 0.05 * np.stack(velocity, 1), atol=1e-6
    )


def test_command_contacts_and_phase(batch, rollout):
    states, seen, _ = rollout
    model = batch.task.robot.model
    for state, obs in zip(states, map(exact, seen), strict=True):
        np.testing.assert_array_equal(obs["command"], state.command)
        angle = 2 * np.pi * np.asarray(state.phase) / 27
        wanted = np.stack([np.cos(angle), np.sin(angle)], 1)
        np.testing.assert_allclose(obs["phase"], wanted, atol=1e-5)
        sensors = np.asarray(state.data.sensordata)
        touching = [
            sensors[:, model.sensor(f"{foot}_contact").adr[0]] > 0 for foot in FEET
        ]
        np.testing.assert_array_equal(obs["foot_contacts"], np.stack(touching, 1))
    phases = np.array([state.phase for state in states])
    np.testing.assert_array_equal(np.diff(phases, axis=0), 1)


def test_history_is_zero_and_targets_are_home_at_the_start(batch, rollout):
    obs = exact(rollout[1][0])
    for name in ("last_action", "second_last_action", "third_last_action"):
        assert not obs[name].any()
    home = np.tile(batch.task.robot.home_pose, (ROBOTS, 1))
    np.testing.assert_allclose(obs["motor_targets"], home, atol=1e-7)


def test_the_last_three_actions_are_observed_as_given(rollout):
    _, seen, actions = rollout
    for t in range(2, STEPS):
        obs = exact(seen[t + 1])
        np.testing.assert_array_equal(obs["last_action"], actions[t])
        np.testing.assert_array_equal(obs["second_last_action"], actions[t - 1])
        np.testing.assert_array_equal(obs["third_last_action"], actions[t - 2])


def test_targets_are_delayed_exactly_and_move_no_faster_than_the_servo(batch, rollout):
    _, seen, actions = rollout
    home = batch.task.robot.home_pose
    given = np.concatenate([np.zeros((3, ROBOTS, 14)), actions])
    targets, delay = np.tile(home, (ROBOTS, 1)), np.arange(ROBOTS) % 4
    limited = 0
    for t in range(STEPS):
        goal = home + 0.25 * given[3 + t - delay, np.arange(ROBOTS)]
        limited += (np.abs(goal - targets) > MOVE).sum()
        targets = targets + np.clip(goal - targets, -MOVE, MOVE)
        obs = exact(seen[t + 1])
        np.testing.assert_allclose(obs["motor_targets"], targets, atol=1e-6)
    assert limited > 100


def test_targets_jump_where_the_rate_limit_is_off(batch):
    robot = batch.task.robot
    memory = ActionMemory.start(robot, jnp.int32(0), 0)
    home = jnp.asarray(robot.home_pose, jnp.float32)
    after = act(memory, jnp.ones(14), home, 0.25, None)
    np.testing.assert_allclose(after.targets, home + 0.25, atol=1e-6)
    after = act(memory, jnp.ones(14), home, 0.25, MOVE)
    np.testing.assert_allclose(after.targets, home + MOVE, atol=1e-6)


@pytest.mark.parametrize("name", ["gyro", "accelerometer"])
def test_the_imu_is_delayed_exactly_and_begins_with_its_first_reading(
    name, batch, rollout
):
    states, seen, _ = rollout
    sensor = batch.task.robot.model.sensor(name)
    where = slice(sensor.adr[0], sensor.adr[0] + 3)
    raw = np.array([state.data.sensordata[:, where] for state in states])
    assert np.abs(np.diff(raw, axis=0)).min(axis=(0, 2)).all(), "readings differ"
    for t, obs in enumerate(map(exact, seen)):
        then = np.maximum(t - np.arange(ROBOTS) % 4, 0)
        np.testing.assert_array_equal(obs[name], raw[then, np.arange(ROBOTS)])


def test_what_is_observed_after_a_reset_is_of_the_reset_state(batch):
    """Sensors are those of C MuJoCo at this very pose, at rest, holding home."""
    task, (state, obs) = batch.task, batch.start(0)
    seen = exact(obs)
    for i in range(ROBOTS):
        model = task.physics.models[int(state.data.model_index[i])]
        data = mujoco.MjData(model)
        data.qpos, data.ctrl = state.data.qpos[i], task.robot.home_pose
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(seen["gyro"][i], data.sensor("gyro").data, atol=1e-4)
        felt = data.sensor("accelerometer").data
        np.testing.assert_allclose(seen["accelerometer"][i], felt, atol=1e-3)
        touching = [data.sensor(f"{foot}_contact").data[0] > 0 for foot in FEET]
        np.testing.assert_array_equal(seen["foot_contacts"][i], touching)
        joints = data.qpos[task.robot.qpos_index] - task.robot.home_pose
        np.testing.assert_allclose(seen["joint_position"][i], joints, atol=1e-6)
        assert not seen["joint_velocity"][i].any()
    assert len(np.unique(seen["accelerometer"], axis=0)) == ROBOTS


def test_the_accelerometer_offset_is_observed_in_training_too(batch, rollout):
    task = batch.task
    config = dataclasses.replace(task.config, accelerometer_offset=(1.3, 0.0, -0.2))
    state = jax.tree.map(lambda x: x[0], rollout[0][-1])
    subject = Subject(state, task.robot.sense(state.data))
    plain = task.observation.build(subject)
    moved = policy_table(task.robot, config).build(subject)
    wanted = jnp.zeros(101).at[3:6].set([1.3, 0, -0.2])
    np.testing.assert_allclose(moved - plain, wanted, atol=1e-5)


def test_every_delay_up_to_the_longest_is_drawn():
    keys = jax.random.split(jax.random.key(0), 400)
    drawn = jax.vmap(lambda key: draw_delay(key, 3))(keys)
    counts = np.bincount(np.asarray(drawn))
    assert len(counts) == 4 and (counts > 60).all()  # 100 each, 4.6 sigma
    assert not jax.vmap(lambda key: draw_delay(key, 0))(keys).any()


def test_both_delays_are_drawn_at_a_reset_and_apart(batch):
    state, obs = batch.start(0)
    action, imu = state.actions.delayed.steps, state.imu.steps
    assert set(np.unique(action)) == set(np.unique(imu)) == {0, 1, 2, 3}
    assert (action != imu).any()
    told = obs["privileged_state"][:, 101:]
    ends = np.cumsum([c.width for c in batch.task.privileged.channels])
    names = [c.name for c in batch.task.privileged.channels]
    at = ends[names.index("delays")]
    np.testing.assert_array_equal(told[:, at - 2 : at], np.stack([action, imu], 1))


def test_a_delay_line_holds_its_first_value():
    line = DelayLine.start(jnp.array([7.0]), jnp.int32(2), 2)
    seen = []
    for value in (1.0, 2.0, 3.0, 4.0):
        line = line.push(jnp.array([value]))
        seen.append(float(line.output[0]))
    assert seen == [7.0, 7.0, 1.0, 2.0]


# noise


def test_noise_is_named_and_left_is_like_right(batch):
    robot, noise = batch.task.robot, batch.task.config.noise
    parts = split(batch.task.observation.noise)
    assert set(parts["gyro"]) == {noise.gyro}
    assert set(parts["accelerometer"]) == {noise.accelerometer}
    assert set(parts["joint_velocity"]) == {noise.joint_velocity}
    by_joint = dict(zip(robot.joints, parts["joint_position"], strict=True))
    assert len(by_joint) == 14
    for joint, level in by_joint.items():
        kind = joint.removeprefix("left_").removeprefix("right_").split("_")[0]
        kind = {"neck": "head"}.get(kind, kind)
        assert level == getattr(noise, f"{kind}_position"), joint
        if joint.startswith("left_"):
            assert level == by_joint[joint.replace("left_", "right_")]
    quiet = ("command", "last_action", "motor_targets", "foot_contacts", "phase")
    assert not any(parts[name].any() for name in quiet)


def test_a_joint_that_fits_no_ending_or_two_is_an_error():
    with pytest.raises(PlaygroundError, match="'toe' fits 0"):
        joint_noise(["toe"], {"knee": 1.0})
    with pytest.raises(PlaygroundError, match="'left_knee' fits 2"):
        joint_noise(["left_knee"], {"knee": 1.0, "left_knee": 1.0})


def test_noise_fills_its_bounds_and_scales_with_the_level(batch, rollout):
    task = batch.task
    state = jax.tree.map(lambda x: x[0], rollout[0][-1])
    subject = Subject(state, task.robot.sense(state.data))
    plain, n = task.observation.build(subject), 2000
    keys = jax.random.split(jax.random.key(1), n)
    build = jax.jit(jax.vmap(task.observation.build, in_axes=(None, 0, None)))
    bound = task.observation.noise * task.observation.scale
    for level in (1.0, 0.5):
        noise = np.asarray(build(subject, keys, level) - plain)
        largest = np.abs(noise).max(0)
        # Up to the rounding of the observation itself.
        assert (largest <= level * bound + 2e-6).all()
        assert (largest >= 0.98 * level * bound).all()
        # A mean of n uniform numbers stays within 5 sigma.
        assert (
            np.abs(noise.mean(0)) <= 5 * level * bound / (3 * n) ** 0.5 + 2e-6
        ).all()
        assert np.unique(noise[:, bound > 0]).size > 0.9 * n * (bound > 0).sum() / 2
    still = np.tile(plain, (n, 1))
    np.testing.assert_allclose(build(subject, keys, 0.0), still, atol=2e-7)


def test_the_policy_sees_noise_and_the_critic_none(batch, rollout):
    states, seen, _ = rollout
    bound = batch.task.observation.noise * batch.task.observation.scale
    errors = np.array([o["state"] - o["privileged_state"][:, :101] for o in seen])
    assert (np.abs(errors) <= bound + 2e-6).all()
    noisy = errors[:, :, bound > 0]
    # Fresh at every step and for every robot.
    assert (np.abs(np.diff(noisy, axis=0)).max(2) > 0.1).all()
    assert (np.abs(np.diff(noisy, axis=1)).max(2) > 0.1).all()
    last = states[-1]
    rebuilt = jax.vmap(
        lambda s: batch.task.observation.build(
            Subject(s, batch.task.robot.sense(s.data))
        )
    )(last)
    exactly = seen[-1]["privileged_state"][:, :101]
    np.testing.assert_allclose(exactly, rebuilt, atol=1e-6)
