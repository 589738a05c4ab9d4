"""The official names of the schemas that converters write, in addition to the older ones."""

import numpy as np
import pytest

from pluriverse import Simulation, SolverMuJoCo
from pluriverse.dynamics import eval_fk
from pluriverse.importers import AssetError
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import JointType, ShapeFlags
from tests.importers.usd_text import arm, at, body, collider, joint, load, prim, stage

LIMITS = "float physics:lowerLimit = -1\nfloat physics:upperLimit = 1\n"


def test_materials_have_their_stiffness_damping_and_frictions():
    """Ke and kd / ke in N/m and s, frictions as lengths; -inf leaves them to the solver."""
    material = prim(
        "Material",
        "rubber",
        "float newton:contactStiffness = 5000\nfloat newton:contactDamping = 50\n"
        "float newton:torsionalFriction = 2\nfloat newton:rollingFriction = 0.5\n"
        "float newton:contactAdhesion = -inf",
        ("PhysicsMaterialAPI", "NewtonMaterialAPI"),
    )
    silent = prim(
        "Material",
        "silent",
        "float newton:contactStiffness = -inf\nfloat newton:contactDamping = -inf",
        ("PhysicsMaterialAPI", "NewtonMaterialAPI"),
    )
    shapes = "".join(
        body(
            name,
            collider("Sphere", "ball", f"rel material:binding:physics = </{to}>", ("MaterialBindingAPI",)),
        )
        for name, to in (("a", "rubber"), ("b", "silent"))
    )
    builder, _ = load(material + silent + shapes, meters=0.01, strict=True)
    np.testing.assert_allclose(builder.shape_material_ke, [5000.0, np.nan])
    np.testing.assert_allclose(builder.shape_material_tau[0], 0.01)
    np.testing.assert_allclose(builder.shape_material_mu_torsional[0], 0.02)
    np.testing.assert_allclose(builder.shape_material_mu_rolling[0], 0.005)


def test_a_solref_of_a_collider_goes_before_the_material_that_repeats_it():
    """Converters write MuJoCo's default solref as 2500 N/m too, which it is for 1 kg only."""
    material = prim(
        "Material",
        "plain",
        "float newton:contactStiffness = 2500\nfloat newton:contactDamping = 100",
        ("PhysicsMaterialAPI", "NewtonMaterialAPI"),
    )
    bound = "rel material:binding:physics = </plain>\nuniform double[] mjc:solref = [0.02, 1]"
    builder, _ = load(
        material + body("a", collider("Sphere", "ball", bound, ("MaterialBindingAPI",))), strict=True
    )
    assert np.isnan(builder.shape_material_ke[0])


@pytest.mark.parametrize(("kind", "unit"), [("RevoluteJoint", 180.0 / np.pi), ("PrismaticJoint", 1.0)])
def test_limits_and_damping_are_per_degree(kind, unit):
    """The gains of limits and the damping of NewtonJointAPI are efforts per degree; of slides per length."""
    gains = "float newton:limitStiffness = 7\nfloat newton:limitDamping = 3\nfloat newton:damping = 2\n"
    builder, _ = load(arm(LIMITS + gains, kind=kind), strict=True)
    np.testing.assert_allclose(builder.joint_limit_ke, 7.0 * unit)
    np.testing.assert_allclose(builder.joint_limit_kd, 3.0 * unit)
    np.testing.assert_allclose(builder.joint_damping, 2.0 * unit)
    given = "float newton:limitStiffness = -inf\nfloat newton:limitDamping = -inf\n"
    builder, _ = load(arm(LIMITS + given, kind=kind), strict=True)
    assert np.isnan(builder.joint_limit_ke).all()
    older = "float newton:limitAngularKe = 5\nfloat newton:limitLinearKe = 5\n"
    builder, _ = load(arm(LIMITS + older, kind=kind), strict=True)
    np.testing.assert_allclose(builder.joint_limit_ke, 5.0 * unit)


def test_a_whole_inertia_goes_before_its_principal_axes():
    """Ixx, Iyy, Izz, Ixy, Ixz, Iyz in axes of the body, in units of the stage."""
    whole = "double[] newton:inertia = [3, 4, 5, 0.1, 0.2, 0.3]"
    builder, _ = load(
        body("a", whole, mass=2.0, apis=("NewtonMassAPI",)), meters=0.5, kilograms=2, strict=True
    )
    expected = 0.5 * np.array([[3.0, 0.1, 0.2], [0.1, 4.0, 0.3], [0.2, 0.3, 5.0]])
    np.testing.assert_allclose(builder.body_inertia[0], expected, rtol=1e-6)
    with pytest.raises(AssetError, match=r"newton:inertia is \[1\.0, 2\.0\]"):
        load(body("a", "double[] newton:inertia = [1, 2]"))


def test_sites_of_the_official_schema_are_sites():
    builder, _ = load(
        body("a", prim("Sphere", "imu", "double radius = 0.1", ("NewtonSiteAPI",))), strict=True
    )
    assert ShapeFlags.SITE in ShapeFlags(int(builder.shape_flags[0]))


def test_gravity_can_be_switched_off():
    scene = prim("PhysicsScene", "scene", "bool newton:gravityEnabled = 0", ("NewtonSceneAPI",))
    builder, _ = load(scene + body("a"), strict=True)
    np.testing.assert_array_equal(builder.gravity, [0.0, 0.0, 0.0])


def stacked(mobility, kinds="xy"):
    joints = "".join(
        joint(
            "RevoluteJoint",
            f"h{axis}",
            "/r/a",
            "/r/b",
            f'uniform token physics:axis = "{axis.upper()}"\n{frames}',
        )
        for axis, frames in (
            ("x", "point3f physics:localPos0 = (0, 0, 1)\n"),
            ("y", "point3f physics:localPos0 = (0, 0.5, 1)\npoint3f physics:localPos1 = (0, 0.5, 0)\n"),
        )
        if axis in kinds
    )
    flag = f"uniform bool newton:jointsAddMobility = {int(mobility)}\n"
    return prim(
        "Xform",
        "r",
        flag + body("a", mass=3.0) + body("b", at(z=1.0)) + joints,
        ("PhysicsArticulationRootAPI", "NewtonArticulationRootAPI"),
    )


def test_stacked_joints_add_mobility_where_the_articulation_says_so():
    """Two hinges between two bodies give two degrees of freedom, each about its own point, else none."""
    builder, _ = load(stacked(True), strict=True)
    assert (builder.joint_type == JointType.REVOLUTE).sum() == 2
    assert builder.joint_dof_count == 8
    assert not builder.equality_constraint_count
    model = builder.finalize("cpu")
    hinges = [model.joint_label.index(f"/r/h{axis}") for axis in "xy"]
    starts = model.joint_q_start.numpy()
    for solver in (None, SolverMuJoCo(model)):
        with Simulation(model, solver, dt=0.002) as simulation:
            simulation.step()
            pose = simulation.state.body_q.numpy()
    coords = model.joint_q.numpy()
    for hinge, axis, pivot in ((hinges[0], 0, (0.0, 0.0, 1.0)), (hinges[1], 1, (0.0, 0.5, 1.0))):
        turned = coords.copy()
        turned[starts[hinge]] = 0.5
        state = model.state()
        state.joint_q.assign(turned)
        eval_fk(model, state.joint_q, state.joint_qd, state)
        a, b = (state.body_q.numpy()[model.body_label.index(f"/r/{name}")] for name in "ab")
        half = np.zeros(3)
        half[axis] = np.sin(0.25)
        np.testing.assert_allclose(b[3:6], half, atol=1e-6)
        arm_at_rest = np.array([0.0, 0.0, 1.0]) - pivot
        turn = np.eye(3) + np.sin(0.5) * cross(axis) + (1.0 - np.cos(0.5)) * cross(axis) @ cross(axis)
        np.testing.assert_allclose(b[:3] - a[:3], np.array(pivot) + turn @ arm_at_rest, atol=1e-6)
    assert np.isfinite(pose).all()
    rigid, _ = load(stacked(False))
    assert (rigid.joint_type == JointType.REVOLUTE).sum() <= 1 or rigid.equality_constraint_count


def cross(axis):
    """Return the matrix of the cross product with a unit vector."""
    return np.cross(np.eye(3), -np.eye(3)[axis])


GROUPS = """
def PhysicsCollisionGroup "{name}" (prepend apiSchemas = ["CollectionAPI:colliders"])
{{
    rel collection:colliders:includes = [{members}]
    rel physics:filteredGroups = [{filtered}]
    uniform bool physics:invertFilteredGroups = {inverted}
}}
"""


def group(name, members, filtered=(), *, inverted=False):
    def paths(names):
        return ", ".join(f"<{path}>" for path in names)

    return GROUPS.format(name=name, members=paths(members), filtered=paths(filtered), inverted=int(inverted))


def colliding_pairs(content):
    builder, _ = load(content)
    model = builder.finalize("cpu")
    topology, names = model.topology, [label[1] for label in model.shape_label]
    pairs = zip(topology.pair_shape0.numpy(), topology.pair_shape1.numpy(), strict=True)
    return {"".join(sorted(names[code if code >= 0 else -1 - code] for code in pair)) for pair in pairs}


def test_an_inverted_group_collides_with_the_groups_that_it_names_and_nothing_else():
    """USD: disabled against all colliders except those of the selected groups, so also of none."""
    spheres = "".join(body(name, collider("Sphere", "s")) for name in "abcd")
    groups = group("A", ["/a"], ["/B"], inverted=True) + group("B", ["/b"]) + group("C", ["/c"])
    assert colliding_pairs(spheres + groups) == {"ab", "bc", "bd", "cd"}
    # c is in a group that a may collide with, and in another; to be named once is enough.
    both = group("A", ["/a"], ["/B"], inverted=True) + group("B", ["/b", "/c"]) + group("C", ["/c"])
    assert colliding_pairs(spheres + both) == {"ab", "ac", "bc", "bd", "cd"}
    assert colliding_pairs(spheres + group("A", ["/a"], [], inverted=True)) == {"bc", "bd", "cd"}


def test_a_body_outside_of_articulations_names_its_articulation_by_its_path():
    """/World/Box is found by its path whether it is alone or not."""
    for others in ("", body("Other", at(x=3.0))):
        builder, _ = load(prim("Xform", "World", body("Box", collider("Cube", "Geom")) + others))
        assert builder.body_label[0] == "/World/Box"
        assert builder.articulation_label[0] == "/World/Box"


CONVERTED = prim(
    "Xform",
    "bot",
    prim(
        "Scope",
        "Physics",
        prim(
            "Material",
            "m",
            "float newton:contactDamping = 100\nfloat newton:contactStiffness = 2500\n"
            "float newton:rollingFriction = 0.002\nfloat newton:torsionalFriction = 0.02\n"
            "float physics:dynamicFriction = 0.6\nfloat physics:staticFriction = 0.6",
            ("PhysicsMaterialAPI", "NewtonMaterialAPI"),
        )
        + prim(
            "MjcActuator",
            "hip_p",
            "uniform double[] mjc:biasPrm = [0, -20, -1, 0, 0, 0, 0, 0, 0, 0]\n"
            'uniform token mjc:biasType = "affine"\n'
            "uniform double mjc:ctrlRange:max = 1\nuniform double mjc:ctrlRange:min = -1\n"
            "uniform double[] mjc:gainPrm = [20, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n"
            "rel mjc:target = </bot/base/thigh/hip>",
        ),
    )
    + body(
        "base",
        "uniform bool newton:jointsAddMobility = 1\n"
        + collider(
            "Cube",
            "box",
            "rel material:binding:physics = </bot/Physics/m>\nuniform int mjc:condim = 4\n"
            "uniform double[] mjc:solref = [0.02, 1]\nfloat newton:contactGap = 0",
            ("NewtonCollisionAPI", "MjcCollisionAPI", "MaterialBindingAPI"),
        )
        + prim("Sphere", "imu", "double radius = 0.01", ("MjcSiteAPI", "NewtonSiteAPI"))
        + body(
            "thigh",
            at(z=-1.0)
            + joint(
                "RevoluteJoint",
                "hip",
                "/bot/base",
                "/bot/base/thigh",
                "point3f physics:localPos0 = (0, 0, -1)\n"
                "float newton:damping = 0.01\nfloat newton:armature = 0.1\n"
                "uniform double[] mjc:solreflimit = [0.01, 1]\nuniform double mjc:stiffness = 2\n" + LIMITS,
                ("MjcJointAPI", "NewtonJointAPI"),
            ),
        ),
        apis=("PhysicsArticulationRootAPI", "NewtonArticulationRootAPI"),
    ),
) + prim(
    "PhysicsScene",
    "scene",
    "uniform int newton:maxSolverIterations = 100\nuniform int newton:timeStepsPerSecond = 500\n"
    'uniform token mjc:compiler:angle = "degree"',
    ("NewtonSceneAPI", "MjcSceneAPI"),
)


def test_a_stage_of_a_converter_loads_in_strict_mode():
    """What a current converter writes of a robot is read, or belongs to another solver."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    builder.add_usd(stage(CONVERTED), strict=True)
    assert builder.joint_damping[-1] == pytest.approx(0.01 * 180.0 / np.pi)
    assert builder.shape_material_mu_torsional[0] == pytest.approx(0.02)
    model = builder.finalize("cpu")
    with Simulation(model, SolverMuJoCo(model), dt=0.002) as simulation:
        simulation.step(10)
        assert np.isfinite(simulation.state.joint_q.numpy()).all()


def servo(name, target, gain=20.0, damping=-1.0, text=""):
    return prim(
        "MjcActuator",
        name,
        f"uniform double[] mjc:biasPrm = [0, {-gain}, {damping}, 0, 0, 0, 0, 0, 0, 0]\n"
        'uniform token mjc:biasType = "affine"\n'
        f"uniform double[] mjc:gainPrm = [{gain}, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n"
        f"rel mjc:target = <{target}>\n{text}",
    )


def test_actuators_of_a_stage_are_drives_without_the_namespace():
    """Gear g, gain k and bias b are the drive g² k, and a motor is an effort within its control range."""
    content = body("base", collider("Cube", "box"))
    content += joint("FixedJoint", "held", "", "/base")
    for number in range(3):
        content += body(f"arm{number}", collider("Cube", "box"))
        content += joint(
            "RevoluteJoint", f"j{number}", "/base", f"/arm{number}", "float urdf:limit:effort = 9"
        )
    content += servo(
        "p",
        "/j0",
        text="uniform double[] mjc:gear = [2]\nuniform double mjc:forceRange:min = -3\n"
        "uniform double mjc:forceRange:max = 3\nuniform double mjc:ctrlRange:min = 0.5\n"
        "uniform double mjc:ctrlRange:max = 1",
    )
    content += prim(
        "MjcActuator",
        "motor",
        "rel mjc:target = </j1>\nuniform double[] mjc:gainPrm = [5]\n"
        "uniform double mjc:ctrlRange:min = -1\nuniform double mjc:ctrlRange:max = 1",
    )
    builder, report = load(content, strict=True)
    assert not report.losses
    first, second, third = (
        builder.joint_qd_start[builder.joint_label.index(f"/j{number}")] for number in range(3)
    )
    np.testing.assert_allclose(builder.joint_target_ke[[first, second, third]], [80.0, 0.0, 0.0])
    np.testing.assert_allclose(builder.joint_target_kd[[first, second, third]], [4.0, 0.0, 0.0])
    np.testing.assert_allclose(builder.joint_effort_limit[[first, second, third]], [6.0, 5.0, 9.0])
    # What MuJoCo holds at the control 0.5: g (k u - k g q) is 0 there.
    assert builder.joint_target_pos[first] == pytest.approx(0.25)
    assert builder.joint_target_upper[first] == pytest.approx(0.5)


def test_a_ratio_of_damping_is_that_to_critical_damping_of_what_the_joint_feels():
    """MuJoCo turns a positive third bias into a damping when it compiles: ours has to be the same."""
    mujoco = pytest.importorskip("mujoco")
    size, joints = 'type="box" size="0.5 0.5 0.5" mass="2"', 'type="hinge" axis="0 1 0"'
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><body name="a"><freejoint/><geom {size}/>
      <body name="b" pos="1 0 0"><joint name="j" {joints} armature="0.1"/><geom {size}/>
      <body name="c" pos="1 0 0"><joint name="k" {joints}/><geom {size}/></body></body></body></worldbody>
      <actuator><position joint="j" kp="30" dampratio="0.7"/><position joint="k" kp="20" dampratio="1"/>
      </actuator></mujoco>""")
    third = 2.0 / 6.0  # kg·m², of a cube of 2 kg and side 1
    content = "".join(
        body(name, at(float(x)) + collider("Cube", "box"), mass=2.0, inertia=(third, third, third))
        for x, name in enumerate("abc")
    )
    here = 'point3f physics:localPos0 = (1, 0, 0)\nuniform token physics:axis = "Y"\n'
    content += joint("RevoluteJoint", "j", "/a", "/b", here + "float newton:armature = 0.1")
    content += joint("RevoluteJoint", "k", "/b", "/c", here)
    content += servo("sj", "/j", 30.0, 0.7) + servo("sk", "/k", 20.0, 1.0)
    builder, _ = load(content, strict=True)
    dofs = [builder.joint_qd_start[builder.joint_label.index(name)] for name in ("/j", "/k")]
    np.testing.assert_allclose(builder.joint_target_kd[dofs], -model.actuator_biasprm[:, 2], rtol=1e-5)


def test_joints_of_mujoco_around_a_single_body_move_it_one_after_the_other():
    """Converters write no articulation around one body, so that nothing says `jointsAddMobility`."""
    content = body("cup", collider("Sphere", "ball"))
    for axis in "XZ":
        content += joint(
            "PrismaticJoint",
            f"slide{axis}",
            "",
            "/cup",
            f'uniform token physics:axis = "{axis}"',
            ("MjcJointAPI",),
        )
    builder, _ = load(content, strict=True)
    assert builder.joint_dof_count == 2
    assert len(builder.equality_constraint_label) == 0


def test_the_offset_of_a_turning_mimic_joint_is_in_degrees():
    content = body("base") + body("a") + body("b") + joint("FixedJoint", "m", "", "/base")
    content += joint("RevoluteJoint", "lead", "/base", "/a")
    content += joint(
        "RevoluteJoint",
        "follow",
        "/base",
        "/b",
        "rel newton:mimicJoint = </lead>\nfloat newton:mimicCoef0 = 30\nfloat newton:mimicCoef1 = 2",
        ("NewtonMimicAPI",),
    )
    builder, _ = load(content, strict=True)
    np.testing.assert_allclose(builder.equality_constraint_polycoef[0][:2], [np.pi / 6.0, 2.0], rtol=1e-6)
