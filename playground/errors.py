"""Mistakes of the user's: one line that says what was wrong and what is allowed."""

import difflib
from collections.abc import Iterable


class PlaygroundError(Exception):
    """A mistake of the user's, told in one line; the command line then exits with 2."""


def unknown(kind: str, name: str, allowed: Iterable[str]) -> PlaygroundError:
    """Returns the error for a name that is none of those allowed, with a near one.

    Args:
      kind: What the name should name, e.g. "joint".
      name: The name given.
      allowed: The names there are.
    """
    allowed = sorted(str(a) for a in allowed)
    near = difflib.get_close_matches(name, allowed, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return PlaygroundError(
        f"unknown {kind} '{name}'{hint} (allowed: {', '.join(allowed) or 'none'})"
    )
