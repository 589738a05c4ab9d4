"""Rigid groups in lanes: reading them for eight worlds at once, once where the worlds are alike.

Reads   what `RigidGroups` holds
Writes  its world_likeness

Worlds of one template mostly have the same groups to the bit. Then one of them is read for all eight, which
takes an eighth of the memory and no transposing. Comparing two worlds costs more than it gains in one step,
so what was found is kept until the groups of either are made anew.
"""

GROUPS_IN_LANES = """
    // Whether the groups of a world have the same bits as those of another of the same template.
    auto is_like = [&](int world, int other) {
        if (world == other) return true;
        int* known = groups.world_likeness.data + 4 * world;
        const int made = groups.world_made.data[world], other_made = groups.world_made.data[other];
        if (known[0] != other + 1 || known[1] != made || known[2] != other_made) {
            const int kind = topology.world_template.data[world];
            const int nodes = topology.template_node.data[kind + 1] - topology.template_node.data[kind];
            const int bodies = topology.template_body.data[kind + 1] - topology.template_body.data[kind];
            const int dofs = topology.template_dof.data[kind + 1] - topology.template_dof.data[kind];
            auto same = [](const auto* values, int a, int b, int count) {
                return __builtin_memcmp(values + a, values + b, count * sizeof(*values)) == 0;
            };
            const int a = topology.world_joint.data[world], b = topology.world_joint.data[other];
            known[0] = other + 1;
            known[1] = made;
            known[2] = other_made;
            known[3] = same(groups.carriers.data, a, b, nodes) && same(groups.welds.data, a, b, nodes)
                && same(groups.body_com.data, topology.world_body.data[world],
                        topology.world_body.data[other], bodies)
                && same(groups.joint_axis.data, topology.world_dof.data[world],
                        topology.world_dof.data[other], dofs);
        }
        return known[3] != 0;
    };
"""
"""`is_like(world, other)`, where `topology` and `groups` are at hand: the same bits of carriers, welds,
body_com and joint_axis. Both worlds have to be in the hands of this thread."""
