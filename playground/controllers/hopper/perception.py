"""What the controllers and experiments see of a hopper.

All of it follows from joints, which are as new as the state. Sensors are one physics
step older, and a rule that is looked at every physics step would act late by them.
"""

import flax.struct
import jax
import jax.numpy as jnp
import mujoco

from playground.robots.robot import Robot, Sensed


@flax.struct.dataclass
class Perceived:
    """One hopper; scalars, world frame.

    Attributes:
      x: m, of the torso.
      height: m, of the torso's middle.
      foot_x: m, of the foot's middle.
      foot_height: m, of the foot's middle.
      leg_clearance: m, from the floor to the lowest point of the leg's cylinder.
      forward_speed: m/s, of the torso.
      vertical_speed: m/s, of the torso.
      hip: rad, of the leg against the vertical; above 0 the foot is ahead.
      hip_rate: rad/s.
      knee: m, how far the foot is beyond its middle.
      knee_rate: m/s.
    """

    x: jax.Array
    height: jax.Array
    foot_x: jax.Array
    foot_height: jax.Array
    leg_clearance: jax.Array
    forward_speed: jax.Array
    vertical_speed: jax.Array
    hip: jax.Array
    hip_rate: jax.Array
    knee: jax.Array
    knee_rate: jax.Array


class Perception:
    """Reads a `Perceived` of one hopper; names and lengths are found once.

    Attributes:
      leg_length: m, from the hip to the foot's middle with the knee at 0.
      torso_radius: m.
    """

    def __init__(self, robot: Robot):
        """Takes lengths from the model at home.

        Raises:
          PlaygroundError: the robot lacks a joint that a hopper has.
        """
        self._hip, self._knee = (int(robot.joint_rows(n)[0]) for n in ("hip", "knee"))
        model, data = robot.model, mujoco.MjData(robot.model)
        mujoco.mj_forward(model, data)  # all joints at 0
        hip, foot = data.joint("hip").xanchor, data.body("foot").xpos
        self._origin = float(data.body("torso").xpos[2])
        self.leg_length = float(hip[2] - foot[2])
        self.torso_radius = float(model.geom("torso").size[0])
        self._leg_radius, half = (float(x) for x in model.geom("leg").size[:2])
        middle = float(hip[2] - data.geom("leg").xpos[2])
        self._leg_ends = (middle - half, middle + half)

    def __call__(self, sensed: Sensed) -> Perceived:
        """Reads one hopper."""
        place, speed = sensed.base_position, sensed.base_velocity
        hip, knee = (sensed.joint_position[i] for i in (self._hip, self._knee))
        rates = [sensed.joint_velocity[i] for i in (self._hip, self._knee)]
        height = self._origin + place["z"]
        sine, cosine = jnp.sin(hip), jnp.cos(hip)
        reach = self.leg_length + knee
        low, high = (height - end * cosine for end in self._leg_ends)
        return Perceived(
            x=place["x"],
            height=height,
            foot_x=place["x"] + reach * sine,
            foot_height=height - reach * cosine,
            leg_clearance=jnp.minimum(low, high) - self._leg_radius * jnp.abs(sine),
            forward_speed=speed["x"],
            vertical_speed=speed["z"],
            hip=hip,
            hip_rate=rates[0],
            knee=knee,
            knee_rate=rates[1],
        )
