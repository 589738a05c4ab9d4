"""Files found by a callable of the caller, as scripts with assets in a store of their own give it."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.importers import AssetError, AssetFileError, AssetLimitError
from pluriverse.types import GeoType

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"

ROBOT = """<mujoco model="robot"><compiler meshdir="meshes" strippath="{strip}"/>
<asset><mesh file="store/part.obj"/></asset>
<worldbody><include file="arm.xml"/></worldbody></mujoco>"""
ARM = """<mujocoinclude><body name="arm"><joint name="hinge" axis="0 1 0"/>
<geom type="mesh" mesh="part"/><include file="tip.xml"/></body></mujocoinclude>"""
TIP = '<mujocoinclude><site name="tip" pos="0 0 1"/></mujocoinclude>'

URDF = """<robot name="robot"><link name="base"><collision><geometry>
<mesh filename="package://store/part.obj"/></geometry></collision></link></robot>"""


@pytest.fixture
def store(tmp_path):
    """Return a folder whose files have other names than the references, and the file of the mesh."""
    part = tmp_path / "3f2a.obj"
    part.write_text(TETRAHEDRON)
    (tmp_path / "9c.xml").write_text(ARM)
    return tmp_path


@pytest.mark.parametrize(
    ("strip", "wanted"), [("false", "meshes/store/part.obj"), ("true", "meshes/part.obj")]
)
@pytest.mark.parametrize("as_file", [False, True])
def test_documents_and_meshes_come_from_where_the_caller_says(store, strip, wanted, as_file):
    """Included documents may be files or texts; a mesh keeps the name that MuJoCo gives it after its file."""
    asked = []

    def resolve(base, path):
        asked.append((base, path))
        return {"arm.xml": str(store / "9c.xml"), "tip.xml": TIP, wanted: str(store / "3f2a.obj")}[path]

    source = ROBOT.format(strip=strip)
    if as_file:
        folder = store / "robots"
        folder.mkdir()
        (folder / "robot.xml").write_text(source)
        source = folder / "robot.xml"
    builder = pv.ModelBuilder()
    builder.add_mjcf(source, path_resolver=resolve, strict=True)
    base = str(store / "robots") if as_file else None
    assert asked == [(base, "arm.xml"), (str(store), "tip.xml"), (base, wanted)]
    assert builder.joint_label == ["robot/worldbody/arm/hinge"]
    assert builder.shape_label[-1].endswith("arm/tip")
    assert builder.shape_type[0] == GeoType.CONVEX_MESH
    np.testing.assert_allclose(builder.body_mass[0], 1000.0 / 6.0, rtol=1e-6)


def test_meshes_of_urdf_come_from_where_the_caller_says(store):
    builder = pv.ModelBuilder()
    asked = []

    def resolve(base, path):
        asked.append((base, path))
        return store / "3f2a.obj"

    builder.add_urdf(URDF, path_resolver=resolve)
    assert set(asked) == {(None, "package://store/part.obj")}
    assert builder.shape_type.tolist() == [GeoType.CONVEX_MESH]


def test_wrong_answers_of_a_path_resolver_are_refused():
    for answer in (None, 7, ""):
        with pytest.raises(AssetFileError, match=r"path_resolver returned .*, which is no path"):
            pv.ModelBuilder().add_urdf(URDF, path_resolver=lambda base, path, answer=answer: answer)
    with pytest.raises(AssetFileError, match=r"the collision mesh .* was not found \(not at /nowhere"):
        pv.ModelBuilder().add_urdf(URDF, path_resolver=lambda base, path: "/nowhere/part.obj")
    robot = ROBOT.format(strip="false")
    with pytest.raises(AssetFileError, match="path_resolver returned '/nowhere', where there is no file"):
        pv.ModelBuilder().add_mjcf(robot, path_resolver=lambda base, path: "/nowhere")
    with pytest.raises(AssetError, match="an included document cannot be read"):
        pv.ModelBuilder().add_mjcf(robot, path_resolver=lambda base, path: "<mujocoinclude>")
    endless = '<mujocoinclude><include file="again.xml"/></mujocoinclude>'
    with pytest.raises(AssetLimitError, match="documents include each other more than 64 deep"):
        pv.ModelBuilder().add_mjcf(robot, path_resolver=lambda base, path: endless)
    with pytest.raises(ZeroDivisionError):  # an error of the caller's own stays that
        pv.ModelBuilder().add_mjcf(robot, path_resolver=lambda base, path: 1 / 0)
