"""Convex polygons in local arrays: clipping against half spaces."""

import warp as wp

# Corners of a polygon while it is clipped: eight, plus one for each of eight clips.
POLYGON_CAPACITY = wp.constant(17)


@wp.func
def clip_polygon(
    source: wp.array[wp.vec3],
    count: int,
    normal: wp.vec3,
    level: float,
    tolerance: float,
    target: wp.array[wp.vec3],
) -> int:
    """Write to `target` the part of a convex polygon with normal . x <= level; return its corner count.

    A corner that is off the boundary by at most `tolerance` counts as on it, so that shapes in line with each
    other are not cut into slivers by rounding. A polygon of two corners is a segment, whose ends may come out
    twice.
    """
    kept = int(0)
    if count > 0:
        previous = source[count - 1]
        previous_depth = level - wp.dot(normal, previous)
        for index in range(count):
            current = source[index]
            depth = level - wp.dot(normal, current)
            is_crossing = (depth > tolerance and previous_depth < -tolerance) or (
                depth < -tolerance and previous_depth > tolerance
            )
            if is_crossing and kept < POLYGON_CAPACITY:
                target[kept] = current + (depth / (depth - previous_depth)) * (previous - current)
                kept += 1
            if depth >= -tolerance and kept < POLYGON_CAPACITY:
                target[kept] = current
                kept += 1
            previous = current
            previous_depth = depth
    return kept


@wp.func
def clip_to_face(
    points: wp.array[wp.vec3],
    start: int,
    face_count: int,
    normal: wp.vec3,
    tolerance: float,
    polygon: wp.array[wp.vec3],
    count: int,
    scratch: wp.array[wp.vec3],
) -> int:
    """Clip `polygon` to the prism along `normal` over a face; return its corner count."""
    middle = wp.vec3(0.0, 0.0, 0.0)
    for index in range(face_count):
        middle += points[start + index]
    middle = middle / float(face_count)
    for index in range(face_count):
        corner = points[start + index]
        edge = points[start + (index + 1) % face_count] - corner
        outward = wp.normalize(wp.cross(edge, normal))
        if wp.dot(outward, middle - corner) > 0.0:
            outward = -outward
        count = clip_polygon(polygon, count, outward, wp.dot(outward, corner), tolerance, scratch)
        for copied in range(count):
            polygon[copied] = scratch[copied]
    return count


@wp.func
def drop_corner(polygon: wp.array[wp.vec3], count: int) -> int:
    """Take away the corner that matters least for the area of a polygon; return its new corner count."""
    least = float(1.0e30)
    drop = int(0)
    for index in range(count):
        corner = polygon[index]
        before = polygon[(index + count - 1) % count]
        after = polygon[(index + 1) % count]
        area = wp.length_sq(wp.cross(corner - before, after - corner))
        if area < least:
            least = area
            drop = index
    for index in range(drop, count - 1):
        polygon[index] = polygon[index + 1]
    return count - 1
