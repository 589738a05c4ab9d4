"""What holds the base of an asset: base joints, bodies of other assets, poses, articulations of limbs."""

import numpy as np
import pytest

from pluriverse import Axis, JointDofConfig, JointType, ModelBuilder
from pluriverse.dynamics import eval_fk
from pluriverse.importers import AssetWarning
from pluriverse.importers.base_attachment import BaseAttachmentError

FLOAT32_ROUNDING = 2.0**-22  # a few roundings of numbers about 1

INERTIAL = '<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'


def arm(side, y):
    return f"""<link name="{side}">{INERTIAL}{BOX}</link><joint name="{side}_shoulder" type="continuous">
      <origin xyz="0 {y} 0"/><axis xyz="0 1 0"/><parent link="torso"/><child link="{side}"/></joint>
      <link name="{side}_hand">{INERTIAL}</link><joint name="{side}_wrist" type="continuous">
      <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/><parent link="{side}"/><child link="{side}_hand"/></joint>"""


URDF = f"""<robot name="robot"><link name="torso">{INERTIAL}{BOX}</link>{arm("left", 0.5)}{arm("right", -0.5)}
</robot>"""
MJCF = """<mujoco model="robot"><worldbody><geom name="stand" type="box" size="0.1 0.1 0.1" pos="0 0 -0.3"/>
  <body name="torso"><freejoint/><geom type="box" size="0.1 0.1 0.1"/>
    <body name="left" pos="0 0.5 0"><joint axis="0 1 0"/><geom type="box" size="0.1 0.1 0.1"/></body>
  </body></worldbody></mujoco>"""
USDA = """#usda 1.0
(
    upAxis = "Z"
    metersPerUnit = 1
)
def Xform "torso" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsArticulationRootAPI"])
{
    def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        double size = 0.2
    }
}
"""
SOURCES = {"urdf": URDF, "mjcf": MJCF, "usd": USDA}
QUARTER = np.sqrt(0.5)


def add(builder, kind, **options):
    if kind == "usd":
        pytest.importorskip("pxr")
    return getattr(builder, f"add_{kind}")(SOURCES[kind], **options)


def body_poses(builder, joint_q):
    model = builder.finalize(device="cpu")
    state = model.state()
    state.joint_q.assign(np.asarray(joint_q, dtype=np.float32))
    eval_fk(model, state.joint_q, state.joint_qd, state)
    return state.body_q.numpy()


@pytest.mark.parametrize("kind", SOURCES)
def test_a_base_joint_moves_the_base_from_where_it_is_authored(kind):
    """A planar base: it slides along x and y of the pose of the asset and turns about its z."""
    builder = ModelBuilder()
    pose = ((1.0, 2.0, 0.5), (0.0, 0.0, QUARTER, QUARTER))  # x of the asset is y of the world
    joint = {"joint_type": "d6", "linear_axes": [Axis.X, "y"], "angular_axes": [{"axis": "z", "damping": 3}]}
    report = add(builder, kind, xform=pose, base_joint=joint)
    assert builder.joint_type[report.joints[0]] == JointType.D6
    assert builder.joint_damping[:3].tolist() == [0.0, 0.0, 3.0]
    q = np.zeros(builder.joint_coord_count)
    torso = report.bodies[0]
    np.testing.assert_allclose(body_poses(builder, q)[torso, :3], pose[0], atol=FLOAT32_ROUNDING)
    q[:3] = 0.3, 0.1, np.pi / 2
    moved = body_poses(builder, q)[torso]
    np.testing.assert_allclose(moved[:3], [1.0 - 0.1, 2.0 + 0.3, 0.5], atol=2 * FLOAT32_ROUNDING)
    np.testing.assert_allclose(np.abs(moved[3:]), [0.0, 0.0, 1.0, 0.0], atol=2 * FLOAT32_ROUNDING)


def test_the_frame_of_a_base_joint_is_its_place_in_the_base():
    """A hinge 0.5 m beside the base: a quarter turn takes the base around it."""
    builder = ModelBuilder()
    joint = {
        "joint_type": JointType.REVOLUTE,
        "axis": (0, 0, 2),
        "limit_upper": 2.0,
        "child_xform": ((0.5, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)),
        "label": "robot/turntable",
    }
    builder.add_urdf(URDF, base_joint=joint)
    assert builder.joint_label[0] == "robot/turntable"
    assert builder.joint_limit_upper[0] == 2.0
    q = np.zeros(builder.joint_coord_count)
    np.testing.assert_allclose(body_poses(builder, q)[0, :3], [0, 0, 0], atol=FLOAT32_ROUNDING)
    q[0] = np.pi / 2
    np.testing.assert_allclose(body_poses(builder, q)[0, :3], [0.5, -0.5, 0], atol=FLOAT32_ROUNDING)


@pytest.mark.parametrize("kind", SOURCES)
def test_base_joints_of_all_types(kind):
    for joint, coord_count in [
        ({"joint_type": "fixed"}, 0),
        ({"joint_type": "free"}, 7),
        ({"joint_type": "ball", "damping": 1.0}, 4),
        ({"joint_type": "prismatic", "linear_axes": [JointDofConfig(axis="z", target_ke=5.0)]}, 1),
        ({"joint_type": "revolute"}, 1),
    ]:
        builder = ModelBuilder()
        report = add(builder, kind, base_joint=joint, xform=((0, 0, 1), (0, 0, 0, 1)))
        first = report.joints[0]
        assert builder.joint_type[first] == JointType[joint["joint_type"].upper()]
        assert builder.joint_q_start[first + 1 :][:1].tolist() in ([coord_count], [])
        np.testing.assert_allclose(builder.body_q[report.bodies[0]][:3], [0, 0, 1])


@pytest.mark.parametrize("kind", SOURCES)
def test_an_asset_on_a_body_goes_where_the_body_goes(kind):
    """Its links and what it fixes to its world, relative to the body as they are to the world otherwise."""
    builder = ModelBuilder()
    carrier = builder.add_body(xform=((0, 0, 3), (0, 0, 0, 1)), mass=1.0, inertia=np.eye(3))
    builder.add_shape_box(carrier, hx=0.3, hy=0.3, hz=0.3)
    floating = {"floating": False} if kind != "urdf" else {}
    report = add(builder, kind, xform=((0, 0, 0.4), (0, 0, 0, 1)), parent_body=carrier, **floating)
    assert builder.joint_parent[report.joints[0]] == carrier
    assert (builder.shape_body[list(report.shapes)] >= 0).all()
    q = np.zeros(builder.joint_coord_count)
    q[:7] = 1, 0, 3, QUARTER, 0, 0, QUARTER  # up of the carrier is −y of the world
    poses = body_poses(builder, q)
    np.testing.assert_allclose(poses[report.bodies[0], :3], [1, -0.4, 3], atol=2 * FLOAT32_ROUNDING)
    if kind == "mjcf":
        stand = builder.shape_label.index("robot/worldbody/stand")
        assert builder.shape_body[stand] == carrier
        np.testing.assert_allclose(builder.shape_transform[stand][:3], [0, 0, 0.1], atol=1e-12)


def pairs_with(builder, body):
    """Return with which bodies a body of the only world can collide."""
    model = builder.finalize(device="cpu")
    pairs = np.column_stack([model.templates[0].pair_shape0, model.templates[0].pair_shape1])
    bodies = np.where(pairs >= 0, model.shape_body.numpy()[pairs], -1)
    return {int(other) for pair in bodies for other in pair if body in pair} - {body}


@pytest.mark.parametrize("filters", [True, False])
def test_the_base_does_not_collide_with_its_carrier_unless_asked_to(filters):
    builder = ModelBuilder()
    carrier = builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.add_shape_box(carrier, hx=0.3, hy=0.3, hz=0.3)
    joint = {"joint_type": "revolute", "axis": "z", "collision_filter_parent": filters}
    report = builder.add_urdf(URDF, parent_body=carrier, base_joint=joint)
    torso, left, _, right, _ = report.bodies
    assert pairs_with(builder, carrier) == {left, right} | (set() if filters else {torso})


def test_the_pose_of_the_first_body_and_the_axis_that_points_up():
    """In the importer as in scenes: a file with y up stands upright, and its base where xform says."""
    builder = ModelBuilder()
    report = builder.add_urdf(URDF, up_axis=Axis.Y, floating=True)
    pose = builder.body_q[report.bodies[0]]
    np.testing.assert_allclose(pose, [0, 0, 0, QUARTER, 0, 0, QUARTER], atol=1e-12)
    builder = ModelBuilder()
    moved = MJCF.replace('<body name="torso">', '<body name="torso" pos="3 0 0" euler="0 0 90">')
    report = builder.add_mjcf(moved, override_root_xform=True, xform=((0, 0, 1), (0, 0, 0, 1)))
    np.testing.assert_allclose(builder.body_q[report.bodies[0]], [0, 0, 1, 0, 0, 0, 1], atol=1e-12)


def test_limbs_of_a_fixed_torso_can_be_articulations_of_their_own():
    """The mechanism is the same: the same joints and mass matrix."""
    whole, split = ModelBuilder(), ModelBuilder()
    whole.add_urdf(URDF)
    split.add_urdf(URDF, split_bimanual_root_articulation=True)
    assert whole.articulation_label == ["robot"]
    assert split.articulation_label == ["robot", "robot/left", "robot/right"]
    assert split.joint_articulation.tolist() == [0, 1, 1, 2, 2]
    assert split.joint_label == whole.joint_label
    q = [0.1, 0.2, 0.3, 0.4]
    np.testing.assert_array_equal(body_poses(whole, q), body_poses(split, q))


def test_one_limb_or_a_torso_that_moves_is_not_split():
    """The parts of a floating robot push each other, so they stay one articulation."""
    for options in ({"floating": True}, {"base_joint": {"joint_type": "revolute"}}):
        builder = ModelBuilder()
        builder.add_urdf(URDF, split_bimanual_root_articulation=True, **options)
        assert builder.articulation_label == ["robot"]
    builder = ModelBuilder()
    one = URDF.replace(arm("right", -0.5), "")
    builder.add_urdf(one, split_bimanual_root_articulation=True)
    assert builder.articulation_label == ["robot"]


TWO = """<mujoco><worldbody><body name="a"><freejoint/><geom size="1"/></body>
  <body name="b"><freejoint/><geom size="1"/></body></worldbody></mujoco>"""
CART = """<mujoco><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom size="1"/>
  </body></worldbody></mujoco>"""


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("floating", [None, False])
def test_an_asset_on_a_body_is_part_of_its_articulation(kind, floating):
    """A free base is fixed to the body where the file has it; all joints are one mechanism."""
    builder = ModelBuilder()
    builder.add_urdf(URDF.replace('"robot"', '"carrier"'))
    hand = builder.body_label.index("carrier/left_hand")
    report = add(builder, kind, parent_body=hand, floating=floating, xform=((0.5, 0, 0), (0, 0, 0, 1)))
    assert builder.articulation_label == ["carrier"]
    assert not builder.joint_articulation.any()
    assert len(report.articulations) == 0
    root = report.bodies[0]
    base = builder.joint_child.tolist().index(root)
    assert builder.joint_type[base] == JointType.FIXED
    assert builder.joint_parent[base] == hand
    # The shoulder of the carrier at a quarter turn about y: what was along x of the hand is along -z.
    joint_q = np.zeros(builder.joint_coord_count)
    joint_q[0] = 0.5 * np.pi
    poses = body_poses(builder, joint_q)
    np.testing.assert_allclose(poses[root, :3] - poses[hand, :3], [0, 0, -0.5], atol=4.0 * FLOAT32_ROUNDING)


def test_an_asset_on_a_body_of_an_earlier_robot_is_an_articulation_of_its_own():
    """Joints of an articulation lie one after the other, and others lie in between."""
    builder = ModelBuilder()
    for name in ("first", "second"):
        builder.add_urdf(URDF.replace('"robot"', f'"{name}"'))
    for _ in range(2):
        builder.add_urdf(URDF, parent_body=builder.body_label.index("first/left_hand"))
    assert builder.articulation_label == ["first", "second", "robot", "robot_2"]
    model = builder.finalize("cpu")
    owner = np.repeat(np.arange(4), np.diff(model.articulation_start.numpy()))
    np.testing.assert_array_equal(model.joint_articulation.numpy(), owner)


WRONG = {
    "floating and base_joint": (
        {"floating": True, "base_joint": {"joint_type": "fixed"}},
        "base_joint: it takes the place of floating",
    ),
    "type": ({"base_joint": {"joint_type": "hinge"}}, "joint_type is 'hinge', but it is one of fixed"),
    "no mapping": ({"base_joint": "fixed"}, "'fixed' is no mapping"),
    "no type": ({"base_joint": {}}, "joint_type is None"),
    "key": (
        {"base_joint": {"joint_type": "fixed", "axis": "x"}},
        "a fixed joint has no 'axis'; there are joint_type",
    ),
    "place": (
        {"base_joint": {"joint_type": "fixed", "parent_xform": None}},
        "has no 'parent_xform'.*xform gives the pose",
    ),
    "axis": ({"base_joint": {"joint_type": "revolute", "axis": "w"}}, "its axis is 'w'"),
    "key of an axis": (
        {"base_joint": {"joint_type": "d6", "linear_axes": [{"axes": "x"}]}},
        "an axis has no 'axes'",
    ),
    "mode": ({"base_joint": {"joint_type": "revolute", "actuator_mode": 9}}, "9 is not a valid"),
    "no axes": ({"base_joint": {"joint_type": "d6"}}, "0 linear and 0 angular axes"),
    "two axes": ({"base_joint": {"joint_type": "revolute", "angular_axes": "xy"}}, "one axis, but 2"),
    "parent": ({"parent_body": 7}, "body 7 does not exist; there are 1 bodies"),
    "parent that is none": ({"parent_body": "table"}, "'table' is not the index of a body"),
    "floating on a body": ({"parent_body": 0, "floating": True}, "floating=True lets the asset move freely"),
    "free joint on a body": (
        {"parent_body": 0, "base_joint": {"joint_type": "free"}},
        "base_joint of type FREE lets the asset move freely",
    ),
    "up axis": ({"up_axis": "up"}, "up_axis: 'up' is none of 'x', 'y' and 'z'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_options_that_cannot_be_are_named(case):
    options, message = WRONG[case]
    builder = ModelBuilder()
    builder.add_body()
    with pytest.raises(BaseAttachmentError, match=f"add_urdf: .*{message}"):
        builder.add_urdf(URDF, **options)
    assert builder.body_count == 1


def test_bases_that_cannot_be_replaced_are_named():
    builder = ModelBuilder()
    builder.add_body()
    with pytest.raises(BaseAttachmentError, match=r"several \('MuJoCo Model.*/a', 'MuJoCo Model.*/b'\)"):
        builder.add_mjcf(TWO, base_joint={"joint_type": "fixed"})
    with pytest.raises(BaseAttachmentError, match=r"joint 'MuJoCo.*/rail' of the file"):
        builder.add_mjcf(CART, base_joint={"joint_type": "fixed"})
    with pytest.raises(BaseAttachmentError, match=r"parent_body: each of the joints 'MuJoCo.*freely"):
        builder.add_mjcf(TWO, parent_body=0)
    massless = URDF.replace(INERTIAL, "").replace(BOX, "")
    with pytest.warns(AssetWarning, match="no mass on a joint"):
        builder.add_urdf(massless, base_joint={"joint_type": "prismatic"})
