"""Workspace of SolverSAP: the contact problem of every world and the state of its Newton iteration.

Contacts keep the slots that collision gave them. Degrees of freedom, nodes, trees and packed rows are those of
`pluriverse.model.topology`. *Contact precision* is the scalar type of the objective and its gradient, *linear
precision* that of the Hessian and its factors.
"""

import functools
from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.model import Contacts, Model, Template

DRIVE = wp.constant(1)
LIMIT_LOWER = wp.constant(2)
LIMIT_UPPER = wp.constant(4)
DRY_FRICTION = wp.constant(8)
"""Bits of `dof_terms`: which terms of the objective a degree of freedom has in this step."""


@functools.cache
def sap_struct(real: Any, linear: Any) -> Any:
    """Return the `wp.struct` of the workspace for contact precision `real` and linear precision `linear`."""
    vec3, vec6, mat33, mat33_linear = vec3_type(real), vec6_type(real), mat33_type(real), mat33_type(linear)

    @wp.struct
    class SapData:
        # contacts, [slot]
        contact_start: wp.array(dtype=int)
        contact_count: wp.array(dtype=int)
        contact_node0: wp.array(dtype=int)
        contact_node1: wp.array(dtype=int)
        contact_dof0: wp.array(dtype=int)
        contact_dof1: wp.array(dtype=int)
        contact_frame: wp.array(dtype=mat33)
        contact_arm0: wp.array(dtype=vec3)
        contact_arm1: wp.array(dtype=vec3)
        contact_gap: wp.array(dtype=real)
        contact_weight: wp.array(dtype=real)
        contact_bias: wp.array(dtype=real)
        contact_rt: wp.array(dtype=real)
        contact_rn: wp.array(dtype=real)
        contact_mu: wp.array(dtype=real)
        contact_soft: wp.array(dtype=real)
        contact_velocity: wp.array(dtype=vec3)
        contact_slope: wp.array(dtype=vec3)
        contact_impulse: wp.array(dtype=vec3)
        # terms of one degree of freedom, [dof]
        dof_terms: wp.array(dtype=int)
        drive_offset: wp.array(dtype=real)
        drive_gain: wp.array(dtype=real)
        drive_limit: wp.array(dtype=real)
        limit_lower_bias: wp.array(dtype=real)
        limit_upper_bias: wp.array(dtype=real)
        limit_regularization: wp.array(dtype=real)
        friction_regularization: wp.array(dtype=real)
        friction_impulse: wp.array(dtype=real)
        # Newton iteration, [dof]
        velocity: wp.array(dtype=real)
        residual: wp.array(dtype=real)
        momentum_free: wp.array(dtype=real)
        impulse: wp.array(dtype=real)
        gradient: wp.array(dtype=real)
        direction: wp.array(dtype=real)
        direction_momentum: wp.array(dtype=real)
        # sweeps, [node]
        node_contact: wp.array(dtype=int)
        node_rate: wp.array(dtype=vec6)
        node_wrench: wp.array(dtype=vec6)
        node_stiffness_ww: wp.array(dtype=mat33_linear)
        node_stiffness_wv: wp.array(dtype=mat33_linear)
        node_stiffness_vv: wp.array(dtype=mat33_linear)
        # Hessian
        hessian_row: wp.array(dtype=linear)
        tree_active: wp.array(dtype=int)
        tree_coupled: wp.array(dtype=int)
        tree_order: wp.array(dtype=int)
        tree_position: wp.array(dtype=int)
        tree_size: wp.array(dtype=int)
        world_adjacency: wp.array(dtype=int)
        world_location: wp.array(dtype=int)
        world_block: wp.array(dtype=int)
        adjacency: wp.array(dtype=wp.uint64)
        block_location: wp.array(dtype=int)
        block_value: wp.array(dtype=linear)
        # results, [world]
        cost: wp.array(dtype=real)
        iterations: wp.array(dtype=int)
        line_search_iterations: wp.array(dtype=int)
        converged: wp.array(dtype=int)
        optimality_reached: wp.array(dtype=int)
        cost_reached: wp.array(dtype=int)
        failure: wp.array(dtype=int)

    return SapData


_REAL = (
    "contact_gap contact_weight contact_bias contact_rt contact_rn contact_mu contact_soft "
    "drive_offset drive_gain drive_limit limit_lower_bias limit_upper_bias limit_regularization "
    "friction_regularization friction_impulse velocity residual momentum_free impulse gradient direction "
    "direction_momentum cost"
).split()


class SapWorkspace:
    """Arrays of the contact problem, made once for a model and the capacity of a contact buffer.

    Every field of `sap_struct` is an attribute of the same name; `data` hands them all to a kernel. The ones that a
    user may want to read after a step:

    - `contact_impulse` [slot] impulse on the body of shape1, contact frame (t1, t2, n) [N·s]; `contact_frame` [slot]
      columns t1, t2, n in world axes; `contact_gap` [slot] phi0 [m]; `contact_weight` [slot] w [1/kg];
      `contact_rt`, `contact_rn` [slot] regularization [1/kg]; `contact_velocity` [slot] [m/s];
    - `velocity`, `gradient`, `impulse` [dof] in the internal order; `cost` [world] [J];
    - `iterations`, `line_search_iterations`, `converged`, `optimality_reached`, `cost_reached`, `failure` [world].
    """

    def __init__(self, model: Model, contacts: Contacts, real: Any, linear: Any):
        self.real, self.linear = real, linear
        self.data = sap_struct(real, linear)()
        start = contacts.rigid_contact_start.numpy()
        self.contact_capacity = np.diff(start)
        slot, dof, node = int(start[-1]), model.joint_dof_count, model.joint_count
        world, tree = model.world_count, model.tree_count
        vec3, vec6, mat33, mat33_linear = (
            vec3_type(real),
            vec6_type(real),
            mat33_type(real),
            mat33_type(linear),
        )
        size = {"contact": slot, "dof": dof, "node": node, "tree": tree}
        dtype = dict.fromkeys(_REAL, real) | {
            "contact_frame": mat33,
            "contact_arm0": vec3,
            "contact_arm1": vec3,
            "contact_velocity": vec3,
            "contact_slope": vec3,
            "contact_impulse": vec3,
            "node_rate": vec6,
            "node_wrench": vec6,
            "node_stiffness_ww": mat33_linear,
            "node_stiffness_wv": mat33_linear,
            "node_stiffness_vv": mat33_linear,
        }
        world_fields = (
            "cost iterations line_search_iterations converged optimality_reached cost_reached failure".split()
        )
        dof_fields = "velocity residual momentum_free impulse gradient direction direction_momentum".split()
        dof_prefixes = ("drive", "limit", "friction")
        coupling = self._coupling(model)
        for name in self.data._cls.vars:
            if name == "contact_start":
                array = contacts.rigid_contact_start
            elif name == "hessian_row":
                array = wp.zeros(model.world_row_count, dtype=linear, device=model.device)
            elif name in coupling:
                array = coupling[name]
            else:
                prefix = name.split("_")[0]
                if name in world_fields or name == "contact_count":
                    count = world
                elif name in dof_fields or prefix in dof_prefixes:
                    count = dof
                else:
                    count = size[prefix]
                array = wp.zeros(count, dtype=dtype.get(name, int), device=model.device)
            setattr(self, name, array)
            setattr(self.data, name, array)

    def _coupling(self, model: Model) -> dict[str, wp.array]:
        """Allocate the block-sparse part of the Hessian, where contacts between moving bodies are possible.

        The blocks of a world are bounded by its dense lower triangle. The memory is not touched before a world needs
        it, so on a CPU an unused bound costs address space only.
        """
        topology, device = model.topology, model.device
        template_of = model.world_template
        sizes = (topology.tree_dof_end.numpy() - topology.tree_dof.numpy()).astype(np.int64)
        words, pairs, values = (np.zeros(len(model.templates), np.int64) for _ in range(3))
        for index, template in enumerate(model.templates):
            if not _has_moving_pairs(template):
                continue
            n = (template.tree_dof_end - template.tree_dof).astype(np.int64)
            words[index] = len(n) * ((len(n) + 63) // 64)
            pairs[index] = len(n) ** 2
            values[index] = (n.sum() ** 2 + (n**2).sum()) // 2
        starts = {}
        for name, per_template in (("adjacency", words), ("location", pairs), ("block", values)):
            per_world = per_template[template_of]
            starts[name] = np.concatenate([[0], np.cumsum(per_world)])
        largest = max(int(start[-1]) for start in starts.values())
        if largest >= 2**31:
            raise ValueError(
                f"SolverSAP: the coupling blocks of all worlds may need {largest} entries, more than an index can "
                "count (2147483647). Use fewer worlds per model, or fewer free bodies per world."
            )
        return {
            "tree_size": wp.array(sizes.astype(np.int32), dtype=int, device=device),
            "world_adjacency": wp.array(starts["adjacency"][:-1].astype(np.int32), dtype=int, device=device),
            "world_location": wp.array(starts["location"][:-1].astype(np.int32), dtype=int, device=device),
            "world_block": wp.array(starts["block"][:-1].astype(np.int32), dtype=int, device=device),
            "adjacency": wp.zeros(int(starts["adjacency"][-1]), dtype=wp.uint64, device=device),
            "block_location": wp.zeros(int(starts["location"][-1]), dtype=int, device=device),
            "block_value": wp.empty(int(starts["block"][-1]), dtype=self.linear, device=device),
        }


def _has_moving_pairs(template: Template) -> bool:
    """Whether contacts between two moving bodies are possible in worlds of this template."""
    return bool(((template.pair_shape0 >= 0) & (template.pair_shape1 >= 0)).any())
