"""Everything that can be set about learning. Loads fast, like `tasks.config`."""

import dataclasses
from typing import Literal

from playground.config import require_finite
from playground.errors import PlaygroundError
from playground.tasks.config import LocomotionConfig

Activation = Literal["swish", "elu", "relu", "tanh"]


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Actor and critic."""

    policy_layers: tuple[int, ...] = (256, 128, 128)
    """Hidden layer sizes of the policy."""
    value_layers: tuple[int, ...] = (256, 128, 128)
    """Hidden layer sizes of the critic, which sees the privileged observation."""
    activation: Activation = "swish"
    """Activation of the hidden layers."""
    observation_clip: float = 5.0
    """Normalised observations are clipped to plus or minus this; 5 keeps the float32
    rounding of an exported policy below 1e-5 whatever it observes."""

    def __post_init__(self):
        for name in ("policy_layers", "value_layers"):
            if not getattr(self, name):
                raise PlaygroundError(f"network {name} needs one size at least")
            if any(size < 1 for size in getattr(self, name)):
                raise PlaygroundError(f"network {name}: sizes must be 1 or more")
        if self.observation_clip <= 0:
            raise PlaygroundError("network observation_clip must be above 0")


@dataclasses.dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation (Schulman et al. 2017)."""

    num_envs: int = 512
    """Robots simulated at once, over all devices."""
    unroll_length: int = 20
    """Control steps of each robot between two updates."""
    num_minibatches: int = 4
    """Minibatches an epoch; must divide the robots of each device."""
    num_epochs: int = 4
    """Passes over the data of an update."""
    learning_rate: float = 5e-5
    """Step size of Adam."""
    policy_warmup: int = 30
    """Iterations in which the policy step size grows from 0; the critic goes ahead."""
    discount: float = 0.98
    """Discount of the reward per control step."""
    gae_lambda: float = 0.95
    """Lambda of the generalised advantage estimate."""
    clip: float = 0.2
    """Clipping of the probability ratio."""
    entropy_cost: float = 1e-4
    """Weight of the entropy bonus."""
    value_cost: float = 0.5
    """Weight of the critic's loss."""
    reward_scale: float = 10.0
    """Factor of the reward, so that returns are of the order of 1 to 100."""
    max_grad_norm: float = 1.0
    """Gradients are clipped to this norm."""

    def __post_init__(self):
        for name in ("num_envs", "unroll_length", "num_minibatches", "num_epochs"):
            if getattr(self, name) < 1:
                raise PlaygroundError(f"ppo {name} must be 1 or more")
        if self.policy_warmup < 0:
            raise PlaygroundError("ppo policy_warmup must be 0 or more")
        for name in ("entropy_cost", "value_cost"):
            if getattr(self, name) < 0:
                raise PlaygroundError(f"ppo {name} must be 0 or more")
        for name in ("learning_rate", "clip", "reward_scale", "max_grad_norm"):
            if getattr(self, name) <= 0:
                raise PlaygroundError(f"ppo {name} must be above 0")
        for name in ("discount", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise PlaygroundError(f"ppo {name} must be within 0..1")

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of one rollout and update."""
        return self.num_envs * self.unroll_length

    def check_devices(self, devices: int) -> None:
        """Checks that robots divide over devices and minibatches.

        Raises:
          PlaygroundError: they do not; names the nearest numbers that do.
        """
        unit = devices * self.num_minibatches
        if self.num_envs % unit:
            below = self.num_envs // unit * unit
            near = [str(n) for n in (below, below + unit) if n]
            raise PlaygroundError(
                f"ppo num_envs {self.num_envs} does not divide into {devices} "
                f"device(s) x {self.num_minibatches} minibatches; "
                f"nearest: {' or '.join(near)}"
            )


@dataclasses.dataclass(frozen=True)
class WarmStartConfig:
    """Fitting the policy to the task's teacher (a reference gait) before PPO."""

    steps: int = 100
    """Control steps that the teacher leads each robot; 0: no warm start."""
    action_noise: float = 0.2
    """Standard deviation of the noise on the teacher's actions."""
    exploration_std: float = 0.1
    """Standard deviation of the actions with which PPO then begins."""
    updates: int = 2000
    """Gradient steps of the fit."""
    batch_size: int = 1024
    """Observations in each of them."""

    def __post_init__(self):
        least = {"steps": 0, "action_noise": 0, "updates": 1, "batch_size": 1}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise PlaygroundError(f"warm_start {name} must be {number} or more")
        if self.exploration_std <= 0.001:
            raise PlaygroundError("warm_start exploration_std must be above 0.001")


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Deterministic evaluation while training: fixed seeds, no disturbances."""

    every_steps: int = 1_000_000
    """Environment steps between evaluations; a checkpoint goes with each."""
    episodes_per_command: int = 2
    """Episodes for each command of the grid."""

    def __post_init__(self):
        for name in ("every_steps", "episodes_per_command"):
            if getattr(self, name) < 1:
                raise PlaygroundError(f"evaluation {name} must be 1 or more")


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """All that determines a training run."""

    task: str = "open_duck_joystick"
    """What to train."""
    seed: int = 0
    """Seed of everything random."""
    total_steps: int = 10_000_000
    """Environment steps to train for, over all robots."""
    wandb: bool = False
    """Also log to Weights & Biases (extra `wandb`)."""
    env: LocomotionConfig = LocomotionConfig()
    """The task's settings."""
    ppo: PPOConfig = PPOConfig()
    """The learner's settings."""
    network: NetworkConfig = NetworkConfig()
    """The networks."""
    warm_start: WarmStartConfig = WarmStartConfig()
    """What happens before PPO."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Evaluation and checkpoints while training."""

    def __post_init__(self):
        require_finite(self)
        if self.total_steps < 1:
            raise PlaygroundError("total_steps must be 1 or more")
        # More devices are asked about when they are known; one is the least.
        self.ppo.check_devices(1)
        if not 0 <= self.seed < 2**32:
            raise PlaygroundError(f"seed must be within 0..2^32-1, got {self.seed}")
