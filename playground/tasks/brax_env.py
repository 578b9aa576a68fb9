"""The edge to Brax: a single-robot `Env`, and a batch that restarts what is done."""

import functools

import jax
import jax.numpy as jnp
from brax.envs.base import Env
from brax.envs.base import State as BraxState

from playground.tasks.locomotion import Locomotion
from playground.tasks.state import Outcome, State


class BraxEnv(Env):
    """One robot as a Brax environment, for Brax's own wrappers and agents.

    `obs` is {"state", "privileged_state"}; `metrics` and `info["terms"]` hold the
    weighted reward terms; `info` tells "terminated", "truncation" and "diverged" apart.
    As everywhere in Brax `done` means terminated alone: the end of the time is what its
    `EpisodeWrapper` adds, and it takes a `done` of ours at that step for a fall.
    """

    def __init__(self, task: Locomotion):
        """Wraps a task."""
        self.task = task

    def reset(self, rng: jax.Array) -> BraxState:
        """Starts an episode; `rng` is a legacy key [2] (uint32) or a typed one."""
        state, obs = self.task.reset(_typed(rng))
        shape = jax.eval_shape(self.task.step, state, jnp.zeros(self.action_size))[1]
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)
        return _brax_state(state, zeros.replace(obs=obs))

    def step(self, state: BraxState, action: jax.Array) -> BraxState:
        """Moves the robot by one control step; does not restart it."""
        inner, outcome = self.task.step(state.pipeline_state, action)
        stepped = _brax_state(inner, outcome)
        return stepped.replace(info=state.info | stepped.info)

    @property
    def observation_size(self) -> dict[str, int]:
        """Widths of the observations."""
        policy = self.task.observation.width
        privileged = policy + self.task.privileged.width
        return {"state": policy, "privileged_state": privileged}

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        return self.task.action_size

    @property
    def backend(self) -> str:
        """The physics engine's name."""
        return self.task.physics.engine


class TrainingEnv(BraxEnv):
    """A batch of robots, each restarted the moment it is done.

    The observation returned with a done step is that of the new episode; the last one
    of the old episode is `info["final_observation"]`.
    """

    def reset(self, rng: jax.Array) -> BraxState:
        """Starts a batch of episodes from keys [B]."""
        state = jax.vmap(super().reset)(rng)
        return state.replace(info=state.info | {"final_observation": state.obs})

    def step(self, state: BraxState, action: jax.Array) -> BraxState:
        """Moves the batch by one control step: action [B, nu]."""
        stepped = jax.vmap(super().step)(state, action)
        done = stepped.info["terminated"] | (stepped.info["truncation"] > 0)
        fresh, obs = jax.vmap(self.task.restart)(stepped.pipeline_state, done)
        where = jax.vmap(jnp.where)
        pick = functools.partial(jax.tree.map, functools.partial(where, done))
        return stepped.replace(
            pipeline_state=pick(fresh, stepped.pipeline_state),
            obs=pick(obs, stepped.obs),
            done=done.astype(jnp.float32),
            info=stepped.info | {"final_observation": stepped.obs},
        )


def _typed(rng: jax.Array) -> jax.Array:
    is_typed = jnp.issubdtype(rng.dtype, jax.dtypes.prng_key)
    return rng if is_typed else jax.random.wrap_key_data(rng)


def _brax_state(state: State, outcome: Outcome) -> BraxState:
    return BraxState(
        pipeline_state=state,
        obs=outcome.obs,
        reward=outcome.reward,
        done=outcome.terminated.astype(jnp.float32),
        metrics=outcome.terms,
        info={
            "terminated": outcome.terminated,
            "truncation": outcome.truncated.astype(jnp.float32),
            "diverged": outcome.diverged,
            "terms": outcome.terms,
        },
    )
