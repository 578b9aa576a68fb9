"""What an episode came to, in numbers: pure numpy, from a trace.

Every episode counts once. One that fell counts as a fall and is measured until the
fall. A number that is not defined (the cost of transport of a robot that stands, the
clearance of a foot that never swung) is NaN, never 0.
"""

import dataclasses
from collections.abc import Sequence
from typing import Self

import jax
import numpy as np

from playground.tasks.episodes import Trace

SETTLE = 1.0
"""s from the start that are not measured: the robot has then had time to get going."""
SHORTEST = 0.5
"""s after `SETTLE` that an episode must be up to be measured: about a gait period."""
SLOWEST = 0.02
"""m/s below which a cost of transport would only tell how slow the robot is."""
Array = jax.Array | np.ndarray

_GRAVITY = 9.81  # m/s²
# rad/s rms below which the joints stand still and their jerk says nothing.
_STILL_JOINTS = 0.01
# s that a foot must be off the floor to have swung: two control steps at 50 Hz, so that
# the flicker of a contact is no swing.
_SHORTEST_SWING = 0.04


@dataclasses.dataclass(frozen=True)
class Episodes:
    """What each of N episodes came to; NaN where it is not defined.

    All but falls, displacement and turn is measured from `SETTLE` until the episode's
    end, and not at all if that is less than `SHORTEST`.

    Attributes:
      command: [N, 7] held.
      fell: [N] bool, ended before its time; a diverged robot fell too.
      diverged: [N] bool, its physics left the finite numbers.
      end_s: [N] s until the fall; NaN: it did not fall.
      velocity: [N, 3] mean vx, vy of the centre of mass in the heading frame (m/s), and
        heading change / time (rad/s).
      displacement: [N, 2] m forward and to the left, in the heading at the start, from
        the first step to the last one up.
      turn: [N] rad, heading change over the same time.
      cost_of_transport: [N] mean power / (weight x speed), where the speed is `SLOWEST`
        or more. Power is the sum over joints of |torque x velocity|.
      action_rate: [N] mean over steps and actuators of |change of the action| / control
        period, 1/s.
      jerk: [N] mean squared jerk of the joints / mean squared joint velocity, times
        (gait period / 2 pi)^4: 1 for joints that move like a sine of the gait's period,
        k^4 for its k-th harmonic.
      clearance: [N, n_feet] m, mean over swings of the highest point of the sole, above
        where it is on average while it touches.
      asymmetry: [N] |left - right| / mean clearance, 0 (alike) to 2; two feet only.
      slip: [N] m/s, mean horizontal speed of the soles that touch.
      head_error: [N] rad, |mean head joint - commanded|, mean over the head's joints.
    """

    command: np.ndarray
    fell: np.ndarray
    diverged: np.ndarray
    end_s: np.ndarray
    velocity: np.ndarray
    displacement: np.ndarray
    turn: np.ndarray
    cost_of_transport: np.ndarray
    action_rate: np.ndarray
    jerk: np.ndarray
    clearance: np.ndarray
    asymmetry: np.ndarray
    slip: np.ndarray
    head_error: np.ndarray

    def __len__(self) -> int:
        """Episodes."""
        return len(self.fell)

    def __getitem__(self, rows) -> Self:
        """Returns some of the episodes; `rows` as for numpy's first axis."""
        return type(self)(**{name: array[rows] for name, array in vars(self).items()})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Returns the episodes of all parts, in order."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})


def measure(
    trace: Trace,
    commands: np.ndarray,
    control_period: float,
    mass: float,
    gait_period: float,
    head: Array | None = None,
) -> Episodes:
    """Returns what the episodes of a trace came to.

    Args:
      trace: numpy arrays [T, N, ...] of whole episodes.
      commands: [N, 7] held.
      control_period: s.
      mass: kg, of the robot as designed.
      gait_period: s, scale of the jerk.
      head: [T, N, 4] rad, head joints from home as commanded; None: not known.
    """
    alive, settle = np.asarray(trace.alive), round(SETTLE / control_period)
    counted = alive & (np.arange(len(alive)) >= settle)[:, None]
    # Too little to measure is as good as nothing.
    counted &= counted.sum(0) >= round(SHORTEST / control_period)
    velocity = _velocity(trace, counted, control_period)
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    walks = speed >= SLOWEST
    power = _mean(trace.power, counted)
    cost = power / np.where(walks, mass * _GRAVITY * speed, np.nan)
    displacement, turn = _drift(trace)
    clearance = _clearance(trace, counted, round(_SHORTEST_SWING / control_period))
    head_error = np.full(len(commands), np.nan)
    if head is not None:
        joints = [_mean(head[..., joint], counted) for joint in range(head.shape[-1])]
        head_error = np.abs(np.stack(joints, axis=-1) - commands[:, 3:]).mean(-1)
    fell = ~alive[-1]
    return Episodes(
        command=np.asarray(commands, float),
        fell=fell,
        diverged=np.any(trace.diverged, axis=0),
        end_s=np.where(fell, (alive.sum(0) + 1) * control_period, np.nan),
        velocity=velocity,
        displacement=displacement,
        turn=turn,
        cost_of_transport=cost,
        action_rate=_action_rate(trace, counted, control_period),
        jerk=_jerk(trace, counted, control_period, gait_period),
        clearance=clearance,
        asymmetry=_asymmetry(clearance),
        slip=_mean(trace.sole_speed, counted[..., None] & trace.contact),
        head_error=head_error,
    )


def _mean(values: Array, mask: Array) -> np.ndarray:
    """Returns [N] the means of [T, N, ...] values where the mask [T, N, ...] holds."""
    mask = np.broadcast_to(mask, values.shape)
    axes = (0, *range(2, values.ndim))
    total, number = np.where(mask, values, 0.0).sum(axes), mask.sum(axes)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _velocity(trace: Trace, counted: Array, dt: float) -> np.ndarray:
    vx, vy = (_mean(trace.velocity[..., axis], counted) for axis in (0, 1))
    # Where counted, the step before the first one counted is a step of the episode too.
    steps = counted.sum(0)
    last = trace.alive.sum(0) - 1
    before = np.maximum(last - steps, 0)
    yaw, rows = np.unwrap(trace.yaw.astype(float), axis=0), np.arange(len(steps))
    turned = yaw[last, rows] - yaw[before, rows]
    rate = np.where(steps > 0, turned / (np.maximum(last - before, 1) * dt), np.nan)
    return np.stack([vx, vy, rate], axis=-1)


def _drift(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """[N, 2] m forward and left in the starting heading, and [N] rad turned."""
    last, rows = trace.alive.sum(0) - 1, np.arange(trace.alive.shape[1])
    moved = (trace.position[last, rows] - trace.position[0])[:, :2]
    cos, sin = np.cos(trace.yaw[0]), np.sin(trace.yaw[0])
    forward = cos * moved[:, 0] + sin * moved[:, 1]
    left = cos * moved[:, 1] - sin * moved[:, 0]
    yaw = np.unwrap(trace.yaw.astype(float), axis=0)
    turn = yaw[last, rows] - yaw[0]
    never_up = last < 0
    displacement = np.stack([forward, left], axis=-1)
    return (
        np.where(never_up[:, None], np.nan, displacement),
        np.where(never_up, np.nan, turn),
    )


def _action_rate(trace: Trace, counted: Array, dt: float) -> np.ndarray:
    change = np.abs(np.diff(trace.action, axis=0)) / dt
    return _mean(change, (counted[1:] & counted[:-1])[..., None])


def _jerk(trace: Trace, counted: Array, dt: float, gait_period: float) -> np.ndarray:
    velocity = trace.joint_velocity.astype(float)
    jerk = np.diff(velocity, n=2, axis=0) / dt**2
    jerk2 = _mean(jerk**2, (counted[2:] & counted[:-2])[..., None])
    velocity2 = _mean(velocity**2, counted[..., None])
    moves = np.where(velocity2 >= _STILL_JOINTS**2, velocity2, np.nan)
    return jerk2 / moves * (gait_period / (2 * np.pi)) ** 4


def _clearance(trace: Trace, counted: np.ndarray, shortest: int) -> np.ndarray:
    """[N, n_feet] m, over the swings that began and ended while counted."""
    mean = np.full(trace.contact.shape[1:], np.nan)
    for robot, foot in np.ndindex(*mean.shape):
        steps = counted[:, robot]
        contact = np.asarray(trace.contact[steps, robot, foot])
        height = np.asarray(trace.sole_height[steps, robot, foot])
        edges = np.diff((~contact).astype(int))
        lifts, lands = np.flatnonzero(edges > 0) + 1, np.flatnonzero(edges < 0) + 1
        if len(lifts):
            lands = lands[lands > lifts[0]]
        peaks = [
            height[lift:land].max()
            for lift, land in zip(lifts, lands, strict=False)
            if land - lift >= shortest
        ]
        if peaks:
            mean[robot, foot] = np.mean(peaks) - height[contact].mean()
    return mean


def _asymmetry(clearance: np.ndarray) -> np.ndarray:
    if clearance.shape[1] != 2:
        return np.full(len(clearance), np.nan)
    left, right = clearance.T
    mean = (left + right) / 2
    return np.abs(left - right) / np.where(mean > 0, mean, np.nan)
