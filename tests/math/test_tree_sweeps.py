"""Sweeps over trees and wrenches of points against plain NumPy."""

import numpy as np
import warp as wp

from pluriverse.math.tree_sweeps import tree_sweep_functions
from pluriverse.types import JointType

sweeps = tree_sweep_functions(wp.float64, wp.float64)
ROUNDING = 2.0**-52
FIRST, NODE0, DOF0, TREE0 = 2, 3, 4, 1
PLAIN = 2


@wp.kernel(enable_backward=False, module="unique")
def sweep(
    mark: wp.array[int],
    parent: wp.array[int],
    node_dof: wp.array[int],
    node_dof_count: wp.array[int],
    node_type: wp.array[int],
    node_tree: wp.array[int],
    count: int,
    motion: wp.array[wp.spatial_vectord],
    tree_drift: wp.array[wp.spatial_vectord],
    drifting: int,
    dof_rate: wp.array[wp.float64],
    rate: wp.array[wp.spatial_vectord],
    wrench: wp.array[wp.spatial_vectord],
    dof_impulse: wp.array[wp.float64],
):
    sweeps.sweep_velocities(
        mark,
        PLAIN,
        parent,
        node_dof,
        node_dof_count,
        node_type,
        node_tree,
        FIRST,
        0,
        count,
        NODE0,
        motion,
        DOF0,
        tree_drift,
        TREE0,
        drifting,
        dof_rate,
        rate,
    )
    sweeps.sweep_wrenches(
        mark,
        PLAIN,
        parent,
        node_dof,
        node_dof_count,
        node_type,
        FIRST,
        0,
        count,
        NODE0,
        motion,
        DOF0,
        wrench,
        dof_impulse,
    )


@wp.kernel(enable_backward=False, module="unique")
def push(
    rate: wp.array[wp.spatial_vectord],
    body0: wp.array[int],
    body1: wp.array[int],
    arm0: wp.array[wp.vec3d],
    arm1: wp.array[wp.vec3d],
    frame: wp.array[wp.mat33d],
    start: int,
    count: int,
    impulse: wp.array[wp.vec3d],
    bound: wp.array[wp.float64],
    wrench: wp.array[wp.spatial_vectord],
):
    sweeps.add_point_wrenches(impulse, bound, frame, body0, body1, arm0, arm1, start, count, NODE0, wrench)
    sweeps.vectors_clear(rate, NODE0, 2)


def array(values, dtype):
    return wp.array(values, dtype=dtype, device="cpu")


def apart(values, dtype):
    """Return an array whose entries are not contiguous."""
    table = wp.full((len(values), 2), dtype(7), dtype=dtype, device="cpu")
    column = table[:, 0]
    wp.copy(column, array(values, dtype))
    return column


def test_velocities_add_up_to_the_leaves_and_wrenches_to_the_roots():
    """A free root moves with its six rates, other nodes with their joints; unmarked nodes are left alone."""
    rng = np.random.default_rng(7)
    # Two trees with a free root, the second one marked as of prescribed motion, and one with a hinge.
    parent = np.array([-1, 0, 1, 0, -1, 4, -1, 6])
    size = np.array([6, 1, 0, 3, 6, 1, 1, 1])
    kinds = [JointType.FREE, JointType.REVOLUTE, JointType.FIXED, JointType.BALL]
    kinds += [JointType.FREE] + [JointType.REVOLUTE] * 3
    tree = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    mark = np.array([PLAIN, PLAIN, PLAIN, PLAIN, 1, PLAIN, PLAIN, 0])
    begin = np.concatenate([[0], np.cumsum(size)])[:-1]
    count, dof_count = len(parent), size.sum()
    motion, drift = rng.normal(size=(dof_count, 6)), rng.normal(size=(3, 6))
    x = rng.normal(size=dof_count)
    motion[:6] = np.nan  # of the free root: nobody reads it
    for drifting in (0, 1):
        wrench = rng.normal(size=(count, 6))
        impulse = rng.normal(size=dof_count)
        rates, sums, impulses = np.full((count, 6), 7.0), wrench.copy(), impulse.copy()
        for node in range(count):
            if mark[node] != 0:
                carrier = rates[parent[node]] if parent[node] >= 0 else drifting * drift[tree[node]]
                dofs = slice(begin[node], begin[node] + size[node])
                rates[node] = carrier + (x[:6] if node == 0 else x[dofs] @ motion[dofs])
        for node in reversed(range(count)):
            if mark[node] != 0:
                dofs = slice(begin[node], begin[node] + size[node])
                impulses[dofs] += sums[0] if node == 0 else motion[dofs] @ sums[node]
                if parent[node] >= 0:
                    sums[parent[node]] += sums[node]
        in_template = [np.pad(one, (FIRST, 0)) for one in (parent, begin, size, np.array(kinds), tree)]
        outputs = [
            array(np.pad(np.full((count, 6), 7.0), ((NODE0, 0), (0, 0))), wp.spatial_vectord),
            array(np.pad(wrench, ((NODE0, 0), (0, 0))), wp.spatial_vectord),
            array(np.pad(impulse, (DOF0, 0)), wp.float64),
        ]
        inputs = [
            array(np.pad(mark, (NODE0, 0)), int),
            *(array(one, int) for one in in_template),
            count,
            array(np.pad(motion, ((DOF0, 0), (0, 0))), wp.spatial_vectord),
            array(np.pad(drift, ((TREE0, 0), (0, 0))), wp.spatial_vectord),
            drifting,
            array(np.pad(x, (DOF0, 0)), wp.float64),
        ]
        wp.launch(sweep, dim=1, inputs=[*inputs, *outputs], device="cpu")
        for output, wanted, skipped in zip(
            outputs, (rates, sums, impulses), (NODE0, NODE0, DOF0), strict=True
        ):
            found = output.numpy()
            # Sums of at most a few dozen products of numbers of about one.
            np.testing.assert_allclose(found[skipped:], wanted, rtol=0.0, atol=500 * ROUNDING)
            np.testing.assert_array_equal(found[:skipped], 0.0)


def test_impulses_push_their_bodies():
    """An impulse on a point is a wrench on the second body, and its opposite on the first."""
    rng = np.random.default_rng(8)
    count, start, nodes = 12, 2, 3
    size = start + count + 1
    rate = rng.normal(size=(NODE0 + nodes, 6))
    body0, body1 = rng.integers(-1, nodes, (2, size))
    body0[start + 3 : start + 6], body1[start + 3 : start + 6] = (
        0,
        2,
    )  # contacts of one pair follow each other
    body0[start + 6 : start + 8], body1[start + 6 : start + 8] = 2, 0  # and these change sides
    body0[start + 8 : start + 10] = body1[start + 8 : start + 10] = 2
    arm0, arm1, impulse = rng.normal(size=(3, size, 3))
    frame = np.linalg.qr(rng.normal(size=(size, 3, 3)))[0]
    impulse[start, 2] = impulse[start + 1, 2] = 0.0
    bound = np.full(size, -1.0)
    bound[start + 1] = 0.5
    inputs = [array(rate, wp.spatial_vectord), apart(body0, int), apart(body1, int)]
    inputs += [apart(arm0, wp.vec3d), apart(arm1, wp.vec3d), apart(frame, wp.mat33d), start, count]
    wrench = array(rate * 0.0, wp.spatial_vectord)
    inputs += [apart(impulse, wp.vec3d), apart(bound, wp.float64), wrench]
    wp.launch(push, dim=1, inputs=inputs, device="cpu")

    wrenches = np.zeros_like(rate)
    for e in range(start + 1, start + count):  # the first has no normal impulse and no bound
        for sign, body, arm in ((1.0, body1[e], arm1[e]), (-1.0, body0[e], arm0[e])):
            if body >= 0:
                force = sign * frame[e] @ impulse[e]
                wrenches[NODE0 + body] += np.concatenate([np.cross(arm, force), force])
    np.testing.assert_allclose(wrench.numpy(), wrenches, rtol=0.0, atol=100 * ROUNDING)
    cleared = rate.copy()
    cleared[NODE0 : NODE0 + 2] = 0.0
    np.testing.assert_array_equal(inputs[0].numpy(), cleared)
