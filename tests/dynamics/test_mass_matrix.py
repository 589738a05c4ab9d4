"""The mass matrix, against MuJoCo's."""

import numpy as np
import pytest
import warp as wp

from pluriverse import ModelBuilder
from pluriverse.dynamics import Workspace, eval_kinematics
from pluriverse.dynamics.mass_matrix import assemble_mass_matrix

from .conftest import DT
from .trees import tree_damping, tree_matrix

# Sums along chains of up to 15 bodies with entries of order 10: a few hundred roundings of float64.
RELATIVE_ERROR = 1e-13


def test_mass_matrix_with_armature_and_damping_is_that_of_mujoco(worlds):
    """A = M + armature + dt D in packed rows, for trees of all joint kinds with bodies in any order."""
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        expected = oracle.mass_matrix() + DT * np.diag(tree_damping(tree))
        matrix = tree_matrix(worlds.model, world, tree, worlds.workspace.mass_row)
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(matrix, expected, rtol=0.0, atol=RELATIVE_ERROR * scale)


def test_single_precision_mass_matrix_has_single_precision_error(random_worlds_single):
    """The float32 stage loses no more than the rounding of the same sums, 2**-24 in place of 2**-53."""
    worlds = random_worlds_single
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        expected = oracle.mass_matrix() + DT * np.diag(tree_damping(tree))
        matrix = tree_matrix(worlds.model, world, tree, worlds.workspace.mass_row)
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(matrix, expected, rtol=0.0, atol=RELATIVE_ERROR * 2.0**29 * scale)


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_free_body_mass_matrix_with_armature_and_damping_acts_on_the_public_velocity(real):
    """Kinetic energy and dissipation of a free body: those of (v_com, omega), seen from [omega, v_origin]."""
    rng = np.random.default_rng(0)
    mass, com, inertia = 2.0, rng.uniform(-1.0, 1.0, 3), np.diag([0.3, 0.4, 0.5])
    armature, damping = rng.uniform(0.0, 1.0, 6), rng.uniform(0.0, 5.0, 6)
    builder = ModelBuilder()
    builder.add_body(mass=mass, com=com, inertia=inertia)
    model = builder.finalize(device="cpu")
    model.joint_armature.assign(armature.astype(np.float32))
    model.joint_damping.assign(damping.astype(np.float32))
    workspace = Workspace(model, real)
    eval_kinematics(model, model.worlds, model.state(), workspace)
    assemble_mass_matrix(model, model.worlds, workspace, DT)
    packed = workspace.mass_row.numpy()
    matrix = np.zeros((6, 6))
    matrix[np.tril_indices(6)] = packed
    matrix += np.tril(matrix, -1).T

    to_public = np.zeros((6, 6))  # of [omega, v_origin], at the identity pose
    to_public[:3, 3:] = np.eye(3)
    to_public[:3, :3] = np.cross(np.eye(3), com).T  # v_com = v_origin + omega x com
    to_public[3:, :3] = np.eye(3)
    public = np.diag(armature + DT * damping)
    public[:3, :3] += mass * np.eye(3)
    public[3:, 3:] += inertia
    rounding = 2.0**-22  # inputs are kept in single precision
    np.testing.assert_allclose(matrix, to_public.T @ public @ to_public, rtol=0.0, atol=10.0 * rounding)
