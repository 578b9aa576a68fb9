"""An evaluation as text: the verdict first, then the numbers and what they mean."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from playground.experiments.evaluate import Condition, Evaluation
from playground.experiments.metrics import SETTLE, SHORTEST, SLOWEST
from playground.experiments.summary import CommandResult, Summary
from playground.experiments.verdict import (
    DISTURBED,
    FARTHEST_DRIFT,
    FARTHEST_TURN,
    LEAST_RATIO,
    LEAST_SURVIVAL,
    UNDISTURBED,
)

UNDEFINED = "–"


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of a summary.

    Attributes:
      name: for people, with the unit.
      value: reads it.
      form: how it is written.
      meaning: what it is.
    """

    name: str
    value: Callable[[Summary], float]
    form: str
    meaning: str


NUMBERS = (
    Number("falls", lambda s: s.falls, ".0f", "episodes that ended before their time"),
    Number("diverged", lambda s: s.diverged, ".0f", "of these, the physics failed"),
    Number(
        "time to fall (s)", lambda s: s.time_to_fall, ".1f", "mean of those that fell"
    ),
    Number(
        "unmeasured",
        lambda s: s.unmeasured,
        ".0f",
        "episodes that fell too early for anything else to be measured",
    ),
    Number("vx RMSE (m/s)", lambda s: s.rmse[0], ".3f", "reached against commanded"),
    Number("vy RMSE (m/s)", lambda s: s.rmse[1], ".3f", "likewise"),
    Number("yaw rate RMSE (rad/s)", lambda s: s.rmse[2], ".3f", "likewise"),
    Number(
        "drift standing (m)",
        lambda s: s.zero_drift,
        ".3f",
        "distance from the start at a zero velocity command",
    ),
    Number("turn standing (rad)", lambda s: s.zero_turn, ".3f", "heading change then"),
    Number(
        "drift sideways (m)",
        lambda s: s.sideways,
        ".3f",
        "distance off the straight line at commands of vx alone",
    ),
    Number(
        "cost of transport",
        lambda s: s.cost_of_transport,
        ".2f",
        f"joint power / (weight x speed), where the speed is {SLOWEST:g} m/s or more",
    ),
    Number(
        "action rate (1/s)",
        lambda s: s.action_rate,
        ".2f",
        "mean change of an action per second",
    ),
    Number(
        "joint jerk",
        lambda s: s.jerk,
        ".0f",
        "1 for joints that move like a sine of the gait's period, k^4 for its k-th "
        "harmonic",
    ),
    Number(
        "clearance left (mm)",
        lambda s: 1000 * s.clearance[0],
        ".1f",
        "highest point of the sole in a swing above where it touches, mean over swings",
    ),
    Number("clearance right (mm)", lambda s: 1000 * s.clearance[-1], ".1f", "likewise"),
    Number(
        "asymmetry",
        lambda s: s.asymmetry,
        ".2f",
        "difference of the two / their mean, 0 (alike) to 2",
    ),
    Number(
        "slip (m/s)", lambda s: s.slip, ".4f", "horizontal speed of soles that touch"
    ),
    Number(
        "head error (rad)",
        lambda s: s.head_error,
        ".3f",
        "mean head joints against commanded",
    ),
)


def markdown(
    evaluation: Evaluation, policy: str, command: str, pictures: dict[str, str]
) -> str:
    """Returns the report; see `report.write_report`."""
    verdict, config = evaluation.verdict, evaluation.config
    reasons = [f"- {reason}" for reason in verdict.reasons] or ["No threshold missed."]
    if DISTURBED not in evaluation.conditions:
        reasons += ["\nDisturbances were not played: the verdict is on the rest."]
    versions = ", ".join(f"{n} {v}" for n, v in evaluation.versions.items())
    parts = [
        f"# Evaluation of {policy}: {verdict}",
        "\n".join(reasons),
        f"Made by\n\n    {command}",
        f"{config.seeds} episodes of {config.seconds:g} s for each of "
        f"{len(evaluation.conditions[UNDISTURBED].commands)} commands, seed "
        f"{config.seed}, scene {evaluation.env.scene}, engine {evaluation.engine} on "
        f"{evaluation.device}, physics "
        f"period {1000 * evaluation.env.sim_dt:g} ms, in {evaluation.wall_s:.0f} s. "
        f"{versions}.",
        "## All episodes",
        _overview(evaluation.conditions),
        "\n\n".join(f"![{shows}]({name})" for name, shows in pictures.items()),
    ]
    for name, condition in evaluation.conditions.items():
        parts += [f"## By command, {name}", _by_command(condition)]
    if evaluation.engines:
        parts += ["## Engines, undisturbed", _engines(evaluation.engines)]
    parts += ["## How it was measured", _method(evaluation)]
    return "\n\n".join(parts) + "\n"


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], words: int | None = None
) -> str:
    """Returns a Markdown table of numbers; the first column is words, as is `words`."""
    rule = ["---", *["--:"] * (len(header) - 1)]
    if words is not None:
        rule[words] = "---"
    lines = [header, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_number(value: float, form: str) -> str:
    """Returns a number as text; a dash where it is not defined."""
    return UNDEFINED if np.isnan(value) else format(value, form.replace(".", "z."))


def _overview(conditions: dict[str, Condition]) -> str:
    summaries = [condition.summary for condition in conditions.values()]
    rows = [["episodes", *[str(s.episodes) for s in summaries], "each counts once"]]
    survival = [f"{s.survival[0]:.1%} to {s.survival[1]:.1%}" for s in summaries]
    rows.append(["survival", *survival, "95 % Wilson interval"])
    for number in NUMBERS:
        values = [write_number(number.value(s), number.form) for s in summaries]
        rows.append([number.name, *values, number.meaning])
    return table(["", *conditions, "what it is"], rows, words=-1)


def _by_command(condition: Condition) -> str:
    header = ["command", "vx (m/s)", "vy (m/s)", "yaw (rad/s)", "fell", "drift (m)"]
    header += ["cost of transport", "clearance l, r (mm)", "slip (m/s)"]
    header += ["head error (rad)"]
    return table(header, [_row(result) for result in condition.commands])


def _row(result: CommandResult) -> list[str]:
    summary = result.summary
    reached = [
        write_number(velocity, "+.3f") + ("" if np.isnan(ratio) else f" ({ratio:z.0%})")
        for velocity, ratio in zip(result.velocity, result.ratio, strict=True)
    ]
    drift = summary.sideways if np.isnan(summary.zero_drift) else summary.zero_drift
    heights = [write_number(1000 * height, ".1f") for height in summary.clearance]
    return [
        result.label,
        *reached,
        f"{summary.falls}/{summary.episodes}",
        write_number(drift, ".3f"),
        write_number(summary.cost_of_transport, ".2f"),
        ", ".join(heights),
        write_number(summary.slip, ".4f"),
        write_number(summary.head_error, ".3f"),
    ]


def _engines(engines: dict[str, Condition]) -> str:
    rows = []
    for number in NUMBERS:
        values = [number.value(condition.summary) for condition in engines.values()]
        cells = [write_number(value, number.form) for value in values]
        rows.append([number.name, *cells, write_number(spread(values), number.form)])
    return table(["", *engines, "gap"], rows)


def spread(values: Sequence[float]) -> float:
    """Returns the largest value less the smallest; NaN if one is not defined."""
    return float(np.max(values) - np.min(values))


def _method(evaluation: Evaluation) -> str:
    env = evaluation.env
    clock = ", any phase of the gait clock" if env.start.random_phase else ""
    quiet = [
        "Undisturbed: no noise, no delays, no kicks, the robot as designed. Starts",
        f"differ: joints up to {env.start.joint:g} rad from home, headings up to",
        f"{env.start.yaw:.2f} rad to either side{clock}.",
    ]
    kicks, delays, models = env.kicks, env.delays, env.randomization.models
    disturbed = [
        "Disturbed, by what the task names: sensor noise of level",
        f"{env.noise.level:g}; delays of up to {delays.action} (action) and",
        f"{delays.imu} (IMU) control steps; kicks of {kicks.speed[0]:g} to",
        f"{kicks.speed[1]:g} m/s x mass every {kicks.interval_s[0]:g} to",
        f"{kicks.interval_s[1]:g} s; {models} randomised models.",
    ]
    measured = [
        f"All but falls and drift is measured from {SETTLE:g} s until the end or the",
        f"fall, and not at all if that is less than {SHORTEST:g} s. Velocities are",
        "those of the centre of mass in the heading frame; the yaw rate is heading",
        "change / time. Drift is from the start to the end or the fall; under a",
        "command of vx alone, it is the part to the side. The quality of the gait",
        "(action rate to head error) is the mean over the episodes with a velocity",
        f"command, if there are any. {UNDEFINED}: not defined.",
    ]
    verdict = [
        "FAIL if, undisturbed, any episode falls; if, disturbed, the lower end of the",
        f"interval of the survival is below {LEAST_SURVIVAL:.0%}; if, at any command,",
        f"the mean velocity reached on a commanded axis is below {LEAST_RATIO:.0%} of",
        "what is commanded. A task without velocity commands must instead stay within",
        f"{FARTHEST_DRIFT:g} m and {FARTHEST_TURN:g} rad of its start, on average and",
        "undisturbed.",
    ]
    shown = [quiet, *([disturbed] if DISTURBED in evaluation.conditions else [])]
    return "\n\n".join(" ".join(text) for text in [*shown, measured, verdict])
