"""One robot that stands, is pushed and is watched: pure functions, to be vmapped."""

import dataclasses

import flax.struct
import jax
import jax.numpy as jnp

from playground.controllers.balance.controller import BalanceController, BalanceMemory
from playground.controllers.balance.gains import BalanceGains
from playground.controllers.balance.perception import Perceived
from playground.physics.base import Data, Physics
from playground.physics.push import push_fraction
from playground.robots.robot import Robot, Sensed

# What counts as recovered: the trunk's axis against the vertical (26 deg), root above
# this, m, centre of mass slower than this, m/s, ankles never farther from their place
# than this, m, where no step is allowed.
UPRIGHT, ROOT_HEIGHT, STILL, PLACE = 0.9, 0.95, 0.1, 0.06
# A root this low, m, never comes up again.
FALLEN = 0.6


@flax.struct.dataclass
class Push:
    """What one robot is given.

    Attributes:
      gains: of its controller.
      force: [3] N, world frame, from time 0 for as long as the push lasts.
    """

    gains: BalanceGains
    force: jax.Array


@flax.struct.dataclass
class Trial:
    """One robot under way.

    Attributes:
      data: of its physics.
      memory: of its controller.
      time: s since the push began; negative before.
      key: [2] uint32, data of a random key, for its sensors' noise.
      ankles: [2, 3] m, where they were at time 0.
      com: [2] m, where the centre of mass was at time 0.
      stands: whether it would count as recovered now.
      fallen: whether it ever was down.
      moved: m, how far an ankle ever was from its place.
      saturated_s: s, how long any joint was at its torque limit.
      peak_lean: rad, of the trunk.
      peak_offset: m, of the centre of mass, horizontally.
    """

    data: Data
    memory: BalanceMemory
    time: jax.Array
    key: jax.Array
    ankles: jax.Array
    com: jax.Array
    stands: jax.Array
    fallen: jax.Array
    moved: jax.Array
    saturated_s: jax.Array
    peak_lean: jax.Array
    peak_offset: jax.Array


@dataclasses.dataclass(frozen=True)
class TrialStep:
    """Begins trials and moves them by one control step.

    Attributes:
      robot: Who is pushed.
      physics: The engine, pushing the robot's base.
      controller: Of balance.
      duration: s, of the push.
      lever: m, from the pushed body's centre of mass up to where the push acts.
      position_noise: m, standard deviation, of sensed places.
      velocity_noise: m/s, standard deviation, of the centre of mass's sensed velocity.
    """

    robot: Robot
    physics: Physics
    controller: BalanceController
    duration: float
    lever: float
    position_noise: float = 0.0
    velocity_noise: float = 0.0

    def begin(self, gains: BalanceGains, model: jax.Array, settle: float) -> Trial:
        """Puts a robot on its feet `settle` s before the push, as its gains stand."""
        robot, pose = self.robot, self.controller.pose(gains)
        qpos = jnp.asarray(robot.home_qpos, jnp.float32)
        qpos = qpos.at[robot.qpos_index].set(pose).at[2].add(-gains.crouch)
        still = jnp.zeros(robot.model.nv), jnp.zeros(robot.model.nu)
        data = self.physics.init(qpos, *still, model)
        sensed = robot.sense(data)
        seen = self.controller.perception(sensed)
        return Trial(
            data=data,
            memory=self.controller.init(sensed),
            time=jnp.float32(-settle),
            key=jnp.zeros(2, jnp.uint32),
            ankles=seen.ankle,
            com=seen.com[:2],
            stands=jnp.bool_(True),
            fallen=jnp.bool_(False),
            moved=jnp.zeros(()),
            saturated_s=jnp.zeros(()),
            peak_lean=jnp.zeros(()),
            peak_offset=jnp.zeros(()),
        )

    def __call__(self, trial: Trial, push: Push) -> Trial:
        """Moves a robot by one control step."""
        memory, torque = self._act(trial, push)
        data = self.physics.step(trial.data, torque, self._wrench(trial, push))
        seen = self.controller.perception(self.robot.sense(data))
        period = self.physics.control_period
        # Times are sums of periods: half a one decides.
        before = trial.time < -period / 2
        ankles = jnp.where(before, seen.ankle, trial.ankles)
        com = jnp.where(before, seen.com[:2], trial.com)
        saturated = (jnp.abs(torque) >= self.controller.limit).any()
        found = {
            "moved": jnp.linalg.norm(seen.ankle - ankles, axis=-1).max(),
            "peak_lean": jnp.arccos(jnp.clip(seen.attitude[2, 2], -1.0, 1.0)),
            "peak_offset": jnp.linalg.norm(seen.com[:2] - com),
        }
        peaks = {
            name: jnp.where(before, 0.0, jnp.maximum(getattr(trial, name), value))
            for name, value in found.items()
        }
        # NaN is never above anything: a diverged robot has fallen.
        fallen = trial.fallen | ~(seen.position[2] > FALLEN)
        return dataclasses.replace(
            trial,
            data=data,
            memory=memory,
            time=trial.time + period,
            ankles=ankles,
            com=com,
            stands=~fallen & self._stands(seen, push.gains, peaks["moved"]),
            fallen=fallen,
            saturated_s=trial.saturated_s + jnp.where(before, 0.0, period * saturated),
            **peaks,
        )

    def inputs(self, trial: Trial, push: Push) -> tuple[jax.Array, jax.Array]:
        """Returns what moves a robot next: torques [nu], N·m; push [substeps, 6]."""
        return self._act(trial, push)[1], self._wrench(trial, push)

    def _act(self, trial: Trial, push: Push) -> tuple[BalanceMemory, jax.Array]:
        sensed = self._noisy(self.robot.sense(trial.data), trial)
        return self.controller(push.gains, trial.memory, sensed)

    def _stands(
        self, seen: Perceived, gains: BalanceGains, moved: jax.Array
    ) -> jax.Array:
        return (
            (seen.attitude[2, 2] > UPRIGHT)
            & (seen.position[2] > ROOT_HEIGHT)
            & (jnp.linalg.norm(seen.velocity) < STILL)
            & ((gains.step > 0) | (moved <= PLACE))
        )

    def _wrench(self, trial: Trial, push: Push) -> jax.Array:
        """Returns [substeps, 6] the push of a control step, at the centre of mass."""
        substeps, sim_dt = self.physics.substeps, self.physics.model.opt.timestep
        share = push_fraction(trial.time, self.duration, substeps, sim_dt)
        up = self.controller.perception(self.robot.sense(trial.data)).attitude[:, 2]
        torque = jnp.cross(self.lever * up, push.force)
        return share[:, None] * jnp.concatenate([push.force, torque])

    def _noisy(self, sensed: Sensed, trial: Trial) -> Sensed:
        """Adds noise to what is sensed of the centre of mass and the feet."""
        if not (self.position_noise or self.velocity_noise):
            return sensed
        step = jnp.round(trial.time / self.physics.control_period).astype(jnp.int32)
        key = jax.random.wrap_key_data(trial.key)
        keys = jax.random.split(jax.random.fold_in(key, step), 4)
        spreads = {
            "com": self.position_noise,
            "com_linvel": self.velocity_noise,
            "left_foot_pos": self.position_noise,
            "right_foot_pos": self.position_noise,
        }
        noisy = {
            name: sensed[name] + spread * jax.random.normal(key, (3,))
            for key, (name, spread) in zip(keys, spreads.items(), strict=True)
        }
        return dataclasses.replace(sensed, sensors=sensed.sensors | noisy)
