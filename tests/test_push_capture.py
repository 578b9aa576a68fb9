"""A push written down: its numbers are right, its pictures there where one can draw."""

import csv
import json
import math

import jax
import numpy as np
import pytest
from conftest import quick_jit
from PIL import Image

from playground.cli import sweep
from playground.errors import PlaygroundError
from playground.experiments.push.bounds import distance_to_edge
from playground.experiments.push.config import PushConfig
from playground.experiments.push.record import Record, record_push
from playground.experiments.push.trials import PushTrials
from playground.interface import offscreen, push_capture
from playground.interface.gl import find_gl

IMPULSE, DIRECTION = 8.0, math.radians(30.0)
SETTLE, WATCH = 0.5, 0.8
NUMBERS = ["metrics.json", "timeseries.csv", "timeseries.png"]


@pytest.fixture(scope="module")
def trials() -> PushTrials:
    # The push is no whole number of steps long.
    return PushTrials(
        PushConfig(
            strategies="ankle+hip",
            duration=0.0771,
            settle=SETTLE,
            watch=WATCH,
            engine="native",
        )
    )


@pytest.fixture(scope="module")
def found(trials) -> Record:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "jit", quick_jit)
        return record_push(trials, IMPULSE, DIRECTION)


def written(trials, found, folder, monkeypatch) -> str:
    """Captures what was recorded before."""
    monkeypatch.setattr(push_capture, "record_push", lambda *_: found)
    # Cheap to draw.
    model = trials.robot.drawn_model()
    model.vis.quality.shadowsize = model.vis.quality.offsamples = 0
    monkeypatch.setattr(trials.robot, "drawn_model", lambda: model)
    return push_capture.capture(trials, IMPULSE, DIRECTION, folder, (320, 180))


def test_the_impulse_asked_is_delivered(found):
    given = found.samples.impulse.sum(0)
    asked = [IMPULSE * math.cos(DIRECTION), IMPULSE * math.sin(DIRECTION), 0.0]
    np.testing.assert_allclose(given, asked, rtol=1e-4, atol=1e-6)
    # 38 whole steps of 2 ms and a part of one; times are sums, and round.
    pushing = found.samples.time[np.abs(found.samples.impulse).max(1) > 0.01]
    assert len(pushing) == 39
    np.testing.assert_allclose(pushing[[0, -1]], [0.0, 0.076], atol=1e-5)


def test_all_criteria_agree_at_rest(found, trials):
    samples = found.samples
    rest = np.flatnonzero(samples.time < -1e-3)[-1]
    com = samples.com[rest, :2]
    for point in (samples.pressure[rest], samples.capture[rest], found.zmp[rest]):
        np.testing.assert_allclose(point, com, atol=2e-3)
    behind = distance_to_edge(trials.stance.corners, np.pi)
    assert samples.margin[rest] == pytest.approx(behind, abs=3e-3)
    weight = 9.81 * trials.stance.mass
    np.testing.assert_allclose(samples.load[rest], weight / 2, rtol=0.01)


def test_the_zero_moment_point_follows_from_the_motion(found):
    """Once the push is over the floor alone pushes: at the centre of pressure."""
    samples = found.samples
    late = samples.time > 0.4
    np.testing.assert_allclose(found.zmp[late], samples.pressure[late], atol=0.01)
    # During the push it also bears F z / (m g), against the direction of the push.
    middle = np.argmin(np.abs(samples.time - 0.06))
    off = found.zmp[middle] - samples.com[middle, :2]
    along = off @ [math.cos(DIRECTION), math.sin(DIRECTION)]
    assert along < -0.12


def test_files(trials, found, tmp_path, monkeypatch):
    try:
        find_gl()
    except PlaygroundError as error:
        pytest.skip(str(error))
    folder = tmp_path / "new" / "capture"
    told = written(trials, found, folder, monkeypatch)
    assert told.startswith("recovered: 8.00 N·s to 30 deg, strategy ankle+hip\n")
    names = {path.name for path in folder.iterdir()}
    assert names == {*NUMBERS, *push_capture.KEYFRAMES, "push.mp4", "push.gif"}
    pictures = [np.array(Image.open(folder / n)) for n in push_capture.KEYFRAMES]
    assert {picture.shape for picture in pictures} == {(180, 320, 3)}
    assert all((pictures[0] != picture).any() for picture in pictures[1:])
    with Image.open(folder / "push.gif") as film:
        assert film.n_frames == pytest.approx(25 * (SETTLE + WATCH), abs=1)


def test_without_anything_that_draws_the_numbers_are_written(
    trials, found, tmp_path, monkeypatch
):
    def nothing():
        raise PlaygroundError("nothing can draw")

    monkeypatch.setattr(offscreen, "find_gl", nothing)
    # As if it had been in the air at first, and then on one foot.
    pressure, swing = found.samples.pressure.copy(), found.samples.swing.copy()
    pressure[0], swing[1] = np.nan, 1
    samples = found.samples.replace(pressure=pressure, swing=swing)
    told = written(trials, found.replace(samples=samples), tmp_path, monkeypatch)
    assert told.endswith("but not its pictures: nothing can draw")
    assert sorted(path.name for path in tmp_path.iterdir()) == NUMBERS
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["recovered"] and not metrics["diverged"] and metrics["steps"] == 0
    assert metrics["impulse_asked_Ns"] == IMPULSE
    assert metrics["impulse_delivered_Ns"] == pytest.approx(IMPULSE, rel=1e-4)
    assert metrics["direction_deg"] == pytest.approx(30.0)
    assert 0.05 < metrics["time_to_recover_s"] < WATCH
    with (tmp_path / "timeseries.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == round((SETTLE + WATCH) / 0.002)
    assert rows[0]["cop_x_m"] == rows[0]["swing_foot"] == ""
    assert rows[1]["cop_x_m"] != "" and rows[1]["swing_foot"] == "right"
    times, offsets = (
        np.array([[float(row[name]) for name in names] for row in rows])
        for names in (["time_s"], ["com_offset_x_m", "com_offset_y_m"])
    )
    np.testing.assert_allclose(np.diff(times[:, 0]), 0.002, atol=1e-5)
    after = np.linalg.norm(offsets[times[:, 0] > 0], axis=1)
    assert after.max() == pytest.approx(metrics["peak_offset_m"], abs=1e-5)
    loads = [float(rows[200][f"{side}_load_N"]) for side in ("left", "right")]
    assert sum(loads) == pytest.approx(9.81 * trials.stance.mass, rel=0.01)


def test_a_robot_that_never_recovers_has_no_time_to(trials, found):
    samples = found.samples.replace(stands=np.zeros_like(found.samples.stands))
    final = found.final.replace(stands=np.bool_(False), peak_lean=np.float32(np.nan))
    lost = found.replace(final=final, samples=samples)
    told = push_capture.metrics(lost, trials, IMPULSE, DIRECTION)
    assert told["time_to_recover_s"] is None and told["peak_lean_rad"] is None
    assert not told["recovered"] and not told["diverged"]


def test_a_robot_diverges_only_if_it_has_not_fallen_before(trials, found):
    qpos, fallen = found.samples.qpos.copy(), found.samples.fallen.copy()
    qpos[400:], fallen[400:] = np.nan, True
    for first, diverged in ((400, True), (399, False)):
        fallen[first:] = True
        lost = found.replace(samples=found.samples.replace(qpos=qpos, fallen=fallen))
        told = push_capture.metrics(lost, trials, IMPULSE, DIRECTION)
        assert told["diverged"] == diverged


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--capture-impulse 3", "--capture-impulse needs --capture FOLDER"),
        ("--capture new --capture-impulse -2", "impulse must be within 0 to 1000"),
        ("--capture new --capture-direction nan", "direction must be within"),
        ("--capture new --capture-strategy hop", "unknown strategy 'hop'"),
        ("--capture new --out there", "takes no --out"),
        ("--capture full", "'full' holds something"),
        ("--capture full/file", "'full/file' holds something"),
        ("--capture new --height 9", "9 m is not on the robot"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(
    words, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(PlaygroundError, match=message):
        sweep.run(["push", *words.split()])
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
