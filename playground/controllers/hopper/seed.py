"""The seed's rule: soft knee in the air, stiff in stance, a push of the hip.

It acts before the first physics step, so that the stiff knee with which a hopper is
handed over is never in force. It does not regulate height or speed: hops get lower.
"""

import flax.struct
import jax
import jax.numpy as jnp

from playground.controllers.hopper.fsm import AIR2, STANCE1, STANCE2, Fsm, advance
from playground.controllers.hopper.fsm import begin as begin_fsm
from playground.controllers.hopper.gains import HopperCommand, HopperGains
from playground.controllers.hopper.perception import Perception
from playground.controllers.hopper.servos import Action, HopperServos
from playground.robots.robot import Robot, Sensed

jax.tree_util.register_dataclass(HopperGains)
jax.tree_util.register_dataclass(HopperCommand)


@flax.struct.dataclass
class SeedMemory:
    """What the controller keeps between two calls.

    Attributes:
      fsm: where in a hop it is.
      hip_target: rad; set in STANCE2 and AIR2, else left as it was.
    """

    fsm: Fsm
    hip_target: jax.Array


class SeedController:
    """The seed's rule; a pure function, to be vmapped over gains and hoppers.

    Attributes:
      period: s between two calls.
      perception: What reads the hopper.
    """

    def __init__(self, robot: Robot, period: float):
        """Finds what it needs in the robot's model.

        Raises:
          PlaygroundError: the robot is no hopper.
        """
        self.period = period
        self.perception = Perception(robot)
        self._servos = HopperServos(robot)

    def init(self, sensed: Sensed) -> SeedMemory:
        """Returns what to begin with: AIR1, the hip at 0."""
        del sensed
        return SeedMemory(begin_fsm(), jnp.float32(0.0))

    def __call__(
        self,
        gains: HopperGains,
        memory: SeedMemory,
        sensed: Sensed,
        command: HopperCommand | None = None,
    ) -> tuple[SeedMemory, Action]:
        """Decides one control step.

        Args:
          gains: The numbers.
          memory: From the call before, or `init`.
          sensed: The hopper now.
          command: What other controllers are asked; not looked at here.
        """
        del command
        seen = self.perception(sensed)
        fsm = advance(memory.fsm, gains, seen, self.period)
        phase, stance = fsm.phase, fsm.in_stance
        hip = jnp.where(phase == AIR2, gains.hip_air, memory.hip_target)
        hip = jnp.where(phase == STANCE2, gains.hip_push, hip)
        knee = jnp.where(phase == STANCE1, gains.knee_land, gains.knee_air)
        knee = jnp.where(phase == STANCE2, gains.knee_thrust, knee)
        action = self._servos(
            kp=(gains.hip_kp, jnp.where(stance, gains.stance_kp, gains.air_kp)),
            kv=(gains.hip_kv, jnp.where(stance, gains.stance_kv, gains.air_kv)),
            target=(hip, knee),
        )
        return SeedMemory(fsm, hip), action
