"""`playground list`: what there is."""

import importlib.util
from collections.abc import Sequence

from playground.cli.parse import parse_none
from playground.config import read_yaml
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
    servos = read_yaml(asset_folder("configs") / "servos.yaml")
    for name, servo in servos.items():
        print(f"servo  {name}: {servo['description']}")
    for name, task in TASKS.items():
        presets = sorted(
            p.stem for p in (asset_folder("configs") / name).glob("*.yaml")
        )
        print(f"task   {name}: {task.description}; presets {', '.join(presets)}")
    warp = "" if importlib.util.find_spec("warp") else " (not installed)"
    print(f"engine native, mjx, warp{warp}")
    policies = sorted(str(p) for p in asset_folder("policies").glob("*.onnx"))
    for policy in policies or ["none shipped"]:
        print(f"policy {policy}")
    return 0
