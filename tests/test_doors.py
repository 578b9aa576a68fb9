"""Mistakes are told at the door: quickly, in one line, with what is allowed."""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playground.errors import PlaygroundError
from playground.physics import engines
from playground.physics.settings import check_engine, substeps_of
from playground.robots.names import find, names
from playground.robots.registry import load_robot

ROOT = Path(__file__).parents[1]
# Seconds. The second bound is the promise made; here it takes a quarter of that.
IMPORT_S, MISTAKE_S = 0.1, 2.0


def python(*args: str, **env: str) -> subprocess.CompletedProcess:
    command = [sys.executable, *args]
    env = {**os.environ, **env}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def quickest(run, tries: int = 3) -> float:
    """Returns the least time of some tries: other work on the machine adds to it."""

    def once() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return min(once() for _ in range(tries))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_robot("open_duk", "flat"), "robot 'open_duk'.*mean 'open_duck'"),
        (
            lambda: load_robot("open_duck", "flatt"),
            "scene of open_duck 'flatt'.*'flat'",
        ),
        (lambda: load_robot("open_duck", "flat", "st3215"), "servo.*mean 'sts3215'"),
        (lambda: check_engine("nativ"), "unknown engine 'nativ'; .*mean 'native'"),
        (lambda: engines.make_physics([], "mjc"), "unknown engine 'mjc'; .*'mjx'"),
    ],
)
def test_unknown_names_are_told_with_near_ones(call, message):
    with pytest.raises(PlaygroundError, match=f"{message}.*allowed: "):
        call()


def test_missing_parts_of_a_model_are_told_with_those_there_are():
    robot = load_robot("open_duck", "flat")
    with pytest.raises(PlaygroundError, match=r"joint 'left_kne'.*mean 'left_knee'"):
        find(robot.model, "joint", "left_kne")
    with pytest.raises(PlaygroundError, match="joint of open_duck '_elbow'"):
        robot.joint_rows("_knee", "_elbow")
    assert [robot.joints[i] for i in robot.joint_rows("_knee")] == [
        "left_knee",
        "right_knee",
    ]
    assert names(robot.model, "actuator") == robot.joints
    with pytest.raises(ValueError, match="read-only"):
        robot.home_pose[0] = 1.0


def test_warp_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PlaygroundError, match=r"pip install 'playground\[warp\]'"):
        engines.resolve_engine("warp")
    assert engines.resolve_engine("auto") in ("native", "mjx")
    assert engines.resolve_engine("native") == "native"


@pytest.mark.parametrize(("control", "sim_dt", "steps"), [(0.02, 0.002, 10), (1, 1, 1)])
def test_whole_numbers_of_physics_steps(control, sim_dt, steps):
    assert substeps_of(control, sim_dt) == steps


@pytest.mark.parametrize(
    ("control", "sim_dt", "message"),
    [
        (0.02, 0.003, "no whole multiple .* nearest: sim_dt 0.00285714"),
        (0.002, 0.004, "no whole multiple .* nearest: sim_dt 0.002"),
        (0.02, 0.0, "above 0"),
        (-0.02, 0.002, "above 0"),
    ],
)
def test_other_periods_are_refused(control, sim_dt, message):
    with pytest.raises(PlaygroundError, match=message):
        substeps_of(control, sim_dt)


def test_import_is_fast_and_light():
    script = (
        "import sys, time; start = time.perf_counter(); import playground;"
        "print(time.perf_counter() - start, *sys.modules)"
    )
    runs = [python("-c", script).stdout.split() for _ in range(3)]
    assert min(float(words[0]) for words in runs) < IMPORT_S
    assert not {"jax", "mujoco", "numpy"} & set(runs[0])


def test_a_wrong_config_is_told_before_anything_loads():
    args = ("-m", "playground", "train", "--ppo.num-envs", "510")
    told = python(*args)
    assert told.returncode == 2 and not told.stdout
    assert told.stderr.startswith("playground: ppo num_envs 510 does not divide")
    assert "nearest: 508 or 512" in told.stderr and told.stderr.count("\n") == 1
    assert quickest(lambda: python(*args)) < MISTAKE_S


@pytest.mark.parametrize("name", ["infer", "train"])
def test_a_script_owns_its_process_as_the_command_does(name):
    """Its signals and its quiet come from `main` alone, called without arguments."""
    script = f"""
import runpy, signal, sys, os
sys.argv = ["{name}.py", "--no-such-flag"]
try:
    runpy.run_path("{ROOT / name}.py", run_name="__main__")
except SystemExit as stop:
    print(stop.code, os.environ["TF_CPP_MIN_LOG_LEVEL"], sys.argv[1])
print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)
"""
    env = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, capture_output=True, text=True, env=env)
    assert told.stdout.split() == ["2", "3", name, "True"]
    assert told.stderr.startswith("playground: ") and told.stderr.count("\n") == 1


def test_the_list_names_what_there_is():
    told = python("-m", "playground", "list").stdout
    for part in ("servo  sts3215: ", "task   open_duck_joystick: ", "policy "):
        assert part in told


def test_mjx_says_nothing_of_warp_unless_it_is_broken(tmp_path: Path):
    script = "import playground; import brax.envs.base; from mujoco import mjx"
    if importlib.util.find_spec("warp") is None:
        assert python("-c", script).stdout == ""
    (tmp_path / "warp.py").write_text("raise ImportError('a library is missing')")
    broken = python("-c", script, PYTHONPATH=str(tmp_path))
    assert "a library is missing" in broken.stdout + broken.stderr
