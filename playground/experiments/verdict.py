"""PASS or FAIL, with the reasons.

The thresholds say what a walker is; they are not to be moved to let a policy pass.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from playground.experiments.summary import CommandResult, Summary

UNDISTURBED, DISTURBED = "undisturbed", "disturbed"

LEAST_RATIO = 0.5
"""Least reached / commanded velocity: below it a robot rather stands than goes."""
LEAST_SURVIVAL = 0.9
"""Least share that must stay up when disturbed, at the lower end of the 95 %
interval, so that a few lucky episodes prove nothing."""
FARTHEST_DRIFT = 0.10
"""m from the start at a zero command: a robot that ends farther away than the length
of its foot has not stood."""
FARTHEST_TURN = 0.35
"""rad of heading change at a zero command (20 deg), likewise."""

_AXES = (("vx", "m/s"), ("vy", "m/s"), ("yaw", "rad/s"))


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether a policy does what its task asks.

    Attributes:
      passed: True if there is no reason against it.
      reasons: one line for each threshold missed.
    """

    passed: bool
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        """PASS or FAIL."""
        return "PASS" if self.passed else "FAIL"


def judge(
    results: Mapping[str, tuple[Summary, tuple[CommandResult, ...]]],
) -> Verdict:
    """Judges a policy.

    Falls count for every task. Where velocities are commanded they must be reached,
    with and without disturbances; where none are, the robot must stay where it stands.

    Args:
      results: Condition -> summary of all its episodes, and the results by command.
    """
    reasons: list[str] = []
    for condition, (summary, commands) in results.items():
        judge_falls = _undisturbed if condition == UNDISTURBED else _disturbed
        reasons += judge_falls(condition, summary, commands)
        moving = [result for result in commands if any(result.command[:3])]
        for result in moving:
            reasons += _still(condition, result)
        if not moving and condition == UNDISTURBED:
            reasons += _drift(condition, summary)
    return Verdict(not reasons, tuple(reasons))


def _undisturbed(condition, summary, commands) -> list[str]:
    return [
        f"{condition}, {result.label}: {result.summary.falls} of "
        f"{result.summary.episodes} episodes fell"
        for result in commands
        if result.summary.falls
    ]


def _disturbed(condition, summary, commands) -> list[str]:
    low, high = summary.survival
    if low >= LEAST_SURVIVAL:
        return []
    number, falls = summary.episodes, summary.falls
    few = "" if falls else " (too few episodes to tell)"
    return [
        f"{condition}: {number - falls} of {number} episodes stayed up; the 95 % "
        f"interval of the survival, {low:.1%} to {high:.1%}, reaches below "
        f"{LEAST_SURVIVAL:.0%}{few}"
    ]


def _still(condition: str, result: CommandResult) -> list[str]:
    where = f"{condition}, {result.label}"
    short = []
    for axis, (name, unit) in enumerate(_AXES):
        asked, ratio = result.command[axis], result.ratio[axis]
        if not asked:
            continue
        if np.isnan(ratio):
            return [f"{where}: not measured, every episode fell too early"]
        if ratio < LEAST_RATIO:
            short.append(
                f"{name} {result.velocity[axis]:+z.3f} of {asked:+.2f} {unit} "
                f"({ratio:z.0%})"
            )
    if not short:
        return []
    return [f"{where}: reached {', '.join(short)}; at least {LEAST_RATIO:.0%} is asked"]


def _drift(condition: str, summary: Summary) -> list[str]:
    reasons = []
    for name, value, limit, unit in (
        ("moved", summary.zero_drift, FARTHEST_DRIFT, "m"),
        ("turned", summary.zero_turn, FARTHEST_TURN, "rad"),
    ):
        if not value <= limit:  # NaN too
            reasons.append(
                f"{condition}: {name} {value:.2f} {unit} while standing, "
                f"at most {limit:.2f} {unit} allowed"
            )
    return reasons
