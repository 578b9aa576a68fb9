"""`playground check`: prove that this installation works."""

from collections.abc import Sequence

from playground.cli.parse import parse_none


def run(args: Sequence[str]) -> int:
    """Runs the command; see `playground check --help`."""
    parse_none(args, "playground check", "Prove that this installation works.")
    from playground.experiments.check import check_installation
    from playground.runtime import configure

    print(configure(), flush=True)
    failed = 0
    for what, works, detail in check_installation():
        failed += not works
        print(f"{'ok  ' if works else 'FAIL'} {what}: {detail}", flush=True)
    print(f"{failed} failed" if failed else "all works")
    return 1 if failed else 0
