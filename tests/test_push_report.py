"""What a sweep writes down: numbers by hand, and nothing overwritten."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from playground.errors import PlaygroundError
from playground.experiments.push.bounds import Stance, rigid_bound
from playground.experiments.push.config import PushConfig
from playground.experiments.push.report import (
    CSV,
    JSON,
    MARKDOWN,
    PICTURE,
    as_rows,
    check_folder,
    write_report,
)
from playground.experiments.push.search import Edge
from playground.experiments.push.summary import headline, reference, strategies
from playground.experiments.push.sweep import Round, Sweep
from playground.experiments.push.text import markdown

FOOT = np.array([[0.12, 0.2], [0.12, -0.2], [-0.1, 0.2], [-0.1, -0.2]])
STANCE = Stance(35.0, 0.963, np.diag([7.0, 6.0, 1.0]), FOOT, 1.193)
# By strategy, direction, model; N·s.
CRITICAL = np.array(
    [
        [[0.0, 0.0, 0.0]] * 4,
        [[12.0, 11.0, 9.0], [20.0, 22.0, 18.0], [10.0, 8.0, 9.0], [19.0, 20.0, 21.0]],
        [[30.0, 25.0, 24.0], [40.0, 40.0, 40.0], [27.0, 26.0, 28.0], [33.0, 30.0, 3.0]],
    ]
)


def edge(strategy: str, direction: float, model: int, critical: float) -> Edge:
    censored, hole = critical == 40.0, critical == 27.0
    return Edge(
        strategy=strategy,
        direction=direction,
        model=model,
        critical=critical,
        first_failure=None if censored else critical + 0.06 * bool(critical),
        last_success=33.0 if hole else critical or None,
        holes=(27.06, 29.0) if hole else (),
        trials=20,
        diverged=3 if hole else 0,
        saturated_s=0.01 * critical if critical else float("nan"),
        moved=0.0,
        peak_lean=0.1,
        peak_offset=0.05,
    )


def made(models: int = 2, **changes) -> Sweep:
    config = PushConfig(
        strategies="none,ankle,step", directions=4, models=models, **changes
    )
    edges = [
        edge(name, angle, model, float(CRITICAL[s, d, model]))
        for s, name in enumerate(config.strategy_names)
        for d, angle in enumerate(config.angles)
        for model in range(models + 1)
    ]
    rounds = Round("search", 100, 2.0), Round("grid", 300, 6.0)
    return Sweep(config, STANCE, "native", 2500, rounds, tuple(edges), None)


def test_strategies_are_summed_up():
    none, ankle, step = strategies(made())
    assert none.critical.tolist() == [0.0] * 4
    assert np.isnan(none.of_nominal(none.models_worst)).all()
    assert (ankle.worst, ankle.critical[ankle.worst]) == (2, 10.0)
    assert [ankle.side(name) for name in ("forward", "sideways", "backward")] == [
        0,
        3,
        2,
    ]
    np.testing.assert_allclose(ankle.models_median, [10.0, 20.0, 8.5, 20.5])
    np.testing.assert_allclose(ankle.of_nominal(ankle.models_worst)[:2], [75, 90])
    bound = rigid_bound(STANCE, np.pi, 0.08)
    assert ankle.percent[2] == pytest.approx(1000 / bound)
    assert (step.holes, ankle.holes) == (1, 0)
    assert headline(made()).startswith(
        "none 0.0, ankle 10.0, step 27.0 N·s in the worst direction; bound "
    )
    assert made().steps_per_s == pytest.approx(400 * 2500 / 8.0)
    assert (made().seconds("grid"), made().robots("search")) == (6.0, 100)


def test_sides_that_were_not_pushed_are_left_out():
    found = made(models=0)
    three = dataclasses.replace(found.config, directions=3)
    edges = tuple(e for i, e in enumerate(found.edges) if i % 4 < 3)
    (_, ankle, _) = strategies(dataclasses.replace(found, config=three, edges=edges))
    assert ankle.side("forward") == 0 and ankle.side("sideways") is None
    assert ankle.models.shape == (3, 0)


def test_the_reference_stands_beside_the_same_push_only():
    assert reference(made()) == {"forward": 11.79, "sideways": 18.13, "backward": 3.21}
    assert reference(made(duration=0.1)) == {}
    assert reference(made(height="com")) == {}


def test_numbers_are_written_as_json_and_csv(tmp_path):
    report = write_report(made(), tmp_path, command="playground sweep", device="cpu")
    assert report == tmp_path / MARKDOWN
    numbers = json.loads((tmp_path / JSON).read_text())
    assert numbers["config"]["directions"] == 4 and numbers["device"] == "cpu"
    assert {"playground", "jax", "mujoco"} <= set(numbers["versions"])
    assert numbers["wall_s"] == 8.0 and numbers["steps_per_s"] == 125000
    assert numbers["strategies"]["step"]["worst"] == 27.0
    assert numbers["strategies"]["step"]["worst_direction_deg"] == 180.0
    assert numbers["edges"][0]["saturated_s"] is None
    with (tmp_path / CSV).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 4 * 3 == len(numbers["edges"])
    row = rows[(2 * 4 + 2) * 3]
    assert (row["strategy"], row["direction_deg"], row["model"]) == (
        "step",
        "180.0",
        "0",
    )
    assert (row["holes"], row["diverged"], row["censored"]) == (
        "27.06 29",
        "3",
        "False",
    )
    bound = rigid_bound(STANCE, np.pi, 0.08)
    assert float(row["percent_of_rigid_bound"]) == pytest.approx(2700 / bound)
    assert rows[-11]["first_failure"] == "25.06"
    assert rows[2 * 12 + 3]["first_failure"] == ""
    assert (tmp_path / PICTURE).stat().st_size > 10_000


def test_the_text_says_what_was_found():
    text = markdown(made(), "playground sweep push", "cpu", {"jax": "1"}, PICTURE)
    assert text.startswith("# Pushes that biped withstands: none 0.0, ankle 10.0")
    bound = rigid_bound(STANCE, 0.0, 0.08)
    assert f"| ankle | 12.00 ({1200 / bound:.0f} %) |" in text
    assert "| reference controller | 11.79 (" in text
    assert "8.00 (80 % of the worst)" in text  # the worst model of `ankle`
    assert "3.00 (11 % of the worst)" in text  # and of `step`
    assert "| 90° | ≥ 40.00 | – | 40.00 |  |" in text
    assert "| 180° | 27.00 | 27.06 | 33.00 | 27.1, 29.0 |" in text
    assert "search took 2 s for 100 robots" in text and "125,000 steps/s" in text
    plain = markdown(made(models=0, grid=0.0), "c", "cpu", {}, PICTURE)
    assert "models" not in plain and "No grid" in plain


def test_rows_have_one_shape():
    rows = as_rows(made())
    assert len({tuple(row) for row in rows}) == 1


def test_a_report_is_not_overwritten(tmp_path):
    found = made(models=0)
    write_report(found, tmp_path, command="c", device="cpu")
    with pytest.raises(PlaygroundError, match=r"holds a sweep \(push.json"):
        write_report(found, tmp_path, command="c", device="cpu")
    write_report(found, tmp_path, command="c", device="cpu", overwrite=True)
    with pytest.raises(PlaygroundError, match="is a file"):
        check_folder(tmp_path / JSON)
