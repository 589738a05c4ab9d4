"""Malformed assets: every error names the file, the element, what is wrong, and a remedy."""

import pytest
import trimesh

from pluriverse.importers import AssetError, AssetFileError
from pluriverse.model_builder import ModelBuilder

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>'


def urdf(joint='type="revolute"', inside='<axis xyz="0 0 1"/>', link=INERTIAL, rest="", ends=("base", "tip")):
    return f"""<robot name="arm"><link name="base"/><link name="tip">{link}</link>
      <joint name="elbow" {joint}>
      <parent link="{ends[0]}"/><child link="{ends[1]}"/>{inside}</joint>{rest}</robot>"""


def inertial(mass="1", inertia='ixx="1" iyy="1" izz="1"'):
    return f'<inertial><mass value="{mass}"/><inertia {inertia}/></inertial>'


def shape(geometry, tag="collision"):
    return f"{INERTIAL}<{tag}><geometry>{geometry}</geometry></{tag}>"


def joint_to(parent, child, name="other"):
    return f'<joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/></joint>'


# Name: (document, words of the message in this order)
MALFORMED_URDF = {
    "broken XML": ("<robot name='a'><link></robot>", ("line 1", "malformed", "Correct the XML")),
    "empty tag soup": ("<", ("malformed", "Correct the XML")),
    "MJCF": ("<mujoco/>", ("<mujoco>", "add_mjcf")),
    "other root": ("<sdf/>", ("<sdf>", "<robot>", "Pass a URDF")),
    "xacro": (
        '<robot name="a" xmlns:xacro="http://x"><xacro:property name="x" value="1"/></robot>',
        ("xacro", "Expand it first"),
    ),
    "xacro expression": (urdf(link=inertial(mass="${m}")), ("mass", "tip", "xacro", "Expand it first")),
    "no links": ("<robot name='a'/>", ("<robot>", "no <link>", "at least one")),
    "link without name": ("<robot name='a'><link/></robot>", ("<link>", "line 1", "name is missing")),
    "two links of a name": (
        urdf(rest='<link name="tip"/>'),
        ("link 'tip' (line 3)", "line 1", "name of its own"),
    ),
    "two joints of a name": (
        urdf(rest='<link name="c"/>' + joint_to("tip", "c", "elbow")),
        ("joint 'elbow'", "another <joint>", "name of its own"),
    ),
    "unknown parent": (
        urdf(ends=("bose", "tip")),
        ("<parent> of joint 'elbow'", "no link 'bose'", "the links are 'base', 'tip'"),
    ),
    "unknown child": (
        urdf(ends=("base", "top")),
        ("<child> of joint 'elbow'", "no link 'top'", "correct the name"),
    ),
    "child without link": (urdf(ends=("base", "")), ("<child> of joint 'elbow'", "no link ''")),
    "joint without parent": (
        '<robot name="a"><link name="b"/><joint name="j" type="fixed"><child link="b"/></joint></robot>',
        ("joint 'j'", "<parent> is missing", "Add a <parent>"),
    ),
    "joint type": (urdf(joint='type="revolut"'), ("joint 'elbow'", "'revolut'", "Use one of")),
    "joint without type": (urdf(joint=""), ("joint 'elbow'", "type is None", "Use one of")),
    "two parents": (
        urdf(rest='<link name="c"/>' + joint_to("base", "c", "x") + joint_to("c", "tip", "y")),
        ("joint 'y'", "link 'tip' is already the child of joint 'elbow'", "Open the loop"),
    ),
    "circle": (
        urdf(rest=joint_to("tip", "base")),
        ("hang on one another in a circle", "begin at one root link"),
    ),
    "link on itself": (urdf(ends=("tip", "tip")), ("joint 'elbow'", "'tip', 'tip'", "circle")),
    "two roots": (
        urdf(
            rest='<link name="lost"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
            'iyz="0" izz="1"/></inertial></link>'
        ),
        ("link 'lost'", "'base', 'lost'", "Connect them"),
    ),
    "axis without direction": (
        urdf(inside='<axis xyz="0 0 0"/>'),
        ("<axis> of joint 'elbow'", "no direction", "not zero"),
    ),
    "axis of two numbers": (
        urdf(inside='<axis xyz="0 1"/>'),
        ("<axis> of joint 'elbow'", "'0 1'", "3 numbers"),
    ),
    "axis of words": (urdf(inside='<axis xyz="up"/>'), ("<axis> of joint 'elbow'", "'up'", "3 numbers")),
    "NaN origin": (
        urdf(inside='<origin xyz="0 nan 0"/>'),
        ("<origin> of joint 'elbow'", "0 nan 0", "finite numbers"),
    ),
    "commas as decimal points": (
        urdf(inside='<origin rpy="0,5 0 0"/>'),
        ("<origin> of joint 'elbow'", "0,5 0 0", "separated by spaces"),
    ),
    "negative damping": (
        urdf(inside='<dynamics damping="-0.1"/>'),
        ("<dynamics> of joint 'elbow'", "damping is -0.1", "Give a value >= 0"),
    ),
    "negative mass": (
        urdf(link=inertial(mass="-2")),
        ("<mass> of link 'tip'", "-2.0 kg", "Give a mass >= 0"),
    ),
    "NaN mass": (urdf(link=inertial(mass="nan")), ("<mass> of link 'tip'", "'nan'", "finite numbers")),
    "mass without value": (
        urdf(link="<inertial><mass/></inertial>"),
        ("<mass> of link 'tip'", "value is missing", 'Add value="..."'),
    ),
    "no geometry": (urdf(link="<collision/>"), ("<collision> of link 'tip'", "<geometry> is missing")),
    "empty geometry": (urdf(link=shape("")), ("<geometry> of link 'tip'", "nothing", "exactly one of")),
    "two shapes in a geometry": (
        urdf(link=shape('<sphere radius="1"/><sphere radius="1"/>')),
        ("<geometry> of link 'tip'", "exactly one of", "Use one <collision>"),
    ),
    "unknown geometry": (
        urdf(link=shape('<torus radius="1"/>')),
        ("<geometry> of link 'tip'", "torus", "exactly one"),
    ),
    "negative radius": (
        urdf(link=shape('<sphere radius="-1"/>')),
        ("<sphere> of link 'tip'", "radius is -1 m", "size > 0"),
    ),
    "box of two sides": (
        urdf(link=shape('<box size="1 1"/>')),
        ("<box> of link 'tip'", "'1 1'", "3 numbers"),
    ),
    "cylinder without length": (
        urdf(link=shape('<cylinder radius="1"/>')),
        ("<cylinder> of link 'tip'", "length is missing", "Add length"),
    ),
    "mesh without file": (urdf(link=shape("<mesh/>")), ("<mesh> of link 'tip'", "filename is missing")),
    "mesh scaled to nothing": (
        urdf(link=shape('<mesh filename="x.stl" scale="1 0 1"/>')),
        ("<mesh> of link 'tip'", "scale is", "none of them 0"),
    ),
    "missing collision mesh": (
        urdf(link=shape('<mesh filename="package://p/x.stl"/>')),
        ("link 'tip'", "package://p/x.stl", "not found", "package_dirs"),
    ),
    "collision mesh on the web": (
        urdf(link=shape('<mesh filename="http://host/x.stl"/>')),
        ("link 'tip'", "http://host/x.stl", "not fetched", "Add the file"),
    ),
}


def check_error(error, words, file):
    message = str(error)
    assert message.startswith(file)
    at = 0
    for word in words:
        assert word in message[at:], f"{word!r} is not in {message[at:]!r}"
        at = message.index(word, at) + len(word)
    assert error.remedy
    assert error.file == file
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("case", MALFORMED_URDF)
def test_malformed_urdf_is_refused(case):
    document, words = MALFORMED_URDF[case]
    builder = ModelBuilder()
    with pytest.raises(AssetError) as caught:
        builder.add_urdf(document)
    check_error(caught.value, words, "URDF text")
    assert builder.body_count == 0


def mjcf(body="", joint='<joint name="hinge"/>', geom='<geom name="ball" size="0.1"/>', rest=""):
    return f"""<mujoco><worldbody><body name="arm">{joint}{geom}{body}</body></worldbody>{rest}</mujoco>"""


MALFORMED_MJCF = {
    "broken XML": ("<mujoco><worldbody></mujoco>", ("XML parse error", "Correct the XML")),
    "other root": ("<sdf/>", ("sdf", "Pass an MJCF file")),
    "URDF": ('<robot name="a"><link name="b"/></robot>', ("<robot>", "add_urdf")),
    "a part to include": (
        '<mujocoinclude><body name="arm"/></mujocoinclude>',
        ("mujocoinclude", "pass the file that includes it"),
    ),
    "nothing in it": ("<mujoco/>", ("<worldbody>", "no bodies", "Check that this is the file")),
    "unknown element": ("<mujoco><wordbody/></mujoco>", ("unknown element <wordbody>", "Check that this")),
    "attribute of words": (
        mjcf(joint='<joint axis="0 x 0"/>'),
        ("element 'joint' (line 1)", "axis", "Write numbers"),
    ),
    "unknown class": (mjcf(joint='<joint class="no"/>'), ("'no'", "Define the default class")),
    "unknown mesh": (mjcf(geom='<geom type="mesh" mesh="m"/>'), ("mesh 'm' not found", "Define")),
    "unknown joint of an actuator": (
        mjcf(rest='<actuator><motor name="m" joint="knee"/></actuator>'),
        ("'m'", "'knee'", "Define"),
    ),
    "missing mesh file": (
        mjcf(geom='<geom type="mesh" mesh="m"/>', rest='<asset><mesh name="m" file="gone.stl"/></asset>'),
        ("gone.stl", "Add the file"),
    ),
    "missing include": ('<mujoco><include file="gone.xml"/></mujoco>', ("gone.xml", "Add the file")),
    "negative mass": (
        mjcf(geom='<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/>'),
        ("'arm'", "mass and inertia", "<inertial>"),
    ),
    "axis without direction": (mjcf(joint='<joint name="j" axis="0 0 0"/>'), ("'j'", "axis", "not zero")),
    "range the wrong way round": (
        mjcf(joint='<joint name="j" range="1 -1" limited="true"/>'),
        ("'j'", "range", "lower value first"),
    ),
    "negative size": (
        mjcf(geom='<geom name="g" type="box" size="1 1 -1"/>'),
        ("'g'", "size 2 must be positive", "sizes > 0"),
    ),
    "NaN range": (
        mjcf(joint='<joint name="j" range="0 nan"/>'),
        ("joint 'j'", "range is", "finite", "Correct"),
    ),
    "NaN friction": (
        mjcf(geom='<geom name="g" size="1" friction="nan"/>'),
        ("geom 'g'", "friction is", "Correct"),
    ),
    "negative friction": (
        mjcf(joint='<joint name="j" frictionloss="-1"/>'),
        ("joint 'j'", "frictionloss is -1.0", "Correct"),
    ),
    "NaN armature": (
        mjcf(joint='<joint name="j" armature="nan"/>'),
        ("joint 'j'", "armature is", "finite", "Correct"),
    ),
    "free joint on a child": (
        mjcf(body='<body name="leg"><freejoint/><geom size="0.1"/></body>'),
        ("'leg'", "free joint", "top level", "worldbody"),
    ),
    "plugin that is not loaded": (
        mjcf(rest='<extension><plugin plugin="mujoco.sdf.none"/></extension>'),
        ("plugin mujoco.sdf.none not found", "Load the library of the plugin"),
    ),
    "keyframe of the wrong length": (
        mjcf(rest='<keyframe><key name="k" qpos="1 2 3"/></keyframe>'),
        ("'k'", "expected 1, got 3", "one number per"),
    ),
}


@pytest.mark.parametrize("case", MALFORMED_MJCF)
def test_malformed_mjcf_is_refused(case):
    document, words = MALFORMED_MJCF[case]
    builder = ModelBuilder()
    with pytest.raises(AssetError) as caught:
        builder.add_mjcf(document)
    check_error(caught.value, words, "MJCF text")
    assert builder.body_count == 0


WRONG_OPTIONS = {
    "scale": (lambda b: b.add_urdf(urdf(), scale=0.0), "scale is 0.0"),
    "scale of MJCF": (lambda b: b.add_mjcf(mjcf(), scale=float("nan")), "scale is nan"),
    "armature scale": (lambda b: b.add_mjcf(mjcf(), armature_scale=-1.0), "armature_scale is -1.0"),
    "mesh scale": (lambda b: b.add_urdf(urdf(), mesh_scale=[1, 2]), "mesh_scale is"),
    "joint ordering": (
        lambda b: b.add_urdf(urdf(), joint_ordering="file"),
        "'dfs', 'bfs', 'dfs_by_name' or None",
    ),
    "hull vertices": (lambda b: b.add_urdf(urdf(), mesh_maxhullvert=3), "mesh_maxhullvert is 3"),
    "hull vertices of MJCF": (lambda b: b.add_mjcf(mjcf(), mesh_maxhullvert=3), "mesh_maxhullvert is 3"),
    "pose": (lambda b: b.add_urdf(urdf(), xform=(1, 2, 3)), "xform is"),
    "keyframe": (lambda b: b.add_mjcf(mjcf(), keyframe="home"), "no keyframes"),
    "floating of a hinged body": (
        lambda b: b.add_mjcf(mjcf(), floating=True),
        "joint 'hinge'.*Remove that joint",
    ),
    "pattern": (lambda b: b.add_mjcf(mjcf(), ignore_names="("), "ignore_names.*regular expression"),
}


@pytest.mark.parametrize("option", WRONG_OPTIONS)
def test_wrong_options_are_refused(option):
    call, words = WRONG_OPTIONS[option]
    with pytest.raises(ValueError, match=words):
        call(ModelBuilder())


def test_missing_files_are_named(tmp_path):
    for add in (ModelBuilder().add_urdf, ModelBuilder().add_mjcf):
        with pytest.raises(AssetFileError, match=r"gone\.xml.*Correct the path") as caught:
            add(tmp_path / "gone.xml")
        assert caught.value.file == str(tmp_path / "gone.xml")


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
MJCF_MESH = """<mujoco><asset><mesh name="m" file="pointer.{}"/></asset>
  <worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>"""

# Name: (suffix of the file, what reads it, document that names it, what the error names)
NOT_FETCHED = {
    "URDF": ("urdf", "add_urdf", None, r"^{path}: this is"),
    "MJCF": ("xml", "add_mjcf", None, r"^{path}: this is"),
    "included MJCF": (
        "xml",
        "add_mjcf",
        '<mujoco><include file="pointer.xml"/></mujoco>',
        "<include>: '{path}'",
    ),
    "mesh of a URDF": (
        "stl",
        "add_urdf",
        urdf(link=shape('<mesh filename="pointer.stl"/>')),
        "link 'tip': '{path}'",
    ),
    "STL of an MJCF": ("stl", "add_mjcf", MJCF_MESH.format("stl"), "<mesh> 'm': '{path}'"),
    "OBJ of an MJCF": ("obj", "add_mjcf", MJCF_MESH.format("obj"), "<mesh> 'm': '{path}'"),
}


@pytest.mark.parametrize("case", NOT_FETCHED)
def test_a_file_that_git_keeps_elsewhere_says_how_to_fetch_it(tmp_path, case):
    """Parsers say of it that the XML or a header is wrong."""
    suffix, add, document, named = NOT_FETCHED[case]
    path = source = tmp_path / f"pointer.{suffix}"
    path.write_text(POINTER)
    if document is not None:
        source = tmp_path / "robot.xml"
        source.write_text(document)
    message = named.format(path=path) + ".*pointer of Git LFS.*`git lfs pull`"
    with pytest.raises(AssetFileError, match=message):
        getattr(ModelBuilder(), add)(source)


def test_an_included_file_from_a_resolver_may_not_be_fetched_either(tmp_path):
    path = tmp_path / "pointer.xml"
    path.write_text(POINTER)
    with pytest.raises(AssetFileError, match=r"<include>.*`git lfs pull`"):
        ModelBuilder().add_mjcf(
            '<mujoco><include file="arm.xml"/></mujoco>', path_resolver=lambda folder, reference: str(path)
        )


def test_collision_mesh_along_a_line_is_refused(tmp_path):
    """A needle has no convex hull; the message says which link and what to use instead."""
    trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], process=False).export(
        tmp_path / "line.stl"
    )
    document = urdf(link=shape(f'<mesh filename="{tmp_path / "line.stl"}"/>'))
    with pytest.raises(AssetError, match=r"link 'tip'.*line\.stl.*lie in a plane.*box"):
        ModelBuilder().add_urdf(document)


def test_broken_collision_mesh_is_refused(tmp_path):
    (tmp_path / "bad.stl").write_text("solid nothing")
    document = urdf(link=shape(f'<mesh filename="{tmp_path / "bad.stl"}"/>'))
    with pytest.raises(AssetError, match=r"link 'tip'.*bad\.stl.*Repair or replace"):
        ModelBuilder().add_urdf(document)


def test_errors_of_a_file_name_the_file(tmp_path):
    (tmp_path / "robot.urdf").write_text(urdf(ends=("base", "top")))
    with pytest.raises(AssetError, match=rf"^{tmp_path}/robot\.urdf: .*line 3"):
        ModelBuilder().add_urdf(tmp_path / "robot.urdf")
