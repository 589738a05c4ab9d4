"""Heaps of free bodies: Coulomb's law, energy, convergence, and the start from sweeps over impulses."""

import numpy as np
import pytest
import warp as wp

from pluriverse import Model, ModelBuilder, ShapeConfig, Simulation, SolverSAP
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_loops import contact_loop_functions
from pluriverse.solvers.sap.dilation import DILATION_ITERATIONS_MAX, DILATION_SHARE, DILATION_SPEED
from pluriverse.solvers.sap.held_states import held_state_functions
from pluriverse.solvers.sap.impulse_sweeps import STRANDS, SWEEP_COUNT, impulse_sweep_functions
from pluriverse.solvers.sap.workspace import sap_struct

GRAVITY = 9.81
DT = 0.005
SIDE, HALF_SIZE = 3, 0.1
BODY_COUNT = SIDE**3

REAL = wp.float64
sweeps = impulse_sweep_functions(REAL, REAL, REAL, REAL)
single_sweeps = impulse_sweep_functions(REAL, REAL, REAL)
held, loops = held_state_functions(REAL, REAL), contact_loop_functions(REAL, REAL)
DynamicsData, SapData = workspace_struct(REAL), sap_struct(REAL, REAL)


@wp.kernel(enable_backward=False, module="unique")
def hold_world(sap: SapData):
    _thread, _ = wp.tid()
    held.shift_velocities(sap, 0)
    loops.evaluate_slots(sap, sap.contact_start[0], sap.contact_start[0] + sap.contact_count[0])
    held.extend_impulses(sap, 0)


@wp.kernel(enable_backward=False, module="unique")
def sweep_world(topology: Topology, dynamics: DynamicsData, sap: SapData, result: wp.array[int]):
    _thread, _ = wp.tid()
    result[0] = sweeps.sweep_impulses(topology, dynamics, sap, 0)


@wp.kernel(enable_backward=False, module="unique")
def sweep_world_single(topology: Topology, dynamics: DynamicsData, sap: SapData, result: wp.array[int]):
    _thread, _ = wp.tid()
    result[0] = single_sweeps.sweep_impulses(topology, dynamics, sap, 0)


def _falling_boxes(seeds: tuple[int, ...], friction: float = 0.5) -> Model:
    """Boxes turned at random, one heap per seed, just above the ground and each other."""
    builder = ModelBuilder()
    config = ShapeConfig(mu=friction, density=400.0)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        builder.begin_world()
        builder.add_ground_plane(cfg=config)
        for index in range(BODY_COUNT):
            cell = np.array([index % SIDE, index // SIDE % SIDE, index // SIDE**2])
            rotation = rng.normal(size=4)
            place = 0.35 * cell + [0.0, 0.0, 0.2]  # too far apart to overlap
            body = builder.add_body(xform=(tuple(place), tuple(rotation / np.linalg.norm(rotation))))
            builder.add_shape_box(body, hx=HALF_SIZE, hy=HALF_SIZE, hz=HALF_SIZE, cfg=config)
        builder.end_world()
    return builder.finalize("cpu")


def _energy(model: Model, simulation: Simulation) -> float:
    """Return the kinetic and potential energy of all cubes [J]."""
    mass = model.body_mass.numpy()
    moment = model.body_inertia.numpy()[:, 0, 0]  # of a cube about any axis
    velocity = simulation.state.body_qd.numpy().astype(np.float64)
    height = simulation.state.body_q.numpy()[:, 2].astype(np.float64)
    kinetic = mass * (velocity[:, :3] ** 2).sum(axis=1) + moment * (velocity[:, 3:] ** 2).sum(axis=1)
    return float((0.5 * kinetic + mass * GRAVITY * height).sum())


def test_a_falling_heap_obeys_the_law_of_coulomb_and_loses_energy():
    """Impulses lie in their cones, sliding contacts do not open, every step converges, energy falls."""
    model = _falling_boxes((1,))
    solver = SolverSAP(model)
    simulation = Simulation(model, solver, dt=DT, threads=1, record=False)
    energy = _energy(model, simulation)
    sliding_count = 0
    for _ in range(150):
        simulation.step()
        after = _energy(model, simulation)
        # A step of free fall changes the energy of the implicit Euler method by less than g h v.
        assert after < energy + 1e-3 * abs(energy)
        energy = after
        sap = solver.workspace
        slots = slice(0, int(sap.contact_count.numpy()[0]))
        impulse = sap.contact_impulse.numpy()[slots]
        velocity = sap.contact_velocity.numpy()[slots]
        wanted, friction = sap.contact_bias.numpy()[slots], sap.contact_mu.numpy()[slots]
        tangential = np.hypot(impulse[:, 0], impulse[:, 1])
        assert (tangential <= friction * impulse[:, 2] * (1.0 + 1e-6) + 1e-12).all()
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        acts = impulse[:, 2] > 0.0
        slides = acts & (speed > 0.1)
        sliding_count += int(slides.sum())
        # What is left of the velocity by which convex friction parts them.
        parting = velocity[slides, 2] - wanted[slides]
        share = friction[slides] * speed[slides]
        if solver.last_solve_iterations.numpy()[0] < DILATION_ITERATIONS_MAX:
            assert (parting <= 1.5 * np.maximum(float(DILATION_SPEED), float(DILATION_SHARE) * share)).all()
    assert sliding_count > 100
    assert solver.unconverged_step_count.numpy()[0] == 0


def test_a_pile_at_rest_takes_an_iteration_or_two():
    """Cubes in three layers, shifted so that each lies on up to four others."""
    builder = ModelBuilder()
    config = ShapeConfig(mu=0.5, density=400.0)
    builder.add_ground_plane(cfg=config)
    for index in range(BODY_COUNT):
        layer = index // SIDE**2
        shift = 0.1 * (layer % 2)
        x, y = 0.21 * (index % SIDE) + shift, 0.21 * (index // SIDE % SIDE) + shift
        body = builder.add_body(xform=(x, y, HALF_SIZE * (2 * layer + 1), 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_box(body, hx=HALF_SIZE, hy=HALF_SIZE, hz=HALF_SIZE, cfg=config)
    model = builder.finalize("cpu")
    simulation = Simulation(model, dt=DT, threads=1, record=False)
    simulation.step(20)
    simulation.clear_report()
    before = simulation.state.joint_q.numpy()
    simulation.step(20)
    report = simulation.report()
    np.testing.assert_allclose(simulation.state.joint_q.numpy(), before, rtol=0.0, atol=1e-4)
    assert report.contact_count_mean > 100
    assert report.unconverged_step_count == 0
    assert report.iteration_count_mean < 3.0


def test_a_pile_that_settles_is_not_started_anew():
    """Sweeps are for heaps that fall: from no impulses they take longer to what velocities nearly have."""
    builder = ModelBuilder()
    config = ShapeConfig(mu=0.5, density=400.0, ke=1e5, tau=0.01)
    builder.add_ground_plane(cfg=config)
    for index in range(BODY_COUNT):
        layer = index // SIDE**2
        x, y = 0.3 * (index % SIDE) + 0.1 * (layer % 2), 0.25 * (index // SIDE % SIDE)
        z = HALF_SIZE * (2 * layer + 1) + 1e-3 * (layer + 1)
        turn = 0.01 * (index * 4 % 7 - 3)  # half the angle
        body = builder.add_body(xform=(x, y, z, 0.0, 0.0, np.sin(turn), np.cos(turn)))
        builder.add_shape_box(body, hx=HALF_SIZE, hy=HALF_SIZE, hz=HALF_SIZE, cfg=config)
    simulation = Simulation(builder.finalize("cpu"), dt=DT, threads=1, record=False)
    simulation.step(20)
    simulation.clear_report()
    simulation.step(40)
    report = simulation.report()
    assert report.contact_count_mean > 100
    assert report.unconverged_step_count == 0
    assert report.iteration_count_mean < 3.0  # 6 with sweeps in the steps that take three iterations


def test_heaps_have_the_bits_they_have_alone():
    """In any batch, on any number of threads."""
    seeds = (1, 2, 3)
    together = []
    for threads in (1, 2):
        simulation = Simulation(_falling_boxes(seeds), dt=DT, threads=threads)
        simulation.step(60)
        together.append(simulation.state.joint_q.numpy().reshape(len(seeds), -1))
    np.testing.assert_array_equal(together[0], together[1])
    for index, seed in enumerate(seeds):
        alone = Simulation(_falling_boxes((seed,)), dt=DT, threads=1)
        alone.step(60)
        np.testing.assert_array_equal(alone.state.joint_q.numpy(), together[0][index])


def test_an_order_of_elimination_that_is_kept_changes_no_bit():
    """A solver that orders the bodies anew in every step finds the same velocities."""
    found = []
    for keeps in (True, False):
        model = _falling_boxes((4,))
        solver = SolverSAP(model)
        simulation = Simulation(model, solver, dt=DT, threads=1, record=False)
        for _ in range(50):
            simulation.step()
            if not keeps:
                solver.workspace.coupling_ordered.zero_()
        found.append(simulation.state.joint_q.numpy())
    np.testing.assert_array_equal(found[0], found[1])


def _sweep_reference(sap, mass: np.ndarray, velocity: np.ndarray, dofs: list[np.ndarray], count: int):
    """Return the velocities after the sweeps, in NumPy, with dense Jacobians."""
    frames = sap.contact_frame.numpy()
    arms = [getattr(sap, "contact_arm" + side).numpy() for side in "01"]
    rows = {name: getattr(sap, "contact_" + name).numpy() for name in ("rt", "rn", "mu", "bias", "chord")}
    inverse = np.linalg.inv(mass)
    jacobians = np.zeros((count, 3, len(velocity)))
    for slot in range(count):
        for side, sign in ((0, -1.0), (1, 1.0)):
            last = dofs[side][slot]
            if last >= 0:
                x, y, z = arms[side][slot]
                turn = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
                jacobians[slot][:, last - 5 : last + 1] += (
                    sign * frames[slot].T @ np.hstack([turn, np.eye(3)])
                )
    velocity = velocity.copy()
    impulses = np.zeros((count, 3))
    strand = -(-count // STRANDS)
    order = [part * strand + place for place in range(strand) for part in range(STRANDS)]
    order = [slot for slot in order if slot < count]
    for sweep in range(SWEEP_COUNT):
        for slot in order if sweep % 2 == 0 else order[::-1]:
            jacobian, old = jacobians[slot], impulses[slot].copy()
            mobility = jacobian @ inverse @ jacobian.T
            slip = jacobian @ velocity + [*rows["chord"][slot], 0.0]
            free = slip - mobility @ old
            rt, rn, mu = rows["rt"][slot], rows["rn"][slot], rows["mu"][slot]
            closing = rows["bias"][slot] - free[2]
            new = np.zeros(3)
            if closing > 0.0:
                new = np.linalg.solve(
                    mobility + np.diag([rt, rt, rn]), np.array([-free[0], -free[1], closing])
                )
                if not (new[2] > 0.0 and np.hypot(*new[:2]) <= mu * new[2]):
                    way = -free[:2]
                    if old[2] > 0.0:
                        way = old[:2] - 2.0 / (mobility[0, 0] + mobility[1, 1]) * slip[:2]
                    elif new[2] > 0.0:
                        way = new[:2]
                    way = mu * way / np.linalg.norm(way)
                    gives = mobility[2, :2] @ way + mobility[2, 2] + rn
                    normal = closing / gives if gives > 0.0 else 0.0
                    new = np.array([normal * way[0], normal * way[1], normal])
            impulses[slot] = new
            velocity += inverse @ jacobian.T @ (new - old)
    return velocity


def test_held_states_continue_impulses_linearly():
    """gamma(u_0) - G (u - u_0) is gamma(u) but for the square of the difference, where no state changes."""
    model = _falling_boxes((6,))
    solver = SolverSAP(model)
    simulation = Simulation(model, solver, dt=DT, threads=1, record=False)
    simulation.step(60)
    sap = solver.workspace
    count = int(sap.contact_count.numpy()[0])
    impulses = []
    rng = np.random.default_rng(7)
    velocity = sap.contact_velocity.numpy()
    # On the CPU these are the arrays themselves.
    slope = sap.contact_slope.numpy()
    for share in (0.0, 1e-6):
        size = np.abs(sap.contact_impulse.numpy()) * sap.contact_rt.numpy()[:, None]
        slope[:] = share * size * rng.uniform(-1.0, 1.0, size.shape)
        before = velocity.copy()
        wp.launch(hold_world, dim=(1, 1), inputs=[sap.data], device="cpu")
        np.testing.assert_allclose(velocity[:count], (before - slope)[:count], rtol=0.0, atol=1e-15)
        impulses.append(sap.contact_impulse.numpy()[:count].copy())
        velocity[:] = before
    acts = impulses[0][:, 2] > 0.0
    assert acts.sum() > 30
    assert np.abs(slope[:count][acts]).max() > 0.0
    scale = np.linalg.norm(impulses[0][acts], axis=1, keepdims=True)
    change = np.abs(impulses[1] - impulses[0])[acts] / scale
    assert change.max() < 1e-9  # 1e-6 without the linear part


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_sweeps_equal_those_of_dense_matrices(friction):
    """On the contacts of a falling heap, from no impulses, in double precision."""
    model = _falling_boxes((5,), friction)
    solver = SolverSAP(model)
    simulation = Simulation(model, solver, dt=DT, threads=1, record=False)
    # As many contacts as the scratch of sweeps has room for in double precision.
    simulation.step(60 if friction > 0.0 else 50)
    sap, dynamics = solver.workspace, solver.dynamics
    count = int(sap.contact_count.numpy()[0])
    assert count > 50
    mass = solver.convex_problem(0, DT).dynamics_matrix
    dofs = [getattr(sap, "contact_dof" + side).numpy() for side in "01"]
    expected = _sweep_reference(sap, mass, sap.velocity_free.numpy(), dofs, count)
    result = wp.zeros(1, dtype=int, device="cpu")
    wp.launch(sweep_world, dim=(1, 1), inputs=[model.topology, dynamics.data, sap.data, result], device="cpu")
    assert result.numpy()[0] == 1
    scale = np.abs(expected).max()
    np.testing.assert_allclose(sap.velocity.numpy(), expected, rtol=0.0, atol=1e-8 * scale)

    # In single precision, as the solver makes them, states that are nearly two things may differ for a while.
    wp.launch(
        sweep_world_single,
        dim=(1, 1),
        inputs=[model.topology, dynamics.data, sap.data, result],
        device="cpu",
    )
    assert result.numpy()[0] == 1
    difference = np.abs(sap.velocity.numpy() - expected)
    assert np.median(difference) < 1e-5 * scale
    assert difference.max() < 1e-2 * scale
