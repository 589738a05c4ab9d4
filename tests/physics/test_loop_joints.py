"""Loop joints that keep their coordinates: linkages with sliders, universal joints, limits, drives, friction.

Each linkage is a tree, and a joint of another kind than hinges closes it. What the coordinates of that joint
must be follows from the geometry of the linkage, its motion from an equation with one coordinate.
"""

import numpy as np
import pytest
import warp as wp
from scipy.integrate import solve_ivp

import pluriverse as pv

IDENTITY = (0.0, 0.0, 0.0, 1.0)
GRAVITY = 9.81
CRANK, ROD = 0.3, 1.0
"""Lengths of crank and connecting rod [m]."""
CRANK_MASS, ROD_MASS, PISTON_MASS = 1.0, 2.0, 1.5
MUJOCO_TIME = 0.02
"""Time constant of the springs that MuJoCo's constraints are by default [s]."""
SOLVERS = [pv.SolverSAP, pv.SolverMuJoCo]


def rod_inertia(mass: float, length: float) -> np.ndarray:
    """Inertia of a thin rod along x about its centre of mass [kg·m²], nearly none about its axis."""
    return mass * length**2 / 12.0 * np.diag([0.05, 1.0, 1.0])


def piston_place(crank: float) -> float:
    """Distance [m] of the piston from the axis of the crank."""
    return CRANK * np.cos(crank) + np.sqrt(ROD**2 - (CRANK * np.sin(crank)) ** 2)


def slider_crank(angle: float, *, crank: dict | None = None, **slide) -> pv.ModelBuilder:
    """A crank at an angle, a rod, and a piston whose guide, a prismatic joint to the world, closes the loop.

    The crank turns about z, the piston slides along x, gravity points along -y.
    """
    builder = pv.ModelBuilder(gravity=(0.0, -GRAVITY, 0.0))
    links = [
        builder.add_link(mass=mass, com=(0.5 * size, 0.0, 0.0), inertia=rod_inertia(mass, size), label=name)
        for name, mass, size in (("crank", CRANK_MASS, CRANK), ("rod", ROD_MASS, ROD))
    ]
    links.append(builder.add_link(mass=PISTON_MASS, inertia=0.01 * np.eye(3), label="piston"))
    hinges = [
        builder.add_joint_revolute(-1, links[0], axis="z", label="drive", **(crank or {})),
        builder.add_joint_revolute(links[0], links[1], axis="z", parent_xform=((CRANK, 0, 0), IDENTITY)),
        builder.add_joint_revolute(links[1], links[2], axis="z", parent_xform=((ROD, 0, 0), IDENTITY)),
    ]
    builder.add_articulation(hinges)
    builder.add_joint_prismatic(-1, links[2], axis="x", label="guide", **slide)
    tilt = -np.arcsin(CRANK * np.sin(angle) / ROD)
    builder.joint_q[:3] = [angle, tilt - angle, -tilt]
    return builder


def run(model: pv.Model, solver_type: type, dt: float, step_count: int, *, control=None) -> np.ndarray:
    """Return `joint_q` before the first step and after each, shape [step + 1, coord]."""
    solver = solver_type(model)
    state, other = model.state(), model.state()
    record = [state.joint_q.numpy().copy()]
    for _ in range(step_count):
        solver.step(state, other, control, None, dt)
        state, other = other, state
        record.append(state.joint_q.numpy().copy())
    return np.array(record)


def swing(angle: float, times: np.ndarray) -> np.ndarray:
    """Return the angle of the crank that falls from rest: M(q) q'' + M'(q) q'^2 / 2 = -V'(q), by float64."""

    def mass_and_force(q: float) -> tuple[float, float]:
        sine = CRANK * np.sin(q) / ROD
        tilt = -np.arcsin(sine)
        # Derivatives by the angle of the crank, of the rod's tilt, of its centre of mass, of the piston.
        turn = -CRANK * np.cos(q) / (ROD * np.cos(tilt))
        rod = CRANK * np.array([-np.sin(q), np.cos(q)])
        rod = rod + 0.5 * ROD * turn * np.array([-np.sin(tilt), np.cos(tilt)])
        piston = -CRANK * np.sin(q) - ROD * np.sin(tilt) * turn
        mass = CRANK_MASS * CRANK**2 / 3.0 + ROD_MASS * (rod @ rod + (ROD * turn) ** 2 / 12.0)
        mass += PISTON_MASS * piston**2
        force = -GRAVITY * (CRANK_MASS * 0.5 * CRANK * np.cos(q) + ROD_MASS * rod[1])
        return mass, force

    def rate(_time: float, y: np.ndarray) -> list[float]:
        step = 1e-5
        mass, force = mass_and_force(y[0])
        slope = (mass_and_force(y[0] + step)[0] - mass_and_force(y[0] - step)[0]) / (2.0 * step)
        return [y[1], (force - 0.5 * slope * y[1] ** 2) / mass]

    return solve_ivp(rate, (0.0, times[-1]), [angle, 0.0], t_eval=times, rtol=1e-9, atol=1e-9).y[0]


def crank_rates(angle: float, speed: float) -> list[float]:
    """Return the rates of the three hinges [rad/s] at an angle and a speed of the crank."""
    tilt = -np.arcsin(CRANK * np.sin(angle) / ROD)
    turn = -CRANK * np.cos(angle) / (ROD * np.cos(tilt)) * speed
    return [speed, turn - speed, -turn]


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_piston_is_where_the_crank_puts_it_at_every_angle(solver_type):
    """The piston is at x = r cos(q) + sqrt(l^2 - r^2 sin^2(q)), and so says the guide, over a turn."""
    speed, dt = 2.0, 0.005
    builder = slider_crank(0.4, crank={"target_vel": speed, "target_kd": 1e3, "effort_limit": 1e5})
    builder.joint_qd[:3] = crank_rates(0.4, speed)
    record = run(builder.finalize("cpu"), solver_type, dt, int(2.0 * np.pi / (speed * dt)) + 1)
    assert record[-1, 0] - record[0, 0] > 2.0 * np.pi - 0.1
    # Positions are off by what the velocity changes in one step, taken back within a few steps.
    tolerance = 20.0 * (speed * dt) ** 2 * CRANK
    np.testing.assert_allclose(record[:, 3], piston_place(record[:, 0]), rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(record[:, :3].sum(axis=1), 0.0, atol=tolerance)  # the piston does not tilt


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_slider_crank_swings_as_its_equation_of_motion_says(solver_type):
    """The angle of the crank for a vanishing step, extrapolated from two, over most of a period."""
    duration, dt = 1.0, 0.002
    model = slider_crank(0.4).finalize("cpu")
    coarse, fine = (run(model, solver_type, step, round(duration / step))[:, 0] for step in (dt, dt / 2))
    expected = swing(0.4, np.linspace(0.0, duration, len(coarse)))
    assert np.ptp(expected) > 3.0, "it swings through"
    first, second = (np.abs(angle - expected).max() for angle in (coarse, fine[::2]))
    assert second < 0.6 * first, "first order"
    # What is left is of second order; MuJoCo's loop is open by its spring, at the default time constant.
    np.testing.assert_allclose(2.0 * fine[::2] - coarse, expected, rtol=0.0, atol=0.25 * first)


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_limits_drives_and_friction_of_the_closing_joint_act(solver_type):
    """The guide stops the piston, pulls it, or holds it; each time the crank is where it must be then."""
    scene = pv.ModelBuilder()
    scene.add_world(slider_crank(0.4, limit_lower=1.1, damping=40.0))
    scene.add_world(slider_crank(0.4, target_pos=1.0, target_ke=2e4, target_kd=1e3))
    scene.add_world(slider_crank(0.4, friction=200.0))
    scene.add_world(slider_crank(0.4, damping=40.0))
    model = scene.finalize("cpu")
    record = run(model, solver_type, 0.005, 600).reshape(-1, 4, 4)
    final = record[-1]
    # A static load of the order of the weights on springs of 1e4 N/m and more.
    tolerance = 5e-3
    np.testing.assert_allclose(final[:, 3], piston_place(final[:, 0]), rtol=0.0, atol=2e-3)
    assert abs(final[0, 3] - 1.1) < tolerance
    assert abs(final[1, 3] - 1.0) < tolerance
    # MuJoCo's dry friction is viscous about rest and lets the crank creep; freely it falls 1.5 rad by then.
    held = final if solver_type is pv.SolverSAP else record[100]
    assert abs(held[2, 0] - 0.4) < (tolerance if solver_type is pv.SolverSAP else 0.4)
    assert abs(final[3, 0] + 0.5 * np.pi) < 0.1, "damped only, the crank comes to hang"


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_it_does_not_matter_which_joint_closes_the_loop(solver_type):
    """A damped wrist pin in the tree with the guide as the loop joint, and the other way round."""

    def by_pin() -> pv.ModelBuilder:
        builder = slider_crank(0.4)
        other = pv.ModelBuilder(gravity=(0.0, -GRAVITY, 0.0))
        for body in range(3):
            other.add_link(
                mass=builder.body_mass[body], com=builder.body_com[body], inertia=builder.body_inertia[body]
            )
        joints = [
            other.add_joint_revolute(-1, 0, axis="z"),
            other.add_joint_revolute(0, 1, axis="z", parent_xform=((CRANK, 0, 0), IDENTITY)),
            other.add_joint_prismatic(-1, 2, axis="x"),
        ]
        other.add_articulation(joints)
        pin = {"axis": "z", "parent_xform": ((ROD, 0, 0), IDENTITY), "damping": 2.0}
        other.add_joint_revolute(1, 2, **pin)
        other.joint_q[:3] = [*builder.joint_q[:2], piston_place(0.4)]
        return other

    by_guide = slider_crank(0.4)
    by_guide.joint_damping[2] = 2.0
    models = [builder.finalize("cpu") for builder in (by_guide, by_pin())]
    np.testing.assert_allclose(
        models[0].joint_q.numpy()[[2, 3]], models[1].joint_q.numpy()[[3, 2]], atol=1e-6
    )
    first, second = (run(model, solver_type, 0.002, 500) for model in models)
    assert np.ptp(first[:, 0]) > 1.0
    np.testing.assert_allclose(first[:, 0], second[:, 0], atol=2e-3)
    np.testing.assert_allclose(first[:, 2:], second[:, [3, 2]], atol=2e-3)


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_universal_joint_turns_unevenly(solver_type):
    """Two shafts at an angle b: tan(second) = cos(b) tan(first). A D6 joint of two axes is the cross."""
    bend, speed, dt = 0.6, 3.0, 0.002
    builder = pv.ModelBuilder(gravity=0.0)
    shafts = [builder.add_link(mass=1.0, inertia=0.01 * np.eye(3)) for _ in range(2)]
    bent = ((0.0, 0.0, 0.0), (0.0, np.sin(0.5 * bend), 0.0, np.cos(0.5 * bend)))
    drive = {"target_vel": speed, "target_kd": 1e2}
    builder.add_articulation([builder.add_joint_revolute(-1, shafts[0], axis="z", **drive)])
    builder.add_articulation([builder.add_joint_revolute(-1, shafts[1], axis="z", parent_xform=bent)])
    builder.add_joint_d6(*shafts, angular_axes=["y", "x"], label="cross")
    builder.joint_qd[:2] = [speed, speed * np.cos(bend)]
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.joint_q.numpy(), [0.0, 0.0, bend, 0.0], atol=1e-6)
    record = run(model, solver_type, dt, int(2.0 * np.pi / (speed * dt)))
    first, second = record[:, 0], record[:, 1]
    expected = np.unwrap(np.arctan2(np.cos(bend) * np.sin(first), np.cos(first)))
    assert np.abs(expected - first).max() > 0.08, "unevenly"
    assert first[-1] > 6.2
    # Positions lag by what the velocity changes in one step, and in MuJoCo in the time of its springs.
    lag = 4.0 * dt if solver_type is pv.SolverSAP else MUJOCO_TIME
    np.testing.assert_allclose(second, expected, rtol=0.0, atol=(speed * lag) ** 2)


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_planar_joint_lets_a_free_body_slide_and_turn(solver_type):
    """Two slides and a turn in parallel with a free joint: s = g sin(a) t^2 / 2 on a plane at an angle a."""
    slope, spin, dt, step_count = 0.3, 2.0, 0.002, 250
    builder = pv.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    tilt = (0.0, np.sin(0.5 * slope), 0.0, np.cos(0.5 * slope))
    body = builder.add_body(xform=((0.0, 0.0, 0.5), tilt), mass=2.0, inertia=0.1 * np.eye(3), label="sled")
    plane = ((0.0, 0.0, 0.5), tilt)
    builder.add_joint_d6(-1, body, linear_axes=["x", "y"], angular_axes=["z"], parent_xform=plane)
    builder.joint_qd[3:6] = spin * np.array([np.sin(slope), 0.0, np.cos(slope)])
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.joint_qd.numpy()[6:], [0.0, 0.0, spin], atol=1e-6)
    time = dt * step_count
    x, y, angle = run(model, solver_type, dt, step_count)[-1, 7:]
    down = 0.5 * GRAVITY * np.sin(slope) * time**2
    assert abs(x - down) < GRAVITY * dt * time  # a step of first order
    assert abs(y) < 1e-4
    assert abs(angle - spin * time) < 1e-3


def peaucellier(angle: float) -> pv.ModelBuilder:
    """A Peaucellier cell: two arms from the origin O, a rhombus A C B P, and a crank that turns C about Q.

    Its pen P moves on a line, along which a guide that closes a fourth loop lets it slide.
    """
    arm, side, crank = 1.0, 0.4, 0.5
    builder = pv.ModelBuilder(gravity=(0.0, -GRAVITY, 0.0))
    corner = crank * np.array([1.0 + np.cos(angle), np.sin(angle)])
    pen = corner * (arm**2 - side**2) / (corner @ corner)
    middle, half = 0.5 * (corner + pen), 0.5 * (pen - corner)
    across = np.array([-half[1], half[0]]) * np.sqrt(side**2 / (half @ half) - 1.0)
    joints: list[int] = []
    turns: list[float] = []

    def bar(
        parent: int, start: np.ndarray, end: np.ndarray, place: float, direction: float
    ) -> tuple[int, float]:
        length, own = float(np.linalg.norm(end - start)), float(np.arctan2(*(end - start)[::-1]))
        body = builder.add_link(mass=1.0, com=(0.5 * length, 0, 0), inertia=rod_inertia(1.0, length))
        at = (place, 0.0, 0.0) if parent >= 0 else (*start, 0.0)
        joints.append(builder.add_joint_revolute(parent, body, axis="z", parent_xform=(at, IDENTITY)))
        turns.append(own - direction)
        return body, own

    upper, lower = middle + across, middle - across
    ground = np.zeros(2)
    first, along_first = bar(-1, ground, upper, 0.0, 0.0)
    second, along_second = bar(-1, ground, lower, 0.0, 0.0)
    turning, _ = bar(-1, np.array([crank, 0.0]), corner, 0.0, 0.0)
    to_corner = [
        bar(first, upper, corner, arm, along_first)[0],
        bar(second, lower, corner, arm, along_second)[0],
    ]
    to_pen, along_pen = bar(first, upper, pen, arm, along_first)
    other, _ = bar(second, lower, pen, arm, along_second)
    tip = builder.add_link(mass=0.5, inertia=0.01 * np.eye(3), label="pen")
    on_tip = ((side, 0.0, 0.0), IDENTITY)
    joints.append(builder.add_joint_revolute(to_pen, tip, axis="z", parent_xform=on_tip))
    turns.append(-along_pen)
    builder.add_articulation(joints)
    builder.joint_q[:] = turns
    for body, place in ((to_corner[1], side), (turning, crank)):
        ends = {"parent_xform": on_tip, "child_xform": ((place, 0.0, 0.0), IDENTITY)}
        builder.add_joint_revolute(to_corner[0], body, axis="z", **ends)
    builder.add_joint_revolute(to_pen, other, axis="z", parent_xform=on_tip, child_xform=on_tip)
    line = (((arm**2 - side**2) / (2.0 * crank), 0.0, 0.0), IDENTITY)
    builder.add_joint_prismatic(-1, tip, axis="y", parent_xform=line, label="guide")
    return builder


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_peaucellier_cell_is_not_locked_by_a_guide_along_its_line(solver_type):
    """The pen is on the line x = (a^2 - b^2) / (2 d) anyway: the fourth loop holds what three hold."""
    model = peaucellier(0.5).finalize("cpu")
    assert model.equality_constraint_count == 4
    record = run(model, solver_type, 0.002, 200)
    start = model.joint_q.numpy()
    corner = 0.5 * np.array([1.0 + np.cos(0.5), np.sin(0.5)])
    np.testing.assert_allclose(start[-1], 0.84 * corner[1] / (corner @ corner), atol=1e-6)
    assert np.ptp(record[:, -1]) > 0.3, "it falls"
    angle = record[:, 2]  # of the crank, which places the pen
    expected = 0.84 * np.sin(angle) / (1.0 + np.cos(angle))
    np.testing.assert_allclose(record[:, -1], expected, rtol=0.0, atol=5e-3)


@pytest.mark.parametrize("solver_type", SOLVERS)
def test_springs_that_close_loops_carry_weights(solver_type):
    """Sag m g / k of a weight on a post that stands still, on one that is prescribed, and in a bushing."""
    mass, stiffness, damping = 2.0, 1000.0, 50.0
    spring = {"target_ke": stiffness, "target_kd": damping}
    scene = pv.ModelBuilder()
    for kind in ("fixed", "kinematic", "bushing"):
        world = pv.ModelBuilder(gravity=-GRAVITY)
        weight = world.add_body(mass=mass, inertia=0.1 * np.eye(3), label="weight")
        if kind == "bushing":
            axes = [pv.JointDofConfig(axis=axis, **spring) for axis in "xyz"]
            world.add_joint_d6(-1, weight, linear_axes=axes, angular_axes=axes, label="mount")
        else:
            post = world.add_link(mass=1.0, inertia=0.1 * np.eye(3), is_kinematic=kind == "kinematic")
            held = world.add_joint_free(post) if kind == "kinematic" else world.add_joint_fixed(-1, post)
            world.add_articulation([held])
            world.add_joint_prismatic(weight, post, axis="z", **spring, label="mount")
        scene.add_world(world)
    model = scene.finalize("cpu")
    q = run(model, solver_type, 0.005, 200)[-1]
    sag = mass * GRAVITY / stiffness
    for world, start in enumerate(model.joint_coord_world_start.numpy()[:3]):
        np.testing.assert_allclose(q[start : start + 3], [0.0, 0.0, -sag], atol=1e-4, err_msg=str(world))


def test_strong_cylinder_does_not_tear_the_body_apart():
    """Held against 500 N, a body in two halves of 1 kg gives way by micrometres, in MuJoCo as well."""
    builder = pv.ModelBuilder(gravity=0.0)
    body = builder.add_link(mass=2.0, inertia=0.1 * np.eye(3))
    stop = builder.add_joint_prismatic(-1, body, axis="x", target_ke=1e6, target_kd=1e4)
    builder.add_articulation([stop])
    builder.add_joint_prismatic(-1, body, axis="x", label="cylinder", actuator_mode=pv.JointTargetMode.EFFORT)
    model = builder.finalize("cpu")
    for solver_type in SOLVERS:
        control = model.control()
        control.joint_act.assign([0.0, 500.0])
        place, cylinder = run(model, solver_type, 0.005, 400, control=control)[-1]
        assert abs(place - 500.0 / 1e6) < 1e-5
        assert abs(cylinder - place) < 1e-4


def test_mujoco_warp_moves_linkages_as_the_c_engine():
    """A damped slider-crank with a stop, after two steps, in single precision."""
    pytest.importorskip(
        "mujoco_warp", reason="MuJoCo Warp is not installed: pip install pluriverse[mujoco-warp]"
    )
    model = slider_crank(0.4, damping=2.0, limit_lower=0.8).finalize("cpu")
    results = []
    for by_engine in (True, False):
        solver = pv.SolverMuJoCo(model, use_mujoco_cpu=by_engine)
        state, other = model.state(), model.state()
        for _ in range(2):
            solver.step(state, other, None, None, 0.005)
            state, other = other, state
        results.append(np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()]))
    # The weld weighs 1e4 times as much as what it holds, so that single precision leaves 1e-3 of velocities.
    np.testing.assert_allclose(results[1][:4], results[0][:4], rtol=0.0, atol=5e-6)
    np.testing.assert_allclose(results[1][4:], results[0][4:], rtol=1e-3, atol=1e-4)


def test_loop_coordinates_follow_what_is_written_to_the_other_joints():
    """After `eval_fk`, `eval_loops` finds place and speed of the piston, in the worlds that are asked for."""
    scene = pv.ModelBuilder()
    for angle in (0.2, 0.4, 0.6):
        scene.add_world(slider_crank(angle, damping=1.0))
    model = scene.finalize("cpu")
    state, step = model.state(), 1e-4
    before = state.joint_q.numpy().reshape(3, 4).copy()
    q, qd = state.joint_q.numpy().reshape(3, 4), state.joint_qd.numpy().reshape(3, 4)
    for world, angle in ((0, -1.0), (2, 2.0)):
        q[world, :3] = slider_crank(angle).joint_q[:3]
        qd[world, :3] = crank_rates(angle, 3.0)
    state.joint_q.assign(q.reshape(-1))
    state.joint_qd.assign(qd.reshape(-1))
    pv.eval_fk(model, state.joint_q, state.joint_qd, state)
    chosen = wp.array([0, 2], dtype=wp.int32, device="cpu")
    pv.eval_loops(model, model.state())  # allocates what it keeps for the model
    with wp.ScopedCapture(device="cpu") as capture:
        pv.eval_loops(model, state, worlds=chosen)
    wp.capture_launch(capture.graph)
    found, rate = state.joint_q.numpy().reshape(3, 4), state.joint_qd.numpy().reshape(3, 4)
    for world, angle in ((0, -1.0), (2, 2.0)):
        speed = 3.0 * (piston_place(angle + step) - piston_place(angle - step)) / (2.0 * step)
        np.testing.assert_allclose(found[world, 3], piston_place(angle), atol=1e-6)
        np.testing.assert_allclose(rate[world, 3], speed, atol=1e-5)
    np.testing.assert_array_equal(found[1], before[1])
    np.testing.assert_allclose(state.body_q.numpy()[[3, 11]], state.body_q.numpy()[[2, 10]], atol=0.0)


def test_worlds_with_loops_do_not_depend_on_their_neighbours():
    """The same bits alone, between others, and in a recorded step."""
    scene = pv.ModelBuilder()
    for angle in (0.9, 0.4, 0.4):
        scene.add_world(slider_crank(angle, damping=1.0))
    scene.add_world(slider_crank(0.4, friction=1.0))
    together = run(scene.finalize("cpu"), pv.SolverSAP, 0.005, 50).reshape(-1, 4, 4)
    alone = run(slider_crank(0.4, damping=1.0).finalize("cpu"), pv.SolverSAP, 0.005, 50)
    np.testing.assert_array_equal(together[:, 1], alone)
    np.testing.assert_array_equal(together[:, 2], alone)
    simulation = pv.Simulation(scene.finalize("cpu"), dt=0.005)
    simulation.step(50)
    np.testing.assert_array_equal(simulation.state.joint_q.numpy().reshape(4, 4), together[-1])
