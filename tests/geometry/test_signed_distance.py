"""Signed distance grids: exact at nodes, close between them, right about inside and outside, small."""

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import pluriverse as pv

# Rounding of float32 positions of about 1 m, and of the distance between two of them.
ROUNDING = 1e-6
HALF = np.array([0.3, 0.2, 0.15])


def as_mesh(mesh: trimesh.Trimesh, **options: bool) -> pv.Mesh:
    return pv.Mesh(mesh.vertices, mesh.faces, **options)


def sphere_distance(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points, axis=1) - 0.25


def torus_distance(points: np.ndarray) -> np.ndarray:
    return np.hypot(np.hypot(points[:, 0], points[:, 1]) - 0.3, points[:, 2]) - 0.1


def box_distance(points: np.ndarray) -> np.ndarray:
    beyond = np.abs(points) - HALF
    return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)


BALL = trimesh.creation.icosphere(4, 0.25)
# The facets of round meshes are inside the round shape: a torus by r (1 - cos(half the angle of a facet)).
SHAPES = {
    "sphere": (BALL, sphere_distance, 0.25 - (BALL.face_normals * BALL.triangles[:, 0]).sum(axis=1).min()),
    "torus": (trimesh.creation.torus(0.3, 0.1, 96, 48), torus_distance, 0.4 * (1 - np.cos(np.pi / 48))),
    "box": (trimesh.creation.box(2.0 * HALF), box_distance, 0.0),
}


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep grids of earlier runs away from the tests."""
    monkeypatch.setenv("PLURIVERSE_MESH_CACHE", str(tmp_path_factory.mktemp("meshes")))


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pv.geometry.SignedDistance]:
    folder = tmp_path_factory.mktemp("grids")
    return {name: as_mesh(mesh).signed_distance(cache_dir=folder) for name, (mesh, _, _) in SHAPES.items()}


def random_points(count: int, spread: float, seed: int = 0) -> np.ndarray:
    points = np.random.default_rng(seed).uniform(-spread, spread, (count, 3))
    return points.astype(np.float32).astype(np.float64)


def nodes_of(grid: pv.geometry.SignedDistance) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and values of all nodes."""
    z, y, x = np.indices(grid.coarse.shape)
    points = [grid.lower + 8 * grid.cell * np.stack([x, y, z], axis=-1).reshape(-1, 3)]
    z, y, x = np.indices((9, 9, 9))
    inner = grid.cell * np.stack([x, y, z], axis=-1).reshape(-1, 3)
    z, y, x = np.nonzero(grid.block_tile >= 0)
    for block in grid.lower + 8 * grid.cell * np.stack([x, y, z], axis=-1):
        points.append(block + inner)
    return np.concatenate(points), np.concatenate([grid.coarse.reshape(-1), grid.tiles.reshape(-1)])


@pytest.mark.parametrize("name", SHAPES)
def test_nodes_have_the_exact_distance(grids: dict[str, pv.geometry.SignedDistance], name: str):
    """At every node the value is the distance from the shape in closed form, less the sagitta of facets."""
    _, exact, sagitta = SHAPES[name]
    points, values = nodes_of(grids[name])
    np.testing.assert_allclose(values, exact(points), rtol=0.0, atol=sagitta + ROUNDING)


@pytest.mark.parametrize("name", SHAPES)
def test_interpolation_stays_within_its_bound(grids: dict[str, pv.geometry.SignedDistance], name: str):
    """Near the surface values are off by a tenth of a cell, at an edge of the shape by less than one."""
    _, exact, sagitta = SHAPES[name]
    grid = grids[name]
    points = random_points(20_000, 0.45)
    points = points[((points > grid.lower) & (points < grid.upper)).all(axis=1)]
    expected = exact(points)
    values, gradients = grid.sample(points)
    error = np.abs(values - expected)
    near = np.abs(expected) < 2.0 * grid.cell
    assert near.sum() > 200
    assert error[near].max() < sagitta + np.sqrt(3.0) / 2.0 * grid.cell
    assert np.median(error[near]) < sagitta + 0.05 * grid.cell
    # Elsewhere blocks of eight cells are interpolated.
    assert error.max() < sagitta + np.sqrt(3.0) / 2.0 * 8.0 * grid.cell
    assert (np.sign(values) == np.sign(expected))[np.abs(expected) > grid.cell].all()
    # The gradient is that of the interpolation, and near the surface of about unit length and outwards.
    step = 0.02 * grid.cell
    for axis in range(3):
        moved = [grid.sample(points + sign * step * np.eye(3)[axis])[0] for sign in (1.0, -1.0)]
        slope = (moved[0] - moved[1]) / (2.0 * step)
        # At the side of a cell the slope jumps.
        assert np.median(np.abs(slope - gradients[:, axis])) < 1e-3
        assert np.mean(np.abs(slope - gradients[:, axis]) < 2e-2) > 0.9
    outward = (
        np.stack([exact(points + 1e-6 * e) - exact(points - 1e-6 * e) for e in np.eye(3)], axis=1) / 2e-6
    )
    cosine = np.einsum("ij,ij->i", outward, gradients)[near] / np.linalg.norm(gradients[near], axis=1)
    assert np.quantile(cosine, 0.05) > 0.98


def test_depth_inside_is_that_of_the_shape(grids: dict[str, pv.geometry.SignedDistance]):
    """The deepest node is as deep as the middle of the shape, less half a diagonal of a cell."""
    for name, depth in {"sphere": 0.25, "torus": 0.1, "box": 0.15}.items():
        grid, sagitta = grids[name], SHAPES[name][2]
        # A node lies within half a diagonal of a cell, of a block where tiles do not reach.
        below = sagitta + np.sqrt(3.0) / 2.0 * 8.0 * grid.cell
        assert depth - below - ROUNDING < grid.depth <= depth + ROUNDING
        assert -grid.sample(grid.deepest_node()[None])[0][0] == pytest.approx(grid.depth, abs=ROUNDING)
    fine = as_mesh(SHAPES["sphere"][0]).signed_distance(narrow_band_range=(-0.3, 0.0))
    assert fine.depth == pytest.approx(0.25, abs=np.sqrt(3.0) / 2.0 * fine.cell)


@pytest.mark.parametrize("name", SHAPES)
def test_outside_the_box_the_way_to_it_is_added(grids: dict[str, pv.geometry.SignedDistance], name: str):
    """A value outside is not below the distance, nor above it by more than the bend of the way."""
    _, exact, sagitta = SHAPES[name]
    grid = grids[name]
    points = random_points(5_000, 2.0, seed=1)
    points = points[((points < grid.lower) | (points > grid.upper)).any(axis=1)]
    values, gradients = grid.sample(points)
    expected = exact(points)
    inside = np.clip(points, grid.lower, grid.upper)
    way = np.linalg.norm(points - inside, axis=1)
    at_box = grid.sample(inside)[0]
    error = np.sqrt(3.0) / 2.0 * 8.0 * grid.cell
    assert (values > expected - sagitta - error).all()
    np.testing.assert_allclose(values, at_box + way, rtol=0.0, atol=ROUNDING * 4)
    assert (np.hypot(at_box, way) - expected < sagitta + error).all()
    assert (np.einsum("ij,ij->i", gradients, (points - inside) / way[:, None]) > 1.0 - 1e-5).all()


@pytest.mark.parametrize("name", SHAPES)
def test_bounds_contain_the_exact_distance(grids: dict[str, pv.geometry.SignedDistance], name: str):
    """What the neighbours of a point leave possible contains its distance, and not much else."""
    from pluriverse.geometry.signed_distance_grid import make_distance_data, sample_points

    _, exact, sagitta = SHAPES[name]
    points = random_points(20_000, 0.8, seed=2)
    expected = exact(points)
    data = make_distance_data([grids["box"], grids[name]][::-1], "cpu")
    _, _, lower, upper = sample_points(data, points.astype(np.float32))
    assert (lower <= expected + sagitta + ROUNDING).all()
    assert (upper >= expected - sagitta - ROUNDING).all()
    near = np.abs(expected) < grids[name].cell
    assert np.median((upper - lower)[near]) < grids[name].cell


def test_sign_is_that_of_the_winding_number():
    """Facing inwards, overlapping or with a small hole, a mesh has the inside that one sees."""
    ball = trimesh.creation.icosphere(3, 0.25)
    other = ball.copy()
    other.apply_translation([0.2, 0.0, 0.0])
    holed = trimesh.Trimesh(ball.vertices, ball.faces[1:], process=False)
    cases = {
        "inwards": trimesh.Trimesh(ball.vertices, ball.faces[:, ::-1], process=False),
        "overlapping": trimesh.util.concatenate([ball, other]),
        "holed": holed,
    }
    points = random_points(4_000, 0.5)
    for name, mesh in cases.items():
        grid = as_mesh(mesh).signed_distance(max_resolution=32)
        expected = sphere_distance(points)
        if name == "overlapping":
            expected = np.minimum(expected, sphere_distance(points - [0.2, 0.0, 0.0]))
        clear = np.abs(expected) > 2.0 * grid.cell
        values = grid.sample(points)[0]
        assert (np.sign(values) == np.sign(expected))[clear].all(), name


def test_any_mesh_agrees_with_an_independent_distance():
    """A tilted, notched body has the distances that trimesh finds, at each node."""
    body = trimesh.creation.revolve(
        np.array([(0, 0), (0.3, 0.05), (0.5, 0.3), (0.46, 0.3), (0.28, 0.09), (0, 0.04)]), sections=16
    )
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler("xyz", [0.3, 0.5, 0.7]).as_matrix()
    body.apply_transform(turn)
    points, values = nodes_of(as_mesh(body).signed_distance(max_resolution=24))
    some = np.random.default_rng(0).choice(len(points), 800, replace=False)
    # trimesh counts the inside as positive.
    expected = -trimesh.proximity.signed_distance(body, points[some])
    np.testing.assert_allclose(values[some], expected, rtol=0.0, atol=2 * ROUNDING)


def test_grid_takes_memory_by_area_not_by_volume():
    """Twice the resolution takes four times the memory, not eight times, and less than a full grid."""
    mesh = as_mesh(SHAPES["sphere"][0])
    grids = [mesh.signed_distance(max_resolution=resolution) for resolution in (64, 128, 192)]
    sizes = [grid.byte_count for grid in grids]
    assert sizes[1] < 5.5 * sizes[0]
    # All nodes in the box in single precision.
    full = [4 * np.prod(8 * np.array(grid.block_tile.shape) + 1) for grid in grids]
    assert sizes[1] < 0.6 * full[1]
    assert sizes[2] < 0.4 * full[2]


def test_grid_is_computed_once_and_kept_on_disk(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Equal options give the same object, equal content the same file, and a broken file is replaced."""
    from pluriverse.geometry import signed_distance_build

    ball = trimesh.creation.icosphere(4, 0.25)
    calls = []
    measure = signed_distance_build.measure_nodes
    monkeypatch.setattr(
        signed_distance_build, "measure_nodes", lambda *a, **k: calls.append(1) or measure(*a, **k)
    )
    first = as_mesh(ball)
    grid = first.signed_distance(max_resolution=16, cache_dir=tmp_path)
    assert first.signed_distance(max_resolution=16, cache_dir=tmp_path) is grid
    again = as_mesh(ball).signed_distance(max_resolution=16, cache_dir=tmp_path)
    assert len(calls) == 1
    for one, two in ((grid.coarse, again.coarse), (grid.tiles, again.tiles), (grid.lower, again.lower)):
        np.testing.assert_array_equal(one, two)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    as_mesh(ball).signed_distance(max_resolution=16, cache_dir=tmp_path)
    as_mesh(ball).signed_distance(max_resolution=24, cache_dir=tmp_path)
    assert len(calls) == 3
    assert len(list(tmp_path.iterdir())) == 2
    assert as_mesh(ball).signed_distance(target_voxel_size=0.05, cache_dir=tmp_path).cell == 0.05


def test_a_fine_grid_is_announced_and_kept(tmp_path, monkeypatch, capsys):
    """Furniture with `<sdf resolution="512">` takes minutes once; nobody should wonder what happens."""
    from pluriverse.geometry import signed_distance_build

    monkeypatch.setattr(signed_distance_build, "ANNOUNCED_NODE_COUNT", 1000)
    as_mesh(trimesh.creation.box((1.0, 0.1, 0.1))).signed_distance(max_resolution=128, cache_dir=tmp_path)
    assert "million nodes, 0.0078 m apart; they are kept" in capsys.readouterr().err
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_resolution": 4}, "sdf_max_resolution is 4"),
        ({"max_resolution": 64.5}, "sdf_max_resolution is 64.5"),
        ({"max_resolution": 5000}, "from 8 to 1024"),
        ({"target_voxel_size": 1e-4}, "at most 1024"),
        ({"target_voxel_size": 0.0}, "sdf_target_voxel_size is 0.0 m"),
        ({"padding": float("nan")}, "sdf_padding is nan m"),
        ({"narrow_band_range": (0.1, 0.2)}, "sdf_narrow_band_range"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        as_mesh(SHAPES["box"][0]).signed_distance(**options)


def test_sheet_without_inside_is_refused():
    """A surface with holes that encloses nothing, even if it is hollow, has no signed distance."""
    sheet = pv.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.2]], [0, 1, 2, 2, 1, 3], name="sheet")
    ball = trimesh.creation.icosphere(3, 0.25)
    half = ball.faces[ball.triangles_center[:, 2] < 0.0]
    for mesh in (sheet, pv.Mesh(ball.vertices, half, name="sheet")):
        with pytest.raises(ValueError, match="sheet: the surface has holes so large"):
            mesh.signed_distance()


def test_shape_asks_for_its_grid_by_its_configuration():
    """Options of a shape are those of the grid of its mesh; with other options it has another mesh."""
    mesh = as_mesh(SHAPES["box"][0])
    builder = pv.ModelBuilder()
    body = builder.add_body()
    fine = pv.ShapeConfig(sdf_max_resolution=96, sdf_padding=0.1)
    for cfg in (fine, fine.copy(), pv.ShapeConfig(sdf_target_voxel_size=0.05), None):
        builder.add_shape_mesh(body, mesh=mesh, cfg=cfg)
    sources = builder.shape_source
    assert sources[0] is sources[1]
    assert len({id(source) for source in sources}) == 3
    assert sources[3] is mesh
    assert sources[0].signed_distance().cell == pytest.approx(0.6 / 96)
    assert sources[0].signed_distance().lower[0] <= -0.4 + ROUNDING
    assert sources[2].signed_distance().cell == pytest.approx(0.05)
    assert mesh.signed_distance().cell == pytest.approx(0.6 / 64)
    with pytest.raises(ValueError, match=r"shape_4.*sdf_max_resolution is 7"):
        builder.add_shape_mesh(body, mesh=mesh, cfg=pv.ShapeConfig(sdf_max_resolution=7))
