"""Proves that a policy file computes what the trained network does."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from playground.errors import PlaygroundError
from playground.policy.runner import OnnxFunction

# Robots ask one row at a time, for which runtimes multiply matrices in another way.
_SINGLE_ROWS = 16


def verify_file(
    path: str | Path,
    reference: Callable[[np.ndarray], np.ndarray],
    n_obs: int,
    seed: int = 0,
    count: int = 1000,
    scales: Sequence[float] = (0.1, 1.0, 100.0),
    tolerance: float = 1e-5,
) -> dict[float, float]:
    """Compares a file with the network on normally distributed observations.

    Args:
      path: The file.
      reference: The network: [N, n_obs] -> [N, n_act]. Float32 on a CPU with full
        matmul precision, as the tolerance leaves no room for less.
      n_obs: Numbers in an observation.
      seed: Of the observations.
      count: Observations at each scale, as one batch; the first few also singly.
      scales: Standard deviations of the observations.
      tolerance: Largest allowed difference of any number of an action.

    Returns:
      The largest difference at each scale.

    Raises:
      PlaygroundError: the file cannot be read, or differs more at some scale.
    """
    function = OnnxFunction(path)
    if function.n_obs != n_obs:
        raise PlaygroundError(
            f"policy {path} takes {function.n_obs} numbers, not {n_obs}"
        )
    rng = np.random.default_rng(seed)
    errors = {}
    for scale in scales:
        obs = (scale * rng.standard_normal((count, n_obs))).astype(np.float32)
        batches = [obs, *obs[:_SINGLE_ROWS, None]]
        errors[scale] = max(
            _difference(function, reference, batch) for batch in batches
        )
    # Written so that NaN fails too.
    if not all(error <= tolerance for error in errors.values()):
        found = ", ".join(
            f"{error:.1e} at {scale:g}" for scale, error in errors.items()
        )
        raise PlaygroundError(
            f"policy {path} differs from its network by more than {tolerance:g}: "
            f"{found} times unit observations"
        )
    return errors


def _difference(
    function: OnnxFunction,
    reference: Callable[[np.ndarray], np.ndarray],
    obs: np.ndarray,
) -> float:
    actions, expected = function(obs), np.asarray(reference(obs))
    if actions.shape != expected.shape:
        raise PlaygroundError(
            f"policy file returns {list(actions.shape)}, its network "
            f"{list(expected.shape)}"
        )
    return float(np.abs(actions - expected).max())
