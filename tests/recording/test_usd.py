"""USD of a recording, read back by OpenUSD itself: where everything is, when it is seen, how it looks."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.recording import RecordedRun
from pluriverse.recording.usd import export_usd
from tests.recording.variant_run import record_variant_run

pytest.importorskip("pxr", reason="the extra 'usd' is not installed")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two worlds: a textured box that falls, and two balls side by side."""
    box = pv.ModelBuilder()
    body = box.add_body(xform=(0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0), label="box 1")
    shape = box.add_shape_mesh(body, mesh=textured_box(), color=(1.0, 0.5, 0.25))
    box.set_appearance(shape, pv.Appearance(alpha=0.5))
    balls = pv.ModelBuilder()
    for x in (0.0, 1.0):
        body = balls.add_body(xform=(x, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), label="ball")
        balls.add_shape_sphere(body, radius=0.25, xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0))
    builder = pv.ModelBuilder()
    builder.add_world(box)
    builder.add_world(balls)
    builder.add_ground_plane()
    path = tmp_path_factory.mktemp("usd") / "run.pvr"
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with simulation.record(path, fps=20):
        simulation.step(40)
    with RecordedRun(path) as recording:
        yield recording


def textured_box():
    from pluriverse.geometry.appearance import MeshSkin

    mesh = pv.Mesh.create_box(0.2, 0.2, 0.2)
    uv = np.random.default_rng(0).uniform(size=(len(mesh.triangles), 3, 2))
    checker = pv.Texture(np.kron([[0, 255], [255, 0]], np.ones((4, 4))).astype(np.uint8))
    skin = MeshSkin(corner_uv=uv, part_color=[[1.0, 1.0, 1.0, 1.0]], part_texture=[checker])
    return pv.Mesh(mesh.vertices, mesh.indices, color=(1.0, 1.0, 1.0), skin=skin)


def opened(recording, path, *args, **options):
    from pxr import Usd

    export_usd(recording, path, *args, **options)
    return Usd.Stage.Open(str(path))


@pytest.mark.parametrize("suffix", [".usd", ".usda", ".usdc"])
def test_bodies_are_where_they_were_at_every_time(run, tmp_path, suffix):
    from pxr import Usd, UsdGeom

    stage = opened(run, tmp_path / f"a{suffix}")
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert stage.GetTimeCodesPerSecond() == 20.0
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 8.0)
    paths = ["/Recording/world_0/box_1", "/Recording/world_1/ball", "/Recording/world_1/ball_2"]
    start = run.model.body_world_start.numpy()
    first = run.moment(0).body_q
    offsets = {}
    for frame in range(run.frame_count):
        cache = UsdGeom.XformCache(Usd.TimeCode(frame))
        pose = run.moment(frame).body_q
        for body, path in enumerate(paths):
            matrix = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(path)))
            world = int(body >= start[1])
            offset = offsets.setdefault(world, matrix[3, :3] - first[body, :3])
            np.testing.assert_allclose(matrix[3, :3] - offset, pose[body, :3], atol=1e-5)
            np.testing.assert_allclose(matrix[:3, :3] @ matrix[:3, :3].T, np.eye(3), atol=1e-5)
    assert np.abs(offsets[0][:2] - offsets[1][:2]).max() > 0.5  # both began at the origin


def test_shapes_are_instances_with_their_meshes_and_materials(run, tmp_path):
    from pxr import Usd, UsdGeom, UsdShade

    stage = opened(run, tmp_path / "a.usda")
    meshes = [prim for prim in stage.Traverse(Usd.TraverseInstanceProxies()) if prim.IsA(UsdGeom.Mesh)]
    balls = [prim for prim in meshes if "/ball" in str(prim.GetPath())]
    assert len(balls) == 2
    assert balls[0].GetPrimInPrototype() == balls[1].GetPrimInPrototype()
    points = np.array(UsdGeom.Mesh(balls[0]).GetPointsAttr().Get())
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.25, rtol=1e-6)
    cache = UsdGeom.XformCache(Usd.TimeCode(0))
    centre = np.array(cache.GetLocalToWorldTransform(balls[0]))[3]
    assert centre[2] == pytest.approx(1.1, abs=1e-6)  # the body and the pose of the shape in it
    box = next(prim for prim in meshes if "/box_1" in str(prim.GetPath()))
    material = UsdShade.MaterialBindingAPI(box).ComputeBoundMaterial()[0]
    surface = material.ComputeSurfaceSource()[0]
    assert surface.GetInput("opacity").Get() == pytest.approx(0.5)
    # sRGB 0.5 is 0.214 in linear light.
    np.testing.assert_allclose(surface.GetInput("diffuseColor").Get(), [1.0, 0.214, 0.0509], atol=1e-3)
    assert UsdGeom.Imageable(box).ComputeVisibility(0) == "inherited"


def test_textures_lie_beside_the_stage(run, tmp_path):
    """A shape that wears the colours of its mesh has its texture and coordinates."""
    from PIL import Image
    from pxr import Usd, UsdGeom, UsdShade

    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_mesh(body, mesh=textured_box())
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with simulation.record(tmp_path / "run.pvr"):
        simulation.step(4)
    with RecordedRun(tmp_path / "run.pvr") as recording:
        stage = opened(recording, tmp_path / "a.usda")
    mesh = next(p for p in stage.Traverse(Usd.TraverseInstanceProxies()) if p.IsA(UsdGeom.Mesh))
    material = UsdShade.MaterialBindingAPI(mesh).ComputeBoundMaterial()[0]
    image = UsdShade.Shader(stage.GetPrimAtPath(material.GetPath().AppendChild("texture")))
    file = image.GetInput("file").Get()
    assert np.asarray(Image.open(file.resolvedPath)).shape == (8, 8, 4)
    assert len(UsdGeom.PrimvarsAPI(mesh).GetPrimvar("st").Get()) == 36


def test_worlds_and_frames_can_be_chosen(run, tmp_path):
    stage = opened(run, tmp_path / "a.usda", [1], stride=4)
    assert not stage.GetPrimAtPath("/Recording/world_0")
    prim = stage.GetPrimAtPath("/Recording/world_1/ball")
    assert prim.GetAttribute("xformOp:translate").GetTimeSamples() == [0.0, 4.0, 8.0]


def test_variants_are_seen_while_they_are_there(tmp_path):
    from pxr import UsdGeom

    record_variant_run(tmp_path / "a.pvr")
    with RecordedRun(tmp_path / "a.pvr") as recording:
        before, after = recording.worlds_of(0), recording.worlds_of(-1)
        stage = opened(recording, tmp_path / "a.usda")
        last = recording.frame_count - 1
    for world in {*before.tolist(), *after.tolist()}:
        prim = UsdGeom.Imageable(stage.GetPrimAtPath(f"/Recording/world_{world}"))
        assert (prim.ComputeVisibility(0) == "inherited") == (world in before)
        assert (prim.ComputeVisibility(last) == "inherited") == (world in after)


def test_wrong_exports_are_refused(run, tmp_path):
    with pytest.raises(ValueError, match=r"'a\.obj' is no USD file"):
        export_usd(run, "a.obj")
    with pytest.raises(ValueError, match="stride is 0"):
        export_usd(run, tmp_path / "a.usd", stride=0)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        export_usd(run, tmp_path / "none" / "a.usd")
    with pytest.raises(IndexError, match="world 5 was not recorded"):
        export_usd(run, tmp_path / "a.usd", [5])


@pytest.mark.parametrize("up", ["X", "Y"])
def test_stages_stand_upright_whichever_axis_points_up(up, tmp_path):
    from pxr import Gf, Usd, UsdGeom, UsdLux

    builder = pv.ModelBuilder(up_axis=up)
    height = np.array(builder.up_vector, dtype=np.float64)
    builder.add_shape_sphere(builder.add_body(xform=(*(2.0 * height), 0.0, 0.0, 0.0, 1.0)), radius=0.1)
    builder.add_ground_plane()
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with simulation.record(tmp_path / "run.pvr", fps=100):
        simulation.step(2)
    with RecordedRun(tmp_path / "run.pvr") as recording:
        stage = opened(recording, tmp_path / "a.usda")
    above = {"Y": Gf.Vec3d(0.0, 1.0, 0.0), "Z": Gf.Vec3d(0.0, 0.0, 1.0)}[UsdGeom.GetStageUpAxis(stage)]
    ball = next(prim for prim in stage.Traverse() if prim.GetParent().GetName() == "world_0")
    time = Usd.TimeCode(stage.GetStartTimeCode())
    place = UsdGeom.Xformable(ball).ComputeLocalToWorldTransform(time).ExtractTranslation()
    assert (place - 2.0 * above).GetLength() < 1e-2, "the ball is two metres above the ground"
    sun = UsdLux.DistantLight.Get(stage, "/Recording/Sun")
    ray = UsdGeom.Xformable(sun).ComputeLocalToWorldTransform(time).TransformDir(Gf.Vec3d(0.0, 0.0, -1.0))
    assert Gf.Dot(ray, above) < -0.7, "the sun shines down"
