"""Numbers of a controller that have a range, checked at the door. Loads fast."""

import dataclasses
from typing import Any

import numpy as np

from playground.errors import PlaygroundError


def gain(default: float, low: float, high: float, part: str = "") -> Any:
    """Returns a dataclass field that holds a gain.

    Args:
      default: Its value.
      low: The least allowed.
      high: The largest allowed.
      part: Which part of the controller it belongs to.
    """
    about = {"part": part, "range": (low, high)}
    return dataclasses.field(default=default, metadata=about)


def check_gains(gains: Any, what: str = "gain") -> None:
    """Checks that numbers are within their ranges; for a dataclass's `__post_init__`.

    Arrays and traced values are not looked at; files and flags are.

    Raises:
      PlaygroundError: one is not; names it.
    """
    for name, (low, high) in gain_ranges(type(gains)).items():
        value = getattr(gains, name)
        if isinstance(value, float | int) and not low <= value <= high:
            raise PlaygroundError(
                f"{what} {name} must be within {low:g} to {high:g}, got {value:g}"
            )


def check_batch(gains: Any, what: str = "gain") -> None:
    """Checks that arrays of numbers are within their ranges, as far as float32 tells.

    Raises:
      PlaygroundError: one is not; names it.
    """
    for name, (low, high) in gain_ranges(type(gains)).items():
        value = np.ravel(np.asarray(getattr(gains, name), np.float32))
        least, largest = np.float32(low), np.float32(high)
        wrong = value[~((value >= least) & (value <= largest))]
        if wrong.size:
            raise PlaygroundError(
                f"{what} {name} must be within {low:g} to {high:g}, got {wrong[0]:g}"
            )


def gain_ranges(kind: type, *parts: str) -> dict[str, tuple[float, float]]:
    """Returns gain -> (least, largest), of some parts or of all.

    Args:
      kind: A dataclass of gains.
      parts: Parts of the controller; none: all.
    """
    return {
        field.name: field.metadata["range"]
        for field in dataclasses.fields(kind)
        if not parts or field.metadata["part"] in parts
    }
