"""A biped is pushed as asked, and what is shown and told of it is right."""

import copy

import jax
import numpy as np
import pytest
from conftest import quick_jit

from playground.cli import infer
from playground.cli.main import main
from playground.errors import PlaygroundError
from playground.experiments.push.bounds import distance_to_edge
from playground.experiments.push.config import PushConfig
from playground.experiments.push.record import single_push
from playground.experiments.push.trials import PushTrials
from playground.interface import push_player, session
from playground.interface.loop import Event, FixedCommand, run
from playground.interface.push_player import PushPlayer

NOTHING = FixedCommand(np.zeros(0))
# No whole number of the 2 ms of a step, and its end in none of the player's.
DURATION, IMPULSE = 0.0771, 8.0


class Views(list):
    """A view that keeps all frames."""

    closed = False

    def show(self, frame):
        self.append(frame)

    def close(self):
        pass


class Again(FixedCommand):
    """Asks for a restart once."""

    def __init__(self, step):
        super().__init__(np.zeros(0))
        object.__setattr__(self, "steps", iter(range(10**6)))
        object.__setattr__(self, "when", step)

    def events(self):
        return [Event.RESTART] if next(self.steps) == self.when else []


@pytest.fixture(scope="module")
def player() -> PushPlayer:
    config = PushConfig(
        strategies="ankle+hip", settle=0.4, duration=DURATION, engine="native"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "jit", quick_jit)
        return PushPlayer(PushTrials(config), IMPULSE, np.pi)


def pushed(player: PushPlayer, impulse: float) -> PushPlayer:
    """The same robot, set up, under another push."""
    other = copy.copy(player)
    other._push = single_push(player.trials, impulse, np.pi)
    other.restart()
    other.steps = 0
    return other


def test_it_stands_is_pushed_as_asked_and_recovers(player):
    frames = Views()
    summary = run(pushed(player, IMPULSE), NOTHING, [frames], 1.4)
    assert summary.impulse == pytest.approx(IMPULSE, rel=1e-4)
    assert (summary.outcome, summary.steps, summary.signal) == ("recovered", 0, None)
    assert summary.seconds == pytest.approx(1.4) and summary.strategy == "ankle+hip"
    assert summary.height == pytest.approx(player.trials.stance.push_height)
    assert 0.01 < summary.peak_offset < 0.1 and 0 < summary.peak_lean < 0.3
    for part in ("recovered: 8.00 N·s", "an ankle moved", "steps 0"):
        assert part in summary.text()
    rows = [dict(frame.text()) for frame in frames]
    assert list(rows[0]) == ["time", "push", "strategy", "margin", "lean", "state"]
    states = [row["state"] for row in rows]
    # A frame shows what was sensed 2 ms before: the push begins in the 21st.
    assert states[:20] == ["standing"] * 20 and states[20:23] == ["pushed"] * 3
    assert "recovering" in states[24:] and states[-1] == "standing"
    assert rows[9]["push"] == "104 N at 180 deg, in 0.2 s"
    assert rows[21]["push"].endswith("now") and rows[-1]["push"].endswith("0.9 s ago")
    # At rest the nearest edge is that behind it.
    margin = 100 * distance_to_edge(player.trials.stance.corners, np.pi)
    assert float(rows[18]["margin"].split()[0]) == pytest.approx(margin, abs=0.3)
    assert rows[18]["lean"] == "0.0 deg"


def test_a_restart_repeats_the_run_to_the_last_bit(player):
    frames = Views()
    summary = run(pushed(player, IMPULSE), Again(35), [frames], 1.4)
    for one, again in zip(frames[:35], frames[35:], strict=True):
        np.testing.assert_array_equal(one.qpos, again.qpos)
        assert one.rows == again.rows
    assert frames[-1].time == pytest.approx(1.4)
    assert summary.impulse == pytest.approx(IMPULSE, rel=1e-4)


def test_falls_and_what_is_not_over_are_told(player):
    assert run(pushed(player, IMPULSE), NOTHING, [], 0.4).outcome.startswith("not push")
    frames = Views()
    summary = run(pushed(player, 40.0), NOTHING, [frames], 1.8)
    assert summary.outcome == "fell" and summary.peak_lean > 0.5
    assert dict(frames[-1].rows)["state"] == "fallen"


def test_a_diverged_robot_is_shown_where_it_last_was(player):
    frames = Views()
    summary = run(pushed(player, 1e12), NOTHING, [frames], 0.6)
    assert summary.outcome == "diverged"
    assert np.isfinite([frame.qpos for frame in frames]).all()
    assert dict(frames[-1].rows)["margin"] == "-"


def test_the_command_shows_it(player, monkeypatch, capsys):
    made = []

    def make(trials, impulse, direction):
        made.append((trials.config, impulse, direction))
        return pushed(player, IMPULSE)

    monkeypatch.setattr(push_player, "PushPlayer", make)
    # Another precision would compile all of it anew.
    monkeypatch.setattr(session, "configure", lambda: "here")
    words = "--push 150 --direction 90 --no-hip --at 0.5 --headless --seconds 0.1"
    assert main(["infer", "biped", *words.split()]) == 0
    config, impulse, direction = made[0]
    assert (config.strategies, config.settle) == ("ankle", 0.5)
    assert impulse == pytest.approx(12.0) and direction == pytest.approx(np.pi / 2)
    assert "not pushed to the end: 0.00 N·s at 1.208 m" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--push -5", "--push must be 0 to"),
        ("--push nan", "--push must be 0 to"),
        ("--direction inf", "--direction must be finite"),
        ("--duration -1", "duration must be within"),
        ("--duration nan", "duration must be finite"),
        ("--at -1", "--at must be within"),
        ("--height 5 --headless", "5 m is not on the robot"),
        ("--height nan", "height must be torso, com or"),
        ("--strategy hop", "unknown strategy 'hop'"),
        ("--no-hip --strategy step", "takes no --strategy step"),
        ("--no-hip --strategy none", "takes no --strategy none"),
        ("--gains nowhere.yaml --headless", "gains file 'nowhere.yaml' does not exist"),
        ("--scene moon --headless", "unknown scene to push a biped in 'moon'"),
    ],
)
def test_mistakes_are_told_before_anything_compiles(words, message, monkeypatch):
    monkeypatch.setattr(push_player, "PushPlayer", None)
    with pytest.raises(PlaygroundError, match=message):
        infer.run(["biped", *words.split()])


def test_a_word_that_is_neither_policy_nor_robot_is_told_with_near_ones():
    with pytest.raises(PlaygroundError, match=r"mean 'biped'\? \(allowed: biped"):
        infer.run(["bipd"])
    with pytest.raises(PlaygroundError, match="run what"):
        infer.run([])
