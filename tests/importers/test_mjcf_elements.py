"""What becomes of MJCF elements: keyframes, contact bits, shapes, classes, labels, options."""

import mujoco
import numpy as np
import pytest
import trimesh

from pluriverse import CollisionPipeline, SolverMuJoCo
from pluriverse.geometry import quat_to_matrix
from pluriverse.importers import AssetError, AssetWarning, ImportSeverity, UnsupportedAssetError
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import GeoType, JointTargetMode, JointType, ShapeFlags

FLOAT32 = 3e-7  # relative: a float32 rounding or two


def import_mjcf(text, **options):
    builder = ModelBuilder()
    return builder, builder.add_mjcf(text, **options)


def pendulum(body="", rest="", joint='range="-1 1"'):
    return f"""<mujoco model="pendulum"><compiler angle="radian"/><worldbody><body name="arm">
      <joint name="hinge" axis="0 1 0" {joint}/>
      <geom name="rod" type="capsule" size="0.05 0.2" pos="0 0 -0.3"/>{body}
    </body></worldbody>{rest}</mujoco>"""


KEYFRAMES = """<mujoco><worldbody>
  <body name="base" pos="0 0 1"><freejoint name="root"/><geom size="0.1" pos="0.05 0.1 0"/>
    <body name="arm" pos="0.2 0 0"><joint name="ball" type="ball"/><geom size="0.05" pos="0 0 0.2"/>
      <body name="finger" pos="0 0 0.4"><joint name="slide" type="slide" axis="0 0 1"/>
        <geom size="0.02"/></body>
    </body></body></worldbody>
  <actuator><position name="a" joint="slide" kp="10"/></actuator>
  <keyframe>
    <key name="other" qpos="0 0 3 1 0 0 0 1 0 0 0 0.1" ctrl="0.1"/>
    <key name="Home" qpos="1 2 3 0.5 0.5 0.5 0.5 0.8 0.6 0 0 0.2" qvel="1 2 3 0.4 0.5 0.6 0.1 0.2 0.3 0.7"
         ctrl="0.25"/>
  </keyframe></mujoco>"""


def test_keyframe_called_home_is_the_initial_state():
    """Positions, velocities and controls; body velocities are those of MuJoCo at that keyframe."""
    builder, _ = import_mjcf(KEYFRAMES)
    model = mujoco.MjSpec.from_string(KEYFRAMES).compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    mujoco.mj_forward(model, data)
    finalized = builder.finalize("cpu")
    poses, speeds = finalized.body_q.numpy(), finalized.body_qd.numpy()
    for index, label in enumerate(finalized.body_label):
        body = model.body(label.rpartition("/")[2]).id
        np.testing.assert_allclose(poses[index, :3], data.xpos[body], atol=1e-6)
        expected = np.zeros(6)  # MuJoCo: angular, then linear velocity at the centre of mass, world axes
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, expected, 0)
        np.testing.assert_allclose(speeds[index, :3], expected[3:], atol=1e-5)
        np.testing.assert_allclose(speeds[index, 3:], expected[:3], atol=1e-5)
    assert builder.joint_target_pos[-1] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("keyframe", "height", "target"),
    [("other", 3.0, 0.1), (0, 3.0, 0.1), ("Home", 3.0, 0.25), (None, 1.0, 0.0)],
)
def test_keyframe_can_be_chosen(keyframe, height, target):
    builder, _ = import_mjcf(KEYFRAMES, keyframe=keyframe)
    assert builder.joint_q[2] == height
    assert builder.joint_target_pos[-1] == pytest.approx(target)


def test_first_keyframe_is_taken_where_none_is_called_home():
    builder, _ = import_mjcf(KEYFRAMES.replace("Home", "b"))
    assert builder.joint_target_pos[-1] == pytest.approx(0.1)


CONTACT_BITS = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <geom name="wall" type="box" size="1 1 1" contype="2" conaffinity="2"/>
  <body name="a" pos="0 0 1"><freejoint/><geom name="a1" size="0.1"/><geom name="a2" size="0.1" contype="2"/>
    <body name="a_welded"><geom name="aw" size="0.1"/>
      <body name="b"><joint axis="0 0 1"/><geom name="b1" size="0.1" conaffinity="3"/>
        <body name="c"><joint name="c1" axis="0 1 0"/><joint name="c2" axis="1 0 0"/>
          <geom name="c" size="0.1"/>
          <body name="d"><joint axis="0 1 0"/><geom name="d" size="0.1"/></body></body></body></body></body>
  <body name="stand"><geom name="stand" size="0.1"/>
    <body name="e"><joint axis="0 1 0"/><geom name="e" size="0.1"/>
      <body name="f"><joint axis="0 1 0"/><geom name="f" size="0.1" contype="0" conaffinity="4"/></body>
    </body></body>
  <body name="hand" mocap="true"><geom name="hand" size="0.1"/>
    <body name="grip"><geom name="grip" size="0.1"/>
      <body name="i"><joint axis="0 1 0"/><geom name="i" size="0.1"/><body><geom name="iw" size="0.1"/></body>
        <body name="k"><joint axis="0 1 0"/><geom name="k" size="0.1"/></body></body></body></body>
  <body name="g" pos="1 0 1"><freejoint/><geom name="g" size="0.1" contype="4" conaffinity="0"/></body>
  <body name="h" pos="2 0 1"><freejoint/><geom name="h" size="0.1" contype="0" conaffinity="0"/></body>
  </worldbody>
  <contact><exclude body1="a" body2="d"/><exclude body1="world" body2="g"/></contact></mujoco>"""


def mujoco_pairs(model):
    """Return the pairs of geoms that MuJoCo would let collide, found by giving all geoms a huge margin."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    model.geom_margin[:] = 1e3
    for field in ("geom_rbound", "body_margin"):
        getattr(model, field)[:] = 1e3
    mujoco.mj_collision(model, data)
    ids = [(contact.geom1, contact.geom2) for contact in data.contact]
    return {frozenset((model.geom(a).name or a, model.geom(b).name or b)) for a, b in ids}


def model_pairs(builder):
    """Return the candidate pairs of a finalized model by the last components of the labels."""
    topology = builder.finalize("cpu").topology
    names = [label.rpartition("/")[2] for label in builder.shape_label]
    pairs = set()
    for codes in zip(topology.pair_shape0.numpy(), topology.pair_shape1.numpy(), strict=True):
        pairs.add(frozenset(names[code if code >= 0 else -1 - code] for code in codes))
    return pairs


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_shapes_collide_as_contact_bits_exclusions_and_welds_say():
    """The candidate pairs are MuJoCo's: bits, excluded bodies, welded bodies, parents, scenery, mocap."""
    builder, _ = import_mjcf(CONTACT_BITS)
    expected = mujoco_pairs(mujoco.MjSpec.from_string(CONTACT_BITS).compile())
    assert frozenset(("floor", "a1")) in expected
    assert model_pairs(builder) == expected


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_robot_has_mujocos_candidate_pairs(robot_assets):
    path = robot_assets / "unitree_go1" / "go1.xml"
    builder, _ = import_mjcf(path)
    assert model_pairs(builder) == mujoco_pairs(mujoco.MjSpec.from_file(str(path)).compile())


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_self_collisions_can_be_switched_off():
    """Then only pairs with the scenery are left."""
    builder, _ = import_mjcf(CONTACT_BITS, enable_self_collisions=False)
    assert {name for pair in model_pairs(builder) for name in pair} >= {"floor", "a1"}
    assert all(pair & {"floor", "wall"} for pair in model_pairs(builder))


SHAPES = """<mujoco model="shapes"><asset>
    <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="0.1 0.2 0.3"/>
    <material name="red" rgba="0.9 0.1 0.2 1"/></asset>
  <worldbody><body name="b" pos="0 0 1"><freejoint/>
    <geom name="plate" type="box" size="0.1 0.2 0.3" rgba="0 1 0 1"/>
    <geom name="ball" type="sphere" size="0.1" friction="0.4 0.02 0.003" condim="6"/>
    <geom name="pill" type="capsule" size="0.05" fromto="0 0 0 0 0.4 0" margin="0.01" gap="0.004"/>
    <geom name="can" type="cylinder" size="0.05 0.1" condim="1" solref="0.01 0.5"/>
    <geom name="egg" type="ellipsoid" size="0.1 0.2 0.3" solref="-4000 -20"/>
    <geom name="wedge" type="mesh" mesh="wedge" pos="0.5 0 0"/>
    <geom name="look" type="mesh" mesh="wedge" contype="0" conaffinity="0" material="red" group="2"/>
    <geom name="fitted" type="box" mesh="wedge"/>
    <site name="tip" pos="0 0 0.3" size="0.02"/></body></worldbody></mujoco>"""


def test_geoms_become_shapes():
    """Types, sizes, materials, colours, visibility and sites."""
    with pytest.warns(AssetWarning, match="solref"):
        builder, report = import_mjcf(SHAPES)
    index = {label.rpartition("/")[2]: number for number, label in enumerate(builder.shape_label)}
    kinds = {name: GeoType(int(builder.shape_type[number])) for name, number in index.items()}
    assert kinds == {
        "plate": GeoType.BOX,
        "ball": GeoType.SPHERE,
        "pill": GeoType.CAPSULE,
        "can": GeoType.CYLINDER,
        "egg": GeoType.ELLIPSOID,
        "wedge": GeoType.CONVEX_MESH,
        "look": GeoType.MESH,
        "fitted": GeoType.BOX,
        "tip": GeoType.SPHERE,
    }
    np.testing.assert_allclose(builder.shape_scale[index["plate"]], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(builder.shape_scale[index["pill"]], [0.05, 0.2, 0.0])
    mu = builder.shape_material_mu
    assert mu[index["ball"]] == pytest.approx(0.4)
    assert mu[index["can"]] == 1.0  # condim 1 is frictionless against its like only, which is reported
    assert builder.shape_material_mu_torsional[index["ball"]] == pytest.approx(0.02)
    assert builder.shape_margin[index["pill"]] == pytest.approx(0.01)
    assert builder.shape_gap[index["pill"]] == pytest.approx(0.004)
    # k = 1 / (t d)², tau = (2 / t) / k; a negative pair is stiffness and damping themselves. At rest a
    # contact pushes with k / (1 - dmax) per mass.
    assert builder.shape_material_ke_per_mass[index["can"]] == pytest.approx(20.0 / (0.01 * 0.5) ** 2)
    assert builder.shape_material_tau[index["can"]] == pytest.approx(2.0 * 0.01 * 0.5**2)
    assert builder.shape_material_ke_per_mass[index["egg"]] == pytest.approx(20.0 * 4000.0)
    assert builder.shape_material_tau[index["egg"]] == pytest.approx(20.0 / 4000.0)
    assert np.isnan(builder.shape_material_ke).all()  # not given
    assert np.isnan(builder.shape_material_ke_per_mass[index["plate"]])
    flags = {name: ShapeFlags(int(builder.shape_flags[number])) for name, number in index.items()}
    assert flags["look"] == ShapeFlags.VISIBLE
    assert ShapeFlags.COLLIDE_SHAPES in flags["plate"]
    assert ShapeFlags.VISIBLE not in flags["plate"]  # the body has something better to look at
    assert ShapeFlags.SITE in flags["tip"]
    np.testing.assert_allclose(builder.shape_color[index["look"]], [0.9, 0.1, 0.2], atol=1e-6)
    assert {entry.feature for entry in report.losses} >= {"solref", "condim 1"}
    assert not any(entry.feature == "margin" for entry in report.entries)


def test_shapes_keep_away_by_margins_as_in_mujoco():
    """Contacts push below the sum of both margins, and are listed below that of margins and gaps."""
    text = """
    <mujoco><worldbody><geom type="plane" size="0 0 1" margin="0.02"/>
      <body pos="0 0 {}"><freejoint/><geom size="0.1" margin="0.01" gap="0.004"/></body>
    </worldbody></mujoco>"""
    for height, touches in ((0.129, True), (0.131, False)):
        builder, report = import_mjcf(text.format(height), strict=True)
        assert report.losses == []
        model = builder.finalize("cpu")
        reference = mujoco.MjModel.from_xml_string(text.format(height))
        data = mujoco.MjData(reference)
        mujoco.mj_forward(reference, data)
        solver, states = SolverMuJoCo(model), [model.state(), model.state()]
        solver.step(*states, None, None, 1e-3)
        assert solver.last_contact_count.numpy()[0] == touches == bool(data.nefc)
        own = CollisionPipeline(model)
        contacts = own.contacts()
        own.collide(states[0], contacts)
        assert contacts.rigid_contact_count.numpy()[0] == data.ncon == 1  # within the gap
    with pytest.warns(AssetWarning, match="negative margin"):
        import_mjcf(text.format(0.2).replace('margin="0.01"', 'margin="-0.01"'))


def test_mesh_geom_stands_where_mujoco_puts_it():
    """MuJoCo stores meshes about their centre along their axes; the vertices end where they were authored."""
    with pytest.warns(AssetWarning):
        builder, _ = import_mjcf(SHAPES)
    shape = next(n for n, label in enumerate(builder.shape_label) if label.endswith("/wedge"))
    mesh = builder.meshes[next(n for n, m in enumerate(builder.meshes) if len(m.vertices) == 4)]
    pose = builder.shape_transform[shape]
    placed = mesh.vertices @ quat_to_matrix(pose[3:]).T + pose[:3]
    expected = np.array([[0.5, 0, 0], [0.6, 0, 0], [0.5, 0.2, 0], [0.5, 0, 0.3]])
    np.testing.assert_allclose(sorted(placed.tolist()), sorted(expected.tolist()), atol=1e-6)


def test_options_choose_what_is_imported():
    text = (
        SHAPES.replace('solref="0.01 0.5"', "")
        .replace('solref="-4000 -20"', "")
        .replace('condim="1"', "")
        .replace('margin="0.01"', "")
    )
    text = text.replace('gap="0.004"', "").replace('condim="6"', "")

    def names(**options):
        builder, _ = import_mjcf(text, **options)
        return {label.rpartition("/")[2] for label in builder.shape_label}

    everything = names(strict=True)
    assert everything - names(parse_sites=False) == {"tip"}
    assert everything - names(parse_visuals=False) == {"look"}
    assert everything - names(ignore_names=["ba.*", "tip"]) == {"ball", "tip"}
    with pytest.warns(AssetWarning, match="mesh that gives mass"):
        assert everything - names(parse_meshes=False) == {"wedge", "look", "fitted"}
    builder, _ = import_mjcf(text, parse_visuals_as_colliders=True)
    assert [label.rpartition("/")[2] for label in builder.shape_label] == ["look", "tip"]
    assert builder.shape_type[0] == GeoType.CONVEX_MESH
    builder, _ = import_mjcf(text, hide_visuals=True)
    flags = builder.shape_flags[[label.endswith("/look") for label in builder.shape_label].index(True)]
    assert not flags & ShapeFlags.VISIBLE


CLASSES = """<mujoco><default><default class="visual"><geom group="2"/></default>
  <default class="collision"><geom group="3"/><default class="foot"><geom friction="2"/></default></default>
  <default class="bumper"/></default>
  <worldbody><body name="b"><freejoint/><geom name="v" class="visual" size="0.1"/>
  <geom name="f" class="foot" size="0.1"/><geom name="n" size="0.1"/>
  <geom name="x" class="bumper" size="0.1"/>
  </body></worldbody></mujoco>"""


def colliding(text, **options):
    builder, _ = import_mjcf(text, **options)
    flags = builder.shape_flags
    return {
        label.rpartition("/")[2]
        for label, flag in zip(builder.shape_label, flags, strict=True)
        if flag & ShapeFlags.COLLIDE_SHAPES
    }


def test_default_classes_decide_what_collides():
    """Visual classes never collide (with a word, if their bits say otherwise); inherited classes count."""
    with pytest.warns(AssetWarning, match="visual_classes"):
        assert colliding(CLASSES) == {"f", "n", "x"}
    assert colliding(CLASSES, visual_classes=()) == {"v", "f", "n", "x"}
    with pytest.warns(AssetWarning):
        assert colliding(CLASSES, no_class_as_colliders=False) == {"f"}
    with pytest.warns(AssetWarning):
        assert colliding(CLASSES, no_class_as_colliders=False, collider_classes="bump.*") == {"x"}
    assert colliding(CLASSES, ignore_classes=["visual", "collision"]) == {"n", "x"}


def test_floating_changes_the_base():
    fixed = '<mujoco><worldbody><body name="b" pos="0 0 2"><geom size="0.1"/></body></worldbody></mujoco>'
    free = fixed.replace("<geom", '<freejoint name="root"/><geom')
    builder, _ = import_mjcf(fixed)
    assert JointType(int(builder.joint_type[0])) is JointType.FIXED
    assert builder.joint_label[0].endswith("b/fixed_base")
    builder, _ = import_mjcf(fixed, floating=True)
    assert JointType(int(builder.joint_type[0])) is JointType.FREE
    assert builder.joint_label[0].endswith("b/floating_base")
    np.testing.assert_allclose(builder.joint_q[:3], [0, 0, 2])
    builder, _ = import_mjcf(free, floating=False)
    assert JointType(int(builder.joint_type[0])) is JointType.FIXED
    assert builder.finalize("cpu").body_q.numpy()[0, 2] == 2.0


def test_labels_are_paths():
    builder, report = import_mjcf(pendulum(body='<geom size="0.01"/><site size="0.01"/>'))
    assert builder.body_label == ["pendulum/worldbody/arm"]
    assert builder.joint_label == ["pendulum/worldbody/arm/hinge"]
    assert builder.shape_label == [f"pendulum/worldbody/arm/{name}" for name in ("rod", "geom_1", "site_0")]
    assert builder.articulation_label == ["pendulum"]
    assert report.label == "pendulum"
    assert (report.bodies, report.joints, report.shapes) == (range(1), range(1), range(3))


def test_inertia_follows_from_the_geoms_on_request():
    body = '<inertial pos="0 0 0" mass="9" diaginertia="1 1 1"/>'
    given, _ = import_mjcf(pendulum(body=body))
    derived, _ = import_mjcf(pendulum(body=body), ignore_inertial_definitions=True)
    assert given.body_mass[0] == 9.0
    volume = np.pi * 0.05**2 * (0.4 + 4.0 / 3.0 * 0.05)
    assert derived.body_mass[0] == pytest.approx(1000.0 * volume, rel=1e-6)


UNSUPPORTED = {
    "spatial tendon": (
        '<site name="s" pos="0 0 1"/>',
        '<tendon><spatial name="t"><site site="s"/><site site="w"/></spatial></tendon>'
        '<worldbody><site name="w"/></worldbody>',
        "it exerts nothing",
    ),
    "frictionloss, armature of a tendon": (
        "",
        '<tendon><fixed name="t" frictionloss="1"><joint joint="hinge" coef="1"/></fixed></tendon>',
        "it has none",
    ),
    "option density, viscosity": ("", '<option viscosity="1"/>', "no fluid"),
    "actuatorgravcomp": (
        '<body name="c"><joint actuatorgravcomp="true"/><geom size="0.1"/></body>',
        "",
        "without the actuator",
    ),
    "actuator: its transmission is not a joint": (
        '<site name="s"/>',
        '<actuator><motor name="m" site="s" gear="0 0 1 0 0 0"/></actuator>',
        "it exerts nothing",
    ),
    "activation dynamics of an actuator": (
        "",
        '<actuator><general name="m" joint="hinge" dyntype="filter" dynprm="0.1"/></actuator>',
        "at once",
    ),
    "actuator: it pushes away from its target (negative stiffness or damping)": (
        "",
        '<actuator><general name="m" joint="hinge" biastype="affine" biasprm="0 5 0"/></actuator>',
        "it exerts nothing",
    ),
    "forcerange that is not symmetric": (
        "",
        '<actuator><motor name="m" joint="hinge" forcerange="-1 3"/></actuator>',
        "larger bound",
    ),
    "limit of a ball joint": (
        '<body name="c"><joint name="ball" type="ball" range="0 1"/><geom size="0.1"/></body>',
        "",
        "without limit",
    ),
    "hfield or sdf geom": (
        '<body name="mound"><geom name="terrain" type="hfield" hfield="h"/></body>',
        '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
        "left out",
    ),
    "solimp": ('<geom size="0.1" solimp="0.5 0.6 0.01"/>', "", "impedance"),
}


@pytest.mark.parametrize("feature", UNSUPPORTED)
def test_what_has_no_counterpart_is_reported(feature):
    """One warning that names feature and consequence; an error in strict mode."""
    body, rest, consequence = UNSUPPORTED[feature]
    text = pendulum(body=body, rest=rest)
    if "hfield" in feature:  # MuJoCo takes height fields on static bodies only
        text = text.replace(body, "").replace("<body", body + "<body", 1)
    with pytest.warns(AssetWarning, match=consequence) as warnings:
        _, report = import_mjcf(text)
    assert len(warnings) == 1
    assert [entry.feature for entry in report.losses] == [feature]
    assert report.losses[0].entities
    with pytest.raises(UnsupportedAssetError, match=consequence):
        import_mjcf(text, strict=True)


def test_height_field_of_the_worldbody_is_ground():
    """Heights, extent and pose are those of MuJoCo's field, whose data run row by row along y."""
    data = " ".join(map(str, (0.0, 0.5, 1.0, 0.25, 0.5, 0.75)))
    field = f'<hfield name="h" nrow="2" ncol="3" size="2 1 0.5 0.1" elevation="{data}"/>'
    text = pendulum(rest=f"<asset>{field}</asset>")
    ground = '<geom name="terrain" type="hfield" hfield="h" pos="0 0 -3"/>'
    builder, _ = import_mjcf(text.replace("<body", ground + "<body", 1))
    shape = builder.shape_type.tolist().index(GeoType.HFIELD)
    assert builder.shape_transform[shape, 2] == -3.0
    field = builder.shape_source[shape]
    assert (field.hx, field.hy) == (2.0, 1.0)
    # MuJoCo reads the rows of the attribute from top to bottom, that is, from +y to -y.
    np.testing.assert_allclose(np.sort(field.heights.reshape(-1)), [0.0, 0.125, 0.25, 0.25, 0.375, 0.5])
    np.testing.assert_allclose(field.heights[:, 1], 0.25)


def test_height_field_has_the_surface_that_it_has_in_mujoco():
    """Between the grid points as well: rays of MuJoCo and of trimesh meet it at one height."""
    rng = np.random.default_rng(0)
    heights = rng.uniform(size=(6, 8))
    spec = mujoco.MjSpec()
    spec.add_hfield(name="rough", nrow=6, ncol=8, size=[2.0, 1.0, 0.5, 0.1], userdata=heights.ravel())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="rough")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    builder, _ = import_mjcf(spec)
    (field,) = builder.shape_source
    surface = trimesh.Trimesh(field.vertices, field.triangles, process=False)
    places = np.column_stack([rng.uniform(-1.95, 1.95, 60), rng.uniform(-0.95, 0.95, 60), np.full(60, 3.0)])
    down = np.array([0.0, 0.0, -1.0])
    points, rays, _ = surface.ray.intersects_location(places, np.tile(down, (60, 1)))
    met = {int(ray): point[2] for ray, point in zip(rays, points, strict=True)}
    for index, place in enumerate(places):
        distance = mujoco.mj_ray(model, data, place, down, None, 1, -1, np.zeros(1, dtype=np.int32))
        assert met[index] == pytest.approx(3.0 - distance, abs=1e-6)  # heights are in single precision


def test_sensors_are_a_note_only():
    """They move nothing, so nobody is warned, also of one that refers to nothing."""
    _, report = import_mjcf(pendulum(rest='<sensor><touch name="t" site="gone"/></sensor>'), strict=True)
    assert [entry.severity for entry in report.entries] == [ImportSeverity.NOTE]


LEGS = """<mujoco><worldbody><body name="trunk"><freejoint name="root"/><geom size="0.1"/>
    <body name="left"><joint name="l"/><geom name="lg" size="0.1"/>
      <body name="toe"><joint name="t"/><geom size="0.1"/></body></body>
    <body name="right"><joint name="r"/><geom name="rg" size="0.1"/></body></body></worldbody>
  <contact><exclude body1="left" body2="right"/></contact>
  <actuator><motor joint="l"/><motor name="keep" joint="r" gear="3"/></actuator>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.1 0.2 0.3" ctrl="1 2"/></keyframe></mujoco>"""


def test_ignored_body_takes_what_hangs_on_it():
    """Descendants, actuators and exclusions go with it; a keyframe that counts its joints is reported."""
    with pytest.warns(AssetWarning, match=r"keyframe \(home\): it cannot be used"):
        builder, report = import_mjcf(LEGS, ignore_names="left")
    assert not report.keyframes
    assert [label.rpartition("/")[2] for label in builder.body_label] == ["trunk", "right"]
    assert builder.joint_target_mode[-1] == JointTargetMode.EFFORT
    assert builder.joint_count == 2


def test_missing_visual_mesh_is_a_warning(tmp_path):
    """A mesh that only a picture needs may be missing; one that collides or weighs may not."""
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    picture = '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/>'
    asset = '<asset><mesh name="m" file="gone.stl"/></asset>'
    with pytest.warns(AssetWarning, match=r"missing visual mesh \(gone\.stl\): it is not drawn"):
        builder, _ = import_mjcf(pendulum(body=inertial + picture, rest=asset), strict=True)
    assert builder.shape_count == 1
    for body in (picture, inertial + '<geom type="mesh" mesh="m"/>'):
        with pytest.raises(AssetError, match=r"gone\.stl"):
            import_mjcf(pendulum(body=body, rest=asset))


def test_file_with_meshes_and_includes_is_read_from_anywhere(tmp_path, monkeypatch):
    """Meshes and includes are found beside the file, whatever the current directory."""
    (tmp_path / "parts" / "meshes").mkdir(parents=True)
    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "parts" / "meshes" / "brick.stl")
    (tmp_path / "parts" / "brick.xml").write_text(
        '<mujocoinclude><asset><mesh name="brick" file="brick.stl"/></asset></mujocoinclude>'
    )
    (tmp_path / "parts" / "robot.xml").write_text(
        '<mujoco><compiler meshdir="meshes"/><include file="brick.xml"/>'
        '<worldbody><body name="b"><freejoint/><geom type="mesh" mesh="brick"/></body></worldbody></mujoco>'
    )
    monkeypatch.chdir("/")
    builder, _ = import_mjcf(tmp_path / "parts" / "robot.xml", strict=True)
    assert builder.body_mass[0] == pytest.approx(1000 * 0.048, rel=1e-6)
    lower, upper = builder.meshes[0].aabb
    np.testing.assert_allclose(sorted(upper - lower), [0.2, 0.4, 0.6], atol=1e-6)


def test_geom_and_site_of_one_name_have_labels_of_their_own():
    builder, _ = import_mjcf(pendulum(body='<site name="rod" size="0.01"/>'))
    assert builder.shape_label == ["pendulum/worldbody/arm/rod", "pendulum/worldbody/arm/rod_2"]


def test_a_spec_is_imported_like_its_text_and_stays_as_it_is():
    """A `mujoco.MjSpec` gives the same bodies as the XML it was read from, and can be imported again."""
    xml = (
        '<mujoco model="pair"><default><default class="visual"><geom contype="0" conaffinity="0"/></default>'
        '</default><worldbody><body name="a"><freejoint/><geom size="0.1"/><geom class="visual" size="0.2"/>'
        '<body name="b" pos="0 0 0.3"><joint axis="0 1 0"/><geom type="box" size="0.1 0.1 0.1"/></body>'
        "</body></worldbody></mujoco>"
    )
    spec = mujoco.MjSpec.from_string(xml)
    before = spec.to_xml()
    builders = []
    for source in (xml, spec, spec):
        builder = ModelBuilder()
        builder.add_mjcf(source)
        builders.append(builder)
    assert spec.to_xml() == before
    for builder in builders[1:]:
        assert builder.body_label == builders[0].body_label
        for name in ("body_mass", "body_inertia", "joint_X_p", "shape_flags", "shape_scale"):
            np.testing.assert_array_equal(getattr(builder, name), getattr(builders[0], name))
    broken = mujoco.MjSpec()
    broken.modelname = "broken"
    broken.worldbody.add_body(name="empty", mass=-1.0, explicitinertial=True).add_freejoint()
    with pytest.raises(AssetError, match="MjSpec 'broken'"):
        ModelBuilder().add_mjcf(broken)
