"""Configuration: default < preset < command line; stored, and told by the help."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest

import playground.learning.session
from playground.cli import train
from playground.cli.main import main
from playground.config import (
    config_hash,
    merge,
    preset_path,
    read_yaml,
    to_dict,
    to_yaml,
)
from playground.errors import PlaygroundError
from playground.learning.config import EvaluationConfig, TrainConfig
from playground.learning.run_folder import RunFolder, read_config, write_config
from playground.paths import asset_folder
from playground.tasks.config import COMMAND_NAMES, CommandConfig
from playground.tasks.registry import TASKS

PRESETS = sorted(
    (task, path.stem)
    for task in TASKS
    for path in (asset_folder("configs") / task).glob("*.yaml")
)


def leaves(config, where: str = "") -> dict[str, object]:
    """{"ppo.clip": value} of all that can be set."""
    found: dict[str, object] = {}
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), f"{where}{field.name}"
        is_group = dataclasses.is_dataclass(value)
        found |= leaves(value, f"{name}.") if is_group else {name: value}
    return found


@pytest.fixture
def started(monkeypatch):
    """Stands in for the training and notes what it was asked to do."""
    calls = []

    def run_training(config, folder, seat, device, dry_run):
        calls.append((config, folder))
        return 0

    monkeypatch.setattr(playground.learning.session, "run_training", run_training)
    return calls


def test_merge_replaces_what_is_named_and_nothing_else():
    before = TrainConfig()
    values = {"ppo": {"clip": 1}, "env": {"command": {"vx": [-1, 1]}}, "seed": 2.0}
    after = merge(before, values)
    changed = {k: v for k, v in leaves(after).items() if v != leaves(before)[k]}
    assert changed == {"ppo.clip": 1.0, "env.command.vx": (-1.0, 1.0), "seed": 2}
    assert before == TrainConfig()
    assert isinstance(after.ppo.clip, float) and isinstance(after.seed, int)


def test_the_command_line_wins_over_the_preset_and_that_over_the_default(
    started, tmp_path
):
    preset = tmp_path / "mine.yaml"
    preset.write_text("total_steps: 1000\nppo: {num_envs: 64, clip: 0.3}\n")
    args = ["--preset", str(preset), "--out", str(tmp_path / "run")]
    assert main(["train", "open_duck_standing", *args, "--ppo.clip", "0.4"]) == 0
    config, folder = started[0]
    spec = TASKS["open_duck_standing"].config
    default = TrainConfig(task="open_duck_standing", env=spec)
    changed = {k: v for k, v in leaves(config).items() if v != leaves(default)[k]}
    assert changed == {"total_steps": 1000, "ppo.num_envs": 64, "ppo.clip": 0.4}
    assert folder.path == tmp_path / "run"


def test_a_resumed_run_takes_its_stored_config_in_the_presets_place(started, tmp_path):
    stored = train.preset_config("open_duck_standing", "quick")
    stored = merge(stored, {"ppo": {"clip": 0.3}, "seed": 5})
    write_config(RunFolder(tmp_path), stored)
    assert main(["train", "--resume", str(tmp_path), "--total-steps", "7"]) == 0
    assert started[0][0] == dataclasses.replace(stored, total_steps=7)


@pytest.mark.parametrize(("task", "preset"), PRESETS)
def test_every_preset_loads_and_says_something(task, preset):
    config = train.preset_config(task, preset)
    default = TrainConfig(task=task, env=TASKS[task].config)
    assert config.task == task and config != default


def test_every_task_has_the_presets_that_the_command_line_promises():
    for task in TASKS:
        assert {(task, "full"), (task, "quick")} <= set(PRESETS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ppo: {clipp: 1}", "did you mean 'ppo.clip'"),
        ("- 1", "holds no mapping"),
        ("a: [", ", line 1: expected the node content"),
        ("", "is empty"),
        ("# total_steps: 1\n", "is empty"),
        ("seed: 2000-99-99", "cannot read"),
        ("seed: 1\nppo: {}\nseed: 2\n", ", line 3: the key 'seed' stands twice"),
        ("ppo:\n  clip: 1\n  clip: 1\n", ", line 3: the key 'clip' stands twice"),
    ],
)
def test_a_mistake_in_a_preset_names_the_file(text, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(PlaygroundError, match=re.escape(message)) as error:
        train.preset_config("open_duck_joystick", str(path))
    assert str(error.value).count(str(path)) == 1


def test_a_preset_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PlaygroundError, match="full, quick"):
        preset_path("open_duck_joystick", "slow")
    with pytest.raises(PlaygroundError, match="does not exist"):
        preset_path("open_duck_joystick", str(tmp_path / "none.yaml"))


def test_keys_that_a_merge_brings_in_do_not_stand_twice(tmp_path):
    path = tmp_path / "merged.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n")
    assert read_yaml(path)["b"] == {"x": 3, "y": 2}


def test_a_run_without_its_config_is_refused(tmp_path, capsys):
    (tmp_path / "config.yaml").write_text("")
    assert main(["train", "--resume", str(tmp_path)]) == 2
    assert "config.yaml' is empty" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["1e6", "1_000_000", "1000000", "10.0e5"])
def test_whole_numbers_may_be_scientific(given, started, tmp_path):
    preset = tmp_path / "mine.yaml"
    preset.write_text(f"total_steps: {given}\n")
    out = ["--out", str(tmp_path / "run")]
    assert main(["train", "--total-steps", given, *out]) == 0
    assert main(["train", "--preset", str(preset), *out]) == 0
    for config, _ in started:
        steps = config.total_steps
        assert steps == 1_000_000 and isinstance(steps, int)


def test_the_effective_config_is_stored_and_read_back_the_same(tmp_path):
    config = merge(
        train.preset_config("open_duck_joystick", "quick"),
        {"seed": 3, "network": {"policy_layers": [8]}, "env": {"rate_limit": False}},
    )
    run = RunFolder(tmp_path / "run")
    digest = write_config(run, config)
    assert digest == config_hash(config)
    assert run.config.read_text() == f"# hash: {digest}\n{to_yaml(config)}"
    assert merge(TrainConfig(), read_config(run)) == config
    assert [p.name for p in run.path.iterdir()] == ["config.yaml"]


def test_the_hash_changes_with_every_value():
    config, seen = TrainConfig(), {config_hash(TrainConfig())}
    for path, value in leaves(config).items():
        values = to_dict(config)
        *groups, last = path.split(".")
        place = values
        for group in groups:
            place = place[group]
        place[last] = f"not {value}"
        seen.add(config_hash(dataclasses.make_dataclass("C", values)(**values)))
    assert len(seen) == 1 + len(leaves(config))


def test_help_explains_every_field(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        train.run(["--help"])
    assert stop.value.code == 0

    def plain(text: str) -> str:
        return re.sub(r"[\s│`]+", "", text)

    told = plain(capsys.readouterr().out)
    missing = []
    for name, doc in field_docs(train.Arguments(config=TrainConfig())).items():
        if not doc or plain(doc) not in told:
            missing.append(name)
    assert not missing


def field_docs(config, where: str = "") -> dict[str, str]:
    """{"ppo.clip": its docstring} of all fields but the groups."""
    source = Path(sys.modules[type(config).__module__].__file__ or "").read_text()
    body = source.split(f"class {type(config).__name__}", 1)[1]
    docs: dict[str, str] = {}
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), f"{where}{field.name}"
        if dataclasses.is_dataclass(value):
            docs |= field_docs(value, "" if name == "config" else f"{name}.")
            continue
        found = re.search(
            rf'^    {field.name}: [^\n]+\n    """(.+?)"""', body, re.DOTALL | re.M
        )
        docs[name] = found.group(1) if found else ""
    return docs


def test_every_key_is_read_somewhere():
    """A key that nothing reads is a trap; weights and commands are read as tables."""
    package = Path(playground.__file__).parent
    code = "".join(path.read_text() for path in package.rglob("*.py"))
    unread = [
        name
        for name in leaves(TrainConfig())
        if not name.startswith("env.weights.")
        and name.rpartition(".")[2] not in COMMAND_NAMES
        and not re.search(rf"\.{name.rpartition('.')[2]}\b", code)
    ]
    assert not unread


def test_defaults_cannot_be_changed_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainConfig().seed = 1  # type: ignore[misc]
    ranges = CommandConfig().ranges
    ranges[:] = 0.0
    assert CommandConfig().ranges.any()


def test_undisturbed_takes_all_disturbances_away_and_nothing_else():
    config = TASKS["open_duck_joystick"].config
    plain = config.undisturbed()
    assert plain.noise.level == 0 and not plain.kicks.on
    assert (plain.delays.action, plain.delays.imu) == (0, 0)
    assert (plain.start.joint, plain.start.yaw, plain.start.random_phase) == (0, 0, 0)
    assert plain.randomization.models == 0
    same = ("weights", "command", "gait", "scene", "servo", "sim_dt", "episode_s")
    assert all(getattr(plain, name) == getattr(config, name) for name in same)
    assert EvaluationConfig().every_steps > 0
