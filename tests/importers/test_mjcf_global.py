"""MJCF in global coordinates moves as the same robot in local ones."""

import numpy as np
import pytest

from pluriverse import ModelBuilder
from pluriverse.importers import AssetError, AssetWarning, UnsupportedAssetError

ARM = """<mujoco><compiler coordinate="{coordinate}"/><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="base" {base}><joint name="turn" axis="0 0 1" pos="{turn}"/>
    <geom name="trunk" type="box" size="0.1 0.1 0.2" pos="{trunk}" euler="0 0 30"/>
    <site name="mark" pos="{mark}"/>
    <body name="arm" {arm}><joint name="lift" axis="0 1 0" pos="{lift}"/><joint type="slide" axis="1 0 0"/>
      <geom name="rod" type="capsule" size="0.05" fromto="{rod}"/>
      <body name="tip" {tip}><inertial pos="{inertial}" mass="2" diaginertia="1 2 2.5"/></body>
    </body>
  </body>
</worldbody></mujoco>"""
LOCAL = {
    "coordinate": "local",
    "base": 'pos="1 2 3"',
    "turn": "0.5 0 0",
    "trunk": "0 0 0.1",
    "mark": "0 0.1 0",
    "arm": 'pos="0 0 0.5"',
    "lift": "0 0 -0.1",
    "rod": "0 0 0 0.4 0 0",
    "tip": 'pos="0.4 0 0"',
    "inertial": "0.1 0 0",
}
GLOBAL = {
    "coordinate": "global",
    "base": 'pos="1 2 3"',
    "turn": "1.5 2 3",
    "trunk": "1 2 3.1",
    "mark": "1 2.1 3",
    "arm": 'pos="1 2 3.5"',
    "lift": "1 2 3.4",
    "rod": "1 2 3.5 1.4 2 3.5",
    "tip": 'pos="1.4 2 3.5"',
    "inertial": "1.5 2 3.5",
}


def build(document):
    builder = ModelBuilder()
    report = builder.add_mjcf(document)
    return builder, report


@pytest.mark.filterwarnings("ignore:::pluriverse")
def test_global_coordinates_give_the_robot_of_local_ones():
    expected, _ = build(ARM.format(**LOCAL))
    with pytest.warns(AssetWarning, match="global coordinates"):
        builder, report = build(ARM.format(**GLOBAL))
    assert [entry.feature for entry in report.repairs] == ["global coordinates"]
    for name in (
        "joint_X_p",
        "joint_X_c",
        "body_q",
        "body_com",
        "body_mass",
        "body_inertia",
        "shape_transform",
    ):
        np.testing.assert_allclose(
            np.array(getattr(builder, name)), np.array(getattr(expected, name)), atol=1e-7, err_msg=name
        )
    with pytest.raises(UnsupportedAssetError, match="strict=False"):
        ModelBuilder().add_mjcf(ARM.format(**GLOBAL), strict=True)


def test_bodies_without_a_position_are_where_their_mass_is():
    """Only the frame of the body differs then: centres of mass are at the same places in the world."""
    left_out = {**GLOBAL, "base": "", "arm": "", "tip": ""}
    with pytest.warns(AssetWarning, match="global coordinates"):
        builder, _ = build(ARM.format(**left_out))
    expected, _ = build(ARM.format(**LOCAL))
    for name in ("body_mass", "body_inertia"):
        np.testing.assert_allclose(getattr(builder, name), getattr(expected, name), atol=1e-6)
    heavy = np.array(expected.body_mass) > 0.0
    centers = [
        np.array([np.array(q)[:3] + com for q, com in zip(b.body_q, b.body_com, strict=True)])[heavy]
        for b in (builder, expected)
    ]
    np.testing.assert_allclose(*centers, atol=1e-7)
    np.testing.assert_allclose(builder.joint_axis, expected.joint_axis, atol=1e-7)
    rod = builder.body_label.index(expected.body_label[2])
    np.testing.assert_allclose(np.array(builder.body_q[rod])[:3], (1.2, 2.0, 3.5), atol=1e-7)


@pytest.mark.parametrize(
    "part",
    [
        {"arm": 'pos="1 2 3.5" euler="0 0 90"'},
        {"trunk": ""},
        {"lift": ""},
        {"base": "", "turn": '0 0 0"/><freejoint name="f'},
    ],
    ids=["turned body", "geom without a place", "hinge without a place", "free body without a place"],
)
def test_what_could_only_be_guessed_is_refused(part):
    document = ARM.format(**{**GLOBAL, **part}).replace(' pos=""', "")
    with pytest.raises(AssetError, match=r"global coordinates.*Write positions relative to bodies"):
        ModelBuilder().add_mjcf(document)
