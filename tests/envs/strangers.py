"""Tasks as users write them: a robot of their own, in few lines."""

import numpy as np

import pluriverse as pv
from pluriverse import envs
from pluriverse.randomization import InitialState, Uniform, friction

PENDULUM = """
<robot name="pendulum">
  <link name="base"/>
  <joint name="shoulder" type="continuous">
    <parent link="base"/><child link="rod"/><axis xyz="0 1 0"/><origin xyz="0 0 1"/>
  </joint>
  <link name="rod">
    <inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
      <inertia ixx="0.083" ixy="0" ixz="0" iyy="0.083" iyz="0" izz="0.001"/></inertial>
    <collision><origin xyz="0 0 -0.5"/><geometry><cylinder radius="0.02" length="1"/></geometry></collision>
  </link>
</robot>
"""


class SwingUp(envs.Task):
    """A pendulum is to swing up."""

    dt, decimation, episode_seconds = 0.01, 2, 0.6
    action_count = 1
    randomization = (InitialState(joint_position=Uniform(-0.5, 0.5)),)

    def build(self, identities: np.ndarray) -> pv.ModelBuilder:
        robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
        robot.add_urdf(PENDULUM)
        builder.replicate(robot, len(identities))
        return builder

    def setup(self, env):
        self.t = env.tensors("pendulum").torch

    def act(self, env, actions):
        self.t.joint_efforts[:] = 5.0 * actions

    def observe(self, env):
        import torch

        angle = self.t.joint_positions
        noise = env.uniform(-0.01, 0.01, 1)
        return torch.cat([angle.sin(), angle.cos(), self.t.joint_velocities + noise], dim=1)

    def reward(self, env):
        return -self.t.joint_positions[:, 0].cos()

    def terminated(self, env):
        return self.t.joint_velocities[:, 0].abs() > 4.0


class Mixed(SwingUp):
    """Pendulums of two lengths, by identity, observed in groups."""

    def build(self, identities: np.ndarray) -> pv.ModelBuilder:
        builder = pv.ModelBuilder()
        for identity in identities:
            robot = pv.ModelBuilder()
            robot.add_urdf(PENDULUM)
            if identity % 2:
                body = robot.add_body(xform=((3.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0)), label="ball")
                robot.add_shape_sphere(body, radius=0.1)
            builder.add_world(robot)
        return builder

    def observe(self, env):
        seen = super().observe(env)
        return {"policy": seen, "critic": self.t.base_positions}


class Pushed(SwingUp):
    """A pendulum that is pushed at random while it acts, and observed with noise."""

    def act(self, env, actions):
        self.t.joint_efforts[:] = 5.0 * actions + env.uniform(-1.0, 1.0, 1)


class SceneTask(SwingUp):
    """A pendulum on a cart, from a bundled scene."""

    scene = "cartpole"
    randomization = ()

    def setup(self, env):
        self.t = env.tensors("cartpole").torch

    def act(self, env, actions):
        self.t.joint_efforts[:] = torch_row(actions, 2)


def torch_row(actions, width: int):
    """Return an action for the first of so many joints."""
    import torch

    return torch.nn.functional.pad(actions, (0, width - 1))


def add_chain(builder: pv.ModelBuilder, length: int) -> pv.ModelBuilder:
    """Add links that hang on each other; the third is a grip."""
    parent, joints = -1, []
    for number in range(length):
        link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
        frame = ((0, 0, -0.5), (0, 0, 0, 1))
        joints.append(builder.add_joint_revolute(parent, link, parent_xform=frame, axis="Y"))
        builder.add_shape_sphere(link, radius=0.1, label="grip" if number == 2 else "arm")
        parent = link
    builder.add_articulation(joints, label="long" if length == 3 else "short")
    return builder


class Chains(envs.Task):
    """Chains of one to three links, by identity, of which the longest alone have a grip."""

    dt, decimation, episode_seconds = 0.01, 2, 0.6
    action_count = 1
    columns: dict = {"dof_count": 3, "body_count": 3, "foot_count": 1}  # noqa: RUF012
    randomization = (
        friction(Uniform(0.5, 1.0), entities="grip"),
        InitialState(joint_position=Uniform(-0.5, 0.5)),
    )

    def build(self, identities: np.ndarray) -> pv.ModelBuilder:
        builder = pv.ModelBuilder()
        for identity in identities:
            builder.begin_world()
            add_chain(builder, 1 + int(identity) // 2 % 3)
            builder.end_world()
        return builder

    def setup(self, env):
        self.t = env.tensors(["short", "long"], **self.columns).torch

    def act(self, env, actions):
        self.t.joint_efforts[:] = 2.0 * actions

    def observe(self, env):
        import torch

        return torch.cat([self.t.joint_positions, self.t.joint_velocities, self.t.foot_air_times], dim=1)

    def reward(self, env):
        return self.t.joint_positions.sum(dim=1)
