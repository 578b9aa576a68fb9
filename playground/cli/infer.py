"""`playground infer WHAT`: run a policy, or push a robot: window, video or headless."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from playground.cli.parse import parse, take_word
from playground.controllers.balance.gains import STRATEGIES
from playground.errors import PlaygroundError, unknown
from playground.experiments.push.config import PushConfig
from playground.physics.settings import check_engine


@dataclasses.dataclass(frozen=True)
class Shown:
    """How to see it."""

    seconds: float | None = None
    """Simulated time, s; by default 20, and in a window until it is closed."""
    headless: bool = False
    """Show nothing, run as fast as it goes."""
    video: str | None = None
    """Film to this .mp4 or .gif instead of opening a window."""
    engine: str = "native"
    """Physics engine: auto, native, mjx or warp."""

    def __post_init__(self):
        check_engine(self.engine)
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise PlaygroundError(
                f"--seconds must be above 0 and finite, got {self.seconds}"
            )


@dataclasses.dataclass(frozen=True)
class Arguments(Shown):
    """What to run, and how to see it."""

    command: tuple[float, float, float] = (0.1, 0.0, 0.0)
    """vx (m/s), vy (m/s) and yaw rate (rad/s) to ask for."""
    head: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """neck_pitch, head_pitch, head_yaw and head_roll to ask for, rad from home."""
    trace: str | None = None
    """Write observations and actions to this .npz file."""
    scene: str | None = None
    """Scene of the robot; by default the one the policy was trained in."""
    disturbed: bool = False
    """With the task's noise, delays, kicks and randomised models."""
    seed: int = 0
    """Seed of whatever disturbs."""

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.seed < 2**32:
            raise PlaygroundError(f"--seed must be within 0..2^32-1, got {self.seed}")
        if self.trace is not None and Path(self.trace).suffix != ".npz":
            raise PlaygroundError(f"--trace must end in .npz, got '{self.trace}'")


@dataclasses.dataclass(frozen=True)
class BipedArguments(Shown):
    """How to push the biped, and how to see it."""

    seconds: float | None = None
    """Simulated time, s; by default until 4 s after the push began, and in a window
    until it is closed."""
    push: float = 100.0
    """Force, N."""
    direction: float = 0.0
    """Where to, deg: 0 forward, 90 to its left, 180 back."""
    duration: float = 0.08
    """How long it pushes, s."""
    height: str = "torso"
    """Where it acts: at the centre of mass of the torso, of the robot ("com"), or at
    a height above the floor in m, on the torso."""
    at: float = 1.0
    """When it begins, s after the start."""
    strategy: str = "ankle+hip"
    """Balance strategy: none, ankle, ankle+hip or step."""
    hip: bool = True
    """--no-hip takes the hip strategy away and leaves that of the ankles."""
    gains: str | None = None
    """YAML file of gains; by default those shipped for the robot."""
    scene: str | None = None
    """Scene of the robot; by default the flat floor."""

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.push < 1e5:
            raise PlaygroundError(f"--push must be 0 to 100000 N, got {self.push:g}")
        if not math.isfinite(self.direction):
            raise PlaygroundError(f"--direction must be finite, got {self.direction}")
        if not 0 <= self.at <= 60:
            raise PlaygroundError(f"--at must be within 0 to 60 s, got {self.at:g}")
        if self.strategy not in STRATEGIES:
            raise unknown("strategy", self.strategy, STRATEGIES)
        if not self.hip and self.strategy not in ("ankle", "ankle+hip"):
            raise PlaygroundError(
                f"--no-hip is strategy ankle: it takes no --strategy {self.strategy}"
            )

    def config(self) -> PushConfig:
        """Returns the push as a sweep would have it, checked."""
        return PushConfig(
            strategies=self.strategy if self.hip else "ankle",
            duration=self.duration,
            height=self.height,
            engine=self.engine,
            settle=self.at,
            gains=self.gains,
        )


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground infer --help`."""
    what, rest = take_word(args)
    if what in ROBOTS:
        return ROBOTS[what](rest)
    robots = ", ".join(ROBOTS)
    description = f"Run a policy file; or push a robot by its controller: {robots}."
    chosen = parse(Arguments(), rest, "playground infer POLICY", description)
    if what is None:
        raise PlaygroundError(f"run what? playground infer POLICY (or {robots})")
    if not Path(what).suffix and not Path(what).exists():
        raise unknown("robot with a controller, and no policy file,", what, ROBOTS)
    _prepare(chosen)
    from playground.interface.session import watch

    return watch(Path(what), chosen)


def run_biped(args: Sequence[str]) -> int:
    """Pushes the biped; see `playground infer biped --help`."""
    command, description = "playground infer biped", "Push a biped that stands."
    chosen = parse(BipedArguments(), args, command, description)
    config = chosen.config()
    _prepare(chosen)
    from playground.interface.session import push

    return push(chosen, config)


# Robot with a controller of its own -> what runs it with the rest of the command line.
ROBOTS: dict[str, Callable[[Sequence[str]], int]] = {"biped": run_biped}


def _prepare(chosen: Shown) -> None:
    if chosen.video:
        from playground.interface.gl import find_gl

        find_gl()
