"""`playground infer POLICY`: run a policy in a window, into a video or headless."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from playground.cli.parse import parse, take_word
from playground.errors import PlaygroundError
from playground.physics.settings import check_engine


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What to run, and how to see it."""

    command: tuple[float, float, float] = (0.1, 0.0, 0.0)
    """vx (m/s), vy (m/s) and yaw rate (rad/s) to ask for."""
    head: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """neck_pitch, head_pitch, head_yaw and head_roll to ask for, rad from home."""
    seconds: float | None = None
    """Simulated time, s; by default 20, and in a window until it is closed."""
    headless: bool = False
    """Show nothing, run as fast as it goes."""
    video: str | None = None
    """Film to this .mp4 or .gif instead of opening a window."""
    trace: str | None = None
    """Write observations and actions to this .npz file."""
    scene: str | None = None
    """Scene of the robot; by default the one the policy was trained in."""
    engine: str = "native"
    """Physics engine: auto, native, mjx or warp."""
    disturbed: bool = False
    """With the task's noise, delays, kicks and randomised models."""
    seed: int = 0
    """Seed of whatever disturbs."""

    def __post_init__(self):
        check_engine(self.engine)
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise PlaygroundError(
                f"--seconds must be above 0 and finite, got {self.seconds}"
            )
        if not 0 <= self.seed < 2**32:
            raise PlaygroundError(f"--seed must be within 0..2^32-1, got {self.seed}")


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground infer --help`."""
    path, args = take_word(args)
    chosen = parse(Arguments(), args, "playground infer POLICY", "Run a policy file.")
    if path is None:
        raise PlaygroundError("run what? playground infer POLICY")
    if chosen.video:
        from playground.interface.gl import find_gl

        find_gl()
    from playground.interface.session import watch

    return watch(Path(path), chosen)
