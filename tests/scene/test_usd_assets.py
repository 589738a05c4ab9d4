"""USD stages in a scene."""

import numpy as np
import pytest

from pluriverse.scene import SapSceneLoaderError, SapUnsupportedSceneFeature, load_scene
from pluriverse.types import JointType
from tests.importers.usd_text import at, body, collider, joint, prim, stage

from .scene_files import load_text, write_scene

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")

LAMP = stage(
    prim("PhysicsScene", "scene", "float physics:gravityMagnitude = 3")
    + prim(
        "Xform",
        "lamp",
        body("foot", collider("Cube", "box", "double size = 0.2"))
        + body("shade", at(z=0.4) + collider("Sphere", "ball", "double radius = 0.1"))
        + joint(
            "RevoluteJoint", "hinge", "/lamp/foot", "/lamp/shade", "point3f physics:localPos0 = (0, 0, 0.4)"
        ),
        ("PhysicsArticulationRootAPI",),
    )
    + body("stray", at(x=1.0))
)


def test_stages_beside_the_scene(tmp_path):
    """Options, material overrides and gravity: the stage's, as the loader of other formats has it."""
    (tmp_path / "lamp.usda").write_text(LAMP)
    scene = """
builder: {defaults: {shape: {ke: 5000}}}
assets:
  - id: lamp
    type: USD
    source: lamp.usda
    xform: {p: [0, 0, 0.5]}
    floating: false
    mu: 0.25
    ignore_paths: [/stray]
    joint_ordering: bfs
initial_joint_q: [{joint: hinge, value: 0.3}]
"""
    model = load_text(tmp_path, scene).model
    assert model.body_label == ["/lamp/foot", "/lamp/shade"]
    assert model.joint_type.numpy().tolist() == [JointType.FIXED, JointType.REVOLUTE]
    np.testing.assert_allclose(model.body_q.numpy()[:, 2], [0.5, 0.9], rtol=1e-6)
    np.testing.assert_allclose(model.joint_q.numpy(), [0.3], rtol=1e-6)
    np.testing.assert_allclose(model.gravity.numpy()[0], [0.0, 0.0, -3.0], rtol=1e-6)
    robot = [label.startswith("/lamp") for label in model.shape_label]
    np.testing.assert_allclose(model.shape_material_mu.numpy()[robot], 0.25)
    np.testing.assert_allclose(model.shape_material_ke.numpy()[robot], 5000.0)


def test_what_the_stage_loses_is_an_unsupported_feature(tmp_path):
    (tmp_path / "lamp.usda").write_text(LAMP.replace("RevoluteJoint", "DistanceJoint"))
    scene = write_scene(tmp_path, "assets: [{id: lamp, type: usd, source: lamp.usda, scale: 2}]")
    loaded = load_scene(scene, strict=False)
    features = " ".join(map(str, loaded.unsupported_features))
    assert "asset['lamp'] usd distance joint without limits" in features
    assert "asset['lamp'] usd scale" in features
    with pytest.raises(SapUnsupportedSceneFeature):
        load_scene(scene, strict=True)


def test_errors_of_the_stage_name_the_field_of_the_scene(tmp_path):
    (tmp_path / "lamp.usda").write_text(LAMP.replace("double radius = 0.1", "double radius = -1"))
    with pytest.raises(SapSceneLoaderError, match=r"assets\[0\].*radius is -1\.0"):
        load_text(tmp_path, "assets: [{type: usd, source: lamp.usda}]")
    with pytest.raises(SapSceneLoaderError, match=r"assets\[0\].*no prim '/nothing'"):
        load_text(tmp_path, "assets: [{type: usd, source: lamp.usda, root_path: /nothing}]")
