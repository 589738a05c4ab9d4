"""Workspace of SolverSAP: the contact problem of every world and the state of its Newton iteration.

Contacts keep the slots that collision gave them. Degrees of freedom, nodes, trees and packed rows are those
of `pluriverse.model.topology`. *Contact precision* is the scalar type of the objective and its gradient,
*linear precision* that of the Hessian and its factors.
"""

import functools
from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.model import Contacts, Model

DRIVE = wp.constant(1)
LIMIT_LOWER = wp.constant(2)
LIMIT_UPPER = wp.constant(4)
DRY_FRICTION = wp.constant(8)
SPEED_LIMIT = wp.constant(16)
"""Bits of `dof_terms`: which terms of the objective a degree of freedom has in this step."""

SPACE_CONTACTS_MAX = 12
"""Contacts up to which a world may be solved in the space of its contacts (`contact_space`)."""
SPACE_DOFS_MAX = 64
"""Degrees of freedom of a world up to which that is done: the mobility is found for all of them."""

VISITED = wp.constant(1)
PRESCRIBED = wp.constant(2)
"""Values of `node_contact` for bodies that sweeps visit, 0 for others: `PRESCRIBED` at a kinematic root."""


@functools.cache
def _fields(real: Any, linear: Any) -> dict[str, tuple[str, Any]]:
    """Return axis and type of every array of the workspace; see `SapWorkspace` for what they mean."""
    vec3, vec6, mat33, mat33_linear = vec3_type(real), vec6_type(real), mat33_type(real), mat33_type(linear)
    fields: dict[str, tuple[str, Any]] = {}

    def add(axis: str, dtype: Any, names: str) -> None:
        fields.update(dict.fromkeys(names.split(), (axis, dtype)))

    # The terms of contacts and joints.
    add("world", int, "contact_start contact_count")
    add("slot", int, "contact_node0 contact_node1 contact_dof0 contact_dof1")
    add("slot", mat33, "contact_frame")
    add("slot", vec3, "contact_arm0 contact_arm1")
    add("slot", real, "contact_gap contact_weight contact_bias contact_rt contact_rn contact_mu contact_soft")
    add("slot", real, "contact_speed_max contact_work_max")
    add("dof", int, "dof_terms")
    add("dof", real, "drive_offset drive_gain drive_limit limit_lower_bias limit_upper_bias")
    add("dof", real, "limit_regularization friction_regularization friction_impulse")
    add("dof", real, "speed_limit speed_regularization")
    # Moments of contacts, with `torsional_friction`.
    add("moment slot", vec3, "contact_mu_moment contact_spin contact_spin_slope contact_moment")
    add("moment slot", real, "contact_ra")
    # The Newton iteration.
    add("slot", vec3, "contact_velocity contact_slope contact_impulse")
    add("dof", real, "dof_impulse dof_curvature")
    add("dof", real, "velocity residual momentum_free impulse gradient direction direction_momentum")
    add("node", int, "node_contact")
    add("node", vec6, "node_rate node_wrench")
    add("node", mat33_linear, "node_stiffness_ww node_stiffness_wv node_stiffness_vv")
    add("row", linear, "hessian_row")
    # Trees that contacts couple, and their blocks (`math.block_cholesky`).
    add("tree", int, "tree_active tree_coupled tree_order tree_position")
    add("template tree", int, "tree_size")
    add("world", int, "world_adjacency world_location world_block")
    add("adjacency", wp.uint64, "adjacency")
    add("location", int, "block_location")
    add("block", linear, "block_value")
    # Scratch of `contact_space`, a region for each thread or world.
    add("space matrix", real, "space_basis space_mobility space_work")
    add("space contact", int, "space_slot")
    add("space contact", vec3, "space_velocity space_velocity_step space_impulse space_impulse_step")
    add("space contact", vec3, "space_residual")
    add("space contact", mat33, "space_stiffness")
    # Equality constraints.
    add("world + 1", int, "equality_start")
    add("equality", equality_term_struct(real), "equality")
    add("equality", vec6, "equality_velocity equality_slope equality_impulse")
    # Results.
    add("world", real, "cost")
    add("world", int, "iterations line_search_iterations converged optimality_reached cost_reached failure")
    return fields


@functools.cache
def equality_term_struct(real: Any) -> Any:
    """Return the `wp.struct` of an equality constraint as a term of the objective, precision `real`."""
    vec3, vec6, mat33 = vec3_type(real), vec6_type(real), mat33_type(real)

    @wp.struct
    class EqualityTerm:
        kind: int  # OFF, BODIES, DOFS or DISTANCE of `equality`
        two_sided: int  # of a DISTANCE: whether it is a rod
        node1: int  # template-local, -1 for the world
        node2: int
        dof1: int  # last dof above each body, or the two dofs themselves; -1 for none
        dof2: int
        arm1: vec3  # point of each body from the reference point of its tree, world axes [m]
        arm2: vec3
        ratio: real  # v_c = v_1 - ratio v_2
        error: vec6  # g [rad; m], or in front that of two dofs
        bias: vec6  # v_hat [rad/s; m/s], or in front those of the least and of the largest distance
        axis: vec3  # of a DISTANCE: from point 1 to point 2, world axes
        stiffness_linear: real  # R^-1 of the point, or of two dofs
        stiffness_angular: mat33  # R^-1 of the rotation, world axes

    return EqualityTerm


@functools.cache
def sap_struct(real: Any, linear: Any) -> Any:
    """Return the `wp.struct` of the workspace for contact precision `real` and linear precision `linear`."""
    annotations = {name: wp.array(dtype=dtype) for name, (_, dtype) in _fields(real, linear).items()}
    return wp.struct(type("SapData", (), {"__annotations__": annotations, "__module__": __name__}))


class SapWorkspace:
    """Arrays of the contact problem, made once for a model and the capacity of a contact buffer.

    Every field of `sap_struct` is an attribute of the same name; `data` hands them all to a kernel. The ones
    that a user may want to read after a step:

    - `contact_impulse` [slot] impulse on the body of shape1, contact frame (t1, t2, n) [N·s]; `contact_frame`
      [slot] columns t1, t2, n in world axes; `contact_gap` [slot] phi0 [m]; `contact_weight` [slot] w [1/kg];
      `contact_rt`, `contact_rn` [slot] regularization [1/kg]; `contact_speed_max` [slot] largest speed at
      which it opens [m/s] and `contact_work_max` [slot] its largest work in the step [J] (`recovery.py`);
      `contact_velocity` [slot] [m/s];
    - with `torsional_friction`: `contact_moment` [slot] moment impulse on the body of shape1, contact frame
      [N·m·s]; `contact_mu_moment` [slot] coefficients (rolling twice, torsional) [m]; `contact_ra` [slot]
      regularization [1/(kg·m²)]; `contact_spin` [slot] relative angular velocity [rad/s];
    - `velocity`, `gradient`, `impulse` [dof] in the internal order; `cost` [world] [J];
    - `equality` [equality constraint] the terms of equality constraints (`equality_term_struct`) and
      `equality_impulse` their impulses on the second body [N·m·s; N·s], for joints and distances in the first
      component;
    - `iterations`, `line_search_iterations`, `converged`, `optimality_reached`, `cost_reached`, `failure`
      [world].
    """

    def __init__(
        self, model: Model, contacts: Contacts, real: Any, linear: Any, *, has_moments: bool = False
    ):
        self.real, self.linear = real, linear
        self.has_moments = has_moments
        self.data = sap_struct(real, linear)()
        start = contacts.slot_start.numpy()
        self.contact_capacity = np.diff(start)
        sizes = {
            "world": model.world_count,
            "slot": int(start[-1]),
            "moment slot": int(start[-1]) if has_moments else 0,
            "dof": model.joint_dof_count,
            "node": model.joint_count,
            "tree": model.tree_count,
            "row": model.world_row_count,
        }
        equality_count = np.array([len(template.equality) for template in model.templates])
        equality_start = np.concatenate([[0], np.cumsum(equality_count[model.world_template])])
        sizes["equality"] = int(equality_start[-1])
        self.has_equality = bool(equality_start[-1])
        given = {
            "contact_start": contacts.slot_start,
            "equality_start": wp.array(equality_start, dtype=int, device=model.device),
            **self._interleave(sizes["slot"], model.device),
            **self._coupling(model),
        }
        self.space_dof_count = max(
            (template.dof_count for template in model.templates if template.dof_count <= SPACE_DOFS_MAX),
            default=0,
        )
        given |= self._contact_space(model, real)
        for name, (axis, dtype) in _fields(real, linear).items():
            array = given.get(name)
            if array is None:
                array = wp.zeros(sizes[axis], dtype=dtype, device=model.device)
            setattr(self, name, array)
            setattr(self.data, name, array)

    def _interleave(self, slot_count: int, device: wp.Device) -> dict[str, wp.array]:
        """Allocate the arrays of contacts such that all of one contact lies together.

        A world has slots for the most contacts that it could have, of which few are in use. In arrays by
        themselves, the first slots of every world would be on some twenty pages that nothing else is on: one
        step of 1024 robots took 3 to 9 % longer.
        """
        if slot_count == 0:
            return {}
        fields = {
            name: (dtype, wp.types.type_size_in_bytes(dtype))
            for name, (axis, dtype) in _fields(self.real, self.linear).items()
            if axis == "slot"
        }
        # Numbers of 8 bytes first, so that each is where its size allows.
        order = sorted(fields, key=lambda name: -(fields[name][1] % 8 == 0))
        ends = np.cumsum([fields[name][1] for name in order])
        stride = 8 * -(-int(ends[-1]) // 8)
        self._slots = wp.zeros(slot_count * (stride // 8), dtype=wp.uint64, device=device)
        return {
            name: wp.array(
                ptr=self._slots.ptr + int(end) - fields[name][1],
                dtype=fields[name][0],
                shape=(slot_count,),
                strides=(stride,),
                device=device,
                copy=False,
            )
            for name, end in zip(order, ends, strict=True)
        }

    def _contact_space(self, model: Model, real: Any) -> dict[str, wp.array]:
        """Allocate the scratch of `contact_space`: a region of the same size for every world.

        On a CPU all worlds of a launch use the region of the first, which stays in the cache of its thread.
        The others are never touched, so they cost address space only.
        """
        m, dofs = 3 * SPACE_CONTACTS_MAX, self.space_dof_count
        has_space = dofs > 0 and not self.has_moments
        regions = model.world_count if has_space else 0
        sizes = {"space_basis": dofs * m, "space_mobility": m * m, "space_work": 2 * m * m + m}
        fields = {
            name: dtype for name, (axis, dtype) in _fields(real, self.linear).items() if "space" in axis
        }
        return {
            name: wp.empty(regions * sizes.get(name, SPACE_CONTACTS_MAX), dtype=dtype, device=model.device)
            for name, dtype in fields.items()
        }

    def _coupling(self, model: Model) -> dict[str, wp.array]:
        """Allocate the block-sparse part of the Hessian.

        The blocks of a world are bounded by its dense lower triangle. The memory is not touched before a
        world needs it, so on a CPU an unused bound costs address space only.
        """
        topology, device = model.topology, model.device
        template_of = model.world_template
        sizes = (topology.tree_dof_end.numpy() - topology.tree_dof.numpy()).astype(np.int64)
        words, pairs, values = (np.zeros(len(model.templates), np.int64) for _ in range(3))
        for index, template in enumerate(model.templates):
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
                f"SolverSAP: the coupling blocks of all worlds may need {largest} entries, more than an "
                "index can count (2147483647). Use fewer worlds per model, or fewer free bodies per world."
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
