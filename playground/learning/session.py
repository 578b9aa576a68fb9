"""A training from the command line: set up, train, export, tell."""

import jax

from playground.config import to_yaml
from playground.learning.config import TrainConfig
from playground.learning.export import export_policy
from playground.learning.logs import require_wandb
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
    if config.wandb:
        require_wandb()
    described = configure(device)
    trainer = Trainer(config, folder)
    if not dry_run:
        folder.make()
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
        print(f"  of the best checkpoint, {trainer.saved('best')}")
        print(f"  differs from its network by at most {max(errors.values()):.1e}")
    if result.score:
        print(f"last evaluation, {result.env_steps:,} steps: {result.score}")
    print(f"diverged robots: {result.diverged}")
    return 0
