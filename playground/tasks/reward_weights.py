"""Weights of the reward terms; apart from them, so that configs load fast."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class RewardWeights:
    """Weight of each reward term in `rewards.TERMS`; 0: the term is left out."""

    alive: float = 1.0
    """Up."""
    track_velocity: float = 0.0
    """Velocity near the commanded one."""
    track_yaw_rate: float = 0.0
    """Yaw rate near the commanded one."""
    track_velocity_linear: float = 0.0
    """Velocity error, linear."""
    track_yaw_rate_linear: float = 0.0
    """Yaw rate error, linear."""
    imitate: float = 0.0
    """Leg servo targets near the reference gait."""
    track_head: float = 0.0
    """Head near its commanded pose."""
    stand_still: float = 0.0
    """Legs away from home at a zero command."""
    upright: float = 0.0
    """Tilt of the trunk."""
    base_height: float = 0.0
    """Sag or rise of the base."""
    action_rate: float = 0.0
    """Change of the action."""
    action_jerk: float = 0.0
    """Second difference of the action."""
    torque: float = 0.0
    """Servo torques."""
    foot_slip: float = 0.0
    """Sliding of the feet that touch."""
    vertical_speed: float = 0.0
    """Vertical speed of the centre of mass."""
    tumble_rate: float = 0.0
    """Roll and pitch rates."""
