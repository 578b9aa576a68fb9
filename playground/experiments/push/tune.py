"""Evolves the gains of a balance strategy: every candidate is pushed from all sides.

In every direction a candidate climbs a ladder of impulses. Its *hold* is the rung up to
which it withstood every one; a rung withstood above the first failure counts a quarter
as much, which leads the search out of holes without paying for them. The score, N·s, is
the mean over directions, plus the mean of the two worst holds, each as a fraction of
the rigid pendulum's bound (see `bounds.py`) and scaled back by the mean bound.
"""

import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from playground.controllers.balance.gains import BalanceGains, load_gains, tunable
from playground.experiments.evolution import Evolution
from playground.experiments.push.bounds import rigid_bound
from playground.experiments.push.cases import Cases
from playground.experiments.push.config import PushConfig
from playground.experiments.push.trials import PushTrials, stack_gains
from playground.experiments.push.tune_config import TuneConfig
from playground.learning.run_folder import replacing
from playground.signals import StopSignal

HISTORY, BEST = "history.csv", "best.yaml"
_ABOVE_HOLE = 0.25  # worth of a rung above a failure
_WORST = 2  # directions that count as the worst


@dataclasses.dataclass(frozen=True)
class Generation:
    """How a generation fared.

    Attributes:
      number: 1 for the first.
      best: score of the best so far.
      top: score of the best of this one.
      median: score of this one.
      sigma: standard deviation of the search, as a fraction of a range.
      holds: [directions] N·s, of the best of this one.
    """

    number: int
    best: float
    top: float
    median: float
    sigma: float
    holds: np.ndarray


class Tuning:
    """An evolution of gains in a folder; goes on with what is there.

    Attributes:
      config: What was asked.
      evolution: The search.
      angles: [directions] rad, 0 to pi.
      bounds: [directions] N·s, what a rigid pendulum withstands.
    """

    def __init__(self, config: TuneConfig, folder: Path, resume: bool):
        """Loads robot and gains; compiles nothing yet.

        Raises:
          PlaygroundError: no such robot or gains file, or nothing to resume.
        """
        self.config, self._folder = config, folder
        self._trials = PushTrials(
            PushConfig(
                robot=config.robot,
                strategies=config.strategy,
                gains=config.start,
                duration=config.duration,
                settle=config.settle,
                watch=config.watch,
                engine=config.engine,
            )
        )
        self._base = load_gains(config.strategy, config.start)
        space = tunable(config.strategy)
        if resume:
            self.evolution = Evolution.restore(folder, tuple(space))
        else:
            self.evolution = Evolution(
                space,
                dataclasses.asdict(self._base),
                sigma=config.sigma,
                population=config.population,
                seed=config.seed,
            )
        self.angles = np.linspace(0.0, np.pi, config.directions)
        self.bounds = np.array(
            [
                rigid_bound(self._trials.stance, angle, config.duration)
                for angle in self.angles
            ]
        )

    def run(self, tell: Callable[[Generation], None]) -> int | None:
        """Breeds generations until the last, or a signal; stores each.

        Args:
          tell: Called after each generation.

        Returns:
          The signal that stopped it; None: it is complete.
        """
        evolution = self.evolution
        with StopSignal() as stop:
            while evolution.generation < self.config.generations and not stop.number:
                scores, holds = self.score(evolution.ask())
                before = evolution.best
                evolution.tell(scores)
                assert evolution.best
                if evolution.best is not before:
                    self._write_best()
                top = int(np.argmax(scores))
                found = Generation(
                    number=evolution.generation,
                    best=evolution.best.score,
                    top=float(scores[top]),
                    median=float(np.median(scores)),
                    sigma=evolution.sigma,
                    holds=holds[top],
                )
                self._log(found)
                evolution.save(self._folder)
                tell(found)
        done = evolution.generation >= self.config.generations
        return None if done else stop.number

    def score(self, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pushes candidates.

        Args:
          candidates: [n, n_names] gains, in the order of the evolution's names.

        Returns:
          scores [n]; holds [n, directions], N·s.
        """
        c = self.config
        gains = [self._gains(row) for row in candidates]
        rungs = np.arange(c.lowest, c.highest + 1e-9, c.spacing)
        shifted = c.spacing / 2 * (np.arange(c.directions) % 2)
        ladder = np.tile(rungs + shifted[:, None], (len(gains), 1, 1))
        held = self._withstood(gains, ladder)
        up = np.cumprod(held, axis=2)
        holds = ladder[:, :, 0] - c.spacing + c.spacing * up.sum(2)
        heights = holds + _ABOVE_HOLE * c.spacing * (held - up).sum(2)
        if c.fill:
            between = c.spacing * np.arange(1, c.fill + 1) / (c.fill + 1)
            further = self._withstood(gains, holds[:, :, None] + between)
            gained = c.spacing / (c.fill + 1) * np.cumprod(further, axis=2).sum(2)
            holds, heights = holds + gained, heights + gained
        shares = np.sort(holds / self.bounds, axis=1)[:, :_WORST].mean(1)
        worst, total = self.bounds.mean() * shares, heights.mean(1)
        parts = {"both": total + worst, "worst": worst, "sum": total}
        return parts[c.objective], holds

    def _gains(self, row: np.ndarray) -> BalanceGains:
        named = zip(self.evolution.names, row.tolist(), strict=True)
        return dataclasses.replace(self._base, **dict(named))

    def _withstood(self, gains: list[BalanceGains], impulses: np.ndarray) -> np.ndarray:
        """Returns [n, directions, k] 0 or 1: which impulses (same shape) were."""
        shape = impulses.shape
        each = stack_gains([g for g in gains for _ in range(shape[1] * shape[2])])
        angles = np.broadcast_to(self.angles[:, None], shape).ravel()
        nothing = np.zeros(angles.size, int)
        cases = Cases(nothing, angles, impulses.ravel(), nothing)
        outcomes = self._trials.run_gains(each, cases)
        return outcomes.recovered.reshape(shape).astype(float)

    def _write_best(self) -> None:
        """Stores the best gains as a file for `--gains`."""
        best = self.evolution.best
        assert best
        values = {name: float(f"{value:.4g}") for name, value in best.values.items()}
        head = f"# score {best.score:.2f}, generation {best.generation + 1}\n"
        with replacing(self._folder / BEST) as path:
            path.write_text(head + yaml.safe_dump({self.config.strategy: values}))

    def _log(self, found: Generation) -> None:
        row = dataclasses.asdict(found) | {
            "holds": " ".join(f"{hold:.2f}" for hold in found.holds)
        }
        path = self._folder / HISTORY
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)
