"""`playground list`: what there is."""

import importlib.util
from collections.abc import Sequence

import yaml

from playground.cli.parse import parse_none
from playground.controllers.balance.gains import BALANCED, STRATEGIES
from playground.paths import asset_folder
from playground.tasks.registry import TASKS


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground list --help`."""
    parse_none(args, "playground list", "Show what there is.")
    from playground.robots.registry import ROBOTS

    for spec in ROBOTS.values():
        print(f"robot  {spec.name}: scenes {', '.join(spec.scenes)}")
    for name in BALANCED:
        print(f"control {name}: balance strategies {', '.join(STRATEGIES)}")
    servos = yaml.safe_load((asset_folder("configs") / "servos.yaml").read_text())
    for name, servo in servos.items():
        print(f"servo  {name}: {servo['description']}")
    for name, task in TASKS.items():
        presets = sorted(
            p.stem for p in (asset_folder("configs") / name).glob("*.yaml")
        )
        print(f"task   {name}: {task.description}; presets {', '.join(presets)}")
    warp = "" if importlib.util.find_spec("warp") else " (not installed)"
    print(f"engine native, mjx, warp{warp}")
    policies = sorted(asset_folder("policies").glob("*.onnx"))
    for path in policies:
        print(f"policy {path}")
    return 0
