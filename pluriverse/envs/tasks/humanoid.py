"""Humanoid: a robot on two legs stands, or follows velocity commands."""

from typing import Any

from pluriverse.envs.tasks.velocity import VelocityTask


class HumanoidTask(VelocityTask):
    """G1 follows commanded velocities; with a command of zero it learns to stand.

    As `VelocityTask`, with weights for two legs: standing up counts in itself, and feet swing longer.

    Args:
        arguments: Arguments of `VelocityTask`.
    """

    tracking_width = 0.5
    swing_seconds = 0.3
    weights = VelocityTask.weights | {
        "orientation": -2.0,
        "torques": -2.0e-5,
        "accelerations": -1.0e-7,
        "pose": -0.1,
        "alive": 0.5,
    }

    def __init__(self, robot: Any = "g1", **arguments: Any) -> None:
        arguments.setdefault("forward", (0.0, 0.8))
        super().__init__(robot, **arguments)

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        terms = super().reward(env)
        terms["alive"] = (
            self.weights["alive"] * env.step_seconds * (self.t.projected_gravity[:, 2] < -0.5).float()
        )
        return terms
