"""`playground evaluate POLICY`: measure a policy over a grid of commands."""

import dataclasses
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from playground.cli.parse import parse, take_word
from playground.errors import PlaygroundError
from playground.experiments.evaluate_config import EvaluateConfig


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What to measure, and where to write it."""

    out: str | None = None
    """Folder of the report; by default evaluation-NAME beside the policy."""
    overwrite: bool = False
    """Replace a report that is there."""
    scene: str | None = None
    """Scene of the robot; by default the one the policy was trained in."""
    sim_dt: float | None = None
    """Physics period, s; by default the one the policy was trained with."""
    config: Annotated[EvaluateConfig, tyro.conf.arg(name="")] = EvaluateConfig()
    """What to play."""


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground evaluate --help`."""
    line = shlex.join(["playground", "evaluate", *args])
    path, args = take_word(args)
    chosen = parse(
        Arguments(), args, "playground evaluate POLICY", "Measure a policy file."
    )
    if path is None:
        raise PlaygroundError("evaluate what? playground evaluate POLICY")
    policy_path = Path(path)
    out = policy_path.parent / f"evaluation-{policy_path.stem}"
    out = Path(chosen.out) if chosen.out else out
    from playground.experiments.evaluate import evaluate, onnx_policy_fn
    from playground.experiments.report import check_folder, write_report
    from playground.policy.runner import load_policy
    from playground.runtime import configure
    from playground.tasks.contract import play_config, published_contract, require_fit
    from playground.tasks.registry import task_spec

    check_folder(out, chosen.overwrite)
    policy = load_policy(policy_path, published_contract())
    env = play_config(policy.contract, chosen.scene, chosen.sim_dt)
    require_fit(policy, env)
    logging.getLogger("playground").setLevel(logging.INFO)
    print(configure(), flush=True)
    found = evaluate(
        task_spec(policy.contract.task), env, onnx_policy_fn(policy), chosen.config
    )
    report = write_report(
        found, out, policy=str(policy_path), command=line, overwrite=chosen.overwrite
    )
    print(f"report: {report}\nverdict: {found.verdict}")
    for reason in found.verdict.reasons:
        print(f"  {reason}")
    return 0 if found.verdict.passed else 1
