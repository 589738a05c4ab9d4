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


USD_ROOT = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
    defaultPrim = "World"
    subLayers = [@store://scene/ground.usda@]
)
def Xform "World"
{
    def Xform "Cup" (prepend references = @cup.usd@)
    {
    }
    def Xform "Other" (prepend payload = @cup.usd@)
    {
        double3 xformOp:translate = (1, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
"""
USD_GROUND = """#usda 1.0
over "World"
{
    def Plane "Ground" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        uniform token axis = "Z"
    }
}
"""
USD_CUP = """#usda 1.0
(
    defaultPrim = "Cup"
)
def Xform "Cup" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    prepend references = @../parts/wall.usda@
)
{
}
"""
USD_WALL = """#usda 1.0
(
    defaultPrim = "Wall"
)
def Xform "Wall"
{
    def Cube "Shape" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"])
    {
        double size = 0.2
        rel material:binding = </Wall/Paint>
    }
    def Material "Paint"
    {
        token outputs:surface.connect = </Wall/Paint/Surface.outputs:surface>
        def Shader "Surface"
        {
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor.connect = </Wall/Paint/Image.outputs:rgb>
            token outputs:surface
        }
        def Shader "Image"
        {
            uniform token info:id = "UsdUVTexture"
            asset inputs:file = @paint.png@
            float3 outputs:rgb
        }
    }
}
"""


@pytest.mark.parametrize("as_file", [False, True])
def test_layers_and_textures_of_usd_come_from_where_the_caller_says(tmp_path, as_file):
    """Sublayers, references, payloads, references of these, and a texture; each is asked for once a layer."""
    pytest.importorskip("pxr")
    from PIL import Image

    Image.new("RGB", (2, 2), (255, 0, 0)).save(tmp_path / "77.png")
    files = {
        "store://scene/ground.usda": ("1a.usda", USD_GROUND),
        "cup.usd": ("2b.usda", USD_CUP),
        "../parts/wall.usda": ("3c.usda", USD_WALL),
    }
    for name, text in files.values():
        (tmp_path / name).write_text(text)
    places = {reference: tmp_path / name for reference, (name, _) in files.items()}
    places["paint.png"] = tmp_path / "77.png"
    asked = []

    def resolve(base, reference):
        asked.append((base, reference))
        return str(places[reference])

    source = USD_ROOT
    if as_file:
        folder = tmp_path / "stages"
        folder.mkdir()
        (folder / "root.usda").write_text(source)
        source = folder / "root.usda"
    builder = pv.ModelBuilder()
    builder.add_usd(source, path_resolver=resolve, strict=True)
    base = str(tmp_path / "stages") if as_file else None
    inner = str(tmp_path)
    assert sorted(asked, key=str) == sorted(
        [
            (base, "store://scene/ground.usda"),
            (base, "cup.usd"),
            (inner, "../parts/wall.usda"),
            (inner, "paint.png"),
        ],
        key=str,
    )
    assert builder.body_label == ["/World/Cup", "/World/Other"]
    assert sorted(builder.shape_type.tolist()) == sorted([GeoType.PLANE, GeoType.BOX, GeoType.BOX])
    np.testing.assert_allclose(builder.body_mass, 1000.0 * 0.2**3, rtol=1e-6)
    assert any(look.texture is not None for look in builder.appearances)


def test_wrong_answers_for_usd_are_refused(tmp_path):
    pxr = pytest.importorskip("pxr")
    with pytest.raises(AssetFileError, match=r"path_resolver returned '/nowhere\.usd', where"):
        pv.ModelBuilder().add_usd(USD_ROOT, path_resolver=lambda base, path: "/nowhere.usd")
    with pytest.raises(AssetFileError, match=r"path_resolver returned None .*no path"):
        pv.ModelBuilder().add_usd(USD_ROOT, path_resolver=lambda base, path: None)
    with pytest.raises(KeyError, match="ground"):
        pv.ModelBuilder().add_usd(USD_ROOT, path_resolver=lambda base, path: {}[path])
    stage = pxr.Usd.Stage.CreateInMemory()
    with pytest.raises(ValueError, match=r"found its files when it was opened.*Pass the file"):
        pv.ModelBuilder().add_usd(stage, path_resolver=lambda base, path: path)
