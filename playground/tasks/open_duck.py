"""The tasks of Open Duck Mini V2: what the joystick and the standing task ask."""

from playground.tasks.config import (
    CommandConfig,
    KickConfig,
    LocomotionConfig,
    RandomizationConfig,
)
from playground.tasks.reward_weights import RewardWeights

JOYSTICK = LocomotionConfig(
    kicks=KickConfig(speed=(0.0, 0.2)),
    randomization=RandomizationConfig(models=256),
    weights=RewardWeights(
        alive=0.5,
        track_velocity=2.0,
        track_yaw_rate=1.0,
        track_velocity_linear=0.3,
        track_yaw_rate_linear=0.3,
        imitate=2.0,
        track_head=0.2,
        stand_still=1.0,
        upright=1.0,
        action_rate=0.01,
        action_jerk=0.005,
        torque=0.01,
        foot_slip=0.5,
    ),
)

STANDING = LocomotionConfig(
    command=CommandConfig(
        vx=(0.0, 0.0), vy=(0.0, 0.0), yaw_rate=(0.0, 0.0), head_fraction=1.0
    ),
    kicks=KickConfig(speed=(0.0, 0.3), interval_s=(2.0, 5.0)),
    randomization=RandomizationConfig(models=256),
    weights=RewardWeights(
        alive=1.0,
        track_velocity=1.0,
        track_yaw_rate=0.5,
        track_head=2.0,
        stand_still=0.5,
        upright=2.0,
        base_height=0.05,
        action_rate=0.02,
        action_jerk=0.01,
        torque=0.02,
        foot_slip=0.5,
        tumble_rate=0.05,
    ),
)
