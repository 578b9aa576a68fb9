"""The loop, video and window show a robot as it was trained, and end when told to."""

import itertools
import os
import signal
import sys
import time

import imageio.v3 as imageio
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from conftest import ROBOTS, small_task

from playground.errors import PlaygroundError
from playground.interface.gl import find_gl
from playground.interface.loop import Event, FixedCommand, run
from playground.interface.offscreen import Offscreen
from playground.interface.player import Player
from playground.interface.scene import Frame, follow_model
from playground.interface.video import Video
from playground.interface.window import check_screen
from playground.tasks.locomotion import Locomotion

ASKED = np.array([0.1, -0.05, 0.3, 0.2, 0.1, -0.4, 0.05], np.float32)
STILL = FixedCommand(np.zeros(7, np.float32))


def nothing(obs):
    return np.zeros(14, np.float32)


def feedback(obs):
    """Depends on the observation, and rounds alike in numpy and JAX."""
    return 0.25 * obs[..., 13:27]


@pytest.fixture(scope="module")
def task():
    """Nothing disturbs; its players share what the first one compiled."""
    task = Locomotion(small_task().undisturbed())
    first = Player(task, nothing, STILL.value, 0)
    yield task
    del first


class Script:
    """A source that goes through {step: command or event}."""

    def __init__(self, steps: dict):
        self._steps, self._step, self._command = steps, -1, np.zeros(7, np.float32)

    def events(self):
        self._step += 1
        now = self._steps.get(self._step)
        if isinstance(now, np.ndarray):
            self._command[:] = now  # the same array, time and again
        return [now] if isinstance(now, Event) else []

    def command(self, time):
        assert time == pytest.approx(self._step * 0.02)
        return self._command


class Spy:
    """A view that counts, and is closed by its user after a while."""

    def __init__(self, steps=10**6):
        self.frames, self._steps, self.ended = [], steps, False

    @property
    def closed(self):
        return len(self.frames) >= self._steps

    def show(self, frame):
        self.frames.append(frame)

    def close(self):
        self.ended = True


def channel(task, obs, name):
    """Columns of one channel of observations [T, n_obs]."""
    start = 0
    for each in task.observation.channels:
        if each.name == name:
            return obs[:, start : start + each.width]
        start += each.width
    raise KeyError(name)


def test_a_policy_that_does_nothing_stands(task):
    spy = Spy()
    summary = run(Player(task, nothing, ASKED, 0), FixedCommand(ASKED), [spy], 2.0)
    # Longer than the episodes of training: watching does not cut it short.
    assert (summary.steps, summary.seconds) == (100, pytest.approx(2.0))
    assert summary.falls == summary.diverged == 0 and summary.signal is None
    np.testing.assert_allclose(summary.velocity, 0, atol=0.02)
    np.testing.assert_array_equal(summary.command, ASKED)
    assert np.abs(summary.positions - summary.positions[0]).max() < 0.02
    assert summary.obs.shape == (100, 101) and summary.action.shape == (100, 14)
    assert [f.time for f in spy.frames] == pytest.approx(np.arange(1, 101) * 0.02)
    assert spy.ended and np.isnan(spy.frames[-1].realtime)


def test_observations_are_those_of_training(batch):
    """With noise, delays, kicks and randomised models; one robot against a batch."""
    seed, steps = 3, 40
    players = [Player(batch.task, feedback, ASKED, seed) for _ in range(2)]
    summary, again = (run(p, FixedCommand(ASKED), seconds=0.8) for p in players)
    np.testing.assert_array_equal(summary.obs, again.obs)
    keys = jax.vmap(jax.random.key)(jnp.arange(ROBOTS))
    state, obs = batch.reset(keys, jnp.tile(ASKED, (ROBOTS, 1)))
    seen = []
    for _ in range(steps):
        seen.append(np.asarray(obs["state"][seed]))
        state, outcome = batch.step(state, feedback(obs["state"]))
        obs = outcome.obs
        assert not outcome.terminated[seed]
    assert summary.falls == 0
    for each in batch.task.observation.channels:
        np.testing.assert_allclose(
            channel(batch.task, summary.obs, each.name),
            channel(batch.task, np.array(seen), each.name),
            atol=1e-5,
            err_msg=each.name,
        )


def test_a_command_is_observed_in_the_step_it_is_given(task):
    source = Script({0: 0 * ASKED, 7: ASKED, 12: -ASKED})
    player = Player(task, feedback, 0 * ASKED, 0)
    summary = run(player, source, seconds=0.4)
    expected = np.repeat([0 * ASKED, ASKED, -ASKED], [7, 5, 8], axis=0)
    np.testing.assert_array_equal(channel(task, summary.obs, "command"), expected)
    np.testing.assert_array_equal(player.state.command, -ASKED)
    # All else is as if the last command had been there from the start.
    other = run(Player(task, feedback, -ASKED, 0), FixedCommand(-ASKED), seconds=0.4)
    rest = summary.obs - other.obs
    channel(task, rest, "command")[:] = 0
    np.testing.assert_allclose(rest, 0, atol=1e-6)


def test_a_trace_is_saved_and_never_over_another(task, tmp_path):
    summary = run(Player(task, feedback, ASKED, 1), FixedCommand(ASKED), seconds=0.1)
    path = tmp_path / "new" / "trace"
    summary.save_trace(path)
    with np.load(path) as trace:
        np.testing.assert_array_equal(trace["obs"], summary.obs)
        np.testing.assert_array_equal(trace["action"], feedback(summary.obs))
    with pytest.raises(PlaygroundError, match="exists"):
        summary.save_trace(path)


def test_a_robot_that_fell_lies_a_second_and_stands_again(task):
    throw = np.full(14, 8.0, np.float32)
    player = Player(task, lambda obs: throw, 0 * ASKED, 0)
    summary = run(player, STILL, seconds=4.0)
    height = summary.positions[:, 2]
    up_again = np.flatnonzero(np.diff(height) > 0.05)  # set up in one step
    assert summary.diverged == 0 and len(up_again) >= 1
    assert summary.falls in (len(up_again), len(up_again) + 1)  # the last may lie yet
    assert (np.diff(up_again) > 50).all()
    assert np.isnan(summary.velocity).all()  # it was never up for long
    assert player._step._cache_size() == player._reset._cache_size() == 1


def test_a_policy_without_numbers_is_refused(task):
    bad = np.full(14, np.nan, np.float32)
    player = Player(task, lambda obs: bad, 0 * ASKED, 0)
    with pytest.raises(PlaygroundError, match="actions that are not finite"):
        run(player, STILL, seconds=1.5)


def test_sources_restart_and_quit(task):
    source = Script({0: ASKED, 10: Event.RESTART, 15: Event.QUIT})
    summary = run(Player(task, feedback, ASKED, 0), source)
    assert summary.steps == 15 and summary.falls == 0
    np.testing.assert_array_equal(summary.obs[10:], summary.obs[:5])


def test_views_and_signals_end_the_run(task):
    spies = [Spy(5), Spy()]
    assert run(Player(task, nothing, 0 * ASKED, 0), STILL, spies).steps == 5
    assert all(spy.ended for spy in spies)
    for number in (signal.SIGTERM, signal.SIGINT):
        before, spy = signal.getsignal(number), Spy()
        calls = itertools.count()

        def policy(obs, calls=calls, number=number):
            if next(calls) == 3:
                os.kill(os.getpid(), number)
            return nothing(obs)

        summary = run(Player(task, policy, 0 * ASKED, 0), STILL, [spy])
        assert summary.signal == number and summary.steps == 4 and spy.ended
        assert signal.getsignal(number) is before


def test_pace_is_kept_and_shown(task):
    spy, player = Spy(), Player(task, nothing, 0 * ASKED, 0, record=False)
    started = time.perf_counter()
    summary = run(player, STILL, [spy], 0.6, paced=True)
    assert time.perf_counter() - started > 0.55 and summary.realtime < 1.1
    assert 0.0 < spy.frames[-1].realtime < 1.1
    assert summary.obs.shape == (0, 101) and summary.positions.shape == (0, 3)


def film(task, path, frames=25, size=(320, 180)):
    """Films a robot that slides along at 1 m/s, in pictures cheap to draw."""
    model = task.robot.drawn_model()
    model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
    video = Video(path, model, 0.02, size)
    for i in range(2 * frames):
        qpos = task.robot.home_qpos.copy()
        qpos[0] += 0.02 * i
        video.show(Frame(0.02 * i, qpos, (("asked", "much"),), 1.0))
    video.close()


@pytest.mark.filterwarnings("ignore:os.fork")  # imageio's reader does, our film not
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video(task, tmp_path, suffix):
    try:
        find_gl()
    except PlaygroundError as error:
        pytest.skip(str(error))
    path = tmp_path / "new folder" / f"duck{suffix}"
    film(task, path)
    frames = imageio.imread(path)
    assert frames.shape == (25, 180, 320, 3)
    assert os.listdir(path.parent) == [path.name]
    if suffix == ".mp4":
        assert imageio.immeta(path)["duration"] == pytest.approx(1.0)
    # The robot's orange stays in the middle: the camera follows.
    red, _, blue = (frames[..., i].astype(int) for i in range(3))
    columns = [np.nonzero(picture)[1] for picture in red - blue > 100]
    assert all(100 < np.median(found) < 220 for found in columns)
    with pytest.raises(PlaygroundError, match="exists"):
        film(task, path, 0)


def test_surfaces_do_not_draw_into_each_other():
    try:
        find_gl()
    except PlaygroundError as error:
        pytest.skip(str(error))
    red, blue = (
        mujoco.MjModel.from_xml_string(
            "<mujoco><worldbody><light pos='0 0 9'/>"
            f"<geom size='1' rgba='{rgba}'/></worldbody></mujoco>"
        )
        for rgba in ("1 0 0 1", "0 0 1 1")
    )
    camera = mujoco.MjvCamera()
    camera.distance, camera.elevation = 4.0, -60.0
    scenes = [(m, mujoco.MjData(m), Offscreen(m, (64, 48))) for m in (red, blue)]
    for model, data, _ in scenes:
        mujoco.mj_forward(model, data)
    first, second = ([s.draw(d, camera) for _, d, s in scenes] for _ in range(2))
    assert first[0][24, 32].argmax() == 0 and first[1][24, 32].argmax() == 2
    np.testing.assert_array_equal(first, second)
    scenes[0][2].close()
    np.testing.assert_array_equal(scenes[1][2].draw(scenes[1][1], camera), first[1])
    scenes[1][2].close()


def test_video_refuses_other_kinds(task, tmp_path):
    with pytest.raises(PlaygroundError, match=r"'\.avi' \(allowed: \.gif, \.mp4\)"):
        film(task, tmp_path / "a.avi", 0)
    with pytest.raises(PlaygroundError, match="even"):
        film(task, tmp_path / "a.mp4", 0, size=(321, 180))


def test_a_model_without_a_camera_is_followed():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='fixed'><geom size='1'/></body>"
        "<body name='free'><freejoint/><geom size='1'/></body></worldbody></mujoco>"
    )
    camera = mujoco.MjvCamera()
    follow_model(camera, model)
    assert camera.type == mujoco.mjtCamera.mjCAMERA_TRACKING
    assert camera.trackbodyid == model.body("free").id


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a screen")
@pytest.mark.parametrize("display", [None, ":4242"])
def test_no_screen_is_said_with_a_way_out(monkeypatch, display):
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    if display:
        monkeypatch.setenv("DISPLAY", display)
    with pytest.raises(PlaygroundError, match="--headless, or --video"):
        check_screen()
