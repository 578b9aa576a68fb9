"""The robots there are, by name."""

from playground.errors import PlaygroundError, unknown
from playground.robots.biped import BIPED
from playground.robots.hopper import HOPPER
from playground.robots.open_duck import OPEN_DUCK
from playground.robots.robot import Robot
from playground.robots.servo import load_servo
from playground.robots.spec import RobotSpec

ROBOTS: dict[str, RobotSpec] = {spec.name: spec for spec in (OPEN_DUCK, BIPED, HOPPER)}


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
    if servo and spec.servo is None:
        raise PlaygroundError(f"robot '{name}' has motors of its own, and no servos")
    servo = servo or spec.servo
    return Robot(spec, scene, load_servo(servo) if servo else None)
