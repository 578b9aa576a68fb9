"""Keeps MJX from printing, on its first import, that the extra `warp` is not installed.

MJX says so with `print`, whoever imports it first (Brax does too), so the place to
catch it is the import itself. All else that it says is passed on.
"""

import contextlib
import io
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader

_SAYS_SO = "mujoco.mjx.warp"
_KNOWN = "No module named 'warp'"


def hush_missing_warp() -> None:
    """Installs the filter for imports to come, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != _SAYS_SO:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module) -> None:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                super().exec_module(module)
        finally:
            for line in said.getvalue().splitlines():
                if _KNOWN not in line:
                    print(line)
