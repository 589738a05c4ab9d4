"""After each documented kind of edit and its notice, a solver moves like one made anew."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, ModelFlags, ShapeConfig, SolverMuJoCo
from tests.solvers.mujoco.test_grouping import build_worlds

DT = 0.002
# MuJoCo's results do not depend on when its model was edited; what is left is the warm start of a new solver.
ROUNDING = 1e-6

EDITS = {
    "gravity": (ModelFlags.MODEL_PROPERTIES, "set", 2.0),
    "body_mass": (ModelFlags.BODY_INERTIAL_PROPERTIES, "scale", 1.5),
    "body_com": (ModelFlags.BODY_INERTIAL_PROPERTIES, "add", 0.03),
    "body_inertia": (ModelFlags.BODY_INERTIAL_PROPERTIES, "scale", 1.3),
    "joint_armature": (ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES, "add", 0.2),
    "joint_damping": (ModelFlags.JOINT_DOF_FORCE_PROPERTIES, "add", 0.5),
    "joint_friction": (ModelFlags.JOINT_DOF_PROPERTIES, "add", 0.5),
    "joint_target_ke": (ModelFlags.JOINT_DOF_PROPERTIES, "scale", 3.0),
    "joint_effort_limit": (ModelFlags.ACTUATOR_PROPERTIES | ModelFlags.JOINT_DOF_PROPERTIES, "scale", 0.5),
    "joint_limit_upper": (ModelFlags.JOINT_DOF_PROPERTIES, "set", 0.01),
    "joint_limit_ke": (ModelFlags.JOINT_DOF_PROPERTIES, "scale", 4.0),
    "joint_X_p": (ModelFlags.JOINT_PROPERTIES, "shift", 0.1),
    "shape_material_mu": (ModelFlags.SHAPE_PROPERTIES, "scale", 0.2),
    "shape_scale": (ModelFlags.SHAPE_PROPERTIES, "scale", 1.2),
    "shape_transform": (ModelFlags.SHAPE_PROPERTIES, "shift", 0.05),
    "equality_constraint_anchor": (ModelFlags.CONSTRAINT_PROPERTIES, "add", 0.2),
    "equality_constraint_enabled": (ModelFlags.CONSTRAINT_PROPERTIES, "set", 0),
}


def edit(model, name: str, kind: str, amount: float) -> None:
    """Change an array, in each world by another amount."""
    array = getattr(model, name)
    values = array.numpy().copy()
    share = np.linspace(0.5, 1.5, len(values)).reshape(-1, *[1] * (values.ndim - 1))
    if kind == "set":
        values[...] = amount
    elif kind == "scale":
        values = values * (1.0 + (amount - 1.0) * share)
    elif kind == "add":
        values = values + amount * share
    else:
        values[:, :3] += amount * share
    if name == "joint_limit_upper":
        values = np.maximum(values, model.joint_limit_lower.numpy())
    array.assign(values.astype(array.numpy().dtype))


def simulate(model, solver, count: int = 20) -> np.ndarray:
    states = [model.state(), model.state()]
    control = model.control()
    for _ in range(count):
        solver.step(*states, control, None, DT)
        states.reverse()
    return states[0].joint_q.numpy()


@pytest.mark.parametrize("name", EDITS)
def test_a_solver_that_was_told_of_an_edit_moves_like_a_new_one(name):
    flags, kind, amount = EDITS[name]
    model = build_worlds([3, 4], simple=True).finalize(device="cpu")
    solver = SolverMuJoCo(model)
    before = simulate(model, solver)
    edit(model, name, kind, amount)
    solver.notify_model_changed(flags)
    solver.unfreeze()  # forget what the worlds carry from step to step
    after = simulate(model, solver)
    np.testing.assert_allclose(after, simulate(model, SolverMuJoCo(model)), atol=ROUNDING)
    assert np.abs(after - before).max() > 10 * ROUNDING


def test_a_joint_without_limits_can_get_them():
    """A pendulum that swung freely stops at the limit that it is given."""
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, body, axis=(0.0, 0.0, 1.0))])
    builder.joint_qd[0] = 2.0
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    assert solver.groups[0].model.jnt_limited[0] == 0
    assert simulate(model, solver, 500)[0] == pytest.approx(2.0, rel=1e-3)
    model.joint_limit_upper.assign(np.array([0.5], dtype=np.float32))
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    solver.unfreeze()
    assert simulate(model, solver, 500)[0] < 0.55


def test_shapes_can_be_switched_off_and_on_again():
    """A ball falls through a floor that is switched off in its world, and rests on one that is not."""
    builder = ModelBuilder()
    for _ in range(2):
        builder.begin_world()
        builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.1)
        ball = builder.add_body(mass=1.0, inertia=np.eye(3), xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_sphere(ball, radius=0.1, cfg=ShapeConfig(density=0.0))
        builder.end_world()
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    for enabled in ([True, True], [False, True], [True, True]):
        model.shape_enabled.assign(np.array([enabled[0], True, enabled[1], True]))
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        solver.unfreeze()
        heights = simulate(model, solver, 100).reshape(2, 7)[:, 2]
        np.testing.assert_allclose(heights > 0.19, enabled)
