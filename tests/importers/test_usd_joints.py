"""What becomes of USD bodies and joints: types, limits, drives, states, positions, order, what is held."""

import numpy as np
import pytest

from pluriverse.importers import AssetError, AssetWarning, ImportSeverity
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import BodyFlags, EqType, JointTargetMode, JointType
from tests.importers.mechanics import body_poses
from tests.importers.usd_text import (
    DEGREE,
    ROUNDING,
    arm,
    at,
    body,
    collider,
    entries,
    joint,
    load,
    prim,
    stage,
)

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")


def test_angles_are_degrees_in_limits_drives_and_states():
    """Limits, targets and states by pi / 180, gains by 180 / pi; the effort limit is a torque."""
    content = arm(
        "float physics:lowerLimit = -90\nfloat physics:upperLimit = 45\n"
        "float drive:angular:physics:stiffness = 2\nfloat drive:angular:physics:damping = 3\n"
        "float drive:angular:physics:targetPosition = 30\nfloat drive:angular:physics:targetVelocity = 60\n"
        "float drive:angular:physics:maxForce = 17\n"
        "float state:angular:physics:position = 10\nfloat state:angular:physics:velocity = 20\n"
        "float physxJoint:maxJointVelocity = 180",
        apis=("PhysicsDriveAPI:angular", "PhysicsJointStateAPI:angular"),
    )
    builder, _ = load(content, strict=True)
    assert builder.joint_limit_lower[0] == pytest.approx(-0.5 * np.pi)
    assert builder.joint_limit_upper[0] == pytest.approx(0.25 * np.pi)
    assert builder.joint_target_ke[0] == pytest.approx(2.0 / DEGREE)
    assert builder.joint_target_kd[0] == pytest.approx(3.0 / DEGREE)
    assert builder.joint_target_pos[0] == pytest.approx(30.0 * DEGREE)
    assert builder.joint_target_vel[0] == pytest.approx(60.0 * DEGREE)
    assert builder.joint_effort_limit[0] == pytest.approx(17.0)
    assert builder.joint_velocity_limit[0] == pytest.approx(np.pi)
    assert builder.joint_q[0] == pytest.approx(10.0 * DEGREE)
    assert builder.joint_qd[0] == pytest.approx(20.0 * DEGREE)
    assert builder.joint_target_mode[0] == JointTargetMode.POSITION_VELOCITY


@pytest.mark.parametrize(
    ("gains", "options", "mode"),
    [
        ((2.0, 3.0), {}, JointTargetMode.POSITION),
        ((2.0, 3.0), {"force_position_velocity_actuation": True}, JointTargetMode.POSITION_VELOCITY),
        ((0.0, 3.0), {}, JointTargetMode.VELOCITY),
        ((0.0, 0.0), {}, JointTargetMode.EFFORT),
    ],
)
def test_gains_decide_what_a_drive_follows(gains, options, mode):
    drive = (
        f"float drive:angular:physics:stiffness = {gains[0]}\n"
        f"float drive:angular:physics:damping = {gains[1]}"
    )
    content = arm(drive, apis=("PhysicsDriveAPI:angular",))
    builder, _ = load(content, joint_drive_gains_scaling=0.5, **options)
    assert builder.joint_target_mode[0] == mode
    assert builder.joint_target_ke[0] == pytest.approx(0.5 * gains[0] / DEGREE)


def test_angular_velocity_is_in_degrees_and_turns_with_the_parent_and_xform():
    """A body in a turned frame has its velocities along the axes of that frame."""
    turned = 'float xformOp:rotateZ = 90\nuniform token[] xformOpOrder = ["xformOp:rotateZ"]\n'
    content = prim(
        "Xform",
        "World",
        turned
        + body("a", "vector3f physics:velocity = (1, 0, 0)\nvector3f physics:angularVelocity = (180, 0, 0)"),
    )
    builder, _ = load(content)
    np.testing.assert_allclose(builder.joint_qd[:6], [0.0, 1.0, 0.0, 0.0, np.pi, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("side", "limits"),
    [("lowerLimit = -90", (-0.5 * np.pi, np.inf)), ("upperLimit = 90", (-np.inf, 0.5 * np.pi))],
)
def test_a_limit_on_one_side_is_kept(side, limits):
    """usd-core's parser calls it disabled."""
    builder, _ = load(arm(f"float physics:{side}"), strict=True)
    np.testing.assert_allclose([builder.joint_limit_lower[0], builder.joint_limit_upper[0]], limits)


def test_reversed_joint_keeps_the_sign_of_its_coordinate():
    """USD's joint position is that of body 1 relative to body 0, whichever is the parent in the tree."""
    state = "float state:angular:physics:position = 40\nfloat physics:lowerLimit = -10"
    forward, _ = load(arm(state))
    backward, _ = load(arm(state, first="/tip", second="/base"))
    assert forward.joint_q[0] == backward.joint_q[0] == pytest.approx(40.0 * DEGREE)
    assert backward.joint_limit_lower[0] == forward.joint_limit_lower[0]
    turned = body_poses(forward)["/tip"][3:]
    np.testing.assert_allclose(turned[:3], [np.sin(20.0 * DEGREE), 0.0, 0.0], atol=ROUNDING)
    np.testing.assert_allclose(body_poses(backward)["/tip"][3:6], -turned[:3], atol=ROUNDING)


def test_joint_positions_without_state_follow_from_the_poses_of_the_bodies():
    """A tip drawn at 30 degrees is at 30 degrees."""
    pose = (
        "double3 xformOp:translate = (0, 0, 1)\nfloat xformOp:rotateX = 30\n"
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateX"]'
    )
    content = (
        body("base")
        + body("tip", pose)
        + joint("FixedJoint", "mount", "", "/base")
        + joint("RevoluteJoint", "elbow", "/base", "/tip", "point3f physics:localPos0 = (0, 0, 1)")
    )
    builder, report = load(content, strict=True)
    assert builder.joint_q[0] == pytest.approx(30.0 * DEGREE, rel=1e-5)
    assert report.losses == []


def test_frames_that_do_not_meet_are_reported():
    content = body("base") + body("tip", at(z=3.0)) + joint("RevoluteJoint", "j", "/base", "/tip")
    with pytest.warns(AssetWarning, match="joint frames apart on the stage.*by 3 m"):
        load(content)


def test_generic_joint_is_a_d6_joint_of_its_free_axes():
    """Locked axes (low above high) are none; limits and drives are those of each axis."""
    apis = [f"PhysicsLimitAPI:{axis}" for axis in ("transX", "transY", "rotX", "rotY")]
    limits = "".join(
        f"float limit:{axis}:physics:low = {low}\nfloat limit:{axis}:physics:high = {high}\n"
        for axis, low, high in (
            ("transX", 1, -1),
            ("transY", 1, -1),
            ("rotX", 1, -1),
            ("rotY", -20, 30),
        )
    )
    content = arm(limits + "float drive:rotZ:physics:stiffness = 2", "Joint", (*apis, "PhysicsDriveAPI:rotZ"))
    builder, _ = load(content, strict=True)
    assert builder.joint_type[1] == JointType.D6
    np.testing.assert_allclose(builder.joint_axis, [[0, 0, 1], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(builder.joint_limit_lower, [-np.inf, -20.0 * DEGREE, -np.inf])
    np.testing.assert_allclose(builder.joint_target_ke, [0.0, 0.0, 2.0 / DEGREE])
    reverse, _ = load(
        arm(limits, "Joint", apis, first="/tip", second="/base"), strict=True
    )  # slides after it turns, so it is a chain
    assert JointType.D6 not in list(reverse.joint_type)
    np.testing.assert_allclose(reverse.joint_axis, [[0, 0, -1], [0, -1, 0], [0, 0, -1]])


@pytest.mark.parametrize("reverse", [False, True])
def test_d6_positions_follow_from_the_poses_of_the_bodies(reverse):
    """Turned about X, then Y, then Z: forward kinematics leads back to the authored pose."""
    angles = (20.0, -35.0, 50.0)
    pose = (
        "double3 xformOp:translate = (0, 0, 1)\n"
        f"float3 xformOp:rotateZYX = {angles}\n"  # the matrix Rx Ry Rz
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZYX"]'
    )
    apis = [f"PhysicsLimitAPI:{axis}" for axis in ("transX", "transY", "transZ", "rotX")]
    limits = "".join(
        f"float limit:trans{axis}:physics:low = 1\nfloat limit:trans{axis}:physics:high = -1\n"
        for axis in "XYZ"
    )
    limits += "float limit:rotX:physics:low = -170\nfloat limit:rotX:physics:high = 170\n"
    ends = ("/base", "/tip")
    where = "0"
    if reverse:
        ends, where = ends[::-1], "1"
    content = (
        body("base")
        + body("tip", pose)
        + joint("FixedJoint", "mount", "", "/base")
        + joint("Joint", "j", *ends, f"point3f physics:localPos{where} = (0, 0, 1)\n" + limits, apis)
    )
    builder, _ = load(content, strict=True)
    from pxr import Gf

    x, y, z = (Gf.Rotation(Gf.Vec3d(*axis), a) for axis, a in zip(np.eye(3).tolist(), angles, strict=True))
    quat = (z * y * x).GetQuat()  # Gf composes from the left
    expected = np.array([*quat.GetImaginary(), quat.GetReal()])
    assert abs(body_poses(builder)["/tip"][3:] @ expected) == pytest.approx(1.0, abs=ROUNDING)
    if not reverse:
        np.testing.assert_allclose(builder.joint_q, np.array(angles) * DEGREE, rtol=1e-5)


def test_spherical_joints_and_free_rotations_are_ball_joints():
    builder, _ = load(arm(kind="SphericalJoint"), strict=True)
    assert builder.joint_type[1] == JointType.BALL
    apis = [f"PhysicsLimitAPI:trans{axis}" for axis in "XYZ"]
    locked = "".join(
        f"float limit:trans{axis}:physics:low = 1\nfloat limit:trans{axis}:physics:high = -1\n"
        for axis in "XYZ"
    )
    builder, _ = load(arm(locked, "Joint", apis), strict=True)
    assert builder.joint_type[1] == JointType.BALL


def test_bodies_without_joints_move_freely_and_articulations_can_be_fixed():
    """`floating=False` is about articulations; a stray body stays free."""
    content = prim("Xform", "robot", body("link"), ("PhysicsArticulationRootAPI",)) + body("stray", at(x=1.0))
    free, _ = load(content)
    assert list(free.joint_type) == [JointType.FREE, JointType.FREE]
    assert free.joint_label[0] == "/robot/link/floating_base"
    held, _ = load(content, floating=False)
    assert list(held.joint_type) == [JointType.FIXED, JointType.FREE]
    assert held.articulation_label[0] == "/robot"


def test_the_articulation_root_is_the_root_of_the_tree():
    content = (
        body("a") + body("b", apis=("PhysicsArticulationRootAPI",)) + joint("RevoluteJoint", "j", "/a", "/b")
    )
    builder, _ = load(content)
    assert builder.body_label == ["/b", "/a"]
    kept, _ = load(content, bodies_follow_joint_ordering=False)
    assert kept.body_label == ["/a", "/b"]
    assert list(kept.joint_child) == [1, 0]


def tree(order):
    """Return a base with two children, the first of which has a child, the joints in the given order."""
    joints = {
        "x": joint("RevoluteJoint", "x", "/base", "/left"),
        "y": joint("RevoluteJoint", "y", "/left", "/tip"),
        "z": joint("RevoluteJoint", "z", "/base", "/right"),
    }
    bodies = "".join(body(name) for name in ("base", "left", "right", "tip"))
    return bodies + joint("FixedJoint", "m", "", "/base") + "".join(joints[name] for name in order)


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [("dfs", ["/m", "/x", "/y", "/z"]), ("bfs", ["/m", "/z", "/x", "/y"]), (None, ["/m", "/z", "/y", "/x"])],
)
def test_joint_ordering(ordering, expected):
    order = {"dfs": "xyz", "bfs": "zxy", None: "zyx"}[ordering]
    builder, _ = load(tree(order), joint_ordering=ordering)
    if ordering is None:  # y hangs on x, so it waits for it
        expected = ["/m", "/z", "/x", "/y"]
    assert builder.joint_label == expected


def test_a_distance_joint_is_a_rope_between_bodies_that_move_freely():
    """In centimetres: two bodies of which one is kinematic, 1 m apart, on 0.5 to 1.5 m of rope."""
    content = body("a", "bool physics:kinematicEnabled = 1\n") + body("b", at(z=100.0))
    content += joint(
        "DistanceJoint",
        "rope",
        "/b",
        "/a",
        "float physics:minDistance = 50\nfloat physics:maxDistance = 150",
    )
    builder, report = load(content, meters=0.01, strict=True)
    assert report.losses == []
    model = builder.finalize("cpu")
    assert model.joint_type.numpy().tolist() == [JointType.FREE, JointType.FREE]
    assert model.body_flags.numpy().tolist() == [BodyFlags.KINEMATIC, BodyFlags.DYNAMIC]
    assert model.equality_constraint_label == ["/rope"]
    assert model.equality_constraint_type.numpy().tolist() == [EqType.DISTANCE]
    ends = (model.equality_constraint_body1.numpy()[0], model.equality_constraint_body2.numpy()[0])
    assert ends == (0, 1)  # the child is the one that moves
    np.testing.assert_allclose(model.equality_constraint_polycoef.numpy()[0, :2], [0.5, 1.5])
    with pytest.raises(AssetError, match=r"minDistance is 2.0 and physics:maxDistance 1.0"):
        load(
            arm(
                "float physics:minDistance = 2\nfloat physics:maxDistance = 1",
                kind="DistanceJoint",
            )
        )


def test_disabled_bodies_and_joints():
    content = body("a", "bool physics:rigidBodyEnabled = 0\n" + collider("Sphere", "s")) + body("b")
    with pytest.warns(AssetWarning, match="rigidBodyEnabled"):
        moving, _ = load(content)
    assert moving.body_count == 2
    static, _ = load(content, only_load_enabled_rigid_bodies=True, strict=True)
    assert static.body_label == ["/b"]
    assert static.shape_body[0] == -1
    off = arm("bool physics:jointEnabled = 0")
    builder, report = load(off, strict=True)
    assert builder.joint_type[1] == JointType.FREE
    assert entries(report)["jointEnabled = false"].severity is ImportSeverity.NOTE
    builder, report = load(off, only_load_enabled_joints=False, strict=True)
    assert builder.joint_type[1] == JointType.FREE
    assert builder.equality_constraint_type.tolist() == [EqType.HINGE]
    assert builder.equality_constraint_enabled.tolist() == [False]
    assert "switches it on" in entries(report)["jointEnabled = false"].consequence
    with pytest.warns(AssetWarning, match="it is left out"):
        builder, _ = load(off.replace("RevoluteJoint", "PrismaticJoint"), only_load_enabled_joints=False)
    assert builder.joint_type[1] == JointType.FREE


def test_kinematic_bodies_stand_still():
    """They hang on the world and carry what hangs on them; joints between them hold nothing."""
    held = "bool physics:kinematicEnabled = 1\n"
    content = body("a", held + at(x=2.0), mass=None) + body("b", at(x=2.0, z=1.0))
    content += joint("RevoluteJoint", "ab", "/b", "/a", "point3f physics:localPos1 = (0, 0, 1)")
    content += body("c", held, mass=None) + joint("FixedJoint", "ac", "/a", "/c")
    builder, report = load(content, strict=True)
    assert builder.joint_label == ["/a/floating_base", "/ab", "/c/floating_base"]
    assert builder.joint_type.tolist() == [JointType.FREE, JointType.REVOLUTE, JointType.FREE]
    assert builder.body_flags.tolist() == [BodyFlags.KINEMATIC, BodyFlags.DYNAMIC, BodyFlags.KINEMATIC]
    assert entries(report)["joint of kinematic bodies"].entities == ["/ac"]
    assert "kinematic body" in entries(report)
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.body_q.numpy()[:, :3], [[2, 0, 0], [2, 0, 1], [0, 0, 0]], atol=ROUNDING)
    with pytest.warns(AssetWarning, match="it stands still"):
        load(body("a", "bool physics:kinematicEnabled = 1\nvector3f physics:velocity = (1, 0, 0)"))


def test_kinematic_bodies_that_cannot_move_are_fixed():
    """Planes collide only where they stand still, and what is mounted on a body moves with it."""
    held = "bool physics:kinematicEnabled = 1\n"
    floor = collider("Plane", "p", 'uniform token axis = "Z"')
    builder, report = load(body("ground", held + at(z=0.5) + floor, mass=None) + body("b"), strict=True)
    assert builder.joint_type.tolist() == [JointType.FIXED, JointType.FREE]
    assert "kinematic body that is fixed, because planes collide only if they are fixed" in entries(report)
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.body_q.numpy()[0, :3], [0.0, 0.0, 0.5])
    other = ModelBuilder()
    carrier = other.add_body(mass=1.0, inertia=np.eye(3))
    other.add_usd(stage(body("tool", held + at(x=1.0))), parent_body=carrier, strict=True)
    assert other.joint_type.tolist() == [JointType.FREE, JointType.FIXED]
    assert other.joint_parent.tolist() == [-1, carrier]
    np.testing.assert_allclose(other.finalize("cpu").body_q.numpy()[1, :3], [1.0, 0.0, 0.0])


def test_joints_to_bodies_that_are_left_out_hold_nothing():
    content = prim("Xform", "A", body("x")) + prim("Xform", "B", body("y"))
    content += joint("RevoluteJoint", "j", "/A/x", "/B/y")
    builder, report = load(content, ignore_paths=["/B"])
    assert list(builder.joint_type) == [JointType.FREE]
    assert entries(report)["joint to a body that is left out"].severity is ImportSeverity.NOTE


def test_efforts_are_limited_as_mujoco_has_it():
    """The smaller of the limits of drive and joint holds; one that is switched off does not."""
    drive = "float drive:angular:physics:damping = 1\nfloat drive:angular:physics:maxForce = 50\n"
    bounds = "double mjc:actuatorfrcrange:min = -20\ndouble mjc:actuatorfrcrange:max = 20\n"
    off = 'uniform token mjc:actuatorfrclimited = "false"\n'
    for text, limit in ((drive + bounds, 20.0), (drive + bounds + off, 50.0), (drive, 50.0)):
        builder, report = load(arm(text, apis=("PhysicsDriveAPI:angular",)))
        assert builder.joint_effort_limit[0] == limit
        assert not any(entry.feature.startswith("mjc:") for entry in report.losses)
    with pytest.warns(AssetWarning, match="mjc:actuatorfrcrange that is not symmetric"):
        load(arm(bounds.replace("-20", "-10")))


def test_efforts_that_converters_take_from_a_urdf_are_read_as_there():
    """0 stands for want of a number, and infinity for no limit."""
    with pytest.warns(AssetWarning, match=r"urdf:limit:effort 0 .*read as no limit"):
        builder, _ = load(arm("float urdf:limit:effort = 0"), effort_limit=30.0)
    assert builder.joint_effort_limit[0] == 30.0
    builder, _ = load(arm("float urdf:limit:effort = inf"), strict=True)
    assert builder.joint_effort_limit[0] == np.inf


@pytest.mark.parametrize(
    ("kind", "token", "unit"), [("Revolute", "angular", 1e-4), ("Prismatic", "linear", 1.0)]
)
def test_springs_of_limits_are_those_of_physx(kind, token, unit):
    """Per radian, with masses and lengths of the stage; without stiffness the limit is as hard as any."""
    limits = "float physics:lowerLimit = -1\nfloat physics:upperLimit = 1\n"
    soft = f"float physxLimit:{token}:stiffness = 400\nfloat physxLimit:{token}:damping = 20\n"
    builder, _ = load(arm(limits + soft, kind=f"{kind}Joint"), meters=0.01, strict=True)
    np.testing.assert_allclose(builder.joint_limit_ke, 400.0 * unit)
    np.testing.assert_allclose(builder.joint_limit_kd, 20.0 * unit)
    hard = f"float physxLimit:{token}:damping = 20\nfloat physxLimit:X:stiffness = 7\n"
    builder, _ = load(arm(limits + hard, kind=f"{kind}Joint"), meters=0.01, strict=True)
    assert np.isnan(builder.joint_limit_ke).all()  # left to the solver
    with pytest.raises(AssetError, match=f"physxLimit:{token}:stiffness"):
        load(arm(limits + soft.replace("400", "-400"), kind=f"{kind}Joint"))
