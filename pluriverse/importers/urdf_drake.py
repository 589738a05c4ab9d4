"""Extensions of Drake in URDF: which links do not collide with which, and the inertia of rotors."""

from itertools import product
from typing import Any

import numpy as np

from pluriverse.importers.description import RobotDescription
from pluriverse.importers.errors import AssetError
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_repair import describe

FILTER_GROUP = "collision_filter_group"


def local_name(element: Any) -> str:
    """Return the tag of an element without its namespace, empty for a comment."""
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def read_drake_extensions(robot: RobotDescription, root: Any, report: ImportReport) -> None:
    """Add the collision filters and reflected inertias of a `<robot>` element to its description.

    Raises:
        AssetError: If an inertia or gear ratio is no number.
    """
    links = {link.name: index for index, link in enumerate(robot.links)}
    _add_filters(robot, root, links, report)
    joints = {joint.get("name"): joint.find("child").get("link") for joint in root.findall("joint")}
    for transmission in root.findall("transmission"):
        names = [joint.get("name") for joint in transmission.findall("joint")]
        inertia = 0.0
        for actuator in transmission.findall("actuator"):
            values = {local_name(child): child for child in actuator}
            if "rotor_inertia" in values:
                ratio = _number(robot, values["gear_ratio"]) if "gear_ratio" in values else 1.0
                inertia += _number(robot, values["rotor_inertia"]) * ratio**2
        dof = robot.links[links[joints[names[0]]]].joint.dof if names and names[0] in joints else None
        if dof is not None and inertia > 0.0:
            dof.armature = inertia


def _number(robot: RobotDescription, element: Any) -> float:
    text = element.get("value") or ""
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 0.0 <= number < np.inf:
        raise AssetError(
            f"value is '{text}', but one number >= 0 must stand there",
            file=robot.source,
            element=describe(element),
            value=text,
            remedy="Correct the number, or leave the element out.",
        )
    return number


def _add_filters(robot: RobotDescription, root: Any, links: dict[str, int], report: ImportReport) -> None:
    """Filter collisions of the links of a group with those of the groups that it ignores."""
    groups = {
        element.get("name"): element
        for element in root
        if local_name(element) == FILTER_GROUP and element.get("name")
    }
    members = {name: _members(name, groups, links, report, ()) for name in groups}
    for name, element in groups.items():
        for child in element:
            if local_name(child) != "ignored_collision_filter_group":
                continue
            ignored = child.get("name") or child.get("collision_filter_group")
            if ignored not in members:
                report.add(
                    "collision filter of an unknown group",
                    describe(child),
                    f"there is no group '{ignored}'",
                    ImportSeverity.REPAIR,
                )
                continue
            robot.excluded_pairs += [
                (first, second)
                for first, second in product(members[name], members[ignored])
                if first != second
            ]


def _members(
    name: str, groups: dict[str, Any], links: dict[str, int], report: ImportReport, above: tuple[str, ...]
) -> list[int]:
    """Return the links of a filter group, with those of the groups that are members of it."""
    found: list[int] = []
    for child in groups[name]:
        if local_name(child) == "member":
            link = child.get("link")
            if link in links:
                found.append(links[link])
            else:
                report.add(
                    "collision filter of an unknown link",
                    describe(child),
                    f"there is no link '{link}'",
                    ImportSeverity.REPAIR,
                )
        elif local_name(child) == "member_group" and child.get("name") in groups:
            if child.get("name") not in (*above, name):
                found += _members(child.get("name"), groups, links, report, (*above, name))
    return found
