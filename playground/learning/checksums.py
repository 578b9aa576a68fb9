"""Proves that a checkpoint's files are as they were saved.

TensorStore checks its indices, not the numbers themselves: a flipped bit among the
weights would be read without a word. So a list of SHA-256 sums, as of `sha256sum`, lies
with the files of each checkpoint.
"""

import hashlib
from pathlib import Path

from playground.errors import PlaygroundError
from playground.learning.run_folder import replacing

_LIST = "checksums.sha256"


def write_checksums(folder: Path) -> None:
    """Lists the sums of all files in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{_digest(path)}  {path.relative_to(folder)}\n" for path in files]
    with replacing(folder / _LIST) as path:
        path.write_text("".join(lines))


def check_whole(folder: Path) -> None:
    """Checks the files in a folder against its list.

    A folder without a list passes: its run was killed before it could write one.

    Raises:
      PlaygroundError: a file is missing or has changed.
    """
    if not (folder / _LIST).is_file():
        return
    for line in (folder / _LIST).read_text(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file() or _digest(path) != digest:
            what = "has changed" if path.is_file() else "is missing"
            raise PlaygroundError(f"checkpoint '{folder}' is damaged: {name} {what}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
