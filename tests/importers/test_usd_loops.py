"""USD joints that close loops, and joints that follow others."""

import numpy as np
import pytest

from pluriverse.importers import AssetError
from pluriverse.model_builder import ModelBuilder
from pluriverse.mujoco_attributes.registration import register_custom_attributes
from pluriverse.types import EqType, JointType
from tests.importers.usd_text import DEGREE, ROUNDING, at, body, entries, joint, load, stage

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")


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
