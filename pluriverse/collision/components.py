"""Components of vectors and columns of matrices, picked at run time."""

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
