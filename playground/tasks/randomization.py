"""Randomised models: what varies from robot to robot, each at a named target."""

from collections.abc import Callable

import mujoco
import numpy as np

from playground.physics.population import vary
from playground.robots.names import find
from playground.robots.robot import Robot
from playground.tasks.config import RandomizationConfig


def randomized_models(
    robot: Robot, config: RandomizationConfig, seed: int
) -> list[mujoco.MjModel]:
    """Returns the population: the model as designed, or `config.models` varied ones."""
    if not config.models:
        return [robot.model]
    return vary(robot.model, config.models, _edit(robot, config), seed)


def _edit(
    robot: Robot, config: RandomizationConfig
) -> Callable[[mujoco.MjModel, np.random.Generator], None]:
    floor = find(robot.model, "geom", "floor")
    base, dofs = robot.base_body, robot.dof_index

    def edit(model: mujoco.MjModel, rng: np.random.Generator) -> None:
        model.geom_friction[floor, 0] = rng.uniform(*config.friction)
        factor = rng.uniform(*config.mass, model.nbody)
        model.body_mass[:] *= factor
        model.body_inertia[:] *= factor[:, None]
        model.body_ipos[base] += rng.uniform(*config.com, 3)
        model.dof_armature[dofs] *= rng.uniform(*config.armature, model.nu)
        model.dof_frictionloss[dofs] *= rng.uniform(*config.frictionloss, model.nu)
        kp = rng.uniform(*config.kp, model.nu)
        model.actuator_gainprm[:, 0] *= kp
        model.actuator_biasprm[:, 1] *= kp
        # At qpos0 a link stands as drawn: moving it moves the encoder's zero.
        model.qpos0[robot.qpos_index] += rng.uniform(*config.joint_offset, model.nu)

    return edit
