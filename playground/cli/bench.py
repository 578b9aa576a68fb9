"""`playground bench`: speed as ratios against baselines in the same run."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from playground.cli.parse import parse
from playground.errors import PlaygroundError
from playground.tasks.registry import task_spec


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What to measure, and where to write it."""

    robots: int = 1024
    """Robots simulated at once."""
    rounds: int = 5
    """Rounds of baseline and candidate in turn; the median is the figure."""
    scene: str = "flat_backlash"
    """Scene of Open Duck."""
    out: str | None = None
    """JSON file to write the figures to."""


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground bench --help`."""
    chosen = parse(Arguments(), args, "playground bench", "Measure speed as ratios.")
    if chosen.robots < 4 or chosen.robots % 4 or chosen.rounds < 1:
        raise PlaygroundError("--robots must be a multiple of 4, --rounds 1 or more")
    if chosen.out and not Path(chosen.out).parent.is_dir():
        raise PlaygroundError(f"no folder '{Path(chosen.out).parent}' for --out")
    if chosen.out and Path(chosen.out).exists():
        raise PlaygroundError(f"'{chosen.out}' exists; give another name")
    from playground.experiments import bench
    from playground.experiments.hopper.speed import HopperSpeed
    from playground.experiments.push.speed import SweepSpeed
    from playground.runtime import configure

    print(f"{configure()} | {chosen.robots} robots, scene {chosen.scene}", flush=True)
    config = bench.BenchConfig(robots=chosen.robots, rounds=chosen.rounds)
    robot = bench.bench_robot(chosen.scene)
    env = task_spec("open_duck_joystick").config
    env = dataclasses.replace(env, scene=chosen.scene)
    figures = []
    sweep = SweepSpeed()
    for measure in (
        lambda: bench.native_against_rollout(robot, config),
        lambda: bench.native_against_mjx(robot, config),
        lambda: bench.training_against_physics(env, config),
        lambda: sweep.against_rollout(config.rounds),
        lambda: sweep.against_loop(config.rounds),
        lambda: HopperSpeed().against_rollout(config.rounds),
    ):
        figures.append(figure := measure())
        print(
            f"{figure.name:28} {figure.ratio:6.2f} (at least {figure.target:g}: "
            f"{'reached' if figure.reached else 'NOT reached'})  "
            f"{figure.candidate:,.0f} / {figure.baseline:,.0f} {figure.unit}",
            flush=True,
        )
    if chosen.out:
        values = [dataclasses.asdict(figure) for figure in figures]
        Path(chosen.out).write_text(json.dumps(values, indent=2))
    return 0
