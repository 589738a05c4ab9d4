"""LearningConfig: how a policy is learnt."""

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class LearningConfig:
    """Settings of proximal policy optimization ([Schulman2017]), in the words of rsl_rl."""

    env_count: int = 256
    """Environments."""
    steps_per_iteration: int = 24
    """Steps of each environment between two updates."""
    iterations: int = 1000
    """Updates."""
    hidden_sizes: tuple[int, ...] = (128, 64)
    """Width of the hidden layers of policy and critic."""
    learning_rate: float = 1.0e-3
    """Step size in the beginning; it follows `desired_kl`."""
    desired_kl: float = 0.01
    """Change of the policy per update that the step size is adapted to."""
    epochs: int = 4
    """Passes over what was collected, per update."""
    minibatches: int = 4
    """Parts of a pass."""
    discount: float = 0.99
    """Worth of a reward one step later."""
    trace_decay: float = 0.95
    """Lambda of generalized advantage estimation."""
    clip: float = 0.2
    """Clipping of the ratio of probabilities."""
    entropy: float = 0.005
    """Weight of the entropy."""
    initial_std: float = 1.0
    """Standard deviation of actions in the beginning."""
    normalize_observations: bool = True
    """Whether observations are normalized by their running mean and deviation."""
    symmetric: bool = False
    """Whether what one side of the robot has experienced counts for the other too; needs `Task.mirror`."""
    checkpoint_interval: int = 50
    """Updates between two checkpoints."""

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "LearningConfig":
        """Return settings from plain values; unknown names are ignored."""
        known = {field.name for field in fields(cls)}
        plain: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in values.items() if name in known
        }
        return cls(**plain)

    def rsl_rl(self, seed: int) -> dict[str, Any]:
        """Return the configuration of rsl_rl's runner and algorithm."""
        network = {
            "class_name": "MLPModel",
            "hidden_dims": list(self.hidden_sizes),
            "activation": "elu",
            "obs_normalization": self.normalize_observations,
        }
        return {
            "seed": seed,
            "num_steps_per_env": self.steps_per_iteration,
            "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
            "actor": network
            | {
                "distribution_cfg": {
                    "class_name": "GaussianDistribution",
                    "init_std": self.initial_std,
                    "std_type": "log",
                }
            },
            "critic": dict(network),
            "algorithm": {
                "class_name": "PPO",
                "num_learning_epochs": self.epochs,
                "num_mini_batches": self.minibatches,
                "clip_param": self.clip,
                "gamma": self.discount,
                "lam": self.trace_decay,
                "value_loss_coef": 1.0,
                "entropy_coef": self.entropy,
                "learning_rate": self.learning_rate,
                "max_grad_norm": 1.0,
                "use_clipped_value_loss": True,
                "schedule": "adaptive",
                "desired_kl": self.desired_kl,
                "rnd_cfg": None,
                "symmetry_cfg": None,
            },
            "multi_gpu": None,
        }
