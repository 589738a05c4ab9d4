"""Humanoid: a robot on two legs stands, or follows velocity commands."""

import math
from dataclasses import dataclass
from typing import Any

from pluriverse.envs.mirror import Mirror, Reflection
from pluriverse.envs.tasks.velocity import VelocityTask, matches

# Joints of a leg that step, as G1 calls them behind left_ and right_.
LEG = ("hip_pitch_joint", "hip_roll_joint", "knee_joint", "ankle_pitch_joint", "ankle_roll_joint")
SIDES = ("left_", "right_")


@dataclass
class Gait:
    """How legs step in turn, as targets of joints before the policy adds its own.

    A leg is lifted while the sine of its phase is positive, swings with its cosine, and comes down where it
    catches the body: ahead, if that is faster than commanded ([Raibert1986]).
    """

    period: float = 0.65
    """Time of two steps, one of each leg [s]."""
    lift: float = 0.25
    """Bending of the hip at the highest point of the swing; the knee bends twice as far [rad]."""
    stride: float = 0.28
    """Swing of the leg forwards per commanded velocity [rad s/m]."""
    catch_forward: float = 0.35
    """Swing forwards per velocity beyond the commanded one [rad s/m]."""
    catch_sideways: float = 1.2
    """Swing sideways per velocity to the side [rad s/m]."""
    catch_delay: float = 0.75
    """Phase by which catching lags behind lifting, so that it lasts until the foot is down [rad]."""
    sway: float = 0.08
    """Leaning over to the leg that stands, as angle of both hips [rad]."""
    sway_phase: float = 0.2
    """Phase by which swaying is ahead of lifting [rad]."""
    forward: float = 0.0
    """Place of the feet ahead of that at home, as angle of the legs [rad]."""
    width: float = 0.15
    """Place of the feet outwards of that at home, as angle of the legs [rad]."""
    balance: float = 1.0
    """Turning of the feet against leaning [rad per sine of the lean]."""
    balance_rate: float = 0.22
    """Turning of the feet against the velocity of leaning [rad per rad/s]."""


class HumanoidTask(VelocityTask):
    """G1 follows commanded velocities; with a command of zero it learns to stand.

    As `VelocityTask`, with a clock: where it is to walk, the targets of its legs follow a `Gait`, and actions
    are offsets from it. What it sees has sine and cosine of the clock at its end, zeros where it is to stand.
    Actions move legs and waist; arms stay at home.

    Args:
        robot: Name of a robot, or a `Robot` of your own, whose legs have the joints of G1's.
        gait: How it steps; that of the class if None.
        arguments: Further arguments of `VelocityTask`.
    """

    dt = 0.02
    decimation = 1
    driven = ("*_hip_*", "*_knee_*", "*_ankle_*", "waist_*")
    least_upright = 0.7
    gait = Gait()
    walking_command = 0.1
    """Command from which it is to walk [m/s, rad/s]."""
    tracking_width = 0.4
    weights = VelocityTask.weights | {
        # Stepping on the spot keeps all but this.
        "tracking": 3.0,
        "orientation": -2.0,
        "torques": -1.0e-5,
        "accelerations": -1.0e-7,
        "swing": 0.0,
        "pose": -0.3,
        "alive": 0.5,
        "gait": 0.5,
    }

    def __init__(self, robot: Any = "g1", *, gait: Gait | None = None, **arguments: Any) -> None:
        arguments.setdefault("forward", (0.0, 0.8))
        super().__init__(robot, **arguments)
        if gait is not None:
            self.gait = gait

    def setup(self, env: Any) -> None:
        """Take the tensors of the robot, and those of the clock."""
        import torch

        super().setup(env)
        names = self.robot.joint_names
        columns = [[names.index(side + joint) for side in SIDES] for joint in LEG]
        self._leg = torch.tensor(columns, dtype=torch.int64, device=env.device)
        names = self.robot.foot_names
        feet = [k for side in SIDES for k, name in enumerate(names) if matches(name, (side + "*",))]
        self._feet = torch.tensor(feet, dtype=torch.int64, device=env.device)
        self._side = torch.tensor([1.0, -1.0], dtype=torch.float32, device=env.device)

    def _phase(self, env: Any) -> Any:
        """Return the phase of the clock [rad], shape [env, 1]."""
        return (2.0 * math.pi * env.step_seconds / self.gait.period) * env.episode_steps.unsqueeze(1).float()

    def _walks(self) -> Any:
        return (self.commands.abs().amax(dim=1, keepdim=True) > self.walking_command).float()

    def act(self, env: Any, actions: Any) -> None:
        """Move the targets of the drives about those of the gait."""
        self._step(env)
        super().act(env, actions)

    def _step(self, env: Any) -> None:
        """Write the targets of the gait, for both legs [env, 2] at once."""
        import torch

        gait, t, side, walks = self.gait, self.t, self._side, self._walks()
        phase = self._phase(env)
        velocity, spin, gravity = t.base_linear_velocities, t.base_angular_velocities, t.projected_gravity
        lift = gait.lift * walks * (torch.sin(phase) * side).clamp(min=0.0)
        catch = walks * (torch.sin(phase - gait.catch_delay) * side).clamp(min=0.0)
        forward = (
            gait.forward
            - gait.stride * walks * self.commands[:, :1] * torch.cos(phase) * side
            + gait.catch_forward * catch * (velocity[:, :1] - self.commands[:, :1])
        )
        outward = (
            gait.width * side
            + gait.catch_sideways * catch * (velocity[:, 1:2] - self.commands[:, 1:2])
            + gait.sway * walks * torch.sin(phase + gait.sway_phase)
        )
        pitch = gait.balance * gravity[:, :1] + gait.balance_rate * spin[:, 1:2]
        roll = -gait.balance * gravity[:, 1:2] + gait.balance_rate * spin[:, :1]
        self.reference.copy_(self.home)
        for columns, offset in zip(
            self._leg,
            (-lift - forward, outward, 2.0 * lift, forward - lift + pitch, roll - outward),
            strict=True,
        ):
            self.reference.index_add_(1, columns, offset)

    def observe(self, env: Any) -> Any:
        """Return what the robot senses, its command, and the clock."""
        import torch

        base, phase = super().observe(env), self._phase(env)
        return torch.cat([base, torch.sin(phase) * self._walks(), torch.cos(phase) * self._walks()], dim=1)

    def mirror(self, env: Any) -> Mirror:
        """Return observations and actions in the mirror: the clock is half a period ahead there."""
        base = super().mirror(env)
        return Mirror(base.observations + Reflection.signed(-1.0, -1.0), base.actions)

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        import torch

        terms = super().reward(env)
        stands = torch.sin(self._phase(env)) * self._side * self._walks() <= 0.0
        touches = self.t.foot_contact_times.index_select(1, self._feet) > 0.0
        seconds = env.step_seconds
        terms["alive"] = -self.weights["alive"] * seconds * self.t.projected_gravity[:, 2]
        terms["gait"] = self.weights["gait"] * seconds * (stands == touches).float().mean(dim=1)
        return terms
