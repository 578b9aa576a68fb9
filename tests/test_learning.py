"""PPO learns what it should, whatever a robot does; its policy leaves as it is."""

import dataclasses
import logging
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax.envs.base import Env, State
from conftest import QUICK, ROBOTS, leaves, move_to, quick_jit
from jax.sharding import Mesh

from playground.config import config_hash
from playground.errors import PlaygroundError
from playground.learning.config import NetworkConfig, PPOConfig, WarmStartConfig
from playground.learning.export import export_policy
from playground.learning.networks import deterministic_policy
from playground.learning.ppo import AXIS, PPO
from playground.learning.train import Trainer
from playground.policy.runner import load_policy
from playground.tasks.contract import published_contract


class Probe(Env):
    """Episodes of one step; the best action is half of what is observed."""

    observation_size = {"state": 2, "privileged_state": 3}  # noqa: RUF012
    action_size, backend = 2, "none"

    def reset(self, keys):
        obs = jax.vmap(lambda key: jax.random.uniform(key, (2,), minval=-1.0))(keys)
        zero = jnp.zeros(len(keys))
        return self._state(keys, obs, zero, zero)

    def step(self, state, action):
        reward = -jnp.square(action - 0.5 * state.obs["state"]).sum(-1)
        keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(state.pipeline_state)
        fresh = self.reset(keys)
        return self._state(keys, fresh.obs["state"], reward, jnp.ones(len(keys)))

    def _state(self, keys, obs, reward, done):
        info = {
            "truncation": jnp.zeros_like(done),
            "terminated": done.astype(bool),
            "diverged": jnp.zeros_like(done, bool),
            "terms": {"error": reward},
        }
        critic = jnp.concatenate([obs, obs[:, :1] * obs[:, 1:]], axis=1)
        observed = {"state": obs, "privileged_state": critic}
        return State(keys, observed, reward, done, {}, info)


def probe_ppo(**changes) -> PPO:
    config = PPOConfig(
        num_envs=64,
        unroll_length=8,
        learning_rate=3e-3,
        entropy_cost=1e-4,
        policy_warmup=0,
        **changes,
    )
    mesh = Mesh(np.array(jax.devices()[:1]), (AXIS,))
    network = NetworkConfig(policy_layers=(32,), value_layers=(32,))
    return PPO(Probe(), config, network, WarmStartConfig(steps=0), mesh)


def mean_action(ppo: PPO, state, obs):
    act = deterministic_policy(ppo.networks, state.normalizer, state.params.policy)
    return np.asarray(act(jnp.asarray(obs, jnp.float32)))


def test_ppo_finds_the_known_best_action_of_a_probe():
    ppo = probe_ppo(reward_scale=1.0)
    state = ppo.init(jax.random.key(0))
    first = last = None
    for i in range(150):
        state, metrics = ppo.iterate(state)
        last = float(metrics["reward/total"])
        first = last if i == 0 else first
    obs = np.random.default_rng(0).uniform(-0.9, 0.9, (200, 2))
    error = mean_action(ppo, state, obs) - 0.5 * obs
    assert np.sqrt(np.square(error).mean()) < 0.05
    assert first < -0.5 and last > -0.05
    # Every step is an episode; none of them diverges.
    assert float(metrics["count/episodes"]) == float(metrics["count/falls"]) == 64 * 8
    assert float(metrics["count/diverged"]) == 0.0
    assert metrics["reward/error"] == pytest.approx(last, rel=1e-5)
    assert int(state.iteration) == 150


def test_no_random_key_of_the_learner_is_used_twice():
    ppo = probe_ppo()
    with jax.debug_key_reuse(True):
        state = jax.eval_shape(ppo.init, jax.random.key(0))
        assert jax.tree.leaves(jax.eval_shape(ppo.iterate, state))


def test_the_abstract_state_is_that_of_init():
    ppo = probe_ppo()
    state, abstract = ppo.init(jax.random.key(1)), ppo.abstract()
    for leaf, shape in zip(
        jax.tree.leaves(state), jax.tree.leaves(abstract), strict=True
    ):
        assert (leaf.shape, leaf.dtype) == (shape.shape, shape.dtype)
        assert not getattr(leaf, "weak_type", False), (
            "a checkpoint would bring it back as another type"
        )
        assert leaf.sharding.is_equivalent_to(shape.sharding, leaf.ndim)


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(PlaygroundError, match="nearest: 60 or 66"):
        probe_ppo(num_minibatches=6)


# the real task


@pytest.fixture(scope="module")
def begun(trainer):
    """The state as PPO begins with it."""
    return trainer.ppo.init(jax.random.key(0))


def copy_of(state):
    """`iterate` takes its argument's memory."""
    return jax.tree.map(jnp.copy, state)


def test_the_warm_start_leaves_a_policy_that_does_what_the_teacher_does(
    trainer, begun, training_env
):
    """Its error is less than half of the teacher's own size (RMS of actions)."""
    warm = WarmStartConfig(steps=75, updates=600, batch_size=256)
    config = dataclasses.replace(trainer.config, warm_start=warm)
    ppo = Trainer(config, trainer.run).ppo
    init = ppo.init.lower(jax.random.key(0)).compile(compiler_options=QUICK)
    start, teach = init(jax.random.key(0)), quick_jit(jax.vmap(trainer.task.teacher))
    env, untrained = jax.tree.map(lambda x: x[:ROBOTS], start.env), begun
    errors, before, sizes = [], [], []
    for _ in range(20):
        robots = env.pipeline_state
        wanted = np.clip(teach(robots, robots.command), -0.95, 0.95)
        errors.append(mean_action(ppo, start, env.obs["state"]) - wanted)
        before.append(mean_action(ppo, untrained, env.obs["state"]) - wanted)
        sizes.append(wanted)
        env = training_env.step(env, jnp.asarray(wanted))
    error, unfit, size = (
        np.sqrt(np.square(np.array(x)).mean()) for x in (errors, before, sizes)
    )
    print(
        f"RMS of the error {error:.3f}, before {unfit:.3f}, of the teacher {size:.3f}"
    )
    assert size > 0.3 and error < 0.5 * size and unfit > size
    logits = ppo.networks.policy_network.apply(
        start.normalizer, start.params.policy, env.obs
    )
    std = np.logaddexp(0, logits[:, 14:]) + 0.001
    assert abs(np.median(std) - warm.exploration_std) < 0.1
    count = start.normalizer.count
    assert float(getattr(count, "lo", count)) == 75 * config.ppo.num_envs


def test_an_iteration_counts_and_compiles_once(trainer, begun, caplog):
    """What `init` and `iterate` return, and `copy_of`, is of the same types."""
    state = copy_of(begun)
    with jax.log_compiles(), caplog.at_level(logging.WARNING, "jax"):
        for i in range(3):
            state, metrics = trainer.ppo.iterate(state)
            assert int(state.iteration) == i + 1
    assert caplog.text.count("Compiling jit(_iterate)") <= 1
    weights = dataclasses.asdict(trainer.config.env.weights)
    terms = {f"reward/{name}" for name, w in weights.items() if w}
    assert terms <= set(metrics) and "reward/total" in metrics
    total = sum(float(metrics[name]) for name in terms) * 0.02
    assert float(metrics["reward/total"]) == pytest.approx(total, rel=1e-4, abs=1e-6)
    assert all(np.isfinite(float(value)) for value in metrics.values())


def test_the_same_state_gives_the_same_iteration(trainer, begun):
    one, other = (trainer.ppo.iterate(copy_of(begun)) for _ in range(2))
    for name, value in leaves(one).items():
        np.testing.assert_array_equal(value, leaves(other)[name], err_msg=name)
    before, after = leaves(begun.params), leaves(one[0].params)
    assert all((before[name] != after[name]).any() for name in before)


@pytest.mark.parametrize("how", ["qpos", "qvel"])
def test_diverged_robots_never_reach_normaliser_or_weights(trainer, begun, how):
    state = copy_of(begun)
    inner = state.env.pipeline_state
    number = jnp.nan if how == "qpos" else 1e12
    values = getattr(inner.data, how).at[jnp.array([0, 9, 31]), 8].set(number)
    inner = dataclasses.replace(
        inner, data=dataclasses.replace(inner.data, **{how: values})
    )
    state = dataclasses.replace(state, env=state.env.replace(pipeline_state=inner))
    state, metrics = trainer.ppo.iterate(state)
    assert float(metrics["count/diverged"]) == 3
    assert float(metrics["count/falls"]) >= 3
    assert all(np.isfinite(float(value)) for value in metrics.values())
    learned = (state.params, state.optimizer, state.normalizer, state.env.obs)
    for name, value in leaves(learned).items():
        assert np.isfinite(value).all(), name
    largest = np.abs(state.normalizer.mean["state"]).max()
    assert largest < 100
    state, metrics = trainer.ppo.iterate(state)
    assert float(metrics["count/diverged"]) == 0


@pytest.fixture(scope="module")
def trained(trainer, tmp_path_factory):
    """A whole short run."""
    run = move_to(trainer, tmp_path_factory.mktemp("trained"), total_steps=480)
    return run, run.train()


def test_a_run_ends_with_its_score_and_all_its_files(trained):
    run, result = trained
    assert (result.env_steps, result.signal) == (480, None)
    assert result.score is not None and result.score.episodes == 7
    assert 0 < result.score.length <= 1.0 and np.isfinite(result.score.reward)
    names = {path.name for path in run.run.path.iterdir()}
    assert names == {"checkpoints", "config.yaml", "metrics.csv", "tensorboard"}
    assert config_hash(run.config) in run.run.config.read_text().splitlines()[0]


def test_an_evaluation_depends_on_the_policy_alone(trained, trainer, begun):
    run, result = trained
    state = run.checkpoints.restore("last", run.ppo, robots=True)
    assert run.evaluate(state) == result.score
    assert run.evaluate(begun) != result.score


def test_the_exported_policy_is_the_checkpoint(trained, tmp_path):
    run, _ = trained
    path = tmp_path / "policy.onnx"
    errors = export_policy(run, path)
    assert set(errors) == {0.1, 1.0, 100.0} and max(errors.values()) <= 1e-5
    state = run.checkpoints.restore("best", run.ppo, robots=False)
    assert state.env is None
    policy = load_policy(path, published_contract())
    obs = np.random.default_rng(0).normal(0, 1, (50, 101)).astype(np.float32)
    np.testing.assert_allclose(policy(obs), mean_action(run.ppo, state, obs), atol=1e-5)
    contract = policy.contract
    assert contract.config_hash == config_hash(run.config)
    assert contract.task == "open_duck_joystick" and contract.n_obs == 101
    assert contract.physics_period == 0.004
    with pytest.raises(PlaygroundError, match="exists"):
        export_policy(run, path)


def test_an_export_without_a_checkpoint_says_so(trainer, tmp_path):
    run = move_to(trainer, tmp_path / "empty")
    with pytest.raises(PlaygroundError, match="no whole checkpoint"):
        export_policy(run, tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def test_a_session_trains_exports_and_tells(trainer, tmp_path, monkeypatch, capsys):
    from playground.learning import session

    run = move_to(trainer, tmp_path / "run", total_steps=160)
    monkeypatch.setattr(session, "Trainer", lambda config, folder: run)
    monkeypatch.setattr(session, "configure", lambda device: "a test machine")
    assert session.run_training(run.config, run.run) == 0
    told = capsys.readouterr().out
    for part in ("a test machine", "engine native", "total_steps: 160", "differs"):
        assert part in told
    score = run.checkpoints.progress("best").score
    assert f"of the best checkpoint, 160 steps: {score}" in told
    assert f"last evaluation, 160 steps: {score}" in told
    assert load_policy(run.run.policy, published_contract()).contract.n_act == 14
    # Saved by a signal between two evaluations, a state has no figures of its own.
    state, progress = run.start()
    run.checkpoints.save("last", state, dataclasses.replace(progress, score=None))
    assert str(run.checkpoints.progress("last")) == "160 steps"
    stopped = SimpleNamespace(
        task=run.task,
        train=lambda: SimpleNamespace(signal=15, env_steps=320),
    )
    monkeypatch.setattr(session, "Trainer", lambda config, folder: stopped)
    assert session.run_training(run.config, run.run) == 143
    assert f"playground train --resume {run.run.path}" in capsys.readouterr().out
