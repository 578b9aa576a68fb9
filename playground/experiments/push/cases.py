"""What one pushed robot is asked, and how it fared; arrays over a batch of n robots."""

import dataclasses
from typing import Protocol

import numpy as np

from playground.experiments.push.bounds import Stance


@dataclasses.dataclass(frozen=True)
class Cases:
    """Pushed robots, [n] each.

    Attributes:
      strategy: Index into the strategies of the sweep.
      direction: rad; 0 pushes forward, pi/2 to the robot's left, pi backward.
      impulse: N·s.
      model: Index into the population of models; 0 is the robot as designed.
    """

    strategy: np.ndarray
    direction: np.ndarray
    impulse: np.ndarray
    model: np.ndarray

    def __len__(self) -> int:
        """The number of robots."""
        return len(self.impulse)

    def __getitem__(self, rows) -> "Cases":
        """Returns some of them."""
        fields = dataclasses.fields(self)
        return Cases(**{f.name: getattr(self, f.name)[rows] for f in fields})


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """How pushed robots fared, [n] each.

    Attributes:
      recovered: Stands, still, where it may (see `PushConfig`).
      diverged: Its physics left the finite numbers; it did not recover.
      moved: m, how far an ankle ever was from where it stood.
      saturated_s: s, how long any joint was at its torque limit.
      peak_lean: rad, of the trunk.
      peak_offset: m, of the centre of mass from where it was, horizontally.
    """

    recovered: np.ndarray
    diverged: np.ndarray
    moved: np.ndarray
    saturated_s: np.ndarray
    peak_lean: np.ndarray
    peak_offset: np.ndarray


class Trials(Protocol):
    """What pushes robots; a fake one tests the search."""

    @property
    def stance(self) -> Stance:
        """How the robot as designed stands, and where it is pushed."""

    @property
    def steps_per_case(self) -> int:
        """Physics steps that one robot takes."""

    @property
    def engine(self) -> str:
        """The physics engine, resolved."""

    def compile(self) -> float:
        """Compiles ahead of the first round; returns s it took."""

    def run(self, cases: Cases) -> Outcomes:
        """Pushes any number of robots; a robot's outcome depends on its case alone."""
