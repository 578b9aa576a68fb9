"""The one loop in which a robot is watched: any player, command source and views.

Sources and views know nothing of robots. A player moves one: by a policy, in the very
task it was trained on (player.py), or by a controller while it is pushed
(push_player.py).
"""

import collections
import contextlib
import dataclasses
import enum
import time
from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

import numpy as np

from playground.interface.scene import Frame
from playground.signals import StopSignal

# A loop that lost more time than this, s, does not rush to make it up.
_LATE = 0.1

SummaryT = TypeVar("SummaryT", covariant=True)


class Event(enum.Enum):
    """What a source can ask for besides a command."""

    RESTART = "restart"
    QUIT = "quit"


class AnyPlayer(Protocol[SummaryT]):
    """A robot that can be watched, step by step."""

    @property
    def period(self) -> float:
        """Simulated time that a step takes, s."""

    @property
    def time(self) -> float:
        """Simulated time since the start, s; goes on when the robot is set up anew."""

    def step(self, command: np.ndarray) -> None:
        """Moves the robot by one step under a command."""

    def restart(self) -> None:
        """Sets the robot up anew."""

    def frame(self, realtime: float) -> Frame:
        """Returns what there is to show after a step."""

    def summary(self, realtime: float, signal: int | None) -> SummaryT:
        """Returns how it went.

        Args:
          realtime: simulated over real time.
          signal: that stopped the run; None if none did.
        """


class Source(Protocol):
    """Where commands come from."""

    def command(self, time: float) -> np.ndarray:
        """Returns the command for the step that begins at `time` (s)."""

    def events(self) -> Collection[Event]:
        """Returns what was asked for since the last call."""


class View(Protocol):
    """Where a robot is shown."""

    @property
    def closed(self) -> bool:
        """Whether the user closed it."""

    def show(self, frame: Frame) -> None:
        """Shows a frame."""

    def close(self) -> None:
        """Lets go of windows and files."""


@dataclasses.dataclass(frozen=True)
class FixedCommand:
    """A source that always asks for the same.

    Attributes:
      value: the command, as long as the player's; empty for one that takes none.
    """

    value: np.ndarray

    def command(self, time: float) -> np.ndarray:
        """Returns the command."""
        del time
        return self.value

    def events(self) -> Collection[Event]:
        """Returns nothing."""
        return ()


class _Pace:
    """Keeps simulated time from running ahead of the clock, and compares the two."""

    def __init__(self, period: float):
        """Starts the clock; `period` (s) goes by between two calls of `keep`."""
        self._period, self._due = period, time.perf_counter()
        self._recent = collections.deque([self._due], maxlen=1 + round(1 / period))

    def keep(self) -> float:
        """Waits until it is time; returns simulated over real time of the last 1 s."""
        self._due = max(self._due + self._period, time.perf_counter() - _LATE)
        time.sleep(max(0.0, self._due - time.perf_counter()))
        self._recent.append(time.perf_counter())
        took = self._recent[-1] - self._recent[0]
        return self._period * (len(self._recent) - 1) / took


def run(
    player: AnyPlayer[SummaryT],
    source: Source,
    views: Sequence[View] = (),
    seconds: float = float("inf"),
    paced: bool = False,
) -> SummaryT:
    """Runs a robot until the time is up, a view or the source ends it, or a signal.

    SIGINT and SIGTERM end it after the step under way; the summary tells which it was.

    Args:
      player: The robot.
      source: Of commands.
      views: Where it is shown; closed at the end.
      seconds: Simulated time.
      paced: Whether to keep pace with the clock.
    """
    lately, started = float("nan"), time.perf_counter()
    with StopSignal() as stop, contextlib.ExitStack() as stack:
        for view in views:
            stack.callback(view.close)
        pace = _Pace(player.period)
        while player.time < seconds - 1e-9 and not stop.number:
            events = source.events()
            if Event.QUIT in events or any(view.closed for view in views):
                break
            if Event.RESTART in events:
                player.restart()
            player.step(source.command(player.time))
            for view in views:
                view.show(player.frame(lately))
            if paced:
                lately = pace.keep()
        took = time.perf_counter() - started
    return player.summary(realtime=player.time / took, signal=stop.number)
