"""Reading URDF: the document is repaired, checked element by element, and read as values."""

import dataclasses
import math
import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from pluriverse.importers.errors import AssetError, AssetFileError, AssetLimitError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.limits import LINK_COUNT_MAX, LINK_DEPTH_MAX
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_contact import CONTACT_FIELDS
from pluriverse.importers.urdf_elements import AXIS_FREE, Robot, read_robot
from pluriverse.importers.urdf_repair import (
    describe,
    fill_in_defaults,
    has_macro,
    remove_display_macros,
    repair,
)
from pluriverse.importers.urdf_vocabulary import report_unknown

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
GEOMETRIES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
    "mesh": ("filename",),
    "plane": ("normal",),
}
# Attributes of several numbers that are no sizes.
_DIRECTIONS = ("normal",)

# What a limit may be that is not finite: there is none then.
_UNLIMITED = {"lower": -math.inf, "upper": math.inf, "effort": math.inf, "velocity": math.inf}

_SOFT_BODIES = ("deformable", "reduced_deformable")

# Error of libxml2 for an undeclared prefix, and the place for a declaration of the whole document.
_UNDECLARED_PREFIX = re.compile(r"Namespace prefix ([\w.-]+) .*is not defined")
_ROOT_TAG = re.compile(rb"<robot(?=[\s>])")
# Attribute that puts all elements without a prefix into a namespace.
_DEFAULT_NAMESPACE = re.compile(rb"""(<robot\b[^>]*?)\bxmlns\s*=\s*(?:"[^"]*"|'[^']*')""")
# The version of XML that a document declares. Some declare 0.0, which a few simulators do not look at.
_XML_VERSION = re.compile(rb"""\A<\?xml\s+version\s*=\s*["'](?!1\.[01]["'])([^"']*)["']""")


@dataclasses.dataclass
class UrdfDocument:
    """A URDF document that has passed the checks."""

    name: str
    """The file, or what the text is called in messages."""
    path: Path | None
    """The file, None for text."""
    robot: Robot
    """What it holds."""
    root: Any
    """The `<robot>` element, repaired."""


def read_urdf(source: str | Path, report: ImportReport, custom_names: Mapping[str, Set[str]]) -> UrdfDocument:
    """Return the checked document `source`.

    Args:
        source: A path, or XML text.
        report: Report of the import.
        custom_names: XML attributes that the user declared, by the tag of the elements that may carry them.

    Raises:
        AssetFileError: If there is no such file, or only a pointer of Git LFS.
        AssetError: If it is not a valid URDF document.
    """
    text = str(source)
    is_text = text.lstrip("\ufeff \t\r\n").startswith("<")
    name = "URDF text" if is_text else text
    report.source = name
    if is_text:
        data = text.encode()
    else:
        check_fetched(Path(text), file=name)
        try:
            data = Path(text).read_bytes()
        except OSError as error:
            raise AssetFileError(
                f"the file cannot be read ({error.strerror})",
                file=name,
                value=text,
                remedy="Correct the path (relative ones start at the current directory), or pass the XML "
                "text itself.",
            ) from error
    data = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if data.count(b"<link") > LINK_COUNT_MAX:
        raise AssetLimitError(
            f"it has more than {LINK_COUNT_MAX:,} links",
            file=name,
            remedy="Split it, or build such a robot with the ModelBuilder.",
        )
    version = _XML_VERSION.match(data)
    if version is not None:
        data = b'<?xml version="1.0"' + data[version.end() :]
        report.add(
            f"XML version '{version[1].decode(errors='replace')}'",
            "line 1",
            "there is no such version; the file is read as 1.0",
            ImportSeverity.REPAIR,
        )
    root = _parse(data, name, report)
    if root.prefix is None and root.tag.endswith("}robot"):
        report.add(
            f"elements of the namespace '{root.nsmap[None]}'",
            describe(root),
            "they are read as those of URDF",
            ImportSeverity.REPAIR,
        )
        root = _parse(_DEFAULT_NAMESPACE.sub(rb"\1", data, count=1), name, report)
    checker = _Checker(name, report)
    fill_in_defaults(root, report)
    remove_display_macros(root, report)
    checker.check_language(root)
    report_unknown(root, custom_names, report)
    repair(root, "robot" if is_text else Path(text).stem, report)
    checker.check(root)
    return UrdfDocument(name, None if is_text else Path(text), read_robot(root), root)


def _parse(data: bytes, name: str, report: ImportReport) -> Any:
    from lxml import etree  # type: ignore[import-untyped]

    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        end = data.rfind(b"</robot>") + len(b"</robot>")
        if error.code == etree.ErrorTypes.ERR_DOCUMENT_END and b"</robot>" in data and data[end:].strip():
            report.add(
                "text after the end of the robot",
                f"line {error.lineno}",
                "it is left out",
                ImportSeverity.REPAIR,
            )
            return _parse(data[:end], name, report)
        undeclared = _UNDECLARED_PREFIX.search(str(error.msg))
        if undeclared is not None and undeclared[1] != "xacro":
            # Each pass declares one prefix, so that the same one cannot come again.
            prefix = undeclared[1]
            declared, count = _ROOT_TAG.subn(
                rb'\g<0> xmlns:%s="undeclared:%s"' % (prefix.encode(), prefix.encode()), data, count=1
            )
            if count and declared.count(b'xmlns:%s="undeclared:' % prefix.encode()) == 1:
                report.add(
                    "namespace prefix without a declaration",
                    f"line {error.lineno}",
                    f"'{prefix}:' is taken for an extension that is not read",
                    ImportSeverity.REPAIR,
                )
                return _parse(declared, name, report)
        if "xacro" in str(error.msg):  # a prefix without a declaration
            raise AssetError(
                f"this is a xacro document, whose macros are not expanded ({error.msg})",
                file=name,
                element=f"line {error.lineno}",
                remedy="Expand it first: `xacro file.urdf.xacro > file.urdf`.",
            ) from error
        raise AssetError(
            f"the XML is malformed: {error.msg}",
            file=name,
            element=f"line {error.lineno}",
            remedy="Correct the XML.",
        ) from error


class _Checker:
    """Checks the elements of a document, in their order."""

    def __init__(self, file: str, report: ImportReport):
        self.file = file
        self.report = report

    def check_language(self, root: Any) -> None:
        """Check that the document is URDF without unexpanded macros."""
        if root.tag != "robot":
            remedy = "Pass an MJCF file to add_mjcf()." if root.tag == "mujoco" else "Pass a URDF file."
            self._fail(
                root, f"the root element is <{root.tag}>, but that of URDF is <robot>", root.tag, remedy
            )
        for element in root.iter():
            if has_macro(element) and next(element.iterancestors("gazebo"), None) is None:
                self._fail(
                    element,
                    "this is a xacro document, whose macros are not expanded",
                    element.tag,
                    "Expand it first: `xacro file.urdf.xacro > file.urdf`. If it was, that macro had no "
                    "definition: add it, or remove the element if the robot needs nothing of it.",
                )

    def check(self, root: Any) -> None:
        """Check the elements of the (repaired) document."""
        links = self._unique(root, "link")
        joints = self._unique(root, "joint")
        for link in links.values():
            self._check_link(link)
        for joint in joints.values():
            self._check_joint(joint, links)
        self._check_tree(root, links, joints)

    def _unique(self, root: Any, tag: str) -> dict[str, Any]:
        elements: dict[str, Any] = {}
        for element in root.findall(tag):
            name = self._name(element)
            if name in elements:
                self._fail(
                    element,
                    f"there is another <{tag}> of that name on line {elements[name].sourceline}",
                    name,
                    f"Give every <{tag}> a name of its own.",
                )
            elements[name] = element
        if tag == "link" and not elements:
            soft = next((child for child in root if child.tag in _SOFT_BODIES), None)
            if soft is not None:
                self._fail(
                    soft,
                    "it is a deformable body of Bullet, and bodies are rigid here",
                    soft.tag,
                    "Describe the body as a <link>.",
                )
            self._fail(
                root,
                "there is no <link>",
                None,
                "A robot needs at least one link; of "
                "a file that only defines macros, expand one that uses them.",
            )
        return elements

    def _check_link(self, link: Any) -> None:
        for inertial in link.findall("inertial"):
            self._origin(inertial)
            mass = self._child(inertial, "mass")
            value = self._numbers(mass, "value", 1)[0]
            if not value >= 0.0:
                self._fail(mass, f"the mass is {value} kg, which is negative", value, "Give a mass >= 0.")
            inertia = inertial.find("inertia")
            for entry in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"):
                if inertia is not None and inertia.get(entry) is not None:
                    self._numbers(inertia, entry, 1)
        for contact in link.findall("contact"):
            for element in contact:
                if element.tag not in CONTACT_FIELDS:
                    continue
                value = self._numbers(element, "value", 1)[0]
                if value < 0.0:
                    self._fail(element, f"it is {value}, which is negative", value, "Give a value >= 0.")
                if element.tag == "restitution" and value > 1.0:
                    self._fail(element, f"it is {value}, which is more than 1", value, "Give one of 0 to 1.")
        for collision in link.findall("collision"):
            self._check_shape(collision)
        for visual in link.findall("visual"):
            try:
                self._check_shape(visual)
            except AssetError as error:  # a picture moves nothing
                self.report.add(
                    f"display geometry: {error.problem}",
                    str(error.element),
                    "it is not drawn",
                    ImportSeverity.REPAIR,
                )
                link.remove(visual)

    def _check_shape(self, shape: Any) -> None:
        self._origin(shape)
        self._check_geometry(self._child(shape, "geometry"))
        for sdf in shape.findall("sdf"):
            self._check_sdf(sdf)

    def _check_sdf(self, sdf: Any) -> None:
        """Check the request of a collision mesh for a signed distance grid."""
        text = sdf.get("resolution")
        if text is not None and not (text.strip().isdigit() and int(text) >= 8):
            self._fail(
                sdf,
                f"the resolution of the signed distance is {text}",
                text,
                "Give a whole number of cells >= 8, or leave it out.",
            )

    def _check_geometry(self, geometry: Any) -> None:
        shapes = [child for child in geometry if isinstance(child.tag, str)]
        if len(shapes) != 1 or shapes[0].tag not in GEOMETRIES:
            found = [shape.tag for shape in shapes]
            self._fail(
                geometry,
                f"it holds {found or 'nothing'}, but exactly one of {list(GEOMETRIES)} is needed",
                found,
                "Use one <collision> or <visual> per shape.",
            )
        shape = shapes[0]
        for attribute in GEOMETRIES[shape.tag]:
            if attribute == "filename":
                if not (shape.get(attribute) or "").strip():
                    self._fail(shape, "filename is missing", None, "Name the mesh file.")
                if shape.get("scale") is not None:
                    scale = self._numbers(shape, "scale", None)
                    if len(scale) not in (1, 3) or 0.0 in scale:
                        self._fail(
                            shape, f"scale is {scale}", scale, "Give one factor or three, none of them 0."
                        )
                continue
            if attribute in _DIRECTIONS:
                if not math.hypot(*self._numbers(shape, attribute, 3)) > 0.0:
                    self._fail(
                        shape, f"its {attribute} has no direction", shape.get(attribute), "Correct it."
                    )
                continue
            for number in self._numbers(shape, attribute, 3 if attribute == "size" else 1):
                if not number > 0.0:
                    self._fail(shape, f"{attribute} is {shape.get(attribute)} m", number, "Give a size > 0.")

    def _check_joint(self, joint: Any, links: dict[str, Any]) -> None:
        kind = joint.get("type")
        if kind not in JOINT_TYPES:
            self._fail(joint, f"its type is {kind!r}", kind, f"Use one of {list(JOINT_TYPES)}.")
        self._origin(joint)
        for end in ("parent", "child"):
            element = self._child(joint, end)
            link = element.get("link")
            if link not in links:
                self._fail(
                    element,
                    f"there is no link '{link}'",
                    link,
                    f"Define that link, or correct the name; the links are {_shorten(list(links))}.",
                )
        axis = joint.find("axis")
        if axis is not None and axis.get("xyz") is not None and kind not in AXIS_FREE:
            vector = self._numbers(axis, "xyz", 3)
            if not math.hypot(*vector) > 0.0:
                self._fail(
                    axis,
                    f"the axis is {vector}, which has no direction",
                    vector,
                    "Give a vector that is not zero.",
                )
        limit = joint.find("limit")
        if limit is not None:
            values = {
                name: self._numbers(limit, name, 1, may_be=_UNLIMITED[name])[0]
                for name in _UNLIMITED
                if limit.get(name) is not None
            }
            for name in ("effort", "velocity"):
                if values.get(name, 0.0) < 0.0:
                    self._fail(
                        limit,
                        f"{name} is {values[name]}, which is negative",
                        values[name],
                        "Give a value >= 0.",
                    )
        dynamics = joint.find("dynamics")
        for name in ("damping", "friction"):
            if dynamics is not None and dynamics.get(name) is not None:
                value = self._numbers(dynamics, name, 1)[0]
                if value < 0.0:
                    self._fail(dynamics, f"{name} is {value}, which is negative", value, "Give a value >= 0.")

        mimic = joint.find("mimic")
        for name in ("multiplier", "offset"):
            if mimic is not None and mimic.get(name) is not None:
                self._numbers(mimic, name, 1)

    def _check_tree(self, root: Any, links: dict[str, Any], joints: dict[str, Any]) -> None:
        parent_joint: dict[str, Any] = {}
        for joint in joints.values():
            child = joint.find("child").get("link")
            if child in parent_joint:
                self._fail(
                    joint,
                    f"link '{child}' is already the child of joint '{parent_joint[child].get('name')}', and "
                    "a loop of joints is not supported",
                    child,
                    "Open the loop: leave one of the joints out.",
                )
            parent_joint[child] = joint
        depth: dict[str, int] = {}
        for name in links:
            visited = {name: None}  # in order
            last = name
            while last not in depth and (joint := parent_joint.get(last)) is not None:
                parent = joint.find("parent").get("link")
                if parent in visited:
                    self._fail(
                        joint,
                        f"the links {_shorten([*reversed(visited), parent])} hang on one another in a circle",
                        parent,
                        "Every chain of joints must begin at one root link.",
                    )
                visited[parent] = None
                last = parent
            below = depth.get(last, 0)
            for height, link in enumerate(reversed(visited)):
                depth[link] = below + height
            if depth[name] > LINK_DEPTH_MAX:
                self._fail(
                    links[name],
                    f"more than {LINK_DEPTH_MAX} links hang on one another",
                    depth[name],
                    "Build such a chain with the ModelBuilder.",
                )
        roots = [name for name in links if name not in parent_joint]
        if len(roots) > 1:
            self._fail(
                links[roots[1]],
                f"there are {len(roots)} links that no joint holds: {_shorten(roots)}",
                roots,
                "Connect them with joints, or put them in files of their own.",
            )

    def _origin(self, element: Any) -> None:
        for origin in element.findall("origin"):
            for attribute in ("xyz", "rpy"):
                if origin.get(attribute) is not None:
                    self._numbers(origin, attribute, 3)

    def _numbers(
        self, element: Any, attribute: str, count: int | None, may_be: float = math.nan
    ) -> list[float]:
        """Return the numbers of an attribute: finite ones, or the one of infinite size that is allowed."""
        text = element.get(attribute)
        if text is None:
            self._fail(element, f"the attribute {attribute} is missing", None, f'Add {attribute}="...".')
        try:
            numbers = [float(part) for part in text.split()]
        except ValueError:
            numbers = []
        if (
            not numbers
            or (count is not None and len(numbers) != count)
            or not all(math.isfinite(number) or number == may_be for number in numbers)
        ):
            needed = "numbers" if count is None else "one number" if count == 1 else f"{count} numbers"
            self._fail(
                element,
                f"{attribute} is '{text}', but {needed} must stand there",
                text,
                "Write finite numbers with a decimal point, separated by spaces.",
            )
        return numbers

    def _name(self, element: Any) -> str:
        name = element.get("name")
        if not name or not name.strip():
            self._fail(element, "the attribute name is missing or empty", name, "Give it a name.")
        return name

    def _child(self, element: Any, tag: str) -> Any:
        child = element.find(tag)
        if child is None:
            self._fail(element, f"<{tag}> is missing", None, f"Add a <{tag}>.")
        return child

    def _fail(self, element: Any, problem: str, value: Any, remedy: str) -> None:
        raise AssetError(problem, file=self.file, element=describe(element), value=value, remedy=remedy)


def _shorten(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:8]) + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )
