"""A caller's way to find the files of a document: `path_resolver` of `add_mjcf` and `add_urdf`."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from pluriverse.importers.errors import AssetError, AssetFileError, AssetLimitError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.limits import check_mjcf

PathResolver = Callable[[str | None, str], str]
"""Takes the folder of the document that refers to a file, None for text, and the reference; returns a path.
For `<include>` of MJCF it may return the XML text of the included document."""

# Depth of documents that include each other.
DEPTH_MAX = 64
# Folders of the `<compiler>` that references of elements start at, and the attributes that are references.
_FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir", "model": ""}
_SIDES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
# Elements that MuJoCo names after their file unless they have a name.
_NAMED = ("mesh", "hfield", "skin", "texture")


def as_path(found: Any, reference: str, *, file: str, element: str) -> Path:
    """Return what a resolver returned for a reference as an absolute path. There may be no file.

    Raises:
        AssetFileError: If it is no path.
    """
    if not isinstance(found, str | Path) or not str(found):
        raise AssetFileError(
            f"path_resolver returned {found!r:.120} for it, which is no path",
            file=file,
            element=element,
            value=reference,
            remedy="Return the path of a file, a str.",
        )
    return Path(found).absolute()


def resolve_mjcf(text: str, folder: Path | None, resolver: PathResolver, name: str) -> str:
    """Return an MJCF document with included documents in place and absolute paths of all files.

    Args:
        text: XML text of the main document.
        folder: Its folder, None for text.
        resolver: Finds the files.
        name: What messages call the document.

    Raises:
        AssetFileError: If the resolver returns no path, or for an included document none of a file, or of a
            pointer of Git LFS.
        AssetError: If an included document is not well-formed.
        AssetLimitError: If documents include each other without end.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return text  # MuJoCo's parser says best what is wrong with it
    base = None if folder is None else str(folder)
    _include(root, base, resolver, name, 0)
    compilers = list(root.iter("compiler"))
    settings = {key: value for compiler in compilers for key, value in compiler.attrib.items()}
    for compiler in compilers:  # MuJoCo would strip the folders of the paths found
        compiler.attrib.pop("strippath", None)
    strips = settings.get("strippath") == "true"
    for asset in root.iter("asset"):
        for element in asset:
            kind = _FOLDERS.get(element.tag)
            for attribute in ("file", *_SIDES) if kind is not None else ():
                reference = element.get(attribute)
                if not reference:
                    continue
                start = settings.get(kind or "", settings.get("assetdir", "") if kind else "")
                within = PurePosixPath(start) / (PurePosixPath(reference).name if strips else reference)
                what = f"<{element.tag} {attribute}='{reference}'>"
                path = as_path(resolver(base, str(within)), reference, file=name, element=what)
                element.set(attribute, str(path))
                if attribute == "file" and element.tag in _NAMED and not element.get("name"):
                    element.set("name", PurePosixPath(reference).stem)
    return ElementTree.tostring(root, encoding="unicode")


def _include(
    element: ElementTree.Element, base: str | None, resolver: PathResolver, name: str, depth: int
) -> None:
    """Replace `<include>` by the contents of the included documents."""
    if depth > DEPTH_MAX:
        raise AssetLimitError(
            f"documents include each other more than {DEPTH_MAX} deep",
            file=name,
            element="<include>",
            remedy="Include no document in itself.",
        )
    children: list[ElementTree.Element] = []
    for child in element:
        if child.tag != "include":
            _include(child, base, resolver, name, depth)
            children.append(child)
            continue
        reference = child.get("file", "")
        found: Any = resolver(base, reference)
        inner = base
        if not (isinstance(found, str) and found.lstrip("\ufeff \t\r\n").startswith("<")):
            path = as_path(found, reference, file=name, element="<include>")
            if not path.is_file():
                raise AssetFileError(
                    f"path_resolver returned '{path}', where there is no file",
                    file=name,
                    element="<include>",
                    value=reference,
                    remedy="Return the path of a file that exists, or the XML text.",
                )
            check_fetched(path, file=name, element="<include>")
            found, inner = path.read_text(errors="replace"), str(path.parent)
        try:
            content = ElementTree.fromstring(found.lstrip("\ufeff \t\r\n"))
        except ElementTree.ParseError as error:
            raise AssetError(
                f"an included document cannot be read: {error}",
                file=name,
                element="<include>",
                value=reference,
                remedy="Correct its XML, or what path_resolver returns for it.",
            ) from error
        check_mjcf(content, reference)
        _include(content, inner, resolver, name, depth + 1)
        children += list(content)
    del element[:]
    element.extend(children)
