"""`playground optimize KIND`: let evolution find the numbers of a controller."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import tyro

from playground.cli.parse import parse, peek, take_kind
from playground.config import differences, merge
from playground.controllers.balance.gains import load_gains
from playground.errors import PlaygroundError
from playground.experiments.push.tune_config import TuneConfig
from playground.learning.run_folder import (
    existing_run,
    new_run,
    read_config,
    write_config,
)


@dataclasses.dataclass(frozen=True)
class BalanceArguments:
    """What to evolve, and where to write it."""

    out: str | None = None
    """Folder of the evolution; by default runs/optimize-STRATEGY-TIME."""
    resume: str | None = None
    """Folder of an evolution to go on with, as its stored config says; only
    --generations may differ."""
    config: Annotated[TuneConfig, tyro.conf.arg(name="")] = TuneConfig()
    """What determines the evolution."""


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground optimize --help`."""
    kind, rest = take_kind(args, "optimize", KINDS)
    return KINDS[kind](rest) if kind else 0


def run_balance(args: Sequence[str]) -> int:
    """Evolves balance gains; see `playground optimize balance --help`."""
    resume = peek(args, "--resume")
    if resume and peek(args, "--out"):
        raise PlaygroundError("--resume goes on with an evolution: it takes no --out")
    stored = TuneConfig()
    if resume:
        stored = merge(stored, read_config(existing_run(resume)))
    chosen = parse(
        BalanceArguments(config=stored),
        args,
        "playground optimize balance",
        "Evolve the gains of a balance strategy by pushing it from all sides.",
    )
    config = chosen.config
    load_gains(config.strategy, config.start)  # a mistake there is told at once
    if resume:
        _require_same(config, stored)
        folder = existing_run(resume)
    else:
        folder = new_run(chosen.out, "optimize", config.strategy)
    from playground.experiments.push.tune import BEST, Generation, Tuning
    from playground.runtime import configure

    print(configure())
    tuning = Tuning(config, folder.path, resume=bool(resume))
    write_config(folder, config)
    print(f"evolution: {folder.path}")
    bounds = " ".join(f"{bound:.1f}" for bound in tuning.bounds)
    print(f"objective: {config.objective} of {config.directions} directions, 0 to pi")
    print(f"bounds of a rigid pendulum, N·s: {bounds}", flush=True)

    def tell(found: Generation) -> None:
        print(
            f"generation {found.number}: best {found.best:.2f}, top {found.top:.2f}, "
            f"median {found.median:.2f}, sigma {found.sigma:.3f}, holds "
            f"{' '.join(f'{hold:g}' for hold in found.holds)}",
            flush=True,
        )

    number = tuning.run(tell)
    if number:
        print(
            f"stopped; go on with: playground optimize balance --resume {folder.path}"
        )
        return 128 + number
    print(f"gains: {folder.path / BEST} (for sweep push --gains, infer biped --gains)")
    return 0


# Kind -> what runs it with the rest of the command line.
KINDS = {"balance": run_balance}


def _require_same(config: TuneConfig, stored: TuneConfig) -> None:
    if rest := [name for name in differences(stored, config) if name != "generations"]:
        raise PlaygroundError(
            f"--resume keeps the stored config, these differ: {', '.join(rest)}"
        )
