"""Rigid groups: a body that moves by a joint, and all bodies that are fixed to it, taken as one.

Reads   joint frames and axes, body_mass, body_com, body_inertia
Writes  what `RigidGroups` holds

A robot file has many links without a joint of their own: feet, sensors, housings, frames without mass. The
*carrier* of a group is the body that a joint moves (or a root); the others are *welded* to it. The stages of
dynamics go over carriers only, with the mass properties of the groups, and from joint to joint with the
frames of both, in axes of the carriers. A welded body follows by one product with the pose of its carrier.

None of this depends on the joint coordinates, so it is kept from step to step. A user may write to the model
between two steps: a step compares what the groups were made of with what the model says, bit by bit, and
makes those of a world anew where something differs. Steps in a row (`SolverBase.in_row`) compare once.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.records import record_functions
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Model, Topology


@made_once
def carrier_frame_struct(real: Any) -> Any:
    """Return the record of a node that carries a group, for scalars of type `real`."""
    vec3 = vec3_type(real)
    quat = quat_type(real)
    vec6 = vec6_type(real)

    @wp.struct
    class CarrierFrame:
        # The joint's frame on the carrier of the parent (on the world at a root), in axes of that carrier
        rotation: quat
        position: vec3  # m
        # The joint's frame on the body: inverse orientation, position [m]
        child_rotation: quat
        child_position: vec3
        # Orientation on the parent's carrier where a joint of one dof is at 0, and the axis of the joint's
        # first dof, in axes of the body
        rest: quat
        axis: vec3
        # The whole group, in axes of the carrier; inertia about its centre as (xx, xy, xz, yy, yz, zz)
        mass: real  # kg
        com: vec3  # m
        inertia: vec6  # kg m^2

    return CarrierFrame


@made_once
def weld_frame_struct(real: Any) -> Any:
    """Return the record of a welded node, for scalars of type `real`."""
    vec3 = vec3_type(real)
    quat = quat_type(real)

    @wp.struct
    class WeldFrame:
        # The body, and its own centre of mass, in axes of the carrier
        rotation: quat
        position: vec3  # m
        com: vec3  # m

    return WeldFrame


@made_once
def rigid_groups_struct(real: Any) -> Any:
    """Return the `wp.struct` that hands rigid groups to a kernel, for scalars of type `real`."""
    CarrierFrame = carrier_frame_struct(real)
    WeldFrame = weld_frame_struct(real)

    @wp.struct
    class RigidGroupsData:
        carriers: wp.array(dtype=CarrierFrame)  # [node]
        welds: wp.array(dtype=WeldFrame)  # [node]
        world_made: wp.array[int]  # [world] how often they were made, of the copies below
        parent_frame: wp.array[wp.transform]  # [joint] joint_X_p
        child_frame: wp.array[wp.transform]  # [joint] joint_X_c
        joint_axis: wp.array[wp.vec3]  # [dof]
        body_mass: wp.array[float]  # [body]
        body_com: wp.array[wp.vec3]  # [body]
        body_inertia: wp.array[wp.mat33]  # [body]
        # What the first world of each template had at the beginning, which nobody changes: worlds that have
        # the same are compared with that, which stays in the cache, and not with copies of their own.
        world_is_common: wp.array[int]  # [world] 1 where the groups were made of that
        common_parent_frame: wp.array[wp.transform]  # [template node]
        common_child_frame: wp.array[wp.transform]  # [template node]
        common_axis: wp.array[wp.vec3]  # [template dof]
        common_mass: wp.array[float]  # [template body]
        common_com: wp.array[wp.vec3]  # [template body]
        common_inertia: wp.array[wp.mat33]  # [template body]
        # [4 * world] which world it was last compared with, plus 1; `world_made` of both then; whether they
        # were alike (`rigid_groups_lanes.py`)
        world_likeness: wp.array[int]
        node_is_read: wp.array[int]  # [template node] 0: welded, and no stage of a step looks up where it is

    return RigidGroupsData


@wp.func
def is_welded(topology: Topology, index: int) -> bool:
    """Return whether a node, counted over all templates, is fixed to another body."""
    return topology.node_dof_count[index] == 0 and topology.node_parent[index] >= 0


@made_once
def group_functions(real: Any) -> SimpleNamespace:
    """Return the functions on the frames of joints for scalars of type `real`.

    The members are `wp.func`s: `is_turned`, `chain_rotation`, `attach_welded`.
    """
    vec3 = vec3_type(real)
    quat = quat_type(real)
    quat_renormalize = rotation_functions(real).quat_renormalize

    @wp.func
    def is_turned(q: quat) -> bool:
        """Return whether a joint frame is rotated, which most are not.

        The scalar part does not show it: it rounds to 1 for small rotations.
        """
        return q[0] != real(0.0) or q[1] != real(0.0) or q[2] != real(0.0)

    @wp.func
    def chain_rotation(outer: quat, inner: quat) -> quat:
        """Return the product of two orientations, the second mostly the identity."""
        result = outer
        if is_turned(inner):
            result = outer * inner
        return result

    @wp.func
    def attach_welded(rotation: quat, position: vec3, child_rotation: quat, child_position: vec3):
        """Return the pose of a body from that of its joint's frame, both in axes of one carrier."""
        turned = quat_renormalize(chain_rotation(rotation, child_rotation))
        return turned, position - wp.quat_rotate(turned, child_position)

    return SimpleNamespace(is_turned=is_turned, chain_rotation=chain_rotation, attach_welded=attach_welded)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    quat = quat_type(real)
    vec6 = vec6_type(real)
    mat33 = mat33_type(real)
    data_struct = rigid_groups_struct(real)
    CarrierFrame = carrier_frame_struct(real)
    WeldFrame = weld_frame_struct(real)
    functions = group_functions(real)
    is_turned = functions.is_turned
    chain_rotation = functions.chain_rotation
    attach_welded = functions.attach_welded
    quat_renormalize = rotation_functions(real).quat_renormalize
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    rotate_sym = rotation_functions(real).rotate_sym
    widen_vec3 = conversion_functions(real).widen_vec3
    widen_axis = conversion_functions(real).widen_axis
    widen_rotation = conversion_functions(real).widen_rotation
    transforms = record_functions(wp.transform)
    numbers = record_functions(float)
    vectors = record_functions(wp.vec3)
    matrices = record_functions(wp.mat33)
    transforms_kept, keep_transforms = transforms.is_kept, transforms.keep
    numbers_kept, keep_numbers = numbers.is_kept, numbers.keep
    vectors_kept, keep_vectors = vectors.is_kept, vectors.keep
    matrices_kept, keep_matrices = matrices.is_kept, matrices.keep
    same_transforms, same_numbers = transforms.is_same, numbers.is_same
    same_vectors, same_matrices = vectors.is_same, matrices.is_same

    @wp.func
    def frame_rotation(frame: wp.transform) -> quat:
        """Return the orientation of a joint frame; the identity to the last bit where it is not turned."""
        given = wp.transform_get_rotation(frame)
        result = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        if given[0] != 0.0 or given[1] != 0.0 or given[2] != 0.0:
            result = widen_rotation(given)
        return result

    @wp.func
    def symmetric_entries(tensor: mat33) -> vec6:
        """Return a symmetric tensor as (xx, xy, xz, yy, yz, zz)."""
        return vec6(tensor[0, 0], tensor[0, 1], tensor[0, 2], tensor[1, 1], tensor[1, 2], tensor[2, 2])

    @wp.func
    def point_inertia(mass: real, arm: vec3) -> vec6:
        """Return the inertia of a point mass, as (xx, xy, xz, yy, yz, zz)."""
        x, y, z = arm[0], arm[1], arm[2]
        return mass * vec6(y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y)

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.rigid_groups.{precision_name(real)}")
    def update_groups(
        worlds: wp.array[int],  # [slot]
        stride: int,  # number of threads, see `world_thread_count`
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        body_mass: wp.array[float],  # [body] kg
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        body_inertia: wp.array[wp.mat33],  # [body] kg m^2, about the centre of mass, body axes
        # groups
        groups: data_struct,
    ):
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            world = worlds[slot]
            if world < 0:
                continue
            template = topology.world_template[world]
            first_node = topology.template_node[template]
            node_count = topology.template_node[template + 1] - first_node
            node_base = topology.world_joint[world]
            body_base = topology.world_body[world]
            body_count = topology.template_body[template + 1] - topology.template_body[template]
            dof_base = topology.world_dof[world]
            dof_count = topology.template_dof[template + 1] - topology.template_dof[template]
            is_made, is_common = groups.world_made[world] != 0, int(0)
            if not is_made or groups.world_is_common[world] != 0:
                first_dof, first_body = topology.template_dof[template], topology.template_body[template]
                is_common = same_transforms(
                    joint_X_p, node_base, groups.common_parent_frame, first_node, node_count
                )
                is_common *= same_transforms(
                    joint_X_c, node_base, groups.common_child_frame, first_node, node_count
                )
                is_common *= same_vectors(joint_axis, dof_base, groups.common_axis, first_dof, dof_count)
                is_common *= same_numbers(body_mass, body_base, groups.common_mass, first_body, body_count)
                is_common *= same_vectors(body_com, body_base, groups.common_com, first_body, body_count)
                is_common *= same_matrices(
                    body_inertia, body_base, groups.common_inertia, first_body, body_count
                )
                if is_made and is_common != 0:
                    continue
            else:
                same = transforms_kept(joint_X_p, groups.parent_frame, node_base, node_count)
                same = same * transforms_kept(joint_X_c, groups.child_frame, node_base, node_count)
                same = same * vectors_kept(joint_axis, groups.joint_axis, dof_base, dof_count)
                same = same * numbers_kept(body_mass, groups.body_mass, body_base, body_count)
                same = same * vectors_kept(body_com, groups.body_com, body_base, body_count)
                same = same * matrices_kept(body_inertia, groups.body_inertia, body_base, body_count)
                if same != 0:
                    continue
            keep_transforms(joint_X_p, groups.parent_frame, node_base, node_count)
            keep_transforms(joint_X_c, groups.child_frame, node_base, node_count)
            keep_vectors(joint_axis, groups.joint_axis, dof_base, dof_count)
            keep_numbers(body_mass, groups.body_mass, body_base, body_count)
            keep_vectors(body_com, groups.body_com, body_base, body_count)
            keep_matrices(body_inertia, groups.body_inertia, body_base, body_count)
            groups.world_made[world] = groups.world_made[world] + 1
            groups.world_is_common[world] = is_common

            # Frames, and masses. The centre of mass of a group is summed as its distance from the carrier's.
            for local_node in range(node_count):
                index = first_node + local_node
                joint = node_base + topology.node_joint[index]
                body = body_base + topology.node_body[index]
                rotation = frame_rotation(joint_X_p[joint])
                position = widen_vec3(wp.transform_get_translation(joint_X_p[joint]))
                child_rotation = wp.quat_inverse(frame_rotation(joint_X_c[joint]))
                child_position = widen_vec3(wp.transform_get_translation(joint_X_c[joint]))
                com = widen_vec3(body_com[body])
                local_parent = topology.node_parent[index]
                if local_parent >= 0:
                    if is_welded(topology, first_node + local_parent):
                        parent = groups.welds[node_base + local_parent]
                        position = parent.position + wp.quat_rotate(parent.rotation, position)
                        rotation = chain_rotation(parent.rotation, rotation)
                        if is_turned(rotation):
                            rotation = quat_renormalize(rotation)
                if is_welded(topology, index):
                    weld = WeldFrame()
                    weld_rotation, weld_position = attach_welded(
                        rotation, position, child_rotation, child_position
                    )
                    weld.rotation = weld_rotation
                    weld.position = weld_position
                    weld.com = weld_position + wp.quat_rotate(weld_rotation, com)
                    groups.welds[node_base + local_node] = weld
                else:
                    frame = CarrierFrame()
                    frame.rotation = rotation
                    frame.position = position
                    frame.child_rotation = child_rotation
                    frame.child_position = child_position
                    frame.rest = quat_renormalize(chain_rotation(rotation, child_rotation))
                    if topology.node_dof_count[index] > 0:
                        axis = widen_axis(joint_axis[dof_base + topology.node_qd[index]])
                        frame.axis = wp.quat_rotate_inv(child_rotation, axis)
                    frame.mass = real(body_mass[body])
                    frame.com = com
                    groups.carriers[node_base + local_node] = frame

            for local_node in range(node_count):
                index = first_node + local_node
                if is_welded(topology, index):
                    continue
                # The group of a carrier lies among the nodes of its branch, which follow it.
                node = node_base + local_node
                frame = groups.carriers[node]
                centre = frame.com
                mass = frame.mass
                moment = vec3()
                end = int(local_node + 1)
                while end < node_count:
                    if topology.node_parent[first_node + end] < local_node:
                        break
                    if topology.node_carrier[first_node + end] == local_node and is_welded(
                        topology, first_node + end
                    ):
                        part_mass = real(body_mass[body_base + topology.node_body[first_node + end]])
                        mass += part_mass
                        moment += part_mass * (groups.welds[node_base + end].com - centre)
                    end += 1
                if mass > real(0.0):
                    centre += moment / mass
                own_inertia = mat33(body_inertia[body_base + topology.node_body[index]])
                inertia = symmetric_entries(own_inertia)
                inertia += point_inertia(frame.mass, frame.com - centre)
                for local in range(local_node + 1, end):
                    if topology.node_carrier[first_node + local] == local_node and is_welded(
                        topology, first_node + local
                    ):
                        part = groups.welds[node_base + local]
                        body = body_base + topology.node_body[first_node + local]
                        inertia += rotate_sym(matrix_from_quat(part.rotation), mat33(body_inertia[body]))
                        inertia += point_inertia(real(body_mass[body]), part.com - centre)
                frame.mass = mass
                frame.com = centre
                frame.inertia = inertia
                groups.carriers[node] = frame

    return SimpleNamespace(update_groups=update_groups)


def _template_nodes(model: Model, bodies: np.ndarray) -> np.ndarray:
    """Return the nodes, counted over all templates, that move some bodies."""
    topology = model.topology
    first_body = topology.world_body.numpy()
    world = model.structure.body_world.numpy()[bodies]
    template = model.world_template[world]
    body = topology.template_body.numpy()[template] + bodies - first_body[world]
    nodes: np.ndarray = topology.template_node.numpy()[template] + topology.body_node.numpy()[body]
    return nodes


def _find_read_nodes(model: Model) -> np.ndarray:
    """Return `RigidGroups.node_is_read` of a model without springs."""
    is_read = np.concatenate(
        [(template.node_carrier < 0) | (template.node_dof_count > 0) for template in model.templates]
    )
    structure = model.structure
    for name in ("shape_body", "equality_constraint_body1", "equality_constraint_body2"):
        bodies = getattr(structure, name).numpy()
        is_read[_template_nodes(model, np.unique(bodies[bodies >= 0]))] = True
    return is_read.astype(np.int32)


class RigidGroups:
    """The rigid groups of all worlds of a model, made once and brought up to date by `update`.

    Args:
        model: Model that the groups belong to.
        real: `wp.float32` or `wp.float64`, the precision of what is kept.
    """

    node_is_read: wp.array
    """0 for welded bodies that no stage of a step reads: those without shapes, constraints and springs,
    shape [template node]."""
    leaves_out_bodies: bool
    """Whether there are such bodies."""
    data: Any
    """The arrays as one `wp.struct` (`rigid_groups_struct(real)`), to pass to a kernel."""

    def __init__(self, model: Model, real: Any):
        self._model = model
        self._real = real
        self.data = rigid_groups_struct(real)()
        device = model.device
        count = model.joint_count
        self.data.carriers = wp.zeros(count, dtype=carrier_frame_struct(real), device=device)
        self.data.welds = wp.zeros(count, dtype=weld_frame_struct(real), device=device)
        self.data.world_made = wp.zeros(model.world_count, dtype=int, device=device)
        self.data.world_likeness = wp.zeros(4 * model.world_count, dtype=int, device=device)
        self.data.parent_frame = wp.zeros_like(model.joint_X_p)
        self.data.child_frame = wp.zeros_like(model.joint_X_c)
        for name in ("joint_axis", "body_mass", "body_com", "body_inertia"):
            setattr(self.data, name, wp.zeros_like(getattr(model, name)))
        self.data.world_is_common = wp.zeros(model.world_count, dtype=int, device=device)
        self._keep_common()
        self.node_is_read = wp.array(_find_read_nodes(model), dtype=int, device=device)
        self.data.node_is_read = self.node_is_read
        self.leaves_out_bodies = not self.node_is_read.numpy().all()

    def read_bodies(self, bodies: np.ndarray) -> None:
        """Let steps place some more bodies, of which a stage looks up where they are."""
        is_read = self.node_is_read.numpy()
        is_read[_template_nodes(self._model, bodies)] = 1
        self.node_is_read.assign(is_read)

    def _keep_common(self) -> None:
        """Copy what the model says of the first world of each template."""
        model, topology = self._model, self._model.topology
        worlds = [int(template.worlds[0]) for template in model.templates]
        for name, source, start, template_start in (
            ("parent_frame", model.joint_X_p, topology.world_joint, topology.template_node),
            ("child_frame", model.joint_X_c, topology.world_joint, topology.template_node),
            ("axis", model.joint_axis, topology.world_dof, topology.template_dof),
            ("mass", model.body_mass, topology.world_body, topology.template_body),
            ("com", model.body_com, topology.world_body, topology.template_body),
            ("inertia", model.body_inertia, topology.world_body, topology.template_body),
        ):
            first, bounds = start.numpy(), template_start.numpy()
            common = wp.empty(int(bounds[-1]), dtype=source.dtype, device=model.device)
            for world, begin, end in zip(worlds, bounds[:-1], bounds[1:], strict=True):
                if end > begin:
                    size = int(end - begin)
                    wp.copy(common, source, int(begin), int(first[world]), size)
            setattr(self.data, f"common_{name}", common)

    def update(self, worlds: wp.array) -> None:
        """Make the groups of those worlds anew of which the model says something else by now."""
        model = self._model
        threads = world_thread_count(worlds)
        launch_kernel(
            _kernels(self._real).update_groups,
            dim=threads,
            inputs=[
                worlds,
                threads,
                model.topology,
                model.joint_X_p,
                model.joint_X_c,
                model.joint_axis,
                model.body_mass,
                model.body_com,
                model.body_inertia,
                self.data,
            ],
            device=model.device,
        )
