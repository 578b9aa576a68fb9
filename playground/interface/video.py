"""Films a robot off-screen: MP4 or GIF, with what it does written into it."""

import os
import subprocess
from pathlib import Path
from typing import Protocol

import imageio.v2 as imageio
import imageio_ffmpeg
import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from playground.errors import PlaygroundError, unknown
from playground.interface.offscreen import Offscreen
from playground.interface.scene import Frame, Stage, follow_model

_SUFFIXES = (".mp4", ".gif")
_RATE = 25  # frames/s; a CPU without a GPU draws two or three in a second
_PANEL, _LABEL, _VALUE = (20, 26, 34, 150), (170, 184, 200), (255, 255, 255)


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
          period: s between two frames shown, of which it takes about 25 in a second.
          size: Width and height, pixels, even numbers.

        Raises:
          PlaygroundError: wrong suffix, a file that exists, or nothing that can draw.
        """
        check_path(path)
        if size[0] % 2 or size[1] % 2:
            raise PlaygroundError(f"a video's size must be even, got {size}")
        self._painter = Painter(model, size)
        self._every = max(1, round(1 / (_RATE * period)))
        self._path, self._count = path, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._part = path.with_name(f".part-{os.getpid()}-{path.name}")
        self._writer = _open(self._part, self._every * period, size)

    def show(self, frame: Frame) -> None:
        """Adds a frame."""
        self._count += 1
        if (self._count - 1) % self._every:
            return
        self._writer.append_data(np.asarray(self._painter.paint(frame)))

    def close(self) -> None:
        """Finishes the file."""
        self._writer.close()
        self._painter.close()
        if self._count:
            os.replace(self._part, self._path)
        else:
            self._part.unlink(missing_ok=True)


class Painter:
    """Paints frames as pictures, in memory."""

    def __init__(self, model: mujoco.MjModel, size: tuple[int, int]):
        """Opens a drawing surface.

        Args:
          model: With the visual shapes; its camera `track`, if any, is used.
          size: Width and height, pixels.

        Raises:
          PlaygroundError: nothing can draw here.
        """
        self._stage, self._camera = Stage(model), mujoco.MjvCamera()
        self._screen = Offscreen(model, size)
        follow_model(self._camera, model)
        self._unit = size[1] // 36  # height of a line of text, pixels
        self._font = ImageFont.load_default(self._unit)

    def paint(self, frame: Frame) -> Image.Image:
        """Returns a picture of the robot with the frame's text."""
        self._stage.place(frame)
        picture = Image.fromarray(self._screen.draw(self._stage.data, self._camera))
        self._label(picture, frame)
        return picture

    def close(self) -> None:
        """Lets go of the drawing surface."""
        self._screen.close()

    def _label(self, picture: Image.Image, frame: Frame) -> None:
        """Writes the frame's text on a panel in the upper left corner."""
        rows, unit = frame.text(), self._unit
        draw = ImageDraw.Draw(picture, "RGBA")  # the panel lets the scene through
        labels, values = ("\n".join(column) for column in zip(*rows, strict=True))
        left, value_left, top = 2 * unit, 6 * unit + unit // 2, 2 * unit
        spacing = unit // 2
        _, _, right, bottom = draw.textbbox(
            (value_left, top), values, self._font, spacing=spacing
        )
        # Digits differ in width: the panel is wide enough for any, so that it rests.
        right = max(right, value_left + 14 * unit)
        edges = (unit, unit, right + unit, bottom + unit)
        draw.rounded_rectangle(edges, radius=unit // 2, fill=_PANEL)
        draw.text((left, top), labels, _LABEL, self._font, spacing=spacing)
        draw.text((value_left, top), values, _VALUE, self._font, spacing=spacing)


def check_path(path: Path) -> None:
    """Checks that a video may be written; best before the run.

    Raises:
      PlaygroundError: wrong suffix, or the file exists.
    """
    if path.suffix not in _SUFFIXES:
        raise unknown("kind of video", path.suffix or path.name, _SUFFIXES)
    if path.exists():
        raise PlaygroundError(f"'{path}' exists; give another name")


class _Writer(Protocol):
    def append_data(self, picture: np.ndarray) -> None: ...
    def close(self) -> None: ...


class _Mp4:
    """Feeds pictures [height, width, 3] to ffmpeg.

    imageio's writer would fork after JAX has started threads, of which Python warns.
    """

    def __init__(self, path: Path, rate: float, size: tuple[int, int]):
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error"]
        command += ["-f", "rawvideo", "-pixel_format", "rgb24"]
        command += ["-video_size", f"{size[0]}x{size[1]}", "-framerate", f"{rate:g}"]
        # Readable by every player, and index first: it starts before it is all there.
        command += ["-i", "-", "-codec:v", "libx264", "-pix_fmt", "yuv420p"]
        command += ["-crf", "20", "-movflags", "+faststart", str(path)]
        # In a session of its own, Ctrl-C does not reach it before the last frame does.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, start_new_session=True
        )

    def append_data(self, picture: np.ndarray) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(picture.tobytes())
        except BrokenPipeError:
            raise PlaygroundError("ffmpeg stopped; see what it says above") from None

    def close(self) -> None:
        self._process.communicate()
        if self._process.returncode:
            raise PlaygroundError("ffmpeg failed; see what it says above")


def _open(path: Path, period: float, size: tuple[int, int]) -> _Writer:
    """Returns a writer of frames that are `period` (s) apart."""
    if path.suffix == ".gif":
        return imageio.get_writer(path, duration=1000 * period, loop=0)
    return _Mp4(path, 1 / period, size)
