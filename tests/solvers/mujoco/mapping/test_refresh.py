"""After each documented kind of edit and its notice, a solver moves like a new one."""

import mujoco
import numpy as np
import pytest

from pluriverse import Model, ModelBuilder, ModelFlags, ShapeConfig, SolverMuJoCo
from tests.solvers.mujoco.mapping.test_grouping import build_worlds

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
    "shape_material_mu": (ModelFlags.SHAPE_PROPERTIES, "scale", 0.4),
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
def test_a_solver_notified_of_an_edit_moves_like_a_new_one(name):
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


def balls_on_floors(*, paired: bool = False) -> Model:
    """Return two worlds of a ball on a floor; a pair makes the floor slippery, or nothing does."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    for _ in range(2):
        builder.begin_world()
        floor = builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.1, label="floor")
        ball = builder.add_body(mass=1.0, inertia=np.eye(3), xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0)))
        shape = builder.add_shape_sphere(ball, radius=0.1, cfg=ShapeConfig(density=0.0))
        if paired:
            builder.add_custom_values({"mujoco:pair_geom1": floor, "mujoco:pair_geom2": shape})
        builder.end_world()
    return builder.finalize(device="cpu")


@pytest.mark.parametrize("engine", ["C", "Warp"])
@pytest.mark.parametrize("paired", [False, True], ids=["mixed", "paired"])
def test_shapes_can_be_switched_off_and_on_again(engine, paired):
    """A ball falls through a floor that is switched off in its world, and rests on one that is not."""
    if engine == "Warp":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed")
    model = balls_on_floors(paired=paired)
    solver = SolverMuJoCo(model, use_mujoco_cpu=engine == "C")
    assert len(solver.groups) == 1
    for enabled in ([True, True], [False, True], [True, False], [False, False], [True, True]):
        model.shape_enabled.assign(np.array([enabled[0], True, enabled[1], True]))
        solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)  # has no part in it
        solver.unfreeze()
        heights = simulate(model, solver, 50).reshape(2, 7)[:, 2]
        np.testing.assert_allclose(heights > 0.198, enabled)
        assert solver.last_contact_count.numpy().tolist() == [int(on) for on in enabled]


def test_pairs_that_filters_name_follow_shapes_of_each_world():
    """Where contact bits do not suffice, friction and switches of a world act as they do elsewhere."""
    rng = np.random.default_rng(2)
    source = ModelBuilder(gravity=0.0)
    for _ in range(48):
        body = source.add_body(mass=1.0, inertia=np.eye(3))
        for _ in range(2):
            source.add_shape_sphere(body, radius=0.5, cfg=ShapeConfig(density=0.0))
    for pair in np.argwhere(np.triu(rng.random((96, 96)) < 0.5, 1)).tolist():
        source.add_shape_collision_filter_pair(*pair)
    builder = ModelBuilder(gravity=0.0)
    builder.replicate(source, 2)
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    (group,) = solver.groups
    named = {frozenset(pair) for pair in group.plan.masks.pairs}
    assert len(named) > 10
    friction, enabled = rng.uniform(0.1, 1.0, (2, 96)).astype(np.float32), rng.random((2, 96)) < 0.8
    model.shape_material_mu.assign(friction.reshape(-1))
    model.shape_enabled.assign(enabled.reshape(-1))
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    template = model.templates[0]
    candidates = {frozenset(pair) for pair in zip(template.pair_shape0, template.pair_shape1, strict=True)}
    for world in range(2):
        for name, values in group.fields.items():
            if not name.startswith("opt."):
                getattr(group.model, name)[...] = values[world]
        data = mujoco.MjData(group.model)
        data.qpos[:] = np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 48)
        mujoco.mj_fwdPosition(group.model, data)
        acting = data.contact.exclude == 0
        touching = group.geom_shape[data.contact.geom[acting]]
        expected = {pair for pair in candidates if enabled[world, list(pair)].all()}
        assert {frozenset(pair) for pair in touching.tolist()} == expected
        larger = friction[world, touching].max(axis=1)
        np.testing.assert_allclose(data.contact.friction[acting, 0], larger, rtol=1e-6)


def test_limits_that_are_taken_away_no_longer_act():
    """Notified limits and effort limits without bounds replace those that a world had."""
    builder = ModelBuilder()
    for joint in ("hinge", "ball"):
        body = builder.add_link(mass=1.0, inertia=np.eye(3))
        if joint == "hinge":
            made = builder.add_joint_revolute(
                -1, body, limit_lower=-0.1, limit_upper=0.1, effort_limit=2.0, target_kd=1.0
            )
        else:
            made = builder.add_joint_ball(-1, body, effort_limit=3.0, target_kd=1.0)
        builder.add_articulation([made])
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    compiled = solver.groups[0].model
    assert compiled.jnt_limited.tolist() == [1, 0]
    model.joint_limit_lower.fill_(-np.inf)
    model.joint_limit_upper.fill_(np.inf)
    model.joint_effort_limit.fill_(np.inf)
    solver.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
    assert (np.abs(compiled.jnt_range[0]) >= 1e10).all()
    assert (np.abs(compiled.actuator_forcerange) >= 1e20).all()
