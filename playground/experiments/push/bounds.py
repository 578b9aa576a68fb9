"""How hard a robot that keeps its feet and its posture can be pushed at all.

While it stands, a robot balances with its centre of pressure alone, and that stays
within the feet. In the linear inverted pendulum, x'' = omega^2 (x - p) + F / m, with x
the centre of mass and p the centre of pressure, the capture point xi = x + x' / omega
obeys xi' = omega (xi - p) + F / (m omega) (Pratt et al., "Capture point: a step toward
humanoid push recovery", 2006). It diverges once it has left the feet. The strongest
push of force F and length T that a robot stops therefore has p at the edge, d ahead,
from the first instant, and xi at that same edge when it ends:

    -d e^(omega T) + F / (m omega^2) (e^(omega T) - 1) = 0
    J = F T = m omega d * omega T / (1 - e^(-omega T))

The last factor tends to 1 for a blow. An edge that is met obliquely changes nothing: xi
moves along the push, and so d is measured along it.

The *point mass* has omega = sqrt(g / z), z the height of the centre of mass, and takes
its push there. The *rigid pendulum*, which turns as one about the centre of pressure
and is pushed at height h, has m (z^2 + k^2) x'' = m g z (x - p) + F h z, with m k^2 its
inertia about the centre of mass, hence omega = sqrt(g z / (z^2 + k^2)) and

    J = m omega d (z^2 + k^2) / (h z) * omega T / (1 - e^(-omega T))

Trunk and arms that swing, and steps, go beyond either.
"""

import dataclasses
import math

import numpy as np
from scipy.spatial import ConvexHull

from playground.controllers.balance.criteria import GRAVITY
from playground.errors import PlaygroundError


@dataclasses.dataclass(frozen=True)
class Stance:
    """A robot that stands still; axes: x forward, y to its left, z up.

    Attributes:
      mass: kg.
      com_height: m, of the centre of mass above the floor.
      inertia: kg·m^2 about the centre of mass, [3, 3], or [2, 2] of x and y alone.
      corners: m, [k, 2] corners of the soles, from the point below the centre of mass.
      push_height: m, of the push above the floor.
    """

    mass: float
    com_height: float
    inertia: np.ndarray
    corners: np.ndarray
    push_height: float


def point_mass_bound(stance: Stance, angle: float, duration: float) -> float:
    """Returns the largest impulse that the point mass withstands, N·s.

    Args:
      stance: How the robot stands.
      angle: rad, direction of the push; 0 is forward, pi/2 to the left.
      duration: s, how long it lasts; 0: a blow.
    """
    omega = math.sqrt(GRAVITY / stance.com_height)
    distance = distance_to_edge(stance.corners, angle)
    return stance.mass * omega * distance * _stretch(omega * duration)


def rigid_bound(stance: Stance, angle: float, duration: float) -> float:
    """Returns the largest impulse that the rigid pendulum withstands, N·s.

    The inertia is that about the horizontal axis normal to the push.

    Args:
      stance: How the robot stands.
      angle: rad, direction of the push; 0 is forward, pi/2 to the left.
      duration: s, how long it lasts; 0: a blow.
    """
    axis = np.array([-math.sin(angle), math.cos(angle)])
    height = stance.com_height
    turning = float(axis @ np.asarray(stance.inertia)[:2, :2] @ axis)
    radius2 = height**2 + turning / stance.mass
    omega = math.sqrt(GRAVITY * height / radius2)
    blow = stance.mass * omega * distance_to_edge(stance.corners, angle)
    lever = radius2 / (stance.push_height * height)
    return blow * lever * _stretch(omega * duration)


def distance_to_edge(corners: np.ndarray, angle: float) -> float:
    """Returns how far it is from the origin to the edge of the hull of some points.

    Args:
      corners: [k, 2], at least three, not all on one line.
      angle: rad, the direction to look in, from x towards y.

    Raises:
      PlaygroundError: the origin lies outside.
    """
    # Each edge is normal · x + offset = 0, with the normal pointing out.
    *normals, offsets = ConvexHull(corners).equations.T
    if offsets.max() > 0:
        raise PlaygroundError("the centre of mass is not above the feet: no bound")
    outward = np.transpose(normals) @ [math.cos(angle), math.sin(angle)]
    # Those within rounding of parallel to the ray it does not meet.
    met = outward > 1e-12
    return float(np.min(-offsets[met] / outward[met]))


def _stretch(time: float) -> float:
    """Returns by how much a push of `omega T` may be stronger than a blow."""
    return time / -math.expm1(-time) if time else 1.0
