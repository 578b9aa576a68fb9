"""`playground train [TASK]`: train a policy, or go on with a run."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from playground.cli.parse import parse, peek, take_word
from playground.config import differences, merge, preset_path, read_yaml
from playground.errors import PlaygroundError
from playground.learning.config import TrainConfig
from playground.learning.run_folder import (
    RunFolder,
    existing_run,
    new_run,
    read_config,
)
from playground.learning.seat import Seat
from playground.tasks.registry import task_spec


@dataclasses.dataclass(frozen=True)
class Arguments:
    """How to run a training, and what determines it."""

    preset: str = "full"
    """Preset of the task (configs/TASK/PRESET.yaml), or the path of a YAML file."""
    out: str | None = None
    """Folder of the run; by default runs/TASK-PRESET-TIME."""
    resume: str | None = None
    """Folder of a run to go on with; its stored config takes the preset's place.
    What it began with stays: seed, network and warm_start."""
    device: str = "auto"
    """auto, cpu or gpu; gpu fails where there is none."""
    distributed: str | None = None
    """Train on several hosts: HOST:PORT,PROCESSES,ID of the first host and this one."""
    dry_run: bool = False
    """Check and print the effective config, then stop."""
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = TrainConfig()
    """What determines the run."""


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground train --help`."""
    word, args = take_word(args)
    named, resume, preset = (peek(args, f"--{n}") for n in ("task", "resume", "preset"))
    if word and named and word != named:
        raise PlaygroundError(f"two tasks: '{word}' and --task {named}")
    if resume and (preset or peek(args, "--out")):
        raise PlaygroundError(
            "--resume goes on with a run: it takes no --preset or --out"
        )
    task, preset = word or named, preset or "full"
    start = stored_config(resume, task) if resume else preset_config(task, preset)
    chosen = parse(
        Arguments(config=start),
        args,
        "playground train [TASK]",
        "Train a policy. TASK is one of those that `playground list` shows.",
    )
    if resume:
        _require_kept(start, chosen.config)
    seat = Seat.parse(chosen.distributed) if chosen.distributed else None
    folder = _folder(chosen, seat)
    # All that can be checked without the libraries has been: now they are loaded.
    from playground.learning.session import run_training

    return run_training(chosen.config, folder, seat, chosen.device, chosen.dry_run)


def preset_config(task: str | None, preset: str) -> TrainConfig:
    """Returns the config of a task and a preset.

    Raises:
      PlaygroundError: unknown task or preset, or a preset with a mistake in it.
    """
    task = task or TrainConfig.task
    default = TrainConfig(task=task, env=task_spec(task).config)
    path = preset_path(task, preset)
    values = read_yaml(path)
    try:
        config = merge(default, values)
    except PlaygroundError as error:
        raise PlaygroundError(f"{path}: {error}") from error
    if config.task != task:
        raise PlaygroundError(f"{path} is a preset of {config.task}, not of {task}")
    return config


def stored_config(run: str, task: str | None = None) -> TrainConfig:
    """Returns the config of a run that is there.

    Raises:
      PlaygroundError: there is no run, or it is of another task.
    """
    values = read_config(existing_run(run))
    stored = values.get("task", TrainConfig.task)
    if task is not None and task != stored:
        raise PlaygroundError(f"the run in '{run}' is of task '{stored}', not '{task}'")
    default = TrainConfig(task=stored, env=task_spec(stored).config)
    return merge(default, values)


def _require_kept(stored: TrainConfig, config: TrainConfig) -> None:
    """Refuses to change what the start of a run has settled for good."""
    changed = [
        f"{path} {before} -> {after}"
        for path, (before, after) in differences(stored, config).items()
        if path.partition(".")[0] in ("seed", "network", "warm_start")
    ]
    if changed:
        raise PlaygroundError(
            f"--resume keeps what the run began with, not {', '.join(changed)}"
        )


def _folder(chosen: Arguments, seat: Seat | None) -> RunFolder:
    if chosen.resume:
        return existing_run(chosen.resume)
    if seat is None or seat.process == 0:
        return new_run(chosen.out, chosen.config.task, chosen.preset)
    if chosen.out is None:
        raise PlaygroundError("--distributed needs --out, the same on every host")
    return RunFolder(Path(chosen.out))
