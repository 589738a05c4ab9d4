"""Workspace of SolverSAP: the contact problem of every world and the state of its Newton iteration.

Contacts keep the slots that collision gave them. Degrees of freedom, nodes, trees and packed rows are those
of `pluriverse.model.topology`. *Contact precision* is the scalar type of the objective and its gradient,
*linear precision* that of the Hessian and its factors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.workspace import scratch_ranges
from pluriverse.launch import made_once
from pluriverse.math.chain_mobility import CHAIN_SIZE, LANES, WORK_SIZE
from pluriverse.math.contact_mobility import COMPONENTS_MAX
from pluriverse.math.mobility_elimination import ELIMINATED_MAX
from pluriverse.math.precision import mat33_type, vec2_type, vec3_type, vec6_type
from pluriverse.math.vector_cholesky import vector_work_size
from pluriverse.model import Contacts, Model
from pluriverse.scratch import Scratch, zeros_on_demand
from pluriverse.types import EqType

DRIVE = wp.constant(1)
LIMIT_LOWER = wp.constant(2)
LIMIT_UPPER = wp.constant(4)
DRY_FRICTION = wp.constant(8)
SPEED_LIMIT = wp.constant(16)
"""Bits of `dof_terms`: which terms of the objective a degree of freedom has in this step."""

SPACE_CONTACTS_MAX = 16
"""Largest number of acting contacts of a world that is solved in contact space (`contact_space`)."""
SPACE_HELD_CONTACTS_MAX = 12
"""The same where friction is convex, or becomes so and there are no constraints."""
SPACE_ROWS_MAX = min(ELIMINATED_MAX, COMPONENTS_MAX - 3 * SPACE_CONTACTS_MAX)
"""Largest number of velocities of such a world that constraints and springs act on (`constraint_rows`)."""
_ROW_COUNT = {EqType.CONNECT: 3, EqType.WELD: 6, EqType.JOINT: 1, EqType.HINGE: 5, EqType.DISTANCE: 1}
SPACE_DOFS_MAX = 128
"""Largest number of degrees of freedom of such a world: the mobility is computed for all of them."""

SWEEP_NUMBERS = 480
"""Room for sweeps over impulses (`impulse_sweeps`) per free body, in numbers of a factor: for seven contacts
a body or more, or half as many in single precision."""

CHAIN_REGION = wp.constant(WORK_SIZE + 2 * CHAIN_SIZE)
"""Numbers in `chain` per degree of freedom of the longest chain: scratch, and the chains of two bodies. On a
CPU all worlds of a launch use the region of the first, which stays in the cache of its thread."""

RUN_SIZE = 56
"""Numbers that `contact_stiffness` sums of contacts between two bodies: six blocks of 3x3, and a slot."""
STIFFNESS_WORK_SIZE = RUN_SIZE * (LANES + 1)
"""Its scratch: those of eight contacts, each between other bodies, and a last one that ends them."""

ITERATED_FIELDS = (
    "contact_frame",
    "contact_arm0",
    "contact_arm1",
    "contact_node0",
    "contact_node1",
    "contact_velocity",
    "contact_slope",
    "contact_impulse",
    "contact_rn",
    "contact_rt",
    "contact_mu",
    "contact_bound",
    "contact_soft",
    "contact_bias",
    "contact_dof0",
    "contact_dof1",
)
"""What iterations of Newton's method read of a contact: 256 bytes in double precision.

`contact_lanes` loads the numbers from the frame on, and from the velocity on, in this order. In double
precision both are two cache lines, with two integers behind the numbers."""
CACHE_LINE = 64
"""Bytes that a processor loads at once."""

# Axes of scratch of which a world has a region, and mostly the first world of a launch uses its own for all.
_WORLD_REGIONS = ("stiffness work", "coupled work", "chain", "space matrix", "space contact")

VISITED = wp.constant(1)
PRESCRIBED = wp.constant(2)
"""Values of `node_contact` for bodies that sweeps visit, 0 for others: `PRESCRIBED` at a kinematic root."""


@dataclass(frozen=True)
class Field:
    """An array of the workspace."""

    axis: str
    """What it has an entry for; "moment slot" is a slot where contacts have moments."""
    dtype: Any
    meaning: str


@made_once
def workspace_fields(real: Any, linear: Any) -> dict[str, Field]:
    """Return every array of the workspace by name: what one stage leaves to the others, by purpose.

    Contact frames have the axes (t1, t2, n) and velocities are those of shape1 relative to shape0.
    """
    vec2, vec3, vec6 = vec2_type(real), vec3_type(real), vec6_type(real)
    mat33, mat33_linear = mat33_type(real), mat33_type(linear)
    contact_terms = {
        "contact_start": Field("world", int, "first slot, of the part that is solved"),
        "contact_count": Field("world", int, "slots in use, of that part"),
        "contact_node0": Field("slot", int, "node of the body of shape0 in its template, -1 for none"),
        "contact_node1": Field("slot", int, "node of the body of shape1 in its template, -1 for none"),
        "contact_dof0": Field("slot", int, "last degree of freedom that moves that body, -1 for none"),
        "contact_dof1": Field("slot", int, "last degree of freedom that moves that body, -1 for none"),
        "contact_frame": Field("slot", mat33, "columns t1, t2, n, world axes"),
        "contact_arm0": Field("slot", vec3, "point from the reference point of the tree, world axes [m]"),
        "contact_arm1": Field("slot", vec3, "point from the reference point of the tree, world axes [m]"),
        "contact_chord": Field("slot", vec2, "h/2 of the relative acceleration along the surface [m/s]"),
        "contact_gap": Field("slot", real, "signed distance phi0 with margins taken off [m]"),
        "contact_weight": Field("slot", real, "inverse w of the mass that it feels [1/kg]"),
        "contact_bias": Field("slot", real, "normal velocity v_hat that it asks for [m/s]"),
        "contact_rt": Field("slot", real, "regularization R_t [1/kg]"),
        "contact_rn": Field("slot", real, "regularization R_n [1/kg], negative if it takes no part"),
        "contact_mu": Field("slot", real, "friction coefficient"),
        "contact_soft": Field("slot", real, "rounding of the norm of its tangential impulse [N·s]"),
        "contact_speed_max": Field("slot", real, "largest speed at which it opens [m/s] (`recovery.py`)"),
        "contact_dilation": Field("slot", real, "s, which `dilation.py` takes off v_hat [m/s]"),
        "contact_bound": Field("slot", real, "normal impulse that bounds friction [N·s], negative: convex"),
        "contact_bound_change": Field("slot", real, "its last difference from gamma_n [N·s]"),
        "contact_work_max": Field("slot", real, "largest work in the step [J] (`recovery.py`)"),
        "contact_place": Field("slot", int, "slot among those of its group (`groups.py`)"),
        "contact_home": Field("slot", int, "slot that collision gave it"),
        "contact_mu_moment": Field("moment slot", vec3, "coefficients (rolling twice, torsional) [m]"),
        "contact_ra": Field("moment slot", real, "regularization R_a [1/(kg·m²)]"),
    }
    joint_terms = {
        "dof_terms": Field("dof", int, "bits DRIVE and so on of the terms present"),
        "dof_scale": Field("dof", real, "1 / A_ii, which weighs impulses in norms [1/kg or 1/(kg·m²)]"),
        "drive_offset": Field("dof", real, "effort at no velocity [N or N·m]"),
        "drive_gain": Field("dof", real, "fall of the effort per velocity [N·s/m or N·m·s/rad]"),
        "drive_limit": Field("dof", real, "largest effort [N or N·m]"),
        "limit_lower_bias": Field("dof", real, "velocity that the lower limit asks for [m/s or rad/s]"),
        "limit_upper_bias": Field("dof", real, "minus the velocity that the upper limit asks for"),
        "limit_regularization": Field("dof", real, "R of both limits [1/kg or 1/(kg·m²)]"),
        "friction_regularization": Field("dof", real, "R of dry friction [1/kg or 1/(kg·m²)]"),
        "friction_impulse": Field("dof", real, "largest impulse of dry friction [N·s or N·m·s]"),
        "speed_limit": Field("dof", real, "largest speed [m/s or rad/s]"),
        "speed_regularization": Field("dof", real, "R of the speed limit [1/kg or 1/(kg·m²)]"),
    }
    equality_terms = {
        "equality_start": Field("world + 1", int, "first equality constraint"),
        "equality_end": Field("world", int, "the one behind the last of the part that is solved"),
        "equality": Field("equality", equality_term_struct(real), "the term"),
    }
    spring_terms = {
        "spring_start": Field("world + 1", int, "first spring"),
        "spring_entry_start": Field("spring + 1", int, "its first degree of freedom"),
        "spring_couples": Field("spring", int, "whether these need not lie on one chain"),
        "spring_dof": Field("spring entry", int, "the degrees of freedom"),
        "spring_coefficient": Field("spring entry", real, "c, rate of the length by their velocity"),
        "spring_impulse": Field("spring", real, "p, impulse at rest [N·s or N·m·s]"),
        "spring_gain": Field("spring", real, "g, fall of the impulse per rate [kg or kg·m²]"),
    }
    # At the velocity of the present iteration.
    iterate = {
        "velocity": Field("dof", real, "v, internal order [m/s or rad/s]"),
        "velocity_start": Field("dof", real, "v where the iteration starts [m/s or rad/s]"),
        "velocity_free": Field("dof", real, "v* [m/s or rad/s]"),
        "residual": Field("dof", real, "A (v - v*) [N·s or N·m·s]"),
        "momentum_free": Field("dof", real, "A v* [N·s or N·m·s]"),
        "impulse": Field("dof", real, "impulses of all terms on joints [N·s or N·m·s]"),
        "gradient": Field("dof", real, "residual minus impulse [N·s or N·m·s]"),
        "dof_impulse": Field("dof", real, "impulse of the terms of joints [N·s or N·m·s]"),
        "dof_curvature": Field("dof", real, "second derivative of their cost [kg or kg·m²]"),
        "dof_pieces": Field("dof", int, "pieces of drive and dry friction that a whole step was made with"),
        "contact_velocity": Field("slot", vec3, "v_c, of the chord, contact frame [m/s]"),
        "contact_impulse": Field("slot", vec3, "gamma on the body of shape1, contact frame [N·s]"),
        "contact_spin": Field("moment slot", vec3, "relative angular velocity, contact frame [rad/s]"),
        "contact_moment": Field("moment slot", vec3, "moment impulse, contact frame [N·m·s]"),
        "equality_velocity": Field("equality", vec6, "angular and linear, or that of dofs in front"),
        "equality_impulse": Field("equality", vec6, "on the second body [N·m·s; N·s], or in front"),
        "spring_velocity": Field("spring", real, "s, rate of the length [m/s or rad/s]"),
    }
    direction = {
        "direction": Field("dof", real, "step dv of a whole iteration [m/s or rad/s]"),
        "direction_momentum": Field("dof", real, "A dv [N·s or N·m·s]"),
        "contact_slope": Field("slot", vec3, "J dv of contacts, contact frame [m/s]"),
        "contact_spin_slope": Field("moment slot", vec3, "relative angular velocity at dv [rad/s]"),
        "equality_slope": Field("equality", vec6, "J dv of equality constraints"),
        "spring_slope": Field("spring", real, "c^T dv"),
    }
    sweeps = {
        "node_contact": Field("node", int, "VISITED, PRESCRIBED or 0"),
        "node_rate": Field("node", vec6, "spatial velocity, world axes [rad/s; m/s]"),
        "node_wrench": Field("node", vec6, "impulse of all terms and nodes below, world axes [N·m·s; N·s]"),
        "node_stiffness_ww": Field("node", mat33_linear, "6x6 stiffness of body and those below: angular"),
        "node_stiffness_wv": Field("node", mat33_linear, "moment by velocity"),
        "node_stiffness_vv": Field("node", mat33_linear, "linear"),
    }
    hessian = {
        "hessian_row": Field("row", linear, "packed rows of H, then their factors (`math.dense`)"),
        "tree_active": Field("tree", int, "whether any term acts on the tree"),
        "tree_coupled": Field("tree", int, "whether it is solved with others (`math.block_cholesky`)"),
        "tree_ordered": Field("tree", int, "the same when `tree_order` was found"),
        "tree_order": Field("tree", int, "coupled trees by elimination"),
        "tree_position": Field("tree", int, "place in that order"),
        "tree_size": Field("template tree", int, "degrees of freedom"),
        "world_adjacency": Field("world", int, "first word of `adjacency`"),
        "world_location": Field("world", int, "first entry of `block_location`"),
        "world_block": Field("world", int, "first entry of `block_value`"),
        "coupling": Field("adjacency", wp.uint64, "which trees are coupled, a bit for each pair"),
        "coupling_ordered": Field("adjacency", wp.uint64, "the same when `tree_order` was found"),
        "adjacency": Field("adjacency", wp.uint64, "structure of the factor in that order"),
        "block_used": Field("world", int, "numbers in `block_value` in that order"),
        "block_location": Field("location", int, "where the block of a pair of trees begins"),
        "block_value": Field("block", linear, "column-major blocks of coupled trees"),
        "coupled_work": Field("coupled work", linear, "scratch of `math.vector_cholesky`"),
    }
    # What stages of Newton's method go over: all of a world, or what a group spans (`groups.py`).
    parts = {
        "part_tree": Field("world", int, "first tree, template-local"),
        "part_tree_end": Field("world", int, "the tree behind the last"),
        "part_node": Field("world", int, "first node"),
        "part_node_end": Field("world", int, "the node behind the last"),
        "part_dof": Field("world", int, "first degree of freedom"),
        "part_dof_end": Field("world", int, "that behind the last"),
        "tree_group": Field("tree", int, "group of the tree, -1 for none"),
        "group_contact_end": Field("tree", int, "slot behind the last contact of a group"),
        "tree_gradient": Field("tree", real, "square of |D grad| of the tree (`gradient_norms`)"),
        "tree_momentum": Field("tree", real, "square of its momenta or impulses, the larger"),
    }
    contact_stiffness = {
        "stiffness_work": Field("stiffness work", linear, "sums of some contacts (`contact_stiffness`)"),
    }
    contact_weight = {
        "chain": Field("chain", real, "of both bodies of a contact, and scratch (`math.chain_mobility`)"),
    }
    contact_space = {
        "space_basis": Field("space matrix", real, "J^T, then L^-T J^T, [dof, component]"),
        "space_mobility": Field("space matrix", real, "W [component, component]"),
        "space_work": Field("space matrix", real, "of `contact_step` and `coulomb`"),
        "space_slot": Field("space contact", int, "slot of a contact that takes part"),
        "space_velocity": Field("space contact", vec3, "u(p) [m/s]"),
        "space_velocity_step": Field("space contact", vec3, "its Newton step"),
        "space_impulse": Field("space contact", vec3, "p [N·s]"),
        "space_impulse_step": Field("space contact", vec3, "its Newton step"),
        "space_residual": Field("space contact", vec3, "gamma(u(p)) - p [N·s]"),
        "space_stiffness": Field(
            "space contact", mat33, "G = -d gamma / d u [kg], overwritten by its factor"
        ),
        "space_compliance": Field("space contact", vec3, "D of constraints [1/kg or 1/(kg·m²)]"),
        "space_wanted": Field("space contact", vec3, "u + D p of these [m/s or rad/s]"),
        "space_free": Field("space contact", vec3, "u0 [m/s]"),
    }
    results = {
        "cost": Field("world", real, "objective at the end [J]"),
        "iterations": Field("world", int, "Newton iterations"),
        "line_search_iterations": Field("world", int, "trials after the first of each line search"),
        "converged": Field("world", int, "whether one of the two tests was met"),
        "optimality_reached": Field("world", int, "whether that of the gradient was"),
        "cost_reached": Field("world", int, "whether that of the cost was"),
        "failure": Field("world", int, "code of a failed line search (`line_search`), or 0"),
    }
    return (
        contact_terms
        | joint_terms
        | equality_terms
        | spring_terms
        | iterate
        | direction
        | sweeps
        | hessian
        | parts
        | contact_stiffness
        | contact_weight
        | contact_space
        | results
    )


@made_once
def contact_record(real: Any, linear: Any) -> tuple[dict[str, int], int]:
    """Return where each number of a contact is in the record of the contact, and the size of one [bytes]."""
    sizes = {
        name: wp.types.type_size_in_bytes(field.dtype)
        for name, field in workspace_fields(real, linear).items()
        if field.axis == "slot"
    }
    # What every iteration reads comes first, in as few cache lines as it fits. Of the rest, numbers of 8
    # bytes come first, so that each is where its size allows.
    rest = sorted(sizes, key=lambda name: -(sizes[name] % 8 == 0))
    order = list(dict.fromkeys([*ITERATED_FIELDS, *rest]))
    ends = np.cumsum([sizes[name] for name in order])
    offsets = {name: int(end) - sizes[name] for name, end in zip(order, ends, strict=True)}
    return offsets, CACHE_LINE * -(-int(ends[-1]) // CACHE_LINE)


@made_once
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
        axis: vec3  # of a DISTANCE from point 1 to point 2, or of a hinge; world axes
        turn_count: int  # directions in which BODIES may not turn: all, two across `axis`, or none
        stiffness_linear: real  # R^-1 of the point, or of two dofs
        stiffness_angular: mat33  # R^-1 of the rotation, world axes

    return EqualityTerm


@made_once
def sap_struct(real: Any, linear: Any) -> Any:
    """Return the `wp.struct` of the workspace for contact precision `real` and linear precision `linear`."""
    annotations = {
        name: wp.array(dtype=field.dtype) for name, field in workspace_fields(real, linear).items()
    }
    return wp.struct(type("SapData", (), {"__annotations__": annotations, "__module__": __name__}))


class SapWorkspace:
    """Arrays of the contact problem, made once for a model and the capacity of a contact buffer.

    Every array of `workspace_fields` is an attribute of the same name; `data` hands them all to a kernel.
    """

    def __init__(
        self,
        model: Model,
        contacts: Contacts,
        real: Any,
        linear: Any,
        *,
        has_moments: bool = False,
        springs: dict[str, wp.array] | None = None,
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
        # Springs are compiled with equality constraints: a variant of their own would gain nothing.
        self.has_equality = bool(equality_start[-1]) or springs is not None
        none = wp.zeros(model.world_count + 1, dtype=int, device=model.device)
        springs = springs or {"spring_start": none, "spring_entry_start": none}
        sizes["spring"] = springs["spring_entry_start"].size - 1 if "spring_dof" in springs else 0
        sizes["spring entry"] = springs["spring_dof"].size if "spring_dof" in springs else 0
        given = {
            "contact_start": wp.clone(contacts.slot_start),
            "equality_start": wp.array(equality_start, dtype=int, device=model.device),
            **springs,
            **self._interleave(sizes["slot"], model.device),
            **self._coupling(model),
        }
        lengths = [int(template.dof_depth.max(initial=0)) + 1 for template in model.templates]
        self.chain_capacity = -(-max(lengths) // LANES) * LANES
        # As for `contact_space`, worlds of a launch share the region of the first on a CPU. GPUs need none.
        self.coupled_work_count = 0
        if model.device.is_cpu:
            self.coupled_work_count = max(
                vector_work_size(template.tree_dof_end - template.tree_dof) for template in model.templates
            )
        sizes["stiffness work"] = model.world_count * STIFFNESS_WORK_SIZE
        sizes["coupled work"] = model.world_count * self.coupled_work_count
        sizes["chain"] = model.world_count * CHAIN_REGION * self.chain_capacity
        # Of larger worlds, groups may be small enough.
        self.space_dof_count = max(
            (min(template.dof_count, SPACE_DOFS_MAX) for template in model.templates), default=0
        )
        capacity = int(self.contact_capacity.max(initial=0))
        # Three rows of constraints take the room of a contact.
        rows = [sum(_ROW_COUNT[kind] for kind in template.equality[:, 0]) for template in model.templates]
        rows = np.array(rows, dtype=int)[model.world_template] + np.diff(springs["spring_start"].numpy())
        row_count = min(int(rows.max(initial=0)), SPACE_ROWS_MAX)
        self.space_contact_count = min(capacity, SPACE_CONTACTS_MAX) + -(-row_count // 3)
        m = 3 * self.space_contact_count
        self.space_work_count = 2 * (m + 16) ** 2
        given |= self._contact_space(model, real)
        for name, field in workspace_fields(real, linear).items():
            array = given.get(name)
            if array is None:
                # Scratch that only the first world of a launch uses is not to be touched for the others.
                array = zeros_on_demand(sizes[field.axis], field.dtype, model.device)
            setattr(self, name, array)
            setattr(self.data, name, array)

    def _interleave(self, slot_count: int, device: wp.Device) -> dict[str, wp.array]:
        """Allocate the arrays of contacts so that the data of one contact are contiguous.

        A world has slots for the most contacts that it could have, of which few are in use. In arrays by
        themselves, the first slots of every world would be on some twenty pages that nothing else is on: one
        step of 1024 robots took 3 to 9 % longer.
        """
        if slot_count == 0:
            return {}
        offsets, stride = contact_record(self.real, self.linear)
        fields = workspace_fields(self.real, self.linear)
        self._slots = zeros_on_demand(slot_count * (stride // 8) + CACHE_LINE // 8, wp.uint64, device)
        first = CACHE_LINE * -(-self._slots.ptr // CACHE_LINE)
        return {
            name: wp.array(
                ptr=first + offset,
                dtype=fields[name].dtype,
                shape=(slot_count,),
                strides=(stride,),
                device=device,
                copy=False,
            )
            for name, offset in offsets.items()
        }

    def _contact_space(self, model: Model, real: Any) -> dict[str, wp.array]:
        """Allocate the scratch of `contact_space`: a region of the same size for every world.

        On a CPU all worlds of a launch use the region of the first, which stays in the cache of its thread.
        The others are never touched, so they cost address space only.
        """
        count, dofs = self.space_contact_count, self.space_dof_count
        m = 3 * count
        has_space = dofs > 0 and not self.has_moments
        regions = model.world_count if has_space else 0
        padded = -(-m // 8) * 8
        sizes = {
            "space_basis": dofs * padded,
            "space_mobility": m * padded,
            "space_work": self.space_work_count,
        }
        fields = {
            name: field.dtype
            for name, field in workspace_fields(real, self.linear).items()
            if "space" in field.axis
        }
        return {
            name: zeros_on_demand(regions * sizes.get(name, count), dtype, model.device)
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
            if (n == 6).all():
                values[index] = max(values[index], SWEEP_NUMBERS * len(n))
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
        self._block_range = starts["block"][:-1], values[template_of]
        return {
            "tree_size": wp.array(sizes.astype(np.int32), dtype=int, device=device),
            "world_adjacency": wp.array(starts["adjacency"][:-1].astype(np.int32), dtype=int, device=device),
            "world_location": wp.array(starts["location"][:-1].astype(np.int32), dtype=int, device=device),
            "world_block": wp.array(starts["block"][:-1].astype(np.int32), dtype=int, device=device),
            **{
                name: wp.zeros(int(starts["adjacency"][-1]), dtype=wp.uint64, device=device)
                for name in ("coupling", "coupling_ordered", "adjacency")
            },
            "block_location": zeros_on_demand(int(starts["location"][-1]), int, device),
            "block_value": zeros_on_demand(int(starts["block"][-1]), self.linear, device),
        }

    def scratch(self, model: Model) -> list[Scratch]:
        """Return the arrays that steps leave nothing in."""
        ranges = scratch_ranges(model) | {"block": self._block_range}
        worlds = np.arange(model.world_count)
        result = []
        for name, field in workspace_fields(self.real, self.linear).items():
            array = getattr(self, name)
            if field.axis in ranges:
                result.append(Scratch(array, *ranges[field.axis]))
            elif field.axis in _WORLD_REGIONS and array.size:  # of the same size for every world
                size = array.size // model.world_count
                result.append(Scratch(array, size * worlds, np.full(model.world_count, size)))
        return result
