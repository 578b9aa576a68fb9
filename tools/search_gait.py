"""Search the shape of Open Duck's reference gait by the cross-entropy method.

    python tools/search_gait.py --seed 0

Plays each candidate open loop, one robot for each of a few commands, and keeps what
stays up, lifts both feet and goes where it is asked. Prints the shape as it stands in
playground/controllers/gait_config.py. Takes about five minutes on two cores.
"""

import argparse
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from playground.controllers.reference_gait import GaitShape
from playground.robots.robot import Robot
from playground.runtime import configure
from playground.tasks.locomotion import Locomotion
from playground.tasks.registry import task_spec

COMMANDS = np.array(
    [
        [0.002, 0, 0],
        [0.1, 0, 0],
        [-0.1, 0, 0],
        [0, 0.12, 0],
        [0, -0.12, 0],
        [0, 0, 0.6],
        [0, 0, -0.6],
    ]
)
# Errors of this size (m/s, m/s, rad/s) cost as much as not stepping at all.
ERROR_SCALE = np.array([0.1, 0.12, 0.6])
# lift, sway, sway_phase, stance_x, stance_y, stride x 3: start, spread, lowest,
# highest.
START = np.array([0.013, 0.045, 2.6, -0.026, 0.025, 1.5, 1.1, 1.3])
SPREAD = np.array([0.005, 0.02, 0.8, 0.005, 0.005, 0.4, 0.4, 0.4])
FLOOR = np.array([0.0005, 0.001, 0.05, 0.0005, 0.0005, 0.02, 0.02, 0.02])
LOWEST = np.array([0.006, 0.0, 0.0, -0.04, -0.01, 0.2, 0.2, 0.2])
HIGHEST = np.array([0.05, 0.08, 6.3, 0.03, 0.04, 2.5, 2.5, 2.5])
STEPS, SETTLE, ELITE = 250, 50, 0.2
LIFTED, FAST = 0.004, 0.05  # m; m/s of the random starting velocity


def shape_of(x: jax.Array) -> GaitShape:
    return GaitShape(*x[:5], stride=x[5:])


def make_score(task: Locomotion):
    """Returns (shapes [n, 8], key) -> (score [n], reached [n, commands, 3])."""
    robot: Robot = task.robot
    commands = jnp.asarray(COMMANDS, jnp.float32)

    def teach(x, state):
        legs = task.guide.gait.target_offsets(shape_of(x), state.phase, state.command)
        action = jnp.zeros(task.action_size).at[task.guide.joints].set(legs)
        return jnp.clip(action / task.config.action_scale, -1.0, 1.0)

    def score(xs, key):
        n = len(xs)
        xs = jnp.repeat(xs, len(commands), 0)
        held = jnp.zeros((len(xs), 7)).at[:, :3].set(jnp.tile(commands, (n, 1)))
        state, _ = jax.vmap(task.reset)(jax.random.split(key, len(xs)), held)
        kick = FAST * jax.random.normal(key, (len(xs), 3))
        qvel = state.data.qvel.at[:, :3].add(kick)
        data = dataclasses.replace(state.data, qvel=qvel)

        def step(carry, i):
            state, up = carry
            action = jax.vmap(teach)(xs, state) * jnp.clip(i / 30, 0.0, 1.0)
            state, outcome = jax.vmap(task.step)(state, action)
            up = up & ~outcome.terminated
            sensed = jax.vmap(robot.sense)(state.data)
            feet = [sensed.sensors[f"{foot}_pos"][:, 2] for foot in robot.spec.feet]
            high = jnp.stack(feet, 1) - task.home_sole > LIFTED
            air = ~state.feet.contact & high
            return (state, up), (up, air, state.feet.contact, state.motion.velocity)

        start = (dataclasses.replace(state, data=data), jnp.ones(len(xs), bool))
        _, (up, air, contact, velocity) = jax.lax.scan(step, start, jnp.arange(STEPS))
        alive = up[SETTLE:, :, None]
        reached = (velocity[SETTLE:] * alive).sum(0) / jnp.maximum(alive.sum(0), 1)
        error = jnp.abs(reached - held[:, :3]) / ERROR_SCALE
        single = (contact[SETTLE:].sum(-1) == 1) & up[SETTLE:]
        parts = (
            4 * up.mean(0)
            + single.mean(0)
            + 2 * (air[SETTLE:] & alive).mean(0).min(-1)
            - error.sum(-1)
        ).reshape(n, -1)
        reached = reached.reshape(n, len(commands), 3)
        return parts.mean(1) + 0.5 * parts.min(1), reached

    return jax.jit(score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generations", type=int, default=24)
    parser.add_argument("--candidates", type=int, default=72)
    parser.add_argument("--scene", default="flat_backlash")
    chosen = parser.parse_args()
    print(configure())
    spec = task_spec("open_duck_joystick")
    config = dataclasses.replace(
        spec.config.undisturbed(), scene=chosen.scene, sim_dt=0.004
    )
    task = spec.make(config)
    score, rng = make_score(task), np.random.default_rng(chosen.seed)
    mean, spread = START, SPREAD
    for generation in range(chosen.generations):
        xs = mean + spread * rng.normal(size=(chosen.candidates, len(mean)))
        xs = np.clip(np.concatenate([mean[None], xs[1:]]), LOWEST, HIGHEST)
        key = jax.random.fold_in(jax.random.key(chosen.seed), generation)
        scores, reached = map(np.asarray, score(jnp.asarray(xs, jnp.float32), key))
        best = np.argsort(-scores)[: round(ELITE * len(xs))]
        mean = 0.3 * mean + 0.7 * xs[best].mean(0)
        spread = 0.4 * spread + 0.6 * xs[best].std(0) + FLOOR
        print(
            f"generation {generation}: best {scores[best[0]]:.2f}, "
            f"mean of the last {scores[0]:.2f}, shape {mean.round(4).tolist()}",
            flush=True,
        )
    for command, velocity in zip(COMMANDS, reached[0], strict=True):
        print(f"asked {command.tolist()}, reached {velocity.round(3).tolist()}")


if __name__ == "__main__":
    main()
