"""What the balance controller knows of the biped, from named joints and sensors."""

import flax.struct
import jax
import jax.numpy as jnp

from playground.controllers.balance.criteria import capture_point, momentum_offset
from playground.controllers.balance.support import Hull, convex_hull
from playground.robots.robot import Robot, Sensed

SIDES = ("left", "right")
LEG = ("hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")
# A robot that lies has no pendulum; its height counts as this at least, m.
_LOWEST = 0.1
CORNERS = ("front_left", "front_right", "back_left", "back_right")


@flax.struct.dataclass
class Perceived:
    """One biped; world frame, feet and legs left before right.

    Attributes:
      com: [3] centre of mass, m.
      velocity: [3] of the centre of mass, m/s.
      momentum: [3] angular momentum about the centre of mass, kg m^2/s.
      lean: [2] horizontal part of the trunk's axis, about the lean in rad.
      lean_rate: [2] its rate by the trunk's turning, rad/s.
      attitude: [3, 3] trunk to world.
      position: [3] of the trunk's origin, m.
      trunk_velocity: [3] of the trunk's origin, m/s.
      angle: [2, 5] leg joints, rad, in the order of `LEG`.
      rate: [2, 5] their rates, rad/s.
      anchor: [2, 5, 3] a point on each joint's axis, m.
      axis: [2, 5, 3] each joint's axis, unit vectors.
      below: [2, 5, 3] centre of mass of what hangs on each joint, m.
      foot: [2, 3] middle of each sole, m.
      foot_frame: [2, 3, 3] sole to world.
      load: [2] normal force on each sole, N.
      corner: [8, 3] corners of the soles, m.
      pressure: [8] normal force at each corner, N.
      floor: height of the lower sole, m.
    """

    com: jax.Array
    velocity: jax.Array
    momentum: jax.Array
    lean: jax.Array
    lean_rate: jax.Array
    attitude: jax.Array
    position: jax.Array
    trunk_velocity: jax.Array
    angle: jax.Array
    rate: jax.Array
    anchor: jax.Array
    axis: jax.Array
    below: jax.Array
    foot: jax.Array
    foot_frame: jax.Array
    load: jax.Array
    corner: jax.Array
    pressure: jax.Array
    floor: jax.Array

    @property
    def height(self) -> jax.Array:
        """Height of the centre of mass above the floor as a pendulum, m, above 0."""
        return jnp.maximum(self.com[2] - self.floor, _LOWEST)

    @property
    def ankle(self) -> jax.Array:
        """[2, 3] where the ankles are, m."""
        return self.anchor[:, -1]

    @property
    def ahead(self) -> jax.Array:
        """[2] where the trunk faces, horizontally, a unit vector."""
        facing = self.attitude[:2, 0]
        return facing / jnp.maximum(jnp.linalg.norm(facing), 1e-6)

    @property
    def heading(self) -> jax.Array:
        """[3, 3] heading frame to world: upright, turned as the trunk is."""
        x, y = self.ahead
        return jnp.array([[x, -y, 0.0], [y, x, 0.0], [0.0, 0.0, 1.0]])

    def capture_point(self, mass: float, momentum: jax.Array | float) -> jax.Array:
        """Returns the capture point, [2] m.

        Args:
          mass: of the robot, kg.
          momentum: share of the angular momentum counted in.
        """
        xi = capture_point(self.com, self.velocity, self.height)
        return xi + momentum * momentum_offset(self.momentum, mass, self.height)

    def support(self) -> Hull:
        """Returns the hull of the sole corners that touch the floor."""
        return convex_hull(self.corner[:, :2], self.pressure > 0)


class Perception:
    """Reads a `Perceived` of one robot; names are resolved once.

    Attributes:
      legs: [2, 5] rows of the leg joints among the robot's joints.
    """

    def __init__(self, robot: Robot):
        """Finds the joints.

        Raises:
          PlaygroundError: the robot lacks one.
        """
        self.joints = tuple(f"{side}_{joint}" for side in SIDES for joint in LEG)
        rows = [int(robot.joint_rows(joint)[0]) for joint in self.joints]
        self.legs = jnp.array(rows).reshape(len(SIDES), len(LEG))
        sole = robot.model.geom("left_sole").size
        # Corners in the frame of a sole, in the order of `CORNERS`.
        signs = jnp.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        self.half_sole = jnp.asarray(sole[:2], jnp.float32)
        self._corner = jnp.concatenate([signs * self.half_sole, jnp.zeros((4, 1))], 1)

    def __call__(self, sensed: Sensed) -> Perceived:
        """Reads one robot."""
        feet = tuple(f"{side}_foot" for side in SIDES)
        foot = sensed.each(feet, "pos")
        frame = jax.vmap(rotation)(sensed.each(feet, "quat"))
        corner = foot[:, None] + jnp.einsum("fij,cj->fci", frame, self._corner)
        touched = tuple(f"{name}_{corner}" for name in feet for corner in CORNERS)
        pressure = jnp.concatenate([sensed[name] for name in touched])
        up, turning = sensed["upvector"], sensed["global_angvel"]
        shape = self.legs.shape
        return Perceived(
            com=sensed["com"],
            velocity=sensed["com_linvel"],
            momentum=sensed["angular_momentum"],
            lean=up[:2],
            lean_rate=jnp.cross(turning, up)[:2],
            attitude=rotation(sensed["orientation"]),
            position=sensed["position"],
            trunk_velocity=sensed["global_linvel"],
            angle=sensed.joint_position[self.legs],
            rate=sensed.joint_velocity[self.legs],
            anchor=sensed.each(self.joints, "anchor").reshape(*shape, 3),
            axis=sensed.each(self.joints, "axis").reshape(*shape, 3),
            below=sensed.each(self.joints, "below").reshape(*shape, 3),
            foot=foot,
            foot_frame=frame,
            load=pressure.reshape(len(SIDES), -1).sum(1),
            corner=corner.reshape(-1, 3),
            pressure=pressure,
            floor=foot[:, 2].min(),
        )


def rotation(quaternion: jax.Array) -> jax.Array:
    """Returns [3, 3] the rotation of a unit quaternion [4], w first."""
    w, v = quaternion[0], quaternion[1:]
    cross = jnp.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return jnp.eye(3) + 2 * w * cross + 2 * cross @ cross
