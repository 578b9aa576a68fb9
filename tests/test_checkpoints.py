"""Checkpoints, logs and folders of a run: whole, or left alone and named."""

import dataclasses
import logging
import shutil

import numpy as np
import pytest
from conftest import (
    ROWS,
    STEPS,
    finish,
    leaves,
    logged_steps,
    move_to,
    saved_digest,
    small_training,
)

from playground.cli.main import main
from playground.errors import PlaygroundError
from playground.learning.config import NetworkConfig
from playground.learning.run_folder import RunFolder
from playground.learning.train import Trainer


def test_a_kill_between_the_two_saves_of_a_new_best(straight, trainer, tmp_path):
    """`best` is then ahead of `last`, and comes by that iteration again."""
    run = finish(trainer, tmp_path, 480)
    state = run.checkpoints.restore("last", run.ppo, robots=True)
    ahead = finish(trainer, tmp_path, 960)
    progress = ahead.checkpoints.progress("last")
    last = tmp_path / "checkpoints" / "last"
    shutil.rmtree(last / max(p.name for p in last.iterdir()))
    run = move_to(trainer, tmp_path)
    assert run.checkpoints.progress("last").env_steps == 480
    again = finish(trainer, tmp_path)
    assert saved_digest(again) == straight[1] and logged_steps(again.run) == ROWS
    # What is saved last is what is read, even at an earlier iteration.
    again.checkpoints.save("best", state, progress)
    restored = move_to(trainer, tmp_path).checkpoints.restore(
        "best", run.ppo, robots=True
    )
    assert int(restored.iteration) == 3


def test_what_an_interrupted_save_left_is_skipped_and_named(
    straight, trainer, tmp_path, caplog
):
    finish(trainer, tmp_path, 480)
    finish(trainer, tmp_path, 960)
    last = tmp_path / "checkpoints" / "last"
    newest = last / max(p.name for p in last.iterdir())
    left = newest.rename(f"{newest}.orbax-checkpoint-tmp")
    (left / "commit_success.txt").unlink()
    (left / "learner" / "_METADATA").write_text("cut sho")
    run = move_to(trainer, tmp_path, total_steps=STEPS)
    with caplog.at_level(logging.WARNING, "playground"):
        assert run.checkpoints.progress("last").env_steps == 480
    assert str(left) in caplog.text and "interrupted" in caplog.text
    assert saved_digest(finish(trainer, tmp_path)) == straight[1]


def test_a_log_that_was_cut_short_goes_on_whole(straight, trainer, tmp_path):
    run = finish(trainer, tmp_path, 480)
    with run.run.metrics.open("a") as file:
        file.write("640,0.1,0.2\n64")
    again = finish(trainer, tmp_path, 800)
    assert logged_steps(again.run) == ROWS[:5]
    assert not any(path.suffix == ".new" for path in tmp_path.iterdir())


def test_another_number_of_robots_goes_on_with_new_ones_and_says_so(
    straight, trainer, tmp_path, caplog
):
    folder = tmp_path / "run"
    shutil.copytree(straight[0].run.path, folder)
    before = straight[0].checkpoints.restore("last", trainer.ppo, robots=True)
    config = small_training()
    ppo = dataclasses.replace(config.ppo, num_envs=16)
    smaller = Trainer(dataclasses.replace(config, ppo=ppo), RunFolder(folder))
    with caplog.at_level(logging.WARNING, "playground"):
        state, progress = smaller.start()
    assert "32 robots" in caplog.text and "16 new ones" in caplog.text
    assert (progress.env_steps, progress.num_envs) == (STEPS, 16)
    assert state.env.done.shape == (16,)
    for name in ("params", "optimizer", "normalizer", "key", "iteration"):
        ours, theirs = leaves(getattr(state, name)), leaves(getattr(before, name))
        for part, value in ours.items():
            np.testing.assert_array_equal(value, theirs[part], err_msg=name + part)
    assert len(np.unique(state.env.pipeline_state.data.qpos, axis=0)) == 16
    assert not state.env.pipeline_state.step.any()


def test_a_checkpoint_of_another_task_is_refused(straight, trainer, capsys):
    run = straight[0].run.path
    assert main(["train", "open_duck_standing", "--resume", str(run)]) == 2
    assert "is of task 'open_duck_joystick'" in capsys.readouterr().err
    other = move_to(trainer, run, task="open_duck_standing")
    with pytest.raises(PlaygroundError, match="not 'open_duck_standing'"):
        other.start()


def test_a_checkpoint_of_other_networks_is_refused(straight):
    config = small_training(network=NetworkConfig(policy_layers=(16,)))
    other = Trainer(config, straight[0].run)
    with pytest.raises(PlaygroundError, match="does not fit this run's task"):
        other.start()


def test_a_folder_with_another_run_is_refused_and_stays_as_it_is(
    straight, tmp_path, capsys, monkeypatch
):
    folder = straight[0].run.path

    def contents():
        return {p: p.stat().st_mtime_ns for p in [folder, *folder.rglob("*")]}

    before = contents()
    assert main(["train", "open_duck_joystick", "--out", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "holds another run" in told and f"--resume {folder}" in told
    assert contents() == before
    (tmp_path / "mine.txt").write_text("precious")
    assert main(["train", "--out", str(tmp_path)]) == 2
    assert main(["train", "--out", str(tmp_path / "mine.txt")]) == 2
    assert (tmp_path / "mine.txt").read_text() == "precious"
    monkeypatch.chdir(folder.parent)
    assert main(["train", "--resume", "nowhere"]) == 2
    assert "no run in 'nowhere'" in capsys.readouterr().err
