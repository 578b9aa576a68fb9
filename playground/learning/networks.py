"""Actor and critic: Brax's PPO networks over a normalised, clipped observation."""

import functools

import jax
from brax.training.acme import running_statistics
from brax.training.agents.ppo import networks as ppo_networks
from flax import linen

from playground.learning.config import NetworkConfig

POLICY_OBS, VALUE_OBS = "state", "privileged_state"

_ACTIVATIONS = {
    "swish": linen.swish,
    "elu": linen.elu,
    "relu": linen.relu,
    "tanh": linen.tanh,
}


def make_networks(
    config: NetworkConfig, observation_size: dict[str, int], action_size: int
) -> ppo_networks.PPONetworks:
    """Makes the networks of one task.

    The policy is an MLP to (location, scale) of a normal distribution squashed by tanh;
    its deterministic action is tanh(location).
    """
    return ppo_networks.make_ppo_networks(
        observation_size,
        action_size,
        preprocess_observations_fn=functools.partial(
            running_statistics.normalize, max_abs_value=config.observation_clip
        ),
        policy_hidden_layer_sizes=config.policy_layers,
        value_hidden_layer_sizes=config.value_layers,
        activation=_ACTIVATIONS[config.activation],
        policy_obs_key=POLICY_OBS,
        value_obs_key=VALUE_OBS,
    )


def deterministic_policy(networks: ppo_networks.PPONetworks, normalizer, policy_params):
    """Returns the function obs [N, n_obs] -> action [N, nu] without exploration."""
    make_policy = ppo_networks.make_inference_fn(networks)
    policy = make_policy((normalizer, policy_params), deterministic=True)

    def apply(obs: jax.Array) -> jax.Array:
        return policy({POLICY_OBS: obs}, None)[0]

    return apply
