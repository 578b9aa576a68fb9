"""Pictures of an evaluation: speeds reached, falls, and how the feet lift.

A title says what was found; axes name quantity and unit.
"""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from playground.experiments.evaluate import Condition, Evaluation, Walk
from playground.experiments.metrics import Episodes
from playground.experiments.style import FAINT, INK, STYLE
from playground.experiments.summary import label, wilson
from playground.experiments.verdict import DISTURBED, LEAST_RATIO, UNDISTURBED

_COLORS = {UNDISTURBED: "#1f6f9f", DISTURBED: "#d9772b"}
_FEET = ("#1f6f9f", "#b5487d")
_STYLE: Any = STYLE | {
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.7,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "figure.constrained_layout.w_pad": 0.1,
}
_LABEL = 36  # characters in a line of a command's name
_LEAST_HEIGHT = 5.0  # mm that the axis shows at least, so that no lift looks like none
_AXES = (
    ("Forward", "vx", "m/s"),
    ("Sideways", "vy", "m/s"),
    ("Turning", "yaw rate", "rad/s"),
)


def write_plots(evaluation: Evaluation, folder: Path) -> dict[str, str]:
    """Draws all pictures into a folder.

    Returns:
      File name -> what it shows.
    """
    conditions = evaluation.conditions
    pictures = {}
    asked = conditions[UNDISTURBED].episodes.command[:, :3]
    with plt.rc_context(rc=_STYLE):
        if asked.any():
            pictures["velocity.png"] = "Velocity reached against velocity commanded"
            _save(_velocity_figure(conditions), folder / "velocity.png")
        pictures["falls.png"] = "When robots fell, and at which commands"
        _save(
            _falls_figure(conditions, evaluation.config.seconds), folder / "falls.png"
        )
        pictures["feet.png"] = "Height of the soles over a piece of one episode"
        _save(_feet_figure(evaluation.walk), folder / "feet.png")
    return pictures


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path)
    plt.close(figure)


def _velocity_figure(conditions: Mapping[str, Condition]) -> Figure:
    asked = conditions[UNDISTURBED].episodes.command
    axes_asked = [axis for axis in range(3) if asked[:, axis].any()]
    size = (3.5 * len(axes_asked), 3.7)
    figure, panels = plt.subplots(
        1, len(axes_asked), figsize=size, squeeze=False, layout="constrained"
    )
    for panel, axis in zip(panels[0], axes_asked, strict=True):
        _velocity_panel(panel, axis, conditions)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _velocity_panel(
    panel: Axes, axis: int, conditions: Mapping[str, Condition]
) -> None:
    name, quantity, unit = _AXES[axis]
    most = 1.18 * np.abs(conditions[UNDISTURBED].episodes.command[:, axis]).max()
    ends = np.array([-most, most])
    panel.fill_between(
        ends,
        0,
        LEAST_RATIO * ends,
        color="#f3e4e1",
        lw=0,
        label=f"less than {LEAST_RATIO:.0%}: fails",
    )
    panel.plot(ends, ends, color=FAINT, lw=1, label="as commanded")
    step = 0.012 * most
    for number, (condition, result) in enumerate(conditions.items()):
        episodes = result.episodes
        alone = (episodes.command[:, :3] != 0).sum(axis=1) <= 1
        rows = alone & (
            (episodes.command[:, axis] != 0) | ~episodes.command[:, :3].any(axis=1)
        )
        shift = step * (2 * number - len(conditions) + 1)
        panel.plot(
            episodes.command[rows, axis] + shift,
            episodes.velocity[rows, axis],
            "o",
            ms=4.5,
            mfc=_COLORS[condition] if condition == UNDISTURBED else "none",
            mec=_COLORS[condition],
            mew=1.0,
            alpha=0.85,
            label=f"one episode, {condition}",
        )
    ratios = [
        command.ratio[axis]
        for command in conditions[UNDISTURBED].commands
        if np.count_nonzero(command.command[:3]) == 1 and command.command[axis]
    ]
    panel.set_title(_reached(name, ratios))
    panel.set_xlabel(f"commanded {quantity} ({unit})")
    panel.set_ylabel(f"reached {quantity} ({unit})")
    panel.set_xlim(*ends)


def _reached(name: str, ratios: list[float]) -> str:
    known = [ratio for ratio in ratios if not np.isnan(ratio)]
    if not known:
        return f"{name}: nothing measured"
    low, high = f"{min(known):z.0%}", f"{max(known):z.0%}"
    span = low if low == high else f"{low} to {high}"
    return f"{name}: {span} of what is asked"


def _falls_figure(conditions: Mapping[str, Condition], seconds: float) -> Figure:
    commands = conditions[UNDISTURBED].commands
    wrapped = any(len(result.label) > _LABEL for result in commands)
    height = max(2.8, (0.33 if wrapped else 0.23) * len(commands) + 1.0)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, height), width_ratios=(1, 1.15), layout="constrained"
    )
    for condition, result in conditions.items():
        _survival_curve(left, condition, result.episodes, seconds)
    left.set_title(_fallen(conditions))
    left.set_xlabel("time (s)")
    left.set_ylabel("share still up")
    left.set_ylim(-0.02, 1.03)
    left.set_xlim(0, seconds)
    left.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0))
    left.legend(loc="lower left", title="band: 95 % interval", alignment="left")
    _ends(right, conditions, seconds)
    return figure


def _survival_curve(
    panel: Axes, condition: str, episodes: Episodes, seconds: float
) -> None:
    falls = np.sort(episodes.end_s[episodes.fell])
    times = np.concatenate([[0.0], falls, [seconds]])
    fallen = np.minimum(np.arange(len(times)), len(falls))
    low, high = np.transpose([wilson(int(count), len(episodes)) for count in fallen])
    color = _COLORS[condition]
    share = 1 - fallen / len(episodes)
    panel.step(times, share, where="post", color=color, label=condition)
    panel.fill_between(
        times, 1 - high, 1 - low, step="post", color=color, alpha=0.15, lw=0
    )


def _fallen(conditions: Mapping[str, Condition]) -> str:
    parts = [
        f"{result.summary.falls} of {result.summary.episodes} fell {condition}"
        for condition, result in conditions.items()
    ]
    return ", ".join(parts)


def _ends(panel: Axes, conditions: Mapping[str, Condition], seconds: float) -> None:
    """One dot an episode, at the time it ended: falls filled, survivors hollow."""
    commands = conditions[UNDISTURBED].commands
    rows = {result.command: row for row, result in enumerate(commands)}
    for number, (condition, result) in enumerate(conditions.items()):
        episodes = result.episodes
        shift = 0.18 * (2 * number - len(conditions) + 1)
        row = np.array([rows[tuple(c)] for c in episodes.command.tolist()]) + shift
        fell, color = episodes.fell, _COLORS[condition]
        panel.plot(episodes.end_s[fell], row[fell], "o", ms=4.5, color=color, alpha=0.8)
        up = row[~fell]
        panel.plot(
            np.full(len(up), seconds), up, "o", ms=4.5, mfc="white", mec=color, mew=1
        )
    panel.set_title(_worst(conditions))
    labels = [textwrap.fill(result.label, _LABEL) for result in commands]
    panel.set_yticks(range(len(commands)), labels)
    panel.invert_yaxis()
    panel.set_xlim(0, 1.03 * seconds)
    panel.set_xlabel("time of the end (s); hollow: still up")


def _worst(conditions: Mapping[str, Condition]) -> str:
    falls: dict[str, int] = {}
    for condition in conditions.values():
        for result in condition.commands:
            before = falls.get(result.label, 0)
            falls[result.label] = before + result.summary.falls
    worst = max(falls, key=lambda command: falls[command])
    if not falls[worst]:
        return "No command made a robot fall"
    struck = sum(number > 0 for number in falls.values())
    return (
        f"Falls at {struck} of {len(falls)} commands, most ({falls[worst]}) at {worst}"
    )


def _feet_figure(walk: Walk) -> Figure:
    figure, panel = plt.subplots(figsize=(8, 3.0), layout="constrained")
    height = 1000 * walk.sole_height
    lowest = height.min()
    most = max(height.max(), _LEAST_HEIGHT)
    for foot, name in enumerate(walk.feet):
        color = _FEET[foot % len(_FEET)]
        panel.plot(
            walk.time, height[:, foot], color=color, label=name.replace("_", " ")
        )
        bottom = lowest - 0.09 * most * (foot + 1)
        panel.fill_between(
            walk.time,
            bottom,
            bottom + 0.06 * most,
            where=list(walk.contact[:, foot]),
            color=color,
            lw=0,
            step="pre",
        )
    peaks = [f"{height[:, f].max():.0f} mm" for f in range(height.shape[1])]
    feet = [name.replace("_", " ") for name in walk.feet]
    lifted = ", ".join(f"{f} {p}" for f, p in zip(feet, peaks, strict=True))
    panel.set_title(f"Command {label(walk.command)}: highest {lifted}")
    panel.set_xlabel("time (s); bars: the foot touches the floor")
    panel.set_ylabel("height of the sole (mm)")
    panel.set_xlim(walk.time[0], walk.time[-1])
    panel.set_ylim(top=1.08 * most)
    panel.legend(loc="upper right", ncols=2, bbox_to_anchor=(1.0, 1.16))
    return figure
