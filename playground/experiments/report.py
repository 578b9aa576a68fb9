"""Writes an evaluation down: evaluation.json, evaluation.md and pictures."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from playground.config import to_dict
from playground.errors import PlaygroundError
from playground.experiments.evaluate import Evaluation
from playground.experiments.evaluate_plots import write_plots
from playground.experiments.evaluate_text import NUMBERS, markdown, spread
from playground.experiments.summary import CommandResult
from playground.learning.run_folder import RunFolder

JSON, MARKDOWN = "evaluation.json", "evaluation.md"


def check_folder(folder: Path, overwrite: bool = False) -> None:
    """Checks that an evaluation may be written to a folder; best before it is played.

    Raises:
      PlaygroundError: there is one already and `overwrite` is False, or it is a file,
        or the folder of a run, whose own files would mix with it.
    """
    if folder.exists() and not folder.is_dir():
        raise PlaygroundError(f"'{folder}' is a file, not a folder for an evaluation")
    if RunFolder(folder).config.exists():
        raise PlaygroundError(
            f"'{folder}' is the folder of a run; give one of its own, "
            f"e.g. {folder / 'evaluation'}"
        )
    there = [name for name in (JSON, MARKDOWN) if (folder / name).exists()]
    if there and not overwrite:
        raise PlaygroundError(
            f"'{folder}' holds an evaluation ({', '.join(there)}); "
            "give another --out or --overwrite"
        )


def write_report(
    evaluation: Evaluation,
    folder: Path,
    *,
    policy: str,
    command: str,
    overwrite: bool = False,
) -> Path:
    """Writes numbers, text and pictures.

    Args:
      evaluation: What was found.
      folder: Where to; made if need be.
      policy: What was evaluated, for the headline.
      command: The command line that repeats it.
      overwrite: Whether an evaluation that is there may be replaced.

    Returns:
      The Markdown file.

    Raises:
      PlaygroundError: see `check_folder`.
    """
    check_folder(folder, overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {"policy": policy, "command": command} | as_dict(evaluation)
    (folder / JSON).write_text(json.dumps(numbers, indent=1, allow_nan=False) + "\n")
    pictures = write_plots(evaluation, folder)
    text = markdown(evaluation, policy, command, pictures)
    (folder / MARKDOWN).write_text(text)
    return folder / MARKDOWN


def as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Returns all numbers as plain JSON values; undefined ones are None."""
    return {
        "verdict": str(evaluation.verdict),
        "reasons": list(evaluation.verdict.reasons),
        "config": to_dict(evaluation.config),
        "task": to_dict(evaluation.env),
        "engine": evaluation.engine,
        "device": evaluation.device,
        "versions": evaluation.versions,
        "wall_s": round(evaluation.wall_s, 1),
        "conditions": _plain(evaluation.conditions),
        "engine_gaps": _plain(engine_gaps(evaluation)),
        "walk": _plain(evaluation.walk),
    }


def engine_gaps(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Returns number -> its undisturbed value on each engine, and the "gap" between.

    The gap is the largest value less the smallest. {} if engines were not compared.
    """
    if not evaluation.engines:
        return {}
    gaps = {}
    for number in NUMBERS:
        values = {e: number.value(c.summary) for e, c in evaluation.engines.items()}
        gaps[number.name] = values | {"gap": spread(list(values.values()))}
    return gaps


def _plain(value: Any) -> Any:
    """Returns JSON values; numbers that are not finite become None."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        named = {"label": value.label} if isinstance(value, CommandResult) else {}
        return _plain(named | fields)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
