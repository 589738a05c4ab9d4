"""Nothing checks URDF by a schema: what is not read is reported, with what was meant by a slip of the pen."""

import pytest

from pluriverse import ModelBuilder
from pluriverse.importers import AssetWarning, ImportSeverity, UnsupportedAssetError

ROBOT = """<robot name="r" {robot}>{top}<link name="a" {link}/><link name="b">{inside}
    <inertial {inertial}><mass value="1"/><inertia ixx="1" iyy="1" izz="1" {inertia}/>{heavy}</inertial>
    <collision {collision}><geometry><box size="1 1 1" {box}/></geometry>{collider}</collision></link>
  <joint name="j" type="revolute" {joint}><parent link="a"/><child link="b"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1" {limit}/>{jointed}</joint>
</robot>"""
PLACES = (
    *("robot", "top", "link", "inside", "inertial", "inertia", "heavy", "collision", "box", "collider"),
    *("joint", "limit", "jointed"),
)


def robot(**parts):
    return ROBOT.format(**dict.fromkeys(PLACES, "") | parts)


def test_a_robot_of_slips_says_what_was_meant():
    """Each would give the robot another axis, origin, range or inertia without a word."""
    slips = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1"/></inertial></link><joint name="j" type="revolute"><parent link="a"/>
      <child link="b"/><origin position="0 0 1"/><axis xzy="0 0 1"/><axis xyz="0 1 0"/>
      <limit lowr="-1" upper="1" effort="1" velocity="1"/><dynamics damping="1" armature="2"/>
      <mimics joint="k"/></joint></robot>"""
    builder = ModelBuilder()
    with pytest.warns(AssetWarning) as caught:
        report = builder.add_urdf(slips)
    for feature, place, consequence in (
        ("unknown attribute 'position' of <origin>", "<origin> of joint 'j' (line 3)", "known are xyz, rpy"),
        ("unknown attribute 'xzy' of <axis>", "<axis> of joint 'j' (line 3)", "; did you mean 'xyz'?"),
        ("several <axis>", "<axis> of joint 'j' (line 3)", "the first one of the joint counts"),
        ("unknown attribute 'lowr' of <limit>", "<limit> of joint 'j' (line 4)", "; did you mean 'lower'?"),
        ("unknown attribute 'armature' of <dynamics>", "<dynamics> of joint 'j' (line 4)", "it is ignored"),
        ("unknown element <mimics> in <joint>", "<mimics> of joint 'j' (line 5)", "; did you mean 'mimic'?"),
    ):
        (said,) = (line for line in str(caught[0].message).splitlines() if f"{feature} ({place}): " in line)
        assert consequence in said
    assert len(report.repairs) == 6
    assert builder.joint_axis.tolist() == [[1.0, 0.0, 0.0]]  # URDF's default: the first one counts
    with pytest.raises(UnsupportedAssetError, match="did you mean 'lower'"):
        ModelBuilder().add_urdf(slips, strict=True)


# Name: (parts of the document, feature, severity)
REPAIR, NOTE, LOSS = ImportSeverity.REPAIR, ImportSeverity.NOTE, ImportSeverity.LOSS
NOT_READ = {
    "attribute of a robot": ({"robot": 'nam="x"'}, "unknown attribute 'nam' of <robot>", REPAIR),
    "attribute of a link": ({"link": 'mass="1"'}, "unknown attribute 'mass' of <link>", REPAIR),
    "attribute of a size": ({"box": 'sise="1"'}, "unknown attribute 'sise' of <box>", REPAIR),
    "attribute of a collider": ({"collision": 'mu="1"'}, "unknown attribute 'mu' of <collision>", REPAIR),
    "element of a robot": ({"top": "<joints/>"}, "unknown element <joints> in <robot>", REPAIR),
    "element of a link": ({"inside": "<inertia/>"}, "unknown element <inertia> in <link>", REPAIR),
    "element of an inertial": ({"heavy": "<friction/>"}, "unknown element <friction> in <inertial>", REPAIR),
    "second geometry": (
        {"collider": '<geometry><sphere radius="1"/></geometry>'},
        "several <geometry>",
        REPAIR,
    ),
    "second mass": ({"heavy": '<mass value="9"/>'}, "several <mass>", REPAIR),
    "second limit": ({"jointed": '<limit lower="-9" upper="9"/>'}, "several <limit>", REPAIR),
    "other products below the diagonal": (
        {"inertia": 'ixy="0.1" iyx="0.2"'},
        "attribute 'iyx' of <inertia>",
        REPAIR,
    ),
    "newer attribute": ({"limit": 'acceleration="1"'}, "attribute 'acceleration' of <limit>", NOTE),
    "attribute of Drake": (
        {"robot": 'xmlns:drake="http://drake.mit.edu"', "limit": 'drake:acceleration="1"'},
        "attribute 'drake:acceleration'",
        NOTE,
    ),
    "element of Drake": (
        {"robot": 'xmlns:drake="http://drake.mit.edu"', "collider": "<drake:proximity_properties/>"},
        "<drake:proximity_properties> in a collision",
        LOSS,
    ),
    "element of Gazebo": ({"inside": "<gazebo/>"}, "<gazebo> in a link", NOTE),
    "soft body": ({"inside": "<fem/>"}, "<fem> in a link", LOSS),
}


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize("name", NOT_READ)
def test_what_is_not_read_is_reported(name):
    parts, feature, severity = NOT_READ[name]
    builder, known = ModelBuilder(), ModelBuilder()
    report = builder.add_urdf(robot(**parts))
    (entry,) = report.entries
    assert feature in entry.feature
    assert entry.severity is severity
    # The rest is what it is without.
    known.add_urdf(robot(**{place: text for place, text in parts.items() if place == "inertia"}))
    assert builder.body_mass.tolist() == known.body_mass.tolist()
    assert builder.shape_type.tolist() == known.shape_type.tolist()
    assert builder.joint_limit_upper.tolist() == known.joint_limit_upper.tolist()


def test_what_is_read_is_not_reported():
    parts = {
        "inside": '<contact><lateral_friction value="1"/></contact>',
        "inertia": 'ixy="0.1" iyx="0.1"',
        "collider": '<origin xyz="0 0 0" rpy="0 0 0"/>',
        "top": '<material name="m"><color rgba="1 1 1 1"/></material><!-- a comment -->',
        "joint": 'dont_collapse="true"',
    }
    assert ModelBuilder().add_urdf(robot(**parts), strict=True).entries == []
