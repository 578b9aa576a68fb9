"""The command `playground`: picks a subcommand and turns mistakes into one line."""

import atexit
import gc
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence

from playground.errors import PlaygroundError, unknown

# Subcommand -> what it does. Each is a module here with `run(args) -> exit status`,
# imported only when asked for, so that help and mistakes come at once.
COMMANDS = {
    "list": "show robots, scenes, servos, tasks, presets, engines and policies",
    "train": "train a policy",
    "evaluate": "measure a policy: tracking, falls, effort",
    "infer": "run a policy: window, video or headless",
    "export": "write a run's policy file",
    "sweep": "find limits: thousands of robots in one batch",
    "optimize": "let evolution find the numbers of a controller",
    "check": "prove that this installation works",
    "bench": "measure speed as ratios against baselines in the same run",
}

_USAGE = "usage: playground COMMAND [--help | ...]\n\n" + "\n".join(
    f"  {name:10}{what}" for name, what in COMMANDS.items()
)


def main(args: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit status (2: a mistake of the user's)."""
    if args is None:
        _own_process()
    args = list(sys.argv[1:] if args is None else args)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    if not args or args[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    try:
        if args[0] not in COMMANDS:
            raise unknown("command", args[0], COMMANDS)
        module = importlib.import_module(f"playground.cli.{args[0]}")
        return module.run(args[1:])
    except PlaygroundError as error:
        print(f"playground: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    except OSError as error:
        place = f" '{error.filename}'" if error.filename else ""
        print(f"playground: {error.strerror or error}{place}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _own_process() -> None:
    """Sets up what only a process of one's own may: signals, exit, chatter."""
    # While it starts, JAX can swallow a KeyboardInterrupt; the kernel cannot. Loops
    # that have something to save take the signal over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Taking millions of JAX's objects apart one by one takes a second at exit.
    atexit.register(gc.freeze)
    # XLA tells at length how it reads its own compile cache.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
