"""The XML tree of an MJCF document, for what MuJoCo's parser does not keep: what was written, and where."""

import copy
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from pluriverse.importers.errors import AssetError, AssetLimitError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.limits import DOCUMENT_COUNT_MAX, check_mjcf


class MjcfTree:
    """The elements of a document as written, with included files in place.

    Args:
        text: XML text of the main file.
        folder: Folder that included files are relative to, None for a text without files.
        file: What messages call the document.

    Raises:
        AssetError: If an included file cannot be read.
        AssetFileError: If an included file is only a pointer of Git LFS.
        AssetLimitError: If the document asks for too much.
    """

    def __init__(self, text: str, folder: Path | None, file: str):
        root = ElementTree.fromstring(text)
        check_mjcf(root, file)
        self.root = _expand(root, folder, file, depth=0, included=[])
        check_mjcf(self.root, file)
        self._defaults: dict[str, dict[str, dict[str, str]]] = {}
        for default in self.root.findall("default"):
            self._read_defaults(default, {}, top=True)
        self._class_of: dict[ElementTree.Element, str] = {}
        for tree in self.root.findall("worldbody"):
            self._read_classes(tree, "main")

    def attributes(self, element: ElementTree.Element) -> dict[str, str]:
        """Return the XML attributes of an element, those of its default class included."""
        name = element.get("class") or self._class_of.get(element, "main")
        tag = "tendon" if element.tag in ("fixed", "spatial") else element.tag
        return {**self._defaults.get(name, self._defaults.get("main", {})).get(tag, {}), **element.attrib}

    def names(self) -> set[str]:
        """Return the names of all XML attributes in the document."""
        return {name for element in self.root.iter() for name in element.attrib}

    def by_line(self, left_out: set[str]) -> tuple[str, dict[str, ElementTree.Element]]:
        """Return a text with one element per line, and the elements by what MuJoCo says of them ("line 3").

        Args:
            left_out: Names of XML attributes that the text does not have.
        """
        root = copy.deepcopy(self.root)
        for element in root.iter():
            element.text = element.tail = None
            for name in left_out & element.attrib.keys():
                del element.attrib[name]
        ElementTree.indent(root)
        text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)
        starts = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*<[^/]", line)]
        return text, {f"line {line}": own for line, own in zip(starts, self.root.iter(), strict=True)}

    def _read_defaults(
        self, default: ElementTree.Element, inherited: dict[str, dict[str, str]], *, top: bool = False
    ) -> None:
        name = default.get("class", "main" if top else "")
        known = self._defaults.get(name, inherited)
        own = {tag: dict(values) for tag, values in known.items()}
        for element in default:
            if element.tag != "default":
                own.setdefault(element.tag, {}).update(element.attrib)
        self._defaults[name] = own
        for element in default.findall("default"):
            self._read_defaults(element, own)

    def _read_classes(self, body: ElementTree.Element, inherited: str) -> None:
        """Record the default class of the elements in a body that name none."""
        inherited = body.get("childclass", inherited)
        for element in body:
            self._class_of[element] = inherited
            if element.tag in ("body", "frame", "replicate"):
                self._read_classes(element, inherited)


def _expand(
    element: ElementTree.Element, folder: Path | None, file: str, *, depth: int, included: list[Path]
) -> ElementTree.Element:
    """Replace `<include>` by the contents of the included files."""
    children: list[Any] = []
    for child in element:
        if child.tag != "include":
            children.append(_expand(child, folder, file, depth=depth, included=included))
            continue
        path = (folder or Path()) / child.get("file", "")
        try:
            if depth > 64:
                raise OSError("files include each other in a circle")
            included.append(path)
            if len(included) > DOCUMENT_COUNT_MAX:
                raise AssetLimitError(
                    f"more than {DOCUMENT_COUNT_MAX} documents are included",
                    file=file,
                    element="<include>",
                    remedy="Include each file once.",
                )
            check_fetched(path, file=file, element="<include>")
            content = ElementTree.parse(path).getroot()
            check_mjcf(content, str(path))
        except (OSError, ElementTree.ParseError) as error:
            raise AssetError(
                f"an included file cannot be read: {error}",
                file=file,
                element="<include>",
                value=child.get("file", ""),
                remedy="Add the file, or correct its path (relative to the main file).",
            ) from error
        children += list(_expand(content, folder, file, depth=depth + 1, included=included))
    del element[:]
    element.extend(children)
    return element
