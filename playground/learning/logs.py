"""Logs of a run: CSV, TensorBoard, Weights & Biases, progress bar."""

import csv
import importlib.util
import io
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from tensorboardX import SummaryWriter

from playground.errors import PlaygroundError
from playground.learning.run_folder import RunFolder, replacing

_QUIET = 30.0  # s


class Logs:
    """Writes scalars by environment step; a resumed run goes on where it was saved."""

    def __init__(self, run: RunFolder, start_step: int, use_wandb: bool, config: dict):
        """Opens the logs.

        Args:
          run: Where.
          start_step: Environment steps done; rows after it, written by a run that was
            killed after its last checkpoint, are dropped, since they come again.
          use_wandb: Also log to Weights & Biases.
          config: Stored with the W&B run.
        """
        self._run = run
        self._rows = _rows_until(run, start_step)
        self._write_csv()
        self._board = SummaryWriter(str(run.tensorboard), purge_step=start_step + 1)
        self._wandb = _start_wandb(run, config) if use_wandb else None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes one row."""
        self._rows.append(
            {"env_steps": str(step)} | {k: repr(v) for k, v in values.items()}
        )
        if set(values) <= set(self._columns):
            with self._run.metrics.open("a", newline="") as file:
                csv.DictWriter(file, self._columns).writerow(self._rows[-1])
        else:
            self._write_csv()
        for name, value in values.items():
            self._board.add_scalar(name, value, step)
        self._board.flush()
        if self._wandb is not None:
            self._wandb.log(dict(values), step=step)

    def close(self) -> None:
        """Flushes and closes."""
        self._board.close()
        if self._wandb is not None:
            self._wandb.finish()

    def _write_csv(self) -> None:
        names = dict.fromkeys(name for row in self._rows for name in row)
        self._columns = list(names)
        if not self._rows:
            self._run.metrics.unlink(missing_ok=True)
            return
        with replacing(self._run.metrics) as path, path.open("w", newline="") as file:
            writer = csv.DictWriter(file, self._columns)
            writer.writeheader()
            writer.writerows(self._rows)


class ProgressBar:
    """Steps done, steps a second and time left, on the terminal.

    Where the output is no terminal, it is a line every `_QUIET` seconds instead.
    """

    def __init__(self, total: int, done: int):
        """Shows the bar: `done` of `total` environment steps."""
        self._total, self._said = total, -_QUIET
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} steps/s"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(
            "training", total=total, completed=done, rate="-"
        )
        self._bar.start()

    def update(self, done: int, rate: float) -> None:
        """Moves the bar."""
        self._bar.update(self._task, completed=done, rate=f"{rate:,.0f}")
        now = time.monotonic()
        if not self._bar.console.is_terminal and now - self._said >= _QUIET:
            left = max(0.0, (self._total - done) / rate)
            self.say(
                f"{done:>12,} of {self._total:,} steps, {rate:,.0f} steps/s, "
                f"{left / 60:.0f} min left"
            )
            self._said = now

    def say(self, line: str) -> None:
        """Prints a line above the bar."""
        self._bar.console.print(line, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Takes the bar away."""
        self._bar.stop()


def require_wandb() -> None:
    """Checks that Weights & Biases can be logged to; best before anything compiles.

    Raises:
      PlaygroundError: it is not installed.
    """
    if importlib.util.find_spec("wandb") is None:
        raise PlaygroundError("wandb is not installed: pip install 'playground[wandb]'")


def _rows_until(run: RunFolder, step: int) -> list[dict[str, str]]:
    if not run.metrics.is_file():
        return []
    whole, newline, _ = run.metrics.read_text().rpartition("\n")  # a kill cuts a line
    rows = csv.DictReader(io.StringIO(whole + newline))
    return [row for row in rows if int(row["env_steps"]) <= step]


def _start_wandb(run: RunFolder, config: dict) -> Any:
    import wandb

    return wandb.init(project="playground", name=run.path.name, config=config)
