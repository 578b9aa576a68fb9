"""MuJoCo's own viewer window, with a camera that follows."""

import os
import sys
from typing import Any

import mujoco
import mujoco.viewer

from playground.errors import PlaygroundError
from playground.interface.loop import Frame
from playground.interface.video import describe

_DISTANCE, _ELEVATION, _AZIMUTH = 1.2, -15.0, 140.0  # m, deg, deg


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
        self._model, self._data = model, mujoco.MjData(model)
        try:
            self._viewer: Any = mujoco.viewer.launch_passive(
                model, self._data, show_left_ui=False, show_right_ui=False
            )
        except RuntimeError as error:
            hint = "start it with mjpython" if sys.platform == "darwin" else str(error)
            raise PlaygroundError(f"the viewer cannot open: {hint}") from error
        with self._viewer.lock():
            camera = self._viewer.cam
            camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
            camera.trackbodyid = base_body
            camera.distance, camera.elevation = _DISTANCE, _ELEVATION
            camera.azimuth = _AZIMUTH

    @property
    def closed(self) -> bool:
        """Whether the user closed the window."""
        return not self._viewer.is_running()

    def show(self, frame: Frame) -> None:
        """Shows a frame."""
        with self._viewer.lock():
            self._data.qpos[:] = frame.qpos
            mujoco.mj_forward(self._model, self._data)
        place = (mujoco.mjtFontScale.mjFONTSCALE_150, mujoco.mjtGridPos.mjGRID_TOPLEFT)
        self._viewer.set_texts((*place, "\n".join(describe(frame)), ""))
        self._viewer.sync()

    def close(self) -> None:
        """Closes the window."""
        self._viewer.close()


def check_screen() -> None:
    """Checks that there is a screen; best before anything compiles.

    Raises:
      PlaygroundError: there is none.
    """
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in screens):
        raise PlaygroundError(
            "no screen here: use --headless, or --video out.mp4 to watch later"
        )
