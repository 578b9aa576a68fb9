"""Whole episodes of a batch of robots under one policy, each counted once."""

from collections.abc import Callable

import flax.struct
import jax
import jax.numpy as jnp

from playground.tasks.locomotion import Locomotion
from playground.tasks.state import State

Policy = Callable[[jax.Array], jax.Array]


@flax.struct.dataclass
class Trace:
    """What happened: [T, B, ...] for T control steps of B robots.

    After a robot ended its values stay as they were in its last step.

    Attributes:
      alive: up at the end of the step, bool.
      diverged: its physics left the finite numbers, bool.
      obs: [.., n_obs] the observation that the policy acted on.
      action: [.., nu] what it did.
      reward: of the step.
      position: [.., 3] of the base, m, world.
      yaw: heading, rad.
      velocity: [.., 3] vx, vy (m/s) and yaw rate (rad/s) in the heading frame.
      joint_velocity: [.., nu] rad/s.
      power: sum over joints of |torque x velocity|, W.
      sole_height: [.., n_feet] m.
      sole_speed: [.., n_feet] m/s, horizontal.
      contact: [.., n_feet] bool.
    """

    alive: jax.Array
    diverged: jax.Array
    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    position: jax.Array
    yaw: jax.Array
    velocity: jax.Array
    joint_velocity: jax.Array
    power: jax.Array
    sole_height: jax.Array
    sole_speed: jax.Array
    contact: jax.Array


def play(
    task: Locomotion, policy: Policy, commands: jax.Array, keys: jax.Array, steps: int
) -> Trace:
    """Plays one episode for each robot.

    Args:
      task: What to play.
      policy: obs [B, n_obs] -> action [B, nu].
      commands: [B, 7] held for the whole episode.
      keys: [B] typed keys of the starts and disturbances; consumed.
      steps: Control steps.
    """
    state, obs = jax.vmap(task.reset)(keys, commands)
    alive = jnp.ones(len(commands), bool)

    def step(carry, _):
        state, obs, alive = carry
        action = policy(obs)
        moved, outcome = jax.vmap(task.step)(state, action)
        # A robot that ended stays where it ended.
        keep = jax.vmap(jnp.where)
        moved = jax.tree.map(lambda new, old: keep(alive, new, old), moved, state)
        new_obs = keep(alive, outcome.obs["state"], obs)
        up = alive & ~outcome.terminated
        seen = jax.vmap(_watch, in_axes=(None, 0))(task, moved)
        trace = Trace(
            alive=up,
            diverged=outcome.diverged & alive,
            obs=obs,
            action=action,
            reward=jnp.where(alive, outcome.reward, 0.0),
            **seen,
        )
        return (moved, new_obs, up), trace

    return jax.lax.scan(step, (state, obs["state"], alive), length=steps)[1]


def _watch(task: Locomotion, state: State) -> dict[str, jax.Array]:
    sensed = task.robot.sense(state.data)
    feet, forward = task.robot.spec.feet, sensed["forwardvector"]
    power = jnp.sum(jnp.abs(sensed.joint_torque * sensed.joint_velocity))
    return {
        "position": sensed["position"],
        "yaw": jnp.arctan2(forward[1], forward[0]),
        "velocity": state.motion.velocity,
        "joint_velocity": sensed.joint_velocity,
        "power": power,
        "sole_height": sensed.each(feet, "pos")[:, 2] - task.home_sole,
        "sole_speed": jnp.linalg.norm(sensed.each(feet, "linvel")[:, :2], axis=-1),
        "contact": state.feet.contact,
    }
