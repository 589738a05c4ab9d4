"""Collapsing of fixed joints: less to simulate, the same motion."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import PluriverseWarning

STEP = 0.005
STEP_COUNT = 40
# float32 rounding of positions of the order of 1 m, a few units for each of the steps.
ROUNDING = 4 * STEP_COUNT * np.finfo(np.float32).eps


def _pose(x: float, y: float, z: float, angle: float = 0.0) -> wp.transform:
    return wp.transform((x, y, z), wp.quat_from_axis_angle(wp.vec3(0.6, 0.0, 0.8), angle))


def _flying_arm() -> pv.ModelBuilder:
    """A free base that spins, an arm on it, and a tool of two parts fixed to the arm, turned and shifted."""
    builder = pv.ModelBuilder()
    base, arm, tool, tip = (
        builder.add_link(
            label=label, mass=mass, inertia=np.diag([0.02, 0.03, 0.04]) * mass, com=wp.vec3(0.0, 0.03, 0.01)
        )
        for label, mass in (("base", 3.0), ("arm", 1.0), ("tool", 0.7), ("tip", 0.2))
    )
    joints = [
        builder.add_joint_free(base),
        builder.add_joint_fixed(base, builder.add_link(label="mast", mass=1.0, inertia=np.eye(3) * 0.02)),
        builder.add_joint_revolute(
            base, arm, parent_xform=_pose(0.1, 0, 0.2, 0.4), axis=(0, 1, 0), label="hinge"
        ),
        builder.add_joint_fixed(
            arm, tool, parent_xform=_pose(0, 0, 0.3, 0.7), child_xform=_pose(0.1, 0, 0, -0.2), label="mount"
        ),
        builder.add_joint_fixed(tool, tip, parent_xform=_pose(0.2, 0.1, 0, 1.1), label="weld"),
    ]
    builder.add_articulation(joints, label="arm")
    builder.joint_qd[:] = [0.3, -0.2, 0.5, 1.0, -2.0, 0.7, 3.0]
    builder.add_shape_sphere(
        tip, xform=_pose(0, 0, 0.1), radius=0.02, label="point", cfg=pv.ShapeConfig(density=0)
    )
    builder.add_sensor_imu(tip, xform=_pose(0.0, 0.05, 0.1, 0.3), label="imu")
    builder.add_camera(tool, xform=_pose(0.0, 0.0, 0.2, 0.5), label="eye")
    return builder


def _run(builder: pv.ModelBuilder) -> tuple[pv.Model, np.ndarray]:
    """Return the model and where a shape is after some time."""
    model = builder.finalize("cpu")
    solver, state, other = pv.SolverSAP(model), model.state(), model.state()
    control, contacts = model.control(), pv.CollisionPipeline(model).contacts()
    pv.eval_fk(model, model.joint_q, model.joint_qd, state)
    for _ in range(STEP_COUNT):
        solver.step(state, other, control, contacts, STEP)
        state, other = other, state
    shape = model.shape_label.index("point")
    pose = wp.transform(*state.body_q.numpy()[model.shape_body.numpy()[shape]])
    return model, np.array(pose * wp.transform(*model.shape_transform.numpy()[shape]))


def test_a_collapsed_robot_moves_as_before():
    whole, collapsed = _flying_arm(), _flying_arm()
    result = collapsed.collapse_fixed_joints()
    assert (collapsed.body_label, collapsed.joint_count) == (["base", "arm"], 2)
    assert result["body_remap"] == {-1: -1, 0: 0, 1: 1}
    assert result["joint_remap"] == {0: 0, 2: 1}
    assert result["body_merged_parent"] == {2: 1, 3: 1, 4: 0}
    model, expected = _run(whole)
    _, found = _run(collapsed)
    assert np.linalg.norm(expected[:3] - np.array(model.body_q.numpy()[3, :3])) > 0.1  # it moved
    np.testing.assert_allclose(found * np.sign(found[6]), expected * np.sign(expected[6]), atol=ROUNDING)
    assert collapsed.body_mass.sum() == pytest.approx(whole.body_mass.sum())


def test_sensors_and_cameras_stay_where_they_are():
    whole, collapsed = _flying_arm(), _flying_arm()
    collapsed.collapse_fixed_joints()
    for name, holder in (("render:camera_xform", "camera_body"), ("sensor:sensor_xform", "sensor_body")):
        frames = []
        for builder in (whole, collapsed):
            model = builder.finalize("cpu")
            state = model.state()
            pv.eval_fk(model, model.joint_q, model.joint_qd, state)
            attribute = builder.custom_attributes[name]
            body = builder.custom_attributes[f"{attribute.namespace}:{holder}"].column.rows[0]
            pose = wp.transform(*state.body_q.numpy()[body]) * wp.transform(*attribute.column.rows[0])
            frames.append(np.array(pose))
        np.testing.assert_allclose(frames[0], frames[1], atol=ROUNDING)


def test_bodies_fixed_to_the_world_become_part_of_it():
    builder = pv.ModelBuilder()
    for place in (1.0, 2.0):
        pole = builder.add_link(label=f"pole{place:.0f}")
        builder.add_shape_box(pole, hx=0.1, hy=0.1, hz=0.1)
        joint = builder.add_joint_fixed(
            -1, pole, parent_xform=wp.transform((place, 0, 0), wp.quat_identity())
        )
        builder.add_articulation([joint], label=f"pole{place:.0f}")
    ball = builder.add_body(label="ball")
    builder.add_shape_sphere(ball, radius=0.1)
    result = builder.collapse_fixed_joints()
    assert builder.body_label == ["ball"]
    assert builder.articulation_label == ["ball_articulation"]
    assert result["articulation_remap"] == {2: 0}
    assert builder.shape_body == [-1, -1, 0]
    np.testing.assert_allclose(builder.shape_transform[:2, 0], [1.0, 2.0])
    assert builder.finalize("cpu").body_count == 1


def test_joints_to_keep_loops_and_measured_forces_stay():
    builder = pv.ModelBuilder()
    links = [builder.add_link(mass=1.0, label=f"link{index}") for index in range(4)]
    joints = [
        builder.add_joint_revolute(-1, links[0], axis=(0, 1, 0), label="root"),
        builder.add_joint_fixed(links[0], links[1], label="kept"),
        builder.add_joint_fixed(links[1], links[2], label="measured"),
        builder.add_joint_fixed(links[2], links[3], label="weld"),
    ]
    builder.add_articulation(joints)
    builder.add_joint_fixed(links[3], links[0], label="loop")
    builder.add_sensor_force_torque(links[2], label="wrist")
    with pytest.warns(PluriverseWarning, match=r"joint 'measured' \(index 2\) is kept, because sensors"):
        builder.collapse_fixed_joints(joints_to_keep=["kept"])
    assert builder.joint_label == ["root", "kept", "measured", "loop"]
    assert builder.body_label == ["link0", "link1", "link2"]
    assert (builder.joint_parent[3], builder.joint_child[3]) == (2, 0)
    with pytest.raises(ValueError, match="no joint has this label"):
        builder.collapse_fixed_joints(joints_to_keep=["absent"])
    with pytest.raises(IndexError, match="there are 4 joints"):
        builder.collapse_fixed_joints(joints_to_keep=[9])


def test_constraints_and_custom_attributes_follow_the_bodies():
    builder = pv.ModelBuilder()
    arm, hand = builder.add_link(mass=1.0, label="arm"), builder.add_link(mass=1.0, label="hand")
    shift = wp.transform((0.0, 0.0, 0.5), wp.quat_identity())
    builder.add_articulation(
        [
            builder.add_joint_revolute(-1, arm, axis=(0, 1, 0)),
            builder.add_joint_fixed(arm, hand, parent_xform=shift, label="weld"),
        ]
    )
    box = builder.add_body(label="box", mass=1.0)
    builder.add_custom_attribute(
        pv.ModelBuilder.CustomAttribute(
            "carrier", wp.int32, pv.Model.AttributeFrequency.BODY, references="body", default=-1
        )
    )
    builder.custom_attributes["carrier"].values = {box: hand}
    builder.add_equality_constraint_connect(hand, box, anchor=(0.1, 0.0, 0.0), label="held")
    builder.add_equality_constraint_weld(arm, hand, label="redundant")
    builder.collapse_fixed_joints()
    assert builder.equality_constraint_label == ["held"]
    assert (builder.equality_constraint_body1[0], builder.equality_constraint_body2[0]) == (0, 1)
    np.testing.assert_allclose(builder.equality_constraint_anchor[0], (0.1, 0.0, 0.5))
    assert builder.custom_attributes["carrier"].values == {1: 0}
