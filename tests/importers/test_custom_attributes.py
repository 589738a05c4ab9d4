"""Custom attributes in asset files: what a builder declares is read, with defaults and classes resolved."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import Model, ModelBuilder
from pluriverse.importers import AssetError, AssetWarning, UnsupportedAssetError
from pluriverse.model import poses
from pluriverse.mujoco_attributes.registration import register_custom_attributes

Frequency = Model.AttributeFrequency
Attribute = ModelBuilder.CustomAttribute

HAND = """
<mujoco model="hand">
  <option impratio="7" tolerance="1e-7" cone="elliptic" iterations="30"><flag eulerdamp="disable"/></option>
  <default>
    <geom solref="0.01 0.9"/>
    <default class="soft"><geom solimp="0.8 0.9 0.01 0.5 2"/></default>
  </default>
  <worldbody>
    <body name="a" gravcomp="0.5">
      <freejoint/>
      <geom name="ga" size=".1" priority="2" condim="4"/>
      <site name="sa" pos=".1 0 0"/>
      <body name="b" pos="0 0 1">
        <joint name="j1" axis="1 0 0" stiffness="2" springref="20" solreflimit="0.03 1" range="-30 40"/>
        <joint name="j2" axis="0 1 0" solimpfriction="0.7 0.8 0.01 0.5 2"/>
        <geom name="gb" size=".1" pos="0 0 .5" class="soft"/>
        <site name="sb" pos="0 .2 0"/>
        <body name="c" pos="0 0 1">
          <joint name="j3" axis="0 1 0" range="-1 1" margin="0.01"/>
          <geom name="gc" type="capsule" size=".1 .2" solmix="3"/>
          <site name="sc"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><pair name="p1" geom1="ga" geom2="gc" condim="1" friction="2 2 .1 .1 .1"/></contact>
  <tendon>
    <fixed name="tf" stiffness="3" range="0 1" springlength="0.2">
      <joint joint="j1" coef="0.5"/><joint joint="j3" coef="-1"/>
    </fixed>
    <spatial name="ts" range="0 2">
      <site site="sa"/><geom geom="gb" sidesite="sb"/><site site="sb"/><pulley divisor="2"/>
      <site site="sb"/><site site="sc"/>
    </spatial>
  </tendon>
  <equality>
    <tendon tendon1="tf" tendon2="ts" polycoef="0 2 0 0 0"/>
    <weld body1="c" active="false" solref="0.05 1"/>
  </equality>
  <actuator>
    <position name="servo" joint="j3" kp="20" kv="2"/>
    <motor name="motor" joint="j2" gear="5"/>
    <muscle name="muscle" tendon="ts" lengthrange="0.1 3"/>
    <general name="thrust" site="sa" refsite="sc" gear="0 0 1 0 0 0" dyntype="filter" dynprm="0.1"/>
    <general name="stick" body="b" ctrlrange="0 1"/>
  </actuator>
  <keyframe><key qpos="0 0 0 1 0 0 0 0 0 0" ctrl="0.3 0.4 0.5 0.6 0.7"/></keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def hand():
    """The hand in a builder with the namespace `mujoco`, its report, and MuJoCo's model of it."""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    builder.add_body(mass=1.0, inertia=np.eye(3), label="other")  # so that indices are not those of the file
    builder.add_shape_sphere(0, radius=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all of it is kept
        report = builder.add_mjcf(HAND, strict=True)
    return builder.finalize("cpu"), report, mujoco.MjModel.from_xml_string(HAND)


def test_bodies_joints_and_geoms_have_the_parameters_of_mujoco(hand):
    """What MuJoCo's compiler resolves of an element is what the model has in its namespace."""
    model, report, reference = hand
    names, bodies = model.mujoco, list(report.bodies)
    np.testing.assert_array_equal(names.gravcomp.numpy()[bodies], [0.5, 0.0, 0.0])
    shapes = {label.rpartition("/")[2]: index for index, label in enumerate(model.shape_label)}
    for geom, name in enumerate(("ga", "gb", "gc")):
        shape = shapes[name]
        for attribute, field in (
            ("condim", "condim"),
            ("geom_priority", "priority"),
            ("geom_solimp", "solimp"),
            ("geom_solmix", "solmix"),
            ("solref", "solref"),
            ("contype", "contype"),
        ):
            own = getattr(names, attribute).numpy()[shape]
            np.testing.assert_allclose(own, getattr(reference, f"geom_{field}")[geom], rtol=1e-6)
        assert names.solref_mode.numpy()[shape] == 1
    assert names.solref_mode.numpy()[0] == 2  # of the sphere that is not from the file
    dofs = {name: index for index, name in enumerate(names.joint_dof_label) if name.startswith("j")}
    np.testing.assert_allclose(names.solreflimit.numpy()[dofs["j1"]], [0.03, 1.0], rtol=1e-6)
    np.testing.assert_array_equal(names.solreflimit_mode.numpy()[[dofs["j1"], dofs["j3"], 0]], [1, 2, 0])
    np.testing.assert_allclose(names.limit_margin.numpy()[dofs["j3"]], 0.01, rtol=1e-6)
    expected = reference.dof_solimp[reference.jnt_dofadr[reference.joint("j2").id]]
    np.testing.assert_allclose(names.solimpfriction.numpy()[dofs["j2"]], expected, rtol=1e-6)


def test_options_are_those_that_the_document_gives(hand):
    """Options and flags of the document are set, all others left to MuJoCo and the solver."""
    names = hand[0].mujoco
    assert names.impratio.numpy()[0] == 7.0
    assert names.tolerance.numpy()[0] == np.float32(1e-7)
    assert names.cone.numpy()[0] == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert names.iterations.numpy()[0] == 30
    assert not names.flag_eulerdamp.numpy()[0]
    assert names.flag_contact.numpy()[0]
    assert names.integrator.numpy()[0] == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_tendons_pairs_and_actuators_refer_to_what_was_added(hand):
    """Rows name joints, shapes, bodies and tendons of the model, whatever was in the builder before."""
    model, _, reference = hand
    names = model.mujoco
    joint = {label.rpartition("/")[2]: index for index, label in enumerate(model.joint_label)}
    shape = {label.rpartition("/")[2]: index for index, label in enumerate(model.shape_label)}
    body = {label.rpartition("/")[2]: index for index, label in enumerate(model.body_label)}
    assert names.tendon_label == ["tf", "ts"]
    assert joint["j1_j2"] >= 0  # two hinges through one point are one D6 joint
    np.testing.assert_array_equal(names.tendon_joint.numpy(), [joint["j1_j2"], joint["j3"]])
    dof = {name: index for index, name in enumerate(names.joint_dof_label)}
    np.testing.assert_array_equal(names.tendon_joint_dof.numpy(), [dof["j1"], dof["j3"]])
    np.testing.assert_array_equal(names.tendon_coef.numpy(), [0.5, -1.0])
    np.testing.assert_array_equal(names.tendon_wrap_type.numpy(), [0, 1, 0, 2, 0, 0])
    np.testing.assert_array_equal(
        names.tendon_wrap_shape.numpy(),
        [shape["sa"], shape["gb"], shape["sb"], -1, shape["sb"], shape["sc"]],
    )
    assert names.tendon_wrap_sidesite.numpy()[1] == shape["sb"]
    assert names.tendon_wrap_prm.numpy()[3] == 2.0
    np.testing.assert_allclose(names.tendon_range.numpy(), reference.tendon_range)
    np.testing.assert_array_equal(names.tendon_equality_polycoef.numpy()[0], [0, 2, 0, 0, 0])
    np.testing.assert_array_equal(names.pair_geom1.numpy(), [shape["ga"]])
    np.testing.assert_array_equal(names.pair_geom2.numpy(), [shape["gc"]])
    np.testing.assert_allclose(names.pair_friction.numpy(), reference.pair_friction, rtol=1e-6)
    assert names.actuator_label == ["servo", "motor", "muscle", "thrust", "stick"]
    np.testing.assert_array_equal(
        names.actuator_trnid.numpy(),
        [[dof["j3"], -1], [dof["j2"], -1], [1, -1], [shape["sa"], shape["sc"]], [body["b"], -1]],
    )
    np.testing.assert_allclose(names.actuator_gainprm.numpy(), reference.actuator_gainprm, rtol=1e-6)
    np.testing.assert_array_equal(names.ctrl_source.numpy(), [0, 1, 1, 1, 1])
    np.testing.assert_allclose(model.control().mujoco.ctrl.numpy(), [0.3, 0.4, 0.5, 0.6, 0.7], rtol=1e-6)
    # The servo is a drive of its joint; its target is in the keyframe.
    assert model.joint_target_ke.numpy()[dof["j3"]] == 20.0
    np.testing.assert_allclose(model.joint_target_pos.numpy()[dof["j3"]], 0.3, rtol=1e-6)
    # The motor is no drive, so that the spring of its neighbour axis may stay one.
    assert model.joint_target_ke.numpy()[dof["j2"]] == 0.0


@pytest.mark.parametrize(
    ("actuators", "sources"),
    [
        ('<position joint="j3" kp="20" forcerange="-3 3"/>', [0]),
        ('<velocity joint="j3" kv="20"/><position joint="j1" kp="5"/>', [0, 0]),
        ('<position joint="j3" kp="20" forcerange="-3 2"/>', [1]),  # a drive is as strong both ways
        ('<position joint="j3" kp="20"/><motor joint="j3"/>', [1, 1]),  # a joint has one drive
        ('<position joint="j3" kp="20" forcerange="-3 3"/><motor tendon="ts"/>', [0, 1]),
        ('<position joint="j3" kp="20"/><motor tendon="ts"/>', [0, 1]),
        ('<general joint="j3" gainprm="20" biastype="affine" biasprm="1 -20 0"/>', [1]),
        ('<position joint="j3" kp="20" timeconst="0.1"/>', [1]),
    ],
)
def test_only_servos_that_are_drives_exactly_become_drives(actuators, sources):
    """All other actuators are left to `control.mujoco.ctrl`, so that nothing changes."""
    begin, end = HAND.index("<actuator>") + len("<actuator>"), HAND.index("</actuator>")
    keyframe = HAND.index("<keyframe>"), HAND.index("</keyframe>") + len("</keyframe>")
    text = HAND[:begin] + actuators + HAND[end : keyframe[0]] + HAND[keyframe[1] :]
    builder = ModelBuilder()
    register_custom_attributes(builder)
    builder.add_mjcf(text, strict=True)
    assert list(builder.custom_attributes["mujoco:ctrl_source"].values) == sources
    driven = np.count_nonzero(builder.finalize("cpu").joint_target_ke.numpy() == 20.0)
    assert driven == (1 if sources[0] == 0 and 'position joint="j3"' in actuators else 0)


def test_without_the_namespace_everything_is_reported():
    """A builder that does not declare the attributes of MuJoCo loses them, and says so."""
    with pytest.raises(UnsupportedAssetError) as raised:
        ModelBuilder().add_mjcf(HAND, strict=True)
    for feature in ("contact pair", "actuator", "priority"):
        assert feature in str(raised.value)


def test_fixed_tendons_behind_a_spatial_one_keep_their_name():
    """A report says of each tendon which kind it is, in any order."""
    text = """<mujoco><worldbody><site name="w"/><body>
      <joint name="j"/><geom size="0.1"/><site name="s"/></body></worldbody>
      <tendon><spatial name="ts"><site site="w"/><site site="s"/></spatial>
      <fixed name="tf"><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    with pytest.warns(AssetWarning):
        report = builder.add_mjcf(text, scale=2.0)
    found = {entry.feature: entry.entities for entry in report.entries if "tendon" in entry.feature}
    assert found == {"spatial tendon": ["ts"], "tendon": ["tf"]}


def test_a_scaled_document_leaves_out_what_has_lengths():
    """The option `scale` does not scale tendons, pairs and actuators, which is reported."""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    with pytest.raises(UnsupportedAssetError, match=r"tendon \(tf\): it is left out, as the option scale"):
        builder.add_mjcf(HAND, scale=2.0, strict=True)


OBSERVED = """
<mujoco model="observed">
  <worldbody>
    <camera name="overview" pos="1 2 3" fovy="60" mode="targetbody" target="base"/>
    <body name="base" pos="0 0 1">
      <freejoint/><geom size="0.1"/>
      <body name="mount" pos="0.1 0 0" quat="1 0 0 1">
        <geom size="0.1"/><camera name="eye" pos="0 0 0.2" xyaxes="0 -1 0 0 0 1" resolution="64 48"/>
        <site name="imu"/>
      </body>
      <body name="arm"><joint name="hinge" axis="0 1 0"/><joint name="slide" type="slide" axis="0 0 1"/>
        <geom name="arm" size="0.1"/></body>
      <body name="ball" pos="0 1 0"><joint type="ball" pos="0 0 0.3"/><geom size="0.1" pos="0 0.1 0"/></body>
    </body>
  </worldbody>
  <sensor>
    <accelerometer name="acc" site="imu" noise="0.1"/>
    <jointpos name="angle" joint="hinge" cutoff="3"/>
    <framepos name="where" objtype="body" objname="arm" reftype="camera" refname="eye"/>
    <clock name="clock"/>
  </sensor>
  <actuator><motor joint="hinge"/></actuator>
  <keyframe>
    <key name="home" qpos="1 2 3 0.5 0.5 -0.5 0.5  0.3 0.2  0.6 0 0.8 0"/>
    <key name="fast" time="2" ctrl="0.7" qpos="0 0 0 1 0 0 0  0.1 0  1 0 0 0" qvel="1 2 3 4 5 6  7 8  9 1 2"/>
  </keyframe>
</mujoco>
"""


@pytest.mark.parametrize("collapse", [False, True])
def test_cameras_look_from_where_mujoco_has_them(collapse):
    """The pose of a camera in the world, by its body's, is MuJoCo's; so is its opening."""
    robot, builder = ModelBuilder(), ModelBuilder()
    register_custom_attributes(robot)
    report = robot.add_mjcf(OBSERVED, collapse_fixed_joints=collapse)
    assert report.losses == []
    builder.replicate(robot, 2)
    model = builder.finalize("cpu")
    reference = mujoco.MjModel.from_xml_string(OBSERVED)
    data = mujoco.MjData(reference)
    data.qpos[:] = reference.key_qpos[0]
    mujoco.mj_forward(reference, data)
    names = model.mujoco
    assert names.camera_label == ["overview", "eye"] * 2
    assert names.camera_world.numpy().tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(np.rad2deg(names.camera_fovy.numpy()), [60, 45] * 2, rtol=1e-6)
    np.testing.assert_array_equal(names.camera_resolution.numpy()[1], [64, 48])
    bodies = names.camera_body.numpy()
    assert bodies[0] == -1
    assert names.camera_target.numpy()[0] == 0
    body_q, own = model.body_q.numpy().astype(float), names.camera_xform.numpy().astype(float)
    np.testing.assert_allclose(own[0, :3], reference.cam_pos[0], atol=1e-6)
    pose = poses.compose(body_q[bodies[1]], own[1])
    np.testing.assert_allclose(pose[:3], data.cam_xpos[1], atol=1e-6)
    axes = np.stack([poses.rotate(pose[3:], axis) for axis in np.eye(3)], axis=1)
    np.testing.assert_allclose(axes, data.cam_xmat[1].reshape(3, 3), atol=1e-6)


def test_sensors_name_what_they_are_on():
    """A sensor is kept with its type, its numbers and the entities that it is on, in every world."""
    robot, builder = ModelBuilder(), ModelBuilder()
    register_custom_attributes(robot)
    robot.add_mjcf(OBSERVED)
    builder.replicate(robot, 2)
    model = builder.finalize("cpu")
    names = model.mujoco
    assert names.sensor_label[:4] == ["acc", "angle", "where", "clock"]
    assert names.sensor_type[:4] == ["accelerometer", "jointpos", "framepos", "clock"]
    assert names.sensor_object_kind[:4] == ["shape", "joint_dof", "body", ""]
    objects, references = names.sensor_object.numpy(), names.sensor_reference.numpy()
    for world in (0, 1):
        acc, angle, where, clock = objects[4 * world : 4 * world + 4]
        assert model.shape_label[acc].endswith("imu")
        assert names.joint_dof_label[angle] == "hinge"
        assert model.body_label[where].endswith("arm")
        assert clock == -1
        assert references[4 * world + 2] == 2 * world + 1  # the camera called eye
    np.testing.assert_allclose(names.sensor_noise.numpy()[0], 0.1, rtol=1e-6)
    np.testing.assert_array_equal(names.sensor_cutoff.numpy()[1], 3.0)


def test_keyframes_are_in_the_coordinates_of_the_model():
    """A keyframe in joint_q and joint_qd puts every body where MuJoCo has it, and turns it as there."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    turn = np.array([0.1, -0.2, 0.3, 0.1, 0.2, 0.3, 0.9])
    turn[3:] /= np.linalg.norm(turn[3:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = builder.add_mjcf(OBSERVED, keyframe=None, xform=turn)
    assert [keyframe.name for keyframe in report.keyframes] == ["home", "fast"]
    assert report.keyframes[1].time == 2.0
    np.testing.assert_array_equal(report.keyframes[1].ctrl, [0.7])
    reference = mujoco.MjModel.from_xml_string(OBSERVED)
    for number, keyframe in enumerate(report.keyframes):
        builder.joint_q[list(report.coords)] = keyframe.joint_q
        builder.joint_qd[list(report.dofs)] = keyframe.joint_qd
        model = builder.finalize("cpu")
        data = mujoco.MjData(reference)
        mujoco.mj_resetDataKeyframe(reference, data, number)
        mujoco.mj_forward(reference, data)
        for body in report.bodies:
            name = model.body_label[body].rpartition("/")[2]
            if name not in ("base", "mount", "arm", "ball"):
                continue  # one that only stands between two joints
            own, other = model.body_q.numpy()[body].astype(float), data.body(name)
            expected = poses.compose(turn, np.array([*other.xpos, *np.roll(other.xquat, -1)]))
            np.testing.assert_allclose(own[:3], expected[:3], atol=1e-6)
            velocity = np.zeros(6)
            kind, index = mujoco.mjtObj.mjOBJ_XBODY, reference.body(name).id
            mujoco.mj_objectVelocity(reference, data, kind, index, velocity, 0)
            spin = poses.rotate(turn[3:], velocity[:3])
            np.testing.assert_allclose(model.body_qd.numpy()[body, 3:], spin, atol=1e-5)


USER = """
<mujoco model="user">
  <compiler angle="radian"/>
  <option timestep="0.004" wind_speed="3"/>
  <default><geom colour_id="2"/><default class="c"><geom colour_id="5"/></default></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" colour_id="9"/>
    <body name="b" heat="3.5"><freejoint wear="7"/><geom name="g1" size=".1"/>
      <geom name="g2" size=".1" class="c"/>
      <frame pos="0 0 1"><body name="d" childclass="c">
        <joint name="h" axis="1 0 0" wear="1" torque_rating="2 3"/><joint name="k" axis="0 1 0" wear="2"/>
        <geom name="g3" size=".1"/></body></frame>
    </body>
  </worldbody>
  <equality><weld body1="d" body2="b" active="false" price="4"/></equality>
</mujoco>
"""


def declare_user_attributes(builder: ModelBuilder) -> list:
    """Declare attributes that USER carries, and return what the transformer of one is given."""
    seen = []

    def transform(text, context):
        seen.append((text, context["joint_type"], context["use_degrees"]))
        return text.split()

    for attribute in (
        Attribute("heat", float, Frequency.BODY, default=1.0),
        Attribute("colour", int, Frequency.SHAPE, mjcf_attribute_name="colour_id", namespace="shop"),
        Attribute("wear", float, Frequency.JOINT_DOF),
        Attribute(
            "rating",
            wp.vec2,
            Frequency.JOINT_DOF,
            mjcf_attribute_name="torque_rating",
            mjcf_value_transformer=transform,
        ),
        Attribute("price", float, Frequency.EQUALITY_CONSTRAINT),
        Attribute("wind_speed", float, Frequency.WORLD),
        Attribute("step", float, Frequency.ONCE, mjcf_attribute_name="timestep"),
    ):
        builder.add_custom_attribute(attribute)
    return seen


def test_attributes_of_a_user_are_read_from_mjcf(tmp_path):
    """XML attributes that a builder declares are read, those of default classes and of included files too."""
    (tmp_path / "user.xml").write_text(USER.replace("<default>", '<include file="more.xml"/><default>'))
    (tmp_path / "more.xml").write_text(
        '<mujocoinclude><worldbody><body name="e" heat="8"><geom name="g4" size=".1"/><joint/></body>'
        "</worldbody></mujocoinclude>"
    )
    for source in (USER, tmp_path / "user.xml"):
        builder = ModelBuilder()
        seen = declare_user_attributes(builder)
        builder.add_mjcf(source)
        model = builder.finalize("cpu")
        body = {label.rpartition("/")[2]: index for index, label in enumerate(model.body_label)}
        shape = {label.rpartition("/")[2]: index for index, label in enumerate(model.shape_label)}
        heat, colour = model.heat.numpy(), model.shop.colour.numpy()
        assert (heat[body["b"]], heat[body["d"]]) == (3.5, 1.0)
        assert [colour[shape[name]] for name in ("floor", "g1", "g2", "g3")] == [9, 2, 5, 5]
        joints = dict(zip(model.joint_label, model.joint_qd_start.numpy(), strict=False))
        h_k = next(start for label, start in joints.items() if label.endswith("h_k"))
        free = next(start for label, start in joints.items() if label.endswith("floating_base"))
        np.testing.assert_array_equal(model.wear.numpy()[h_k : h_k + 2], [1.0, 2.0])
        np.testing.assert_array_equal(model.wear.numpy()[free : free + 6], [7.0] * 6)
        np.testing.assert_array_equal(model.rating.numpy()[h_k], [2.0, 3.0])
        assert seen[0] == ("2 3", "hinge", False)
        np.testing.assert_array_equal(model.price.numpy(), [4.0])
        np.testing.assert_array_equal(model.wind_speed.numpy(), [3.0])
        np.testing.assert_array_equal(model.step.numpy(), np.float32([0.004]))
        if "e" in body:
            assert heat[body["e"]] == 8.0


def test_a_wrong_value_in_mjcf_names_the_element():
    """A text that is no value of its attribute is refused with the element and the attribute."""
    builder = ModelBuilder()
    declare_user_attributes(builder)
    with pytest.raises(AssetError, match=r"body 'b': custom attribute 'heat': 'hot' is not made of numbers"):
        builder.add_mjcf(USER.replace('heat="3.5"', 'heat="hot"'))
    assert builder.body_count == 0
    with pytest.warns(AssetWarning, match="unknown attribute 'colder'"):
        builder.add_mjcf(USER.replace('heat="3.5"', 'colder="1"'))


ARM = """
<robot name="arm" maker="us" gravity_scale="0.5">
  <link name="base" heat="2.5"/>
  <link name="tip">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision colour="3"><geometry><sphere radius="0.1"/></geometry></collision>
    <collision><geometry><sphere radius="0.1"/></geometry></collision>
    <visual colour="4"><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <joint name="hinge" type="revolute" wear="7" rating="1 2">
    <parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
</robot>
"""


def test_attributes_of_a_user_are_read_from_urdf():
    """Links, joints, collisions, visuals and the robot itself have the values of their XML attributes."""
    builder, seen = ModelBuilder(), []

    def transform(text, context):
        seen.append(context)
        return [2.0 * float(part) for part in text.split()]

    for attribute in (
        Attribute("heat", float, Frequency.BODY, default=1.0),
        Attribute("colour", int, Frequency.SHAPE, default=-1),
        Attribute("wear", float, Frequency.JOINT_DOF),
        Attribute("rating", wp.vec2, Frequency.JOINT, urdf_value_transformer=transform),
        Attribute("maker", str, Frequency.ARTICULATION),
        Attribute("scale", float, Frequency.WORLD, urdf_attribute_name="gravity_scale"),
    ):
        builder.add_custom_attribute(attribute)
    with pytest.warns(AssetWarning, match="unknown attribute 'heat' of <link>"):
        ModelBuilder().add_urdf(ARM)  # nobody else knows them
    builder.add_urdf(ARM, floating=False, strict=True)
    model = builder.finalize("cpu")
    assert model.heat.numpy().tolist() == [2.5, 1.0]
    assert sorted(model.colour.numpy().tolist()) == [-1, 3, 4]
    assert model.wear.numpy().tolist() == [7.0]
    hinge = next(index for index, label in enumerate(model.joint_label) if label.endswith("hinge"))
    np.testing.assert_array_equal(model.rating.numpy()[hinge], [2.0, 4.0])
    assert seen[0] == {"joint_type": "revolute"}
    assert model.maker == ["us"]
    assert model.scale.numpy().tolist() == [0.5]
    with pytest.raises(AssetError, match=r"link 'base': custom attribute 'heat': 'hot' is not made of"):
        builder.add_urdf(ARM.replace('heat="2.5"', 'heat="hot"'))
