"""From a policy's action to servo targets, with the history that is observed."""

import flax.struct
import jax
import jax.numpy as jnp

from playground.robots.robot import Robot
from playground.tasks.delay import DelayLine


@flax.struct.dataclass
class ActionMemory:
    """What a position-controlled policy remembers; zeros and home at the start.

    Attributes:
      recent: [3, nu] the last, second-last and third-last action of the policy.
      delayed: the actions on their way to the servos.
      targets: [nu] rad, servo targets in force, after the rate limit.
    """

    recent: jax.Array
    delayed: DelayLine
    targets: jax.Array

    @classmethod
    def start(cls, robot: Robot, delay: jax.Array, longest: int) -> "ActionMemory":
        """Returns the memory at the start of an episode."""
        still = jnp.zeros(robot.model.nu)
        return cls(
            recent=jnp.zeros((3, robot.model.nu)),
            delayed=DelayLine.start(still, delay, longest),
            targets=jnp.asarray(robot.home_pose, jnp.float32),
        )


def act(
    memory: ActionMemory,
    action: jax.Array,
    home_pose: jax.Array,
    scale: float,
    largest_move: float | None,
) -> ActionMemory:
    """Takes one action and returns the memory with the new servo targets.

    Args:
      memory: What came before.
      action: [nu] the policy's output.
      home_pose: [nu] rad, the pose of action 0.
      scale: rad per unit of action.
      largest_move: rad a target may move in a control step; None: no limit.
    """
    delayed = memory.delayed.push(action)
    targets = home_pose + scale * delayed.output
    if largest_move is not None:
        move = jnp.clip(targets - memory.targets, -largest_move, largest_move)
        targets = memory.targets + move
    recent = jnp.concatenate([action[None], memory.recent[:-1]])
    return ActionMemory(recent=recent, delayed=delayed, targets=targets)
