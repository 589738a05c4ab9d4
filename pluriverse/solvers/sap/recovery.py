"""Recovery stage: how fast, and with how much work, contacts push overlapping shapes apart.

Reads   gap, weight, regularization and stiffness of a contact; masses of its trees; the solution
Writes  contact_bias, contact_work_max

A contact at the depth d = -phi0 asks for the velocity v_hat = d / (h + tau). With a stiffness k of its own,
the spring has stored k d^2 / 2, and the implicit step returns no more than that. A near-rigid contact has no
such store: its stiffness follows its weight w, and what v_hat takes is v_hat^2 / 2 w or more. At a singular
configuration, such as a straight chain of links pressed on end into the ground, w is next to zero, and the
energy without bound. (Contacts of a passive system may not do that: an undamped arm that is let go
0.1 m in the ground left it at 7,000 rad/s.)

So the work of such a contact is bounded by what it takes to lift both trees out again, of the mass M, at the
speed at which they would fall from as high:

    v_hat <= sqrt(2 g d min(1, w M)),    gamma . v_c <= h M g sqrt(2 g d) + k d^2 / 2    in a step,

where k d^2 / 2 is there if a stiffness was given that the step resolves for M. The first is known
beforehand. The second holds at the solution, also if other contacts or friction leave the trees fewer ways
out than w knows of: where it does not, the contact is asked for less, and the world is solved on from where
it is. Neither bounds a force: a contact that does not open does no work, whatever it carries.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct

# Gravity g of the laws above [m/s²]: that of the Earth in any scene, as it only says what is fast.
RECOVERY_GRAVITY = wp.constant(9.81)
# How far the work may exceed its bound [relative]: what half a percent of the velocity makes of it.
WORK_EXCESS = wp.constant(1.01)
# Times that contacts are asked for less. The work falls with the square of what they ask for where nothing
# else pushes; the last time they ask for nothing.
ROUNDS_MAX = wp.constant(4)


@functools.cache
def recovery_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return `moved_mass`, `recovery_speed`, `recovery_work` and `limit_recovery`."""
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)

    @wp.func
    def moved_mass(
        topology: Topology,
        dynamics: DynamicsData,
        world: int,
        node_a: int,
        node_b: int,
        dof_a: int,
        dof_b: int,
    ) -> real:
        """Return the mass of the trees of both bodies that can move [kg], -1 standing for none."""
        template = topology.world_template[world]
        first_node, first_tree = topology.template_node[template], topology.template_tree[template]
        node0 = topology.world_joint[world]
        mass = real(0.0)
        tree_a = int(-1)
        if dof_a >= 0:
            tree_a = topology.node_tree[first_node + node_a]
            mass = real(dynamics.node_composite[node0 + topology.tree_node[first_tree + tree_a]][0])
        if dof_b >= 0:
            tree_b = topology.node_tree[first_node + node_b]
            if tree_b != tree_a:
                mass += real(dynamics.node_composite[node0 + topology.tree_node[first_tree + tree_b]][0])
        return mass

    @wp.func
    def recovery_speed(depth: real, weight: real, rn: real, mass: real, stiffness: real) -> real:
        """Return the largest v_hat of a contact [m/s]; `stiffness` [N/m] is 0 if none was given."""
        lifted = real(2.0) * real(RECOVERY_GRAVITY) * depth * wp.min(real(1.0), weight * mass)
        # A contact that gives way, with the regularization `rn`, reaches the part w / (w + R_n) of v_hat.
        return (real(1.0) + rn / weight) * wp.sqrt(lifted + weight * stiffness * depth * depth)

    @wp.func
    def recovery_work(depth: real, mass: real, stiffness: real, dt: real) -> real:
        """Return the largest work of a contact in a step [J]."""
        speed = wp.sqrt(real(2.0) * real(RECOVERY_GRAVITY) * depth)
        return dt * mass * real(RECOVERY_GRAVITY) * speed + real(0.5) * stiffness * depth * depth

    @wp.func
    def limit_recovery(sap: SapData, world: int, round: int) -> int:
        """Ask for less of contacts whose work exceeds its bound; return whether there are any."""
        limited = int(0)
        if round < ROUNDS_MAX:
            start = sap.contact_start[world]
            for slot in range(start, start + sap.contact_count[world]):
                if sap.contact_rn[slot] > real(0.0):
                    work = wp.dot(sap.contact_impulse[slot], sap.contact_velocity[slot])
                    work_max = sap.contact_work_max[slot]
                    bias = sap.contact_bias[slot]
                    if work > real(WORK_EXCESS) * work_max and bias > real(0.0):
                        limited = 1
                        if round + 1 == ROUNDS_MAX:
                            bias = real(0.0)
                        sap.contact_bias[slot] = bias * wp.sqrt(work_max / work)
        return limited

    return SimpleNamespace(
        moved_mass=moved_mass,
        recovery_speed=recovery_speed,
        recovery_work=recovery_work,
        limit_recovery=limit_recovery,
    )
