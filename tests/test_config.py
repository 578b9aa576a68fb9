"""Configuration: mistakes are refused at once, in one line that helps."""

import re
import subprocess
import sys

import pytest

from playground.config import (
    merge,
)
from playground.errors import PlaygroundError
from playground.learning.config import PPOConfig, TrainConfig
from playground.physics.settings import substeps_of


def nested(path: str, value: object) -> dict:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("total_step", "total_steps"),
        ("ppo.learning_rat", "ppo.learning_rate"),
        ("env.command.vxx", "env.command.vx"),
        ("env.weights.track_velocty", "env.weights.track_velocity"),
    ],
)
def test_an_unknown_key_names_the_near_one(path, near):
    with pytest.raises(PlaygroundError, match=f"'{path}'; did you mean '{near}'"):
        merge(TrainConfig(), nested(path, 1))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("seed", "0", "seed must be int, got '0'"),
        ("seed", 0.5, "seed must be int, got 0.5"),
        ("seed", "5e-1", "seed must be int, got 0.5"),
        ("seed", True, "seed must be int, got True"),
        ("wandb", 1, "wandb must be bool, got 1"),
        ("task", 3, "task must be str, got 3"),
        ("ppo", 4, "ppo is a group of keys, got 4"),
        ("ppo.clip", "0.2", "ppo.clip must be float, got '0.2'"),
        ("ppo.clip", None, "ppo.clip must be float, got None"),
        ("ppo.clip", True, "ppo.clip must be float, got True"),
        ("ppo.clip", {"a": 1}, "ppo.clip must be float"),
        ("env.command.vx", 0.1, "env.command.vx must be a list of 2, got 0.1"),
        ("env.command.vx", [0.0] * 3, "env.command.vx must be a list of 2"),
        ("env.command.vx", [0, "a"], "env.command.vx must be float, got 'a'"),
        ("network.policy_layers", 64, "network.policy_layers must be a list, got 64"),
        ("network.policy_layers", ["a"], "network.policy_layers must be int"),
        ("network.activation", "swisch", "did you mean 'swish'"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(path, value, message):
    with pytest.raises(PlaygroundError, match=re.escape(message)):
        merge(TrainConfig(), nested(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("total_steps", 0),
        ("seed", -1),
        ("ppo.num_envs", 0),
        ("ppo.learning_rate", 0.0),
        ("ppo.learning_rate", float("nan")),
        ("ppo.discount", 1.1),
        ("network.policy_layers", [64, 0]),
        ("network.policy_layers", []),
        ("network.value_layers", []),
        ("network.observation_clip", 0.0),
        ("warm_start.updates", 0),
        ("warm_start.exploration_std", 0.0),
        ("evaluation.every_steps", 0),
        ("env.engine", "bullet"),
        ("env.sim_dt", 0.003),
        ("env.sim_dt", 0.0),
        ("env.sim_dt", float("nan")),
        ("env.episode_s", 0.01),
        ("env.action_scale", 0.0),
        ("env.fall_cosine", 1.0),
        ("env.gait.phase_steps", 1),
        ("env.command.vx", [0.1, 0.2]),
        ("env.command.vx", [0.1, -0.1]),
        ("env.command.vx", [0.0, float("inf")]),
        ("env.command.zero_fraction", 1.5),
        ("env.command.resample_s", 0.0),
        ("env.command.resample_s", 0.01),
        ("env.noise.gyro", -1.0),
        ("env.noise.gyro", float("nan")),
        ("env.delays.imu", -1),
        ("env.start.joint", -0.1),
        ("env.kicks.speed", [0.2, 0.1]),
        ("env.kicks.duration_s", 0.0),
        ("env.kicks.duration_s", 60.0),
        ("env.randomization.models", -1),
        ("env.randomization.mass", [0.0, 1.0]),
        ("env.randomization.com", [0.1, 0.0]),
        ("env.weights.alive", float("inf")),
    ],
)
def test_a_value_out_of_range_is_refused(path, value):
    key = path.rpartition(".")[2]
    with pytest.raises(PlaygroundError, match=rf"\b{key}\b|\bperiods\b"):
        merge(TrainConfig(), nested(path, value))


def test_sizes_that_do_not_divide_name_the_nearest_that_do():
    ppo = PPOConfig(num_envs=10, num_minibatches=4)
    with pytest.raises(PlaygroundError, match=r"nearest: 8 or 12$"):
        ppo.check_devices(1)
    with pytest.raises(PlaygroundError, match=r"2 device\(s\).*nearest: 8 or 16$"):
        ppo.check_devices(2)
    with pytest.raises(PlaygroundError, match=r"nearest: 4$"):
        TrainConfig(ppo=PPOConfig(num_envs=3, num_minibatches=4))
    PPOConfig(num_envs=16, num_minibatches=4).check_devices(4)
    with pytest.raises(PlaygroundError, match=r"nearest: sim_dt 0\.00285714 s"):
        substeps_of(0.02, 0.003)
    assert substeps_of(0.02, 0.004) == 5


def test_a_mistake_is_found_before_anything_heavy_is_loaded(tmp_path):
    """In one process for all mistakes: each exits with 2 and one line."""
    script = """
import sys
from playground.cli.main import main
for line in sys.argv[1:]:
    print(main(line.split()))
print([m for m in ("jax", "brax", "mujoco", "orbax") if m in sys.modules])
"""
    mistakes = [
        "train open_duck_joystik",
        "train --preset fast",
        "train --ppo.num-envs 511",
        "train --ppo.num-env 512",
        "train --ppo.clip x",
        "train --env.sim-dt 0.003",
        "train --ppo.learning-rate nan",
        "train --distributed here",
        "train --total-steps 1e-1",
        "train --network.policy-layers",
        "export run --out policy.npz",
        "infer policy.onnx --trace trace",
        f"train --resume {tmp_path}",
    ]
    done = subprocess.run(
        [sys.executable, "-c", script, *mistakes],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout.split("\n")[:-1] == ["2"] * len(mistakes) + ["[]"]
    lines = done.stderr.splitlines()
    assert len(lines) == len(mistakes)
    wanted = [
        "unknown task 'open_duck_joystik'; did you mean 'open_duck_joystick'?",
        "unknown preset of open_duck_joystick 'fast'",
        "nearest: 508 or 512",
        "--ppo.num-env",
        "--ppo.clip",
        "nearest: sim_dt",
        "ppo.learning_rate must be finite",
        "HOST:PORT,PROCESSES,ID",
        "--total-steps: must be a whole number, got '1e-1'",
        "network policy_layers needs one size at least",
        "--out must end in .onnx, got 'policy.npz'",
        "--trace must end in .npz, got 'trace'",
        "no config.yaml",
    ]
    for line, part in zip(lines, wanted, strict=True):
        assert line.startswith("playground: ") and part in line
    assert not any(tmp_path.iterdir())
