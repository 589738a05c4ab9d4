"""Joints: defaults, drives and frames as they arrive in the model."""

import numpy as np
import pytest

from pluriverse import JointDofConfig, JointTargetMode, JointType, ModelBuilder, SolverSAP
from pluriverse.model import poses
from tests.builder.robots import make_arm


def add_hinge(builder: ModelBuilder, **options: object) -> int:
    """Add a link on a hinge to the world and return the first dof of the hinge."""
    joint = builder.add_joint_revolute(-1, builder.add_link(mass=1.0, inertia=np.eye(3)), **options)
    builder.add_articulation([joint])
    return int(builder.joint_qd_start[joint])


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, JointTargetMode.NONE),
        ({"target_ke": 1.0}, JointTargetMode.POSITION),
        ({"target_ke": 1.0, "target_kd": 1.0}, JointTargetMode.POSITION),
        ({"target_ke": 1.0, "target_kd": 1.0, "target_vel": 2.0}, JointTargetMode.POSITION_VELOCITY),
        ({"target_kd": 1.0}, JointTargetMode.VELOCITY),
        ({"target_kd": 1.0, "actuator_mode": JointTargetMode.NONE}, JointTargetMode.NONE),
        ({"actuator_mode": 4}, JointTargetMode.EFFORT),
    ],
)
def test_the_drive_follows_from_the_gains_unless_it_is_named(options, mode):
    """A drive with gains is never inert by omission."""
    builder = ModelBuilder()
    dof = add_hinge(builder, **options)
    assert builder.finalize("cpu").joint_target_mode.numpy()[dof] == mode


def test_gains_written_later_count_too():
    """The mode is decided when the model is made; one written explicitly stays."""
    builder = ModelBuilder()
    for _ in range(3):
        add_hinge(builder)
    assert (builder.joint_target_mode == JointTargetMode.AUTO).all()
    builder.joint_target_ke[1:] = 5.0
    builder.joint_target_mode[2] = JointTargetMode.NONE
    assert builder.finalize("cpu").joint_target_mode.numpy().tolist() == [0, 1, 0]


def test_joints_take_the_defaults_of_the_builder():
    """default_joint_cfg fills what the arguments leave out; a JointDofConfig as axis is taken whole."""
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(armature=0.5, friction=0.25, axis="y", limit_ke=7.0)
    add_hinge(builder, friction=0.75, axis=None)
    add_hinge(builder, axis=JointDofConfig(axis="z", damping=2.0), target_ke=3.0)
    assert builder.joint_armature.tolist() == [0.5, 0.0]
    assert builder.joint_friction.tolist() == [0.75, 0.0]
    assert builder.joint_damping.tolist() == [0.0, 2.0]
    np.testing.assert_array_equal(builder.joint_limit_ke, [7.0, np.nan])
    assert builder.joint_target_ke.tolist() == [0.0, 3.0]
    np.testing.assert_array_equal(builder.joint_axis, [[0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("axis", ["z", "Z", 2, (0.0, 0.0, 5.0), np.array([0.0, 0.0, 0.1])])
def test_an_axis_is_a_name_a_number_or_a_vector_of_any_length(axis):
    """All of these are the z axis."""
    builder = ModelBuilder()
    add_hinge(builder, axis=axis)
    assert builder.joint_axis[0].tolist() == [0.0, 0.0, 1.0]


def test_a_free_joint_starts_where_its_body_was_put():
    """joint_q takes over the pose of the link; other joints start at zero."""
    builder = ModelBuilder()
    pose = [1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8]
    builder.add_body(xform=pose, mass=1.0, inertia=np.eye(3), label="box")
    add_hinge(builder)
    assert builder.joint_q.tolist() == [*pose, 0.0]
    assert builder.joint_label[0] == "box_free_joint"
    assert builder.articulation_label[0] == "box_articulation"
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.body_q.numpy()[0], pose, rtol=0.0, atol=2.0**-22)


def test_frames_of_a_free_joint_leave_the_body_where_it_was_put():
    """The coordinates are the pose of the child's frame in the parent's; the velocity is in the world."""
    builder = ModelBuilder()
    pose = [1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8]
    link = builder.add_link(xform=pose, mass=1.0, inertia=np.eye(3), com=(0.1, 0.2, 0.3))
    quarter = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    joint = builder.add_joint_free(
        link, parent_xform=((0.5, 0.0, 0.0), quarter), child_xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0))
    )
    builder.add_articulation([joint])
    builder.joint_qd[:] = 0.1, 0.2, 0.3, 0.4, 0.5, 0.6
    # (x, y) of the parent frame is (y, -x) of the world.
    np.testing.assert_allclose(builder.joint_q[:3], [2.0, -0.5, 3.2], rtol=0.0, atol=1e-15)
    scene = ModelBuilder()
    scene.add_world(builder)
    scene.add_world(builder, xform=((0.0, 0.0, 5.0), quarter))
    model = scene.finalize("cpu")
    np.testing.assert_allclose(model.body_q.numpy()[0], pose, rtol=0.0, atol=2.0**-22)
    np.testing.assert_allclose(model.body_qd.numpy()[0], np.linspace(0.1, 0.6, 6), rtol=1e-6)
    turned = poses.quat_multiply(np.array(quarter), np.array(pose[3:]))
    np.testing.assert_allclose(model.body_q.numpy()[1], [-2.0, 1.0, 8.0, *turned], rtol=0.0, atol=2.0**-20)
    np.testing.assert_allclose(model.body_qd.numpy()[1], [-0.2, 0.1, 0.3, -0.5, 0.4, 0.6], rtol=1e-6)


def test_quaternions_written_with_two_digits_are_normalized():
    """(0, 0, 0.71, 0.71) is a right angle about z, exactly, in every pose that takes one."""
    builder = ModelBuilder()
    coarse = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.71, 0.71))
    add_hinge(builder, parent_xform=coarse, child_xform=coarse)
    builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.joint_q[-4:] = coarse[1]
    model = builder.finalize("cpu")
    exact = np.float32(np.sqrt(0.5))
    for array in (model.joint_X_p, model.joint_X_c):
        assert array.numpy()[0, 3:].tolist() == [0.0, 0.0, exact, exact]
    assert model.joint_q.numpy()[-4:].tolist() == [0.0, 0.0, exact, exact]


def test_articulations_list_their_joints_in_any_order():
    """articulation_start and articulation_joint describe joints that are scattered over articulations."""
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(4)]
    joints = [builder.add_joint_revolute(-1, link) for link in links]
    builder.add_articulation([joints[2], joints[0]])
    builder.add_articulation([joints[3], joints[1]])
    model = builder.finalize("cpu")
    assert model.joint_articulation.numpy().tolist() == [0, 1, 0, 1]
    assert model.articulation_start.numpy().tolist() == [0, 2, 4]
    assert model.articulation_joint.numpy().tolist() == [0, 2, 1, 3]


def test_counts_per_joint_type():
    """Coordinates, degrees of freedom and constraints of each joint type add up."""
    builder = make_arm()
    counts = {
        JointType.FIXED: (0, 0),
        JointType.REVOLUTE: (1, 1),
        JointType.PRISMATIC: (1, 1),
        JointType.BALL: (4, 3),
        JointType.FREE: (7, 6),
    }
    model = builder.finalize("cpu")
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    for joint, kind in enumerate(model.joint_type.numpy()):
        sizes = (q_start[joint + 1] - q_start[joint], qd_start[joint + 1] - qd_start[joint])
        assert sizes == counts[JointType(kind)]
        assert model.joint_dof_dim.numpy()[joint].sum() == sizes[1]
    assert model.joint_constraint_count == 6 * model.joint_count - model.joint_dof_count


def test_a_d6_joint_has_a_coordinate_and_a_dof_per_axis():
    """Linear axes come first; each axis keeps its own configuration, or takes that of the builder."""
    builder = ModelBuilder()
    builder.default_joint_cfg = JointDofConfig(armature=0.5)
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    slide = JointDofConfig(axis=(0.0, 0.0, 2.0), damping=3.0, limit_upper=0.25)
    joints = [
        builder.add_joint_d6(-1, links[0], linear_axes=[slide], angular_axes=["x", "y"]),
        builder.add_joint(JointType.REVOLUTE, links[0], links[1], angular_axes=["y"]),
    ]
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    assert model.joint_type.numpy().tolist() == [JointType.D6, JointType.REVOLUTE]
    assert model.joint_q_start.numpy().tolist() == model.joint_qd_start.numpy().tolist() == [0, 3, 4]
    assert model.joint_dof_dim.numpy().tolist() == [[1, 2], [0, 1]]
    np.testing.assert_array_equal(model.joint_axis.numpy(), [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]])
    assert model.joint_damping.numpy().tolist() == [3.0, 0.0, 0.0, 0.0]
    assert model.joint_armature.numpy().tolist() == [0.0, 0.5, 0.5, 0.5]
    assert model.joint_limit_upper.numpy()[0] == 0.25


def test_worlds_whose_d6_joints_have_other_axes_are_of_other_kinds():
    """Two worlds share a template only if their joints have equally many linear and angular axes."""
    builder = ModelBuilder()
    for axes in ({"linear_axes": ["x"]}, {"angular_axes": ["x"]}, {"linear_axes": ["y"]}):
        world = ModelBuilder()
        joint = world.add_joint_d6(-1, world.add_link(mass=1.0, inertia=np.eye(3)), **axes)
        world.add_articulation([joint])
        builder.add_world(world)
    assert builder.finalize("cpu").world_template.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"joint 'joint_0' \(index 0\): a D6 joint without axes cannot move. .* add_joint_fixed\(\)"),
        ({"angular_axes": ["x", "y", "z", "x"]}, r"angular_axes has 4 entries, but there are only three"),
        ({"linear_axes": [(0.0, 0.0, 0.0)]}, r"joint 'joint_0' \(index 0\), axis 0: axis is .* no direction"),
    ],
)
def test_axes_that_make_no_d6_joint_are_refused(options, message):
    """What cannot be a joint of one to six axes is named with the remedy."""
    builder = ModelBuilder()
    with pytest.raises(ValueError, match=message):
        builder.add_joint_d6(-1, builder.add_link(mass=1.0), **options)


def test_axes_must_fit_the_type_of_the_joint():
    """add_joint() of a hinge takes one angular axis and nothing else."""
    builder = ModelBuilder()
    with pytest.raises(ValueError, match=r"1 linear and 0 angular axes .* type REVOLUTE takes 0 and 1"):
        builder.add_joint(JointType.REVOLUTE, -1, builder.add_link(mass=1.0), linear_axes=["x"])


@pytest.mark.parametrize("axes", [{"linear_axes": ["x", "x"]}, {"angular_axes": ["x", "y", "x"]}])
def test_d6_axes_that_undo_each_other_are_refused(axes):
    """Two slides along one line, or the gimbal lock of x, y, x at zero, leave the mass matrix singular."""
    builder = ModelBuilder()
    joint = builder.add_joint_d6(-1, builder.add_link(mass=1.0, inertia=np.eye(3)), **axes)
    builder.add_articulation([joint])
    with pytest.raises(ValueError, match=r"joint 'joint_0' \(index 0\): the mass matrix is singular"):
        SolverSAP(builder.finalize("cpu"))
    builder.joint_armature[:] = 0.01
    builder.finalize("cpu")


def test_a_d6_joint_without_inertia_about_an_axis_is_refused():
    """A rod along the joint's axis finds nothing to turn."""
    builder = ModelBuilder()
    rod = builder.add_link(mass=1.0, inertia=np.diag([1.0, 0.0, 1.0]))
    joint = builder.add_joint_d6(-1, rod, linear_axes=["x"], angular_axes=["y"])
    builder.add_articulation([joint])
    with pytest.raises(
        ValueError, match=r"joint 'joint_0' .* there must be some about each axis of the joint"
    ):
        SolverSAP(builder.finalize("cpu"))
