"""Limits of documents, checked before anything is built from them.

A few lines with counts, nesting or references can expand to more than any machine holds. The limits are far
above real models; a document that exceeds one is refused at once.
"""

import contextlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pluriverse.importers.errors import AssetLimitError

ELEMENT_COUNT_MAX = 1_000_000
"""Elements that the counts of an MJCF document (`<replicate count=...>` and the like) may make."""
DOCUMENT_COUNT_MAX = 1_000
"""Documents that an MJCF document may include."""
ELEMENT_DEPTH_MAX = 500
"""Elements of an MJCF document inside one another; MuJoCo's parser takes as many."""
HEIGHT_COUNT_MAX = 2**26
"""Heights of a height field: 8192 in each direction."""
LINK_COUNT_MAX = 20_000
"""Links of a URDF document."""
LINK_DEPTH_MAX = 1_000
"""Links in a chain of a URDF document."""
PRIM_COUNT_MAX = 1_000_000
"""Prims of a USD stage, counting those of references once per reference."""
PRIM_DEPTH_MAX = 500
"""Prims of a USD layer inside one another, which usd-core's parser follows by calling itself."""


def element_count(root: ElementTree.Element) -> float:
    """Return the number of elements that an MJCF element expands to."""
    # From the leaves up, since documents may nest deeper than functions.
    sizes: dict[ElementTree.Element, float] = {}
    for part in reversed(list(root.iter())):
        factor = 1.0
        if part.tag in ("replicate", "composite", "flexcomp", "layer"):
            for number in part.get("count", "1").split():
                with contextlib.suppress(ValueError):  # the importer says what is wrong with it
                    factor *= max(1.0, float(number))
        sizes[part] = factor * (1.0 + sum(sizes.pop(child) for child in part))
    return sizes[root]


def check_mjcf(root: ElementTree.Element, file: str) -> None:
    """Raise if the elements of an MJCF document exceed the limits.

    Raises:
        AssetLimitError: If they make too many elements, nest too deeply, or a height field is too large.
    """
    count = element_count(root)
    if not count <= ELEMENT_COUNT_MAX:
        raise AssetLimitError(
            f"its counts make {count:.3g} elements, more than {ELEMENT_COUNT_MAX:,}",
            file=file,
            value=count,
            remedy="Lower the counts of <replicate>, <composite> or <flexcomp>.",
        )
    level, depth = [root], 0
    while level:
        level, depth = [child for element in level for child in element], depth + 1
        if depth > ELEMENT_DEPTH_MAX:
            raise AssetLimitError(
                f"its elements nest more than {ELEMENT_DEPTH_MAX} deep",
                file=file,
                value=depth,
                remedy="Build such a chain with the ModelBuilder.",
            )
    for field in root.iter("hfield"):
        try:
            heights = float(field.get("nrow", "0")) * float(field.get("ncol", "0"))
        except ValueError:
            continue  # MuJoCo says what is wrong with it
        if heights > HEIGHT_COUNT_MAX:
            raise AssetLimitError(
                f"the height field has {heights:.3g} heights, more than {HEIGHT_COUNT_MAX:,}",
                file=file,
                element=f'<hfield name="{field.get("name", "")}">',
                value=heights,
                remedy="Lower nrow and ncol.",
            )


_USD_QUOTED = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|@@@.*?@@@|@[^@\n]*@|#[^\n]*',
    re.DOTALL,
)


def check_usda_text(text: str, file: str) -> None:
    """Raise if the prims of a usda text nest too deeply: usd-core's parser would end the process.

    Raises:
        AssetLimitError: If they do.
    """
    depth = 0
    for sign in re.findall(r"[{}\[\](]|\)", _USD_QUOTED.sub("", text)):
        depth += 1 if sign in "{[(" else -1
        if depth > PRIM_DEPTH_MAX:
            raise AssetLimitError(
                f"its prims nest more than {PRIM_DEPTH_MAX} deep",
                file=file,
                value=depth,
                remedy="Make the prims siblings, and connect them by joints.",
            )


def check_usd_file(path: Path, file: str) -> None:
    """Raise if a file is a usda text that nests too deeply; other files are left to usd-core.

    Raises:
        AssetLimitError: If it does.
    """
    with contextlib.suppress(OSError), path.open("rb") as stream:
        if stream.read(5) == b"#usda":
            check_usda_text(path.read_text(encoding="utf-8", errors="replace"), file)


def check_usd_layer(layer: Any, file: str) -> None:
    """Raise if the references of a layer, and of the layers it refers to, make too many prims.

    The number is counted on the layers, without composing them: an upper bound, since what one layer says
    about the prims of another is counted by itself.

    Raises:
        AssetLimitError: If they do, or if a text among the layers nests too deeply.
    """
    count = _PrimCount(file).of_layer(layer)
    if count > PRIM_COUNT_MAX:
        raise AssetLimitError(
            f"its references make {count:.3g} prims, more than {PRIM_COUNT_MAX:,}",
            file=file,
            value=count,
            remedy="Refer to less, or leave variants of the stage out.",
        )


class _PrimCount:
    """Counts prims with all that is referred to, each prim of each layer once.

    Args:
        file: What messages call the document.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._known: dict[tuple[str, str], float] = {}
        self._open: set[tuple[str, str]] = set()

    def of_layer(self, layer: Any) -> float:
        """Return the prims that a layer and its sublayers make."""
        return self._of(layer, layer.pseudoRoot.path.pathString)

    def _of(self, layer: Any, path: str) -> float:
        # A stack of iterators in place of calls: references may form longer chains than calls may.
        result = 0.0
        stack: list[tuple[tuple[str, str], Iterator[tuple[Any, str]], list[float]]] = []
        self._enter(stack, layer, path)
        if not stack:
            return self._known.get((layer.identifier, path), 0.0)
        while stack:
            key, parts, total = stack[-1]
            part = next(parts, None)
            if part is None:
                stack.pop()
                self._open.discard(key)
                self._known[key] = result = total[0]
                if stack:
                    stack[-1][2][0] += result
                continue
            other = (part[0].identifier, part[1])
            if other in self._known:
                total[0] += self._known[other]
            elif other not in self._open:  # usd-core complains about circles
                self._enter(stack, *part)
        return result

    def _enter(self, stack: list[Any], layer: Any, path: str) -> None:
        key = (layer.identifier, path)
        self._open.add(key)
        stack.append((key, self._parts(layer, path), [1.0]))

    def _parts(self, layer: Any, path: str) -> Iterator[tuple[Any, str]]:
        """Yield what a prim is made of, as layer and path: its children, variants, and what it refers to."""
        spec = layer.GetObjectAtPath(path)
        if spec is None:
            return
        spec = getattr(spec, "primSpec", spec)  # what a path with a variant leads to
        for child in spec.nameChildren:
            yield layer, child.path.pathString
        if path == "/":
            for name in layer.subLayerPaths:
                found = self._layer(layer, name)
                if found is not None:
                    yield found, "/"
            return
        for variant_set in getattr(spec, "variantSets", ()):
            for variant in variant_set.variants.values():
                yield layer, variant.primSpec.path.pathString
        for arcs in (spec.referenceList, spec.payloadList):
            for arc in arcs.GetAddedOrExplicitItems():
                target = self._layer(layer, arc.assetPath) if arc.assetPath else layer
                if target is not None:
                    root = arc.primPath.pathString or f"/{target.defaultPrim}"
                    yield target, root if target.defaultPrim or arc.primPath else "/"
        for paths in (spec.inheritPathList, spec.specializesList):
            for item in paths.GetAddedOrExplicitItems():
                yield layer, item.pathString

    def _layer(self, layer: Any, name: str) -> Any:
        """Return a layer by the name that another one has for it, None if there is none."""
        from pxr import Sdf, Tf

        try:
            path = Path(layer.ComputeAbsolutePath(name))
            if path.suffix.lower() in (".usd", ".usda"):
                check_usd_file(path, self._file)
            return Sdf.Layer.FindOrOpenRelativeToLayer(layer, name)
        except (Tf.ErrorException, OSError, ValueError) as error:
            if isinstance(error, AssetLimitError):
                raise
            return None  # composing says what is wrong with it
