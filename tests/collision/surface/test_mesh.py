"""Triangle meshes that are not convex: distances, insides, seams, sheets, and what rests on and in them."""

import time

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.types import GeoType
from tests.collision.pairs import (
    ShapeSpec,
    box,
    capsule,
    collide,
    collide_pairs,
    cone,
    cylinder,
    hull,
    plane,
    random_poses,
    read_contacts,
    sphere,
)
from tests.collision.support_oracle import separation, signed_distance, support_heights
from tests.collision.surface.test_height_field import ROUGH, SHAPES, mechanical_energy

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
ORIGIN = np.array([[0.0, 0.0, 0.0, *UPRIGHT]])
GAP = 0.1
ROUNDING = 1e-6
# Contacts of a pair with a mesh at most.
CAP = 16


def mesh_spec(mesh: trimesh.Trimesh, scale: tuple[float, ...] = (), **options: bool) -> ShapeSpec:
    """Return a triangle mesh as a shape."""
    return ShapeSpec(GeoType.MESH, scale, pv.Mesh(mesh.vertices, mesh.faces.reshape(-1), **options))


def revolved(profile: list[tuple[float, float]], sections: int = 32) -> trimesh.Trimesh:
    """Return the surface of revolution of a profile (radius, height)."""
    return trimesh.creation.revolve(np.array(profile), sections=sections)


def mug() -> trimesh.Trimesh:
    """Return a mug of 8 cm with a handle around (0.062, 0, 0.05)."""
    wall = revolved([(0, 0), (0.04, 0), (0.04, 0.1), (0.036, 0.1), (0.036, 0.004), (0, 0.004)], 24)
    handle = trimesh.creation.torus(0.028, 0.005, major_sections=20, minor_sections=8)
    handle.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, [1, 0, 0]))
    handle.apply_translation([0.062, 0.0, 0.05])
    return trimesh.util.concatenate([wall, handle])


TORUS = trimesh.creation.torus(0.3, 0.1, major_sections=24, minor_sections=12)
BOWL = revolved([(0, 0), (0.3, 0.05), (0.5, 0.3), (0.46, 0.3), (0.28, 0.09), (0, 0.04)])
MESHES = {
    "torus": mesh_spec(TORUS),
    "bowl": mesh_spec(BOWL),
    "stretched torus": mesh_spec(TORUS, (1.5, 0.7, -1.2)),
    "block": mesh_spec(trimesh.creation.box((0.4, 0.5, 0.6))),
}


def near_poses(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return poses of two shapes as float32 holds them, about half a metre apart."""
    rng = np.random.default_rng(seed)
    poses = (random_poses(rng, count, spread) for spread in (0.1, 0.6))
    return tuple(some.astype(np.float32).astype(np.float64) for some in poses)


def check_against_coal(first: ShapeSpec, second: ShapeSpec, poses: tuple, *, with_normals: bool) -> int:
    """Assert that shapes that are apart have the distance of coal; return how many were compared."""
    coal_oracle = pytest.importorskip("tests.collision.coal_oracle")
    geometries = [coal_oracle.coal_geometry(shape) for shape in (first, second)]
    compared = 0
    for pose0, pose1, contacts in zip(*poses, collide_pairs(first, second, *poses, gap=GAP), strict=True):
        distance, normal = coal_oracle.coal_distance(geometries[0], pose0, geometries[1], pose1)
        assert contacts.count <= CAP
        if contacts.count:
            np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=ROUNDING)
        if distance <= ROUNDING:
            assert contacts.distance.min() < ROUNDING
        elif contacts.count == 0:
            assert distance > 2.0 * GAP - ROUNDING
        elif contacts.distance.min() > 0.0:  # else inside a solid, of which coal sees the surface alone
            deepest = contacts.distance.argmin()
            # Edges of two meshes that are almost parallel are off by 3e-5 of their size.
            assert contacts.distance[deepest] == pytest.approx(distance, abs=2e-5)
            sign = 1.0 if contacts.shape0[deepest] % 2 == 0 else -1.0
            if with_normals and distance > 0.01:
                assert sign * contacts.normal[deepest] @ normal > 1.0 - 1e-6
            compared += 1
    return compared


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mesh", MESHES)
def test_distance_from_a_mesh_agrees_with_coal(mesh: str, shape: str):
    """The deepest contact is the shortest connection to the nearest triangle; no overlap is missed."""
    poses = near_poses(40, seed=len(mesh) + 7 * len(shape))
    assert check_against_coal(MESHES[mesh], SHAPES[shape], poses, with_normals=True) >= 5


@pytest.mark.parametrize(
    "names",
    [("torus", "torus"), ("bowl", "block"), ("stretched torus", "bowl"), ("ground", "torus")],
    ids="-".join,
)
def test_distance_of_two_meshes_agrees_with_coal(names: tuple[str, str]):
    """Corners on faces and crossing edges are all there is between two polyhedra."""
    meshes = {**MESHES, "ground": ROUGH}
    poses = near_poses(40, seed=3)
    if names[0] == "ground":
        poses[0][:] = ORIGIN
        poses[1][:, 2] = np.linspace(0.2, 0.7, 40, dtype=np.float32)
    assert check_against_coal(*(meshes[name] for name in names), poses, with_normals=False) >= 5


@pytest.mark.parametrize("shape", SHAPES)
def test_shallow_depth_in_a_convex_mesh_is_that_of_its_hull(shape: str):
    """Shallow overlaps with a block of twelve triangles have the depth of convex bodies, by an oracle."""
    block = np.array(trimesh.creation.box((0.4, 0.5, 0.6)).vertices)
    poses = near_poses(800, seed=11)
    worlds = collide_pairs(MESHES["block"], SHAPES[shape], *poses)
    compared = 0
    for pose0, pose1, contacts in zip(*poses, worlds, strict=True):
        if contacts.count and contacts.distance.min() > -0.003 and compared < 10:
            depth, _ = signed_distance(hull(block), SHAPES[shape], pose0, pose1)
            # The oracle itself falls short by 5e-5. Deeper in, a single triangle may be left by another way
            # than the block.
            if depth > -0.003:
                assert contacts.distance.min() == pytest.approx(depth, abs=1e-4)
                compared += 1
    assert compared >= 1


SOLIDS = {
    "block": trimesh.creation.box((0.4, 0.5, 0.6)),
    "stone": trimesh.convex.convex_hull(np.random.default_rng(0).normal(size=(20, 3)) * [0.25, 0.2, 0.15]),
    "ball": trimesh.creation.icosphere(1, 0.3),
    "rod": trimesh.creation.cylinder(0.1, 0.8, sections=12),
}


@pytest.mark.parametrize(
    "names", [("block", "stone"), ("block", "rod"), ("stone", "ball"), ("rod", "rod")], ids="-".join
)
def test_shallow_depth_of_two_meshes_is_that_of_convex_bodies(names: tuple[str, str]):
    """Where convex meshes overlap by 1 %, a contact has the depth and normal that coal finds for their hulls.

    Others may push along other normals, by no more than the overlap along those.
    """
    coal_oracle = pytest.importorskip("tests.collision.coal_oracle")
    solids = [SOLIDS[name] for name in names]
    bodies = [hull(np.array(solid.vertices)) for solid in solids]
    hulls = [coal_oracle.coal_geometry(body) for body in bodies]
    poses = near_poses(1000, seed=3)
    compared = 0
    for pose0, pose1, contacts in zip(*poses, collide_pairs(*map(mesh_spec, solids), *poses), strict=True):
        distance, normal = coal_oracle.coal_distance(hulls[0], pose0, hulls[1], pose1)
        if not -0.005 < distance < 0.0:
            continue
        normals = contacts.normal * np.where(contacts.shape0 % 2 == 0, 1.0, -1.0)[:, None]
        is_same = np.abs(contacts.distance - distance) < 2 * ROUNDING
        assert (normals[is_same] @ normal > 1.0 - 1e-4).any()
        for depth, direction in zip(contacts.distance, normals, strict=True):
            assert depth > separation(*bodies, pose0, pose1, direction) - 2 * ROUNDING
        compared += 1
    assert compared >= 5


def test_ball_inside_a_solid_is_pushed_to_the_closest_face():
    """A ball with its middle inside a block has the depth of the middle plus its radius."""
    rng = np.random.default_rng(1)
    half, radius = np.array([0.2, 0.25, 0.3]), 0.05
    places = rng.uniform(-0.9, 0.9, (40, 3)) * half
    poses = np.concatenate([places, np.tile(UPRIGHT, (40, 1))], axis=1)
    expected = (np.abs(places) - half).max(axis=1) - radius
    for case in (MESHES["block"], turned_inside_out(MESHES["block"])):
        for depth, contacts in zip(
            expected, collide_pairs(case, sphere(radius), np.tile(ORIGIN, (40, 1)), poses), strict=True
        ):
            assert contacts.distance.min() == pytest.approx(depth, abs=2 * ROUNDING)


def turned_inside_out(shape: ShapeSpec) -> ShapeSpec:
    """Return a mesh with the other winding."""
    return ShapeSpec(
        GeoType.MESH, mesh=pv.Mesh(shape.mesh.vertices, shape.mesh.triangles[:, ::-1].reshape(-1))
    )


def slab_mesh(cells: int) -> trimesh.Trimesh:
    """Return a slab of 2 m with its top at z = 0 cut into squares, its other faces in two triangles each."""
    line = np.linspace(-1.0, 1.0, cells + 1)
    x, y = (axis.reshape(-1) for axis in np.meshgrid(line, line))
    corner = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)
    low, right, back, far = corner[:-1, :-1], corner[:-1, 1:], corner[1:, :-1], corner[1:, 1:]
    top = np.stack([low, right, far, low, far, back], axis=-1).reshape(-1, 3)
    block = trimesh.creation.box((2.0, 2.0, 0.2))
    rest = block.faces[block.face_normals[:, 2] < 0.5]
    vertices = np.concatenate([np.stack([x, y, np.zeros_like(x)], axis=1), block.vertices - [0.0, 0.0, 0.1]])
    # Seams: the sides of the slab meet the border of the squares along its corners only.
    return trimesh.Trimesh(vertices, np.concatenate([top, rest + len(x)]), process=False)


def test_ball_rolling_over_triangles_in_a_plane_sees_no_edge():
    """Edges, corners and seams between triangles of one plane push nobody sideways."""
    steps = np.linspace(-0.83, 0.83, 167)
    places = np.concatenate([np.stack([steps, np.full(167, y)], axis=1) for y in (0.0, 0.125, 0.03)])
    poses = np.concatenate([places, np.tile([0.0999, *UPRIGHT], (len(places), 1))], axis=1)
    ground = np.tile(ORIGIN, (len(places), 1))
    # Half of the squares cut in four: their border is a seam of corners in the middle of edges.
    slab = slab_mesh(16)
    fine = slab.subdivide(face_index=np.arange(0, 256))
    for mesh in (slab, fine):
        for contacts in collide_pairs(mesh_spec(mesh), sphere(0.1), ground, poses, gap=0.01):
            assert contacts.count == 1
            np.testing.assert_array_equal(np.abs(contacts.normal), [[0.0, 0.0, 1.0]])


def test_soup_of_many_loose_triangles_is_ready_soon():
    """Each edge of a soup is a boundary and is looked up in the tree, not in a list of all triangles."""
    rng = np.random.default_rng(0)
    corners = rng.uniform(-1.0, 1.0, (20000, 1, 3)) + rng.uniform(-0.02, 0.02, (20000, 3, 3))
    soup = trimesh.Trimesh(corners.reshape(-1, 3), np.arange(60000).reshape(-1, 3), process=False)
    shape = mesh_spec(soup, is_solid=False, compute_inertia=False)
    collide_pairs(mesh_spec(slab_mesh(2)), sphere(0.1), ORIGIN, ORIGIN)  # compiles the kernels
    begin = time.process_time()
    contacts = collide_pairs(shape, sphere(0.1), ORIGIN, ORIGIN)[0]
    assert contacts.found <= CAP
    # Comparing all edges with all triangles would take an hour.
    assert time.process_time() - begin < 20.0


def test_box_on_many_triangles_keeps_its_four_corners():
    """However a floor is divided, a box stands on its corners."""
    pose = np.array([[0.1, 0.05, 0.2999, *Rotation.from_euler("z", 0.4).as_quat()]])
    contacts = collide_pairs(mesh_spec(slab_mesh(20)), box(0.2, 0.3, 0.3), ORIGIN, pose, gap=0.01)[0]
    assert contacts.count == 4
    np.testing.assert_allclose(contacts.distance, -1e-4, atol=ROUNDING)


def test_sheet_pushes_to_the_side_where_a_shape_is():
    """A mesh with holes has two fronts."""
    sheet = mesh_spec(
        trimesh.Trimesh([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    )
    above, below = np.array([[0.1, 0.2, 0.09, *UPRIGHT]]), np.array([[0.1, 0.2, -0.09, *UPRIGHT]])
    for pose, direction in ((above, 1.0), (below, -1.0)):
        for shape in (sphere(0.1), box(0.1, 0.1, 0.1)):
            contacts = collide_pairs(sheet, shape, ORIGIN, pose)[0]
            sign = np.where(contacts.shape0 == 0, 1.0, -1.0)
            np.testing.assert_allclose(sign * contacts.normal[:, 2], direction, atol=ROUNDING)
            np.testing.assert_allclose(contacts.distance, -0.01, atol=ROUNDING)


def test_mesh_with_a_small_hole_is_solid_if_it_asks_for_a_signed_distance():
    """A ball without one of its 320 triangles pushes out what is inside; by default it is a sheet."""
    ball = trimesh.creation.icosphere(2, 0.3)
    depths = {}
    for name, faces, resolution in (
        ("closed", ball.faces, None),
        ("sheet", ball.faces[1:], None),
        ("solid", ball.faces[1:], 32),
        ("half", ball.faces[ball.triangles_center[:, 2] < 0.0], 32),
    ):
        builder = pv.ModelBuilder()
        config = pv.ShapeConfig(sdf_max_resolution=resolution, density=0.0, gap=GAP)
        builder.add_shape_mesh(-1, mesh=pv.Mesh(ball.vertices, faces, name=name), cfg=config)
        sphere(0.05).add(builder, builder.add_body(xform=(0.15, 0.0, 0.0, *UPRIGHT)), gap=GAP)
        model = builder.finalize("cpu")
        if name == "half":
            with pytest.raises(ValueError, match="half: the surface has holes so large"):
                pv.CollisionPipeline(model)
            continue
        depths[name] = collide(model, model.state())[0].distance.min()
    assert depths["closed"] == pytest.approx(-0.2, abs=0.01)
    assert depths["solid"] == pytest.approx(depths["closed"], abs=ROUNDING)
    assert depths["sheet"] == pytest.approx(0.1, abs=0.01)


def test_degenerate_triangles_change_nothing():
    """Triangles without area, of equal or collinear corners, leave the contacts of a mesh as they are."""
    block = trimesh.creation.box((0.4, 0.5, 0.6))
    first, second = block.faces[0, :2]
    vertices = np.concatenate([block.vertices, [block.vertices[[first, second]].mean(axis=0)]])
    faces = np.concatenate([block.faces, [[first, first, second], [first, second, 8], [8, 8, 8]]])
    spoiled = mesh_spec(trimesh.Trimesh(vertices, faces, process=False))
    poses = near_poses(30, seed=5)
    for a, b in zip(
        collide_pairs(MESHES["block"], SHAPES["box"], *poses, gap=GAP),
        collide_pairs(spoiled, SHAPES["box"], *poses, gap=GAP),
        strict=True,
    ):
        assert (a.count > 0) == (b.count > 0)
        if a.count:
            assert a.distance.min() == pytest.approx(b.distance.min(), abs=ROUNDING)
    nothing = mesh_spec(trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], process=False))
    with pytest.raises(ValueError, match="none of its 1 triangles has an area"):
        collide_pairs(nothing, sphere(0.1), ORIGIN, ORIGIN)


@pytest.mark.parametrize("name", ["torus", "bowl"])
def test_mesh_on_a_plane_touches_with_its_lowest_vertices(name: str):
    """The depth in a plane is that of the lowest vertex, of any vertex."""
    rng = np.random.default_rng(2)
    poses = random_poses(rng, 20, 0.3).astype(np.float32).astype(np.float64)
    for pose, contacts in zip(
        poses, collide_pairs(plane(), MESHES[name], poses, poses, gap=1.0), strict=True
    ):
        points = Rotation.from_quat(pose[3:]).apply(MESHES[name].mesh.vertices) + pose[:3]
        assert contacts.distance.min() == pytest.approx(points[:, 2].min(), abs=ROUNDING)
        assert 1 <= contacts.count <= CAP


def test_worlds_with_meshes_do_not_affect_each_other():
    """The contacts of a mesh have the same bits in any batch."""

    def heap(seed: int) -> pv.ModelBuilder:
        world = pv.ModelBuilder()
        rng = np.random.default_rng(seed)
        kinds = [MESHES["bowl"], MESHES["torus"], SHAPES["box"], SHAPES["hull"], SHAPES["capsule"]]
        for shape, pose in zip(kinds, random_poses(rng, len(kinds), 0.3), strict=True):
            shape.add(world, world.add_body(xform=pose, mass=1.0), gap=0.01)
        return world

    alone = heap(1).finalize("cpu")
    expected = collide(alone, alone.state())[0]
    assert expected.count > 10
    builder = pv.ModelBuilder()
    for seed in (2, 1, 3):
        builder.add_world(heap(seed))
    model = builder.finalize("cpu")
    found = collide(model, model.state())[1]
    for name in ("local0", "local1", "normal"):
        np.testing.assert_array_equal(getattr(expected, name), getattr(found, name))


MATERIAL = {"gap": 0.004, "ke": 1e5, "mu": 0.7}


def resting_worlds() -> dict[str, pv.ModelBuilder]:
    """Return scenes that come to rest."""
    worlds: dict[str, pv.ModelBuilder] = {}
    tilted = Rotation.from_euler("xyz", [0.2, 0.4, 0.0]).as_quat()
    sheet = mesh_spec(
        revolved([(0.001, 0.0), (0.3, 0.05), (0.5, 0.3)]), is_solid=False, compute_inertia=False
    )
    for name, bowl, shape in (
        ("ball in bowl", MESHES["bowl"], sphere(0.05)),
        ("box in bowl", MESHES["bowl"], box(0.06, 0.05, 0.04)),
        ("cylinder in bowl", MESHES["bowl"], cylinder(0.05, 0.06)),
        ("stone in bowl", MESHES["bowl"], hull(np.random.default_rng(3).normal(size=(30, 3)) * 0.04)),
        ("ring in bowl", MESHES["bowl"], mesh_spec(trimesh.creation.torus(0.06, 0.02, 16, 8))),
        ("box in sheet", sheet, box(0.06, 0.05, 0.04)),
    ):
        world = worlds[name] = pv.ModelBuilder()
        bowl.add(world, -1, **MATERIAL)
        shape.add(world, world.add_body(xform=(0.03, 0.02, 0.25, *tilted)), **MATERIAL)
    for name, ground in (("mug on plane", plane()), ("mug on box", box(0.5, 0.5, 0.1))):
        world = worlds[name] = pv.ModelBuilder()
        ground.add(world, -1, xform=(0.0, 0.0, -0.1 if ground.scale[0] else 0.0, *UPRIGHT), **MATERIAL)
        mesh_spec(mug()).add(world, world.add_body(xform=(0.0, 0.0, 0.03, *UPRIGHT)), **MATERIAL)
    block = mesh_spec(trimesh.creation.box((0.2, 0.2, 0.2)))
    for name, upper in (("blocks", block), ("boxes on blocks", box(0.1, 0.1, 0.1))):
        world = worlds[name] = pv.ModelBuilder()
        plane().add(world, -1, **MATERIAL)
        for level in range(4):
            turn = Rotation.from_euler("z", 0.1 * level).as_quat()
            shape = upper if level % 2 else block
            body = world.add_body(xform=(0.003 * level, 0.0, 0.1 + 0.2 * level, *turn))
            shape.add(world, body, **MATERIAL)
    world = worlds["blocks in line"] = pv.ModelBuilder()
    plane().add(world, -1, **MATERIAL)
    for level in range(3):
        block.add(world, world.add_body(xform=(0.0, 0.0, 0.1 + 0.2 * level, *UPRIGHT)), **MATERIAL)
    return worlds


def test_objects_come_to_rest_in_and_on_meshes():
    """Balls, boxes, stones and rings in bowls, mugs, stacks of meshes: after 4 s nothing moves."""
    worlds = resting_worlds()
    builder = pv.ModelBuilder()
    for world in worlds.values():
        builder.add_world(world)
    model = builder.finalize("cpu")
    # Nothing else would stop a ball that rolls in a bowl: its contacts brake what they come near to.
    solver = pv.SolverSAP(model, approach_damping=True)
    pipeline, control = pv.CollisionPipeline(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    for _ in range(1000):
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, 0.004)
        states.reverse()
    # Rolling of round bodies is damped by the compliance of their contacts alone.
    speed = np.abs(states[0].body_qd.numpy()).max(axis=1)
    world_of, found = model.body_world.numpy(), read_contacts(model, states[0], contacts)
    for world, name in enumerate(worlds):
        assert speed[world_of == world].max() < 1e-4, name
        assert found[world].count >= 1, name
        assert found[world].distance.min() > -3e-3, name
    height = states[0].body_q.numpy()[:, 2]
    np.testing.assert_allclose(
        height[world_of == list(worlds).index("blocks in line")], [0.1, 0.3, 0.5], atol=5e-3
    )


def test_mug_hangs_on_a_peg():
    """The handle of a mug catches on a peg; the mug swings, but stays and gains no energy."""
    builder = pv.ModelBuilder()
    turn = Rotation.from_euler("y", -np.pi / 2).as_quat()
    pegs = (
        (box(0.004, 0.06, 0.004), UPRIGHT, 0.9185),
        (mesh_spec(trimesh.creation.box((0.008, 0.12, 0.008))), UPRIGHT, 0.9185),
        (capsule(0.005, 0.06), tuple(Rotation.from_euler("x", np.pi / 2).as_quat()), 0.9195),
    )
    for peg, quat, height in pegs:
        world = pv.ModelBuilder()
        peg.add(world, -1, xform=(0.0, 0.0, 1.0, *quat), **MATERIAL)
        mesh_spec(mug()).add(world, world.add_body(xform=(0.05, 0.0, height, *turn)), **MATERIAL)
        builder.add_world(world)
    model = builder.finalize("cpu")
    pipeline, solver, control = pv.CollisionPipeline(model), pv.SolverSAP(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    energies = []
    for step in range(1500):
        if step % 250 == 0:
            energies.append(mechanical_energy(model, states[0]))
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, 0.004)
        states.reverse()
    assert (states[0].body_q.numpy()[:, 2] > 0.9).all()
    # Less than a hundredth of the energy of its swing, 0.11 kg times 9.81 m/s² times 1 cm.
    assert (np.diff(energies[1:], axis=0) < 1e-4).all()


def deep_poses(count: int, seed: int, depth: float) -> np.ndarray:
    """Return poses with origins up to `depth` from the circle in the middle of the tube of the torus."""
    rng = np.random.default_rng(seed)
    around, off, turn = (
        rng.uniform(0, 2 * np.pi, count),
        rng.uniform(0, depth, count),
        rng.uniform(0, 7, count),
    )
    radius = 0.3 + off * np.cos(turn)
    places = np.column_stack([radius * np.cos(around), radius * np.sin(around), off * np.sin(turn)])
    poses = np.concatenate([places, Rotation.random(count, random_state=seed).as_quat()], axis=1)
    return poses.astype(np.float32).astype(np.float64)


DEEP = {
    "ball": sphere(0.05),
    "box": box(0.06, 0.05, 0.04),
    "cylinder": cylinder(0.05, 0.05),
    "capsule": capsule(0.03, 0.05),
    "cone": cone(0.05, 0.06),
    "hull": hull(np.random.default_rng(3).normal(size=(30, 3)) * 0.03),
    "big box": box(0.2, 0.15, 0.1),
    "mesh box": mesh_spec(trimesh.creation.box((0.12, 0.1, 0.08))),
    "mesh ring": mesh_spec(trimesh.creation.torus(0.1, 0.04, 24, 12)),
}


@pytest.mark.parametrize("name", DEEP)
def test_the_deepest_contact_leads_out_of_a_ring(name: str):
    """Moved along its deepest contact by the depth of that, a body that was half or all inside is outside."""
    ring, body = mesh_spec(trimesh.creation.torus(0.3, 0.1, 48, 24)), DEEP[name]
    poses = deep_poses(100, seed=5, depth=0.12)
    fixed = np.tile(ORIGIN, (100, 1))
    depths = np.full((2, 100), np.inf)
    for turn in range(2):
        for world, contacts in enumerate(collide_pairs(ring, body, fixed, poses)):
            if contacts.count:
                deepest = contacts.distance.argmin()
                depths[turn, world] = contacts.distance[deepest]
                sign = 1.0 if contacts.shape0[deepest] % 2 == 0 else -1.0
                poses[world, :3] -= sign * contacts.distance[deepest] * contacts.normal[deepest]
    assert (depths[0] < -0.005).all()
    remaining = np.maximum(-depths[1], 0.0) / -depths[0]
    assert np.median(remaining) < 0.02
    if name.startswith("mesh"):
        # Where a body lies across the tube no single plane frees it, but mostly what remains is little.
        assert np.mean(remaining < 0.2) >= 0.7
    else:
        assert np.mean(remaining < 0.2) >= 0.98
        assert np.mean([is_outside_of_ring(body, pose) for pose in poses]) >= 0.97


def is_outside_of_ring(body: ShapeSpec, pose: np.ndarray) -> bool:
    """Return whether no point of the ring that is 1 cm or more below its surface is inside a convex body."""
    rng = np.random.default_rng(0)
    around, turn = rng.uniform(0.0, 2.0 * np.pi, (2, 4000))
    off = 0.09 * np.sqrt(rng.random(4000))
    radius = 0.3 + off * np.cos(turn)
    points = np.stack([radius * np.cos(around), radius * np.sin(around), off * np.sin(turn)], axis=1)
    local = Rotation.from_quat(pose[3:]).inv().apply(points - pose[:3])
    directions = np.concatenate([np.eye(3), -np.eye(3), rng.normal(size=(300, 3))])
    return not (local @ directions.T <= support_heights(body, directions)).all(axis=1).any()


def test_shallow_contacts_do_not_depend_on_the_signed_distance():
    """The grid speaks of deep overlaps alone: contacts of others, and of shapes apart, are the same bits."""
    body, poses = box(0.12, 0.1, 0.08), near_poses(120, seed=8)
    coarse, fine = (
        ShapeSpec(GeoType.MESH, mesh=MESHES["torus"].mesh.with_signed_distance(max_resolution=resolution))
        for resolution in (8, 96)
    )
    shallow = 0
    for a, b in zip(*(collide_pairs(ring, body, *poses, gap=GAP) for ring in (coarse, fine)), strict=True):
        # Half of what thin walls hold, that being half of the half thickness.
        if b.count and b.distance.min() > -0.25 * 0.08:
            shallow += 1
            for name in ("local0", "local1", "normal"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert shallow >= 20
