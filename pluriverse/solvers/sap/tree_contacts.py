"""Contacts between bodies of one tree, as a small change of the tree's factors.

Reads   factors of H without these contacts, `direction` = L^-T g; contact terms and velocities
Writes  `direction` = L^-T (g - J^T y), from which the other half of the solve goes on; the scratch of
        `contact_space`

A robot that lies on the ground touches itself in a point or two, a hand at its hip, say. Such a contact joins
two branches of the tree, and the Hessian with it has no packed rows: as a dense block it took a third of an
iteration of a G1. So the few components of these contacts are left out of it. With their Jacobian J and
stiffness G, the direction d of H + J^T G J is

    d = H^-1 (g - J^T y),   (1 + G W) y = G J H^-1 g,   W = J H^-1 J^T ([Woodbury1950]),

of which the second is solved as `contact_space` solves for impulses.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.body_contacts import body_contact_functions
from pluriverse.math.contact_mobility import contact_mobility_functions
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import vec3_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.hessian_entries import hessian_entry_functions
from pluriverse.solvers.sap.workspace import sap_struct

# Most such contacts of a world: each has three components to solve for, of which a dense factorization of 35
# degrees of freedom costs some ten.
TREE_CONTACTS_MAX = wp.constant(4)


@made_once
def tree_contact_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return `joins_branches`, `list_tree_contacts` and `add_tree_contacts` for the given precisions."""
    vec3 = vec3_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    cone = cone_functions(real)
    unprojected, stiffness = cone.unprojected, cone.stiffness
    numbers_clear = packed_rows(real).numbers_clear
    mobility = contact_mobility_functions(linear, real)
    contact_mobility, contact_step = mobility.contact_mobility, mobility.contact_step
    add_responses, spread_impulse = mobility.add_responses, mobility.spread_impulse
    add_point_columns = body_contact_functions(linear, real, dynamics_real).add_point_columns
    is_ancestor = hessian_entry_functions(real, linear).is_ancestor

    @wp.func(inline=True)
    def joins_branches(topology: wp.ref[Topology], world: int, a: int, b: int) -> bool:
        """Return whether neither of two dofs is above the other, as in two branches or trees."""
        first = topology.template_dof[topology.world_template[world]]
        return is_ancestor(topology, first, wp.min(a, b), wp.max(a, b)) == 0

    @wp.func(inline=stages_inline())
    def list_tree_contacts(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, contact0: int, capacity: int
    ) -> int:
        """List the acting contacts between branches of a tree from `space_slot[contact0]` on.

        Returns their number, or 0 where there are too many, or contacts couple different trees.
        """
        template = topology.world_template[world]
        first = topology.template_dof[template]
        first_node = topology.template_node[template]
        most = wp.min(capacity, TREE_CONTACTS_MAX)
        count = int(0)
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            a = sap.contact_dof0[slot]
            b = sap.contact_dof1[slot]
            if a < 0 or b < 0:
                continue
            if sap.contact_impulse[slot][2] != real(0.0) or sap.contact_bound[slot] > real(0.0):
                tree_a = topology.node_tree[first_node + topology.dof_node[first + a]]
                tree_b = topology.node_tree[first_node + topology.dof_node[first + b]]
                if tree_a != tree_b:
                    return 0
                if joins_branches(topology, world, a, b):
                    if count >= most:
                        return 0
                    sap.space_slot[contact0 + count] = slot
                    count += 1
        if count > 0:
            # All other contacts go into packed rows, also where the last iteration had blocks.
            first_tree = topology.template_tree[template]
            tree0 = topology.world_tree[world]
            for tree in range(topology.template_tree[template + 1] - first_tree):
                sap.tree_coupled[tree0 + tree] = 0
        return count

    @wp.func(inline=stages_inline())
    def add_tree_contacts(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        region: int,  # scratch
        dof_capacity: int,  # of a region
        contact_capacity: int,
        work_size: int,
        count: int,
        is_factored: int,
    ):
        """Let `direction`, halfway through the solve, take the `count` listed contacts into account.

        With `is_factored`, factors and list are those of the last call, and so is the mobility.
        """
        first = topology.template_dof[topology.world_template[world]]
        dof_count = topology.template_dof[topology.world_template[world] + 1] - first
        dof0 = topology.world_dof[world]
        contact0 = region * contact_capacity
        padded = (3 * contact_capacity + 7) / 8 * 8
        basis = region * dof_capacity * padded
        mobility0 = region * 3 * contact_capacity * padded
        m = 3 * count
        stride = (m + 7) / 8 * 8
        for c in range(contact0, contact0 + count):
            sap.space_velocity[c] = vec3()
        if is_factored != 0:
            add_responses(
                sap.hessian_row,
                topology.world_row[world],
                topology.dof_depth,
                topology.dof_row,
                first,
                dof_count,
                sap.space_basis,
                basis,
                m,
                sap.direction,
                dof0,
                sap.space_velocity,
                contact0,
            )
        else:
            numbers_clear(sap.space_basis, basis, dof_count * stride)
            for c in range(count):
                slot = sap.space_slot[contact0 + c]
                for side in range(2):
                    last = wp.where(side == 0, sap.contact_dof0[slot], sap.contact_dof1[slot])
                    arm = wp.where(side == 0, sap.contact_arm0[slot], sap.contact_arm1[slot])
                    sign = real(2 * side - 1)
                    add_point_columns(
                        dynamics.dof_motion,
                        dof0,
                        topology.dof_parent,
                        first,
                        last,
                        sap.contact_frame[slot],
                        arm,
                        sign,
                        sap.space_basis,
                        basis + 3 * c,
                        stride,
                    )
            contact_mobility(
                sap.hessian_row,
                topology.world_row[world],
                topology.dof_parent,
                topology.dof_depth,
                topology.dof_row,
                first,
                0,
                dof_count,
                sap.space_basis,
                basis,
                m,
                sap.direction,
                dof0,
                sap.space_mobility,
                mobility0,
                sap.space_velocity,
                contact0,
            )
        for c in range(contact0, contact0 + count):
            slot = sap.space_slot[c]
            rt = sap.contact_rt[slot]
            rn = sap.contact_rn[slot]
            y = unprojected(sap.contact_velocity[slot], sap.contact_bias[slot], rt, rn)
            mu, bound = sap.contact_mu[slot], sap.contact_bound[slot]
            sap.space_stiffness[c] = stiffness(y, mu, bound, rt, rn, sap.contact_soft[slot])
        contact_step(
            sap.space_mobility,
            mobility0,
            m,
            sap.space_stiffness,
            sap.space_velocity,
            True,
            contact0,
            sap.space_work,
            region * work_size,
            sap.space_impulse_step,
            sap.space_velocity_step,
        )
        for c in range(contact0, contact0 + count):
            sap.space_impulse[c] = -sap.space_impulse_step[c]
        spread_impulse(sap.space_basis, basis, dof_count, m, sap.space_impulse, contact0, sap.direction, dof0)

    return SimpleNamespace(
        joins_branches=joins_branches,
        list_tree_contacts=list_tree_contacts,
        add_tree_contacts=add_tree_contacts,
    )
