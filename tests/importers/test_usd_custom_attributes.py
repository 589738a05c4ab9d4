"""Custom attributes on USD stages: what a builder declares is read from the prims that it becomes of."""

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import Model, ModelBuilder
from pluriverse.importers import AssetError, AssetWarning
from pluriverse.solvers.mujoco.attributes import register_custom_attributes
from pluriverse.solvers.mujoco.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.importers.usd_text import body, collider, joint, prim, stage

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
