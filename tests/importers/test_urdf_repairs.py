"""URDF files of the wild: what can be repaired is repaired and reported in one warning; strict refuses it."""

import warnings

import numpy as np
import pytest
import trimesh

from pluriverse import JointDofConfig, ModelBuilder, Simulation, SolverMuJoCo, SolverSAP
from pluriverse.importers import AssetError, AssetWarning, ImportSeverity, UnsupportedAssetError
from pluriverse.types import GeoType

BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'
INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>'


def arm(link=INERTIAL, joint='<axis xyz="0 0 1"/>', name='name="arm"', rest=""):
    return f"""<robot {name}><link name="base"/><link name="tip">{link}</link>
      <joint name="elbow" type="continuous"><parent link="base"/>
      <child link="tip"/>{joint}</joint>{rest}</robot>"""


def inertial(moments, products=(0.0, 0.0, 0.0), mass=2.0):
    (ixx, iyy, izz), (ixy, ixz, iyz) = moments, products
    return (
        f'<inertial><mass value="{mass}"/><inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="{ixy}" '
        f'ixz="{ixz}" iyz="{iyz}"/></inertial>'
    )


def mass(builder):
    return builder.body_mass[1]


def inertia(builder):
    return np.diagonal(builder.body_inertia[1])


BALL = 0.4 * 2.0 * (2.0 / (4.0 / 3.0 * np.pi * 1000.0)) ** (2.0 / 3.0)  # of water and 2 kg

# Name: (document, feature in the report, value of the builder, what it must be)
REPAIRED = {
    "second decimal point": (
        arm(joint='<axis xyz="0 0 1"/><limit lower="-1.57." upper="1.5" effort="1" velocity="1"/>').replace(
            "continuous", "revolute"
        ),
        "number with two decimal points",
        lambda b: b.joint_limit_lower,
        [-1.57],
    ),
    "rpy of four numbers": (
        arm(joint='<axis xyz="0 0 1"/><origin xyz="1 2 3" rpy="0 0 1.5707963 0"/>'),
        "rpy of 4 numbers",
        lambda b: b.joint_X_p[1],
        [1.0, 2.0, 3.0, 0.0, 0.0, 0.7071067, 0.7071068],
    ),
    "text after the robot": (
        arm() + "\n        )\n",
        "text after the end of the robot",
        lambda b: b.body_label[-1],
        "arm/tip",
    ),
    "macro in what is drawn": (
        arm(
            INERTIAL + BOX.replace("collision", "visual").replace("</visual>", "<xacro:grey/></visual>")
        ).replace("<robot ", '<robot xmlns:xacro="http://ros.org/wiki/xacro" '),
        "macro that is not expanded",
        lambda b: b.shape_count,
        1,
    ),
    "macro in a drawn size": (
        arm(INERTIAL + BOX.replace("collision", "visual").replace("0.2 0.2 0.2", "0.2 ${w} 0.2")),
        "macro that is not expanded",
        lambda b: b.shape_count,
        0,
    ),
    "robot without a name": (arm(name=""), "robot without a name", lambda b: b.body_label[1], "robot/tip"),
    "first of several inertials": (
        arm(inertial((1, 1, 1), mass=3.0) + INERTIAL),
        "several <inertial>",
        mass,
        3.0,
    ),
    "density": (
        arm(f'<inertial><density value="500"/></inertial>{BOX}'),
        "density in place of a mass",
        mass,
        500.0 * 0.2**3,
    ),
    "density beside a mass": (
        arm('<inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1"/><density value="5"/></inertial>'),
        "density beside a mass",
        mass,
        3.0,
    ),
    "inertial without a mass": (
        arm(f'<inertial><inertia ixx="1" iyy="1" izz="1"/></inertial>{BOX}'),
        "<inertial> without a mass",
        mass,
        1000.0 * 0.2**3,
    ),
    "mass without inertia": (
        arm('<inertial><mass value="2"/></inertial>'),
        "no inertia against its joint",
        inertia,
        np.full(3, BALL),
    ),
    "inertia without izz": (
        arm(f'<inertial><mass value="6"/><inertia ixx="1" iyy="1"/></inertial>{BOX}'),
        "incomplete <inertia>",
        inertia,
        np.full(3, 6.0 * 0.2**2 / 6.0),
    ),
    "products beyond the moments": (
        arm(inertial((1e-5, 1e-5, 1e-5), (0.0, 0.015, 0.0))),
        "negative principal moment of inertia",
        inertia,
        np.full(3, 1e-5),
    ),
    "negative moment with a collider": (
        arm(inertial((-1.0, 1.0, 1.0)) + BOX),
        "negative principal moment of inertia",
        inertia,
        np.full(3, 2.0 * 0.2**2 / 6.0),
    ),
    "negative moment without one": (
        arm(inertial((-1.0, 1.0, 1.0))),
        "negative principal moment of inertia",
        inertia,
        np.full(3, BALL),
    ),
    "massless link on a joint with a collider": (
        arm(inertial((0, 0, 0), mass=0.0) + BOX),
        "no mass on a joint",
        mass,
        1000.0 * 0.2**3,
    ),
    "massless link on a joint among links with mass": (
        arm("", rest='<link name="end"><inertial><mass value="5"/></inertial></link>').replace(
            "</robot>",
            '<joint name="side" type="fixed"><parent link="base"/><child link="end"/></joint></robot>',
        ),
        "no mass on a joint",
        mass,
        0.05,
    ),
    "sphere of size 0": (
        arm(f'{INERTIAL}<collision><geometry><sphere radius="0"/></geometry></collision>'),
        "collider without extent",
        lambda b: b.shape_count,
        0,
    ),
    "box of thickness 0": (
        arm(f'{INERTIAL}<collision><geometry><box size="1 2 0"/></geometry></collision>'),
        "collider without thickness",
        lambda b: b.shape_scale[0],
        (0.5, 1.0, 0.001),
    ),
    "link that no joint connects": (
        arm(INERTIAL, rest=f'<link name="flange">{BOX}</link>'),
        "link without mass that no joint connects",
        lambda b: (b.shape_count, sum("flange" in label for label in b.body_label)),
        (0, 0),
    ),
    "negative limit of effort": (
        arm(joint='<axis xyz="0 0 1"/><limit effort="-1" velocity="2"/>'),
        "negative effort limit",
        lambda b: b.joint_velocity_limit[0],
        2.0,
    ),
    "effort limit of 0": (
        arm(joint='<axis xyz="0 0 1"/><limit effort="0" velocity="2"/>'),
        "effort limit 0",
        lambda b: (b.joint_effort_limit[0], b.joint_velocity_limit[0]),
        (JointDofConfig().effort_limit, 2.0),
    ),
    "velocity limit of 0": (
        arm(joint='<axis xyz="0 0 1"/><limit effort="3" velocity="0.0"/>'),
        "velocity limit 0",
        lambda b: (b.joint_effort_limit[0], b.joint_velocity_limit[0]),
        (3.0, JointDofConfig().velocity_limit),
    ),
    "undefined material": (
        arm(
            f'{INERTIAL}<visual><geometry><sphere radius="1"/></geometry><material name="red"/></visual>',
        ),
        "undefined material 'red'",
        lambda b: b.shape_count,
        1,
    ),
    "colour of three numbers": (
        arm(
            f'{INERTIAL}<visual><geometry><sphere radius="1"/></geometry><material name="r"/></visual>',
            rest='<material name="r"><color rgba="1 0.5 0"/></material>',
        ),
        "colour of three numbers",
        lambda b: b.shape_color[0],
        (1.0, 0.5, 0.0),
    ),
    "colour of five numbers": (
        arm(
            f'{INERTIAL}<visual><geometry><sphere radius="1"/></geometry>'
            '<material name="r"><color rgba="0.15 0.15 0.15 0 1"/></material></visual>',
        ),
        "colour '0.15 0.15 0.15 0 1'",
        lambda b: b.shape_count,
        1,
    ),
    "visual of an unknown shape": (
        arm(f'{INERTIAL}<visual><geometry><torus radius="1"/></geometry></visual>'),
        "display geometry",
        lambda b: b.shape_count,
        0,
    ),
    "prefix of another program without a declaration": (
        arm(
            joint='<axis xyz="0 0 1"/><limit effort="4" velocity="2" drake:acceleration="2.5"/>',
            rest='<drake:collision_filter_group name="all"/><gazebo:light/>',
        ),
        "namespace prefix without a declaration",
        lambda b: b.joint_effort_limit[0],
        4.0,
    ),
    "numbers separated by commas": (
        arm(joint='<axis xyz="0,0, 1"/>'),
        "numbers separated by commas",
        lambda b: b.joint_axis[0],
        (0.0, 0.0, 1.0),
    ),
    "version of XML that does not exist": (
        f'<?xml version="0.0" ?>\n{arm()}',
        "XML version '0.0'",
        mass,
        1.0,
    ),
    "default namespace": (
        arm(name='xmlns="http://drake.mit.edu" name="arm"'),
        "elements of the namespace 'http://drake.mit.edu'",
        mass,
        1.0,
    ),
    "value from the environment": (
        arm(joint='<axis xyz="$(optenv ARM_AXIS 0 1 0)"/>'),
        "value from the environment",
        lambda b: b.joint_axis[0],
        (0.0, 1.0, 0.0),
    ),
    "no shape beside the shape of a geometry": (
        arm(f"{INERTIAL}{BOX}".replace("</geometry>", '<origin xyz="1 0 0"/></geometry>')),
        "<origin> in a <geometry>",
        lambda b: b.shape_transform[0][:3],
        np.zeros(3),
    ),
    "limits the wrong way round": (
        arm(joint='<axis xyz="0 0 1"/><limit lower="1" upper="-1" effort="1" velocity="1"/>').replace(
            "continuous", "revolute"
        ),
        "lower limit above the upper one",
        lambda b: (b.joint_limit_lower[0], b.joint_limit_upper[0]),
        (-np.inf, np.inf),
    ),
    "a lower limit above 0 and none above it": (
        arm(joint='<axis xyz="0 0 1"/><limit lower="0.5" effort="1" velocity="1"/>').replace(
            "continuous", "prismatic"
        ),
        "lower limit above the upper one",
        lambda b: (b.joint_limit_lower[0], b.joint_limit_upper[0]),
        (-np.inf, np.inf),
    ),
    "undefined world": (
        arm().replace('<parent link="base"/>', '<parent link="world"/>').replace('<link name="base"/>', ""),
        "undefined link 'world'",
        lambda b: b.body_label[0],
        "arm/world",
    ),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_what_can_be_repaired_is_repaired_and_reported(case):
    document, feature, value, expected = REPAIRED[case]
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match="not everything was imported as authored") as caught:
        report = builder.add_urdf(document)
    assert len([warning for warning in caught if warning.category is AssetWarning]) == 1
    assert any(feature in entry.feature for entry in report.repairs), report.repairs
    found = value(builder)
    if isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    builder.finalize("cpu")
    strict = ModelBuilder()
    with pytest.raises(UnsupportedAssetError, match="strict=False"):
        strict.add_urdf(document, strict=True)
    assert strict.body_count == 0


def test_moments_negative_by_rounding_are_no_repair():
    """-3e-19 is 0 compared with 0.01: nothing is reported, and strict accepts it."""
    document = arm(inertial((0.01, 0.01, -3e-19)), joint='<axis xyz="1 0 0"/>')
    builder = ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.add_urdf(document, strict=True)
    assert np.linalg.eigvalsh(builder.body_inertia[1])[0] >= 0.0


def test_capsules_are_read():
    """Their length is that of the cylinder, as in the field."""
    shape = '<geometry><capsule radius="0.1" length="0.6"/></geometry>'
    builder = ModelBuilder()
    builder.add_urdf(arm(f"<collision>{shape}</collision><visual>{shape}</visual>"), strict=True)
    assert [GeoType(int(kind)) for kind in builder.shape_type] == [GeoType.CAPSULE] * 2
    np.testing.assert_allclose(builder.shape_scale[0][:2], (0.1, 0.3))
    assert builder.body_mass[1] == pytest.approx(1000.0 * np.pi * 0.1**2 * (0.6 + 4.0 / 3.0 * 0.1))


@pytest.mark.parametrize("text", ['value="$(arg m)"', 'value="${m}"'])
def test_macros_left_unexpanded_are_named(text):
    with pytest.raises(AssetError, match=r"<mass> of link 'tip' \(line 1\): .*macros.*Expand it first"):
        ModelBuilder().add_urdf(arm(f"<inertial><mass {text}/></inertial>"))
    with pytest.raises(AssetError, match=r"line 1: .*macros.*Expand it first"):
        ModelBuilder().add_urdf('<robot name="a"><xacro:arm side="left"/></robot>')


GRIPPER = """<robot name="gripper"><link name="palm">{inertial}</link><link name="finger">{inertial}</link>
  <joint name="mount" type="fixed"><parent link="{parent}"/><child link="palm"/></joint>
  <joint name="slide" type="prismatic"><parent link="{palm}"/><child link="finger"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="0.1"/></joint></robot>"""


def test_a_part_of_a_robot_hangs_from_the_link_that_another_file_has():
    """A gripper is mounted on a hand that only the arm defines."""
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"undefined link 'right_hand'.*link without mass at the base"):
        builder.add_urdf(GRIPPER.format(inertial=INERTIAL, parent="right_hand", palm="palm"))
    assert [label.rpartition("/")[2] for label in builder.body_label] == ["right_hand", "palm", "finger"]
    assert builder.joint_dof_count == 1
    builder.finalize("cpu")


def test_a_misspelt_parent_is_no_base():
    document = GRIPPER.format(inertial=INERTIAL, parent="base", palm="plam")
    with pytest.raises(AssetError, match="there is no link 'plam'"):
        ModelBuilder().add_urdf(document.replace("<link", '<link name="base"/><link', 1))


def test_macros_of_other_simulators_do_no_harm():
    """A namespace that a launch file sets is of no concern to the robot."""
    plugin = (
        '<gazebo><plugin name="p" filename="f"><robotNamespace>$(arg ns)</robotNamespace></plugin></gazebo>'
    )
    builder = ModelBuilder()
    builder.add_urdf(arm(rest=plugin), strict=True)
    assert builder.body_count == 2


def test_a_soft_body_is_named():
    with pytest.raises(AssetError, match=r"<reduced_deformable>.*deformable body of Bullet.*<link>"):
        ModelBuilder().add_urdf('<robot name="a"><reduced_deformable name="torus"/></robot>')


def test_a_scale_of_four_equal_factors_is_read_and_of_others_refused(tmp_path):
    """Bullet's own racecar has one of four."""
    trimesh.creation.box((0.2, 0.2, 0.2)).export(tmp_path / "box.stl")
    path = tmp_path / "car.urdf"
    shape = '<collision><geometry><mesh filename="box.stl" scale="{}"/></geometry></collision>'
    path.write_text(arm(INERTIAL + shape.format("2 2 2 2")))
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match="scale of more than three factors"):
        builder.add_urdf(path)
    reach = np.abs(builder.meshes[0].vertices * np.array(builder.shape_scale[0])).max()
    np.testing.assert_allclose(reach, 0.2, rtol=1e-6)
    path.write_text(arm(INERTIAL + shape.format("2 2 3 2")))
    with pytest.raises(AssetError, match="one factor or three"):
        builder.add_urdf(path)


def test_meshes_are_found_beside_a_link_to_the_file_and_by_the_name_of_a_folder(tmp_path):
    """Where packages are links into a store, meshes lie beside the link; data sets name their own folder."""
    store, package = tmp_path / "store", tmp_path / "data" / "cups"
    store.mkdir()
    package.mkdir(parents=True)
    trimesh.creation.box((1.0, 1.0, 1.0)).export(package / "cup.stl")
    (store / "hash.urdf").write_text(
        arm(f'{INERTIAL}<collision><geometry><mesh filename="cup.stl"/></geometry></collision>')
    )
    (package / "cup.urdf").symlink_to(store / "hash.urdf")
    (package / "own.urdf").write_text(
        arm(f'{INERTIAL}<collision><geometry><mesh filename="cups/cup.stl"/></geometry></collision>')
    )
    for name in ("cup.urdf", "own.urdf"):
        builder = ModelBuilder()
        builder.add_urdf(package / name, strict=True)
        assert builder.shape_count == 1


MESH = '<collision><geometry><mesh filename="{}"/></geometry></collision>'


@pytest.mark.parametrize(
    "reference",
    [
        "package://collision/base_link.stl",  # without the folders between
        "package://other_name/arm/collision/base_link.stl",
        "../Meshes/Arm/Collision/BASE_LINK.STL",  # written where case does not matter
        "meshes/arm/collision/base_link.stl",  # from the folder above
        "C:\\robots\\arm\\collision\\base_link.stl",
    ],
)
def test_a_mesh_elsewhere_than_written_is_found_if_only_one_can_be_meant(tmp_path, reference):
    for kind, size in (("collision", 1.0), ("visual", 2.0)):
        folder = tmp_path / "arm_support" / "meshes" / "arm" / kind
        folder.mkdir(parents=True)
        trimesh.creation.box((size, size, size)).export(folder / "base_link.stl")
    path = tmp_path / "arm_support" / "urdf" / "arm.urdf"
    path.parent.mkdir()
    path.write_text(arm(INERTIAL + MESH.format(reference)))
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"mesh elsewhere than written .*read from .*meshes/arm/collision"):
        builder.add_urdf(path)
    np.testing.assert_allclose(np.ptp(builder.shape_source[0].vertices, axis=0), 1.0)
    with pytest.raises(UnsupportedAssetError, match="mesh elsewhere"):
        ModelBuilder().add_urdf(path, strict=True)


def test_another_case_in_the_place_that_is_written_goes_before_other_places(tmp_path):
    (tmp_path / "other").mkdir()
    for size, place in ((1.0, "base.STL"), (2.0, "other/base.stl")):
        trimesh.creation.box((size, size, size)).export(tmp_path / place, file_type="stl")
    path = tmp_path / "arm.urdf"
    path.write_text(arm(INERTIAL + MESH.format("./base.stl")))
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match="mesh elsewhere than written"):
        builder.add_urdf(path)
    np.testing.assert_allclose(np.ptp(builder.shape_source[0].vertices, axis=0), 1.0)


def test_a_mesh_that_several_files_could_be_is_refused_with_their_names(tmp_path):
    for robot in ("left", "right"):
        folder = tmp_path / "meshes" / robot
        folder.mkdir(parents=True)
        trimesh.creation.box((1.0, 1.0, 1.0)).export(folder / "base.stl")
    path = tmp_path / "arm.urdf"
    path.write_text(arm(INERTIAL + MESH.format("package://arm/base.stl")))
    with pytest.raises(AssetError, match=r"could be any of .*left/base\.stl, .*right/base\.stl"):
        ModelBuilder().add_urdf(path)


@pytest.mark.parametrize(
    "reference",
    [
        "package://pkg/robots/small/meshes/trunk.stl",
        "package://small_description/meshes/trunk.stl",  # a package of another name
        "../meshes/trunk.stl",
        "trunk.stl",
    ],
)
def test_a_robot_is_not_given_the_mesh_of_another_one(tmp_path, reference):
    """Collections of robots are one package, and each robot has a trunk."""
    meshes, document = tmp_path / "robots/big/meshes", tmp_path / "robots/small/urdf/small.urdf"
    for folder in (meshes, document.parent):
        folder.mkdir(parents=True)
    (tmp_path / "package.xml").write_text("<package><name>pkg</name></package>")
    trimesh.creation.box((2.0, 1.0, 1.0)).export(meshes / "trunk.stl")
    document.write_text(arm(INERTIAL + MESH.format(reference)))
    with pytest.raises(AssetError, match=r"collision mesh '.*trunk\.stl' was not found"):
        ModelBuilder().add_urdf(document)
    # One that shares meshes of the other writes where they are, below folders that are not there.
    document.write_text(arm(INERTIAL + MESH.format("package://collection/of/big/meshes/trunk.stl")))
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"mesh elsewhere than written .*robots/big/meshes"):
        builder.add_urdf(document)
    np.testing.assert_allclose(np.ptp(builder.shape_source[0].vertices, axis=0), (2.0, 1.0, 1.0))


def test_a_mesh_missing_in_its_folder_is_not_taken_from_the_folder_beside(tmp_path):
    """The meshes of two robots, or those that are drawn, have the same names as those that collide."""
    for folder in ("collision", "visual"):
        (tmp_path / "meshes" / folder).mkdir(parents=True)
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "meshes/visual/foot.stl")
    (tmp_path / "arm.urdf").write_text(arm(INERTIAL + MESH.format("package://arm/meshes/Collision/foot.stl")))
    with pytest.raises(AssetError, match=r"collision mesh '.*foot\.stl' was not found"):
        ModelBuilder().add_urdf(tmp_path / "arm.urdf")


def test_an_empty_collision_mesh_is_left_out_and_a_broken_one_refused(tmp_path):
    """Vendors ship STL files of nothing but a header for links that are frames."""
    path = tmp_path / "arm.urdf"
    path.write_text(arm(INERTIAL + MESH.format("tool.stl")))
    for header in (bytes(80), bytes(84)):
        (tmp_path / "tool.stl").write_bytes(header)
        builder = ModelBuilder()
        with pytest.warns(AssetWarning, match="collision mesh without triangles"):
            builder.add_urdf(path)
        assert builder.shape_count == 0
    (tmp_path / "tool.stl").write_bytes(b"")  # a download that was cut short
    with pytest.raises(AssetError, match=r"tool\.stl"):
        ModelBuilder().add_urdf(path)


def test_contact_elements_are_the_material_of_the_colliders():
    """Robots for Bullet have friction and stiffness of a link in its <contact>."""
    contact = """<contact><lateral_friction value="0.4"/><rolling_friction value="0.001"/>
      <spinning_friction value="0.02"/><stiffness value="30000"/><damping value="1000"/>
      <contact_cfm value="0"/></contact>"""
    builder = ModelBuilder()
    report = builder.add_urdf(arm(contact + INERTIAL + BOX), strict=True)
    assert [entry.feature for entry in report.entries] == ["<contact_cfm> in a contact"]
    assert builder.shape_material_mu[0] == pytest.approx(0.4)
    assert builder.shape_material_mu_rolling[0] == pytest.approx(0.001)
    assert builder.shape_material_mu_torsional[0] == pytest.approx(0.02)
    assert builder.shape_material_ke[0] == pytest.approx(30000.0)
    assert builder.shape_material_tau[0] == pytest.approx(1.0 / 30.0)
    with pytest.raises(AssetError, match=r"<lateral_friction> of link 'tip' .*negative"):
        ModelBuilder().add_urdf(arm(contact.replace('"0.4"', '"-0.4"') + INERTIAL + BOX))


def test_restitution_of_bullet_is_that_of_the_colliders():
    """A pair has the mean of both; Bullet multiplies them."""
    contact = '<contact><restitution value="0.5"/></contact>'
    builder = ModelBuilder()
    report = builder.add_urdf(arm(contact + INERTIAL + BOX), strict=True)
    assert report.entries == []
    assert builder.shape_material_restitution[0] == 0.5
    with pytest.raises(AssetError, match=r"<restitution> of link 'tip' .*it is 1\.5, which is more than 1"):
        ModelBuilder().add_urdf(arm(contact.replace("0.5", "1.5") + INERTIAL + BOX))


@pytest.mark.parametrize(
    ("element", "severity"),
    [
        ('<contact_cfm value="0"/>', ImportSeverity.NOTE),
        ('<contact_cfm value="0.1"/>', ImportSeverity.LOSS),
        ('<contact_erp value="1"/>', ImportSeverity.LOSS),
        ('<inertia_scaling value="1.0"/>', ImportSeverity.NOTE),
        ('<inertia_scaling value="3"/>', ImportSeverity.LOSS),
        ("<friction_anchor/>", ImportSeverity.NOTE),
    ],
)
@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_contact_elements_without_a_counterpart_are_losses_where_they_move_something(element, severity):
    report = ModelBuilder().add_urdf(arm(f"<contact>{element}</contact>" + INERTIAL + BOX))
    assert [entry.severity for entry in report.entries] == [severity]


def test_a_link_floating_from_a_moving_one_moves_freely():
    """A floating joint holds nothing: the link falls as if it were alone, from where the file has it."""
    document = arm(
        INERTIAL,
        '<origin xyz="0 0 1"/><axis xyz="0 1 0"/>',
        rest=f"""<link name="loose">{INERTIAL}</link><joint name="none" type="floating"><parent link="tip"/>
        <child link="loose"/><origin xyz="0.5 0 0"/></joint>""",
    )
    builder = ModelBuilder()
    report = builder.add_urdf(document, strict=True)
    assert [entry.feature for entry in report.entries] == ["floating joint on a link that moves"]
    model = builder.finalize("cpu")
    simulation = Simulation(model, dt=0.001)
    simulation.step(100)
    place = simulation.state.body_q.numpy()[builder.body_label.index("arm/loose"), :3]
    fall = 0.5 * 9.81 * 0.001**2 * 100 * 101  # of the semi-implicit scheme, step by step
    np.testing.assert_allclose(place, (0.5, 0.0, 1.0 - fall), atol=1e-5)


def test_a_collision_mesh_in_a_plane_is_a_plate(tmp_path):
    """Markers on robots are flat meshes, often as colliders: a plate of a thousandth of their size."""
    corners = ["0 0 0", "0.06 0 0", "0.06 0.04 0", "0 0.04 0"]
    text = "".join(f"v {corner}\n" for corner in corners) + "f 1 2 3\nf 1 3 4\n"
    (tmp_path / "marker.obj").write_text(text)
    document = """<robot name="r"><link name="base"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
      <collision><geometry><mesh filename="marker.obj"/></geometry></collision></link></robot>"""
    path = tmp_path / "robot.urdf"
    path.write_text(document)
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"collision mesh without thickness \(.*marker\.obj\)"):
        builder.add_urdf(path)
    (mesh,) = builder.meshes
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), [0.06, 0.04, 6e-5], rtol=1e-4)
    assert mesh.mass_properties(1.0).mass == pytest.approx(0.06 * 0.04 * 6e-5, rel=1e-3)
    with pytest.raises(UnsupportedAssetError, match="strict=False"):
        ModelBuilder().add_urdf(path, strict=True)


@pytest.mark.parametrize("shape", ["", BOX])
def test_a_base_without_mass_below_a_joint_can_float(shape):
    """A massless `base_footprint` takes no part in the motion of what turns on it, until it weighs something.

    The whole falls freely whatever the joint between does: its centre of mass is at g t² / 2.
    """
    document = arm(INERTIAL, '<axis xyz="0 0 1"/>').replace(
        '<link name="base"/>', f'<link name="base">{shape}</link>'
    )
    if shape:  # a collider alone would give it a mass at once
        document = document.replace(shape, f'<inertial><mass value="0"/></inertial>{shape}')
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"no mass on a joint \(link 'base' \(line 1\)"):
        builder.add_urdf(document, floating=True)
    expected = 1000.0 * 0.2**3 if shape else 0.01
    assert builder.body_mass[0] == pytest.approx(expected)
    builder.joint_qd[6] = 3.0
    for solver in (SolverSAP, SolverMuJoCo):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = builder.finalize("cpu")
            simulation = Simulation(model, solver(model), dt=0.001)
            simulation.step(100)
        height = np.average(simulation.state.body_q.numpy()[:, 2], weights=builder.body_mass)
        np.testing.assert_allclose(height, -0.5 * 9.81 * 0.001**2 * 100 * 101, atol=1e-5)
    with pytest.raises(UnsupportedAssetError, match="no mass on a joint"):
        ModelBuilder().add_urdf(document, floating=True, strict=True)
    held = ModelBuilder()  # held by the world it needs none
    held.add_urdf(document)
    assert held.body_mass[0] == 0.0


def test_a_robot_that_floats_already_is_not_put_on_another_free_joint():
    """Vendors write a link `world` with a floating joint; floating=True then changes nothing."""
    document = arm(rest=f"""<link name="free">{INERTIAL}</link>""").replace(
        "</robot>",
        """<link name="world"/>
        <joint name="root" type="floating"><parent link="world"/><child link="free"/></joint>
        <joint name="on" type="fixed"><parent link="free"/><child link="base"/></joint></robot>""",
    )
    counts = []
    for floating in (False, True):
        builder = ModelBuilder()
        builder.add_urdf(document, floating=floating, strict=True)
        counts.append(builder.joint_dof_count)
        builder.finalize("cpu")
    assert counts == [7, 7]
