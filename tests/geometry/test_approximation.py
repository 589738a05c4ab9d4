"""Simpler geometry in place of meshes: it covers them, is computed once, and changes no mass."""

import time
import warnings

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.geometry import approximate_mesh, approximation
from pluriverse.geometry.approximation import bounding_box_of, bounding_sphere_of, excess_volume
from pluriverse.types import GeoType, ShapeFlags
from pluriverse.warnings import MeshApproximationWarning

# Cheap settings: what is tested is what becomes of the parts.
QUICK = {
    "threshold": 0.2,
    "preprocess_resolution": 20,
    "resolution": 500,
    "mcts_iterations": 20,
    "mcts_nodes": 10,
}


def l_shape() -> pv.Mesh:
    """Return an L of five quadrilaterals a side, closed and not convex."""
    outline = np.array([(0, 0), (1, 0), (1, 0.2), (0.2, 0.2), (0.2, 1), (0, 1)], dtype=float)
    low = np.column_stack([outline, np.zeros(6)])
    cap = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    sides = [[k, (k + 1) % 6, (k + 1) % 6 + 6] for k in range(6)] + [
        [k, (k + 1) % 6 + 6, k + 6] for k in range(6)
    ]
    faces = np.concatenate([cap[:, ::-1], cap + 6, sides])
    return pv.Mesh(np.concatenate([low, low + np.array([0, 0, 0.3])]), faces.reshape(-1), name="angle")


def make_builder(scale: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> pv.ModelBuilder:
    """Return a body with an L, at an offset, that carries its mass."""
    builder = pv.ModelBuilder()
    body = builder.add_body()
    pose = (0.1, 0.2, 0.3, *Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_quat())
    builder.add_shape_mesh(body, mesh=l_shape(), scale=scale, xform=pose, label="angle")
    return builder


def covered(builder: pv.ModelBuilder, shape: int, points: np.ndarray) -> np.ndarray:
    """Return whether points in the body frame are within a box, sphere or convex hull."""
    pose = builder.shape_transform[shape]
    local = Rotation.from_quat(pose[3:]).inv().apply(points - pose[:3])
    scale, kind = builder.shape_scale[shape], builder.shape_type[shape]
    if kind == GeoType.BOX:
        return (np.abs(local) <= scale + 1e-5).all(axis=1)
    if kind == GeoType.SPHERE:
        return np.linalg.norm(local, axis=1) <= scale[0] + 1e-5
    from scipy.spatial import ConvexHull

    hull = ConvexHull(builder.meshes[builder.shape_source_index[shape]].vertices * scale).equations
    return (local @ hull[:, :3].T + hull[:, 3] <= 1e-5).all(axis=1)


@pytest.mark.parametrize("method", ["convex_hull", "bounding_box", "bounding_sphere"])
def test_one_shape_covers_the_mesh_and_the_mass_stays(method: str):
    """The hull, box and sphere contain every vertex, wherever the shape is and however it is scaled."""
    builder = make_builder(scale=(0.5, 1.5, -2.0))
    pose = builder.shape_transform[0].copy()
    points = Rotation.from_quat(pose[3:]).apply(l_shape().vertices * [0.5, 1.5, -2.0]) + pose[:3]
    before = (builder.body_mass.copy(), builder.body_inertia.copy())
    assert builder.approximate_meshes(method) == {0}
    assert builder.shape_count == 1
    assert covered(builder, 0, points).all()
    np.testing.assert_array_equal(builder.body_mass, before[0])
    np.testing.assert_array_equal(builder.body_inertia, before[1])
    builder.finalize("cpu")


def test_decomposition_covers_the_mesh_better_than_its_hull():
    """The parts of CoACD contain the vertices and little else, copy the material and the filters."""
    pytest.importorskip("coacd", reason="coacd is not installed: pip install pluriverse[mesh]")
    builder = make_builder()
    other = builder.add_shape_sphere(builder.add_body(), radius=0.1)
    builder.shape_material_mu[0] = 0.123
    builder.add_shape_collision_filter_pair(0, other)
    assert builder.approximate_meshes("coacd", **QUICK) == {0}
    parts = [0, *range(2, builder.shape_count)]
    assert len(parts) >= 2
    volume = sum(
        trimesh.Trimesh(builder.shape_source[part].vertices, builder.shape_source[part].triangles).volume
        for part in parts
    )
    assert volume == pytest.approx(0.36 * 0.3, rel=0.1)
    assert volume < 0.6 * trimesh.Trimesh(l_shape().vertices, l_shape().triangles).convex_hull.volume
    np.testing.assert_allclose(builder.shape_material_mu[parts], np.float32(0.123))
    assert builder.shape_label[parts[1]] == "angle_1"
    filters = {tuple(sorted(pair)) for pair in builder.shape_collision_filter_pairs}
    assert {(min(part, other), max(part, other)) for part in parts} <= filters
    model = builder.finalize("cpu")
    assert len(model.topology.pair_shape0.numpy()) == 0


def test_what_took_long_is_read_from_disk(tmp_path, monkeypatch):
    """The same mesh and options give the same parts without computing; other options do not."""
    coacd = pytest.importorskip("coacd", reason="coacd is not installed: pip install pluriverse[mesh]")
    calls = []
    run = coacd.run_coacd
    monkeypatch.setattr(coacd, "run_coacd", lambda *args, **options: calls.append(1) or run(*args, **options))
    first = approximate_mesh(l_shape(), "coacd", cache_dir=tmp_path, **QUICK)
    again = approximate_mesh(l_shape(), "coacd", cache_dir=tmp_path, **QUICK)
    assert len(calls) == 1
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.vertices, two.vertices)
    file = next(tmp_path.glob("*.npz"))
    file.write_bytes(file.read_bytes()[:100])
    approximate_mesh(l_shape(), "coacd", cache_dir=tmp_path, **QUICK)
    assert len(calls) == 2
    approximate_mesh(l_shape(), "coacd", cache_dir=tmp_path, **{**QUICK, "threshold": 0.3})
    assert len(calls) == 3
    monkeypatch.setenv("PLURIVERSE_MESH_CACHE", str(tmp_path))
    approximate_mesh(l_shape(), "coacd", **QUICK)
    assert len(calls) == 3


def test_coacd_cuts_a_simplified_mesh_that_stays_closed(tmp_path, monkeypatch):
    """Thin walls survive, whatever the unit of length; with triangle_count=0 the mesh is cut as it is."""
    coacd = pytest.importorskip("coacd", reason="coacd is not installed: pip install pluriverse[mesh]")
    pytest.importorskip("fast_simplification", reason="fast-simplification is not installed")
    cut = []

    def record(mesh, **options):
        cut.append((trimesh.Trimesh(mesh.vertices, mesh.indices, process=False), options))
        return [(np.asarray(mesh.vertices), np.asarray(mesh.indices))]

    monkeypatch.setattr(coacd, "run_coacd", record)
    shell = trimesh.creation.annulus(0.96, 1.0, 2.0, sections=64).subdivide().subdivide()
    for size in (0.04, 40.0):
        tube = pv.Mesh(size * shell.vertices, shell.faces.reshape(-1), name="tube")
        with pytest.warns(
            MeshApproximationWarning, match=r"tube: the parts of coacd \(1 in all\) take up .* % more"
        ):
            approximate_mesh(tube, "coacd", cache_dir=tmp_path, triangle_count=1500)
        given, options = cut.pop()
        assert given.is_watertight
        assert len(given.faces) < 0.5 * len(shell.faces)
        assert given.volume == pytest.approx(shell.volume * size**3, rel=0.01)
        assert "triangle_count" not in options
        with pytest.warns(MeshApproximationWarning):
            approximate_mesh(tube, "coacd", cache_dir=tmp_path, triangle_count=0, mcts_nodes=9)
        given, options = cut.pop()
        assert len(given.faces) == len(shell.faces)
        assert options["mcts_nodes"] == 9
    with pytest.raises(TypeError, match="triangle_count is 'few', but it must be a whole number"):
        approximate_mesh(tube, "coacd", cache_dir=tmp_path, triangle_count="few")


def test_excess_is_the_volume_beyond_that_of_the_mesh():
    """The hull of an L of 0.36 in a square less a triangle of 0.32 has 0.68; open meshes have none."""
    angle = l_shape()
    assert excess_volume(angle, [angle.convex_hull()]) == pytest.approx(0.68 / 0.36 - 1.0, rel=1e-5)
    assert excess_volume(angle, [angle]) == pytest.approx(0.0, abs=1e-6)
    opened = pv.Mesh(angle.vertices, angle.indices[3:], compute_inertia=False)
    assert excess_volume(opened, [angle]) is None


def test_long_decompositions_say_so_and_how_long_they_took(tmp_path, monkeypatch, capfd):
    """While they are under way; what is read from disk says nothing."""
    coacd = pytest.importorskip("coacd", reason="coacd is not installed: pip install pluriverse[mesh]")
    monkeypatch.setattr(approximation, "ANNOUNCED_TIME", 0.05)
    run = coacd.run_coacd

    heard = []

    def slow(*args, **options):
        deadline = time.monotonic() + 300.0
        while "under way" not in "".join(heard) and time.monotonic() < deadline:
            heard.append(capfd.readouterr().err)  # the message comes before the result
            time.sleep(0.01)
        return run(*args, **options)

    monkeypatch.setattr(coacd, "run_coacd", slow)
    approximate_mesh(l_shape(), "coacd", cache_dir=tmp_path, **QUICK)
    assert "coacd: angle (20 triangles) is under way; the result is kept" in "".join(heard)
    assert "coacd: angle (20 triangles) took" in capfd.readouterr().err
    approximate_mesh(l_shape(), "coacd", cache_dir=tmp_path, **QUICK)
    assert capfd.readouterr().err == ""


def test_folder_that_cannot_be_written_to_only_warns(tmp_path):
    """A cache that fails does not keep anybody from simulating."""
    pytest.importorskip("fast_simplification", reason="fast-simplification is not installed")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.warns(MeshApproximationWarning, match="could not be kept"):
        approximate_mesh(l_shape(), "quadratic", cache_dir=blocked / "folder", target_reduction=0.0)


def test_simplified_mesh_has_fewer_triangles_and_about_the_same_surface(tmp_path):
    """A fine ball keeps its volume with a fifth of the triangles, and stays a mesh."""
    pytest.importorskip("fast_simplification", reason="fast-simplification is not installed")
    ball = trimesh.creation.icosphere(4, 0.5)
    builder = pv.ModelBuilder()
    builder.add_shape_mesh(builder.add_body(), mesh=pv.Mesh(ball.vertices, ball.faces.reshape(-1)))
    assert builder.approximate_meshes("quadratic", cache_dir=tmp_path, target_reduction=0.8) == {0}
    mesh = builder.shape_source[0]
    assert builder.shape_type[0] == GeoType.MESH
    assert len(mesh.triangles) <= 0.21 * len(ball.faces)
    assert mesh.is_closed
    assert trimesh.Trimesh(mesh.vertices, mesh.triangles).volume == pytest.approx(ball.volume, rel=0.01)


@pytest.mark.parametrize("size", [0.04, 40.0])
def test_simplified_mesh_keeps_thin_walls(tmp_path, size):
    """Walls of a fiftieth of the diameter keep volume and place, whatever the unit of length."""
    pytest.importorskip("fast_simplification", reason="fast-simplification is not installed")
    tube = trimesh.creation.annulus(0.96, 1.0, 2.0, sections=64).subdivide().subdivide()
    mesh = pv.Mesh(size * tube.vertices, tube.faces.reshape(-1), name="tube")
    for reduction, tolerance in ((0.9, 0.002), (0.98, 0.01)):
        (simple,) = approximate_mesh(mesh, "quadratic", cache_dir=tmp_path, target_reduction=reduction)
        assert len(simple.triangles) <= (1.0 - reduction) * len(tube.faces)
        assert simple.is_closed
        surface = trimesh.Trimesh(simple.vertices / size, simple.triangles, process=False)
        assert surface.volume == pytest.approx(tube.volume, rel=tolerance)
        assert trimesh.proximity.closest_point(surface, tube.vertices)[1].max() < 0.5 * 0.04


def test_mesh_that_cannot_be_simplified_as_far_as_asked_keeps_its_shape(tmp_path):
    """A warning says how many triangles are left; a tetrahedron would be no angle."""
    pytest.importorskip("fast_simplification", reason="fast-simplification is not installed")
    angle = l_shape()
    with pytest.warns(MeshApproximationWarning, match=r"angle: \d+ of 20 triangles are left where 4 were"):
        (simple,) = approximate_mesh(angle, "quadratic", cache_dir=tmp_path, target_count=4)
    volume = trimesh.Trimesh(simple.vertices, simple.triangles, process=False).volume
    assert volume == pytest.approx(0.36 * 0.3, rel=0.05)
    (eaten,) = approximate_mesh(angle, "quadratic", cache_dir=tmp_path, target_count=4, agg=7)
    assert len(eaten.triangles) < len(simple.triangles)  # the library has its way


def test_mesh_may_stay_visible():
    """The mesh is then a shape of its own that does not collide, and the box is not drawn."""
    builder = make_builder()
    builder.approximate_meshes("bounding_box", keep_visual_shapes=True)
    assert builder.shape_label == ["angle", "angle_visual"]
    flags = builder.shape_flags
    assert flags[0] & ShapeFlags.COLLIDE_SHAPES
    assert not flags[0] & ShapeFlags.VISIBLE
    assert flags[1] & ShapeFlags.VISIBLE
    assert not flags[1] & ShapeFlags.COLLIDE_SHAPES
    assert builder.shape_type.tolist() == [GeoType.BOX, GeoType.MESH]


def test_failure_falls_back_with_a_warning_or_raises():
    """A flat mesh has no hull: it gets a thin box, and the warning names the shape."""
    flat = pv.Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0]], [0, 1, 2], is_solid=False, compute_inertia=False)
    builder = pv.ModelBuilder()
    builder.add_shape_mesh(builder.add_body(mass=1.0), mesh=flat, label="leaf")
    with pytest.raises(ValueError, match=r"shape 'leaf' \(index 0\): .*lie in a plane"):
        builder.approximate_meshes("convex_hull", raise_on_failure=True)
    with pytest.warns(MeshApproximationWarning, match=r"'leaf' .*convex_hull failed .*bounding_box is used"):
        assert builder.approximate_meshes("convex_hull") == {0}
    assert builder.shape_type[0] == GeoType.BOX
    assert (builder.shape_scale[0] > 0.0).all()


def test_missing_package_is_named(monkeypatch):
    """Without the optional package the error says what to install."""
    import importlib.metadata

    def missing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ImportError, match=r"pip install pluriverse\[mesh\]"):
        make_builder().approximate_meshes("coacd", raise_on_failure=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.approximate_meshes("marching"), "method is 'marching'"),
        (lambda b: b.approximate_meshes("bounding_box", threshold=0.1), "bounding_box has no options"),
        (lambda b: b.approximate_meshes("convex_hull", shape_indices=[7]), "shape 7 does not exist"),
    ],
)
def test_bad_request_is_refused(call, message: str):
    """Methods, options and shapes are checked."""
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call(make_builder())


def test_shape_in_a_closed_world_cannot_become_several(tmp_path):
    """The remedy is to approximate before worlds are made."""
    pytest.importorskip("coacd", reason="coacd is not installed: pip install pluriverse[mesh]")
    builder = pv.ModelBuilder()
    builder.replicate(make_builder(), 2)
    with pytest.raises(ValueError, match="before it is added to a world or replicated"):
        builder.approximate_meshes("coacd", cache_dir=tmp_path, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert builder.approximate_meshes("convex_hull") == {0, 1}


def test_box_and_sphere_around_points_are_small():
    """A turned cuboid gets a box of its size, and points in a ball a sphere at most a tenth too large."""
    rng = np.random.default_rng(0)
    half = np.array([0.3, 0.2, 0.1])
    corners = np.array(np.meshgrid(*np.stack([-half, half], axis=1))).reshape(3, -1).T
    turn = Rotation.random(random_state=rng)
    _, found = bounding_box_of(turn.apply(corners) + np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(np.sort(found), np.sort(half), rtol=1e-4)
    points = rng.normal(size=(500, 3))
    points *= (rng.uniform(size=500) ** (1 / 3) / np.linalg.norm(points, axis=1))[:, None]
    centre, radius = bounding_sphere_of(points)
    assert (np.linalg.norm(points - centre, axis=1) <= radius + 1e-12).all()
    assert radius < 1.1
