"""Evolution of numbers, what a tuning is asked, and how it scores candidates."""

import dataclasses
import pickle

import numpy as np
import pytest

from playground.controllers.balance.gains import (
    STRATEGIES,
    BalanceGains,
    load_gains,
    switches,
    tunable,
)
from playground.errors import PlaygroundError
from playground.experiments.evolution import STATE, Evolution
from playground.experiments.push import tune
from playground.experiments.push.bounds import Stance, rigid_bound
from playground.experiments.push.cases import Cases, Outcomes
from playground.experiments.push.tune import Tuning
from playground.experiments.push.tune_config import OBJECTIVES, TuneConfig

SPACE = {"stiffness": (0.0, 2000.0), "damping": (-3.0, 1.0), "time": (0.02, 0.04)}
START = {"stiffness": 200.0, "damping": 0.9, "time": 0.021}
PEAK = np.array([1500.0, -2.0, 0.035])
SPAN = np.array([2000.0, 4.0, 0.02])


def search(seed: int = 1, space=SPACE, start=START) -> Evolution:
    return Evolution(space, start, sigma=0.2, population=10, seed=seed)


def bowl(candidates: np.ndarray, peak=PEAK) -> np.ndarray:
    """Largest, 0, at the peak; every number counts by its range."""
    return -np.square((candidates - peak) / SPAN).sum(1)


def breed(evolution: Evolution, generations: int, score=bowl) -> list[np.ndarray]:
    asked = []
    for _ in range(generations):
        asked.append(evolution.ask())
        evolution.tell(score(asked[-1]))
    return asked


def test_it_finds_the_top_of_a_bowl_within_the_ranges():
    evolution = search()
    asked = np.concatenate(breed(evolution, 60))
    assert evolution.generation == 60 and evolution.names == tuple(SPACE)
    low, high = np.array(list(SPACE.values())).T
    assert (asked >= low).all() and (asked <= high).all()
    found = np.array(list(evolution.best.values.values()))
    np.testing.assert_allclose((found - PEAK) / SPAN, 0, atol=1e-3)
    assert evolution.sigma < 0.02  # it began with 0.2


def test_the_best_is_the_best_of_all_ever_told():
    evolution = search()
    asked = breed(evolution, 12)
    scores = np.array([bowl(candidates) for candidates in asked])
    generation, row = np.unravel_index(scores.argmax(), scores.shape)
    best = evolution.best
    assert (best.generation, best.score) == (generation, scores.max())
    np.testing.assert_array_equal(list(best.values.values()), asked[generation][row])
    assert list(best.values) == list(SPACE)


def test_a_top_outside_is_met_at_the_edge():
    beyond = np.array([2600.0, -4.0, 0.035])
    evolution = search()
    asked = breed(evolution, 60, lambda x: bowl(x, beyond))
    low, high = np.array(list(SPACE.values())).T
    assert all((low <= x).all() and (x <= high).all() for x in asked)
    found = np.array(list(evolution.best.values.values()))
    nearest = np.clip(beyond, low, high)
    np.testing.assert_allclose((found - nearest) / SPAN, 0, atol=0.01)


def test_a_start_on_the_edge_is_taken():
    start = {name: low for name, (low, _) in SPACE.items()}
    asked = search(start=start).ask()
    low = np.array([low for low, _ in SPACE.values()])
    assert (asked >= low).all() and ((asked - low) / SPAN).mean() < 0.3


def test_seeds_draw_differently_and_a_seed_the_same():
    one, same, other = search(1).ask(), search(1).ask(), search(2).ask()
    assert one.shape == (10, 3)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_it_leaves_the_global_generator_alone():
    np.random.seed(5)
    expected = np.random.random(4)
    np.random.seed(5)
    breed(search(), 2)
    np.testing.assert_array_equal(np.random.random(4), expected)


def test_stored_midway_it_goes_on_the_same(tmp_path):
    """Bit for bit, whatever else draws from numpy's global generator meanwhile."""
    straight = search()
    np.random.seed(1)
    first = np.concatenate(breed(straight, 9))

    stopped = search()
    np.random.seed(2)
    asked = breed(stopped, 4)
    np.random.random(17)
    stopped.save(tmp_path)
    breed(stopped, 2)  # what happens after it was stored is forgotten
    np.random.seed(3)
    resumed = Evolution.restore(tmp_path, tuple(SPACE))
    assert resumed.generation == 4
    for _ in range(5):
        np.random.random(3)
        asked += breed(resumed, 1)
        resumed.save(tmp_path)
        resumed = Evolution.restore(tmp_path, tuple(SPACE))
    np.testing.assert_array_equal(np.concatenate(asked), first)
    assert resumed.best == straight.best and resumed.sigma == straight.sigma
    assert [path.name for path in tmp_path.iterdir()] == [STATE]


def test_a_state_that_is_none_or_another_is_refused(tmp_path):
    with pytest.raises(PlaygroundError, match=f"no search in .*{STATE}"):
        Evolution.restore(tmp_path, tuple(SPACE))
    search().save(tmp_path)
    whole = (tmp_path / STATE).read_bytes()
    with pytest.raises(PlaygroundError, match=r"searches stiffness.* not stiffness,"):
        Evolution.restore(tmp_path, ("stiffness", "time"))
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / STATE).write_bytes(whole[:size])
        with pytest.raises(PlaygroundError, match="is damaged"):
            Evolution.restore(tmp_path, tuple(SPACE))


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"\x00" * 64,
        b"not a pickle at all\n",
        pickle.dumps({"names": ("stiffness", "damping", "time")}),
        pickle.dumps(None),
        b"cno_such_module\nnothing\n.",
    ],
    ids=["text", "zeros", "line", "another object", "none", "unknown module"],
)
def test_another_file_in_its_place_is_refused(tmp_path, content):
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(PlaygroundError, match=STATE):
        Evolution.restore(tmp_path, tuple(SPACE))


# What a tuning is asked.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "none"}, "unknown strategy to tune 'none'.*ankle, ankle.hip"),
        ({"strategy": "ankel"}, "did you mean 'ankle'"),
        ({"objective": "worts"}, "did you mean 'worst'"),
        ({"engine": "nativ"}, "did you mean 'native'"),
        ({"directions": 1}, "directions must be within 2 to 360, got 1"),
        ({"lowest": 0.0}, "lowest must be within 0.1"),
        ({"spacing": 0.0}, "spacing must be within 0.1"),
        ({"highest": 7.0}, "highest must be within 8 to"),
        ({"fill": -1}, "fill must be within 0 to 64"),
        ({"duration": 0.0}, "duration must be"),
        ({"settle": -0.1}, "settle must be"),
        ({"watch": 0.1}, "watch must be"),
        ({"generations": 0}, "generations must be"),
        ({"population": 3}, "population must be within 4"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"sigma": float("nan")}, "sigma must be finite"),
        ({"highest": float("inf")}, "highest must be finite"),
        ({"seed": -1}, "seed must be"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_questions_are_told(change, message):
    with pytest.raises(PlaygroundError, match=message):
        TuneConfig(**change)


def test_every_strategy_but_none_can_be_tuned():
    assert STRATEGIES == ("none", "ankle", "ankle+hip", "step")
    sizes = []
    for name in STRATEGIES[1:]:
        for objective in OBJECTIVES:
            TuneConfig(strategy=name, objective=objective)
        space, gains = tunable(name), switches(name)
        sizes.append(len(space))
        assert not {"ankle", "hip", "step"} & set(space)  # switches are no gains
        for gain, (low, high) in space.items():
            assert low <= getattr(gains, gain) <= high and low < high
    assert sizes == sorted(set(sizes))  # each has more than the one before
    assert not tunable("none")


def test_switches_say_what_acts():
    acts = {name: dataclasses.astuple(switches(name))[:3] for name in STRATEGIES}
    assert acts == {
        "none": (0, 0, 0),
        "ankle": (1, 0, 0),
        "ankle+hip": (1, 1, 0),
        "step": (1, 1, 1),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ankle: {capture: 8.01}", "gain capture must be within 0 to 8, got 8.01"),
        ("ankle: {capture: -1}", "gain capture must be within"),
        ("ankle: {capture: .nan}", "gain capture must be within"),
        ("ankle: {captur: 2.0}", "'ankle.captur'; did you mean 'ankle.capture'"),
        ("ankle: {capture: high}", "ankle.capture must be float, got 'high'"),
        ("ankel: {capture: 2.0}", "'ankel'; did you mean 'ankle'"),
        ("hip: {}", "unknown strategy in .*'hip'"),
        ("1: {}", "unknown strategy in .*'1'"),
        ("ankle: [1, 2]", "ankle is no table of gains"),
        ("ankle: 3.0", "ankle is no table of gains"),
        ("- ankle", "holds no mapping"),
        ("ankle: {", "cannot read"),
    ],
    ids=lambda text: text.split(": ")[-1] if ":" in text else "",
)
def test_wrong_gains_are_told(tmp_path, text, message):
    path = tmp_path / "gains.yaml"
    path.write_text(text)
    with pytest.raises(PlaygroundError, match=message):
        load_gains("ankle", path)


def test_gains_are_read_over_the_defaults(tmp_path):
    path = tmp_path / "gains.yaml"
    path.write_text("ankle: {capture: 3, momentum: 2e-1}\nstep:\n")
    gains = load_gains("ankle", path)
    assert gains == dataclasses.replace(switches("ankle"), capture=3.0, momentum=0.2)
    assert load_gains("step", path) == switches("step")
    assert load_gains("ankle+hip", path) == switches("ankle+hip")
    with pytest.raises(PlaygroundError, match="unknown strategy 'hop'"):
        load_gains("hop", path)
    with pytest.raises(PlaygroundError, match="does not exist"):
        load_gains("ankle", tmp_path / "none.yaml")
    for name in STRATEGIES:  # those shipped
        assert load_gains(name).ankle == (name != "none")


# The score of a candidate.

FOOT = np.array([[0.12, 0.23], [0.12, -0.23], [-0.1, 0.23], [-0.1, -0.23]])
STANCE = Stance(35.0, 0.943, np.diag([7.0, 6.0, 1.0]), FOOT, 1.2)
# Rungs 4, 8, 12, 16 N·s; half a spacing higher in the second direction of three.
ASKED = TuneConfig(
    strategy="ankle", directions=3, lowest=4.0, highest=16.0, spacing=4.0
)


class Fake:
    """Robots that withstand what `holds(gains, cases)` says."""

    stance = STANCE

    def __init__(self, holds):
        self.holds, self.rounds = holds, []

    def run_gains(self, gains: BalanceGains, cases: Cases) -> Outcomes:
        self.rounds.append((gains, cases))
        nothing = np.zeros(len(cases), np.float32)
        stands = np.asarray(self.holds(gains, cases), bool)
        return Outcomes(stands, np.zeros(len(cases), bool), *(nothing,) * 4)


@pytest.fixture
def tuning(tmp_path, monkeypatch):
    """config, holds -> a tuning of fake robots."""

    def make(config: TuneConfig, holds, resume: bool = False) -> Tuning:
        monkeypatch.setattr(tune, "PushTrials", lambda config: make.fake)
        make.fake = Fake(holds)
        return Tuning(config, tmp_path, resume)

    return make


def candidates(tuning: Tuning, *capture: float) -> np.ndarray:
    """[n, n_names] gains as they begin, but for `capture`."""
    base = [getattr(tuning._base, name) for name in tuning.evolution.names]
    rows = np.tile(base, (len(capture), 1))
    rows[:, tuning.evolution.names.index("capture")] = capture
    return rows


def worst_two(holds: np.ndarray, bounds: np.ndarray) -> float:
    return bounds.mean() * np.sort(holds / bounds)[:2].mean()


def test_an_edge_scores_the_rungs_below_it(tuning):
    """Each robot withstands its capture gain, in N·s, from every side."""
    made = tuning(
        dataclasses.replace(ASKED, objective="sum"),
        lambda gains, cases: cases.impulse <= gains.capture,
    )
    np.testing.assert_allclose(made.angles, [0, np.pi / 2, np.pi])
    bounds = [rigid_bound(STANCE, angle, 0.08) for angle in (0, np.pi / 2, np.pi)]
    np.testing.assert_allclose(made.bounds, bounds)
    scores, holds = made.score(candidates(made, 3.9, 4.0, 6.0, 7.0, 8.0))
    # The ladders are 4, 8, ...; 6, 10, ...; 4, 8, ...
    expected = [[0, 2, 0], [4, 2, 4], [4, 6, 4], [4, 6, 4], [8, 6, 8]]
    np.testing.assert_allclose(holds, expected)
    np.testing.assert_allclose(scores, np.mean(expected, 1))
    (_, cases), *more = make_rounds(made)
    assert not more and len(cases) == 5 * 3 * 4
    np.testing.assert_allclose(cases.impulse[:8], [4, 8, 12, 16, 6, 10, 14, 18])
    np.testing.assert_allclose(cases.direction[:12], np.repeat(made.angles, 4))


def make_rounds(made: Tuning):
    return made._trials.rounds


def test_the_objectives_add_up(tuning):
    capture = (3.9, 5.0, 7.5)
    scores = {}
    for objective in OBJECTIVES:
        made = tuning(
            dataclasses.replace(ASKED, objective=objective),
            lambda gains, cases: cases.impulse <= gains.capture,
        )
        scores[objective], holds = made.score(candidates(made, *capture))
    worst = [worst_two(row, made.bounds) for row in holds]
    np.testing.assert_allclose(scores["worst"], worst)
    np.testing.assert_allclose(scores["sum"], holds.mean(1))
    np.testing.assert_allclose(scores["both"], scores["sum"] + scores["worst"])


def test_a_rung_above_a_hole_is_worth_a_quarter(tuning):
    """Forward it falls at 8 but stands at 12; backward only 4 is withstood."""

    def holds(gains, cases):
        forward = (cases.impulse != 8) & (cases.impulse < 14)
        behind = cases.impulse < 5
        aside = cases.impulse < 11
        turn = np.rint(cases.direction / (np.pi / 2))
        return np.choose(turn.astype(int), [forward, aside, behind])

    made = tuning(ASKED, holds)
    scores, found = made.score(candidates(made, 1.0))
    np.testing.assert_allclose(found, [[4, 10, 4]])
    heights = (4 + 0.25 * 4 + 10 + 4) / 3
    assert scores[0] == pytest.approx(heights + worst_two(found[0], made.bounds))
    # Without the hole it is worth more.
    whole = tuning(ASKED, lambda g, c: (c.impulse == 8) | holds(g, c))
    assert whole.score(candidates(made, 1.0))[0][0] > scores[0] + 2


def test_a_second_round_fills_between_the_rungs(tuning):
    """Three further rungs above each hold, 1 N·s apart; the first failure ends them."""
    made = tuning(
        dataclasses.replace(ASKED, fill=3, objective="sum"),
        lambda gains, cases: (
            (cases.impulse <= gains.capture) & (np.abs(cases.impulse - 5) > 0.1)
        ),
    )
    scores, holds = made.score(candidates(made, 3.4, 6.9, 7.2))
    # By hand: from 0 (2 aside) up in ones; 5 N·s is a hole.
    expected = [[3, 3, 3], [4, 6, 4], [4, 7, 4]]
    np.testing.assert_allclose(holds, expected)
    np.testing.assert_allclose(scores, np.mean(expected, 1))
    further = make_rounds(made)[1][1].impulse.reshape(3, 3, 3)
    np.testing.assert_allclose(further[1], [[5, 6, 7], [7, 8, 9], [5, 6, 7]])


def test_candidates_become_gains_of_the_strategy(tuning):
    made = tuning(ASKED, lambda gains, cases: np.zeros(len(cases)))
    rows = candidates(made, 1.5, 2.5)
    made.score(rows)
    ((gains, cases),) = make_rounds(made)
    np.testing.assert_allclose(gains.capture, np.repeat([1.5, 2.5], 12))
    assert (gains.ankle == 1).all() and not gains.hip.any() and not gains.step.any()
    assert not cases.model.any()
    assert set(made.evolution.names) == set(tunable("ankle"))


def test_a_tuning_stored_after_any_generation_goes_on_the_same(tuning, tmp_path):
    """The more `capture`, the harder it can be pushed."""
    config = dataclasses.replace(ASKED, generations=6, population=6, sigma=0.3)

    def holds(gains, cases):
        return cases.impulse <= 2 * gains.capture

    told = []
    assert tuning(config, holds).run(told.append) is None
    assert [each.number for each in told] == [1, 2, 3, 4, 5, 6]
    best = np.array([each.best for each in told])
    assert (np.diff(best) >= 0).all() and best[-1] > best[0]
    assert all(each.top <= each.best and each.median <= each.top for each in told)
    history = (tmp_path / tune.HISTORY).read_text().splitlines()
    assert len(history) == 7 and history[0].startswith("number,best,top,median,sigma")
    shipped = load_gains("ankle", tmp_path / tune.BEST)
    straight = (tmp_path / tune.BEST).read_text()
    assert f"score {best[-1]:.2f}" in straight and shipped.capture > 4
    for path in tmp_path.iterdir():
        path.unlink()

    again = []
    short = dataclasses.replace(config, generations=2)
    tuning(short, holds).run(again.append)
    np.random.seed(0)
    resumed = tuning(config, holds, resume=True)
    assert resumed.run(again.append) is None
    for one, two in zip(told, again, strict=True):
        assert (one.number, one.best, one.top) == (two.number, two.best, two.top)
        assert (one.median, one.sigma) == (two.median, two.sigma)
        np.testing.assert_array_equal(one.holds, two.holds)
    assert (tmp_path / tune.BEST).read_text() == straight
    assert (tmp_path / tune.HISTORY).read_text().splitlines() == history
