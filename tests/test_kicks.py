"""Kicks deliver the momentum that was drawn, in all directions, time and again."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import ROBOTS

from playground.tasks.config import KickConfig
from playground.tasks.kicks import Kick, draw_kick, kick_wrench

replace = dataclasses.replace
NOTHING = jnp.zeros((ROBOTS, 14))


def momentum(model, qpos, qvel) -> np.ndarray:
    """[3] N·s of the whole robot, by C MuJoCo."""
    data = mujoco.MjData(model)
    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    return model.body_subtreemass[0] * data.subtree_linvel[0]


def test_a_kick_delivers_the_momentum_that_was_drawn(batch):
    """In the air, where nothing else pushes sideways; it begins within a step."""
    state, _ = batch.start(2)
    state = replace(
        state, data=replace(state.data, qpos=state.data.qpos.at[:, 2].set(1.0))
    )
    start = jnp.linspace(0.031, 0.061, ROBOTS)
    state = replace(state, kick=replace(state.kick, start=start))
    first, before = state.kick, state
    for _ in range(9):
        state, outcome = batch.step(state, NOTHING)
    assert not outcome.done.any()
    for i in range(ROBOTS):
        model = batch.task.physics.models[int(state.data.model_index[i])]
        gained = momentum(model, state.data.qpos[i], state.data.qvel[i]) - momentum(
            model, before.data.qpos[i], before.data.qvel[i]
        )
        np.testing.assert_allclose(gained[:2], first.impulse[i, :2], atol=5e-4)
        assert np.linalg.norm(gained[:2]) > 0.1


def test_kicks_are_drawn_in_their_ranges_in_all_directions(batch):
    config, n, mass = KickConfig((0.1, 0.3), (2.0, 5.0)), 2000, 2.0
    keys = jax.random.split(jax.random.key(0), n)
    kicks = jax.jit(jax.vmap(lambda k: draw_kick(k, 10.0, mass, config)))(keys)
    speed = np.linalg.norm(kicks.impulse, axis=1) / mass
    for values, low, high in ((speed, 0.1, 0.3), (kicks.start - 10.0, 2.0, 5.0)):
        assert low - 1e-5 <= values.min() < low + 0.02 * (high - low)
        assert high + 1e-5 >= values.max() > high - 0.02 * (high - low)
    assert not kicks.impulse[:, 2].any()
    quadrant = np.floor(np.arctan2(*kicks.impulse[:, 1::-1].T) / (np.pi / 2))
    shares = np.unique(quadrant, return_counts=True)[1] / n
    assert shares.shape == (4,) and (np.abs(shares - 0.25) < 0.04).all()


@pytest.mark.parametrize(("start", "duration"), [(0.03, 0.1), (0.0313, 0.0171)])
def test_the_force_of_a_kick_sums_to_its_impulse(start, duration):
    kick = Kick(jnp.float32(start), jnp.array([1.0, -2.0, 0.0]))
    config = KickConfig((0.1, 0.2), (1.0, 2.0), duration)
    times = 0.02 * jnp.arange(20)
    wrench = jax.vmap(lambda t: kick_wrench(kick, t, 5, 0.004, config))(times)
    np.testing.assert_allclose(0.004 * wrench.sum((0, 1))[:3], kick.impulse, rtol=1e-4)
    assert not wrench[..., 3:].any()
    steps = wrench.reshape(100, 6)[:, 0] != 0
    first, last = np.flatnonzero(steps)[[0, -1]]
    assert first == int(start / 0.004) and 0.004 * last < start + duration


def test_a_kick_that_is_over_is_followed_by_another_after_a_pause(batch):
    state, _ = batch.start(4)
    for _ in range(38):
        before = state.kick
        state, _ = batch.step(state, NOTHING)
        over = np.asarray(before.start) + 0.1
        now = np.asarray(state.step) * 0.02
        changed = np.asarray(state.kick.start != before.start)
        np.testing.assert_array_equal(changed, now >= over - 1e-6)
        pause = np.asarray(state.kick.start) - over
        assert ((pause >= 0.2 - 1e-5) & (pause <= 0.4 + 1e-5))[changed].all()
    assert np.asarray(state.kick.start).min() > 0.5
