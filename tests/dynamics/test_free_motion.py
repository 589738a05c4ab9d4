"""The velocity that a step ends with where nothing constrains it, against dense linear algebra."""

import numpy as np

from .conftest import DT
from .trees import tree_damping, tree_matrix, tree_vector


def test_free_velocity_solves_the_linearly_implicit_balance(worlds):
    """(M + armature) (v* - v0) = dt (tau - c - D v*): damping acts at the new velocity."""
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        damping = tree_damping(tree)
        force = tree_vector(worlds.model, world, tree, worlds.workspace.dof_force)
        explicit = force + damping * oracle.velocity  # without the damping force
        matrix = oracle.mass_matrix()
        expected = np.linalg.solve(matrix + DT * np.diag(damping), matrix @ oracle.velocity + DT * explicit)
        velocity = tree_vector(worlds.model, world, tree, worlds.workspace.dof_velocity_free)
        # A dense solver and the factorization each lose the condition number's digits.
        tolerance = (
            4.0 * np.finfo(np.float64).eps * np.linalg.cond(matrix) * np.abs(expected).max(initial=1.0)
        )
        np.testing.assert_allclose(velocity, expected, rtol=0.0, atol=tolerance)


def test_factors_multiply_to_the_matrix(worlds):
    """L^T D L = A with L unit lower triangular; the diagonal of `factor_row` holds 1 / D."""
    for world in range(worlds.model.world_count):
        template = worlds.model.templates[worlds.model.world_template[world]]
        start = int(worlds.model.topology.world_row.numpy()[world])
        matrices = []
        for rows in (worlds.workspace.mass_row, worlds.workspace.factor_row):
            packed = rows.numpy()[start : start + template.row_size]
            dense = np.zeros((template.dof_count, template.dof_count))
            for dof in range(template.dof_count):
                ancestor, entry = dof, template.dof_row[dof] + template.dof_depth[dof]
                while ancestor >= 0:
                    dense[dof, ancestor] = packed[entry]
                    ancestor, entry = template.dof_parent[ancestor], entry - 1
            matrices.append(dense)
        lower, factor = matrices
        matrix = lower + np.tril(lower, -1).T
        unit = np.tril(factor, -1) + np.eye(template.dof_count)
        product = unit.T @ np.diag(1.0 / np.diag(factor)) @ unit
        scale = np.abs(matrix).max(initial=1.0)
        np.testing.assert_allclose(product, matrix, rtol=0.0, atol=1e-14 * template.dof_count * scale + 1e-14)


def test_dense_matrix_of_the_rows_is_positive_definite(worlds):
    """A body that has mass cannot move without kinetic energy."""
    for world, tree in enumerate(worlds.trees):
        matrix = tree_matrix(worlds.model, world, tree, worlds.workspace.mass_row)
        if len(matrix):
            assert np.linalg.eigvalsh(matrix).min() > 0.0
