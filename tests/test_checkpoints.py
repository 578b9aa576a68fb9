"""Checkpoints, logs and folders of a run: whole, or left alone and named."""

import dataclasses
import importlib.util
import logging
import re
import shutil
from pathlib import Path

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
    small_task,
    small_training,
)

from playground.cli.main import main
from playground.errors import PlaygroundError
from playground.learning import session
from playground.learning.config import NetworkConfig
from playground.learning.export import export_policy
from playground.learning.run_folder import RunFolder
from playground.learning.train import Trainer
from playground.tasks.config import DelayConfig


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


def newest(run: RunFolder, which: str = "last") -> Path:
    """The folder of a run's newest checkpoint."""
    steps = (run.checkpoints / which).iterdir()
    return max(steps, key=lambda path: int(path.name))


def remove(folder: Path, name: str) -> None:
    shutil.rmtree(folder / name)


def cut(folder: Path, name: str) -> None:
    """Halves the largest file of an item."""
    path = largest(folder / name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(folder: Path, name: str) -> None:
    """Changes one bit in the midst of an item's numbers."""
    path = largest(folder / name)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def largest(folder: Path) -> Path:
    return max(
        (p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size
    )


@pytest.mark.parametrize("harm", [remove, cut, flip])
@pytest.mark.parametrize("item", ["progress", "learner", "robots"])
def test_a_damaged_checkpoint_is_refused_and_named(
    harm, item, straight, trainer, tmp_path
):
    shutil.copytree(straight[0].run.path, tmp_path, dirs_exist_ok=True)
    run = move_to(trainer, tmp_path)
    for which in ("last", "best"):
        harm(newest(run.run, which), item)
    for use, which in (
        (run.start, "last"),
        (lambda: export_policy(run, tmp_path / "policy.onnx"), "best"),
    ):
        folder = re.escape(str(newest(run.run, which)))
        with pytest.raises(PlaygroundError, match=f"'{folder}' is damaged") as told:
            use()
        assert "\n" not in str(told.value) and len(str(told.value)) < 300
    assert not (tmp_path / "policy.onnx").exists()


@pytest.mark.parametrize("item", ["progress", "learner", "robots"])
def test_damage_is_told_without_a_list_of_checksums_too(
    item, straight, trainer, tmp_path
):
    """A kill between a save and its list leaves none; such a checkpoint does."""
    shutil.copytree(straight[0].run.path, tmp_path, dirs_exist_ok=True)
    folder = newest(RunFolder(tmp_path))
    (folder / "checksums.sha256").unlink()
    assert saved_digest(move_to(trainer, tmp_path)) == straight[1]
    remove(folder, item)
    with pytest.raises(PlaygroundError, match=f"{folder.name}' is damaged"):
        move_to(trainer, tmp_path).start()


def test_a_run_whose_checkpoints_are_gone_is_left_alone(straight, trainer, tmp_path):
    shutil.copytree(straight[0].run.path, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "checkpoints")
    before = sorted(tmp_path.rglob("*")), (tmp_path / "metrics.csv").read_text()
    run = move_to(trainer, tmp_path)
    with pytest.raises(PlaygroundError, match="a log but no checkpoint"):
        run.train()
    with pytest.raises(PlaygroundError, match="no whole checkpoint"):
        export_policy(run, tmp_path / "policy.onnx")
    after = sorted(tmp_path.rglob("*")), (tmp_path / "metrics.csv").read_text()
    assert after == before


def test_fewer_steps_than_are_done_are_refused(straight, trainer):
    folder = straight[0].run.path
    config = (folder / "config.yaml").read_text()
    with pytest.raises(PlaygroundError, match=r"has done 1,600 steps.*got 1,440"):
        move_to(trainer, folder, total_steps=STEPS - 160).train()
    assert (folder / "config.yaml").read_text() == config
    move_to(trainer, folder, total_steps=STEPS - 159).start()  # within its iteration


def test_what_a_run_began_with_stays(straight, capsys):
    folder = straight[0].run.path
    config = (folder / "config.yaml").read_text()
    change = ["--seed", "3", "--network.policy-layers", "16", "--ppo.clip", "0.3"]
    assert main(["train", "--resume", str(folder), *change]) == 2
    told = capsys.readouterr().err
    assert "seed 0 -> 3, network.policy_layers (32,) -> (16,)" in told
    assert "clip" not in told and (folder / "config.yaml").read_text() == config


def test_a_checkpoint_of_another_task_is_refused(straight, trainer, capsys, tmp_path):
    run = straight[0].run.path
    assert main(["train", "open_duck_standing", "--resume", str(run)]) == 2
    assert "is of task 'open_duck_joystick'" in capsys.readouterr().err
    other = move_to(trainer, run, task="open_duck_standing")
    for use in (other.start, lambda: export_policy(other, tmp_path / "policy.onnx")):
        with pytest.raises(PlaygroundError, match="not 'open_duck_standing'"):
            use()
    assert not (tmp_path / "policy.onnx").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"network": NetworkConfig(policy_layers=(16,), value_layers=(32,))},
            r"network\.policy_layers differs .* \(32,\) there, \(16,\) here",
        ),
        (
            {"network": NetworkConfig(policy_layers=(32,), value_layers=(32, 8))},
            r"network\.value_layers differs .*hidden_1",
        ),
        (
            {"env": small_task(delays=DelayConfig(action=5, imu=3))},
            r"env differs \(env\.pipeline_state\.actions\.delayed",
        ),
    ],
)
def test_a_checkpoint_of_other_sizes_is_refused_and_says_which(straight, changes, told):
    other = Trainer(small_training(**changes), straight[0].run)
    with pytest.raises(PlaygroundError, match=f"does not fit this run: {told}"):
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


def test_what_cannot_be_logged_or_written_is_told_before_anything_compiles(
    trainer, tmp_path, monkeypatch
):
    monkeypatch.setattr(session, "configure", lambda device: "a test machine")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    logged = dataclasses.replace(trainer.config, wandb=True)
    with pytest.raises(PlaygroundError, match=r"pip install 'playground\[wandb\]'"):
        session.run_training(logged, RunFolder(tmp_path / "run"))
    assert not any(tmp_path.iterdir())
    (tmp_path / "file").touch()
    beyond = RunFolder(tmp_path / "file" / "run")
    run = move_to(trainer, beyond.path)
    run.train = lambda: pytest.fail("it trains")
    monkeypatch.setattr(session, "Trainer", lambda config, folder: run)
    with pytest.raises(PlaygroundError, match=r"cannot make the folder '.*file/run'"):
        session.run_training(run.config, beyond)
