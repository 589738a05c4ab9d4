"""Jacobian, mass matrix, inverse dynamics and momenta of articulations, in public degrees of freedom."""

import threading
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import (
    ModelBuilder,
    eval_fk,
    eval_inverse_dynamics,
    eval_inverse_dynamics_passive,
    eval_jacobian,
    eval_mass_matrix,
    eval_momenta,
    eval_world_momenta,
)
from pluriverse.dynamics import Momenta

from .conftest import make_worlds, random_trees
from .trees import JointType, dof_places, tree_damping, unset

# Sums along chains of up to 15 bodies, or 35 dofs, with entries of order 10: some hundred float64 roundings.
RELATIVE_ERROR = 1e-12


def public_map(worlds, world: int) -> np.ndarray:
    """Return the matrix from public velocities, in the order of the model, to internal ones in tree order."""
    tree, oracle = worlds.trees[world], worlds.oracles[world]
    places = dof_places(tree)
    size = sum(len(place) for place in places)
    result, column = np.zeros((size, size)), 0
    for entry in tree.joint_order:
        joint, rows = tree.joints[entry], places[entry]
        block = np.eye(len(rows))
        if joint.kind == JointType.FREE and joint.parent < 0:
            body = oracle.body(entry)
            arm = oracle.data.xipos[body] - oracle.data.xpos[body]
            block = np.zeros((6, 6))
            block[:3, 3:] = np.eye(3)  # omega
            block[3:, :3] = np.eye(3)  # v_origin = v_com - omega x arm
            block[3:, 3:] = -np.array([np.cross(axis, arm) for axis in np.eye(3)]).T
        result[np.ix_(rows, range(column, column + len(rows)))] = block
        column += len(rows)
    return result


def articulation_size(worlds, world: int) -> int:
    return sum(joint.dof_count for joint in worlds.trees[world].joints)


def test_jacobian_is_that_of_mujoco(worlds):
    """J maps joint_qd to (v_com, omega) of each link; beyond an articulation's size it is zero."""
    model = worlds.model
    shape = eval_jacobian(model, worlds.state).shape
    J = eval_jacobian(model, worlds.state, unset(*shape)).numpy()
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        size = articulation_size(worlds, world)
        to_mujoco = oracle.map @ public_map(worlds, world)
        for place, entry in enumerate(tree.joint_order):
            linear, angular = np.zeros((2, 3, oracle.model.nv))
            mujoco.mj_jacBodyCom(oracle.model, oracle.data, linear, angular, oracle.body(entry))
            expected = np.concatenate([linear, angular]) @ to_mujoco
            ours = J[world, 6 * place : 6 * place + 6]
            scale = max(1.0, np.abs(expected).max(initial=0.0))
            np.testing.assert_allclose(ours[:, :size], expected, rtol=0.0, atol=RELATIVE_ERROR * scale)
        assert not J[world, 6 * len(tree.joints) :].any()
        assert not J[world, :, size:].any()


def test_mass_matrix_is_that_of_mujoco(worlds):
    """H of the public velocities, with armature."""
    model = worlds.model
    shape = eval_mass_matrix(model, worlds.state).shape
    H = eval_mass_matrix(model, worlds.state, unset(*shape)).numpy()
    for world, oracle in enumerate(worlds.oracles):
        size = articulation_size(worlds, world)
        change = public_map(worlds, world)
        expected = change.T @ oracle.mass_matrix() @ change
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(H[world, :size, :size], expected, rtol=0.0, atol=RELATIVE_ERROR * scale)
        assert not H[world, size:].any()
        assert not H[world, :, size:].any()


def test_inverse_dynamics_is_that_of_mujoco(worlds):
    """joint_f = H qdd + c + D v - J^T (f + m g), and velocity products of (v_com, omega) at free roots."""
    model, rng = worlds.model, np.random.default_rng(5)
    wanted = rng.normal(size=model.joint_dof_count)
    joint_qdd = wp.array(wanted, dtype=wp.float64, device="cpu")
    joint_f = eval_inverse_dynamics(model, worlds.state, joint_qdd, unset(model.joint_dof_count)).numpy()
    begin = model.topology.world_dof.numpy()
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        size = articulation_size(worlds, world)
        change = public_map(worlds, world)
        public = wanted[begin[world] : begin[world] + size]
        internal = change @ public
        for entry, joint in enumerate(tree.joints):  # dv_origin/dt also has -omega x (omega x arm)
            if joint.kind == JointType.FREE and joint.parent < 0:
                body, rows = oracle.body(entry), dof_places(tree)[entry]
                arm = oracle.data.xipos[body] - oracle.data.xpos[body]
                omega = oracle.velocity[rows[:3]]
                internal[rows[3:]] -= np.cross(omega, np.cross(omega, arm))
        force = oracle.mass_matrix() @ internal + oracle.bias() + tree_damping(tree) * oracle.velocity
        expected = change.T @ (force - oracle.applied(worlds.body_f[world]))
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(
            joint_f[begin[world] : begin[world] + size], expected, rtol=0.0, atol=RELATIVE_ERROR * scale
        )


def test_momenta_are_those_of_mujoco(worlds):
    """Mass, centre of mass, linear momentum, and angular momentum about the centre of mass."""
    momenta = eval_world_momenta(worlds.model, worlds.state)
    articulations = eval_momenta(worlds.model, worlds.state)
    for world, oracle in enumerate(worlds.oracles):
        bodies = range(1, oracle.model.nbody)
        mass = oracle.model.body_mass[1:]
        position = oracle.data.xipos[1:]
        com = mass @ position / mass.sum()
        linear, angular = np.zeros(3), np.zeros(3)
        for body in bodies:
            velocity = oracle.body_velocity(int(oracle.model.body(body).name[1:]))
            axes = oracle.data.ximat[body].reshape(3, 3)
            inertia = axes @ np.diag(oracle.model.body_inertia[body]) @ axes.T
            linear += mass[body - 1] * velocity[:3]
            angular += inertia @ velocity[3:]
            angular += np.cross(position[body - 1] - com, mass[body - 1] * velocity[:3])
        for ours in (momenta, articulations):  # each world of this test is one articulation
            scale = 1.0 + np.abs(angular).max() + np.abs(linear).max()
            tolerance = RELATIVE_ERROR * scale
            np.testing.assert_allclose(ours.mass.numpy()[world], mass.sum(), rtol=1e-15 * len(mass))
            np.testing.assert_allclose(ours.com.numpy()[world], com, rtol=0.0, atol=tolerance)
            np.testing.assert_allclose(ours.linear.numpy()[world], linear, rtol=0.0, atol=tolerance)
            np.testing.assert_allclose(ours.angular.numpy()[world], angular, rtol=0.0, atol=tolerance)


def test_articulations_in_one_tree_have_their_own_dofs():
    """A tool on an arm: its Jacobian is that of its own hinge; the arm's mass matrix carries the tool."""
    builder = ModelBuilder()
    arm = builder.add_link(mass=1.0, inertia=np.eye(3))
    tool = builder.add_link(mass=2.0, com=(0.0, 0.2, 0.0), inertia=np.eye(3))
    shoulder = builder.add_joint_revolute(-1, arm, axis="z")
    wrist = builder.add_joint_revolute(arm, tool, parent_xform=((1.0, 0, 0), (0, 0, 0, 1.0)), axis="z")
    builder.add_articulation([shoulder])
    builder.add_articulation([wrist])
    model = builder.finalize("cpu")
    J = eval_jacobian(model, model.state()).numpy()
    np.testing.assert_allclose(J[:, :, 0], [[0, 0, 0, 0, 0, 1], [-0.2, 0, 0, 0, 0, 1]], rtol=0.0, atol=1e-7)
    H = eval_mass_matrix(model, model.state()).numpy()
    expected = [1.0 + 1.0 + 2.0 * (1.0 + 0.2**2), 1.0 + 2.0 * 0.2**2]
    np.testing.assert_allclose(H[:, 0, 0], expected, rtol=1e-6)


def test_masks_and_worlds_choose_what_is_computed(random_worlds):
    model, state = random_worlds.model, random_worlds.state
    whole = eval_mass_matrix(model, state).numpy()
    chosen = np.arange(model.articulation_count) % 3 == 1
    mask = wp.array(chosen, dtype=bool, device="cpu")
    worlds = wp.array(np.flatnonzero(chosen), dtype=int, device="cpu")
    for selection in ({"mask": mask}, {"worlds": worlds}):
        part = eval_mass_matrix(model, state, **selection).numpy()
        np.testing.assert_array_equal(part[chosen], whole[chosen])
        assert not part[~chosen].any()
        J = eval_jacobian(model, state, **selection).numpy()
        assert J[chosen].any()
        assert not J[~chosen].any()


def test_recorded_queries_follow_the_state():
    """With arrays to write to, nothing is allocated or read back."""
    case = make_worlds(random_trees()[:4], wp.float64, seed=4)
    model, state = case.model, case.state
    joint_qdd = wp.zeros(model.joint_dof_count, dtype=float, device="cpu")
    J, H = eval_jacobian(model, state), eval_mass_matrix(model, state)
    force, momenta = eval_inverse_dynamics(model, state, joint_qdd), eval_momenta(model, state)
    with wp.ScopedCapture(device="cpu") as capture:
        eval_jacobian(model, state, J)
        eval_mass_matrix(model, state, H)
        eval_inverse_dynamics(model, state, joint_qdd, force)
        eval_momenta(model, state, momenta)
    state.joint_q.assign(state.joint_q.numpy() * np.float32(1.01))
    wp.capture_launch(capture.graph)
    recorded = [array.numpy().copy() for array in (J, H, force, momenta.angular)]
    direct = [
        eval_jacobian(model, state),
        eval_mass_matrix(model, state),
        eval_inverse_dynamics(model, state, joint_qdd),
        eval_momenta(model, state).angular,
    ]
    for ours, expected in zip(recorded, direct, strict=True):
        np.testing.assert_array_equal(ours, expected.numpy())


def test_threads_ask_one_model_about_states_of_their_own():
    """Scratch is kept per model: what one thread asks for is not mixed with what another one does.

    Of 2000 torques in each of three threads, some 60 were those of no state.
    """
    world = ModelBuilder()
    links = [world.add_link(mass=1.0, inertia=0.1 * np.eye(3), com=(0.0, 0.0, -0.5)) for _ in range(2)]
    shoulder = world.add_joint_revolute(-1, links[0], axis="y")
    elbow = world.add_joint_revolute(links[0], links[1], axis="x", parent_xform=((0, 0, -1), (0, 0, 0, 1)))
    world.add_articulation([shoulder, elbow])
    world.add_shape_sphere(links[1], radius=0.2)
    world.add_ground_plane()
    builder = ModelBuilder()
    builder.replicate(world, 16)
    model = builder.finalize(device="cpu")

    def make_asking(angle: float) -> Callable[[], list[np.ndarray]]:
        """Return a function that asks for everything at a state, whose arrays it keeps."""
        state, contacts = model.state(), model.contacts()
        state.joint_q.fill_(angle)
        state.joint_qd.fill_(angle)
        torque, weight, motion = (wp.zeros(model.joint_dof_count, dtype=float) for _ in range(3))

        def ask() -> list[np.ndarray]:
            eval_fk(model, state.joint_q, state.joint_qd, state, joint_mask=every_joint)
            model.collide(state, contacts)
            eval_inverse_dynamics(model, state, model.joint_qd, torque)
            eval_inverse_dynamics_passive(model, state, gravity_force=weight, coriolis_force=motion)
            momenta: Any = eval_world_momenta(model, state)
            found = (eval_jacobian(model, state), eval_mass_matrix(model, state), momenta.angular)
            counted = (state.body_q, torque, weight, motion, contacts.rigid_contact_count)
            return [array.numpy().copy() for array in (*found, *counted)]

        return ask

    every_joint = wp.ones(model.joint_count, dtype=wp.bool)
    asked = [make_asking(angle) for angle in (0.3, 0.6, 1.2)]
    expected = [ask() for ask in asked]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(150):
            pairs = zip(asked[index](), expected[index], strict=True)
            wrong.extend(place for place, (ours, alone) in enumerate(pairs) if (ours != alone).any())

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_bad_arguments_are_refused(random_worlds):
    model, state = random_worlds.model, random_worlds.state
    with pytest.raises(ValueError, match=r"eval_jacobian: mask has shape \(3,\)"):
        eval_jacobian(model, state, mask=wp.zeros(3, dtype=bool, device="cpu"))
    with pytest.raises(TypeError, match="mask is of type int32"):
        eval_mass_matrix(model, state, mask=wp.zeros(model.articulation_count, dtype=int, device="cpu"))
    with pytest.raises(ValueError, match="eval_mass_matrix: the array to write to has shape"):
        eval_mass_matrix(model, state, wp.zeros((1, 2, 2), dtype=float, device="cpu"))
    with pytest.raises(ValueError, match="joint_qdd: the array"):
        eval_inverse_dynamics(model, state, wp.zeros(2, dtype=float, device="cpu"))
    with pytest.raises(ValueError, match="have 1 groups, but 16 are needed"):
        eval_momenta(model, state, Momenta(1, model.device))


def test_arguments_in_another_order_or_kind_are_named(random_worlds):
    """A state where the model belongs, and a list where an array does."""
    model, state = random_worlds.model, random_worlds.state
    for call in (eval_jacobian, eval_mass_matrix, eval_momenta, eval_world_momenta):
        with pytest.raises(TypeError, match=f"{call.__name__}: model is a State, but must be a Model"):
            call(state, model)
    with pytest.raises(TypeError, match=r"eval_fk: mask is a list, but must be a Warp array: wp\.array"):
        eval_fk(model, model.joint_q, model.joint_qd, state, mask=[True])
