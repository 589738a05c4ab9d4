"""How `SolverSAP` pushes overlapping shapes apart: with no more energy than it takes to lift them."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, ShapeConfig, Simulation, SolverSAP, eval_fk
from pluriverse.solvers.sap.options import PRESETS

GRAVITY = 9.81
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
LENGTH = 0.3  # of a link, m
RADIUS = 0.03  # m
# Energy that a chain gains by motion alone [relative to M g x 1 m]: semi-implicit Euler oscillates by that.
OSCILLATION = 0.01


def make_chain(rng: np.random.Generator, link_count: int, *, floating: bool) -> ModelBuilder:
    """Return a chain of links that hang down, of masses and rotors a hundredfold apart."""
    builder, joints, parent = ModelBuilder(), [], -1
    scale = 10.0 ** rng.uniform(-2.0, 2.0)
    if floating:
        mass = scale * 10.0 ** rng.uniform(-1.0, 1.0)
        parent = builder.add_link(mass=mass, inertia=0.01 * scale * np.eye(3))
        joints.append(builder.add_joint_free(parent))
    for link in range(link_count):
        mass = scale * 10.0 ** rng.uniform(-1.0, 1.0)
        body = builder.add_link(mass=mass, inertia=mass * LENGTH**2 / 12.0 * np.eye(3))
        builder.add_shape_capsule(body, radius=RADIUS, half_height=0.12, cfg=ShapeConfig(density=0.0))
        above = -0.5 * LENGTH if link or floating else 0.0
        joints.append(
            builder.add_joint_revolute(
                parent,
                body,
                axis=tuple(np.eye(3)[rng.integers(2)]),
                parent_xform=((0.0, 0.0, above), UPRIGHT),
                child_xform=((0.0, 0.0, 0.5 * LENGTH), UPRIGHT),
                armature=scale * float(rng.choice([0.0, 0.0, 0.01, 1.0])),
            )
        )
        parent = body
    builder.add_articulation(joints)
    return builder


def energy(simulation: Simulation) -> np.ndarray:
    """Return the kinetic and potential energy of every world [J]."""
    model, state = simulation.model, simulation.state
    mass, inertia = model.body_mass.numpy().astype(float), model.body_inertia.numpy().astype(float)
    pose, twist = state.body_q.numpy().astype(float), state.body_qd.numpy().astype(float)
    u, w = pose[:, 3:6], pose[:, 6:7]
    spin = twist[:, 3:]  # to body axes, by the inverse rotation
    cross = 2.0 * np.cross(-u, spin)
    spin = spin + w * cross + np.cross(-u, cross)
    body = 0.5 * mass * (twist[:, :3] ** 2).sum(axis=1) + GRAVITY * mass * pose[:, 2]
    body += 0.5 * np.einsum("bi,bij,bj->b", spin, inertia, spin)
    rotor = 0.5 * model.joint_armature.numpy() * state.joint_qd.numpy().astype(float) ** 2
    dofs = model.joint_dof_world_start.numpy()
    result = np.bincount(model.body_world.numpy(), body, minlength=model.world_count)
    return result + np.array(
        [rotor[dofs[world] : dofs[world + 1]].sum() for world in range(model.world_count)]
    )


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_chains_let_go_in_the_ground_gain_no_more_energy_than_lifting_them_takes(dt):
    """Forty chains, straight up to an angle of 1e-4 to 1 rad, their ends up to 0.2 m deep, for a second.

    A straight chain is singular: its end has next to no mobility along itself, and by the velocity that
    would close the overlap in h + tau some left with a million times M g d. That is the bound for each
    contact; 0.3 of it are left for contacts that come only while a chain folds.
    """
    rng = np.random.default_rng(0)
    builder, worlds = ModelBuilder(), []
    for _world in range(40):
        link_count, floating = int(rng.integers(2, 5)), bool(rng.random() < 0.4)
        builder.add_world(make_chain(rng, link_count, floating=floating))
        worlds.append((link_count, floating, float(rng.uniform(0.001, 0.2))))
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    bent = rng.choice([1e-4, 1e-3, 1e-2, 0.1, 1.0], len(worlds))
    anchor, root = model.joint_X_p.numpy(), np.flatnonzero(model.joint_parent.numpy() < 0)
    with Simulation(model, SolverSAP(model), dt=dt, threads=1) as simulation:
        q, coords = simulation.state.joint_q.numpy(), model.joint_coord_world_start.numpy()
        for world, (link_count, floating, depth) in enumerate(worlds):
            own = q[coords[world] : coords[world + 1]]
            own[-link_count:] = bent[world] * rng.uniform(-1.0, 1.0, link_count)
            if floating:
                own[2] = link_count * LENGTH + 0.5 * LENGTH - depth
            else:
                anchor[root[world], 2] = link_count * LENGTH - depth
        model.joint_X_p.assign(anchor)
        simulation.state.joint_q.assign(q)
        eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        start = energy(simulation)
        simulation.step(1)
        workspace, count = simulation.solver.workspace, simulation.solver.last_contact_count.numpy()
        gap, first = workspace.contact_gap.numpy(), workspace.contact_start.numpy()
        depth = np.array(
            [-np.minimum(gap[first[w] : first[w] + count[w]], 0.0).sum() for w in range(len(worlds))]
        )
        highest = energy(simulation)
        for _ in range(round(1.0 / dt)):
            simulation.step(1)
            highest = np.maximum(highest, energy(simulation))
        assert not simulation.solver.world_frozen.numpy().any()
        assert not simulation.solver.unconverged_step_count.numpy().any()
    assert np.count_nonzero(depth > 0.01) > 20
    weight = GRAVITY * np.bincount(model.body_world.numpy(), model.body_mass.numpy())
    assert ((highest - start) / weight < 1.3 * depth + OSCILLATION).all()


def test_bounds_of_recovery_lead_to_the_same_motion_at_any_tolerance():
    """Chains with dry friction in the ground, whose contacts are asked for less in one step, twice or more.

    At the default tolerance only the terms of joints are checked at the end of a whole step. At a tighter
    one the gradient of the whole is.
    """
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    for _world in range(16):
        builder.add_world(make_chain(rng, 3, floating=False))
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    anchor, root = model.joint_X_p.numpy(), np.flatnonzero(model.joint_parent.numpy() < 0)
    anchor[root, 2] = 3 * LENGTH - 0.1
    model.joint_X_p.assign(anchor)
    inertia = np.repeat(np.bincount(model.body_world.numpy(), model.body_mass.numpy()), 3) * LENGTH**2
    model.joint_friction.assign((0.3 * inertia).astype(np.float32))
    bent = rng.uniform(0.1, 1.0, 48).astype(np.float32)
    motions, iterations = [], []
    for tolerance in (1e-6, 1e-10):
        solver = SolverSAP(model, optimality_rel_tol=tolerance)
        with Simulation(model, solver, dt=0.01, threads=1) as simulation:
            simulation.state.joint_q.assign(bent)
            eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
            simulation.step(1)
            motions.append(simulation.state.joint_qd.numpy().reshape(16, 3).copy())
            iterations.append(solver.workspace.iterations.numpy().copy())
            assert not solver.unconverged_step_count.numpy().any()
    assert np.count_nonzero(iterations[0] > 2) >= 4
    scale = np.abs(motions[1]).max(axis=1, keepdims=True)
    np.testing.assert_array_less(np.abs(motions[0] - motions[1]) / scale, 1e-5)


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_contacts_below_a_heavy_load_keep_the_force_that_carries_it(dt):
    """Light cubes under ten thousand times their weight rest where they do without bounds, and return there.

    Then the loads are pressed in by half of that depth more. A second leaves a hundredth of the depth, which
    is 7 mm per contact at 10 ms.
    """
    stacks, half = ((1.0, 10.0, 1e4), (1.0, 1.0, 1e4), (0.01, 100.0)), 0.1
    rests = {}
    for limited in (False, True):
        builder = ModelBuilder()
        for masses in stacks:
            world = ModelBuilder()
            for level, mass in enumerate(masses):
                height = half * (1.0 + 2.0 * level)
                body = world.add_body(xform=((0.0, 0.0, height), UPRIGHT))
                config = ShapeConfig(density=mass / (8.0 * half**3))
                world.add_shape_box(body, hx=half, hy=half, hz=half, cfg=config)
            builder.add_world(world)
        builder.add_ground_plane()
        model = builder.finalize("cpu")
        solver = SolverSAP(model, recovery_limited=limited)
        with Simulation(model, solver, dt=dt, threads=1) as simulation:
            simulation.step(round(1.0 / dt))
            rests[limited] = simulation.state.body_q.numpy()[:, 2]
            if limited:
                start = np.concatenate([half * (1.0 + 2.0 * np.arange(len(masses))) for masses in stacks])
                q = simulation.state.joint_q.numpy()
                q[2::7] += 0.5 * (rests[True] - start)
                simulation.state.joint_q.assign(q)
                simulation.step(round(1.0 / dt))
                again = simulation.state.body_q.numpy()[:, 2]
    tolerance = 0.01 * np.abs(start - rests[False]).max()
    np.testing.assert_allclose(rests[True], rests[False], rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(again, rests[False], rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("dt", [0.001, 0.005])
def test_a_box_let_go_in_the_ground_rises_no_faster_than_it_would_fall(dt):
    """Boxes 1 mm to 90 mm deep come out, at sqrt(2 g d) or less, and none rises higher than it lay deep."""
    depths = [0.001, 0.01, 0.03, 0.09]
    builder = ModelBuilder()
    for depth in depths:
        world = ModelBuilder()
        body = world.add_body(xform=((0.0, 0.0, 0.1 - depth), UPRIGHT))
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        builder.add_world(world)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    speeds, heights = [], []
    with Simulation(model, SolverSAP(model), dt=dt, threads=1) as simulation:
        for _ in range(round(1.5 / dt)):
            simulation.step(1)
            speeds.append(simulation.state.joint_qd.numpy().reshape(-1, 6)[:, 2])
            heights.append(simulation.state.body_q.numpy()[:, 2] - 0.1)
    fall = np.sqrt(2.0 * GRAVITY * np.array(depths))
    assert (np.max(speeds, axis=0) <= fall * (1.0 + 1e-3)).all()
    assert (np.max(heights, axis=0) < np.array(depths)).all()
    np.testing.assert_allclose(heights[-1], 0.0, atol=1e-5)


def test_no_point_of_a_deep_foot_opens_faster_than_it_would_fall():
    """A lever with eight balls in the ground, of which one acts at a time.

    The ball nearest to the hinge opens the lever fastest, then the next one. While only what acts was asked
    for less, the rounds were used up, and the ball at the end opened at 3.1 times its bound.
    """
    builder, radius, depth = ModelBuilder(), 0.02, 0.08
    reach = np.linspace(0.3, 0.5, 8)
    lever = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
    for x in reach:
        builder.add_shape_sphere(
            lever, radius=radius, xform=((x, 0.0, 0.0), UPRIGHT), cfg=ShapeConfig(density=0.0)
        )
    hinge = builder.add_joint_revolute(
        -1, lever, axis=(0.0, -1.0, 0.0), parent_xform=((0.0, 0.0, radius - depth), UPRIGHT)
    )
    builder.add_articulation([hinge])
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    with Simulation(model, SolverSAP(model), dt=0.005, threads=1) as simulation:
        simulation.step(1)
        opening = simulation.state.joint_qd.numpy()[0] * reach
    fall = np.sqrt(2.0 * GRAVITY * depth)
    assert (opening > 0.2 * fall).all()
    assert (opening < (1.0 + 0.005) * fall).all()


def test_the_energy_of_a_stiffness_that_is_given_comes_back():
    """A ball let go 20 mm deep on a spring of 20 kN/m without damping leaves by what the spring has stored.

    The lift alone would be 0.2 J of 4 J. An implicit step of the period / 280 takes a part of the velocity.
    """
    stiffness, mass, depth, radius = 2e4, 1.0, 0.02, 0.1
    builder = ModelBuilder()
    body = builder.add_body(mass=mass, inertia=1e-2 * np.eye(3), xform=((0.0, 0.0, radius - depth), UPRIGHT))
    builder.add_shape_sphere(body, radius=radius, cfg=ShapeConfig(density=0.0, ke=stiffness, tau=0.0))
    builder.add_ground_plane(cfg=ShapeConfig(tau=0.0))
    model = builder.finalize("cpu")
    with Simulation(model, SolverSAP(model), dt=2e-4, threads=1) as simulation:
        fastest = 0.0
        for _ in range(100):
            simulation.step(1)
            fastest = max(fastest, float(simulation.state.joint_qd.numpy()[2]))
    stored = 0.5 * stiffness * depth**2
    assert fastest == pytest.approx(np.sqrt(2.0 * (stored - mass * GRAVITY * depth) / mass), rel=0.03)


def test_presets_that_reproduce_others_recover_as_they_do():
    assert [name for name, preset in PRESETS.items() if preset["recovery_limited"]] == ["standard"]


def test_a_box_that_slides_is_not_asked_for_less_of_what_friction_lifts_it_by():
    """Friction lifts a sliding contact by its convex approximation, whatever its depth asks for.

    Asking for less took eight rounds of the solver and changed nothing.
    """
    box, worlds = ModelBuilder(), ModelBuilder()
    body = box.add_body(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    box.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    worlds.replicate(box, 16)
    worlds.add_ground_plane()
    model = worlds.finalize("cpu")
    simulation = Simulation(model, dt=0.01, threads=1)
    simulation.step(50)
    velocities = np.zeros((16, 6), np.float32)
    velocities[:, 0] = np.linspace(0.1, 3.0, 16)
    simulation.state.joint_qd.assign(velocities.ravel())
    eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    simulation.step()
    assert simulation.solver.last_solve_iterations.numpy().max() <= 4
