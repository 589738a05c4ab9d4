"""Options of MuJoCo by constructor, model and default; caveats; what is prescribed."""

import contextlib
import warnings

import mujoco
import numpy as np
import pytest

from pluriverse import (
    BodyFlags,
    CollisionPipeline,
    JointTargetMode,
    Mesh,
    Model,
    ModelBuilder,
    ModelFlags,
    ShapeConfig,
    Simulation,
    SolverMuJoCo,
    SolverSAP,
)
from pluriverse.mujoco_attributes.choices import SolrefMode
from pluriverse.solvers.mujoco.caveats import MujocoCaveatWarning
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.mapping.joints import KINEMATIC_ARMATURE
from pluriverse.solvers.mujoco.options import MujocoOptions

NO_TURN = (0.0, 0.0, 0.0, 1.0)


def falling_bodies(worlds: int, **attributes) -> ModelBuilder:
    """Return worlds of one body, with a custom attribute of the namespace `mujoco` per world."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    for _ in range(worlds):
        builder.begin_world()
        builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.end_world()
    for name, entries in attributes.items():
        builder.custom_attributes[f"mujoco:{name}"].values = dict(enumerate(entries))
    return builder


def test_an_option_comes_from_constructor_then_model_then_default():
    """`impratio` and `tolerance` differ between worlds; the constructor overrules both."""
    model = falling_bodies(3, impratio=[1.0, 5.0, 10.0], tolerance=[1e-6, 1e-6, 1e-4]).finalize(device="cpu")
    (group,) = convert_model(model, MujocoOptions())
    np.testing.assert_allclose(group.value("opt.impratio"), [1.0, 5.0, 10.0], rtol=1e-6)
    np.testing.assert_allclose(group.value("opt.tolerance"), [1e-6, 1e-6, 1e-4], rtol=1e-6)
    assert group.model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert group.model.opt.iterations == mujoco.MjOption().iterations
    (group,) = convert_model(model, MujocoOptions(impratio=3.0, integrator="euler", cone=1, iterations=7))
    np.testing.assert_allclose(group.value("opt.impratio"), 3.0)
    assert "opt.impratio" not in group.fields
    assert group.model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert group.model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert group.model.opt.iterations == 7


def test_options_are_read_once():
    """What is written to them later has no effect, as no notice names them."""
    model = falling_bodies(2, impratio=[2.0, 5.0]).finalize(device="cpu")
    solver = SolverMuJoCo(model)
    model.mujoco.impratio.fill_(9.0)
    model.mujoco.iterations.fill_(3)
    solver.notify_model_changed(ModelFlags.ALL)
    np.testing.assert_allclose(solver.groups[0].value("opt.impratio"), [2.0, 5.0])
    assert solver.groups[0].model.opt.iterations == mujoco.MjOption().iterations


@pytest.mark.parametrize("several", [None, False, True])
def test_convex_shapes_touch_at_one_point_or_several(several):
    """A cylinder on a box touches it at three points or more, or at one without `enable_multiccd`."""
    builder = ModelBuilder()
    builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.1)
    body = builder.add_body(xform=((0.0, 0.0, 0.299), NO_TURN), mass=1.0, inertia=np.eye(3))
    builder.add_shape_cylinder(body, radius=0.1, half_height=0.2, cfg=ShapeConfig(density=0.0))
    model = builder.finalize(device="cpu")
    solver, states = SolverMuJoCo(model, enable_multiccd=several), [model.state(), model.state()]
    solver.step(*states, None, None, 0.001)
    count = int(solver.last_contact_count.numpy()[0])
    assert count == 1 if several is False else count >= 3


def test_gravity_of_a_world_is_that_of_the_model():
    builder = ModelBuilder()
    for gravity in (-9.81, -1.62):
        builder.begin_world(gravity=gravity)
        builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.end_world()
    (group,) = convert_model(builder.finalize(device="cpu"), MujocoOptions())
    np.testing.assert_allclose(group.value("opt.gravity"), [[0, 0, -9.81], [0, 0, -1.62]], rtol=1e-6)


def test_noslip_iterations_of_a_document_take_the_slip_away():
    """On a slope below the angle of friction a box creeps, as in MuJoCo, unless the document has them."""
    slope = """<mujoco><option timestep="0.002" integrator="implicitfast" noslip_iterations="{0}"/><worldbody>
      <geom type="plane" size="5 5 1" euler="0 15 0"/><body pos="0 0 0.0517638" euler="0 15 0"><freejoint/>
      <geom type="box" size="0.1 0.1 0.05" mass="1"/></body></worldbody></mujoco>"""
    moved = {}
    for count in (0, 5):
        xml = slope.format(count)
        reference = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(reference)
        mujoco.mj_step(reference, data, 300)
        builder = ModelBuilder()
        SolverMuJoCo.register_custom_attributes(builder)
        builder.add_mjcf(xml)
        model = builder.finalize("cpu")
        with Simulation(model, SolverMuJoCo(model), dt=0.002, threads=1) as simulation:
            simulation.step(300)
            moved[count] = simulation.state.joint_q.numpy()[0]
        assert moved[count] == pytest.approx(data.qpos[0], abs=1e-6)
    assert abs(moved[5]) < 0.5 * abs(moved[0])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"solver": "gauss"}, "solver is 'gauss', but it must be one of 'pgs', 'cg', 'newton'"),
        ({"cone": 2}, "cone is 2"),
        ({"impratio": 0.0}, "impratio is 0"),
        ({"iterations": -1}, "iterations is -1"),
        ({"noslip_iterations": 1.5}, "noslip_iterations is 1.5"),
        ({"noslip_tolerance": -1.0}, "noslip_tolerance is -1"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"wind": (1.0, 2.0)}, r"wind is \(1.0, 2.0\)"),
    ],
)
def test_an_option_out_of_range_is_refused(option, message):
    with pytest.raises(ValueError, match=message):
        MujocoOptions(**option)


def test_unknown_arguments_are_refused():
    model = falling_bodies(1).finalize(device="cpu")
    with pytest.raises(TypeError, match="no_such_option"):
        SolverMuJoCo(model, no_such_option=1)
    SolverMuJoCo(model, separate_worlds=False)  # one world has nothing to be separate from
    several = falling_bodies(2).finalize(device="cpu")
    with pytest.raises(ValueError, match="separate_worlds is False, but the model has 2 worlds"):
        SolverMuJoCo(several, separate_worlds=False)


def one_joint(**values) -> ModelBuilder:
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3), label="arm")
    builder.add_articulation([builder.add_joint_revolute(-1, body, label="elbow", **values)])
    return builder


def test_a_speed_limit_is_said_not_to_act():
    model = one_joint(velocity_limit=3.0).finalize(device="cpu")
    with pytest.warns(MujocoCaveatWarning, match="joint_velocity_limit of joint 'elbow' is not enforced"):
        (group,) = convert_model(model, MujocoOptions())
    assert len(group.notes) == 1


def test_a_mesh_that_is_not_convex_is_said_to_collide_as_its_hull():
    notched = [(0, 0), (2, 0), (2, 2), (1, 0.3), (0, 2)]
    corners = [(x, y, z) for z in (0.0, 1.0) for x, y in notched]
    sides = [(i, (i + 1) % 5, i + 5) for i in range(5)] + [
        ((i + 1) % 5, (i + 1) % 5 + 5, i + 5) for i in range(5)
    ]
    caps = [(0, 3, 1), (1, 3, 2), (0, 4, 3)]
    faces = [*sides, *caps, *[(a + 5, c + 5, b + 5) for a, b, c in caps]]
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    mesh = Mesh(corners, faces)
    builder.add_shape_mesh(body, mesh=mesh, cfg=ShapeConfig(density=0.0), label="notched")
    builder.add_shape_mesh(body, mesh=mesh.convex_hull(), cfg=ShapeConfig(density=0.0), label="convex")
    with pytest.warns(MujocoCaveatWarning, match="shape 'notched' collides as the convex hull"):
        convert_model(builder.finalize(device="cpu"), MujocoOptions())


def thick_shapes(*kinds: str) -> Model:
    """Return bodies with a shape each that has a margin, called as its kind."""
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    hull = Mesh(corners, [[0, 1, 2]]).convex_hull()
    cfg = ShapeConfig(density=0.0, margin=0.01)
    builder = ModelBuilder()
    for kind in kinds:
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        if kind == "box":
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=cfg, label=kind)
        elif kind == "mesh":
            builder.add_shape_convex_hull(body, mesh=hull, cfg=cfg, label=kind)
        else:
            builder.add_shape_sphere(body, radius=0.1, cfg=cfg, label=kind)
    return builder.finalize(device="cpu")


@pytest.mark.parametrize(
    ("kind", "several", "is_taken"),
    [
        ("sphere", None, True),
        ("box", None, False),
        ("box", False, False),
        ("mesh", None, False),
        ("mesh", False, True),
    ],
)
def test_margins_reach_mujoco_except_where_mujoco_warp_refuses_them(kind, several, is_taken):
    """MuJoCo Warp before 3.17 takes none of boxes, and none of meshes with several contacts per pair."""
    model = thick_shapes(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (kept,) = convert_model(model, MujocoOptions(enable_multiccd=several))
    np.testing.assert_allclose(kept.model.geom_margin, 0.01, rtol=1e-6)
    assert kept.model.geom_gap.max() == 0.0
    options = MujocoOptions(enable_multiccd=several, keep_margins=False)
    if is_taken:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (kept,) = convert_model(model, options)
        np.testing.assert_allclose(kept.model.geom_margin, 0.01, rtol=1e-6)
        return
    with pytest.warns(MujocoCaveatWarning, match=f"shape_margin of '{kind}' counts as 0"):
        (zeroed,) = convert_model(model, options)
    assert zeroed.model.geom_margin.max() == 0.0


def test_mujoco_warp_gets_the_margins_that_its_version_takes():
    """It refuses the model otherwise, with or without several contacts per pair."""
    pytest.importorskip("mujoco_warp")
    model = thick_shapes("box", "box", "mesh", "mesh")
    takes = mujoco.mj_versionString() not in ("3.14.0", "3.15.0", "3.16.0")
    for several in (True, False):
        with contextlib.nullcontext() if takes else pytest.warns(MujocoCaveatWarning, match="before 3.17"):
            solver = SolverMuJoCo(model, use_mujoco_cpu=False, enable_multiccd=several)
        margin = solver.groups[0].model.geom_margin
        np.testing.assert_allclose(margin, 0.01 if takes else 0.0, rtol=1e-6)


def test_gains_as_forces_are_said_not_to_be_exact_where_mujoco_finds_contacts():
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    for label, mode in (("pad", SolrefMode.FORCE_SPACE), ("rim", SolrefMode.RAW)):
        builder.add_shape_sphere(
            body,
            radius=0.1,
            label=label,
            cfg=ShapeConfig(ke=1e4),
            custom_attributes={"mujoco:solref_mode": int(mode)},
        )
    model = builder.finalize(device="cpu")
    with pytest.warns(MujocoCaveatWarning, match=r"damping of shape 'pad' are forces .* mass of 1 kg"):
        convert_model(model, MujocoOptions())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert_model(model, MujocoOptions(use_mujoco_contacts=False))


def test_hardly_any_friction_is_told():
    """Two slick geoms on pyramidal cones are thrown up; one alone, elliptic cones and condim 1 are fine."""

    def make(mu, ground_mu, condim=3):
        builder = ModelBuilder()
        SolverMuJoCo.register_custom_attributes(builder)
        cube = builder.add_body(xform=((0.0, 0.0, 0.1), NO_TURN))
        cfg = ShapeConfig(mu=mu)
        attributes = {"mujoco:condim": condim}
        builder.add_shape_box(
            cube, hx=0.1, hy=0.1, hz=0.1, cfg=cfg, label="ice", custom_attributes=attributes
        )
        builder.add_ground_plane(cfg=ShapeConfig(mu=ground_mu), custom_attributes=attributes)
        return builder.finalize(device="cpu")

    with pytest.warns(
        MujocoCaveatWarning, match=r"friction of shape 'ground_plane', 'ice' is .* cone='elliptic'"
    ):
        convert_model(make(0.0, 0.0), MujocoOptions())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert_model(make(0.0, 0.5), MujocoOptions())
        for model, options in ((make(0.0, 0.0), {"cone": "elliptic"}), (make(0.0, 0.0, condim=1), {})):
            with Simulation(model, SolverMuJoCo(model, **options), dt=0.005) as simulation:
                simulation.step(100)
                assert simulation.state.body_q.numpy()[0, 2] == pytest.approx(0.1, abs=2e-4)


def test_hardly_any_friction_and_bounce_of_edited_shapes_are_told_once():
    builder = ModelBuilder()
    cube = builder.add_body(xform=((0.0, 0.0, 0.1), NO_TURN))
    builder.add_shape_box(cube, hx=0.1, hy=0.1, hz=0.1, label="ice")
    builder.add_ground_plane()
    model = builder.finalize(device="cpu")
    with Simulation(model, SolverMuJoCo(model), dt=0.005) as simulation:
        model.shape_material_mu.fill_(0.0)
        with pytest.warns(MujocoCaveatWarning, match=r"friction of shape 'ground_plane', 'ice'"):
            simulation.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        model.shape_material_restitution.fill_(0.5)
        with pytest.warns(MujocoCaveatWarning) as told:
            simulation.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        assert ["restitution" in str(warning.message) for warning in told] == [True]


def test_a_kinematic_body_moves_as_prescribed_and_pushes_others():
    """A prescribed body keeps its velocity whatever it meets, and its armature is replaced, which is said."""
    builder = ModelBuilder(gravity=0.0)
    pusher = builder.add_link(mass=1.0, inertia=np.eye(3), is_kinematic=True)
    slide = builder.add_joint_prismatic(-1, pusher, axis=(1.0, 0.0, 0.0), armature=0.5, label="rail")
    builder.add_articulation([slide])
    builder.joint_qd[0] = 1.0
    load = builder.add_body(mass=1.0, inertia=np.eye(3), xform=((0.25, 0.0, 0.0), NO_TURN))
    for body in (pusher, load):
        builder.add_shape_sphere(body, radius=0.1, cfg=ShapeConfig(density=0.0))
    model = builder.finalize(device="cpu")
    with pytest.warns(MujocoCaveatWarning, match="joint_armature of joint 'rail' is replaced"):
        (group,) = convert_model(model, MujocoOptions())
    assert group.model.dof_armature[0] == KINEMATIC_ARMATURE
    data = mujoco.MjData(group.model)
    data.qpos[:] = [0.0, 0.25, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    data.qvel[0] = 1.0
    for _ in range(500):
        mujoco.mj_step(group.model, data)
    assert data.qvel[0] == pytest.approx(1.0, abs=1e-6)
    assert data.qvel[1] > 0.9


def test_a_body_fixed_to_the_world_is_moved_by_its_frame():
    """It is a mocap body, whose pose follows `joint_X_p` after a notice."""
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    joint = builder.add_joint_fixed(-1, body, parent_xform=((1.0, 0.0, 0.0), NO_TURN))
    arm = builder.add_link(mass=1.0, inertia=np.eye(3))
    hinge = builder.add_joint_revolute(body, arm, axis=(0.0, 0.0, 1.0))
    builder.add_articulation([joint, hinge])
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    assert solver.groups[0].model.nmocap == 1
    assert solver.groups[0].mocap_joint.tolist() == [joint]
    states = [model.state(), model.state()]
    frames = model.joint_X_p.numpy()
    frames[joint, :3] = [2.0, 3.0, 4.0]
    model.joint_X_p.assign(frames)
    solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
    solver.step(*states, None, None, 0.001)
    np.testing.assert_allclose(states[1].body_q.numpy()[arm, :3], [2.0, 3.0, 4.0], atol=1e-6)


def test_bodies_switch_between_kinematic_and_dynamic():
    """A body that becomes kinematic gets the armature of one after a notice."""
    builder = one_joint()
    belt = builder.add_body(is_kinematic=True)
    builder.add_shape_box(belt, hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    states = [model.state(), model.state()]
    states[0].joint_qd.assign(np.array([1.0, *[0.0] * 6]))
    for flag, armature, turned in (
        (BodyFlags.KINEMATIC, KINEMATIC_ARMATURE, 0.0),
        (BodyFlags.DYNAMIC, 0.0, 0.01),
    ):
        model.body_flags.assign(np.array([int(flag), int(BodyFlags.KINEMATIC)]))
        solver.notify_model_changed(ModelFlags.BODY_PROPERTIES)
        assert solver.groups[0].model.dof_armature[0] == armature
        solver.step(*states, None, None, 0.01)
        assert states[1].joint_q.numpy()[0] == pytest.approx(turned, rel=0.01, abs=1e-9)


def test_kinematic_joints_reach_their_targets_and_are_felt():
    """A cart that accelerates as told carries a bob, which hangs along the apparent gravity."""
    acceleration, dt = 3.0, 0.005
    builder = ModelBuilder()
    for mode in (JointTargetMode.VELOCITY, JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY):
        builder.begin_world()
        cart = builder.add_link(is_kinematic=True)
        bob = builder.add_link(mass=1.0, com=(0.0, 0.0, -1.0), inertia=1e-6 * np.eye(3))
        rail = builder.add_joint_prismatic(-1, cart, axis=(1.0, 0.0, 0.0), actuator_mode=mode)
        hinge = builder.add_joint_revolute(cart, bob, axis=(0.0, 1.0, 0.0))
        builder.add_articulation([rail, hinge])
        builder.joint_q[-1] = np.arctan2(acceleration, 9.81)
        builder.end_world()
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    assert all(group.model.stat.meaninertia < 10.0 for group in solver.groups)
    states, control = [model.state(), model.state()], model.control()
    for step in range(1, 101):
        velocity, position = acceleration * step * dt, 0.5 * acceleration * (step * dt) ** 2
        control.joint_target_vel.assign(np.tile([velocity, 0.0], 3).astype(np.float32))
        control.joint_target_pos.assign(np.tile([position, 0.0], 3).astype(np.float32))
        solver.step(*states, control, None, dt)
        states.reverse()
    solver.report(strict=True)
    q, qd = states[0].joint_q.numpy().reshape(3, 2), states[0].joint_qd.numpy().reshape(3, 2)
    np.testing.assert_allclose(
        q[:, 0], 0.5 * acceleration * 0.5**2, atol=0.5 * dt * acceleration * 0.5 + 1e-6
    )
    assert (q[1:, 0] == np.float32(position)).all()
    assert qd[0, 0] == qd[2, 0] == np.float32(velocity)
    # The position target is given at the end of each step, so its velocity is that of the middle.
    assert qd[1, 0] == pytest.approx(velocity - 0.5 * acceleration * dt, rel=1e-3)
    np.testing.assert_allclose(q[:, 1], np.arctan2(acceleration, 9.81), atol=5e-3)


def make_turntables() -> Model:
    """Return worlds of kinematic ball and free joints, with frames on both sides and a pendulum on each."""
    turned = (0.0, float(np.sin(0.3)), 0.0, float(np.cos(0.3)))
    frames = {"parent_xform": ((0.1, -0.2, 0.3), turned), "child_xform": ((0.05, 0.1, -0.1), turned)}
    builder = ModelBuilder()
    for kind in ("free", "ball"):
        builder.begin_world()
        table = builder.add_link(is_kinematic=True, com=(0.1, -0.05, 0.2), inertia=np.eye(3), mass=1.0)
        bob = builder.add_link(mass=2.0, com=(0.2, 0.0, -0.3), inertia=0.05 * np.eye(3))
        add = builder.add_joint_free if kind == "free" else builder.add_joint_ball
        root = add(parent=-1, child=table, **frames)
        hinge = builder.add_joint_revolute(
            table, bob, axis=(0.0, 1.0, 0.2), parent_xform=((0.3, 0.1, 0.0), NO_TURN)
        )
        builder.add_articulation([root, hinge])
        dof = int(builder.joint_qd_start[root])
        builder.joint_target_mode[dof : dof + (6 if kind == "free" else 3)] = JointTargetMode.VELOCITY
        builder.joint_qd[dof : dof + 3] = [0.3, -0.2, 0.4]
        builder.end_world()
    return builder.finalize(device="cpu")


def swing_on_turntables(make, dt: float) -> np.ndarray:
    """Return coordinates and velocities after 0.3 s of a motion prescribed to kinematic joints."""
    model = make_turntables()
    solver = make(model)
    states, control = [model.state(), model.state()], model.control()
    contacts = None if make is SolverMuJoCo else CollisionPipeline(model).contacts()
    target = control.joint_target_vel.numpy()
    for time in np.arange(1, round(0.3 / dt) + 1) * dt:
        target[:6] = [0.3 + time, -0.2, 0.4 - 2.0 * time, 1.5 * time, 0.5 * np.sin(3.0 * time), -time]
        target[7:10] = [0.3 + 2.0 * time, -0.2 + time, 0.4 * np.cos(2.0 * time)]
        control.joint_target_vel.assign(target)
        solver.step(*states, control, contacts, dt)
        states.reverse()
    solver.report(strict=True)
    for first, end in ((0, 6), (7, 10)):
        np.testing.assert_array_equal(states[0].joint_qd.numpy()[first:end], target[first:end])
    return np.concatenate([states[0].joint_q.numpy(), states[0].joint_qd.numpy()])


def test_kinematic_ball_and_free_joints_follow_velocity_targets():
    """They end steps with the prescribed velocity and the position that it leads to; attached bodies feel it.

    Both solvers are of first order, so their difference halves with the step.
    """
    coarse, fine = (
        np.abs(swing_on_turntables(SolverMuJoCo, dt) - swing_on_turntables(SolverSAP, dt)).max()
        for dt in (0.002, 0.001)
    )
    assert coarse < 0.01  # of 2.7 rad/s
    assert fine == pytest.approx(0.5 * coarse, rel=0.05)


def test_kinematic_free_joints_without_targets_keep_their_bits():
    model = make_turntables()
    model.joint_target_mode.zero_()
    solver, states = SolverMuJoCo(model), [model.state(), model.state()]
    before = [states[0].joint_q.numpy().copy(), states[0].joint_qd.numpy().copy()]
    for _ in range(10):
        solver.step(*states, None, None, 0.001)
        states.reverse()
    for old, new in zip(before, (states[0].joint_q.numpy(), states[0].joint_qd.numpy()), strict=True):
        kinematic = np.ones(len(old), dtype=bool)
        kinematic[[7, 12] if len(old) == 13 else [6, 10]] = False
        np.testing.assert_array_equal(old[kinematic], new[kinematic])
        assert (old[~kinematic] != new[~kinematic]).all()
