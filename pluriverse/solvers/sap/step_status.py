"""Step status: contact forces, status of each world, freezing of worlds that are no longer finite.

Reads   results of the Newton stage, state_in, state_out
Writes  rigid_contact_force, the status arrays of the solver; restores state_in for frozen worlds
"""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.dense import CTYPE
from pluriverse.math.number_rows import are_below
from pluriverse.math.precision import kernel_module
from pluriverse.model import Contacts, Model, State, Topology
from pluriverse.model.entity_names import entity_name
from pluriverse.model.schema import MOTION_ARRAYS
from pluriverse.solvers.base import SolverBase, name_worlds
from pluriverse.solvers.finite import are_finite_bodies, are_finite_read_bodies
from pluriverse.solvers.sap.options import SapOptions
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct
from pluriverse.types import Entity, GeoType
from pluriverse.warnings import DeepContactError, DeepContactWarning

# Speeds beyond this [m/s or rad/s] overflow the squares in single-precision stages within a few steps.
SPEED_MAX = wp.constant(1.0e12)
# A contact rests if its surfaces approach or part slower than this [m/s]: what falls by a millimetre is
# faster.
RESTING_SPEED = wp.constant(0.01)
# Time [s] for which a world has to rest too deep before it is reported: longer than an impact lasts.
RESTING_TIME = wp.constant(0.2)
# Depth at rest that is reported [m], and the share of the smallest extent of the thinner shape, if that is
# less: so much of a card or a wire may be crushed. Found by trial on robots: the palm of an Allegro hand
# rests in a link by 0.24 of its thickness, and feet and fingers in what they touch by less than 0.02.
RESTING_DEPTH_LIMIT = 0.005
RESTING_EXTENT_SHARE = 0.3
# Depth [m] up to which no shape is too thin: single precision has positions to that at a distance of 100 m.
DEPTH_ROUNDING = wp.constant(1e-5)
# Contacts that push open this much [m/s] faster or slower than Coulomb's law has them open before the step
# counts as approximated: far above rounding, and 5 µm in a step of 5 ms.
OPENING_MAX = wp.constant(0.001)


@wp.struct
class StepStatusArrays:
    """Arrays of both states, contacts and status; see `State`, `Contacts` and `SolverBase`."""

    joint_q_in: wp.array[float]
    joint_qd_in: wp.array[float]
    body_q_in: wp.array[wp.transform]
    body_qd_in: wp.array[wp.spatial_vector]
    joint_q_out: wp.array[float]
    joint_qd_out: wp.array[float]
    body_q_out: wp.array[wp.transform]
    body_qd_out: wp.array[wp.spatial_vector]
    contact_found: wp.array[int]
    contact_force: wp.array[wp.vec3]
    contact_shape0: wp.array[int]
    contact_shape1: wp.array[int]
    solve_iterations: wp.array[int]
    line_search_iterations: wp.array[int]
    converged: wp.array[int]
    contact_count: wp.array[int]
    truncated_contact_count: wp.array[int]
    unconverged_step_count: wp.array[int]
    approximated_step_count: wp.array[int]
    truncated_step_count: wp.array[int]
    needed_contact_count: wp.array[int]
    world_frozen: wp.array[int]
    world_placed: wp.array[int]
    resting_depth: wp.array[float]
    deep_time: wp.array[float]
    rested_deep: wp.array[int]
    deep_shape0: wp.array[int]
    deep_shape1: wp.array[int]
    shape_type: wp.array[int]
    shape_body: wp.array[int]
    shape_margin: wp.array[float]
    shape_aabb_lower: wp.array[wp.vec3]
    shape_aabb_upper: wp.array[wp.vec3]


@wp.func
def smallest_extent(arrays: StepStatusArrays, shape: int) -> float:
    """Return the smallest extent of a shape with its margin [m]; ground and sheets have none: infinity."""
    if shape < 0:
        return wp.inf
    kind = arrays.shape_type[shape]
    if kind == GeoType.PLANE or kind == GeoType.HFIELD:
        return wp.inf
    if kind == GeoType.MESH and arrays.shape_body[shape] < 0:
        return wp.inf  # terrain
    extent = wp.min(arrays.shape_aabb_upper[shape] - arrays.shape_aabb_lower[shape])
    if extent <= 0.0:
        return wp.inf
    return extent + 2.0 * arrays.shape_margin[shape]


_FORCES = """
    // All arrays of contacts are interleaved (`SapWorkspace`), so an offset in bytes is the same in each.
    const long long size = sap.contact_rn.strides[0];
    V depth = V(0);
    int deepest = -1;
    for (int slot = first; slot < end; ++slot) {
        auto entry = [&](const auto& array) { return (const V*)((const char*)array.data + size * slot); };
        const V* p = entry(sap.contact_impulse);
        const V* R = entry(sap.contact_frame);
        const bool acts = p[2] != V(0) || p[0] != V(0) || p[1] != V(0);
        float* f = (float*)((char*)force.data + (long long)force.strides[0] * slot);
        for (int r = 0; r < 3; ++r) {
            const V component = (R[3 * r] * p[0] + R[3 * r + 1] * p[1] + R[3 * r + 2] * p[2]) * rate;
            f[r] = acts ? (float)component : 0.0f;
        }
        if (!(p[2] > V(0))) continue;
        const V deep = -*entry(sap.contact_gap), speed = entry(sap.contact_velocity)[2];
        if (deep > depth && (speed < V(0) ? -speed : speed) < V(RESTING_SPEED)) {
            depth = deep;
            deepest = slot;
        }
    }
    return deepest;
"""

_APPROXIMATES = """
    const long long size = sap.contact_rn.strides[0];
    for (int slot = first; slot < end; ++slot) {
        auto entry = [&](const auto& array) { return (const V*)((const char*)array.data + size * slot); };
        const V normal = entry(sap.contact_impulse)[2];
        if (!(normal > V(0))) continue;
        const V wanted = *entry(sap.contact_bias) - *entry(sap.contact_rn) * normal;
        const V excess = entry(sap.contact_velocity)[2] - wanted;
        if (excess > V(OPENING_MAX) || excess < -V(OPENING_MAX)) return 1;
    }
    return 0;
"""


@made_once
def _kernels(real: Any, linear: Any) -> SimpleNamespace:
    SapData = sap_struct(real, linear)
    forces = f"using V = {CTYPE[real]}; constexpr double RESTING_SPEED = {RESTING_SPEED};" + _FORCES

    @wp.func_native(forces)
    def write_forces(sap: wp.ref[SapData], force: wp.array[wp.vec3], first: int, end: int, rate: real) -> int:
        """Write the forces of contacts, whose impulses act for 1 / rate; return the deepest one at rest."""
        ...

    @wp.func_native(f"using V = {CTYPE[real]}; constexpr double OPENING_MAX = {OPENING_MAX};" + _APPROXIMATES)
    def approximates(sap: wp.ref[SapData], first: int, end: int) -> int:
        """Return whether a contact that pushes opens faster or slower than Coulomb's law has it open."""
        ...

    @wp.func
    def find_too_deep(
        sap: SapData, arrays: StepStatusArrays, first: int, end: int, depth_limit: float, extent_share: float
    ) -> int:
        """Return the contact at rest that is farthest beyond the limits of its shapes, or -1."""
        result = int(-1)
        worst = float(0.0)
        for slot in range(first, end):
            depth = -float(sap.contact_gap[slot])
            rests = sap.contact_impulse[slot][2] > real(0.0)
            if wp.abs(float(sap.contact_velocity[slot][2])) >= RESTING_SPEED:
                rests = False
            if rests and depth > wp.min(depth_limit, DEPTH_ROUNDING):
                extent = wp.min(
                    smallest_extent(arrays, arrays.contact_shape0[slot]),
                    smallest_extent(arrays, arrays.contact_shape1[slot]),
                )
                excess = depth - wp.min(depth_limit, wp.max(extent_share * extent, DEPTH_ROUNDING))
                if excess > worst:
                    worst = excess
                    result = slot
        return result

    @wp.kernel(
        enable_backward=False,
        module=kernel_module("pluriverse.solvers.sap.step_status", real, linear),
    )
    def finalize_step(
        worlds: wp.array[int],
        stride: int,  # number of threads, see `world_thread_count`
        topology: Topology,
        coord_count: wp.array[int],  # [template]
        node_is_read: wp.array[int],  # [template node]
        is_follower: int,  # 1: in this row of steps another one came before
        partly: int,  # 1: only bodies that the next step reads have been written
        sap: SapData,
        arrays: StepStatusArrays,
        contact_capacity: int,
        depth_limit: float,  # m
        extent_share: float,  # of the smallest extent of the thinner shape; infinite: any
        follows_coulomb: int,  # 1: friction is to follow Coulomb's law, 0: it is meant to be convex
        dt: real,
    ):
        thread, _ = wp.tid()
        for index in range(thread, worlds.shape[0], stride):
            world = worlds[index]
            if world < 0:
                continue
            template = topology.world_template[world]
            dof0 = topology.world_dof[world]
            coord0 = topology.world_coord[world]
            dof_end = dof0 + topology.template_dof[template + 1] - topology.template_dof[template]
            coord_end = coord0 + coord_count[template]

            frozen = arrays.world_frozen[world]
            # NaN in forces: Newton's method has stopped at its start, which may be finite.
            if not wp.isfinite(sap.cost[world]):
                frozen = 1
            if arrays.contact_found[world] < 0:
                frozen = 1  # a body or shape has no finite place, so nothing is known about contacts
            if not (
                are_below(arrays.joint_q_out, coord0, coord_end - coord0, wp.inf)
                and are_below(arrays.joint_qd_out, dof0, dof_end - dof0, SPEED_MAX)
            ):
                frozen = 1

            # Coordinates may be finite where poses are not: joint frames and centres of mass are written
            # to, too.
            body0 = topology.world_body[world]
            body_end = body0 + topology.template_body[template + 1] - topology.template_body[template]
            if partly != 0:
                if not are_finite_read_bodies(
                    arrays.body_q_out,
                    arrays.body_qd_out,
                    body0,
                    body_end - body0,
                    topology.body_node,
                    topology.template_body[template],
                    node_is_read,
                    topology.template_node[template],
                ):
                    frozen = 1
            elif not are_finite_bodies(arrays.body_q_out, arrays.body_qd_out, body0, body_end):
                frozen = 1
            # A state that this row of steps has reached may lack bodies; the first one has all, as given.
            if is_follower == 0:
                arrays.world_placed[world] = 1
            elif frozen != 0 and arrays.world_frozen[world] == 0:
                arrays.world_placed[world] = 0

            start = sap.contact_start[world]
            count = sap.contact_count[world]
            depth = real(0.0)
            too_deep = int(-1)
            if frozen != 0:
                arrays.world_frozen[world] = 1
                for coord in range(coord0, coord_end):
                    arrays.joint_q_out[coord] = arrays.joint_q_in[coord]
                for dof in range(dof0, dof_end):
                    arrays.joint_qd_out[dof] = arrays.joint_qd_in[dof]
                for body in range(body0, body_end):
                    arrays.body_q_out[body] = arrays.body_q_in[body]
                    arrays.body_qd_out[body] = arrays.body_qd_in[body]
                for slot in range(start, start + count):
                    arrays.contact_force[slot] = wp.vec3()
            else:
                deepest = write_forces(sap, arrays.contact_force, start, start + count, real(1.0) / dt)
                if deepest >= 0:
                    depth = -sap.contact_gap[deepest]
                    # Near-rigid contacts never are so deep, so that this costs ordinary steps nothing.
                    if float(depth) > wp.min(depth_limit, DEPTH_ROUNDING):
                        too_deep = find_too_deep(sap, arrays, start, start + count, depth_limit, extent_share)

            truncated = int(0)
            if frozen == 0:
                needed = arrays.contact_found[world]
                truncated = needed - wp.min(count, contact_capacity)
                if truncated > 0:
                    arrays.truncated_step_count[world] = arrays.truncated_step_count[world] + 1
                if needed > arrays.needed_contact_count[world]:
                    arrays.needed_contact_count[world] = needed
                if sap.converged[world] == 0:
                    arrays.unconverged_step_count[world] = arrays.unconverged_step_count[world] + 1
                if follows_coulomb != 0:
                    arrays.approximated_step_count[world] = arrays.approximated_step_count[
                        world
                    ] + approximates(sap, start, start + count)
            arrays.resting_depth[world] = float(depth)
            deep_time = float(0.0)
            if too_deep >= 0:
                deep_time = arrays.deep_time[world] + float(dt)
                if deep_time >= float(RESTING_TIME):
                    arrays.rested_deep[world] = 1
                    arrays.deep_shape0[world] = arrays.contact_shape0[too_deep]
                    arrays.deep_shape1[world] = arrays.contact_shape1[too_deep]
            arrays.deep_time[world] = deep_time
            arrays.solve_iterations[world] = sap.iterations[world]
            arrays.line_search_iterations[world] = sap.line_search_iterations[world]
            arrays.converged[world] = sap.converged[world]
            arrays.contact_count[world] = wp.min(count, contact_capacity)
            arrays.truncated_contact_count[world] = wp.max(truncated, 0)

    return SimpleNamespace(finalize_step=finalize_step, write_forces=write_forces, approximates=approximates)


class StepStatus(SolverBase):
    """Status of worlds: what `SolverSAP` reports in addition to what every solver does."""

    options: SapOptions
    """Options with every default resolved. Also readable as attributes of the solver."""
    world_placed: wp.array[int]
    """0 where a world was stopped in a row of steps after the first one, so that bodies which steps in a row
    leave out are to be placed at the end, shape [world]."""
    last_resting_depth: wp.array[float]
    """Depth of the deepest contact at rest in the last step [m], shape [world]."""
    deep_time: wp.array[float]
    """Time for which a contact has rested too deep, by `resting_depth_limit` [s], shape [world]."""
    rested_deep: wp.array[int]
    """1 where that lasted for longer than an impact takes, shape [world]."""
    deep_shape0: wp.array[int]
    """First shape of the contact that rested farthest beyond its limit then, -1 for none, shape [world]."""
    deep_shape1: wp.array[int]
    """Second shape of it, shape [world]."""

    def __init__(self, model: Model):
        super().__init__(model)
        for name in ("last_resting_depth", "deep_time"):
            setattr(self, name, wp.zeros(model.world_count, dtype=float, device=model.device))
        self.world_placed = wp.ones(model.world_count, dtype=int, device=model.device)
        self.rested_deep = self.failure_counts("deep")
        for name in ("deep_shape0", "deep_shape1"):
            setattr(self, name, wp.full(model.world_count, -1, dtype=int, device=model.device))

    def _report_failures(self, *, strict: bool) -> None:
        """Report failures: besides those of every solver, worlds beyond `resting_depth_limit`.

        Raises:
            DeepContactError: In strict mode, if contacts of a world rest deeper.
        """
        super()._report_failures(strict=strict)
        deep = self._new_worlds("deep", self.rested_deep)
        if deep.size:
            depths = self.last_resting_depth.numpy()[deep]
            given = self.options.resting_depth_limit
            limit = f"{RESTING_DEPTH_LIMIT:g} m or {RESTING_EXTENT_SHARE:g} of the thickness of one of them"
            if given is not None:
                limit = f"resting_depth_limit = {given:g} m"
            self._raise_or_warn(
                f"{name_worlds(deep)}: shapes rest deeper in each other than {limit}, up to "
                f"{depths.max():.3g} m now"
                f"{self._deep_pair(int(deep[np.argmax(depths)]))}. If their contact "
                "stiffness (ShapeConfig.ke, N/m) is low for the load that they carry, raise it, or leave "
                "it out to have contacts as stiff as the step resolves; if a heavy body crushes a light "
                "one, shorten the time step; if joints hold them in each other, filter the pair; if they are "
                "meant to be soft, give SolverSAP a resting_depth_limit [m], which then holds alone.",
                DeepContactError if strict else DeepContactWarning,
                deep,
            )

    def _deep_pair(self, world: int) -> str:
        """Return text that names the two shapes of a world that rest too deep in each other."""
        shapes = [int(found.numpy()[world]) for found in (self.deep_shape0, self.deep_shape1)]
        if min(shapes) < 0:
            return ""
        first, second = (entity_name(self.model, Entity.SHAPE, shape) for shape in shapes)
        return f", as {first} and {second}"

    def reset_status(self) -> None:
        """Forget which contacts rested too deep."""
        for status in (self.last_resting_depth, self.deep_time, self.rested_deep):
            status.zero_()
        self.deep_shape0.fill_(-1)
        self.deep_shape1.fill_(-1)


def finalize_steps(
    model: Model,
    worlds: wp.array,
    coord_count: wp.array,
    state_in: State,
    state_out: State,
    contacts: Contacts,
    sap: SapWorkspace,
    solver: StepStatus,
    *,
    contact_capacity: int,
    depth_limit: float | None,
    follows_coulomb: bool,
    dt: float,
    node_is_read: wp.array,
    is_follower: bool,
    partly: bool,
) -> None:
    """Finish a step of `dt` [s]: write contact forces and status, put frozen worlds back to `state_in`.

    A contact is too deep beyond `depth_limit` [m], or if None beyond `RESTING_DEPTH_LIMIT` and
    `RESTING_EXTENT_SHARE`. `is_follower` is whether another step of a row came before, `partly` whether only
    bodies that the next one reads (`RigidGroups.node_is_read`) have been written.
    """
    arrays = StepStatusArrays()
    for name in MOTION_ARRAYS:
        setattr(arrays, f"{name}_in", getattr(state_in, name))
        setattr(arrays, f"{name}_out", getattr(state_out, name))
    arrays.contact_found = contacts.rigid_contact_found
    arrays.contact_force = contacts.rigid_contact_force
    arrays.contact_shape0 = contacts.rigid_contact_shape0
    arrays.contact_shape1 = contacts.rigid_contact_shape1
    arrays.solve_iterations = solver.last_solve_iterations
    arrays.line_search_iterations = solver.last_line_search_iterations
    arrays.converged = solver.last_converged
    arrays.contact_count = solver.last_contact_count
    arrays.truncated_contact_count = solver.last_truncated_contact_count
    arrays.unconverged_step_count = solver.unconverged_step_count
    arrays.approximated_step_count = solver.approximated_step_count
    arrays.truncated_step_count = solver.truncated_step_count
    arrays.needed_contact_count = solver.needed_contact_count
    arrays.world_frozen = solver.world_frozen
    arrays.world_placed = solver.world_placed
    arrays.resting_depth = solver.last_resting_depth
    arrays.deep_time = solver.deep_time
    arrays.rested_deep = solver.rested_deep
    arrays.deep_shape0, arrays.deep_shape1 = solver.deep_shape0, solver.deep_shape1
    for name in ("shape_type", "shape_body", "shape_margin", "shape_aabb_lower", "shape_aabb_upper"):
        setattr(arrays, name, getattr(model, name))
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(sap.real, sap.linear).finalize_step,
        dim=threads,
        inputs=[
            worlds,
            threads,
            model.topology,
            coord_count,
            node_is_read,
            int(is_follower),
            int(partly),
            sap.data,
            arrays,
            contact_capacity,
            RESTING_DEPTH_LIMIT if depth_limit is None else depth_limit,
            RESTING_EXTENT_SHARE if depth_limit is None else math.inf,
            int(follows_coulomb),
            dt,
        ],
        device=model.device,
    )
