"""Right numbers and verdicts on hand-made traces."""

import numpy as np
import pytest

from playground.experiments.metrics import Episodes, measure
from playground.experiments.summary import by_command, summarize, wilson
from playground.experiments.verdict import DISTURBED, UNDISTURBED, judge
from playground.tasks.episodes import Trace

DT, T, MASS, GAIT = 0.02, 150, 2.0, 0.5
TIME = DT * np.arange(T)


def trace_of(robots: int = 1, **fields) -> Trace:
    """A trace of robots that stand; fields [T, ...] of one robot are given to all."""
    values = {
        "alive": np.ones(T, bool),
        "diverged": np.zeros(T, bool),
        "obs": np.zeros((T, 0)),
        "action": np.zeros((T, 2)),
        "reward": np.zeros(T),
        "position": np.zeros((T, 3)),
        "yaw": np.zeros(T),
        "velocity": np.zeros((T, 3)),
        "joint_velocity": np.zeros((T, 2)),
        "power": np.zeros(T),
        "sole_height": np.zeros((T, 2)),
        "sole_speed": np.zeros((T, 2)),
        "contact": np.ones((T, 2), bool),
    }
    values |= {name: np.asarray(value) for name, value in fields.items()}
    return Trace(**{n: np.stack([v] * robots, axis=1) for n, v in values.items()})


def measured(command=(0, 0, 0), robots: int = 1, **fields) -> Episodes:
    commands = np.zeros((robots, 7))
    commands[:, :3] = command
    return measure(trace_of(robots, **fields), commands, DT, MASS, GAIT)


def constant(*values: float) -> np.ndarray:
    return np.tile(values, (T, 1))


def up_to(fall: int) -> np.ndarray:
    return np.arange(T) < fall


# --- One episode's numbers.


def test_a_straight_walk_is_as_fast_as_it_is_far():
    # The robot faces y, so that world and heading frame differ.
    position = np.stack([0 * TIME, 0.1 * TIME, 0 * TIME], axis=1)
    episodes = measured(
        (0.1, 0, 0),
        yaw=np.full(T, np.pi / 2),
        position=position,
        velocity=constant(0.1, 0, 0),
    )
    np.testing.assert_allclose(episodes.velocity, [[0.1, 0, 0]], atol=1e-9)
    np.testing.assert_allclose(episodes.displacement, [[0.1 * TIME[-1], 0]], atol=1e-9)


def test_yaw_rate_is_heading_change_over_time_across_the_seam():
    yaw = (3.0 - 0.8 * TIME + np.pi) % (2 * np.pi) - np.pi
    episodes = measured(yaw=yaw, velocity=constant(0, 0, 9.0))
    assert episodes.velocity[0, 2] == pytest.approx(-0.8)
    assert episodes.turn[0] == pytest.approx(-0.8 * TIME[-1])


def test_a_fall_ends_the_measurement_and_is_counted():
    velocity = np.where(up_to(100)[:, None], 0.1, 9.0) * np.ones(3)
    episodes = measured(alive=up_to(100), velocity=velocity)
    assert episodes.fell.all()
    assert episodes.end_s[0] == pytest.approx(101 * DT)
    assert episodes.velocity[0, 0] == pytest.approx(0.1)


def test_an_early_fall_counts_though_nothing_else_is_measured():
    episodes = measured((0.1, 0, 0), alive=up_to(60), diverged=~up_to(60))
    summary = summarize(episodes)
    assert (summary.episodes, summary.falls, summary.diverged) == (1, 1, 1)
    assert summary.unmeasured == 1
    assert np.isnan([*summary.rmse, summary.slip, summary.action_rate]).all()


def test_cost_of_transport_needs_speed():
    power = np.full(T, 2.0)
    walks = measured(power=power, velocity=constant(0.1, 0, 0))
    assert walks.cost_of_transport[0] == pytest.approx(2.0 / (MASS * 9.81 * 0.1))
    crawls = measured(power=power, velocity=constant(0.01, 0, 0))
    assert np.isnan(crawls.cost_of_transport[0])


def test_action_rate_is_the_mean_change_per_second():
    action = np.stack([0.5 * (np.arange(T) % 2), np.zeros(T)], axis=1)
    assert measured(action=action).action_rate[0] == pytest.approx(0.25 / DT)


@pytest.mark.parametrize("harmonic", [1, 2])
def test_jerk_of_a_sine_is_the_fourth_power_of_its_harmonic(harmonic):
    w0 = 2 * np.pi / GAIT
    w = harmonic * w0
    velocity = np.sin(w * TIME)[:, None] * [1.0, 3.0]
    # What the second difference makes of a sine: w^2, for short control periods.
    w2 = 2 * (1 - np.cos(w * DT)) / DT**2
    episodes = measured(joint_velocity=velocity)
    assert episodes.jerk[0] == pytest.approx(w2**2 / w0**4, rel=0.02)
    assert episodes.jerk[0] == pytest.approx(harmonic**4, rel=0.1)
    assert np.isnan(measured().jerk[0])


def test_clearance_is_the_mean_peak_of_the_swings():
    contact, height = np.ones((T, 2), bool), np.full((T, 2), 0.003)
    contact[20:30, 0] = False  # before the settling is over
    for start, peak in ((60, 0.033), (90, 0.023)):
        contact[start : start + 10, 0] = False
        height[start : start + 10, 0] = [*np.linspace(0.003, peak, 10)]
    contact[120, :] = False  # a flicker is no swing
    height[120, :] = 0.5
    contact[145:, 0] = False  # a swing that does not end
    height[145:, 0] = 0.5
    episodes = measured(contact=contact, sole_height=height)
    left, right = episodes.clearance[0]
    assert left == pytest.approx(0.025)
    assert np.isnan(right)
    assert np.isnan(episodes.asymmetry[0])
    contact[70:80, 1] = False
    height[75, 1] = 0.018
    episodes = measured(contact=contact, sole_height=height)
    assert episodes.asymmetry[0] == pytest.approx((0.025 - 0.015) / 0.020)


def test_slip_is_measured_on_the_floor_only():
    contact = np.stack([np.arange(T) % 2 == 0, np.zeros(T, bool)], axis=1)
    speed = np.where(contact, 0.05, 1.0)
    assert measured(contact=contact, sole_speed=speed).slip[0] == pytest.approx(0.05)
    no_contact = np.zeros((T, 2), bool)
    assert np.isnan(measured(contact=no_contact, sole_speed=speed).slip[0])


def test_head_error_is_that_of_the_mean_pose():
    commands = np.array([[0, 0, 0, 0.2, 0, 0, 0]])
    head = np.zeros((T, 1, 4)) + 0.1 * (-1) ** np.arange(T)[:, None, None]
    episodes = measure(trace_of(), commands, DT, MASS, GAIT, head)
    assert episodes.head_error[0] == pytest.approx(0.2 / 4)
    assert np.isnan(measured().head_error[0])


# --- Sums.


@pytest.mark.parametrize(
    ("count", "number", "interval"),
    [(0, 10, (0.0, 0.2775)), (5, 10, (0.2366, 0.7634)), (10, 10, (0.7225, 1.0))],
)
def test_wilson_interval(count, number, interval):
    assert wilson(count, number) == pytest.approx(interval, abs=1e-4)


def test_rmse_ratio_and_drift():
    slow = measured((0.1, 0, 0), velocity=constant(0.13, 0, 0))
    fast = measured((0.2, 0, 0), velocity=constant(0.16, 0, 0))
    drifts = measured(position=constant(0, 0, 0) + TIME[:, None] * [0.03, 0.04, 0])
    summary = summarize(Episodes.join([slow, fast, drifts]))
    assert summary.rmse[0] == pytest.approx(np.sqrt((0.03**2 + 0.04**2) / 3))
    assert summary.zero_drift == pytest.approx(0.05 * TIME[-1])
    assert summary.sideways == pytest.approx(0.0)
    results = by_command(Episodes.join([fast, slow, fast]))
    assert [result.label for result in results] == ["vx +0.20", "vx +0.10"]
    assert results[0].ratio[0] == pytest.approx(0.8)
    assert np.isnan(results[0].ratio[1:]).all()


# --- Verdict.


def verdict_of(**conditions: Episodes):
    return judge({n: (summarize(e), by_command(e)) for n, e in conditions.items()})


def walkers(number: int, **fields) -> Episodes:
    fields.setdefault("velocity", constant(0.1, 0, 0))
    return measured((0.1, 0, 0), number, **fields)


def test_verdict_passes_a_walker_that_stays_up():
    assert verdict_of(undisturbed=walkers(4), disturbed=walkers(40)).passed


def test_verdict_fails_a_single_undisturbed_fall():
    fallen = Episodes.join([walkers(30), walkers(1, alive=up_to(140))])
    verdict = verdict_of(undisturbed=fallen)
    assert verdict.reasons == ("undisturbed, vx +0.10: 1 of 31 episodes fell",)


def test_verdict_asks_for_proof_of_survival():
    few = verdict_of(undisturbed=walkers(4), disturbed=walkers(10))
    assert "too few episodes" in few.reasons[0]
    fallen = Episodes.join([walkers(36), walkers(4, alive=up_to(140))])
    assert not verdict_of(undisturbed=walkers(4), disturbed=fallen).passed


@pytest.mark.parametrize("condition", [UNDISTURBED, DISTURBED])
@pytest.mark.parametrize("reached", [0.0, 0.049, -0.1, np.nan])
def test_verdict_fails_whatever_goes_less_than_half(condition, reached):
    slow = walkers(40, velocity=constant(reached, 0, 0))
    verdict = verdict_of(**{UNDISTURBED: walkers(4), condition: slow})
    assert len(verdict.reasons) == 1
    assert f"{condition}, vx +0.10" in verdict.reasons[0]


def test_verdict_of_a_standing_task_is_on_falls_and_drift():
    assert verdict_of(undisturbed=measured(robots=4)).passed
    away = measured(position=TIME[:, None] * [0.1, 0, 0], yaw=-0.2 * TIME)
    reasons = verdict_of(undisturbed=away).reasons
    assert "moved 0.30 m" in reasons[0]
    assert "turned 0.60 rad" in reasons[1]
