"""Field sync: what kernels write into MuJoCo's models is what MuJoCo compiles from the same numbers."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.model.schema import ENTITY_OF_ARRAY, STRUCTURE
from pluriverse.randomization import (
    Operation,
    Property,
    PseudoInertia,
    Randomizer,
    Rotation,
    Uniform,
    friction,
    gravity,
    joint_armature,
    joint_limits,
)
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.mapping.group import JointKind, MujocoGroup
from pluriverse.solvers.mujoco.mapping.stages import KNOWN_ARRAYS, STAGES, WITHOUT_EFFECT
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.variants import VARIANT_DEPENDENT_FIELDS
from tests.solvers.mujoco.mapping.test_grouping import ROUNDING, build_worlds, fields_of
from tests.solvers.mujoco.mapping.test_refresh import balls_on_floors

FOLLOWED = sorted(set().union(*(stage.reads for stage in STAGES.values())) - {"shape_source_index"})
DT = 0.002
# MuJoCo Warp computes in single precision: some roundings of 2**-24.
SINGLE = 1e-5


def inertia_tensors(moments: np.ndarray, quats: np.ndarray) -> np.ndarray:
    """Return the inertia about body axes of principal moments and the rotation wxyz of their axes."""
    tensors = []
    for principal, (w, x, y, z) in zip(moments, quats, strict=True):
        turn = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        tensors.append(turn @ np.diag(principal) @ turn.T)
    return np.array(tensors)


def numbers_of(group: MujocoGroup, row: int) -> dict[str, np.ndarray]:
    """Return all numbers of a world of a group, principal axes as tensors."""
    result = {name: group.value(name)[row].copy() for name in fields_of(group.model)}
    result["stat.meaninertia"] = group.value("stat.meaninertia")[row]
    result["tensor"] = inertia_tensors(result.pop("body_inertia"), result.pop("body_iquat"))
    free = group.body_mj[group.joint_child[group.joint_kind == JointKind.FREE]]
    for name in ("body_pos", "body_quat"):  # what moves freely has its place in the state
        result[name] = np.delete(result[name], free, axis=0)
    result["geom_aabb"] = result["geom_aabb"].reshape(-1, 6)
    return result


def assert_as_alone(group: MujocoGroup, row: int, seed: int, tolerance: float = ROUNDING) -> None:
    """Compare all numbers of a world with those that MuJoCo compiles for it alone."""
    (alone,) = convert_model(build_worlds([seed]).finalize(device="cpu"), MujocoOptions())
    mine, expected = numbers_of(group, row), numbers_of(alone, 0)
    assert mine.keys() == expected.keys()
    for name, values in expected.items():
        # That the solver measures its progress against is compiled from numbers before they are rounded.
        bound = 1e-6 if name == "stat.meaninertia" else tolerance
        np.testing.assert_allclose(
            mine[name], values, rtol=bound, atol=bound, err_msg=f"{name} of world {row}, as {seed}"
        )


@pytest.fixture(scope="module")
def machine():
    """A solver that follows all arrays of four worlds, a mask of worlds, and a recording for these."""
    model = build_worlds([3, 4, 5, 3]).finalize(device="cpu")
    solver = SolverMuJoCo(model)
    solver.track_model(FOLLOWED)
    mask = wp.zeros(4, dtype=wp.bool, device="cpu")
    solver.sync_worlds(mask)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        solver.sync_worlds(mask)
    return model, solver, mask, capture.graph


def test_what_kernels_write_is_what_mujoco_compiles(machine):
    """All fields, derived ones too, are those of a compile of each world with the new numbers.

    Taking in is replayed from a recording. Worlds that are not meant keep every bit.
    """
    model, solver, mask, graph = machine
    (group,) = solver.groups
    for row, seed in enumerate((3, 4, 5, 3)):
        assert_as_alone(group, row, seed)
    seeds = [8, 4, 10, 11]
    other = build_worlds([8, 9, 10, 11]).finalize(device="cpu")
    before = {name: rows[1].copy() for name, rows in group.fields.items()}
    for name in FOLLOWED:
        getattr(model, name).assign(getattr(other, name))
    mask.assign(np.array([True, False, True, True]))
    wp.capture_launch(graph)
    for row, seed in enumerate(seeds):
        assert_as_alone(group, row, seed)
    for name, values in before.items():
        np.testing.assert_array_equal(group.fields[name][1], values, err_msg=name)
    assert not solver.world_frozen.numpy().any()


def test_a_step_after_taking_in_is_that_of_a_solver_made_anew(machine):
    """What is shared by the worlds of a group stays as it was, so each moves as after a conversion."""
    model, solver, mask, graph = machine
    other = build_worlds([14, 9, 12, 13]).finalize(device="cpu")
    for name in FOLLOWED:
        getattr(model, name).assign(getattr(other, name))
    mask.fill_(True)
    wp.capture_launch(graph)
    states, fresh = [model.state(), model.state()], [model.state(), model.state()]
    anew = SolverMuJoCo(model)
    for _ in range(3):
        solver.step(*states, None, None, DT)
        anew.step(*fresh, None, None, DT)
        states.reverse()
        fresh.reverse()
    # The axes of inertias are chosen otherwise, and free bodies have other reference poses.
    np.testing.assert_allclose(states[0].joint_qd.numpy(), fresh[0].joint_qd.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(states[0].joint_q.numpy(), fresh[0].joint_q.numpy(), rtol=1e-5, atol=1e-6)


def test_notify_model_changed_and_sync_worlds_agree(machine):
    """An edit that is notified reaches the same memory, and the recording goes on from there."""
    model, solver, mask, graph = machine
    (group,) = solver.groups
    for seeds, notify in (([8, 9, 10, 11], True), ([3, 4, 5, 3], False)):
        other = build_worlds(seeds).finalize(device="cpu")
        for name in FOLLOWED:
            getattr(model, name).assign(getattr(other, name))
        if notify:
            solver.notify_model_changed(pv.ModelFlags.ALL)
        else:
            mask.fill_(True)
            wp.capture_launch(graph)
        for row, seed in enumerate(seeds):
            assert_as_alone(group, row, seed)


def test_what_is_compiled_in_cannot_be_followed():
    builder = pv.ModelBuilder()
    builder.begin_world()
    builder.add_shape_heightfield(heightfield=pv.Heightfield(np.eye(3), nrow=3, ncol=3), label="hills")
    builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
    builder.end_world()
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    with pytest.raises(ValueError, match="joint_target_mode cannot change on the device"):
        solver.track_model({"joint_target_mode": None})
    with pytest.raises(ValueError, match=r"shape 'hills' \(index 0\) is a hfield, whose size"):
        solver.track_model({"shape_scale": np.array([True, True])})
    with pytest.raises(ValueError, match=r"the model has no array 'b'\. Pass a list"):
        solver.track_model("body_mass")
    with pytest.raises(ValueError, match="the mask of shape_scale has 3 entries, but the array 2"):
        solver.track_model({"shape_scale": np.ones(3, dtype=bool)})
    solver.track_model({"shape_scale": np.array([False, True]), "joint_q": None})


@pytest.mark.parametrize("entry", ["mass", "moment", "product"])
def test_what_is_no_number_stops_its_world(entry):
    """The least mass and moments that MuJoCo takes do not stand in for a NaN written on the device."""
    builder, box = pv.ModelBuilder(), pv.ModelBuilder()
    box.add_shape_box(box.add_body(), hx=0.1, hy=0.1, hz=0.1)
    builder.replicate(box, 3)
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    solver.track_model(["body_mass", "body_inertia"])
    mass, inertia = model.body_mass.numpy().copy(), model.body_inertia.numpy().copy()
    if entry == "mass":
        mass[1] = np.nan
    else:
        inertia[1, 0, 0 if entry == "moment" else 1] = np.nan
    model.body_mass.assign(mass)
    model.body_inertia.assign(inertia)
    solver.sync_worlds()
    solver.step(model.state(), model.state(), None, None, DT)
    np.testing.assert_array_equal(solver.world_frozen.numpy(), [0, 1, 0])


def test_every_array_that_may_be_drawn_or_switched_has_its_place():
    """Whatever a randomizer draws or a variant brings is followed, or known to have no effect in MuJoCo."""
    compiled = {"joint_target_mode"}  # variants that differ there do not share layouts
    not_drawn = {"body_f", "body_qdd", "shape_is_solid"}  # of a state; of structure
    changing = (set(ENTITY_OF_ARRAY) - set(STRUCTURE)) | set(VARIANT_DEPENDENT_FIELDS)
    assert changing - compiled - not_drawn == KNOWN_ARRAYS | WITHOUT_EFFECT


def test_explicit_contact_pairs_follow_edits():
    """Named by filters or brought by an asset, they are mixed and switched as on the host."""
    rng = np.random.default_rng(2)
    source = pv.ModelBuilder()
    for _ in range(48):
        body = source.add_body(mass=1.0, inertia=np.eye(3))
        for _ in range(2):
            source.add_shape_sphere(body, radius=0.5, cfg=pv.ShapeConfig(density=0.0))
    for pair in np.argwhere(np.triu(rng.random((96, 96)) < 0.5, 1)).tolist():
        source.add_shape_collision_filter_pair(*pair)
    builder = pv.ModelBuilder()
    builder.replicate(source, 2)
    for model, count in ((builder.finalize("cpu"), 11), (balls_on_floors(paired=True), 1)):
        solver, other = SolverMuJoCo(model), SolverMuJoCo(model)
        names = ("shape_material_mu", "shape_material_ke", "shape_margin", "shape_enabled")
        solver.track_model(names)
        for name in names:
            values = getattr(model, name).numpy()
            drawn = rng.random(values.shape)
            on = (drawn < 0.6) & (np.arange(len(drawn)) > 0)
            getattr(model, name).assign(on if name == "shape_enabled" else values + 0.1 * drawn)
        solver.sync_worlds()
        other.notify_model_changed(pv.ModelFlags.SHAPE_PROPERTIES)
        (group,), (expected,) = solver.groups, other.groups
        assert group.model.npair >= count
        assert expected.pair_off.any()
        for name in ("pair_friction", "pair_solref", "pair_margin", "pair_gap", "geom_contype"):
            np.testing.assert_allclose(group.value(name), expected.value(name), rtol=1e-12, err_msg=name)


def test_models_that_follow_nothing_cost_what_they_did():
    """Without a wish no field gets a row per world, and arrays that MuJoCo does not read give none."""
    builder = pv.ModelBuilder()
    box = pv.ModelBuilder()
    box.add_shape_box(box.add_body(), hx=0.1, hy=0.1, hz=0.1)
    builder.replicate(box, 3)
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    assert solver.groups[0].fields == {}
    solver.track_model({"joint_q": None, "shape_color": None})
    assert solver.groups[0].fields == {}
    solver.track_model({"shape_material_mu": None})
    assert set(solver.groups[0].fields) == {"geom_friction", "geom_solref", "geom_margin", "body_margin"}


def test_mujoco_warp_follows_as_the_c_engine_does():
    """In MuJoCo Warp the same kernels and its own derivation give the fields of the C engine, recorded."""
    pytest.importorskip("mujoco_warp")
    builder = pv.ModelBuilder()
    box = pv.ModelBuilder()
    arm = box.add_link(mass=1.0, inertia=np.eye(3) * 0.1)
    box.add_shape_box(arm, hx=0.1, hy=0.1, hz=0.1, cfg=pv.ShapeConfig(density=0.0))
    joint = box.add_joint_revolute(
        -1, arm, parent_xform=((0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0)), target_ke=9.0, target_kd=0.5
    )
    box.add_articulation([joint])
    builder.replicate(box, 3)
    model = builder.finalize("cpu")
    # Off the axis: where a body cannot be moved along, MuJoCo and MuJoCo Warp fill in other inverse weights.
    model.body_com.fill_(wp.vec3(0.1, 0.2, 0.0))
    solvers = [SolverMuJoCo(model, use_mujoco_cpu=on) for on in (True, False)]
    names = dict.fromkeys(
        [
            *("gravity", "body_mass", "body_com", "body_inertia", "joint_armature", "joint_X_p"),
            *("joint_target_ke", "joint_damping", "joint_limit_lower", "shape_scale", "shape_enabled"),
            "shape_material_mu",
        ]
    )
    mask = wp.array([True, False, True], dtype=wp.bool, device="cpu")
    for solver in solvers:
        solver.track_model(names)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        solvers[1].sync_worlds(mask)
    rng = np.random.default_rng(0)
    for name in names:
        values = getattr(model, name).numpy()
        factor = rng.uniform(0.5, 1.5, values.shape)
        if name == "body_inertia":
            values += 0.01 * (factor + factor.swapaxes(1, 2))
        elif name == "shape_enabled":
            values[:] = [True, True, False]
        elif name == "joint_X_p":
            values[:, :3] += 0.1 * factor[:, :3]
        else:
            values += 0.1 * factor
        getattr(model, name).assign(values)
    solvers[0].sync_worlds(mask)
    wp.capture_launch(capture.graph)
    (mine,), (group,) = solvers[0].groups, solvers[1].groups
    device = solvers[1].engine.tracked_memory(0)
    assert {"dof_invweight0", "body_invweight0", "body_subtreemass", "jnt_solref"} <= group.tracked
    for name in group.tracked:
        if name in ("body_iquat", "body_inertia"):
            continue  # compared as tensors below
        expected = mine.value(name).reshape(-1)
        np.testing.assert_allclose(device[name].numpy(), expected, rtol=SINGLE, atol=SINGLE, err_msg=name)
    on_device = [
        inertia_tensors(
            device["body_inertia"].numpy().reshape(3, -1, 3)[row],
            device["body_iquat"].numpy().reshape(3, -1, 4)[row],
        )
        for row in range(3)
    ]
    for row in range(3):
        expected = inertia_tensors(mine.value("body_inertia")[row], mine.value("body_iquat")[row])
        np.testing.assert_allclose(on_device[row], expected, rtol=SINGLE, atol=SINGLE)
    assert device["geom_gap"].numpy().tolist() == [0.0, 0.0, -1e10]


@pytest.mark.filterwarnings("ignore")  # of what robots bring that is not taken over
@pytest.mark.parametrize(
    "robot", ["unitree_g1/g1.xml", "newton_examples/nv_humanoid.xml", "newton_examples/tabletop.xml"]
)
def test_robots_that_are_drawn_are_as_if_converted_anew(robot_assets, robot):
    """After many properties of a robot were drawn, in a recording, fields are those of a fresh conversion."""
    single, builder = pv.ModelBuilder(), pv.ModelBuilder()
    for each in (single, builder):
        SolverMuJoCo.register_custom_attributes(each)
    single.add_mjcf(str(robot_assets / robot))
    # What nobody gave cannot be scaled.
    single.joint_limit_ke[:], single.joint_limit_kd[:], single.shape_material_ke[:] = 1e4, 10.0, 2600.0
    builder.replicate(single, 3)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, SolverMuJoCo(model), dt=DT)
    scale = Uniform(0.5, 2.0)
    terms = [
        friction(Uniform(0.4, 0.9)),
        PseudoInertia(alpha=Uniform(-0.2, 0.2), d=Uniform(-0.1, 0.1), t=Uniform(-0.01, 0.01)),
        gravity(Uniform(-1.0, 1.0)),
        joint_armature(scale),
        joint_limits(Uniform(-0.1, 0.0), Uniform(0.0, 0.1)),
        *(
            Property(name, scale, Operation.SCALE)
            for name in ("joint_damping", "joint_friction", "joint_limit_ke", "shape_material_ke")
        ),
        Property("joint_X_p", Uniform(-0.01, 0.01), Operation.OFFSET),
        Rotation("joint_X_c", Uniform(-0.1, 0.1)),
        Property("shape_transform", Uniform(-0.01, 0.01), Operation.OFFSET),
    ]
    randomizer = Randomizer(simulation, terms)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        randomizer.apply()
    wp.capture_launch(capture.graph)
    (group,), (anew,) = simulation.solver.groups, SolverMuJoCo(model).groups
    free = group.body_mj[group.joint_child[group.joint_kind == JointKind.FREE]]
    chosen = set(fields_of(group.model)) - {"body_iquat", "body_inertia"}
    assert {"dof_invweight0", "body_invweight0", "actuator_acc0", "jnt_solref"} <= chosen
    for name in sorted(chosen):
        mine, expected = group.value(name), anew.value(name)
        if name in ("body_pos", "body_quat"):  # what moves freely has its place in the state
            mine, expected = np.delete(mine, free, axis=1), np.delete(expected, free, axis=1)
        if name == "jnt_range":  # joints without limits have limits that nothing reaches
            mine, expected = (values[:, anew.model.jnt_limited == 1] for values in (mine, expected))
        if mine.size:
            bound = 1e-9 * np.abs(expected).max()
            np.testing.assert_allclose(mine, expected, rtol=0.0, atol=bound, err_msg=name)
    for row in range(3):
        tensors = [
            inertia_tensors(each.value("body_inertia")[row], each.value("body_iquat")[row])
            for each in (group, anew)
        ]
        np.testing.assert_allclose(*tensors, rtol=0.0, atol=1e-9 * np.abs(tensors[1]).max())
    simulation.step(5)
    assert simulation.report().frozen_worlds == ()


def add_coupled_bodies(builder: pv.ModelBuilder, rng: np.random.Generator) -> None:
    """Add a rope to the world, a loop closed by a hinge, and two joints of which one follows the other."""
    here, frame = (0.0, 0.0, 0.0, 1.0), rng.normal(size=3)
    inertia = np.diag(rng.uniform(0.2, 0.3, 3))
    bob, first, second = (builder.add_link(mass=rng.uniform(1.0, 2.0), inertia=inertia) for _ in range(3))
    rope = builder.add_joint_distance(
        -1, bob, parent_xform=(frame, here), min_distance=0.1, max_distance=rng.uniform(0.5, 1.0)
    )
    builder.add_articulation([rope])
    turns = [
        builder.add_joint_revolute(-1, first, parent_xform=(rng.normal(size=3), here), axis=(0.0, 1.0, 0.0)),
        builder.add_joint_revolute(first, second, parent_xform=(frame, here), axis=(0.0, 1.0, 0.0)),
    ]
    builder.add_articulation(turns)
    builder.add_joint_revolute(-1, second, parent_xform=(rng.normal(size=3), here), axis=(0.0, 1.0, 0.0))
    builder.add_equality_constraint_joint(turns[0], turns[1], polycoef=rng.normal(size=5))


def test_ropes_hinges_and_coupled_joints_follow():
    """What holds bodies together, tendons included, is that of a conversion with the new numbers."""

    def build(seeds):
        builder = pv.ModelBuilder()
        for seed in seeds:
            builder.begin_world()
            add_coupled_bodies(builder, np.random.default_rng(seed))
            builder.end_world()
        return builder.finalize("cpu")

    model, other = build([0, 1]), build([2, 3])
    solver = SolverMuJoCo(model)
    solver.track_model(FOLLOWED)
    for name in FOLLOWED:
        getattr(model, name).assign(getattr(other, name))
    solver.sync_worlds()
    (group,), (anew,) = solver.groups, SolverMuJoCo(other).groups
    assert group.model.ntendon == 1
    assert group.model.neq == 3
    for name in ("site_pos", "eq_data", "tendon_range", "tendon_length0", "tendon_invweight0", "jnt_solref"):
        np.testing.assert_allclose(
            group.value(name), anew.value(name), rtol=ROUNDING, atol=ROUNDING, err_msg=name
        )
    # Those of the first world are switched off.
    first = model.equality_constraint_world_start.numpy()
    enabled = model.equality_constraint_enabled.numpy()
    enabled[first[0] : first[1]] = False
    model.equality_constraint_enabled.assign(enabled)
    solver.sync_worlds([0])
    rows = solver.engine.exchange.rows.of_group(solver.groups, 0, "eq_active").numpy()
    assert rows.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert (np.abs(group.value("tendon_range")[0]) >= 1e10).all()  # the rope is slack
    np.testing.assert_array_equal(group.value("tendon_range")[1], anew.value("tendon_range")[1])


def test_worlds_in_which_nothing_moves_follow_too():
    builder = pv.ModelBuilder()
    wall = pv.ModelBuilder()
    body = wall.add_link(mass=1.0, inertia=np.eye(3))
    wall.add_articulation([wall.add_joint_fixed(-1, body)])
    wall.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, label="wall")
    builder.replicate(wall, 2)
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    solver.track_model(FOLLOWED)
    model.joint_X_p.fill_(wp.transform((1.0, 2.0, 3.0), wp.quat_identity()))
    model.shape_scale.fill_(wp.vec3(0.2, 0.3, 0.4))
    solver.sync_worlds([1])
    (group,) = solver.groups
    np.testing.assert_allclose(group.value("body_pos")[:, 1], [[0.0] * 3, [1.0, 2.0, 3.0]])
    pose = solver.engine.exchange.rows.of_group(solver.groups, 0, "mocap_pos").numpy()
    np.testing.assert_allclose(pose, [[0.0] * 3, [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(group.value("geom_rbound")[1, 0], np.linalg.norm([0.2, 0.3, 0.4]), rtol=1e-7)
