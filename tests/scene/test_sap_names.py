"""The names and arguments of the format's first implementation."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.scene import (
    SapLoadedScene,
    SapSceneLoaderError,
    SapUnsupportedSceneFeature,
    load_sap_scene,
    load_sap_scene_config,
)

from .scene_files import BOX, write_scene

SCENE = BOX.replace("shapes: [{type: box,", "shapes: [{type: box, color: [255, 0, 51],") + (
    "simulation: {dt: 0.01, num_worlds: 3, max_rigid_contact: 8, solver: {max_iterations: 9}}\n"
    "replicate: {spacing: [2, 0, 0]}\n"
)


@pytest.fixture
def path(tmp_path):
    return write_scene(tmp_path, SCENE)


def test_the_result_has_the_documented_fields(path):
    loaded = load_sap_scene(path, device="cpu")
    assert isinstance(loaded, SapLoadedScene)
    assert loaded.collision_model is loaded.sap_model is loaded.model
    assert loaded.collision_state is loaded.sap_state is loaded.state
    assert loaded.sap_control is loaded.control
    assert loaded.body_labels == ["box"] * 3
    assert loaded.shape_labels[-1] == "ground_plane"
    assert loaded.unsupported_features == ()
    assert loaded.source_path == path
    np.testing.assert_allclose(loaded.shape_colors[0], [1.0, 0.0, 0.2], rtol=1e-6)
    assert len(loaded.shape_colors) == 4


def test_the_loop_of_the_documentation_runs(path):
    """Two states that take turns, one control, contacts of a pipeline."""
    loaded = load_sap_scene(path, device="cpu", num_worlds=2)
    solver = pv.SolverSAP(loaded.sap_model)
    pipeline = pv.CollisionPipeline(loaded.sap_model)
    contacts = pipeline.contacts()
    state_0, state_1 = loaded.sap_state, loaded.sap_model.state()
    for _ in range(3):
        state_0.clear_forces()
        pipeline.collide(state_0, contacts)
        solver.step(state_0, state_1, loaded.sap_control, contacts, 0.01)
        state_0, state_1 = state_1, state_0
    # Free fall: v = -g t, and z = 1 - g h**2 (1 + 2 + 3), since a step moves by the velocity at its end.
    np.testing.assert_allclose(state_0.joint_qd.numpy()[2], -9.81 * 0.03, rtol=1e-5)
    np.testing.assert_allclose(state_0.joint_q.numpy()[2], 1.0 - 9.81 * 1e-4 * 6.0, rtol=1e-6)


def test_worlds_and_spacing_may_be_given(path):
    loaded = load_sap_scene(path, device="cpu", num_worlds=2, spacing=(0.0, 4.0, 0.0))
    np.testing.assert_allclose(loaded.state.body_q.numpy()[:, 1], [-2, 2])


def test_the_shared_buffer_of_contacts_becomes_slots_of_each_world(path):
    loaded = load_sap_scene(path, device="cpu", rigid_contact_max=100)
    assert loaded.settings.max_rigid_contact == 33
    with pytest.raises(ValueError, match="3 worlds need a slot each"):
        load_sap_scene(path, device="cpu", rigid_contact_max=2)


def test_gradients_are_not_supported(path):
    with pytest.raises(SapUnsupportedSceneFeature, match="requires_grad") as caught:
        load_sap_scene(path, device="cpu", requires_grad=True)
    assert len(caught.value.features) == 1
    loaded = load_sap_scene(path, device="cpu", requires_grad=True, strict=False)
    assert "requires_grad" in loaded.unsupported_features[0]


def test_the_configuration_is_what_the_file_says_after_a_look_at_its_version(tmp_path, path):
    assert load_sap_scene_config(path)["simulation"]["num_worlds"] == 3
    assert load_sap_scene_config(write_scene(tmp_path, "bodies: 3", "odd.yaml")) == {"bodies": 3}
    with pytest.raises(SapSceneLoaderError, match=r"new\.yaml:1: schema_version: 2"):
        load_sap_scene_config(write_scene(tmp_path, "schema_version: 2", "new.yaml"))


def test_errors_are_value_errors():
    assert issubclass(SapUnsupportedSceneFeature, SapSceneLoaderError)
    assert issubclass(SapSceneLoaderError, ValueError)
