"""Films a robot off-screen: MP4 or GIF, with command and speed written into it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from playground.errors import PlaygroundError, unknown
from playground.interface.loop import Frame

# What can draw without a screen, best first.
_BACKENDS = ("egl", "osmesa")
_SUFFIXES = (".mp4", ".gif")
_GIF_RATE = 25  # frames/s; more makes files that nobody can send
_PROBE = "import mujoco; mujoco.GLContext(16, 16).make_current()"


def find_gl() -> str:
    """Finds what can draw without a screen, and sets MUJOCO_GL to it.

    A backend that fails can take the process with it, so each is tried in a process of
    its own. MUJOCO_GL is left alone where it is set.

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


class Video:
    """A view that films; the file is there, whole, once it is closed."""

    closed = False

    def __init__(
        self,
        path: Path,
        model: mujoco.MjModel,
        period: float,
        size: tuple[int, int] = (1280, 720),
    ):
        """Opens the file.

        Args:
          path: Ends in .mp4 or .gif.
          model: With the visual shapes; its camera `track`, if any, is used.
          period: s between two frames shown.
          size: Width and height, pixels.

        Raises:
          PlaygroundError: wrong suffix, a file that exists, or nothing that can draw.
        """
        check_path(path)
        find_gl()
        self._path = path
        self._skip = max(1, round(1 / (_GIF_RATE * period)))
        if path.suffix == ".mp4":
            self._skip = 1
        self._model, self._data = model, mujoco.MjData(model)
        self._renderer = mujoco.Renderer(model, size[1], size[0])
        self._camera = "track" if _has_camera(model, "track") else -1
        self._font = ImageFont.load_default(size[1] // 32)
        self._part = path.with_name(f".part-{os.getpid()}-{path.name}")
        self._part.parent.mkdir(parents=True, exist_ok=True)
        rate = 1 / (period * self._skip)
        # A generous bit rate: ducks on a chequered floor are hard to compress.
        options: dict[str, Any] = (
            {"fps": rate, "quality": 8, "macro_block_size": 8}
            if path.suffix == ".mp4"
            else {"duration": 1000 / rate, "loop": 0}
        )
        self._writer = imageio.get_writer(self._part, **options)
        self._count = 0

    def show(self, frame: Frame) -> None:
        """Adds a frame."""
        self._count += 1
        if (self._count - 1) % self._skip:
            return
        self._data.qpos[:] = frame.qpos
        mujoco.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        picture = Image.fromarray(self._renderer.render())
        self._write(picture, frame)
        self._writer.append_data(np.asarray(picture))

    def close(self) -> None:
        """Finishes the file."""
        self._writer.close()
        self._renderer.close()
        if self._count:
            os.replace(self._part, self._path)
        else:
            self._part.unlink(missing_ok=True)

    def _write(self, picture: Image.Image, frame: Frame) -> None:
        draw, edge = ImageDraw.Draw(picture), picture.height // 36
        for i, line in enumerate(describe(frame)):
            place = (edge, edge + i * picture.height // 24)
            draw.text(
                place,
                line,
                (255, 255, 255),
                self._font,
                stroke_width=2,
                stroke_fill=(40, 48, 56),
            )


def describe(frame: Frame) -> list[str]:
    """Returns lines that say what a frame shows."""
    asked, reached = frame.command[:3], frame.velocity
    lines = [
        f"{frame.time:5.1f} s",
        f"asked    {asked[0]:+.2f} {asked[1]:+.2f} m/s {asked[2]:+.2f} rad/s",
        f"reached {reached[0]:+.2f} {reached[1]:+.2f} m/s {reached[2]:+.2f} rad/s",
    ]
    if frame.falls:
        lines.append(f"falls {frame.falls}")
    if np.isfinite(frame.realtime):
        lines.append(f"{frame.realtime:.2f} x real time")
    return lines


def check_path(path: Path) -> None:
    """Checks that a video may be written; best before the run.

    Raises:
      PlaygroundError: wrong suffix, or the file exists.
    """
    if path.suffix not in _SUFFIXES:
        raise unknown("kind of video", path.suffix or path.name, _SUFFIXES)
    if path.exists():
        raise PlaygroundError(f"'{path}' exists; give another name")


def _has_camera(model: mujoco.MjModel, name: str) -> bool:
    return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, name) >= 0
