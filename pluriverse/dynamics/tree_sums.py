"""Sums over the bodies of a tree at the end of a step, for the balance stage: inertia, momenta, energy.

Reads   rigid groups, joint_armature; workspace: dof_velocity_next; node_quat, node_offset, node_velocity of
        the tree states at the end of the step
Writes  workspace: next_composite, next_momentum, next_energy

All are about the origin of the root body at the end of the step. On a CPU eight worlds of one template are
summed at once (`math.lanes`), each with the bits that it has alone.
"""

import ctypes
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import carrier_frame_struct, is_welded, rigid_groups_struct
from pluriverse.dynamics.rigid_groups_lanes import GROUPS_IN_LANES
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.lane_motion import LANE_MOTION
from pluriverse.math.lanes import lane_code
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import vec6_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions, vec10_type
from pluriverse.model import Topology
from pluriverse.types import JointType

# The tile: the topology of the template, which all eight worlds share, and where each world's data begin.
_TILE = """
    const int template_index = topology.world_template.data[worlds.data[first]];
    const int first_node = topology.template_node.data[template_index];
    const int first_tree = topology.template_tree.data[template_index];
    const int first_dof = topology.template_dof.data[template_index];
    const int tree_count = topology.template_tree.data[template_index + 1] - first_tree;
    const int node_count = topology.template_node.data[template_index + 1] - first_node;
    const int* dof_public = topology.dof_public.data + first_dof;
    int node_base[8], dof_base[8], tree_base[8];
    for (int l = 0; l < 8; ++l) {
        const int world = worlds.data[first + l];
        node_base[l] = topology.world_joint.data[world];
        dof_base[l] = topology.world_dof.data[world];
        tree_base[l] = topology.world_tree.data[world];
    }
    bool alike = true;
    for (int l = 1; l < 8; ++l) alike = alike && is_like(worlds.data[first + l], worlds.data[first]);
    auto is_welded = [&](int node) {
        const int index = first_node + node;
        return topology.node_dof_count.data[index] == 0 && topology.node_parent.data[index] >= 0;
    };
    T* quats = PLURIVERSE_LANES(4 * node_count);
    T* offsets = PLURIVERSE_LANES(3 * node_count);
    T* velocities = PLURIVERSE_LANES(6 * node_count);
"""

# A tree that is calm in all worlds is left out. Its nodes and its dofs are contiguous.
_SUM = """
    for (int tree = 0; tree < tree_count; ++tree) {
        bool has_motion = false;
        for (int l = 0; l < 8; ++l) has_motion |= data.tree_regime.data[tree_base[l] + tree] != 0;  // CALM
        if (!has_motion) continue;
        const int root = topology.tree_node.data[first_tree + tree];
        const int node_end = topology.tree_node_end.data[first_tree + tree];
        const bool is_free = topology.node_type.data[first_node + root] == FREE;
        const int begin = topology.tree_dof.data[first_tree + tree] + (is_free ? 6 : 0);
        const int end = topology.tree_dof_end.data[first_tree + tree];

        int at[8];
        T energy = T(0);
        for (int dof = begin; dof < end; ++dof) {
            T speed, armature;
            for (int l = 0; l < 8; ++l) {
                speed[l] = data.dof_velocity_next.data[dof_base[l] + dof];
                armature[l] = S(joint_armature.data[dof_base[l] + dof_public[dof]]);
            }
            energy += armature * speed * speed;
        }
        energy = T(0.5) * energy;
        T sums[16];
        for (int k = 0; k < 16; ++k) sums[k] = T(0);
        int loaded = root;
        for (int node = root; node < node_end; ++node) {
            if (is_welded(node)) continue;
            if (node >= loaded) {
                // All carriers up to the next welded node, of which nothing is kept.
                while (loaded < node_end && (loaded <= node || !is_welded(loaded))) ++loaded;
                const int run = loaded - node;
                for (int l = 0; l < 8; ++l) at[l] = 4 * (node_base[l] + node);
                gather((const S*)data.node_quat.data, at, 4 * run, quats + 4 * node);
                for (int l = 0; l < 8; ++l) at[l] = 3 * (node_base[l] + node);
                gather((const S*)data.node_offset.data, at, 3 * run, offsets + 3 * node);
                for (int l = 0; l < 8; ++l) at[l] = 6 * (node_base[l] + node);
                gather((const S*)states.node_velocity.data, at, 6 * run, velocities + 6 * node);
            }
            T group[10];  // mass, centre, inertia about it, in axes of the carrier
            if (alike) {
                const S* one = (const S*)groups.carriers.data + MASS_PLACE
                    + (node_base[0] + node) * FRAME_SIZE;
                for (int k = 0; k < 10; ++k) group[k] = T(one[k]);
            } else {
                for (int l = 0; l < 8; ++l) at[l] = (node_base[l] + node) * FRAME_SIZE;
                gather((const S*)groups.carriers.data + MASS_PLACE, at, 10, group);
            }
            const T* q = quats + 4 * node;
            const T* o = offsets + 3 * node;
            const M3 rotation = matrix_from_quat(Q(q[0], q[1], q[2], q[3]));
            const V3 com = V3(o[0], o[1], o[2]) + wp::mul(rotation, V3(group[1], group[2], group[3]));
            V6 own, velocity;
            for (int k = 0; k < 6; ++k) {
                own[k] = group[4 + k];
                velocity[k] = velocities[6 * node + k];
            }
            const V6 turned = rotate_sym(rotation, symmetric_matrix(own));
            const V10 inertia = inertia_about_reference(group[0], com, turned);
            const V6 part = inertia_times_motion(inertia, velocity);
            for (int k = 0; k < 10; ++k) sums[k] += inertia[k];
            for (int k = 0; k < 6; ++k) sums[10 + k] += part[k];
            energy += T(0.5) * wp::dot(part, velocity);
        }
        for (int l = 0; l < 8; ++l) at[l] = 10 * (tree_base[l] + tree);
        scatter(sums, 10, (S*)data.next_composite.data, at);
        for (int l = 0; l < 8; ++l) at[l] = 6 * (tree_base[l] + tree);
        scatter(sums + 10, 6, (S*)data.next_momentum.data, at);
        for (int l = 0; l < 8; ++l) at[l] = tree_base[l] + tree;
        scatter(&energy, 1, data.next_energy.data, at);
    }
"""


def _tile_text(real: Any) -> str:
    """Return the snippet, with the layout of the frames of carriers and the number of a free joint."""
    frame = carrier_frame_struct(real).ctype
    size = ctypes.sizeof(real._type_)
    numbers = {
        "FRAME_SIZE": ctypes.sizeof(frame) // size,
        "MASS_PLACE": frame.mass.offset // size,
        "FREE": int(JointType.FREE),
    }
    names = "".join(f"constexpr int {name} = {number};\n" for name, number in numbers.items())
    return lane_code(real, LANE_MOTION + GROUPS_IN_LANES + names + _TILE + _SUM)


@made_once
def tree_sum_functions(real: Any) -> SimpleNamespace:
    """Return the `wp.func`s that sum over the bodies of trees, for scalars of type `real`.

    - `sum_tree(topology, groups, joint_armature, data, states, world, tree)`: one tree, counted from the
      first of its world.
    - `sum_tile(worlds, first, topology, groups, joint_armature, data, states)`: the trees of eight worlds
      that `math.lanes.is_tile` accepts, of a template that is plain in `tree_states.py`, which bounds the
      memory on the stack; except those that are calm in all of them.
    """
    vec6 = vec6_type(real)
    vec10 = vec10_type(real)
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    states_struct = tree_states_struct(real)
    weighted_square = number_functions(real).weighted_square
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    rotate_sym = rotation_functions(real).rotate_sym
    symmetric_matrix = spatial_functions(real).symmetric_matrix
    inertia_about_reference = spatial_functions(real).inertia_about_reference
    inertia_times_motion = spatial_functions(real).inertia_times_motion

    @wp.func
    def sum_tree(
        topology: Topology,
        groups: groups_struct,
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        data: data_struct,
        states: states_struct,  # at the end of the step
        world: int,
        tree: int,
    ):
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        index = topology.template_tree[template] + tree
        node_base = topology.world_joint[world]
        dof_base = topology.world_dof[world]
        root = topology.tree_node[index]
        begin = topology.tree_dof[index]
        if topology.node_type[first_node + root] == JointType.FREE:
            begin += 6
        energy = real(0.5) * weighted_square(
            data.dof_velocity_next,
            joint_armature,
            dof_base,
            topology.dof_public,
            topology.template_dof[template] + begin,
            dof_base + begin,
            topology.tree_dof_end[index] - begin,
        )
        composite = vec10()
        momentum = vec6()
        for local_node in range(root, topology.tree_node_end[index]):
            if is_welded(topology, first_node + local_node):
                continue
            node = node_base + local_node
            group = groups.carriers[node]
            rotation = matrix_from_quat(data.node_quat[node])
            com = data.node_offset[node] + rotation * group.com
            turned = rotate_sym(rotation, symmetric_matrix(group.inertia))
            inertia = inertia_about_reference(group.mass, com, turned)
            velocity = states.node_velocity[node]
            part = inertia_times_motion(inertia, velocity)
            composite += inertia
            momentum += part
            energy += real(0.5) * wp.dot(part, velocity)
        place = topology.world_tree[world] + tree
        data.next_composite[place] = composite
        data.next_momentum[place] = momentum
        data.next_energy[place] = energy

    @wp.func_native(_tile_text(real))
    def sum_tile(
        worlds: wp.array[int],
        first: int,
        topology: Topology,
        groups: groups_struct,
        joint_armature: wp.array[float],
        data: data_struct,
        states: states_struct,
    ): ...

    return SimpleNamespace(sum_tree=sum_tree, sum_tile=sum_tile)
