"""`playground export RUN`: write a run's policy file and check it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from playground.cli.parse import parse, take_word
from playground.cli.train import stored_config
from playground.errors import PlaygroundError
from playground.learning.run_folder import existing_run


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What to export, and where to."""

    checkpoint: str = "best"
    """best or last."""
    out: str | None = None
    """File to write, .onnx; by default policy.onnx in the run's folder."""
    overwrite: bool = False
    """Replace a file that is there."""

    def __post_init__(self):
        if self.checkpoint not in ("best", "last"):
            raise PlaygroundError(
                f"--checkpoint is best or last, got '{self.checkpoint}'"
            )
        if self.out is not None and Path(self.out).suffix != ".onnx":
            raise PlaygroundError(f"--out must end in .onnx, got '{self.out}'")


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground export --help`."""
    path, args = take_word(args)
    chosen = parse(Arguments(), args, "playground export RUN", "Write a policy file.")
    if path is None:
        raise PlaygroundError("export what? playground export RUN")
    folder, config = existing_run(path), stored_config(path)
    out = Path(chosen.out) if chosen.out else folder.policy
    if out.exists() and not chosen.overwrite:
        raise PlaygroundError(f"'{out}' exists; give another --out or --overwrite")
    # All that can be checked without the libraries has been: now they are loaded.
    from playground.learning.export import export_policy
    from playground.learning.train import Trainer
    from playground.runtime import configure

    configure()
    trainer = Trainer(config, folder)
    errors = export_policy(trainer, out, chosen.checkpoint, chosen.overwrite)
    print(f"policy: {out}")
    print(
        f"  of the {chosen.checkpoint} checkpoint, {trainer.saved(chosen.checkpoint)}"
    )
    for scale, error in errors.items():
        print(f"  observations of scale {scale:g}: differs by at most {error:.1e}")
    return 0
