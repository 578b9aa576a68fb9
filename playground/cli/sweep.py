"""`playground sweep KIND`: find limits, thousands of robots in one batch."""

import dataclasses
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from playground.cli.parse import parse, peek, take_kind
from playground.config import differences, merge, to_dict
from playground.controllers.balance.gains import STRATEGIES
from playground.errors import PlaygroundError, unknown
from playground.experiments.push.config import PushConfig
from playground.learning.run_folder import (
    existing_run,
    new_run,
    read_config,
    write_config,
)


@dataclasses.dataclass(frozen=True)
class PushArguments:
    """What to push, and where to write what is found."""

    out: str | None = None
    """Folder of the sweep; by default runs/push-ROBOT-TIME."""
    resume: str | None = None
    """Folder of a sweep to go on with, as its stored config says."""
    capture: str | None = None
    """Instead of a sweep: push the robot as designed once and write what it does,
    moment by moment, and pictures of it into this folder."""
    capture_impulse: float | None = None
    """Of the push captured, N·s; by default 12."""
    capture_direction: float | None = None
    """Of the push captured, deg; by default 0, forward."""
    capture_strategy: str | None = None
    """Balance strategy captured; by default the last of --strategies."""
    config: Annotated[PushConfig, tyro.conf.arg(name="")] = PushConfig()
    """What determines the sweep."""

    def __post_init__(self):
        for name, most in (("impulse", 1000.0), ("direction", 360.0)):
            value = getattr(self, f"capture_{name}")
            least = -most if name == "direction" else 0.0
            if value is not None and not least <= value <= most:
                raise PlaygroundError(
                    f"--capture-{name} must be within {least:g} to {most:g}, "
                    f"got {value:g}"
                )
        if self.capture_strategy not in (None, *STRATEGIES):
            raise unknown("strategy", str(self.capture_strategy), STRATEGIES)
        for field in dataclasses.fields(self):
            given = getattr(self, field.name) is not None
            if field.name.startswith("capture_") and given and not self.capture:
                flag = field.name.replace("_", "-")
                raise PlaygroundError(f"--{flag} needs --capture FOLDER")


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground sweep --help`."""
    kind, rest = take_kind(args, "sweep", KINDS)
    return KINDS[kind](rest) if kind else 0


def run_push(args: Sequence[str]) -> int:
    """Finds the strongest pushes withstood; see `playground sweep push --help`."""
    resume = peek(args, "--resume")
    if resume and peek(args, "--out"):
        raise PlaygroundError("--resume goes on with a sweep: it takes no --out")
    stored = _stored_config(resume) if resume else PushConfig()
    chosen = parse(
        PushArguments(config=stored),
        args,
        "playground sweep push",
        "Find the strongest push that each balance strategy withstands, by direction.",
    )
    config = chosen.config
    if chosen.capture:
        return _capture(chosen)
    if resume:
        _require_same(config, stored)
        folder = existing_run(resume)
    else:
        folder = new_run(chosen.out, "push", config.robot)
    # All that can be checked without the libraries has been: now they are loaded.
    from playground.experiments.push.report import write_report
    from playground.experiments.push.sweep import sweep
    from playground.experiments.push.trials import PushTrials
    from playground.runtime import configure

    device = configure()
    trials = PushTrials(config)
    write_config(folder, config)
    print(f"{device} | engine {trials.engine}\nsweep: {folder.path}")
    print(f"compiled in {trials.compile():.1f} s")
    print("Ctrl-C: stop after the round; twice: at once", flush=True)
    found = sweep(config, trials, folder)
    for phase in ("search", "grid"):
        print(f"{phase}: {found.robots(phase):,} robots, {found.seconds(phase):.1f} s")
    print(f"{found.steps_per_s:,.0f} robots x steps/s")
    if found.signal:
        print(f"stopped; go on with: playground sweep push --resume {folder.path}")
        return 128 + found.signal
    report = write_report(
        found,
        folder.path,
        command=_command(config),
        device=device,
        overwrite=bool(resume),
    )
    print(f"report: {report}")
    return 0


def _capture(chosen: PushArguments) -> int:
    """Pushes one robot and writes down all of it."""
    if chosen.out or chosen.resume:
        raise PlaygroundError("--capture is no sweep: it takes no --out, no --resume")
    folder = Path(str(chosen.capture))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PlaygroundError(f"'{folder}' holds something; give another folder")
    config = chosen.config
    strategy = chosen.capture_strategy or config.strategy_names[-1]
    config = dataclasses.replace(config, strategies=strategy, models=0)
    from playground.experiments.push.trials import PushTrials
    from playground.interface.push_capture import capture
    from playground.runtime import configure

    device = configure()
    trials = PushTrials(config)
    print(f"{device} | engine {trials.engine}", flush=True)
    impulse = 12.0 if chosen.capture_impulse is None else chosen.capture_impulse
    direction = math.radians(chosen.capture_direction or 0.0)
    print(capture(trials, impulse, direction, folder))
    return 0


# Kind -> what runs it with the rest of the command line.
KINDS = {"push": run_push}


def _stored_config(folder: str) -> PushConfig:
    try:
        return merge(PushConfig(), read_config(existing_run(folder)))
    except PlaygroundError as error:
        raise PlaygroundError(f"cannot resume '{folder}': {error}") from error


def _command(config: PushConfig) -> str:
    """Returns the command line that repeats a sweep, resumed or not."""
    default = to_dict(PushConfig())
    words = ["playground", "sweep", "push"]
    for name, value in to_dict(config).items():
        if value != default[name]:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def _require_same(config: PushConfig, stored: PushConfig) -> None:
    pairs = differences(stored, config).items()
    if changed := [f"{name} {before} -> {now}" for name, (before, now) in pairs]:
        raise PlaygroundError(
            f"--resume keeps the stored config, these differ: {', '.join(changed)}"
        )
