"""What the policy and its critic observe: the published 101 numbers and more."""

import flax.struct
import jax
import jax.numpy as jnp

from playground.policy.contract import Channel
from playground.robots.robot import Robot, Sensed
from playground.tasks.config import COMMAND_NAMES, LocomotionConfig
from playground.tasks.observation import ObservationTable, joint_noise, table
from playground.tasks.state import State

# Joint rates are an order of magnitude above the other channels.
_VELOCITY_SCALE = 0.05


@flax.struct.dataclass
class Subject:
    """What observation channels are read from.

    Attributes:
      state: The episode.
      sensed: Noise-free perception of `state.data`.
    """

    state: State
    sensed: Sensed


def policy_table(robot: Robot, config: LocomotionConfig) -> ObservationTable:
    """Returns the published Open Duck Mini V2 layout (101 numbers for 14 joints)."""
    n, noise = robot.model.nu, config.noise
    endings = {
        "hip_yaw": noise.hip_position,
        "hip_roll": noise.hip_position,
        "hip_pitch": noise.hip_position,
        "knee": noise.knee_position,
        "ankle": noise.ankle_position,
        "neck_pitch": noise.head_position,
        "head_pitch": noise.head_position,
        "head_yaw": noise.head_position,
        "head_roll": noise.head_position,
    }
    home = jnp.asarray(robot.home_pose, jnp.float32)
    offset = jnp.asarray(config.accelerometer_offset, jnp.float32)
    period = config.gait.phase_steps

    def clock(subject: Subject) -> jax.Array:
        angle = 2 * jnp.pi * (subject.state.phase % period) / period
        return jnp.array([jnp.cos(angle), jnp.sin(angle)])

    def recent(age: int):
        return lambda subject: subject.state.actions.recent[age]

    def channel(name, width, unit, noise=0.0, scale=1.0):
        noise = noise if isinstance(noise, tuple) else (noise,) * width
        return Channel(name, width, unit, scale, noise)

    return table(
        (channel("gyro", 3, "rad/s", noise.gyro), lambda s: s.state.imu.output[:3]),
        (
            channel("accelerometer", 3, "m/s^2", noise.accelerometer),
            lambda s: s.state.imu.output[3:] + offset,
        ),
        (
            channel("command", len(COMMAND_NAMES), "m/s, rad/s, rad"),
            lambda s: s.state.command,
        ),
        (
            channel("joint_position", n, "rad", joint_noise(robot.joints, endings)),
            lambda s: s.sensed.joint_position - home,
        ),
        (
            channel(
                "joint_velocity", n, "rad/s", noise.joint_velocity, _VELOCITY_SCALE
            ),
            lambda s: s.sensed.joint_velocity,
        ),
        (channel("last_action", n, "1"), recent(0)),
        (channel("second_last_action", n, "1"), recent(1)),
        (channel("third_last_action", n, "1"), recent(2)),
        (channel("motor_targets", n, "rad"), lambda s: s.state.actions.targets),
        (channel("foot_contacts", 2, "1"), lambda s: s.state.feet.contact),
        (channel("phase", 2, "1"), clock),
    )


def privileged_table(robot: Robot) -> ObservationTable:
    """Returns what the critic sees besides the noise-free policy observation."""
    n, feet = robot.model.nu, robot.spec.feet

    def channel(name, width, unit, scale=1.0):
        return Channel(name, width, unit, scale, (0.0,) * width)

    return table(
        (channel("gyro_now", 3, "rad/s"), lambda s: s.sensed["gyro"]),
        (channel("up", 3, "1"), lambda s: s.sensed["upvector"]),
        (channel("velocity", 3, "m/s, rad/s"), lambda s: s.state.motion.velocity),
        (channel("smooth_velocity", 3, "m/s, rad/s"), lambda s: s.state.motion.smooth),
        (channel("height", 1, "m"), lambda s: s.sensed["position"][2:]),
        (channel("torque", n, "N*m"), lambda s: s.sensed.joint_torque),
        (
            channel("foot_force", len(feet), "N", 0.05),
            lambda s: s.sensed.each(feet, "force")[:, 0],
        ),
        (
            channel("foot_height", len(feet), "m"),
            lambda s: s.sensed.each(feet, "pos")[:, 2],
        ),
        (channel("air_time", len(feet), "s"), lambda s: s.state.feet.air_time),
        (
            channel("delays", 2, "control steps"),
            lambda s: jnp.array([s.state.actions.delayed.steps, s.state.imu.steps]),
        ),
        (
            channel("time_to_kick", 1, "s", 0.1),
            lambda s: (s.state.kick.start - s.state.data.time)[None],
        ),
    )
