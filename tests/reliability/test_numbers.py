"""Numbers that single precision cannot hold."""

from pathlib import Path

import numpy as np
import pytest

from pluriverse import ModelBuilder
from pluriverse.scene import SapSceneLoaderError, load_scene

EYE = np.eye(3)
PLACE = ((1e39, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("body_mass", {"mass": 1e300, "inertia": EYE}),
        ("body_inertia", {"mass": 1.0, "inertia": 1e39 * EYE}),
        ("body_com", {"mass": 1.0, "inertia": EYE, "com": (0.0, -1e39, 0.0)}),
        ("body_q", {"mass": 1.0, "inertia": EYE, "xform": PLACE}),
    ],
)
def test_a_number_beyond_single_precision_is_refused_and_not_infinite(name: str, arguments: dict):
    """What would become infinite in the model is an error that names the body."""
    builder = ModelBuilder()
    said = "xform" if name == "body_q" else name
    with pytest.raises(ValueError, match=rf"body 'anvil' .*{said} is .*single precision"):  # noqa: PT012
        builder.add_body(**arguments, label="anvil")
        builder.finalize("cpu")


def test_infinite_limits_stay_infinite():
    """Infinity is a value of its own where it means that there is no limit."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=EYE)
    builder.add_articulation([builder.add_joint_revolute(-1, link)])
    builder.joint_limit_lower[0], builder.joint_limit_upper[0] = -np.inf, np.inf
    assert np.isinf(builder.finalize("cpu").joint_limit_upper.numpy()[0])


def test_a_position_in_a_scene_beyond_single_precision_is_refused(tmp_path: Path):
    """A position of 1e39 is a number of YAML, and none of a model."""
    path = tmp_path / "scene.yaml"
    path.write_text(
        "schema_version: 1\nbodies:\n  - {id: far, mass: 1.0, inertia: [1, 1, 1], com: [1e39, 0, 0]}\n"
    )
    with pytest.raises(SapSceneLoaderError, match=r"scene.yaml:3: .*1e\+39 is out of range"):
        load_scene(path)
