"""Shape of the reference gait; apart from it, so that configs load fast."""

import dataclasses

from playground.errors import PlaygroundError


@dataclasses.dataclass(frozen=True)
class GaitConfig:
    """Shape of the reference gait and its clock.

    The numbers are those of servo targets, found by `tools/search_gait.py`; the joints
    lag behind, and the feet are lifted by the rocking of the robot as much as by the
    legs.
    """

    phase_steps: int = 27
    """Control steps in a gait period (27 at 50 Hz: 0.54 s)."""
    lift: float = 0.0085
    """How high a swing foot is lifted, m."""
    sway: float = 0.0497
    """How far the feet move sideways under the trunk and back in a period, m."""
    sway_phase: float = 2.45
    """Phase of the sway, rad; 0: the trunk is over the stance foot in mid-stance."""
    stance_x: float = -0.0308
    """How far the feet are ahead of their home places, m."""
    stance_y: float = 0.031
    """How far each foot is outside its home place, m."""
    stride: tuple[float, float, float] = (1.44, 1.25, 1.4)
    """Stride per commanded vx, vy and yaw rate over that of feet that do not slip."""

    def __post_init__(self):
        if self.phase_steps < 2:
            raise PlaygroundError("gait phase_steps must be 2 or more")
