"""Limits of tendons: springs whose softness their mode chooses."""

import numpy as np

from pluriverse import ModelBuilder, ModelFlags, SolverMuJoCo
from pluriverse.mujoco_attributes.choices import SolrefMode
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions

DT = 0.002


def make_limited_slider(mass: float, stiffness: float, damping: float, mode: SolrefMode) -> ModelBuilder:
    """Return a slider whose tendon of twice its way may be 0.2 m long."""
    builder = ModelBuilder(gravity=0.0)
    SolverMuJoCo.register_custom_attributes(builder)
    body = builder.add_link(mass=mass, inertia=np.eye(3))
    slide = builder.add_joint_prismatic(-1, body, axis="x")
    builder.add_articulation([slide])
    row = builder.add_custom_values({"mujoco:tendon_joint": slide, "mujoco:tendon_coef": 2.0})
    builder.add_custom_values(
        {
            "mujoco:tendon_joint_adr": row["mujoco:tendon_joint"],
            "mujoco:tendon_joint_num": 1,
            "mujoco:tendon_range": (-0.2, 0.2),
            "mujoco:tendon_limit_ke": stiffness,
            "mujoco:tendon_limit_kd": damping,
            "mujoco:tendon_solref_limit": (-400.0, -40.0),
            "mujoco:tendon_solref_limit_mode": int(mode),
        }
    )
    return builder


def test_a_tendon_limit_of_forces_is_a_spring_of_its_stiffness():
    """Stretched by F / (2 ke), a tendon holds F on its slider still, whatever the mass; so after edits."""
    stiffness, force, dt = 100.0, 3.0, 0.001
    builder = ModelBuilder(gravity=0.0)
    for mass, ke, kd in (
        (1.0, stiffness, 20.0),
        (4.0, stiffness, 5.0),
        (2.0, stiffness, 0.0),
        (2.0, 0.0, 20.0),
    ):
        builder.add_world(make_limited_slider(mass, ke, kd, SolrefMode.FORCE_SPACE))
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    assert len(solver.groups) == 1

    def accelerations() -> np.ndarray:
        states, control = [model.state(), model.state()], model.control()
        states[0].joint_q.assign(np.full(4, 0.1 + 0.25 * force / stiffness))
        control.joint_f.assign(np.full(4, force))
        solver.unfreeze()
        solver.step(*states, control, None, dt)
        return states[1].joint_qd.numpy() / dt

    # The length is twice the way, so the force on the slider twice that of the tendon. Gains are kept in
    # single precision, as is the way.
    error = force * 1e-5
    np.testing.assert_allclose(accelerations(), [0.0, 0.0, 0.0, force / 2.0], atol=error)
    model.body_mass.assign(np.array([3.0, 0.5, 1.0, 1.0]))
    solver.notify_model_changed(ModelFlags.BODY_INERTIAL_PROPERTIES)
    np.testing.assert_allclose(accelerations(), [0.0, 0.0, 0.0, force / 1.0], atol=error)
    model.mujoco.tendon_limit_ke.assign(np.array([stiffness] * 2 + [2.0 * stiffness, stiffness]))
    solver.notify_model_changed(ModelFlags.TENDON_PROPERTIES)
    # Off the equilibrium a constraint of impedance d moves by 1 - d of what the forces would do.
    np.testing.assert_allclose(accelerations(), [0.0, 0.0, -0.05 * force / 1.0, 0.0], atol=error)


def test_tendon_limits_of_forces_follow_the_mass_on_the_device():
    """Kernels make of another mass what a conversion makes of it, with damping and without."""
    builder = ModelBuilder()
    for damping in (20.0, 0.0):
        builder.add_world(make_limited_slider(1.0, 100.0, damping, SolrefMode.FORCE_SPACE))
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    solver.track_model({"body_mass": None})
    before = [group.value("tendon_solref_lim").copy() for group in solver.groups]
    model.body_mass.assign(3.0 * model.body_mass.numpy())
    solver.sync_worlds()
    anew = SolverMuJoCo(model)
    for group, other, old in zip(solver.groups, anew.groups, before, strict=True):
        values = group.value("tendon_solref_lim")
        assert (values != old).any()
        np.testing.assert_allclose(values, other.value("tendon_solref_lim"), rtol=1e-9)


def test_the_mode_of_a_tendon_limit_chooses_its_softness():
    """Authored numbers, or those of MuJoCo; the gains as forces have no part in either."""
    builder = ModelBuilder()
    for mode in (SolrefMode.RAW, SolrefMode.MJCF_DEFAULT):
        builder.add_world(make_limited_slider(1.0, 100.0, 20.0, mode))
    (group,) = convert_model(builder.finalize("cpu"), MujocoOptions())
    np.testing.assert_allclose(group.value("tendon_solref_lim")[:, 0], [[-400.0, -40.0], [0.02, 1.0]])
