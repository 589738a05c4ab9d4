"""Trace: the closest shape of a world along a ray.

Of two shapes at the same distance the one with the lower index is hit, so the result does not depend on the
tree.
"""

import warp as wp

from pluriverse.render.raycast.primitives import MISS, primitive_normal, ray_primitive
from pluriverse.render.raycast.scene import PlacedShape, RayScene
from pluriverse.render.raycast.tree import surface_of
from pluriverse.types import GeoType

# Least magnitude of a direction's components, against division by zero.
TINY = wp.constant(1.0e-18)
NO_MESH = wp.constant(wp.uint64(0))
# Distance beyond the best hit up to which a mesh is searched, relative to the hit's distance.
REACH = wp.constant(1.000001)


@wp.struct
class RayHit:
    """The end point of a ray."""

    distance: float
    """Along the ray [m], `MISS` for nowhere."""
    shape: int
    """Shape, -1 for none."""
    face: int
    """Triangle of a mesh, -1 for others."""
    u: float
    """Barycentric coordinate of its first corner."""
    v: float
    """Barycentric coordinate of its second corner."""


@wp.struct
class Excluded:
    """Shapes that a ray passes through: those of one body, or of all bodies of one tree."""

    body: int
    """Body that carries them, -1 for none."""
    root: int
    """Root of the tree of bodies that carries them, -1 for none."""


@wp.func
def no_hit(max_distance: float) -> RayHit:
    """Return a miss within `max_distance` [m]."""
    hit = RayHit()
    hit.distance = max_distance
    hit.shape = -1
    hit.face = -1
    return hit


@wp.func
def safe_inverse(value: float) -> float:
    """Return 1 / value, and a large number for 0."""
    result = 1.0 / TINY
    if wp.abs(value) > TINY:
        result = 1.0 / value
    return result


@wp.func
def enter_box(
    lower: wp.vec3, upper: wp.vec3, origin: wp.vec3, inverse: wp.vec3, max_distance: float
) -> float:
    """Return where a ray enters a box, 0 from inside, `MISS` if it does not within `max_distance`."""
    x0 = (lower[0] - origin[0]) * inverse[0]
    x1 = (upper[0] - origin[0]) * inverse[0]
    y0 = (lower[1] - origin[1]) * inverse[1]
    y1 = (upper[1] - origin[1]) * inverse[1]
    z0 = (lower[2] - origin[2]) * inverse[2]
    z1 = (upper[2] - origin[2]) * inverse[2]
    enter = wp.max(wp.max(wp.min(x0, x1), wp.min(y0, y1)), wp.max(wp.min(z0, z1), 0.0))
    leave = wp.min(wp.min(wp.max(x0, x1), wp.max(y0, y1)), wp.max(z0, z1))
    # The factor covers the rounding of the four operations.
    result = float(MISS)
    if enter <= 1.000001 * leave and enter <= max_distance and lower[0] <= upper[0]:
        result = enter
    return result


@wp.func
def hit_shape(
    placed: wp.array[PlacedShape], shape: int, origin: wp.vec3, direction: wp.vec3, best: RayHit
) -> RayHit:
    """Return the hit of a shape if it is closer than the best one so far, else the latter."""
    result = best
    record = placed[shape]
    start = (origin - record.position) * record.rotation  # by the transposed matrix
    way = direction * record.rotation
    kind = record.kind
    if kind == GeoType.MESH or kind == GeoType.CONVEX_MESH or kind == GeoType.HFIELD:
        if record.mesh != NO_MESH:
            # In the unscaled frame of the mesh the direction has another length, which preserves distances.
            # The search goes slightly beyond the best hit, so that ties are recognized.
            query = wp.mesh_query_ray(
                record.mesh,
                wp.cw_div(start, record.size),
                wp.cw_div(way, record.size),
                REACH * best.distance,
            )
            if query.result:
                if query.t < best.distance or (query.t == best.distance and shape < best.shape):
                    result.distance = query.t
                    result.shape = shape
                    result.face = query.face
                    result.u = query.u
                    result.v = query.v
    else:
        distance = ray_primitive(kind, start, way, record.size)
        if distance < best.distance or (distance == best.distance and shape < best.shape):
            result.distance = distance
            result.shape = shape
            result.face = -1
    return result


@wp.func
def is_excluded(shape_body: wp.array[int], shape: int, excluded: Excluded, body_root: wp.array[int]) -> bool:
    """Return whether a ray passes through a shape."""
    body = shape_body[shape]
    result = bool(False)
    if body >= 0:
        if body == excluded.body:
            result = True
        elif excluded.root >= 0:
            result = body_root[body] == excluded.root
    return result


@wp.func
def trace_group(
    scene: RayScene,
    group: int,
    origin: wp.vec3,
    direction: wp.vec3,
    excluded: Excluded,
    body_root: wp.array[int],
    nearest: RayHit,
    any_hit: int,
) -> RayHit:
    """Return the closest hit of a group, or the one found before; with `any_hit` 1, some hit."""
    best = nearest
    for plane in range(scene.plane_start[group], scene.plane_start[group + 1]):
        shape = scene.plane_shape[plane]
        if scene.shape_visible[shape] == 1:
            if not is_excluded(scene.shape_body, shape, excluded, body_root):
                best = hit_shape(scene.placed, shape, origin, direction, best)
    base = scene.node_start[group]
    leaves = (scene.node_start[group + 1] - base) / 2
    inverse = wp.vec3(safe_inverse(direction[0]), safe_inverse(direction[1]), safe_inverse(direction[2]))
    # Stackless traversal: a bit per level marks whether the other child of that level is still to be visited.
    node = int(1)
    level = int(0)
    pending = int(0)
    enter = enter_box(scene.node_lower[base + 1], scene.node_upper[base + 1], origin, inverse, best.distance)
    walking = bool(enter < MISS)
    if any_hit == 1 and best.shape >= 0:
        walking = False
    while walking:
        deeper = bool(False)
        if node >= leaves:
            entry = scene.entry_order[scene.entry_start[group] + node - leaves]
            shape = scene.entry_shape[entry]
            if not is_excluded(scene.shape_body, shape, excluded, body_root):
                best = hit_shape(scene.placed, shape, origin, direction, best)
            if any_hit == 1 and best.shape >= 0:
                walking = False
        else:
            left = base + 2 * node
            enter_left = enter_box(
                scene.node_lower[left], scene.node_upper[left], origin, inverse, best.distance
            )
            enter_right = enter_box(
                scene.node_lower[left + 1], scene.node_upper[left + 1], origin, inverse, best.distance
            )
            if enter_left < MISS or enter_right < MISS:
                deeper = True
                level += 1
                if enter_left < MISS and enter_right < MISS:
                    pending = pending | (1 << level)
                else:
                    pending = pending & ~(1 << level)
                node = 2 * node + wp.where(enter_right < enter_left, 1, 0)
        if walking and not deeper:
            searching = bool(True)
            while searching:
                if level == 0:
                    searching = False
                    walking = False
                elif (pending & (1 << level)) != 0:
                    pending = pending & ~(1 << level)
                    node = node ^ 1
                    enter = enter_box(
                        scene.node_lower[base + node],
                        scene.node_upper[base + node],
                        origin,
                        inverse,
                        best.distance,
                    )
                    if enter < MISS:
                        searching = False
                else:
                    node = node >> 1
                    level -= 1
    return best


@wp.func
def is_occupied(entry_start: wp.array[int], plane_start: wp.array[int], group: int) -> bool:
    """Return whether a group has shapes, which saves the call for empty groups."""
    return entry_start[group + 1] > entry_start[group] or plane_start[group + 1] > plane_start[group]


@wp.func
def trace_world(
    scene: RayScene,
    world: int,
    origin: wp.vec3,
    direction: wp.vec3,
    max_distance: float,
    excluded: Excluded,
    body_root: wp.array[int],
) -> RayHit:
    """Return the closest hit of a ray in a world, within `max_distance` [m]."""
    hit = no_hit(max_distance)
    hit = trace_group(scene, world, origin, direction, excluded, body_root, hit, 0)
    shared = scene.node_start.shape[0] - 2
    if is_occupied(scene.entry_start, scene.plane_start, shared):
        hit = trace_group(scene, shared, origin, direction, excluded, body_root, hit, 0)
    return hit


@wp.func
def hit_normal(scene: RayScene, hit: RayHit, origin: wp.vec3, direction: wp.vec3) -> wp.vec3:
    """Return the unit normal where a ray hits, in world axes, facing the ray's origin."""
    shape = hit.shape
    rotation = scene.shape_rotation[shape]
    size = scene.shape_scale[shape]
    normal = wp.vec3(0.0, 0.0, 1.0)
    if hit.face >= 0:
        mesh = scene.surface_id[surface_of(scene, shape)]
        a = wp.cw_mul(wp.mesh_eval_position(mesh, hit.face, 1.0, 0.0), size)
        b = wp.cw_mul(wp.mesh_eval_position(mesh, hit.face, 0.0, 1.0), size)
        c = wp.cw_mul(wp.mesh_eval_position(mesh, hit.face, 0.0, 0.0), size)
        normal = wp.normalize(wp.cross(b - a, c - a))
    else:
        point = (origin + hit.distance * direction - scene.shape_position[shape]) * rotation
        normal = primitive_normal(scene.shape_type[shape], point, size)
    normal = rotation * normal
    if wp.dot(normal, direction) > 0.0:
        normal = -normal
    return normal
