"""Weight of a contact: the inverse of the mass that it feels, which bounds its regularization.

The weight w [1/kg] bounds R_n from below and sets R_t. `mobility` takes it from a body on its own,
`delassus_weight` from J diag(A)^-1 J^T as Drake does, and `exact_weights` from W = J A^-1 J^T itself, by the
factors of A (`math.chain_mobility`): once for each body the square of the length of its chain of joints, and
a few operations per joint for each of its contacts.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.chain_mobility import CHAIN_SIZE, WORK_SIZE, chain_mobility_functions
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import CHAIN_REGION, sap_struct

# Floor of diag(A) and of principal inertias [kg or kg·m²]: a guard of divisions only.
DIAGONAL_MIN = wp.constant(1e-12)


@functools.cache
def contact_weight_functions(real: Any, linear: Any, dynamics_real: Any, weight_real: Any) -> SimpleNamespace:
    """Return the functions for the given precisions.

    These are `mobility`, `delassus_weight`, `find_chain` and `exact_weights`.
    """
    vec3 = vec3_type(real)
    weight3, weight6, weight33 = vec3_type(weight_real), vec6_type(weight_real), mat33_type(weight_real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    chains = chain_mobility_functions(dynamics_real, real)
    chain_velocities, point_mobility = chains.chain_velocities, chains.point_mobility

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

    @wp.func(inline=True)
    def find_chain(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        leaf: int,
        region: int,
        side: int,
        stride: int,
    ):
        """Write the chain of joints down to the degree of freedom `leaf`, the first or second of a region."""
        work = region * CHAIN_REGION * stride
        chain_velocities(
            dynamics.factor_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            topology.template_dof[topology.world_template[world]],
            leaf,
            dynamics.dof_motion,
            topology.world_dof[world],
            sap.chain,
            work,
            sap.chain,
            work + (WORK_SIZE + side * CHAIN_SIZE) * stride,
            stride,
        )

    @wp.func(inline=True)
    def exact_weights(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        first: int,
        dof_a: int,
        dof_b: int,
        shared: int,
        arm0: vec3,
        arm1: vec3,
        normal: vec3,
        region: int,
        stride: int,
    ) -> vec3:
        """Return (w_t, w_n, 0): half the trace of the tangential part of W = J A^-1 J^T, its normal entry.

        The region holds the chains of both bodies, whose first `shared` degrees of freedom are the same.
        """
        base = (region * CHAIN_REGION + WORK_SIZE) * stride
        count_a, count_b = int(0), int(0)
        if dof_a >= 0:
            count_a = topology.dof_depth[first + dof_a] + 1
        if dof_b >= 0:
            count_b = topology.dof_depth[first + dof_b] + 1
        return point_mobility(
            sap.chain,
            base,
            count_a,
            base + CHAIN_SIZE * stride,
            count_b,
            shared,
            stride,
            arm0,
            arm1,
            normal,
        )

    return SimpleNamespace(
        mobility=mobility,
        delassus_weight=delassus_weight,
        find_chain=find_chain,
        exact_weights=exact_weights,
    )
