"""The picture of a sweep: critical impulse by direction, against bound and reference.

Forward is up and the robot's left is on the left: one looks down on it.
"""

import textwrap
from pathlib import Path
from typing import Any, cast

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from playground.experiments.push.summary import (
    SIDES,
    Strategy,
    bounds,
    headline,
    reference,
    strategies,
)
from playground.experiments.push.sweep import Sweep
from playground.experiments.style import INK, STYLE

_COLORS = ("#9aa5b1", "#1f6f9f", "#d9772b", "#3f8f5b", "#b5487d", "#7a5bb0")
_TITLE = 70  # characters in a line of the title


def write_plot(found: Sweep, path: Path) -> None:
    """Draws strategies, bounds and the reference controller."""
    with plt.rc_context(rc=STYLE):
        figure = _figure(found)
        figure.savefig(path)
        plt.close(figure)


def _figure(found: Sweep) -> Figure:
    figure = plt.figure(figsize=(7.5, 6.2), layout="constrained")
    panel = cast(PolarAxes, figure.add_subplot(projection="polar"))
    panel.set_theta_zero_location("N")
    angles = np.array(found.config.angles)
    fine = np.radians(np.arange(360))
    laws = bounds(found, fine.tolist())
    _ring(panel, fine, laws["rigid"], "bound: rigid pendulum", color=INK, ls="--")
    _ring(panel, fine, laws["point_mass"], "bound: point mass", color=INK, ls=":", lw=1)
    for number, strategy in enumerate(strategies(found)):
        _strategy(panel, angles, strategy, _COLORS[number % len(_COLORS)])
    if published := reference(found):
        panel.plot(
            np.radians([SIDES[name][0] for name in published]),
            list(published.values()),
            "D",
            ms=6,
            color=INK,
            label="reference controller",
        )
    panel.set_rmin(0)
    panel.set_rlabel_position(202)
    degrees = range(0, 360, 45)
    names = {0: "forward", 90: "left", 180: "backward", 270: "right"}
    panel.set_thetagrids(degrees, [names.get(d, f"{d}°") for d in degrees])
    panel.set_title(textwrap.fill(headline(found), _TITLE), pad=18)
    panel.set_xlabel("critical impulse (N·s) by direction of the push")
    figure.legend(loc="outside right upper")
    return figure


def _strategy(
    panel: PolarAxes, angles: np.ndarray, strategy: Strategy, color: str
) -> None:
    _ring(panel, angles, strategy.critical, strategy.name, color=color, marker=".")
    if strategy.models.shape[1]:
        label = f"{strategy.name}, worst of {strategy.models.shape[1]} models"
        _ring(panel, angles, strategy.models_worst, label, color=color, ls=":", lw=1)
    # A search for the edge alone could claim what was withstood beyond a failure.
    holes = np.array([bool(edge.holes) for edge in strategy.edges])
    if holes.any():
        beyond = np.array([edge.last_success for edge in strategy.edges], float)[holes]
        label = f"{strategy.name}, withstood beyond a failure"
        panel.plot(angles[holes], beyond, "o", ms=4, mfc="none", mec=color, label=label)


def _ring(
    panel: PolarAxes, angles: np.ndarray, radius: np.ndarray, label: str, **style: Any
) -> None:
    closed = np.append(angles, angles[:1] + 2 * np.pi), np.append(radius, radius[:1])
    panel.plot(*closed, label=label, **style)
