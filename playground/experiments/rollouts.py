"""Moves parts of a batch at the same time, one on each core.

The native engine takes turns with the program around it: while one part's robots are
stepped in C, another part's controllers are computed.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from playground.physics.native import cores

Part = TypeVar("Part")
Result = TypeVar("Result")


class Parallel:
    """Threads for the parts of a batch.

    Attributes:
      parts: Parts to make of a batch; 1 where the engine is not `native`, which leaves
        nothing to share.
    """

    def __init__(self, engine: str):
        """Starts no thread yet."""
        self.parts = cores() if engine == "native" else 1
        self._threads = ThreadPoolExecutor(self.parts, "rollouts")

    def split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Returns rows in as many parts, none of them empty."""
        return [part for part in np.array_split(rows, self.parts) if len(part)]

    def each(
        self, function: Callable[[Part], Result], parts: Iterable[Part]
    ) -> list[Result]:
        """Returns a result for each part, in order; the first error is raised."""
        return list(self._threads.map(function, parts))
