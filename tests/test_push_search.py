"""The search for critical impulses, on robots whose edges are known by hand."""

import dataclasses
import json
import os
import shlex
import signal
import sys
import types

import numpy as np
import pytest

from playground.cli import sweep as command
from playground.errors import PlaygroundError
from playground.experiments.push.bounds import Stance
from playground.experiments.push.cases import Cases, Outcomes
from playground.experiments.push.config import PushConfig
from playground.experiments.push.search import Search
from playground.experiments.push.sweep import STATE, sweep
from playground.learning.run_folder import RunFolder, write_config

CONFIG = PushConfig(strategies="ankle,step", directions=4, max_impulse=40.0)
FOOT = np.array([[0.12, 0.2], [0.12, -0.2], [-0.1, 0.2], [-0.1, -0.2]])


class Fake:
    """Robots that stand where `stands(cases)` says so; notes what it was given."""

    stance = Stance(35.0, 0.963, np.diag([7.0, 6.0, 1.0]), FOOT, 1.193)
    steps_per_case = 2500
    engine = "fake"

    def __init__(self, stands, diverges=lambda cases: np.zeros(len(cases), bool)):
        self.stands, self.diverges, self.rounds = stands, diverges, []

    def compile(self) -> float:
        return 0.0

    def run(self, cases: Cases) -> Outcomes:
        self.rounds.append(cases)
        one = np.float32(1.0)
        return Outcomes(
            recovered=self.stands(cases),
            diverged=self.diverges(cases),
            moved=0.001 * cases.impulse * one,
            saturated_s=0.01 * cases.impulse * one,
            peak_lean=0.02 * cases.impulse * one,
            peak_offset=0.03 * cases.impulse * one,
        )


def up_to(edge: float) -> Fake:
    return Fake(lambda cases: cases.impulse <= edge)


def find(config: PushConfig, fake: Fake) -> Search:
    search = Search(config)
    while not search.done:
        cases = search.pending()
        search.record(cases, fake.run(cases))
    assert len(search.pending()) == 0
    return search


def varied(cases: Cases) -> np.ndarray:
    """Edges of 5.43 to 16.43 N·s by row; `step` has a hole of 1 N·s at 4."""
    quarter = np.rint(cases.direction / (np.pi / 2))
    edge = 5.43 + quarter + 5 * cases.strategy + 3 * cases.model
    hole = (cases.strategy == 1) & (np.abs(cases.impulse - 4.0) < 0.5)
    return (cases.impulse <= edge) & ~hole


def test_every_row_is_found_to_the_resolution_in_few_rounds():
    config = dataclasses.replace(CONFIG, strategies="ankle", models=2)
    fake = Fake(varied)
    edges = find(config, fake).edges()
    order = [(e.strategy, round(np.degrees(e.direction)), e.model) for e in edges]
    assert order == [("ankle", d, m) for d in (0, 90, 180, 270) for m in range(3)]
    for edge in edges:
        true = 5.43 + round(edge.direction / (np.pi / 2)) + 3 * edge.model
        assert edge.critical <= true < edge.first_failure
        assert edge.first_failure - edge.critical <= 0.1
        assert edge.last_success == edge.critical and edge.holes == ()
        assert not edge.censored and edge.diverged == 0
        assert edge.moved == pytest.approx(0.001 * edge.critical)
        assert edge.saturated_s == pytest.approx(0.01 * edge.critical)
    # Brackets of 40/5, 8/5, 1.6/5 and 0.064 N·s, then the grid, all rows at once.
    assert [len(cases) for cases in fake.rounds[:4]] == [72, 48, 48, 48]
    assert len(fake.rounds) == 5
    below = sum(int(edge.critical) for edge in edges)  # 8 N·s was tried before
    assert len(fake.rounds[4]) == below - sum(edge.critical > 8 for edge in edges)


def test_the_first_round_holds_nothing_and_the_most():
    cases = Search(dataclasses.replace(CONFIG, levels=3)).pending()
    assert len(cases) == 2 * 4 * 5
    np.testing.assert_allclose(cases.impulse[:5], [0, 10, 20, 30, 40])
    np.testing.assert_array_equal(cases.strategy, np.repeat([0, 1], 20))
    assert not cases.model.any()


@pytest.mark.parametrize("resolution", [0.05, 0.01])
@pytest.mark.parametrize("levels", [1, 7])
def test_levels_and_resolution_are_free(levels, resolution):
    config = dataclasses.replace(CONFIG, levels=levels, resolution=resolution)
    for edge in find(config, up_to(10.017)).edges():
        assert edge.critical <= 10.017 < edge.first_failure
        assert edge.first_failure - edge.critical <= 2 * resolution + 1e-9


def test_an_impulse_on_the_edge_is_not_tried_twice():
    fake = up_to(8.0)
    search = find(CONFIG, fake)
    tried = np.concatenate(
        [c.impulse[(c.strategy == 0) & (c.direction == 0)] for c in fake.rounds]
    )
    assert len(np.unique(tried.round(6))) == len(tried)
    assert {edge.critical for edge in search.edges()} == {8.0}


def test_a_hole_below_the_edge_is_the_edge():
    # Falls at 4.6 to 5.3 N·s, which the search misses: it sees 0, 8, 16, ...
    fake = Fake(lambda c: (c.impulse < 20) & ~((c.impulse > 4.6) & (c.impulse < 5.3)))
    edges = find(CONFIG, fake).edges()
    for edge in edges:
        assert edge.critical <= 4.6 < edge.first_failure <= edge.critical + 0.1
        assert edge.last_success == pytest.approx(20, abs=0.1)
        assert 5.0 in edge.holes and all(4.6 < hole < 5.3 for hole in edge.holes)
        assert edge.first_failure == edge.holes[0]
    # Without the grid the hole stays unseen.
    blind = find(dataclasses.replace(CONFIG, grid=0.0), fake).edges()
    assert all(e.critical > 19.9 and not e.holes for e in blind)


def test_a_robot_that_falls_unpushed_withstands_nothing():
    (edge, *_) = edges = find(CONFIG, up_to(-1.0)).edges()
    assert {e.critical for e in edges} == {0.0}
    assert edge.first_failure == 0.0 and edge.last_success is None
    assert edge.trials == 6 and np.isnan(edge.saturated_s) and not edge.censored


def test_a_robot_that_never_falls_is_told_so():
    for edge in find(CONFIG, up_to(np.inf)).edges():
        assert edge.censored and edge.critical == 40.0 == edge.last_success
        assert edge.first_failure is None
        assert edge.trials == 6 + 39 - 4  # the grid has 8, 16, 24 and 32 already


def test_diverged_robots_did_not_recover():
    fake = Fake(lambda c: c.impulse < 99, diverges=lambda c: c.impulse > 12)
    for edge in find(CONFIG, fake).edges():
        assert edge.critical <= 12 < edge.first_failure <= edge.critical + 0.1
        assert edge.diverged > 0 and edge.last_success == edge.critical


def test_what_remains_is_known_but_for_holes():
    search, fake = Search(CONFIG), up_to(11.3)
    assert search.remaining == 8 * 4 * 4
    left = []
    while not search.done:
        cases = search.pending()
        search.record(cases, fake.run(cases))
        left.append(search.remaining)
    assert left[-1] == 0 and left == sorted(left, reverse=True)


def test_a_search_stored_after_any_round_goes_on_the_same():
    config = dataclasses.replace(CONFIG, models=1)
    straight = find(config, Fake(varied))
    fake, search = Fake(varied), Search(config)
    while not search.done:
        stored = json.loads(json.dumps(search.to_dict()))
        search = Search.from_dict(config, stored)
        cases = search.pending()
        search.record(cases, fake.run(cases))
    assert search.to_dict() == straight.to_dict()
    assert search.edges() == straight.edges()


def test_a_search_of_other_rows_is_refused():
    stored = find(CONFIG, up_to(3.0)).to_dict()
    with pytest.raises(PlaygroundError, match="other rows"):
        Search.from_dict(dataclasses.replace(CONFIG, directions=2), stored)
    with pytest.raises(PlaygroundError, match="no search"):
        Search.from_dict(CONFIG, {"row": [0]})


def interrupted(after: int) -> Fake:
    """Sends itself a SIGINT, as Ctrl-C does, in round `after`."""

    def stands(cases: Cases) -> np.ndarray:
        if len(fake.rounds) == after:
            os.kill(os.getpid(), signal.SIGINT)
        return varied(cases)

    fake = Fake(stands)
    return fake


def test_ctrl_c_keeps_the_rounds_and_a_resume_ends_the_same(tmp_path):
    straight = RunFolder(tmp_path / "straight")
    write_config(straight, CONFIG)
    whole = sweep(CONFIG, Fake(varied), straight)
    assert whole.signal is None
    assert whole.robots("search") + whole.robots("grid") == sum(
        each.robots for each in whole.rounds
    )

    folder = RunFolder(tmp_path / "stopped")
    write_config(folder, CONFIG)
    stopped = sweep(CONFIG, interrupted(2), folder)
    assert stopped.signal == signal.SIGINT and len(stopped.rounds) == 2
    rest = Fake(varied)
    resumed = sweep(CONFIG, rest, folder)
    assert resumed.signal is None and resumed.edges == whole.edges
    assert len(rest.rounds) == len(whole.rounds) - 2
    tried = [
        json.loads((f.path / STATE).read_text())["tried"] for f in (straight, folder)
    ]
    assert tried[0] == tried[1]
    # Nothing is left: nothing is pushed.
    again = Fake(varied)
    assert sweep(CONFIG, again, folder).edges == whole.edges and not again.rounds


def test_a_second_ctrl_c_stops_at_once_with_the_rounds_before(tmp_path):
    def stands(cases: Cases) -> np.ndarray:
        if len(fake.rounds) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return varied(cases)

    fake, folder = Fake(stands), RunFolder(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sweep(CONFIG, fake, folder)
    state = json.loads((tmp_path / STATE).read_text())
    assert len(state["rounds"]) == 1


def test_a_sweep_stored_otherwise_is_refused(tmp_path):
    sweep(CONFIG, up_to(3.0), RunFolder(tmp_path))
    other = dataclasses.replace(CONFIG, duration=0.1)
    with pytest.raises(PlaygroundError, match="was made with config"):
        sweep(other, up_to(3.0), RunFolder(tmp_path))
    (tmp_path / STATE).write_text("{")
    with pytest.raises(PlaygroundError, match="holds no rounds"):
        sweep(CONFIG, up_to(3.0), RunFolder(tmp_path))


def test_the_command_tells_mistakes(tmp_path):
    for args, message in (
        ([], "sweep what"),
        (["pull"], "unknown kind of sweep 'pull'.*push"),
        (["push", "--strategies", "ankel"], "mean 'ankle'"),
        (["push", "--directions", "0"], "directions must be within"),
        (["push", "--height", "hip"], "height must be torso, com or a number"),
        (["push", "--resume", str(tmp_path)], "cannot resume.*no run in"),
        (["push", "--resume", "a", "--out", "b"], "takes no --out"),
    ):
        with pytest.raises(PlaygroundError, match=message):
            command.run(args)
    write_config(RunFolder(tmp_path), CONFIG)
    with pytest.raises(PlaygroundError, match="levels 4 -> 5"):
        command.run(["push", "--resume", str(tmp_path), "--levels", "5"])
    with pytest.raises(PlaygroundError, match="holds another run"):
        command.run(["push", "--out", str(tmp_path)])


def test_the_command_sweeps_stops_and_resumes(tmp_path, monkeypatch, capsys):
    fakes = [interrupted(1), Fake(varied)]
    trials = types.ModuleType("trials")
    trials.PushTrials = lambda config: fakes[0]
    monkeypatch.setitem(sys.modules, "playground.experiments.push.trials", trials)
    monkeypatch.setattr("playground.runtime.configure", lambda: "one CPU")
    out = tmp_path / "out"
    flags = ["--strategies", "ankle,step", "--directions", "4"]
    assert command.run(["push", *flags, "--out", str(out)]) == 128 + signal.SIGINT
    assert (
        f"go on with: playground sweep push --resume {out}" in capsys.readouterr().out
    )
    assert not (out / "push.md").exists()
    del fakes[0]
    assert command.run(["push", "--resume", str(out)]) == 0
    assert "report: " in capsys.readouterr().out
    numbers = json.loads((out / "push.json").read_text())
    # The command line that repeats it is not the one that resumed it.
    assert numbers["command"] == shlex.join(["playground", "sweep", "push", *flags])
    assert numbers["device"] == "one CPU" and len(numbers["edges"]) == 8
    assert {edge["critical"] > 4.9 for edge in numbers["edges"][:4]} == {True}
    assert {edge["critical"] < 3.6 for edge in numbers["edges"][4:]} == {True}


def test_the_bar_is_quiet_where_there_is_no_terminal(tmp_path, capsys):
    sweep(CONFIG, up_to(3.0), RunFolder(tmp_path))
    said = capsys.readouterr()
    assert said.out == "" and "round 1 (search): 48 robots x 2,500 steps" in said.err
