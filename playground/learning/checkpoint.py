"""Checkpoints of the whole training state, with Orbax.

A checkpoint is written beside the others and renamed when it is whole, so an
interrupted save leaves the older ones as they were; what it left behind is skipped and
named.
"""

import contextlib
import dataclasses
import logging
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from playground.errors import PlaygroundError
from playground.learning.checksums import check_whole, write_checksums
from playground.learning.evaluator import Score
from playground.learning.ppo import PPO, TrainingState

_log = logging.getLogger(__name__)

# What settles the sizes in a training state, by the start of their names.
_SETTLED_BY = {
    "normalizer": "the task's observation",
    "params.policy": "network.policy_layers",
    "params.value": "network.value_layers",
    "optimizer": "ppo.policy_warmup",
    "env": "env",
}


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is; what a checkpoint holds besides the training state.

    Attributes:
      env_steps: environment steps done. A Python int, so it never wraps round.
      task: task name.
      num_envs: robots when it was saved.
      best_score: best evaluation so far; None before the first.
      score: how well this very state did; None where it was not evaluated.
    """

    env_steps: int
    task: str
    num_envs: int
    best_score: float | None = None
    score: Score | None = None

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.env_steps:,} steps" + (f": {self.score}" if self.score else "")


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
        step = max(int(state.iteration), -1 if newest is None else newest + 1)
        manager.save(
            step,
            args=ocp.args.Composite(
                learner=ocp.args.StandardSave(learner),
                robots=ocp.args.StandardSave(robots),
                progress=ocp.args.JsonSave(dataclasses.asdict(progress)),
            ),
            force=True,
        )
        manager.wait_until_finished()
        if jax.process_index() == 0:
            write_checksums(self._folder / which / str(step))

    def progress(self, which: str) -> Progress | None:
        """Returns how far the newest whole checkpoint is; None: there is none.

        Raises:
          PlaygroundError: it is damaged.
        """
        for leftover in sorted((self._folder / which).glob("*orbax-checkpoint-tmp*")):
            _log.warning("skipping interrupted checkpoint %s", leftover)
        step = self._newest(which)
        if step is None:
            return None
        wanted = ocp.args.Composite(progress=ocp.args.JsonRestore())
        with _damage_told(self._folder / which / str(step)):
            values = self._manager(which).restore(step, args=wanted)["progress"]
            score = values.pop("score", None)
            return Progress(**values, score=Score(**score) if score else None)

    def restore(self, which: str, ppo: PPO, robots: bool) -> TrainingState:
        """Returns the newest whole checkpoint.

        Args:
          which: "last" or "best".
          ppo: The learner that is to go on with it.
          robots: Whether to restore the robots, of which there must be as many as the
            learner has; without them `env` is None.

        Raises:
          PlaygroundError: the checkpoint is missing or damaged, or does not fit the
            task and the networks of this run.
        """
        step = self._newest(which)
        if step is None:
            raise PlaygroundError(f"no whole checkpoint under {self._folder / which}")
        items = dict(zip(("learner", "robots"), _split(ppo.abstract()), strict=True))
        if not robots:
            del items["robots"]
        wanted = {n: ocp.args.StandardRestore(item) for n, item in items.items()}
        manager, folder = self._manager(which), self._folder / which / str(step)
        with _damage_told(folder):
            there = manager.item_metadata(step)
            shapes = {name: _shapes(there[name].tree) for name in items}
        for name, item in items.items():
            _require_fit(folder, shapes[name], _shapes(item))
        with _damage_told(folder):
            saved = manager.restore(step, args=ocp.args.Composite(**wanted))
        env = saved["robots"]["env"] if robots else None
        return TrainingState(env=env, **saved["learner"])

    def _newest(self, which: str) -> int | None:
        """Returns the newest checkpoint that was saved whole, once it is checked."""
        if not (self._folder / which).is_dir():
            return None  # a manager would make the folder
        step = self._manager(which).latest_step()
        if step is not None:
            check_whole(self._folder / which / str(step))
        return step

    def _manager(self, which: str) -> ocp.CheckpointManager:
        if which not in self._managers:
            keep = self._keep if which == "last" else 1
            self._managers[which] = ocp.CheckpointManager(
                self._folder / which,
                item_handlers={
                    "learner": ocp.StandardCheckpointHandler(),
                    "robots": ocp.StandardCheckpointHandler(),
                    "progress": ocp.JsonCheckpointHandler(),
                },
                options=ocp.CheckpointManagerOptions(
                    max_to_keep=keep, enable_async_checkpointing=False
                ),
            )
        return self._managers[which]


def _split(state: TrainingState) -> tuple[dict[str, Any], dict[str, Any]]:
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    return fields, {"env": fields.pop("env")}


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    """Returns dotted name -> shape of a tree's arrays; of keys, as they are saved."""
    shapes = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        data = jax.eval_shape(jax.random.key_data, leaf) if is_key else leaf
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        shapes[name] = tuple(data.shape)
    return shapes


def _require_fit(folder: Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    """Checks shapes by name; a mismatch is named by what settles it."""
    names = [name for name in here | there if here.get(name) != there.get(name)]
    for start, setting in _SETTLED_BY.items():
        for name in names:
            if name.startswith(start):
                raise PlaygroundError(
                    f"checkpoint '{folder}' does not fit this run: {setting} differs "
                    f"({name} is {there.get(name, 'none')} there, "
                    f"{here.get(name, 'none')} here)"
                )


@contextlib.contextmanager
def _damage_told(folder: Path) -> Iterator[None]:
    """Tells in one line what Orbax finds wrong, for which it raises any exception."""
    try:
        yield
    except Exception as error:
        reason = textwrap.shorten(str(error), 120)
        raise PlaygroundError(f"checkpoint '{folder}' is damaged: {reason}") from error
