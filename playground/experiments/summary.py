"""Episodes summed up: falls with an interval, errors, drift, quality of the gait."""

import dataclasses

import numpy as np
from scipy import stats

from playground.experiments.metrics import Episodes

_CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a group of episodes came to; NaN where no episode defines it.

    Attributes:
      episodes: how many, each counted once.
      falls: ended before their time, diverged ones included.
      fall_share: 95 % Wilson interval of the share that falls, 0..1.
      diverged: physics left the finite numbers.
      time_to_fall: s, mean of those that fell.
      unmeasured: fell too early for anything but the fall to be measured.
      rmse: [3] reached against commanded, m/s, m/s, rad/s, over the measured episodes.
      zero_drift: m, mean distance from the start at a zero velocity command.
      zero_turn: rad, mean |heading change| at a zero velocity command.
      sideways: m, mean |displacement to the side| at commands of vx alone.
      cost_of_transport: mean over the episodes that define it.
      action_rate: 1/s, like all that follow the mean over the episodes with a velocity
        command, over all if there are none.
      jerk: dimensionless, see `Episodes`.
      clearance: [n_feet] m.
      asymmetry: 0..2.
      slip: m/s.
      head_error: rad.
    """

    episodes: int
    falls: int
    fall_share: tuple[float, float]
    diverged: int
    time_to_fall: float
    unmeasured: int
    rmse: tuple[float, ...]
    zero_drift: float
    zero_turn: float
    sideways: float
    cost_of_transport: float
    action_rate: float
    jerk: float
    clearance: tuple[float, ...]
    asymmetry: float
    slip: float
    head_error: float

    @property
    def survival(self) -> tuple[float, float]:
        """95 % Wilson interval of the share that stays up, 0..1."""
        low, high = self.fall_share
        return 1.0 - high, 1.0 - low


@dataclasses.dataclass(frozen=True)
class CommandResult:
    """What the episodes of one command came to.

    Attributes:
      command: [7] held.
      velocity: [3] reached, mean over the measured episodes, m/s, m/s, rad/s.
      ratio: [3] reached / commanded; NaN on axes that are not commanded.
      summary: the rest.
    """

    command: tuple[float, ...]
    velocity: tuple[float, ...]
    ratio: tuple[float, ...]
    summary: Summary

    @property
    def label(self) -> str:
        """The command in words."""
        return label(self.command)


def wilson(count: int, number: int) -> tuple[float, float]:
    """Returns the 95 % Wilson interval of a share, `count` of `number` being seen."""
    interval = stats.binomtest(count, number).proportion_ci(
        _CONFIDENCE, method="wilson"
    )
    return float(interval.low), float(interval.high)


def summarize(episodes: Episodes) -> Summary:
    """Returns the summary of one or more episodes."""
    asked = episodes.command[:, :3]
    zero = ~asked.any(axis=1)
    forward = (asked[:, 0] != 0) & ~asked[:, 1:].any(axis=1)
    error = episodes.velocity - asked
    distance = np.hypot(*episodes.displacement.T)
    gait = episodes if zero.all() else episodes[~zero]
    falls = int(episodes.fell.sum())
    return Summary(
        episodes=len(episodes),
        falls=falls,
        fall_share=wilson(falls, len(episodes)),
        diverged=int(episodes.diverged.sum()),
        time_to_fall=mean(episodes.end_s),
        unmeasured=int(np.isnan(episodes.velocity[:, 0]).sum()),
        rmse=tuple(float(np.sqrt(mean(axis**2))) for axis in error.T),
        zero_drift=mean(distance[zero]),
        zero_turn=mean(np.abs(episodes.turn[zero])),
        sideways=mean(np.abs(episodes.displacement[forward, 1])),
        cost_of_transport=mean(episodes.cost_of_transport),
        action_rate=mean(gait.action_rate),
        jerk=mean(gait.jerk),
        clearance=tuple(mean(foot) for foot in gait.clearance.T),
        asymmetry=mean(gait.asymmetry),
        slip=mean(gait.slip),
        head_error=mean(gait.head_error),
    )


def by_command(episodes: Episodes) -> tuple[CommandResult, ...]:
    """Returns the result of each command, in the order of its first episode."""
    commands, first = np.unique(episodes.command, axis=0, return_index=True)
    results = []
    for command in commands[np.argsort(first)]:
        part = episodes[(episodes.command == command).all(axis=1)]
        velocity = tuple(mean(axis) for axis in part.velocity.T)
        ratio = tuple(
            reached / asked if asked else float("nan")
            for reached, asked in zip(velocity, command[:3].tolist(), strict=True)
        )
        held = tuple(command.tolist())
        results.append(CommandResult(held, velocity, ratio, summarize(part)))
    return tuple(results)


def mean(values: np.ndarray) -> float:
    """Returns the mean of the values that are defined; NaN if none is."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def label(command) -> str:
    """Returns a command in words: "vx +0.10 yaw -0.30", "zero"."""
    names = ("vx", "vy", "yaw", "neck pitch", "head pitch", "head yaw", "head roll")
    parts = [f"{n} {v:+.2f}" for n, v in zip(names, command, strict=True) if v]
    return " ".join(parts) or "zero"
