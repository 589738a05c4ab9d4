"""Hydroelastic triangle meshes: their pressure patches against those of the shapes they stand for."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.types import GeoType
from pluriverse.warnings import PluriverseWarning
from tests.collision.hydroelastic.patches import IDENTITY, PatchPair, find_patches
from tests.collision.pairs import ShapeSpec, box, capsule, plane, sphere
from tests.collision.surface.solid_meshes import box_mesh, capsule_mesh, sphere_mesh, torus_mesh

KH = 1.0e7
"""Pressure per depth [N/m³] of the shapes here."""
PLANE, BOX, SPHERE, CAPSULE = plane(), box(0.1, 0.15, 0.08), sphere(0.1), capsule(0.06, 0.12)
BOX_MESH, SPHERE_MESH, CAPSULE_MESH = box_mesh(0.1, 0.15, 0.08), sphere_mesh(0.1), capsule_mesh(0.06, 0.12)
TORUS_MESH = torus_mesh(0.15, 0.05)
FORCE_TOLERANCE = 0.05
"""By two errors: grids of 64 cells round edges off, and surfaces with facets lie inside of round ones."""


def at(x: float, y: float, z: float, *euler: float) -> np.ndarray:
    """Return a pose (position, xyzw) turned about x, y and z [deg]."""
    turn = Rotation.from_euler("xyz", euler or (0.0, 0.0, 0.0), degrees=True)
    return np.array([x, y, z, *turn.as_quat()])


TILTED = (20.0, 15.0, 30.0)
LYING = (90.0, 0.0, 0.0)
ON_PLANE = {
    "face of a box": (BOX_MESH, BOX, at(0, 0, 0.079)),
    "box, shallow": (BOX_MESH, BOX, at(0, 0, 0.0799)),
    "corner of a box": (BOX_MESH, BOX, at(0, 0, 0.13, *TILTED)),
    "sphere": (SPHERE_MESH, SPHERE, at(0.2, 0.1, 0.09)),
    "lying capsule": (CAPSULE_MESH, CAPSULE, at(0, 0, 0.05, *LYING)),
    "tilted capsule": (CAPSULE_MESH, CAPSULE, at(0, 0, 0.16, *TILTED)),
}
TOGETHER = {
    "sphere on box mesh": ((BOX_MESH, BOX), (SPHERE, SPHERE), at(0.03, 0.02, 0.17)),
    "sphere mesh on box": ((BOX, BOX), (SPHERE_MESH, SPHERE), at(0.03, 0.02, 0.17)),
    "sphere on the edge of a box mesh": ((BOX_MESH, BOX), (SPHERE, SPHERE), at(0.12, 0.02, 0.16)),
    "sphere meshes": ((SPHERE_MESH, SPHERE), (SPHERE_MESH, SPHERE), at(0.03, 0.02, 0.18)),
    "box meshes": ((BOX_MESH, BOX), (BOX_MESH, BOX), at(0.05, 0.04, 0.159, 0.0, 0.0, 25.0)),
    "capsule mesh on sphere mesh": (
        (SPHERE_MESH, SPHERE),
        (CAPSULE_MESH, CAPSULE),
        at(0.02, 0.03, 0.145, *LYING),
    ),
}
STIFFNESS = {"compliant": (KH, 3.0 * KH), "first rigid": (None, KH), "second rigid": (KH, None)}


def assert_same_force(found: list, expected: list, tolerance: float = FORCE_TOLERANCE) -> None:
    for mesh, shape in zip(found, expected, strict=True):
        size = np.linalg.norm(shape.force)
        assert size > 1.0
        np.testing.assert_allclose(mesh.force, shape.force, rtol=0.0, atol=tolerance * size)
        # The moment about the middle of the patch: a few millimetres of force at most.
        np.testing.assert_allclose(mesh.centre, shape.centre, rtol=0.0, atol=2.0e-3)
        np.testing.assert_allclose(mesh.stiffness.sum(), shape.stiffness.sum(), rtol=0.08)


def test_closed_meshes_on_a_plane_press_as_the_shapes_they_stand_for():
    """Flat, on a corner, and round, with the pressure centre and the stiffness of the patch."""
    found, expected = (
        find_patches(
            [PatchPair(PLANE, case[side], None, KH, IDENTITY, case[2]) for case in ON_PLANE.values()]
        )
        for side in (0, 1)
    )
    assert_same_force(found, expected)


@pytest.mark.parametrize("kh", STIFFNESS.values(), ids=STIFFNESS)
def test_meshes_and_others_press_as_the_shapes_they_stand_for(kh):
    """Mesh and primitive and two meshes; either may be the rigid one."""
    found, expected = (
        find_patches(
            [
                PatchPair(first[side], second[side], *kh, IDENTITY, pose)
                for first, second, pose in TOGETHER.values()
            ]
        )
        for side in (0, 1)
    )
    assert_same_force(found, expected)


def test_two_turned_meshes_press_on_each_other_alike_wherever_they_are():
    """The pair turned and moved as a whole has its force turned, to the share of cells in other places."""
    turn = Rotation.from_euler("xyz", [40.0, 25.0, 70.0], degrees=True)
    first, second = at(0, 0, 0), at(0.05, 0.04, 0.155, 0.0, 0.0, 25.0)
    shift = np.array([0.3, -0.2, 0.5])
    moved = [
        np.concatenate([turn.apply(pose[:3]) + shift, (turn * Rotation.from_quat(pose[3:])).as_quat()])
        for pose in (first, second)
    ]
    here, there = find_patches(
        [
            PatchPair(BOX_MESH, BOX_MESH, KH, KH, first, second),
            PatchPair(BOX_MESH, BOX_MESH, KH, KH, *moved),
        ]
    )
    size = np.linalg.norm(here.force)
    np.testing.assert_allclose(there.force, turn.apply(here.force), rtol=0.0, atol=0.01 * size)
    np.testing.assert_allclose(there.centre, turn.apply(here.centre) + shift, rtol=0.0, atol=5e-4)


def torus_force(major: float, minor: float, depth: float) -> float:
    """Return the integral of kh (r - sqrt(x^2 + d^2)), d = r - depth, over the ring that is cut."""
    d = minor - depth
    half = np.sqrt(minor**2 - d**2)
    x = np.linspace(-half, half, 4001)
    return 2.0 * np.pi * major * KH * np.trapezoid(minor - np.hypot(x, d), x)


def test_a_lying_torus_presses_with_its_ring():
    """No convex shape: the patch is a ring, and none of the contacts is in its hole."""
    depth = 1e-2
    (patch,) = find_patches([PatchPair(PLANE, TORUS_MESH, None, KH, IDENTITY, at(0, 0, 0.05 - depth))])
    force = torus_force(0.15, 0.05, depth)
    np.testing.assert_allclose(patch.force, [0.0, 0.0, force], rtol=0.0, atol=FORCE_TOLERANCE * force)
    points = 0.5 * (patch.contacts.point0 + patch.contacts.point1)
    # The middle of an eighth of a ring is a little within it.
    np.testing.assert_allclose(np.hypot(*points.T[:2]), 0.15 * np.sin(np.pi / 8) / (np.pi / 8), atol=5e-3)


def test_a_ball_in_the_hole_of_a_torus_is_carried_all_around():
    """A rigid torus under a compliant sphere: forces towards the axis cancel, those along it add up."""
    ball = sphere(0.12)
    (patch,) = find_patches([PatchPair(TORUS_MESH, ball, None, KH, IDENTITY, at(0, 0, 0.065))])
    assert patch.contacts.count == 8
    assert patch.force[2] > 10.0
    np.testing.assert_allclose(patch.force[:2], 0.0, atol=0.01 * patch.force[2])
    # The same by a sum over the surface of the torus.
    u, v = np.meshgrid(*[(np.arange(800) + 0.5) * 2.0 * np.pi / 800] * 2, indexing="ij")
    normal = np.stack([np.cos(u) * np.cos(v), np.sin(u) * np.cos(v), np.sin(v)], axis=-1)
    point = 0.15 * np.stack([np.cos(u), np.sin(u), 0.0 * u], axis=-1) + 0.05 * normal
    area = (2.0 * np.pi / 800) ** 2 * 0.05 * (0.15 + 0.05 * np.cos(v))
    depth = np.maximum(0.12 - np.linalg.norm(point - [0.0, 0.0, 0.065], axis=-1), 0.0)
    expected = KH * np.einsum("ij,ijk->k", depth * area, normal)
    np.testing.assert_allclose(patch.force[2], expected[2], rtol=FORCE_TOLERANCE)


def test_a_scaled_or_mirrored_mesh_presses_as_one_of_its_size():
    """Half the size times two, and a mirrored torus, whose triangles are turned inside out by that."""
    half = torus_mesh(0.075, 0.025).mesh
    scales = [(2.0, 2.0, 2.0), (-2.0, 2.0, 2.0)]
    pairs = [
        PatchPair(PLANE, ShapeSpec(GeoType.MESH, scale, half), None, KH, IDENTITY, at(0, 0, 0.04))
        for scale in scales
    ]
    whole = find_patches([PatchPair(PLANE, TORUS_MESH, None, KH, IDENTITY, at(0, 0, 0.04))])[0]
    for patch in find_patches(pairs):
        np.testing.assert_allclose(patch.force, whole.force, rtol=0.0, atol=2e-3 * whole.force[2])


def test_a_stretched_mesh_presses_by_the_distance_in_the_stored_mesh():
    """A cube stretched to a box: at the face of the least factor the pressure is that of the depth."""
    cube = ShapeSpec(GeoType.MESH, (0.1, 0.15, 0.08), box_mesh(1.0, 1.0, 1.0).mesh)
    (patch,) = find_patches([PatchPair(PLANE, cube, None, KH, IDENTITY, at(0, 0, 0.079))])
    np.testing.assert_allclose(patch.force[2], KH * 1e-3 * 0.06, rtol=FORCE_TOLERANCE)


def test_a_finer_grid_comes_closer_to_the_shape():
    """The sharp edge of a box is rounded off over a cell: twice the cells, two thirds of the error."""
    force = KH * (1e-3 * 0.06 - 1e-6 * 0.5 + 4.0 / 3.0 * 1e-9)
    errors = []
    for resolution in (32, 64, 128):
        mesh = BOX_MESH.mesh.with_signed_distance(max_resolution=resolution)
        shape = ShapeSpec(GeoType.MESH, mesh=mesh)
        (patch,) = find_patches([PatchPair(PLANE, shape, None, KH, IDENTITY, at(0, 0, 0.079))])
        errors.append(abs(patch.force[2] / force - 1.0))
    assert errors[1] < 0.66 * errors[0]
    assert errors[2] < 0.66 * errors[1]
    assert errors[2] < 0.01


def test_what_is_apart_or_wholly_inside():
    """Nothing happens between shapes that are apart; what is inside a rigid mesh is pushed out."""
    apart, missed, contained = find_patches(
        [
            PatchPair(PLANE, SPHERE_MESH, None, KH, IDENTITY, at(0, 0, 0.101)),
            PatchPair(TORUS_MESH, sphere(0.09), KH, KH, IDENTITY, at(0, 0, 0)),
            PatchPair(box_mesh(1.0, 1.0, 1.0), SPHERE_MESH, None, KH, IDENTITY, at(0.1, 0, 0.8)),
        ]
    )
    assert apart.contacts.count == missed.contacts.count == 0
    assert contained.contacts.count == 1
    assert contained.force[2] > 0.0
    np.testing.assert_allclose(contained.force[:2], 0.0, atol=1e-6 * contained.force[2])


def resting_world(meshes: list[tuple[ShapeSpec, float]]) -> pv.ModelBuilder:
    world = pv.ModelBuilder()
    world.add_ground_plane()
    for shape, height in meshes:
        body = world.add_body(xform=(np.array([0.003, 0.0, height]), IDENTITY[3:]))
        shape.add(world, body, is_hydroelastic=True, kh=KH, mu=0.6, tau=0.02, gap=0.0)
    return world


RESTING = {
    "box": [(BOX_MESH, 0.081)],
    "torus": [(TORUS_MESH, 0.05)],
    "stack": [(BOX_MESH, 0.08), (BOX_MESH, 0.24), (BOX, 0.4)],
}


@pytest.fixture(scope="module")
def resting_model() -> pv.Model:
    builder = pv.ModelBuilder()
    for shapes in RESTING.values():
        builder.add_world(resting_world(shapes))
    return builder.finalize("cpu")


def test_meshes_come_to_rest_without_drift(resting_model):
    """Alone and stacked on each other: what they carry is their weight, and they move by less than 1 µm/s."""
    simulation = pv.Simulation(resting_model, dt=0.005)
    simulation.step(400)
    before = simulation.state.body_q.numpy().copy()
    simulation.step(200)
    np.testing.assert_allclose(simulation.state.body_q.numpy(), before, rtol=0.0, atol=1e-6)
    mass = resting_model.body_mass.numpy()
    depth = 0.08 - before[0, 2]
    np.testing.assert_allclose(KH * depth * 0.06, 9.81 * mass[0], rtol=FORCE_TOLERANCE)
    # Between nodes of a grid a round surface is flat: with cells of 6 mm, of a radius of 50 mm, to 0.2 mm.
    depth = 0.05 - before[1, 2]
    low, high = (torus_force(0.15, 0.05, depth + error) for error in (-2e-4, 2e-4))
    assert low < 9.81 * mass[1] < high
    contacts = simulation.contacts
    start, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
    force = contacts.rigid_contact_force.numpy()
    for world in range(2):
        total = force[start[world] : start[world] + count[world]].sum(axis=0)
        np.testing.assert_allclose(
            total, [0.0, 0.0, 9.81 * mass[world]], rtol=0.0, atol=1e-3 * 9.81 * mass[world]
        )


def test_recorded_steps_other_worlds_and_broad_phases_change_no_bit(resting_model):
    """Eager, recorded, alone, and with every broad phase: a world has the same bits."""
    states = []
    for record in (False, True):
        simulation = pv.Simulation(resting_model, dt=0.005, record=record)
        simulation.step(20)
        states.append(simulation.state.body_q.numpy())
    np.testing.assert_array_equal(states[0], states[1])
    alone = pv.ModelBuilder()
    alone.add_world(resting_world(RESTING["stack"]))
    model = alone.finalize("cpu")
    simulation = pv.Simulation(model, dt=0.005)
    simulation.step(20)
    np.testing.assert_array_equal(simulation.state.body_q.numpy(), states[0][2:])
    found = []
    for broad_phase in ("explicit", "nxn", "sap"):
        pipeline = pv.CollisionPipeline(model, broad_phase=broad_phase)
        contacts = pipeline.contacts()
        pipeline.collide(simulation.state, contacts)
        found.append(contacts.rigid_contact_stiffness.numpy()[: contacts.rigid_contact_count.numpy()[0]])
        assert len(found[-1]) == 24
        np.testing.assert_array_equal(found[-1], found[0])


def test_open_meshes_touch_in_points_with_a_warning():
    """A marked sheet, and a marked sphere that can meet one: two warnings; closed meshes give none."""
    builder = pv.ModelBuilder()
    mesh = BOX_MESH.mesh
    sheet = pv.Mesh(mesh.vertices, mesh.indices[:-3], compute_inertia=False)
    soft = pv.ShapeConfig(is_hydroelastic=True)
    builder.add_ground_plane()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.add_shape_mesh(body, mesh=sheet, cfg=soft, label="sheet")
    builder.add_shape_mesh(builder.add_body(), mesh=mesh, cfg=soft, label="block")
    with pytest.warns(PluriverseWarning) as told:
        pv.CollisionPipeline(builder.finalize("cpu"))
    texts = sorted(str(warning.message) for warning in told)
    assert len(texts) == 2
    assert (
        "shape 'block' (index 2) and 0 others are hydroelastic and can meet a triangle mesh that is not"
        in texts[0]
    )
    assert (
        "shape 'sheet' (index 1) and 0 others are hydroelastic triangle meshes that are not closed"
        in texts[1]
    )
