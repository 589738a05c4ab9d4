"""The elements and attributes of URDF that are read, and a report of all else in a document.

A misspelt one would pass for one that is not there, whose default holds then.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Set
from typing import Any

from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_contact import CONTACT_FIELDS, UNREAD_CONTACT, changes_nothing
from pluriverse.importers.urdf_drake import FILTER_GROUP, local_name
from pluriverse.importers.urdf_repair import SHAPES, describe, written_tag


@dataclasses.dataclass(frozen=True)
class _Element:
    """What an element may hold."""

    attributes: tuple[str, ...] = ()
    single: tuple[str, ...] = ()
    """Children of which there is one at most."""
    several: tuple[str, ...] = ()
    """Children of which there may be any number."""


# By tag, which says enough: a tag has the same contents wherever it stands.
_ELEMENTS = {
    "robot": _Element(("name", "version"), several=("link", "joint", "material")),
    "link": _Element(("name", "density"), ("inertial",), ("visual", "collision", "contact")),
    "inertial": _Element((), ("origin", "mass", "inertia", "density")),
    "mass": _Element(("value",)),
    "density": _Element(("value",)),
    "inertia": _Element(("ixx", "iyy", "izz", "ixy", "ixz", "iyz")),
    "origin": _Element(("xyz", "rpy")),
    "visual": _Element(("name",), ("origin", "geometry", "material")),
    "collision": _Element(("name",), ("origin", "geometry", "sdf")),
    "geometry": _Element((), several=SHAPES),
    "box": _Element(("size",)),
    "cylinder": _Element(("radius", "length")),
    "capsule": _Element(("radius", "length")),
    "sphere": _Element(("radius",)),
    "mesh": _Element(("filename", "scale")),
    "cdf": _Element(("filename", "scale")),
    "plane": _Element(("normal",)),
    "sdf": _Element(("resolution",)),
    "material": _Element(("name",), ("color", "texture")),
    "color": _Element(("rgba",)),
    "texture": _Element(("filename",)),
    "contact": _Element((), (*CONTACT_FIELDS, *UNREAD_CONTACT)),
    **{tag: _Element(("value",)) for tag in (*CONTACT_FIELDS, *UNREAD_CONTACT)},
    "joint": _Element(
        ("name", "type", "dont_collapse"),
        (
            *("parent", "child", "origin", "axis", "limit", "dynamics", "mimic"),
            *("safety_controller", "calibration"),
        ),
    ),
    "parent": _Element(("link",)),
    "child": _Element(("link",)),
    "axis": _Element(("xyz",)),
    "limit": _Element(("lower", "upper", "effort", "velocity")),
    "dynamics": _Element(("damping", "friction")),
    "mimic": _Element(("joint", "multiplier", "offset")),
    # What these say does not act, which is reported elsewhere, or moves nothing.
    "safety_controller": _Element(("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")),
    "calibration": _Element(("rising", "falling", "reference_position")),
}

# Elements by which other programs extend these, by the tag without a prefix: consequence and severity.
_NOTE, _LOSS = ImportSeverity.NOTE, ImportSeverity.LOSS
_NOT_READ = ("it is not read", _NOTE)
_EXTENSIONS: dict[str, dict[str, tuple[str, ImportSeverity]]] = {
    "robot": {
        "transmission": ("no transmission acts; set drives with set_joint_targets", _NOTE),
        "gazebo": ("extensions of Gazebo are not read", _NOTE),
        "mujoco": ("extensions of MuJoCo are not read", _NOTE),
        "drake": ("extensions of Drake are not read", _NOTE),
        "ros2_control": ("controllers are not read", _NOTE),
        "sensor": _NOT_READ,
        "frame": _NOT_READ,
        "force_element": ("the force does not act", _LOSS),
        "loop_joint": ("the loop is open", _LOSS),
        "constraint": ("the constraint does not act", _LOSS),
        "deformable": ("the soft body is left out", _LOSS),
        "reduced_deformable": ("the soft body is left out", _LOSS),
    },
    "link": {
        "gazebo": ("extensions of Gazebo are not read", _NOTE),
        "self_collision_checking": _NOT_READ,
        "collision_checking": _NOT_READ,
        "self_filter": _NOT_READ,
        "fem": ("the soft body is left out", _LOSS),
    },
    "collision": {
        "material": ("colliders are drawn without it", _NOTE),
        "proximity_properties": ("friction and stiffness are those of default_shape_cfg", _LOSS),
    },
    "contact": {"friction_anchor": ("friction holds what is at rest without it", _NOTE)},
    "joint": {"gazebo": ("extensions of Gazebo are not read", _NOTE)},
}
# Attributes that newer or older versions of the format have, and that move nothing.
_UNUSED_ATTRIBUTES = {
    "link": ("type",),
    "visual": ("group",),
    "collision": ("group",),
    "geometry": ("name",),
    "limit": ("acceleration", "deceleration", "jerk"),
}
# Entries of the inertia below the diagonal, which some files repeat.
_MIRRORED = {"iyx": "ixy", "izx": "ixz", "izy": "iyz"}


def report_unknown(root: Any, custom_names: Mapping[str, Set[str]], report: ImportReport) -> None:
    """Report what of a `<robot>` element is not read, and remove the second of what an element has once.

    Args:
        root: The element.
        custom_names: Attributes that the user declared, by the tag of the elements that may carry them.
        report: Report of the import.
    """
    waiting = [root]
    while waiting:
        element = waiting.pop()
        known = _ELEMENTS[element.tag]
        for name in element.attrib:
            if name not in known.attributes and name not in custom_names.get(element.tag, ()):
                _report_attribute(element, name, known.attributes, report)
        for tag in known.single:
            for extra in element.findall(tag)[1:]:
                report.add(
                    f"several <{tag}>",
                    describe(extra),
                    f"the first one of the {element.tag} counts",
                    ImportSeverity.REPAIR,
                )
                element.remove(extra)
        children = [child for child in element if isinstance(child.tag, str)]
        tags = (*known.single, *known.several)
        waiting += reversed([child for child in children if child.tag in tags])
        for child in children:
            if child.tag not in tags:
                _report_element(element, child, tags, report)
            elif child.tag in UNREAD_CONTACT and element.tag == "contact":
                severity = _NOTE if changes_nothing(child) else _LOSS
                feature = f"<{child.tag}> in a contact"
                report.add(feature, describe(child), UNREAD_CONTACT[child.tag].consequence, severity)


def _report_element(parent: Any, child: Any, tags: Iterable[str], report: ImportReport) -> None:
    name = local_name(child)
    if parent.tag == "geometry" or (parent.tag == "robot" and name == FILTER_GROUP):
        return  # repairs of geometries report what is no shape; groups are read with their prefix
    extension = _EXTENSIONS.get(parent.tag, {}).get(name, _NOT_READ if child.tag != name else None)
    if extension is None:
        consequence = f"it is ignored with all in it{_suggestion(name, tags)}"
        feature = f"unknown element <{name}> in <{parent.tag}>"
        report.add(feature, describe(child), consequence, ImportSeverity.REPAIR)
        return
    consequence, severity = extension
    if parent.tag == "robot":
        entity = child.get("name") or child.get("reference") or f"line {child.sourceline}"
        report.add(f"<{written_tag(child)}>", entity, consequence, severity)
    else:
        report.add(f"<{written_tag(child)}> in a {parent.tag}", describe(child), consequence, severity)


def _report_attribute(element: Any, name: str, known: Iterable[str], report: ImportReport) -> None:
    namespace, _, local = name.rpartition("}")
    if namespace:
        prefixes = {address: prefix for prefix, address in element.nsmap.items()}
        feature = f"attribute '{prefixes.get(namespace[1:])}:{local}'"
        report.add(feature, describe(element), "extensions are not read", _NOTE)
    elif name in _UNUSED_ATTRIBUTES.get(element.tag, ()):
        report.add(f"attribute '{name}' of <{element.tag}>", describe(element), *_NOT_READ)
    elif element.tag != "inertia" or element.get(name) != element.get(_MIRRORED.get(name, "")):
        report.add(
            f"unknown attribute '{name}' of <{element.tag}>",
            describe(element),
            f"it is ignored{_suggestion(name, known)}",
            ImportSeverity.REPAIR,
        )


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Return the nearest of the known names as words that end a message, or all of them; "" for none."""
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    names = ", ".join(known)
    return f"; known are {names}" if names else ""
