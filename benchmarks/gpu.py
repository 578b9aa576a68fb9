"""Environment steps a second of `mjx` and `warp` on a GPU, training included.

    pip install -e '.[cuda,warp]' && python benchmarks/gpu.py --out gpu.json

Takes under 8 minutes; what does not fit into --seconds is left out and said. Run on a
CPU it refuses, unless --device cpu is given to try the script itself.
"""

import argparse
import dataclasses
import importlib.util
import json
import time
from pathlib import Path

import jax

from playground.experiments.bench import (
    BenchConfig,
    bench_robot,
    physics_round,
    training_round,
)
from playground.learning.config import PPOConfig
from playground.physics.engines import make_physics
from playground.runtime import configure
from playground.tasks.brax_env import TrainingEnv
from playground.tasks.registry import task_spec

_ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--device", default="gpu", help="gpu or cpu")
    parser.add_argument("--seconds", type=float, default=440.0, help="time limit, s")
    parser.add_argument("--robots", type=int, nargs="+", default=[1024, 4096, 8192])
    chosen = parser.parse_args()
    print(configure(chosen.device), flush=True)
    deadline = time.perf_counter() + chosen.seconds
    engines = ["mjx"] + (["warp"] if importlib.util.find_spec("warp") else [])
    figures = []
    for robots in chosen.robots:
        for engine in engines:
            for what in (physics_rate, training_rate):
                name = f"{what.__name__} {engine} {robots}"
                if time.perf_counter() > deadline:
                    print(f"{name}: left out, no time")
                    continue
                rate, compile_s = what(engine, robots)
                figures.append(
                    {"what": what.__name__, "engine": engine, "robots": robots}
                    | {"env_steps_per_s": rate, "compile_s": compile_s}
                )
                print(f"{name}: {rate:,.0f} environment steps/s", flush=True)
                if chosen.out:
                    chosen.out.write_text(json.dumps(figures, indent=2))


def physics_rate(engine: str, robots: int) -> tuple[float, float]:
    """Control steps a second of the physics alone, and s until the first was done."""
    config = BenchConfig(robots=robots)
    robot = bench_robot()
    physics = make_physics(robot.model, engine, substeps=config.substeps)
    rate, compile_s = timed(physics_round(physics, robot, config))
    return rate / config.substeps, compile_s


def training_rate(engine: str, robots: int) -> tuple[float, float]:
    """Environment steps a second with PPO updates, and s until the first was done."""
    spec = task_spec("open_duck_joystick")
    task = spec.make(dataclasses.replace(spec.config, engine=engine))
    return timed(training_round(TrainingEnv(task), PPOConfig(num_envs=robots)))


def timed(round_) -> tuple[float, float]:
    start = time.perf_counter()
    round_()
    compile_s, start = time.perf_counter() - start, time.perf_counter()
    steps = sum(round_() for _ in range(_ROUNDS))
    rate = steps / (time.perf_counter() - start)
    jax.clear_caches()
    return rate, compile_s


if __name__ == "__main__":
    main()
