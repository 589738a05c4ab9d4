"""Speed limits of joints: against the dense reference, closed forms, and robots whose files give some."""

import warnings

import numpy as np
import pytest

from pluriverse import Contacts, JointTargetMode, JointType, ModelBuilder, Simulation, SolverSAP
from pluriverse.types import FLOATING_JOINTS
from tests.oracles.multibody_dense import dense_problem
from tests.oracles.random_scenes import random_contacts, random_world, randomize_state
from tests.solvers.test_sap_equality_reference import assert_close

DT = 0.005
KINDS = ((4,), (5, 3), (1, 4, 3))
EXACT = {
    "contact_preset_variant": "drake",
    "line_search_variant": "exact_root",
    "optimality_rel_tol": 1e-13,
    "cost_rel_tol": 0.0,
    "cost_abs_tol": 0.0,
    "enforce_velocity_limit": True,
}
NEAR_RIGID = 0.1**2 / (4.0 * np.pi**2)


def softening(law) -> float:
    return min(1e-7, 1e-6 * 9.81 * law.dt / law.weight)


@pytest.mark.parametrize("iterations", [0, 100])
def test_problem_and_minimizer_equal_the_reference(iterations):
    """Gradient and Hessian at the start, where many joints are too fast, and the minimum, with contacts."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    for sizes in KINDS:
        world = random_world(rng, sizes)
        world.joint_velocity_limit[:] = rng.choice([0.2, 0.5, 1.0, 1e6, np.inf], len(world.joint_qd))
        builder.add_world(world)
    model = builder.finalize("cpu")
    state, control, contacts = model.state(), model.control(), Contacts(model, 4)
    for world in range(model.world_count):
        randomize_state(model, state, control, rng, world)
        random_contacts(model, state, control, contacts, rng, world, 4)
    solver = SolverSAP(model, **(EXACT | {"max_iterations": iterations}))
    solver.step(state, model.state(), control, contacts, DT)
    limited = 0
    for world in range(model.world_count):
        problem = dense_problem(
            model, state, control, contacts, DT, world=world, softening=softening, speed_limits=True
        )
        public = model.templates[model.world_template[world]].dof_public
        ours = solver.convex_problem(world, DT)
        velocity = np.zeros(len(public))
        velocity[public] = ours.velocity
        hessian = problem.hessian(velocity)[np.ix_(public, public)]
        scale = 1.0 / np.sqrt(np.diag(hessian))
        assert_close(scale[:, None] * ours.hessian * scale, scale[:, None] * hessian * scale)
        impulse = np.linalg.norm(problem.impulse(velocity))
        assert np.linalg.norm(ours.gradient - problem.gradient(velocity)[public]) <= 1e-10 * impulse
        limited += sum(type(law).__name__ == "SpeedLaw" for _, law in problem.joint_terms)
        if iterations:
            assert_close(ours.velocity, problem.minimize()[public])
    assert limited > 5


def wheel(**options) -> ModelBuilder:
    builder = ModelBuilder(gravity=0.0)
    link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
    joint = builder.add_joint_revolute(-1, link, axis="z", velocity_limit=3.0, **options)
    builder.add_articulation([joint])
    return builder


def run(builder: ModelBuilder, steps: int, **options) -> np.ndarray:
    model = builder.finalize("cpu")
    with Simulation(model, SolverSAP(model, **options), dt=DT, strict=True) as simulation:
        speeds = []
        for _ in range(steps):
            simulation.step()
            speeds.append(simulation.state.joint_qd.numpy().copy())
        simulation.report()
    return np.array(speeds)


@pytest.mark.parametrize("direction", [1.0, -1.0])
@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_a_wheel_under_a_torque_speeds_up_to_its_limit(direction, preset):
    """The rate is t torque / I, then the limit; there it gives way by R h torque."""
    builder = wheel()
    builder.joint_f[0] = 2.0 * direction
    options = {"contact_preset_variant": preset, "enforce_velocity_limit": True}
    speeds = direction * run(builder, 60, **options)[:, 0]
    free = 20.0 * DT * np.arange(1, 61)
    np.testing.assert_allclose(speeds, np.minimum(free, 3.0 + NEAR_RIGID / 0.1 * DT * 2.0), rtol=1e-5)
    assert direction * run(builder, 60, contact_preset_variant=preset)[-1, 0] == pytest.approx(6.0, rel=1e-5)


def test_a_drive_passes_its_limit_no_more_than_a_fall():
    """A velocity drive told to exceed it, and a slider that falls: both stay at the limit."""
    builder = wheel(actuator_mode=JointTargetMode.VELOCITY, target_kd=5.0, target_vel=10.0)
    fall = ModelBuilder()
    body = fall.add_link(mass=1.0, inertia=np.eye(3))
    fall.add_articulation([fall.add_joint_prismatic(-1, body, axis="z", velocity_limit=0.5)])
    both = ModelBuilder()
    both.add_world(builder)
    both.add_world(fall)
    assert run(both, 50, enforce_velocity_limit=True)[-1] == pytest.approx([3.0, -0.5], rel=2e-3)
    assert run(both, 50)[-1] == pytest.approx([10.0, -9.81 * 50 * DT], rel=0.05)


def test_a_value_that_is_no_choice_is_refused():
    with pytest.raises(ValueError, match="enforce_velocity_limit is 1, but must be True or False"):
        SolverSAP(wheel().finalize("cpu"), enforce_velocity_limit=1)


RATED = {
    "fr3": "franka_description/urdfs/fr3_franka_hand.urdf",
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
}
UNRATED = {"go1": "unitree_go1/go1.xml", "g1": "unitree_g1/g1.xml"}


def robots(folder, files: dict[str, str]) -> ModelBuilder:
    """Robots let go in the air, one per world, with their joints turning."""
    scene = ModelBuilder()
    rng = np.random.default_rng(1)
    for file in files.values():
        builder = ModelBuilder()
        load = builder.add_urdf if file.endswith("urdf") else builder.add_mjcf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the files have that is not read is no matter here
            load(folder / file)
        builder.joint_target_mode[:] = JointTargetMode.NONE
        builder.joint_qd[:] = rng.normal(size=builder.joint_dof_count)
        for joint in np.flatnonzero(builder.joint_type == JointType.REVOLUTE):
            # A position limit that is violated at the start would pull against that of the speed.
            dof = builder.joint_qd_start[joint]
            bounds = builder.joint_limit_lower[dof], builder.joint_limit_upper[dof]
            builder.joint_q[builder.joint_q_start[joint]] = np.clip(0.0, *bounds)
        scene.add_world(builder)
    return scene


def test_rated_speeds_of_robots_act_on_request_only(robot_assets):
    """By default they fall as without limits, bit for bit; on request no joint passes its rated speed."""
    builder = robots(robot_assets, RATED)
    rated = builder.joint_velocity_limit.copy()
    scalar = np.repeat(~np.isin(builder.joint_type, FLOATING_JOINTS), builder.joint_dof_dim.sum(axis=1))
    limited = scalar & (rated < 1e6)
    assert limited.sum() >= 9
    as_read = run(builder, 80)
    held = run(builder, 80, enforce_velocity_limit=True)
    builder.joint_velocity_limit[:] = np.inf
    np.testing.assert_array_equal(as_read, run(builder, 80))
    assert (np.abs(as_read[:, limited]) > 1.05 * rated[limited]).any(), "limits have something to hold"
    # The stop is near rigid: it gives way by R h times the force that it holds.
    excess = np.abs(held[:, limited]) - rated[limited]
    assert (excess <= 5e-3 * rated[limited]).all()


def test_the_option_changes_nothing_for_robots_without_rated_speeds(robot_assets):
    """Files without any give the builder's default, which is no limit: the same bits either way."""
    builder = robots(robot_assets, UNRATED)
    np.testing.assert_array_equal(run(builder, 20), run(builder, 20, enforce_velocity_limit=True))
