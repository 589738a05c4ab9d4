"""The blocks `variants` and `randomize` of scene files."""

import numpy as np
import pytest
import warp as wp

from pluriverse import SolverMuJoCo, SolverSAP
from pluriverse.scene import SapSceneLoaderError, scene_json_schema
from tests.scene.scene_files import load_text

VARIANTS = """
builder: {gravity: -5.0}
replicate: {num_worlds: 6}
bodies:
  - {id: table, transform: {p: [0, 0, 0.2], q: identity}, shapes: [{type: box, hx: 0.5, hy: 0.5, hz: 0.1}]}
joints:
  - {id: leg, type: fixed, parent: world, child: table, parent_xform: {p: [0, 0, 0.2], q: identity}}
variants:
  reassignable: true
  seed: 4
  entities:
    object:
      assignment: {ball: 2}
      init_state: {pos: [0, 0, 0.8]}
      variants:
        cube:
          bodies:
            - {id: cube, shapes: [{type: box, hx: 0.1, hy: 0.1, hz: 0.1}]}
          joints: [{id: cube_free, type: free, child: cube}]
        ball:
          bodies:
            - {id: ball, shapes: [{type: sphere, radius: 0.1}]}
          joints: [{id: ball_free, type: free, child: ball}]
"""
RANDOMIZE = """
randomize:
  seed: 3
  terms:
    - {property: shape_material_mu, distribution: {uniform: [0.4, 1.2]}, same_for_entities: true}
    - {property: gravity, operation: offset, distribution: {gaussian: {std: 0.1, low: -0.2, high: 0.2}}}
    - pseudo_inertia: {alpha: {uniform: [-0.1, 0.1]}, entities: ["box"]}
    - initial_state: {root_position: {uniform: [[-1, -1, 0], [1, 1, "1/2"]]}}
"""
BOX = """
replicate: {num_worlds: 5}
bodies:
  - {id: box, transform: {p: [0, 0, 1], q: identity}, shapes: [{type: box, hx: 0.5, hy: 0.5, hz: 0.5}]}
joints:
  - {id: box_free, type: free, child: box}
"""


def test_worlds_of_a_scene_hold_variants_beside_its_own_content(tmp_path):
    """Two worlds of cubes and four of balls stand on the table of the scene, and change at reset."""
    scene = load_text(tmp_path, VARIANTS)
    simulation = scene.simulation()
    assert simulation.world_to_variant["object"].numpy().tolist() == [0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(scene.model.gravity.numpy()[:, 2], -5.0)
    assert scene.model.body_label[:2] == ["table", "object/cube"]
    assert sum(label == "ground_plane" for label in scene.model.shape_label) == 1
    simulation.step(400)
    heights = simulation.state.body_q.numpy().reshape(6, 2, 7)[:, 1, 2]
    # On the table, less the depth to which 40 N sink into a contact of the default stiffness of 2500 N/m.
    np.testing.assert_allclose(heights, 0.4, atol=40.0 / 2500.0)
    simulation.reassign()
    assert (simulation.state.body_q.numpy().reshape(6, 2, 7)[:, 1, 2] == np.float32(0.8)).all()


def test_a_scene_says_what_is_drawn(tmp_path):
    """The block gives the same draws as the terms it stands for."""
    scene = load_text(tmp_path, BOX + RANDOMIZE)
    simulation = scene.simulation()
    randomizer = scene.randomizer(simulation)
    randomizer.apply()
    simulation.reset()
    model = scene.model
    mu = model.shape_material_mu.numpy()[:5]
    assert ((mu >= 0.4) & (mu <= 1.2)).all()
    assert len(np.unique(mu)) == 5
    pull = model.gravity.numpy() - np.array([0.0, 0.0, -9.81])
    assert (np.abs(pull) <= 0.2 + 1e-6).all()
    np.testing.assert_allclose(model.body_mass.numpy() / 1000.0, 1.0, atol=np.exp(0.2) - 1.0)
    height = simulation.state.body_q.numpy()[:, 2]
    assert ((height >= 1.0) & (height <= 1.5)).all()
    assert len(np.unique(height)) == 5


def test_both_blocks_are_recorded_with_either_solver(tmp_path):
    """In MuJoCo, and with shared worlds, environments draw what they draw in SAP with worlds of their own."""
    other = VARIANTS.replace("reassignable: true", "reassignable: true\n  prepared_worlds: shared")
    simulations = []
    for text, solver in ((VARIANTS, SolverSAP), (other, SolverMuJoCo)):
        scene = load_text(tmp_path, text + RANDOMIZE.replace('["box"]', '"object/*"'))
        simulation = scene.simulation(solver=solver(scene.model))
        randomizer = scene.randomizer(simulation)
        with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
            simulation.reassign()
            randomizer.apply()
        for _ in range(3):
            wp.capture_launch(capture.graph)
            simulation.step(2)
        simulations.append(simulation)
    held = [each.world_to_variant["object"].numpy() for each in simulations]
    np.testing.assert_array_equal(*held)
    for name in ("body_mass", "gravity", "shape_material_mu"):
        np.testing.assert_array_equal(*(getattr(each.model, name).numpy() for each in simulations))


def test_variants_and_draws_go_together(tmp_path):
    """Masses are drawn around those of the variant that a world holds."""
    scene = load_text(tmp_path, VARIANTS + RANDOMIZE.replace('["box"]', '"object/*"'))
    simulation = scene.simulation()
    randomizer = scene.randomizer(simulation)
    own = simulation.per_world_default_fields["body_mass"].numpy().reshape(6, 2)[:, 1].copy()
    randomizer.apply()
    ratio = scene.model.body_mass.numpy().reshape(6, 2)[:, 1] / own
    assert ((ratio >= np.exp(-0.2)) & (ratio <= np.exp(0.2)) & (ratio != 1.0)).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("assignment: {ball: 2}", "assignment: {bowl: 2}", "variants: entity 'object': .*weight for 'bowl'"),
        ("assignment: {ball: 2}", "assignment: [0, 5]", "variants: .*environment 1 the variant 5"),
        ("pos: [0, 0, 0.8]", "pos: [0, 0]", "init_state.pos: .*not a list of 3 numbers"),
        ("reassignable: true", "reassignble: true", "reassignble"),
        ("replicate: {num_worlds: 6}", "replicate: {num_worlds: 6, spacing: [1, 1, 0]}", "replicate.spacing"),
        ("replicate: {num_worlds: 6}", "worlds: [{scene: x.yaml}]", "'worlds'"),
        ("{type: sphere, radius: 0.1}", "{type: sphere, radius: -1}", "object.variants.ball"),
    ],
)
def test_a_wrong_block_of_variants_is_named(tmp_path, old, new, message):
    assert old in VARIANTS
    with pytest.raises(SapSceneLoaderError, match=message):
        load_text(tmp_path, VARIANTS.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("uniform: [0.4, 1.2]", "uniform: [1.4, 1.2]", r"randomize.terms\[0\].distribution.*low <= high"),
        ("uniform: [0.4, 1.2]", "uniform: [-0.4, 1.2]", r"randomize.terms\[0\].*may lead to -0.4"),
        ("uniform: [0.4, 1.2]", "unifrm: [0.4, 1.2]", "unifrm"),
        ("distribution: {uniform: [0.4, 1.2]}, ", "", "belong together"),
        ("property: gravity", "property: weight", r"randomize.terms\[1\].*no such property"),
        ('["box"]', '["boxes"]', r"randomize.terms\[2\].*no body matches 'boxes'"),
        (
            "property: gravity, operation: offset",
            "rotation: gravity",
            r"randomize.terms\[1\].*no orientations",
        ),
        ("operation: offset", "operation: add", "'absolute', 'scale' or 'offset'"),
        (
            "- pseudo_inertia: {",
            "- initial_state: {}\n      pseudo_inertia: {",
            "give exactly one of property",
        ),
    ],
)
def test_a_wrong_draw_is_named(tmp_path, old, new, message):
    assert old in RANDOMIZE
    with pytest.raises(SapSceneLoaderError, match=message):
        load_text(tmp_path, BOX + RANDOMIZE.replace(old, new))


def test_drawing_for_a_scene_without_the_block_is_an_error(tmp_path):
    scene = load_text(tmp_path, BOX)
    with pytest.raises(ValueError, match="no block 'randomize'"):
        scene.randomizer(scene.simulation())


def test_the_json_schema_has_both_blocks():
    properties = scene_json_schema()["properties"]
    assert {"variants", "randomize"} <= set(properties)
