"""Names of files inside of meshes, written so that a careless reader does not see what they name."""

import json
from pathlib import Path

import pytest

from pluriverse.scene.asset_references import check_mesh
from pluriverse.scene.errors import FieldError

OUTSIDE = [
    r"..\u002fsecret.bin",
    "..%2fsecret.bin",
    "../secret.bin",
    r"..\\secret.bin",
    "file://../secret.bin",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that may be read, beside a file that may not."""
    (tmp_path / "secret.bin").write_bytes(b"secret")
    (tmp_path / "open").mkdir()
    return tmp_path / "open"


def document(uri: str) -> str:
    """Return a glTF document with a name as it stands in JSON."""
    return f'{{"asset": {{"version": "2.0"}}, "buffers": [{{"byteLength": 6, "uri": "{uri}"}}]}}'


@pytest.mark.parametrize("uri", OUTSIDE)
def test_a_gltf_is_decoded_before_its_references_are_checked(folder: Path, uri: str):
    """An escape of JSON, of an address or of another system names the same file."""
    (folder / "mesh.gltf").write_text(document(uri))
    with pytest.raises(FieldError, match=r"secret\.bin"):
        check_mesh(folder / "mesh.gltf", [folder])


@pytest.mark.parametrize("uri", OUTSIDE)
def test_a_binary_gltf_is_checked_too(folder: Path, uri: str):
    """Its first chunk is the same document."""
    text = document(uri).encode()
    text += b" " * (-len(text) % 4)
    head = b"glTF" + (2).to_bytes(4, "little") + (20 + len(text)).to_bytes(4, "little")
    (folder / "mesh.glb").write_bytes(head + len(text).to_bytes(4, "little") + b"JSON" + text)
    with pytest.raises(FieldError, match=r"secret\.bin"):
        check_mesh(folder / "mesh.glb", [folder])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mesh.ply", "ply\nformat ascii 1.0\ncomment TextureFile ../secret.bin\nend_header\n"),
        ("mesh.obj", "MTLLIB own.mtl ../secret.bin\n"),
        ("mesh.dae", "<COLLADA><init_from>..&#x2f;secret.bin</init_from></COLLADA>"),
    ],
)
def test_other_meshes_that_name_a_file_outside_are_refused(folder: Path, name: str, text: str):
    """Textures of PLY, libraries of OBJ and images of DAE are references as well."""
    (folder / name).write_text(text)
    with pytest.raises(FieldError, match=r"secret\.bin"):
        check_mesh(folder / name, [folder])


def test_references_inside_of_the_folder_are_allowed(folder: Path):
    """Data addresses, files beside the mesh and broken documents pass: readers tell more of the latter."""
    (folder / "own.bin").write_bytes(b"")
    for uri in ("own.bin", "data:application/octet-stream;base64,AAAA", "missing.bin"):
        (folder / "mesh.gltf").write_text(document(uri))
        check_mesh(folder / "mesh.gltf", [folder])
    (folder / "mesh.gltf").write_text(json.dumps({"buffers": [{"uri": 3}]})[:-2])
    check_mesh(folder / "mesh.gltf", [folder])
    (folder / "mesh.glb").write_bytes(b"glTF\x02")
    check_mesh(folder / "mesh.glb", [folder])
