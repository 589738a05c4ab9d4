"""Files of a USD stage: found by a callable of the caller (`path_resolver` of `add_usd`), and fetched or not.

For a callable, layers are copied into memory with every reference replaced by what it returned: sublayers,
references, payloads, and paths of textures and of other attributes. Layers that are referred to are treated
alike, those of the inside of packages (usdz) excepted.
"""

import re
from pathlib import Path
from typing import Any

from pluriverse.importers.errors import AssetFileError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.limits import check_usd_layer
from pluriverse.importers.path_resolver import PathResolver, as_path

LAYER_SUFFIXES = (".usd", ".usda", ".usdc")


def check_arcs(problems: list[Any], name: str) -> None:
    """Raise if a sublayer, reference or payload that usd-core could not open is a pointer of Git LFS.

    Args:
        problems: The composition errors of the stage.
        name: What messages call the document.

    Raises:
        AssetFileError: If one is. The rest of the robot alone would be another robot.
    """
    for problem in problems:
        # The text is all that there is of it: "Could not open asset @FILE@ ... introduced by @LAYER@</PRIM>."
        found = re.search(r"@([^@]+)@(.*)", str(problem))
        if found:
            prim = re.search(r"@</([^>]*)>", found.group(2))
            check_fetched(
                Path(found.group(1)), file=name, element=f"prim '/{prim.group(1)}'" if prim else "subLayers"
            )


def resolve_layer(layer: Any, folder: Path | None, resolver: PathResolver, name: str) -> list[Any]:
    """Return a copy of an `Sdf.Layer` that refers to files that were found, and the layers it refers to.

    The copy comes first. The others are in memory only, and last as long as someone holds them.

    Args:
        layer: The root layer.
        folder: Its folder, None for text.
        resolver: Finds the files.
        name: What messages call the document.

    Raises:
        AssetFileError: If the resolver returns no path, or for a layer none of a file.
        Exception: What the resolver raises.
    """
    from pxr import Sdf

    root = Sdf.Layer.CreateAnonymous(".usda")
    copies: dict[Path, Any] = {}
    _fill(root, layer, folder, resolver, name, copies)
    return [root, *copies.values()]


def _fill(
    copy: Any, layer: Any, folder: Path | None, resolver: PathResolver, name: str, copies: dict[Path, Any]
) -> None:
    """Make one layer the copy of another; put the copies of those that it refers to into `copies`."""
    from pxr import Sdf, UsdUtils

    copy.TransferContent(layer)
    base = None if folder is None else str(folder)
    found: dict[str, str] = {}
    wanted: list[tuple[str, Path]] = []
    problems: list[Exception] = []

    def find(reference: str) -> str:
        if not reference or problems:
            return reference
        if reference not in found:
            try:
                file = as_path(resolver(base, reference), reference, file=name, element=f"@{reference}@")
            except Exception as error:  # noqa: BLE001 - it cannot pass through USD and is raised below
                problems.append(error)
                return reference
            found[reference] = str(file)
            if file.suffix.lower() in LAYER_SUFFIXES:
                # Filled below: layers may refer to each other in a circle.
                if file not in copies:
                    copies[file] = Sdf.Layer.CreateAnonymous(".usda")
                    wanted.append((reference, file))
                found[reference] = copies[file].identifier
        return found[reference]

    UsdUtils.ModifyAssetPaths(copy, find)
    if problems:
        raise problems[0]
    for reference, file in wanted:
        if not file.is_file():
            raise AssetFileError(
                f"path_resolver returned '{file}', where there is no file",
                file=name,
                element=f"@{reference}@",
                value=reference,
                remedy="Return the path of a USD file that exists.",
            )
        check_fetched(file, file=name, element=f"@{reference}@")
        inner = Sdf.Layer.FindOrOpen(str(file))
        check_usd_layer(inner, str(file))
        _fill(copies[file], inner, file.parent, resolver, name, copies)
