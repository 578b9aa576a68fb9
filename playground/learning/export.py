"""From a run to a policy file that is proved to act like its checkpoint."""

from pathlib import Path

import jax
import numpy as np

from playground.config import config_hash
from playground.learning.networks import POLICY_OBS, deterministic_policy
from playground.learning.train import Trainer
from playground.policy.onnx_file import network_from_brax, write_onnx
from playground.policy.verify import verify_file
from playground.tasks.contract import task_contract


def export_policy(
    trainer: Trainer, path: Path, which: str = "best", overwrite: bool = False
) -> dict[float, float]:
    """Writes a checkpoint's policy as ONNX and checks the file against the network.

    Args:
      trainer: The run.
      path: Where the file goes.
      which: "best" or "last".
      overwrite: Whether a file that is there may be replaced.

    Returns:
      Scale of the random observations -> largest absolute difference.

    Raises:
      PlaygroundError: no checkpoint that does, or the file differs from the network.
    """
    config = trainer.config
    trainer.saved(which)  # is it of this task?
    state = trainer.checkpoints.restore(which, trainer.ppo, robots=False)
    normalizer, params = jax.tree.map(
        lambda x: x.addressable_data(0), (state.normalizer, state.params.policy)
    )
    network = network_from_brax(
        normalizer,
        params,
        config.network.activation,
        config.network.observation_clip,
        POLICY_OBS,
    )
    contract = task_contract(trainer.task, config.task, config_hash(config))
    write_onnx(path, network, contract, overwrite)
    reference = jax.jit(deterministic_policy(trainer.ppo.networks, normalizer, params))
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return verify_file(path, lambda obs: np.asarray(reference(obs)), contract.n_obs)
