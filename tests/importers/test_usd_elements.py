"""What becomes of USD stages: units, axes, gravity, instances, what is imported, display geometry, losses."""

import numpy as np
import pytest

from pluriverse.importers import AssetWarning, UnsupportedAssetError
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import ShapeFlags
from tests.importers.usd_text import MESH, ROUNDING, arm, at, body, collider, joint, load, prim

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")


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


def test_a_missing_length_unit_is_a_centimetre_with_a_warning():
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


def test_root_path_and_ignore_paths_choose_what_is_imported():
    content = prim("Xform", "A", body("x") + body("y")) + prim("Xform", "B", body("z"))
    assert load(content, root_path="/A")[0].body_label == ["/A/x", "/A/y"]
    assert load(content, ignore_paths=["/A/x"])[0].body_label == ["/A/y", "/B/z"]
    assert load(content, ignore_paths=[".*/[xz]"])[0].body_label == ["/A/y"]


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


def test_gravity_can_be_switched_off_as_in_mujoco():
    builder, _ = load(prim("PhysicsScene", "scene", "uniform bool mjc:flag:gravity = false") + body("a"))
    np.testing.assert_array_equal(builder.gravity, 0.0)
