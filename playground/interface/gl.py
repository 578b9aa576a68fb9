"""Finds what can draw without a screen. Loads fast, and before MuJoCo."""

import os
import subprocess
import sys

from playground.errors import PlaygroundError

# Best first.
_BACKENDS = ("egl", "osmesa")
_PROBE = "import mujoco; mujoco.GLContext(16, 16).make_current()"


def find_gl() -> str:
    """Finds what can draw without a screen, and sets MUJOCO_GL to it.

    A backend that fails can take the process with it, so each is tried in a process of
    its own. MUJOCO_GL is left alone where it is set.

    To be called before MuJoCo is imported, which looks at MUJOCO_GL once.

    Returns:
      The backend's name.

    Raises:
      PlaygroundError: none works.
    """
    chosen = os.environ.get("MUJOCO_GL")
    for backend in (chosen,) if chosen else _BACKENDS:
        environment = os.environ | {"MUJOCO_GL": backend}
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=environment,
            capture_output=True,
            check=False,
        )
        if probe.returncode == 0:
            os.environ["MUJOCO_GL"] = backend
            return backend
    raise PlaygroundError(
        f"nothing can draw without a screen (tried {chosen or ', '.join(_BACKENDS)}); "
        "install a GPU driver with EGL, or OSMesa (Debian: apt install libosmesa6)"
    )
