"""Fragments of scene files as users write them: in a small scene each loads strictly, steps and acts."""

import numpy as np
import pytest
import yaml

from .scene_files import SINGLE_BOX, load_text

# A leg of one hinge, which stands after the box: joint 1, coordinate 7, degree of freedom 6.
LEG = """
bodies:
  - id: link
    shapes: [{type: capsule, radius: 0.1, half_height: 0.2}]
joints:
  - id: hinge
    label: robot/left_leg/hinge
    type: revolute
    parent: world
    child: link
    axis: [0.0, 0.0, 1.0]
    limit_lower: -1.57
    limit_upper: 1.57
articulations:
  - id: hinge_articulation
    joints: [hinge]
"""


def scene_with(fragment: str, *, replace: bool = False) -> str:
    """Return the scene with a fragment: sections are replaced, or lists continued and mappings merged."""
    scene = yaml.safe_load(SINGLE_BOX)
    for part in [fragment] if replace else [LEG, fragment]:
        for key, value in (yaml.safe_load(part) or {}).items():
            if replace or key not in scene:
                scene[key] = value
            elif isinstance(value, list):
                scene[key] += value
            else:
                scene[key] |= value
    return yaml.safe_dump(scene, sort_keys=False)


def loaded(folder, fragment: str, *, replace: bool = False):
    """Return the scene with a fragment, after ten steps without trouble."""
    scene = load_text(folder, scene_with(fragment, replace=replace))
    assert scene.unsupported_features == ()
    with scene.simulation(threads=1) as simulation:
        simulation.step(10)
        assert simulation.report().frozen_worlds == ()
        assert simulation.report().unconverged_step_count == 0
    return scene


def test_a_simulation_block_of_another_preset(tmp_path):
    text = (
        "simulation: {dt: 0.002, solver: {contact_preset_variant: drake, line_search_variant: armijo_decay}}"
    )
    assert loaded(tmp_path, text).settings.solver_options["contact_preset_variant"] == "drake"


def test_values_of_a_shape_win_over_those_of_the_body_and_of_the_builder(tmp_path):
    bodies = """
    bodies:
      - id: box
        transform: {p: [0.0, 0.0, 1.0], q: {axis_angle: {axis: [0.0, 0.0, 1.0], angle: pi * 0.5}}}
        mu: 0.7
        shapes:
          - {type: box, hx: 0.2, hy: 0.2, hz: 0.2, cfg: {density: 500.0, mu: 0.8, gap: 0.004}}
          - {type: sphere, radius: 0.1, cfg: {shape_margin: 0.001, relaxation_time: 0.02}}
    """
    model = loaded(tmp_path, bodies, replace=True).model
    np.testing.assert_allclose(model.shape_material_mu.numpy()[:2], [0.8, 0.7])
    np.testing.assert_allclose(model.shape_gap.numpy()[:2], [0.004, 0.002])
    np.testing.assert_allclose(model.shape_margin.numpy()[:2], [0.0, 0.001])
    np.testing.assert_allclose(model.shape_material_tau.numpy()[:2], [0.01, 0.02])
    np.testing.assert_allclose(model.body_q.numpy()[0, 3:], [0, 0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-7)


@pytest.mark.parametrize(
    "shape",
    [
        "{type: box, hx: 0.1, hy: 0.2, hz: 0.3}",
        "{type: sphere, radius: 0.1}",
        "{type: capsule, radius: 0.1, half_height: 0.2}",
        "{type: cylinder, radius: 0.1, half_height: 0.2}",
        "{type: cone, radius: 0.1, half_height: 0.2}",
        "{type: ellipsoid, a: 0.1, b: 0.2, c: 0.3}",
    ],
)
def test_added_shapes_of_every_kind_weigh_what_they_measure(tmp_path, shape):
    """`add_shape` on a body adds the mass of the shape at the default density."""
    model = loaded(tmp_path, f"post_build: [{{op: add_shape, body: link, {shape[1:]}]").model
    sizes = yaml.safe_load(shape)
    kind = sizes.pop("type")
    radius, half = sizes.get("radius", 0.0), sizes.get("half_height", 0.0)
    volume = {
        "box": 8.0 * np.prod(list(sizes.values())),
        "sphere": 4.0 / 3.0 * np.pi * radius**3,
        "capsule": np.pi * radius**2 * (2.0 * half + 4.0 / 3.0 * radius),
        "cylinder": np.pi * radius**2 * 2.0 * half,
        "cone": np.pi * radius**2 * 2.0 * half / 3.0,
        "ellipsoid": 4.0 / 3.0 * np.pi * np.prod(list(sizes.values())),
    }[kind]
    link = np.pi * 0.01 * (0.4 + 0.4 / 3.0)
    assert model.body_mass.numpy()[1] == pytest.approx(1000.0 * (link + volume), rel=1e-5)


def test_initial_positions_by_joint_by_offset_and_by_index(tmp_path):
    text = """
    initial_joint_q:
      - {joint: hinge, value: pi * 0.25}
      - {joint: box_free, offset: 2, value: 1.25}
      - {index: 0, value: -0.5}
    """
    scene = loaded(tmp_path, text)
    np.testing.assert_allclose(scene.state.joint_q.numpy(), [-0.5, 0, 1.25, 0, 0, 0, 1, np.pi / 4], rtol=1e-6)
    np.testing.assert_allclose(scene.state.body_q.numpy()[0, :3], [-0.5, 0, 1.25])  # kinematics have run


def test_post_build_operations_select_by_range_prefix_and_all(tmp_path):
    text = """
    post_build:
      - {op: set_array, array: joint_q, range: [0, 3], values: [0.0, 0.0, 0.67]}
      - {op: set_joint_targets, range: from:6, mode: position, ke: 500.0, kd: 10.0}
      - {op: set_joint_targets, label_prefix: robot/left_leg, mode: position, ke: 1000.0, kd: 20.0}
      - {op: set_joint_q, joint: hinge, value: 0.3}
      - op: copy_joint_q_to_joint_targets
      - {op: set_joint_armature, range: all, value: 0.1}
    """
    model = loaded(tmp_path, text).model
    np.testing.assert_allclose(model.joint_q.numpy(), [0, 0, 0.67, 0, 0, 0, 1, 0.3])
    np.testing.assert_allclose(model.joint_target_ke.numpy(), [0] * 6 + [1000.0])
    np.testing.assert_allclose(model.joint_target_kd.numpy(), [0] * 6 + [20.0])
    np.testing.assert_allclose(model.joint_target_pos.numpy(), [0] * 6 + [0.3])
    np.testing.assert_allclose(model.joint_armature.numpy(), [0.1] * 7)


def test_edits_are_made_before_worlds_are_repeated_on_a_centred_grid(tmp_path):
    text = """
    simulation: {num_worlds: 4}
    replicate: {spacing: [2.0, 2.0, 0.0]}
    post_build: [{op: set_array, array: shape_material_mu, value: 0.9}]
    """
    model = loaded(tmp_path, text).model
    places = model.body_q.numpy()[::2, :2].tolist()
    assert places == [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    np.testing.assert_allclose(model.shape_material_mu.numpy(), [0.9] * 8 + [0.5])  # the ground comes last
