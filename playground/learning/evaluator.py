"""Deterministic evaluation while training: fixed seeds, no disturbances."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from playground.learning.config import EvaluationConfig
from playground.learning.networks import deterministic_policy
from playground.tasks.episodes import play
from playground.tasks.locomotion import Locomotion

_SEED = 20_000
# Means are taken from here on, s: the robot has then had time to get going.
_SETTLE = 1.0


@dataclasses.dataclass(frozen=True)
class Score:
    """How well a policy does.

    Attributes:
      length: mean episode length as a share of the full one, 0..1.
      falls: episodes that ended in a fall, of `episodes`.
      falls_at_zero: the same among the episodes at a zero command.
      episodes: episodes played.
      reward: mean reward of an episode.
      velocity_rmse: m/s, reached against commanded mean velocity, over all commands.
      yaw_rmse: rad/s, likewise.
    """

    length: float
    falls: int
    falls_at_zero: int
    episodes: int
    reward: float
    velocity_rmse: float
    yaw_rmse: float

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"length {self.length:.1%}, falls {self.falls}/{self.episodes} "
            f"(at zero command {self.falls_at_zero}), reward {self.reward:.1f}, "
            f"RMSE {self.velocity_rmse:.3f} m/s, {self.yaw_rmse:.3f} rad/s"
        )

    def items(self):
        """(name, number) pairs, for logs."""
        return dataclasses.asdict(self).items()


class Evaluator:
    """Plays a grid of commands; compiled once, the parameters are traced."""

    def __init__(self, task: Locomotion, networks, config: EvaluationConfig):
        """Prepares the grid.

        Args:
          task: The undisturbed task.
          networks: The learner's networks.
          config: How much to play.
        """
        grid = np.repeat(_grid(task), config.episodes_per_command, axis=0)
        self._commands, self._task = grid, task
        keys = jax.random.split(jax.random.key(_SEED), len(grid))

        def run(normalizer, policy_params):
            policy = deterministic_policy(networks, normalizer, policy_params)
            return play(task, policy, jnp.asarray(grid), keys, task.episode_steps)

        self._run = jax.jit(run)

    def __call__(self, normalizer, policy_params) -> Score:
        """Returns the score of a policy."""
        trace = jax.tree.map(np.asarray, self._run(normalizer, policy_params))
        alive = trace.alive
        settle = round(_SETTLE / self._task.config.control_period)
        counted = alive[settle:]
        weight = np.maximum(counted.sum(0), 1)
        reached = (trace.velocity[settle:] * counted[..., None]).sum(0) / weight[
            :, None
        ]
        error = reached - self._commands[:, :3]
        fell = ~alive[-1]
        zero = ~self._commands[:, :3].any(axis=1)
        return Score(
            length=float(alive.mean()),
            falls=int(fell.sum()),
            falls_at_zero=int((fell & zero).sum()),
            episodes=len(fell),
            reward=float(trace.reward.sum(0).mean()),
            velocity_rmse=float(np.sqrt(np.square(error[:, :2]).sum(1).mean())),
            yaw_rmse=float(np.sqrt(np.square(error[:, 2]).mean())),
        )


def _grid(task: Locomotion) -> np.ndarray:
    """[n, 7] zero, and both ends of each velocity range at two thirds of the way."""
    ranges = task.config.command.ranges
    grid = [np.zeros(len(ranges))]
    for axis in range(3):
        for end in ranges[axis]:
            if end:
                command = np.zeros(len(ranges))
                command[axis] = 2 / 3 * end
                grid.append(command)
    return np.array(grid, np.float32)
