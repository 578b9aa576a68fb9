"""What a policy file promises: everything a robot needs to know to run it."""

import dataclasses
import json
import math
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Self

from playground.errors import PlaygroundError

# Angles and scales that differ by less than this are the same.
_TOLERANCE = 1e-6
# Metadata keys are prefixed, so that other tools' keys stay apart.
_PREFIX = "playground."


@dataclasses.dataclass(frozen=True)
class Channel:
    """One named part of an observation.

    Attributes:
      name: What it is.
      width: Numbers in it.
      unit: Unit of the numbers before scaling.
      scale: Factor that is applied to them.
      noise: [width] half-widths of the uniform noise in training, in the unit.
    """

    name: str
    width: int
    unit: str
    scale: float
    noise: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Contract:
    """The contract between a policy and whatever runs it.

    Attributes:
      robot: Robot name.
      task: Task name.
      scene: Scene it was trained in.
      joints: Actuated joints, in the order of actions and joint channels.
      home_pose: rad, the pose of action 0.
      action_scale: rad of servo target per unit of action.
      rate_limit: rad/s, how fast a target may move; None: not limited.
      control_period: s between two actions.
      physics_period: s, of the simulation it was trained in.
      phase_steps: Control steps in a period of the gait clock.
      accelerometer_offset: m/s², added to the accelerometer.
      observation: The table of channels, in order.
      command_names: Names of the numbers in the command channel.
      command_units: Their units.
      command_ranges: Lower and upper end of each.
      servo: Servo preset.
      versions: Package name -> version at export.
      config_hash: Hash of the training config; empty if unknown.
    """

    robot: str
    task: str
    scene: str
    joints: tuple[str, ...]
    home_pose: tuple[float, ...]
    action_scale: float
    rate_limit: float | None
    control_period: float
    physics_period: float
    phase_steps: int
    accelerometer_offset: tuple[float, float, float]
    observation: tuple[Channel, ...]
    command_names: tuple[str, ...]
    command_units: tuple[str, ...]
    command_ranges: tuple[tuple[float, float], ...]
    servo: str
    versions: Mapping[str, str]
    config_hash: str

    def __post_init__(self):
        if len(self.home_pose) != len(self.joints):
            raise PlaygroundError(
                f"contract has {len(self.joints)} joints but a home pose of "
                f"{len(self.home_pose)} angles"
            )

    @property
    def n_obs(self) -> int:
        """Numbers in an observation."""
        return sum(channel.width for channel in self.observation)

    @property
    def n_act(self) -> int:
        """Numbers in an action."""
        return len(self.joints)

    def to_metadata(self) -> dict[str, str]:
        """Returns the contract as the key/value strings of a model file."""
        values = dataclasses.asdict(self) | {"versions": dict(self.versions)}
        return {_PREFIX + key: json.dumps(value) for key, value in values.items()}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> Self:
        """Reads a contract back.

        Raises:
          PlaygroundError: a key is missing or holds no value of its type.
        """
        values = {}
        for name, hint in typing.get_type_hints(cls).items():
            key = _PREFIX + name
            if key not in metadata:
                raise PlaygroundError(f"policy metadata lacks '{key}'")
            try:
                values[name] = _read(hint, json.loads(metadata[key]))
            except (ValueError, TypeError, KeyError) as error:
                raise PlaygroundError(
                    f"policy metadata '{key}' is malformed: {metadata[key][:60]!r}"
                ) from error
        return cls(**values)

    def differences(self, other: "Contract") -> list[str]:
        """Returns one line for each difference that matters to running the policy.

        Args:
          other: What the robot and task at hand offer.
        """
        lines = []
        for name in (
            "robot",
            "joints",
            "home_pose",
            "action_scale",
            "rate_limit",
            "control_period",
            "phase_steps",
            "accelerometer_offset",
            "command_names",
            "command_ranges",
        ):
            mine, theirs = getattr(self, name), getattr(other, name)
            lines += _difference(name, mine, theirs)
        for i in range(max(len(self.observation), len(other.observation))):
            mine, theirs = (_layout(c.observation[i : i + 1]) for c in (self, other))
            if mine != theirs:
                lines.append(f"observation channel {i}: policy {mine}, here {theirs}")
        return lines


def published_open_duck(
    joints: Sequence[str],
    home_pose: Sequence[float],
    commands: Sequence[tuple[str, str, tuple[float, float]]],
) -> Contract:
    """Returns the layout of the published Open Duck Mini V2 policies (101 -> 14).

    Args:
      joints: The robot's actuated joints.
      home_pose: rad, the pose of action 0.
      commands: Name, unit and range of each of the 7 numbers of a command.
    """
    n = len(joints)
    layout = [
        ("gyro", 3, "rad/s", 1.0),
        ("accelerometer", 3, "m/s^2", 1.0),
        ("command", 7, "m/s, rad/s, rad", 1.0),
        ("joint_position", n, "rad", 1.0),
        ("joint_velocity", n, "rad/s", 0.05),
        ("last_action", n, "1", 1.0),
        ("second_last_action", n, "1", 1.0),
        ("third_last_action", n, "1", 1.0),
        ("motor_targets", n, "rad", 1.0),
        ("foot_contacts", 2, "1", 1.0),
        ("phase", 2, "1", 1.0),
    ]
    return Contract(
        robot="open_duck",
        task="open_duck_joystick",
        scene="",
        joints=tuple(joints),
        home_pose=tuple(float(angle) for angle in home_pose),
        action_scale=0.25,
        rate_limit=5.24,
        control_period=0.02,
        physics_period=0.002,
        phase_steps=27,
        accelerometer_offset=(0.0, 0.0, 0.0),
        observation=tuple(
            Channel(name, width, unit, scale, (0.0,) * width)
            for name, width, unit, scale in layout
        ),
        command_names=tuple(name for name, _, _ in commands),
        command_units=tuple(unit for _, unit, _ in commands),
        command_ranges=tuple(ends for _, _, ends in commands),
        servo="sts3215",
        versions={},
        config_hash="",
    )


def _layout(channels: Sequence[Channel]) -> str:
    """Name, width and scale of a channel: what a runner must build alike."""
    return ", ".join(f"{c.name}[{c.width}] x {c.scale:g}" for c in channels) or "none"


def _difference(name: str, mine: Any, theirs: Any) -> list[str]:
    """One line a differing entry where both are lists of the same length."""
    if _same(mine, theirs):
        return []
    if (
        isinstance(mine, tuple)
        and isinstance(theirs, tuple)
        and len(mine) == len(theirs)
    ):
        entries = enumerate(zip(mine, theirs, strict=True))
        return [
            f"{name}[{i}]: policy {a}, here {b}"
            for i, (a, b) in entries
            if not _same(a, b)
        ]
    return [f"{name}: policy {mine}, here {theirs}"]


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, tuple | list) and isinstance(theirs, tuple | list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(mine, float | int) and isinstance(theirs, float | int):
        return abs(mine - theirs) <= _TOLERANCE
    return mine == theirs


def _read(hint: Any, value: Any) -> Any:
    """Returns a JSON value as the type of a contract's field.

    Raises:
      ValueError, TypeError, KeyError: it is none.
    """
    args = typing.get_args(hint)
    if type(None) in args:
        return None if value is None else _read(args[0], value)
    if hint is Channel:
        hints = typing.get_type_hints(Channel)
        return Channel(
            **{name: _read(kind, value[name]) for name, kind in hints.items()}
        )
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise TypeError
        kinds = args[:1] * len(value) if args[1:] == (...,) else args
        return tuple(_read(kind, v) for kind, v in zip(kinds, value, strict=True))
    if args:  # Mapping[str, str]
        if not isinstance(value, dict):
            raise TypeError
        return {str(key): str(v) for key, v in value.items()}
    kind = {str: str, int: int, float: int | float}[hint]
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError
    if hint is float and not math.isfinite(float(value)):
        raise ValueError
    return hint(value)
