"""A training from the command line: set up, train, export, tell."""

import jax

from playground.config import to_yaml
from playground.learning.config import TrainConfig
from playground.learning.export import export_policy
from playground.learning.run_folder import RunFolder
from playground.learning.seat import Seat
from playground.learning.train import Trainer
from playground.runtime import configure


def run_training(
    config: TrainConfig,
    folder: RunFolder,
    seat: Seat | None = None,
    device: str = "auto",
    dry_run: bool = False,
) -> int:
    """Trains in a folder; goes on where the last checkpoint there was saved, if any.

    Args:
      config: What determines the run.
      folder: Where it lies.
      seat: This process's place in a distributed training.
      device: See `runtime.configure`.
      dry_run: Only check and print the effective config.

    Returns:
      Exit status: 0, or 128 + the signal that stopped the run.
    """
    if seat:
        seat.take()
    described = configure(device)
    trainer = Trainer(config, folder)
    print(f"{described} | engine {trainer.task.physics.engine}\n\n{to_yaml(config)}")
    if dry_run:
        return 0
    print(f"run: {folder.path}", flush=True)
    result = trainer.train()
    if result.signal:
        print(f"stopped and saved at {result.env_steps:,} steps; ", end="")
        print(f"go on with: playground train --resume {folder.path}")
        return 128 + result.signal
    if jax.process_count() == 1:  # else: `playground export`, on one host
        errors = export_policy(trainer, folder.policy, overwrite=True)
        print(f"policy: {folder.policy}")
        print(f"  differs from its network by at most {max(errors.values()):.1e}")
    print(f"last evaluation: {result.score}\ndiverged robots: {result.diverged}")
    return 0
