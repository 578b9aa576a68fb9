"""The policy contract that a task offers, and the task settings that one asks for."""

import dataclasses
import importlib.metadata
from typing import Any

from playground.policy.contract import Contract, published_open_duck
from playground.policy.runner import OnnxPolicy
from playground.robots.registry import load_robot
from playground.tasks.config import (
    COMMAND_NAMES,
    COMMAND_UNITS,
    CommandConfig,
    LocomotionConfig,
)
from playground.tasks.locomotion import Locomotion
from playground.tasks.registry import TASKS, task_spec

_PACKAGES = ("playground", "jax", "brax", "flax", "mujoco", "onnx")


def task_contract(task: Locomotion, name: str, config_hash: str = "") -> Contract:
    """Returns what a policy of this task is promised.

    Args:
      task: The task.
      name: Its name.
      config_hash: Hash of the training config.
    """
    c, robot = task.config, task.robot
    return Contract(
        robot=robot.spec.name,
        task=name,
        scene=robot.scene,
        joints=robot.joints,
        home_pose=tuple(float(angle) for angle in robot.home_pose),
        action_scale=c.action_scale,
        rate_limit=robot.position_servo().rate_limit if c.rate_limit else None,
        control_period=c.control_period,
        physics_period=c.sim_dt,
        phase_steps=c.gait.phase_steps,
        accelerometer_offset=c.accelerometer_offset,
        observation=task.observation.channels,
        command_names=COMMAND_NAMES,
        command_units=COMMAND_UNITS,
        command_ranges=tuple((float(a), float(b)) for a, b in c.command.ranges),
        servo=c.servo,
        versions={name: importlib.metadata.version(name) for name in _PACKAGES},
        config_hash=config_hash,
    )


def published_contract() -> Contract:
    """Returns the contract assumed for an Open Duck policy without metadata."""
    config = TASKS["open_duck_joystick"].config
    robot = load_robot(config.robot, config.scene)
    ranges = [(low, high) for low, high in config.command.ranges.tolist()]
    commands = list(zip(COMMAND_NAMES, COMMAND_UNITS, ranges, strict=True))
    return published_open_duck(robot.joints, robot.home_pose.tolist(), commands)


def play_config(
    contract: Contract, scene: str | None = None, sim_dt: float | None = None
) -> LocomotionConfig:
    """Returns the task's settings with those that are the policy's own to choose.

    What a policy may choose is how its actions act, its clocks tick and its commands
    range; robot, joints, home pose and observation must be those of the task, which
    `require_fit` checks.

    Args:
      contract: The policy's.
      scene: Scene to play in; None: the one it was trained in.
      sim_dt: Physics period, s; None: the one it was trained with.

    Raises:
      PlaygroundError: the policy's task is unknown here, or a setting is out of range.
    """
    config = task_spec(contract.task).config
    return dataclasses.replace(
        config,
        scene=scene or contract.scene or config.scene,
        servo=contract.servo,
        action_scale=contract.action_scale,
        rate_limit=contract.rate_limit is not None,
        control_period=contract.control_period,
        sim_dt=sim_dt or contract.physics_period,
        accelerometer_offset=contract.accelerometer_offset,
        gait=dataclasses.replace(config.gait, phase_steps=contract.phase_steps),
        command=_with_ranges(config.command, contract),
    )


def require_fit(policy: OnnxPolicy, config: LocomotionConfig) -> None:
    """Checks that a policy fits the robot and the task as they are here.

    Raises:
      PlaygroundError: it does not; names each difference.
    """
    task = task_spec(policy.contract.task).make(config.undisturbed())
    policy.require(task_contract(task, policy.contract.task))


def _with_ranges(config: CommandConfig, contract: Contract) -> CommandConfig:
    ranges = zip(contract.command_names, contract.command_ranges, strict=False)
    known: dict[str, Any] = {n: ends for n, ends in ranges if n in COMMAND_NAMES}
    return dataclasses.replace(config, **known)
