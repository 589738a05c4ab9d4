"""Contacts on the bodies of trees, in native code: the stiffness on rows of joints, and their Jacobian.

Bodies sum the 6x6 stiffness K of their contacts and of the bodies that they carry, and row k of the Hessian
of their tree gets S_a^T K S_k for the motions S_a of each degree of freedom a from k to the root
([Featherstone2008] section 6.2).

As Warp compiles it, a third of this was products of zeros, or of one side of a symmetric matrix by both.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type

_POINT = """
    const int* up = dof_parent.data + first;
    // Six numbers for each axis of the frame: its moment about the reference point, and the axis.
    V along[6][4] = {};
    for (int k = 0; k < 3; ++k) {
        const V f0 = sign * frame.data[0][k], f1 = sign * frame.data[1][k], f2 = sign * frame.data[2][k];
        along[0][k] = arm[1] * f2 - arm[2] * f1;
        along[1][k] = arm[2] * f0 - arm[0] * f2;
        along[2][k] = arm[0] * f1 - arm[1] * f0;
        along[3][k] = f0;
        along[4][k] = f1;
        along[5][k] = f2;
    }
    for (int j = last; j >= 0; j = up[j]) {
        const T* s = (const T*)(motion.data + base + j);
        V rate[4];  // of four numbers, which fill a vector register
        for (int k = 0; k < 4; ++k) {
            const V moment = along[0][k] * V(s[0]) + along[1][k] * V(s[1]) + along[2][k] * V(s[2]);
            rate[k] = moment + (along[3][k] * V(s[3]) + along[4][k] * V(s[4]) + along[5][k] * V(s[5]));
        }
        V* column = x.data + entry + j * stride;
        for (int k = 0; k < 3; ++k) column[k] += rate[k];
    }
"""

_WRENCH = """
    const int* up = dof_parent.data + first;
    for (int j = last; j >= 0; j = up[j]) {
        const T* s = (const T*)(motion.data + base + j);
        x.data[entry + j * stride] += torque[0] * V(s[0]) + torque[1] * V(s[1]) + torque[2] * V(s[2])
            + (force[0] * V(s[3]) + force[1] * V(s[4]) + force[2] * V(s[5]));
    }
"""

_PROJECT = """
    const int* up = dof_parent.data + first;
    const int* deep = dof_depth.data + first;
    const int* start = dof_row.data + first;
    const V* __restrict kww = (const V*)(ww.data + node);
    const V* __restrict kwv = (const V*)(wv.data + node);
    const V* __restrict kvv = (const V*)(vv.data + node);
    for (int dof = begin; dof < end; ++dof) {
        const T* s = (const T*)(motion.data + base + dof);
        V w[6];
        for (int i = 0; i < 3; ++i) {
            w[i] = (kww[3 * i] * V(s[0]) + kww[3 * i + 1] * V(s[1]) + kww[3 * i + 2] * V(s[2]))
                + (kwv[3 * i] * V(s[3]) + kwv[3 * i + 1] * V(s[4]) + kwv[3 * i + 2] * V(s[5]));
            w[3 + i] = (kwv[i] * V(s[0]) + kwv[3 + i] * V(s[1]) + kwv[6 + i] * V(s[2]))
                + (kvv[3 * i] * V(s[3]) + kvv[3 * i + 1] * V(s[4]) + kvv[3 * i + 2] * V(s[5]));
        }
        V* row = rows.data + row_base + start[dof];
        V* entry = row + deep[dof];
        for (int j = dof; j >= stop; j = up[j]) {
            const T* t = (const T*)(motion.data + base + j);
            *entry-- += V(t[0]) * w[0] + V(t[1]) * w[1] + V(t[2]) * w[2]
                + V(t[3]) * w[3] + V(t[4]) * w[4] + V(t[5]) * w[5];
        }
        if (has_stem) for (int c = 0; c < 6; ++c) row[c] += w[c];
    }
    if (carrier >= 0) {
        V* __restrict cww = (V*)(ww.data + carrier);
        V* __restrict cwv = (V*)(wv.data + carrier);
        V* __restrict cvv = (V*)(vv.data + carrier);
        for (int e = 0; e < 9; ++e) cww[e] += kww[e];
        for (int e = 0; e < 9; ++e) cwv[e] += kwv[e];
        for (int e = 0; e < 9; ++e) cvv[e] += kvv[e];
    }
"""


@made_once
def body_contact_functions(linear: Any, real: Any, motion_real: Any) -> SimpleNamespace:
    """Return the functions for sums in `linear`, contacts in `real` and motions in `motion_real`.

    - `add_point_columns(motion, base, dof_parent, first, last, frame, arm, sign, x, entry, stride)`: adds
      `sign` times the velocity of the point at `arm` of a body, in the `frame`, for each degree of freedom
      from `last` to the root. That of dof j goes to the three numbers from `x[entry + j * stride]` on.
    - `add_wrench_column(motion, base, dof_parent, first, last, torque, force, x, entry, stride)`: adds the
      power of a wrench on a body at unit velocity of each degree of freedom from `last` to the root. That of
      dof j goes to `x[entry + j * stride]`.

    The angular block of a body's K is an entry of `ww`, that of moments by velocities one of `wv`, the linear
    one of `vv`.

    - `project_stiffness(ww, wv, vv, node, carrier, motion, base, dof_parent, dof_depth, dof_row, first,
      begin, end, stop, has_stem, rows, row_base)`: adds the part of a body's K, entry `node`, to the packed
      rows (`math.dense`) of its degrees of freedom `begin <= k < end`, for those from k to the root that are
      not below `stop`; with a stem of six whose motions are unit vectors, for these too. Then adds K to that
      of the body that carries it, entry `carrier`, unless -1.
    """
    mat33, mat33_linear, vec3 = mat33_type(real), mat33_type(linear), vec3_type(real)
    vec6 = vec6_type(motion_real)
    types = f"using T = {CTYPE[motion_real]}; using V = {CTYPE[linear]};"

    @wp.func_native(f"using T = {CTYPE[motion_real]}; using V = {CTYPE[real]};" + _POINT)
    def add_point_columns(
        motion: wp.array(dtype=vec6),
        base: int,
        dof_parent: wp.array[int],
        first: int,
        last: int,
        frame: mat33,
        arm: vec3,
        sign: real,
        x: wp.array[real],
        entry: int,
        stride: int,
    ): ...

    @wp.func_native(f"using T = {CTYPE[motion_real]}; using V = {CTYPE[real]};" + _WRENCH)
    def add_wrench_column(
        motion: wp.array(dtype=vec6),
        base: int,
        dof_parent: wp.array[int],
        first: int,
        last: int,
        torque: vec3,
        force: vec3,
        x: wp.array[real],
        entry: int,
        stride: int,
    ): ...

    @wp.func_native(types + _PROJECT)
    def project_stiffness(
        ww: wp.array(dtype=mat33_linear),
        wv: wp.array(dtype=mat33_linear),
        vv: wp.array(dtype=mat33_linear),
        node: int,
        carrier: int,
        motion: wp.array(dtype=vec6),
        base: int,
        dof_parent: wp.array[int],
        dof_depth: wp.array[int],
        dof_row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        stop: int,
        has_stem: bool,
        rows: wp.array[linear],
        row_base: int,
    ): ...

    return SimpleNamespace(
        add_point_columns=add_point_columns,
        add_wrench_column=add_wrench_column,
        project_stiffness=project_stiffness,
    )
