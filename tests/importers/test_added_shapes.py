"""Shapes that a user adds to an imported robot: a pad on a finger, a box for what the file forgot."""

import numpy as np
import pytest

import pluriverse as pv

INERTIAL = '<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
SPHERE = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'


def joint(name, kind, parent, child):
    return f"""<joint name="{name}" type="{kind}"><origin xyz="0.15 0 0"/><axis xyz="0 1 0"/>
      <parent link="{parent}"/><child link="{child}"/></joint>"""


def link(name):
    return f'<link name="{name}">{INERTIAL}{SPHERE}</link>'


URDF = f"""<robot name="r">{link("a")}{link("b")}{link("plate")}{link("c")}
{joint("ab", "continuous", "a", "b")}{joint("weld", "fixed", "b", "plate")}
{joint("bc", "continuous", "plate", "c")}</robot>"""

MJCF = """<mujoco model="r"><worldbody><geom name="floor" type="plane" size="1 1 1" pos="0 0 -5"/>
  <body name="a" pos="0 0 0"><freejoint/><geom size="0.1"/>
    <body name="b" pos="0.15 0 0"><joint axis="0 1 0"/><joint axis="0 0 1"/><geom size="0.1"/>
      <body name="plate" pos="0.15 0 0"><geom size="0.1"/>
        <body name="c" pos="0.15 0 0"><joint axis="0 1 0"/><geom size="0.1"/></body></body></body>
  </body></worldbody></mujoco>"""


def usd_body(name, x):
    return f"""def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
{{
    float physics:mass = 2
    float3 physics:diagonalInertia = (0.1, 0.1, 0.1)
    double3 xformOp:translate = ({x}, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {{
        double radius = 0.1
    }}
}}
"""


def usd_joint(kind, first, second):
    return f"""def Physics{kind}Joint "{first}_{second}"
{{
    rel physics:body0 = </r/{first}>
    rel physics:body1 = </r/{second}>
    point3f physics:localPos0 = (0.15, 0, 0)
    uniform token physics:axis = "Y"
}}
"""


USDA = f"""#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "r" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
{{
{usd_body("a", 0)}{usd_body("b", 0.15)}{usd_body("plate", 0.3)}{usd_body("c", 0.45)}
{usd_joint("Revolute", "a", "b")}{usd_joint("Fixed", "b", "plate")}{usd_joint("Revolute", "plate", "c")}
}}
"""


def import_robot(kind, **options):
    builder = pv.ModelBuilder(gravity=0.0)
    if kind == "usd":
        pytest.importorskip("pxr")
    if kind == "urdf":
        options |= {"floating": True}
    getattr(builder, f"add_{kind}")({"urdf": URDF, "mjcf": MJCF, "usd": USDA}[kind], **options)
    return builder


def body_named(builder, name):
    """Return the body of a name, or the one that it was merged into."""
    found = [index for index, label in enumerate(builder.body_label) if label.rpartition("/")[2] == name]
    return found[0] if found else body_named(builder, "b")


def touching_links(model, carriers):
    """Return the pairs of links whose shapes may touch, by the link that each shape was put on."""
    topology = model.topology
    pairs = np.stack([topology.pair_shape0.numpy(), topology.pair_shape1.numpy()], axis=1)
    pairs = np.where(pairs >= 0, pairs, -1 - pairs)
    return {frozenset(carriers.get(shape, "file") for shape in pair) for pair in pairs.tolist()}


@pytest.mark.parametrize("collapse", [False, True], ids=["kept", "collapsed"])
@pytest.mark.parametrize("kind", ["urdf", "mjcf", "usd"])
def test_a_shape_added_to_a_link_does_not_collide_with_its_neighbours(kind, collapse):
    """What is added follows the rule of what is there: links across one joint do not collide, others do.

    The plate is welded to b, so b and plate count as one, in the file and in what is added.
    """
    builder = import_robot(kind, collapse_fixed_joints=collapse)
    names = {body_named(builder, name): name for name in ("b", "plate", "a", "c")}
    carriers = {
        shape: {"plate": "b"}.get(names.get(body), names.get(body, "world"))
        for shape, body in enumerate(builder.shape_body.tolist())
    }
    for name in ("a", "b", "plate", "c"):
        for _ in range(2):  # of which the second meets the first
            shape = builder.add_shape_box(body_named(builder, name), hx=0.2, hy=0.2, hz=0.2)
            carriers[shape] = "b" if name == "plate" else name
    model = builder.finalize("cpu")
    expected = {frozenset("ac")} | {frozenset(("world", name)) for name in "abc" if kind == "mjcf"}
    assert touching_links(model, carriers) == expected


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize("kind", ["urdf", "mjcf", "usd"])
def test_a_robot_with_a_box_added_over_its_joint_stays_at_rest(kind, solver):
    """Without gravity nothing pushes a robot whose links reach into each other only across joints."""
    builder = import_robot(kind)
    builder.add_shape_sphere(body_named(builder, "b"), radius=0.12)
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver(model), dt=0.002, threads=1) as simulation:
        simulation.step(50)
        speed = np.abs(simulation.state.joint_qd.numpy()).max()
    assert speed < 1e-6


def test_a_link_added_to_does_collide_across_what_the_file_lets_collide():
    """In MJCF a link collides with a base that is fixed to the world, and so does what is added to it."""
    fixed = MJCF.replace("<freejoint/>", "")
    builder = pv.ModelBuilder()
    builder.add_mjcf(fixed)
    added = builder.add_shape_box(body_named(builder, "b"), hx=0.2, hy=0.2, hz=0.2)
    model = builder.finalize("cpu")
    base = builder.shape_body.tolist().index(body_named(builder, "a"))
    pairs = touching_links(model, {added: "added", base: "base"})
    assert frozenset(("added", "base")) in pairs


CHAIN = """<mujoco><option>{option}</option><worldbody>
<body name="a"><freejoint/><geom name="ga" size="0.1"/>
 <body name="b" pos="0.15 0 0"><joint axis="0 1 0"/>{second}
  <geom name="gb" size="0.1" pos="0 0.04 0.05"/></body>
</body></worldbody>{tail}</mujoco>"""
PAIR = '<contact><pair geom1="ga" geom2="gb"/></contact>'


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize("second", ["", '<joint axis="0 0 1"/>'], ids=["hinge", "D6"])
@pytest.mark.parametrize(
    ("option", "tail"),
    [("", ""), ("", PAIR), ('<flag filterparent="disable"/>', "")],
    ids=["no", "pair", "flag"],
)
@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_neighbours_collide_where_mujoco_lets_them(solver, option, tail, second):
    """A `<pair>` holds between neighbours too, and a flag lets all of them collide: contacts as in MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    text = CHAIN.format(option=option, tail=tail, second=second)
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    mujoco.mj_forward(reference, data)
    builder = pv.ModelBuilder(gravity=0.0)
    builder.add_mjcf(text)
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver(model), dt=0.002, threads=1) as simulation:
        simulation.step(5)
        moved = np.abs(simulation.state.joint_qd.numpy()).max() > 1e-3
    assert moved == (data.ncon > 0)
    assert len(model.templates[0].pair_shape0) == data.ncon
