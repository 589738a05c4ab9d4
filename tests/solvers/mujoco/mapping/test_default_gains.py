"""Robots whose limits nobody stiffened behave as in MuJoCo, without the custom attributes as well."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.selection import ArticulationView

DT = 0.005
# A light shank that begins half a radian beyond its limit, as robots do whose zero pose is not among theirs.
LEG = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hip" axis="0 1 0" range="-1 1"/>
      <inertial mass="1" pos="0 0 -0.1" diaginertia="0.005 0.005 0.001"/>
      <body pos="0 0 -0.2">
        <joint name="knee" axis="0 1 0" range="-2.8 -0.5"/>
        <inertial mass="0.2" pos="0 0 -0.1" diaginertia="0.0005 0.0005 0.0001"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("registered", [False, True])
def test_a_limit_violated_at_the_start_moves_as_in_mujoco(registered):
    """Gains that nobody gave are MuJoCo's own, which its step resolves."""
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(LEG)
    model = builder.finalize("cpu")
    plain = mujoco.MjModel.from_xml_string(LEG)
    plain.opt.timestep, plain.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(plain)
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        for _ in range(100):
            simulation.step()
            mujoco.mj_step(plain, data)
        # The model keeps its numbers in single precision, and half a second of swinging amplifies that.
        np.testing.assert_allclose(simulation.state.joint_q.numpy(), data.qpos, rtol=0.0, atol=1e-4)
        assert not simulation.report().frozen_worlds


def test_gains_that_were_set_are_forces():
    """A limit of 500 N·m/rad holds a static torque of 5 N·m 0.01 rad beyond its end."""
    builder = pv.ModelBuilder(gravity=0.0)
    link = builder.add_link(mass=1.0, inertia=np.eye(3) * 0.1)
    hinge = builder.add_joint_revolute(
        -1, link, limit_lower=-1.0, limit_upper=1.0, limit_ke=500.0, limit_kd=20.0
    )
    builder.add_articulation([hinge])
    builder.joint_q[:] = 1.0
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        simulation.control.joint_f.fill_(5.0)
        simulation.step(1000)
        # The impedance at this violation is its largest, 0.95, for which the gains are exact.
        assert simulation.state.joint_q.numpy()[0] - 1.0 == pytest.approx(0.01, rel=1e-3)


def test_a_limit_of_an_asset_is_that_of_mujoco_until_its_gains_are_changed():
    """A limit without solref rests where MuJoCo has it; with gains of its own, where force and gain say."""
    builder = pv.ModelBuilder(gravity=0.0)
    pv.SolverMuJoCo.register_custom_attributes(builder)
    with pytest.warns(pv.importers.AssetWarning, match="gravity"):
        builder.add_mjcf(LEG.replace("-2.8 -0.5", "-2.8 0.5"))
    model = builder.finalize("cpu")
    assert model.mujoco.solreflimit_mode.numpy().tolist() == [pv.solvers.mujoco.SolrefMode.MJCF_DEFAULT] * 2
    solver = pv.SolverMuJoCo(model)
    (group,) = solver.groups
    np.testing.assert_array_equal(group.model.jnt_solref, [[0.02, 1.0]] * 2)
    gains = model.joint_limit_ke.numpy()
    gains[1] = 500.0
    model.joint_limit_ke.assign(gains)
    solver.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
    np.testing.assert_array_equal(group.model.jnt_solref[0], [0.02, 1.0])
    # The force of a violation beyond the width of the impedance, with the inverse weight w of the joint.
    weight, dmax = group.model.dof_invweight0[1], group.model.jnt_solimp[1, 1]
    timeconst, dampratio = group.model.jnt_solref[1]
    assert 1.0 / (timeconst * dampratio) ** 2 / (weight * (1.0 - dmax)) == pytest.approx(500.0, rel=1e-5)


def limits_of(builder):
    """Return `jnt_solref`, the gain that it makes k and b of (w (1 - dmax)), and the solver."""
    solver = pv.SolverMuJoCo(builder.finalize("cpu"))
    (group,) = solver.groups
    factor = group.model.dof_invweight0 * (1.0 - group.model.jnt_solimp[:, 1])
    return group.model.jnt_solref.copy(), factor, solver


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("stiffness", [1.0e4, 1.0e4 * 1.000001, 777.0])
def test_a_gain_that_equals_a_default_is_a_gain_all_the_same(registered, stiffness):
    """The solref of given gains is smooth in them: timeconst = 2 / b, dampratio = b / (2 sqrt(k)).

    The damping b is at most critical, 2 sqrt(k), or MuJoCo's own, 100 / s.
    """
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(LEG)
    builder.joint_limit_ke[:], builder.joint_limit_kd[:] = stiffness, 10.0
    solref, factor, _ = limits_of(builder)
    b = np.minimum(10.0 * factor, np.maximum(2.0 * np.sqrt(stiffness * factor), 100.0))
    np.testing.assert_allclose(solref[:, 0], 2.0 / b, rtol=1e-6)
    np.testing.assert_allclose(solref[:, 1], b / (2.0 * np.sqrt(stiffness * factor)), rtol=1e-6)


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_more_stiffness_never_makes_a_contact_softer_than_the_default(dt):
    """A ball sinks in by less the stiffer the contact is, up to what the step resolves.

    With the dissipation time of ShapeConfig a stiffness from 4e4 N/m on is overdamped. MuJoCo raises the time
    constant to two steps and keeps the damping ratio, so 1e7 N/m was softer than its default.
    """
    builder = pv.ModelBuilder()
    for stiffness in (1e3, 1e4, 1e5, 1e6, 1e7):
        world = pv.ModelBuilder()
        config = pv.ShapeConfig(density=0.0, ke=stiffness)
        body = world.add_body(
            xform=(0.0, 0.0, 0.0999, 0.0, 0.0, 0.0, 1.0), mass=1.0, inertia=0.004 * np.eye(3)
        )
        world.add_shape_sphere(body, radius=0.1, cfg=config)
        world.add_ground_plane(cfg=config)
        builder.add_world(world)
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=dt, threads=1) as simulation:
        simulation.step(round(2.0 / dt))
        depth = 0.1 - simulation.state.body_q.numpy()[:, 2]
    if dt == 0.002:  # at 10 ms, 1e4 N/m is underdamped, and stiffer than a step resolves with damping
        assert (np.diff(depth) <= 1e-7).all(), depth
    # With MuJoCo's own stiffness k of 2500 / s² the ball rests at r where the force k d r / R, with
    # R = (1 - d) w / d, is its weight; the impedance d is 0.9 or more.
    assert (depth[1:] < 9.81 * (1.0 - 0.9) / 0.9**2 / 2500.0).all(), depth


def test_half_of_a_pair_of_gains_completes_itself_with_that_of_mujoco():
    """Stiffness alone is critically damped (dampratio 1); damping alone has MuJoCo's k = 1 / (0.02 s)²."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(LEG)
    builder.joint_limit_ke[0] = 300.0
    builder.joint_limit_kd[1] = 2.0
    solref, factor, _ = limits_of(builder)
    np.testing.assert_allclose(solref[0], [1.0 / np.sqrt(300.0 * factor[0]), 1.0], rtol=1e-6)
    b = 2.0 * factor[1]
    np.testing.assert_allclose(solref[1], [2.0 / b, b / (2.0 * 50.0)], rtol=1e-6)


@pytest.mark.parametrize("stage", ["host", "device"])
def test_taking_a_gain_back_gives_the_limit_of_mujoco_back(stage):
    """A number makes the limit a force, NaN leaves it to MuJoCo again, on host and device alike."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(LEG)
    solref, factor, solver = limits_of(builder)
    np.testing.assert_array_equal(solref, [[0.02, 1.0]] * 2)
    (group,) = solver.groups
    if stage == "device":
        solver.track_model(["joint_limit_ke", "joint_limit_kd"])
    model = solver.model
    for gains, expected in (
        ((1.0e4, 10.0), [2.0 / (10.0 * factor[1]), 10.0 * factor[1] / (2.0 * np.sqrt(1.0e4 * factor[1]))]),
        ((np.nan, np.nan), [0.02, 1.0]),
    ):
        for name, value in zip(("joint_limit_ke", "joint_limit_kd"), gains, strict=True):
            values = getattr(model, name).numpy()
            values[1] = value
            getattr(model, name).assign(values)
        if stage == "host":
            solver.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
        else:
            solver.sync_worlds()
        found = group.value("jnt_solref")[0]
        np.testing.assert_array_equal(found[0], [0.02, 1.0])
        np.testing.assert_allclose(found[1], expected, rtol=1e-6)


def test_other_values_than_numbers_and_none_are_refused():
    """Negative and infinite gains are no gains."""
    for value in (-1.0, np.inf):
        builder = pv.ModelBuilder()
        builder.add_mjcf(LEG)
        builder.joint_limit_ke[0] = value
        with pytest.raises(ValueError, match=r"hip.*joint_limit_ke"):
            builder.finalize("cpu")


@pytest.mark.parametrize("stage", ["host", "device"])
def test_a_stiffness_per_mass_is_the_solref_that_it_was_made_of(stage):
    """At rest MuJoCo pushes with k / (1 - dmax) per mass, dmax being 0.95, so k is a twentieth of it.

    Without a dissipation time the damping is critical; a stiffness in N/m goes before one per mass.
    """
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    model = builder.finalize("cpu")
    solver = pv.SolverMuJoCo(model)
    (group,) = solver.groups
    if stage == "device":
        solver.track_model(["shape_material_ke_per_mass", "shape_material_ke", "shape_material_tau"])
    for ke, per_mass, tau, expected in (
        (np.nan, 20.0 * 1e4, np.nan, [0.01, 1.0]),
        (np.nan, 20.0 * 1e4, 0.01, [0.02, 0.5]),
        (2500.0, 20.0 * 1e4, np.nan, [0.02, 1.0]),
    ):
        model.shape_material_ke.fill_(ke)
        model.shape_material_ke_per_mass.fill_(per_mass)
        model.shape_material_tau.fill_(tau)
        if stage == "host":
            solver.notify_model_changed(pv.ModelFlags.SHAPE_PROPERTIES)
        else:
            solver.sync_worlds()
        np.testing.assert_allclose(group.value("geom_solref")[0][0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "solimp", ["0.9 0.95 0.001", "0.9 0.99 0.003", "0 0.5 0.01", "0.8 1 0.01"], ids=lambda solimp: solimp
)
def test_an_imported_solref_comes_back_beside_any_solimp(solimp):
    """A conversion and its inverse cancel: k / (1 - dmax) (1 - dmax) = k, whatever the impedance."""
    document = f"""<mujoco><worldbody><body pos="0 0 1"><freejoint/>
      <geom name="stiff" size="0.1" solref="0.01 1" solimp="{solimp}"/>
      <geom name="light" size="0.1" solref="0.03 0.5" solimp="{solimp}"/>
      <geom name="gains" size="0.1" solref="-400 -30" solimp="{solimp}"/>
    </body></worldbody></mujoco>"""
    builder = pv.ModelBuilder()
    with pytest.warns(match="solref"):
        builder.add_mjcf(document)
    (group,) = pv.SolverMuJoCo(builder.finalize("cpu")).groups
    authored = mujoco.MjModel.from_xml_string(document)
    np.testing.assert_allclose(group.value("geom_solimp")[0], authored.geom_solimp, rtol=1e-6)
    # Two negative numbers are k and b; the same constraint is timeconst = 2 / b, dampratio = b / (2 sqrt(k)).
    expected = [authored.geom_solref[0], authored.geom_solref[1], [2.0 / 30.0, 30.0 / (2.0 * 20.0)]]
    np.testing.assert_allclose(group.value("geom_solref")[0], expected, rtol=1e-5)


@pytest.mark.parametrize("stage", ["host", "device"])
def test_stiffness_of_contacts_may_be_given_taken_back_and_infinite(stage):
    """Given, it is that of 1 kg; not given, MuJoCo's own; infinite, faster than any step, but a number."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    above = builder.add_body(xform=(0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(above, radius=0.1, cfg=pv.ShapeConfig(tau=0.01))
    model = builder.finalize("cpu")
    solver = pv.SolverMuJoCo(model)
    (group,) = solver.groups
    np.testing.assert_array_equal(group.model.geom_solref, [[0.02, 1.0]] * 2)
    if stage == "device":
        solver.track_model(["shape_material_ke"])
    for stiffness, expected in (
        (2500.0, [2.0 / 25.0, 25.0 / (2.0 * 50.0)]),  # kd = ke tau = 2500 N/m 0.01 s
        (2500.0 * 1.000001, [2.0 / 25.0, 25.0 / (2.0 * 50.0)]),
        (np.inf, [1e-6, 1.0]),
        (np.nan, [0.02, 1.0]),
    ):
        model.shape_material_ke.assign(np.array([np.nan, stiffness], dtype=np.float32))
        if stage == "host":
            solver.notify_model_changed(pv.ModelFlags.SHAPE_PROPERTIES)
        else:
            solver.sync_worlds()
        found = group.value("geom_solref")[0]
        np.testing.assert_array_equal(found[0], [0.02, 1.0])
        np.testing.assert_allclose(found[1], expected, rtol=1e-5)


def test_a_shape_without_gains_is_as_in_mujoco_where_gains_are_forces():
    """FORCE_SPACE says how to read gains; without any a sphere rests as in the default mode."""
    depths = {}
    for mode in (pv.solvers.mujoco.SolrefMode.FORCE_SPACE, pv.solvers.mujoco.SolrefMode.MJCF_DEFAULT):
        for given in (None, 1000.0):
            builder = pv.ModelBuilder()
            pv.SolverMuJoCo.register_custom_attributes(builder)
            options = {
                "cfg": pv.ShapeConfig(ke=given, density=0.0),
                "custom_attributes": {"mujoco:solref_mode": int(mode)},
            }
            builder.add_ground_plane(**options)
            pose = (0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0)
            body = builder.add_body(xform=pose, mass=2.0, inertia=0.008 * np.eye(3))
            builder.add_shape_sphere(body, radius=0.1, **options)
            model = builder.finalize("cpu")
            solver = pv.SolverMuJoCo(model, use_mujoco_contacts=False)
            with pv.Simulation(model, solver, dt=DT) as simulation:
                simulation.step(200)
                depths[mode.name, given] = 0.1 - simulation.state.body_q.numpy()[0, 2]
    assert depths["FORCE_SPACE", None] == depths["MJCF_DEFAULT", None]
    assert depths["FORCE_SPACE", 1000.0] > 5.0 * depths["FORCE_SPACE", None]


def test_what_is_not_given_survives_copies_snapshots_and_views(tmp_path):
    """NaN is carried by replicate, files and views as any number is, beside worlds that have one."""
    single = pv.ModelBuilder()
    single.add_mjcf(LEG)
    builder = pv.ModelBuilder()
    builder.replicate(single, 2)
    model = builder.finalize("cpu")
    assert np.isnan(model.joint_limit_ke.numpy()).all()
    simulation = pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT)
    (group,) = simulation.solver.groups
    model.joint_limit_ke.assign(np.array([np.nan, 300.0, np.nan, np.nan], dtype=np.float32))
    simulation.save(tmp_path / "state.npz")
    model.joint_limit_ke.fill_(50.0)
    simulation.restore(tmp_path / "state.npz")
    np.testing.assert_array_equal(model.joint_limit_ke.numpy(), [np.nan, 300.0, np.nan, np.nan])
    solref = group.value("jnt_solref")
    np.testing.assert_array_equal(solref[0, 0], [0.02, 1.0])
    assert solref[0, 1, 1] == pytest.approx(1.0)
    assert solref[0, 1, 0] != 0.02
    np.testing.assert_array_equal(solref[1], [[0.02, 1.0]] * 2)
    view = ArticulationView(model, "*")
    gains = view.get_attribute("joint_limit_ke", model).numpy()
    assert np.isnan(gains).sum() == 3
    view.set_attribute("joint_limit_ke", model, np.full_like(gains, np.nan))
    assert np.isnan(model.joint_limit_ke.numpy()).all()
    simulation.step(3)
    assert not simulation.report().frozen_worlds
