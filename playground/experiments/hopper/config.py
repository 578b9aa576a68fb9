"""What a batch of hoppers is asked; checked before anything compiles. Loads fast."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playground.config import merge, read_yaml, require_finite
from playground.controllers.hopper.gains import HopperCommand, HopperGains
from playground.errors import PlaygroundError, unknown
from playground.physics.settings import check_engine

# Controller -> its gains.
CONTROLLERS: Mapping[str, type] = {"seed": HopperGains}


@dataclasses.dataclass(frozen=True)
class HopperConfig:
    """A batch of hoppers."""

    controller: str = "seed"
    """What decides."""
    seconds: float = 20.0
    """How long each hops, s."""
    window: float = 2.0
    """Over how much of the end the speed is averaged, s."""
    engine: str = "auto"
    """Physics engine: auto, native, mjx or warp."""
    command: HopperCommand = dataclasses.field(default_factory=HopperCommand)
    """Speed and apex asked for; the seed's rule takes no notice."""
    gains: str | None = None
    """YAML file, gain -> number; None: the controller's own."""
    overrides: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Gain -> number, over those of the file."""
    models: int = 0
    """Varied models beside the robot as designed."""
    mass: float = 0.2
    """Of the varied models: spread of each body's mass, a fraction."""
    friction: float = 0.2
    """Of the varied models: spread of the friction, a fraction."""
    start_speed: float = 0.0
    """Spread of the forward speed at the start, m/s."""
    start_angle: float = 0.0
    """Spread of the hip's angle at the start, rad."""
    events: int = 0
    """Events of each robot that are kept; 0: none."""
    seed: int = 0
    """Seed of varied models and starts."""

    def __post_init__(self):
        require_finite(self)
        check_engine(self.engine)
        if self.controller not in CONTROLLERS:
            raise unknown("controller of a hopper", self.controller, CONTROLLERS)
        for name, low, high in (
            ("seconds", 0.1, 3600.0),
            ("window", 0.01, 3600.0),
            ("models", 0, 10_000),
            ("mass", 0.0, 0.9),
            ("friction", 0.0, 0.9),
            ("start_speed", 0.0, 2.0),
            ("start_angle", 0.0, 0.5),
            ("events", 0, 100_000),
            ("seed", 0, 2**32 - 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise PlaygroundError(
                    f"{name} must be within {low:g} to {high:g}, "
                    f"got {getattr(self, name):g}"
                )
        if self.window > self.seconds:
            raise PlaygroundError("window must not be longer than seconds")

    def load_gains(self) -> Any:
        """Returns the gains of the controller: its own, the file's, the overrides.

        Raises:
          PlaygroundError: no such file or gain, or a number out of its range.
        """
        gains = CONTROLLERS[self.controller]()
        if self.gains:
            if not Path(self.gains).is_file():
                raise PlaygroundError(f"gains file '{self.gains}' does not exist")
            gains = merge(gains, read_yaml(Path(self.gains)))
        return merge(gains, self.overrides)
