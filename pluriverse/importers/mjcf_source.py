"""Reading MJCF with MuJoCo's own parser and compiler; its complaints become asset errors."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.importers.errors import AssetError, AssetFileError, AssetLimitError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.mjcf_repair import BOUND, repair_spec, repair_tree
from pluriverse.importers.mjcf_tree import MjcfTree
from pluriverse.importers.path_resolver import PathResolver, resolve_mjcf
from pluriverse.importers.report import ImportReport

# Remedies for the most frequent errors of MuJoCo's parser and compiler, by characteristic words.
REMEDIES = (
    ("'mujocoinclude'", "This is a part for <include>: pass the file that includes it."),
    (
        "global coordinates",
        'Write positions relative to bodies (coordinate="local"). Only documents whose bodies are not '
        "turned, and whose hinges and geoms all have positions, are converted.",
    ),
    ("mass and inertia", "Give the body a geom with a density, or an <inertial> with mass and inertia > 0."),
    ("inertia must satisfy", 'Correct the inertia, or set <compiler balanceinertia="true"/>.'),
    (
        "plugin",
        "Load the library of the plugin first (mujoco.mj_loadPluginLibrary), or leave the plugin out.",
    ),
    ("repeated name", "Give each element of a kind a name of its own."),
    ("unknown default", "Define the default class, or correct its name."),
    ("Error opening file", "Add the file, or correct its path and the compiler's meshdir."),
    ("XML parse error", "Correct the XML at that line."),
    ("unrecognized attribute", "Remove the attribute, or correct its spelling."),
    ("unrecognized element", "Remove the element, or correct its spelling and its place."),
    ("bad format", "Write numbers separated by spaces there."),
    ("free joint can only", "Put the body directly into <worldbody>, or give it another joint."),
    ("keyframe", "Give one number per coordinate (qpos), degree of freedom (qvel) or actuator (ctrl)."),
    ("size", "Give sizes > 0."),
    ("axis too small", "Give an axis that is not zero."),
    ("range", "Give the lower value first, or leave the range out."),
    ("not found", "Define that element, or correct the reference."),
    ("unknown", "Define that element, or correct the reference."),
)


@dataclasses.dataclass
class MjcfSource:
    """An MJCF document, parsed and compiled."""

    name: str
    """The file, or the name of the text in messages."""
    spec: Any
    """`mujoco.MjSpec`: the elements as authored."""
    model: Any
    """`mujoco.MjModel`: the elements with defaults, frames, inertias and meshes resolved."""
    tree: MjcfTree | None
    """The XML elements as written, None for a source that is no XML."""
    element_of_line: dict[str, ElementTree.Element]
    """XML elements by the `info` of elements of `spec`; empty unless custom attributes were asked for."""


def read_mjcf(
    source: Any,
    *,
    edit: Callable[[Any, ImportReport], None],
    report: ImportReport,
    custom_names: Set[str] = frozenset(),
    path_resolver: PathResolver | None = None,
) -> MjcfSource:
    """Return the document `source` after `edit` has been applied to its elements.

    Args:
        source: Path, XML text, or a `mujoco.MjSpec`, of which a copy is edited.
        edit: Called on the elements before they are compiled.
        report: Report of the import.
        custom_names: Names of XML attributes that a user declared; MuJoCo need not know them.
        path_resolver: Finds the files that the document refers to; None for MuJoCo's own rules.

    Raises:
        AssetFileError: If there is no such file, or it or one it refers to is only a pointer of Git LFS.
        AssetError: If MuJoCo cannot parse or compile it.
    """
    import mujoco

    if isinstance(source, mujoco.MjSpec):
        if path_resolver is not None:
            raise ValueError(
                "add_mjcf: path_resolver is for files and texts, but the source is an MjSpec, whose parser "
                "went by its own rules. Pass the file."
            )
        name = report.source = f"MjSpec '{source.modelname}'"
        try:
            spec = source.copy()
            return MjcfSource(name, spec, _compile(spec, name, edit, report), None, {})
        except (ValueError, RuntimeError) as error:
            if isinstance(error, AssetError):
                raise
            raise _asset_error(str(error), name) from error
    text = str(source)
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        text = text.lstrip("\ufeff")
    is_text = text.lstrip().startswith("<")
    name = "MJCF text" if is_text else text
    report.source = name
    if not is_text and not Path(text).is_file():
        raise AssetFileError(
            "there is no such file",
            file=name,
            value=text,
            remedy="Correct the path (relative ones start at the current directory), or pass the XML text "
            "itself.",
        )
    if not is_text:
        check_fetched(Path(text), file=name)
    main = text if is_text else Path(text).read_text(errors="replace")
    _check_root(main, name)
    folder = None if is_text else Path(text).parent
    if path_resolver is not None:
        main = text = resolve_mjcf(main, folder, path_resolver, name)
        is_text = True
    elements: dict[str, ElementTree.Element] = {}
    tree = _read_tree(main, folder, name)
    try:
        if tree is not None and custom_names & tree.names():
            spec, elements = _parse_by_line(tree, folder, custom_names, report)
        else:
            try:
                spec = mujoco.MjSpec.from_string(text) if is_text else mujoco.MjSpec.from_file(text)
            except ValueError as error:
                if tree is None:
                    raise
                spec, elements = _parse_repaired(tree, folder, custom_names, report, error)
        model = _compile(spec, name, edit, report)
    except (ValueError, RuntimeError) as error:  # the latter is what MuJoCo makes of other libraries' errors
        if isinstance(error, AssetError):
            raise
        raise _asset_error(str(error), name) from error
    return MjcfSource(name, spec, model, tree, elements)


def _read_tree(text: str, folder: Path | None, name: str) -> MjcfTree | None:
    """Return the XML tree, None for a text that is none; MuJoCo's parser says best what is wrong with it."""
    try:
        return MjcfTree(text, folder, name)
    except (AssetLimitError, AssetFileError):
        raise
    except (ElementTree.ParseError, AssetError):
        return None


def _parse_by_line(
    tree: MjcfTree, folder: Path | None, custom_names: Set[str], report: ImportReport
) -> tuple[Any, dict[str, ElementTree.Element]]:
    """Parse a document without what MuJoCo does not know or take; return its elements by line."""
    import mujoco

    left_out: set[str] = set()
    while True:
        text, elements = tree.by_line(left_out)
        try:
            spec = mujoco.MjSpec.from_string(text)
        except ValueError as error:
            unknown = re.search(r"unrecognized attribute: '([^']*)'", str(error))
            if unknown is not None and unknown.group(1) in custom_names - left_out:
                left_out.add(unknown.group(1))
            elif not repair_tree(tree, str(error), elements, report):
                raise
            continue
        if folder is not None:
            spec.modelfiledir = str(folder)
        return spec, elements


def _parse_repaired(
    tree: MjcfTree, folder: Path | None, custom_names: Set[str], report: ImportReport, first: ValueError
) -> tuple[Any, dict[str, ElementTree.Element]]:
    """Parse a document that MuJoCo's parser refuses with `first`; what it refuses in the end is raised."""
    try:
        return _parse_by_line(tree, folder, custom_names, report)
    except ValueError as error:
        if not report.repairs:
            raise first from None
        # Its line numbers are those of the repaired text, which the user does not have.
        raise ValueError(re.sub(r",? line \d+", "", str(error))) from error


def _compile(spec: Any, name: str, edit: Callable[[Any, ImportReport], None], report: ImportReport) -> Any:
    """Return the `mujoco.MjModel` of a document after `edit` and repairs; `name` is that in messages."""
    edit(spec, report)
    repair_spec(spec, report)
    try:
        return _compile_without_hulls(spec)
    except ValueError as error:
        _check_files(spec, name)
        negative = any(body.explicitinertial and body.mass < 0.0 for body in spec.bodies)
        if "mjMINVAL" not in str(error) or negative:
            raise
        # Moving bodies without mass: what they get, if their joint needs it, is up to all importers alike.
        spec.compiler.boundmass = max(spec.compiler.boundmass, BOUND)
        spec.compiler.boundinertia = max(spec.compiler.boundinertia, BOUND)
        return _compile_without_hulls(spec)


def _check_files(spec: Any, name: str) -> None:
    """Raise if a file of a document is a pointer of Git LFS; MuJoCo says that its content is wrong."""
    folder = Path(spec.modelfiledir)
    for kind, assets, below in (
        ("mesh", spec.meshes, spec.meshdir),
        ("hfield", spec.hfields, spec.meshdir),
        ("texture", spec.textures, spec.texturedir),
    ):
        for asset in assets:
            if asset.file:
                check_fetched(folder / below / asset.file, file=name, element=f"<{kind}> '{asset.name}'")


def _compile_without_hulls(spec: Any) -> Any:
    """Return the `mujoco.MjModel` of a document, without convex hulls of its meshes.

    Hulls of importers have limits of their own. MuJoCo's would take two thirds of its time on a mesh of 642
    vertices, and it makes them for meshes that collide, so none does while it compiles.
    """
    colliding = [
        (geom, geom.contype, geom.conaffinity)
        for geom in spec.geoms
        if geom.meshname and (geom.contype or geom.conaffinity)
    ]
    if not colliding or spec.compiler.discardvisual:  # which would remove what does not collide
        return spec.compile()
    try:
        for geom, *_ in colliding:
            geom.contype = geom.conaffinity = 0
        model = spec.compile()
    finally:
        for geom, contype, conaffinity in colliding:
            geom.contype, geom.conaffinity = contype, conaffinity
    for geom, contype, conaffinity in colliding:
        model.geom_contype[geom.id], model.geom_conaffinity[geom.id] = contype, conaffinity
    return model


def matches(patterns: Sequence[str], name: str) -> bool:
    """Return whether `name` matches one of the regular expressions, from start to end."""
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def read_class_parents(spec: Any) -> dict[str, str]:
    """Return, per default class of a document, the class it inherits from; nothing if no geom has one."""
    parents: dict[str, str] = {}
    named = (geom.classname.name for geom in spec.geoms if geom.classname is not None)
    if all(name == "main" for name in named):
        return parents  # of no use then, and what follows writes the whole document as text
    root = ElementTree.fromstring(spec.to_xml())
    for default in root.iter("default"):
        for child in default.findall("default"):
            parents[child.get("class", "")] = default.get("class", "main")
    return parents


def class_names(element: Any, parents: dict[str, str]) -> list[str]:
    """Return the default class of an element and the classes that one inherits from, except `main`."""
    names = []
    name = element.classname.name if element.classname is not None else ""
    while name and name != "main":
        names.append(name)
        name = parents.get(name, "")
    return names


def _check_root(text: str, name: str) -> None:
    """Check that the root element of the document is that of MJCF."""
    bare = re.sub(r"<!--.*?-->|<[?!][^>]*>", "", text, flags=re.DOTALL)
    root = re.search(r"<\s*([^\s/>]+)", bare)
    if root is not None and root.group(1) not in ("mujoco", "mujocoinclude"):
        tag = root.group(1)
        raise AssetError(
            f"the root element is <{tag}>, but that of MJCF is <mujoco>",
            file=name,
            element=f"<{tag}>",
            value=tag,
            remedy="Pass a URDF file to add_urdf()." if tag == "robot" else "Pass an MJCF file.",
        )


def _asset_error(message: str, name: str) -> AssetError:
    """Return the error for a complaint of MuJoCo, which ends in the element that it is about."""
    text = " ".join(message.split())
    remedy = next((remedy for words, remedy in REMEDIES if words.lower() in text.lower()), None)
    match = re.search(r"Element (?:name )?'([^']*)'(?:, id \d+)?(?:, line (\d+))?$", text)
    element = None
    if match is not None:
        text = text[: match.start()].rstrip()
        line = f" (line {match.group(2)})" if match.group(2) else ""
        element = f"element '{match.group(1)}'{line}" if match.group(1) else line.strip(" ()")
    return AssetError(
        re.sub(r"^(XML )?Error: ", "", text),
        file=name,
        element=element,
        remedy=remedy or "Correct the element that the message names.",
    )


def check_numbers(source: MjcfSource) -> None:
    """Check numbers of bodies, joints and geoms that MuJoCo's parser lets pass.

    Raises:
        AssetError: If one is not finite, or an armature, damping or friction is negative.
    """
    model = source.model
    for kind, count, prefix, fields in (
        ("body", model.nbody, "body", ("pos", "quat", "mass", "inertia", "ipos", "iquat")),
        ("joint", model.njnt, "jnt", ("pos", "axis", "range", "stiffness")),
        ("dof", model.nv, "dof", ("armature", "damping", "frictionloss")),
        ("geom", model.ngeom, "geom", ("pos", "quat", "size", "friction", "solref", "margin", "gap")),
        ("site", model.nsite, "site", ("pos", "quat", "size")),
        ("actuator", model.nactuator, "actuator", ("gainprm", "biasprm", "forcerange")),
        ("output", len(model.actuator_gear), "actuator", ("gear",)),
        ("control", model.nu, "actuator", ("ctrlrange",)),
        ("equality", model.neq, "eq", ("data",)),
        ("keyframe", model.nkey, "key", ("qpos", "qvel", "ctrl")),
    ):
        for field in fields if count else ():
            table = np.asarray(getattr(model, f"{prefix}_{field}")).reshape(count, -1)
            bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
            if bad.size:
                index = int(bad[0])
                value = table[index].tolist()
                raise AssetError(
                    f"{field} is {value}, but all numbers must be finite",
                    file=source.name,
                    element=_element(model, kind, index),
                    value=value,
                    remedy="Correct the number in the file.",
                )
    for field in ("armature", "damping", "frictionloss"):
        negative = np.flatnonzero(np.asarray(getattr(model, f"dof_{field}")) < 0.0)
        if negative.size:
            value = float(getattr(model, f"dof_{field}")[negative[0]])
            raise AssetError(
                f"{field} is {value}, but it must not be negative",
                file=source.name,
                element=_element(model, "dof", int(negative[0])),
                value=value,
                remedy="Correct the number in the file.",
            )


def _element(model: Any, kind: str, index: int) -> str:
    """Return what messages call an element of a compiled model."""
    if kind == "dof":
        kind, index = "joint", int(model.dof_jntid[index])
    if kind in ("output", "control"):
        first = model.actuator_outadr if kind == "output" else model.actuator_ctrladr
        kind, index = "actuator", int(np.searchsorted(first, index, side="right")) - 1
    name = getattr(model, "key" if kind == "keyframe" else kind)(index).name
    return f"{kind} '{name}'" if name else f"{kind} {index}"
