"""All that can be set about a locomotion task; one place per number.

Loads fast: a mistake in a config is found before anything heavy is imported.
"""

import dataclasses
from typing import Self

import numpy as np

from playground.config import require_finite
from playground.controllers.gait_config import GaitConfig
from playground.errors import PlaygroundError
from playground.physics.settings import check_engine, substeps_of
from playground.tasks.reward_weights import RewardWeights

COMMAND_NAMES = (
    "vx",
    "vy",
    "yaw_rate",
    "neck_pitch",
    "head_pitch",
    "head_yaw",
    "head_roll",
)
COMMAND_UNITS = ("m/s", "m/s", "rad/s", "rad", "rad", "rad", "rad")

Range = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class CommandConfig:
    """What is asked of the robot."""

    vx: Range = (-0.15, 0.15)
    """Forward speed, m/s."""
    vy: Range = (-0.2, 0.2)
    """Speed to the left, m/s."""
    yaw_rate: Range = (-1.0, 1.0)
    """Turning rate, rad/s."""
    neck_pitch: Range = (-0.34, 1.1)
    """Neck pitch offset from home, rad."""
    head_pitch: Range = (-0.78, 0.78)
    """Head pitch offset from home, rad."""
    head_yaw: Range = (-1.5, 1.5)
    """Head yaw offset from home, rad."""
    head_roll: Range = (-0.5, 0.5)
    """Head roll offset from home, rad."""
    zero_fraction: float = 0.1
    """Share of the drawn commands that are all zero."""
    single_axis_fraction: float = 0.3
    """Share of the drawn commands that move along one axis alone."""
    deadband: tuple[float, float, float] = (0.03, 0.03, 0.15)
    """Drawn vx, vy (m/s) and yaw rate (rad/s) all smaller than these become zero."""
    head_fraction: float = 0.5
    """Share of the drawn commands that move the head."""
    resample_s: float = 5.0
    """A new command is drawn every so many seconds."""

    def __post_init__(self):
        for name in COMMAND_NAMES:
            low, high = getattr(self, name)
            if not (np.isfinite([low, high]).all() and low <= 0.0 <= high):
                raise PlaygroundError(
                    f"command {name}: range must hold 0, lower end first: {low} {high}"
                )
        for name in ("zero_fraction", "single_axis_fraction", "head_fraction"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise PlaygroundError(f"command {name} must be within 0..1")
        if min(self.deadband) < 0:
            raise PlaygroundError("command deadband must be 0 or more on each axis")
        if self.resample_s <= 0:
            raise PlaygroundError("command resample_s must be above 0 s")

    @property
    def ranges(self) -> np.ndarray:
        """[7, 2] lower and upper ends, in the order of `COMMAND_NAMES`."""
        return np.array([getattr(self, name) for name in COMMAND_NAMES])


@dataclasses.dataclass(frozen=True)
class KickConfig:
    """Kicks that a robot has to survive."""

    speed: Range = (0.0, 0.0)
    """Range of the kick: impulse / total mass, m/s. (0, 0): no kicks."""
    interval_s: Range = (5.0, 10.0)
    """Range of the time between kicks, s."""
    duration_s: float = 0.1
    """How long the force acts, s."""

    def __post_init__(self):
        for name in ("speed", "interval_s"):
            low, high = getattr(self, name)
            if not 0.0 <= low <= high:
                raise PlaygroundError(
                    f"kicks {name}: range must be 0 or more, lower end first, "
                    f"got {low} {high}"
                )
        if not 0.0 < self.duration_s <= self.interval_s[0]:
            raise PlaygroundError(
                "kicks duration_s must be above 0 and within the shortest interval, "
                f"got {self.duration_s}"
            )

    @property
    def on(self) -> bool:
        """Whether there are kicks at all."""
        return self.speed[1] > 0.0


@dataclasses.dataclass(frozen=True)
class RandomizationConfig:
    """How much the robots of a population differ."""

    models: int = 0
    """Number of randomised models; 0: every robot is the model as designed."""
    friction: Range = (0.5, 1.0)
    """Sliding friction of the floor, absolute."""
    mass: Range = (0.9, 1.1)
    """Factor of each link's mass and inertia, one draw a link."""
    com: Range = (-0.02, 0.02)
    """Shift of the trunk's centre of mass, m, one draw an axis."""
    armature: Range = (1.0, 1.05)
    """Factor of the actuated joints' armature, one draw a joint."""
    frictionloss: Range = (0.9, 1.1)
    """Factor of the actuated joints' dry friction, one draw a joint."""
    kp: Range = (0.9, 1.1)
    """Factor of the servos' stiffness, one draw a joint."""
    joint_offset: Range = (-0.03, 0.03)
    """Error of the encoders' zero, rad, one draw a joint."""

    def __post_init__(self):
        if self.models < 0:
            raise PlaygroundError("randomization models must be 0 or more")
        for name in ("friction", "mass", "armature", "frictionloss", "kp"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high:
                raise PlaygroundError(
                    f"randomization {name}: range must be above 0, lower end first, "
                    f"got {low} {high}"
                )
        for name in ("com", "joint_offset"):
            low, high = getattr(self, name)
            if low > high:
                raise PlaygroundError(
                    f"randomization {name}: lower end first, got {low} {high}"
                )


@dataclasses.dataclass(frozen=True)
class NoiseConfig:
    """Half-widths of the uniform sensor noise."""

    level: float = 1.0
    """Factor of all the noise below; 0: none."""
    gyro: float = 0.1
    """rad/s."""
    accelerometer: float = 0.5
    """m/s²."""
    hip_position: float = 0.03
    """Encoders of the hips, rad."""
    knee_position: float = 0.05
    """Encoders of the knees, rad."""
    ankle_position: float = 0.08
    """Encoders of the ankles, rad."""
    head_position: float = 0.03
    """Encoders of neck and head, rad."""
    joint_velocity: float = 2.5
    """Rates of all encoders, rad/s."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 0:
                raise PlaygroundError(f"noise {field.name} must be 0 or more")


@dataclasses.dataclass(frozen=True)
class DelayConfig:
    """Longest delays; each episode draws from 0 to these, ends included."""

    action: int = 2
    """From the policy to the servos, control steps."""
    imu: int = 2
    """From gyro and accelerometer to the policy, control steps."""

    def __post_init__(self):
        for name in ("action", "imu"):
            if getattr(self, name) < 0:
                raise PlaygroundError(f"delays {name} must be 0 or more control steps")


@dataclasses.dataclass(frozen=True)
class StartConfig:
    """How the starts of episodes differ."""

    joint: float = 0.05
    """Half-width of the joint angles about home, rad."""
    yaw: float = 3.141592653589793
    """Half-width of the heading, rad."""
    random_phase: bool = True
    """Whether the gait clock starts anywhere; a robot's own starts at 0."""

    def __post_init__(self):
        for name in ("joint", "yaw"):
            if getattr(self, name) < 0:
                raise PlaygroundError(f"start {name} must be 0 rad or more")


@dataclasses.dataclass(frozen=True)
class LocomotionConfig:
    """A locomotion task."""

    robot: str = "open_duck"
    """Robot name."""
    scene: str = "flat_backlash"
    """Scene of the robot."""
    servo: str = "sts3215"
    """Servo preset, or the path of a YAML file like configs/servos.yaml."""
    engine: str = "auto"
    """Physics engine: auto, native, mjx or warp. auto: mjx on a GPU, else native."""
    control_period: float = 0.02
    """Time between two actions, s."""
    sim_dt: float = 0.002
    """Physics period, s; the control period must be a whole multiple of it."""
    episode_s: float = 20.0
    """Length of an episode, s."""
    action_scale: float = 0.25
    """rad of servo target per unit of action."""
    rate_limit: bool = True
    """Whether servo targets move no faster than the servo's rate limit."""
    fall_cosine: float = 0.5
    """The robot fell when the vertical part of its up axis is below this (60 deg)."""
    accelerometer_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Added to the observed accelerometer, m/s² (some runners add 1.3 to x)."""
    gait: GaitConfig = GaitConfig()
    """Reference gait and gait clock."""
    command: CommandConfig = CommandConfig()
    """What is asked of the robot."""
    noise: NoiseConfig = NoiseConfig()
    """Sensor noise."""
    delays: DelayConfig = DelayConfig()
    """Delays."""
    start: StartConfig = StartConfig()
    """Starts."""
    kicks: KickConfig = KickConfig()
    """Kicks."""
    randomization: RandomizationConfig = RandomizationConfig()
    """Randomised models."""
    weights: RewardWeights = RewardWeights()
    """Reward: sum of weight x term, times the control period."""

    def __post_init__(self):
        require_finite(self)
        check_engine(self.engine)
        substeps_of(self.control_period, self.sim_dt)
        if self.episode_s < self.control_period:
            raise PlaygroundError("episode_s must hold at least one control period")
        if self.action_scale <= 0:
            raise PlaygroundError("action_scale must be above 0")
        if self.command.resample_s < self.control_period:
            raise PlaygroundError("command resample_s is shorter than a control period")
        if not -1.0 < self.fall_cosine < 1.0:
            raise PlaygroundError("fall_cosine must be within -1..1")

    def undisturbed(self) -> Self:
        """Returns the task as it is played and evaluated by default.

        No noise, delays, kicks or randomised models; the start pose is home, facing x,
        with the gait clock at 0.
        """
        return dataclasses.replace(
            self,
            noise=NoiseConfig(level=0.0),
            delays=DelayConfig(0, 0),
            start=StartConfig(0.0, 0.0, random_phase=False),
            kicks=KickConfig(),
            randomization=RandomizationConfig(),
        )
