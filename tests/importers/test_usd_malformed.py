"""Malformed USD: every error names the file, the prim, what is wrong, and a remedy; nothing is added."""

import sys

import pytest

from pluriverse.importers import AssetError, AssetFileError
from pluriverse.model_builder import ModelBuilder
from tests.importers.usd_text import body, collider, joint, prim, stage

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")


def hinge(content, apis=()):
    return body("a") + body("b") + joint("RevoluteJoint", "j", "/a", "/b", content, apis)


def mesh(content, approximation="convexHull"):
    return body(
        "a",
        collider(
            "Mesh",
            "m",
            content + f'\nuniform token physics:approximation = "{approximation}"',
            ("PhysicsMeshCollisionAPI",),
        ),
    )


POINTS = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]\n"
LINE = "point3f[] points = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]\n"

# Name: (content of the stage, words of the message in this order)
MALFORMED = {
    "syntax": ('def Xform "a" {', ("USD text", "usd-core cannot read it", "Expected", "Correct the file")),
    "nothing in it": ('def Xform "a" {\n}', ("prim '/'", "no rigid bodies", "Check that this is the file")),
    "NaN mass": (body("a", mass="nan"), ("prim '/a'", "physics:mass is nan", "finite")),
    "negative radius": (
        body("a", collider("Sphere", "s", "double radius = -1")),
        ("prim '/a/s'", "radius is -1.0"),
    ),
    "negative height": (
        body("a", collider("Cylinder", "c", "double height = -1")),
        ("prim '/a/c'", "height is -1.0", "Correct the size"),
    ),
    "axis": (
        body("a", collider("Capsule", "c", 'uniform token axis = "up"')),
        ("prim '/a/c'", "axis is 'up'", "X, Y or Z"),
    ),
    "flattened": (
        body("a", 'float3 xformOp:scale = (1, 0, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"]'),
        ("prim '/a'", "flattens", "Correct the xformOps"),
    ),
    "NaN limit": (
        hinge("float physics:lowerLimit = nan\nfloat physics:upperLimit = 10"),
        ("prim '/j'", "limits of angular are nan and 10.0", "-inf and inf for none"),
    ),
    "negative stiffness": (
        hinge("float drive:angular:physics:stiffness = -3", ("PhysicsDriveAPI:angular",)),
        ("prim '/j'", "stiffness is -3.0", "Correct the number"),
    ),
    "NaN state": (
        hinge("float state:angular:physics:position = nan"),
        ("prim '/j'", "state:angular:physics:position is nan"),
    ),
    "NaN frame": (hinge("point3f physics:localPos0 = (nan, 0, 0)"), ("prim '/j'", "localPos0", "finite")),
    "negative armature": (hinge("float physxJoint:armature = -1"), ("prim '/j'", "armature is -1.0")),
    "missing body": (
        body("a") + joint("RevoluteJoint", "j", "/gone", "/a"),
        ("prim '/j'", "physics:body0 is '/gone'", "no such prim"),
    ),
    "joint of a body to itself": (
        body("a", prim("Xform", "in")) + joint("FixedJoint", "j", "/a", "/a/in"),
        ("prim '/j'", "joins /a to itself", "two different rigid bodies"),
    ),
    "joint of nothing": (
        body("a") + joint("FixedJoint", "j", "", ""),
        ("prim '/j'", "joins the world to itself", "two different rigid bodies"),
    ),
    "mimic without leader": (
        hinge("", ("NewtonMimicAPI",)),
        ("prim '/j'", "newton:mimicJoint is []", "Name one other joint"),
    ),
    "mesh without points": (mesh(""), ("prim '/a/m'", "0 points", "Correct points")),
    "mesh with too few corners": (
        mesh(POINTS + "int[] faceVertexCounts = [4]\nint[] faceVertexIndices = [0, 1, 2]"),
        ("prim '/a/m'", "3 corners for faces of 4", "faceVertexIndices"),
    ),
    "mesh with an index out of range": (
        mesh(POINTS + "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 7]"),
        ("prim '/a/m'", "7", "Repair or replace the mesh"),
    ),
    "needle hull": (
        mesh(LINE + "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]"),
        ("prim '/a'", "mesh '/a/m'", "Replace the collision mesh"),
    ),
    "flat bounding cube": (
        mesh(POINTS + "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]", "boundingCube"),
        ("prim '/a/m'", "half sizes", "another approximation"),
    ),
    "tapered capsule": (
        body("a", collider("Capsule_1", "c", "double radiusTop = 0.2\ndouble radiusBottom = 0.4")),
        ("prim '/a/c'", "radiusBottom is 0.4", "Make the radii equal"),
    ),
    "negative friction": (
        prim("Material", "m", "float physics:dynamicFriction = -1", ("PhysicsMaterialAPI",))
        + body("a", collider("Sphere", "s", "rel material:binding:physics = </m>", ("MaterialBindingAPI",))),
        ("prim '/m'", "physics:dynamicFriction is -1.0", "Correct the number"),
    ),
    "velocity": (
        body("a", "vector3f physics:velocity = (nan, 0, 0)"),
        ("prim '/a'", "physics:velocity is nan"),
    ),
    "gravity": (
        body("a") + prim("PhysicsScene", "s", "float physics:gravityMagnitude = inf"),
        ("prim '/s'", "gravity is inf", "finite gravityMagnitude"),
    ),
}


def assert_in_order(message, words):
    place = 0
    for word in words:
        assert word in message[place:], f"'{word}' is missing in: {message}"
        place = message.index(word, place)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_stages_are_refused(name):
    content, words = MALFORMED[name]
    builder = ModelBuilder()
    with pytest.raises(AssetError) as error:
        builder.add_usd(stage(content))
    assert_in_order(str(error.value), ("USD text", *words))
    assert error.value.remedy
    assert builder.body_count == builder.joint_count == builder.shape_count == 0
    assert builder.gravity == -9.81


def test_units_must_be_positive():
    with pytest.raises(AssetError, match=r"metersPerUnit is 0\.0.*Correct it"):
        ModelBuilder().add_usd(stage(body("a"), meters=0))
    with pytest.raises(AssetError, match=r"kilogramsPerUnit is -1\.0"):
        ModelBuilder().add_usd(stage(body("a"), kilograms=-1))


def test_files_that_are_missing_or_of_another_kind(tmp_path):
    with pytest.raises(AssetFileError, match=r"nothing\.usda: there is no such file"):
        ModelBuilder().add_usd(tmp_path / "nothing.usda")
    path = tmp_path / "robot.xml"
    path.write_text("<mujoco/>")
    with pytest.raises(AssetError, match=r"no USD file by its name.*add_mjcf"):
        ModelBuilder().add_usd(path)
    path = tmp_path / "broken.usdc"
    path.write_bytes(b"PXR-USDC but not really")
    with pytest.raises(AssetError, match=r"broken\.usdc: usd-core cannot read it"):
        ModelBuilder().add_usd(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joint_ordering": "random"}, "joint_ordering is 'random'"),
        ({"joint_drive_gains_scaling": -1.0}, r"joint_drive_gains_scaling is -1\.0"),
        ({"mesh_maxhullvert": 2}, "mesh_maxhullvert is 2"),
        ({"ignore_paths": ["("]}, "ignore_paths holds '\\('"),
        ({"root_path": "/nowhere"}, "there is no prim '/nowhere'"),
        ({"root_path": "a b"}, "there is no prim 'a b'"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        ModelBuilder().add_usd(stage(body("a")), **options)


def test_without_usd_core_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(ImportError, match=r"pip install pluriverse\[usd\]"):
        ModelBuilder().add_usd(stage(body("a")))
