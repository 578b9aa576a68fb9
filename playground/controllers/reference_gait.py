"""A walking gait from inverse kinematics alone: joint angles over phase and command.

The feet follow prescribed paths under a level trunk: half a period of stance, in which
a foot moves back past its home place by v T / 4 either way, and half a period of swing,
in which it returns lifted by a half sine. The trunk sways over the stance foot and the
feet yaw for turning. The solution is stored for stepping in place and, as central
differences, for each of (vx, vy, yaw rate), so that

    q(phase, command) = q_home + q_step(phase) + dq/dcommand(phase) . command

is linear in the command and costs one table look-up.
"""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.controllers.gait_config import GaitConfig
from playground.robots.names import find
from playground.robots.robot import Robot
from playground.robots.servo import Servo

_HARMONICS = 4  # of the gait period, which servo targets are made of
_ITERATIONS, _DAMPING, _ANGLE_WEIGHT = 60, 1e-4, 0.05  # IK; 1 rad weighs like 0.05 m


@dataclasses.dataclass(frozen=True)
class ReferenceGait:
    """Tables of leg joint angles.

    Attributes:
      joints: [n_leg] rows of the leg joints among the actuators.
      step: [phase_steps, n_leg] rad, offset from home when stepping in place.
      slope: [phase_steps, 3, n_leg] rad per unit of (vx, vy, yaw rate).
      target_step: [phase_steps, n_leg] rad, servo targets that make `step` come true.
      target_slope: [phase_steps, 3, n_leg] likewise for `slope`.
      foot_height: [phase_steps, n_feet] m, how far each foot is lifted.
    """

    joints: np.ndarray
    step: np.ndarray
    slope: np.ndarray
    target_step: np.ndarray
    target_slope: np.ndarray
    foot_height: np.ndarray

    def joint_offsets(self, phase: jax.Array, command: jax.Array) -> jax.Array:
        """Returns [n_leg] rad, the leg joints' offsets from home.

        Args:
          phase: Control step within the period, int32 scalar.
          command: [>= 3] vx (m/s), vy (m/s), yaw rate (rad/s), ...
        """
        return self._look_up(self.step, self.slope, phase, command)

    def target_offsets(self, phase: jax.Array, command: jax.Array) -> jax.Array:
        """Returns [n_leg] rad, servo targets' offsets from home; see `joint_offsets`.

        They lead the joints by what the servos lag behind.
        """
        return self._look_up(self.target_step, self.target_slope, phase, command)

    def lift(self, phase: jax.Array) -> jax.Array:
        """Returns [n_feet] m, how far each foot is lifted; 0 in stance."""
        return jnp.asarray(self.foot_height)[phase % len(self.step)]

    @staticmethod
    def _look_up(step, slope, phase, command) -> jax.Array:
        index = phase % len(step)
        return jnp.asarray(step)[index] + command[:3] @ jnp.asarray(slope)[index]


def solve_reference_gait(
    robot: Robot, config: GaitConfig, control_period: float
) -> ReferenceGait:
    """Solves the gait for a robot whose feet are sites named as in its spec.

    Args:
      robot: Two feet, left before right; each leg an own chain from the base.
      config: Shape of the gait.
      control_period: s.
    """
    legs = [_Leg(robot, foot) for foot in robot.spec.feet]
    period = config.phase_steps * control_period
    # Speeds at which the differences are taken: those of a brisk walk.
    probes = np.diag([0.15, 0.15, 0.8])

    def solve(command: np.ndarray) -> np.ndarray:
        return np.array(
            [
                np.concatenate(
                    [
                        leg.solve(*_foot_pose(leg, i, config, period, command))
                        for leg in legs
                    ]
                )
                for i in range(config.phase_steps)
            ]
        )

    step = solve(np.zeros(3))
    slopes = [(solve(p) - solve(-p)) / (2 * p.sum()) for p in probes]
    heights = [
        [_lift(leg, i, config) for leg in legs] for i in range(config.phase_steps)
    ]
    slope = np.stack(slopes, axis=1)
    return ReferenceGait(
        joints=np.concatenate([leg.rows for leg in legs]),
        step=step,
        slope=slope,
        target_step=_servo_targets(step, robot.servo, period),
        target_slope=_servo_targets(slope, robot.servo, period),
        foot_height=np.array(heights),
    )


def _servo_targets(angles: np.ndarray, servo: Servo, period: float) -> np.ndarray:
    """Targets that make an unloaded servo follow periodic angles, [phase_steps, ...].

    From kp (target - q) = armature q'' + (damping + kv) q', harmonic by harmonic; the
    highest are left out, since no servo follows the corners of a foot path.
    """
    steps = len(angles)
    omega = 2 * np.pi / period * np.arange(steps // 2 + 1)
    drag = servo.damping + servo.kv
    gain = 1 + (1j * drag * omega - servo.armature * omega**2) / servo.kp
    gain[_HARMONICS + 1 :] = 0.0
    spectrum = np.fft.rfft(angles, axis=0)
    gain = gain.reshape(-1, *[1] * (angles.ndim - 1))
    return np.fft.irfft(gain * spectrum, n=steps, axis=0)


class _Leg:
    """One leg's inverse kinematics under a trunk that stays put."""

    def __init__(self, robot: Robot, foot: str):
        self.model, self.data = robot.model, mujoco.MjData(robot.model)
        self.site = find(robot.model, "site", foot)
        self.side = 1 if foot == robot.spec.feet[0] else -1
        chain, body = [], robot.model.site_bodyid[self.site]
        while body != robot.base_body:
            chain.append(body)
            body = robot.model.body_parentid[body]
        joint_body = robot.model.jnt_bodyid[robot.model.actuator_trnid[:, 0]]
        self.rows = np.flatnonzero(np.isin(joint_body, chain))
        self.qpos, self.dofs = robot.qpos_index[self.rows], robot.dof_index[self.rows]
        self.range = robot.joint_range[self.rows]
        self.home_qpos = robot.home_qpos
        self.data.qpos[:] = self.home_qpos
        mujoco.mj_kinematics(self.model, self.data)
        self.home_position = self.data.site_xpos[self.site].copy()

    def solve(self, position: np.ndarray, yaw: float) -> np.ndarray:
        """Returns offsets from home that put the sole level at a place and yaw."""
        m, d = self.model, self.data
        home = self.home_qpos[self.qpos]
        level = np.array(
            [[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]]
        )
        d.qpos[:] = self.home_qpos
        jac_position, jac_angle = np.zeros((3, m.nv)), np.zeros((3, m.nv))
        for _ in range(_ITERATIONS):
            mujoco.mj_kinematics(m, d)
            mujoco.mj_comPos(m, d)
            mujoco.mj_jacSite(m, d, jac_position, jac_angle, self.site)
            turn = np.zeros(3)
            current = d.site_xmat[self.site].reshape(3, 3)
            quat = np.zeros(4)
            mujoco.mju_mat2Quat(quat, (level @ current.T).ravel())
            mujoco.mju_quat2Vel(turn, quat, 1.0)
            error = np.r_[position - d.site_xpos[self.site], _ANGLE_WEIGHT * turn]
            jac = np.vstack([jac_position, _ANGLE_WEIGHT * jac_angle])[:, self.dofs]
            step = np.linalg.solve(
                jac.T @ jac + _DAMPING**2 * np.eye(len(self.dofs)), jac.T @ error
            )
            d.qpos[self.qpos] = np.clip(d.qpos[self.qpos] + step, *self.range.T)
        return d.qpos[self.qpos] - home


def _foot_pose(
    leg: _Leg, i: int, config: GaitConfig, period: float, command: np.ndarray
) -> tuple[np.ndarray, float]:
    """Position (m) and yaw (rad) of a foot relative to the trunk at phase step `i`."""
    phase = 2 * np.pi * i / config.phase_steps
    swing = _swing(leg, i, config)
    # Fraction of the half stride: from +1 to -1 in stance and back in swing.
    stride = 2 * swing - 1 if swing is not None else 1 - 2 * _half(leg, i, config)
    reach = 0.25 * period * stride
    x, y, z = leg.home_position
    yaw_rate = command[2]
    # Turning: the foot circles the trunk's origin by the angle that it yaws.
    yaw = yaw_rate * reach
    turned = np.array(
        [x * np.cos(yaw) - y * np.sin(yaw), x * np.sin(yaw) + y * np.cos(yaw)]
    )
    # The left foot swings in the first half: then the trunk leans to the right.
    sway = config.sway * np.sin(phase)
    return (
        np.array(
            [
                turned[0] + command[0] * reach,
                turned[1] + command[1] * reach + sway,
                z + _lift(leg, i, config),
            ]
        ),
        yaw,
    )


def _half(leg: _Leg, i: int, config: GaitConfig) -> float:
    """Progress 0..1 through the half period that the leg is in."""
    return (2 * i / config.phase_steps) % 1.0


def _swing(leg: _Leg, i: int, config: GaitConfig) -> float | None:
    """Progress 0..1 through swing; None in stance. Left swings first."""
    in_first_half = i / config.phase_steps < 0.5
    swings = in_first_half == (leg.side > 0)
    return _half(leg, i, config) if swings else None


def _lift(leg: _Leg, i: int, config: GaitConfig) -> float:
    swing = _swing(leg, i, config)
    return 0.0 if swing is None else config.lift * np.sin(np.pi * swing)
