"""Checkpoints of the whole training state, with Orbax.

A checkpoint is written beside the others and renamed when it is whole, so an
interrupted save leaves the older ones as they were; what it left behind is skipped and
named.
"""

import dataclasses
import logging
from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp

from playground.errors import PlaygroundError
from playground.learning.ppo import PPO, TrainingState

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is; what a checkpoint holds besides the training state.

    Attributes:
      env_steps: environment steps done. A Python int, so it never wraps round.
      task: task name.
      num_envs: robots when it was saved.
      best_score: best evaluation so far; None before the first.
    """

    env_steps: int
    task: str
    num_envs: int
    best_score: float | None = None


class Checkpoints:
    """The checkpoints of a run: `last` (the newest few) and `best` (one)."""

    def __init__(self, folder: Path, keep: int = 2):
        """Opens or makes the folder.

        Args:
          folder: Where `last` and `best` lie; made absolute, as Orbax asks.
          keep: How many of the newest to keep.
        """
        self._folder = folder.resolve()
        self._keep = keep
        self._managers: dict[str, ocp.CheckpointManager] = {}

    def save(self, which: str, state: TrainingState, progress: Progress) -> None:
        """Saves into "last" or "best"; returns when it is on disk."""
        manager = self._manager(which)
        learner, robots = _split(state)
        # Always above what is there: a run that was killed after its best checkpoint
        # comes by that iteration again, and the newest has to be the last one saved.
        newest = manager.latest_step()
        manager.save(
            max(int(state.iteration), -1 if newest is None else newest + 1),
            args=ocp.args.Composite(
                learner=ocp.args.StandardSave(learner),
                robots=ocp.args.StandardSave(robots),
                progress=ocp.args.JsonSave(dataclasses.asdict(progress)),
            ),
            force=True,
        )
        manager.wait_until_finished()

    def progress(self, which: str) -> Progress | None:
        """Returns how far the newest whole checkpoint is; None: there is none."""
        if not (self._folder / which).is_dir():
            return None
        for leftover in sorted((self._folder / which).glob("*orbax-checkpoint-tmp*")):
            _log.warning("skipping interrupted checkpoint %s", leftover)
        manager = self._manager(which)
        step = manager.latest_step()
        if step is None:
            return None
        saved = manager.restore(
            step, args=ocp.args.Composite(progress=ocp.args.JsonRestore())
        )
        return Progress(**saved["progress"])

    def restore(self, which: str, ppo: PPO, robots: bool) -> TrainingState:
        """Returns the newest whole checkpoint.

        Args:
          which: "last" or "best".
          ppo: The learner that is to go on with it.
          robots: Whether to restore the robots, of which there must be as many as the
            learner has; without them `env` is None.

        Raises:
          PlaygroundError: the checkpoint does not fit the networks of this run.
        """
        manager = self._manager(which)
        step = manager.latest_step()
        if step is None:
            raise PlaygroundError(f"no whole checkpoint under {self._folder / which}")
        items = dict(zip(("learner", "robots"), _split(ppo.abstract()), strict=True))
        if not robots:
            del items["robots"]
        wanted = {n: ocp.args.StandardRestore(item) for n, item in items.items()}
        try:
            saved = manager.restore(step, args=ocp.args.Composite(**wanted))
        except (ValueError, KeyError) as error:
            raise PlaygroundError(
                f"checkpoint {self._folder / which} does not fit this run's task and "
                f"networks: {str(error).splitlines()[0]}"
            ) from error
        env = saved["robots"]["env"] if robots else None
        return TrainingState(env=env, **saved["learner"])

    def _manager(self, which: str) -> ocp.CheckpointManager:
        if which not in self._managers:
            keep = self._keep if which == "last" else 1
            self._managers[which] = ocp.CheckpointManager(
                self._folder / which,
                options=ocp.CheckpointManagerOptions(
                    max_to_keep=keep, enable_async_checkpointing=False
                ),
            )
        return self._managers[which]


def _split(state: TrainingState) -> tuple[dict[str, Any], dict[str, Any]]:
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    return fields, {"env": fields.pop("env")}
