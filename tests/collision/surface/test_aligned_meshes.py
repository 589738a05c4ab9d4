"""Meshes exactly in line with each other: corners on edges, edges on edges, faces in one plane."""

import numpy as np
import pytest
import trimesh

import pluriverse as pv
from pluriverse.types import GeoType
from tests.collision.pairs import ShapeSpec, box, collide_pairs

HALF = 0.25
# Twice the rounding of float32 poses of a metre.
ROUNDING = 2.4e-7
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))


def as_mesh(solid: trimesh.Trimesh, scale: tuple[float, ...] = ()) -> ShapeSpec:
    """Return a triangle mesh as a shape."""
    return ShapeSpec(GeoType.MESH, scale, pv.Mesh(solid.vertices, solid.faces.reshape(-1)))


def cube() -> trimesh.Trimesh:
    """Return a cube of 12 triangles."""
    return trimesh.creation.box((2.0 * HALF,) * 3)


def other_diagonals() -> trimesh.Trimesh:
    """Return the cube with its faces cut along the other diagonals."""
    solid = cube()
    return trimesh.Trimesh(-solid.vertices, solid.faces[:, ::-1], process=False)


def tray(clearance: float) -> trimesh.Trimesh:
    """Return a tray around the cube, its floor at z = 0, walls of 5 cm and as high as half the cube."""
    inner = HALF + clearance
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    rings = [(inner + 0.05, -0.05), (inner + 0.05, HALF), (inner, HALF), (inner, 0.0)]
    vertices = np.concatenate([np.column_stack([r * square, np.full(4, z)]) for r, z in rings])
    faces = [(0, 2, 1), (0, 3, 2), (12, 13, 14), (12, 14, 15)]
    for ring in range(3):
        for side in range(4):
            a, b = 4 * ring + side, 4 * ring + (side + 1) % 4
            faces += [(a, b, b + 4), (a, b + 4, a + 4)]
    solid = trimesh.Trimesh(vertices, faces, process=False)
    assert solid.is_watertight
    assert solid.volume > 0.0
    return solid


CUBES = {
    "12 triangles": as_mesh(cube()),
    "other diagonals": as_mesh(other_diagonals()),
    "mirrored": as_mesh(cube(), (-1.0, 1.0, 1.0)),
    "scaled": as_mesh(trimesh.creation.box((1.0, 1.0, 1.0)), (0.5, 0.5, 0.5)),
    "grid": as_mesh(cube().subdivide().subdivide()),
}
PAIRS = [(name, "12 triangles") for name in CUBES] + [("12 triangles", "grid"), ("grid", "grid")]


def corners_of_overlap(offset: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the corners of the rectangle that two boxes have in common seen from above, [4, 2]."""
    low = np.maximum(-first[:2], offset[:2] - second[:2])
    high = np.minimum(first[:2], offset[:2] + second[:2])
    return np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])


def check_stack(first: ShapeSpec, second: ShapeSpec, offsets: list, turn: tuple, depths: list) -> None:
    """Assert that a cube on a cube is pushed up by its depth at the corners of what they share."""
    half = np.full(3, HALF)
    poses = np.array([[x, y, 2.0 * HALF - d, *turn] for x, y in offsets for d in depths])
    ground = np.tile([0.0, 0.0, 0.0, *UPRIGHT], (len(poses), 1))
    for pose, contacts in zip(poses, collide_pairs(first, second, ground, poses, gap=0.01), strict=True):
        sign = np.where(contacts.shape0 % 2 == 0, 1.0, -1.0)
        np.testing.assert_allclose(
            sign[:, None] * contacts.normal, np.tile([0, 0, 1], (contacts.count, 1)), atol=1e-6
        )
        np.testing.assert_allclose(contacts.distance, pose[2] - 2.0 * HALF, atol=ROUNDING)
        for corner in corners_of_overlap(pose, half, half):
            assert np.linalg.norm(contacts.point0[:, :2] - corner, axis=1).min() < 1e-5, (pose, corner)


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_cubes_in_line_push_up_at_the_corners_of_what_they_share(names: tuple[str, str]):
    """A corner on the edge of another cube belongs to the face that it faces, however deep it is."""
    first, second = (CUBES[name] for name in names)
    offsets = [(0.0, 0.0), (HALF, 0.0), (0.0, -HALF), (HALF, HALF)]
    depths = [-1e-3, 0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 2e-2]
    check_stack(first, second, offsets, UPRIGHT, depths)
    check_stack(first, second, offsets[:2], QUARTER, depths)
    check_stack(first, second, [(0.06, 0.04)], UPRIGHT, depths[:-1])


@pytest.mark.parametrize("side", [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0)])
@pytest.mark.parametrize("along", [0.0, HALF, 0.3])
def test_cubes_side_by_side_are_not_pushed_along_their_sides(side: tuple[float, ...], along: float):
    """What lies against a face, be it in line with others, is pushed across that face alone."""
    side = np.array(side)
    gaps = np.array([-1e-4, -1e-6, 0.0, 1e-6, 1e-5, 1e-3])
    poses = np.array([[*((2.0 * HALF + gap) * side + [0, 0, along]), *UPRIGHT] for gap in gaps])
    ground = np.tile([0.0, 0.0, 0.0, *UPRIGHT], (len(poses), 1))
    found = collide_pairs(CUBES["grid"], CUBES["12 triangles"], ground, poses, gap=0.01)
    for gap, contacts in zip(gaps, found, strict=True):
        assert contacts.count >= 4
        sign = np.where(contacts.shape0 % 2 == 0, 1.0, -1.0)
        np.testing.assert_allclose((sign[:, None] * contacts.normal) @ side, 1.0, atol=1e-6)
        np.testing.assert_allclose(contacts.distance, gap, atol=ROUNDING)


def resting_worlds() -> dict[str, tuple[pv.ModelBuilder, list[float]]]:
    """Return worlds whose bodies start where they rest, and their heights [m]."""
    worlds = {}

    def add(name: str, layers: list, *, floor: ShapeSpec | None = None) -> None:
        world = pv.ModelBuilder()
        if floor is None:
            world.add_ground_plane()
        else:
            floor.add(world, -1, xform=(0.0, 0.0, 0.0 if floor is TRAY else -HALF, *UPRIGHT))
        for index, (shape, x, turn) in enumerate(layers):
            body = world.add_body(xform=(x, 0.0, HALF * (2 * index + 1), *turn))
            shape.add(world, body)
        worlds[name] = (world, [HALF * (2 * index + 1) for index in range(len(layers))])

    plain, grid = CUBES["12 triangles"], CUBES["grid"]
    for name, shape in CUBES.items():
        add(name, [(shape, 0.0, UPRIGHT)] * 3)
    add("turned", [(plain, 0.0, UPRIGHT), (grid, 0.0, QUARTER), (plain, 0.0, QUARTER)])
    add("half over", [(plain, 0.0, UPRIGHT), (plain, 0.2, UPRIGHT)])
    add("box on mesh", [(plain, 0.0, UPRIGHT), (box(HALF, HALF, HALF), 0.0, UPRIGHT), (grid, 0.0, UPRIGHT)])
    add("tray", [(plain, 0.0, UPRIGHT), (plain, 0.0, UPRIGHT)], floor=TRAY)
    add("mesh floor", [(plain, 0.0, UPRIGHT), (plain, 0.0, QUARTER)], floor=grid)
    heights = np.zeros((9, 9))
    field = ShapeSpec(GeoType.HFIELD, mesh=pv.Heightfield(heights, 9, 9, hx=HALF, hy=HALF))
    world = pv.ModelBuilder()
    field.add(world, -1)
    for z in (HALF, 3.0 * HALF):
        plain.add(world, world.add_body(xform=(0.0, 0.0, z, *UPRIGHT)))
    worlds["height field"] = (world, [HALF, 3.0 * HALF])
    return worlds


TRAY = as_mesh(tray(0.0))


@pytest.mark.parametrize("solver", ["SAP", "MuJoCo"])
def test_meshes_in_line_stay_where_they_rest(solver: str):
    """After half a second, aligned stacks of meshes stand at the heights of their cubes."""
    worlds = resting_worlds()
    builder = pv.ModelBuilder()
    for world, _ in worlds.values():
        builder.add_world(world)
    model = builder.finalize("cpu")
    make = pv.SolverSAP if solver == "SAP" else pv.SolverMuJoCo
    options = {} if solver == "SAP" else {"use_mujoco_contacts": False}
    states, control = [model.state(), model.state()], model.control()
    pipeline, engine = pv.CollisionPipeline(model), make(model, **options)
    contacts = pipeline.contacts()
    for _ in range(100):
        pipeline.collide(states[0], contacts)
        engine.step(states[0], states[1], control, contacts, 0.005)
        states.reverse()
    poses, start = states[0].body_q.numpy(), model.body_world_start.numpy()
    for world, (name, (_, heights)) in enumerate(worlds.items()):
        rows = poses[start[world] : start[world] + len(heights)]
        # Compliance lets a stack sink by fractions of a millimetre; MuJoCo's contacts by a few.
        np.testing.assert_allclose(rows[:, 2], heights, atol=2e-3 if solver == "SAP" else 1e-2, err_msg=name)
        np.testing.assert_allclose(rows[:, 3:5], 0.0, atol=5e-3, err_msg=name)
