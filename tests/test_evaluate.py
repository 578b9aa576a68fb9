"""Evaluating the duck: a still robot never passes, and the batch changes nothing."""

import dataclasses
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from playground.errors import PlaygroundError
from playground.experiments.evaluate import (
    EvaluateConfig,
    evaluate,
    onnx_policy_fn,
    rollout,
)
from playground.experiments.evaluate_config import command_grid
from playground.experiments.report import JSON, MARKDOWN, check_folder, write_report
from playground.experiments.verdict import DISTURBED, UNDISTURBED
from playground.tasks.config import CommandConfig, RandomizationConfig
from playground.tasks.registry import TASKS

JOYSTICK, STANDING = TASKS["open_duck_joystick"], TASKS["open_duck_standing"]
# Seven episodes are one batch, or three batches of three with two robots too many.
COMMANDS = (
    (0.0, 0.0, 0.0),
    (0.05, 0.0, 0.0),
    (-0.15, 0.0, 0.0),
    (0.0, 0.1, 0.0),
    (0.0, 0.0, -0.5),
    (0.0, 0.0, 1.0),
    (0.1, -0.05, 0.3),
)
CONFIG = EvaluateConfig(seeds=1, seconds=2.0, engine="native", commands=COMMANDS)


def test_the_grid_stays_within_the_ranges():
    full = command_grid(EvaluateConfig(), JOYSTICK.config.command)
    assert full.shape == (18, 7)
    assert {0.05, -0.05} < set(full[:, 0])
    assert not full[:, 3:].any()
    narrow = command_grid(EvaluateConfig(), CommandConfig(vx=(-0.1, 0.1)))
    assert len(narrow) == 16
    assert np.abs(narrow[:, 0]).max() == 0.1
    standing = command_grid(EvaluateConfig(), STANDING.config.command)
    assert not standing[:, :3].any()
    assert not standing[0].any()
    assert (standing[:, 3:] != 0).any(axis=0).all()
    beyond = EvaluateConfig(commands=((0.5, 0.0, 0.0),))
    with pytest.raises(PlaygroundError, match=r"0\.5.*vx -0\.15 to 0\.15"):
        command_grid(beyond, JOYSTICK.config.command)


@pytest.mark.parametrize("change", [{"seeds": 0}, {"batch": 0}, {"seconds": 1.0}])
def test_sizes_are_checked_at_the_door(change):
    with pytest.raises(PlaygroundError, match=next(iter(change))):
        EvaluateConfig(**change)


def test_a_policy_file_runs_inside_jit():
    def policy(obs):
        assert obs.ndim == 2
        return obs[:, :2] * 2

    policy.contract = types.SimpleNamespace(n_act=2)
    apply = onnx_policy_fn(policy)
    obs = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(jax.jit(apply)(obs), obs[:, :2] * 2)
    np.testing.assert_array_equal(jax.jit(jax.vmap(apply))(obs), obs[:, :2] * 2)


def almost_still(obs: jax.Array) -> jax.Array:
    """Stands, yet hands on every bit of its observation."""
    matrix = 0.1 * jax.random.normal(jax.random.key(1), (obs.shape[-1], 14))
    return 0.01 * jnp.tanh(obs @ matrix)


@pytest.fixture(scope="module")
def spec():
    models = RandomizationConfig(models=3)
    config = dataclasses.replace(JOYSTICK.config, randomization=models, sim_dt=0.004)
    return dataclasses.replace(JOYSTICK, config=config)


@pytest.fixture(scope="module")
def still(spec):
    return evaluate(spec, spec.config, almost_still, CONFIG)


def test_a_policy_that_stands_still_fails(still):
    assert not still.verdict.passed
    reasons = " ".join(still.verdict.reasons)
    for condition in (UNDISTURBED, DISTURBED):
        assert f"{condition}, vx +0.05: reached vx" in reasons
        assert f"{condition}, yaw -0.50: reached yaw" in reasons
    assert "zero" not in reasons
    summary = still.conditions[UNDISTURBED].summary
    assert (summary.episodes, summary.falls) == (7, 0)
    assert np.isnan(summary.cost_of_transport)


def test_starts_differ_and_disturbances_are_the_tasks(still, spec):
    episodes = still.conditions[UNDISTURBED].episodes
    assert len(np.unique(episodes.displacement[:, 0])) == 7
    for name in ("noise", "delays", "kicks", "start", "randomization"):
        assert getattr(still.env, name) == getattr(spec.config, name)


def test_a_report_is_written_once(still, tmp_path):
    folder = tmp_path / "a new folder"
    path = write_report(still, folder, policy="still.onnx", command="evaluate still")
    text = path.read_text()
    assert text.startswith("# Evaluation of still.onnx: FAIL")
    assert "evaluate still" in text
    assert "nan" not in text
    numbers = json.loads((folder / JSON).read_text())
    assert numbers["verdict"] == "FAIL"
    assert numbers["config"]["seconds"] == 2.0
    summary = numbers["conditions"][UNDISTURBED]["summary"]
    assert summary["episodes"] == 7
    assert summary["cost_of_transport"] is None
    for picture in ("velocity", "falls", "feet"):
        assert (folder / f"{picture}.png").stat().st_size > 10_000
    with pytest.raises(PlaygroundError, match=rf"{MARKDOWN}.* or --overwrite"):
        write_report(still, folder, policy="other", command="")
    assert (folder / MARKDOWN).read_text() == text
    check_folder(folder, overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_report_does_not_go_into_the_folder_of_a_run(tmp_path, overwrite):
    (tmp_path / "config.yaml").write_text("task: open_duck_joystick\n")
    with pytest.raises(PlaygroundError, match=r"folder of a run.*/evaluation$"):
        check_folder(tmp_path, overwrite)
    check_folder(tmp_path / "evaluation", overwrite)


def test_results_do_not_depend_on_the_batch(still, spec):
    small = dataclasses.replace(CONFIG, batch=3)
    commands = command_grid(CONFIG, spec.config.command)
    apart, _ = rollout(spec.make(still.env), almost_still, commands, small)
    for name, values in vars(still.conditions[DISTURBED].episodes).items():
        np.testing.assert_array_equal(values, vars(apart)[name], err_msg=name)
