"""Command lines from dataclasses: every field a flag, one clear line for a mistake."""

import contextlib
import dataclasses
import io
import re
from collections.abc import Collection, Sequence
from typing import TypeVar

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

from playground.errors import PlaygroundError, unknown

T = TypeVar("T")
_RULES = ConstructorRegistry()


@dataclasses.dataclass(frozen=True)
class _Nothing:
    """No flags."""


def parse(default: T, args: Sequence[str], command: str, description: str) -> T:
    """Returns `default` with the values that the flags give.

    Args:
      default: A frozen dataclass; its fields are the flags, its values the defaults.
      args: The flags.
      command: For the help text, e.g. "playground train".
      description: For the help text.

    Raises:
      PlaygroundError: an unknown flag or a value that does not fit.
      SystemExit: --help was asked for and printed.
    """
    spoken = io.StringIO()
    try:
        with contextlib.redirect_stderr(spoken):
            return tyro.cli(
                type(default),
                default=default,
                args=list(args),
                prog=command,
                description=description,
                registry=_RULES,
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise PlaygroundError(_one_line(spoken.getvalue())) from None


def parse_none(args: Sequence[str], command: str, description: str) -> None:
    """Checks that a command without flags was given none.

    Raises:
      PlaygroundError: there are some.
      SystemExit: --help was asked for and printed.
    """
    parse(_Nothing(), args, command, description)


def take_word(args: Sequence[str]) -> tuple[str | None, list[str]]:
    """Splits off a leading word that is no flag: the task, the policy."""
    if args and not args[0].startswith("-"):
        return args[0], list(args[1:])
    return None, list(args)


def take_kind(
    args: Sequence[str], command: str, kinds: Collection[str]
) -> tuple[str | None, list[str]]:
    """Splits off the kind of a command that has several; None: help was printed.

    Raises:
      PlaygroundError: there is none, or no such kind.
    """
    kind, rest = take_word(args)
    usage = f"playground {command} KIND [--help | ...] (KIND: {', '.join(kinds)})"
    if kind is None and {"-h", "--help"} & set(rest):
        print(f"usage: {usage}")
        return None, rest
    if kind is None:
        raise PlaygroundError(f"{command} what? {usage}")
    if kind not in kinds:
        raise unknown(f"kind of {command}", kind, kinds)
    return kind, rest


def peek(args: Sequence[str], flag: str) -> str | None:
    """Returns the value of `--flag value` or `--flag=value` without taking it away.

    Raises:
      PlaygroundError: the flag has no value.
    """
    for i, arg in enumerate(args):
        if arg == flag:
            if i + 1 == len(args) or args[i + 1].startswith("--") or not args[i + 1]:
                raise PlaygroundError(f"{flag} needs a value")
            return args[i + 1]
        if arg == f"{flag}=":
            raise PlaygroundError(f"{flag} needs a value")
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return None


@_RULES.primitive_rule
def _integers(flag: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """Reads 1e6 too where an integer is asked for."""
    if flag.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: _whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


def _whole_number(text: str) -> int:
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        if (number := float(text)).is_integer():
            return int(number)
    raise ValueError(f"must be a whole number, got '{text}'")


def _one_line(text: str) -> str:
    """Returns the parser's boxed message as one line, without its drawing."""
    lines = [line.strip("│ ") for line in text.splitlines() if line.startswith("│")]
    message = re.sub(r"─+", "", " ".join(lines))
    message = re.sub(
        r"\s*(Argument helptext|For full helptext).*", "; see --help", message
    )
    return re.sub(r"\s+", " ", message).strip()
