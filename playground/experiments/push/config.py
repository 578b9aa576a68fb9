"""What a push sweep is asked; checked before anything compiles. Loads fast."""

import dataclasses
import math

from playground.config import require_finite
from playground.controllers.balance.gains import BALANCED, STRATEGIES
from playground.errors import PlaygroundError, unknown
from playground.physics.settings import check_engine


@dataclasses.dataclass(frozen=True)
class PushConfig:
    """A push, and what counts as recovered."""

    robot: str = "biped"
    """Robot to push."""
    strategies: str = "none,ankle,ankle+hip,step"
    """Balance strategies, by name, with commas between."""
    directions: int = 36
    """Directions of the push, evenly around; 0 is forward, 90 deg to the left."""
    duration: float = 0.08
    """How long a push lasts, s; need not be a whole number of physics steps."""
    height: str = "torso"
    """Where it acts: at the centre of mass of the torso, of the robot ("com"), or at
    a height above the floor in m, on the torso."""
    engine: str = "auto"
    """Physics engine: auto, native, mjx or warp."""
    max_impulse: float = 40.0
    """Largest impulse tried, N·s."""
    resolution: float = 0.05
    """How closely a critical impulse is found, N·s (half the bracket left)."""
    levels: int = 4
    """Impulses tried at once inside each bracket, a round."""
    grid: float = 1.0
    """Spacing of the check for holes below the edge found, N·s; 0: none."""
    settle: float = 1.0
    """How long a robot stands before it is pushed, s."""
    watch: float = 4.0
    """How long after the push began it must stand again, s."""
    models: int = 0
    """Varied models beside the robot as designed: the first four are the corners of
    the ranges below, the others are drawn within."""
    torso_mass: float = 0.15
    """Of the varied models: spread of the torso's mass, a fraction."""
    friction: float = 0.8
    """Of the varied models: least friction coefficient of the soles."""
    position_noise: float = 0.0
    """Standard deviation of the sensed positions of centre of mass and feet, m."""
    velocity_noise: float = 0.0
    """Standard deviation of the sensed velocity of the centre of mass, m/s."""
    gains: str | None = None
    """YAML file of gains; by default those shipped for the robot."""
    seed: int = 0
    """Seed of varied models and noise."""

    def __post_init__(self):
        require_finite(self)
        check_engine(self.engine)
        if self.robot not in BALANCED:
            raise unknown("robot that balances", self.robot, BALANCED)
        for name in self.strategy_names:
            if name not in STRATEGIES:
                raise unknown("strategy", name, STRATEGIES)
        if len(set(self.strategy_names)) != len(self.strategy_names):
            raise PlaygroundError(f"a strategy is named twice: {self.strategies}")
        for name, low, high in (
            ("directions", 1, 360),
            ("levels", 1, 64),
            ("models", 0, 1000),
            ("seed", 0, 2**32 - 1),
            ("duration", 0.001, 1.0),
            ("max_impulse", 1.0, 1000.0),
            ("resolution", 0.001, 10.0),
            ("grid", 0.0, 100.0),
            ("settle", 0.0, 60.0),
            ("watch", 0.5, 60.0),
            ("torso_mass", 0.0, 0.9),
            ("friction", 0.05, 5.0),
            ("position_noise", 0.0, 0.1),
            ("velocity_noise", 0.0, 1.0),
        ):
            if not low <= getattr(self, name) <= high:
                raise PlaygroundError(
                    f"{name} must be within {low:g} to {high:g}, "
                    f"got {getattr(self, name):g}"
                )
        if self.watch <= self.duration:
            raise PlaygroundError("watch must be longer than duration")
        if self.height not in ("torso", "com"):
            try:
                height = float(self.height)
            except ValueError:
                height = math.nan
            if not 0 < height < 10:
                raise PlaygroundError(
                    f"height must be torso, com or a number of m, got '{self.height}'"
                )

    @property
    def strategy_names(self) -> tuple[str, ...]:
        """The strategies, in order."""
        return tuple(name.strip() for name in self.strategies.split(","))

    @property
    def angles(self) -> tuple[float, ...]:
        """The directions, rad."""
        return tuple(2 * math.pi * i / self.directions for i in range(self.directions))
