"""How the friction of two shapes becomes that of their contact."""

import pytest

import pluriverse as pv

DT = 0.005


@pytest.mark.parametrize(
    ("rule", "acting"),
    [("harmonic_mean", 2 * 0.34 / 1.34), ("arithmetic_mean", 0.67), ("minimum", 0.34), ("maximum", 1.0)],
)
def test_a_box_is_pushed_as_far_as_the_friction_of_the_rule_lets(rule, acting):
    """A box of 0.34 on a ground of 1 holds against 95 % of mu m g, and gives way to 105 %."""
    speeds = []
    for share in (0.95, 1.05):
        world = pv.ModelBuilder()
        world.add_ground_plane(cfg=pv.ShapeConfig(mu=1.0, ke=1.0e5))
        body = world.add_body(xform=(0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0))
        world.add_shape_box(body, hx=0.2, hy=0.2, hz=0.05, cfg=pv.ShapeConfig(mu=0.34, ke=1.0e5))
        model = world.finalize("cpu")
        solver = pv.SolverSAP(model, friction_combination=rule)
        simulation = pv.Simulation(model, solver, dt=DT, threads=1)
        simulation.step(40)
        force = simulation.state.body_f.numpy()
        force[0, 0] = share * acting * 9.81 * float(model.body_mass.numpy()[0])
        simulation.state.body_f.assign(force)
        simulation.step(40)
        speeds.append(float(simulation.state.joint_qd.numpy()[0]))
    assert abs(speeds[0]) < 1e-3
    # What friction leaves of the force, for 0.2 s: at least half of 5 %.
    assert speeds[1] > 0.5 * 0.05 * acting * 9.81 * 0.2
