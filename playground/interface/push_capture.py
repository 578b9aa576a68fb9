"""Writes one push down: numbers over time, a summary, a plot, pictures, a film."""

import csv
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import matplotlib

matplotlib.use("Agg")

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from playground.errors import PlaygroundError
from playground.experiments.push.config import PushConfig
from playground.experiments.push.record import Record, columns, metrics, record_push
from playground.experiments.push.trials import PushTrials
from playground.interface.push_player import PERIOD, push_rows
from playground.interface.scene import Frame
from playground.interface.video import Painter, Video
from playground.robots.robot import Robot

TABLE, METRICS, PLOT = "timeseries.csv", "metrics.json", "timeseries.png"
FILM, LOOP = "push.mp4", "push.gif"
KEYFRAMES = ("1_rest.png", "2_push_end.png", "3_peak_lean.png", "4_end.png")
_SIZE = (640, 360)
# Colours of the gif are chosen for all its pictures together.
_PALETTE = "split[a][b];[a]palettegen[p];[b][p]paletteuse"


def capture(
    trials: PushTrials,
    impulse: float,
    direction: float,
    folder: Path,
    size: tuple[int, int] = _SIZE,
) -> str:
    """Pushes the robot as designed under the first strategy and writes down all of it.

    Args:
      trials: How it stands, is pushed and is watched.
      impulse: N·s.
      direction: rad; 0 pushes forward, pi/2 to the robot's left.
      folder: Where to; made if need be.
      size: Of pictures and film, width and height, pixels, even numbers.

    Returns:
      Lines that tell how it went and what was written.
    """
    found = record_push(trials, impulse, direction)
    folder.mkdir(parents=True, exist_ok=True)
    told = metrics(found, trials, impulse, direction)
    (folder / METRICS).write_text(json.dumps(told, indent=1, allow_nan=False) + "\n")
    table = columns(found)
    _write_table(table, folder / TABLE)
    _write_plot(table, told, folder / PLOT)
    outcome = "recovered" if told["recovered"] else "did not recover"
    line = (
        f"{outcome}: {told['impulse_delivered_Ns']:.2f} N·s to "
        f"{told['direction_deg']:g} deg, strategy {told['strategy']}"
    )
    try:
        frames = _frames(found, trials.config, impulse, direction)
        _draw(frames, _keyframes(found, trials.config), trials, folder, size)
    except PlaygroundError as error:
        return f"{line}\nwrote {folder}, but not its pictures: {error}"
    return f"{line}\nwrote {folder}"


def _write_table(table: dict[str, np.ndarray], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        for row in zip(*table.values(), strict=True):
            writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> str:
    """Returns a text as it is and a number to 7 digits; empty where undefined."""
    if isinstance(value, str):
        return value
    return f"{value:.7g}" if math.isfinite(value) else ""


def _draw(
    frames: list[Frame],
    keyframes: tuple[int, ...],
    trials: PushTrials,
    folder: Path,
    size: tuple[int, int],
) -> None:
    """Draws the keyframes and films all frames, one for each step of a robot.

    Raises:
      PlaygroundError: nothing can draw here.
    """
    painter = Painter(trials.robot.drawn_model(), size)
    for name, row in zip(KEYFRAMES, keyframes, strict=True):
        painter.paint(frames[row]).save(folder / name)
    painter.close()
    period = trials.step.physics.control_period
    every = max(1, round(PERIOD / period))
    _film(frames[::every], trials.robot, every * period, folder, size)


def _film(
    frames: list[Frame],
    robot: Robot,
    period: float,
    folder: Path,
    size: tuple[int, int],
) -> None:
    video = Video(folder / FILM, robot.drawn_model(), period, size)
    for frame in frames:
        video.show(frame)
    video.close()
    # Drawing takes much longer than reading what was drawn.
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error"]
    command += ["-i", str(folder / FILM), "-filter_complex", _PALETTE]
    made = subprocess.run([*command, str(folder / LOOP)], check=False)
    if made.returncode:
        raise PlaygroundError("ffmpeg failed; see what it says above")


def _frames(
    found: Record, config: PushConfig, impulse: float, direction: float
) -> list[Frame]:
    """Returns what each step shows; the last pose that is one, if it diverged."""
    samples, frames = found.samples, []
    qpos = samples.qpos[0]
    for i in range(len(samples.time)):
        seen = jax.tree.map(lambda x, i=i: x[i], samples)
        qpos = seen.qpos if np.isfinite(seen.qpos).all() else qpos
        time = float(seen.time - samples.time[0])
        rows = push_rows(seen, config, impulse, direction)
        frames.append(Frame(time, np.asarray(qpos), rows, math.nan))
    return frames


def _keyframes(found: Record, config: PushConfig) -> tuple[int, ...]:
    """Returns the rows of rest, the push's end, the largest lean after, the end."""
    time, lean = found.samples.time, found.samples.lean
    rest, end = np.searchsorted(time, (0.0, config.duration))
    rest = max(0, rest - 1)
    known = np.where(np.isfinite(lean), lean, -1.0)
    return int(rest), int(end), int(end + np.argmax(known[end:])), len(time) - 1


def _write_plot(table: dict[str, np.ndarray], told: dict[str, Any], path: Path) -> None:
    """Draws forward and sideways points, margin and lean, torques, loads."""
    time = table["time_s"]
    figure, panels = plt.subplots(
        5, sharex=True, figsize=(10, 11), dpi=120, layout="constrained"
    )
    points = ("com_offset", "capture", "zmp", "cop")
    _lines(panels[0], table, [f"{point}_x_m" for point in points], "forward (m)")
    _lines(panels[1], table, [f"{point}_y_m" for point in points], "to its left (m)")
    for panel, axis in zip(panels, "xy", strict=False):
        # The zero moment point of the push itself is far off: it would hide the rest.
        offset = np.abs(table[f"com_offset_{axis}_m"])
        reach = max(0.2, 1.2 * np.nanmax(offset))
        panel.set_ylim(-reach, reach)
    _lines(panels[2], table, ["margin_m", "lean_rad"], "margin (m), lean (rad)")
    torques = [name for name in table if name.endswith("_Nm")]
    _lines(panels[3], table, torques, "torque (N·m)")
    loads = [name for name in table if name.endswith("_load_N")]
    _lines(panels[4], table, loads, "load (N)")
    for panel in panels:
        panel.axvspan(0, told["duration_s"], color="#d9772b", alpha=0.2, lw=0)
    panels[-1].set_xlabel("time since the push began (s)")
    panels[-1].set_xlim(time[0], time[-1])
    figure.suptitle(
        f"{told['strategy']}: {told['impulse_asked_Ns']:g} N·s to "
        f"{told['direction_deg']:g}° at {told['height_m']:.2f} m"
    )
    figure.savefig(path)
    plt.close(figure)


def _lines(
    panel: Axes, table: dict[str, np.ndarray], names: list[str], label: str
) -> None:
    for name in names:
        text = name.rpartition("_")[0].replace("_", " ")
        panel.plot(table["time_s"], table[name], lw=1, label=text)
    panel.set_ylabel(label)
    panel.grid(color="#e6e9ed")
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8, frameon=False)
