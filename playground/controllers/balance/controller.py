"""The balance controller: posture, ankle and hip strategy, steps, in one function.

Which strategies act is part of the gains, so that one compiled batch holds them all.
"""

import flax.struct
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.controllers.balance.forces import Plan, follow_lean, plan_force
from playground.controllers.balance.gains import BalanceGains
from playground.controllers.balance.legs import LegSize, joint_torques, leg_angles
from playground.controllers.balance.perception import (
    LEG,
    SIDES,
    Perceived,
    Perception,
)
from playground.controllers.balance.stepping import Step, advance, standing, swing_path
from playground.robots.robot import Robot, Sensed

jax.tree_util.register_dataclass(BalanceGains)

# Posture, per joint: stiffness, N m/rad (the last: of roll); damping, N m s/rad.
_KP, _KD, _KP_ROLL = 120.0, 6.0, 400.0
# A leg idles below the first value, and is moved by forces alone from the second on.
# Without steps the load of its sole decides, N. With steps its sole's height does, m
# below the floor: a leg set down, or about to carry alone, must push at once.
_LOAD, _NEAR = (20.0, 60.0), (-0.03, -0.01)
# Share of the gains that guide a leg, by joint: a light foot would chatter.
_GUIDE = (1.0, 1.0, 1.0, 0.2, 0.2)
# Crouches, m, for which it is found how to stand; between them it is interpolated.
_CROUCHES, _ROUNDS = np.linspace(0.0, 0.12, 7), 5
_KNEE, _ANKLES = 2, slice(3, 5)


@flax.struct.dataclass
class BalanceMemory:
    """What the controller keeps between two steps.

    Attributes:
      lean: [2] lean of the trunk asked for, rad.
      step: the step under way.
      foothold: [2, 3] where each sole last carried or swung to, m, world frame.
    """

    lean: jax.Array
    step: Step
    foothold: jax.Array


class BalanceController:
    """Keeps a biped from falling; a pure function, to be vmapped over gains and robots.

    Attributes:
      robot: The robot.
      period: s between two calls.
      mass: kg.
      limit: [nu] largest torques, N·m.
    """

    def __init__(self, robot: Robot, period: float):
        """Finds what it needs in the robot's model.

        Raises:
          PlaygroundError: the robot is no biped of this kind.
        """
        self.robot, self.period = robot, period
        self.perception = Perception(robot)
        self.mass = float(robot.model.body_mass.sum())
        self._legs = self.perception.legs
        self._arms = robot.joint_rows("shoulder_pitch")
        self._kp = np.full(robot.model.nu, _KP, np.float32)
        self._kp[robot.joint_rows("_roll")] = _KP_ROLL
        self.limit = robot.model.actuator_ctrlrange[:, 1].astype(np.float32)
        self._measure(robot)

    def _measure(self, robot: Robot) -> None:
        """Takes lengths from the model at home."""
        model, data = robot.model, mujoco.MjData(robot.model)
        data.qpos[:] = robot.home_qpos
        mujoco.mj_forward(model, data)
        joint = {
            (side, name): data.xanchor[model.joint(f"{side}_{name}").id]
            for side in SIDES
            for name in LEG
        }
        base = data.xpos[robot.base_body]
        hip, knee, ankle = (
            np.stack([joint[side, name] for side in SIDES])
            for name in ("hip_pitch", "knee", "ankle_pitch")
        )
        sizes = (hip - base, hip[:, 2] - knee[:, 2], knee[:, 2] - ankle[:, 2])
        aside = ankle[:, 1] - hip[:, 1]
        self._size = LegSize(*(jnp.asarray(x, jnp.float32) for x in (*sizes, aside)))
        sole = np.stack([data.site(f"{side}_foot").xpos for side in SIDES])
        self._ankle_from_sole = jnp.asarray(ankle - sole, jnp.float32)
        below = [
            [
                model.body_subtreemass[model.joint(f"{side}_{name}").bodyid[0]]
                for name in LEG
            ]
            for side in SIDES
        ]
        self._mass_below = jnp.asarray(below, jnp.float32)
        self._com_height = float(data.subtree_com[robot.base_body, 2])
        self._balance_crouches(robot)

    def init(self, sensed: Sensed) -> BalanceMemory:
        """Returns the memory of a robot that stands."""
        foot = self.perception(sensed).foot
        return BalanceMemory(lean=jnp.zeros(2), step=standing(), foothold=foot)

    def pose(self, gains: BalanceGains) -> jax.Array:
        """Returns the joint angles [nu] to stand with, rad."""
        home = jnp.asarray(self.robot.home_pose, jnp.float32)
        return home.at[self._legs].set(self._crouched(gains.crouch))

    def _crouched(self, crouch: jax.Array | float) -> jax.Array:
        """Returns the leg angles [2, 5] that stand so much lower than upright."""
        back = jnp.interp(crouch, _CROUCHES, self._back)
        size = self._size
        down = crouch - size.thigh - size.shank
        ankle = jnp.stack([jnp.full(2, back), size.aside, down], 1)
        upright = jnp.eye(3)
        return jax.vmap(leg_angles, (None, 0, None, None, 0))(
            jnp.zeros(3), ankle, upright, upright, size
        )

    def _balance_crouches(self, robot: Robot) -> None:
        """Finds how far back the hips must be for the whole body to be above the feet.

        Knees that bend bring mass forward. The centre of mass moves about as far as the
        hips do, so a few rounds of moving them by what is missing suffice.
        """
        model, data = robot.model, mujoco.MjData(robot.model)
        back = np.zeros(len(_CROUCHES))
        for i, crouch in enumerate(_CROUCHES):
            for _ in range(_ROUNDS):
                self._back = jnp.asarray(back)
                data.qpos[:] = robot.home_qpos
                data.qpos[robot.qpos_index[self._legs]] = self._crouched(crouch)
                mujoco.mj_forward(model, data)
                ankles = [
                    data.xanchor[model.joint(f"{s}_ankle_pitch").id] for s in SIDES
                ]
                ahead = data.subtree_com[robot.base_body] - np.mean(ankles, axis=0)
                back[i] += ahead[0]
        self._back = jnp.asarray(back, jnp.float32)

    def __call__(
        self, gains: BalanceGains, memory: BalanceMemory, sensed: Sensed
    ) -> tuple[BalanceMemory, jax.Array]:
        """Returns the next memory and the torques [nu], N m, within their limits."""
        seen = self.perception(sensed)
        half = self.perception.half_sole
        capture = seen.capture_point(self.mass, gains.momentum)
        step = advance(memory.step, gains, seen, capture, half, self.period)
        height = self._com_height - gains.crouch
        plan = plan_force(
            gains, seen, step.stance, memory.lean, height, self.mass, half
        )
        lean = follow_lean(gains, memory.lean, plan.excess, self.period)
        pose = self.pose(gains)
        pose = pose.at[self._arms].add(gains.arms * lean @ seen.ahead)
        error = pose - sensed.joint_position
        torque = jnp.asarray(self._kp * error - _KD * sensed.joint_velocity)
        placed = (seen.load > _LOAD[1]) | ~step.stance
        foothold = jnp.where(placed[:, None], seen.foot, memory.foothold)
        guided = self._guide(gains, seen, step, foothold)
        # A robot that may not step keeps its feet where they were.
        holds = (gains.ankle > 0) & (gains.step == 0)
        posture = torque[self._legs]
        idle = jnp.where(holds, guided, posture)
        legs = self._carry(gains, seen, plan, posture, error[self._legs])
        legs = idle + self._carries(gains, seen)[:, None] * (legs - idle)
        legs = jnp.where(step.stance[:, None], legs, guided)
        torque = torque.at[self._legs].set(legs)
        return (
            BalanceMemory(lean=lean, step=step, foothold=foothold),
            jnp.clip(torque, -self.limit, self.limit),
        )

    def _carries(self, gains: BalanceGains, seen: Perceived) -> jax.Array:
        """Returns [2] how far each leg carries, 0 to 1."""
        near = _ramp(seen.floor - seen.foot[:, 2], _NEAR)
        return jnp.where(gains.step > 0, near, _ramp(seen.load, _LOAD))

    def _carry(
        self,
        gains: BalanceGains,
        seen: Perceived,
        plan: Plan,
        posture: jax.Array,
        error: jax.Array,
    ) -> jax.Array:
        """Returns the torques [2, 5] of legs that carry: forces where they act."""
        support = plan.support
        torque = joint_torques(seen, plan.force, support.point, self._mass_below)
        torque = torque - gains.leg_damping * seen.rate
        torque = torque.at[:, _KNEE].add(gains.knee_kp * error[:, _KNEE])
        acts = jnp.zeros(len(LEG)).at[: _KNEE + 1].set(gains.hip)
        acts = acts.at[_ANKLES].set(gains.ankle)
        return posture + acts * (torque - posture)

    def _guide(
        self, gains: BalanceGains, seen: Perceived, step: Step, foothold: jax.Array
    ) -> jax.Array:
        """Returns the torques [2, 5] that swing a leg, or hold it to its foothold."""

        def angles(ahead: float) -> jax.Array:
            path = swing_path(step, gains, seen.floor, step.time + ahead)
            stay = foothold.at[:, 2].set(seen.floor)
            sole = jnp.where(step.stance[:, None], stay, path)
            hip = seen.position + self._size.hip @ seen.attitude.T
            hip = hip + ahead * seen.trunk_velocity
            ankle = sole + self._ankle_from_sole @ seen.heading.T
            return jax.vmap(leg_angles, (0, 0, None, None, 0))(
                hip, ankle, seen.attitude, seen.heading, self._size
            )

        now = angles(0.0)
        rate = (angles(self.period) - now) / self.period
        nothing = jnp.zeros((len(SIDES), 3))
        held = joint_torques(seen, nothing, seen.foot, self._mass_below)
        follow = gains.guide_kp * (now - seen.angle)
        follow = follow + gains.guide_kd * (rate - seen.rate)
        return held + jnp.array(_GUIDE) * follow


def _ramp(value: jax.Array, ends: tuple[float, float]) -> jax.Array:
    """Returns 0 up to the first end, 1 from the second on."""
    low, high = ends
    return jnp.clip((value - low) / (high - low), 0.0, 1.0)
