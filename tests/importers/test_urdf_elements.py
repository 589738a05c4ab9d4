"""What becomes of URDF elements: inertias, joints, limits, losses, shapes, meshes, labels, options."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from pluriverse.geometry import quat_to_matrix
from pluriverse.importers import (
    AssetError,
    AssetFileError,
    AssetWarning,
    ImportSeverity,
    UnsupportedAssetError,
)
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import GeoType, JointType, ShapeFlags

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>'


def import_urdf(text, **options):
    builder = ModelBuilder()
    return builder, builder.add_urdf(text, **options)


def arm(joint='type="revolute"', inside='<axis xyz="0 0 1"/>', link="", rest=""):
    return f"""<robot name="arm"><link name="base">{INERTIAL}</link><link name="tip">{link or INERTIAL}</link>
      <joint name="elbow" {joint}><parent link="base"/><child link="tip"/>{inside}</joint>{rest}</robot>"""


def test_rotated_inertial_is_r_i_rt():
    """diag(1, 2, 3) rolled by 90 degrees is diag(1, 3, 2), at the rotated centre of mass."""
    link = """<inertial><origin xyz="0.1 0.2 0.3" rpy="1.5707963267948966 0 0"/><mass value="2"/>
      <inertia ixx="1" iyy="2" izz="3"/></inertial>"""
    builder, _ = import_urdf(arm(link=link))
    np.testing.assert_allclose(builder.body_inertia[1], np.diag([1.0, 3.0, 2.0]), atol=1e-12)
    np.testing.assert_allclose(builder.body_com[1], [0.1, 0.2, 0.3])


def test_inertial_with_products_and_any_rotation():
    """R I Rᵀ with the roll, pitch, yaw convention of URDF (fixed axes)."""
    roll, pitch, yaw = 0.3, -0.5, 1.1
    link = f"""<inertial><origin rpy="{roll} {pitch} {yaw}"/><mass value="2"/>
      <inertia ixx="1" iyy="1.2" izz="1.4" ixy="0.1" ixz="-0.2" iyz="0.05"/></inertial>"""
    builder, _ = import_urdf(arm(link=link))
    matrix = np.array([[1, 0.1, -0.2], [0.1, 1.2, 0.05], [-0.2, 0.05, 1.4]])
    turn = trimesh.transformations.euler_matrix(roll, pitch, yaw, "sxyz")[:3, :3]
    np.testing.assert_allclose(builder.body_inertia[1], turn @ matrix @ turn.T, atol=1e-12)


def test_limits_and_losses_are_carried_over():
    inside = """<axis xyz="0 2 0"/><limit lower="-0.5" upper="1.5" effort="20" velocity="3"/>
      <dynamics damping="0.7" friction="0.2"/>"""
    builder, _ = import_urdf(arm(inside=inside), strict=True)
    assert builder.joint_limit_lower[0] == -0.5
    assert builder.joint_limit_upper[0] == 1.5
    assert builder.joint_effort_limit[0] == 20.0
    assert builder.joint_velocity_limit[0] == 3.0
    assert builder.joint_damping[0] == pytest.approx(0.7)
    assert builder.joint_friction[0] == pytest.approx(0.2)
    np.testing.assert_allclose(builder.joint_axis[0], [0.0, 1.0, 0.0])


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous", "planar"])
def test_an_infinite_limit_is_no_limit(kind):
    inside = """<axis xyz="0 0 1"/><limit lower="-inf" upper="0.5" effort="inf" velocity="Infinity"/>"""
    builder, report = import_urdf(arm(f'type="{kind}"', inside=inside), effort_limit=7.0, strict=True)
    assert report.repairs == []
    assert builder.joint_limit_lower[0] == -np.inf
    assert builder.joint_limit_upper[0] == (np.inf if kind == "continuous" else 0.5)
    assert builder.joint_velocity_limit[0] == np.inf
    assert builder.joint_effort_limit[0] == 7.0  # the option gives what the file does not
    builder.finalize("cpu")
    for wrong in ("nan", "inf"):
        with pytest.raises(AssetError, match=rf"<limit> of joint 'elbow' .*lower is '{wrong}', but one"):
            import_urdf(arm(f'type="{kind}"', inside=inside.replace("-inf", wrong).replace("0.5", "inf")))


def test_default_joint_configuration_fills_in_what_urdf_does_not_say():
    builder = ModelBuilder()
    builder.default_joint_cfg.armature = 0.03
    builder.default_joint_cfg.limit_ke = 5e5
    builder.default_joint_cfg.damping = 0.4
    builder.default_joint_cfg.target_ke = 80.0
    builder.add_urdf(arm())
    assert builder.joint_armature[0] == 0.03
    assert builder.joint_limit_ke[0] == 5e5
    assert builder.joint_damping[0] == 0.4
    assert builder.joint_target_ke[0] == 80.0


def test_default_armature_moves_a_joint_without_inertia():
    """A point mass on its own axis cannot be turned, unless the joint has an armature."""
    builder = ModelBuilder()
    builder.default_joint_cfg.armature = 0.01
    point = '<inertial><mass value="1"/><inertia ixx="0" iyy="0" izz="0"/></inertial>'
    builder.add_urdf(arm(link=point))
    builder.finalize("cpu")


def test_damping_of_zero_is_not_the_default():
    builder = ModelBuilder()
    builder.default_joint_cfg.damping = 0.4
    builder.add_urdf(arm(inside='<axis xyz="0 0 1"/><dynamics damping="0"/>'))
    assert builder.joint_damping[0] == 0.0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("revolute", JointType.REVOLUTE),
        ("continuous", JointType.REVOLUTE),
        ("prismatic", JointType.PRISMATIC),
        ("fixed", JointType.FIXED),
        ("floating", JointType.FREE),
    ],
)
def test_joint_types(kind, expected):
    inside = '<origin xyz="0.1 0.2 0.3" rpy="0 0 0.5"/><axis xyz="0 0 1"/>'
    builder, _ = import_urdf(arm(joint=f'type="{kind}"', inside=inside), xform=((0, 0, 1), (0, 0, 0, 1)))
    assert JointType(int(builder.joint_type[1])) is expected
    pose = builder.finalize("cpu").body_q.numpy()[1]
    np.testing.assert_allclose(pose[:3], [0.1, 0.2, 1.3], atol=1e-6)
    np.testing.assert_allclose(pose[3:], [0.0, 0.0, np.sin(0.25), np.cos(0.25)], atol=1e-6)


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize(
    ("limits", "is_reported"),
    [
        ('lower="-1" upper="1"', True),
        ('upper="1"', True),
        ("", False),
        ('lower="0" upper="0"', False),
        ('lower="-3.14" upper="3.14"', False),
    ],
)
def test_continuous_joint_has_no_limits(limits, is_reported):
    """A range of less than a turn may have been meant, and is reported."""
    inside = f'<axis xyz="0 0 1"/><limit {limits} effort="1" velocity="1"/>'
    builder, report = import_urdf(arm(joint='type="continuous"', inside=inside))
    assert np.isinf(builder.joint_limit_lower[0])
    assert ("range of a continuous joint" in [entry.feature for entry in report.entries]) == is_reported


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("0 0 1", [[1, 0, 0], [0, 1, 0]]),
        ("1 0 0", [[0, 0, -1], [0, 1, 0]]),
        ("0 3 0", [[0, 0, 1], [1, 0, 0]]),
    ],
)
def test_planar_joint_slides_in_its_plane(axis, expected):
    """Two linear axes make a right-handed frame with the normal; limits in metres hold for both."""
    inside = f'<axis xyz="{axis}"/><limit lower="-0.5" upper="1.5" effort="20"/><dynamics damping="0.7"/>'
    builder, report = import_urdf(arm('type="planar"', inside=inside), scale=2.0)
    joint = builder.joint_label.index("arm/elbow")
    assert builder.joint_type[joint] == JointType.D6
    assert builder.joint_dof_dim[joint].tolist() == [2, 0]
    np.testing.assert_allclose(builder.joint_axis, expected, atol=1e-15)
    assert builder.joint_limit_lower.tolist() == [-1.0, -1.0]
    assert builder.joint_limit_upper.tolist() == [3.0, 3.0]
    assert builder.joint_effort_limit.tolist() == [20.0, 20.0]
    assert builder.joint_damping.tolist() == [0.7, 0.7]
    assert [entry.severity for entry in report.entries] == [ImportSeverity.NOTE]


def test_planar_joint_across_a_skew_axis():
    """The axes are unit vectors perpendicular to the normal and to each other."""
    builder, _ = import_urdf(arm('type="planar"', inside='<axis xyz="1 2 -2"/>'))
    frame = np.vstack([builder.joint_axis, np.array([1.0, 2.0, -2.0]) / 3.0])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) == pytest.approx(1.0)


def test_planar_joint_turns_on_request():
    """A third axis, the normal, without the limits of the slides and their speed."""
    inside = '<axis xyz="0 0 1"/><limit lower="-0.5" upper="1.5" effort="20" velocity="3"/>'
    builder, report = import_urdf(arm('type="planar"', inside=inside), planar_joints_turn=True)
    joint = builder.joint_label.index("arm/elbow")
    assert builder.joint_dof_dim[joint].tolist() == [2, 1]
    np.testing.assert_allclose(builder.joint_axis, np.eye(3), atol=1e-15)
    assert builder.joint_limit_upper.tolist() == [1.5, 1.5, np.inf]
    assert builder.joint_velocity_limit[:2].tolist() == [3.0, 3.0]
    assert builder.joint_effort_limit.tolist() == [20.0] * 3
    assert report.entries == []


def test_fixed_joints_may_be_kept_from_collapsing():
    """What hangs on a kept joint stays a body; the report says where merged links are in theirs."""
    rest = f"""<link name="tool">{INERTIAL}</link><link name="lens">{INERTIAL}</link>
      <joint name="kept" type="fixed" dont_collapse="true"><parent link="tip"/><child link="tool"/>
      <origin xyz="0 0 0.1"/></joint>
      <joint name="weld" type="fixed"><parent link="tool"/><child link="lens"/>
      <origin xyz="0.2 0 0"/></joint>"""
    builder, report = import_urdf(arm(rest=rest), collapse_fixed_joints=True)
    assert builder.body_label == ["arm/base", "arm/tip", "arm/tool"]
    assert report.merged_links == {"arm/lens": "arm/tool"}
    np.testing.assert_allclose(report.merged_poses["arm/lens"], [0.2, 0, 0, 0, 0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(builder.body_mass, [1.0, 1.0, 2.0])


def test_base_is_fixed_or_floating():
    fixed, _ = import_urdf(arm())
    floating, _ = import_urdf(arm(), floating=True, xform=((1, 2, 3), (0, 0, 1, 0)))
    assert fixed.joint_label == ["arm/fixed_base", "arm/elbow"]
    assert floating.joint_label == ["arm/floating_base", "arm/elbow"]
    assert fixed.body_label == ["arm/base", "arm/tip"]
    assert fixed.articulation_label == ["arm"]
    np.testing.assert_allclose(floating.joint_q[:7], [1, 2, 3, 0, 0, 1, 0])


def box(size="0.2 0.4 0.6", tag="collision", name=""):
    return f'<{tag}{name}><origin xyz="0.1 0 0"/><geometry><box size="{size}"/></geometry></{tag}>'


def test_collisions_and_visuals_become_shapes():
    """Several per link, half extents, names, colours from the robot's materials, hidden colliders."""
    link = (
        INERTIAL
        + box(name=' name="hull"')
        + '<collision><geometry><sphere radius="0.3"/></geometry></collision>'
    )
    link += """<collision><geometry><cylinder radius="0.1" length="0.5"/></geometry></collision>
      <visual><geometry><box size="1 1 1"/></geometry><material name="sky"/></visual>"""
    text = arm(link=link, rest='<material name="sky"><color rgba="0.1 0.2 0.9 1"/></material>')
    builder, _ = import_urdf(text)
    assert builder.shape_label == [f"arm/tip/{n}" for n in ("hull", "collision_1", "collision_2", "visual_0")]
    assert [GeoType(int(kind)) for kind in builder.shape_type] == [
        GeoType.BOX,
        GeoType.SPHERE,
        GeoType.CYLINDER,
        GeoType.BOX,
    ]
    np.testing.assert_allclose(
        builder.shape_scale, [[0.1, 0.2, 0.3], [0.3, 0, 0], [0.1, 0.25, 0], [0.5, 0.5, 0.5]]
    )
    np.testing.assert_allclose(builder.shape_color[3], [0.1, 0.2, 0.9], atol=1e-6)
    assert [int(flag) & int(ShapeFlags.COLLIDE_SHAPES) for flag in builder.shape_flags] == [2, 2, 2, 0]
    assert [int(flag) & int(ShapeFlags.VISIBLE) for flag in builder.shape_flags] == [0, 0, 0, 1]
    assert builder.body_mass[1] == 1.0  # the shapes add nothing to an authored mass
    shown, _ = import_urdf(text, force_show_colliders=True)
    assert [int(flag) & int(ShapeFlags.VISIBLE) for flag in shown.shape_flags] == [1, 1, 1, 1]
    bare, _ = import_urdf(text, load_visual_shapes=False)
    assert len(bare.shape_label) == 3
    swapped, _ = import_urdf(text, parse_visuals_as_colliders=True)
    assert swapped.shape_label == ["arm/tip/visual_0"]
    assert int(swapped.shape_flags[0]) & int(ShapeFlags.COLLIDE_SHAPES)


def test_link_without_inertial_weighs_as_its_colliders():
    """Box of the default density, with centre of mass at its origin."""
    builder = ModelBuilder()
    builder.default_shape_cfg.density = 500.0
    builder.add_urdf(arm(link=box() + box(tag="visual")))
    assert builder.body_mass[1] == pytest.approx(500.0 * 0.048)
    np.testing.assert_allclose(builder.body_com[1], [0.1, 0.0, 0.0])
    builder.add_urdf(arm(link=INERTIAL + box()), ignore_inertial_definitions=True)
    assert builder.body_mass[3] == pytest.approx(500.0 * 0.048)


def test_massless_frames_welded_to_links_are_fine():
    """A welded link without mass or shape neither moves nor breaks the model, kept or merged."""
    rest = """<link name="flange"/><link name="tool"/>
      <joint name="a" type="fixed"><origin xyz="0 0 1"/><parent link="tip"/><child link="flange"/></joint>
      <joint name="b" type="fixed"><origin xyz="0 0 1"/><parent link="flange"/><child link="tool"/></joint>"""
    kept, _ = import_urdf(arm(rest=rest))
    np.testing.assert_allclose(kept.finalize("cpu").body_q.numpy()[3, :3], [0, 0, 2])
    merged, report = import_urdf(arm(rest=rest), collapse_fixed_joints=True)
    assert merged.body_label == ["arm/base", "arm/tip"]
    assert report.merged_links == {"arm/flange": "arm/tip", "arm/tool": "arm/tip"}
    merged.finalize("cpu")


def test_massless_link_between_joints_is_fine():
    """A universal joint: two hinges with a link without mass between them."""
    rest = f"""<link name="end">{INERTIAL}</link><joint name="second" type="revolute"><axis xyz="0 1 0"/>
      <parent link="tip"/><child link="end"/></joint>"""
    builder, _ = import_urdf(arm(rest=rest).replace(f'"tip">{INERTIAL}', '"tip">'))
    builder.finalize("cpu")


@pytest.fixture(scope="module")
def wedge():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.2, 0.2]])
    return trimesh.convex.convex_hull(points)


def mesh_link(name, tag="collision", scale=""):
    return f'<{tag}><geometry><mesh filename="{name}" {scale}/></geometry></{tag}>'


@pytest.mark.parametrize("suffix", ["stl", "obj", "dae"])
@pytest.mark.parametrize("reference", ["meshes/part.{}", "package://my_robot/meshes/part.{}", "file://{}"])
def test_meshes_are_found_and_read(tmp_path, wedge, suffix, reference):
    """Relative, package and file references to three formats become convex hulls of the scaled size."""
    folder = tmp_path / "my_robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    wedge.export(folder / "meshes" / f"part.{suffix}")
    where = folder if reference.startswith("meshes") else folder / "urdf"
    name = reference.format(folder / "meshes" / f"part.{suffix}" if "file" in reference else suffix)
    (where / "robot.urdf").write_text(arm(link=INERTIAL + mesh_link(name, scale='scale="2 3 -4"')))
    builder, _ = import_urdf(where / "robot.urdf", strict=True, scale=0.5)
    assert builder.shape_type[0] == GeoType.CONVEX_MESH
    assert len(builder.meshes[0].vertices) == 4
    np.testing.assert_allclose(builder.meshes[0].aabb, [[0, 0, -2], [1, 1.5, 0]], atol=1e-6)


@pytest.mark.parametrize(
    "reference", ["file://meshes/part.stl", "file:///meshes/part.stl", "model://bot/part.stl"]
)
def test_meshes_are_found_by_the_references_of_gazebo(tmp_path, wedge, reference):
    """Converters strip a package from a URL and leave a relative path behind it; models lie in a folder."""
    (tmp_path / "bot" / "meshes").mkdir(parents=True)
    wedge.export(tmp_path / "bot" / "meshes" / "part.stl")
    wedge.export(tmp_path / "bot" / "part.stl")
    (tmp_path / "bot" / "robot.urdf").write_text(arm(link=INERTIAL + mesh_link(reference)))
    builder, _ = import_urdf(tmp_path / "bot" / "robot.urdf", strict=True)
    assert builder.shape_type[0] == GeoType.CONVEX_MESH


def test_sdf_child_lets_a_mesh_collide_as_it_is(tmp_path):
    """An `<sdf>` next to the geometry keeps the triangles, with the resolution given, and their mass."""
    ring = trimesh.creation.torus(0.3, 0.1, 24, 12)
    ring.export(tmp_path / "ring.stl")
    collision = '<collision><geometry><mesh filename="ring.stl"/></geometry>{}</collision>'
    for sdf, resolution in (('<sdf resolution="128"/>', 128), ("<sdf/>", 64), ("", None)):
        (tmp_path / "robot.urdf").write_text(arm(link=collision.format(sdf)))
        builder, _ = import_urdf(tmp_path / "robot.urdf", strict=True)
        if resolution is None:
            assert builder.shape_type[0] == GeoType.CONVEX_MESH
            continue
        assert builder.shape_type[0] == GeoType.MESH
        assert builder.shape_flags[0] & ShapeFlags.COLLIDE_SHAPES
        assert builder.meshes[0].signed_distance().cell == pytest.approx(0.8 / resolution, rel=1e-5)
        assert builder.body_mass[1] == pytest.approx(1000.0 * ring.volume, rel=1e-4)
    (tmp_path / "robot.urdf").write_text(arm(link=collision.format('<sdf resolution="fine"/>')))
    with pytest.raises(AssetError, match="resolution of the signed distance is fine"):
        import_urdf(tmp_path / "robot.urdf")
    (tmp_path / "robot.urdf").write_text(arm(link=collision.format('<sdf resolution="4096"/>')))
    with pytest.warns(AssetWarning, match="sdf resolution 4096"):
        import_urdf(tmp_path / "robot.urdf")


def test_packages_can_be_given(tmp_path, wedge):
    """By name, or as the folder that contains them, when the file itself is elsewhere (or only text)."""
    (tmp_path / "packages" / "parts" / "meshes").mkdir(parents=True)
    wedge.export(tmp_path / "packages" / "parts" / "meshes" / "part.stl")
    text = arm(link=INERTIAL + mesh_link("package://parts/meshes/part.stl"))
    for packages in (
        [tmp_path / "packages"],
        {"parts": tmp_path / "packages" / "parts"},
        [tmp_path / "packages/parts"],
    ):
        builder, _ = import_urdf(text, package_dirs=packages)
        assert len(builder.meshes) == 1
    with pytest.raises(AssetFileError, match=r"part\.stl.*package_dirs"):
        import_urdf(text)


def test_missing_visual_mesh_is_a_warning_and_missing_collision_mesh_an_error(tmp_path):
    """The first costs a picture, also in strict mode; the second would change contact."""
    visual = arm(link=INERTIAL + mesh_link("gone.stl", tag="visual"))
    with pytest.warns(AssetWarning, match=r"missing visual mesh \(gone\.stl\): it is not drawn"):
        _, report = import_urdf(visual, strict=True)
    assert ImportSeverity.WARNING in [entry.severity for entry in report.entries]
    with pytest.raises(AssetFileError, match=r"link 'tip'.*gone\.stl.*not at.*Add the file") as error:
        import_urdf(arm(link=INERTIAL + mesh_link("gone.stl")))
    assert error.value.value == "gone.stl"


def test_one_mesh_used_twice_is_stored_once(tmp_path, wedge):
    wedge.export(tmp_path / "part.stl")
    link = INERTIAL + mesh_link("part.stl") + mesh_link("part.stl") + mesh_link("part.stl", tag="visual")
    (tmp_path / "robot.urdf").write_text(arm(link=link))
    builder, _ = import_urdf(tmp_path / "robot.urdf")
    assert [int(source) for source in builder.shape_source_index] == [
        0,
        0,
        1,
    ]  # the hull, and the mesh itself


def test_long_text_is_no_path():
    """URDF text longer than any path limit is text."""
    rest = "".join(f'<material name="m{number}"><color rgba="1 0 0 1"/></material>' for number in range(2000))
    assert len(rest) > 2**16
    builder, report = import_urdf(arm(rest=rest))
    assert builder.body_count == 2
    assert report.source == "URDF text"


def test_text_may_begin_with_a_declaration_and_a_comment():
    builder, _ = import_urdf('\ufeff<?xml version="1.0"?>\n<!-- hi -->' + arm())
    assert builder.body_count == 2


@pytest.mark.parametrize("ordering", ["dfs", "bfs", None])
def test_joint_ordering(ordering):
    names = ["base", "a1", "a2", "b1", "b2"]
    links = "".join(f'<link name="{name}">{INERTIAL}</link>' for name in names)
    joints = [("jb1", "base", "b1"), ("ja2", "a1", "a2"), ("ja1", "base", "a1"), ("jb2", "b1", "b2")]
    body = "".join(
        f'<joint name="{n}" type="continuous"><parent link="{p}"/><child link="{c}"/></joint>'
        for n, p, c in joints
    )
    builder, _ = import_urdf(f'<robot name="r">{links}{body}</robot>', joint_ordering=ordering)
    expected = {
        "dfs": ["jb1", "jb2", "ja1", "ja2"],
        "bfs": ["jb1", "ja1", "jb2", "ja2"],
        None: ["jb1", "ja1", "ja2", "jb2"],  # as in the file, but ja2 waits for its parent
    }[ordering]
    assert [label.rpartition("/")[2] for label in builder.joint_label[1:]] == expected


def test_neighbours_do_not_collide_and_self_collisions_can_be_switched_off():
    """Links across one joint are filtered (welded ones count as one); others only on request."""
    rest = f"""<link name="plate">{INERTIAL}{box()}</link><link name="end">{INERTIAL}{box()}</link>
      <joint name="w" type="fixed"><parent link="tip"/><child link="plate"/></joint>
      <joint name="second" type="revolute"><axis xyz="0 1 0"/>
      <parent link="plate"/><child link="end"/></joint>"""
    text = arm(link=INERTIAL + box(), rest=rest).replace(f'"base">{INERTIAL}', f'"base">{INERTIAL}{box()}')

    def pairs(**options):
        builder, _ = import_urdf(text, **options)
        topology = builder.finalize("cpu").topology
        names = [label.split("/")[1] for label in builder.shape_label]
        codes = zip(topology.pair_shape0.numpy(), topology.pair_shape1.numpy(), strict=True)
        return {frozenset(names[code if code >= 0 else -1 - code] for code in pair) for pair in codes}

    assert pairs() == {frozenset(("base", "end"))}
    assert pairs(enable_self_collisions=False) == set()


REPORTED = {
    "<mimic>": (arm(inside='<axis xyz="0 0 1"/><mimic joint="elbow"/>'), ImportSeverity.LOSS),
    "<loop_joint>": (arm(rest='<loop_joint name="l"/>'), ImportSeverity.LOSS),
    "<transmission>": (arm(rest='<transmission name="t"/>'), ImportSeverity.NOTE),
    "<gazebo>": (arm(rest='<gazebo reference="tip"/>'), ImportSeverity.NOTE),
    "<safety_controller>": (
        arm(inside='<axis xyz="0 0 1"/><safety_controller k_velocity="1"/>'),
        ImportSeverity.NOTE,
    ),
    "missing limits": (arm(), ImportSeverity.NOTE),
    "position 0 outside the limits": (
        arm(inside='<limit effort="1" velocity="1" lower="1" upper="2"/>'),
        ImportSeverity.NOTE,
    ),
}


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize("feature", REPORTED)
def test_what_has_no_counterpart_is_reported(feature):
    text, severity = REPORTED[feature]
    _, report = import_urdf(text)
    assert (feature, severity) in [(entry.feature, entry.severity) for entry in report.entries]
    if severity is ImportSeverity.LOSS:
        with pytest.raises(UnsupportedAssetError, match=feature):
            import_urdf(text, strict=True)
    else:
        import_urdf(text, strict=True)


def test_roll_pitch_and_yaw_turn_about_fixed_axes():
    """The origin of a joint with all three angles is Rz(yaw) Ry(pitch) Rx(roll)."""
    text = arm(inside='<origin xyz="0.1 0.2 0.3" rpy="0.4 -0.7 2.5"/><axis xyz="0 0 1"/>')
    builder = ModelBuilder()
    builder.add_urdf(text)
    pose = np.array(builder.joint_X_p[builder.joint_count - 1], dtype=np.float64)
    np.testing.assert_allclose(pose[:3], [0.1, 0.2, 0.3], atol=1e-7)
    expected = Rotation.from_euler("xyz", [0.4, -0.7, 2.5])
    np.testing.assert_allclose(quat_to_matrix(pose[3:]), expected.as_matrix(), atol=1e-6)


@pytest.mark.parametrize("attribute", ["multiplier", "offset"])
def test_a_mimic_of_no_number_is_an_error(attribute):
    """The message names the element, the attribute and what stands there."""
    text = arm(inside=f'<axis xyz="0 0 1"/><mimic joint="elbow" {attribute}="twice"/>')
    with pytest.raises(AssetError, match=rf"<mimic>.*{attribute} is 'twice'"):
        ModelBuilder().add_urdf(text)


def test_a_robot_without_meshes_loads_no_library_for_meshes():
    """Only meshes need trimesh, SciPy and NetworkX, whose import a start would wait for."""
    program = (
        "import sys, pluriverse; pluriverse.ModelBuilder().add_urdf(sys.argv[1]);"
        "print(sorted({'trimesh', 'scipy', 'networkx', 'PIL'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, arm(inside='<axis xyz="0 0 1"/>')]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_failed_import_leaves_the_builder_as_it_was(tmp_path):
    """An error found on the way adds nothing."""
    builder = ModelBuilder()
    with pytest.raises(AssetFileError):
        builder.add_urdf(arm(link=INERTIAL + mesh_link("gone.stl")))
    assert (builder.body_count, builder.joint_count, builder.shape_count) == (0, 0, 0)


def test_real_robot_reads_all_three_formats(robot_assets, tmp_path):
    """ANYmal's DAE files, also from a copy elsewhere: the same robot, and its meshes at their places."""
    shutil.copytree(robot_assets / "anymal_c_simple_description", tmp_path / "other_name")
    builder = ModelBuilder()
    report = builder.add_urdf(tmp_path / "other_name" / "urdf" / "anymal.urdf", floating=True)
    assert not report.losses
    assert len(builder.meshes) == 19
    turn = quat_to_matrix(builder.shape_transform[0, 3:])
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)


def test_impossible_inertia_becomes_possible_with_a_warning():
    """Real files hold principal moments that no body has: tr(I)/2 - 0.05 = -0.015 becomes 0."""
    link = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.05"/></inertial>'
    with pytest.warns(AssetWarning, match="impossible inertia"):
        builder, report = import_urdf(arm(link=link))
    assert [entry.feature for entry in report.repairs] == ["impossible inertia"]
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.body_inertia.numpy()[1], np.diag([0.025, 0.025, 0.05]), rtol=1e-6)


DRAKE_CHAIN = """<robot name="chain" xmlns:drake="http://drake.mit.edu">
  {links}
  {joints}
  <transmission name="t"><joint name="j1"/><actuator name="a"><drake:gear_ratio value="100"/>
    <drake:rotor_inertia value="6e-5"/></actuator></transmission>
  <drake:collision_filter_group name="near"><drake:member link="l0"/><drake:member link="l2"/>
    <drake:ignored_collision_filter_group name="near"/>
    <drake:ignored_collision_filter_group name="far"/></drake:collision_filter_group>
  <drake:collision_filter_group name="far"><drake:member link="l3"/></drake:collision_filter_group>
</robot>"""


def drake_chain():
    links = "".join(
        f"""<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
        <collision><geometry><sphere radius="0.1"/></geometry></collision></link>"""
        for k in range(4)
    )
    joints = "".join(
        f"""<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/>
        <axis xyz="0 1 0"/></joint>"""
        for k in range(1, 4)
    )
    return DRAKE_CHAIN.format(links=links, joints=joints)


def test_filter_groups_and_rotors_of_drake():
    """Groups leave out the pairs that they name; a rotor has the inertia r I r at the joint."""
    builder = ModelBuilder()
    report = builder.add_urdf(drake_chain(), strict=True)
    assert all("collision" not in entry.feature for entry in report.entries)
    assert builder.joint_armature[0] == pytest.approx(6e-5 * 100.0**2)
    assert list(builder.joint_armature[1:]) == [0.0, 0.0]
    colliding = {
        (int(first), int(second))
        for first in range(4)
        for second in range(first + 1, 4)
        if (first, second) not in builder.shape_collision_filter_pairs
    }
    assert colliding == {(1, 3)}  # neighbours never do
    with pytest.warns(AssetWarning, match=r"collision filter of an unknown link .*'l9'"):
        ModelBuilder().add_urdf(drake_chain().replace('member link="l3"', 'member link="l9"'))
    with pytest.raises(AssetError, match=r"<drake:rotor_inertia>.*value is '6e'"):
        ModelBuilder().add_urdf(drake_chain().replace('"6e-5"', '"6e"'))
