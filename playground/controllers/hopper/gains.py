"""Numbers of the hopper's controllers, and what a hopper is asked. Loads fast."""

import dataclasses

from playground.controllers.gains import check_gains, gain


@dataclasses.dataclass(frozen=True)
class HopperGains:
    """All numbers of the seed's rule; traced, so that a batch can vary them.

    Positions of the knee are m beyond its middle: above 0 the leg is longer.
    """

    hip_kp: float = gain(100.0, 0.0, 2000.0)
    """Stiffness of the hip, N m/rad."""
    hip_kv: float = gain(10.0, 0.0, 200.0)
    """Damping of the hip, N m s/rad."""
    air_kp: float = gain(100.0, 0.0, 5000.0)
    """Stiffness of the knee in the air, N/m."""
    air_kv: float = gain(10.0, 0.0, 200.0)
    """Damping of the knee in the air, N s/m."""
    stance_kp: float = gain(1000.0, 0.0, 20000.0)
    """Stiffness of the knee in stance, N/m."""
    stance_kv: float = gain(0.0, 0.0, 200.0)
    """Damping of the knee in stance, N s/m."""
    hip_push: float = gain(-0.2, -1.0, 1.0)
    """Angle asked of the hip in STANCE2, rad; below 0 the foot goes back."""
    hip_air: float = gain(0.0, -1.0, 1.0)
    """Angle asked of the hip from AIR2 on, rad."""
    knee_air: float = gain(0.0, -0.5, 0.25)
    """Position asked of the knee in the air, m."""
    knee_land: float = gain(0.0, -0.5, 0.25)
    """Position asked of the knee in STANCE1, m."""
    knee_thrust: float = gain(0.0, -0.5, 0.25)
    """Position asked of the knee in STANCE2, m."""
    touch: float = gain(0.05, 0.0, 1.25)
    """Below this height of the foot's middle, m, AIR1 ends."""
    lift: float = gain(0.05, 0.0, 1.25)
    """Above this height of the foot's middle, m, STANCE2 ends."""
    debounce: float = gain(0.0, 0.0, 0.1)
    """How long the foot must have been there before, s; 0: at once, the seed's rule."""

    def __post_init__(self):
        check_gains(self)


@dataclasses.dataclass(frozen=True)
class HopperCommand:
    """What a hopper is asked; traced. The seed's rule takes no notice of it."""

    speed: float = gain(0.0, -2.0, 2.0)
    """Forward speed, m/s."""
    apex: float = gain(1.7, 1.3, 2.5)
    """Height of the torso at the top of a hop, m."""

    def __post_init__(self):
        check_gains(self, "command")
