"""What a stage says under a wrong name: usd-core passes over it; it is reported, and refused by `strict`."""

import pytest

from pluriverse import ModelBuilder
from pluriverse.importers import AssetWarning, ImportSeverity, UnsupportedAssetError
from tests.importers.usd_text import at, body, collider, entries, joint, load, prim, stage

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")

CUBE = collider("Cube", "c", "double size = 0.2")
LINEAR = ("transX", "transY", "transZ")


def drive(axis, stiffness=100):
    return f"float drive:{axis}:physics:stiffness = {stiffness}\n"


def limit(axis, low=-1, high=1):
    return f"float limit:{axis}:physics:low = {low}\nfloat limit:{axis}:physics:high = {high}\n"


def hinge(content="", apis=(), kind="RevoluteJoint"):
    return body("a", CUBE) + joint(kind, "j", "", "/a", content, apis)


def elbow(content="", apis=()):
    """Return a generic joint that turns about Z alone."""
    held = (*LINEAR, "rotX", "rotY")
    locks = "".join(limit(axis, 1, -1) for axis in held)
    return hinge(locks + content, (*(f"PhysicsLimitAPI:{axis}" for axis in held), *apis), "Joint")


# Name: (content of the stage, feature that is reported, words of its consequence)
AXES = {
    "rotZ of a hinge": (
        hinge(drive("rotZ"), ["PhysicsDriveAPI:rotZ"]),
        "drive:rotZ",
        "it exerts nothing: the joint takes PhysicsDriveAPI:angular",
    ),
    "capital letter": (hinge(drive("Angular"), ["PhysicsDriveAPI:Angular"]), "drive:Angular", "API:angular"),
    "no axis": (
        hinge("", ["PhysicsDriveAPI"]),
        "PhysicsDriveAPI without the name of an axis",
        "PhysicsDriveAPI:angular",
    ),
    "no schema": (hinge(drive("angular")), "drive:angular", "apply PhysicsDriveAPI:angular"),
    "angular of a slide": (
        hinge(drive("angular"), ["PhysicsDriveAPI:angular"], "PrismaticJoint"),
        "drive:angular",
        "PhysicsDriveAPI:linear",
    ),
    "drive of a ball": (
        hinge(drive("rotX"), ["PhysicsDriveAPI:rotX"], "SphericalJoint"),
        "drive:rotX",
        "a PhysicsSphericalJoint has no drive",
    ),
    "drive of a weld": (
        hinge(drive("angular"), ["PhysicsDriveAPI:angular"], "FixedJoint"),
        "drive:angular",
        "a PhysicsFixedJoint has no drive",
    ),
    "angular of a generic joint": (
        elbow(drive("angular"), ["PhysicsDriveAPI:angular"]),
        "drive:angular",
        "the joint takes PhysicsDriveAPI:rotZ",
    ),
    "locked axis": (elbow(drive("rotX"), ["PhysicsDriveAPI:rotX"]), "drive:rotX", "that axis is locked"),
    "limit of a hinge": (
        hinge(limit("rotX"), ["PhysicsLimitAPI:rotX"]),
        "limit:rotX",
        "physics:lowerLimit and upperLimit",
    ),
    "linear of a generic joint": (
        elbow(limit("linear"), ["PhysicsLimitAPI:linear"]),
        "limit:linear",
        "transX, transY, transZ",
    ),
    "limit without schema": (elbow(limit("rotZ")), "limit:rotZ", "apply PhysicsLimitAPI:rotZ"),
    "distance": (elbow(limit("distance"), ["PhysicsLimitAPI:distance"]), "limit:distance", "its axes only"),
    "state": (
        hinge("float state:rotX:physics:position = 30", ["PhysicsJointStateAPI:rotX"]),
        "state:rotX",
        "PhysicsJointStateAPI:angular",
    ),
    "state of a ball": (
        hinge(
            "".join(limit(axis, 1, -1) for axis in LINEAR) + "float state:rotX:physics:position = 30",
            [f"PhysicsLimitAPI:{axis}" for axis in LINEAR],
            "Joint",
        ),
        "state:rotX",
        "starts as its bodies stand",
    ),
}

NAMES = {
    "type": (
        body("a", CUBE) + joint("X", "j", "", "/a").replace("PhysicsX", "RevolutePhysicsJoint"),
        "type RevolutePhysicsJoint",
        "did you mean PhysicsRevoluteJoint?",
    ),
    "type in a letter": (hinge(kind="RevolutJoint"), "type PhysicsRevolutJoint", "PhysicsRevoluteJoint?"),
    "type of nobody": (
        body("a", CUBE) + prim("PhysicsGearJoint", "g"),
        "type PhysicsGearJoint",
        "no such name",
    ),
    "schema": (
        prim("Cube", "a", "vector3f physics:velocity = (1, 0, 0)", ["PhysicsCollisionAPI", "RigidBodyAPI"]),
        "schema RigidBodyAPI",
        "did you mean PhysicsRigidBodyAPI?",
    ),
    "schema in a letter": (
        prim("Cube", "a", "", ["PhysicsCollisionAPI", "PhysicsRigidbodyAPI"]),
        "schema PhysicsRigidbodyAPI",
        "did you mean PhysicsRigidBodyAPI?",
    ),
    "attribute": (
        body("a", CUBE + "vector3f physics:velocty = (1, 0, 0)"),
        "physics:velocty",
        "did you mean physics:velocity?",
    ),
    "limit that is 0": (
        hinge("float physics:lowerLimt = 0"),
        "physics:lowerLimt",
        "did you mean physics:lowerLimit?",
    ),
    "name of another property": (
        body("a", CUBE + "vector3f physics:linearVelocity = (1, 0, 0)"),
        "physics:linearVelocity",
        "did you mean physics:velocity?",
    ),
    "gain": (
        hinge("float drive:angular:physics:stifness = 3", ["PhysicsDriveAPI:angular"]),
        "drive:angular:physics:stifness",
        "did you mean stiffness?",
    ),
    "property of another type": (
        hinge("float physics:lowerLimit = -10", kind="SphericalJoint"),
        "physics:lowerLimit",
        "PhysicsRevoluteJoint",
    ),
    "drive of a body": (body("a", CUBE + drive("angular")), "drive:angular:physics:stiffness", "no joint"),
}


@pytest.mark.parametrize("case", [*AXES, *NAMES])
def test_what_has_a_wrong_name_is_a_loss_with_the_right_one(case):
    content, feature, words = {**AXES, **NAMES}[case]
    with pytest.warns(AssetWarning, match="not everything was imported"):
        _, report = load(content)
    (entry,) = report.losses
    assert entry.feature == feature
    assert words in entry.consequence
    with pytest.raises(UnsupportedAssetError, match="not everything in it can be imported"):
        ModelBuilder().add_usd(stage(content), strict=True)


HARMLESS = {
    "names that fit": elbow(
        drive("rotZ") + limit("rotZ") + "float state:rotZ:physics:position = 30",
        ["PhysicsDriveAPI:rotZ", "PhysicsLimitAPI:rotZ", "PhysicsJointStateAPI:rotZ"],
    ),
    "a drive that would exert nothing": hinge(
        drive("rotZ", 0) + "float drive:rotZ:physics:maxForce = 5", ["PhysicsDriveAPI:rotZ"]
    ),
    "a limit that would limit nothing": hinge(limit("rotX", "-inf", "inf"), ["PhysicsLimitAPI:rotX"]),
    "a state at rest": hinge("float state:rotX:physics:position = 0", ["PhysicsJointStateAPI:rotX"]),
    "values that hold anyway": body("a", CUBE + "vector3f physics:linearVelocity = (0, 0, 0)")
    + prim("Xform", "b", "bool physics:rigidBodyEnabled = 1\nbool physics:kinematicEnabled = 0"),
    "masses without their schema": prim(
        "Cube", "a", "float physics:mass = 3", ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]
    ),
    "books of simulators": body("a", CUBE + 'int physics:tensor:index = 3\nstring physics:engine = "x"'),
    "schemas of others": body(
        "a", CUBE, apis=["PhysxRigidBodyAPI", "IsaacLinkAPI", "NewtonBodyAPI", "AcmeAPI"]
    ),
    "types of others": body("a", CUBE) + prim("AcmeSensor", "s", "float acme:range = 3"),
    "axis of a weld": hinge('uniform token physics:axis = "Z"', kind="FixedJoint"),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_moves_nothing_is_no_loss(case):
    """Stages hold schemas of several simulators, and what their tools leave; strict imports take them."""
    _, report = load(HARMLESS[case], strict=True)
    assert {entry.severity for entry in report.entries} <= {ImportSeverity.NOTE}


def test_properties_that_outlive_their_schema_are_named_in_a_warning():
    """To remove a schema leaves them, so they may be meant, or their schema forgotten."""
    content = prim("Cube", "a", "vector3f physics:velocity = (1, 0, 0)", ["PhysicsCollisionAPI"])
    with pytest.warns(AssetWarning, match=r"physics:velocity \(/a\): .* PhysicsRigidBodyAPI"):
        load(content, strict=True)


def test_schemas_with_reports_of_their_own_are_reported_once():
    """Deformable bodies, whose attributes belong to their schemas, and constraints of PhysX."""
    content = (
        body("a", CUBE)
        + prim("Mesh", "cloth", "float physics:youngsModulus = 3", ["PhysicsSurfaceDeformableSimAPI"])
        + joint("X", "gear", "", "/a").replace("PhysicsX", "PhysxPhysicsGearJoint")
    )
    with pytest.warns(AssetWarning):
        _, report = load(content)
    assert [entry.feature for entry in report.losses] == [
        "PhysicsSurfaceDeformableSimAPI",
        "PhysxPhysicsGearJoint",
    ]


def test_a_drive_that_its_force_limit_keeps_from_acting_is_named():
    """`physics:maxForce = 0` is a limit like any other, so the motion is as authored; often it is no wish."""
    limp = drive("angular") + "float drive:angular:physics:maxForce = 0"
    content = hinge(limp, ["PhysicsDriveAPI:angular"])
    with pytest.warns(AssetWarning, match=r"drive with a force limit of 0 \(/j\): it exerts nothing"):
        builder, _ = load(content, strict=True)
    assert builder.joint_effort_limit[0] == 0.0
    builder, report = load(content, strict=True, effort_limit={"*": 5.0})
    assert builder.joint_effort_limit[0] == 5.0
    assert not [entry for entry in report.entries if "force limit" in entry.feature]


def test_the_second_of_two_targets_of_a_joint_is_named():
    content = body("a", CUBE) + body("b", at(x=1.0) + CUBE) + joint("FixedJoint", "j", "", "/a")
    content = content.replace("rel physics:body1 = </a>", "rel physics:body1 = [</a>, </b>]")
    with pytest.warns(AssetWarning, match=r"several targets of physics:body1 \(/j\): it is '/a'"):
        builder, report = load(content)
    assert entries(report)["several targets of physics:body1"].severity is ImportSeverity.REPAIR
    assert builder.joint_label[0] == "/j"
