"""Rays against primitives, exactly: distance along the ray, and the normal where it hits.

All functions take origin and unit direction in the frame of the shape and return the distance [m] to the
first point of the surface that is not behind the origin, or `MISS`. From inside, that is the exit point. Each
first moves the origin to the point of the ray nearest the centre of the shape: the quadratic equations then
have small coefficients and lose no digits to distance.
"""

import warp as wp

from pluriverse.types import GeoType

MISS = wp.constant(1.0e30)
"""Distance of a ray that hits nothing [m]; larger than any scene, and its square is still finite."""


# Component of a unit direction below which a ray counts as parallel to a plane or to the side of a cylinder.
PARALLEL = wp.constant(1.0e-9)


@wp.func
def nearer(best: float, distance: float) -> float:
    """Return the smaller of the distances that are not behind the origin."""
    return wp.where(distance >= 0.0 and distance < best, distance, best)


@wp.func
def ray_plane(origin: wp.vec3, direction: wp.vec3, size: wp.vec3) -> float:
    """Plane z = 0, seen from above; `size` is its extent along x and y, 0 for no end."""
    result = float(MISS)
    if origin[2] >= 0.0 and direction[2] < -PARALLEL:
        distance = -origin[2] / direction[2]
        x = wp.abs(origin[0] + distance * direction[0])
        y = wp.abs(origin[1] + distance * direction[1])
        if (size[0] <= 0.0 or x <= 0.5 * size[0]) and (size[1] <= 0.0 or y <= 0.5 * size[1]):
            result = distance
    return result


@wp.func
def ray_sphere(origin: wp.vec3, direction: wp.vec3, radius: float) -> float:
    """Sphere about the origin of the frame."""
    middle = -wp.dot(origin, direction)
    nearest = origin + middle * direction
    square = radius * radius - wp.length_sq(nearest)
    result = float(MISS)
    if square >= 0.0:
        half = wp.sqrt(square)
        result = nearer(nearer(MISS, middle - half), middle + half)
    return result


@wp.func
def ray_ellipsoid(origin: wp.vec3, direction: wp.vec3, size: wp.vec3) -> float:
    """Ellipsoid with semi-axes `size`: a unit sphere in coordinates scaled by them."""
    start = wp.cw_div(origin, size)
    way = wp.cw_div(direction, size)
    speed = wp.length(way)
    result = ray_sphere(start, way / speed, 1.0)
    if result < MISS:  # a miss has no length to scale
        result = result / speed
    return result


@wp.func
def ray_box(origin: wp.vec3, direction: wp.vec3, size: wp.vec3) -> float:
    """Box of half extents `size`: the overlap of three slabs."""
    enter = float(-MISS)
    leave = float(MISS)
    for axis in range(3):
        if wp.abs(direction[axis]) > PARALLEL:
            first = (-size[axis] - origin[axis]) / direction[axis]
            second = (size[axis] - origin[axis]) / direction[axis]
            enter = wp.max(enter, wp.min(first, second))
            leave = wp.min(leave, wp.max(first, second))
        elif wp.abs(origin[axis]) > size[axis]:
            leave = -MISS
    result = float(MISS)
    if enter <= leave:
        result = nearer(nearer(MISS, enter), leave)
    return result


@wp.func
def ray_capsule(origin: wp.vec3, direction: wp.vec3, radius: float, half: float) -> float:
    """Capsule along z with `half` the length of its cylinder."""
    middle = -wp.dot(origin, direction)
    start = origin + middle * direction
    best = float(MISS)
    across = direction[0] * direction[0] + direction[1] * direction[1]
    if across > PARALLEL:
        shift = -(start[0] * direction[0] + start[1] * direction[1]) / across
        x = start[0] + shift * direction[0]
        y = start[1] + shift * direction[1]
        square = (radius * radius - x * x - y * y) / across
        if square >= 0.0:
            root = wp.sqrt(square)
            for side in range(2):
                local = shift + wp.where(side == 0, -root, root)
                if wp.abs(start[2] + local * direction[2]) <= half:
                    best = nearer(best, middle + local)
    for cap in range(2):
        sign = wp.where(cap == 0, -1.0, 1.0)
        centre = wp.vec3(0.0, 0.0, sign * half)
        shift = wp.dot(centre - start, direction)
        square = radius * radius - wp.length_sq(start + shift * direction - centre)
        if square >= 0.0:
            root = wp.sqrt(square)
            for side in range(2):
                local = shift + wp.where(side == 0, -root, root)
                # Only the half of the sphere beyond the cylinder belongs to the surface.
                if sign * (start[2] + local * direction[2]) >= half:
                    best = nearer(best, middle + local)
    return best


@wp.func
def ray_cylinder(origin: wp.vec3, direction: wp.vec3, radius: float, half: float) -> float:
    """Cylinder along z of half height `half`."""
    middle = -wp.dot(origin, direction)
    start = origin + middle * direction
    best = float(MISS)
    across = direction[0] * direction[0] + direction[1] * direction[1]
    if across > PARALLEL * PARALLEL:
        shift = -(start[0] * direction[0] + start[1] * direction[1]) / across
        x = start[0] + shift * direction[0]
        y = start[1] + shift * direction[1]
        square = (radius * radius - x * x - y * y) / across
        if square >= 0.0:
            root = wp.sqrt(square)
            for side in range(2):
                local = shift + wp.where(side == 0, -root, root)
                if wp.abs(start[2] + local * direction[2]) <= half:
                    best = nearer(best, middle + local)
    if wp.abs(direction[2]) > PARALLEL:
        for cap in range(2):
            local = (wp.where(cap == 0, -half, half) - start[2]) / direction[2]
            x = start[0] + local * direction[0]
            y = start[1] + local * direction[1]
            if x * x + y * y <= radius * radius:
                best = nearer(best, middle + local)
    return best


@wp.func
def ray_cone(origin: wp.vec3, direction: wp.vec3, radius: float, half: float) -> float:
    """Cone along z with the apex at z = `half` and the base of `radius` at z = -`half`."""
    middle = -wp.dot(origin, direction)
    start = origin + middle * direction
    best = float(MISS)
    slope = radius / (2.0 * half)
    # x^2 + y^2 = slope^2 (half - z)^2 along start + t direction: a t^2 + 2 b t + c = 0
    below = half - start[2]
    a = (
        direction[0] * direction[0]
        + direction[1] * direction[1]
        - slope * slope * direction[2] * direction[2]
    )
    b = start[0] * direction[0] + start[1] * direction[1] + slope * slope * below * direction[2]
    c = start[0] * start[0] + start[1] * start[1] - slope * slope * below * below
    square = b * b - a * c
    if square >= 0.0:
        # The larger root comes from a sum without cancellation, the other from the product of both.
        sum = -b - wp.where(b >= 0.0, 1.0, -1.0) * wp.sqrt(square)
        for side in range(2):
            local = float(MISS)
            if side == 0:
                if wp.abs(a) > PARALLEL:
                    local = sum / a
            elif sum != 0.0:
                local = c / sum
            z = start[2] + local * direction[2]
            if wp.abs(local) < MISS and z >= -half and z <= half:
                best = nearer(best, middle + local)
    if wp.abs(direction[2]) > PARALLEL:
        local = (-half - start[2]) / direction[2]
        x = start[0] + local * direction[0]
        y = start[1] + local * direction[1]
        if x * x + y * y <= radius * radius:
            best = nearer(best, middle + local)
    return best


@wp.func
def ray_primitive(shape_type: int, origin: wp.vec3, direction: wp.vec3, size: wp.vec3) -> float:
    """Any primitive; `size` as in `Model.shape_scale`."""
    result = float(MISS)
    if shape_type == GeoType.SPHERE:
        result = ray_sphere(origin, direction, size[0])
    elif shape_type == GeoType.BOX:
        result = ray_box(origin, direction, size)
    elif shape_type == GeoType.CAPSULE:
        result = ray_capsule(origin, direction, size[0], size[1])
    elif shape_type == GeoType.CYLINDER:
        result = ray_cylinder(origin, direction, size[0], size[1])
    elif shape_type == GeoType.PLANE:
        result = ray_plane(origin, direction, size)
    elif shape_type == GeoType.ELLIPSOID:
        result = ray_ellipsoid(origin, direction, size)
    elif shape_type == GeoType.CONE:
        result = ray_cone(origin, direction, size[0], size[1])
    return result


@wp.func
def primitive_normal(shape_type: int, point: wp.vec3, size: wp.vec3) -> wp.vec3:
    """Return the outward unit normal at a point of the surface of a primitive."""
    normal = wp.vec3(0.0, 0.0, 1.0)
    if shape_type == GeoType.SPHERE:
        normal = wp.normalize(point)
    elif shape_type == GeoType.ELLIPSOID:
        normal = wp.normalize(wp.cw_div(point, wp.cw_mul(size, size)))
    elif shape_type == GeoType.BOX:
        share = wp.vec3(wp.abs(point[0]) / size[0], wp.abs(point[1]) / size[1], wp.abs(point[2]) / size[2])
        if share[0] >= share[1] and share[0] >= share[2]:
            normal = wp.vec3(wp.sign(point[0]), 0.0, 0.0)
        elif share[1] >= share[2]:
            normal = wp.vec3(0.0, wp.sign(point[1]), 0.0)
        else:
            normal = wp.vec3(0.0, 0.0, wp.sign(point[2]))
    elif shape_type == GeoType.CAPSULE:
        normal = wp.normalize(wp.vec3(point[0], point[1], point[2] - wp.clamp(point[2], -size[1], size[1])))
    elif shape_type == GeoType.CYLINDER:
        radius = wp.sqrt(point[0] * point[0] + point[1] * point[1])
        # The nearer surface: the side or an end.
        if size[1] - wp.abs(point[2]) < wp.abs(size[0] - radius):
            normal = wp.vec3(0.0, 0.0, wp.sign(point[2]))
        else:
            normal = wp.normalize(wp.vec3(point[0], point[1], 0.0))
    elif shape_type == GeoType.CONE:
        radius = wp.sqrt(point[0] * point[0] + point[1] * point[1])
        slope = size[0] / (2.0 * size[1])
        if point[2] + size[1] < wp.abs(slope * (size[1] - point[2]) - radius):
            normal = wp.vec3(0.0, 0.0, -1.0)
        elif radius > 0.0:
            normal = wp.normalize(wp.vec3(point[0] / radius, point[1] / radius, slope))
    return normal
