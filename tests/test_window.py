"""The window opens on a real (virtual) screen, and ends promptly and quietly."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("Xvfb"), reason="needs Xvfb"),
]

SCRIPT = """
import sys
import numpy as np
from conftest import small_task
from playground.interface.loop import FixedCommand, run
from playground.interface.player import Player
from playground.interface.window import Window
from playground.tasks.locomotion import Locomotion

class Told(FixedCommand):
    def command(self, time):
        if time > 0.2:
            print("walking", flush=True)
        return super().command(time)

task = Locomotion(small_task().undisturbed())
if "leave" in sys.argv:
    window = Window(task.robot.drawn_model(), task.robot.base_body)
    sys.exit(3)
still = np.zeros(7, np.float32)
player = Player(task, lambda obs: np.zeros(14, np.float32), still, 0)
window = Window(task.robot.drawn_model(), task.robot.base_body)
summary = run(player, Told(still), [window], paced=True)
assert summary.falls == 0 and summary.realtime > 0.3, summary.realtime
sys.exit(128 + summary.signal if summary.signal else 0)
"""


@pytest.fixture(scope="module")
def screen():
    """The DISPLAY of a virtual screen."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24"]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as told:
        yield f":{told.readline().strip()}"
    server.terminate()
    server.wait()


def start(screen, *args):
    env = os.environ | {"DISPLAY": screen, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *args],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class ClientMessage(ctypes.Structure):
    """XClientMessageEvent, padded to the size of an XEvent."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("padding", ctypes.c_long * 24),
    )


def click_close(screen):
    """Tells every window what a click on its closing cross would."""
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XDefaultRootWindow.restype = x.XInternAtom.restype = ctypes.c_ulong
    display = ctypes.c_void_p(x.XOpenDisplay(screen.encode()))
    root = ctypes.c_ulong(x.XDefaultRootWindow(display))
    ignored, count = ctypes.c_ulong(), ctypes.c_uint()
    windows = ctypes.POINTER(ctypes.c_ulong)()
    x.XQueryTree(
        display,
        root,
        *[ctypes.byref(ignored)] * 2,
        ctypes.byref(windows),
        ctypes.byref(count),
    )
    event = ClientMessage(type=33, format=32)
    event.message_type = x.XInternAtom(display, b"WM_PROTOCOLS", 0)
    event.data[0] = x.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
    for window in windows[: count.value]:
        event.window = window
        x.XSendEvent(display, ctypes.c_ulong(window), 0, 0, ctypes.byref(event))
    x.XCloseDisplay(display)


@pytest.mark.parametrize("way", ["close", "SIGINT", "SIGTERM"])
def test_it_ends_within_two_seconds_and_quietly(screen, way):
    process = start(screen)
    assert process.stdout.readline() == "walking\n", process.communicate()
    time.sleep(1.0)
    started = time.perf_counter()
    if way == "close":
        click_close(screen)
    else:
        process.send_signal(getattr(signal, way))
    _, errors = process.communicate(timeout=30)
    assert time.perf_counter() - started < 2.0
    expected = 0 if way == "close" else 128 + getattr(signal, way)
    assert process.returncode == expected, errors
    assert "Traceback" not in errors


def test_leaving_with_the_window_open_does_not_crash(screen):
    process = start(screen, "leave")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 3, errors
