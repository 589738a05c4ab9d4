"""What becomes of USD prims: units, axes, joints, drives, masses, colliders, filters, options."""

import numpy as np
import pytest

from pluriverse.builder import ModelBuilder
from pluriverse.importers import AssetError, AssetWarning, ImportSeverity, UnsupportedAssetError
from pluriverse.solvers.mujoco.attributes import register_custom_attributes
from pluriverse.types import BodyFlags, EqType, GeoType, JointTargetMode, JointType, ShapeFlags
from tests.importers.mechanics import body_poses
from tests.importers.usd_text import at, body, collider, joint, prim, stage

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")

ROUNDING = 1e-6  # USD's physics attributes are in single precision
DEGREE = np.pi / 180.0


def load(content, *, meters=1, kilograms=1, up="Z", **options):
    builder = ModelBuilder()
    report = builder.add_usd(stage(content, meters=meters, kilograms=kilograms, up=up), **options)
    return builder, report


def arm(content="", kind="RevoluteJoint", apis=(), first="/base", second="/tip"):
    """Return a base fixed to the world, and a tip 1 above it on a joint."""
    return (
        body("base")
        + body("tip", at(z=1.0))
        + joint("FixedJoint", "mount", "", "/base")
        + joint(
            kind,
            "elbow",
            first,
            second,
            ("point3f physics:localPos0 = (0, 0, 1)\n" if first == "/base" else "")
            + ("point3f physics:localPos1 = (0, 0, 1)\n" if second == "/base" else "")
            + content,
            apis,
        )
    )


def entries(report):
    return {entry.feature: entry for entry in report.entries}


def test_units_are_those_of_the_stage():
    """Centimetres and grams: lengths by 0.01, masses by 0.001, inertias and gains by their products."""
    content = arm(
        'uniform token physics:axis = "Y"\n'
        "float physics:lowerLimit = -2\nfloat physics:upperLimit = 3\n"
        "float drive:linear:physics:stiffness = 5\nfloat drive:linear:physics:damping = 7\n"
        "float drive:linear:physics:targetPosition = 4\nfloat drive:linear:physics:maxForce = 11\n"
        "float physxJoint:armature = 13",
        kind="PrismaticJoint",
        apis=("PhysicsDriveAPI:linear",),
    ) + prim("PhysicsScene", "scene", "float physics:gravityMagnitude = 900")
    builder, _ = load(content, meters=0.01, kilograms=0.001, strict=True)
    np.testing.assert_allclose(builder.body_mass, 0.001)
    np.testing.assert_allclose(builder.body_inertia[1], 0.1 * 0.001 * 0.01**2 * np.eye(3), rtol=ROUNDING)
    np.testing.assert_allclose(builder.joint_X_p[1][:3], [0.0, 0.0, 0.01], rtol=ROUNDING)
    assert builder.joint_limit_lower[0] == pytest.approx(-0.02)
    assert builder.joint_limit_upper[0] == pytest.approx(0.03)
    assert builder.joint_target_ke[0] == pytest.approx(0.005)
    assert builder.joint_target_kd[0] == pytest.approx(0.007)
    assert builder.joint_target_pos[0] == pytest.approx(0.04)
    assert builder.joint_effort_limit[0] == pytest.approx(11e-5)
    assert builder.joint_armature[0] == pytest.approx(0.013)
    np.testing.assert_allclose(builder.gravity, [0.0, 0.0, -9.0], atol=1e-12)


def test_missing_length_unit_is_a_centimetre_and_told():
    """The default of USD; files that mean metres must say so."""
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match="metersPerUnit = 1"):
        builder.add_usd("#usda 1.0\n" + body("a", at(y=100.0)))  # y up is the default too
    np.testing.assert_allclose(builder.joint_q[:3], [0.0, 0.0, 1.0], atol=1e-12)


def test_a_stage_with_y_up_is_turned():
    """Y becomes z: positions, velocities and gravity; a body's own frame stays as it is."""
    content = body("a", at(y=2.0) + "vector3f physics:velocity = (0, 3, 0)") + prim("PhysicsScene", "scene")
    builder, _ = load(content, up="Y")
    np.testing.assert_allclose(builder.joint_q[:3], [0.0, 0.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(builder.joint_qd[:3], [0.0, 0.0, 3.0], atol=1e-12)
    np.testing.assert_allclose(builder.gravity, [0.0, 0.0, -9.81], atol=1e-6)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(builder.joint_q[3:7], [half, 0.0, 0.0, half], atol=1e-12)
    kept, _ = load(content, up="Y", apply_up_axis_from_stage=True)
    np.testing.assert_allclose(kept.joint_q[:3], [0.0, 2.0, 0.0])
    np.testing.assert_allclose(kept.gravity, [0.0, -9.81, 0.0], atol=1e-6)


def test_gravity_has_the_direction_of_the_scene():
    scene = "vector3f physics:gravityDirection = (0, 3, 4)\nfloat physics:gravityMagnitude = 5"
    builder, _ = load(body("a") + prim("PhysicsScene", "scene", scene))
    np.testing.assert_allclose(builder.gravity, [0.0, 3.0, 4.0], rtol=ROUNDING)


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


def test_a_joint_that_closes_a_loop_is_an_equality_constraint():
    """A hinge with the frames of the joint; without it the loop would be open."""
    content = (
        body("a")
        + body("b", at(x=1.0))
        + body("c", at(x=1.0, y=1.0))
        + joint("FixedJoint", "mount", "", "/a")
        + joint("RevoluteJoint", "ab", "/a", "/b", "point3f physics:localPos0 = (1, 0, 0)")
        + joint("RevoluteJoint", "bc", "/b", "/c", "point3f physics:localPos0 = (0, 1, 0)")
        + joint(
            "RevoluteJoint",
            "ca",
            "/c",
            "/a",
            "point3f physics:localPos0 = (0, 0.5, 0)\npoint3f physics:localPos1 = (1, 1.5, 0)\n"
            'uniform token physics:axis = "Z"',
        )
    )
    builder, report = load(content)
    assert builder.joint_count == 3
    assert builder.equality_constraint_label == ["/ca"]
    assert builder.equality_constraint_type[0] == EqType.HINGE
    np.testing.assert_allclose(builder.equality_constraint_anchor[0], [0.0, 0.5, 0.0])
    np.testing.assert_allclose(builder.equality_constraint_relpose[0][:3], [-1.0, -1.0, 0.0])
    assert report.losses == []


LIMITED = "float physics:lowerLimit = -30\nfloat physics:upperLimit = 60\n"
CYLINDRICAL = "".join(
    f"float limit:{axis}:physics:low = 1\nfloat limit:{axis}:physics:high = -1\n"
    for axis in ("transX", "transY", "rotX", "rotY")
)


@pytest.mark.parametrize(
    ("kind", "content", "joint_type", "q"),
    [
        ("PrismaticJoint", 'uniform token physics:axis = "Z"', JointType.PRISMATIC, [1.0]),
        ("RevoluteJoint", LIMITED + 'uniform token physics:axis = "Z"', JointType.REVOLUTE, [0.0]),
        ("SphericalJoint", "float newton:damping = 2", JointType.BALL, [0.0, 0.0, 0.0, 1.0]),
        ("Joint", CYLINDRICAL, JointType.D6, [1.0, 0.0]),
    ],
)
@pytest.mark.parametrize("ends", [("/a", "/b"), ("", "/b"), ("/b", "")])
def test_a_joint_that_closes_a_loop_and_has_coordinates_stays_a_joint(kind, content, joint_type, q, ends):
    """It slides, is limited, or damps: the part of a body that it moves starts where the body is."""
    links = body("a") + body("b", at(z=1.0)) + joint("FixedJoint", "mount", "", "/a")
    links += joint("RevoluteJoint", "ab", "/a", "/b", "point3f physics:localPos0 = (0, 0, 1)")
    if joint_type in (JointType.REVOLUTE, JointType.BALL):
        content += f"\npoint3f physics:localPos{ends.index('') if '' in ends else 0} = (0, 0, 1)"
    elif ends[1] == "":
        q = [-1.0, *q[1:]]  # positions are those of body 1 relative to body 0
    apis = (
        [f"PhysicsLimitAPI:{axis}" for axis in ("transX", "transY", "rotX", "rotY")]
        if kind == "Joint"
        else []
    )
    builder, report = load(links + joint(kind, "loop", *ends, content, apis), strict=True)
    assert report.losses == []
    assert builder.equality_constraint_count == 0
    model = builder.finalize("cpu")
    if joint_type is JointType.D6 and ends[1] == "":  # turned round it turns first, then slides
        assert model.joint_type.numpy()[2:].tolist() == [JointType.REVOLUTE, JointType.PRISMATIC]
        q = q[::-1]
    else:
        assert model.joint_type.numpy()[2:].tolist() == [joint_type]
        assert model.joint_label[-1] == "/loop"
    np.testing.assert_allclose(model.joint_q.numpy()[1:], q, atol=ROUNDING)
    assert model.body_label[-1] == f"{model.joint_label[-1]}_half"
    np.testing.assert_allclose(model.body_q.numpy()[-1], [0, 0, 1, 0, 0, 0, 1], atol=ROUNDING)
    if joint_type is JointType.REVOLUTE:
        limits = (model.joint_limit_lower.numpy()[1], model.joint_limit_upper.numpy()[1])
        np.testing.assert_allclose(limits, [-30.0 * DEGREE, 60.0 * DEGREE], rtol=ROUNDING)


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


def test_mimic_joints_follow_their_leader():
    """Two sliders of centimetres: the follower moves -2 times as far, from an offset of 3 cm."""
    content = body("base") + body("a") + body("b") + joint("FixedJoint", "m", "", "/base")
    content += joint("PrismaticJoint", "lead", "/base", "/a")
    content += joint(
        "PrismaticJoint",
        "follow",
        "/base",
        "/b",
        "rel newton:mimicJoint = </lead>\nfloat newton:mimicCoef0 = 3\nfloat newton:mimicCoef1 = -2",
        ("NewtonMimicAPI",),
    )
    builder, _ = load(content, meters=0.01, strict=True)
    assert builder.equality_constraint_label == ["/follow_mimic"]
    assert builder.equality_constraint_type[0] == EqType.JOINT
    np.testing.assert_allclose(builder.equality_constraint_polycoef[0], [0.03, -2.0, 0.0, 0.0, 0.0])
    leader, follower = (builder.joint_label.index(name) for name in ("/lead", "/follow"))
    assert builder.equality_constraint_joint1[0] == follower
    assert builder.equality_constraint_joint2[0] == leader


@pytest.mark.parametrize(("kind", "unit"), [("RevoluteJoint", DEGREE), ("PrismaticJoint", 0.01)])
def test_a_joint_of_physx_follows_another_one(kind, unit):
    """A joint has q + gearing q' + offset = 0, with angles in degrees and lengths of the stage."""
    content = (
        body("a")
        + body("b", at(1.0))
        + joint(kind, "lead", "", "/a")
        + joint(
            kind,
            "follow",
            "/a",
            "/b",
            "point3f physics:localPos0 = (1, 0, 0)\n"
            "float physxMimicJoint:rotX:gearing = 2\nfloat physxMimicJoint:rotX:offset = -30\n"
            "float physxMimicJoint:rotX:naturalFrequency = 100\n"
            "rel physxMimicJoint:rotX:referenceJoint = </lead>",
            ("PhysxMimicJointAPI:rotX",),
        )
    )
    builder, report = load(content, meters=0.01, strict=True)
    assert builder.equality_constraint_label == ["/follow_mimic"]
    polynomial = [30.0 * unit, -2.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(builder.equality_constraint_polycoef[0], polynomial, rtol=1e-6)
    leader, follower = (builder.joint_label.index(name) for name in ("/lead", "/follow"))
    assert builder.equality_constraint_joint1[0] == follower
    assert builder.equality_constraint_joint2[0] == leader
    assert "naturalFrequency of a mimic joint" in entries(report)
    with pytest.raises(AssetError, match=r"'/follow': physxMimicJoint:rotX:referenceJoint is \[\]"):
        load(content.replace("rel physxMimicJoint:rotX:referenceJoint = </lead>", ""))


def test_a_joint_of_mujoco_follows_a_polynomial_of_another_one():
    """A hinge turns by a polynomial of the way of a slider, which is in centimetres; another one is held."""
    coupled = (
        "double mjc:coef0 = 0.1\ndouble mjc:coef1 = 0.5\ndouble mjc:coef2 = 0.02\n"
        "double[] mjc:solref = [0.05, 0.9]\n"
    )
    content = body("base") + body("a") + body("b") + body("c") + joint("FixedJoint", "m", "", "/base")
    content += joint("PrismaticJoint", "lead", "/base", "/a")
    content += joint(
        "RevoluteJoint",
        "follow",
        "/base",
        "/b",
        coupled + "rel mjc:target = </lead>",
        ("MjcEqualityJointAPI",),
    )
    content += joint(
        "PrismaticJoint", "held", "/base", "/c", "double mjc:coef0 = 3", ("MjcEqualityJointAPI",)
    )
    builder = ModelBuilder()
    register_custom_attributes(builder)
    builder.add_usd(stage(content, meters=0.01), strict=True)
    assert builder.equality_constraint_label == ["/follow_mimic", "/held_mimic"]
    np.testing.assert_allclose(
        builder.equality_constraint_polycoef,
        [[0.1, 50.0, 200.0, 0.0, 0.0], [0.03, 0.0, 0.0, 0.0, 0.0]],
        rtol=1e-6,
    )
    leader, follower, held = (builder.joint_label.index(name) for name in ("/lead", "/follow", "/held"))
    assert builder.equality_constraint_joint1.tolist() == [follower, held]
    assert builder.equality_constraint_joint2.tolist() == [leader, -1]
    solref = builder.finalize("cpu").mujoco.eq_solref.numpy()
    np.testing.assert_allclose(solref, [[0.05, 0.9], [0.02, 1.0]], rtol=1e-6)
    with pytest.raises(AssetError, match=r"'/follow': mjc:target is \['/nothing'\]"):
        builder.add_usd(stage(content.replace("</lead>", "</nothing>")))


def test_a_collider_may_lower_the_limit_of_hull_vertices():
    points = [(np.cos(i), np.sin(i), z) for i in range(12) for z in (0, 1)]
    text = f"point3f[] points = {[tuple(round(float(x), 4) for x in point) for point in points]}\n"
    text += "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]\n"
    text += 'uniform token physics:approximation = "convexHull"\nint newton:maxHullVertices = 8'
    mesh = collider("Mesh", "mesh", text, ("PhysicsMeshCollisionAPI",))
    builder, _ = load(prim("Xform", "b", mesh, ("PhysicsRigidBodyAPI",)), strict=True)
    assert len(builder.meshes[0].vertices) == 8


def test_mass_density_and_material():
    """Mass goes before density, the collider's density before the body's, that before the material's."""
    cube = "double size = 1\n"
    material = prim(
        "Material",
        "m",
        "float physics:density = 30\nfloat physics:dynamicFriction = 0.7",
        ("PhysicsMaterialAPI",),
    )
    bound = "rel material:binding:physics = </m>\n"
    dense = ("PhysicsMassAPI", "MaterialBindingAPI")
    content = material
    for name, own, inner in (
        ("mass", "float physics:mass = 4\nfloat physics:density = 10\n", cube),
        ("own", "float physics:density = 10\n", cube + "float physics:density = 20\n"),
        ("outer", "float physics:density = 10\n", cube + bound),
        ("material", "", cube + bound),
        ("default", "", cube),
    ):
        content += prim(
            "Xform",
            name,
            own + collider("Cube", "c", inner, dense),
            ("PhysicsRigidBodyAPI", "PhysicsMassAPI"),
        )
    builder, _ = load(content)
    np.testing.assert_allclose(builder.body_mass, [4.0, 20.0, 10.0, 30.0, 1000.0], rtol=ROUNDING)
    np.testing.assert_allclose(builder.body_inertia[0], 4.0 / 6.0 * np.eye(3), rtol=ROUNDING)
    np.testing.assert_allclose(builder.shape_material_mu, [1.0, 1.0, 0.7, 0.7, 1.0], rtol=ROUNDING)


def test_mass_properties_are_those_of_usd_core():
    """Against `RigidBodyAPI.ComputeMassProperties`: overrides of mass, com and inertia at every place."""
    from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

    cube = collider(
        "Cube",
        "cube",
        at(x=0.3)
        + "double size = 0.4\nfloat physics:mass = 2\nfloat3 physics:diagonalInertia = (1, 2, 2.5)\n"
        "quatf physics:principalAxes = (0.8, 0, 0.6, 0)\npoint3f physics:centerOfMass = (0, 0.1, 0)",
        ("PhysicsMassAPI",),
    ) + collider("Cube", "plate", at(y=0.2) + "double size = 0.5\n")
    off = collider("Cube", "off", "bool physics:collisionEnabled = 0")
    scaled = 'float3 xformOp:scale = (2, 1, 0.5)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
    apis = ("PhysicsRigidBodyAPI", "PhysicsMassAPI")
    content = prim("Xform", "a", cube + off, apis)
    content += prim(
        "Xform",
        "b",
        scaled + "float physics:mass = 5\npoint3f physics:centerOfMass = (0.1, 0.2, 0.3)\n" + cube,
        apis,
    )
    builder, _ = load(content)
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(stage(content))
    opened = Usd.Stage.Open(layer)

    def information(part):
        owner = part.GetParent()
        size = float(part.GetAttribute("size").Get())
        matrix = np.array(UsdGeom.XformCache().ComputeRelativeTransform(part, owner)[0]).T
        stretch = np.diag(np.array(UsdGeom.XformCache().GetLocalToWorldTransform(owner)))[:3]
        sides = size * stretch
        info = UsdPhysics.RigidBodyAPI.MassInformation()
        is_on = part.GetAttribute("physics:collisionEnabled").Get()  # usd-core 25 asks for all
        info.volume = float(np.prod(sides)) if is_on else 0.0
        info.centerOfMass = Gf.Vec3f(0.0)
        info.localPos = Gf.Vec3f(*(stretch * matrix[:3, 3]).tolist())
        info.localRot = Gf.Quatf(1.0)
        moments = info.volume / 12.0 * (sides @ sides - sides**2)
        info.inertia = Gf.Matrix3f(Gf.Vec3f(*moments.tolist()))
        return info

    for index, name in enumerate("ab"):
        api = UsdPhysics.RigidBodyAPI(opened.GetPrimAtPath(f"/{name}"))
        mass, moments, com, axes = api.ComputeMassProperties(information)
        turn = np.array(Gf.Matrix3d(Gf.Rotation(Gf.Quatd(axes)))).T
        assert builder.body_mass[index] == pytest.approx(mass, rel=1e-5)
        np.testing.assert_allclose(builder.body_com[index], np.array(com), atol=1e-5)
        np.testing.assert_allclose(
            builder.body_inertia[index], turn @ np.diag(moments) @ turn.T, atol=1e-4 * max(moments)
        )


def test_primitive_colliders_and_their_axes():
    """Round shapes have local z along the axis of the prim; sizes have the scale of the prim and its body."""
    scaled = 'float3 xformOp:scale = (2, 2, 2)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
    content = prim(
        "Xform",
        "b",
        scaled
        + collider("Sphere", "sphere", "double radius = 0.5")
        + collider("Cube", "cube", "double size = 1")
        + collider("Capsule", "capsule", 'double radius = 0.5\ndouble height = 3\nuniform token axis = "X"')
        + collider("Cylinder", "cylinder", 'double radius = 0.5\ndouble height = 3\nuniform token axis = "Y"')
        + collider("Cone", "cone", 'double radius = 0.5\ndouble height = 3\nuniform token axis = "Z"'),
        ("PhysicsRigidBodyAPI",),
    ) + collider("Plane", "ground", 'uniform token axis = "Y"')
    builder, _ = load(content, strict=True)
    shapes = dict(zip(builder.shape_label, range(builder.shape_count), strict=True))
    expected = {
        "/b/sphere": (GeoType.SPHERE, (1.0, 0.0, 0.0), (0, 0, 1)),
        "/b/cube": (GeoType.BOX, (1.0, 1.0, 1.0), (0, 0, 1)),
        "/b/capsule": (GeoType.CAPSULE, (1.0, 3.0, 0.0), (1, 0, 0)),
        "/b/cylinder": (GeoType.CYLINDER, (1.0, 3.0, 0.0), (0, 1, 0)),
        "/b/cone": (GeoType.CONE, (1.0, 3.0, 0.0), (0, 0, 1)),
        "/ground": (GeoType.PLANE, (0.0, 0.0, 0.0), (0, 1, 0)),
    }
    for label, (kind, scale, axis) in expected.items():
        shape = shapes[label]
        assert builder.shape_type[shape] == kind
        np.testing.assert_allclose(builder.shape_scale[shape], scale)
        x, y, z, w = builder.shape_transform[shape][3:]
        local = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]  # z turned
        np.testing.assert_allclose(local, axis, atol=1e-12)
    assert builder.shape_body[shapes["/ground"]] == -1


MESH = """point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
int[] faceVertexCounts = [3, 3, 3, 3]
int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
"""


@pytest.mark.parametrize(
    ("approximation", "kind", "scale"),
    [
        ("convexHull", GeoType.CONVEX_MESH, (1.0, 1.0, 1.0)),
        ("boundingCube", GeoType.BOX, (0.5, 1.0, 1.5)),
        ("boundingSphere", GeoType.SPHERE, (np.sqrt(14.0) / 2.0, 0.0, 0.0)),
        ("none", GeoType.CONVEX_MESH, (1.0, 1.0, 1.0)),
        ("convexDecomposition", GeoType.CONVEX_MESH, (1.0, 1.0, 1.0)),
        ("meshSimplification", GeoType.CONVEX_MESH, (1.0, 1.0, 1.0)),
    ],
)
@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_collision_meshes(approximation, kind, scale):
    """What is not a hull, cube or sphere collides as its hull, which is reported."""
    mesh = collider(
        "Mesh",
        "mesh",
        MESH + f'uniform token physics:approximation = "{approximation}"',
        ("PhysicsMeshCollisionAPI",),
    )
    builder, report = load(prim("Xform", "b", mesh, ("PhysicsRigidBodyAPI",)))
    assert builder.shape_type[0] == kind
    np.testing.assert_allclose(builder.shape_scale[0], scale, rtol=ROUNDING)
    assert bool(report.losses) == (approximation not in ("convexHull", "boundingCube", "boundingSphere"))
    if kind is GeoType.CONVEX_MESH:  # a sixth of the box
        assert builder.body_mass[0] == pytest.approx(1000.0, rel=1e-5)


def test_collision_groups_and_filtered_pairs():
    """Filtered groups, pairs of bodies and of colliders do not collide; all others do."""
    content = "".join(body(name, at(x=i) + collider("Sphere", "s")) for i, name in enumerate("abd"))
    content += body(
        "c",
        at(x=3) + "rel physics:filteredPairs = </d>\n" + collider("Sphere", "s"),
        apis=("PhysicsFilteredPairsAPI",),
    )
    content += prim(
        "PhysicsCollisionGroup",
        "one",
        "rel collection:colliders:includes = </a>\nrel physics:filteredGroups = </two>",
    )
    content += prim("PhysicsCollisionGroup", "two", "rel collection:colliders:includes = </b>")
    builder, report = load(content)
    pairs = {
        tuple(sorted(builder.shape_label[shape][1] for shape in pair))
        for pair in builder.shape_collision_filter_pairs
    }
    assert pairs == {("a", "b"), ("c", "d")}
    assert report.losses == []


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("bool physics:invertFilteredGroups = 1", {("a", "c")}),  # a collides with the group of b only
        ('string physics:mergeGroup = "m"', {("a", "b"), ("b", "c")}),  # a and c are one group
    ],
)
def test_inverted_and_merged_collision_groups(group, expected):
    content = "".join(body(name, at(x=i) + collider("Sphere", "s")) for i, name in enumerate("abc"))
    for name, text in (("a", group + "\nrel physics:filteredGroups = </gb>"), ("b", ""), ("c", group)):
        if "invert" in group and name == "c":
            text = ""
        content += prim(
            "PhysicsCollisionGroup", f"g{name}", f"rel collection:colliders:includes = </{name}>\n{text}"
        )
    builder, _ = load(content, strict=True)
    pairs = {
        tuple(sorted(builder.shape_label[shape][1] for shape in pair))
        for pair in builder.shape_collision_filter_pairs
    }
    assert pairs == expected


def test_self_collisions_of_the_articulation_go_before_the_option():
    """Three links in a row: neighbours never collide, the ends as the articulation says."""
    links = "".join(body(name, collider("Sphere", "s")) for name in "abc")
    links += joint("RevoluteJoint", "ab", "/r/a", "/r/b") + joint("RevoluteJoint", "bc", "/r/b", "/r/c")
    count = {}
    for setting in ("", "bool physxArticulation:enabledSelfCollisions = 0\n"):
        for option in (True, False):
            content = prim("Xform", "r", setting + links, ("PhysicsArticulationRootAPI",))
            builder, _ = load(content, enable_self_collisions=option)
            count[bool(setting), option] = len({tuple(p) for p in builder.shape_collision_filter_pairs})
    assert count == {(False, True): 2, (False, False): 3, (True, True): 3, (True, False): 3}


def test_joints_may_let_their_bodies_collide():
    links = "".join(body(name, collider("Sphere", "s")) for name in "ab")
    kept, _ = load(links + joint("RevoluteJoint", "j", "/a", "/b", "bool physics:collisionEnabled = 1"))
    assert len(kept.shape_collision_filter_pairs) == 0


def test_instances_are_bodies_of_their_own():
    """Two instances of a prototype: bodies and colliders at their own places, one mesh between them."""
    ball = prim(
        "Xform",
        "Ball",
        prim(
            "Xform",
            "body",
            collider(
                "Mesh",
                "m",
                MESH + 'uniform token physics:approximation = "convexHull"',
                ("PhysicsMeshCollisionAPI",),
            ),
            ("PhysicsRigidBodyAPI",),
        ),
    ).replace('def Xform "Ball"', 'class Xform "Ball"')
    content = ball + "".join(
        prim("Xform", name, at(x=x), meta="instanceable = true\nprepend references = </Ball>")
        for name, x in (("one", 1.0), ("two", 2.0))
    )
    builder, _ = load(content, strict=True)
    assert builder.body_label == ["/one/body", "/two/body"]
    np.testing.assert_allclose(builder.joint_q[[0, 7]], [1.0, 2.0])
    assert len(builder.meshes) == 1


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


def test_root_path_and_ignore_paths_choose_what_is_imported():
    content = prim("Xform", "A", body("x") + body("y")) + prim("Xform", "B", body("z"))
    assert load(content, root_path="/A")[0].body_label == ["/A/x", "/A/y"]
    assert load(content, ignore_paths=["/A/x"])[0].body_label == ["/A/y", "/B/z"]
    assert load(content, ignore_paths=[".*/[xz]"])[0].body_label == ["/A/y"]


def test_filters_and_loops_survive_the_merging_of_welded_links():
    """Of a - b = c (welded) the collider of c still does not meet that of d; a loop of welds falls away."""
    links = "".join(body(name, collider("Sphere", "s", at(x=i))) for i, name in enumerate("ab"))
    links += body(
        "c",
        "rel physics:filteredPairs = </d>\n" + collider("Sphere", "s"),
        apis=("PhysicsFilteredPairsAPI",),
    ) + body("d", collider("Sphere", "s"))
    links += joint("RevoluteJoint", "ab", "/a", "/b") + joint("FixedJoint", "bc", "/b", "/c")
    links += joint("FixedJoint", "cb", "/c", "/b")
    builder, _ = load(links, collapse_fixed_joints=True, bodies_follow_joint_ordering=False, strict=True)
    assert builder.body_label == ["/a", "/b", "/d"]
    assert builder.equality_constraint_count == 0
    pairs = {
        frozenset(builder.shape_label[shape] for shape in pair)
        for pair in builder.shape_collision_filter_pairs
    }
    assert frozenset(("/c/s", "/d/s")) in pairs
    assert frozenset(("/b/s", "/d/s")) not in pairs


def test_materials_and_gravity_hold_outside_of_the_root_path():
    content = prim("PhysicsScene", "scene", "float physics:gravityMagnitude = 2")
    content += prim("Material", "m", "float physics:dynamicFriction = 0.25", ("PhysicsMaterialAPI",))
    ball = collider("Sphere", "s", "rel material:binding:physics = </m>", ("MaterialBindingAPI",))
    builder, _ = load(content + prim("Xform", "A", body("x", ball)), root_path="/A", strict=True)
    assert builder.shape_material_mu[0] == 0.25
    np.testing.assert_allclose(builder.gravity, [0.0, 0.0, -2.0])


def test_joints_to_bodies_that_are_left_out_hold_nothing():
    content = prim("Xform", "A", body("x")) + prim("Xform", "B", body("y"))
    content += joint("RevoluteJoint", "j", "/A/x", "/B/y")
    builder, report = load(content, ignore_paths=["/B"])
    assert list(builder.joint_type) == [JointType.FREE]
    assert entries(report)["joint to a body that is left out"].severity is ImportSeverity.NOTE


def test_display_geometry_and_sites():
    """Display geometry does not collide or weigh; guides are hidden; sites mark frames."""
    content = prim(
        "Xform",
        "b",
        collider("Sphere", "s", 'uniform token purpose = "guide"')
        + prim("Cube", "picture", "color3f[] primvars:displayColor = [(1, 0, 0)]")
        + prim("Cube", "hidden", 'token visibility = "invisible"')
        + prim("Sphere", "mark", "", ("MjcSiteAPI",)),
        ("PhysicsRigidBodyAPI",),
    )
    builder, _ = load(content, strict=True)
    flags = dict(zip(builder.shape_label, builder.shape_flags.tolist(), strict=True))
    assert set(flags) == {"/b/s", "/b/picture", "/b/mark"}
    assert not flags["/b/s"] & ShapeFlags.VISIBLE
    assert flags["/b/s"] & ShapeFlags.COLLIDE_SHAPES
    assert flags["/b/picture"] & ShapeFlags.VISIBLE
    assert not flags["/b/picture"] & ShapeFlags.COLLIDE_SHAPES
    assert flags["/b/mark"] & ShapeFlags.SITE
    np.testing.assert_allclose(builder.shape_color[list(flags).index("/b/picture")], [1.0, 0.0, 0.0])
    builder, _ = load(content, load_sites=False, load_visual_shapes=False, force_show_colliders=True)
    assert builder.shape_label == ["/b/s"]
    assert builder.shape_flags[0] & ShapeFlags.VISIBLE


def test_xform_places_the_stage():
    half = np.sqrt(0.5)
    builder, _ = load(body("a", at(x=1.0)), xform=((0.0, 0.0, 5.0), (0.0, 0.0, half, half)))
    np.testing.assert_allclose(builder.joint_q[:3], [0.0, 1.0, 5.0], atol=1e-12)


LOSSES = {
    "distance joint": (arm(kind="DistanceJoint"), "distance joint without limits"),
    "cone limit": (
        arm("float physics:coneAngle0Limit = 30\nfloat physics:coneAngle1Limit = 30", "SphericalJoint"),
        "cone limit of a spherical joint",
    ),
    "break force": (arm("float physics:breakForce = 10"), "joint that breaks"),
    "acceleration drive": (
        arm(
            "float drive:angular:physics:stiffness = 1\n"
            'uniform token drive:angular:physics:type = "acceleration"',
            apis=("PhysicsDriveAPI:angular",),
        ),
        "drive of type acceleration",
    ),
    "uneven sphere": (
        body(
            "a",
            collider(
                "Sphere",
                "s",
                'float3 xformOp:scale = (1, 2, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"]',
            ),
        ),
        "round shape with an uneven scale",
    ),
    "collider without geometry": (
        body("a", prim("Xform", "x", "", ("PhysicsCollisionAPI",))),
        "collider of type Xform",
    ),
    "collider of a surface": (
        body("a", prim("NurbsPatch", "x", "", ("PhysicsCollisionAPI",))),
        "collider of type NurbsPatch",
    ),
    "damping": (body("a", "float physxRigidBody:angularDamping = 0.5"), "physxRigidBody:angularDamping"),
    "unknown": (body("a", "float newton:wobble = 3"), "newton:wobble"),
    "link velocity": (
        arm().replace(at(z=1.0), at(z=1.0) + "vector3f physics:velocity = (1, 0, 0)\n"),
        "velocity of a body that is held",
    ),
    "held base": (
        prim("Xform", "r", body("a") + joint("FixedJoint", "f", "", "/r/a"), ("PhysicsArticulationRootAPI",)),
        "floating=True",
    ),
    "missing reference": (
        body("a") + prim("Xform", "x", meta="prepend references = @nothing.usda@"),
        "broken reference",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_reported_and_errors_when_strict(name):
    content, feature = LOSSES[name]
    with pytest.warns(AssetWarning):
        _, report = load(content, floating=True)
    assert [entry.feature for entry in report.losses] == [feature]
    with pytest.raises(UnsupportedAssetError, match="Remove these features"):
        load(content, floating=True, strict=True)


def test_a_stage_object_can_be_imported():
    from pxr import Usd, UsdGeom, UsdPhysics

    opened = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(opened, 1.0)
    UsdGeom.SetStageUpAxis(opened, "Z")
    ball = UsdGeom.Sphere.Define(opened, "/ball")
    UsdPhysics.RigidBodyAPI.Apply(ball.GetPrim())
    UsdPhysics.CollisionAPI.Apply(ball.GetPrim())
    builder = ModelBuilder()
    builder.add_usd(opened)
    assert builder.body_mass[0] == pytest.approx(1000.0 * 4.0 / 3.0 * np.pi)
