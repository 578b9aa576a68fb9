"""A run from the command line: load, check, watch, tell."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from playground.errors import PlaygroundError
from playground.interface.loop import FixedCommand, Player, Summary, View, run
from playground.policy.runner import load_policy
from playground.runtime import configure
from playground.tasks.config import COMMAND_NAMES, LocomotionConfig
from playground.tasks.contract import play_config, published_contract, require_fit
from playground.tasks.locomotion import Locomotion
from playground.tasks.registry import task_spec

if TYPE_CHECKING:
    from playground.cli.infer import Arguments

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
    video, trace = (Path(p) if p else None for p in (chosen.video, chosen.trace))
    _check_outputs(video, trace, needs_screen=not (chosen.headless or video))
    policy = load_policy(path, published_contract())
    config = play_config(policy.contract, chosen.scene)
    require_fit(policy, config)
    command = _command(config, (*chosen.command, *chosen.head))
    config = dataclasses.replace(config, engine=chosen.engine)
    config = config if chosen.disturbed else config.undisturbed()
    print(configure())
    task = task_spec(policy.contract.task).make(config, chosen.seed)
    in_window = not (chosen.headless or video)
    seconds = chosen.seconds or (float("inf") if in_window else _SECONDS)
    player = Player(task, policy, command, chosen.seed, record=trace is not None)
    views = _views(task, video, chosen.headless)
    summary = run(player, FixedCommand(command), views, seconds, paced=in_window)
    if trace:
        summary.save_trace(trace)
    _tell(summary, video, trace)
    return 128 + summary.signal if summary.signal else 0


def _check_outputs(video: Path | None, trace: Path | None, needs_screen: bool) -> None:
    if trace and trace.exists():
        raise PlaygroundError(f"'{trace}' exists; give another name")
    if video:
        from playground.interface.video import check_path

        check_path(video)
    if needs_screen:
        from playground.interface.window import check_screen

        check_screen()


def _views(task: Locomotion, video: Path | None, headless: bool) -> list[View]:
    if video:
        from playground.interface.video import Video

        return [Video(video, task.robot.drawn_model(), task.config.control_period)]
    if headless:
        return []
    from playground.interface.window import Window

    return [Window(task.robot.drawn_model(), task.robot.base_body)]


def _command(config: LocomotionConfig, values: tuple[float, ...]) -> np.ndarray:
    for name, value, (low, high) in zip(
        COMMAND_NAMES, values, config.command.ranges, strict=True
    ):
        if not low <= value <= high:
            raise PlaygroundError(
                f"command {name} {value:g} is beyond {low:g} to {high:g}"
            )
    return np.array(values, np.float32)


def _tell(summary: Summary, video: Path | None, trace: Path | None) -> None:
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
    for path in (video, trace):
        if path:
            print(f"wrote {path}")
