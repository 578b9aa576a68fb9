"""Stopping in good order on SIGINT and SIGTERM."""

import signal
from types import FrameType
from typing import Self


class StopSignal:
    """Turns the first SIGINT or SIGTERM into a request to stop; a second one stops.

    Attributes:
      number: The signal that came; None so far.
    """

    def __init__(self) -> None:
        """Does nothing until entered."""
        self.number: int | None = None

    def __enter__(self) -> Self:
        """Takes over the two signals."""
        self._before = {
            number: signal.signal(number, self._note)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Gives them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number
