"""What becomes of USD colliders: masses, materials, primitives, meshes, groups and filters."""

import numpy as np
import pytest

from pluriverse.importers import AssetError, ImportSeverity
from pluriverse.types import GeoType
from tests.importers.usd_text import MESH, ROUNDING, at, body, collider, entries, joint, load, prim, stage

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")


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


def test_shapes_have_the_contact_properties_of_mujoco():
    """Margins, gaps and friction are lengths of the stage, a solref is stiffness per mass and dissipation."""
    content = (
        prim(
            "Material",
            "rubber",
            "double mjc:torsionalfriction = 2\ndouble mjc:rollingfriction = 0.5\n"
            "float physics:dynamicFriction = 0.7",
            ("PhysicsMaterialAPI",),
        )
        + body(
            "a",
            collider(
                "Sphere",
                "ball",
                "double radius = 10\ndouble mjc:margin = 2\ndouble mjc:gap = 1\n"
                "double[] mjc:solref = [0.1, 0.5]\nrel material:binding:physics = </rubber>",
                ("MaterialBindingAPI",),
            ),
        )
        + body("b", collider("Sphere", "ball", "double radius = 10\ndouble[] mjc:solref = [-900, -30]"))
    )
    builder, report = load(content, meters=0.01)
    assert entries(report)["torsional and rolling friction"].severity is ImportSeverity.NOTE
    first, second = (builder.shape_label.index(f"/{name}/ball") for name in "ab")
    assert builder.shape_margin[first] == pytest.approx(0.02)
    assert builder.shape_gap[first] == pytest.approx(0.01)
    assert builder.shape_material_mu[first] == pytest.approx(0.7)
    assert builder.shape_material_mu_torsional[first] == pytest.approx(0.02)
    assert builder.shape_material_mu_rolling[first] == pytest.approx(0.005)
    # k = 1 / (t d)², tau = (2 / t) / k; a negative pair is stiffness and damping themselves. At rest a
    # contact pushes with k / (1 - dmax) per mass, dmax being 0.95.
    assert builder.shape_material_ke_per_mass[first] == pytest.approx(20.0 * 400.0)
    assert builder.shape_material_tau[first] == pytest.approx(20.0 / 400.0)
    assert builder.shape_material_ke_per_mass[second] == pytest.approx(20.0 * 900.0)
    assert builder.shape_material_tau[second] == pytest.approx(30.0 / 900.0)
    assert not any(entry.feature.startswith("mjc:") for entry in report.losses)
    with pytest.raises(AssetError, match=r"'/b/ball': mjc:solref is \[1\.0\]"):
        load(content.replace("[-900, -30]", "[1]"))
