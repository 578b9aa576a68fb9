"""The folder of a run: what lies where, and whose it is."""

import contextlib
import dataclasses
import datetime
import os
from collections.abc import Iterator
from pathlib import Path

from playground.config import config_hash, read_yaml, to_yaml
from playground.errors import PlaygroundError


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Paths of one training run.

    Attributes:
      path: The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The effective config."""
        return self.path / "config.yaml"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints `last` and `best`."""
        return self.path / "checkpoints"

    @property
    def policy(self) -> Path:
        """The exported policy."""
        return self.path / "policy.onnx"

    @property
    def metrics(self) -> Path:
        """The log as CSV."""
        return self.path / "metrics.csv"

    @property
    def tensorboard(self) -> Path:
        """The log for TensorBoard."""
        return self.path / "tensorboard"

    def make(self) -> None:
        """Makes the folder; best before hours of work go into it.

        Raises:
          PlaygroundError: it cannot be made, or not be written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlaygroundError(
                f"cannot make the folder '{self.path}': {error.strerror}"
            ) from error
        if not os.access(self.path, os.W_OK):
            raise PlaygroundError(f"cannot write to the folder '{self.path}'")


def new_run(out: str | None, task: str, preset: str) -> RunFolder:
    """Returns the folder of a new run; makes nothing yet.

    Args:
      out: Where; None: runs/<task>-<preset>-<time>.
      task: For the name.
      preset: For the name.

    Raises:
      PlaygroundError: the folder holds something already.
    """
    if out is None:
        now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        out = f"runs/{task}-{Path(preset).stem}-{now}"
    path = Path(out)
    if path.is_file():
        raise PlaygroundError(f"'{path}' is a file, not a folder for a run")
    if path.is_dir() and any(path.iterdir()):
        what = "another run" if (path / "config.yaml").is_file() else "files"
        raise PlaygroundError(
            f"'{path}' holds {what}: go on with it by --resume {path}, "
            "or give --out a new name"
        )
    return RunFolder(path)


def existing_run(path: str) -> RunFolder:
    """Returns the folder of a run that is there.

    Raises:
      PlaygroundError: there is no run.
    """
    run = RunFolder(Path(path))
    if not run.config.is_file():
        runs = sorted(str(p.parent) for p in Path().glob("runs/*/config.yaml"))
        listed = ", ".join(runs) or "none"
        raise PlaygroundError(f"no run in '{path}' (no config.yaml); runs: {listed}")
    return run


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields where to write a file that then takes the place of `path` at once.

    A run that is killed while it writes thus leaves the old file or the new one.
    """
    beside = path.with_name(f"{path.name}.new")
    yield beside
    beside.replace(path)


def write_config(run: RunFolder, config) -> str:
    """Stores the effective config and returns its hash."""
    run.make()
    with replacing(run.config) as path:
        path.write_text(f"# hash: {config_hash(config)}\n{to_yaml(config)}")
    return config_hash(config)


def read_config(run: RunFolder) -> dict:
    """Returns the stored config as plain values."""
    return read_yaml(run.config)
