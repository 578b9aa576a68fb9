"""Several hosts that train one policy, through `jax.distributed`."""

import dataclasses

from playground.errors import PlaygroundError


@dataclasses.dataclass(frozen=True)
class Seat:
    """One process's place among those that train together.

    Attributes:
      coordinator: HOST:PORT of process 0.
      processes: How many there are.
      process: Which this is, 0..processes-1.
    """

    coordinator: str
    processes: int
    process: int

    @classmethod
    def parse(cls, text: str) -> "Seat":
        """Reads "HOST:PORT,PROCESSES,ID".

        Raises:
          PlaygroundError: the text is not of that form.
        """
        try:
            coordinator, processes, process = text.split(",")
            seat = cls(coordinator, int(processes), int(process))
            host, _, number = coordinator.rpartition(":")
            port = int(number) if host else 0
        except ValueError:
            port, seat = 0, cls("", 0, 0)
        if not (0 < port < 65536 and 0 <= seat.process < seat.processes):
            raise PlaygroundError(
                f"--distributed takes HOST:PORT,PROCESSES,ID, ID in 0..PROCESSES-1, "
                f"e.g. 10.0.0.1:4567,2,0; got '{text}'"
            )
        return seat

    def take(self) -> None:
        """Joins the others; waits until all are there."""
        import jax

        jax.distributed.initialize(self.coordinator, self.processes, self.process)
