"""Writes a sweep down: push.json, push.csv, push.md and a polar plot."""

import csv
import dataclasses
import importlib.metadata
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from playground.config import to_dict
from playground.errors import PlaygroundError
from playground.experiments.push.plots import write_plot
from playground.experiments.push.search import Edge
from playground.experiments.push.summary import bounds, reference, strategies
from playground.experiments.push.sweep import Sweep
from playground.experiments.push.text import markdown

JSON, CSV, MARKDOWN, PICTURE = "push.json", "push.csv", "push.md", "push.png"
_PACKAGES = ("playground", "jax", "mujoco", "numpy")


def check_folder(folder: Path, overwrite: bool = False) -> None:
    """Checks that a report may be written to a folder.

    Raises:
      PlaygroundError: there is one already and `overwrite` is False, or it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise PlaygroundError(f"'{folder}' is a file, not a folder for a sweep")
    names = (JSON, CSV, MARKDOWN, PICTURE)
    there = [name for name in names if (folder / name).exists()]
    if there and not overwrite:
        raise PlaygroundError(
            f"'{folder}' holds a sweep ({', '.join(there)}); choose another folder"
        )


def write_report(
    found: Sweep, folder: Path, *, command: str, device: str, overwrite: bool = False
) -> Path:
    """Writes numbers, text and picture.

    Args:
      found: A complete sweep.
      folder: Where to; made if need be.
      command: The command line that repeats it.
      device: What it ran on.
      overwrite: Whether a report that is there may be replaced.

    Returns:
      The Markdown file.

    Raises:
      PlaygroundError: see `check_folder`.
    """
    check_folder(folder, overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    numbers = {"command": command, "device": device, "versions": versions}
    text = json.dumps(numbers | as_dict(found), indent=1, allow_nan=False)
    (folder / JSON).write_text(text + "\n")
    rows = as_rows(found)
    with (folder / CSV).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    write_plot(found, folder / PICTURE)
    written = markdown(found, command, device, versions, PICTURE)
    (folder / MARKDOWN).write_text(written)
    return folder / MARKDOWN


def as_dict(found: Sweep) -> dict[str, Any]:
    """Returns all numbers as plain JSON values; undefined ones are None."""
    stance = dataclasses.asdict(found.stance)
    return {
        "config": to_dict(found.config),
        "engine": found.engine,
        "steps_per_case": found.steps_per_case,
        "wall_s": round(sum(each.seconds for each in found.rounds), 2),
        "steps_per_s": round(found.steps_per_s),
        "rounds": [dataclasses.asdict(each) for each in found.rounds],
        "stance": {name: np.asarray(value).tolist() for name, value in stance.items()},
        "bounds": {name: bound.tolist() for name, bound in bounds(found).items()},
        "reference": reference(found),
        "strategies": {
            each.name: {
                "worst": each.critical[each.worst],
                "worst_direction_deg": math.degrees(found.config.angles[each.worst]),
                "mean": each.critical.mean(),
                "directions_with_holes": each.holes,
            }
            for each in strategies(found)
        },
        "edges": [_edge(edge) for edge in found.edges],
    }


def as_rows(found: Sweep) -> list[dict[str, Any]]:
    """Returns a row for each strategy, direction and model; undefined ones are None."""
    limits = bounds(found)
    rows = []
    for i, edge in enumerate(found.edges):
        values = _edge(edge)
        direction = i // (1 + found.config.models) % found.config.directions
        bound = {f"{name}_bound": float(v[direction]) for name, v in limits.items()}
        percent = 100 * edge.critical / bound["rigid_bound"]
        holes = " ".join(f"{hole:g}" for hole in edge.holes)
        rows.append(
            values | {"holes": holes} | bound | {"percent_of_rigid_bound": percent}
        )
    return rows


def _edge(edge: Edge) -> dict[str, Any]:
    values = dataclasses.asdict(edge) | {"censored": edge.censored}
    values["direction_deg"] = round(math.degrees(values.pop("direction")), 6)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
