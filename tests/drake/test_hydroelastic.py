"""Pressure patches against those of Drake, whose pressure fields are the same for these shapes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pluriverse.types import GeoType
from tests.collision.hydroelastic.patches import IDENTITY, PatchPair, find_patches
from tests.collision.pairs import ShapeSpec, box, capsule, cylinder, ellipsoid, plane, sphere
from tests.collision.surface.solid_meshes import box_mesh, capsule_mesh, sphere_mesh, torus_mesh

geometry = pytest.importorskip("pydrake.geometry", reason="needs Drake (pip install pluriverse[test])")

MODULUS = 1.0e6
"""Hydroelastic modulus E of Drake [Pa]: the pressure in the innermost part of a shape."""
RESOLUTION = 0.005
"""Edge length of Drake's meshes [m], a twentieth of the sizes here. On a round shape these meshes lie inside
of the surface by up to the height of an arc of that chord, 0.005**2 / (8 * 0.1) = 3e-5 m: of a depth of 2 mm
that is 1.5 %, and the force of a sphere grows with the square of depth."""
FORCE_TOLERANCE = 0.025
# Pressure centres agree to a few per cent of the size of a patch, a few centimetres.
CENTRE_TOLERANCE = 1.5e-3

SPHERE = sphere(0.1)
BOX = box(0.1, 0.15, 0.08)
CAPSULE = capsule(0.06, 0.12)
CYLINDER = cylinder(0.08, 0.1)
ELLIPSOID = ellipsoid(0.1, 0.12, 0.07)
PLANE = plane()


def inner_depth(shape: ShapeSpec) -> float:
    """Return the greatest depth in a shape [m], over which Drake's pressure rises to the modulus."""
    if shape.type in (GeoType.SPHERE, GeoType.CAPSULE):
        return shape.scale[0]
    if shape.type == GeoType.CYLINDER:
        return min(shape.scale[:2])
    return min(shape.scale)


def pose(
    position: tuple[float, float, float], euler: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> np.ndarray:
    return np.array([*position, *Rotation.from_euler("xyz", euler, degrees=True).as_quat()])


def pair(
    first: ShapeSpec,
    second: ShapeSpec,
    pose1: np.ndarray,
    *,
    pose0: np.ndarray = IDENTITY,
    rigid: bool = False,
) -> PatchPair:
    """Return a pair with Drake's modulus; a plane and what is asked for is rigid."""
    kh0 = None if first.type == GeoType.PLANE or rigid else MODULUS / inner_depth(first)
    return PatchPair(first, second, kh0, MODULUS / inner_depth(second), pose0, pose1)


LYING = (90.0, 0.0, 0.0)
TILTED = (20.0, 15.0, 30.0)
EDGE = (0.08 + 0.15) / np.sqrt(2.0)
PAIRS = {
    **{
        f"sphere on plane, {d * 1e3:g} mm": pair(PLANE, SPHERE, pose((0, 0, 0.1 - d)))
        for d in (4e-3, 8e-3, 2e-2)
    },
    **{f"box on plane, {d * 1e3:g} mm": pair(PLANE, BOX, pose((0, 0, 0.08 - d))) for d in (5e-4, 3e-3, 1e-2)},
    **{
        f"lying capsule on plane, {d * 1e3:g} mm": pair(PLANE, CAPSULE, pose((0, 0, 0.06 - d), LYING))
        for d in (4e-3, 1e-2)
    },
    "standing capsule on plane": pair(PLANE, CAPSULE, pose((0, 0, 0.176))),
    "tilted capsule on plane": pair(PLANE, CAPSULE, pose((0, 0, 0.165), TILTED)),
    "edge of a box on plane": pair(PLANE, BOX, pose((0, 0, EDGE - 0.01), (45.0, 0.0, 0.0))),
    "tilted box on plane": pair(PLANE, BOX, pose((0, 0, 0.13), TILTED)),
    "standing cylinder on plane": pair(PLANE, CYLINDER, pose((0, 0, 0.098))),
    "tilted cylinder on plane": pair(PLANE, CYLINDER, pose((0, 0, 0.11), TILTED)),
    "ellipsoid on plane": pair(PLANE, ELLIPSOID, pose((0, 0, 0.066))),
    "sphere on sphere": pair(SPHERE, SPHERE, pose((0.03, 0.02, 0.18))),
    "sphere on rigid sphere": pair(SPHERE, SPHERE, pose((0.03, 0.02, 0.18)), rigid=True),
    "sphere on box": pair(BOX, SPHERE, pose((0.03, 0.02, 0.175))),
    "sphere on rigid box": pair(BOX, SPHERE, pose((0.03, 0.02, 0.175)), rigid=True),
    "sphere on the edge of a box": pair(BOX, SPHERE, pose((0.12, 0.02, 0.16))),
    "box on box": pair(BOX, BOX, pose((0.05, 0.04, 0.155), (0.0, 0.0, 25.0))),
    "crossing edges of boxes": pair(
        BOX, BOX, pose((0.02, 0.01, 0.275), (45.0, 0.0, 0.0)), pose0=pose((0, 0, 0), (0.0, 45.0, 0.0))
    ),
    "crossing capsules": pair(
        CAPSULE, CAPSULE, pose((0.0, 0.01, 0.112), (0.0, 70.0, 0.0)), pose0=pose((0, 0, 0), LYING)
    ),
    "capsule on box": pair(BOX, CAPSULE, pose((0.02, 0.03, 0.136), LYING)),
    "capsule on sphere": pair(SPHERE, CAPSULE, pose((0.02, 0.03, 0.15), LYING)),
    "ellipsoid and sphere": pair(ELLIPSOID, SPHERE, pose((0.03, 0.04, 0.155))),
}


@pytest.fixture(scope="module")
def patches() -> dict:
    return dict(zip(PAIRS, find_patches(list(PAIRS.values())), strict=True))


@pytest.mark.parametrize("name", PAIRS)
def test_the_force_and_pressure_centre_are_those_of_drake(name, patches):
    """The force differs by less than 2.5 %, for which Drake's meshes account, and acts at one place."""
    force, centre = drake_patch(PAIRS[name])
    size = np.linalg.norm(force)
    assert size > 1.0
    np.testing.assert_allclose(patches[name].force, force, rtol=0.0, atol=FORCE_TOLERANCE * size)
    np.testing.assert_allclose(patches[name].centre, centre, rtol=0.0, atol=CENTRE_TOLERANCE)


MESHES = {
    GeoType.PLANE: PLANE,
    GeoType.SPHERE: sphere_mesh(0.1),
    GeoType.BOX: box_mesh(0.1, 0.15, 0.08),
    # The default of 64 cells along its length is coarse for its radius: the force would be 6 % less.
    GeoType.CAPSULE: ShapeSpec(
        GeoType.MESH, mesh=capsule_mesh(0.06, 0.12).mesh.with_signed_distance(max_resolution=128)
    ),
}
MESH_FORCE_TOLERANCE = 0.05
"""Of what meshes add: grids of distances with cells of 3 to 6 mm."""
MESH_PAIRS = [
    "sphere on plane, 8 mm",
    "sphere on plane, 20 mm",
    "box on plane, 3 mm",
    "lying capsule on plane, 10 mm",
    "tilted capsule on plane",
    "tilted box on plane",
    "edge of a box on plane",
    "sphere on sphere",
    "sphere on rigid sphere",
    "sphere on box",
    "sphere on rigid box",
    "sphere on the edge of a box",
    "box on box",
    "crossing capsules",
    "capsule on box",
]


@pytest.fixture(scope="module")
def mesh_patches() -> dict:
    pairs = [
        replace(
            PAIRS[name],
            first=MESHES[PAIRS[name].first.type],
            second=MESHES[PAIRS[name].second.type],
        )
        for name in MESH_PAIRS
    ]
    return dict(zip(MESH_PAIRS, find_patches(pairs), strict=True))


@pytest.mark.parametrize("name", MESH_PAIRS)
def test_closed_meshes_press_as_the_compliant_volumes_of_drake(name, mesh_patches):
    """Both shapes as triangle meshes here, as volumes of tetrahedra in Drake."""
    force, centre = drake_patch(PAIRS[name])
    size = np.linalg.norm(force)
    np.testing.assert_allclose(mesh_patches[name].force, force, rtol=0.0, atol=MESH_FORCE_TOLERANCE * size)
    np.testing.assert_allclose(mesh_patches[name].centre, centre, rtol=0.0, atol=2.0 * CENTRE_TOLERANCE)


RIGID_MESH_PAIRS = {
    "sphere in the hole of a torus": pair(
        torus_mesh(0.15, 0.05), sphere(0.12), pose((0.01, 0.0, 0.06)), rigid=True
    ),
    "sphere on the ring of a torus": pair(
        torus_mesh(0.15, 0.05), SPHERE, pose((0.15, 0.0, 0.138)), rigid=True
    ),
    "capsule across a torus": pair(
        torus_mesh(0.15, 0.05), CAPSULE, pose((0.0, 0.12, 0.1), (0.0, 90.0, 0.0)), rigid=True
    ),
}


@pytest.mark.parametrize("name", RIGID_MESH_PAIRS)
def test_a_rigid_mesh_presses_on_compliant_shapes_as_in_drake(name):
    """The same triangles in both, of a shape that is not convex."""
    case = RIGID_MESH_PAIRS[name]
    force, centre = drake_patch(case)
    size = np.linalg.norm(force)
    assert size > 1.0
    (patch,) = find_patches([case])
    np.testing.assert_allclose(patch.force, force, rtol=0.0, atol=MESH_FORCE_TOLERANCE * size)
    np.testing.assert_allclose(patch.centre, centre, rtol=0.0, atol=2.0 * CENTRE_TOLERANCE)


def drake_patch(pair: PatchPair) -> tuple[np.ndarray, np.ndarray]:
    """Return force on the second shape [N] and pressure centre [m] of Drake's patch."""
    scene = geometry.SceneGraph()
    source = scene.RegisterSource("pair")
    frames, shapes, poses = [], [], geometry.FramePoseVector()
    for name, shape, kh, at in (
        ("first", pair.first, pair.kh0, pair.pose0),
        ("second", pair.second, pair.kh1, pair.pose1),
    ):
        frames.append(scene.RegisterFrame(source, geometry.GeometryFrame(name)))
        instance = geometry.GeometryInstance(drake_pose(IDENTITY), drake_shape(shape), name)
        shapes.append(scene.RegisterGeometry(source, frames[-1], instance))
        properties = geometry.ProximityProperties()
        if kh is None:
            geometry.AddRigidHydroelasticProperties(RESOLUTION, properties)
        else:
            geometry.AddCompliantHydroelasticProperties(RESOLUTION, kh * inner_depth(shape), properties)
        scene.AssignRole(source, shapes[-1], properties)
        poses.set_value(frames[-1], drake_pose(at))
    context = scene.CreateDefaultContext()
    scene.get_source_pose_port(source).FixValue(context, poses)
    query = scene.get_query_output_port().Eval(context)
    force, moment, total = np.zeros(3), np.zeros(3), 0.0
    for surface in query.ComputeContactSurfaces(geometry.HydroelasticContactRepresentation.kTriangle):
        mesh, pressure = surface.tri_mesh_W(), surface.tri_e_MN()
        vertices = np.array(mesh.vertices())
        # Normals point out of N into M.
        sign = -1.0 if surface.id_N() == shapes[1] else 1.0
        for row, triangle in enumerate(mesh.triangles()):
            corner = [triangle.vertex(k) for k in range(3)]
            p = np.array([pressure.EvaluateAtVertex(k) for k in corner])
            area = mesh.area(row)
            force += sign * p.mean() * area * mesh.face_normal(row)
            # The integral of two linear functions over a triangle.
            moment += area / 12.0 * (p @ vertices[corner] + p.sum() * vertices[corner].sum(axis=0))
            total += p.mean() * area
    return force, moment / total


def drake_pose(at: np.ndarray):
    from pydrake.common.eigen_geometry import Quaternion
    from pydrake.math import RigidTransform

    return RigidTransform(Quaternion(np.roll(at[3:] / np.linalg.norm(at[3:]), 1)), at[:3])


def drake_shape(shape: ShapeSpec):
    size = shape.scale
    return {
        GeoType.PLANE: lambda: geometry.HalfSpace(),
        GeoType.SPHERE: lambda: geometry.Sphere(size[0]),
        GeoType.BOX: lambda: geometry.Box(*(2.0 * np.array(size))),
        GeoType.CAPSULE: lambda: geometry.Capsule(size[0], 2.0 * size[1]),
        GeoType.CYLINDER: lambda: geometry.Cylinder(size[0], 2.0 * size[1]),
        GeoType.ELLIPSOID: lambda: geometry.Ellipsoid(*size),
        GeoType.MESH: lambda: drake_mesh(shape),
    }[shape.type]()


def drake_mesh(shape: ShapeSpec):
    from pydrake.common import MemoryFile

    lines = [f"v {x} {y} {z}" for x, y, z in shape.mesh.vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (shape.mesh.triangles + 1).tolist()]
    contents = MemoryFile("\n".join(lines).encode(), ".obj", "mesh")
    return geometry.Mesh(geometry.InMemoryMesh(mesh_file=contents), 1.0)
