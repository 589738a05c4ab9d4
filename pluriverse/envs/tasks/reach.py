"""Reach: an arm moves its gripper to commanded poses."""

from typing import Any

from pluriverse.envs.tasks.arm import ArmTask
from pluriverse.randomization import InitialState, Uniform


class ReachTask(ArmTask):
    """An arm is to bring its gripper to a point in front of it, and to hold it there.

    It sees its joints, where the point is from the gripper and in the world, and its last actions.
    """

    randomization = (InitialState(joint_position=Uniform(-0.02, 0.02)),)
    low, high = (0.3, -0.35, 0.15), (0.65, 0.35, 0.6)
    """Corners of the box in which points are drawn [m]."""

    def setup(self, env: Any) -> None:
        """Take the tensors of the arm, and room for points."""
        import torch

        super().setup(env)
        self.points = torch.zeros((env.env_count, 3), dtype=torch.float32, device=env.device)
        self._low, self._high = (
            torch.tensor(c, dtype=torch.float32, device=env.device) for c in (self.low, self.high)
        )

    def observe(self, env: Any) -> Any:
        """Return joints, the point, and the way to it."""
        import torch

        return torch.cat([*self.felt(), self.points, self.points - self.grip(), env.actions], dim=1)

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        import torch

        distance = (self.points - self.grip()).norm(dim=1)
        return {
            "distance": -0.1 * distance,
            "arrival": 0.1 * torch.exp(-distance.square() / 0.05**2),
            "action rate": -0.001 * (env.actions - env.previous_actions).square().sum(dim=1),
        }

    def reset(self, env: Any, mask: Any) -> None:
        """Draw points."""
        import torch

        super().reset(env, mask)
        drawn = env.uniform(self._low, self._high, 3)
        self.points.copy_(torch.where(mask.unsqueeze(1), drawn, self.points))

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the distance to the point [m]."""
        return {"distance": (self.points - self.grip()).norm(dim=1)}
