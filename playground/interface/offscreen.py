"""Draws a model without a screen."""

import importlib

import mujoco
import numpy as np

from playground.errors import PlaygroundError
from playground.interface.gl import find_gl


class Offscreen:
    """Pictures of a model, drawn in memory.

    MuJoCo's own renderer takes the backend that MUJOCO_GL named when `mujoco` was first
    imported, and on Linux one that needs a screen where it named none. This one asks
    for a backend when it is made, whatever was imported before.
    """

    def __init__(self, model: mujoco.MjModel, size: tuple[int, int]):
        """Opens a drawing surface.

        Args:
          model: What is drawn; its off-screen buffer is made large enough.
          size: Width and height, pixels.

        Raises:
          PlaygroundError: nothing can draw here.
        """
        width, height = size
        buffer = model.vis.global_
        buffer.offwidth = max(buffer.offwidth, width)
        buffer.offheight = max(buffer.offheight, height)
        name = find_gl()
        try:
            self._gl = importlib.import_module(f"mujoco.{name}").GLContext(*size)
            self._gl.make_current()
            font = mujoco.mjtFontScale.mjFONTSCALE_100
            self._context = mujoco.MjrContext(model, font)
        except (ImportError, RuntimeError, mujoco.FatalError) as error:
            raise PlaygroundError(
                f"MUJOCO_GL={name} cannot draw here ({error}); unset it"
            ) from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, maxgeom=10_000)
        self._options = mujoco.MjvOption()
        self._area = mujoco.MjrRect(0, 0, width, height)
        self._model = model

    def draw(self, data: mujoco.MjData, camera: mujoco.MjvCamera) -> np.ndarray:
        """Returns the picture [height, width, 3], uint8."""
        self._gl.make_current()  # there may be several surfaces
        all_kinds = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            self._model, data, self._options, None, camera, all_kinds, self._scene
        )
        mujoco.mjr_render(self._area, self._scene, self._context)
        pixels = np.empty((self._area.height, self._area.width, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._area, self._context)
        return pixels[::-1]  # OpenGL starts at the bottom

    def close(self) -> None:
        """Lets go of the drawing surface."""
        # What is freed is looked up in the surface in use, by a number each has.
        self._gl.make_current()
        self._context.free()
        self._gl.free()
