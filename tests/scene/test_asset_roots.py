"""Scenes read files where they may, and nowhere else."""

import numpy as np
import pytest

from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.types import GeoType

from .scene_files import BOX, load_text, write_scene

MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
LINK = (
    "<robot name='r'><link name='a'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
    "ixz='0' iyz='0'/></inertial>{}</link></robot>"
)
URDF_MESH = LINK.format("<collision><geometry><mesh filename='{}'/></geometry></collision>")
MJCF_MESH = (
    "<mujoco>{}<asset><mesh name='m' file='{}'/></asset><worldbody><body><freejoint/><geom type='mesh' "
    "mesh='m'/></body></worldbody></mujoco>"
)
BODY = "<mujocoinclude><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujocoinclude>"
USD = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World"
{
    def Xform "Box" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
        %s
    )
    {
        def Cube "Shape" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double size = 0.2
        }
    }
}
"""


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return the folder of a scene and one beside it with files of all kinds; work elsewhere."""
    scene, secret, work = (tmp_path / name for name in ("scene", "secret", "work"))
    for folder in (scene, secret, work):
        folder.mkdir()
    (secret / "mesh.obj").write_text(MESH)
    (secret / "robot.urdf").write_text(URDF_MESH.format("mesh.obj"))
    (secret / "robot.xml").write_text(BODY.replace("mujocoinclude", "mujoco"))
    (secret / "part.xml").write_text(BODY)
    (secret / "robot.usda").write_text(USD % "")
    (secret / "scene.yaml").write_text(BOX)
    (secret / "control.json").write_text('{"joint_target_pos": {"dt": 1, "values": [[0, 0, 0, 0, 0, 0]]}}')
    monkeypatch.chdir(work)
    return scene, secret


def error_of(folder, text, root) -> str:
    """Return what is wrong with a scene that may read another folder; those here need not be whole."""
    try:
        load_text(folder, text, asset_roots=[root])
    except SapSceneLoaderError as error:
        return str(error)
    return ""


DIRECT = {
    "asset above": "assets: [{type: urdf, source: ../secret/robot.urdf}]",
    "asset by absolute path": "assets: [{type: urdf, source: SECRET/robot.urdf}]",
    "asset as a mapping": "assets: [{type: mjcf, source: {path: ../secret/robot.xml}}]",
    "asset behind a link": "assets: [{type: mjcf, source: link/robot.xml}]",
    "asset that is a link": "assets: [{type: mjcf, source: robot.xml}]",
    "stage": "assets: [{type: usd, source: ../secret/robot.usda}]",
    "packages": "assets: [{type: urdf, source: '<robot/>', package_dirs: [../secret]}]",
    "mesh of a shape": "bodies: [{id: a, shapes: [{type: mesh, path: ../secret/mesh.obj}]}]",
    "mesh of a shape by absolute path": "bodies: [{id: a, shapes: [{type: mesh, path: SECRET/mesh.obj}]}]",
    "mesh added later": BOX + "post_build: [{op: add_shape, type: mesh, path: ../secret/mesh.obj}]",
    "kind of world": "worlds: [{scene: ../secret/scene.yaml}]",
}


@pytest.mark.parametrize("name", DIRECT)
def test_files_elsewhere_are_refused_and_a_further_root_admits_them(folders, name):
    scene, secret = folders
    (scene / "link").symlink_to(secret)
    (scene / "robot.xml").symlink_to(secret / "robot.xml")
    text = DIRECT[name].replace("SECRET", str(secret))
    with pytest.raises(
        SapSceneLoaderError, match=r"scene\.yaml:\d+: .*lies outside of the folders.*asset_roots="
    ):
        load_text(scene, text)
    assert "outside" not in error_of(scene, text, secret)


INDIRECT = {
    "mesh of a URDF": ("urdf", URDF_MESH.format("../secret/mesh.obj")),
    "mesh of a URDF by absolute path": ("urdf", URDF_MESH.format("SECRET/mesh.obj")),
    "mesh of a URDF by address": ("urdf", URDF_MESH.format("file://SECRET/mesh.obj")),
    "mesh of a package above": ("urdf", URDF_MESH.format("package://secret/mesh.obj")),
    "mesh behind a link": ("urdf", URDF_MESH.format("link/mesh.obj")),
    "mesh of an MJCF": ("mjcf", MJCF_MESH.format("", "../secret/mesh.obj")),
    "mesh of an MJCF by absolute path": ("mjcf", MJCF_MESH.format("", "SECRET/mesh.obj")),
    "mesh folder of an MJCF": ("mjcf", MJCF_MESH.format("<compiler meshdir='../secret'/>", "mesh.obj")),
    "include": ("mjcf", "<mujoco><include file='../secret/part.xml'/></mujoco>"),
    "include of an include": ("mjcf", "<mujoco><include file='below/inner.xml'/></mujoco>"),
    "attached model": ("mjcf", "<mujoco><asset><model name='m' file='SECRET/robot.xml'/></asset></mujoco>"),
    "reference of a stage": ("usd", USD % "prepend references = @../secret/robot.usda@"),
    "payload of a stage": ("usd", USD % "prepend payload = @SECRET/robot.usda@"),
}


@pytest.mark.parametrize("name", INDIRECT)
@pytest.mark.parametrize("as_text", [False, True])
def test_what_an_asset_refers_to_lies_where_the_scene_may_read(folders, monkeypatch, name, as_text):
    scene, secret = folders
    kind, content = INDIRECT[name]
    content = content.replace("SECRET", str(secret))
    if kind == "usd":
        pytest.importorskip("pxr", reason="usd-core is not installed")
    (scene / "link").symlink_to(secret)
    (scene / "below").mkdir()
    (scene / "below" / "inner.xml").write_text(
        "<mujocoinclude><include file='../../secret/part.xml'/></mujocoinclude>"
    )
    suffix = {"urdf": "urdf", "mjcf": "xml", "usd": "usda"}[kind]
    (scene / f"robot.{suffix}").write_text(content)
    monkeypatch.chdir(scene)  # where references of a text begin
    source = repr(content) if as_text else f"robot.{suffix}"
    if as_text and kind == "usd":
        if "../" in content:
            pytest.skip("a text has no place, so a relative reference in it leads nowhere")
        source = "|\n" + "".join(f"      {line}\n" for line in content.splitlines())
    text = f"assets:\n  - type: {kind}\n    source: {source}\n"
    with pytest.raises(SapSceneLoaderError, match=r"assets\[0\].source: .*lies outside of the folders"):
        load_text(scene, text)
    assert "outside" not in error_of(scene, text, secret)


def test_paths_count_from_the_scene_file_and_then_from_the_current_directory(tmp_path, monkeypatch):
    """The second is how the format's first implementation counts, from the root of its repository."""
    (tmp_path / "scenes").mkdir()
    (tmp_path / "robots").mkdir()
    robot = "<mujoco><worldbody><body name='{}'><freejoint/><geom size='1'/></body></worldbody></mujoco>"
    (tmp_path / "robots" / "robot.xml").write_text(robot.format("of_directory"))
    scene = write_scene(tmp_path / "scenes", "assets: [{type: mjcf, source: robots/robot.xml}]")
    with pytest.raises(SapSceneLoaderError, match="there is no file"):
        load_scene(scene, device="cpu")
    monkeypatch.chdir(tmp_path)
    assert "of_directory" in load_scene(scene, device="cpu").body_labels[0]
    (tmp_path / "scenes" / "robots").mkdir()
    (tmp_path / "scenes" / "robots" / "robot.xml").write_text(robot.format("of_scene"))
    assert "of_scene" in load_scene(scene, device="cpu").body_labels[0]


def test_a_fragment_of_a_scene_does_not_widen_what_its_own_scenes_may_read(folders):
    """A kind of world from a file below may read what its outer scene may, no more."""
    scene, _ = folders
    (scene / "inner").mkdir()
    (scene / "mesh.obj").write_text(MESH)
    for path, admitted in (("../mesh.obj", True), ("../../secret/mesh.obj", False)):
        text = (
            f"bodies: [{{id: a, shapes: [{{type: mesh, path: {path}}}]}}]\n"
            "joints: [{id: f, type: free, child: a}]\n"
        )
        write_scene(scene / "inner", text, "kind.yaml")
        outer = write_scene(scene, "worlds: [{scene: inner/kind.yaml, count: 2}]")
        if admitted:
            assert load_scene(outer, device="cpu").model.body_count == 2
        else:
            with pytest.raises(SapSceneLoaderError, match=r"kind\.yaml:1: .*outside"):
                load_scene(outer, device="cpu")


MATERIALS = {
    "material": {"mesh.obj": "mtllib ../secret/m.mtl\n" + MESH},
    "material by absolute path": {"mesh.obj": "mtllib SECRET/m.mtl\n" + MESH},
    "texture": {"mesh.obj": "mtllib m.mtl\n" + MESH, "m.mtl": "newmtl a\nmap_Kd -clamp on ../secret/m.png\n"},
    "buffer": {"mesh.gltf": '{"asset": {"version": "2.0"}, "buffers": [{"uri": "..%2Fsecret/mesh.obj"}]}'},
    "picture": {"mesh.dae": "<COLLADA><image><init_from>file://SECRET/m.png</init_from></image></COLLADA>"},
}


@pytest.mark.parametrize("name", MATERIALS)
@pytest.mark.parametrize("by_asset", [False, True])
def test_what_a_mesh_refers_to_lies_where_the_scene_may_read(folders, name, by_asset):
    """Materials, textures and buffers, of meshes of the scene and of its assets."""
    scene, secret = folders
    (secret / "m.mtl").write_text("newmtl a\n")
    (secret / "m.png").write_bytes(b"")
    for file, text in MATERIALS[name].items():
        (scene / file).write_text(text.replace("SECRET", str(secret)))
    mesh = next(iter(MATERIALS[name]))
    (scene / "robot.urdf").write_text(URDF_MESH.format(mesh))
    text = (
        "assets: [{type: urdf, source: robot.urdf}]"
        if by_asset
        else (f"bodies: [{{id: a, shapes: [{{type: mesh, path: {mesh}}}]}}]")
    )
    with pytest.raises(SapSceneLoaderError, match="lies outside of the folders"):
        load_text(scene, text)
    assert "outside" not in error_of(scene, text, secret)


TRAPS = {
    "entity that reads a file": (
        "urdf",
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r"><link name="&x;"/></robot>',
        "document type",
    ),
    "entities that grow": (
        "mjcf",
        '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><mujoco model="&b;"/>',
        "document type",
    ),
    "copies without end": (
        "mjcf",
        "<mujoco><worldbody><replicate count='100000'><replicate count='100000'><body><geom size='1'/></body>"
        "</replicate></replicate></worldbody></mujoco>",
        "more than 1000000 elements",
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_documents_that_are_traps_for_parsers_are_refused(tmp_path, name):
    kind, text, message = TRAPS[name]
    with pytest.raises(SapSceneLoaderError, match=message):
        load_text(tmp_path, f"assets:\n  - type: {kind}\n    source: {text!r}\n")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "loop/a", ".", "/dev/zero", "fifo"])
def test_paths_that_are_no_files(tmp_path, path):
    import os

    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    scene = write_scene(
        tmp_path, f'assets: [{{type: mjcf, source: {{path: "{path}"}}}}]'.replace("\0", "\\0")
    )
    with pytest.raises(SapSceneLoaderError, match=r"scene\.yaml:1: assets\[0\].source"):
        load_scene(scene, device="cpu")


def test_a_missing_file_is_looked_for_below_other_folders_too(tmp_path):
    scene = tmp_path / "scene.yaml"
    scene.write_text("schema_version: 1\nassets: [{id: robot, type: mjcf, source: missing.xml}]\n")
    with pytest.raises(SapSceneLoaderError, match=r"no file '.*missing\.xml'.*asset_roots= \(--asset-root\)"):
        load_scene(scene, device="cpu")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "urdf",
            '<robot name="r"><link name="a"><collision><geometry>'
            '<mesh filename="package://store/part.obj"/></geometry></collision></link></robot>',
        ),
        (
            "mjcf",
            '<mujoco><asset><mesh name="p" file="part.obj"/></asset><worldbody><body>'
            '<geom type="mesh" mesh="p"/></body></worldbody></mujoco>',
        ),
    ],
)
def test_missing_files_of_assets_name_the_option(tmp_path, kind, text):
    """A package of URDF is found below such a folder."""
    (tmp_path / "scene").mkdir()
    (tmp_path / "scene" / "robot.xml").write_text(text)
    scene = tmp_path / "scene" / "scene.yaml"
    scene.write_text(
        "schema_version: 1\nname: s\nsimulation: {dt: 0.01, num_worlds: 1}\n"
        f"assets: [{{id: a, type: {kind}, source: robot.xml}}]\n"
    )
    with pytest.raises(SapSceneLoaderError, match=r"part\.obj.*asset_roots= \(--asset-root\)"):
        load_scene(scene, device="cpu")
    package = tmp_path / "elsewhere" / "store"
    package.mkdir(parents=True)
    (package / "part.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    )
    if kind == "urdf":
        model = load_scene(scene, device="cpu", asset_roots=[package.parent]).model
        assert np.count_nonzero(model.shape_type.numpy() == GeoType.CONVEX_MESH) == 1
