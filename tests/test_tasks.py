"""Episodes: commands, ends, divergence; and that a step is a pure function."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROBOTS, assert_equal, leaves, quick_jit

from playground.controllers.reference_gait import GaitShape
from playground.tasks.commands import draw_command
from playground.tasks.config import COMMAND_NAMES
from playground.tasks.registry import TASKS
from playground.tasks.state import heading_velocity

replace = dataclasses.replace
JOYSTICK = TASKS["open_duck_joystick"].config
NOTHING = jnp.zeros((ROBOTS, 14))
ASKED = (0.1, -0.05, 0.3, 0.2, 0.1, -0.4, 0.05)


def with_data(state, **fields):
    return replace(state, data=replace(state.data, **fields))


def robots_that_agree(one, other) -> int:
    return int((np.asarray(one) == np.asarray(other)).reshape(ROBOTS, -1).all(1).sum())


# chance


@pytest.mark.parametrize("name", TASKS)
def test_commands_are_drawn_from_their_ranges(name):
    config, n = TASKS[name].config.command, 4000
    keys = jax.random.split(jax.random.key(0), n)
    drawn = np.asarray(jax.jit(jax.vmap(lambda k: draw_command(k, config)))(keys))
    low, high = config.ranges.T
    assert (drawn >= low - 1e-6).all() and (drawn <= high + 1e-6).all()
    # Each end of each range is nearly reached.
    assert (drawn.min(0) <= 0.97 * low).all() and (drawn.max(0) >= 0.97 * high).all()
    # Nearly zero is zero: what is left moves along one axis at least.
    some = drawn[drawn[:, :3].any(axis=1), :3]
    assert (np.abs(some) >= config.deadband).any(axis=1).all()


def test_a_tenth_of_the_commands_is_zero_and_others_move_along_one_axis():
    config, n = replace(JOYSTICK.command, deadband=(0.0, 0.0, 0.0)), 4000
    keys = jax.random.split(jax.random.key(1), n)
    drawn = np.asarray(jax.jit(jax.vmap(lambda k: draw_command(k, config)))(keys))
    zero = ~drawn.any(axis=1)
    assert config.zero_fraction == 0.1
    assert abs(zero.mean() - 0.1) < 4 * (0.1 * 0.9 / n) ** 0.5  # 4 sigma
    drawn = drawn[~zero]
    heads = drawn[:, 3:].any(axis=1)
    assert abs(heads.mean() - config.head_fraction) < 0.04
    single = (drawn[:, :3] != 0).sum(1) == 1
    assert abs(single.mean() - config.single_axis_fraction) < 0.04
    assert (np.abs((drawn[single, :3] != 0).mean(0) - 1 / 3) < 0.07).all()


def test_commands_are_drawn_anew_every_so_often_and_observed_at_once(batch):
    state, _ = batch.start(1)
    commands = [state.command]
    for _ in range(21):
        before = state.command
        state, outcome = batch.step(state, NOTHING)
        commands.append(state.command)
        seen = outcome.obs["state"][:, 6:13]
        np.testing.assert_array_equal(seen, state.command)
        if robots_that_agree(before, state.command) < ROBOTS:
            # What is rewarded is what was asked before.
            assert int(state.step[0]) in (10, 20)
    changes = np.diff(np.array(commands), axis=0).any(axis=2)
    changed = changes.sum(1)
    assert set(np.flatnonzero(changed)) == {9, 19}  # 0.2 s, 0.4 s
    assert (changed[[9, 19]] >= ROBOTS - 2).all()  # a zero may follow a zero


def test_a_command_that_is_held_stays(batch):
    state, _ = batch.start(1, ASKED)
    for _ in range(21):
        state, _ = batch.step(state, NOTHING)
        np.testing.assert_allclose(
            state.command, jnp.tile(jnp.array(ASKED), (ROBOTS, 1))
        )


def test_the_same_key_gives_the_same_episode_and_another_another(batch):
    runs = []
    for seed in (5, 5, 6):
        state, obs = batch.start(seed)
        for i in range(4):
            action = NOTHING + 0.1 * i
            state, outcome = batch.step(state, action)
        runs.append((state, obs, outcome))
    assert_equal(runs[0], runs[1])
    one, other = runs[0][0], runs[2][0]
    for part in ("data.qpos", "kick.start", "kick.impulse", "key"):
        values = [leaves(state)["." + part] for state in (one, other)]
        assert robots_that_agree(*values) == 0, part
    assert robots_that_agree(one.command, other.command) <= 2


def test_no_two_robots_of_a_batch_are_alike(batch):
    state, _ = batch.start(0)
    distinct = {n: len(np.unique(v, axis=0)) for n, v in leaves(state).items()}
    for part in (".data.qpos", ".kick.start", ".kick.impulse", ".key"):
        assert distinct[part] == ROBOTS, part
    assert distinct[".command"] >= ROBOTS - 3  # zeros are alike
    assert distinct[".data.model_index"] == 3
    assert distinct[".phase"] > 6


def test_no_random_key_is_used_twice(batch):
    """JAX's own checker follows the keys through reset and step."""
    key, action = jax.random.key(0), jnp.zeros(14)
    with jax.debug_key_reuse(True):
        state, _ = jax.eval_shape(jax.jit(batch.task.reset), key)
        jax.eval_shape(jax.jit(batch.task.step), state, action)
        with pytest.raises(jax.errors.KeyReuseError):
            jax.eval_shape(jax.jit(lambda k: [jax.random.normal(k)] * 2 + [k, k]), key)
            jax.eval_shape(
                jax.jit(lambda k: jax.random.normal(k) + jax.random.normal(k)), key
            )


# what is measured


def test_the_velocity_is_right_whichever_way_the_robot_faces(batch):
    """Moving along world x at 0.2 m/s while facing 0, 90, 180 and 270 degrees."""
    task, yaw = batch.task, np.pi / 2 * np.arange(4)
    qpos = np.tile(task.robot.home_qpos, (4, 1))
    qpos[:, 3], qpos[:, 6] = np.cos(yaw / 2), np.sin(yaw / 2)
    qvel = np.zeros((2, 4, task.robot.model.nv))
    qvel[0, :, 0], qvel[1, :, 5] = 0.2, 0.7
    home = jnp.asarray(task.robot.home_pose)

    def measure(qpos, qvel):
        return heading_velocity(task.robot.sense(task.physics.init(qpos, qvel, home)))

    measure = jax.jit(jax.vmap(jax.vmap(measure), in_axes=(None, 0)))
    moving, turning = measure(jnp.asarray(qpos), jnp.asarray(qvel))
    wanted = 0.2 * np.stack([np.cos(yaw), -np.sin(yaw), 0 * yaw], 1)
    np.testing.assert_allclose(moving, wanted, atol=1e-5)
    np.testing.assert_allclose(turning[:, 2], 0.7, atol=1e-5)


def test_the_reward_is_the_sum_of_the_terms_times_the_period_once(batch):
    state, _ = batch.start(7)
    weights = dataclasses.asdict(batch.task.config.weights)
    for _ in range(3):
        state, outcome = batch.step(state, NOTHING + 0.3)
        assert set(outcome.terms) == {name for name, w in weights.items() if w}
        total = sum(np.asarray(term, float) for term in outcome.terms.values())
        np.testing.assert_allclose(outcome.reward, 0.02 * total, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(outcome.terms["alive"], weights["alive"])


# ends


def tilted(state, degrees: float):
    """The robots 1 m up, rolled about x."""
    qpos = state.data.qpos.at[:, 2].set(1.0)
    half = np.deg2rad(degrees) / 2
    quat = jnp.array([np.cos(half), np.sin(half), 0.0, 0.0])
    return with_data(state, qpos=qpos.at[:, 3:7].set(quat))


def ends(outcome) -> tuple[bool, bool, bool]:
    """(terminated, truncated, diverged) of the whole batch, which agrees."""
    flags = (outcome.terminated, outcome.truncated, outcome.diverged)
    assert all(flag.all() == flag.any() for flag in flags)
    return tuple(bool(flag.all()) for flag in flags)


@pytest.mark.parametrize(
    ("degrees", "step", "wanted"),
    [
        (0, 5, (False, False, False)),
        (57, 5, (False, False, False)),
        (63, 5, (True, False, False)),
        (0, 38, (False, False, False)),
        (0, 39, (False, True, False)),
        (63, 39, (True, False, False)),
    ],
)
def test_falls_and_the_end_of_the_time_are_told_apart(batch, degrees, step, wanted):
    state, _ = batch.start(0)
    steps = jnp.full(ROBOTS, step, jnp.int32)
    state = replace(tilted(state, degrees), step=steps)
    state, outcome = batch.step(state, NOTHING)
    assert ends(outcome) == wanted
    alive = batch.task.config.weights.alive
    np.testing.assert_array_equal(outcome.terms["alive"], 0.0 if wanted[0] else alive)


@pytest.mark.parametrize("how", ["action nan", "action inf", "qvel 1e8", "qpos nan"])
def test_a_diverged_robot_is_ended_and_the_others_never_notice(batch, how):
    state, _ = batch.start(0)
    where, number = how.split()
    number, action = float(number), NOTHING
    bad = state
    if where == "action":
        action = action.at[3, 5].set(number)
    else:
        values = getattr(state.data, where).at[3, 8].set(number)
        bad = with_data(state, **{where: values})
    after, outcome = batch.step(bad, action)
    _, untouched = batch.step(state, NOTHING)
    for flag in (outcome.diverged, outcome.terminated):
        np.testing.assert_array_equal(np.flatnonzero(flag), [3])
    assert not outcome.truncated.any()
    rest = np.arange(ROBOTS) != 3
    assert_equal(*(jax.tree.map(lambda x: x[rest], o) for o in (outcome, untouched)))
    assert float(outcome.reward[3]) == 0.0
    if how != "qpos nan":  # else what it had before is not finite either
        told = leaves((after, outcome))
        assert all(np.isfinite(v).all() for v in told.values() if v.dtype.kind == "f")
        np.testing.assert_array_equal(after.data.qpos[3], bad.data.qpos[3])


# purity


def test_a_step_changes_nothing_that_it_was_given(batch):
    state, _ = batch.start(0)
    before = jax.tree.map(np.copy, leaves(state))
    batch.step(state, NOTHING)
    assert_equal(leaves(state), before)


def test_a_robot_alone_does_what_it_does_in_a_batch(batch):
    state, _ = batch.start(8)
    action = jax.random.uniform(jax.random.key(0), (ROBOTS, 14), minval=-1.0)
    together = batch.step(state, action)
    alone = quick_jit(batch.task.step)
    for i in (0, 5):
        single = alone(jax.tree.map(lambda x, i=i: x[i], state), action[i])
        wanted = leaves(jax.tree.map(lambda x, i=i: x[i], together))
        for name, value in leaves(single).items():
            np.testing.assert_allclose(
                value, wanted[name], atol=2e-5, rtol=2e-5, err_msg=name
            )


@pytest.mark.slow
def test_eager_and_compiled_agree(batch):
    state, _ = batch.start(9)
    wanted = leaves(batch.step(state, NOTHING + 0.2))
    with jax.disable_jit():
        eager = leaves(jax.vmap(batch.task.step)(state, NOTHING + 0.2))
    for name, value in eager.items():
        np.testing.assert_allclose(
            value, wanted[name], atol=2e-5, rtol=2e-5, err_msg=name
        )


def test_the_teacher_plays_the_gait_where_motion_is_asked_and_holds_the_head(batch):
    """Its legs stay within what an action can ask for."""
    task, joints = batch.task, batch.task.robot.joints
    teach, shape = jax.jit(jax.vmap(task.teacher)), GaitShape.of(task.config.gait)
    gait = jax.vmap(task.guide.gait.target_offsets, in_axes=(None, 0, None))
    state, _ = batch.start(0)
    for command in (ASKED, (0.0, 0.0, 0.0, *ASKED[3:])):
        asked = jnp.asarray(command, jnp.float32)
        action = teach(state, jnp.tile(asked, (ROBOTS, 1)))
        offsets = dict(zip(joints, 0.25 * np.asarray(action).T, strict=True))
        for name, angle in zip(COMMAND_NAMES[3:], command[3:], strict=True):
            np.testing.assert_allclose(offsets[name], angle, atol=1e-6)
        legs = np.stack([offsets[joints[i]] for i in task.guide.joints], axis=1)
        wanted = gait(shape, state.phase, asked).clip(-0.25, 0.25) * any(command[:3])
        np.testing.assert_allclose(legs, wanted, atol=1e-5)
