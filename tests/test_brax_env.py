"""The edge to Brax: restarts of a batch, divergence within it, Brax's own wrappers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax.envs.wrappers.training import wrap
from conftest import ROBOTS, assert_equal, leaves, quick_jit, small_task

from playground.tasks.brax_env import BraxEnv
from playground.tasks.locomotion import Locomotion
from playground.tasks.policy_observation import Subject

replace = dataclasses.replace
LAST = 39  # the step before the end of an episode of 0.8 s


@pytest.fixture(scope="module")
def ended(batch, training_env):
    """A batch before and after a step in which half of the robots' time is up.

    Returns (state, action, next state, what the task alone makes of the step).
    """
    state = training_env.reset(jax.random.split(jax.random.key(3), ROBOTS))
    rng = np.random.default_rng(0)
    for _ in range(5):
        action = jnp.asarray(rng.uniform(-1, 1, (ROBOTS, 14)), jnp.float32)
        state = training_env.step(state, action)
    inner = state.pipeline_state
    step = jnp.where(jnp.arange(ROBOTS) % 2 == 0, LAST, inner.step).astype(jnp.int32)
    # Two of those that restart and two of the others hold their command.
    hold = jnp.arange(ROBOTS) < 4
    inner = replace(inner, step=step, hold_command=hold)
    state = state.replace(pipeline_state=inner)
    return state, action, training_env.step(state, action), batch.step(inner, action)


def rows(tree, robots):
    return jax.tree.map(lambda x: x[robots], tree)


DONE, ON = np.arange(0, ROBOTS, 2), np.arange(1, ROBOTS, 2)


def test_only_the_robots_that_are_done_restart(ended):
    _, _, after, (moved, outcome) = ended
    np.testing.assert_array_equal(np.flatnonzero(after.done), DONE)
    np.testing.assert_array_equal(after.info["truncation"], after.done)
    assert not after.info["terminated"].any()
    for name in ("reward", "obs"):
        got, wanted = getattr(after, name), getattr(outcome, name)
        assert_close(rows(got, ON), rows(wanted, ON))
    np.testing.assert_allclose(after.reward, outcome.reward, atol=1e-5)
    assert_close(rows(after.pipeline_state, ON), rows(moved, ON))
    np.testing.assert_array_equal(after.pipeline_state.step[DONE], 0)


def assert_close(one, other) -> None:
    others = leaves(other)
    for name, value in leaves(one).items():
        np.testing.assert_allclose(
            value, others[name], atol=2e-4, rtol=2e-5, err_msg=name
        )


def test_what_is_observed_is_of_the_new_episode_and_the_end_is_kept(batch, ended):
    _, _, after, (_, outcome) = ended
    assert_close(after.info["final_observation"], outcome.obs)
    table, sense = batch.task.observation, batch.task.robot.sense
    rebuilt = jax.vmap(lambda s: table.build(Subject(s, sense(s.data))))(
        after.pipeline_state
    )
    seen = after.obs["privileged_state"][:, :101]
    np.testing.assert_allclose(seen, rebuilt, atol=1e-5)
    final = after.info["final_observation"]["privileged_state"][:, :101]
    same = np.isclose(seen, final, atol=1e-6).all(1)
    np.testing.assert_array_equal(np.flatnonzero(same), ON)
    noise = after.obs["state"] - seen
    bound = table.noise * table.scale
    assert (np.abs(noise) <= bound + 1e-5).all() and np.abs(noise).max() > 0.05


def test_every_field_of_an_episode_is_renewed(batch, ended):
    """What comes out of a restart does not depend on the old episode.

    Only the random stream and a command that is held go on.
    """
    state, *_ = ended
    inner = state.pipeline_state
    restart = quick_jit(jax.vmap(batch.task.restart))
    done = jnp.ones(ROBOTS, bool)

    def spoilt(leaf):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf
        if leaf.dtype == bool:
            return ~leaf
        return jnp.full_like(leaf, jnp.nan if leaf.dtype == jnp.float32 else 99)

    kept = {"key": inner.key, "hold_command": inner.hold_command}
    hold = inner.hold_command[:, None]
    poisoned = jax.tree.map(spoilt, inner)
    poisoned = replace(
        poisoned, **kept, command=jnp.where(hold, inner.command, jnp.nan)
    )
    fresh = restart(inner, done)
    assert_equal(fresh, restart(poisoned, done))
    assert all(np.isfinite(v).all() for v in leaves(fresh).values())
    np.testing.assert_array_equal(fresh[0].command[:4], inner.command[:4])
    assert (fresh[0].command[4:] != inner.command[4:]).any(axis=1).sum() >= 10
    np.testing.assert_array_equal(fresh[0].hold_command, inner.hold_command)


def test_a_fresh_episode_starts_as_one_after_a_reset(batch, ended):
    _, _, after, _ = ended
    new = rows(after.pipeline_state, DONE)
    home = np.tile(batch.task.robot.home_pose, (len(DONE), 1))
    np.testing.assert_allclose(new.actions.targets, home, atol=1e-6)
    for zero in (
        new.actions.recent,
        new.actions.delayed.values,
        new.data.time,
        new.data.qvel,
        new.data.warmstart,
        new.feet.air_time,
    ):
        assert not np.asarray(zero).any()
    imu = np.asarray(new.imu.values)
    np.testing.assert_array_equal(imu, np.repeat(imu[:, :1], imu.shape[1], 1))
    # At rest, and as if it had always been.
    assert np.abs(new.motion.recent).max() < 1e-6
    start = np.asarray(new.kick.start)
    assert (start >= 0.2 - 1e-6).all() and (start <= 0.4 + 1e-6).all()
    # Held commands stay; robots 0 and 2 hold theirs.
    before = rows(ended[0].pipeline_state, DONE)
    np.testing.assert_array_equal(new.command[:2], before.command[:2])
    for distinct in (new.data.qpos, new.kick.impulse, jax.random.key_data(new.key)):
        assert len(np.unique(distinct, axis=0)) == len(DONE)


@pytest.mark.parametrize("how", ["action", "qvel", "qpos"])
def test_a_diverged_robot_restarts_and_nothing_of_it_gets_out(training_env, how):
    state = training_env.reset(jax.random.split(jax.random.key(4), ROBOTS))
    nothing = jnp.zeros((ROBOTS, 14))
    state, action, bad = training_env.step(state, nothing), nothing, 7
    spoilt = state
    if how == "action":
        action = action.at[bad, 0].set(jnp.nan)
    else:
        data = state.pipeline_state.data
        number = jnp.nan if how == "qpos" else 1e9
        data = replace(data, **{how: getattr(data, how).at[bad, 9].set(number)})
        spoilt = state.replace(pipeline_state=replace(state.pipeline_state, data=data))
    after, untouched = (
        training_env.step(spoilt, action),
        training_env.step(state, nothing),
    )
    np.testing.assert_array_equal(np.flatnonzero(after.info["diverged"]), [bad])
    np.testing.assert_array_equal(np.flatnonzero(after.done), [bad])
    rest = np.arange(ROBOTS) != bad
    assert_equal(rows(after, rest), rows(untouched, rest))
    learned = (after.obs, after.reward, after.metrics, after.pipeline_state)
    assert all(np.isfinite(v).all() for v in leaves(learned).values())
    assert int(after.pipeline_state.step[bad]) == 0
    again = training_env.step(after, nothing)
    assert not again.info["diverged"].any() and not again.done.any()


def test_no_observed_number_is_constant_and_none_is_forgotten(training_env):
    """Over robots and steps every channel varies, those of the critic too."""
    state = training_env.reset(jax.random.split(jax.random.key(5), ROBOTS))
    rng, seen = np.random.default_rng(1), []
    for _ in range(60):
        action = jnp.asarray(rng.uniform(-1, 1, (ROBOTS, 14)), jnp.float32)
        state = training_env.step(state, action)
        seen.append(state.obs)
    for name in ("state", "privileged_state"):
        values = np.array([obs[name] for obs in seen])
        assert np.isfinite(values).all()
        assert (values.std(axis=(0, 1)) > 1e-3 * values.std()).all(), name
    assert state.obs["state"].shape == (ROBOTS, 101)


def test_a_reset_and_a_step_have_the_same_types(training_env):
    """Else every program would be compiled twice: after a reset and after a step."""
    keys = jax.random.split(jax.random.key(0), ROBOTS)
    after_reset = jax.eval_shape(training_env.reset, keys)
    action = jax.ShapeDtypeStruct((ROBOTS, 14), jnp.float32)
    after_step = jax.eval_shape(training_env.step, after_reset, action)
    types = [
        jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), tree)
        for tree in (after_reset, after_step)
    ]
    assert types[0] == types[1]


def test_the_sizes_are_told(batch):
    env = BraxEnv(batch.task)
    shapes = jax.eval_shape(env.reset, jax.random.PRNGKey(0)).obs
    assert env.observation_size == {n: s.shape[0] for n, s in shapes.items()}
    assert env.observation_size["state"] == 101 and env.action_size == 14
    assert env.backend == "native"


def test_brax_wraps_it_and_tells_falls_from_the_end_of_the_time(batch):
    """Legacy keys at Brax's edge: its wrappers read the shape of the key."""
    length, task = 6, batch.task
    env = wrap(BraxEnv(task), episode_length=length)
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    assert keys.dtype == jnp.uint32
    state = quick_jit(env.reset)(keys)
    step, first = quick_jit(env.step), state
    for i in range(length):
        assert not state.done.any()
        if i == 3:  # robot 2 is thrown on its back
            inner = state.pipeline_state
            qpos = inner.data.qpos.at[2, 3:7].set(jnp.array([0.0, 1.0, 0.0, 0.0]))
            inner = replace(inner, data=replace(inner.data, qpos=qpos))
            state = step(state.replace(pipeline_state=inner), jnp.zeros((4, 14)))
            np.testing.assert_array_equal(state.done, [0, 0, 1, 0])
            np.testing.assert_array_equal(state.info["truncation"], [0, 0, 0, 0])
            np.testing.assert_array_equal(state.info["terminated"], [0, 0, 1, 0])
            state = state.replace(done=jnp.zeros(4))
            state.info["steps"] = jnp.full(4, 4.0)
        else:
            state = step(state, jnp.zeros((4, 14)))
    np.testing.assert_array_equal(state.done, 1)
    np.testing.assert_array_equal(state.info["truncation"], 1)
    assert_equal(state.obs, first.obs)
    assert_equal(state.pipeline_state, first.pipeline_state)
    lengths = state.info["episode_metrics"]["length"]
    np.testing.assert_array_equal(lengths, [6, 6, 2, 6])


@pytest.mark.slow
def test_the_engines_agree_on_a_step(batch):
    """MJX against C MuJoCo: one control step of 16 robots, the same models."""
    state, _ = batch.start(6)
    action = jax.random.uniform(jax.random.key(1), (ROBOTS, 14), minval=-1.0)
    mjx = Locomotion(small_task(engine="mjx"))
    together = [
        jax.jit(jax.vmap(task.step))(state, action) for task in (batch.task, mjx)
    ]
    (native, native_out), (other, mjx_out) = together
    # Neither engine iterates until contacts have converged, so some differ a little.
    for name, most, worst in (("qpos", 1e-4, 0.02), ("qvel", 1e-2, 2.0)):
        error = getattr(native.data, name) - getattr(other.data, name)
        error = np.abs(error).max(axis=1)
        assert np.median(error) < most and error.max() < worst, name
    seen = [out.obs["privileged_state"][:, :101] for out in (native_out, mjx_out)]
    error = np.abs(seen[0] - seen[1])
    assert np.median(error) < 1e-5 and np.quantile(error, 0.95) < 1e-2
    np.testing.assert_allclose(native_out.reward, mjx_out.reward, atol=2e-3)
    np.testing.assert_array_equal(native_out.terminated, mjx_out.terminated)
