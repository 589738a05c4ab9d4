"""Edits of a model between steps: they act at once, are checked on notice, and never vanish silently."""

import warnings

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import StructureEditWarning

from .worlds import DT, assert_same_bits, make_model, world_bits

FLAGS = pv.ModelFlags


@pytest.mark.parametrize("notified", [False, True])
def test_an_edit_acts_on_the_next_recorded_step(notified):
    """A step recorded before the edit gives the bits of one made after it; notice changes none of them."""
    model, other = make_model(["pile", "arm"]), make_model(["pile", "arm"])
    with pv.Simulation(model, dt=DT, threads=1) as simulation, pv.Simulation(other, dt=DT) as expected:
        simulation.step(3)
        expected.step(3)
        for edited, at in ((model, simulation), (other, None)):
            edited.body_mass.assign(2.0 * edited.body_mass.numpy())
            edited.shape_material_mu.fill_(0.1)
            edited.joint_target_ke.assign(0.5 * edited.joint_target_ke.numpy())
            edited.joint_limit_upper.assign(edited.joint_limit_upper.numpy() - 0.1)
            edited.set_gravity(-5.0)
            edited.shape_scale.assign(0.9 * edited.shape_scale.numpy())
            edited.joint_X_p.assign(edited.joint_X_p.numpy() + np.float32([0.0, 0.01, 0, 0, 0, 0, 0]))
            if at is not None and notified:
                flags = FLAGS.JOINT_DOF_PROPERTIES | FLAGS.SHAPE_PROPERTIES | FLAGS.MODEL_PROPERTIES
                at.notify_model_changed(flags)
        simulation.step(30)
        with pv.Simulation(other, dt=DT, threads=1, record=False) as anew:
            anew.reset(state=expected.state)
            anew.step(30)
            for world in range(2):
                ours = world_bits(model, simulation.state, world)
                assert_same_bits(ours, world_bits(other, anew.state, world), f"world {world}")


def test_bounds_of_shapes_follow_their_sizes():
    model = make_model(["pile"])
    with pv.Simulation(model, dt=DT) as simulation:
        model.shape_scale.assign(np.where(model.shape_scale.numpy() > 0.0, 0.3, 0.0))
        simulation.notify_model_changed(FLAGS.SHAPE_PROPERTIES)
    boxes = model.shape_type.numpy() == pv.GeoType.BOX
    np.testing.assert_array_equal(model.shape_aabb_upper.numpy()[boxes], np.float32(0.3))
    np.testing.assert_allclose(model.shape_collision_radius.numpy()[boxes], 0.3 * np.sqrt(3.0), rtol=1e-6)


def test_initial_poses_follow_frames_and_coordinates_and_the_other_way_round():
    """Moved joint frames move bodies at once; poses written to the model become its coordinates."""
    model = make_model(["arm", "flyer"])
    with pv.Simulation(model, dt=DT) as simulation:
        before = simulation.state.body_q.numpy().copy()
        frames = model.joint_X_p.numpy()
        frames[0, 0] += 1.0
        model.joint_X_p.assign(frames)
        simulation.notify_model_changed(FLAGS.JOINT_PROPERTIES)
        for poses in (simulation.state.body_q.numpy(), model.body_q.numpy()):
            np.testing.assert_allclose(poses[:3, :3], before[:3, :3] + [1.0, 0.0, 0.0], rtol=0.0, atol=1e-6)
        poses = model.body_q.numpy()
        poses[3, :3] = [1.0, 2.0, 3.0]
        model.body_q.assign(poses)
        simulation.notify_model_changed(FLAGS.BODY_PROPERTIES)
        np.testing.assert_array_equal(model.joint_q.numpy()[3:6], [1.0, 2.0, 3.0])
        simulation.reset()
        np.testing.assert_allclose(simulation.state.body_q.numpy(), poses, rtol=0.0, atol=1e-6)


def test_assigning_to_an_array_copies_into_it():
    """Recorded steps know the memory of the array, so another array in its place would be ignored."""
    model = make_model(["flyer"])
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        simulation.step()
        pointer = model.gravity.ptr
        model.gravity = wp.array([[0.0, 0.0, 0.0]], dtype=wp.vec3, device="cpu")
        assert model.gravity.ptr == pointer
        speed = simulation.state.joint_qd.numpy()[2]
        simulation.step(5)
        assert simulation.state.joint_qd.numpy()[2] == speed
        model.body_mass = [3.0]
        assert model.body_mass.numpy().tolist() == [3.0]
        with pytest.raises(ValueError, match=r"Model\.body_mass has shape \(1,\).*\(2,\)"):
            model.body_mass = [3.0, 4.0]


def test_writes_to_the_structure_are_reported_once():
    model = make_model(["pile"])
    with pv.Simulation(model, dt=DT) as simulation:
        simulation.step()
        assert not simulation.report().frozen_worlds
        model.shape_flags.zero_()
        with pytest.warns(StructureEditWarning, match=r"^shape_flags: written to after finalize"):
            simulation.report()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            simulation.report()
        with pytest.raises(ValueError, match="shape_flags"):
            simulation.notify_model_changed(FLAGS.MODEL_PROPERTIES)
    model = make_model(["pile"])
    simulation = pv.Simulation(model, dt=DT, strict=True)
    planes = model.shape_scale.numpy()
    planes[model.shape_type.numpy() == pv.GeoType.PLANE] = [1.0, 1.0, 0.0]
    model.shape_scale.assign(planes)
    with pytest.raises(ValueError, match="shape_scale of planes"):
        simulation.step()


BAD_EDITS = [
    (
        FLAGS.BODY_INERTIAL_PROPERTIES,
        "body_mass",
        -1.0,
        r"^body '.*' \(index 1, world 0\): body_mass was set to -1.0",
    ),
    (FLAGS.BODY_INERTIAL_PROPERTIES, "body_mass", np.nan, "body_mass was set to nan"),
    (FLAGS.BODY_INERTIAL_PROPERTIES, "body_inertia", -np.eye(3), "moments of inertia >= 0"),
    (FLAGS.BODY_INERTIAL_PROPERTIES, "body_inertia", np.triu(np.ones((3, 3))), "symmetric"),
    (
        FLAGS.JOINT_DOF_PROPERTIES,
        "joint_target_ke",
        -3.0,
        r"^joint '.*' \(index 1, world 0\), dof 1: joint_target_ke",
    ),
    (FLAGS.JOINT_DOF_PROPERTIES, "joint_limit_lower", 9.0, "at or below joint_limit_upper"),
    (FLAGS.JOINT_DOF_PROPERTIES, "joint_target_mode", 7, r"Use one of \[0, 1, 2, 3, 4\]"),
    (FLAGS.JOINT_PROPERTIES, "joint_X_p", [0, 0, 0, 1, 1, 1, 1], "quaternion xyzw of length 1"),
    (FLAGS.JOINT_PROPERTIES, "joint_axis", [2.0, 0.0, 0.0], "axis of length 1"),
    (FLAGS.JOINT_PROPERTIES, "joint_q", np.inf, "coordinate 1: joint_q was set to inf"),
    (FLAGS.SHAPE_PROPERTIES, "shape_margin", -0.1, r"^shape '.*' \(index 1, world 0\): shape_margin"),
    (FLAGS.SHAPE_PROPERTIES, "shape_scale", 0.0, "finite, positive sizes"),
]


@pytest.mark.parametrize(("flags", "name", "value", "message"), BAD_EDITS)
def test_bad_values_are_named_on_notice(flags, name, value, message):
    model = make_model(["arm", "arm"])
    values = getattr(model, name).numpy()
    values[1] = value
    getattr(model, name).assign(values)
    solver = pv.SolverSAP(model)
    with pytest.raises(ValueError, match=message):
        solver.notify_model_changed(flags)


@pytest.fixture(scope="module")
def ends():
    """Return a model of trees that end in a ball, a wheel with a fixed cap, and a slide, and its solver."""
    builder = pv.ModelBuilder()
    ball = builder.add_body(mass=1.0, inertia=np.eye(3), label="ball")
    arm = builder.add_link(mass=1.0, inertia=np.eye(3), label="arm")
    wheel = builder.add_link(mass=1.0, inertia=np.eye(3), label="wheel")
    cap = builder.add_link(mass=1.0, inertia=np.eye(3), label="cap")
    cart = builder.add_link(mass=1.0, inertia=np.eye(3), label="cart")
    root = builder.add_joint_revolute(-1, arm, axis=(0.0, 1.0, 0.0))
    spin = builder.add_joint_revolute(
        arm, wheel, parent_xform=wp.transform((1.0, 0.0, 0.0)), axis=(0.0, 0.0, 1.0)
    )
    glue = builder.add_joint_fixed(wheel, cap)
    slide = builder.add_joint_prismatic(arm, cart, axis=(1.0, 0.0, 0.0))
    builder.add_articulation([root, spin, glue, slide])
    model = builder.finalize(device="cpu")
    assert [ball, arm, wheel, cap, cart] == list(range(5))
    return model, pv.SolverSAP(model)


NOTHING = {"mass": 0.0, "inertia": np.zeros((3, 3))}
ENDS = {
    "free body without inertia": (
        {0: {"inertia": NOTHING["inertia"]}},
        {},
        "'ball'.*body_inertia was set to",
    ),
    "free body that is a rod without thickness": (
        {0: {"inertia": np.diag([1.0, 1.0, 0.0])}},
        {},
        "'ball'.*body_inertia was set to",
    ),
    "free body without mass": (
        {0: {"mass": 0.0}},
        {},
        r"'ball'.*body_mass was set to 0\.0.*give it mass > 0 kg",
    ),
    "wheel and cap without inertia": (
        {2: {"inertia": NOTHING["inertia"]}, 3: {"inertia": np.diag([1.0, 1.0, 0.0])}},
        {},
        "'wheel'.*body_inertia",
    ),
    "slide without mass": ({4: {"mass": 0.0}}, {}, "'cart'.*body_mass"),
    # Sound: something else resists.
    "wheel with the inertia of its cap": ({2: {"inertia": NOTHING["inertia"]}}, {}, None),
    "wheel with the mass of its cap, off the axis": (
        {2: NOTHING, 3: {"inertia": NOTHING["inertia"]}},
        {3: 0.1},
        None,
    ),
    "slide without inertia": ({4: {"inertia": NOTHING["inertia"]}}, {}, None),
    "arm with the mass of what hangs on it": ({1: NOTHING}, {}, None),
}


@pytest.mark.parametrize("case", list(ENDS))
def test_zero_mass_and_inertia_are_refused_where_a_joint_would_have_nothing_to_move(ends, case):
    """A world with such a body froze at its next step, with a warning that blamed NaN."""
    (model, solver), (edits, offsets, message) = ends, ENDS[case]
    names = ("body_mass", "body_inertia", "body_com")
    before = {name: getattr(model, name).numpy().copy() for name in names}
    after = {name: values.copy() for name, values in before.items()}
    for body, edit in edits.items():
        for name, value in edit.items():
            after[f"body_{name}"][body] = value
    for body, offset in offsets.items():
        after["body_com"][body, 0] = offset
    try:
        for name in names:
            getattr(model, name).assign(after[name])
        if message is None:
            solver.notify_model_changed(FLAGS.BODY_INERTIAL_PROPERTIES)
            return
        with pytest.raises(ValueError, match=message):
            solver.notify_model_changed(FLAGS.BODY_INERTIAL_PROPERTIES)
    finally:
        for name in names:
            getattr(model, name).assign(before[name])


def test_armature_stands_for_inertia(ends):
    model, solver = ends
    inertia, armature = model.body_inertia.numpy().copy(), model.joint_armature.numpy().copy()
    try:
        bare, geared = inertia.copy(), armature.copy()
        bare[2:4] = 0.0
        geared[7] = 0.01  # after the six of the ball and that of the arm
        model.body_inertia.assign(bare)
        model.joint_armature.assign(geared)
        solver.notify_model_changed(FLAGS.BODY_INERTIAL_PROPERTIES)
    finally:
        model.body_inertia.assign(inertia)
        model.joint_armature.assign(armature)


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 0.75**0.5)])
@pytest.mark.parametrize(("radius", "half_height"), [(3e-4, 0.5), (5e-4, 5.0)])
def test_what_can_be_built_can_be_scaled(radius, half_height, turn):
    """A steel wire of 1 m, and one of 10 m, along the axis of its frame; across it only what can be built."""
    builder = pv.ModelBuilder()
    wire = builder.add_body(label="wire")
    steel = pv.ShapeConfig(density=7800.0)
    pose = ((0.0, 0.0, 0.0), turn)
    builder.add_shape_capsule(wire, radius=radius, half_height=half_height, xform=pose, cfg=steel)
    model = builder.finalize("cpu")
    if model.dynamics_obstacle is not None:
        assert turn[0] != 0.0
        with pytest.raises(ValueError, match="wire"):
            pv.SolverSAP(model)
        return
    with pv.Simulation(model, pv.SolverSAP(model), dt=DT) as simulation:
        model.body_mass.assign(1.1 * model.body_mass.numpy())
        model.body_inertia.assign(1.1 * model.body_inertia.numpy())
        simulation.notify_model_changed(FLAGS.BODY_INERTIAL_PROPERTIES)
        simulation.step(3)
        assert simulation.report().frozen_worlds == ()
        model.body_inertia.zero_()
        with pytest.raises(ValueError, match="wire"):
            simulation.notify_model_changed(FLAGS.BODY_INERTIAL_PROPERTIES)


def test_unknown_flags_and_bad_gravity_are_refused():
    model = make_model(["flyer"])
    solver = pv.SolverSAP(model)
    solver.notify_model_changed(FLAGS.ALL)
    with pytest.raises(ValueError, match="no flag 0x10000"):
        solver.notify_model_changed(1 << 16)
    model.gravity.fill_(float("nan"))
    with pytest.raises(ValueError, match="gravity was set to"):
        solver.notify_model_changed(FLAGS.MODEL_PROPERTIES)


def _edit_joint_frame(model: pv.Model) -> pv.ModelFlags:
    frames = model.joint_X_p.numpy().copy()
    frames[model.joint_world_start.numpy()[1], 2] += 0.01
    model.joint_X_p = frames
    return FLAGS.JOINT_PROPERTIES


def _edit_centre_of_mass(model: pv.Model) -> pv.ModelFlags:
    com = model.body_com.numpy().copy()
    com[model.body_world_start.numpy()[1], 0] += 0.01
    model.body_com = com
    return FLAGS.BODY_INERTIAL_PROPERTIES


def _edit_initial_pose(model: pv.Model) -> pv.ModelFlags:
    poses = model.body_q.numpy().copy()
    poses[model.body_world_start.numpy()[1] :, 2][:3] += 0.01
    model.body_q = poses
    return FLAGS.BODY_PROPERTIES


def _edit_nothing(model: pv.Model) -> pv.ModelFlags:
    return FLAGS.ALL


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize("edit", [_edit_joint_frame, _edit_centre_of_mass, _edit_initial_pose, _edit_nothing])
def test_notice_of_an_edit_changes_no_bit_of_worlds_that_nobody_edited(edit, solver):
    """Poses follow from frames again in world 1 only; others go on and begin anew as without it."""
    kinds = ["arm", "pile", "round things", "flyer"]
    others = [0, 2, 3] if edit is not _edit_nothing else [0, 1, 2, 3]
    model, plain = make_model(kinds), make_model(kinds)
    with (
        pv.Simulation(model, solver(model), dt=DT, threads=1) as simulation,
        pv.Simulation(plain, solver(plain), dt=DT, threads=1) as expected,
    ):

        def compare(what: str) -> None:
            for world in others:
                ours, theirs = (world_bits(each.model, each.state, world) for each in (simulation, expected))
                assert_same_bits(ours, theirs, f"{what}, world {world}")
                ours, theirs = world_bits(model, model, world), world_bits(plain, plain, world)
                assert_same_bits(ours, theirs, f"initial state, {what}, world {world}")

        for steps in (0, 7):  # before the first step, and in the middle
            simulation.step(steps)
            expected.step(steps)
            simulation.notify_model_changed(edit(model))
            compare(f"after notice at {steps}")
            simulation.step(5)
            expected.step(5)
            compare(f"5 steps after notice at {steps}")
        simulation.reset()
        expected.reset()
        compare("after a reset")
