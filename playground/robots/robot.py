"""A robot: its scenes, and its joints and sensors found by name, once."""

import dataclasses
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.errors import PlaygroundError, unknown
from playground.robots.names import find, names
from playground.robots.servo import Servo
from playground.robots.spec import RobotSpec


def _nothing() -> Any:
    return dataclasses.field(default_factory=dict)


@flax.struct.dataclass
class Sensed:
    """What a robot perceives, by name; the same on every engine, without noise.

    Attributes:
      time: s, scalar.
      joint_position: [n_joints] encoder readings, rad or m (backlash included), in the
        order of `Robot.joints`.
      joint_velocity: [n_joints] their rates, rad/s or m/s.
      joint_torque: [n_joints] what the servos exert, N·m or N.
      sensors: the model's named sensors, in MuJoCo's units and frames.
      base_position: where the base joints of a robot without a floating base are, by
        name, m or rad.
      base_velocity: their rates, m/s or rad/s.
    """

    time: jax.Array
    joint_position: jax.Array
    joint_velocity: jax.Array
    joint_torque: jax.Array
    sensors: dict[str, jax.Array]
    base_position: dict[str, jax.Array] = _nothing()
    base_velocity: dict[str, jax.Array] = _nothing()

    def __getitem__(self, sensor: str) -> jax.Array:
        """Returns the reading of one sensor, [width]."""
        if sensor not in self.sensors:
            raise unknown("sensor", sensor, self.sensors)
        return self.sensors[sensor]

    def each(self, parts: tuple[str, ...], quantity: str) -> jax.Array:
        """Returns [len(parts), width] readings of the sensors `<part>_<quantity>`."""
        return jnp.stack([self[f"{part}_{quantity}"] for part in parts])


class Robot:
    """A robot in one scene, with every name resolved into read-only index arrays.

    Attributes:
      spec: What the robot was made from.
      scene: Name of the scene.
      model: Its MuJoCo model, servo constants applied. Not to be changed.
      servo: The servo of every actuated joint; None: motors of the model's own.
      joints: [n_joints] names of the actuated joints, each once, in the order of their
        first actuators.
      home_qpos: [nq] the keyframe `home`.
      home_pose: [n_joints] its joint positions, rad or m.
      joint_range: [n_joints, 2] rad or m.
    """

    def __init__(self, spec: RobotSpec, scene: str, servo: Servo | None):
        """Loads the model; see `load_robot`.

        Raises:
          PlaygroundError: no such scene, or the model lacks a part it needs.
        """
        if scene not in spec.scenes:
            raise unknown(f"scene of {spec.name}", scene, spec.scenes)
        self.spec = spec
        self.scene = scene
        self.servo = servo
        # Shapes that only please the eye cost a fifth of the physics' speed.
        mjcf = mujoco.MjSpec.from_file(str(spec.scenes[scene]))
        mjcf.compiler.discardvisual = True
        self.model = model = mjcf.compile()
        joint_ids = list(dict.fromkeys(model.actuator_trnid[:, 0].tolist()))
        all_joints = names(model, "joint")
        self.joints = tuple(model.joint(i).name for i in joint_ids)
        self.base_body = find(model, "body", spec.base)
        with_backlash = [
            (row, find(model, "joint", f"{joint}_backlash"))
            for row, joint in enumerate(self.joints)
            if f"{joint}_backlash" in all_joints
        ]
        backlash_ids = [joint for _, joint in with_backlash]
        self._backlash_rows = _frozen([row for row, _ in with_backlash])
        self._backlash_qpos = _frozen(model.jnt_qposadr[backlash_ids])
        self._backlash_dofs = _frozen(model.jnt_dofadr[backlash_ids])
        self.qpos_index = _frozen(model.jnt_qposadr[joint_ids])
        self.dof_index = _frozen(model.jnt_dofadr[joint_ids])
        if servo:
            servo.apply(model, self.dof_index, self._backlash_dofs, backlash_ids)
        self.joint_range = _frozen(model.jnt_range[joint_ids], float)
        self.home_qpos = _frozen(model.key_qpos[find(model, "key", "home")], float)
        self.home_pose = _frozen(self.home_qpos[self.qpos_index], float)
        self._sensors = {
            name: slice(model.sensor(name).adr[0], sum(_span(model, name)))
            for name in names(model, "sensor")
        }

        base = {name: find(model, "joint", name) for name in spec.base_joints}
        self._base_qpos = {n: int(model.jnt_qposadr[i]) for n, i in base.items()}
        self._base_dof = {n: int(model.jnt_dofadr[i]) for n, i in base.items()}
        torques = [find(model, "sensor", f"{joint}_torque") for joint in self.joints]
        self._torque_index = _frozen(model.sensor_adr[torques])

    def sense(self, data) -> Sensed:
        """Reads one robot's `physics.Data`."""
        position = data.qpos[self.qpos_index]
        velocity = data.qvel[self.dof_index]
        if self._backlash_rows.size:
            rows = self._backlash_rows
            position = position.at[rows].add(data.qpos[self._backlash_qpos])
            velocity = velocity.at[rows].add(data.qvel[self._backlash_dofs])
        return Sensed(
            time=data.time,
            joint_position=position,
            joint_velocity=velocity,
            joint_torque=data.sensordata[self._torque_index],
            sensors={n: data.sensordata[where] for n, where in self._sensors.items()},
            base_position={n: data.qpos[i] for n, i in self._base_qpos.items()},
            base_velocity={n: data.qvel[i] for n, i in self._base_dof.items()},
        )

    def position_servo(self) -> Servo:
        """Returns the servo of every actuated joint.

        Raises:
          PlaygroundError: the robot has torque motors.
        """
        if self.servo is None:
            raise PlaygroundError(
                f"robot '{self.spec.name}' has torque motors, not position servos"
            )
        return self.servo

    def drawn_model(self) -> mujoco.MjModel:
        """Returns the model with its visual shapes, for pictures; same qpos."""
        return mujoco.MjModel.from_xml_path(str(self.spec.scenes[self.scene]))

    def joint_rows(self, *suffixes: str) -> np.ndarray:
        """Returns the rows of the actuated joints whose names end in one of `suffixes`.

        Raises:
          PlaygroundError: a suffix fits no joint.
        """
        for suffix in suffixes:
            if not any(joint.endswith(suffix) for joint in self.joints):
                raise unknown(f"joint of {self.spec.name}", suffix, self.joints)
        rows = [i for i, name in enumerate(self.joints) if name.endswith(suffixes)]
        return _frozen(rows)


def _span(model: mujoco.MjModel, sensor: str) -> tuple[int, int]:
    found = model.sensor(sensor)
    return int(found.adr[0]), int(found.dim[0])


def _frozen(values, dtype=int) -> np.ndarray:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array
