"""A run from the command line: load, check, watch, tell."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from playground.errors import PlaygroundError, unknown
from playground.experiments.push.config import PushConfig
from playground.interface.loop import AnyPlayer, FixedCommand, SummaryT, View, run
from playground.interface.player import Player, Summary
from playground.policy.runner import load_policy
from playground.robots.robot import Robot
from playground.runtime import configure
from playground.tasks.config import COMMAND_NAMES, LocomotionConfig
from playground.tasks.contract import play_config, published_contract, require_fit
from playground.tasks.registry import task_spec

if TYPE_CHECKING:
    from playground.cli.infer import Arguments, BipedArguments, Shown

_SECONDS = 20.0  # where nobody can close a window


def watch(path: Path, chosen: "Arguments") -> int:
    """Runs a policy as asked and prints how it went.

    Args:
      path: The policy file.
      chosen: What was asked.

    Returns:
      Exit status: 0, or 128 + the signal that stopped it.

    Raises:
      PlaygroundError: a file, command or screen that does not do.
    """
    trace = Path(chosen.trace) if chosen.trace else None
    if trace and trace.exists():
        raise PlaygroundError(f"'{trace}' exists; give another name")
    _check_view(chosen)
    policy = load_policy(path, published_contract())
    config = play_config(policy.contract, chosen.scene)
    require_fit(policy, config)
    command = _command(config, (*chosen.command, *chosen.head))
    config = dataclasses.replace(config, engine=chosen.engine)
    config = config if chosen.disturbed else config.undisturbed()
    print(configure())
    task = task_spec(policy.contract.task).make(config, chosen.seed)
    player = Player(task, policy, command, chosen.seed, record=trace is not None)
    summary = _show(player, task.robot, command, chosen, _SECONDS)
    if trace:
        summary.save_trace(trace)
    _tell(summary)
    return _end(summary.signal, chosen.video, chosen.trace)


def push(chosen: "BipedArguments", config: PushConfig) -> int:
    """Shows a biped that is pushed and prints how it went.

    Args:
      chosen: What was asked.
      config: The same as of a sweep.

    Returns:
      Exit status: 0, or 128 + the signal that stopped it.

    Raises:
      PlaygroundError: a place to push, a file or a screen that does not do.
    """
    from playground.experiments.push.trials import PushTrials
    from playground.interface.push_player import PushPlayer

    _check_view(chosen)
    device = configure()
    trials = PushTrials(config)
    if chosen.scene not in (None, trials.robot.scene):
        scenes = (trials.robot.scene,)
        raise unknown("scene to push a biped in", str(chosen.scene), scenes)
    print(f"{device} | engine {trials.engine}")
    impulse = chosen.push * config.duration
    player = PushPlayer(trials, impulse, math.radians(chosen.direction))
    seconds = config.settle + config.watch
    summary = _show(player, trials.robot, np.zeros(0), chosen, seconds)
    print(summary.text())
    return _end(summary.signal, chosen.video)


def _check_view(chosen: "Shown") -> None:
    if chosen.video:
        from playground.interface.video import check_path

        check_path(Path(chosen.video))
    elif not chosen.headless:
        from playground.interface.window import check_screen

        check_screen()


def _show(
    player: AnyPlayer[SummaryT],
    robot: Robot,
    command: np.ndarray,
    chosen: "Shown",
    seconds: float,
) -> SummaryT:
    """Runs a player; for `seconds` if nothing else is asked and nobody can end it."""
    in_window = not (chosen.headless or chosen.video)
    seconds = chosen.seconds or (float("inf") if in_window else seconds)
    views = _views(robot, player.period, chosen)
    return run(player, FixedCommand(command), views, seconds, paced=in_window)


def _views(robot: Robot, period: float, chosen: "Shown") -> list[View]:
    if chosen.video:
        from playground.interface.video import Video

        return [Video(Path(chosen.video), robot.drawn_model(), period)]
    if chosen.headless:
        return []
    from playground.interface.window import Window

    return [Window(robot.drawn_model(), robot.base_body)]


def _command(config: LocomotionConfig, values: tuple[float, ...]) -> np.ndarray:
    for name, value, (low, high) in zip(
        COMMAND_NAMES, values, config.command.ranges, strict=True
    ):
        if not low <= value <= high:
            raise PlaygroundError(
                f"command {name} {value:g} is beyond {low:g} to {high:g}"
            )
    return np.array(values, np.float32)


def _tell(summary: Summary) -> None:
    asked, reached = summary.command, summary.velocity
    print(
        f"{summary.seconds:.1f} s, falls {summary.falls}, diverged {summary.diverged}, "
        f"{summary.realtime:.1f} x real time"
    )
    print(f"asked   {asked[0]:+.3f} {asked[1]:+.3f} m/s {asked[2]:+.3f} rad/s")
    if np.isfinite(reached).all():
        speeds = f"{reached[0]:+.3f} {reached[1]:+.3f} m/s {reached[2]:+.3f} rad/s"
        print(f"reached {speeds}")
    else:
        print("reached nothing that can be told: up for less than a second")


def _end(signal: int | None, *written: str | None) -> int:
    """Names the files written and returns the exit status."""
    for path in written:
        if path:
            print(f"wrote {path}")
    return 128 + signal if signal else 0
