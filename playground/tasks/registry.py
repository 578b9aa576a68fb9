"""The tasks there are, by name. Loads fast; `make` loads what a task needs."""

import dataclasses
from typing import TYPE_CHECKING

from playground.errors import unknown
from playground.tasks.config import LocomotionConfig
from playground.tasks.open_duck import JOYSTICK, STANDING

if TYPE_CHECKING:
    from playground.tasks.locomotion import Locomotion


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """A task one can ask for by name.

    Attributes:
      config: Its settings before any preset.
      description: For people.
    """

    config: LocomotionConfig
    description: str

    def make(self, config: LocomotionConfig, seed: int = 0) -> "Locomotion":
        """Builds the task; `seed` is that of the randomised models."""
        from playground.tasks.locomotion import Locomotion

        return Locomotion(config, seed)


TASKS: dict[str, TaskSpec] = {
    "open_duck_joystick": TaskSpec(JOYSTICK, "follow velocity and head commands"),
    "open_duck_standing": TaskSpec(
        STANDING, "stand, track the head command, take kicks"
    ),
}


def task_spec(name: str) -> TaskSpec:
    """Returns a task by name.

    Raises:
      PlaygroundError: no such task.
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]
