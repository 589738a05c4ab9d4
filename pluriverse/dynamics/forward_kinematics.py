"""Forward kinematics: public body poses and velocities from joint coordinates and velocities.

Reads   joint_q, joint_qd; joint frames and axes, body_com
Writes  body_q, body_qd

body_qd is the velocity of the centre of mass and the angular velocity, in world axes.
"""

import functools
import weakref
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.kinematics import BALL, D6, FREE, PRISMATIC, REVOLUTE, joint_functions
from pluriverse.dynamics.workspace import Workspace
from pluriverse.launch import launch_kernel
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_array, check_indices, check_state
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import BodyFlags


@functools.cache
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    quat = quat_type(real)
    place_child = joint_functions(real).place_child
    carry_axis = joint_functions(real).carry_axis
    attach_child = joint_functions(real).attach_child
    place_anchor = joint_functions(real).place_anchor
    spatial = spatial_functions(real).spatial
    angular_part = spatial_functions(real).angular_part
    linear_part = spatial_functions(real).linear_part
    widen_vec3 = conversion_functions(real).widen_vec3
    widen_rotation = conversion_functions(real).widen_rotation
    read_vec3 = conversion_functions(real).read_vec3

    @wp.func
    def is_selected(selected: wp.array[int], joint: int) -> bool:
        """Return whether the body that a joint moves is to be updated."""
        if selected.shape[0] == 0:
            return True
        return selected[joint] != 0

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.forward_kinematics.{precision_name(real)}")
    def place_bodies(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        selected: wp.array[int],  # [joint] 0: leave its body as it is; empty: update all
        due: wp.array[int],  # [world] 0: leave the world as it is; empty: update all
        # joint state
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        # scratch; positions and velocities about the origin of the tree's root body
        node_quat: wp.array[quat],  # [node]
        node_offset: wp.array[vec3],  # [node] m
        node_velocity: wp.array[vec6],  # [node] rad/s, m/s
        # body state
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vector],  # [body] m/s of the centre of mass, rad/s
    ):
        world = worlds[wp.tid()]
        if world < 0:
            return  # an entry of a list made on the device that names no world
        if due.shape[0] > 0:
            if due[world] == 0:
                return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        ref = vec3()
        # The previous body is mostly the parent, so its data are kept in registers.
        rotation = quat()
        offset = vec3()
        omega = vec3()
        linear = vec3()
        for local_node in range(topology.template_node[template + 1] - first_node):
            index = first_node + local_node
            node = node_base + local_node
            joint = node_base + topology.node_joint[index]
            body = body_base + topology.node_body[index]
            local_parent = topology.node_parent[index]
            if is_selected(selected, joint):
                joint_type = topology.node_type[index]
                public_dof = dof_base + topology.node_qd[index]
                parent_frame = joint_X_p[joint]
                anchor_p = widen_vec3(wp.transform_get_translation(parent_frame))
                if local_parent < 0:
                    rotation = quat(real(0.0), real(0.0), real(0.0), real(1.0))
                    omega = vec3()
                    linear = vec3()
                else:
                    if local_parent != local_node - 1:
                        parent = node_base + local_parent
                        rotation = node_quat[parent]
                        offset = node_offset[parent]
                        omega = angular_part(node_velocity[parent])
                        linear = linear_part(node_velocity[parent])
                    anchor_p = offset + wp.quat_rotate(rotation, anchor_p)
                coord = coord_base + topology.node_coord[index]
                shift = vec3()
                axis = vec3()
                anchor = rotation
                twist = vec6()  # of a D6 joint, about the origin of its parent frame
                if joint_type == D6:
                    frame = place_anchor(rotation, parent_frame)
                    linear_count = topology.node_linear_count[index]
                    for k in range(topology.node_dof_count[index]):
                        frame, shift, motion = carry_axis(
                            k < linear_count,
                            joint_axis[public_dof + k],
                            real(joint_q[coord + k]),
                            frame,
                            shift,
                        )
                        twist += real(joint_qd[public_dof + k]) * motion
                    rotation, shift = attach_child(frame, shift, joint_X_c[joint])
                else:
                    rotation, shift, axis, anchor = place_child(
                        joint_type,
                        joint_q,
                        coord,
                        joint_axis,
                        public_dof,
                        rotation,
                        parent_frame,
                        joint_X_c[joint],
                    )
                offset = anchor_p + shift
                if local_parent < 0:
                    ref = offset
                    offset = vec3()
                    anchor_p = -shift  # anchor_p - ref would cancel far from the world's origin
                com_arm = wp.quat_rotate(rotation, widen_vec3(body_com[body]))

                if joint_type == REVOLUTE:
                    rate = real(joint_qd[public_dof]) * axis
                    omega += rate
                    linear += wp.cross(anchor_p, rate)
                elif joint_type == PRISMATIC:
                    linear += real(joint_qd[public_dof]) * axis
                elif joint_type == BALL:
                    ball_rate = wp.quat_rotate(anchor, read_vec3(joint_qd, public_dof))
                    omega += ball_rate
                    linear += wp.cross(anchor_p, ball_rate)
                elif joint_type == D6:
                    omega += angular_part(twist)
                    linear += linear_part(twist) + wp.cross(anchor_p, angular_part(twist))
                elif joint_type == FREE_BELOW:
                    # Velocity of the centre of mass and angular velocity relative to the parent, in its joint
                    # frame.
                    free_rate = wp.quat_rotate(anchor, read_vec3(joint_qd, public_dof + 3))
                    omega += free_rate
                    linear += wp.quat_rotate(anchor, read_vec3(joint_qd, public_dof))
                    linear -= wp.cross(free_rate, offset + com_arm)
                elif joint_type == FREE:
                    omega = read_vec3(joint_qd, public_dof + 3)
                    linear = read_vec3(joint_qd, public_dof) - wp.cross(omega, com_arm)

                position = ref + offset
                body_q[body] = wp.transform(
                    wp.vec3(float(position[0]), float(position[1]), float(position[2])),
                    wp.quat(float(rotation[0]), float(rotation[1]), float(rotation[2]), float(rotation[3])),
                )
                v_com = linear + wp.cross(omega, offset + com_arm)
                body_qd[body] = wp.spatial_vector(
                    float(v_com[0]),
                    float(v_com[1]),
                    float(v_com[2]),
                    float(omega[0]),
                    float(omega[1]),
                    float(omega[2]),
                )
            else:
                # The body stays as it is and carries selected joints further out.
                rotation = widen_rotation(wp.transform_get_rotation(body_q[body]))
                kept_position = widen_vec3(wp.transform_get_translation(body_q[body]))
                if local_parent < 0:
                    ref = kept_position
                offset = kept_position - ref
                omega = widen_vec3(wp.spatial_bottom(body_qd[body]))
                arm = offset + wp.quat_rotate(rotation, widen_vec3(body_com[body]))
                linear = widen_vec3(wp.spatial_top(body_qd[body])) - wp.cross(omega, arm)
            node_quat[node] = rotation
            node_offset[node] = offset
            node_velocity[node] = spatial(omega, linear)

    return SimpleNamespace(place_bodies=place_bodies)


@wp.kernel(enable_backward=False)
def mark_articulation(
    indices: wp.array[int],  # [entry] articulation
    selected: wp.array[int],  # [articulation]
):
    """Select the articulation of one entry; entries that name none are ignored."""
    articulation = indices[wp.tid()]
    if articulation >= 0 and articulation < selected.shape[0]:
        selected[articulation] = 1


@wp.kernel(enable_backward=False)
def mark_masked_articulation(
    mask: wp.array[bool],  # [articulation]
    selected: wp.array[int],  # [articulation]
):
    """Select one articulation, or not."""
    selected[wp.tid()] = wp.where(mask[wp.tid()], 1, 0)


@wp.kernel(enable_backward=False)
def select_joint(
    # model
    joint_articulation: wp.array[int],  # [joint]
    joint_child: wp.array[int],  # [joint]
    body_flags: wp.array[int],  # [body]
    # what to select by
    articulation_selected: wp.array[int],  # [articulation] empty: all
    joint_mask: wp.array[bool],  # [joint] empty: all
    body_flag_filter: int,
    selected: wp.array[int],  # [joint]
):
    """Select one joint if everything asked for holds."""
    joint = wp.tid()
    result = int(0)
    if body_flags[joint_child[joint]] & body_flag_filter:
        result = 1
    if articulation_selected.shape[0] > 0:
        articulation = joint_articulation[joint]
        if articulation < 0:
            result = 0
        else:
            result = result * articulation_selected[articulation]
    if joint_mask.shape[0] > 0:
        if not joint_mask[joint]:
            result = 0
    selected[joint] = result


@wp.kernel(enable_backward=False)
def select_world_joint(
    worlds: wp.array[int],  # [slot]
    # model
    topology: Topology,
    joint_articulation: wp.array[int],  # [joint]
    # what to select by
    mask: wp.array[bool],  # [articulation]
    selected: wp.array[int],  # [joint]
):
    """Select the joints of one world whose articulations a mask selects."""
    world = worlds[wp.tid()]
    if world < 0:
        return
    template = topology.world_template[world]
    first_joint = topology.world_joint[world]
    for index in range(topology.template_node[template], topology.template_node[template + 1]):
        joint = first_joint + topology.node_joint[index]
        articulation = joint_articulation[joint]
        result = int(0)
        if articulation >= 0:
            if mask[articulation]:
                result = 1
        selected[joint] = result


class _Scratch:
    """Arrays of `eval_fk`, kept per model: a recorded call stays valid, and later calls allocate nothing."""

    def __init__(self, model: Model):
        node = model.joint_count
        self.real = wp.float64
        self.node_quat = wp.empty(node, dtype=quat_type(self.real), device=model.device)
        self.node_offset = wp.empty(node, dtype=vec3_type(self.real), device=model.device)
        self.node_velocity = wp.empty(node, dtype=vec6_type(self.real), device=model.device)
        self.articulation_selected = wp.zeros(model.articulation_count, dtype=int, device=model.device)
        self.joint_selected = wp.zeros(node, dtype=int, device=model.device)
        self.all = wp.empty(0, dtype=int, device=model.device)
        self.no_mask = wp.empty(0, dtype=wp.bool, device=model.device)


_scratches: weakref.WeakKeyDictionary[Model, _Scratch] = weakref.WeakKeyDictionary()


def _scratch_of(model: Model) -> _Scratch:
    scratch = _scratches.get(model)
    if scratch is None:
        scratch = _scratches[model] = _Scratch(model)
    return scratch


def _launch_place_bodies(
    model: Model,
    worlds: wp.array,
    joint_q: wp.array,
    joint_qd: wp.array,
    state: State,
    selected: wp.array,
    due: wp.array,
    scratch: tuple[wp.array, wp.array, wp.array],
    real: Any,
) -> None:
    launch_kernel(
        _kernels(real).place_bodies,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.joint_X_p,
            model.joint_X_c,
            model.joint_axis,
            model.body_com,
            selected,
            due,
            joint_q,
            joint_qd,
        ],
        outputs=[*scratch, state.body_q, state.body_qd],
        device=model.device,
    )


def eval_body_state(
    model: Model, worlds: wp.array, state: State, workspace: Workspace, *, due: wp.array | None = None
) -> None:
    """Write the body poses and velocities of `state` from its own joint state, for the worlds given.

    With `due`, of shape [world], worlds where it is 0 are left as they are.
    Overwrites `node_quat`, `node_offset` and `node_acceleration` of the workspace.
    """
    scratch = (workspace.node_quat, workspace.node_offset, workspace.node_acceleration)
    _launch_place_bodies(
        model,
        worlds,
        state.joint_q,
        state.joint_qd,
        state,
        workspace.no_selection,
        workspace.no_selection if due is None else due,
        scratch,
        workspace.real,
    )


def place_worlds(model: Model, worlds: wp.array, state: State) -> None:
    """Write the body poses and velocities of `state` from its own joint state, for the worlds given.

    Entries of -1 name no world.
    """
    scratch = _scratch_of(model)
    nodes = (scratch.node_quat, scratch.node_offset, scratch.node_velocity)
    _launch_place_bodies(
        model, worlds, state.joint_q, state.joint_qd, state, scratch.all, scratch.all, nodes, scratch.real
    )


def place_articulations(model: Model, worlds: wp.array, state: State, mask: wp.array) -> None:
    """Write the bodies of some articulations of the worlds given from the joint state of `state`.

    Bodies of others keep pose and velocity, to the last bit; worlds that have none of the articulations may
    be left out.

    Args:
        model: Model that the state belongs to.
        worlds: Worlds to look at; entries of -1 name none.
        state: State whose `body_q` and `body_qd` are written.
        mask: Articulations to place, truth values of shape [articulation].
    """
    scratch = _scratch_of(model)
    launch_kernel(
        select_world_joint,
        dim=worlds.size,
        inputs=[worlds, model.topology, model.structure.joint_articulation, mask],
        outputs=[scratch.joint_selected],
        device=model.device,
    )
    nodes = (scratch.node_quat, scratch.node_offset, scratch.node_velocity)
    selected = scratch.joint_selected
    _launch_place_bodies(
        model, worlds, state.joint_q, state.joint_qd, state, selected, scratch.all, nodes, scratch.real
    )


def _selection(
    model: Model,
    mask: wp.array | None,
    indices: wp.array | None,
    joint_mask: wp.array | None,
    body_flag_filter: int,
) -> wp.array:
    """Return the selected joints as integers on the device, empty for all."""
    scratch = _scratch_of(model)
    filtered = body_flag_filter & BodyFlags.ALL != BodyFlags.ALL
    if mask is None and indices is None and joint_mask is None and not filtered:
        return scratch.all
    if mask is not None and indices is not None:
        raise ValueError("eval_fk: both mask and indices were given; pass the articulations one way only.")
    for name, given, kind, count in (
        ("mask", mask, "articulation", model.articulation_count),
        ("joint_mask", joint_mask, "joint", model.joint_count),
    ):
        if given is not None and (not isinstance(given, wp.array) or given.shape != (count,)):
            raise ValueError(
                f"eval_fk: {name} has shape {getattr(given, 'shape', None)}, but the model has {count} "
                f"{kind}s; pass one entry per {kind}."
            )
    if joint_mask is not None and (joint_mask.dtype is not wp.bool or joint_mask.device != model.device):
        raise ValueError(
            f"eval_fk: joint_mask has type {joint_mask.dtype.__name__} on {joint_mask.device}, but must be "
            f"made of truth values on {model.device}."
        )
    articulations = scratch.all
    if mask is not None:
        if mask.device != model.device:
            raise ValueError(f"eval_fk: mask is on {mask.device}, but the model is on {model.device}.")
        articulations = scratch.articulation_selected
        launch_kernel(
            mark_masked_articulation,
            dim=mask.size,
            inputs=[mask],
            outputs=[articulations],
            device=model.device,
        )
    elif indices is not None:
        check_indices(model, indices, "eval_fk: indices")
        articulations = scratch.articulation_selected
        articulations.zero_()
        launch_kernel(
            mark_articulation,
            dim=indices.size,
            inputs=[indices],
            outputs=[articulations],
            device=model.device,
        )
    launch_kernel(
        select_joint,
        dim=model.joint_count,
        inputs=[
            model.structure.joint_articulation,
            model.structure.joint_child,
            model.structure.body_flags,
            articulations,
            scratch.no_mask if joint_mask is None else joint_mask,
            int(body_flag_filter),
        ],
        outputs=[scratch.joint_selected],
        device=model.device,
    )
    return scratch.joint_selected


def eval_fk(
    model: Model,
    joint_q: wp.array,
    joint_qd: wp.array,
    state: State,
    mask: wp.array | None = None,
    indices: wp.array | None = None,
    body_flag_filter: int = BodyFlags.ALL,
    *,
    joint_mask: wp.array | None = None,
) -> None:
    """Write body poses and velocities of `state` from joint coordinates and velocities.

    Bodies that are not selected keep their pose and velocity, to the last bit, and carry what hangs on them.

    Args:
        model: Model that the joint state belongs to.
        joint_q: Joint coordinates, shape [coord].
        joint_qd: Joint velocities in the public convention, shape [dof].
        state: State whose `body_q` and `body_qd` are written; its joint arrays are not touched.
        mask: Articulations to update, non-zero or True to select, shape [articulation]. All if None.
        indices: Indices of the articulations to update, on the model's device; not together with `mask`.
            Entries that name no articulation have no effect; a solver of the model reports them.
        body_flag_filter: `BodyFlags` of the bodies to update.
        joint_mask: Joints whose child bodies are to be updated, truth values of shape [joint]; joints further
            out are not included by themselves. All if None.

    Raises:
        ValueError: If both `mask` and `indices` are given, or a mask has the wrong shape, type or device.
    """
    check_state(model, state, "eval_fk: state")
    check_array(model, joint_q, (model.joint_coord_count,), wp.float32, "eval_fk: joint_q")
    check_array(model, joint_qd, (model.joint_dof_count,), wp.float32, "eval_fk: joint_qd")
    selected = _selection(model, mask, indices, joint_mask, int(body_flag_filter))
    scratch = _scratch_of(model)
    nodes = (scratch.node_quat, scratch.node_offset, scratch.node_velocity)
    _launch_place_bodies(
        model, model.structure.worlds, joint_q, joint_qd, state, selected, scratch.all, nodes, scratch.real
    )
