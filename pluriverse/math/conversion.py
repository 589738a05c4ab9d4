"""Between the single precision of public arrays and the precision of a stage.

Unit quaternions and unit axes come out of single precision with a length that is off by its rounding, so they
are given length 1 anew: what a stage computes in double precision then is a rigid motion to double precision.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions


@made_once
def conversion_functions(real: Any) -> SimpleNamespace:
    """Return the `wp.func`s that read and write single-precision values for scalars of type `real`.

    - `widen_vec3(a)`, `widen_axis(a)`, `widen_rotation(q)`: a vector, a unit vector, a unit quaternion.
    - `read_vec3(values, first)`, `read_rotation(values, first)`: consecutive entries of an array; a
      quaternion may have any length there, which `read_quat(values, first)` leaves as it is.
    - `write_vec3(values, first, a)`, `write_rotation(values, first, q)`: the way back.
    """
    vec3 = vec3_type(real)
    quat = quat_type(real)
    quat_normalize = rotation_functions(real).quat_normalize
    quat_renormalize = rotation_functions(real).quat_renormalize

    @wp.func
    def widen_vec3(a: wp.vec3) -> vec3:
        """Return a vector in the precision of the stage."""
        return vec3(real(a[0]), real(a[1]), real(a[2]))

    @wp.func
    def widen_axis(a: wp.vec3) -> vec3:
        """Return a unit vector in the precision of the stage, by the Newton step of `quat_renormalize`."""
        wide = widen_vec3(a)
        return (real(1.5) - real(0.5) * wp.dot(wide, wide)) * wide

    @wp.func
    def widen_rotation(q: wp.quat) -> quat:
        """Return a unit quaternion in the precision of the stage."""
        return quat_renormalize(quat(real(q[0]), real(q[1]), real(q[2]), real(q[3])))

    @wp.func
    def read_vec3(values: wp.array[float], first: int) -> vec3:
        """Return three consecutive entries."""
        return vec3(real(values[first]), real(values[first + 1]), real(values[first + 2]))

    @wp.func
    def read_quat(values: wp.array[float], first: int) -> quat:
        """Return four consecutive entries."""
        x = real(values[first])
        y = real(values[first + 1])
        z = real(values[first + 2])
        return quat(x, y, z, real(values[first + 3]))

    @wp.func
    def read_rotation(values: wp.array[float], first: int) -> quat:
        """Return the rotation in four consecutive entries, which users may have written with any length."""
        return quat_normalize(read_quat(values, first))

    @wp.func
    def write_vec3(values: wp.array[float], first: int, a: vec3):
        """Store a vector in three consecutive entries."""
        for k in range(3):
            values[first + k] = float(a[k])

    @wp.func
    def write_rotation(values: wp.array[float], first: int, q: quat):
        """Store a quaternion in four consecutive entries."""
        for k in range(4):
            values[first + k] = float(q[k])

    return SimpleNamespace(
        widen_vec3=widen_vec3,
        widen_axis=widen_axis,
        widen_rotation=widen_rotation,
        read_vec3=read_vec3,
        read_quat=read_quat,
        read_rotation=read_rotation,
        write_vec3=write_vec3,
        write_rotation=write_rotation,
    )
