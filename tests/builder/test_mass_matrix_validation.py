"""Mass matrix: mechanisms whose joints undo each other are refused, by the pivots of its factorization."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, SolverSAP
from pluriverse.builder import mass_matrix_validation

UP = (0.0, 0.0, 0.0, 1.0)


def make_double_pendulum(masses: tuple[float, float]) -> ModelBuilder:
    """Return a builder of two point masses on rods of 1 m, stretched out."""
    builder = ModelBuilder()
    rod = np.diag([1e-12, 0.0, 1e-12])  # nothing about y
    links = [builder.add_link(mass=mass, com=(1.0, 0.0, 0.0), inertia=rod) for mass in masses]
    joints = [
        builder.add_joint_revolute(-1, links[0], axis="y"),
        builder.add_joint_revolute(links[0], links[1], axis="y", parent_xform=((1.0, 0.0, 0.0), UP)),
    ]
    builder.add_articulation(joints)
    return builder


def test_the_pivot_is_that_of_the_factorization(monkeypatch):
    """M = [[m1 + 4 m2, 2 m2], [2 m2, m2]]: the inner pivot is det M / M11, that is m1, of M00 = m1 + 4 m2."""
    builder = make_double_pendulum((1.0, 1.0))
    monkeypatch.setattr(mass_matrix_validation, "PIVOT_ROUNDING", 0.2 - 1e-12)
    builder.finalize("cpu")
    monkeypatch.setattr(mass_matrix_validation, "PIVOT_ROUNDING", 0.2 + 1e-12)
    with pytest.raises(
        ValueError, match=r"joint 'joint_0' \(index 0\): .* singular .*pivot 0\.2 of its entry"
    ):
        SolverSAP(builder.finalize("cpu"))


def test_a_massless_link_between_two_hinges_of_one_axis_is_refused():
    """Turning one hinge back and the other forth moves nothing: M is singular although both carry inertia."""
    builder = ModelBuilder()
    between, tip = builder.add_link(label="between"), builder.add_link(mass=1.0, inertia=np.eye(3))
    joints = [
        builder.add_joint_revolute(-1, between, axis="z", label="first"),
        builder.add_joint_revolute(between, tip, axis="z"),
    ]
    builder.add_articulation(joints)
    message = (
        r"joint 'first' \(index 0\): the mass matrix is singular .* Give body 'between' \(index 0\) mass"
    )
    with pytest.raises(ValueError, match=message):
        SolverSAP(builder.finalize("cpu"))
    builder.joint_armature[0] = 1e-3
    builder.finalize("cpu")


def test_a_massless_link_between_crossed_hinges_is_sound():
    """A universal joint needs no inertia between its axes, far from the origin as near it."""
    for place in (0.0, 1000.0):
        builder = ModelBuilder()
        between, tip = builder.add_link(), builder.add_link(mass=0.01, inertia=1e-6 * np.eye(3))
        joints = [
            builder.add_joint_revolute(-1, between, axis="x", parent_xform=((place, place, 0.0), UP)),
            builder.add_joint_revolute(between, tip, axis="y"),
        ]
        builder.add_articulation(joints)
        builder.finalize("cpu")
        builder.joint_axis[1] = (1.0, 0.0, 0.0)
        with pytest.raises(ValueError, match="singular"):
            SolverSAP(builder.finalize("cpu"))


def test_three_hinges_in_gimbal_lock_are_refused():
    """Three hinges make a ball joint, but not where the second turns the third onto the first."""
    builder = ModelBuilder()
    links = [builder.add_link(), builder.add_link(), builder.add_link(mass=1.0, inertia=np.eye(3))]
    joints = [
        builder.add_joint_revolute(parent, child, axis=axis)
        for parent, child, axis in zip((-1, 0, 1), links, ("x", "y", "z"), strict=True)
    ]
    builder.add_articulation(joints)
    builder.finalize("cpu")
    builder.joint_q[1] = np.pi / 2.0
    with pytest.raises(ValueError, match="singular in the initial pose"):
        SolverSAP(builder.finalize("cpu"))


def test_a_free_body_with_a_slider_along_its_side_is_sound():
    """All joint types pass through the elimination: free base, slider, ball and a fixed part beyond."""
    builder = ModelBuilder()
    base, slide, ball, tip = (builder.add_link(mass=0.1 + index, inertia=np.eye(3)) for index in range(4))
    joints = [
        builder.add_joint_free(base),
        builder.add_joint_prismatic(base, slide, axis="x"),
        builder.add_joint_ball(slide, ball, parent_xform=((1.0, 0.0, 0.0), UP)),
        builder.add_joint_fixed(ball, tip, parent_xform=((0.0, 1.0, 0.0), UP)),
    ]
    builder.add_articulation(joints)
    builder.finalize("cpu")
