"""Randomly damaged assets either import or raise an AssetError, and then add nothing."""

import contextlib
import random
import re
import xml.etree.ElementTree as ElementTree

import pytest

from pluriverse.importers import AssetError
from pluriverse.model_builder import ModelBuilder

URDF = """<robot name="arm"><material name="m"><color rgba="1 0 0 1"/></material>
  <link name="base"/>
  <link name="tip"><inertial><origin xyz="0 0 1" rpy="0 1 0"/><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0.1"/></inertial>
    <collision name="c"><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry></collision>
    <collision><geometry><sphere radius="1"/></geometry></collision>
    <visual><geometry><cylinder radius="1" length="2"/></geometry><material name="m"/></visual></link>
  <link name="tool"/>
  <joint name="elbow" type="revolute"><parent link="base"/><child link="tip"/>
    <origin xyz="0 0 1" rpy="0 0 1"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="3" velocity="2"/>
    <dynamics damping="1" friction="0.1"/><mimic joint="elbow"/></joint>
  <joint name="weld" type="fixed"><parent link="tip"/><child link="tool"/></joint>
  <transmission name="t"><joint name="elbow"/></transmission></robot>"""

MJCF = """<mujoco model="m"><compiler angle="degree"/>
  <default><default class="c"><geom density="800"/></default></default>
  <worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body name="b" pos="0 0 1" euler="10 0 0">
      <joint name="s" type="slide" axis="1 2 0" range="-1 1" damping="3"/>
      <joint name="h" axis="0 1 0" ref="25" stiffness="3" frictionloss="0.1" armature="0.1"/>
      <geom class="c" type="capsule" size="0.05" fromto="0 0 0 0.1 0.2 0.3" friction="0.5"/>
      <body name="w" quat="1 1 0 0"><joint name="ball" type="ball"/>
        <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.02 0.015"/><site name="t" size="0.1"/>
      </body></body>
    <body name="f"><freejoint/><geom type="box" size="0.1 0.2 0.3" solref="0.1 1"/></body></worldbody>
  <contact><exclude body1="b" body2="f"/></contact>
  <actuator><position name="p" joint="h" kp="3" kv="1"/><motor name="m" joint="s" gear="2"/></actuator>
  <keyframe><key name="home" qpos="0 1 1 0 0 0 0 0 1 1 0 0 0" ctrl="1 2"/></keyframe></mujoco>"""

USD = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def PhysicsScene "scene"
{
    float physics:gravityMagnitude = 9.81
}
def Xform "robot" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
{
    def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 2
        double3 xformOp:translate = (0, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double size = 0.5
            float3 xformOp:scale = (1, 2, 1)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }
    }
    def Xform "tip" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
    {
        double3 xformOp:translate = (0, 0, 2)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Mesh "hull" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])
        {
            uniform token physics:approximation = "convexHull"
            point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
            int[] faceVertexCounts = [3, 3, 3, 3]
            int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
        }
        def Capsule "picture"
        {
            double height = 1
            double radius = 0.2
            uniform token axis = "X"
        }
    }
    def PhysicsRevoluteJoint "elbow" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
    {
        rel physics:body0 = </robot/base>
        rel physics:body1 = </robot/tip>
        point3f physics:localPos0 = (0, 0, 1)
        quatf physics:localRot0 = (1, 0, 0, 0)
        float physics:lowerLimit = -45
        float physics:upperLimit = 60
        float drive:angular:physics:stiffness = 3
        float state:angular:physics:position = 10
        float physxJoint:armature = 0.1
    }
}
def PhysicsCollisionGroup "group"
{
    rel collection:colliders:includes = </robot>
    rel physics:filteredGroups = </group>
}
"""

VALUES = [
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e300",
    "x",
    "0 0",
    "0 0 0",
    "1 2 3 4",
    "-1e-9",
    "tip",
    "b",
    "${a}",
    "1,2",
]
TAGS = ["link", "joint", "body", "geom", "mass", "axis", "inertial", "nonsense"]


def damage(text: str, seed: int) -> str:
    """Return a document with one to three attributes or elements changed, removed or doubled."""
    rng = random.Random(seed)
    root = ElementTree.fromstring(text)
    for _ in range(rng.randint(1, 3)):
        element = rng.choice(list(root.iter()))
        choice = rng.random()
        if choice < 0.6 and element.attrib:
            attribute = rng.choice(sorted(element.attrib))
            if rng.random() < 0.3:
                del element.attrib[attribute]
            else:
                element.attrib[attribute] = rng.choice(VALUES)
        elif choice < 0.75 and len(element):
            element.remove(rng.choice(list(element)))
        elif choice < 0.9 and len(element):
            element.append(ElementTree.fromstring(ElementTree.tostring(rng.choice(list(element)))))
        else:
            element.tag = rng.choice(TAGS)
    return ElementTree.tostring(root, encoding="unicode")


def damage_usd(text: str, seed: int) -> str:
    """Return a stage with one to three numbers, paths, words or statements changed."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        pattern, values = rng.choice(
            [
                (r"(?<![\w.])-?\d+(\.\d+)?(?![\w.])", ["nan", "inf", "-inf", "-1", "0", "1e30", "1000"]),
                (r"</[^>]*>", ["</robot>", "</robot/tip>", "</robot/tip/hull>", "</nothing>"]),
                (r'"[A-Za-z:]+"', ['"X"', '"none"', '"PhysicsRigidBodyAPI"', '"hull"']),
                (r"\b(Mesh|Cube|Capsule|Xform|PhysicsRevoluteJoint)\b", ["Sphere", "Scope", "PhysicsJoint"]),
                (r"\n +(float|rel|double|point3f|int)[^\n]*", [""]),
            ]
        )
        place = rng.choice(list(re.finditer(pattern, text)))
        text = text[: place.start()] + rng.choice(values) + text[place.end() :]
    return text


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_damaged_stages_import_or_raise_an_asset_error():
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    imported = 0
    for seed in range(200):
        builder = ModelBuilder()
        with contextlib.suppress(AssetError):
            builder.add_usd(damage_usd(USD, seed))
            imported += 1
            continue
        assert (builder.body_count, builder.joint_count, builder.shape_count) == (0, 0, 0)
    assert 20 < imported < 180


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_damaged_documents_import_or_raise_an_asset_error(kind):
    imported = 0
    for seed in range(200):
        builder = ModelBuilder()
        document = damage(URDF if kind == "urdf" else MJCF, seed)
        with contextlib.suppress(AssetError):
            (builder.add_urdf if kind == "urdf" else builder.add_mjcf)(document)
            imported += 1
            continue
        assert (builder.body_count, builder.joint_count, builder.shape_count) == (0, 0, 0)
    assert 20 < imported < 180  # some damage does no harm, most does
