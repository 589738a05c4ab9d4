"""Custom attributes on USD stages: what a builder declares is read from the prims that it becomes of."""

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import Model, ModelBuilder, Simulation
from pluriverse.importers import AssetError, AssetWarning
from pluriverse.mujoco_attributes.registration import register_custom_attributes
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.importers.usd_text import at, body, collider, joint, prim, stage

pytest.importorskip("pxr", reason="reading USD needs the extra 'usd'")
# What a builder does not declare is reported, which is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")

Frequency = Model.AttributeFrequency
Attribute = ModelBuilder.CustomAttribute

ROBOT = prim(
    "PhysicsScene",
    "scene",
    """float newton:wind = 3.5
uniform token mjc:option:integrator = "rk4"
uniform double mjc:option:impratio = 4
uniform bool mjc:flag:eulerdamp = false""",
) + prim(
    "Xform",
    "robot",
    body(
        "base",
        "float newton:lab:heat = 2.5\nuniform double mjc:gravcomp = 0.75\n"
        + collider(
            "Sphere",
            "ball",
            "double radius = 0.1\nint newton:lab:colour = 7\nint mjc:condim = 4\n"
            "double[] mjc:solref = [0.01, 0.9]\nquatf newton:lab:tilt = (0, 1, 0, 0)",
        ),
    )
    + body("arm")
    + joint(
        "RevoluteJoint",
        "elbow",
        "/robot/base",
        "/robot/arm",
        """uniform token physics:axis = "Y"
float newton:lab:wear = 4
double mjc:springref = 90
double mjc:stiffness = 2
double[] mjc:solreflimit = [0.03, 1]
float newton:count = 3""",
    ),
    apis=("PhysicsArticulationRootAPI",),
    meta="",
).replace("{\n", '{\nstring newton:lab:maker = "us"\n', 1)


def declare(builder: ModelBuilder) -> None:
    """Declare attributes that ROBOT has."""
    for name, dtype, frequency, options in (
        ("heat", float, Frequency.BODY, {"default": 1.0}),
        ("colour", int, Frequency.SHAPE, {}),
        ("tilt", wp.quat, Frequency.SHAPE, {}),
        ("wear", float, Frequency.JOINT_DOF, {}),
        (
            "twice",
            float,
            Frequency.JOINT,
            {"usd_attribute_name": "newton:count", "usd_value_transformer": lambda v, context: 2 * v},
        ),
        (
            "depth",
            int,
            Frequency.BODY,
            {
                "usd_attribute_name": "*",
                "usd_value_transformer": lambda v, context: str(context["prim"].GetPath()).count("/"),
            },
        ),
        ("maker", str, Frequency.ARTICULATION, {}),
        ("wind", float, Frequency.WORLD, {"usd_attribute_name": "newton:wind"}),
    ):
        builder.add_custom_attribute(Attribute(name, dtype, frequency, namespace="lab", **options))


def test_attributes_of_a_user_are_read_from_prims():
    """Bodies, joints, shapes, articulations and worlds have the values of their prims, converted."""
    builder = ModelBuilder()
    declare(builder)
    builder.add_usd(stage(ROBOT))
    lab = builder.finalize("cpu").lab
    place = {label: index for index, label in enumerate(builder.body_label)}
    heat, depth = lab.heat.numpy(), lab.depth.numpy()
    assert (heat[place["/robot/base"]], heat[place["/robot/arm"]]) == (2.5, 1.0)
    assert depth.tolist() == [2, 2]
    assert lab.colour.numpy().tolist() == [7]
    np.testing.assert_array_equal(lab.tilt.numpy(), [[1, 0, 0, 0]])  # the scalar part comes last
    elbow = builder.joint_label.index("/robot/elbow")
    assert lab.wear.numpy()[builder.joint_qd_start[elbow]] == 4.0
    assert lab.twice.numpy()[elbow] == 6.0
    assert lab.maker == ["us"]
    assert lab.wind.numpy().tolist() == [3.5]


def test_the_namespace_of_mujoco_is_read_from_mjc_attributes():
    """Options, bodies, joints and shapes have what `mjc:` says, in SI units."""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    report = builder.add_usd(stage(ROBOT))
    unread = [entry.feature for entry in report.losses if entry.feature.startswith("mjc:")]
    assert unread == []
    names = builder.finalize("cpu").mujoco
    assert names.integrator.numpy()[0] == mujoco.mjtIntegrator.mjINT_RK4
    assert names.impratio.numpy()[0] == 4.0
    assert not names.flag_eulerdamp.numpy()[0]
    base = builder.body_label.index("/robot/base")
    assert names.gravcomp.numpy()[base] == 0.75
    assert names.condim.numpy().tolist() == [4]
    np.testing.assert_allclose(names.solref.numpy(), [[0.01, 0.9]], rtol=1e-6)
    assert names.solref_mode.numpy().tolist() == [1]
    dof = int(builder.joint_qd_start[builder.joint_label.index("/robot/elbow")])
    np.testing.assert_allclose(names.dof_springref.numpy()[dof], np.pi / 2, rtol=1e-6)
    assert names.dof_passive_stiffness.numpy()[dof] == 2.0
    assert names.solreflimit_mode.numpy()[dof] == 1
    assert names.joint_dof_label[dof] == "elbow"


def test_rows_of_custom_frequencies_come_from_prims():
    """A filter chooses prims, an expander makes rows that name what the stage became."""
    ropes = "".join(
        prim("Scope", name, f"float newton:lab:tension = {tension}\nrel lab:ends = [</robot/{end}>]")
        for name, tension, end in (("rope_a", 5, "arm"), ("rope_b", 6, "base"))
    )
    for expands in (False, True):
        builder = ModelBuilder()

        def expand(rope, context):
            targets = [str(target) for target in rope.GetRelationship("lab:ends").GetTargets()]
            return [
                {"lab:tension": 1.0, "lab:end": context["path_body_map"][target]} for target in targets
            ] * 2

        builder.add_custom_frequency(
            ModelBuilder.CustomFrequency(
                "rope",
                namespace="lab",
                usd_prim_filter=lambda prim, context: prim.GetName().startswith("rope"),
                usd_entry_expander=expand if expands else None,
            )
        )
        for name, dtype, references in (("tension", float, None), ("end", int, "body")):
            builder.add_custom_attribute(
                Attribute(name, dtype, "lab:rope", namespace="lab", references=references, default=-1)
            )
        builder.add_body(mass=1.0, inertia=np.eye(3))
        builder.add_usd(stage(ROBOT + ropes))
        lab = builder.finalize("cpu").lab
        if expands:
            ends = [builder.body_label[body] for body in lab.end.numpy()]
            assert ends == ["/robot/arm"] * 2 + ["/robot/base"] * 2
        else:
            assert lab.tension.numpy().tolist() == [5.0, 6.0]


def test_a_wrong_value_names_the_prim():
    """A value of another type is refused with the prim and the attribute."""
    builder = ModelBuilder()
    builder.add_custom_attribute(Attribute("heat", wp.vec3, Frequency.BODY, namespace="lab"))
    with pytest.raises(AssetError, match=r"prim '/robot/base': custom attribute 'lab:heat': value is 2\.5"):
        builder.add_usd(stage(ROBOT))
    assert builder.body_count == 0


ACTUATED = """double[] mjc:gear = [2, 0, 0, 0, 0, 0]
uniform token mjc:dynType = "filter"
double[] mjc:dynPrm = [0.1]
double[] mjc:gainPrm = [5]
double mjc:ctrlRange:min = -1
double mjc:ctrlRange:max = 2
uniform token mjc:ctrlLimited = "true"
"""


def test_actuators_of_the_mjc_schema_act_on_joints_bodies_and_sites():
    """An MjcActuator is a row of the namespace, in every copy of the stage, and turns its joint."""
    site = prim("Sphere", "mark", "double radius = 0.01", ("MjcSiteAPI",))
    robot = ROBOT.replace('def Sphere "ball"', site + 'def Sphere "ball"', 1)
    actuators = "".join(
        prim("MjcActuator", name, f"rel mjc:target = <{target}>\n{text}")
        for name, target, text in (
            ("turn", "/robot/elbow", ACTUATED),
            ("push", "/robot/base/mark", "double[] mjc:gear = [0, 0, 1]"),
            ("stick", "/robot/arm", ""),
        )
    )
    source, builder = ModelBuilder(), ModelBuilder()
    register_custom_attributes(source)
    report = source.add_usd(stage(robot + actuators))
    assert not any("MjcActuator" in entry.feature for entry in report.entries)
    builder.replicate(source, 2)
    model = builder.finalize("cpu")
    names = model.mujoco
    assert names.actuator_label == ["turn", "push", "stick"] * 2
    np.testing.assert_array_equal(names.actuator_trntype.numpy()[:3], [0, 3, 4])
    dof = int(source.joint_qd_start[source.joint_label.index("/robot/elbow")])
    shape = source.shape_label.index("/robot/base/mark")
    arm = source.body_label.index("/robot/arm")
    np.testing.assert_array_equal(names.actuator_trnid.numpy()[:3, 0], [dof, shape, arm])
    np.testing.assert_array_equal(
        names.actuator_trnid.numpy()[3:, 0],
        [dof + source.joint_dof_count, shape + source.shape_count, arm + source.body_count],
    )
    assert names.actuator_articulation.numpy().tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(names.actuator_dynprm.numpy()[0, 0], 0.1, rtol=1e-6)
    np.testing.assert_array_equal(names.actuator_gainprm.numpy()[0], [5.0] + [0.0] * 9)
    np.testing.assert_array_equal(names.actuator_gear.numpy()[1], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(names.actuator_ctrlrange.numpy()[0], [-1.0, 2.0])
    group = convert_model(model, MujocoOptions())[0]
    assert group.model.nu == 3
    assert group.model.actuator_ctrllimited[0]
    with pytest.warns(AssetWarning, match=r"'/turn': mjc:target is \['/robot/nothing'\], which is no joint"):
        source.add_usd(stage(robot + actuators.replace("</robot/elbow>", "</robot/nothing>")))


def tendon_stage() -> str:
    """Return a base with two arms on hinges, that a tendon goes around and two others couple."""
    sphere = "double radius = {}\n"
    base = body(
        "base",
        prim("Sphere", "anchor", sphere.format(0.01) + at(0.1, 0.0, -0.1), ("MjcSiteAPI",))
        + prim("Sphere", "side", sphere.format(0.01) + at(0.3, 0.0, 0.0), ("MjcSiteAPI",))
        + prim("Sphere", "wrap", sphere.format(0.05) + at(0.2, 0.0, 0.0)),
    )
    arms = "".join(
        body(
            f"arm_{name}",
            at(x) + prim("Sphere", "tip", sphere.format(0.01) + at(0.1, 0.0, 0.3), ("MjcSiteAPI",)),
        )
        for name, x in (("a", 0.2), ("b", 0.5))
    )
    joints = joint("FixedJoint", "mount", "", "/robot/base") + "".join(
        joint(
            "RevoluteJoint",
            f"hinge_{name}",
            "/robot/base",
            f"/robot/arm_{name}",
            f'uniform token physics:axis = "Y"\npoint3f physics:localPos0 = ({x}, 0, 0)',
        )
        for name, x in (("a", 0.2), ("b", 0.5))
    )
    tendons = prim(
        "MjcTendon",
        "pair",
        """uniform token mjc:type = "fixed"
rel mjc:path = [</robot/hinge_a>, </robot/hinge_b>]
int[] mjc:path:indices = [1, 0]
double[] mjc:path:coef = [0.25, -0.75]
double mjc:stiffness = 11
double[] mjc:springlength = [0.1, 0.2]
double mjc:range:min = -0.3
double mjc:range:max = 0.4
double[] mjc:solreflimit = [0.03, 0.9]
double mjc:armature = 0.01""",
    ) + prim(
        "MjcTendon",
        "rope",
        """rel mjc:path = [</robot/arm_a/tip>, </robot/base/wrap>, </robot/base/anchor>, </robot/arm_b/tip>]
int[] mjc:path:indices = [2, 1, 0, 0, 3]
int[] mjc:path:segments = [0, 0, 0, 1, 1]
double[] mjc:path:divisors = [1, 2]
rel mjc:sideSites = [</robot/base/side>]
int[] mjc:sideSites:indices = [-1, 0, -1, -1, -1]
double mjc:stiffness = 40
double[] mjc:damping = [0.5, 0.2, 0.1]
double mjc:frictionloss = 0.1""",
    )
    pull = prim("MjcActuator", "pull", "rel mjc:target = </robot/rope>\ndouble[] mjc:gainPrm = [3]")
    return prim("Xform", "robot", base + arms + joints + tendons + pull, ("PhysicsArticulationRootAPI",))


TENDONS = """
<mujoco>
  <option integrator="implicitfast"/>
  <worldbody>
    <site name="anchor" pos="0.1 0 -0.1"/><site name="side" pos="0.3 0 0"/>
    <geom name="wrap" size="0.05" pos="0.2 0 0" contype="0" conaffinity="0"/>
    <body name="a" pos="0.2 0 0">
      <inertial mass="1" pos="0 0 0" diaginertia="0.1 0.1 0.1"/>
      <joint name="hinge_a" axis="0 1 0"/><site name="tip_a" pos="0.1 0 0.3"/>
    </body>
    <body name="b" pos="0.5 0 0">
      <inertial mass="1" pos="0 0 0" diaginertia="0.1 0.1 0.1"/>
      <joint name="hinge_b" axis="0 1 0"/><site name="tip_b" pos="0.1 0 0.3"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="pair" stiffness="11" springlength="0.1 0.2" range="-0.3 0.4" solreflimit="0.03 0.9"
           armature="0.01">
      <joint joint="hinge_b" coef="0.25"/><joint joint="hinge_a" coef="-0.75"/>
    </fixed>
    <spatial name="rope" stiffness="40" damping="0.5 0.2 0.1" frictionloss="0.1">
      <site site="anchor"/><geom geom="wrap" sidesite="side"/><site site="tip_a"/>
      <pulley divisor="2"/><site site="tip_a"/><site site="tip_b"/>
    </spatial>
  </tendon>
  <actuator><general tendon="rope" gainprm="3"/></actuator>
</mujoco>
"""


def test_tendons_of_the_mjc_schema_pull_as_those_of_mjcf():
    """Lengths of fixed and spatial tendons, in every copy of a stage, and the accelerations they make."""
    source, builder = ModelBuilder(), ModelBuilder()
    register_custom_attributes(source)
    report = source.add_usd(stage(tendon_stage()))
    assert not any("Mjc" in entry.feature for entry in report.entries)
    builder.replicate(source, 2)
    model = builder.finalize("cpu")
    assert model.mujoco.tendon_label == ["pair", "rope"] * 2
    assert model.mujoco.tendon_articulation.numpy().tolist() == [0, 0, 1, 1]
    assert model.mujoco.actuator_trnid.numpy()[:, 0].tolist() == [1, 3]
    (group,) = convert_model(model, MujocoOptions())
    reference = mujoco.MjModel.from_xml_string(TENDONS)
    rng = np.random.default_rng(0)
    for _ in range(4):
        results = []
        qpos, qvel, ctrl = rng.uniform(-1.0, 1.0, 2), rng.uniform(-1.0, 1.0, 2), rng.uniform(-1.0, 1.0)
        for compiled in (group.model, reference):
            compiled.opt.timestep = 0.002
            data = mujoco.MjData(compiled)
            data.qpos, data.qvel, data.ctrl = qpos, qvel, ctrl
            mujoco.mj_forward(compiled, data)
            results.append(data)
        ours, theirs = results
        np.testing.assert_allclose(ours.ten_length, theirs.ten_length, rtol=1e-6)
        assert ours.nefc == theirs.nefc
        np.testing.assert_allclose(ours.qacc, theirs.qacc, rtol=1e-5)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("</robot/arm_b/tip>]", "</robot/arm_b>]", "names '/robot/arm_b', which is no shape"),
        ("[2, 1, 0, 0, 3]", "[2, 1, 0, 0, 4]", "mjc:path:indices has 4, but mjc:path names 4 prims"),
        ("divisors = [1, 2]", "divisors = [1, 0]", "mjc:path:divisors has no number > 0 for segment 1"),
        ("segments = [0, 0, 0, 1, 1]", "segments = [0, 1, 1, 0, 0]", "mjc:path:segments goes back to 0"),
        ("segments = [0, 0, 0, 1, 1]", "segments = [0, 1]", "mjc:path:segments has 2 entries"),
        ("[-1, 0, -1, -1, -1]", "[-1, 1, -1, -1, -1]", "mjc:sideSites:indices has 1"),
    ],
)
def test_a_tendon_that_makes_no_sense_is_left_out(before, after, message):
    """A warning names the prim and what is wrong; only the other tendon is kept, with what acts on it."""
    source = ModelBuilder()
    register_custom_attributes(source)
    with pytest.warns(AssetWarning, match=f"prim '/robot/rope': .*{message}"):
        source.add_usd(stage(tendon_stage().replace(before, after, 1)))
    assert source.custom_frequency_count("mujoco:tendon") == 1
    assert source.custom_frequency_count("mujoco:tendon_wrap") == 0
    assert source.custom_frequency_count("mujoco:actuator") == 0


def test_bodies_without_gravity_are_weightless_in_every_solver():
    """What PhysX and MuJoCo name differently needs no registration, and is no loss."""
    text = prim("PhysicsScene", "scene") + "".join(
        body(name, at(x) + f"{given}\n" + collider("Sphere", "ball", "double radius = 0.1"))
        for x, name, given in (
            (0.0, "free", "bool physxRigidBody:disableGravity = 1"),
            (1.0, "half", "uniform double mjc:gravcomp = 0.5"),
            (2.0, "heavy", "bool physxRigidBody:disableGravity = 0"),
        )
    )
    builder = ModelBuilder()
    report = builder.add_usd(stage(text))
    assert not [entry for entry in report.losses if "ravity" in entry.feature or "gravcomp" in entry.feature]
    model = builder.finalize("cpu")
    place = {label: index for index, label in enumerate(model.body_label)}
    simulation = Simulation(model, dt=0.005)
    simulation.step(100)
    height = simulation.state.body_q.numpy()[:, 2] - model.body_q.numpy()[:, 2]
    fallen = 0.5 * 9.81 * 0.5**2
    for label, share in (("/free", 0.0), ("/half", 0.5), ("/heavy", 1.0)):
        assert abs(height[place[label]] + share * fallen) < 0.02 * fallen
