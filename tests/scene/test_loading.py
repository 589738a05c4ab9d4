"""What a scene file says is what the model holds."""

import dataclasses
import json
import math

import numpy as np
import pytest

from pluriverse.scene import (
    SapLoadedScene,
    load_sap_scene,
    load_sap_scene_config,
    load_scene,
    scene_json_schema,
)
from pluriverse.scene.schema import SolverOptions
from pluriverse.solvers.sap.options import SapOptions
from pluriverse.types import GeoType, JointTargetMode, JointType, ShapeFlags

from .scene_files import BOX, CHAIN, SINGLE_BOX, load_text, write_scene

# Model arrays are float32; what the scene says passes through one rounding.
ROUNDING = 2.0**-23


def test_the_minimal_scene_of_the_format(tmp_path):
    """A mass adds to what the shape weighs, as a point at the origin: 1001 kg with the box's inertia."""
    scene = load_text(tmp_path, SINGLE_BOX)
    model = scene.model
    assert isinstance(scene, SapLoadedScene)
    assert scene.settings.dt == 0.003
    assert scene.settings.max_rigid_contact == 64
    assert scene.settings.solver_options == {
        "contact_preset_variant": "approx32",
        "line_search_variant": "monotone_decay",
    }
    assert scene.sap_model is scene.collision_model is model
    assert scene.sap_state is scene.collision_state is scene.state
    assert scene.sap_control is scene.control
    assert scene.unsupported_features == ()
    assert scene.source_path == tmp_path / "scene.yaml"
    assert (scene.name, scene.body_labels, scene.shape_labels) == (
        "single_box",
        ["box"],
        ["shape_0", "DEFAULT_GROUND"],
    )
    np.testing.assert_allclose(model.body_mass.numpy(), [1001.0], rtol=ROUNDING)
    np.testing.assert_allclose(model.body_inertia.numpy()[0], np.eye(3) * 1000.0 / 6.0, rtol=4 * ROUNDING)
    np.testing.assert_array_equal(scene.state.joint_q.numpy(), [0, 0, 1, 0, 0, 0, 1])
    np.testing.assert_allclose(model.shape_material_ke.numpy(), [1e6, 1e6])
    np.testing.assert_allclose(model.shape_material_mu.numpy(), [0.5, 0.5])
    np.testing.assert_allclose(model.shape_gap.numpy(), [0.002, 0.002], rtol=ROUNDING)
    assert model.shape_type.numpy().tolist() == [GeoType.BOX, GeoType.PLANE]
    assert model.shape_world.numpy().tolist() == [0, -1]


def test_json_and_yaml_say_the_same(tmp_path):
    import yaml

    path = write_scene(tmp_path, json.dumps(yaml.safe_load(SINGLE_BOX)), "scene.json")
    from_json, from_yaml = load_sap_scene(path, device="cpu"), load_text(tmp_path, SINGLE_BOX)
    for name in ("body_mass", "shape_scale", "joint_q", "shape_material_ke"):
        np.testing.assert_array_equal(
            getattr(from_json.model, name).numpy(), getattr(from_yaml.model, name).numpy()
        )
    assert load_sap_scene_config(path)["name"] == "single_box"


def test_poses_follow_the_joints(tmp_path):
    """Initial poses come from forward kinematics, also where only the joints were edited."""
    text = CHAIN + "initial_joint_q:\n  - {joint: shoulder, value: pi / 2}\n  - {joint: slide, value: 0.25}\n"
    scene = load_text(tmp_path, text)
    # A quarter turn about y takes the z of the slide to the x of the world.
    lower = scene.body_labels.index("lower")
    # One rounding of the angle, one of the product.
    np.testing.assert_allclose(scene.state.body_q.numpy()[lower, :3], [0.25, 0, 0], atol=2 * ROUNDING)


def test_rotations_may_be_written_in_four_ways(tmp_path):
    for rotation, expected in {
        "identity": [0, 0, 0, 1],
        "null": [0, 0, 0, 1],
        "[0.7071, 0, 0, 0.7071]": [math.sqrt(0.5), 0, 0, math.sqrt(0.5)],  # written with four digits
        "{axis_angle: {axis: [0, 0, 2], angle: pi * 0.5}}": [0, 0, math.sqrt(0.5), math.sqrt(0.5)],
    }.items():
        scene = load_text(tmp_path, BOX.replace("q: identity", f"q: {rotation}"))
        np.testing.assert_allclose(scene.state.joint_q.numpy()[3:], expected, atol=ROUNDING)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("x", [1, 0, 0]),
        ("Z", [0, 0, 1]),
        ("-y", [0, -1, 0]),
        ("AXIS.Y", [0, 1, 0]),
        ("1", [0, 1, 0]),
        ("'2'", [0, 0, 1]),
        ("[0, 3, 4]", [0, 0.6, 0.8]),
    ],
)
def test_axes_are_unit_vectors(tmp_path, axis, expected):
    scene = load_text(tmp_path, CHAIN.replace("axis: y", f"axis: {axis}"))
    np.testing.assert_allclose(scene.model.joint_axis.numpy()[0], expected, rtol=ROUNDING, atol=0)


def test_materials_of_shapes_override_in_order(tmp_path):
    """Builder default, body, `physics`, `shape`, direct keys, `cfg`: the later one wins, by any alias."""
    text = """
    builder: {defaults: {shape: {mu: 0.1, ke: 100, tau: 0.1, margin: 0.01, shape_gap: 0.02}}}
    bodies:
      - id: box
        shape_mu: 0.2
        physics: {ke: 200, relaxation_time: 0.2}
        shape: {ke: 300}
        shapes:
          - {type: box}
          - {type: box, physics: {mu: 0.3, contact_margin: 0.03}, shape: {shape_margin: 0.04}}
          - {type: box, physics: {mu: 0.3}, mu: 0.4, tau: 0.3, cfg: {shape_mu: 0.5}}
          - {type: box, mu: null, cfg: null}
    joints: [{id: free, type: free, child: box}]
    ground: {cfg: {mu: 0.9}}
    """
    model = load_text(tmp_path, text).model
    close = {"rtol": ROUNDING}
    np.testing.assert_allclose(model.shape_material_mu.numpy(), [0.2, 0.3, 0.5, 0.2, 0.9], **close)
    np.testing.assert_allclose(model.shape_material_ke.numpy(), [300, 300, 300, 300, 100], **close)
    np.testing.assert_allclose(model.shape_material_tau.numpy(), [0.2, 0.2, 0.3, 0.2, 0.1], **close)
    np.testing.assert_allclose(model.shape_margin.numpy(), [0.01, 0.04, 0.01, 0.01, 0.01], **close)
    np.testing.assert_allclose(model.shape_gap.numpy(), [0.02] * 5, **close)


def test_every_shape_with_its_mass(tmp_path):
    """Sizes reach the model, and masses are density times the volumes of the textbook."""
    shapes = {
        "{type: box, hx: 0.1, hy: 0.2, hz: 0.3}": (GeoType.BOX, [0.1, 0.2, 0.3], 8 * 0.1 * 0.2 * 0.3),
        "{type: sphere, radius: 0.2}": (GeoType.SPHERE, [0.2, 0, 0], 4 / 3 * math.pi * 0.2**3),
        "{type: capsule, radius: 0.1, half_height: 0.2}": (
            GeoType.CAPSULE,
            [0.1, 0.2, 0],
            math.pi * 0.1**2 * 0.4 + 4 / 3 * math.pi * 0.1**3,
        ),
        "{type: cylinder, radius: 0.1, half_height: 0.2}": (
            GeoType.CYLINDER,
            [0.1, 0.2, 0],
            math.pi * 0.1**2 * 0.4,
        ),
        "{type: cone, radius: 0.1, half_height: 0.2}": (
            GeoType.CONE,
            [0.1, 0.2, 0],
            math.pi * 0.1**2 * 0.4 / 3,
        ),
        "{type: ellipsoid, a: 0.1, b: 0.2, c: 0.3}": (
            GeoType.ELLIPSOID,
            [0.1, 0.2, 0.3],
            4 / 3 * math.pi * 0.1 * 0.2 * 0.3,
        ),
    }
    bodies = "".join(f"  - {{id: b{i}, shapes: [{shape}]}}\n" for i, shape in enumerate(shapes))
    joints = "".join(f"  - {{id: j{i}, type: free, child: b{i}}}\n" for i in range(len(shapes)))
    model = load_text(tmp_path, f"ground: false\nbodies:\n{bodies}joints:\n{joints}").model
    kinds, sizes, volumes = zip(*shapes.values(), strict=True)
    assert model.shape_type.numpy().tolist() == list(kinds)
    np.testing.assert_allclose(model.shape_scale.numpy(), sizes, rtol=ROUNDING)
    np.testing.assert_allclose(model.body_mass.numpy(), 1000.0 * np.array(volumes), rtol=4 * ROUNDING)


def test_a_mesh_is_read_from_the_folder_of_the_scene(tmp_path, monkeypatch):
    """A cube of edge 2 scaled by (0.1, 0.2, 0.3); the current directory is elsewhere."""
    import trimesh

    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((2.0, 2.0, 2.0)).export(tmp_path / "meshes" / "cube.stl")
    text = BOX.replace(
        "type: box, hx: 0.5, hy: 0.5, hz: 0.5", "type: mesh, path: meshes/cube.stl, scale: [0.1, 0.2, 0.3]"
    )
    path = write_scene(tmp_path, text)
    monkeypatch.chdir(tmp_path.parent)
    model = load_scene(path, device="cpu").model
    assert model.shape_type.numpy()[0] == GeoType.CONVEX_MESH
    np.testing.assert_allclose(model.body_mass.numpy(), [1000.0 * 8 * 0.1 * 0.2 * 0.3], rtol=8 * ROUNDING)


def test_meshes_collide_as_what_they_are(tmp_path):
    """A convex one as its hull, a ring and a ball of many corners as their triangles, a bowl as a sheet."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=2)
    bowl = ball.slice_plane([0, 0, 0], [0, 0, -1])
    for mesh, more, kind in (
        (trimesh.creation.box((1, 1, 1)), "", GeoType.CONVEX_MESH),
        (trimesh.creation.annulus(0.5, 1.0, 0.2), "", GeoType.MESH),
        (ball, "", GeoType.MESH),
        (bowl, ", is_solid: false, cfg: {margin: 0.01}", GeoType.MESH),
        (trimesh.creation.box((1, 1, 1)), ", cfg: {has_shape_collision: false}", GeoType.MESH),
    ):
        mesh.export(tmp_path / "mesh.stl")
        text = BOX.replace("type: box, hx: 0.5, hy: 0.5, hz: 0.5", f"type: mesh, path: mesh.stl{more}")
        model = load_text(tmp_path, "ground: false\n" + text).model
        assert model.shape_type.numpy().tolist() == [kind]
    bowl.export(tmp_path / "mesh.stl")
    text = BOX.replace("type: box, hx: 0.5, hy: 0.5, hz: 0.5", "type: mesh, path: mesh.stl")
    with pytest.raises(ValueError, match=r"bodies\[0\]\.shapes\[0\]: .*is_solid"):
        load_text(tmp_path, text)


def test_axes_and_corners_of_a_mesh_are_reordered(tmp_path):
    """Exchanging two axes mirrors the mesh; exchanging two corners of each triangle mends that."""
    import trimesh

    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "slab.stl")
    text = BOX.replace(
        "type: box, hx: 0.5, hy: 0.5, hz: 0.5",
        "type: mesh, path: slab.stl, axis_order: [1, 0, 2], face_order: [0, 2, 1]",
    )
    model = load_text(tmp_path, text).model
    np.testing.assert_allclose(model.shape_aabb_upper.numpy()[0], [0.2, 0.1, 0.3], rtol=ROUNDING)
    np.testing.assert_allclose(model.body_mass.numpy(), [48.0], rtol=8 * ROUNDING)


def test_sites_and_flags(tmp_path):
    text = BOX.replace(
        "hz: 0.5}]", "hz: 0.5}, {cfg: {is_site: true}}, {cfg: {flags: 1}}, {cfg: {is_visible: false}}]"
    )
    model = load_text(tmp_path, text).model
    flags = model.shape_flags.numpy()
    assert flags[1] & ShapeFlags.SITE
    assert not flags[1] & ShapeFlags.COLLIDE_SHAPES
    assert flags[2] == ShapeFlags.VISIBLE
    assert flags[3] == ShapeFlags.COLLIDE_SHAPES | ShapeFlags.COLLIDE_PARTICLES
    np.testing.assert_allclose(model.body_mass.numpy(), [3000.0], rtol=ROUNDING)  # the site weighs nothing


def test_joint_defaults_and_joint_values(tmp_path):
    text = (
        "builder: {defaults: {joint: {armature: 0.1, target_ke: 50, limit_ke: 7, effort_limit: 9}}}"
        + CHAIN.replace(
            "axis: y", "axis: y, target_ke: 20, target_kd: 2, limit_lower: -pi, limit_upper: .inf, damping: 3"
        )
    )
    model = load_text(tmp_path, text).model
    np.testing.assert_allclose(model.joint_target_ke.numpy(), [20, 50, 50])
    np.testing.assert_allclose(model.joint_target_kd.numpy(), [2, 0, 0])
    np.testing.assert_allclose(model.joint_armature.numpy(), [0.1] * 3, rtol=ROUNDING)
    np.testing.assert_allclose(model.joint_limit_ke.numpy(), [7, 7, 7])
    np.testing.assert_allclose(model.joint_effort_limit.numpy(), [9, 9, 9])
    np.testing.assert_allclose(model.joint_damping.numpy(), [3, 0, 0])
    np.testing.assert_allclose(model.joint_limit_lower.numpy()[0], -np.pi, rtol=ROUNDING)
    assert model.joint_limit_upper.numpy()[0] == np.inf
    # A drive that is given gains acts: the mode follows from them.
    assert model.joint_target_mode.numpy().tolist() == [JointTargetMode.POSITION] * 3


def test_actuator_modes_are_kept(tmp_path):
    for mode in (0, 1, 2, 3, 4):
        text = CHAIN.replace("axis: y", f"axis: y, target_ke: 5, target_kd: 1, actuator_mode: {mode}")
        assert load_text(tmp_path, text).model.joint_target_mode.numpy()[0] == mode


def test_ball_joints_and_parents_by_index(tmp_path):
    text = """
    bodies:
      - {id: a, shapes: [{type: sphere, radius: 0.1}]}
      - {id: b, shapes: [{type: sphere, radius: 0.1}]}
    joints:
      - {id: ball, type: ball, parent: -1, child: a, damping: 0.5}
      - {id: weld, type: fixed, parent: 0, child: b, parent_xform: {p: [0, 0, 1]}}
    """
    model = load_text(tmp_path, text).model
    assert model.joint_type.numpy().tolist() == [JointType.BALL, JointType.FIXED]
    assert model.joint_parent.numpy().tolist() == [-1, 0]
    np.testing.assert_allclose(model.joint_damping.numpy(), [0.5] * 3)


def test_a_free_joint_with_a_frame_leaves_the_body_where_its_transform_says(tmp_path):
    frames = "parent_xform: {p: [0.5, 0, 0]}, child_xform: {p: [0, 0, 0.25]}"
    scene = load_text(tmp_path, SINGLE_BOX.replace("type: free,", f"type: free, {frames},"))
    assert scene.model.body_q.numpy()[0, :3].tolist() == [0.0, 0.0, 1.0]
    assert scene.model.joint_q.numpy()[:3].tolist() == [-0.5, 0.0, 1.25]


def test_joints_that_no_articulation_lists_form_trees(tmp_path):
    """Bodies and joints may be listed tip first; each connected tree becomes one articulation."""
    text = """
    bodies:
      - {id: tip, shapes: [{}]}
      - {id: root, shapes: [{}]}
      - {id: alone, shapes: [{}]}
    joints:
      - {id: second, type: revolute, parent: root, child: tip, axis: x}
      - {id: third, type: free, child: alone}
      - {id: first, type: free, child: root}
    """
    model = load_text(tmp_path, text).model
    assert model.articulation_count == 2
    articulation = dict(zip(model.joint_label, model.joint_articulation.numpy(), strict=True))
    assert articulation["first"] == articulation["second"] != articulation["third"]


def test_ground_is_added_unless_switched_off(tmp_path):
    assert load_text(tmp_path, BOX + "ground: false").model.shape_count == 1
    assert load_text(tmp_path, BOX + "ground: {enabled: false}").model.shape_count == 1
    for text in ("", "ground: true", "ground:", "ground: {}"):
        assert load_text(tmp_path, BOX + text).shape_labels[-1] == "ground_plane"
    model = load_text(tmp_path, BOX + "ground: {height: -1, label: floor}").model
    np.testing.assert_array_equal(model.shape_transform.numpy()[-1, :3], [0, 0, -1])


def test_builder_settings(tmp_path):
    scene = load_text(
        tmp_path, "builder: {gravity: -1.62, default_body_armature: 0.5, rigid_gap: 0.25}" + BOX
    )
    np.testing.assert_allclose(scene.model.gravity.numpy(), [[0, 0, -1.62]], rtol=ROUNDING)
    np.testing.assert_allclose(
        scene.model.body_inertia.numpy()[0, 0, 0], 1000.0 / 6.0 + 0.5, rtol=4 * ROUNDING
    )
    np.testing.assert_allclose(scene.model.shape_gap.numpy(), [0.25, 0.25])
    tilted = load_text(tmp_path, "builder: {gravity: [1, 2, 3]}" + BOX)
    np.testing.assert_array_equal(tilted.model.gravity.numpy(), [[1, 2, 3]])


def test_parameters_of_other_contact_models_are_named_in_a_warning(tmp_path):
    with pytest.warns(UserWarning, match=r"kd, kf are parameters of another contact model"):
        load_text(tmp_path, BOX.replace("hz: 0.5", "hz: 0.5, cfg: {kd: 10, shape_kf: 5}"))


def test_the_json_schema_has_every_section():
    schema = scene_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) >= {
        "simulation",
        "builder",
        "ground",
        "assets",
        "bodies",
        "joints",
        "post_build",
    }
    assert {"Box", "Capsule", "UrdfAsset", "SetArray", "WorldKind"} <= set(schema["$defs"])
    assert "contact_margin" in schema["$defs"]["ShapeConfiguration"]["properties"]  # aliases are no errors
    json.dumps(schema)


def test_solver_options_are_those_of_the_solver(tmp_path):
    """A scene may name every keyword of SolverSAP and no other; wrong values are found when it is loaded."""
    keywords = {field.name for field in dataclasses.fields(SapOptions) if field.init}
    assert set(SolverOptions.model_fields) == keywords
    scene = load_text(tmp_path, BOX + "simulation: {solver: {contact_preset_variant: Drake, rho: 1 / 2}}")
    assert scene.solver().options.rho == 0.5
    assert scene.solver().options.contact_preset_variant == "drake"
    with pytest.raises(ValueError, match=r":8: simulation\.solver: .*'drak'.*drake"):
        load_text(tmp_path, BOX + "simulation: {solver: {contact_preset_variant: drak}}")
