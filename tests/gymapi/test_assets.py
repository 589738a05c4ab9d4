"""Assets: what options make of files and primitives."""

import numpy as np
import pytest

from pluriverse import gymapi
from pluriverse.types import GeoType
from tests.gymapi.scenes import add_env, at, make_params, make_sim, position_of, undamped

WELDED = """
<robot name="welded">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"><inertial><origin xyz="0 0 0.1"/><mass value="1"/>
    <inertia ixx="0.7" iyy="0.7" izz="0.7" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><cylinder radius="0.1" length="0.4"/></geometry></collision></link>
  <link name="wheel">
    <collision><geometry><mesh filename="meshes/cube.obj"/></geometry></collision></link>
  <joint name="weld" type="fixed"><parent link="base"/><child link="tool"/></joint>
  <joint name="axle" type="continuous"><parent link="base"/><child link="wheel"/>
    <origin xyz="0 0.5 0"/><axis xyz="0 1 0"/><dynamics damping="0.3" friction="0.2"/>
    <limit effort="7" velocity="5"/></joint>
</robot>
"""
CUBE = "".join(f"v {x} {y} {z}\n" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
CUBE += "f 1 2 4\nf 1 4 3\nf 5 7 8\nf 5 8 6\nf 1 5 6\nf 1 6 2\nf 3 4 8\nf 3 8 7\nf 1 3 7\nf 1 7 "
"5\nf 2 6 8\nf 2 8 4\n"


@pytest.fixture
def folder(tmp_path):
    """Return the root folder of assets, whose meshes lie beside the folder of the file."""
    (tmp_path / "robots").mkdir()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "robots" / "welded.urdf").write_text(WELDED)
    (tmp_path / "meshes" / "cube.obj").write_text(CUBE)
    return str(tmp_path)


def load(gym, folder, **options):
    sim = make_sim()
    asset = gym.load_asset(sim, folder, "robots/welded.urdf", undamped(**options))
    env = add_env(sim)
    return sim, env, asset, gym.create_actor(env, asset, at(), "welded", 0, 0)


def test_defaults_come_from_file_and_options(gym, folder):
    """Mass of a link without inertial is density times volume, also that of a mesh found above the file."""
    _, env, asset, actor = load(
        gym, folder, density=500.0, armature=0.25, default_dof_drive_mode=gymapi.DOF_MODE_VEL
    )
    masses = [part.mass for part in gym.get_actor_rigid_body_properties(env, actor)]
    np.testing.assert_allclose(masses, [2.0, 500.0 * 0.2**3, 1.0], rtol=1e-5)  # joints by name: axle, weld
    properties = gym.get_asset_dof_properties(asset)[0]
    assert not properties["hasLimits"]
    assert properties["driveMode"] == gymapi.DOF_MODE_VEL
    expected = {"damping": 0.3, "friction": 0.2, "effort": 7.0, "velocity": 5.0, "armature": 0.25}
    for name, value in expected.items():
        assert properties[name] == np.float32(value), name


def test_fixed_joints_collapse(gym, folder):
    """Merged links weigh what both did, and the asset says where they went."""
    _, env, asset, actor = load(gym, folder, collapse_fixed_joints=True)
    assert gym.get_asset_rigid_body_names(asset) == ["base", "wheel"]
    assert asset.merged_links == {"tool": "base"}
    assert gym.get_actor_rigid_body_properties(env, actor)[0].mass == pytest.approx(3.0)


def test_masses_can_follow_from_shapes(gym, folder):
    """override_com and override_inertia take those of the shapes, at the mass of the file."""
    _, env, _, actor = load(gym, folder, override_com=True, override_inertia=True)
    tool = gym.get_actor_rigid_body_properties(env, actor)[2]
    np.testing.assert_allclose(list(tool.com), 0.0, atol=1e-6)
    assert tool.mass == pytest.approx(1.0)
    np.testing.assert_allclose(tool.inertia.z.z, 0.5 * 0.1**2, rtol=1e-4)
    np.testing.assert_allclose(tool.inertia.x.x, (3 * 0.1**2 + 0.4**2) / 12.0, rtol=1e-4)


def test_cylinders_become_capsules(gym, folder):
    _, _, asset, _ = load(gym, folder, replace_cylinder_with_capsule=True)
    assert asset.builder.shape_type.tolist().count(GeoType.CAPSULE) == 1
    assert GeoType.CYLINDER not in asset.builder.shape_type


def test_capsule_lies_along_x(gym):
    """Its width is that of the cylinder, without the caps: it stands on its cap at half of it plus radius."""
    sim = make_sim(ground=True)
    capsule = gym.create_capsule(sim, 0.1, 0.4, undamped())
    env = add_env(sim)
    upright = gymapi.Quat.from_axis_angle(gymapi.Vec3(0, 1, 0), np.pi / 2)
    gym.create_actor(env, capsule, gymapi.Transform(gymapi.Vec3(0, 0, 0.32), upright), "standing", 0, 1)
    gym.create_actor(env, capsule, at(x=2.0, z=0.12), "lying", 0, 1)
    for _ in range(30):
        gym.simulate(sim)
    heights = [position_of(env, actor)[2] for actor in (0, 1)]
    np.testing.assert_allclose(heights, [0.302, 0.102], atol=2e-3)


def test_compliance_is_how_far_a_load_sinks(gym):
    """A box on soft material sinks by its weight times the compliance."""
    sim = make_sim(ground=True)
    env = add_env(sim)
    actor = gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2, undamped()), at(z=0.102), "box", 0, 0)
    shapes = gym.get_actor_rigid_shape_properties(env, actor)
    shapes[0].compliance = 1e-4
    shapes[0].rest_offset, shapes[0].contact_offset = 0.0, 0.02
    gym.set_actor_rigid_shape_properties(env, actor, shapes)
    for _ in range(180):
        gym.simulate(sim)
    # Four corners share the weight; each contact has the stiffness. The ground keeps its rest offset.
    sunk = 0.101 - position_of(env, actor)[2]
    np.testing.assert_allclose(sunk, 8.0 * 9.81 * 1e-4 / 4.0, rtol=0.05)


LINK = """<link name="{}"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
NAMES_WITH_SLASHES = {
    "arm.urdf": '<robot name="dog">'
    + "".join(LINK.format(name) for name in ("trunk", "arm/lower", "arm/tip"))
    + """<joint name="arm/shoulder" type="revolute"><parent link="trunk"/><child link="arm/lower"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
    <joint name="arm/weld" type="fixed" dont_collapse="true"><parent link="arm/lower"/>
    <child link="arm/tip"/></joint></robot>""",
    "arm.xml": """<mujoco model="dog"><worldbody><body name="trunk"><freejoint/><geom size="0.1"/>
    <body name="arm/lower"><joint name="arm/shoulder" range="-1 1"/><geom size="0.1"/>
    <body name="arm/tip"><geom size="0.1"/></body></body></body></worldbody></mujoco>""",
}


@pytest.mark.parametrize("file", NAMES_WITH_SLASHES)
def test_names_keep_their_slashes(gym, tmp_path, file):
    """Robots that carry an arm have links called wx250s/gripper_link, which scripts look up by that name."""
    (tmp_path / file).write_text(NAMES_WITH_SLASHES[file])
    sim = make_sim()
    asset = gym.load_asset(sim, str(tmp_path), file, undamped(collapse_fixed_joints=True))
    assert gym.get_asset_rigid_body_names(asset) == ["trunk", "arm/lower", "arm/tip"]
    assert gym.get_asset_dof_names(asset) == ["arm/shoulder"]
    assert gym.find_asset_rigid_body_index(asset, "arm/tip") == 2


def test_a_box_without_depth_is_a_plate(gym):
    """Scripts hide tables by sizes of zero; a box without any size remains an error."""
    sim = make_sim()
    with pytest.warns(gymapi.GymWarning, match="depth is 0, so the box is a plate 0.0003 m thick"):
        plate = gym.create_box(sim, 0.3, 0.3, 0.0)
    np.testing.assert_allclose(plate.builder.shape_scale[0], (0.15, 0.15, 0.00015))
    with pytest.raises(ValueError, match=r"width is 0\.0 m"):
        gym.create_box(sim, 0.0, 0.0, 0.0)


def test_precession_can_be_switched_off(gym):
    """Without gyroscopic forces a box that spins off its axes keeps its angular velocity."""
    sim = make_sim(gravity=0.0, substeps=4)
    velocities = {}
    env = add_env(sim)
    for place, gyroscopic in enumerate((True, False)):
        options = undamped(enable_gyroscopic_forces=gyroscopic)
        box = gym.create_box(sim, 0.1, 0.3, 0.6, options)
        actor = gym.create_actor(env, box, at(x=2.0 * place), "box", 0, 0)
        gym.set_rigid_angular_velocity(env, actor, gymapi.Vec3(1.0, 2.0, 0.5))
    for _ in range(60):
        gym.simulate(sim)
    for place, gyroscopic in enumerate((True, False)):
        velocities[gyroscopic] = np.array(list(gym.get_rigid_angular_velocity(env, place)))
    np.testing.assert_allclose(velocities[False], [1.0, 2.0, 0.5], atol=0.05)
    assert np.linalg.norm(velocities[True] - [1.0, 2.0, 0.5]) > 0.3


def test_offsets_of_the_sim_change_at_run_time(gym):
    """A larger rest offset lifts what lies on the ground, by that of both."""
    sim = make_sim(ground=True)
    env = add_env(sim)
    actor = gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2, undamped()), at(z=0.102), "box", 0, 0)
    for _ in range(10):
        gym.simulate(sim)
    params = gym.get_sim_params(sim)
    params.physx.rest_offset = 0.01
    gym.set_sim_params(sim, params)
    for _ in range(60):
        gym.simulate(sim)
    np.testing.assert_allclose(position_of(env, actor)[2], 0.12, atol=1e-3)


def test_root_held_by_a_slide_goes_where_it_is_put(gym, tmp_path):
    """The row of a root that a joint holds is its pose; to write it moves the base, and joints stay."""
    (tmp_path / "cart.xml").write_text(
        '<mujoco><worldbody><body name="cart" pos="0 0 3"><joint name="slide" type="slide" axis="1 0 0"/>'
        '<geom size="0.1"/></body></worldbody></mujoco>'
    )
    sim = make_sim()
    asset = gym.load_asset(sim, str(tmp_path), "cart.xml", undamped())
    add_env(sim)  # an env without actors
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(z=1.0), "cart", 0, 1)
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"] = 0.5
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    np.testing.assert_allclose(position_of(env, actor), [0.5, 0.0, 1.0], atol=1e-6)
    gym.prepare_sim(sim)
    roots = gym.acquire_actor_root_state_tensor(sim)
    rows = roots.numpy().copy()
    for place in ((2.0, 1.0, 1.5), (-1.0, 0.0, 0.5)):
        rows[0, :3] = place
        gym.set_actor_root_state_tensor(sim, rows)
        gym.refresh_actor_root_state_tensor(sim)
        np.testing.assert_allclose(roots.numpy()[0, :3], place, atol=1e-6)
    root = gym.get_actor_root_state(env, actor)
    root["pose"]["p"] = (0.0, 0.0, 2.0)
    gym.set_actor_root_state(env, actor, root, gymapi.STATE_ALL)
    gym.simulate(sim)
    np.testing.assert_allclose(position_of(env, actor), [0.0, 0.0, 2.0], atol=1e-6)
    assert gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["pos"][0] == np.float32(0.5)


def test_ball_drives_follow_the_time_step(gym, assets):
    """A stiff ball joint stays stable when the time step grows."""
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params(gravity=0.0))
    asset = gym.load_asset(sim, assets, "branched.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "robot", 0, 1)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"], properties["stiffness"], properties["damping"] = gymapi.DOF_MODE_POS, 100.0, 1.0
    gym.set_actor_dof_properties(env, actor, properties)
    gym.simulate(sim)
    params = gym.get_sim_params(sim)
    params.dt, params.substeps = 0.1, 1
    gym.set_sim_params(sim, params)
    target = np.array([0.0, 0.5, 0.2, -0.4, 0.0])
    gym.set_actor_dof_position_targets(env, actor, target)
    for _ in range(60):
        gym.simulate(sim)
    positions = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["pos"]
    np.testing.assert_allclose(positions[1:4], target[1:4], atol=0.01)
