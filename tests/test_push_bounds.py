"""Bounds of a standing robot: by hand, and against pendulums integrated in time."""

import dataclasses
import math

import numpy as np
import pytest

from playground.errors import PlaygroundError
from playground.experiments.push.bounds import (
    GRAVITY,
    Stance,
    distance_to_edge,
    point_mass_bound,
    rigid_bound,
)

# Soles of 0.46 x 0.22 m, 0.12 m of it ahead of the centre of mass.
CORNERS = np.array([[x, y] for x in (0.12, -0.10) for y in (0.23, -0.23)])
STANCE = Stance(
    mass=35.0,
    com_height=0.963,
    inertia=np.diag([7.1, 6.3, 1.0]),
    corners=CORNERS,
    push_height=1.193,
)


def test_distance_to_the_edge_is_measured_along_the_push():
    for degrees, distance in ((0, 0.12), (90, 0.23), (180, 0.10), (270, 0.23)):
        assert distance_to_edge(CORNERS, math.radians(degrees)) == pytest.approx(
            distance
        )
    # At 60 deg the ray leaves by the front edge, at 70 deg by the side.
    assert distance_to_edge(CORNERS, math.radians(60)) == pytest.approx(0.24)
    side = 0.23 / math.sin(math.radians(70))
    assert distance_to_edge(CORNERS, math.radians(70)) == pytest.approx(side)
    # Points inside the hull change nothing.
    more = np.concatenate([CORNERS, [[0.01, 0.02], [0.0, 0.0]]])
    assert distance_to_edge(more, 1.0) == distance_to_edge(CORNERS, 1.0)


def test_without_support_below_there_is_no_bound():
    with pytest.raises(PlaygroundError, match="not above the feet"):
        distance_to_edge(CORNERS + np.array([0.2, 0.0]), 0.0)


def test_blows_have_the_closed_form():
    omega = math.sqrt(GRAVITY / 0.963)
    blow = point_mass_bound(STANCE, 0.0, 0.0)
    assert blow == pytest.approx(35 * omega * 0.12)
    # A push of 0.08 s: the factor by hand, and the limit of ever shorter ones.
    time = omega * 0.08
    longer = point_mass_bound(STANCE, 0.0, 0.08)
    assert longer == pytest.approx(blow * time / (1 - math.exp(-time)))
    assert point_mass_bound(STANCE, 0.0, 1e-9) == pytest.approx(blow)
    # Worked out for this robot: 11.8 forward, 9.9 backward, x 1.12 for 0.08 s.
    assert rigid_bound(STANCE, 0.0, 0.0) == pytest.approx(11.83, abs=0.01)
    assert rigid_bound(STANCE, math.pi, 0.0) == pytest.approx(9.86, abs=0.01)
    stretch = rigid_bound(STANCE, 0.0, 0.08) / rigid_bound(STANCE, 0.0, 0.0)
    assert stretch == pytest.approx(1.12, abs=0.005)


def test_a_point_pushed_at_its_centre_is_both():
    point = dataclasses.replace(STANCE, inertia=np.zeros((2, 2)), push_height=0.963)
    for angle in (0.0, 0.7, 2.0, 5.0):
        assert rigid_bound(point, angle, 0.08) == pytest.approx(
            point_mass_bound(point, angle, 0.08)
        )


def test_the_inertia_is_that_about_the_axis_across_the_push():
    square = 0.1 * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    square_stance = dataclasses.replace(STANCE, corners=square)
    forward = dataclasses.replace(square_stance, inertia=np.diag([0.0, 6.3]))
    assert rigid_bound(forward, 0.0, 0.08) == rigid_bound(square_stance, 0.0, 0.08)
    side = dataclasses.replace(square_stance, inertia=np.diag([7.1, 0.0]))
    assert rigid_bound(side, math.pi / 2, 0.08) == pytest.approx(
        rigid_bound(square_stance, math.pi / 2, 0.08)
    )
    assert rigid_bound(side, 0.0, 0.08) < rigid_bound(square_stance, 0.0, 0.08)
    # At 45 deg: half of both, less the product of inertia.
    tilted = dataclasses.replace(STANCE, inertia=np.array([[7.1, 0.5], [0.5, 6.3]]))
    plain = dataclasses.replace(STANCE, inertia=np.eye(2) * (6.7 - 0.5))
    assert rigid_bound(tilted, math.pi / 4, 0.0) == pytest.approx(
        rigid_bound(plain, math.pi / 4, 0.0)
    )


def stands(
    force: float, distance: float, duration: float, height: float, k2: float, dt=1e-4
) -> bool:
    """Plays a pendulum of 35 kg, its pressure at the edge, by angles; 3 s."""
    mass, z = STANCE.mass, STANCE.com_height
    angle = rate = 0.0
    for step in range(round(3.0 / dt)):
        torque = mass * GRAVITY * (z * angle - distance)
        torque += force * height * (step * dt < duration - dt / 2)
        rate += dt * torque / (mass * (z**2 + k2))
        angle += dt * rate
        if z * angle > 2 * distance:
            return False
        if rate < 0:
            return True
    return False


@pytest.mark.parametrize(
    ("law", "height", "k2"),
    [
        (rigid_bound, STANCE.push_height, 6.3 / 35),
        (point_mass_bound, STANCE.com_height, 0.0),
    ],
)
def test_the_bound_is_where_an_integrated_pendulum_falls(law, height, k2):
    duration = 0.08
    low, high = 50.0, 400.0
    for _ in range(10):
        force = (low + high) / 2
        if stands(force, 0.12, duration, height, k2):
            low = force
        else:
            high = force
    found = (low + high) / 2 * duration
    assert found == pytest.approx(law(STANCE, 0.0, duration), rel=3e-3)
