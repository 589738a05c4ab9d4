"""Spring stage: turn springs on joint coordinates and on bodies into terms of the objective.

Reads   the tables of springs, joint_q of the old state, poses and motion subspaces of the dynamics
Writes  spring_coefficient, spring_impulse and spring_gain; tree_active of what springs move

A spring with excess e of its length, stiffness k and damping d has, at the end of a step of length h in which
its length grows at s, the force -k (e + h s) - d s, so that p = -h k e and g = h (d + h k). Springs that are
stiffer than the step resolves are softened to the near-rigid bound that drives have, 1 / (NEAR_RIGID w) with
w = c^T diag(A)^-1 c, at the same ratio p / g.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.precision import kernel_module, mat33_type, vec3_type, vec6_type
from pluriverse.math.rotation_vector import rotation_vector
from pluriverse.model import Model, State, Topology
from pluriverse.solvers.sap.joint_term_inputs import NEAR_RIGID
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct
from pluriverse.solvers.springs import BodySpringTable, TendonTable

# Floor of diag(A) [kg or kg·m²]: a guard of divisions only.
MASS_MIN = wp.constant(1e-12)
TENDON = wp.constant(-1)
"""Stands for the axis of a spring that is a tendon; others act along (0 to 2) or about (3 to 5) an axis."""


@wp.struct
class SpringSource:
    """Where in the tables a spring and its coefficients are."""

    axis: wp.array[int]  # [spring] TENDON, or an axis of a spring on a body
    index: wp.array[int]  # [spring] the tendon, or the spring on a body
    entry: wp.array[int]  # [spring entry] coefficient of a tendon


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    vec3, vec6, mat33 = vec3_type(real), vec6_type(real), mat33_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    names = (real, linear, dynamics_real)

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.spring_terms", *names))
    def set_spring_term(
        worlds: wp.array[int],
        topology: Topology,
        tendons: TendonTable,
        bodies: BodySpringTable,
        source: SpringSource,
        joint_q: wp.array[float],  # [coord] m, rad
        world_frozen: wp.array[int],  # [world]
        dynamics: DynamicsData,
        sap: SapData,
        dt: real,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first = topology.template_dof[template]
        first_node = topology.template_node[template]
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        tree0 = topology.world_tree[world]
        row0 = topology.world_row[world]
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            begin, end = sap.spring_entry_start[spring], sap.spring_entry_start[spring + 1]
            index, axis = source.index[spring], source.axis[spring]
            pull, gain = real(0.0), real(0.0)
            direction, arm = vec3(), vec3()
            if axis == TENDON:
                excess = real(tendons.offset[index])
                for entry in range(begin, end):
                    coefficient = real(tendons.coefficient[source.entry[entry]])
                    sap.spring_coefficient[entry] = coefficient
                    excess += coefficient * real(joint_q[tendons.entry_coord[source.entry[entry]]])
                stiffness = real(tendons.stiffness[index])
                pull = real(tendons.force[index]) + stiffness * (real(tendons.rest[index]) - excess)
                over = wp.max(excess - real(tendons.upper[index]), real(0.0))
                over += wp.min(excess - real(tendons.lower[index]), real(0.0))
                if over != real(0.0):
                    pull -= real(tendons.limit_stiffness[index]) * over
                    stiffness += real(tendons.limit_stiffness[index])
                gain = real(tendons.damping[index]) + dt * stiffness
            elif ((bodies.axes[index] >> axis) & 1) != 0:
                node = topology.body_node[
                    topology.template_body[template] + bodies.body[index] - topology.world_body[world]
                ]
                target = bodies.target[index]
                turn = wp.transform_get_rotation(target)
                unit = wp.vec3()
                unit[axis % 3] = 1.0
                direction = vec3(wp.quat_rotate(turn, unit))
                rotation = mat33(dynamics.node_rotation[node0 + node])
                arm = vec3(dynamics.node_offset[node0 + node]) + rotation * vec3(
                    wp.transform_get_translation(bodies.offset[index])
                )
                stiffness = real(bodies.stiffness[index])
                if axis < 3:
                    tree = tree0 + topology.node_tree[first_node + node]
                    point = vec3(dynamics.tree_ref[tree]) + arm
                    pull = stiffness * wp.dot(direction, vec3(wp.transform_get_translation(target)) - point)
                else:
                    pose = wp.quat_from_matrix(wp.mat33(rotation))
                    pose = pose * wp.transform_get_rotation(bodies.offset[index])
                    angle = rotation_vector(turn * wp.quat_inverse(pose))
                    pull = stiffness * wp.dot(direction, vec3(angle))
                gain = real(bodies.damping[index]) + dt * stiffness
                for entry in range(begin, end):
                    motion = vec6(dynamics.dof_motion[dof0 + sap.spring_dof[entry]])
                    omega = vec3(motion[0], motion[1], motion[2])
                    rate = omega
                    if axis < 3:
                        rate = vec3(motion[3], motion[4], motion[5]) + wp.cross(omega, arm)
                    sap.spring_coefficient[entry] = wp.dot(direction, rate)
            if world_frozen[world] != 0:
                pull, gain = real(0.0), real(0.0)

            # Degrees of freedom whose velocity is given only move the other end of the spring.
            w, given = real(0.0), real(0.0)
            drifted = int(-1)
            for entry in range(begin, end):
                dof = sap.spring_dof[entry]
                node = topology.dof_node[first + dof]
                tree = tree0 + topology.node_tree[first_node + node]
                coefficient = sap.spring_coefficient[entry]
                if dynamics.tree_prescribed[tree] != 0 and topology.node_parent[first_node + node] < 0:
                    given += coefficient * real(dynamics.dof_velocity_free[dof0 + dof])
                    sap.spring_coefficient[entry] = real(0.0)
                    drifted = tree
                else:
                    row = row0 + topology.dof_row[first + dof] + topology.dof_depth[first + dof]
                    w += coefficient * coefficient / wp.max(real(dynamics.mass_row[row]), real(MASS_MIN))
                    if gain > real(0.0) or pull != real(0.0):
                        sap.tree_active[tree] = 1
            if drifted >= 0 and axis != TENDON:
                drift = vec6(dynamics.tree_drift[drifted])
                omega = vec3(drift[0], drift[1], drift[2])
                if axis < 3:
                    omega = vec3(drift[3], drift[4], drift[5]) + wp.cross(omega, arm)
                given += wp.dot(direction, omega)
            impulse = dt * (pull - gain * given)
            gain = dt * gain
            if real(NEAR_RIGID) * w * gain > real(1.0):
                scale = real(1.0) / (real(NEAR_RIGID) * w * gain)
                impulse *= scale
                gain *= scale
            if w == real(0.0):
                impulse, gain = real(0.0), real(0.0)
            sap.spring_impulse[spring] = impulse
            sap.spring_gain[spring] = gain

    return SimpleNamespace(set_spring_term=set_spring_term)


class SpringSet:
    """The springs of a model by world, as rows of coefficients of its degrees of freedom.

    Args:
        model: The model.
        tendons: Springs on sums of joint coordinates; None for none.
        bodies: Springs on bodies; None for none.
    """

    def __init__(self, model: Model, tendons: "TendonTable | None", bodies: "BodySpringTable | None") -> None:
        self.tendons = tendons or TendonTable()
        self.bodies = bodies or BodySpringTable()
        parts = []
        if tendons is not None:
            parts.append(_tendon_rows(model, tendons))
        if bodies is not None:
            parts.append(_body_rows(model, bodies))
        columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        world, axis, index, count, dof, entry = columns
        order = np.argsort(world, kind="stable")
        start = np.concatenate([[0], np.cumsum(count[order])])
        begin = (np.cumsum(count) - count)[order]
        entries = np.repeat(begin - start[:-1], count[order]) + np.arange(start[-1])
        arrays = {
            "spring_start": np.searchsorted(world[order], np.arange(model.world_count + 1)),
            "spring_entry_start": start,
            "spring_dof": dof[entries],
            "spring_couples": (axis[order] == int(TENDON)) & (count[order] > 1),
        }
        device = model.device
        self.arrays = {
            name: wp.array(values.astype(np.int32), device=device) for name, values in arrays.items()
        }
        """Arrays of `SapWorkspace` that springs determine."""
        self.source = SpringSource()
        self.source.axis = wp.array(axis[order].astype(np.int32), device=device)
        self.source.index = wp.array(index[order].astype(np.int32), device=device)
        self.source.entry = wp.array(entry[entries].astype(np.int32), device=device)


def _world_of(first: wp.array, indices: np.ndarray) -> np.ndarray:
    """Return the worlds of entities, from the first entity of each world."""
    return np.searchsorted(first.numpy(), indices, side="right") - 1


def _tendon_rows(model: Model, table: TendonTable) -> tuple[np.ndarray, ...]:
    """Return world, axis, index and number of entries of each tendon, dof and index of each entry."""
    topology = model.topology
    counts = np.diff(table.entry_start.numpy())
    owner = np.repeat(np.arange(table.articulation.size), np.diff(table.tendon_start.numpy()))
    tendon = np.repeat(np.arange(len(counts)), counts)
    public = table.first_dof.numpy()[owner][tendon] + table.entry_dof.numpy()
    world = _world_of(topology.world_dof, public)
    first = topology.template_dof.numpy()[topology.world_template.numpy()[world]]
    number = topology.dof_public.numpy()
    template_dof = topology.template_dof.numpy()
    dof_template = np.repeat(np.arange(len(template_dof) - 1), np.diff(template_dof))
    internal = np.empty(len(number), dtype=np.int64)
    internal[template_dof[dof_template] + number] = np.arange(len(number)) - template_dof[dof_template]
    dof = internal[first + public - topology.world_dof.numpy()[world]]
    row_world = _world_of(topology.world_dof, table.first_dof.numpy()[owner])
    return (
        row_world,
        np.full(len(counts), int(TENDON)),
        np.arange(len(counts)),
        counts,
        dof,
        np.arange(len(public)),
    )


def _body_rows(model: Model, table: BodySpringTable) -> tuple[np.ndarray, ...]:
    """Return the same of springs on bodies, each of which has a row for every axis."""
    topology = model.topology
    body = table.body.numpy()
    world = _world_of(topology.world_body, body)
    template = topology.world_template.numpy()[world]
    first_node = topology.template_node.numpy()[template]
    first = topology.template_dof.numpy()[template]
    local = topology.template_body.numpy()[template] + body - topology.world_body.numpy()[world]
    parents, dof_counts = topology.node_parent.numpy(), topology.node_dof_count.numpy()
    node = topology.body_node.numpy()[local].astype(np.int64)
    while (fixed := (node >= 0) & (dof_counts[first_node + np.maximum(node, 0)] == 0)).any():
        node = np.where(fixed, parents[first_node + np.maximum(node, 0)], node)
    above = first_node + np.maximum(node, 0)
    dof = np.where(node >= 0, topology.node_dof.numpy()[above] + dof_counts[above] - 1, -1)
    chains = []
    while (dof >= 0).any():
        chains.append(dof)
        dof = np.where(dof >= 0, topology.dof_parent.numpy()[first + np.maximum(dof, 0)], -1)
    chain = np.repeat(np.stack(chains, axis=1) if chains else np.zeros((len(body), 0), np.int64), 6, axis=0)
    entries = chain[chain >= 0]
    return (
        np.repeat(world, 6),
        np.tile(np.arange(6), len(body)),
        np.repeat(np.arange(len(body)), 6),
        (chain >= 0).sum(axis=1),
        entries,
        np.zeros(len(entries), dtype=np.int64),
    )


def set_spring_terms(
    model: Model,
    worlds: wp.array,
    state: State,
    dynamics: Workspace,
    sap: SapWorkspace,
    springs: SpringSet,
    world_frozen: wp.array,
    *,
    dt: float,
) -> None:
    """Write the terms of every spring of the worlds for a step of `dt` [s], after `set_contact_terms`."""
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real).set_spring_term,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            springs.tendons,
            springs.bodies,
            springs.source,
            state.joint_q,
            world_frozen,
            dynamics.data,
            sap.data,
            dt,
        ],
        device=model.device,
    )
