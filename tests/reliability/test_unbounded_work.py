"""Files of a few lines that stand for more than any machine holds: each meets a named limit."""

import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluriverse import ModelBuilder
from pluriverse.geometry import Texture
from pluriverse.geometry.mesh_file import load_triangles
from pluriverse.importers import AssetError, AssetLimitError, AssetWarning
from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.terrain_utils import SubTerrain

# What a refusal takes of a processor [s], many times over: it must not depend on what a file stands for.
REFUSAL_TIME_MAX = 20.0


def doubling_stage(level_count: int) -> str:
    """Return a stage in which each prim refers twice to the one before."""
    prims = ['#usda 1.0\n(\ndefaultPrim = "P0"\n)\ndef Xform "P0" {\n}']
    for level in range(1, level_count + 1):
        arcs = [f'def "{name}" (\nreferences = </P{level - 1}>\n) {{\n}}' for name in "ab"]
        prims.append(f'def Xform "P{level}" {{\n{arcs[0]}\n{arcs[1]}\n}}')
    return "\n".join(prims)


def chain(link_count: int) -> str:
    """Return a robot of links that hang on one another."""
    links = [f'<link name="l{k}"/>' for k in range(link_count)]
    joints = [
        f'<joint name="j{k}" type="fixed"><parent link="l{k}"/><child link="l{k + 1}"/></joint>'
        for k in range(link_count - 1)
    ]
    return f'<robot name="chain">{"".join(links + joints)}</robot>'


GEOM = '<geom size="0.1"/>'
NESTED = '<replicate count="1000">' * 3 + GEOM + "</replicate>" * 3
FIELD = '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'
DEEP = "<body>" * 100_000 + "</body>" * 100_000
ASSETS: dict[str, tuple[str, str, str]] = {
    "replicate": (
        "add_mjcf",
        f'<mujoco><worldbody><replicate count="1000000000">{GEOM}</replicate></worldbody></mujoco>',
        "elements",
    ),
    "nested replicate": ("add_mjcf", f"<mujoco><worldbody>{NESTED}</worldbody></mujoco>", "elements"),
    "height field": ("add_mjcf", f"<mujoco>{FIELD}<worldbody/></mujoco>", "heights"),
    "nested bodies": ("add_mjcf", f"<mujoco><worldbody>{DEEP}</worldbody></mujoco>", "nest"),
    "chain": ("add_urdf", chain(1_500), "hang on one another"),
    "links": ("add_urdf", chain(100_000), "links"),
    "references": ("add_usd", doubling_stage(40), "prims"),
    "nested prims": ("add_usd", "#usda 1.0\n" + 'def "p" {\n' * 100_000 + "}" * 100_000, "nest"),
}


@pytest.mark.parametrize("name", ASSETS)
def test_an_asset_that_stands_for_too_much_is_refused_at_once(tmp_path: Path, name: str):
    """As a text and as a file, before anything is made of it."""
    method, text, message = ASSETS[name]
    path = tmp_path / {"add_mjcf": "a.xml", "add_urdf": "a.urdf", "add_usd": "a.usda"}[method]
    path.write_text(text)
    begin = time.process_time()
    for source in (text, path):
        with pytest.raises(ValueError, match=message):
            getattr(ModelBuilder(), method)(source)
    assert time.process_time() - begin < REFUSAL_TIME_MAX


def test_files_that_include_each_other_twice_are_refused(tmp_path: Path):
    """Thirty files that each include the next one twice would be a billion."""
    for level in range(30):
        twice = f'<include file="{level + 1}.xml"/>' * 2
        (tmp_path / f"{level}.xml").write_text(f"<mujoco>{twice}</mujoco>")
    (tmp_path / "30.xml").write_text("<mujoco/>")
    with pytest.raises(AssetLimitError, match="included"):
        ModelBuilder().add_mjcf(tmp_path / "0.xml")


def test_stages_that_refer_to_each_other_in_a_circle_end(tmp_path: Path):
    """usd-core itself says what is wrong with a circle; the count must not follow it for ever."""
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.usda").write_text(
            f'#usda 1.0\n(\ndefaultPrim = "P"\nmetersPerUnit = 1\nupAxis = "Z"\n)\n'
            f'def Xform "P" (\nreferences = @{other}.usda@\n) {{\n}}\n'
        )
    with pytest.raises(AssetError, match="no rigid bodies"):
        ModelBuilder().add_usd(tmp_path / "a.usda")


@pytest.mark.parametrize("suffix", ["zae", "3mf"])
def test_a_packed_mesh_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, suffix: str):
    """The size is looked up before anything is unpacked."""
    path = tmp_path / f"bomb.{suffix}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("3D/3dmodel.model", b" ")
        archive.infolist()[0].file_size = 600 << 20  # what its table of contents says
    with pytest.raises(ValueError, match="unpacks to 600 MiB"):
        load_triangles(path, apply_up_axis=True)


def write_png(path: Path, width: int, height: int) -> Path:
    """Write the beginning of a grey image, which says how large it is."""
    head = struct.pack(">II5B", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(bytes(width + 1))), (b"IEND", b"")]
    blocks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(blocks))
    return path


SKIN = """<mujoco><asset><texture name="t" type="2d" {image}/><material name="m" texture="t"/></asset>
<worldbody><body><freejoint/><geom size="0.1" material="m"/></body></worldbody></mujoco>"""
GROUND = """<mujoco><asset><hfield name="h" file="{image}" size="1 1 1 1"/></asset>
<worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>"""
SHEET = "mtllib m.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\n" + "".join(
    f"f {a}/1 {b}/1 {c}/1\n" for a, b, c in ((1, 3, 2), (1, 2, 4), (2, 3, 4), (1, 4, 3))
)


# Pillow itself refuses only the larger of the two.
@pytest.mark.parametrize("side", [9_000, 60_000])
@pytest.mark.filterwarnings("ignore:Image size")
def test_an_image_of_gigapixels_is_not_unpacked(tmp_path: Path, side: int):
    """Robots come without their texture, and say so; a ground whose heights it has does not come at all."""
    image = write_png(tmp_path / "bomb.png", side, side)
    begin = time.process_time()
    for source in (f'file="{image}"', f'builtin="checker" width="{side}" height="{side}"'):
        builder = ModelBuilder()
        with pytest.warns(AssetWarning, match=f"it is not drawn: the image has {side} x {side} pixels"):
            builder.add_mjcf(SKIN.format(image=source))
        assert builder.body_count == 1
    with pytest.raises(AssetLimitError, match=f"{side} x {side} pixels"):
        ModelBuilder().add_mjcf(GROUND.format(image=image))
    with pytest.raises(ValueError, match=r"pixels.*(more than|exceeds limit)"):
        Texture.load(image)
    (tmp_path / "m.mtl").write_text("newmtl a\nKd 1 0 0\nmap_Kd bomb.png\n")
    (tmp_path / "m.obj").write_text(SHEET)
    with pytest.warns(UserWarning, match=r"texture 'bomb.png' is not drawn: .*pixels"):
        load_triangles(tmp_path / "m.obj", apply_up_axis=True)
    assert time.process_time() - begin < REFUSAL_TIME_MAX


YAML: dict[str, Callable[[], str]] = {
    "anchors": lambda: "\n".join(["x:", *(f" - &a{k} {{k: 1}}" for k in range(100_000))]),
    "dashes": lambda: "x: " + "- " * 1_000_000,
    "brackets": lambda: "x: " + "[" * 1_000_000,
    "laughs": lambda: "\n".join(
        ["l0: &l0 [x, x]", *(f"l{k}: &l{k} [{','.join([f'*l{k - 1}'] * 10)}]" for k in range(1, 12))]
    ),
    "merges": lambda: "\n".join(
        [
            f"b: &b {{{', '.join(f'k{k}: 1' for k in range(2000))}}}",
            *(f"c{k}: {{<<: [{', '.join(['*b'] * 10)}]}}" for k in range(1000)),
        ]
    ),
}


@pytest.mark.parametrize("name", YAML)
def test_two_megabytes_of_yaml_are_refused_before_they_are_read(tmp_path: Path, name: str):
    """YAML costs by its anchors, brackets and merges, not by its lines."""
    path = tmp_path / "scene.yaml"
    path.write_text(f"schema_version: 1\n{YAML[name]()}\n")
    begin = time.process_time()
    with pytest.raises(SapSceneLoaderError, match=r"too long for YAML|expands to more"):
        load_scene(path)
    assert time.process_time() - begin < REFUSAL_TIME_MAX


def test_a_terrain_of_ten_billion_samples_is_refused():
    """It would take 20 GB."""
    with pytest.raises(ValueError, match="samples"):
        SubTerrain(width=100_000, length=100_000)
    sizes: Any = (2**40, 2**40)
    with pytest.raises(ValueError, match="samples"):
        SubTerrain("far", *sizes)
