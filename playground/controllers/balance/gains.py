"""Names and numbers of the balance strategies. Loads fast."""

import dataclasses
from pathlib import Path
from typing import Any

from playground.config import merge, read_yaml
from playground.controllers.gains import check_gains, gain, gain_ranges
from playground.errors import PlaygroundError, unknown
from playground.paths import asset_folder

# Robots that the balance controller can keep up.
BALANCED = ("biped",)
# Strategy -> what acts in it.
_PARTS = {
    "none": (),
    "ankle": ("ankle",),
    "ankle+hip": ("ankle", "hip"),
    "step": ("ankle", "hip", "step"),
}
STRATEGIES = tuple(_PARTS)


def _gain(part: str, default: float, low: float, high: float) -> Any:
    return gain(default, low, high, part)


@dataclasses.dataclass(frozen=True)
class BalanceGains:
    """All numbers of the balance controller; traced, so that a batch can vary them."""

    ankle: float = _gain("switch", 0.0, 0.0, 1.0)
    """Switch: 1 lets the ankles steer the centre of pressure."""
    hip: float = _gain("switch", 0.0, 0.0, 1.0)
    """Switch: 1 lets hips and knees support the body and swing the trunk."""
    step: float = _gain("switch", 0.0, 0.0, 1.0)
    """Switch: 1 allows steps."""

    capture: float = _gain("ankle", 1.0, 0.0, 8.0)
    """Rate at which the capture point is drawn home, in units of omega."""
    momentum: float = _gain("ankle", 0.5, 0.0, 1.5)
    """Share of the angular momentum counted into the capture point."""
    sole_margin: float = _gain("ankle", 0.005, 0.0, 0.04)
    """Rim of the soles that the centre of pressure keeps off, m."""
    height_kp: float = _gain("hip", 40.0, 0.0, 200.0)
    """Stiffness of the body's height, 1/s^2."""
    height_kd: float = _gain("hip", 10.0, 0.0, 40.0)
    """Damping of the body's height, 1/s."""
    trunk_kp: float = _gain("hip", 250.0, 0.0, 2000.0)
    """Stiffness of the trunk's attitude, N m/rad."""
    trunk_kd: float = _gain("hip", 50.0, 0.0, 300.0)
    """Damping of the trunk's attitude, N m s/rad."""
    trunk_torque: float = _gain("hip", 150.0, 0.0, 400.0)
    """Largest moment that turns the trunk, N m."""
    swing: float = _gain("hip", 0.5, 0.0, 3.0)
    """Share of the pivot beyond the soles that turning the trunk serves at once."""
    sideways: float = _gain("hip", 1.0, 0.0, 1.5)
    """Share of swing and lean that acts sideways, where stiff legs do most."""
    lean: float = _gain("hip", 6.0, 0.0, 40.0)
    """Lean asked for, by how far the capture point is beyond the soles, rad/m."""
    lean_limit: float = _gain("hip", 0.9, 0.0, 1.4)
    """Largest lean asked for, rad."""
    lean_decay: float = _gain("hip", 0.4, 0.02, 3.0)
    """Time in which a lean asked for is given up, s."""
    arms: float = _gain("hip", 0.0, -3.0, 3.0)
    """Swing of the arms, by the lean asked for."""
    leg_damping: float = _gain("hip", 2.0, 0.0, 30.0)
    """Damping of the joints that carry weight, N m s/rad."""
    knee_kp: float = _gain("hip", 100.0, 0.0, 600.0)
    """Stiffness of a knee that carries weight, N m/rad."""
    guide_kp: float = _gain("hip", 400.0, 50.0, 2000.0)
    """Stiffness of a leg that carries nothing, N m/rad."""
    guide_kd: float = _gain("hip", 25.0, 1.0, 100.0)
    """Damping of a leg that carries nothing, N m s/rad."""

    crouch: float = _gain("hip", 0.0, 0.0, 0.12)
    """How much lower than upright it stands, m."""
    trigger: float = _gain("step", 0.03, 0.0, 0.15)
    """A step begins when the capture point is so far beyond the soles, m."""
    step_time: float = _gain("step", 0.27, 0.15, 0.5)
    """Duration of a swing, s."""
    pause: float = _gain("step", 0.02, 0.0, 0.3)
    """Least time on both feet between two steps, s."""
    clearance: float = _gain("step", 0.06, 0.02, 0.15)
    """Height of a swing, m."""
    overstep: float = _gain("step", 0.0, -0.1, 0.3)
    """How far beyond the capture point a foot is set, as a share of the step."""

    def __post_init__(self):
        check_gains(self)


def load_gains(strategy: str, path: str | Path | None = None) -> BalanceGains:
    """Returns the gains of a strategy.

    Args:
      strategy: One of `STRATEGIES`.
      path: YAML file, strategy -> gain -> number; None: those shipped.

    Raises:
      PlaygroundError: no such strategy or file, or a gain out of its range.
    """
    if strategy not in STRATEGIES:
        raise unknown("strategy", strategy, STRATEGIES)
    path = Path(path or asset_folder("configs") / "balance" / "biped.yaml")
    if not path.is_file():
        raise PlaygroundError(f"gains file '{path}' does not exist")
    table = read_yaml(path)
    for name in table:
        if name not in STRATEGIES:
            raise unknown(f"strategy in '{path}'", str(name), STRATEGIES)
    values = table.get(strategy) or {}
    if not isinstance(values, dict):
        raise PlaygroundError(f"'{path}': {strategy} is no table of gains")
    return merge(switches(strategy), values, f"{strategy}.")


def switches(strategy: str) -> BalanceGains:
    """Returns the default gains with the switches of a strategy."""
    return BalanceGains(**dict.fromkeys(_PARTS[strategy], 1.0))


def tunable(strategy: str) -> dict[str, tuple[float, float]]:
    """Returns gain -> (least, largest) of the gains that matter to a strategy."""
    # A part that there is none of leaves nothing, where no part at all means all.
    return gain_ranges(BalanceGains, *(_PARTS[strategy] or ("none",)))
