"""Distance of spheres and capsules from their places in the world, before a pair is made of them."""

import warp as wp

from pluriverse.collision.segment import closest_segment_points
from pluriverse.collision.shape_pair import BOUND_ROUNDING, middles_apart
from pluriverse.collision.shape_state import ShapeModel, ShapePlace
from pluriverse.types import GeoType


@wp.func
def is_round(shape_type: int) -> bool:
    """Return whether a shape is a sphere or capsule."""
    result = shape_type == GeoType.SPHERE
    return result or shape_type == GeoType.CAPSULE


@wp.func
def round_axis(place: wp.ref[ShapePlace], shape_type: int) -> wp.vec3:
    """Return the vector from the middle of a sphere or capsule to the end of its axis [m], world axes."""
    axis = wp.vec3()
    if shape_type == GeoType.CAPSULE:
        rotation = place.rotation
        axis = place.size[1] * wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
    return axis


@wp.func
def round_distance(
    shapes: wp.ref[ShapeModel],
    shape0: int,
    shape1: int,
    place0: wp.ref[ShapePlace],
    place1: wp.ref[ShapePlace],
) -> float:
    """Return the distance of two spheres or capsules [m], negative if they overlap."""
    half0 = round_axis(place0, shapes.shape_type[shape0])
    half1 = round_axis(place1, shapes.shape_type[shape1])
    apart = middles_apart(place0, place1)
    parameters = closest_segment_points(half0, apart, half1)
    offset = apart + (parameters[1] * half1 - parameters[0] * half0)
    return wp.length(offset) - place0.size[0] - place1.size[0]


@wp.func
def round_distance_bound(
    shapes: wp.ref[ShapeModel],
    shape0: int,
    shape1: int,
    place0: wp.ref[ShapePlace],
    place1: wp.ref[ShapePlace],
) -> float:
    """Return a lower bound of the same in spite of rounding; axes within 1e-3 rad count as parallel."""
    distance = round_distance(shapes, shape0, shape1, place0, place1)
    return distance - BOUND_ROUNDING * (place0.extent + place1.extent)
