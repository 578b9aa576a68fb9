"""What an evolution of balance gains is asked; checked first. Loads fast."""

import dataclasses

from playground.config import require_finite
from playground.controllers.balance.gains import BALANCED, STRATEGIES, tunable
from playground.errors import PlaygroundError, unknown
from playground.physics.settings import check_engine

OBJECTIVES = ("both", "worst", "sum")


@dataclasses.dataclass(frozen=True)
class TuneConfig:
    """How candidates are pushed, and how they are bred."""

    robot: str = "biped"
    """Robot to push."""
    strategy: str = "ankle+hip"
    """Balance strategy whose gains are evolved."""
    objective: str = "both"
    """What counts: the worst directions, the sum over all, or both in equal parts."""
    start: str | None = None
    """YAML file of the gains to begin with; by default those shipped."""
    directions: int = 13
    """Directions of the push over half the circle: the robot is symmetric."""
    lowest: float = 4.0
    """Lowest rung of the ladder of impulses, N·s."""
    highest: float = 34.0
    """Highest rung, N·s."""
    spacing: float = 4.0
    """From rung to rung, N·s; half a spacing higher in every second direction."""
    fill: int = 0
    """Further rungs between the last rung held and the next, in a second round."""
    duration: float = 0.08
    """How long a push lasts, s."""
    settle: float = 0.6
    """How long a robot stands before it is pushed, s."""
    watch: float = 3.0
    """How long after the push began it must stand again, s."""
    generations: int = 100
    """Generations to breed, those before a resume included."""
    population: int = 12
    """Candidates in a generation."""
    sigma: float = 0.1
    """First standard deviation, as a fraction of each gain's range."""
    engine: str = "native"
    """Physics engine: auto, native, mjx or warp."""
    seed: int = 1
    """Seed of the evolution."""

    def __post_init__(self):
        require_finite(self)
        check_engine(self.engine)
        if self.robot not in BALANCED:
            raise unknown("robot that balances", self.robot, BALANCED)
        if self.strategy not in STRATEGIES or not tunable(self.strategy):
            raise unknown("strategy to tune", self.strategy, STRATEGIES[1:])
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)
        for name, low, high in (
            ("directions", 2, 360),
            ("lowest", 0.1, 1000.0),
            ("spacing", 0.1, 100.0),
            ("highest", self.lowest + self.spacing, 1000.0),
            ("fill", 0, 64),
            ("duration", 0.001, 1.0),
            ("settle", 0.0, 60.0),
            ("watch", 0.5, 60.0),
            ("generations", 1, 1_000_000),
            ("population", 4, 10_000),
            ("sigma", 1e-6, 0.5),
            ("seed", 0, 2**32 - 1),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise PlaygroundError(
                    f"{name} must be within {low:g} to {high:g}, got {value:g}"
                )
