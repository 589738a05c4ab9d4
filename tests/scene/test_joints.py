"""Joints, kinematic bodies and constraints in scenes, beyond the format's first implementation."""

import numpy as np
import pytest

from pluriverse.scene import SapSceneLoaderError
from pluriverse.types import BodyFlags, EqType, JointTargetMode, JointType

from .scene_files import load_text

BODIES = "ground: false\nbodies:\n  - {id: a, shapes: [{type: box}]}\n  - {id: b, shapes: [{type: box}]}\n"


def run(scene, step_count, **options):
    simulation = scene.simulation(threads=1, **options)
    simulation.step(step_count)
    return simulation


def test_a_d6_joint_has_the_axes_that_it_lists_each_with_its_own_properties(tmp_path):
    """Linear axes first; an axis alone takes the rest from the defaults of the builder."""
    model = load_text(
        tmp_path,
        BODIES
        + """
builder: {defaults: {joint: {armature: 0.25, limit_ke: 77}}}
joints:
  - id: d
    type: d6
    child: a
    linear_axes: [x, {axis: [0, 2, 0], limit_lower: -0.5, limit_upper: 0.5, friction: 3}]
    angular_axes: [{axis: -z, target_ke: 10, target_kd: 1, armature: 0.5}]
  - {id: f, type: fixed, parent: a, child: b, parent_xform: {p: [1, 0, 0]}}
""",
    ).model
    assert model.joint_type.numpy()[0] == JointType.D6
    np.testing.assert_array_equal(model.joint_dof_dim.numpy()[0], [2, 1])
    np.testing.assert_allclose(model.joint_axis.numpy(), [[1, 0, 0], [0, 1, 0], [0, 0, -1]])
    np.testing.assert_allclose(model.joint_armature.numpy(), [0.25, 0.25, 0.5])
    np.testing.assert_allclose(model.joint_limit_lower.numpy(), [-1e10, -0.5, -1e10])
    np.testing.assert_allclose(model.joint_limit_ke.numpy(), [77] * 3)
    np.testing.assert_allclose(model.joint_friction.numpy(), [0, 3, 0])
    assert model.joint_target_mode.numpy().tolist() == [0, 0, JointTargetMode.POSITION]


def test_a_distance_joint_is_a_rope(tmp_path):
    """A ball on a rope of 0.5 m falls 0.5 m from its anchor and no further."""
    scene = load_text(
        tmp_path,
        """
simulation: {dt: 0.005}
ground: false
bodies: [{id: ball, transform: {p: [0, 0, 1]}, shapes: [{type: sphere, radius: 0.1}]}]
joints: [{id: rope, type: distance, child: ball, parent_xform: {p: [0, 0, 1]}, max_distance: 0.5}]
""",
    )
    state = run(scene, 400).state
    np.testing.assert_allclose(state.body_q.numpy()[0, :3], [0, 0, 0.5], atol=2e-3)


def test_a_joint_that_closes_a_loop_becomes_a_constraint_and_has_no_coordinate(tmp_path):
    """A bar between two hinges; its far end stays where the loop holds it, and joint_q has one entry."""
    scene = load_text(
        tmp_path,
        """
simulation: {dt: 0.005}
ground: false
bodies:
  - {id: left, transform: {p: [0, 0, -0.5]}, shapes: [{type: capsule, radius: 0.05, half_height: 0.45}]}
  - {id: right, transform: {p: [1, 0, -0.5]}, shapes: [{type: capsule, radius: 0.05, half_height: 0.45}]}
  - {id: bar, transform: {p: [0.5, 0, -1]}, shapes: [{type: box, hx: 0.5, hy: 0.05, hz: 0.05}]}
joints:
  - {id: h1, type: revolute, child: left, axis: y, child_xform: {p: [0, 0, 0.5]}}
  - {id: h2, type: revolute, child: right, axis: y, parent_xform: {p: [1, 0, 0]},
     child_xform: {p: [0, 0, 0.5]}}
  - {id: h3, type: revolute, parent: left, child: bar, axis: y, parent_xform: {p: [0, 0, -0.5]},
     child_xform: {p: [-0.5, 0, 0]}}
  - {id: loop, type: ball, parent: right, child: bar, closes_loop: true, parent_xform: {p: [0, 0, -0.5]},
     child_xform: {p: [0.5, 0, 0]}}
post_build:
  - {op: set_array, array: joint_qd, range: all, values: [1, 1, -1]}
""",
    )
    model = scene.model
    assert (model.joint_count, model.joint_coord_count) == (3, 3)
    assert model.equality_constraint_type.numpy().tolist() == [EqType.CONNECT]
    simulation = run(scene, 200)
    left, right, bar = simulation.state.body_q.numpy()
    # A parallelogram: the two bars swing alike and the third stays level.
    assert abs(simulation.state.joint_q.numpy()[0]) > 0.02
    np.testing.assert_allclose(right[:3] - left[:3], [1, 0, 0], atol=2e-3)
    np.testing.assert_allclose(bar[3:] * np.sign(bar[6]), [0, 0, 0, 1], atol=2e-3)


def test_a_cylinder_that_closes_a_loop_drives_it(tmp_path):
    """A piston rod hinged to the ground lifts a boom: the length of the cylinder makes the angle."""
    scene = load_text(
        tmp_path,
        """
simulation: {dt: 0.005}
ground: false
bodies:
  - {id: boom, mass: 2, com: [0.5, 0, 0], inertia: [0.02, 0.2, 0.2]}
  - {id: rod, mass: 1, inertia: [0.01, 0.01, 0.01]}
joints:
  - {id: foot, type: revolute, child: boom, axis: y}
  - {id: cylinder, type: d6, parent: rod, child: boom, closes_loop: true, child_xform: {p: [0.5, 0, 0]},
     linear_axes: [{axis: x, target_ke: 20000, target_kd: 1000, target_pos: 0.9}], angular_axes: [y]}
  - {id: pin, type: revolute, child: rod, axis: y, parent_xform: {p: [0, 0, -0.5]}}
initial_joint_q: [{joint: pin, value: -pi / 4}]
""",
    )
    model = scene.model
    assert model.joint_label == ["foot", "pin", "cylinder"]
    length = np.sqrt(0.5)
    np.testing.assert_allclose(model.joint_q.numpy(), [0, -np.pi / 4, length, np.pi / 4], atol=1e-6)
    foot, _, length, _ = run(scene, 400).state.joint_q.numpy()
    assert abs(length - 0.9) < 2e-3  # 20 N of weight on 2e4 N/m
    # The cosine theorem: 0.9^2 = 0.5^2 + 0.5^2 - 2 * 0.5^2 cos(90 degrees + elevation).
    np.testing.assert_allclose(np.sin(-foot), (length**2 - 0.5) / 0.5, atol=1e-3)


def test_a_kinematic_body_moves_as_its_targets_say(tmp_path):
    """At the target velocity, without a gain and whatever it weighs."""
    scene = load_text(
        tmp_path,
        """
simulation: {dt: 0.01}
ground: false
bodies: [{id: cart, is_kinematic: true, shapes: [{type: box}]}]
joints: [{id: rail, type: prismatic, child: cart, axis: x, actuator_mode: 2, target_vel: 0.5}]
post_build: [{op: set_array, array: joint_qd, range: all, from_array: joint_target_vel}]
""",
    )
    assert scene.model.body_flags.numpy().tolist() == [BodyFlags.KINEMATIC]
    np.testing.assert_allclose(run(scene, 100).state.body_q.numpy()[0, :3], [0.5, 0, 0], atol=1e-5)


def test_mass_with_centre_and_inertia(tmp_path):
    """Principal moments or rows; shapes of no density add nothing."""
    model = load_text(
        tmp_path,
        """
ground: false
bodies:
  - {id: a, mass: 2, com: [0.1, 0, 0], inertia: [1, 2, 2.5]}
  - {id: b, mass: 2, inertia: [[1, 0.1, 0], [0.1, 2, 0], [0, 0, 2.5]], shapes: [{cfg: {density: 0}}]}
joints: [{id: f, type: free, child: a}, {id: g, type: free, child: b}]
""",
    ).model
    np.testing.assert_allclose(model.body_mass.numpy(), [2, 2])
    np.testing.assert_allclose(model.body_com.numpy()[0], [0.1, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(model.body_inertia.numpy()[0], np.diag([1, 2, 2.5]))
    np.testing.assert_allclose(model.body_inertia.numpy()[1][0], [1, 0.1, 0], rtol=1e-6)


def test_constraints_hold_bodies_and_couple_joints(tmp_path):
    model = load_text(
        tmp_path,
        BODIES
        + """
  - {id: c, shapes: [{type: box}]}
joints:
  - {id: j1, type: revolute, child: a, axis: y}
  - {id: j2, type: revolute, child: b, axis: y}
  - {id: j3, type: free, child: c}
constraints:
  - {id: point, type: connect, body1: a, body2: c, anchor: [0, 0, 0.5]}
  - {type: weld, body1: c, relpose: {p: [0, 0, 1]}, torquescale: 0.5, enabled: false}
  - {type: hinge, body1: b, body2: c, axis: z, label: pin}
  - {type: joint, joint1: j2, joint2: j1, polycoef: [0.1, -2]}
  - {type: joint, joint1: j1, polycoef: [pi / 2]}
""",
    ).model
    kinds = [EqType.CONNECT, EqType.WELD, EqType.HINGE, EqType.JOINT, EqType.JOINT]
    assert model.equality_constraint_type.numpy().tolist() == kinds
    assert model.equality_constraint_enabled.numpy().tolist() == [True, False, True, True, True]
    assert model.equality_constraint_body2.numpy().tolist()[:3] == [2, -1, 2]
    assert list(model.equality_constraint_label)[0:3:2] == ["point", "pin"]
    np.testing.assert_allclose(model.equality_constraint_polycoef.numpy()[3][:2], [0.1, -2], rtol=1e-6)


def test_a_joint_that_closes_a_loop_may_begin_switched_off(tmp_path):
    scene = load_text(
        tmp_path,
        BODIES
        + """
joints:
  - {id: f, type: free, child: a}
  - {id: g, type: free, child: b}
  - {id: latch, type: fixed, parent: a, child: b, closes_loop: true, enabled: false}
""",
    )
    assert scene.model.equality_constraint_label == ["latch"]
    assert scene.model.equality_constraint_enabled.numpy().tolist() == [False]


WRONG = {
    "joint that is off and all there is": (
        "joints: [{id: f, type: ball, child: a, enabled: false}]",
        r"joints\[0\]: enabled: false is for joints that close loops",
    ),
    "second joint of a body": (
        "joints: [{id: f, type: free, child: a}, {id: g, type: ball, parent: b, child: a}]",
        r"joints\[1\].child: body 'a' has a joint already \('f'\).*closes_loop: true",
    ),
    "loop that listed itself": (
        "joints: [{id: f, type: free, child: a}, {id: g, type: ball, child: a, closes_loop: true}]\n"
        "articulations: [{joints: [f, g]}]",
        r"articulations\[0\].joints\[1\]: joint 'g' closes a loop",
    ),
    "loop with a coordinate to set": (
        "joints: [{id: f, type: free, child: a}, {id: g, type: ball, child: a, closes_loop: true}]\n"
        "initial_joint_q: [{joint: g, value: 1}]",
        r"initial_joint_q\[0\].joint: there is no joint 'g'",
    ),
    "planar": (
        "joints: [{id: f, type: planar, child: a}]",
        r"joints\[0\].type: write a planar joint as type d6",
    ),
    "d6 without axes": ("joints: [{id: f, type: d6, child: a}]", r"joints\[0\]: .*without axes cannot move"),
    "d6 with too many axes": (
        "joints: [{id: f, type: d6, child: a, linear_axes: [x, y, z, x]}]",
        r"joints\[0\].linear_axes: the list has 4 entries, but 3 are allowed",
    ),
    "misspelt property of an axis": (
        "joints: [{id: f, type: d6, child: a, linear_axes: [{axis: x, armatur: 1}]}]",
        r"linear_axes\[0\].armatur: unknown key 'armatur'; did you mean armature",
    ),
    "axis that is none": (
        "joints: [{id: f, type: d6, child: a, angular_axes: [w]}]",
        r"joints\[0\].angular_axes\[0\].*: 'w' is not an axis",
    ),
    "axes of a hinge": (
        "joints: [{id: f, type: revolute, child: a, linear_axes: [x]}]",
        r"joints\[0\]: a revolute joint has no linear_axes; remove it or use a joint of type d6",
    ),
    "distance of a hinge": (
        "joints: [{id: f, type: revolute, child: a, max_distance: 1}]",
        r"a revolute joint has no max_distance.*distance",
    ),
    "rope without a length": (
        "joints: [{id: f, type: distance, child: a, max_distance: -1}, {id: g, type: free, child: b}]",
        r":5: joints\[0\]: this joint allows every distance",
    ),
    "rope of no length": (
        "joints: [{id: f, type: distance, child: a, min_distance: 2}, {id: g, type: free, child: b}]",
        r":5: joints\[0\]: min_distance 2 and max_distance 1 leave no distance",
    ),
    "constraint of an unknown type": (
        "constraints: [{type: weeld}]",
        r"there is no type 'weeld'; did you mean weld",
    ),
    "constraint without a type": ("constraints: [{body1: a}]", r"constraints\[0\]: the required key 'type'"),
    "constraint of an unknown body": (
        "joints: [{id: f, type: free, child: a}]\nconstraints: [{type: connect, body1: c}]",
        r"constraints\[0\].body1: there is no body 'c'",
    ),
    "constraint of a body with itself": (
        "joints: [{id: f, type: free, child: a}]\nconstraints: [{type: weld, body1: a, body2: a}]",
        r"constraints\[0\]: .*body1 and body2 are both",
    ),
    "coupling of a free joint": (
        "joints: [{id: f, type: free, child: a}]\nconstraints: [{type: joint, joint1: f}]",
        r"constraints\[0\]: .*joint1",
    ),
    "inertia of two numbers": ("bodies: [{id: c, inertia: [1, 2]}]", r"inertia: \[1, 2\] is not an inertia"),
    "inertia that is not symmetric": (
        "bodies: [{id: c, mass: 1, inertia: [[1, 1, 0], [0, 1, 0], [0, 0, 1]]}]",
        r"bodies\[0\]: .*not symmetric",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_names_place_value_and_remedy(tmp_path, name):
    text, message = WRONG[name]
    with pytest.raises(SapSceneLoaderError, match=message):
        load_text(tmp_path, text if text.startswith("bodies") else BODIES + text)
