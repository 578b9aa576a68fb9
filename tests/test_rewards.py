"""Reward terms: each by hand on a made moment; the table of weights does its part."""

import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from playground.robots.robot import Sensed
from playground.tasks.actions import ActionMemory
from playground.tasks.delay import DelayLine
from playground.tasks.registry import TASKS
from playground.tasks.reward_weights import RewardWeights
from playground.tasks.rewards import TERMS, Moment, weighted_terms
from playground.tasks.state import Feet, Motion

LEGS, HEAD = np.array([0, 1]), np.array([2, 3, 4, 5])
HOME = jnp.array([0.5, -0.5, 0.1, 0.2, 0.3, 0.4])
E1 = math.exp(-1)
OFF = {"cm": 0.01, "m/s": 1.0, "rad/s": 1.0, "rad": 1.0}


def made(**changes) -> Moment:
    """A robot of two leg and four head joints that does all that is asked of it."""
    sensors = {
        "upvector": jnp.array([0.0, 0.0, 1.0]),
        "com_linvel": jnp.zeros(3),
        "gyro": jnp.zeros(3),
    }
    sensed = {"joint_position": HOME, "joint_torque": jnp.zeros(6)}
    actions = jnp.zeros((3, 6))
    for name in list(changes):
        if name in sensors:
            sensors[name] = jnp.asarray(changes.pop(name))
        elif name in sensed:
            sensed[name] = jnp.asarray(changes.pop(name))
    recent = jnp.asarray(changes.pop("recent", actions))
    targets = jnp.asarray(changes.pop("targets", HOME))
    values = {
        "sensed": Sensed(
            time=jnp.zeros(()), joint_velocity=jnp.zeros(6), sensors=sensors, **sensed
        ),
        "command": jnp.zeros(7),
        "moving": jnp.float32(0.0),
        "motion": motion(0.0, 0.0, 0.0),
        "feet": feet(True, True),
        "actions": ActionMemory(recent, DelayLine(recent[:1], jnp.int32(0)), targets),
        "home": HOME,
        "head": HEAD,
        "legs": LEGS,
        "leg_reference": jnp.zeros(2),
        "sole_velocity": jnp.zeros((2, 3)),
        "base_rise": jnp.float32(0.0),
        "terminated": jnp.array(False),
    }
    return Moment(**(values | changes))


def motion(*smooth: float) -> Motion:
    """What is judged is the mean over a period: the momentary velocity is far off."""
    mean = jnp.array(smooth)
    return Motion(jnp.stack([mean + 4.0, mean - 1.0, mean - 3.0]))


def feet(*contact: bool) -> Feet:
    return Feet(jnp.array(contact), jnp.zeros(2), jnp.zeros(2))


def stated(term: str, pattern: str = r"0\.37 at ([\d.]+) ([a-z/]+) off") -> float:
    """The width that the term's own description states."""
    number, unit = re.search(pattern, TERMS[term].__doc__ or "").groups()
    return float(number) * OFF[unit]


def value(term: str, **changes) -> float:
    return float(TERMS[term](made(**changes)))


def test_a_perfect_moment_earns_each_reward_in_full_and_no_penalty():
    full = {"alive", "track_velocity", "track_yaw_rate", "imitate", "track_head"}
    for name in TERMS:
        assert value(name) == (1.0 if name in full else 0.0), name


def test_alive():
    assert value("alive", terminated=jnp.array(True)) == 0.0


@pytest.mark.parametrize("asked", [(0.1, -0.2), (0.0, 0.0)])
def test_track_velocity(asked):
    vx, vy = asked
    command = jnp.array([vx, vy, 9.0, 0, 0, 0, 0])
    width = stated("track_velocity")
    # 0.6, 0.8, 1: a right triangle, so the error's length is the width.
    off = motion(vx + 0.6 * width, vy - 0.8 * width, -9.0)
    assert value("track_velocity", command=command, motion=off) == pytest.approx(
        E1, rel=1e-5
    )
    slope = stated("track_velocity_linear", r"over ([\d.]+) (m/s)")
    off = motion(vx - 0.6 * slope, vy - 0.8 * slope, -9.0)
    linear = value("track_velocity_linear", command=command, motion=off)
    assert linear == pytest.approx(-1.0)


def test_track_yaw_rate():
    command = jnp.array([9.0, 9.0, 0.5, 0, 0, 0, 0])
    off = motion(-9.0, -9.0, 0.5 - stated("track_yaw_rate"))
    assert value("track_yaw_rate", command=command, motion=off) == pytest.approx(
        E1, rel=1e-5
    )
    slope = stated("track_yaw_rate_linear", r"over ([\d.]+) (rad/s)")
    off = motion(-9.0, -9.0, 0.5 + 2 * slope)
    linear = value("track_yaw_rate_linear", command=command, motion=off)
    assert linear == pytest.approx(-2.0)


def test_imitate_looks_at_the_targets_of_the_legs():
    """0.6, 0.8, 1: a right triangle, so the error's length is the width."""
    width = stated("imitate", r"0\.37 at ([\d.]+) (rad) off in all")
    targets = HOME + jnp.array([0.2, 0.1, 9.0, 9.0, 9.0, 9.0])
    off = jnp.array([0.2 - 0.6 * width, 0.1 + 0.8 * width])
    earned = value("imitate", targets=targets, leg_reference=off)
    assert earned == pytest.approx(E1, rel=1e-5)


def test_track_head_looks_at_the_head_joints_and_their_commands_in_order():
    head = jnp.array([0.1, -0.2, 0.3, 0.4])
    command = jnp.concatenate([jnp.full(3, 9.0), head])
    position = HOME.at[HEAD].add(head).at[LEGS].add(9.0)
    earned = value("track_head", command=command, joint_position=position)
    assert earned == pytest.approx(1.0)
    off = position.at[3].add(stated("track_head"))
    assert value("track_head", command=command, joint_position=off) == pytest.approx(
        E1, rel=1e-5
    )


def test_stand_still_is_asked_at_a_zero_command_only():
    position = HOME + jnp.array([0.3, -0.4, 9.0, 9.0, 9.0, 9.0])
    assert value("stand_still", joint_position=position) == pytest.approx(-0.25)
    moving = value("stand_still", joint_position=position, moving=jnp.float32(1.0))
    assert moving == 0.0


def test_upright_is_minus_the_squared_sine_of_the_tilt():
    up = [0.0, math.sin(0.5), math.cos(0.5)]
    assert value("upright", upvector=up) == pytest.approx(-(math.sin(0.5) ** 2))


def test_base_height():
    sag = stated("base_height", r"over ([\d.]+) (cm)")
    for sign in (-1, 1):
        rise = jnp.float32(sign * 2 * sag)
        assert value("base_height", base_rise=rise) == pytest.approx(-4.0)


def test_action_rate_and_jerk():
    recent = np.zeros((3, 6), np.float32)
    recent[:, 0], recent[:, 1] = (3, 1, 0), (0, 0, 2)
    assert value("action_rate", recent=recent) == pytest.approx(-4.0)
    # 3 - 2 x 1 + 0 = 1 and 0 - 0 + 2 = 2.
    assert value("action_jerk", recent=recent) == pytest.approx(-5.0)


def test_torque():
    assert value("torque", joint_torque=[1.0, -2.0, 0, 0, 0, 3.0]) == -14.0


def test_foot_slip_counts_the_horizontal_speed_of_the_feet_that_touch():
    velocity = jnp.array([[0.3, 0.4, 9.0], [1.0, 1.0, 1.0]])
    slip = value("foot_slip", sole_velocity=velocity, feet=feet(True, False))
    assert slip == pytest.approx(-0.25)


def test_vertical_speed_and_tumble_rate():
    assert value("vertical_speed", com_linvel=[9.0, 9.0, -0.5]) == -0.25
    assert value("tumble_rate", gyro=[1.0, -2.0, 9.0]) == -5.0


def test_the_weights_are_the_terms_in_their_order():
    assert [f.name for f in dataclasses.fields(RewardWeights)] == list(TERMS)
    assert all(name == term.__name__ for name, term in TERMS.items())


def test_zero_weights_are_left_out_and_the_others_applied_once(monkeypatch):
    def never(_):
        raise AssertionError("a term of weight zero was computed")

    off = {"alive": 0.0, "torque": 0.5, "upright": 2.0}
    for name in TERMS:
        if not off.get(name):
            monkeypatch.setitem(TERMS, name, never)  # type: ignore[arg-type]
    moment = made(joint_torque=[2.0, 0, 0, 0, 0, 0], upvector=[0.6, 0.0, 0.8])
    terms = weighted_terms(RewardWeights(**off), moment)
    assert {n: float(v) for n, v in terms.items()} == pytest.approx(
        {"upright": -0.72, "torque": -2.0}
    )


def test_terms_are_float32_scalars_that_do_not_compile_a_step_twice():
    """A weak type in the metrics would differ from those of a reset."""
    weights = RewardWeights(**dict.fromkeys(TERMS, 1.0))
    shapes = jax.eval_shape(lambda m: weighted_terms(weights, m), made())
    assert set(shapes) == set(TERMS)
    for shape in shapes.values():
        assert (shape.shape, shape.dtype) == ((), jnp.float32) and not shape.weak_type


def test_every_task_rewards_what_it_asks_for():
    """Weights are positive: the sign of a penalty is the term's own."""
    for spec in TASKS.values():
        weights = dataclasses.asdict(spec.config.weights)
        assert min(weights.values()) >= 0.0
        assert weights["alive"] and weights["track_velocity"] and weights["upright"]
