"""Open triangle meshes side by side."""

import itertools

import numpy as np
from scipy.spatial.transform import Rotation

import pluriverse as pv

CORNERS = np.array([[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.0, 0.5, 0.0]])
GAP = 0.001
APART = 2.0 * GAP + 1e-5  # m, the gaps of both shapes add; their poses are in single precision


def distance_of_segments(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> float:
    """Return the distance of the segments ab and cd, from the convex problem of two variables."""
    along = np.stack([b - a, c - d], axis=1)
    candidates = []
    solution = np.linalg.lstsq(along, c - a, rcond=None)[0]
    if (solution >= 0.0).all() and (solution <= 1.0).all():
        candidates.append(solution)
    for fixed, value in itertools.product((0, 1), (0.0, 1.0)):
        free = 1 - fixed
        rest = c - a - value * along[:, fixed]
        best = np.clip(along[:, free] @ rest / (along[:, free] @ along[:, free]), 0.0, 1.0)
        candidates.append(np.array([value, best]) if fixed == 0 else np.array([best, value]))
    return min(float(np.linalg.norm(along @ at - (c - a))) for at in candidates)


def is_pierced(triangle: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether the segment ab goes through a triangle."""
    u, v = triangle[1] - triangle[0], triangle[2] - triangle[0]
    t, x, y = np.linalg.solve(np.stack([a - b, u, v], axis=1), a - triangle[0])
    return 0.0 <= t <= 1.0 and x >= 0.0 and y >= 0.0 and x + y <= 1.0


def distance_of_triangles(first: np.ndarray, second: np.ndarray) -> float:
    """Return the distance of two triangles: of their edges, of a corner to a face, or 0 if one is pierced."""
    sides = [(0, 1), (1, 2), (2, 0)]
    for one, other in ((first, second), (second, first)):
        if any(is_pierced(other, one[i], one[j]) for i, j in sides):
            return 0.0
    found = [
        distance_of_segments(first[i], first[j], second[k], second[m]) for i, j in sides for k, m in sides
    ]
    for one, other in ((first, second), (second, first)):
        normal = np.cross(other[1] - other[0], other[2] - other[0])
        normal /= np.linalg.norm(normal)
        for corner in one:
            height = (corner - other[0]) @ normal
            if is_pierced(other, corner + normal, corner - (1.0 + abs(height)) * normal * np.sign(height)):
                found.append(abs(height))
    return min(found)


def test_sheets_apart_do_not_push():
    """Two triangles touch from the gap on, whatever plane their corners and edges are behind.

    Which side of an open sheet an edge came from is decided by one ray, and need not have gone through.
    """
    rng = np.random.default_rng(0)
    poses = [(Rotation.random(random_state=rng), 0.4 * rng.normal(size=3)) for _ in range(400)]
    mesh = pv.Mesh(CORNERS.astype(np.float32), np.array([0, 1, 2]))
    builder, distances = pv.ModelBuilder(gravity=0.0), []
    for rotation, position in poses:
        world = pv.ModelBuilder(gravity=0.0)
        for pose in ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (*position, *rotation.as_quat())):
            body = world.add_body(xform=pose, mass=1.0, inertia=np.eye(3))
            world.add_shape_mesh(body, mesh=mesh, cfg=pv.ShapeConfig(density=0.0, gap=GAP))
        builder.add_world(world)
        distances.append(distance_of_triangles(CORNERS, rotation.apply(CORNERS) + position))
    model = builder.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(model.state(), contacts)
    has_contacts = contacts.rigid_contact_count.numpy() > 0
    apart = np.array(distances) > APART
    assert apart.sum() > 150
    assert not has_contacts[apart].any(), np.array(distances)[apart & has_contacts]
    # Of those that cut each other, most are pushed.
    assert has_contacts[np.array(distances) == 0.0].mean() > 0.7
