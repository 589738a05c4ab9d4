"""Equality constraints of MJCF and mimic joints of URDF against MuJoCo's errors and closed forms."""

import warnings

import numpy as np
import pytest

from pluriverse import JointType, ModelBuilder, SolverSAP, eval_fk
from pluriverse.importers import AssetError, AssetWarning, UnsupportedAssetError

mujoco = pytest.importorskip("mujoco")

LINKAGE = """
<mujoco><compiler angle="radian"/>
<worldbody>
  <site name="post" pos="0.3 0.5 0.7" euler="0.3 -0.2 0.5"/>
  <body name="crank" pos="0.1 0 0.4" euler="0 0.4 0">
    <joint name="crank" axis="0 1 0.2" ref="0.2"/><geom size="0.1"/>
    <body name="rod" pos="0.3 0 0" euler="0.1 0 0.3">
      <joint name="rod" axis="0 0 1"/><geom size="0.1"/><site name="tip" pos="0.2 0.1 0" euler="0 1 0"/>
      <body name="cap" pos="0.1 0 0"><geom size="0.05"/></body>
    </body>
  </body>
  <body name="slider" pos="-0.2 0.3 0.1">
    <joint name="slider" type="slide" axis="1 0.5 0" ref="0.3"/><geom size="0.1"/>
    <body name="rocker" pos="0 0.2 0">
      <joint name="turn" axis="1 0 0"/><joint name="rocker" axis="0 1 0" pos="0 0 0.1"/><geom size="0.1"/>
    </body>
  </body>
</worldbody>
<equality>
  <connect name="ball" body1="cap" body2="rocker" anchor="0.1 0.2 0.05"/>
  <connect name="pin" body1="slider" anchor="0.1 0 0"/>
  <connect name="sites" site1="tip" site2="post"/>
  <weld name="weld" body1="rocker" body2="cap" anchor="0 0.1 0.2"/>
  <weld name="given" body1="crank" body2="rocker" relpose="0.1 0.2 0.3 0.8 0.6 0 0" torquescale="0.5"/>
  <weld name="frames" site1="post" site2="tip"/>
  <joint name="gear" joint1="rocker" joint2="crank" polycoef="0.1 2 0.3 -0.4 0.05"/>
  <joint name="rack" joint1="slider" joint2="rod" polycoef="0 0.3"/>
  <joint name="held" joint1="rod" polycoef="0.25"/>
  <joint name="off" joint1="turn" polycoef="0.25" active="false"/>
</equality>
</mujoco>
"""
ROWS = (3, 3, 3, 6, 6, 6, 1, 1, 1)
"""Rows of each active constraint in MuJoCo: position first, then rotation."""


def errors_of(builder: ModelBuilder, q: np.ndarray) -> np.ndarray:
    """Error of each constraint at the coordinates `q`: rotation, then position; shape [constraint, 6]."""
    model = builder.finalize("cpu")
    state = model.state()
    state.joint_q.assign(q.astype(np.float32))
    eval_fk(model, state.joint_q, state.joint_qd, state)
    solver = SolverSAP(model, contact_preset_variant="drake", max_iterations=0)
    solver.step(state, model.state(), None, None, 0.01)
    return solver.workspace.equality.numpy()["error"]


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize("collapse", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_errors_of_all_constraints_are_those_of_mujoco(scale, collapse):
    """At random coordinates, whatever they are held to: bodies, sites, relative poses, polynomials."""
    builder = ModelBuilder()
    xform = ((0.5, -1.0, 0.2), (0.0, 0.0, np.sin(0.6), np.cos(0.6)))
    builder.add_mjcf(LINKAGE, scale=scale, collapse_fixed_joints=collapse, xform=xform)
    assert builder.equality_constraint_count == 10
    assert builder.equality_constraint_enabled.tolist() == [True] * 9 + [False]
    assert builder.equality_constraint_torquescale[4] == 0.5
    model = mujoco.MjModel.from_xml_string(LINKAGE)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(5)
    lengths = np.array([1.0, 1.0, scale, 1.0, 1.0])  # crank, rod, slider, turn, rocker
    for _ in range(3):
        data.qpos[:] = rng.normal(size=5)
        mujoco.mj_forward(model, data)
        ours = errors_of(builder, lengths * data.qpos)
        expected = np.split(data.efc_pos[: sum(ROWS)], np.cumsum(ROWS)[:-1])
        for index, theirs in enumerate(expected):
            if ROWS[index] == 1:
                length = scale if index == 7 else 1.0
                assert ours[index][0] == pytest.approx(length * theirs[0], abs=1e-5)
            else:
                distance = np.linalg.norm(theirs[:3])
                assert np.linalg.norm(ours[index][3:]) == pytest.approx(scale * distance, abs=1e-5)
            if ROWS[index] == 6:
                # MuJoCo has the vector part of a quaternion of the error, times torquescale.
                turn = np.linalg.norm(theirs[3:]) / model.eq_data[index][10]
                half = 0.5 * np.linalg.norm(ours[index][:3])
                assert abs(np.sin(half)) == pytest.approx(turn, abs=1e-5)


WRIST = """
<mujoco><compiler angle="radian"/>
<worldbody>
  <body name="hand" pos="0.2 0 1">
    <joint name="reach" type="slide" axis="1 0 0.1" ref="0.1"/>
    <joint name="roll" axis="1 0 0" pos="0 0 0.1"/><joint name="pitch" axis="0 1 0.2" pos="0 0 0.1"/>
    <geom size="0.1"/>
  </body>
  <body name="knob" pos="0 1 0"><joint name="knob" axis="0 0 1"/><geom size="0.1"/></body>
</worldbody>
<equality>
  <joint name="screw" joint1="reach" joint2="pitch" polycoef="0.02 0.1"/>
  <joint name="gear" joint1="roll" joint2="knob" polycoef="0.1 2 0.3"/>
  <joint name="back" joint1="knob" joint2="reach" polycoef="0 -1"/>
  <joint name="held" joint1="pitch" polycoef="0.25"/>
</equality>
</mujoco>
"""


def test_coupled_joints_of_one_body_are_axes_of_one_joint():
    """Joints in series become one D6 joint, and a constraint that names one of them names its axis."""
    builder = ModelBuilder()
    builder.add_mjcf(WRIST)
    assert sorted(builder.joint_type) == [JointType.REVOLUTE, JointType.D6]
    assert builder.equality_constraint_joint1_axis.tolist() == [0, 1, 0, 2]
    assert builder.equality_constraint_joint2_axis.tolist() == [2, 0, 0, 0]
    model = mujoco.MjModel.from_xml_string(WRIST)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(6)
    for _ in range(3):
        data.qpos[:] = rng.normal(size=4)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(errors_of(builder, data.qpos)[:, 0], data.efc_pos[:4], atol=1e-5)


def test_joints_of_one_body_with_anchors_apart_stay_joints_of_one_axis():
    builder = ModelBuilder()
    builder.add_mjcf(LINKAGE)
    labels = [label.rpartition("/")[2] for label in builder.joint_label]
    assert {"turn", "rocker"} <= set(labels)
    follower = builder.equality_constraint_joint1[6]
    assert builder.joint_label[follower].endswith("/rocker")


@pytest.mark.parametrize(
    ("equality", "feature"),
    [
        ('<tendon name="e" tendon1="t"/>', "equality"),
        ('<connect body1="c" body2="d" anchor="0 0 0"/>', None),
    ],
)
def test_constraint_without_counterpart_is_reported(equality, feature):
    text = f"""<mujoco><worldbody><body name="c"><joint name="j"/><geom size="0.1"/>
      <body name="d"><geom size="0.1"/></body></body></worldbody>
      <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
      <equality>{equality}</equality></mujoco>"""
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssetWarning)
        report = builder.add_mjcf(text)
    assert builder.equality_constraint_count == 0
    builder.finalize("cpu")
    if feature is None:
        assert any("cannot move against each other" in entry.feature for entry in report.entries)
    else:
        with pytest.raises(UnsupportedAssetError, match=feature):
            ModelBuilder().add_mjcf(text, strict=True)


def test_constraint_that_is_not_a_number_is_refused():
    text = LINKAGE.replace('polycoef="0 0.3"', 'polycoef="0 nan"')
    with pytest.raises((AssetError, ValueError), match=r"finite|nan"):
        ModelBuilder().add_mjcf(text)


GRIPPER = """
<robot name="gripper"><link name="palm"/>
<link name="left"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="right"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>
  <limit lower="-9" upper="9" effort="9" velocity="9"/></joint>
<joint name="turn" type="{kind}"><parent link="palm"/><child link="right"/><axis xyz="0 0 1"/>
  <limit lower="-9" upper="9" effort="9" velocity="9"/><mimic joint="{leader}" {factors}/></joint>
</robot>"""


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_urdf_mimic_joint_follows(scale):
    """The follower is at multiplier * q + offset, in the units of the file."""
    text = GRIPPER.format(kind="revolute", leader="slide", factors='multiplier="-2" offset="0.3"')
    builder = ModelBuilder()
    report = builder.add_urdf(text, scale=scale)
    assert not report.losses
    lead, follow = (
        next(index for index, label in enumerate(builder.joint_label) if label.endswith(name))
        for name in ("slide", "turn")
    )
    assert (builder.equality_constraint_joint1[0], builder.equality_constraint_joint2[0]) == (follow, lead)
    q = np.zeros(2)
    q[builder.joint_q_start[lead]] = scale * 0.4
    q[builder.joint_q_start[follow]] = -2.0 * 0.4 + 0.3 + 0.01
    assert errors_of(builder, q)[0][0] == pytest.approx(0.01, abs=1e-6)


@pytest.mark.parametrize(("kind", "leader"), [("revolute", "turn"), ("revolute", "missing")])
def test_mimic_joint_that_cannot_follow_is_reported(kind, leader):
    text = GRIPPER.format(kind=kind, leader=leader, factors="")
    with pytest.warns(AssetWarning, match="it moves on its own"):
        report = ModelBuilder().add_urdf(text)
    assert [entry.feature for entry in report.losses] == ["<mimic>"]
