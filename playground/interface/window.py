"""MuJoCo's own viewer window, with a camera that follows."""

import atexit
import os
import subprocess
import sys
import threading
from typing import Any

import mujoco
import mujoco.viewer

from playground.errors import PlaygroundError
from playground.interface.scene import Frame, Stage, follow

_HINT = "use --headless, or --video out.mp4 to watch later"
_PATIENCE = 1.0  # s that the window gets to close
_TEXT_PERIOD = 0.1  # s
_PROBE = """
import sys, glfw
glfw.init()
glfw.window_hint(glfw.VISIBLE, 0)
sys.exit(not glfw.create_window(16, 16, "", None, None))
"""


class Window:
    """A view on the screen; the loop ends when it is closed."""

    def __init__(self, model: mujoco.MjModel, base_body: int):
        """Opens the window.

        Args:
          model: With the visual shapes.
          base_body: Body that the camera follows.

        Raises:
          PlaygroundError: there is no screen.
        """
        check_screen()
        self._stage = Stage(model)
        others = set(threading.enumerate())
        try:
            self._viewer: Any = mujoco.viewer.launch_passive(
                model, self._stage.data, show_left_ui=False, show_right_ui=False
            )
        except RuntimeError as error:
            hint = "start it with mjpython" if sys.platform == "darwin" else str(error)
            raise PlaygroundError(f"the viewer cannot open: {hint}") from error
        self._text = ("getting ready", "")
        self._closing = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._threads = {*threading.enumerate()} - others | {self._writer}
        with self._viewer.lock():
            follow(self._viewer.cam, model, base_body)
        self._writer.start()
        # A process that ends while a thread still draws can end in a crash.
        atexit.register(self.close)

    @property
    def closed(self) -> bool:
        """Whether the user closed the window."""
        return not self._viewer.is_running()

    def show(self, frame: Frame) -> None:
        """Shows a frame."""
        with self._viewer.lock():
            self._stage.place(frame)
        self._viewer.sync()
        labels, values = zip(*frame.text(), strict=True)
        self._text = "\n".join(labels), "\n".join(values)

    def close(self) -> None:
        """Closes the window."""
        atexit.unregister(self.close)
        self._closing.set()
        self._viewer.close()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _write(self) -> None:
        """Keeps the text up to date, in a thread of its own.

        MuJoCo takes text only when it next draws, and makes the caller wait for that,
        which without a GPU is longer than a control step.
        """
        place = (mujoco.mjtFontScale.mjFONTSCALE_150, mujoco.mjtGridPos.mjGRID_TOPLEFT)
        while not self._closing.wait(_TEXT_PERIOD) and not self.closed:
            self._viewer.set_texts((*place, *self._text))


def check_screen() -> None:
    """Checks that a window can open; best before anything compiles.

    Where it cannot, MuJoCo's viewer would wait for ever.

    Raises:
      PlaygroundError: there is none.
    """
    if sys.platform != "linux":
        return
    screens = [os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")]
    if not any(screens):
        raise PlaygroundError(f"no screen here: {_HINT}")
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True)
    if probe.returncode:
        named = ", ".join(screen for screen in screens if screen)
        raise PlaygroundError(f"no window can open on screen {named}: {_HINT}")
