"""Weight of a contact: the inverse of the mass that it feels, which bounds its regularization.

The weight w [1/kg] bounds R_n from below and sets R_t. `mobility` takes it from a body on its own,
`delassus_weight` from J diag(A)^-1 J^T as Drake does, and `exact_weights` from W = J A^-1 J^T itself. With
the factors A = L^T D L, W = Z^T D^-1 Z for Z = L^-T J^T, and since L has entries between a degree of freedom
and its ancestors only, Z is zero off the chains of the two bodies: the exact W costs the square of their
length and no factorization of its own.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.types import JointType

# Floor of diag(A) and of principal inertias [kg or kg·m²]: a guard of divisions only.
DIAGONAL_MIN = wp.constant(1e-12)


@functools.cache
def contact_weight_functions(real: Any, linear: Any, dynamics_real: Any, weight_real: Any) -> SimpleNamespace:
    """Return `mobility`, `delassus_weight` and `exact_weights` for the given precisions."""
    weight3, weight6, weight33 = vec3_type(weight_real), vec6_type(weight_real), mat33_type(weight_real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    chain_mobility = packed_rows(dynamics_real, real).chain_mobility

    @wp.func
    def mobility(mass: float, inertia: wp.mat33, arm: weight3) -> weight_real:
        """Return the sum over three orthonormal axes c of 1/m + (r x c)^T diag(I)^-1 (r x c), in body axes.

        The sum does not depend on the axes: it is 3/m + trace([r]x^T diag(I)^-1 [r]x).
        """
        floor = weight_real(DIAGONAL_MIN)
        ix = weight_real(1.0) / wp.max(weight_real(inertia[0, 0]), floor)
        iy = weight_real(1.0) / wp.max(weight_real(inertia[1, 1]), floor)
        iz = weight_real(1.0) / wp.max(weight_real(inertia[2, 2]), floor)
        xx, yy, zz = arm[0] * arm[0], arm[1] * arm[1], arm[2] * arm[2]
        return weight_real(3.0) / weight_real(mass) + ix * (yy + zz) + iy * (xx + zz) + iz * (xx + yy)

    @wp.func
    def jacobian_column(motion: weight6, arm: weight3, frame_transposed: weight33) -> weight3:
        """Return the velocity of the contact point, in the contact frame, per unit of a dof's velocity."""
        omega = weight3(motion[0], motion[1], motion[2])
        linear_velocity = weight3(motion[3], motion[4], motion[5])
        return frame_transposed * (linear_velocity + wp.cross(omega, arm))

    @wp.func
    def delassus_weight(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        world: int,
        dof_a: int,
        dof_b: int,
        arm0: weight3,
        arm1: weight3,
        frame_transposed: weight33,
    ) -> weight_real:
        """Return ||J diag(A)^-1 J^T||_F / 3 of one contact."""
        first = topology.template_dof[topology.world_template[world]]
        dof0 = topology.world_dof[world]
        row0 = topology.world_row[world]
        W = weight33()
        a, b = int(dof_a), int(dof_b)
        while a >= 0 or b >= 0:
            # Children have larger indices than parents: the larger one cannot be above the other.
            dof = wp.max(a, b)
            motion = weight6(dynamics.dof_motion[dof0 + dof])
            column = weight3()
            if b == dof:
                column += jacobian_column(motion, arm1, frame_transposed)
            if a == dof:
                column -= jacobian_column(motion, arm0, frame_transposed)
            up = topology.dof_parent[first + dof]
            if b == dof:
                b = up
            if a == dof:
                a = up
            diagonal = weight_real(
                dynamics.mass_row[row0 + topology.dof_row[first + dof] + topology.dof_depth[first + dof]]
            )
            W += wp.outer(column, column) / wp.max(diagonal, weight_real(DIAGONAL_MIN))
        return wp.sqrt(wp.ddot(W, W)) / weight_real(3.0)

    @wp.func
    def write_columns(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        world: int,
        tree: int,
        leaf: int,
        arm: weight3,
        sign: weight_real,
        frame_transposed: weight33,
        sap: wp.ref[SapData],
        start: int,
    ):
        """Write J of one body along its chain from `start` on, by depth, into `column_t1` and so on."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        dof0 = topology.world_dof[world]
        root = topology.template_node[template] + topology.tree_node[topology.template_tree[template] + tree]
        bottom = int(-1)
        sign_root = weight_real(sign)
        if topology.node_type[root] == JointType.FREE:
            bottom = topology.node_dof[root] + 5  # its motion subspace is the identity, or zero if prescribed
            if dynamics.tree_prescribed[topology.world_tree[world] + tree] != 0:
                sign_root = weight_real(0.0)
            for axis in range(3):
                direction = sign_root * weight3(
                    frame_transposed[axis, 0], frame_transposed[axis, 1], frame_transposed[axis, 2]
                )
                moment = wp.cross(arm, direction)
                for k in range(3):
                    if axis == 0:
                        sap.column_t1[start + k] = real(moment[k])
                        sap.column_t1[start + 3 + k] = real(direction[k])
                    elif axis == 1:
                        sap.column_t2[start + k] = real(moment[k])
                        sap.column_t2[start + 3 + k] = real(direction[k])
                    else:
                        sap.column_n[start + k] = real(moment[k])
                        sap.column_n[start + 3 + k] = real(direction[k])
        dof = int(leaf)
        while dof > bottom:
            motion = weight6(dynamics.dof_motion[dof0 + dof])
            column = sign * jacobian_column(motion, arm, frame_transposed)
            entry = start + topology.dof_depth[first + dof]
            sap.column_t1[entry] = real(column[0])
            sap.column_t2[entry] = real(column[1])
            sap.column_n[entry] = real(column[2])
            if topology.dof_depth[first + dof] == 0:
                break
            dof = topology.dof_parent[first + dof]

    @wp.func
    def exact_weights(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        node_a: int,
        node_b: int,
        dof_a: int,
        dof_b: int,
        arm0: weight3,
        arm1: weight3,
        frame_transposed: weight33,
        columns0: int,
        columns1: int,
    ) -> weight3:
        """Return (w_t, w_n, 0): half the trace of the tangential part of W = J A^-1 J^T, its normal entry.

        The columns of Z along the two chains, by depth, are scratch from `columns0` and `columns1` on.
        """
        first = topology.template_dof[topology.world_template[world]]
        row0 = topology.world_row[world]
        first_node = topology.template_node[topology.world_template[world]]
        one = weight_real(1.0)
        tangential, normal = weight_real(0.0), weight_real(0.0)
        # The last degree of freedom that carries both bodies. Children have larger indices than parents.
        common, other = int(dof_a), int(dof_b)
        while common != other:
            if common > other:
                common = topology.dof_parent[first + common]
            else:
                other = topology.dof_parent[first + other]
        shared = int(0)
        if common >= 0:
            shared = topology.dof_depth[first + common] + 1
        if dof_a >= 0:
            write_columns(
                topology,
                dynamics,
                world,
                topology.node_tree[first_node + node_a],
                dof_a,
                arm0,
                -one,
                frame_transposed,
                sap,
                columns0,
            )
            chain_mobility(
                dynamics.factor_row,
                row0,
                topology.dof_parent,
                topology.dof_depth,
                topology.dof_row,
                first,
                dof_a,
                common,
                sap.column_t1,
                sap.column_t2,
                sap.column_n,
                columns0,
            )
            for depth in range(shared, topology.dof_depth[first + dof_a] + 1):
                tangential += weight_real(sap.column_t1[columns0 + depth])
                normal += weight_real(sap.column_n[columns0 + depth])
        if dof_b >= 0:
            write_columns(
                topology,
                dynamics,
                world,
                topology.node_tree[first_node + node_b],
                dof_b,
                arm1,
                one,
                frame_transposed,
                sap,
                columns1,
            )
            chain_mobility(
                dynamics.factor_row,
                row0,
                topology.dof_parent,
                topology.dof_depth,
                topology.dof_row,
                first,
                dof_b,
                common,
                sap.column_t1,
                sap.column_t2,
                sap.column_n,
                columns1,
            )
            if common >= 0:
                for depth in range(shared):
                    own = columns1 + depth
                    shared_by = columns0 + depth
                    sap.column_t1[own] = sap.column_t1[own] + sap.column_t1[shared_by]
                    sap.column_t2[own] = sap.column_t2[own] + sap.column_t2[shared_by]
                    sap.column_n[own] = sap.column_n[own] + sap.column_n[shared_by]
                chain_mobility(
                    dynamics.factor_row,
                    row0,
                    topology.dof_parent,
                    topology.dof_depth,
                    topology.dof_row,
                    first,
                    common,
                    -1,
                    sap.column_t1,
                    sap.column_t2,
                    sap.column_n,
                    columns1,
                )
            for depth in range(topology.dof_depth[first + dof_b] + 1):
                tangential += weight_real(sap.column_t1[columns1 + depth])
                normal += weight_real(sap.column_n[columns1 + depth])
        return weight3(weight_real(0.5) * tangential, normal, weight_real(0.0))

    return SimpleNamespace(mobility=mobility, delassus_weight=delassus_weight, exact_weights=exact_weights)
