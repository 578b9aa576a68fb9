"""A sweep as text: what each strategy withstands, then every direction."""

import math

from playground.experiments.evaluate_text import UNDEFINED, table, write_number
from playground.experiments.push.search import Edge
from playground.experiments.push.summary import (
    SIDES,
    Strategy,
    bounds,
    headline,
    reference,
    strategies,
)
from playground.experiments.push.sweep import Sweep


def markdown(
    found: Sweep, command: str, device: str, versions: dict[str, str], picture: str
) -> str:
    """Returns the report; see `report.write_report`."""
    each = strategies(found)
    parts = [
        f"# Pushes that {found.config.robot} withstands: {headline(found)}",
        f"Made by\n\n    {command}",
        _setting(found),
        _cost(found, device, versions),
        f"![Critical impulse by direction]({picture})",
        "## By strategy",
        _overview(found, each),
    ]
    for strategy in each:
        parts += [f"## {strategy.name}, by direction", _directions(strategy)]
    parts += ["## How it was measured", _method(found)]
    return "\n\n".join(parts) + "\n"


def _setting(found: Sweep) -> str:
    config, stance = found.config, found.stance
    text = (
        f"Pushed for {config.duration:g} s at a height of {stance.push_height:.3f} m "
        f"({config.height}), robot of {stance.mass:.1f} kg with its centre of mass at "
        f"{stance.com_height:.3f} m."
    )
    if config.models:
        text += (
            f" {config.models} varied models: torso's mass ± {config.torso_mass:.0%}, "
            f"friction of the soles from {config.friction:g}, seed {config.seed}; the "
            "first four are the corners of these ranges."
        )
    if config.position_noise or config.velocity_noise:
        text += (
            f" Sensor noise {config.position_noise:g} m and "
            f"{config.velocity_noise:g} m/s."
        )
    return text


def _cost(found: Sweep, device: str, versions: dict[str, str]) -> str:
    phases = {"search": "the search", "grid": "the check for holes"}
    costs = [
        f"{label} took {found.seconds(phase):.0f} s for {found.robots(phase):,} robots"
        for phase, label in phases.items()
    ]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"Engine {found.engine} on {device}: {' and '.join(costs)}, each of "
        f"{found.steps_per_case:,} physics steps; {found.steps_per_s:,.0f} steps/s, "
        f"compilation included. {named}."
    )


def _overview(found: Sweep, each: list[Strategy]) -> str:
    header = ["N·s (% of the bound)", *SIDES, "worst", "worst at", "mean", "holes in"]
    header += ["joint saturated (s)", "diverged"]
    if found.config.models:
        header += [f"worst of {found.config.models} models"]
    rows = [_summary(found, strategy) for strategy in each]
    rest = [UNDEFINED] * (len(header) - 1 - len(SIDES))
    if published := reference(found):
        cells = [
            UNDEFINED if at is None else _percent(published[name], each[0].bound[at])
            for name in SIDES
            for at in [each[0].side(name)]
        ]
        rows.append(["reference controller", *cells, *rest])
    for name, bound in bounds(found).items():
        sides = [each[0].side(side) for side in SIDES]
        cells = [UNDEFINED if at is None else f"{bound[at]:.2f}" for at in sides]
        worst = [f"{bound.min():.2f}", _degrees(found, int(bound.argmin()))]
        label = f"bound: {name.replace('_', ' ')}"
        rows.append([label, *cells, *worst, f"{bound.mean():.2f}", *rest[3:]])
    return table(header, rows)


def _summary(found: Sweep, strategy: Strategy) -> list[str]:
    critical, worst = strategy.critical, strategy.worst
    sides = [strategy.side(name) for name in SIDES]
    saturated = [edge.saturated_s for edge in strategy.edges]
    known = [value for value in saturated if not math.isnan(value)]
    cells = [
        strategy.name,
        *[UNDEFINED if at is None else _critical(strategy, at) for at in sides],
        _critical(strategy, worst),
        _degrees(found, worst),
        _percent(critical.mean(), strategy.bound.mean()),
        f"{strategy.holes} of {len(critical)}",
        f"{min(known):.2f} to {max(known):.2f}" if known else UNDEFINED,
        str(sum(edge.diverged for edge in strategy.edges)),
    ]
    if found.config.models:
        least = strategy.models_worst.min()
        cells.append(_share(least, critical[worst], "the worst"))
    return cells


def _directions(strategy: Strategy) -> str:
    header = ["direction", "critical (N·s)", "first failure", "last success"]
    header += ["failed below", "bound", "% of bound", "joint saturated (s)"]
    header += ["ankle moved (m)", "lean (rad)"]
    models = strategy.models.shape[1]
    if models:
        header += [f"median of {models} models", "worst of them"]
    rows = []
    for i, edge in enumerate(strategy.edges):
        row = [
            f"{math.degrees(edge.direction):.0f}°",
            f"{'≥ ' if edge.censored else ''}{edge.critical:.2f}",
            _optional(edge.first_failure),
            _optional(edge.last_success),
            _holes(edge),
            f"{strategy.bound[i]:.2f}",
            f"{strategy.percent[i]:.0f}",
            write_number(edge.saturated_s, ".3f"),
            write_number(edge.moved, ".3f"),
            write_number(edge.peak_lean, ".3f"),
        ]
        if models:
            for value in (strategy.models_median, strategy.models_worst):
                row.append(_share(value[i], edge.critical, "nominal"))
        rows.append(row)
    return table(header, rows)


def _critical(strategy: Strategy, at: int) -> str:
    """Returns "≥ 40.00 (317 %)"."""
    mark = "≥ " if strategy.edges[at].censored else ""
    return mark + _percent(strategy.critical[at], strategy.bound[at])


def _percent(value: float, of: float) -> str:
    return f"{value:.2f} ({100 * value / of:.0f} %)"


def _share(value: float, nominal: float, of: str) -> str:
    if nominal <= 0:
        return f"{value:.2f}"
    return f"{value:.2f} ({100 * value / nominal:.0f} % of {of})"


def _degrees(found: Sweep, direction: int) -> str:
    return f"{math.degrees(found.config.angles[direction]):.0f}°"


def _optional(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.2f}"


def _holes(edge: Edge) -> str:
    """Returns the failures below a success, or how many they are and their range."""
    if len(edge.holes) > 3:
        return f"{len(edge.holes)} from {edge.holes[0]:.1f} to {edge.holes[-1]:.1f}"
    return ", ".join(f"{hole:.1f}" for hole in edge.holes)


def _method(found: Sweep) -> str:
    config = found.config
    grid = (
        f"Every multiple of {config.grid:g} N·s below an edge was tried too; where one "
        "failed, the edge is there."
        if config.grid
        else "No grid of impulses below the edges was tried: holes may be left."
    )
    search = (
        f"Impulses of 0 to {config.max_impulse:g} N·s were tried, {config.levels} at "
        "once inside each bracket, until it was narrower than "
        f"{2 * config.resolution:g} N·s. {grid} Critical is the largest impulse up to "
        "which every one tried was withstood: the true edge is between it and the "
        "first failure. A last success above the first failure, and what failed below "
        "it, show an edge that is not monotone. ≥: nothing failed. Saturation, "
        "movement and lean are those at the critical impulse; 0 N·s: the robot falls "
        "unpushed."
    )
    law = (
        "The bounds are what a robot can withstand that keeps its feet and posture, "
        "with its centre of pressure at the edge of the feet from the first instant: "
        "percentages are of the rigid pendulum, which knows the height of the push; "
        "the point mass is pushed at its centre. Swinging trunk and arms, or stepping, "
        "goes beyond them."
    )
    directions = (
        "Directions: 0° pushes forward, 90° to the robot's left. Sideways is the "
        "weaker of the two sides."
    )
    if reference(found):
        directions += (
            " The reference controller is an earlier ankle and hip controller for this "
            "robot; its three figures were published for the same push."
        )
    return "\n\n".join([search, law, directions])
