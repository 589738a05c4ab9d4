"""Small assets and sims for the tests of the actor API."""

from pathlib import Path

import numpy as np

from pluriverse import gymapi

CARTPOLE = """
<robot name="cartpole">
  <link name="slider"/>
  <link name="cart">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.5 0.3 0.2"/></geometry></collision>
  </link>
  <link name="pole">
    <inertial>
      <origin xyz="0 0 0.5"/><mass value="0.5"/>
      <inertia ixx="0.05" iyy="0.05" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0 0 0.5"/><geometry><box size="0.05 0.06 1"/></geometry></collision>
  </link>
  <joint name="slider_to_cart" type="prismatic">
    <axis xyz="0 1 0"/><parent link="slider"/><child link="cart"/>
    <limit effort="1000" lower="-4" upper="4" velocity="100"/>
  </joint>
  <joint name="cart_to_pole" type="continuous">
    <axis xyz="1 0 0"/><origin xyz="0.12 0 0"/><parent link="cart"/><child link="pole"/>
    <limit effort="500" velocity="20"/>
  </joint>
</robot>
"""

# Children in another order than that of their names.
BRANCHED = """
<robot name="branched">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  {links}
  <joint name="zebra_joint" type="revolute"><axis xyz="0 0 1"/><origin xyz="0.3 0 0"/>
    <parent link="base"/><child link="zebra"/><limit effort="5" lower="-1" upper="1" velocity="3"/></joint>
  <joint name="apple_joint" type="prismatic"><axis xyz="1 0 0"/><origin xyz="0 0.2 0"/>
    <parent link="base"/><child link="apple"/>
    <limit effort="5" lower="-0.1" upper="0.2" velocity="3"/></joint>
  <joint name="apple_tip" type="spherical"><origin xyz="0.1 0 0"/>
    <parent link="apple"/><child link="ball"/></joint>
</robot>
""".format(
    links="".join(
        f"""<link name="{name}"><inertial><origin xyz="0.05 0.02 0"/><mass value="0.3"/>
        <inertia ixx="0.002" iyy="0.003" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry><sphere radius="0.03"/></geometry></collision></link>"""
        for name in ("zebra", "apple", "ball")
    )
)


def write_assets(folder: Path) -> None:
    """Write the files of the assets."""
    (folder / "cartpole.urdf").write_text(CARTPOLE)
    (folder / "branched.urdf").write_text(BRANCHED)


def make_params(*, gravity: float = -9.81, substeps: int = 2) -> gymapi.SimParams:
    """Return parameters with z up."""
    params = gymapi.SimParams()
    params.up_axis = gymapi.UP_AXIS_Z
    params.gravity = gymapi.Vec3(0.0, 0.0, gravity)
    params.substeps = substeps
    params.physx.num_threads = 1
    return params


def make_sim(*, ground: bool = False, gravity: float = -9.81, substeps: int = 2) -> gymapi.Sim:
    """Return an empty sim with z up."""
    gym = gymapi.acquire_gym()
    params = make_params(gravity=gravity, substeps=substeps)
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    if ground:
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        gym.add_ground(sim, plane)
    return sim


def add_env(sim: gymapi.Sim) -> gymapi.Env:
    """Return a new env of a grid with four to a row, 2 m apart."""
    corner = gymapi.Vec3(1.0, 1.0, 1.0)
    return gymapi.acquire_gym().create_env(sim, gymapi.Vec3(-1.0, -1.0, 0.0), corner, 4)


def undamped(**values: object) -> gymapi.AssetOptions:
    """Return options without damping, with further values."""
    options = gymapi.AssetOptions()
    options.angular_damping = 0.0
    for name, value in values.items():
        setattr(options, name, value)
    return options


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> gymapi.Transform:
    """Return a pose without turn."""
    return gymapi.Transform(gymapi.Vec3(x, y, z))


def position_of(env: gymapi.Env, actor: int, body: int = 0) -> np.ndarray:
    """Return the position of a body in its env."""
    states = gymapi.acquire_gym().get_actor_rigid_body_states(env, actor, gymapi.STATE_ALL)
    return np.array(states["pose"]["p"][body].tolist())


def set_modes(
    gym: gymapi.Gym, env: gymapi.Env, actor: int, mode: int, stiffness: float = 0.0, damping: float = 0.0
) -> None:
    """Give all degrees of freedom of an actor a drive mode and gains."""
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"].fill(mode)
    properties["stiffness"].fill(stiffness)
    properties["damping"].fill(damping)
    gym.set_actor_dof_properties(env, actor, properties)


def dof_state(gym: gymapi.Gym, env: gymapi.Env, actor: int) -> np.ndarray:
    """Return positions and velocities of the degrees of freedom of an actor."""
    return gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
