"""The locomotion task of a position-controlled biped: reset, step, restart.

All methods are pure functions of one robot, to be vmapped.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.physics.base import Data, Physics
from playground.physics.engines import make_physics
from playground.physics.settings import substeps_of
from playground.robots.names import find
from playground.robots.registry import load_robot
from playground.robots.robot import Sensed
from playground.tasks.actions import ActionMemory, act
from playground.tasks.commands import draw_command
from playground.tasks.config import COMMAND_NAMES, LocomotionConfig
from playground.tasks.delay import DelayLine, draw_delay
from playground.tasks.gait_guide import GaitGuide, moving
from playground.tasks.kicks import Kick, draw_kick, kick_wrench
from playground.tasks.policy_observation import Subject, policy_table, privileged_table
from playground.tasks.randomization import randomized_models
from playground.tasks.rewards import Moment, weighted_terms
from playground.tasks.state import (
    Feet,
    Motion,
    Outcome,
    State,
    heading_velocity,
    track_feet,
)

Observation = dict[str, jax.Array]

# A robot whose fastest joint or base speed (rad/s, m/s) passes this has diverged.
_FASTEST = 1e3


class Locomotion:
    """A robot, its physics and what is asked of it.

    Attributes:
      name: Task name.
      config: All that can be set.
      robot: The robot in its scene.
      physics: Engine and population.
      guide: Reference gait.
      observation: The table of the policy's observation.
      home_sole: m, height of the feet's sites where the soles lie flat.
    """

    name = "locomotion"

    def __init__(self, config: LocomotionConfig, seed: int = 0):
        """Loads the robot and builds the population.

        Args:
          config: All that can be set.
          seed: Seed of the randomised models.
        """
        self.config = config
        self.robot = load_robot(config.robot, config.scene, config.servo)
        self.physics: Physics = make_physics(
            randomized_models(self.robot, config.randomization, seed),
            config.engine,
            sim_dt=config.sim_dt,
            substeps=substeps_of(config.control_period, config.sim_dt),
            push_body=self.robot.spec.base,
        )
        self.guide = GaitGuide(self.robot, config)
        self.observation = policy_table(self.robot, config)
        self.privileged = privileged_table(self.robot)
        self._home = jnp.asarray(self.robot.home_pose, jnp.float32)
        self._mass = float(self.robot.model.body_mass.sum())
        self.home_sole, self._home_rise = self._home_heights()
        rate = self.robot.position_servo().rate_limit
        self._largest_move = rate * config.control_period if config.rate_limit else None

    @property
    def episode_steps(self) -> int:
        """Control steps in a full episode."""
        return round(self.config.episode_s / self.config.control_period)

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        return len(self.robot.joints)

    def reset(
        self, key: jax.Array, command: jax.Array | None = None
    ) -> tuple[State, Observation]:
        """Starts an episode.

        Args:
          key: Typed key; consumed.
          command: [7] held for good; None: drawn, and drawn anew every few seconds.
        """
        held = jnp.full(len(COMMAND_NAMES), jnp.nan) if command is None else command
        return self._start(key, held, needed=True)

    def restart(self, state: State, done: jax.Array) -> tuple[State, Observation]:
        """Returns a fresh episode after `state`; to be used only where `done` is True.

        Every field is renewed; the random stream runs on and a held command stays.
        """
        held = jnp.where(state.hold_command, state.command, jnp.nan)
        return self._start(state.key, held, needed=done)

    def step(self, state: State, action: jax.Array) -> tuple[State, Outcome]:
        """Moves a robot by one control step.

        Args:
          state: Where it is.
          action: [nu] the policy's output.

        Returns:
          The next state and what came of it. A diverged robot keeps the physics and
          actions it had before, so that all that is observed of it stays finite; it
          earns nothing for the step and is terminated.
        """
        c = self.config
        key, command_key, kick_key, noise_key = jax.random.split(state.key, 4)
        data, actions, diverged = self._move(state, action)
        sensed = self.robot.sense(data)
        feet_names = self.robot.spec.feet
        after = dataclasses.replace(
            state,
            data=data,
            key=key,
            step=state.step + 1,
            phase=state.phase + 1,
            actions=actions,
            imu=state.imu.push(_imu(sensed)),
            kick=self._next_kick(state, kick_key),
            motion=state.motion.push(heading_velocity(sensed)),
            feet=track_feet(state.feet, sensed, feet_names, c.control_period),
        )
        fallen = sensed["upvector"][2] < c.fall_cosine
        terminated = diverged | fallen
        moment = self._moment(after, sensed, terminated)
        earned = weighted_terms(c.weights, moment)
        terms = {name: jnp.where(diverged, 0.0, term) for name, term in earned.items()}
        # The reward is for what was asked; what is asked next is observed at once.
        command = self._next_command(after, command_key)
        after = dataclasses.replace(after, command=command)
        outcome = Outcome(
            obs=self._observe(after, sensed, noise_key),
            reward=sum(terms.values(), jnp.zeros(())) * c.control_period,
            terminated=terminated,
            truncated=(after.step >= self.episode_steps) & ~terminated,
            diverged=diverged,
            terms=terms,
        )
        return after, outcome

    def observe(self, state: State) -> Observation:
        """Returns the exact observation of a state, e.g. after a change of command."""
        return self._observe(state, self.robot.sense(state.data), None)

    def teacher(self, state: State, command: jax.Array) -> jax.Array:
        """Returns [nu] the action that plays the reference gait under a command [7]."""
        return self.guide.action(state.phase, command)

    def _start(self, key, held, needed) -> tuple[State, Observation]:
        c, feet_names = self.config, self.robot.spec.feet
        key, *keys = jax.random.split(key, 9)
        hold = jnp.isfinite(held).all()
        data = self.physics.init(
            self._start_pose(keys[0]),
            jnp.zeros(self.robot.model.nv),
            self._home,
            model_index=jax.random.randint(keys[1], (), 0, len(self.physics.models)),
            needed=needed,
        )
        sensed = self.robot.sense(data)
        phase = jax.random.randint(keys[2], (), 0, c.gait.phase_steps)
        delays = c.delays
        state = State(
            data=data,
            key=key,
            step=jnp.zeros((), jnp.int32),
            phase=phase if c.start.random_phase else jnp.zeros_like(phase),
            command=jnp.where(hold, held, draw_command(keys[3], c.command)),
            hold_command=hold,
            actions=ActionMemory.start(
                self.robot, draw_delay(keys[4], delays.action), delays.action
            ),
            imu=DelayLine.start(
                _imu(sensed), draw_delay(keys[5], delays.imu), delays.imu
            ),
            kick=draw_kick(keys[6], 0.0, self._mass, c.kicks),
            motion=Motion.start(heading_velocity(sensed), c.gait.phase_steps),
            feet=Feet(
                contact=sensed.each(feet_names, "contact")[:, 0] > 0,
                air_time=jnp.zeros(len(feet_names)),
                peak=sensed.each(feet_names, "pos")[:, 2],
            ),
        )
        return state, self._observe(state, sensed, keys[7])

    def _start_pose(self, key: jax.Array) -> jax.Array:
        """[nq] home, turned about the vertical, joints a little off."""
        start, robot = self.config.start, self.robot
        yaw_key, joint_key = jax.random.split(key)
        yaw = jax.random.uniform(yaw_key, (), minval=-start.yaw, maxval=start.yaw)
        offsets = jax.random.uniform(
            joint_key, (self.action_size,), minval=-start.joint, maxval=start.joint
        )
        quat = jnp.array([jnp.cos(yaw / 2), 0.0, 0.0, jnp.sin(yaw / 2)])
        qpos = jnp.asarray(robot.home_qpos, jnp.float32)
        return qpos.at[3:7].set(quat).at[robot.qpos_index].add(offsets)

    def _move(self, state: State, action) -> tuple[Data, ActionMemory, jax.Array]:
        """Physics and actions after one control step, and whether they diverged."""
        c, wrench = self.config, None
        actions = act(
            state.actions, action, self._home, c.action_scale, self._largest_move
        )
        if c.kicks.on:
            time = state.step * c.control_period
            substeps = self.physics.substeps
            wrench = kick_wrench(state.kick, time, substeps, c.sim_dt, c.kicks)
        moved = self.physics.step(state.data, actions.targets, wrench)
        fast = jnp.abs(moved.qvel).max() < _FASTEST  # False for NaN too
        finite = jnp.isfinite(moved.qpos).all() & jnp.isfinite(moved.sensordata).all()
        # An action is observed at once, but may reach the engine steps later.
        diverged = ~(fast & finite & jnp.isfinite(action).all())
        keep = functools.partial(jnp.where, diverged)
        data = jax.tree.map(keep, state.data, moved)
        return data, jax.tree.map(keep, state.actions, actions), diverged

    def _next_kick(self, state: State, key: jax.Array) -> Kick:
        """The same kick until it is over, then another."""
        over_at = state.kick.start + self.config.kicks.duration_s
        over = (state.step + 1) * self.config.control_period >= over_at
        fresh = draw_kick(key, over_at, self._mass, self.config.kicks)
        return jax.tree.map(functools.partial(jnp.where, over), fresh, state.kick)

    def _next_command(self, state: State, key: jax.Array) -> jax.Array:
        every = round(self.config.command.resample_s / self.config.control_period)
        resample = (state.step % every == 0) & ~state.hold_command
        drawn = draw_command(key, self.config.command)
        return jnp.where(resample, drawn, state.command)

    def _observe(
        self, state: State, sensed: Sensed, key: jax.Array | None
    ) -> Observation:
        subject = Subject(state, sensed)
        level = self.config.noise.level
        exact = self.observation.build(subject)
        return {
            "state": self.observation.build(subject, key, level) if level else exact,
            "privileged_state": jnp.concatenate(
                [exact, self.privileged.build(subject)]
            ),
        }

    def _moment(self, state: State, sensed: Sensed, terminated: jax.Array) -> Moment:
        feet = self.robot.spec.feet
        soles = sensed.each(feet, "pos")[:, 2]
        return Moment(
            sensed=sensed,
            command=state.command,
            moving=moving(state.command),
            motion=state.motion,
            feet=state.feet,
            actions=state.actions,
            home=self._home,
            head=self.guide.head,
            legs=self.guide.joints,
            # The targets answer to the clock and the command of one step before.
            leg_reference=self.guide.leg_targets(state.phase - 1, state.command),
            sole_velocity=sensed.each(feet, "linvel"),
            base_rise=sensed["position"][2] - soles.min() - self._home_rise,
            terminated=terminated,
        )

    def _home_heights(self) -> tuple[float, float]:
        """Height (m) of a foot's site over its level sole, and of the base over it."""
        model, foot = self.robot.model, self.robot.spec.feet[0]
        data = mujoco.MjData(model)
        data.qpos[:] = self.robot.home_qpos
        mujoco.mj_forward(model, data)
        sole, up = find(model, "geom", f"{foot}_sole"), f"{foot}_upvector"
        axes = data.geom_xmat[sole].reshape(3, 3)
        along = data.sensor(up).data @ axes
        site, base = data.sensor(f"{foot}_pos").data, data.sensor("position").data
        offset = axes.T @ (site - data.geom_xpos[sole])
        height = along @ offset + np.abs(along) @ model.geom_size[sole]
        return float(height), float(base[2] - site[2])


def _imu(sensed: Sensed) -> jax.Array:
    return jnp.concatenate([sensed["gyro"], sensed["accelerometer"]])
