"""A policy that begins by doing what a teacher does: supervised, before any PPO.

A task that knows a rough answer (a reference gait played open loop) offers it as
`task.teacher`. Robots are led by the teacher with noise on its actions, and the
policy's mean is fitted to the teacher's action at what it then observes. Seconds of
this spare PPO the millions of steps that it takes to find out that stepping is possible
at all.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from brax.training import gradients
from brax.training.acme import running_statistics
from brax.training.agents.ppo.networks import PPONetworks

from playground.learning.config import WarmStartConfig
from playground.learning.networks import POLICY_OBS

# Teachers' actions are fitted within the squash's well-conditioned range.
_LARGEST_ACTION = 0.95
# Control steps that a robot is led by its own, then by its neighbour's command.
_ASTRAY = 25


def lead(
    env: Any, state: Any, key: jax.Array, config: WarmStartConfig
) -> tuple[Any, dict[str, jax.Array], jax.Array]:
    """Lets the teacher lead a batch of robots.

    By turns a robot does what its neighbour's command would have it do. Else what it
    did last would tell what to do next, and the policy would learn to go on with
    whatever it is doing, deaf to commands.

    Args:
      env: Training environment.
      state: Its state, B robots.
      key: Consumed.
      config: How long and how noisily.

    Returns:
      The state after it; observations {name: [steps, B, width]}; the teacher's action
      at each, [steps, B, nu].
    """
    teach = jax.vmap(env.task.teacher)

    def step(state, key_and_time):
        key, time = key_and_time
        robots = state.pipeline_state
        right = teach(robots, robots.command)
        wrong = teach(robots, jnp.roll(robots.command, 1, axis=0))
        astray = (jnp.arange(len(right)) + time // _ASTRAY) % 2
        taken = jnp.where(astray[:, None], wrong, right)
        taken += config.action_noise * jax.random.normal(key, taken.shape)
        return env.step(state, taken), (state.obs, right)

    moments = jax.random.split(key, config.steps), jnp.arange(config.steps)
    state, (obs, actions) = jax.lax.scan(step, state, moments)
    return state, obs, actions


def fit(
    networks: PPONetworks,
    normalizer: running_statistics.RunningStatisticsState,
    params: Any,
    obs: dict[str, jax.Array],
    actions: jax.Array,
    key: jax.Array,
    config: WarmStartConfig,
    axis: str,
) -> Any:
    """Returns policy parameters whose mean action is the teacher's.

    Args:
      networks: The learner's networks.
      normalizer: Statistics of the observations.
      params: Policy parameters to start from.
      obs: {name: [steps, B, width]}.
      actions: [steps, B, nu] of the teacher.
      key: Consumed.
      config: How long to fit.
      axis: Name of the device axis, over which gradients are shared.
    """
    n_act = actions.shape[-1]
    rows = obs[POLICY_OBS].reshape(-1, obs[POLICY_OBS].shape[-1])
    targets = jnp.clip(actions.reshape(-1, n_act), -_LARGEST_ACTION, _LARGEST_ACTION)
    optimizer = optax.adam(optax.cosine_decay_schedule(2e-3, config.updates))
    # Brax's standard deviation is softplus(x) + 0.001.
    scale = jnp.log(jnp.expm1(config.exploration_std - 0.001))

    def loss(params, chosen):
        logits = networks.policy_network.apply(
            normalizer, params, {POLICY_OBS: rows[chosen]}
        )
        location, spread = jnp.split(logits, 2, axis=-1)
        error = jnp.mean(jnp.square(jnp.tanh(location) - targets[chosen]))
        return error + 0.1 * jnp.mean(jnp.square(spread - scale))

    update: Callable = gradients.gradient_update_fn(
        loss, optimizer, pmap_axis_name=axis
    )

    def step(carry, key):
        params, optimizer_state = carry
        chosen = jax.random.randint(key, (config.batch_size,), 0, len(rows))
        _, params, optimizer_state = update(
            params, chosen, optimizer_state=optimizer_state
        )
        return (params, optimizer_state), None

    keys = jax.random.split(key, config.updates)
    return jax.lax.scan(step, (params, optimizer.init(params)), keys)[0][0]
