"""Features that scenes cannot have: errors when strict, a list otherwise."""

import pytest

from pluriverse.scene import SapUnsupportedSceneFeature

from .scene_files import BOX, load_text

UNSUPPORTED = {
    "unknown asset type": ("assets: [{id: r, type: sdf, source: a.sdf}]", "asset['r'] type=sdf"),
    "post-build operation": (
        "post_build: [{op: aproximate_meshes, method: bounding_box}]",
        "post_build op=aproximate_meshes; did you mean approximate_meshes",
    ),
    "array": ("post_build: [{op: set_array, array: body_mass, value: 1}]", "post_build array 'body_mass'"),
    "attribute": ("post_build: [{op: set_attr, name: up_axis, value: 1}]", "post_build set_attr 'up_axis'"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_features_raise_when_strict_and_are_listed_otherwise(tmp_path, name):
    text, feature = UNSUPPORTED[name]
    if "joints:" not in text:
        text = BOX + text
    with pytest.raises(SapUnsupportedSceneFeature) as caught:
        load_text(tmp_path, text)
    assert feature in caught.value.features[0]
    assert "strict=False" in str(caught.value)
    scene = load_text(tmp_path, text, strict=False)
    assert len(scene.unsupported_features) == 1
    assert feature in scene.unsupported_features[0]
    assert scene.model.body_count == 1


def test_unknown_keys_are_left_out_and_listed_when_not_strict(tmp_path):
    scene = load_text(tmp_path, BOX + "colour: red\nsimulation: {dt: 0.01, fps: 60}\n", strict=False)
    assert scene.settings.dt == 0.01
    assert [feature.split(": ", 1)[1] for feature in scene.unsupported_features] == [
        "simulation.fps: unknown key 'fps'; there are dt, num_worlds, max_rigid_contact, solver",
        "colour: unknown key 'colour'; there are schema_version, name, simulation, builder, ground, "
        "replicate, control, worlds, randomize, variants, assets, bodies and 7 more",
    ]
