"""What each strategy withstands: its edges as arrays, and the few numbers to quote."""

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from playground.experiments.push.bounds import point_mass_bound, rigid_bound
from playground.experiments.push.search import Edge
from playground.experiments.push.sweep import Sweep

# Where numbers are quoted: name -> degrees. Of several, the weakest side.
SIDES: dict[str, tuple[int, ...]] = {
    "forward": (0,),
    "sideways": (90, 270),
    "backward": (180,),
}

# Robot -> side -> N·s that its ankle + hip controller withstood when it was first
# published, pushed at the torso for 0.08 s.
REFERENCE = {"biped": {"forward": 11.79, "sideways": 18.13, "backward": 3.21}}


@dataclasses.dataclass(frozen=True)
class Strategy:
    """What one strategy withstands, by direction.

    Attributes:
      name: Of the strategy.
      edges: [D] of the robot as designed.
      critical: [D] N·s, of the robot as designed.
      models: [D, M] N·s, of the randomised models.
      bound: [D] N·s, what the rigid pendulum withstands.
    """

    name: str
    edges: tuple[Edge, ...]
    critical: np.ndarray
    models: np.ndarray
    bound: np.ndarray

    @property
    def percent(self) -> np.ndarray:
        """[D] % of the bound."""
        return 100 * self.critical / self.bound

    @property
    def worst(self) -> int:
        """The direction in which it withstands least."""
        return int(np.argmin(self.critical))

    @property
    def holes(self) -> int:
        """In how many directions an impulse failed below one withstood."""
        return sum(bool(edge.holes) for edge in self.edges)

    @functools.cached_property
    def models_median(self) -> np.ndarray:
        """[D] N·s."""
        return np.median(self.models, axis=1)

    @functools.cached_property
    def models_worst(self) -> np.ndarray:
        """[D] N·s."""
        return self.models.min(axis=1)

    def of_nominal(self, value: np.ndarray) -> np.ndarray:
        """[D] % of what the robot as designed withstands; NaN where that is 0."""
        critical = np.where(self.critical > 0, self.critical, np.nan)
        return 100 * value / critical

    def side(self, name: str) -> int | None:
        """Returns the direction of a side; None if it was not pushed there."""
        count = len(self.critical)
        indices = [degrees * count / 360 for degrees in SIDES[name]]
        there = [int(index) for index in indices if index.is_integer()]
        return min(there, key=lambda i: self.critical[i], default=None)


def bounds(
    found: Sweep, angles: Sequence[float] | None = None
) -> dict[str, np.ndarray]:
    """Returns "rigid" and "point_mass" bounds of the robot as designed, [D] N·s.

    Args:
      found: The sweep.
      angles: [D] rad; by default those of the sweep.
    """
    angles = found.config.angles if angles is None else angles
    laws = {"rigid": rigid_bound, "point_mass": point_mass_bound}
    return {
        name: np.array([law(found.stance, a, found.config.duration) for a in angles])
        for name, law in laws.items()
    }


def strategies(found: Sweep) -> list[Strategy]:
    """Returns what each strategy withstands, in the order asked."""
    names, count = found.config.strategy_names, found.config.directions
    shape = len(names), count, 1 + found.config.models
    critical = np.reshape([edge.critical for edge in found.edges], shape)
    nominal = found.edges[:: shape[2]]
    bound = bounds(found)["rigid"]
    return [
        Strategy(
            name=name,
            edges=nominal[i * count : (i + 1) * count],
            critical=critical[i, :, 0],
            models=critical[i, :, 1:],
            bound=bound,
        )
        for i, name in enumerate(names)
    ]


def reference(found: Sweep) -> dict[str, float]:
    """Returns side -> N·s of the reference controller; {} where none is comparable."""
    config = found.config
    same = config.height == "torso" and math.isclose(config.duration, 0.08)
    return REFERENCE.get(config.robot, {}) if same else {}


def headline(found: Sweep) -> str:
    """Returns what was found, in one line."""
    parts = [
        f"{s.name} {'≥ ' if s.edges[s.worst].censored else ''}{s.critical[s.worst]:.1f}"
        for s in strategies(found)
    ]
    bound = bounds(found)["rigid"].min()
    return f"{', '.join(parts)} N·s in the worst direction; bound {bound:.1f}"
