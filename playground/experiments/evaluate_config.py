"""What an evaluation asks: how much to play, and which commands. Loads fast."""

import dataclasses

import numpy as np

from playground.errors import PlaygroundError
from playground.tasks.config import COMMAND_NAMES, CommandConfig

_SHORTEST = 2.0  # s: the first second of an episode is not measured

# vx (m/s), vy (m/s), yaw rate (rad/s). Slow speeds are the hard ones: a robot that
# shuffles on the spot passes for one that walks only where the grid leaves them out.
VELOCITIES = (
    (0.0, 0.0, 0.0),
    *((vx, 0.0, 0.0) for vx in (-0.15, -0.10, -0.05, 0.05, 0.10, 0.15)),
    *((0.0, vy, 0.0) for vy in (-0.2, -0.1, 0.1, 0.2)),
    *((0.0, 0.0, yaw) for yaw in (-1.0, -0.5, 0.5, 1.0)),
    (0.1, 0.05, 0.3),
    (-0.1, -0.05, -0.3),
    (0.1, -0.05, -0.3),
)
# Head commands, as a share of each range's ends; for tasks that only stand.
_HEAD_SHARE = 2 / 3


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """How a policy is evaluated."""

    seeds: int = 4
    """Episodes for each command."""
    seconds: float = 20.0
    """Length of an episode, s."""
    engine: str = "auto"
    """Physics engine: auto, native, mjx or warp. auto: mjx on a GPU, else native."""
    compare_engines: bool = False
    """Whether to play undisturbed on native and on mjx too, and report the gaps."""
    randomize: bool = True
    """Whether to play a second time with the task's noise, delays, kicks and models."""
    batch: int = 256
    """Robots at once; the results do not depend on it."""
    seed: int = 0
    """Seed of starts, disturbances and randomised models."""
    commands: tuple[tuple[float, float, float], ...] = ()
    """vx (m/s), vy (m/s) and yaw rate (rad/s) to play instead of the default grid."""

    def __post_init__(self):
        for name in ("seeds", "batch"):
            if getattr(self, name) < 1:
                raise PlaygroundError(f"{name} must be 1 or more")
        if not 0 <= self.seed < 2**32:
            raise PlaygroundError(f"seed must be within 0..2^32-1, got {self.seed}")
        if not _SHORTEST <= self.seconds < float("inf"):
            raise PlaygroundError(
                f"seconds must be {_SHORTEST:g} or more (the first is not measured), "
                f"got {self.seconds:g}"
            )
        if not np.isfinite(self.commands).all():
            raise PlaygroundError("commands must be finite numbers")


def command_grid(config: EvaluateConfig, command: CommandConfig) -> np.ndarray:
    """Returns [n, 7] the commands to play, each within the task's ranges.

    A task that takes no velocity commands is asked to stand with its head still, and
    with each head joint, and all of them, at two thirds of either end of their ranges.

    Args:
      config: May name the velocities.
      command: The task's ranges.

    Raises:
      PlaygroundError: a velocity that `config` names is beyond the task's range.
    """
    low, high = command.ranges[:3].T
    chosen = np.array(config.commands or VELOCITIES, float)
    fits = ((chosen >= low) & (chosen <= high)).all(axis=1)
    if config.commands and not fits.all():
        ranges = ", ".join(
            f"{name} {a:g} to {b:g}"
            for name, a, b in zip(COMMAND_NAMES, low, high, strict=False)
        )
        beyond = chosen[~fits][0].tolist()
        raise PlaygroundError(f"command {beyond} is beyond the task's ranges: {ranges}")
    velocities = chosen[fits]
    grid = np.zeros((len(velocities), len(COMMAND_NAMES)))
    grid[:, :3] = velocities
    if grid.any() or config.commands:
        return grid
    return np.concatenate([grid, _head_commands(command)])


def _head_commands(command: CommandConfig) -> np.ndarray:
    ends = _HEAD_SHARE * command.ranges[3:].T  # [2, n_head]
    each = np.concatenate([np.diag(end) for end in ends])
    head = np.concatenate([each, ends])
    head = head[head.any(axis=1)]
    return np.concatenate([np.zeros((len(head), 3)), head], axis=1)
