"""A run that is stopped, killed or split ends as one that ran through, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from conftest import (
    ROWS,
    STEPS,
    digest,
    finish,
    leaves,
    logged_steps,
    move_to,
    saved_digest,
    small_training,
)

from playground.config import to_yaml
from playground.learning.run_folder import RunFolder

WAIT = 600  # s for a process to compile; a few on an idle machine


def command(folder: Path, preset: Path) -> list[str]:
    call = "import sys; from playground.cli.main import main; sys.exit(main())"
    train = [sys.executable, "-c", call, "train", "open_duck_joystick"]
    return [*train, "--preset", str(preset), "--out", str(folder), "--device", "cpu"]


class Process:
    """A training of its own, started at once."""

    def __init__(self, folder: Path):
        self.run = RunFolder(folder / "run")
        preset = folder / "small.yaml"
        preset.write_text(to_yaml(small_training(total_steps=100_000_000)))
        self.popen = subprocess.Popen(
            command(self.run.path, preset),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()

    def stop(self, number: int, after: float) -> tuple[int, str, str]:
        """Sends a signal some seconds after the first checkpoint; waits for the end."""
        last, until = self.run.checkpoints / "last", time.monotonic() + WAIT
        while not (last.is_dir() and any(last.glob("[0-9]*/commit_success.txt"))):
            assert self.popen.poll() is None, self.popen.communicate()[1]
            assert time.monotonic() < until, "no checkpoint"
            time.sleep(0.01)
        time.sleep(after)
        self.popen.send_signal(number)
        out, err = self.popen.communicate(timeout=WAIT)
        return self.popen.returncode, out, err


@pytest.fixture(scope="module", autouse=True)
def to_be_killed(tmp_path_factory):
    """A training that goes on until it is stopped; compiles beside the first tests."""
    with Process(tmp_path_factory.mktemp("killed")) as process:
        yield process


@pytest.mark.parametrize(
    ("number", "after"), [(signal.SIGINT, 0.0), (signal.SIGTERM, 0.4)]
)
def test_a_signal_at_any_time_saves_what_was_done(
    number, after, straight, trainer, tmp_path
):
    run = move_to(trainer, tmp_path, total_steps=100_000)
    before = signal.getsignal(number)
    original, timers = run.ppo.iterate, []

    class Signalling:
        def iterate(self, state):
            if not timers:
                timers.append(threading.Timer(after, os.kill, (os.getpid(), number)))
                timers[0].start()
            return original(state)

        def __getattr__(self, name):
            return getattr(trainer.ppo, name)

    run.ppo = Signalling()
    result = run.train()
    timers[0].join()
    assert result.signal == number and signal.getsignal(number) is before
    assert 0 < result.env_steps < 100_000
    saved = move_to(trainer, tmp_path).checkpoints.progress("last")
    assert saved.env_steps == result.env_steps == logged_steps(run.run)[-1]
    if result.env_steps < STEPS:
        assert saved_digest(finish(trainer, tmp_path)) == straight[1]


def test_a_split_run_ends_like_a_straight_one(straight, trainer, tmp_path):
    for steps in (640, 800, STEPS):  # 640 is no multiple of the evaluations' 480
        run = finish(trainer, tmp_path, steps)
        assert logged_steps(run.run) == ROWS[: steps // 160]
    assert saved_digest(run) == straight[1]
    assert logged_steps(straight[0].run) == ROWS


def test_a_finished_run_stays_as_it_is(straight, trainer):
    run, wanted = straight
    again = finish(trainer, run.run.path)
    assert saved_digest(again) == wanted and logged_steps(again.run) == ROWS


def test_a_digest_sees_a_single_bit_of_every_part(straight, trainer):
    """Else the tests above would prove little."""
    run, wanted = straight
    state = run.checkpoints.restore("last", run.ppo, robots=True)
    assert digest(state) == wanted
    parts, tree = jax.tree.flatten(state)
    names = list(leaves(state))
    for part in (".params", ".mu", ".nu", ".mean", ".qpos", "_state.key", ".iteration"):
        at = next(i for i, name in enumerate(names) if part in name)
        leaf, changed = parts[at], list(parts)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            changed[at] = jax.random.wrap_key_data(jax.random.key_data(leaf) ^ 1)
        elif leaf.dtype == jnp.int32:
            changed[at] = leaf + 1
        else:
            changed[at] = jnp.nextafter(leaf, jnp.inf)
        assert digest(jax.tree.unflatten(tree, changed)) != wanted, part


def resumed(trainer, process: Process, straight) -> None:
    """The stopped run goes on, beyond where it was, and ends as the straight one."""
    run = move_to(trainer, process.run.path)
    reached = run.checkpoints.progress("last").env_steps
    if reached < STEPS:
        assert saved_digest(finish(trainer, process.run.path)) == straight[1]
        assert logged_steps(process.run) == ROWS
        return
    # It was faster than this test: another straight run goes as far and further.
    far = reached // 160 * 160 + 480
    other = process.run.path.parent / "straight"
    ends = [saved_digest(finish(trainer, f, far)) for f in (process.run.path, other)]
    assert ends[0] == ends[1]
    assert logged_steps(process.run) == [160 * i for i in range(1, far // 160 + 1)]


def test_a_killed_run_goes_on_like_a_straight_one(to_be_killed, straight, trainer):
    seed = random.SystemRandom().randrange(10**6)
    after = random.Random(seed).uniform(0.0, 1.5)
    print(f"seed {seed}: killed {after:.3f} s after the first checkpoint")
    status, _, _ = to_be_killed.stop(signal.SIGKILL, after)
    assert status == -signal.SIGKILL
    resumed(trainer, to_be_killed, straight)


@pytest.mark.slow
def test_ctrl_c_saves_says_how_to_go_on_and_exits_with_130(straight, trainer, tmp_path):
    with Process(tmp_path) as process:
        status, out, err = process.stop(signal.SIGINT, 0.3)
    assert status == 130, err
    assert "Traceback" not in err
    run = move_to(trainer, process.run.path)
    reached = run.checkpoints.progress("last").env_steps
    assert f"stopped and saved at {reached:,} steps" in out
    assert f"playground train --resume {process.run.path}" in out
    assert logged_steps(process.run)[-1] == reached
    resumed(trainer, process, straight)
