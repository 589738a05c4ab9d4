"""Worlds of one structure share a MuJoCo model; what else differs between them is exact in every world."""

import mujoco
import numpy as np
import pytest
import trimesh

from pluriverse import JointDofConfig, JointTargetMode, Mesh, ModelBuilder, ModelFlags, ShapeConfig
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.mapping.group import JointKind, MujocoGroup
from pluriverse.solvers.mujoco.mapping.refresh import refresh_groups
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.dynamics.trees import random_frame, random_inertia

# Fields of a compiled model that are no parameters: trees of boxes, pictures, where free bodies begin, and a
# length that only scales the speed at which trees fall asleep.
NOT_COMPARED = (
    *("bvh", "name", "body_simple", "dof_simplenum", "M_", "mapM", "D_", "B_", "vis", "stat", "qpos"),
    "dof_length",
)
# mj_setConst on numbers that went through single precision in the same way: some roundings of float64.
ROUNDING = 1e-11


def given(value: float) -> float | None:
    """Return the value, or None (not given) for three in ten."""
    return value if 1e6 * value % 1.0 < 0.7 else None


def add_machine(builder: ModelBuilder, rng: np.random.Generator, *, simple: bool = False) -> None:
    """Add a machine of fixed structure with random numbers."""
    gains = {"target_ke": rng.uniform(1.0, 9.0), "target_kd": rng.uniform(0.1, 0.9)}

    def link() -> int:
        mass = rng.uniform(0.5, 2.0)
        com = np.zeros(3) if simple else rng.uniform(-0.1, 0.1, 3)
        inertia = np.diag(rng.uniform(0.2, 0.3, 3)) if simple else random_inertia(rng, mass)
        return builder.add_link(mass=mass, com=com, inertia=inertia, xform=random_frame(rng))

    def axis() -> JointDofConfig:
        low, high = np.sort(rng.uniform(-1.0, 1.0, 2))
        return JointDofConfig(
            axis=rng.normal(size=3),
            limit_lower=low,
            limit_upper=high if rng.random() < 0.7 else np.inf,
            limit_ke=given(rng.uniform(10.0, 100.0)),
            limit_kd=given(rng.uniform(1.0, 2.0)),
            armature=rng.uniform(0.0, 0.1),
            damping=rng.uniform(0.0, 0.1),
            friction=rng.uniform(0.0, 0.1),
            effort_limit=rng.uniform(5.0, 9.0),
            actuator_mode=JointTargetMode.POSITION,
            **gains,
        )

    frames = {"parent_xform": random_frame(rng), "child_xform": random_frame(rng)}
    base, upper, lower, ball, free = (link() for _ in range(5))
    joints = [
        builder.add_joint_fixed(-1, base, **frames),
        builder.add_joint_revolute(base, upper, axis=axis(), **frames),
        builder.add_joint_d6(upper, lower, linear_axes=[axis()], angular_axes=[axis(), axis()], **frames),
        builder.add_joint_ball(lower, ball, target_kd=rng.uniform(0.1, 0.2), effort_limit=3.0, **frames),
    ]
    builder.add_articulation(joints)
    builder.add_articulation([builder.add_joint_free(free)])
    for body in (upper, lower, free, free):
        ke = given(rng.uniform(1e2, 1e4))
        cfg = ShapeConfig(density=0.0, mu=rng.uniform(0.1, 1.0), ke=ke, margin=0.001)
        builder.add_shape_box(
            body, xform=random_frame(rng), hx=rng.uniform(0.1, 0.2), hy=0.1, hz=0.1, cfg=cfg
        )
    builder.add_shape_capsule(-1, xform=random_frame(rng), radius=rng.uniform(0.1, 0.2), half_height=0.3)
    builder.add_site(upper, xform=random_frame(rng))
    builder.add_equality_constraint_weld(free, ball, relpose=random_frame(rng), torquescale=rng.uniform(1, 2))
    builder.add_equality_constraint_connect(
        upper, free, anchor=rng.normal(size=3), enabled=rng.random() < 0.5
    )


def build_worlds(seeds: list[int], **options) -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_ground_plane()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        builder.begin_world(gravity=rng.normal(size=3))
        add_machine(builder, rng, **options)
        builder.end_world()
    return builder


def fields_of(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Return the numeric arrays of a compiled model, and its gravity."""
    result = {"opt.gravity": model.opt.gravity}
    for name in dir(model):
        value = getattr(model, name)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not name.startswith(NOT_COMPARED):
            result[name] = value
    return result


def assert_each_world_as_alone(group: MujocoGroup, alone: list[MujocoGroup]) -> None:
    """Compare all numbers of a group with those of the models of its worlds compiled one by one."""
    free = group.body_mj[group.joint_child[group.joint_kind == JointKind.FREE]]
    for row, other in enumerate(alone):
        for name, expected in fields_of(other.model).items():
            values = group.value(name)[row]
            if name == "geom_aabb":
                values, expected = values.reshape(-1, 6), expected.reshape(-1, 6)
            if name in ("body_pos", "body_quat"):
                # What moves freely has its place in the state; this is that of the first world.
                values, expected = np.delete(values, free, axis=0), np.delete(expected, free, axis=0)
            np.testing.assert_allclose(
                values, expected, rtol=ROUNDING, atol=ROUNDING, err_msg=f"{name} of world {row}"
            )


@pytest.mark.parametrize("simple", [False, True])
def test_a_world_in_a_group_is_as_it_is_alone(simple):
    """Every number of MuJoCo's model is that of the world converted by itself."""
    seeds = [3, 4, 5, 3]
    model = build_worlds(seeds, simple=simple).finalize(device="cpu")
    (group,) = convert_model(model, MujocoOptions())
    assert group.worlds.tolist() == [0, 1, 2, 3]
    assert {"body_mass", "jnt_range", "geom_size", "site_pos", "dof_invweight0", "opt.gravity"} <= set(
        group.fields
    )
    alone = [
        convert_model(build_worlds([seed], simple=simple).finalize(device="cpu"), MujocoOptions())[0]
        for seed in seeds
    ]
    assert_each_world_as_alone(group, alone)


def add_meshes(builder: ModelBuilder, rng: np.random.Generator) -> None:
    """Add two free bodies, each with a convex mesh of an oblique frame and size."""
    corners = rng.normal(size=(12, 3))
    hull = trimesh.convex.convex_hull(corners)
    mesh = Mesh(hull.vertices, hull.faces)
    for _ in range(2):
        body = builder.add_body(mass=1.0, inertia=random_inertia(rng, 1.0), xform=random_frame(rng))
        builder.add_shape_convex_hull(body, mesh=mesh, xform=random_frame(rng), scale=(0.1, 0.2, 0.3))


@pytest.mark.parametrize("add", [add_machine, add_meshes])
def test_numbers_are_those_that_mujoco_compiles_from_the_description(add):
    """What kernels write over a compiled model is what MuJoCo's own compiler made of the same world.

    It has its own formulas for the frames of meshes, the bounds of shapes and what follows from masses. What
    has no word in a description is left out. Axes keep their single precision, which the compiler corrects.
    """
    builder = ModelBuilder()
    builder.begin_world(gravity=(0.0, 1.0, -3.0))
    add(builder, np.random.default_rng(6))
    builder.end_world()
    (group,) = convert_model(builder.finalize(device="cpu"), MujocoOptions())
    compiled = group.spec.compile()
    for name, expected in fields_of(compiled).items():
        if name not in ("geom_margin", "body_margin", "jnt_solref"):
            values = group.value(name)[0]
            np.testing.assert_allclose(values, expected, rtol=2e-7, atol=2e-7, err_msg=name)


def test_the_model_of_a_group_moves_every_world_as_alone():
    """Accelerations of a world stepped with its row of fields are those of its own compiled model.

    This fails where MuJoCo takes a shortcut that holds in the first world only.
    """
    seeds = [1, 2, 7]
    model = build_worlds(seeds, simple=True).finalize(device="cpu")
    (group,) = convert_model(model, MujocoOptions())
    data = mujoco.MjData(group.model)
    rng = np.random.default_rng(0)
    for row, seed in enumerate(seeds):
        (other,) = convert_model(build_worlds([seed], simple=True).finalize(device="cpu"), MujocoOptions())
        for name, values in group.fields.items():
            target = group.model.opt if name.startswith("opt.") else group.model
            field = name.removeprefix("opt.")
            if np.ndim(getattr(target, field)):
                getattr(target, field)[...] = values[row]
            else:
                setattr(target, field, values[row])
        expected = mujoco.MjData(other.model)
        for trial in (data, expected):
            mujoco.mj_resetData(group.model, trial)
        data.eq_active[:] = expected.eq_active[:] = group.value("eq_active0")[row]
        data.mocap_pos[:], data.mocap_quat[:] = group.mocap_pose[row, :, :3], group.mocap_pose[row, :, 3:]
        qpos = expected.qpos + rng.normal(size=group.model.nq) * 0.2
        for trial, compiled in ((data, group.model), (expected, other.model)):
            trial.qpos[:], trial.qvel[:] = qpos, 1.0
            trial.ctrl[:] = 0.3
            mujoco.mj_forward(compiled, trial)
        assert data.ncon == expected.ncon
        assert data.nefc == expected.nefc > 0
        scale = np.abs(expected.qacc).max()
        np.testing.assert_allclose(data.qacc, expected.qacc, atol=1e-7 * scale)


@pytest.mark.filterwarnings("ignore:SolverMuJoCo. shape .* is a cone")
def test_worlds_of_different_structure_are_different_groups():
    """Drive modes, what has a shape, and whole-number options split groups; numbers and sizes do not."""
    builder = ModelBuilder()
    for kind in range(6):
        builder.begin_world()
        body = builder.add_link(mass=1.0 + kind, inertia=np.eye(3))
        mode = JointTargetMode.POSITION if kind < 4 else JointTargetMode.VELOCITY
        joint = builder.add_joint_revolute(-1, body, target_ke=1.0, target_kd=1.0 + kind, actuator_mode=mode)
        builder.add_articulation([joint])
        if kind % 2:
            builder.add_shape_cone(body, radius=0.1 * kind, half_height=0.1)
        builder.end_world()
    model = builder.finalize(device="cpu")
    groups = convert_model(model, MujocoOptions())
    assert [group.worlds.tolist() for group in groups] == [[0, 2], [1, 3], [4], [5]]


def test_edits_reach_the_groups():
    """After an edit and a notice a group is as one converted anew, and only what changed is reported."""
    model = build_worlds([3, 4]).finalize(device="cpu")
    options = MujocoOptions()
    (group,) = convert_model(model, options)
    memory = group.fields["body_mass"]
    other = build_worlds([8, 9]).finalize(device="cpu")
    assert refresh_groups(model, options, [group], ModelFlags.ALL) == [set()]
    for name, flags, expected in (
        ("gravity", ModelFlags.MODEL_PROPERTIES, {"opt.gravity"}),
        ("body_mass", ModelFlags.BODY_INERTIAL_PROPERTIES, {"body_mass", "dof_invweight0", "jnt_solref"}),
        ("joint_target_ke", ModelFlags.JOINT_DOF_PROPERTIES, {"actuator_gainprm", "actuator_biasprm"}),
        ("shape_material_mu", ModelFlags.SHAPE_PROPERTIES, {"geom_friction"}),
        ("equality_constraint_anchor", ModelFlags.CONSTRAINT_PROPERTIES, {"site_pos"}),
    ):
        getattr(model, name).assign(getattr(other, name))
        (changed,) = refresh_groups(model, options, [group], flags)
        assert expected <= changed
        assert "geom_size" not in changed
    for name in vars(model):
        value = getattr(model, name)
        if name.startswith(("body_", "joint_", "shape_", "equality_")) and hasattr(value, "assign"):
            value.assign(getattr(other, name))
    refresh_groups(model, options, [group], ModelFlags.ALL)
    assert group.fields["body_mass"] is memory
    alone = [convert_model(build_worlds([seed]).finalize(device="cpu"), options)[0] for seed in (8, 9)]
    assert_each_world_as_alone(group, alone)


def test_an_edit_of_what_is_compiled_in_is_refused():
    model = build_worlds([3, 4]).finalize(device="cpu")
    options = MujocoOptions()
    groups = convert_model(model, options)
    modes = model.joint_target_mode.numpy()
    modes[-10] = JointTargetMode.VELOCITY
    model.joint_target_mode.assign(modes)
    with pytest.raises(ValueError, match=r"world 1 \('world_1'\) has other drive modes"):
        refresh_groups(model, options, groups, ModelFlags.JOINT_DOF_PROPERTIES)
