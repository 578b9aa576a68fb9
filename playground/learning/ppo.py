"""One PPO iteration, from Brax's networks, losses, acting and running statistics.

An iteration is a pure function TrainingState -> (TrainingState, metrics). It runs under
`shard_map`: each device rolls out its own robots, shuffles its own minibatches and
shares gradients and observation statistics, so parameters stay equal everywhere.
Letters: T control steps of a rollout, B robots of a device.
"""

import functools
from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax
from brax.training import acting, gradients
from brax.training.acme import running_statistics, specs
from brax.training.agents.ppo import losses
from brax.training.agents.ppo import networks as ppo_networks
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from playground.learning.config import NetworkConfig, PPOConfig, WarmStartConfig
from playground.learning.networks import make_networks
from playground.learning.warm_start import fit, lead
from playground.tasks.brax_env import TrainingEnv

AXIS = "devices"
_EXTRAS = ("truncation", "terminated", "diverged", "terms")

Metrics = dict[str, jax.Array]


@flax.struct.dataclass
class TrainingState:
    """All that a run needs to go on exactly as if it had never stopped.

    Attributes:
      params: policy and value parameters, equal on all devices.
      optimizer: optax state.
      normalizer: running mean and deviation of the observations.
      env: Brax states of the robots, [num_envs, ...], spread over the devices.
      key: the learner's random stream.
      iteration: rollouts and updates done, int32 scalar.
    """

    params: losses.PPONetworkParams
    optimizer: optax.OptState
    normalizer: running_statistics.RunningStatisticsState
    env: object
    key: jax.Array
    iteration: jax.Array


@flax.struct.dataclass
class _Learner:
    """The part of the state that an update changes."""

    params: losses.PPONetworkParams
    optimizer: optax.OptState
    key: jax.Array


class PPO:
    """The learner of one task.

    Attributes:
      networks: actor and critic.
      init: key -> TrainingState, compiled.
      new_robots: key -> its `env` alone, compiled.
      iterate: TrainingState -> (TrainingState, metrics), compiled; the argument is
        donated.
    """

    def __init__(
        self,
        env: TrainingEnv,
        config: PPOConfig,
        network: NetworkConfig,
        warm_start: WarmStartConfig,
        mesh: Mesh,
    ):
        """Checks the sizes; compiles nothing yet.

        Args:
          env: Batch environment.
          config: Settings.
          network: Settings of the networks.
          warm_start: What `init` does besides drawing parameters.
          mesh: One axis, `AXIS`, over all devices of all hosts.
        """
        config.check_devices(mesh.size)
        self._env, self._config, self._warm_start = env, config, warm_start
        self._local_envs = config.num_envs // mesh.size
        self.networks = make_networks(network, env.observation_size, env.action_size)
        self._make_policy = ppo_networks.make_inference_fn(self.networks)
        self._optimizer = _optimizer(config)
        loss = functools.partial(
            losses.compute_ppo_loss,
            ppo_network=self.networks,
            entropy_cost=config.entropy_cost,
            discounting=config.discount,
            reward_scaling=config.reward_scale,
            gae_lambda=config.gae_lambda,
            clipping_epsilon=config.clip,
            vf_coefficient=config.value_cost,
        )
        self._gradient_step = gradients.gradient_update_fn(
            loss, self._optimizer, pmap_axis_name=AXIS, has_aux=True
        )
        self.sharding = self._shardings(mesh)
        specs_of = jax.tree.map(lambda s: s.spec, self.sharding)
        shard = functools.partial(jax.shard_map, mesh=mesh, check_vma=False)
        self.init = jax.jit(shard(self._init, in_specs=P(), out_specs=specs_of))
        self.new_robots = jax.jit(
            shard(self._new_robots, in_specs=P(), out_specs=specs_of.env)
        )
        self.iterate: Callable[[TrainingState], tuple[TrainingState, Metrics]] = (
            jax.jit(
                shard(self._iterate, in_specs=(specs_of,), out_specs=(specs_of, P())),
                donate_argnums=0,
            )
        )

    def _shardings(self, mesh: Mesh) -> TrainingState:
        """Robots are spread over the devices; all the rest is on each of them."""
        whole: Any = NamedSharding(mesh, P())
        spread: Any = NamedSharding(mesh, P(AXIS))
        return TrainingState(whole, whole, whole, spread, whole, whole)

    def abstract(self) -> TrainingState:
        """Returns the shapes and devices of the state; computes nothing."""
        shapes = jax.eval_shape(self.init, jax.random.key(0))

        def placed(sharding, part):
            return jax.tree.map(
                lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=sharding),
                part,
            )

        return jax.tree.map(placed, self.sharding, shapes)

    def _new_robots(self, key: jax.Array) -> object:
        return self._env.reset(jax.random.split(_own(key), self._local_envs))

    def _init(self, key: jax.Array) -> TrainingState:
        policy_key, value_key, env_key, warm_key, key = jax.random.split(key, 5)
        params = losses.PPONetworkParams(
            policy=self.networks.policy_network.init(policy_key),
            value=self.networks.value_network.init(value_key),
        )
        widths = self._env.observation_size
        normalizer = running_statistics.init_state(
            {name: specs.Array((n,), jnp.float32) for name, n in widths.items()}
        )
        # Its weakly typed number would come back from a checkpoint as another type.
        normalizer = jax.tree.map(
            lambda x: jnp.array(x, jnp.result_type(x)), normalizer
        )
        env = self._new_robots(env_key)
        if self._warm_start.steps:
            lead_key, fit_key = jax.random.split(_own(warm_key))
            env, obs, actions = lead(self._env, env, lead_key, self._warm_start)
            normalizer = running_statistics.update(normalizer, obs, pmap_axis_name=AXIS)
            policy = fit(
                self.networks,
                normalizer,
                params.policy,
                obs,
                actions,
                fit_key,
                self._warm_start,
                AXIS,
            )
            params = params.replace(policy=policy)
        return TrainingState(
            params=params,
            optimizer=self._optimizer.init(params),
            normalizer=normalizer,
            env=env,
            key=key,
            iteration=jnp.zeros((), jnp.int32),
        )

    def _iterate(self, state: TrainingState) -> tuple[TrainingState, Metrics]:
        rollout_key, update_key, key = jax.random.split(state.key, 3)
        with jax.named_scope("rollout"):
            env, data = acting.generate_unroll(
                self._env,
                state.env,
                self._make_policy((state.normalizer, state.params.policy)),
                _own(rollout_key),
                self._config.unroll_length,
                extra_fields=_EXTRAS,
            )
        with jax.named_scope("normalize"):
            normalizer = running_statistics.update(
                state.normalizer, data.observation, pmap_axis_name=AXIS
            )
        with jax.named_scope("update"):
            by_robot = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), data)
            learner = _Learner(state.params, state.optimizer, _own(update_key))
            learner, losses_ = jax.lax.scan(
                functools.partial(self._epoch, normalizer, by_robot),
                learner,
                length=self._config.num_epochs,
            )
        metrics = _rollout_metrics(data) | {
            f"loss/{name}": jnp.mean(value) for name, value in losses_.items()
        }
        counts = {name for name in metrics if name.startswith("count/")}
        metrics = {
            name: (jax.lax.psum if name in counts else jax.lax.pmean)(value, AXIS)
            for name, value in metrics.items()
        }
        new_state = TrainingState(
            params=learner.params,
            optimizer=learner.optimizer,
            normalizer=normalizer,
            env=env,
            key=key,
            iteration=state.iteration + 1,
        )
        return new_state, metrics

    def _epoch(
        self, normalizer, data, learner: _Learner, _
    ) -> tuple[_Learner, Metrics]:
        """One pass over the rollout in shuffled minibatches of whole robots."""
        key, shuffle_key, loss_key = jax.random.split(learner.key, 3)
        order = jax.random.permutation(shuffle_key, self._local_envs)
        minibatches = order.reshape(self._config.num_minibatches, -1)
        keys = jax.random.split(loss_key, self._config.num_minibatches)

        def step(carry, rows_and_key):
            params, optimizer = carry
            rows, key = rows_and_key
            minibatch = jax.tree.map(lambda x: x[rows], data)
            (_, metrics), params, optimizer = self._gradient_step(
                params, normalizer, minibatch, key, optimizer_state=optimizer
            )
            return (params, optimizer), metrics

        (params, optimizer), metrics = jax.lax.scan(
            step, (learner.params, learner.optimizer), (minibatches, keys)
        )
        return _Learner(params, optimizer, key), metrics


def _optimizer(config: PPOConfig) -> optax.GradientTransformation:
    """Adam; the policy waits for a critic that can tell good from bad."""
    updates = config.policy_warmup * config.num_epochs * config.num_minibatches
    rate = config.learning_rate
    grown = optax.linear_schedule(0.0, rate, updates) if updates else rate
    adams = {"policy": optax.adam(grown), "value": optax.adam(rate)}
    labels = losses.PPONetworkParams(policy="policy", value="value")
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.multi_transform(adams, labels),
    )


def _own(key: jax.Array) -> jax.Array:
    """A device's own branch of a key that all devices share."""
    return jax.random.fold_in(key, jax.lax.axis_index(AXIS))


def _rollout_metrics(data) -> Metrics:
    """What a rollout of [T, B] transitions tells: rewards, ends, divergence."""
    extras = data.extras["state_extras"]
    terms = {f"reward/{name}": jnp.mean(v) for name, v in extras["terms"].items()}
    return terms | {
        "reward/total": jnp.mean(data.reward),
        "count/falls": jnp.sum(extras["terminated"]),
        "count/episodes": jnp.sum(1.0 - data.discount),
        "count/diverged": jnp.sum(extras["diverged"]),
    }
