"""What every physics engine offers: one robot's `init` and `step`, to be vmapped."""

import abc
from collections.abc import Mapping, Sequence

import flax.struct
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from playground.errors import PlaygroundError, unknown
from playground.physics.population import check_population
from playground.robots.names import find

FieldValues = Mapping[str, jax.Array]


@flax.struct.dataclass
class Data:
    """State of one simulated robot between two control steps.

    Attributes:
      time: s, scalar.
      qpos: [nq] joint positions, MuJoCo's order and units.
      qvel: [nv] joint velocities.
      sensordata: [nsensordata] sensors. As in MuJoCo they are computed at the start of
        a physics step, so they are one physics step older than qpos and qvel.
      warmstart: [nv] accelerations from which the constraint solver starts.
      model_index: which model of the population this robot is, scalar int32.
      remainder: [nq + nv] what float32 leaves out of qpos and qvel, on an engine that
        keeps its state in double precision; None elsewhere.
    """

    time: jax.Array
    qpos: jax.Array
    qvel: jax.Array
    sensordata: jax.Array
    warmstart: jax.Array
    model_index: jax.Array
    remainder: jax.Array | None = None


class Physics(abc.ABC):
    """Moves one robot. All methods are pure functions of one robot, to be vmapped.

    Attributes:
      models: The population; element 0 is the model that names are resolved in.
      substeps: Physics steps in one control step.
      engine: The name under which the engine was chosen.
    """

    engine: str

    def __init__(
        self,
        models: Sequence[mujoco.MjModel],
        substeps: int,
        push_body: str | None = None,
        fields: Sequence[str] = (),
    ):
        """Checks what can be checked before anything compiles.

        Args:
          models: One model, or a population that differs in numbers only.
          substeps: Physics steps in one control step.
          push_body: Body at whose centre of mass `push` acts; None: no pushes.
          fields: Names of the model fields that `step` may be given, traced.
        """
        if substeps < 1:
            raise PlaygroundError(f"substeps must be at least 1, got {substeps}")
        self.models = tuple(models)
        check_population(self.models)
        self.model = self.models[0]
        self.substeps = substeps
        self.push_body = None
        if push_body is not None:
            self.push_body = find(self.model, "body", push_body)
            massive = np.flatnonzero(self.model.body_mass > 0)
            if self.push_body not in massive:
                names = ", ".join(self.model.body(i).name for i in massive)
                raise PlaygroundError(
                    f"body '{push_body}' has no mass to push (massive: {names})"
                )
        for name in fields:
            if not hasattr(getattr(self.model, name, None), "shape"):
                raise unknown("model field", name, _array_fields(self.model))
        self.fields = tuple(fields)

    @property
    def control_period(self) -> float:
        """Seconds between two control steps."""
        return self.substeps * self.model.opt.timestep

    @abc.abstractmethod
    def init(
        self,
        qpos: jax.Array,
        qvel: jax.Array,
        ctrl: jax.Array,
        model_index: jax.Array | int = 0,
        needed: jax.Array | bool = True,
    ) -> Data:
        """Starts a robot at rest on the clock.

        Args:
          qpos: [nq] joint positions.
          qvel: [nv] joint velocities.
          ctrl: [nu] control in force, which the accelerometer and forces depend on.
          model_index: Which model of the population the robot is.
          needed: False where the caller drops the result: an engine may then leave the
            sensors at zero, which makes the reset of a few robots in a batch cheap.

        Returns:
          Data at time 0, sensors computed from this very state.
        """

    @abc.abstractmethod
    def step(
        self,
        data: Data,
        ctrl: jax.Array,
        push: jax.Array | None = None,
        fields: FieldValues | None = None,
    ) -> Data:
        """Moves a robot by one control step of `substeps` physics steps.

        Args:
          data: The robot's state.
          ctrl: [nu] control, held over the step.
          push: [6] or [substeps, 6] force (N) and torque (N·m) in the world frame at
            the push body's centre of mass; None: no push.
          fields: Values of the model fields declared at construction, each of the
            field's own shape; None: the model's own.

        Returns:
          The new state. A diverged robot comes back with values that are not finite.
        """

    def _check_step(self, push: jax.Array | None, fields: FieldValues | None) -> None:
        if push is not None and self.push_body is None:
            raise PlaygroundError("a push needs `push_body` at construction")
        for name, value in (fields or {}).items():
            if name not in self.fields:
                raise unknown("declared model field", name, self.fields)
            shape = getattr(self.model, name).shape
            if jnp.shape(value) != shape:
                raise PlaygroundError(
                    f"model field '{name}' has shape {shape}, got {jnp.shape(value)}"
                )

    def _push_per_substep(self, push: jax.Array) -> jax.Array:
        return jnp.broadcast_to(push, (self.substeps, 6))


def _array_fields(model: mujoco.MjModel) -> list[str]:
    return [n for n in dir(model) if hasattr(getattr(model, n, None), "shape")]
