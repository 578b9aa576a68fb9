"""Several devices and several hosts train one policy: same weights, other robots."""

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from conftest import move_to, small_training

from playground.cli.main import main
from playground.config import to_yaml
from playground.errors import PlaygroundError
from playground.learning.seat import Seat

HERE, WAIT = str(Path(__file__).parent), 600

TWO_DEVICES = """
import sys
from pathlib import Path
import jax
import numpy as np
from conftest import small_training
from playground.errors import PlaygroundError
from playground.learning.config import PPOConfig
from playground.learning.run_folder import RunFolder
from playground.learning.train import Trainer

folder = RunFolder(Path(sys.argv[1]))
assert len(jax.devices()) == 2
trainer = Trainer(small_training(total_steps=480), folder)
result = trainer.train()
assert result.env_steps == 480 and result.score.episodes == 7
state = trainer.checkpoints.restore("last", trainer.ppo, robots=True)
for leaf in jax.tree.leaves((state.params, state.optimizer, state.normalizer)):
    one, other = (np.asarray(shard.data) for shard in leaf.addressable_shards)
    assert one.shape == leaf.shape
    np.testing.assert_array_equal(one, other)
    assert np.isfinite(one).all()
qpos = state.env.pipeline_state.data.qpos
one, other = (np.asarray(shard.data) for shard in qpos.addressable_shards)
assert one.shape == other.shape == (16, 35)
assert len(np.unique(np.concatenate([one, other]), axis=0)) == 32
fresh = trainer.ppo.new_robots(jax.random.key(5)).pipeline_state
assert len(np.unique(fresh.kick.start)) == 32
try:
    Trainer(small_training(ppo=PPOConfig(num_envs=36)), folder)
except PlaygroundError as error:
    print(error)
"""

# `playground train` that also says what its process holds whenever it saves.
HOST = """
import hashlib, sys
import jax
import numpy as np
from playground.cli.main import main
from playground.learning.checkpoint import Checkpoints

save = Checkpoints.save

def told(self, which, state, progress):
    for part in ("params", "optimizer", "normalizer", "env"):
        found = hashlib.sha256()
        for leaf in jax.tree.leaves(getattr(state, part)):
            if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                continue
            for shard in leaf.addressable_shards:
                found.update(np.asarray(shard.data).tobytes())
        print("HOLDS", which, progress.env_steps, part, found.hexdigest(), flush=True)
    save(self, which, state, progress)

Checkpoints.save = told
sys.exit(main())
"""


@pytest.mark.slow
def test_two_devices_hold_the_same_weights_and_other_robots(tmp_path):
    flags = {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2 "
        "--xla_backend_optimization_level=0",
        "PYTHONPATH": HERE,
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=os.environ | flags,
        timeout=WAIT,
    )
    assert done.returncode == 0, done.stderr
    assert "num_envs 36 does not divide into 2 device(s) x 4" in done.stdout
    assert "nearest: 32 or 40" in done.stdout


class Hosts:
    """Two processes on this machine, as if on two hosts."""

    def __init__(self, folder: Path, steps: int):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.run = folder / "run"
        preset = folder / "small.yaml"
        preset.write_text(to_yaml(small_training(total_steps=steps)))
        self.processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-c", HOST, "train", "--preset", str(preset)),
                    *("--out", str(self.run), "--device", "cpu"),
                    *("--distributed", f"{address},2,{i}"),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=folder,
            )
            for i in range(2)
        ]

    def wait(self) -> tuple[list[int], list[dict]]:
        """Returns the exit statuses and {(which, steps, part): digest} of each."""
        try:
            told = [process.communicate(timeout=WAIT) for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        print(*[err[-3000:] for _, err in told], sep="\n---\n")
        held = [
            {tuple(words[:3]): words[3] for words in found}
            for found in (
                re.findall(r"HOLDS (\S+) (\S+) (\S+) (\S+)", t) for t, _ in told
            )
        ]
        self.said = [out for out, _ in told]
        return [process.returncode for process in self.processes], held


def check_held(held: list[dict]) -> None:
    assert held[0] and held[0].keys() == held[1].keys()
    for key, digest in held[0].items():
        assert (digest == held[1][key]) == (key[2] != "env"), key


@pytest.mark.slow
def test_two_hosts_finish_with_the_same_weights_and_other_robots(tmp_path, trainer):
    hosts = Hosts(tmp_path, steps=480)
    statuses, held = hosts.wait()
    assert statuses == [0, 0]
    check_held(held)
    rows = (hosts.run / "metrics.csv").read_text().splitlines()
    assert len(rows) == 1 + 3
    # One process alone goes on with what the two have saved.
    alone = move_to(trainer, hosts.run)
    state, progress = alone.start()
    assert progress.env_steps == 480 and int(state.iteration) == 3
    starts = np.asarray(state.env.pipeline_state.data.qpos)
    assert len(np.unique(starts, axis=0)) == 32
    state, _ = alone.ppo.iterate(state)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params))


@pytest.mark.slow
def test_a_signal_to_one_host_stops_both_in_good_order(tmp_path):
    hosts = Hosts(tmp_path, steps=100_000_000)
    until = time.monotonic() + WAIT
    while not (hosts.run / "metrics.csv").is_file():
        assert time.monotonic() < until
        assert all(process.poll() is None for process in hosts.processes)
        time.sleep(0.05)
    hosts.processes[1].send_signal(signal.SIGTERM)
    statuses, held = hosts.wait()
    assert statuses == [143, 143]
    check_held(held)
    saved = max(int(steps) for which, steps, _ in held[0] if which == "last")
    assert all(f"stopped and saved at {saved:,} steps" in said for said in hosts.said)


def test_a_seat_is_read_and_mistakes_are_told():
    seat = Seat.parse("10.0.0.1:4567,2,1")
    assert dataclasses.astuple(seat) == ("10.0.0.1:4567", 2, 1)
    for wrong in ("", "here", "a:1,2", "a:1,2,2", "a:1,2,-1", "a:0,2,0", "a:x,2,0"):
        with pytest.raises(PlaygroundError, match="HOST:PORT,PROCESSES,ID"):
            Seat.parse(wrong)


def test_the_other_hosts_have_to_be_told_the_folder(capsys):
    assert main(["train", "--distributed", "127.0.0.1:4567,2,1"]) == 2
    assert "needs --out" in capsys.readouterr().err
