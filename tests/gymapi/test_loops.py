"""Loops in assets: constraints and loop joints stand where their actor does, and spoil none of its joints."""

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_sim, undamped
from tests.importers.usd_text import at as place
from tests.importers.usd_text import body, joint, stage

# A double pendulum, whose elbow is held to the world where it is.
HELD = """<mujoco><worldbody><body name="upper" pos="0.2 0 1">
  <joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/>
  <body name="lower" pos="0.5 0 0">
    <joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/>
  </body></body></worldbody>
  <equality><connect body1="lower" anchor="0 0 0"/></equality></mujoco>"""
Z = 'uniform token physics:axis = "Z"'
# A crank upright, a rod level, and a hand that can slide on along x.
ARM = (
    body("crank")
    + body("rod", place(y=1.0))
    + body("hand", place(x=1.0, y=1.0))
    + joint("RevoluteJoint", "shoulder", "", "/crank", Z)
    + joint("RevoluteJoint", "elbow", "/crank", "/rod", f"{Z}\npoint3f physics:localPos0 = (0, 1, 0)")
    + joint("RevoluteJoint", "wrist", "/rod", "/hand", f"{Z}\npoint3f physics:localPos0 = (1, 0, 0)")
)
ROPE = joint("DistanceJoint", "rope", "", "/hand", "float physics:maxDistance = 1.5\n")
GUIDE = joint(
    "PrismaticJoint",
    "guide",
    "",
    "/hand",
    "bool physics:excludeFromArticulation = 1\npoint3f physics:localPos0 = (1, 1, 0)\n"
    "float physics:lowerLimit = -0.3\nfloat physics:upperLimit = 0.4\n",
)


def make_actors(gym, folder, file, text, **options):
    """Return a sim and three actors at three places; gravity pulls down, and along x."""
    (folder / file).write_text(text)
    sim = make_sim(gravity=0.0)
    sim.params.gravity = gymapi.Vec3(3.0, 0.0, -9.81)
    asset = gym.load_asset(sim, str(folder), file, undamped(**options))
    actors = []
    for index in range(3):
        env = add_env(sim)
        pose = at(x=0.7 * index, y=0.1 * index, z=0.5 * index)
        actors.append((env, gym.create_actor(env, asset, pose, "arm", index, 0)))
    return sim, asset, actors


def moved(gym, sim, actors, step_count):
    """Return where the bodies are behind the root of each actor after some steps, shape [actor, body, 3]."""
    for _ in range(step_count):
        gym.simulate(sim)
    states = [gym.get_actor_rigid_body_states(*actor, gymapi.STATE_POS) for actor in actors]
    position = np.array([[row.tolist() for row in state["pose"]["p"]] for state in states])
    return position - position[:, :1]


def test_what_the_file_holds_to_its_world_stands_where_the_actor_does(gym, tmp_path):
    """An elbow connected to the world stays, and the forearm swings, at every place alike."""
    sim, _, actors = make_actors(gym, tmp_path, "held.xml", HELD, fix_base_link=True)
    found = moved(gym, sim, actors, 40)
    # The connection is soft as all of MuJoCo's are: some millimetres by the weight.
    np.testing.assert_allclose(found[:, 1], np.tile([0.5, 0.0, 0.0], (3, 1)), rtol=0.0, atol=5e-3)
    np.testing.assert_allclose(found[1:], found[:1].repeat(2, axis=0), rtol=0.0, atol=2e-5)
    with pytest.raises(ValueError, match=r"set_actor_scale: .* constraints \(.*\) whose lengths stay"):
        gym.set_actor_scale(*actors[0], 2.0)
    assert gym.set_actor_scale(*actors[0], 1.0)


@pytest.mark.parametrize("loop", ["rope", "guide"])
def test_loop_joints_to_the_world_stand_where_the_actor_does(gym, tmp_path, loop):
    """A rope has no degrees of freedom and bounds the distance; a guide has one, and its end stop acts."""
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    text = stage(ARM + {"rope": ROPE, "guide": GUIDE}[loop])
    sim, asset, actors = make_actors(gym, tmp_path, f"{loop}.usda", text)
    names = ["shoulder", "elbow", "wrist"] + (["guide"] if loop == "guide" else [])
    assert gym.get_asset_joint_names(asset) == gym.get_asset_dof_names(asset) == names
    hand = moved(gym, sim, actors, 100)[:, 2]
    if loop == "guide":
        np.testing.assert_allclose(hand, np.tile([1.4, 1.0, 0.0], (3, 1)), rtol=0.0, atol=5e-3)
    else:
        distance = np.linalg.norm(hand, axis=1)
        np.testing.assert_allclose(distance, 1.5, rtol=0.0, atol=5e-3)
    np.testing.assert_allclose(hand[1:], hand[:1].repeat(2, axis=0), rtol=0.0, atol=1e-4)
    assert gym.get_sim_dof_count(sim) == 3 * len(names)


def test_jacobian_of_a_body_in_a_loop_is_that_of_the_tree(gym, tmp_path):
    """The hand at (1, 1) turns about the crank's axis at the origin, whatever guide closes the loop."""
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    sim, asset, _ = make_actors(gym, tmp_path, "guide.usda", stage(ARM + GUIDE))
    gym.prepare_sim(sim)
    jacobian = gym.acquire_jacobian_tensor(sim, "arm")
    gym.refresh_jacobian_tensors(sim)
    hand = jacobian.numpy()[:, -1]  # of the body that is last
    shoulder = np.array([-1.0, 1.0, 0.0, 0.0, 0.0, 1.0])  # z x (1, 1, 0), and z
    np.testing.assert_allclose(hand[:, :, 0], np.tile(shoulder, (3, 1)), rtol=0.0, atol=1e-5)
    assert not hand[:, :, gym.get_asset_dof_names(asset).index("guide")].any()


MIMIC = """
<robot name="gripper">
  <link name="palm"/>
  {links}
  <joint name="lead" type="prismatic"><axis xyz="0 1 0"/><parent link="palm"/><child link="left"/>
    <limit effort="1000" lower="-1" upper="1" velocity="10"/></joint>
  <joint name="follow" type="prismatic"><axis xyz="0 -1 0"/><parent link="palm"/><child link="right"/>
    <limit effort="1000" lower="-1" upper="1" velocity="10"/>
    <mimic joint="lead" multiplier="0.5" offset="0.02"/></joint>
  <joint name="turn" type="revolute"><axis xyz="1 0 0"/><parent link="palm"/><child link="dial"/>
    <limit effort="1000" lower="-3" upper="3" velocity="10"/>
    <mimic joint="lead" multiplier="4" offset="0.1"/></joint>
</robot>
""".format(
    links="".join(
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link>'
        for name in ("left", "right", "dial")
    )
)


@pytest.mark.parametrize("prepared", [False, True])
def test_joints_that_follow_others_do_so_at_any_size(gym, tmp_path, prepared):
    """Slides follow by lengths, turns by angles: twice the size is the same shape."""
    (tmp_path / "gripper.urdf").write_text(MIMIC)
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, str(tmp_path), "gripper.urdf", undamped(fix_base_link=True))
    envs = [add_env(sim)]
    gym.create_actor(envs[0], asset, at(), "gripper", 0, 1)
    envs.append(add_env(sim))
    gym.create_actor(envs[1], asset, at(), "gripper", 1, 1)
    drives = gym.get_asset_dof_properties(asset)
    lead, follow, turn = (gym.find_asset_dof_index(asset, name) for name in ("lead", "follow", "turn"))
    drives["driveMode"][lead], drives["stiffness"][lead], drives["damping"][lead] = 1, 1e5, 1e4
    for env in envs:
        gym.set_actor_dof_properties(env, 0, drives)
    if prepared:
        gym.prepare_sim(sim)
    gym.set_actor_scale(envs[1], 0, 2.0)
    for env, target in zip(envs, (0.1, 0.2), strict=True):
        targets = np.zeros(3, dtype=np.float32)
        targets[lead] = target
        gym.set_actor_dof_position_targets(env, 0, targets)
    for _ in range(90):
        gym.simulate(sim)
    small, large = (gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)["pos"] for env in envs)
    np.testing.assert_allclose(small[[lead, follow, turn]], [0.1, 0.07, 0.5], atol=2e-3)
    np.testing.assert_allclose(large[[lead, follow, turn]], [0.2, 0.14, 0.5], atol=2e-3)
