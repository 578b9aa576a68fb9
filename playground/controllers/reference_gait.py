"""A walking gait from inverse kinematics alone: servo targets over phase and command.

The feet follow prescribed paths under a level trunk: half a period of stance, in which
a foot moves back past its place by v T / 4 either way, and half a period of swing, in
which it returns lifted by a half sine. All feet sway sideways together, and yaw for
turning. Inverse kinematics gives the joint angles of each ingredient once, per unit of
it; a gait is their sum, so its shape is a traced value like any gain:

    q(phase, command) = q_level + lift q_lift(phase) + sway sin(phase + ..) q_y + ...
                        + command . q_stride(phase)
"""

import dataclasses

import flax.struct
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.controllers.gait_config import GaitConfig
from playground.robots.names import find
from playground.robots.robot import Robot

_ITERATIONS, _DAMPING, _ANGLE_WEIGHT = 60, 1e-4, 0.05  # IK; 1 rad weighs like 0.05 m
# Sizes of the ingredients for which inverse kinematics is solved: a usual gait's.
_SHIFT, _LIFT = 0.02, 0.02  # m
_SPEEDS = (0.15, 0.15, 0.8)  # m/s, m/s, rad/s


@flax.struct.dataclass
class GaitShape:
    """Traced shape of a gait; scalars as in `GaitConfig`, stride [3]."""

    lift: jax.Array
    sway: jax.Array
    sway_phase: jax.Array
    stance_x: jax.Array
    stance_y: jax.Array
    stride: jax.Array

    @classmethod
    def of(cls, config: GaitConfig) -> "GaitShape":
        """Returns the shape that a config names."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{n: jnp.asarray(getattr(config, n), jnp.float32) for n in names})


@dataclasses.dataclass(frozen=True)
class ReferenceGait:
    """Leg joint angles of each ingredient of a gait, rad per unit of it.

    Attributes:
      joints: [n_leg] rows of the leg joints among the actuators.
      level: [n_leg] rad, level soles at the feet's home places, as offset from home.
      x: [n_leg] per m that all feet are ahead.
      y: [n_leg] per m that all feet are to the left.
      width: [n_leg] per m that each foot is outside.
      lift: [phase_steps, n_leg] per m of lift of the swing foot.
      stride: [phase_steps, 3, n_leg] per unit of (vx, vy, yaw rate).
    """

    joints: np.ndarray
    level: np.ndarray
    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    lift: np.ndarray
    stride: np.ndarray

    def target_offsets(
        self, shape: GaitShape, phase: jax.Array, command: jax.Array
    ) -> jax.Array:
        """Returns [n_leg] rad, the leg servos' targets as offsets from home.

        Args:
          shape: Of the gait.
          phase: Control step within the period, int32 scalar.
          command: [>= 3] vx (m/s), vy (m/s), yaw rate (rad/s), ...
        """
        steps = len(self.lift)
        index, angle = phase % steps, 2 * jnp.pi * phase / steps
        sway = shape.sway * jnp.sin(angle + shape.sway_phase)
        stance = shape.stance_x * self.x + sway * self.y + shape.stance_y * self.width
        lift = shape.lift * jnp.asarray(self.lift)[index]
        stride = (shape.stride * command[:3]) @ jnp.asarray(self.stride)[index]
        return jnp.asarray(self.level) + stance + lift + stride


def solve_reference_gait(
    robot: Robot, phase_steps: int, control_period: float
) -> ReferenceGait:
    """Solves the ingredients for a robot whose feet are sites named as in its spec.

    Args:
      robot: Two feet, left before right; each leg an own chain from the base.
      phase_steps: Control steps in a period; the left foot swings in the first half.
      control_period: s.
    """
    legs = [_Leg(robot, foot) for foot in robot.spec.feet]
    swings = [[_swing(leg, i, phase_steps) for leg in legs] for i in range(phase_steps)]

    def solve(shifts, yaws=(0.0, 0.0)) -> np.ndarray:
        placed = zip(legs, shifts, yaws, strict=True)
        return np.concatenate([leg.solve(np.array(d), yaw) for leg, d, yaw in placed])

    def slope(left, right) -> np.ndarray:
        there, back = np.array([left, right]), -np.array([left, right])
        return (solve(there) - solve(back)) / (2 * np.abs(there).max())

    level = solve([(0, 0, 0)] * 2)
    lifts = [
        [(0, 0, _LIFT * np.sin(np.pi * swing) if swing < 1 else 0) for swing in pair]
        for pair in swings
    ]
    reaches = (
        0.25
        * phase_steps
        * control_period
        * np.array([[_stride(swing) for swing in pair] for pair in swings])
    )
    strides = [
        [
            (solve(*_feet(legs, probe, reach)) - solve(*_feet(legs, -probe, reach)))
            / (2 * probe.sum())
            for probe in np.diag(_SPEEDS)
        ]
        for reach in reaches
    ]
    return ReferenceGait(
        joints=np.concatenate([leg.rows for leg in legs]),
        level=level,
        x=slope((_SHIFT, 0, 0), (_SHIFT, 0, 0)),
        y=slope((0, _SHIFT, 0), (0, _SHIFT, 0)),
        width=slope((0, _SHIFT, 0), (0, -_SHIFT, 0)),
        lift=np.array([(solve(lift) - level) / _LIFT for lift in lifts]),
        stride=np.array(strides),
    )


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

    def solve(self, shift: np.ndarray, yaw: float = 0.0) -> np.ndarray:
        """Returns offsets from home that put the sole level at a place and yaw.

        Args:
          shift: [3] m from the foot's home place, in the trunk's frame.
          yaw: rad.
        """
        position = self.home_position + shift
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


def _swing(leg: _Leg, i: int, steps: int) -> float:
    """Progress at phase step `i`: 0..1 through swing, then 1..2 through stance."""
    return (2 * i / steps + (0.0 if leg.side > 0 else 1.0)) % 2.0


def _stride(progress: float) -> float:
    """Place along the stride, -1..1: forwards in swing, backwards in stance."""
    return 2 * progress - 1 if progress < 1 else 3 - 2 * progress


def _feet(
    legs: list[_Leg], velocity: np.ndarray, reach: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Shifts (m) and yaws (rad) of the feet, each `reach` (s) of travel ahead."""
    shifts = []
    for leg, ahead in zip(legs, reach, strict=True):
        # Turning: the foot circles the trunk's origin by the angle that it yaws.
        yaw, (x, y, _) = velocity[2] * ahead, leg.home_position
        turned = [
            x * np.cos(yaw) - y * np.sin(yaw) - x,
            x * np.sin(yaw) + y * np.cos(yaw) - y,
        ]
        shifts.append(np.array([*(velocity[:2] * ahead + turned), 0.0]))
    return shifts, velocity[2] * reach
