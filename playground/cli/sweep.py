"""`playground sweep KIND`: find limits, thousands of robots in one batch."""

import dataclasses
import shlex
from collections.abc import Sequence
from typing import Annotated

import tyro

from playground.cli.parse import parse, peek, take_kind
from playground.config import merge, to_dict
from playground.errors import PlaygroundError
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
    config: Annotated[PushConfig, tyro.conf.arg(name="")] = PushConfig()
    """What determines the sweep."""


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
    now, before = to_dict(config), to_dict(stored)
    changed = [f"{n} {before[n]} -> {now[n]}" for n in now if now[n] != before[n]]
    if changed:
        raise PlaygroundError(
            f"--resume keeps the stored config, these differ: {', '.join(changed)}"
        )
