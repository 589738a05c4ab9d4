"""References of asset files: they must lie where the scene may read, and have a reasonable size.

The importers and the libraries below them follow every path. So the documents are checked before they are
imported; for an ambiguous path, every possible place is checked.
"""

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from pluriverse.importers.asset_files import AssetFiles
from pluriverse.importers.limits import DOCUMENT_COUNT_MAX, ELEMENT_COUNT_MAX, element_count
from pluriverse.scene.errors import FieldError
from pluriverse.scene.local_files import is_below, outside_message


def check_references(kind: str, source: Path | str, roots: Sequence[Path], packages: Sequence[Path]) -> None:
    """Check what an asset refers to, before it is imported.

    Args:
        kind: Type of the asset: `urdf`, `mjcf` or `usd`.
        source: Its file, or its text.
        roots: Folders that its files may lie in.
        packages: Folders of ROS packages.

    Raises:
        FieldError: A file lies elsewhere, or the document is a trap for parsers.
    """
    if kind == "usd":
        _check_usd(source, roots)
        return
    for path in _urdf_paths(source, packages) if kind == "urdf" else _mjcf_paths(source):
        _check_path(path, roots)
        check_mesh(path, roots)


def check_mesh(path: Path, roots: Sequence[Path]) -> None:
    """Check what the file of a mesh refers to: materials, textures, buffers.

    Raises:
        FieldError: A file lies elsewhere.
    """
    for referenced in _mesh_paths(path):
        _check_path(referenced, roots)
        for texture in _mesh_paths(referenced) if referenced.suffix.lower() == ".mtl" else ():
            _check_path(texture, roots)


def _check_path(path: Path, roots: Sequence[Path]) -> None:
    try:
        if path.exists() and not is_below(path, roots):
            raise FieldError(outside_message(path.resolve(), roots))
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, FieldError):
            raise
        raise FieldError(f"the reference to '{path}' cannot be followed: {error}") from error


# Where the text of a mesh names other files.
_MESH_REFERENCES = {
    ".obj": re.compile(rb"^\s*mtllib\s+(.+?)\s*$", re.MULTILINE | re.IGNORECASE),
    ".mtl": re.compile(
        rb"^\s*(?:map_\w+|bump|disp|decal|refl|norm)\s+(?:.*\s)?(\S+)\s*$", re.MULTILINE | re.IGNORECASE
    ),
    ".dae": re.compile(rb"<init_from>\s*(?:<ref>)?\s*([^<]+?)\s*<"),
    ".ply": re.compile(rb"^\s*comment\s+texturefile\s+(.+?)\s*$", re.MULTILINE | re.IGNORECASE),
}
_GLB_JSON = b"JSON"
_PLY_END = b"end_header"


def _mesh_paths(path: Path) -> Iterator[Path]:
    """Yield the files that a mesh or a material refers to, by every way in which a name may be read."""
    suffix = path.suffix.lower()
    if not path.is_file():
        return
    if suffix in (".gltf", ".glb"):
        found = list(_gltf_references(path.read_bytes()))
    elif suffix in _MESH_REFERENCES:
        data = path.read_bytes()
        if suffix == ".ply":
            data = data[: data.find(_PLY_END) if _PLY_END in data else len(data)]
        found = [
            name.decode("utf-8", errors="replace")
            for name in dict.fromkeys(_MESH_REFERENCES[suffix].findall(data))
        ]
        if suffix == ".obj":
            found += [name for line in found for name in line.split()]
    else:
        return
    for reference in found:
        for name in dict.fromkeys((reference, unquote(reference), html.unescape(reference))):
            bare = name.removeprefix("file://")
            if bare.startswith("data:") or "\0" in bare:
                continue
            yield path.parent / bare
            if "\\" in bare:
                yield path.parent / bare.replace("\\", "/")


def _gltf_references(data: bytes) -> Iterator[str]:
    """Yield the names of files in a glTF document, text or binary, as its JSON, decoded, has them."""
    if data[:4] == b"glTF":
        length = int.from_bytes(data[12:16], "little")
        data = data[20 : 20 + length] if data[16:20] == _GLB_JSON else b""
    try:
        waiting = [json.loads(data.decode("utf-8-sig"))]
    except (ValueError, RecursionError):
        return  # what reads the mesh says what is wrong with it
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key, part in value.items():
                if key == "uri" and isinstance(part, str):
                    yield part
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _parse_xml(text: str, name: str) -> ElementTree.Element | None:
    """Return the root of a document, or None if it is broken, which the importer reports in detail."""
    # Entities can make gigabytes of a few lines, and read files.
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise FieldError(f"{name}: a document type (<!DOCTYPE ...>) is not allowed in an asset; remove it")
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return None


def _read(source: Path | str) -> tuple[str, str, Path]:
    """Return text, name and folder of a document."""
    if isinstance(source, Path):
        return source.read_text(encoding="utf-8", errors="replace"), source.name, source.parent
    return source.lstrip("\ufeff \t\r\n"), "the text", Path.cwd()


def _urdf_paths(source: Path | str, packages: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that a URDF document refers to."""
    text, name, _ = _read(source)
    root = _parse_xml(text, name)
    if root is None:
        return
    files = AssetFiles(source if isinstance(source, Path) else None, packages)
    for element in root.iter():
        reference = element.get("filename")
        if reference is not None and "\0" not in reference:
            found, _ = files.find(reference)
            if found is not None:
                yield found


def _mjcf_paths(source: Path | str) -> Iterator[Path]:
    """Yield the places that the files of an MJCF document could have."""
    text, name, folder = _read(source)
    waiting = [(text, name)]
    seen: set[Path] = set()
    files: set[str] = set()
    bases, folders = {folder}, {""}
    while waiting:
        text, name = waiting.pop()
        root = _parse_xml(text, name)
        if root is None:
            continue
        if element_count(root) > ELEMENT_COUNT_MAX:
            raise FieldError(
                f"{name}: its counts make more than {ELEMENT_COUNT_MAX} elements; lower the counts of "
                "<replicate>, <composite> or <flexcomp>"
            )
        for element in root.iter():
            if element.tag == "compiler":
                folders |= {element.get(key, "") for key in ("meshdir", "texturedir", "assetdir")}
            for key, reference in element.attrib.items():
                if not key.startswith("file") or not reference:
                    continue
                files.add(reference)
                if element.tag not in ("include", "model"):
                    continue
                for path in [base / reference for base in sorted(bases)]:
                    if path in seen or not path.is_file():
                        continue
                    yield path  # checked before it is read
                    seen.add(path)
                    if len(seen) > DOCUMENT_COUNT_MAX:
                        raise FieldError(f"{name}: more than {DOCUMENT_COUNT_MAX} documents are included")
                    bases.add(path.parent)
                    waiting.append((path.read_text(encoding="utf-8", errors="replace"), path.name))
    for base in sorted(bases):
        for below in sorted(folders):
            for reference in sorted(files):
                yield base / below / reference


def _check_usd(source: Path | str, roots: Sequence[Path]) -> None:
    """Check the layers and files that a stage is made of."""
    try:
        from pxr import Sdf, Tf, UsdUtils
    except ImportError:
        return  # the importer says which package is missing
    try:
        if isinstance(source, str):
            layer = Sdf.Layer.CreateAnonymous(".usda")
            if not layer.ImportFromString(source):
                return
            starts = [Path(name) for name in layer.GetCompositionAssetDependencies()]
        else:
            starts = [source]
        waiting = [path for path in starts if path.is_file()]
        for path in waiting:
            if not is_below(path, roots):
                raise FieldError(outside_message(path.resolve(), roots))
            layers, assets, _ = UsdUtils.ComputeAllDependencies(str(path))
            for name in [*(found.realPath for found in layers), *assets]:
                file = Path(re.sub(r"\[.*\]$", "", str(name)))  # a file inside of a package (.usdz)
                if name and file.exists() and not is_below(file, roots):
                    raise FieldError(outside_message(file.resolve(), roots))
    except (Tf.ErrorException, RuntimeError):
        return  # a broken layer, which the importer reports in detail
