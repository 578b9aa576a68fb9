"""Finds the strongest push withstood: brackets narrowed in parallel, then a grid.

A row is one strategy, pushed one way, on one model. Every round tries several impulses
inside the bracket of every row at once, until all brackets are narrow. A bracket alone
overstates a robot that steps: it may fail at 20 N·s, stand at 30 and fail at 36. So
the impulses of a grid below each edge are tried as well, and where one fails, the edge
is there, and the search goes on below it.

What is tried next follows from what was tried alone: a search that was stored and taken
up again goes on as if nothing had happened.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from playground.errors import PlaygroundError
from playground.experiments.push.cases import Cases, Outcomes
from playground.experiments.push.config import PushConfig

_SAME = 1e-9  # N·s: closer impulses are one and the same
_MEASURES = ("saturated_s", "moved", "peak_lean", "peak_offset")
# What is kept of a robot that was tried: a column each.
_TYPES: dict[str, type] = {"row": int, "impulse": float}
_TYPES |= dict.fromkeys(("recovered", "diverged"), bool)
_TYPES |= dict.fromkeys(_MEASURES, float)


@dataclasses.dataclass(frozen=True)
class Edge:
    """What was found in a row; measures of the robot are those at `critical`.

    Attributes:
      strategy: Its name.
      direction: rad.
      model: 0 is the robot as designed.
      critical: N·s; up to it, every impulse tried was withstood. 0 if the robot falls
        unpushed. The true edge is between it and `first_failure`.
      first_failure: N·s, the smallest impulse that failed; None if none did.
      last_success: N·s, the largest withstood anywhere; None if none was.
      holes: N·s, those that failed below `last_success`.
      trials: Impulses tried.
      diverged: Of these, whose physics left the finite numbers.
      saturated_s: s, how long a joint was at its torque limit; NaN if it never stood.
      moved: m, how far an ankle ever was from where it stood.
      peak_lean: rad, of the trunk.
      peak_offset: m, of the centre of mass, horizontally.
    """

    strategy: str
    direction: float
    model: int
    critical: float
    first_failure: float | None
    last_success: float | None
    holes: tuple[float, ...]
    trials: int
    diverged: int
    saturated_s: float
    moved: float
    peak_lean: float
    peak_offset: float

    @property
    def censored(self) -> bool:
        """Whether nothing failed, so that the true edge is `critical` or beyond."""
        return self.first_failure is None


class Search:
    """A search in all rows at once: try `pending`, `record` how it went, until `done`.

    Rows are ordered by strategy, then direction, then model.
    """

    def __init__(self, config: PushConfig):
        """Begins; nothing is tried yet."""
        self.config = config
        shape = len(config.strategy_names), config.directions, 1 + config.models
        self._shape = shape
        self._rows = math.prod(shape)
        self._tried: dict[str, np.ndarray] = {
            name: np.zeros(0, kind) for name, kind in _TYPES.items()
        }

    def __len__(self) -> int:
        """How many impulses were tried, of all rows."""
        return len(self._tried["row"])

    @property
    def phase(self) -> str:
        """What `pending` belongs to: "search" for an edge, "grid" to check below it."""
        return "search" if not len(self) or self._wide().any() else "grid"

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        return self.phase == "grid" and not self._grid_left().any()

    @property
    def remaining(self) -> int:
        """About how many impulses are left, if no hole is found."""
        good, failed = self._bracket() if len(self) else self._whole_range()
        wide = self._wide() if len(self) else np.ones(self._rows, bool)
        narrowing = (failed - good)[wide] / (2 * self.config.resolution)
        rounds = np.ceil(np.log(narrowing) / math.log(self.config.levels + 1))
        left = self.config.levels * rounds.clip(1).sum()
        return int(left) + int(self._grid_left().sum())

    def pending(self) -> Cases:
        """Returns the next round; none once all is done."""
        inside = np.arange(1, self.config.levels + 1) / (self.config.levels + 1)
        if not len(self):
            # From standing unpushed to the most, both included.
            share = np.concatenate([[0.0], inside, [1.0]])
            low, high = self._whole_range()
            rows = np.arange(self._rows)
        elif self.phase == "search":
            share = inside
            low, high = self._bracket()
            rows = np.flatnonzero(self._wide())
        else:
            row, level = np.nonzero(self._grid_left())
            return self._cases(row, self._grid()[level])
        impulse = low[rows, None] + (high - low)[rows, None] * share
        return self._cases(np.repeat(rows, len(share)), impulse.ravel())

    def record(self, cases: Cases, outcomes: Outcomes) -> None:
        """Notes how a round went.

        Args:
          cases: Some that `pending` returned, in any order.
          outcomes: How each fared.
        """
        direction = np.rint(cases.direction * self._shape[1] / (2 * np.pi)).astype(int)
        place = cases.strategy, direction, cases.model
        new = {
            "row": np.ravel_multi_index(place, self._shape),
            "impulse": cases.impulse,
        }
        new |= {f.name: getattr(outcomes, f.name) for f in dataclasses.fields(outcomes)}
        new["recovered"] = outcomes.recovered & ~outcomes.diverged
        self._append(new)

    def edges(self) -> list[Edge]:
        """Returns what was found so far, a row each."""
        good, failed = self._bracket()
        order = np.lexsort((self._tried["impulse"], self._tried["row"]))
        tried = {name: values[order] for name, values in self._tried.items()}
        ends = np.searchsorted(tried["row"], np.arange(self._rows + 1))
        return [
            self._edge(row, good[row], failed[row], tried, slice(*ends[row : row + 2]))
            for row in range(self._rows)
        ]

    def to_dict(self) -> dict[str, list]:
        """Returns all that was tried, as plain values."""
        return {name: values.tolist() for name, values in self._tried.items()}

    @classmethod
    def from_dict(cls, config: PushConfig, stored: Mapping[str, list]) -> "Search":
        """Returns the search that `to_dict` was taken of.

        Raises:
          PlaygroundError: it is of no search, or of another one.
        """
        search = cls(config)
        sizes = {name: len(stored.get(name, ())) for name in _TYPES}
        if set(stored) != set(_TYPES) or len(set(sizes.values())) != 1:
            raise PlaygroundError("what is stored is no search for critical impulses")
        if not all(0 <= row < search._rows for row in stored["row"]):
            raise PlaygroundError("what is stored is of a search with other rows")
        search._append(stored)
        return search

    def _append(self, new: Mapping[str, Any]) -> None:
        self._tried = {
            name: np.concatenate([self._tried[name], np.asarray(new[name], kind)])
            for name, kind in _TYPES.items()
        }

    def _cases(self, rows: np.ndarray, impulse: np.ndarray) -> Cases:
        strategy, direction, model = np.unravel_index(rows, self._shape)
        return Cases(strategy, np.array(self.config.angles)[direction], impulse, model)

    def _whole_range(self) -> tuple[np.ndarray, np.ndarray]:
        zero = np.zeros(self._rows)
        return zero, zero + self.config.max_impulse

    def _bracket(self) -> tuple[np.ndarray, np.ndarray]:
        """[R] N·s each: the largest success below the first failure, and that failure.

        Without a failure that is infinite; without a success below it minus infinite.
        """
        row, impulse, recovered = (
            self._tried[name] for name in ("row", "impulse", "recovered")
        )
        failed = np.full(self._rows, np.inf)
        np.minimum.at(failed, row[~recovered], impulse[~recovered])
        below = recovered & (impulse < failed[row])
        good = np.full(self._rows, -np.inf)
        np.maximum.at(good, row[below], impulse[below])
        return good, failed

    def _wide(self) -> np.ndarray:
        """[R] whether a bracket is still wider than asked."""
        good, failed = self._bracket()
        found = np.isfinite(good) & np.isfinite(failed)
        width = np.subtract(failed, good, out=np.zeros(self._rows), where=found)
        return width > 2 * self.config.resolution + _SAME

    def _grid(self) -> np.ndarray:
        """[L] N·s, from the first one above 0."""
        if not self.config.grid:
            return np.zeros(0)
        count = int(self.config.max_impulse / self.config.grid + _SAME)
        return self.config.grid * np.arange(1, count + 1)

    def _grid_left(self) -> np.ndarray:
        """[R, L] which impulses of the grid are below the edge and not tried yet."""
        grid = self._grid()
        left = grid < self._bracket()[0][:, None] - _SAME
        if len(grid):
            row, impulse = self._tried["row"], self._tried["impulse"]
            level = np.rint(impulse / self.config.grid).astype(int) - 1
            level = level.clip(0, len(grid) - 1)
            on_grid = np.abs(impulse - grid[level]) < _SAME
            left[row[on_grid], level[on_grid]] = False
        return left

    def _edge(
        self, row: int, good: float, failed: float, tried: dict, own: slice
    ) -> Edge:
        """Returns the edge of a row; `own` are its trials, by rising impulse."""
        strategy, direction, model = np.unravel_index(row, self._shape)
        impulse, recovered = tried["impulse"][own], tried["recovered"][own]
        last = impulse[recovered].max(initial=-np.inf)
        holes = impulse[~recovered & (impulse < last)]
        at_edge = np.flatnonzero(impulse == good)
        measures = {
            name: float(tried[name][own][at_edge[0]]) if len(at_edge) else math.nan
            for name in _MEASURES
        }
        return Edge(
            strategy=self.config.strategy_names[strategy],
            direction=self.config.angles[direction],
            model=int(model),
            critical=max(0.0, float(good)),
            first_failure=float(failed) if np.isfinite(failed) else None,
            last_success=float(last) if np.isfinite(last) else None,
            holes=tuple(holes.tolist()),
            trials=len(impulse),
            diverged=int(tried["diverged"][own].sum()),
            **measures,
        )
