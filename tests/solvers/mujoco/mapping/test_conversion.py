"""The MuJoCo models of worlds: same motion, same mass, same limits as the worlds themselves."""

import mujoco
import numpy as np
import pytest

from pluriverse import (
    GeoType,
    Heightfield,
    JointTargetMode,
    JointType,
    Mesh,
    Model,
    ModelBuilder,
    ShapeConfig,
    SolverMuJoCo,
    SolverSAP,
    eval_fk,
)
from pluriverse.solvers.mujoco.caveats import MujocoCaveatWarning
from pluriverse.solvers.mujoco.export import initial_qpos, initial_qvel
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.dynamics.trees import build_model, random_joint_state, random_tree, set_joint_state
from tests.solvers.mujoco.worlds import ROBOT

KINDS = [
    JointType.PRISMATIC,
    JointType.REVOLUTE,
    JointType.BALL,
    JointType.FIXED,
    JointType.D6,
    JointType.FREE,
]
NO_TURN = (0.0, 0.0, 0.0, 1.0)
# Rounding of poses in float32 along chains of about ten bodies [m, relative].
POSE_ROUNDING = 20 * 2.0**-23


def convert(model: Model, **options) -> list[MujocoGroup]:
    return convert_model(model, MujocoOptions(**options))


def initial_data(model: Model, group: MujocoGroup, row: int = 0) -> mujoco.MjData:
    """Return MuJoCo's data of the initial state of a world, after kinematics."""
    rows = ModelRows(model)
    data = mujoco.MjData(group.model)
    data.qpos, data.qvel = initial_qpos(rows, group, row), initial_qvel(rows, group, row)
    if len(group.mocap_joint):
        data.mocap_pos, data.mocap_quat = group.mocap_pose[row, :, :3], group.mocap_pose[row, :, 3:]
    mujoco.mj_forward(group.model, data)
    return data


def test_what_is_derived_does_not_depend_on_where_another_world_begins():
    """Inverse weights and masses of a floating tree have the bits that they have without other worlds."""
    robots = [ModelBuilder(), ModelBuilder()]
    robots[0].add_mjcf(str(ROBOT))
    robots[1].add_mjcf(str(ROBOT), xform=((3.1, -0.7, 1.9), (0.36, 0.48, 0.64, 0.48)))
    groups = []
    for worlds in (robots[1:], robots):
        builder = ModelBuilder()
        for robot in worlds:
            builder.add_world(robot)
        groups += convert(builder.finalize("cpu"))
    alone, group = groups
    for name in ("body_invweight0", "dof_invweight0", "dof_M0", "body_subtreemass"):
        np.testing.assert_array_equal(group.value(name)[1], alone.value(name)[0], err_msg=name)


def test_rest_length_of_a_tendon_between_trees_is_that_of_the_initial_poses():
    """A spatial tendon from the world to a free body, of no given length, rests where the body begins."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(
        """<mujoco><worldbody>
          <site name="hook" pos="0 0 2"/>
          <body pos="0.6 0 1.2"><freejoint/><geom type="box" size=".1 .1 .1"/><site name="eye"/></body>
        </worldbody><tendon><spatial stiffness="10"><site site="hook"/><site site="eye"/></spatial></tendon>
        </mujoco>"""
    )
    (group,) = convert(builder.finalize("cpu"))
    assert group.model.ntendon == 1
    np.testing.assert_allclose(group.value("tendon_length0"), 1.0, rtol=1e-6)  # 0.6, 0.8: float32 poses
    np.testing.assert_allclose(group.value("tendon_lengthspring"), 1.0, rtol=1e-6)


def test_bodies_move_as_in_the_model():
    """Poses and kinetic energy at random states of random trees with joints of all kinds are the same."""
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, 9, kinds=KINDS, root=root) for root in (JointType.FREE, *KINDS)]
    model = build_model(trees)
    states = [random_joint_state(rng, tree) for tree in trees]
    set_joint_state(model, trees, [q for q, _ in states], [qd for _, qd in states])
    eval_fk(model, model.joint_q, model.joint_qd, model)
    groups = convert(model)
    assert len(groups) == len(trees)
    body_q, body_qd = model.body_q.numpy(), model.body_qd.numpy().astype(np.float64)
    mass, inertia = model.body_mass.numpy(), model.body_inertia.numpy()
    for group in groups:
        data = initial_data(model, group)
        energy = 0.0
        for body, made in enumerate(group.body_mj):
            flat = group.first_body[0] + body
            np.testing.assert_allclose(data.xpos[made], body_q[flat, :3], atol=10 * POSE_ROUNDING)
            turn = np.roll(data.xquat[made], -1)
            assert abs(turn @ body_q[flat, 3:]) == pytest.approx(1.0, abs=POSE_ROUNDING)
            rotation = data.xmat[made].reshape(3, 3)
            linear, angular = body_qd[flat, :3], rotation.T @ body_qd[flat, 3:]
            energy += 0.5 * mass[flat] * linear @ linear + 0.5 * angular @ inertia[flat] @ angular
        dense = np.zeros((group.model.nv, group.model.nv))
        mujoco.mj_fullM(group.model, data, dense)
        kinetic = 0.5 * data.qvel @ (dense - np.diag(group.model.dof_armature)) @ data.qvel
        assert kinetic == pytest.approx(energy, rel=100 * POSE_ROUNDING)


def test_a_body_without_mass_between_joints_gives_its_joints_to_the_next():
    """Two hinges with a massless body between them are two joints of one body; both bodies stay in place."""
    builder = ModelBuilder()
    between = builder.add_link()
    end = builder.add_link(mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), com=(0.0, 0.0, 0.4))
    first = builder.add_joint_revolute(
        -1, between, axis=(1.0, 0.0, 0.0), parent_xform=((0.0, 0.0, 1.0), NO_TURN)
    )
    second = builder.add_joint_revolute(
        between, end, axis=(0.0, 1.0, 0.0), parent_xform=((0.1, 0.0, 0.0), NO_TURN), armature=0.01
    )
    builder.add_articulation([first, second])
    builder.joint_q[:] = [0.4, -0.7]
    model = builder.finalize(device="cpu")
    (group,) = convert(model)
    assert group.model.nbody == 2
    assert group.body_mj.tolist() == [-1, 1]
    data = initial_data(model, group)
    np.testing.assert_allclose(data.xpos[1], model.body_q.numpy()[end, :3], atol=1e-6)


def test_actuators_follow_the_modes_of_the_drives():
    """The force of MuJoCo's actuators is that of the drive, limited by its effort limit."""
    builder = ModelBuilder()
    modes = [mode for mode in JointTargetMode if mode is not JointTargetMode.AUTO]
    for mode in modes:
        body = builder.add_link(mass=1.0, inertia=np.eye(3))
        joint = builder.add_joint_revolute(
            -1,
            body,
            axis=(0.0, 0.0, 1.0),
            target_ke=30.0,
            target_kd=2.0,
            target_pos=0.5,
            target_vel=1.5,
            actuator_mode=mode,
            effort_limit=12.0,
        )
        builder.add_articulation([joint])
    model = builder.finalize(device="cpu")
    (group,) = convert(model)
    data = mujoco.MjData(group.model)
    q, qd, act = 0.1, -0.2, 3.0
    data.qpos[:], data.qvel[:] = q, qd
    for controls, value in (
        (group.position_ctrl, 0.5),
        (group.velocity_ctrl, 1.5),
        (group.effort_ctrl, act),
    ):
        data.ctrl[controls[controls >= 0]] = value
    mujoco.mj_forward(group.model, data)
    expected = {
        JointTargetMode.NONE: 0.0,
        JointTargetMode.POSITION: 30.0 * (0.5 - q) - 2.0 * qd,
        JointTargetMode.VELOCITY: 2.0 * (1.5 - qd),
        JointTargetMode.POSITION_VELOCITY: 30.0 * (0.5 - q) + 2.0 * (1.5 - qd),
        JointTargetMode.EFFORT: act,
    }
    limited = [min(expected[mode], 12.0) for mode in modes]
    np.testing.assert_allclose(data.qfrc_actuator, limited, rtol=1e-6)


def test_a_joint_limit_is_a_spring_of_its_stiffness():
    """A joint pressed against its limit rests where `limit_ke` times the depth is the force."""
    stiffness, load = 400.0, 2.0
    depths = []
    for mass in (0.5, 2.0):
        builder = ModelBuilder(gravity=0.0)
        body = builder.add_link(mass=mass, inertia=0.1 * np.eye(3))
        joint = builder.add_joint_prismatic(
            -1,
            body,
            axis=(1.0, 0.0, 0.0),
            limit_lower=-1.0,
            limit_upper=0.0,
            limit_ke=stiffness,
            limit_kd=60.0,
        )
        builder.add_articulation([joint])
        (group,) = convert(builder.finalize(device="cpu"))
        data = mujoco.MjData(group.model)
        data.qfrc_applied[0] = load
        # The impedance is that of deep violation, as in the formula, beyond its width.
        group.model.jnt_solimp[0, 0] = group.model.jnt_solimp[0, 1]
        group.model.opt.timestep = 0.002
        for _ in range(15000):
            mujoco.mj_step(group.model, data)
        depths.append(float(data.qpos[0]))
    np.testing.assert_allclose(depths, load / stiffness, rtol=1e-6)


def test_shapes_of_all_types_become_geoms():
    """Sizes and poses of geoms are those of the shapes; a finite plane is a box with its top in the plane."""
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    cfg = ShapeConfig(density=0.0)
    pose = ((0.1, 0.2, 0.3), (0.0, 0.0, np.sin(0.3), np.cos(0.3)))
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.1, 0.2, 0.3]
    mesh = Mesh(corners, [[0, 1, 2]]).convex_hull()
    builder.add_shape_sphere(body, xform=pose, radius=0.1, cfg=cfg)
    builder.add_shape_capsule(body, xform=pose, radius=0.1, half_height=0.2, cfg=cfg)
    builder.add_shape_cylinder(body, xform=pose, radius=0.1, half_height=0.2, cfg=cfg)
    builder.add_shape_box(body, xform=pose, hx=0.1, hy=0.2, hz=0.3, cfg=cfg)
    builder.add_shape_ellipsoid(body, xform=pose, rx=0.1, ry=0.2, rz=0.3, cfg=cfg)
    builder.add_shape_convex_hull(body, xform=pose, mesh=mesh, cfg=cfg)
    builder.add_shape_cone(body, xform=pose, radius=0.1, half_height=0.2, cfg=cfg)
    builder.add_shape_plane(body=-1, width=2.0, length=4.0)
    builder.add_ground_plane()
    builder.add_site(body, xform=pose)
    model = builder.finalize(device="cpu")
    with pytest.warns(MujocoCaveatWarning, match="cone"):
        (group,) = convert(model)
    data = initial_data(model, group)
    kinds = model.shape_type.numpy()
    expected = {
        GeoType.SPHERE: ("sphere", [0.1, 0.0, 0.0]),
        GeoType.CAPSULE: ("capsule", [0.1, 0.2, 0.0]),
        GeoType.CYLINDER: ("cylinder", [0.1, 0.2, 0.0]),
        GeoType.BOX: ("box", [0.1, 0.2, 0.3]),
        GeoType.ELLIPSOID: ("ellipsoid", [0.1, 0.2, 0.3]),
    }
    for shape, geom in enumerate(group.shape_geom[:5]):
        name, size = expected[GeoType(kinds[shape])]
        assert group.model.geom_type[geom] == getattr(mujoco.mjtGeom, f"mjGEOM_{name.upper()}")
        np.testing.assert_allclose(group.model.geom_size[geom], size, atol=1e-7)
        np.testing.assert_allclose(data.geom_xpos[geom], pose[0], atol=1e-6)
    hull = group.shape_geom[5]  # centred, for the box is symmetric
    np.testing.assert_allclose(data.geom_xpos[hull], pose[0], atol=1e-6)
    np.testing.assert_allclose(np.sort(group.model.geom_size[hull]), [0.1, 0.2, 0.3], rtol=1e-5)
    slab, ground = group.shape_geom[7], group.shape_geom[8]
    np.testing.assert_allclose(group.model.geom_size[slab], [1.0, 2.0, 0.5])
    np.testing.assert_allclose(data.geom_xpos[slab], [0.0, 0.0, -0.5])
    assert group.model.geom_type[ground] == mujoco.mjtGeom.mjGEOM_PLANE
    np.testing.assert_allclose(data.site_xpos[group.shape_site[9]], pose[0], atol=1e-6)
    assert (group.shape_geom[9], group.shape_site[0]) == (-1, -1)


def test_sites_of_types_that_mujoco_does_not_draw_are_spheres():
    """All stand where their shapes do; cones and planes are drawn as points."""
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    kinds = [GeoType.SPHERE, GeoType.CAPSULE, GeoType.CYLINDER, GeoType.BOX, GeoType.ELLIPSOID, GeoType.CONE]
    for place, kind in enumerate([*kinds, GeoType.PLANE]):
        builder.add_site(body, type=kind, scale=(0.1, 0.2, 0.3), xform=((0.1 * place, 0.0, 0.0), NO_TURN))
    model = builder.finalize(device="cpu")
    (group,) = convert(model)
    data = initial_data(model, group)
    drawn = [mujoco.mjtGeom(kind).name.removeprefix("mjGEOM_") for kind in group.model.site_type]
    assert drawn == ["SPHERE", "CAPSULE", "CYLINDER", "BOX", "ELLIPSOID", "SPHERE", "SPHERE"]
    np.testing.assert_allclose(data.site_xpos[:, 0], 0.1 * np.arange(7), atol=1e-6)
    assert group.model.ngeom == 0


def test_geoms_touch_exactly_where_shapes_do():
    """Groups, filtered pairs, joints and welds: MuJoCo collides the candidate pairs, no others."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder(gravity=0.0)
    shapes = []
    for _ in range(12):
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        for _ in range(int(rng.integers(1, 4))):
            cfg = ShapeConfig(density=0.0, collision_group=int(rng.integers(-3, 4)))
            shapes.append(builder.add_shape_sphere(body, radius=0.5, cfg=cfg))
    for a, b in rng.integers(0, len(shapes), (30, 2)):
        if a != b:
            builder.add_shape_collision_filter_pair(shapes[a], shapes[b])
    model = builder.finalize(device="cpu")
    (group,) = convert(model)
    template = model.templates[0]
    wanted = {frozenset(pair) for pair in zip(template.pair_shape0, template.pair_shape1, strict=True)}
    assert _touching_shapes(model, group) == wanted
    assert len(wanted) > 20


@pytest.mark.parametrize("shape_count", [1, 2])
def test_filters_beyond_the_contact_bits_are_exact(shape_count):
    """Filters that need more than 32 colours fall back on excluded bodies and named pairs, still exact."""
    rng = np.random.default_rng(shape_count)
    builder = ModelBuilder(gravity=0.0)
    count = 48
    for _ in range(count):
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        for _ in range(shape_count):
            builder.add_shape_sphere(body, radius=0.5, cfg=ShapeConfig(density=0.0, mu=float(rng.random())))
    for a, b in np.argwhere(np.triu(rng.random((count * shape_count,) * 2) < 0.5, 1)):
        builder.add_shape_collision_filter_pair(int(a), int(b))
    model = builder.finalize(device="cpu")
    (group,) = convert(model)
    assert group.plan.masks.colour_count > 32 or group.plan.masks.excludes
    assert bool(group.plan.masks.pairs) == (shape_count == 2)
    template = model.templates[0]
    wanted = {frozenset(pair) for pair in zip(template.pair_shape0, template.pair_shape1, strict=True)}
    assert _touching_shapes(model, group) == wanted


def _touching_shapes(model: Model, group: MujocoGroup) -> set[frozenset]:
    """Return the pairs of shapes that touch where all bodies are at the same place."""
    data = mujoco.MjData(group.model)
    group.model.geom_margin[:] = 0.0
    data.qpos[:] = np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], group.model.nq // 7)
    mujoco.mj_kinematics(group.model, data)
    mujoco.mj_comPos(group.model, data)
    mujoco.mj_collision(group.model, data)
    return {frozenset(group.geom_shape[pair].tolist()) for pair in data.contact.geom}


def test_a_height_field_is_where_its_heights_are():
    """Rays from above hit MuJoCo's height field at the heights of ours, moved and scaled."""
    heights = np.random.default_rng(0).uniform(-0.3, 0.5, (6, 9))
    builder = ModelBuilder()
    field = Heightfield(heights, 6, 9, hx=2.0, hy=1.0)
    builder.add_shape_heightfield(heightfield=field, xform=((0.5, 0.0, 1.0), NO_TURN), scale=(1.0, 2.0, 0.5))
    builder.add_body(mass=1.0, inertia=np.eye(3))
    (group,) = convert(builder.finalize(device="cpu"))
    data = initial_data(builder.finalize(device="cpu"), group)
    for row, column in [(1, 1), (2, 5), (4, 7)]:
        x, y = -2.0 + 4.0 * column / 8 + 0.5, 2.0 * (-1.0 + 2.0 * row / 5)
        hit = np.zeros(1, dtype=np.int32)
        distance = mujoco.mj_ray(group.model, data, [x + 1e-6, y + 1e-6, 5.0], [0, 0, -1.0], None, 1, -1, hit)
        assert 5.0 - distance == pytest.approx(1.0 + 0.5 * heights[row, column], abs=1e-4)


def test_a_rope_holds_what_hangs_on_it():
    """A body on a distance joint falls until the rope is tight, and hangs there by its weight."""
    builder = ModelBuilder()
    body = builder.add_link(mass=2.0, inertia=0.01 * np.eye(3), xform=((0.0, 0.0, 1.0), NO_TURN))
    joint = builder.add_joint_distance(
        -1,
        body,
        parent_xform=((0.0, 0.0, 1.2), NO_TURN),
        child_xform=((0.0, 0.0, 0.1), NO_TURN),
        max_distance=0.4,
    )
    builder.add_articulation([joint])
    (group,) = convert(builder.finalize(device="cpu"))
    data = initial_data(builder.finalize(device="cpu"), group)
    for _ in range(2000):
        mujoco.mj_step(group.model, data)
    assert data.xpos[1, 2] == pytest.approx(1.2 - 0.4 - 0.1, abs=2e-3)
    assert data.qfrc_constraint[2] == pytest.approx(2.0 * 9.81, rel=1e-3)


def test_axes_of_one_joint_can_be_coupled():
    """The second axis of a D6 joint follows a polynomial of the first."""
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    joint = builder.add_joint_d6(-1, body, linear_axes=[(1.0, 0.0, 0.0)], angular_axes=[(1.0, 0.0, 0.0)])
    builder.add_articulation([joint])
    builder.add_equality_constraint_joint(
        joint, joint, joint1_axis=1, joint2_axis=0, polycoef=(0.1, 2.0, 0.5)
    )
    (group,) = convert(builder.finalize(device="cpu"))
    data = mujoco.MjData(group.model)
    data.qfrc_applied[0] = 1.0
    for _ in range(500):
        mujoco.mj_step(group.model, data)
    slide, turn = data.qpos
    assert slide > 0.05
    assert turn == pytest.approx(0.1 + 2.0 * slide + 0.5 * slide**2, abs=2e-3)


def test_worlds_without_bodies_stand_still():
    """A world may hold scenery only, or nothing, beside one that moves."""
    builder = ModelBuilder()
    builder.begin_world()
    builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=1.0)
    builder.end_world()
    builder.begin_world()
    builder.end_world()
    builder.begin_world()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.end_world()
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    assert [group.model.nbody for group in solver.groups] == [1, 1, 2]
    states = [model.state(), model.state()]
    for _ in range(10):
        solver.step(*states, None, None, 0.01)
        states.reverse()
    solver.report(strict=True)
    assert states[0].joint_q.numpy()[2] == pytest.approx(-9.81 * 0.01**2 * 55, rel=1e-5)


def test_bodies_that_float_below_others_move_as_in_the_world():
    """Trees with free joints inside move and spin as `SolverSAP` says, under forces in the moving frames.

    Steps of 50 µs leave `SolverSAP` half of the error that is allowed, and Runge-Kutta steps none.
    """
    rng = np.random.default_rng(2)
    trees = [
        random_tree(rng, 6, kinds=[JointType.REVOLUTE, JointType.FREE], root=JointType.FREE) for _ in range(3)
    ]
    model = build_model(trees)
    states = [random_joint_state(rng, tree) for tree in trees]
    set_joint_state(model, trees, [q for q, _ in states], [qd for _, qd in states])
    eval_fk(model, model.joint_q, model.joint_qd, model)
    forces = 10.0 * rng.normal(size=model.joint_dof_count).astype(np.float32)
    step, results = 5e-5, []
    for solver in (
        SolverMuJoCo(model, integrator="rk4"),
        SolverSAP(model, position_integration="semi_implicit", free_motion_solve_precision="fp64"),
    ):
        pair, control = [model.state(), model.state()], model.control()
        control.joint_f.assign(forces)
        for _ in range(100):
            solver.step(*pair, control, None, step)
            pair.reverse()
        results.append([array.numpy() for array in (pair[0].joint_q, pair[0].joint_qd, pair[0].body_q)])
    assert max(group.plan.structure.float_depth for group in convert(model)) >= 2
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_a_rope_between_two_bodies_draws_them_together():
    """Two bodies fly apart until the rope is tight, which then holds them and keeps their momentum."""
    builder = ModelBuilder(gravity=0.0)
    first = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
    second = builder.add_link(mass=3.0, inertia=0.1 * np.eye(3), xform=((1.0, 0.0, 0.0), NO_TURN))
    root = builder.add_joint_free(first)
    rope = builder.add_joint_distance(first, second, max_distance=1.2)
    builder.add_articulation([root, rope])
    builder.joint_qd[6] = 2.0  # the second flies away from the first
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    states, lengths = [model.state(), model.state()], []
    for _ in range(500):
        solver.step(*states, None, None, 0.001)
        states.reverse()
        lengths.append(np.diff(states[0].body_q.numpy()[:, 0])[0])
    velocity = states[0].body_qd.numpy()
    assert max(lengths) == pytest.approx(1.2, abs=0.02)  # it gives way for a time constant of 0.02 s
    assert lengths[-1] < 1.2
    assert velocity[0, 0] + 3.0 * velocity[1, 0] == pytest.approx(6.0, rel=1e-3)
