"""The robots there are, by name."""

from playground.errors import unknown
from playground.robots.open_duck import OPEN_DUCK
from playground.robots.robot import Robot
from playground.robots.servo import load_servo
from playground.robots.spec import RobotSpec

ROBOTS: dict[str, RobotSpec] = {OPEN_DUCK.name: OPEN_DUCK}


def load_robot(name: str, scene: str, servo: str | None = None) -> Robot:
    """Loads a robot in one of its scenes.

    Args:
      name: A key of `ROBOTS`.
      scene: One of the robot's scenes.
      servo: Servo preset or YAML file; None: the robot's own.

    Raises:
      PlaygroundError: no such robot, scene or servo.
    """
    if name not in ROBOTS:
        raise unknown("robot", name, ROBOTS)
    spec = ROBOTS[name]
    return Robot(spec, scene, load_servo(servo or spec.servo))
