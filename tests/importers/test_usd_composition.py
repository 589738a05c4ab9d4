"""Stages as others compose them: variants, payloads, instances, point instancers, classes, shear."""

import numpy as np
import pytest
import warp as wp

from pluriverse import ModelBuilder
from pluriverse.importers import AssetFileError, AssetWarning, ImportSeverity, UnsupportedAssetError
from pluriverse.types import GeoType

pxr = pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
from pxr import Gf, Usd, UsdGeom, UsdPhysics  # noqa: E402

WATER = 1000.0  # kg/m³


def new_stage(path):
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    return stage


def move(prim, *place):
    UsdGeom.Xformable(prim).AddTranslateOp().Set(Gf.Vec3d(*place))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a crate of two sizes, as asset pipelines write it."""
    folder = tmp_path_factory.mktemp("composition")
    stage = new_stage(folder / "crate.usda")
    crate = UsdGeom.Xform.Define(stage, "/Crate").GetPrim()
    stage.SetDefaultPrim(crate)
    UsdPhysics.RigidBodyAPI.Apply(crate)
    sizes = crate.GetVariantSets().AddVariantSet("size")
    for name, size in (("small", 0.1), ("large", 0.4)):
        sizes.AddVariant(name)
        sizes.SetVariantSelection(name)
        with sizes.GetVariantEditContext():
            cube = UsdGeom.Cube.Define(stage, "/Crate/geom")
            cube.CreateSizeAttr(size)
            UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
    sizes.SetVariantSelection("small")
    stage.Save()
    stage = new_stage(folder / "scene.usda")
    UsdGeom.Xform.Define(stage, "/World")
    large = stage.DefinePrim("/World/large")
    large.GetReferences().AddReference("./crate.usda")
    large.GetVariantSet("size").SetVariantSelection("large")
    paid = stage.DefinePrim("/World/paid")
    paid.GetPayloads().AddPayload("./crate.usda")
    move(paid, 2.0, 0.0, 1.0)
    stage.Save()
    return folder


def test_variants_are_those_that_are_selected(folder):
    """By the asset, and by the stage that refers to it; a payload of a file is loaded."""
    builder = ModelBuilder()
    builder.add_usd(folder / "crate.usda", strict=True)
    np.testing.assert_allclose(builder.body_mass, WATER * 0.1**3, rtol=1e-5)
    builder = ModelBuilder()
    builder.add_usd(folder / "scene.usda", strict=True)
    assert builder.body_label == ["/World/large", "/World/paid"]
    np.testing.assert_allclose(builder.body_mass, WATER * np.array([0.4, 0.1]) ** 3, rtol=1e-5)
    np.testing.assert_allclose(builder.body_q[1][:3], (2.0, 0.0, 1.0))


def test_payloads_that_the_caller_did_not_load_are_reported(folder):
    stage = Usd.Stage.Open(str(folder / "scene.usda"), Usd.Stage.LoadNone)
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"payload that is not loaded \(/World/paid\).*stage\.Load\(\)"):
        builder.add_usd(stage)
    assert builder.body_label == ["/World/large"]
    stage.Load()
    builder = ModelBuilder()
    builder.add_usd(stage, strict=True)
    assert builder.body_count == 2


def test_a_payload_that_is_missing_is_reported(folder):
    stage = new_stage(folder / "missing.usda")
    stage.DefinePrim("/World/gone").GetPayloads().AddPayload("./nowhere.usda")
    stage.DefinePrim("/World/crate").GetReferences().AddReference("./crate.usda")
    stage.Save()
    with pytest.warns(AssetWarning, match=r"broken reference .*nowhere\.usda"):
        ModelBuilder().add_usd(folder / "missing.usda")


def test_layers_that_git_lfs_has_not_fetched_are_named(folder, tmp_path):
    """A clone without `git lfs pull` has pointers; usd-core calls them broken, and goes on without them."""
    for name in ("robot.usd", "robot.usda"):
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
        with pytest.raises(AssetFileError, match=rf"{name}: this is a pointer of Git LFS.* `git lfs pull`"):
            ModelBuilder().add_usd(tmp_path / name)
    crate = 'def "crate" (references = @crate.usda@)\n{\n}\n'
    (tmp_path / "crate.usda").write_bytes((folder / "crate.usda").read_bytes())
    head = '#usda 1.0\n(\nmetersPerUnit = 1\nupAxis = "Z"\n'
    for place, text in (
        ("prim '/World/arm'", head + ')\ndef "World"\n{\ndef "arm" (references = @./robot.usda@)\n{\n}\n}\n'),
        ("prim '/arm'", head + ')\ndef "arm" (payload = @robot.usd@)\n{\n}\n'),
        ("subLayers", head + "subLayers = [@robot.usd@]\n)\n"),
    ):
        (tmp_path / "scene.usda").write_text(text + crate)
        message = rf"scene.usda: {place}: '.*robot.usda?' is a pointer of Git LFS.* `git lfs pull`"
        with pytest.raises(AssetFileError, match=message):
            ModelBuilder().add_usd(tmp_path / "scene.usda")
    with pytest.raises(AssetFileError, match=r"@robot.usd@: '.*robot.usd' is a pointer of Git LFS"):
        ModelBuilder().add_usd(tmp_path / "scene.usda", path_resolver=lambda _, path: str(tmp_path / path))


def test_instanced_references_and_classes_are_bodies_of_their_own(folder):
    stage = new_stage(folder / "instances.usda")
    for number in range(3):
        prim = stage.DefinePrim(f"/World/crate_{number}")
        prim.GetReferences().AddReference("./crate.usda")
        prim.SetInstanceable(True)
        move(prim, float(number), 0.0, 1.0)
    wheel = stage.CreateClassPrim("/_wheel")
    UsdPhysics.RigidBodyAPI.Apply(wheel)
    tyre = UsdGeom.Cylinder.Define(stage, "/_wheel/tyre")
    tyre.CreateRadiusAttr(0.3)
    tyre.CreateHeightAttr(0.1)
    UsdPhysics.CollisionAPI.Apply(tyre.GetPrim())
    stage.DefinePrim("/World/wheel", "Xform").GetInherits().AddInherit("/_wheel")
    stage.Save()
    builder = ModelBuilder()
    builder.add_usd(folder / "instances.usda", strict=True)
    assert builder.body_label == [*(f"/World/crate_{number}" for number in range(3)), "/World/wheel"]
    np.testing.assert_allclose(np.array(builder.body_q)[:3, 0], (0.0, 1.0, 2.0))
    np.testing.assert_allclose(builder.body_mass[3], WATER * np.pi * 0.3**2 * 0.1, rtol=1e-5)


def rocks(stage, *, rigid):
    """Add an instancer at x = 10 of two kinds of rocks, one of which is turned, large, and not shown."""
    instancer = UsdGeom.PointInstancer.Define(stage, "/World/rocks")
    move(instancer, 10.0, 0.0, 0.0)
    ball = UsdGeom.Sphere.Define(stage, "/World/rocks/kinds/ball")
    ball.CreateRadiusAttr(0.2)
    move(ball, 0.0, 0.0, 0.5)  # acts before the pose of an instance
    slab = UsdGeom.Cube.Define(stage, "/World/rocks/kinds/slab")
    slab.CreateSizeAttr(0.2)
    for prim in (ball.GetPrim(), slab.GetPrim()):
        UsdPhysics.CollisionAPI.Apply(prim)
        if rigid:
            UsdPhysics.RigidBodyAPI.Apply(prim)
    instancer.CreatePrototypesRel().SetTargets([ball.GetPath(), slab.GetPath()])
    instancer.CreateProtoIndicesAttr([0, 1, 0, 1])
    instancer.CreatePositionsAttr([(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)])
    half = float(np.sqrt(0.5))
    instancer.CreateOrientationsAttr([Gf.Quath(half, 0, 0, half)] * 2 + [Gf.Quath(1, 0, 0, 0)] * 2)
    instancer.CreateScalesAttr([(1, 1, 1), (1, 2, 1), (1, 1, 1), (1, 1, 1)])
    instancer.CreateInvisibleIdsAttr([3])


@pytest.mark.parametrize("rigid", [False, True])
def test_point_instancers_become_their_instances(folder, rigid):
    """Colliders of the world, or bodies with their mass, where the instances stand, and no prototypes."""
    path = folder / f"rocks_{rigid}.usda"
    stage = new_stage(path)
    rocks(stage, rigid=rigid)
    stage.Save()
    expected = np.array([(10.0, 0.0, 0.5), (11.0, 0.0, 0.0), (12.0, 0.0, 0.5)])
    for source in (path, Usd.Stage.Open(str(path))):
        builder = ModelBuilder()
        report = builder.add_usd(source, strict=True)
        assert builder.shape_label == [
            f"/World/rocks_instances/{name}" for name in ("ball_0", "slab_1", "ball_2")
        ]
        assert [entry.severity for entry in report.entries if entry.feature == "point instancer"] == [
            ImportSeverity.NOTE
        ]
        model = builder.finalize("cpu") if rigid else None
        places = builder.shape_transform if model is None else model.body_q.numpy()
        np.testing.assert_allclose(np.array(places)[:, :3], expected, atol=1e-6)
        np.testing.assert_allclose(builder.shape_scale[1], (0.1, 0.2, 0.1), rtol=1e-6)
        if rigid:
            slab = WATER * 0.2 * 0.4 * 0.2
            np.testing.assert_allclose(builder.body_mass[1], slab, rtol=1e-5)
    assert Usd.Stage.Open(str(path)).GetPrimAtPath("/World/rocks").IsActive()


def test_an_instancer_whose_arrays_disagree_is_left_out_and_reported(folder):
    stage = new_stage(folder / "odd.usda")
    rocks(stage, rigid=True)
    UsdGeom.PointInstancer(stage.GetPrimAtPath("/World/rocks")).GetProtoIndicesAttr().Set([0, 7, 0, 1])
    stage.DefinePrim("/World/crate").GetReferences().AddReference("./crate.usda")
    stage.Save()
    with pytest.raises(UnsupportedAssetError, match="point instancer whose arrays disagree"):
        ModelBuilder().add_usd(folder / "odd.usda", strict=True)


def test_an_instancer_inside_an_instance_is_found(folder):
    stage = new_stage(folder / "nested.usda")
    field = stage.DefinePrim("/World/field")
    field.GetReferences().AddReference(f"./rocks_{True}.usda", "/World")
    field.SetInstanceable(True)
    stage.Save()
    builder = ModelBuilder()
    builder.add_usd(folder / "nested.usda")
    assert builder.body_count == 3
    assert builder.body_label[0] == "/World/field/rocks_instances/ball_0"


def test_a_cube_under_shear_is_the_mesh_that_it_becomes(folder):
    """A scale above a turn: volume is that of the cube times the scale, bounds are those of its corners."""
    stage = new_stage(folder / "shear.usda")
    body = UsdGeom.Xform.Define(stage, "/body").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(body)
    UsdGeom.Xformable(UsdGeom.Xform.Define(stage, "/body/wide")).AddScaleOp().Set(Gf.Vec3f(1.0, -2.0, 1.0))
    cube = UsdGeom.Cube.Define(stage, "/body/wide/cube")
    cube.CreateSizeAttr(0.2)
    UsdGeom.Xformable(cube).AddRotateZOp().Set(45.0)
    UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
    stage.Save()
    builder = ModelBuilder()
    builder.add_usd(folder / "shear.usda", strict=True)
    assert GeoType(int(builder.shape_type[0])) is GeoType.CONVEX_MESH
    np.testing.assert_allclose(builder.body_mass[0], WATER * 2.0 * 0.2**3, rtol=1e-5)
    place = wp.transform(*np.array(builder.shape_transform[0], dtype=float))
    corners = np.array(
        [wp.transform_point(place, wp.vec3(*map(float, v))) for v in builder.shape_source[0].vertices]
    )
    bounds = (0.2 * np.sqrt(2.0), 0.4 * np.sqrt(2.0), 0.2)
    np.testing.assert_allclose(np.ptp(corners, axis=0), bounds, rtol=1e-5)
