"""Components of vectors and columns of matrices, picked at run time, and the precision of vectors."""

import warp as wp


@wp.func
def largest_component(v: wp.vec3) -> int:
    """Return the index of the component of largest magnitude, the first of equals."""
    index = int(0)
    if wp.abs(v[1]) > wp.abs(v[0]):
        index = 1
    if wp.abs(v[2]) > wp.max(wp.abs(v[0]), wp.abs(v[1])):
        index = 2
    return index


@wp.func
def column(m: wp.mat33, index: int) -> wp.vec3:
    """Return a column of a matrix."""
    return wp.vec3(m[0, index], m[1, index], m[2, index])


@wp.func
def to_single(v: wp.vec3d) -> wp.vec3:
    """Return a vector in single precision."""
    return wp.vec3(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def to_double(v: wp.vec3) -> wp.vec3d:
    """Return a vector in double precision."""
    return wp.vec3d(wp.float64(v[0]), wp.float64(v[1]), wp.float64(v[2]))
