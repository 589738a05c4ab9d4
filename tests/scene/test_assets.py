"""Robots from files in a scene."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pluriverse.importers.options import MjcfOptions, UrdfOptions, UsdOptions
from pluriverse.options import defaults_of
from pluriverse.scene import SapSceneLoaderError, SapUnsupportedSceneFeature, load_scene
from pluriverse.scene.assets import MjcfAsset, UrdfAsset, UsdAsset
from pluriverse.types import JointTargetMode, JointType, ShapeFlags

from .scene_files import load_text, write_scene

URDF = """<robot name="lamp">
  <link name="foot">
    <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><box size="0.2 0.2 0.2"/></geometry></visual>
    <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="foot"/><child link="shade"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/>
  </joint>
  <link name="shade">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision>
  </link>
</robot>
"""

MJCF = """<mujoco model="lamp"><worldbody>
  <body name="foot"><freejoint name="free"/><geom name="foot" type="box" size="0.1 0.1 0.1" friction="0.3"/>
    <body name="shade"><joint name="hinge" axis="0 1 0"/><geom name="shade" type="sphere" size="0.1"/></body>
  </body></worldbody></mujoco>
"""

SCENE = """
builder: {defaults: {shape: {ke: 5000}}}
assets:
  - id: lamp
    type: %s
    source: %s
    xform: {p: [0, 0, 0.5]}
    floating: true
"""


@pytest.mark.parametrize(("kind", "content"), [("urdf", URDF), ("mjcf", MJCF)])
def test_robots_from_files_beside_the_scene_or_from_text(tmp_path, monkeypatch, kind, content):
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "lamp.xml").write_text(content)
    # The current directory is elsewhere: paths count from the scene file.
    monkeypatch.chdir(tmp_path.parent)
    models = [
        load_text(tmp_path, SCENE % (kind, source)).model
        for source in ("robots/lamp.xml", "{path: robots/lamp.xml}", repr(" ".join(content.split())))
    ]
    for model in models:
        assert model.body_count == 2
        assert model.joint_type.numpy().tolist() == [JointType.FREE, JointType.REVOLUTE]
        np.testing.assert_allclose(model.joint_q.numpy()[:3], [0, 0, 0.5])
        np.testing.assert_array_equal(model.body_mass.numpy(), models[0].body_mass.numpy())


def test_a_fixed_base_is_the_default_of_urdf(tmp_path):
    model = load_text(
        tmp_path, SCENE.replace("floating: true", "") % ("urdf", repr(" ".join(URDF.split())))
    ).model
    assert model.joint_type.numpy().tolist() == [JointType.FIXED, JointType.REVOLUTE]


def test_types_are_read_in_any_case(tmp_path):
    assert load_text(tmp_path, SCENE % ("URDF", repr(" ".join(URDF.split())))).model.body_count == 2


def test_materials_of_the_scene_override_those_of_the_asset(tmp_path):
    """Friction of the file stays unless the scene names one; stiffness comes from the builder's defaults."""
    scene = SCENE % ("mjcf", repr(" ".join(MJCF.split())))
    model = load_text(tmp_path, "ground: false" + scene).model
    np.testing.assert_allclose(model.shape_material_mu.numpy(), [0.3, 1.0], rtol=2.0**-23)
    model = load_text(
        tmp_path, "ground: false" + scene + "    physics: {shape_mu: 0.7}\n    cfg: {ke: 300, margin: 0.01}\n"
    ).model
    np.testing.assert_allclose(model.shape_material_mu.numpy(), [0.7, 0.7], rtol=2.0**-23)
    np.testing.assert_allclose(model.shape_material_ke.numpy(), [300, 300])
    np.testing.assert_allclose(model.shape_margin.numpy(), [0.01, 0.01], rtol=2.0**-23)


def test_the_override_of_one_asset_ends_with_it(tmp_path):
    source = repr(" ".join(URDF.split()))
    text = (
        SCENE % ("urdf", source)
        + "    cfg: {mu: 0.25}\n"
        + f"  - {{id: other, type: urdf, source: {source}}}\n"
    )
    model = load_text(tmp_path, "ground: false" + text).model
    collides = (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES) != 0
    np.testing.assert_allclose(model.shape_material_mu.numpy()[collides], [0.25, 0.25, 1, 1])


def test_display_geometry_and_visibility(tmp_path):
    scene = SCENE % ("urdf", repr(" ".join(URDF.split())))

    def flags(*options):
        return load_text(
            tmp_path, "ground: false" + scene + "".join(f"    {o}\n" for o in options)
        ).model.shape_flags.numpy()

    assert len(flags()) == 3
    assert len(flags("load_visual_shapes: false")) == 2
    colliders = flags("force_show_colliders: true")
    assert ((colliders & ShapeFlags.VISIBLE) != 0).all()
    hidden = flags("hide_collision_shapes: true")
    assert ((hidden & ShapeFlags.VISIBLE) != 0).sum() == 1  # the display geometry


GRANDCHILD = """<mujoco><worldbody>
  <body name="foot"><freejoint/><geom size="0.1"/>
    <body name="neck" pos="0 0 0.3"><joint axis="1 0 0"/><geom size="0.1"/>
      <body name="shade" pos="0 0 0.3"><joint axis="0 1 0"/><geom size="0.1"/></body>
    </body>
  </body></worldbody></mujoco>
"""


def test_self_collisions_can_be_switched_off(tmp_path):
    """Of three links in a row, only the first and the last may collide: parent and child never do."""
    (tmp_path / "lamp.xml").write_text(GRANDCHILD)
    for allowed, pair_count in (("true", 1), ("false", 0)):
        text = f"ground: false\nassets: [{{type: mjcf, source: lamp.xml, enable_self_collisions: {allowed}}}]"
        assert len(load_text(tmp_path, text).model.templates[0].pair_shape0) == pair_count


def test_example_assets_are_those_of_the_installed_package(tmp_path, monkeypatch):
    """Found without importing it, and confined to its folder; without the package a feature is missing."""
    text = "assets: [{id: lamp, type: urdf, source: {examples_asset: %s}}]"
    monkeypatch.setitem(sys.modules, "newton", None)
    monkeypatch.delitem(sys.modules, "newton")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if not Path(place, "newton").is_dir()])
    with pytest.raises(
        SapUnsupportedSceneFeature, match=r"asset\['lamp'\] urdf source: .*pip install newton"
    ):
        load_text(tmp_path, text % "lamp.urdf")
    folder = tmp_path / "site" / "newton" / "examples" / "assets"
    folder.mkdir(parents=True)
    (folder / "lamp.urdf").write_text(URDF)
    (folder.parents[1] / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert load_text(tmp_path, text % "lamp.urdf").model.body_count == 2
    with pytest.raises(SapSceneLoaderError, match=r"no asset 'lamb.urdf'; did you mean lamp.urdf"):
        load_text(tmp_path, text % "lamb.urdf")
    with pytest.raises(SapSceneLoaderError, match=r"without '\.\.'"):
        load_text(tmp_path, text % "../../__init__.py")


def test_a_base_joint_holds_an_asset(tmp_path):
    """A lamp on a rail: it slides along y of its own pose."""
    scene = SCENE.replace(
        "floating: true", "base_joint: {type: prismatic, axis: y, limit_upper: 2, damping: 3}"
    )
    scene = scene % ("urdf", repr(" ".join(URDF.split())))
    model = load_text(tmp_path, scene).model
    assert model.joint_type.numpy().tolist() == [JointType.PRISMATIC, JointType.REVOLUTE]
    assert model.joint_limit_upper.numpy()[0] == 2.0
    assert model.joint_damping.numpy()[0] == 3.0
    np.testing.assert_allclose(model.joint_axis.numpy()[0], [0, 1, 0])


def test_a_base_joint_that_cannot_be_is_an_error_of_its_field(tmp_path):
    scene = SCENE % ("urdf", repr(" ".join(URDF.split())))
    with pytest.raises(SapSceneLoaderError, match=r"assets\[0\].base_joint: .*Leave floating out"):
        load_text(tmp_path, scene + "    base_joint: {type: fixed}\n")
    scene = scene.replace("floating: true", "")
    with pytest.raises(SapSceneLoaderError, match=r"assets\[0\].base_joint: .*no 'target_kd'"):
        load_text(tmp_path, scene + "    base_joint: {type: ball, target_kd: 1}\n")
    with pytest.raises(SapSceneLoaderError, match=r"assets\[0\].base_joint.type: 'd7'"):
        load_text(tmp_path, scene + "    base_joint: {type: d7}\n")


def test_what_an_importer_cannot_do_is_a_feature_of_the_scene(tmp_path):
    """A tendon of a MuJoCo model is named with the asset, and raises when strict."""
    tendon = '<tendon><spatial name="rope"><site site="a"/><site site="b"/></spatial></tendon>'
    sites = '<site name="a" pos="0 0 0.2"/><site name="b" pos="0 0 0.4"/>'
    text = MJCF.replace("</worldbody>", f"{sites}</worldbody>{tendon}")
    scene = SCENE % ("mjcf", repr(" ".join(text.split())))
    with pytest.raises(SapUnsupportedSceneFeature, match=r"asset\['lamp'\] mjcf .*tendon"):
        load_text(tmp_path, scene)
    assert "tendon" in load_text(tmp_path, scene, strict=False).unsupported_features[0]


def test_an_error_in_an_asset_names_scene_and_asset(tmp_path):
    (tmp_path / "lamp.urdf").write_text(URDF.replace('<mass value="2"/>', '<mass value="-2"/>'))
    with pytest.raises(SapSceneLoaderError, match=r"scene\.yaml:6: assets\[0\]\.source: .*lamp\.urdf.*-2"):
        load_text(tmp_path, SCENE % ("urdf", "lamp.urdf"))


@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml"])
def test_real_robots(tmp_path, robot_assets, name):
    """Robots from outside load strictly, and the scene sets their drives."""
    text = f"""
    assets:
      - {{id: robot, type: mjcf, source: {robot_assets / name}}}
    post_build:
      - {{op: set_joint_targets, range: from:6, ke: 100, kd: 5}}
    """
    scene = write_scene(tmp_path, text)
    with pytest.raises(SapSceneLoaderError, match="lies outside of the folders"):
        load_scene(scene, device="cpu")
    model = load_scene(scene, device="cpu", asset_roots=[robot_assets]).model
    assert model.joint_dof_count >= 18
    assert (model.joint_target_ke.numpy()[6:] == 100).all()


def quaternion_about(axis, angle):
    return [*(np.sin(angle / 2) * np.array(axis)), np.cos(angle / 2)]


@pytest.mark.parametrize(
    ("up", "turn"),
    [("y", quaternion_about([1, 0, 0], np.pi / 2)), ("x", quaternion_about([0, 1, 0], -np.pi / 2))],
)
@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_an_asset_that_is_not_z_up_is_turned_upright(tmp_path, kind, up, turn):
    """What points along its up axis points along z; the pose of the scene is on top of that."""
    content = repr(" ".join((URDF if kind == "urdf" else MJCF).split()))
    model = load_text(tmp_path, SCENE % (kind, content) + f"    up_axis: {up}\n").model
    pose = model.joint_q.numpy()[:7]
    np.testing.assert_allclose(pose[:3], [0, 0, 0.5], atol=1e-7)
    np.testing.assert_allclose(pose[3:], turn, atol=1e-6)
    axis = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0]}[up]
    vector, w = pose[3:6], pose[6]
    turned = axis + 2.0 * np.cross(vector, np.cross(vector, axis) + w * np.array(axis))
    np.testing.assert_allclose(turned, [0, 0, 1], atol=1e-6)


def test_an_arm_is_mounted_on_a_body_of_an_earlier_asset(tmp_path):
    """Its base stands at `xform` in the frame of that body and moves with it."""
    base = repr(" ".join(URDF.split()))
    arm = repr(" ".join(URDF.replace('name="lamp"', 'name="arm"').split()))
    text = f"""
assets:
  - {{id: base, type: urdf, source: {base}, floating: true, xform: {{p: [1, 0, 2]}}}}
  - {{id: arm, type: urdf, source: {arm}, parent_body: lamp/shade, xform: {{p: [0, 0, 0.3]}}}}
"""
    model = load_text(tmp_path, text).model
    foot = model.body_label.index("arm/foot")
    shade = model.body_label.index("lamp/shade")
    joint = model.joint_child.numpy().tolist().index(foot)
    assert model.joint_parent.numpy()[joint] == shade
    body_q = model.body_q.numpy()
    np.testing.assert_allclose(body_q[foot, :3], body_q[shade, :3] + [0, 0, 0.3], atol=1e-6)


def test_an_asset_that_floats_cannot_be_mounted(tmp_path):
    base = repr(" ".join(URDF.split()))
    text = f"""
assets:
  - {{id: base, type: urdf, source: {base}}}
  - {{id: arm, type: urdf, source: {base}, floating: true, parent_body: lamp/shade}}
"""
    with pytest.raises(SapSceneLoaderError, match=r"assets\[1\].parent_body: .*floating=False"):
        load_text(tmp_path, text)


def test_override_root_xform_places_the_first_body(tmp_path):
    """Whatever its pose in the file; without, the pose of the scene is that of the file's origin."""
    content = repr(" ".join(MJCF.replace('name="foot">', 'name="foot" pos="3 0 0" euler="0 0 90">').split()))
    text = f"assets: [{{type: mjcf, source: {content}, xform: {{p: [0, 0, 1]}}}}]"
    np.testing.assert_allclose(load_text(tmp_path, text).model.joint_q.numpy()[:3], [3, 0, 1], atol=1e-6)
    text = text.replace("xform:", "override_root_xform: true, xform:")
    pose = load_text(tmp_path, text).model.joint_q.numpy()[:7]
    np.testing.assert_allclose(pose, [0, 0, 1, 0, 0, 0, 1], atol=1e-6)


@pytest.mark.parametrize("place", ["builder", "asset"])
def test_assets_keep_what_they_say_about_mujoco(tmp_path, place):
    """With register_mujoco_custom_attributes, what only MuJoCo knows of an asset reaches its model there."""
    from pluriverse.solvers.mujoco import SolverMuJoCo

    (tmp_path / "lamp.xml").write_text(MJCF.replace('type="sphere"', 'type="sphere" condim="6"'))
    flag = "register_mujoco_custom_attributes: true"
    builder = f"builder: {{{flag}}}\n" if place == "builder" else ""
    asset = f"    {flag}\n" if place == "asset" else ""
    lamp = f"  - id: lamp\n    type: mjcf\n    source: lamp.xml\n{asset}"
    text = f"{builder}replicate: {{num_worlds: 2}}\nassets:\n{lamp}"
    scene = load_text(tmp_path, text)
    (group,) = SolverMuJoCo(scene.model).groups
    assert sorted(group.model.geom_condim.tolist()) == [3, 3, 6]  # ground, foot, shade
    # Without it the scene names what would be lost.
    with pytest.raises(SapUnsupportedSceneFeature, match="torsional and rolling friction"):
        load_text(tmp_path, text.replace("true", "false"))


def test_bodies_are_in_the_order_of_joints_or_of_the_file(tmp_path):
    """The shade stands before the foot in this file, and hangs below it."""
    foot, rest = URDF.split("<joint", 1)
    joint, shade = rest.split("<link", 1)
    head = '<robot name="lamp">'
    swapped = f"{head}<link{shade.replace('</robot>', '')}{foot.replace(head, '')}<joint{joint}</robot>"
    text = SCENE % ("urdf", repr(" ".join(swapped.split())))
    assert load_text(tmp_path, text).body_labels == ["lamp/foot", "lamp/shade"]
    scene = load_text(tmp_path, text + "    bodies_follow_joint_ordering: false\n")
    assert scene.body_labels == ["lamp/shade", "lamp/foot"]
    # The same mechanism: the free joint first, at the same place.
    assert scene.model.joint_type.numpy().tolist() == [JointType.FREE, JointType.REVOLUTE]
    np.testing.assert_allclose(scene.state.body_q.numpy()[1, :3], [0, 0, 0.5], atol=1e-6)


@pytest.mark.parametrize(
    ("asset", "options"), [(MjcfAsset, MjcfOptions), (UrdfAsset, UrdfOptions), (UsdAsset, UsdOptions)]
)
def test_scenes_have_the_options_of_the_importers_with_their_defaults(asset, options):
    """What a script passes to an importer, a scene says by the same name; the defaults agree."""
    # Whether losses raise is asked of the whole scene; some defaults are written otherwise in a document.
    defaults = {name: default for name, default in defaults_of(options).items() if name != "strict"}
    written = {"xform", "keyframe", "mesh_scale", "package_dirs"}
    assert [name for name in defaults if name not in asset.model_fields] == []
    for name in defaults.keys() - written:
        default = asset.model_fields[name].get_default(call_default_factory=True)
        assert default == (list(defaults[name]) if isinstance(defaults[name], tuple) else defaults[name]), (
            name
        )


@pytest.mark.parametrize(("kind", "content"), [("urdf", URDF), ("mjcf", MJCF)])
def test_a_scene_gives_drives_to_joints_that_have_none(tmp_path, kind, content):
    """`drive_gains` and `effort_limit`, for all joints or by name; a name that finds none is refused."""
    scene = SCENE % (kind, repr(" ".join(content.split())))
    for gains, limits in (("[40, 2]", "3"), ("{hin*: [40, 2]}", "{hinge: 3}")):
        model = load_text(tmp_path, f"{scene}    drive_gains: {gains}\n    effort_limit: {limits}\n").model
        assert model.joint_target_ke.numpy()[-1] == 40.0
        assert model.joint_target_kd.numpy()[-1] == 2.0
        assert model.joint_target_mode.numpy()[-1] == JointTargetMode.POSITION
        assert model.joint_effort_limit.numpy()[-1] == (3.0 if kind == "mjcf" or "{" in limits else 5.0)
    with pytest.raises(SapSceneLoaderError, match="drive_gains names 'elbow', but no joint is called so"):
        load_text(tmp_path, f"{scene}    drive_gains: {{elbow: [40, 2]}}\n")
    with pytest.raises(SapSceneLoaderError, match="drive_gains"):
        load_text(tmp_path, f"{scene}    drive_gains: stiff\n")
