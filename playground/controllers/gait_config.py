"""Shape of the reference gait; apart from it, so that configs load fast."""

import dataclasses

from playground.errors import PlaygroundError


@dataclasses.dataclass(frozen=True)
class GaitConfig:
    """Shape of the reference gait."""

    phase_steps: int = 27
    """Control steps in a gait period (27 at 50 Hz: 0.54 s)."""
    lift: float = 0.03
    """How high a swing foot is lifted, m."""
    sway: float = 0.018
    """How far the trunk moves over the stance foot, m."""

    def __post_init__(self):
        if self.phase_steps < 2:
            raise PlaygroundError("gait phase_steps must be 2 or more")
        if self.lift < 0 or self.sway < 0:
            raise PlaygroundError("gait lift and sway must be 0 m or more")
