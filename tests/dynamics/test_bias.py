"""Bias forces against MuJoCo's inverse dynamics."""

import numpy as np

from pluriverse.types import FLOATING_JOINTS

from .trees import dof_places, tree_damping, tree_vector

# Forces of order 100 N m summed over up to 15 bodies: a few hundred roundings of float64.
RELATIVE_ERROR = 1e-12


def joint_force(worlds, world):
    """Return joint_f of a world in tree order, mapped from (f, com torque) to [origin torque; f]."""
    tree, model, control = worlds.trees[world], worlds.model, worlds.control
    public = control.joint_f.numpy()
    start = int(model.topology.world_dof.numpy()[world])
    template = model.templates[model.world_template[world]]
    result = np.zeros(template.dof_count)
    for node, joint in enumerate(template.node_joint):
        entry = tree.joint_order[joint]
        first = start + template.node_qd[node]
        force = public[first : first + template.node_dof_count[node]].astype(np.float64)
        if tree.joints[entry].kind in FLOATING_JOINTS and tree.joints[entry].parent < 0:
            oracle = worlds.oracles[world]
            body = oracle.body(entry)
            arm = oracle.data.xipos[body] - oracle.data.xpos[body]
            force = np.concatenate([force[3:] + np.cross(arm, force[:3]), force[:3]])
        result[dof_places(tree)[entry]] = force
    return result


def test_generalized_force_is_that_of_mujoco(worlds):
    """Gravity per world, Coriolis and gyroscopic forces, body_f, joint_f, damping, on trees in any order."""
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        external = joint_force(worlds, world) + oracle.applied(worlds.body_f[world].astype(np.float64))
        expected = external - oracle.bias() - tree_damping(tree) * oracle.velocity
        force = tree_vector(worlds.model, world, tree, worlds.workspace.dof_force)
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(force, expected, rtol=0.0, atol=RELATIVE_ERROR * scale)


def test_single_precision_force_has_single_precision_error(random_worlds_single):
    """The float32 stage loses no more than the rounding of the same sums."""
    worlds = random_worlds_single
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        external = joint_force(worlds, world) + oracle.applied(worlds.body_f[world].astype(np.float64))
        expected = external - oracle.bias() - tree_damping(tree) * oracle.velocity
        force = tree_vector(worlds.model, world, tree, worlds.workspace.dof_force)
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(force, expected, rtol=0.0, atol=1e-5 * scale)
