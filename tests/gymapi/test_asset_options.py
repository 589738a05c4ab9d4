"""Options of assets that change their parts: planar joints, kept joints, convex pieces."""

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_params, make_sim, position_of, undamped

INERTIAL = """<inertial><origin xyz="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>"""
PLATE_URDF = f"""
<robot name="plate"><link name="table"/><link name="plate">{INERTIAL}</link>
  <joint name="glide" type="planar"><parent link="table"/><child link="plate"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="100" velocity="10"/></joint></robot>
"""
PLATE_MJCF = """
<mujoco model="plate"><worldbody><body name="plate">
  <inertial pos="0.1 0 0" mass="2" diaginertia="0.02 0.02 0.03"/>
  <joint name="glide_x" type="slide" axis="1 0 0"/><joint name="glide_y" type="slide" axis="0 1 0"/>
  <joint name="glide_yaw" type="hinge" axis="0 0 1"/><geom size="0.01" contype="0" conaffinity="0"/>
</body></worldbody></mujoco>
"""
WELDS = """
<robot name="welds">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  {links}
  <joint name="a" type="fixed"><parent link="base"/><child link="flange"/>
    <origin xyz="0 0 0.5" rpy="0 0 1.5707963"/></joint>
  <joint name="b" type="fixed" dont_collapse="true"><parent link="flange"/><child link="sensor"/>
    <origin xyz="0.1 0 0"/></joint>
  <joint name="c" type="fixed"><parent link="sensor"/><child link="lens"/><origin xyz="0 0 0.2"/></joint>
</robot>
""".format(links="".join(f'<link name="{name}">{INERTIAL}</link>' for name in ("flange", "sensor", "lens")))


def cube(x: float, first: int) -> str:
    """Return a cube of 0.1 m at x as text of an OBJ file."""
    text = "".join(
        f"v {x + a} {b} {c}\n" for a in (-0.05, 0.05) for b in (-0.05, 0.05) for c in (-0.05, 0.05)
    )
    faces = ("124", "143", "578", "586", "156", "162", "348", "387", "137", "175", "268", "284")
    return text + "".join("f " + " ".join(str(first + int(k) - 1) for k in face) + "\n" for face in faces)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plate.urdf").write_text(PLATE_URDF)
    (tmp_path / "plate.xml").write_text(PLATE_MJCF)
    (tmp_path / "welds.urdf").write_text(WELDS)
    (tmp_path / "posts.obj").write_text(cube(-0.15, 1) + cube(0.15, 9))
    (tmp_path / "posts.urdf").write_text(
        '<robot name="posts"><link name="posts"><collision><geometry><mesh filename="posts.obj"/></geometry>'
        "</collision></link></robot>"
    )
    return str(tmp_path)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
@pytest.mark.parametrize("filename", ["plate.urdf", "plate.xml"])
def test_planar_joint_slides_and_turns(gym, folder, filename, solver):
    """Pushed by a force and a torque, a plate goes as a free body in the plane does: F t / m, tau t / I.

    Its centre of mass is off the joint, so without a push that point goes straight on while the plate turns.
    """
    sim = make_sim(gravity=-9.81, substeps=8)
    sim.params.solver = solver
    asset = gym.load_asset(sim, folder, filename, undamped(fix_base_link=filename == "plate.urdf"))
    names = gym.get_asset_dof_names(asset)
    assert names == ["glide_x", "glide_y", "glide_yaw"]
    types = [gym.get_asset_dof_type(asset, dof) for dof in range(3)]
    assert types == [gymapi.DOF_TRANSLATION, gymapi.DOF_TRANSLATION, gymapi.DOF_ROTATION]
    if filename == "plate.urdf":
        assert gym.get_asset_joint_type(asset, 0) == gymapi.JOINT_PLANAR
        assert gym.get_asset_dof_properties(asset)["hasLimits"].tolist() == [True, True, False]
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(z=1.0), "plate", 0, 1)
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"], states["vel"] = (0.2, -0.1, 0.4), (0.3, 0.5, 2.0)
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    body = gym.find_actor_rigid_body_handle(env, actor, "plate")

    def com_state():
        pose = gym.get_rigid_transform(env, body)
        velocity = list(gym.get_rigid_linear_velocity(env, body))
        return np.array([*pose.transform_point(gymapi.Vec3(0.1, 0, 0)), *velocity])

    start = com_state()
    # The joint slides along the axes of the table, and the velocity is that of the centre of mass.
    arm = 0.1 * np.array([np.cos(0.4), np.sin(0.4)])
    np.testing.assert_allclose(start[:3], [0.2 + arm[0], -0.1 + arm[1], 1.0], atol=1e-6)
    np.testing.assert_allclose(start[3:5], [0.3 - 2.0 * arm[1], 0.5 + 2.0 * arm[0]], atol=1e-6)
    for _ in range(30):
        gym.apply_body_forces(env, body, gymapi.Vec3(1.0, -2.0, 0), gymapi.Vec3(0, 0, 0.06))
        gym.simulate(sim)
    time, push = 0.5, np.array([1.0, -2.0]) / 2.0
    end = com_state()
    expected = start[:2] + start[3:5] * time + 0.5 * push * time**2
    # First order in the step of 2 ms: acceleration times time times step at most.
    np.testing.assert_allclose(end[:2], expected, atol=3e-3)
    np.testing.assert_allclose(end[3:5], start[3:5] + push * time, atol=3e-3)
    turned = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)[2]
    np.testing.assert_allclose(turned["vel"], 2.0 + 2.0 * time, atol=5e-3)
    np.testing.assert_allclose(turned["pos"], 0.4 + 2.0 * time + time**2, atol=5e-3)
    assert end[2] == pytest.approx(1.0, abs=1e-5)


def test_planar_joint_is_driven_and_scaled(gym, folder):
    """Position drives reach their targets on all three axes; twice as large it slides twice as far."""
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, folder, "plate.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "plate", 0, 1)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"].fill(gymapi.DOF_MODE_POS)
    properties["stiffness"], properties["damping"] = 400.0, 60.0
    gym.set_actor_dof_properties(env, actor, properties)
    gym.set_actor_dof_position_targets(env, actor, np.array([0.3, -0.2, 1.0]))
    for _ in range(120):
        gym.simulate(sim)
    positions = gym.get_actor_dof_states(env, actor, gymapi.STATE_POS)["pos"]
    np.testing.assert_allclose(positions, [0.3, -0.2, 1.0], atol=5e-3)
    gym.set_actor_scale(env, actor, 2.0)
    positions = gym.get_actor_dof_states(env, actor, gymapi.STATE_POS)["pos"]
    np.testing.assert_allclose(positions, [0.6, -0.4, 1.0], atol=1e-2)
    np.testing.assert_allclose(gym.get_actor_dof_properties(env, actor)["upper"][:2], 6.0)


def test_joints_that_are_not_to_collapse_stay(gym, folder):
    """`dont_collapse` keeps a fixed joint; of merged links the asset says in which body they are, and how."""
    sim = make_sim()
    asset = gym.load_asset(sim, folder, "welds.urdf", undamped(collapse_fixed_joints=True))
    assert gym.get_asset_rigid_body_names(asset) == ["base", "sensor"]
    assert gym.get_asset_joint_names(asset) == ["b"]
    assert asset.merged_links == {"flange": "base", "lens": "sensor"}
    flange, lens = asset.merged_poses["flange"], asset.merged_poses["lens"]
    np.testing.assert_allclose(list(flange.p), [0, 0, 0.5], atol=1e-6)
    np.testing.assert_allclose(list(flange.r.rotate(gymapi.Vec3(1, 0, 0))), [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(list(lens.p), [0, 0, 0.2], atol=1e-6)
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "welds", 0, 1)
    masses = [part.mass for part in gym.get_actor_rigid_body_properties(env, actor)]
    np.testing.assert_allclose(masses, [3.0, 4.0], rtol=1e-6)
    # The frame of the kept link is behind the merged one, turned with it.
    np.testing.assert_allclose(position_of(env, actor, 1), [0.0, 0.1, 0.5], atol=1e-6)


def test_bodies_of_mjcf_do_not_collapse(gym, tmp_path):
    """Scripts index the bodies of a hand by number, counting those that are welded to their parents."""
    (tmp_path / "hand.xml").write_text(
        """<mujoco><worldbody><body name="mount"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <body name="forearm"><inertial pos="0 0 0.2" mass="4" diaginertia="1 1 1"/>
        <body name="palm" pos="0 0 0.3"><joint type="hinge"/><geom size="0.05" density="1000"/></body>
        </body></body></worldbody></mujoco>"""
    )
    sim = make_sim()
    options = undamped(collapse_fixed_joints=True, fix_base_link=True)
    asset = gym.load_asset(sim, str(tmp_path), "hand.xml", options)
    assert gym.get_asset_rigid_body_names(asset) == ["mount", "forearm", "palm"]


@pytest.mark.parametrize("option", ["convex_decomposition_from_submeshes", "vhacd_enabled"])
def test_ball_falls_between_convex_pieces(gym, folder, monkeypatch, tmp_path, option):
    """Two posts in one mesh are one hull, on which a ball lies; as pieces they let it through."""
    if option == "vhacd_enabled":
        pytest.importorskip("vhacdx", reason="vhacdx is not installed: pip install pluriverse[mesh]")
    monkeypatch.setenv("PLURIVERSE_MESH_CACHE", str(tmp_path / "cache"))
    sim = make_sim()
    ball = gym.create_sphere(sim, 0.05, undamped())
    envs = []
    for index, pieces in enumerate((False, True)):
        asset = gym.load_asset(sim, folder, "posts.urdf", undamped(fix_base_link=True, **{option: pieces}))
        assert gym.get_asset_rigid_shape_count(asset) == (2 if pieces else 1)
        envs.append(add_env(sim))
        gym.create_actor(envs[-1], asset, at(), "posts", index, 0)
        gym.create_actor(envs[-1], ball, at(z=0.12), "ball", index, 0)
    for _ in range(30):
        gym.simulate(sim)
    heights = [position_of(env, 1)[2] for env in envs]
    assert heights[0] > 0.09
    assert heights[1] < -0.5


def test_long_decompositions_show_their_progress(gym, folder, monkeypatch, tmp_path, capfd):
    """And the next time they are read from disk."""
    pytest.importorskip("vhacdx", reason="vhacdx is not installed: pip install pluriverse[mesh]")
    from pluriverse.gymapi import asset_files

    monkeypatch.setenv("PLURIVERSE_MESH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(asset_files, "PROGRESS_TIME", -1.0)
    options = undamped(vhacd_enabled=True)
    options.vhacd_params.max_convex_hulls = 2
    gym.load_asset(make_sim(), folder, "posts.urdf", options)
    assert "V-HACD: mesh 1 of 1 (" in capfd.readouterr().err
    kept = list((tmp_path / "cache").glob("*.npz"))
    assert len(kept) == 1
    time = kept[0].stat().st_mtime_ns
    gym.load_asset(make_sim(), folder, "posts.urdf", options)
    assert kept[0].stat().st_mtime_ns == time


COPTER_MJCF = """
<mujoco model="copter"><worldbody><body name="chassis">
  <joint name="root_joint" type="hinge" limited="true" range="0 0"/>
  <geom type="box" size="0.1 0.1 0.05"/>
  <body name="rotor" pos="0 0 0.1"><joint name="spin" type="hinge" axis="0 0 1"/>
    <geom type="cylinder" size="0.2 0.01"/></body>
</body></worldbody></mujoco>
"""


def test_a_root_that_hangs_on_the_world_without_play_floats(tmp_path):
    (tmp_path / "copter.xml").write_text(COPTER_MJCF)
    gym, sim = gymapi.acquire_gym(), make_sim()
    with pytest.warns(gymapi.GymWarning, match="'chassis' hangs on the world by joints"):
        asset = gym.load_asset(sim, str(tmp_path), "copter.xml", undamped())
    assert gym.get_asset_dof_names(asset) == ["spin"]
    held = gym.load_asset(sim, str(tmp_path), "copter.xml", undamped(fix_base_link=True))
    env = add_env(sim)
    flying = gym.create_actor(env, asset, at(0.0, 0.0, 3.0), "copter", 0, 0)
    fixed = gym.create_actor(env, held, at(2.0, 0.0, 3.0), "held", 0, 0)
    for _ in range(30):
        gym.simulate(sim)
    fallen = 0.5 * 9.81 * (30 * make_params().dt) ** 2
    assert position_of(env, flying)[2] == pytest.approx(3.0 - fallen, rel=2e-2)
    assert position_of(env, fixed)[2] == pytest.approx(3.0, abs=1e-6)
