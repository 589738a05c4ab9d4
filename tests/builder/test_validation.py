"""Bad input: every message names the entity, its index, the value and what to do."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import pluriverse
from pluriverse import GeoType, Mesh, ModelBuilder, ShapeConfig, SolverMuJoCo, SolverSAP
from pluriverse.types import BodyFlags, JointTargetMode
from pluriverse.warnings import PluriverseWarning

EYE = np.eye(3)
UP = (0.0, 0.0, 0.0, 1.0)


def make_pendulum() -> ModelBuilder:
    """Return a builder of a hinged rod with a box, and a ball above."""
    builder = ModelBuilder()
    rod = builder.add_link(mass=1.0, inertia=EYE, label="rod")
    builder.add_articulation([builder.add_joint_revolute(-1, rod, label="hinge")])
    builder.add_shape_box(rod, label="side")
    ball = builder.add_body(mass=1.0, inertia=EYE, label="ball")
    builder.add_shape_sphere(ball, label="skin")
    return builder


def write(name: str, index: object, value: object) -> Callable[[ModelBuilder], None]:
    """Return what writes a value into an array of a builder."""

    def edit(builder: ModelBuilder) -> None:
        getattr(builder, name)[index] = value

    return edit


def tree(*edges: tuple[int, int]) -> Callable[[ModelBuilder], None]:
    """Return what adds links and hinges between them, given as (parent, child), in one articulation."""

    def build(builder: ModelBuilder) -> None:
        first = builder.body_count
        for _ in range(1 + max(child for _, child in edges)):
            builder.add_link(mass=1.0, inertia=EYE)
        shift = [(parent + first if parent >= 0 else -1, child + first) for parent, child in edges]
        builder.add_articulation([builder.add_joint_revolute(parent, child) for parent, child in shift])

    return build


def in_a_world(build: Callable[[ModelBuilder], None]) -> Callable[[ModelBuilder], None]:
    """Return what adds a world and builds in it."""

    def edit(builder: ModelBuilder) -> None:
        builder.begin_world()
        build(builder)
        builder.end_world()

    return edit


NAN, INF = float("nan"), float("inf")
MESH = Mesh(np.eye(3), [[0, 1, 2]])

# What is done to the pendulum before finalize(), and what the message says.
AT_FINALIZE = [
    (
        write("body_mass", 1, NAN),
        r"body 'ball' \(index 1\): body_mass is nan kg, but it must be finite and >= 0",
    ),
    (write("body_mass", 1, -2.0), r"body 'ball' \(index 1\): body_mass is -2.0 kg"),
    (write("body_mass", 1, INF), r"body 'ball' \(index 1\): body_mass is inf kg"),
    (write("body_com", 1, (0, NAN, 0)), r"body 'ball' \(index 1\): body_com is \[0.0, nan, 0.0\] m"),
    (
        write("body_inertia", (1, 0, 0), NAN),
        r"body 'ball' \(index 1\): body_inertia is .*nan.* must be finite",
    ),
    (write("body_inertia", (1, 0, 1), 500.0), r"body 'ball' \(index 1\): body_inertia .* not symmetric"),
    (
        write("body_inertia", 1, np.diag([1, 1, -1])),
        r"'ball' \(index 1\): the principal inertias are .*negative",
    ),
    (
        write("body_flags", 1, int(BodyFlags.ALL)),
        r"body 'ball' \(index 1\): body_flags is 3, but .*DYNAMIC \(1\) or KINEMATIC \(2\)",
    ),
    (
        write("joint_enabled", 0, False),
        r"joint 'hinge' \(index 0\): joint_enabled is false, but it is what moves body 'rod'",
    ),
    (write("joint_X_p", (0, 1), NAN), r"joint 'hinge' \(index 0\): joint_X_p is \[0.0, nan.* parent_xform="),
    (
        write("joint_X_c", (0, 6), 0.0),
        r"joint 'hinge' \(index 0\): joint_X_c has the quaternion \[0.0, 0.0, 0.0, 0.0\]",
    ),
    (write("joint_q", 0, NAN), r"joint 'hinge' \(index 0\): joint_q\[0\] is nan"),
    (write("joint_qd", 3, INF), r"joint 'ball_free_joint' \(index 1\): joint_qd\[3\] is inf"),
    (
        write("joint_q", slice(4, 8), 0.0),
        r"joint 'ball_free_joint' \(index 1\): joint_q holds the quaternion \[0.0, 0",
    ),
    (
        write("joint_axis", 0, 0.0),
        r"joint 'hinge' \(index 0\), axis 0: joint_axis is \[0.0, 0.0, 0.0\], .* direction",
    ),
    (write("joint_armature", 0, -1.0), r"joint 'hinge' \(index 0\), axis 0: joint_armature is -1.0, .*>= 0"),
    (write("joint_damping", 0, -1.0), r"hinge.*joint_damping is -1.0"),
    (write("joint_friction", 0, NAN), r"hinge.*joint_friction is nan"),
    (write("joint_target_ke", 0, -5.0), r"hinge.*joint_target_ke is -5.0"),
    (write("joint_target_kd", 0, -5.0), r"hinge.*joint_target_kd is -5.0"),
    (write("joint_limit_ke", 0, -5.0), r"hinge.*joint_limit_ke is -5.0"),
    (write("joint_effort_limit", 0, -1.0), r"hinge.*joint_effort_limit is -1.0"),
    (write("joint_target_pos", 0, INF), r"hinge.*joint_target_pos is inf"),
    (write("joint_limit_lower", 0, NAN), r"hinge.*joint_limit_lower is nan"),
    (
        write("joint_limit_lower", 0, 2e10),
        r"hinge.*limit_lower is 20000000000.0 and limit_upper .* Swap them",
    ),
    (write("joint_target_mode", 0, 7), r"hinge.*joint_target_mode is 7, which is no JointTargetMode"),
    (
        lambda builder: (
            builder.joint_limit_upper.__setitem__(4, 1.0),
            builder.joint_limit_ke.__setitem__(4, 2.0),
        ),
        r"joint 'ball_free_joint' \(index 1\), axis 3: the limits are -inf and 1.0, but a free joint .* D6",
    ),
    (write("shape_material_mu", 1, -0.1), r"shape 'skin' \(index 1\): shape_material_mu is -0.1"),
    (write("shape_material_tau", 1, INF), r"shape 'skin' \(index 1\): shape_material_tau is inf"),
    (write("shape_margin", 0, -0.1), r"shape 'side' \(index 0\): shape_margin is -0.1"),
    (write("shape_gap", 0, -0.1), r"shape 'side' \(index 0\): shape_gap is -0.1"),
    (
        write("shape_scale", (1, 0), 0.0),
        r"shape 'skin' \(index 1\): shape_scale is \[0.0, 0.0, 0.0\], but a SPHERE",
    ),
    (
        write("shape_scale", (0, 2), NAN),
        r"shape 'side' \(index 0\): shape_scale is \[0.5, 0.5, nan\], but a BOX",
    ),
    (write("shape_type", 0, 0), r"shape 'side' \(index 0\): shape_type 0 is no geometry"),
    (write("shape_type", 0, 99), r"shape 'side' \(index 0\): shape_type 99 is no geometry"),
    (write("shape_source_index", 0, 3), r"shape 'side' \(index 0\): a BOX with shape_source_index 3"),
    (write("shape_transform", (0, 0), NAN), r"shape 'side' \(index 0\): shape_transform is \[nan"),
    (
        lambda builder: builder.add_link(mass=1.0, inertia=EYE, label="adrift"),
        r"body 'adrift' \(index 2\) has no joint",
    ),
    (
        lambda builder: builder.add_joint_revolute(
            -1, builder.add_link(mass=1.0, inertia=EYE), label="loose"
        ),
        r"joint 'loose' \(index 2\) is in no articulation. List it in add_articulation",
    ),
    (
        tree((-1, 0), (0, 1), (-1, 1)),
        r"body 'body_3' \(index 3\) is the child of joint 'joint_3' .* and joint 'joint_4'",
    ),
    (
        tree((0, 1), (1, 2), (2, 0)),
        r"joints joint 'joint_2' \(index 2\), .*'joint_4' \(index 4\) form a cycle",
    ),
    (in_a_world(tree((-1, 0))), r"body 'rod' \(index 0\) is global, but the model has 1 worlds"),
    (
        lambda builder: builder.add_shape_plane(body=1),
        r"'shape_2' \(index 2\) is a plane on body 'ball' \(index 1\)",
    ),
]


@pytest.mark.parametrize(("edit", "message"), AT_FINALIZE, ids=[message[:40] for _, message in AT_FINALIZE])
def test_finalize_refuses(edit, message):
    """What is wrong with the whole description is found when the model is made."""
    builder = make_pendulum()
    edit(builder)
    with pytest.raises(ValueError, match=message):
        builder.finalize("cpu")


# What leaves a joint nothing to accelerate, and what solvers say.
AT_SOLVER = [
    (write("body_mass", 0, 0.0), r"body 'rod' \(index 0\): mass is 0.0 kg .* needs mass > 0. Pass mass="),
    (
        write("body_inertia", 0, np.diag([0.0, 1.0, 1.0])),
        r"'rod' \(index 0\): .* about joint 'hinge' \(index 0\) are .* axis",
    ),
]


@pytest.mark.parametrize(("edit", "message"), AT_SOLVER, ids=[message[:40] for _, message in AT_SOLVER])
@pytest.mark.parametrize("solver", [SolverSAP, SolverMuJoCo])
def test_solvers_refuse_what_has_no_mass_and_kinematics_take_it(edit, message, solver):
    """Robots for inverse kinematics are often written without masses."""
    builder = make_pendulum()
    builder.joint_q[0] = 0.3
    edit(builder)
    model = builder.finalize("cpu")
    state = model.state()
    pluriverse.eval_fk(model, model.joint_q, model.joint_qd, state)
    np.testing.assert_allclose(np.abs(state.body_q.numpy()[0, 3:]).max(), np.cos(0.15), rtol=1.0e-6)
    with pytest.raises(ValueError, match=rf"{solver.__name__}: .*{message}"):
        solver(model)


def test_gains_of_all_degrees_of_freedom_leave_a_free_joint_alone():
    """Scripts write gains and modes in a loop over everything; the base must float all the same."""
    builder = make_pendulum()
    builder.joint_target_ke[:] = 150.0
    builder.joint_target_kd[:] = 5.0
    builder.joint_target_mode[:] = int(JointTargetMode.POSITION)
    with pytest.warns(PluriverseWarning, match=r"joint 'ball_free_joint' \(index 1\): joint_target_ke and"):
        model = builder.finalize("cpu")
    assert model.joint_target_ke.numpy().tolist() == [150.0] + 6 * [0.0]
    assert model.joint_target_kd.numpy().tolist() == [5.0] + 6 * [0.0]
    assert model.joint_target_mode.numpy().tolist() == [JointTargetMode.POSITION] + 6 * [JointTargetMode.NONE]


AT_ONCE = [
    (lambda b: b.add_link(mass=-1.0, label="rod"), r"body 'rod' \(index 2\): mass is -1.0 kg"),
    (lambda b: b.add_link(mass=NAN), r"body 'body_2' \(index 2\): mass is nan kg"),
    (
        lambda b: b.add_link(com=(1.0, 2.0)),
        r"body 'body_2' \(index 2\): com is \(1.0, 2.0\), .* three finite numbers",
    ),
    (lambda b: b.add_link(inertia=(1.0, 2.0, 3.0)), r"'body_2' \(index 2\): inertia is .* 3x3 matrix"),
    (
        lambda b: b.add_link(inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]),
        r"'body_2' \(index 2\): .* not symmetric",
    ),
    (lambda b: b.add_link(xform=(0, 0, 1)), r"'body_2' \(index 2\): xform is .* seven numbers"),
    (
        lambda b: b.add_link(xform=((0, 0, 1), (1, 0, 0, 1))),
        r"quaternion \[1.0, 0.0, 0.0, 1.0\] has length 1.41421",
    ),
    (lambda b: b.add_link(xform=((0, 0, NAN), UP)), r"'body_2' \(index 2\): xform .* must be finite"),
    (
        lambda b: b.add_joint_revolute(0, 9),
        r"joint 'joint_2' \(index 2\): child: body 9 does not exist; there are 2",
    ),
    (lambda b: b.add_joint_revolute(-2, 1), r"joint 'joint_2' \(index 2\): parent: body -2 does not exist"),
    (
        lambda b: b.add_joint_fixed(1, -1),
        r"joint 'joint_2' \(index 2\): child is -1, but a joint moves a body",
    ),
    (
        lambda b: b.add_joint_fixed(1, 1),
        r"joint 'joint_2' \(index 2\): body 'ball' \(index 1\) is both parent and child",
    ),
    (
        lambda b: b.add_joint_revolute("rod", 1),
        r"parent: body is 'rod', but it must be the index that add_link",
    ),
    (
        lambda b: b.add_joint_revolute(0, 1, axis="w"),
        r"'joint_2' \(index 2\), axis 0: axis is 'w', but an axis is",
    ),
    (lambda b: b.add_joint_revolute(0, 1, axis=3), r"axis 0: axis is 3, but the number of an axis is 0"),
    (
        lambda b: b.add_joint_prismatic(0, 1, axis=(0, 0, 0)),
        r"axis 0: axis is \[0.0, 0.0, 0.0\], .* no direction",
    ),
    (lambda b: b.add_joint_revolute(0, 1, actuator_mode=9), r"axis 0: actuator_mode is 9, but the modes are"),
    (lambda b: b.add_articulation([]), r"articulation 'articulation_2' \(index 2\): no joints"),
    (lambda b: b.add_articulation([5]), r"joint 5 does not exist; there are 2 joints"),
    (
        lambda b: b.add_articulation([0]),
        r"joint 'hinge' \(index 0\) is in articulation 'articulation_0' \(index 0\) already",
    ),
    (lambda b: b.add_shape_box(4), r"shape 'shape_2' \(index 2\): body 4 does not exist"),
    (
        lambda b: b.add_shape_box(0, hy=0.0),
        r"shape 'shape_2' \(index 2\): hy is 0.0 m, but a BOX needs hy > 0",
    ),
    (
        lambda b: b.add_shape_sphere(0, radius=NAN),
        r"'shape_2' \(index 2\): scale is .*nan.* three finite numbers",
    ),
    (lambda b: b.add_shape_capsule(0, half_height=-1.0), r"half_height is -1.0 m, but a CAPSULE needs"),
    (lambda b: b.add_shape_plane(width=-1.0), r"width is -1.0 m .* must be >= 0"),
    (lambda b: b.add_shape_plane((0, 0, 0, 1)), r"plane is \[0, 0, 0, 1\], .* normal"),
    (
        lambda b: b.add_shape(body=0, type=GeoType.HFIELD),
        r"'shape_2' \(index 2\): body is 0, but a height field is fixed",
    ),
    (lambda b: b.add_shape(body=0, type=77), r"'shape_2' \(index 2\): type is 77, which is no GeoType"),
    (
        lambda b: b.add_shape(body=0, type=GeoType.MESH),
        r"'shape_2' \(index 2\): src is None, but a MESH shape needs",
    ),
    (lambda b: b.add_shape(body=0, type=GeoType.BOX, src=MESH), r"src is given, but a BOX shape has no mesh"),
    (lambda b: b.add_shape_mesh(0, mesh=MESH), r"shape 'shape_2' \(index 2\): mesh: the surface has holes"),
    (
        lambda b: b.add_shape_mesh(0, mesh=MESH, scale=(1, 0, 1)),
        r"scale is \[1.0, 0.0, 1.0\], but no factor may be 0",
    ),
    (lambda b: b.add_shape_box(0, cfg=ShapeConfig(mu=-1.0)), r"'shape_2' \(index 2\): mu is -1.0, .* >= 0"),
    (lambda b: b.add_shape_box(0, cfg=ShapeConfig(density=NAN)), r"'shape_2' \(index 2\): density is nan"),
    (lambda b: b.add_shape_box(0, cfg=ShapeConfig(gap="1")), r"'shape_2' \(index 2\): gap is 1, .*rigid_gap"),
    (
        lambda b: b.add_shape_box(0, cfg=ShapeConfig(collision_group=0.5)),
        r"collision_group is 0.5, .* integer",
    ),
    (lambda b: b.add_shape_collision_filter_pair(0, 7), r"shape 7 does not exist; there are 2 shapes"),
    (lambda b: b.add_shape_collision_filter_pair(1, 1), r"shape 'skin' \(index 1\) is given twice"),
    (lambda b: setattr(b, "gravity", (1.0, 2.0)), r"gravity is \(1.0, 2.0\), but it must be"),
    (lambda b: b.begin_world(gravity=NAN), r"gravity is nan, but it must be"),
    (lambda b: ModelBuilder(up_axis="up"), r"'up' is no axis"),
    (lambda b: b.finalize(device="cuda:99"), r"device is 'cuda:99', but this machine has 'cpu'"),
    (
        lambda b: b.add_builder(ModelBuilder(up_axis="y")),
        r"y points up in the builder to add, but z in this one",
    ),
]


@pytest.mark.parametrize(("call", "message"), AT_ONCE, ids=[message[:40] for _, message in AT_ONCE])
def test_a_call_refuses(call, message):
    """What is wrong with one argument is found when it is passed, and nothing is added."""
    builder = make_pendulum()
    before = (builder.joint_count, builder.shape_count, builder.joint_dof_count, len(builder.body_label))
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call(builder)
    after = (builder.joint_count, builder.shape_count, builder.joint_dof_count, len(builder.body_label))
    assert after == before


def test_entities_of_different_worlds_cannot_be_connected():
    """Joints, shapes, articulations and filters stay inside one world."""
    builder = ModelBuilder()
    for _ in range(2):
        builder.begin_world()
        body = builder.add_link(mass=1.0, inertia=EYE)
        joint = builder.add_joint_free(body)
        shape = builder.add_shape_box(body)
        builder.end_world()
    with pytest.raises(
        ValueError, match=r"body 'body_1' \(index 1, world 1\) is in world 1, but .* the global world \(-1\)"
    ):
        builder.add_shape_box(body)
    with pytest.raises(ValueError, match=r"shape_1.* are in the worlds \[0, 1\]"):
        builder.add_shape_collision_filter_pair(0, shape)
    builder.begin_world()
    with pytest.raises(
        ValueError, match=r"parent: body 'body_0' \(index 0, world 0\) is in world 0, but .* world 2"
    ):
        builder.add_joint_revolute(0, body)
    with pytest.raises(
        ValueError, match=r"joint 'joint_1' \(index 1, world 1\) is in world 1, but .* world 2"
    ):
        builder.add_articulation([joint])


def test_infinite_limits_and_efforts_are_fine():
    """No limit is written as infinity."""
    builder = make_pendulum()
    builder.joint_limit_lower[0], builder.joint_limit_upper[0] = -INF, INF
    builder.joint_effort_limit[0] = INF
    builder.shape_material_ke[0] = INF
    builder.finalize("cpu")


def test_small_and_large_bodies_are_checked_alike():
    """The same shape of inertia is accepted at any size: a milligram, a ton."""
    for scale in (1e-18, 1e-6, 1.0, 1e12):
        builder = ModelBuilder()
        builder.add_body(mass=scale, inertia=np.diag([1.0, 2.0, 2.99]) * scale)
        builder.finalize("cpu")


@pytest.mark.parametrize("scale", [1.0, 1e-12])
def test_an_inertia_that_no_body_has_is_reported(scale):
    """Principal inertias obey the triangle inequality; files of real robots do not always: a warning."""
    builder = ModelBuilder()
    builder.add_body(mass=scale, inertia=np.diag([1.0, 1.0, 3.0]) * scale, label="plate")
    with pytest.warns(UserWarning, match=r"body 'plate' \(index 0\): .* belong to no body"):
        builder.finalize("cpu")


def test_the_message_names_the_copy_that_is_wrong():
    """In a model of many copies, index and world tell which one."""
    scene = ModelBuilder()
    scene.replicate(make_pendulum(), 100)
    scene.body_mass[2 * 77 + 1] = NAN
    with pytest.raises(ValueError, match=r"body 'ball' \(index 155, world 77\): body_mass is nan"):
        scene.finalize("cpu")


def test_a_cycle_in_one_world_names_its_joints():
    """The indices in the message are those of that world."""
    scene = ModelBuilder()
    scene.replicate(make_pendulum(), 2)
    in_a_world(tree((0, 1), (1, 0)))(scene)
    with pytest.raises(
        ValueError,
        match=r"joint 'joint_4' \(index 4, world 2\), joint 'joint_5' \(index 5, world 2\) form a cycle",
    ):
        scene.finalize("cpu")


@pytest.mark.parametrize(
    ("array", "value", "named"),
    [
        ("body_mass", -1.0, "body 'limb' (index 5, world 2): body_mass is -1.0"),
        ("body_mass", 0.0, "body 'limb' (index 5, world 2): mass is 0.0"),
        ("shape_scale", 0.0, "shape 'ball' (index 5, world 2): shape_scale is"),
        ("joint_q", NAN, "joint 'elbow' (index 5, world 2): joint_q[5] is nan"),
    ],
)
def test_one_bad_robot_of_many_is_named_with_its_world(array, value, named):
    """Robots of a population have the same labels, and an index counts through all of them."""
    builder = ModelBuilder()
    for _ in range(4):
        builder.begin_world()
        links = [builder.add_link(label=label, mass=1.0, inertia=EYE) for label in ("trunk", "limb")]
        joints = [
            builder.add_joint_revolute(parent, link, label=label)
            for parent, link, label in ((-1, links[0], "hip"), (links[0], links[1], "elbow"))
        ]
        builder.add_articulation(joints)
        for link in links:
            builder.add_shape_sphere(link, radius=0.1, label="ball", cfg=ShapeConfig(density=0.0))
        builder.end_world()
    getattr(builder, array)[5] = value
    with pytest.raises(ValueError, match=re.escape(named)):
        SolverSAP(builder.finalize("cpu"))
