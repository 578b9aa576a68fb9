"""Sweeps strategies and directions for critical impulses, round by round.

Each round is stored before the next begins: a sweep that is stopped loses at most one.
"""

import dataclasses
import json
import time
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from playground.config import config_hash
from playground.errors import PlaygroundError
from playground.experiments.push.bounds import Stance
from playground.experiments.push.cases import Trials
from playground.experiments.push.config import PushConfig
from playground.experiments.push.search import Edge, Search
from playground.learning.run_folder import RunFolder, replacing
from playground.signals import StopSignal

STATE = "search.json"


@dataclasses.dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
      phase: "search" or "grid".
      robots: Pushed at once.
      seconds: It took, compilation included.
    """

    phase: str
    robots: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    Attributes:
      config: What was asked.
      stance: How the robot as designed stands, and where it is pushed.
      engine: That was used.
      steps_per_case: Physics steps of each robot.
      rounds: All of them, those before a resume too.
      edges: By strategy, then direction, then model; not final if `signal` is set.
      signal: What stopped the sweep; None: it is complete.
    """

    config: PushConfig
    stance: Stance
    engine: str
    steps_per_case: int
    rounds: tuple[Round, ...]
    edges: tuple[Edge, ...]
    signal: int | None

    def seconds(self, phase: str) -> float:
        """Returns how long all rounds of a phase took."""
        return sum(r.seconds for r in self.rounds if r.phase == phase)

    def robots(self, phase: str) -> int:
        """Returns how many robots were pushed in a phase."""
        return sum(r.robots for r in self.rounds if r.phase == phase)

    @property
    def steps_per_s(self) -> float:
        """Physics steps a second, of all robots together, over the whole sweep."""
        steps = sum(r.robots for r in self.rounds) * self.steps_per_case
        return steps / max(sum(r.seconds for r in self.rounds), 1e-9)


def sweep(config: PushConfig, trials: Trials, folder: RunFolder) -> Sweep:
    """Searches until all edges are found and checked, or a signal comes.

    It goes on with what is stored in the folder. A first SIGINT or SIGTERM lets the
    round finish; a second stops at once.

    Args:
      config: What to find.
      trials: What pushes the robots.
      folder: Where to store the rounds; must be there.

    Raises:
      PlaygroundError: what is stored is of another config or engine.
    """
    path = folder.path / STATE
    search, rounds = _restore(path, config, trials.engine)
    with _bar() as bar, StopSignal() as stop:
        task = bar.add_task("", total=None)
        while not search.done:
            _show(bar, task, search, rounds)
            if stop.number:
                break
            phase, cases = search.phase, search.pending()
            started = time.perf_counter()
            search.record(cases, trials.run(cases))
            seconds = time.perf_counter() - started
            rounds.append(Round(phase, len(cases), seconds))
            _store(path, search, rounds, trials.engine)
            _tell(bar, rounds, trials.steps_per_case)
        _show(bar, task, search, rounds)
    return Sweep(
        config=config,
        stance=trials.stance,
        engine=trials.engine,
        steps_per_case=trials.steps_per_case,
        rounds=tuple(rounds),
        edges=tuple(search.edges()) if rounds else (),
        signal=None if search.done else stop.number,
    )


def _store(path: Path, search: Search, rounds: list[Round], engine: str) -> None:
    state = {
        "config": config_hash(search.config),
        "engine": engine,
        "rounds": [dataclasses.asdict(each) for each in rounds],
        "tried": search.to_dict(),
    }
    with replacing(path) as new:
        new.write_text(json.dumps(state))


def _restore(path: Path, config: PushConfig, engine: str) -> tuple[Search, list[Round]]:
    """Returns what is stored, or the beginning."""
    if not path.exists():
        return Search(config), []
    try:
        state = json.loads(path.read_text())
        rounds = [Round(**each) for each in state["rounds"]]
        made, stored = (state["config"], state["engine"]), state["tried"]
    except (ValueError, KeyError, TypeError) as error:
        raise PlaygroundError(f"'{path}' holds no rounds of a sweep") from error
    if made != (config_hash(config), engine):
        raise PlaygroundError(
            f"'{path}' was made with config {made[0]} on engine {made[1]}, not "
            f"{config_hash(config)} on {engine}: give --out a new name"
        )
    return Search.from_dict(config, stored), rounds


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("robots"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _show(bar: Progress, task, search: Search, rounds: list[Round]) -> None:
    """Moves the bar; how much is left is known better after each round."""
    done = len(search)
    bar.update(
        task,
        description=f"{search.phase}, round {len(rounds) + 1}",
        completed=done,
        total=done + search.remaining,
    )


def _tell(bar: Progress, rounds: list[Round], steps_per_case: int) -> None:
    """Prints a line about the last round above the bar."""
    last = rounds[-1]
    rate = last.robots * steps_per_case / max(last.seconds, 1e-9)
    bar.console.print(
        f"round {len(rounds)} ({last.phase}): {last.robots:,} robots x "
        f"{steps_per_case:,} steps in {last.seconds:.1f} s, {rate:,.0f} steps/s",
        highlight=False,
        soft_wrap=True,
    )
