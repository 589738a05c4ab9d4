"""Repairs of a URDF document before it is checked, for faults that are common in robot files.

Each is reported. Elements are changed in place, so that what is parsed afterwards is the repaired document.
"""

import math
import re
from typing import Any

from pluriverse.importers.report import ImportReport, ImportSeverity

# URDF demands an effort and a speed of most joints, so that 0 stands where none is known.
LIMIT_OF_ZERO = "it is read as no limit, since files write 0 for want of a number"

# Joints whose effort and speed limits act.
_DRIVEN = ("revolute", "continuous", "prismatic", "planar")

# Sides of boxes and cylinders that are 0, relative to the largest side of the shape: a sheet is a thin plate.
SHEET_SHARE = 1e-3

# Attributes of several numbers. With commas as decimal points there would be more of them.
VECTORS = {"xyz": 3, "rpy": 3, "size": 3, "scale": 3, "rgba": 4}
# Attributes of one number.
_SCALARS = ("lower", "upper", "effort", "velocity", "damping", "friction", "radius", "length", "value")
# A number with a second decimal point at its end, as C libraries read without complaint.
_SECOND_POINT = re.compile(r"^([+-]?\d+\.\d*)\.$")

# Shapes that a `<geometry>` can hold, and a value from the environment with one to take without it, as
# roslaunch writes it.
SHAPES = ("box", "cylinder", "capsule", "sphere", "mesh", "plane", "cdf")
_FROM_ENVIRONMENT = re.compile(r"\$\(optenv\s+[^\s()]+\s*([^()]*)\)")


def written_tag(element: Any) -> str:
    """Return the tag of an element as written in the file, with the prefix of its namespace."""
    name = element.tag.rsplit("}", 1)[-1]
    return f"{element.prefix}:{name}" if element.prefix else name


def describe(element: Any) -> str:
    """Return the name of an element in messages: tag, its link or joint, and line."""
    owner = element
    while owner is not None and not (owner.get("name") and owner.tag in ("link", "joint")):
        owner = owner.getparent()
    if owner is None:
        text = f"<{written_tag(element)}>"
    elif owner is element:
        text = f"{owner.tag} '{owner.get('name')}'"
    else:
        text = f"<{written_tag(element)}> of {owner.tag} '{owner.get('name')}'"
    return f"{text} (line {element.sourceline})"


def fill_in_defaults(root: Any, report: ImportReport) -> None:
    """Take values from the environment at the defaults that the file has for them."""
    for element in root.iter():
        for attribute, text in element.attrib.items():
            expanded = _FROM_ENVIRONMENT.sub(lambda match: match[1].strip(), text)
            if expanded != text:
                element.set(attribute, expanded)
                report.add(
                    "value from the environment",
                    describe(element),
                    f"{attribute} is '{expanded}', its default",
                    ImportSeverity.REPAIR,
                )


def has_macro(element: Any) -> bool:
    """Return whether an element is or holds a macro of xacro that is not expanded, whatever its children."""
    if not isinstance(element.tag, str):
        return False
    texts = (element.text or "", *element.attrib.values())
    return element.prefix == "xacro" or any("${" in text or "$(" in text for text in texts)


def remove_display_macros(root: Any, report: ImportReport) -> None:
    """Remove unexpanded macros from what is only drawn, and with them the shape if it depends on them."""
    for visual in root.iterfind("link/visual"):
        for child in [child for child in visual if any(map(has_macro, child.iter()))]:
            needed = child.tag in ("geometry", "origin")
            report.add(
                "macro that is not expanded",
                describe(child),
                "this shape is not drawn" if needed else "it is drawn without it",
                ImportSeverity.REPAIR,
            )
            if needed:
                visual.getparent().remove(visual)
                break
            visual.remove(child)


def repair(root: Any, name: str, report: ImportReport) -> None:
    """Repair a `<robot>` element; `name` is the default name of a robot."""

    def note(feature: str, element: Any, consequence: str) -> None:
        report.add(feature, describe(element), consequence, ImportSeverity.REPAIR)

    for element in root.iter():
        for attribute, count in VECTORS.items():
            text = element.get(attribute) or ""
            parts = text.replace(",", " ").split()
            if "," in text and len(parts) == count:
                element.set(attribute, " ".join(parts))
                note("numbers separated by commas", element, f"{attribute} is read as '{' '.join(parts)}'")
        for attribute in (*VECTORS, *_SCALARS):
            parts = (element.get(attribute) or "").split()
            written = [_SECOND_POINT.sub(r"\1", part) for part in parts]
            if written != parts:
                element.set(attribute, " ".join(written))
                note(
                    "number with two decimal points", element, f"{attribute} is read as '{' '.join(written)}'"
                )
    for origin in root.iter("origin"):
        for attribute in ("xyz", "rpy"):
            numbers = _numbers(origin.get(attribute))
            if numbers is not None and len(numbers) > 3 and not any(numbers[3:]):
                origin.set(attribute, " ".join((origin.get(attribute) or "").split()[:3]))
                note(
                    f"{attribute} of {len(numbers)} numbers",
                    origin,
                    "those after the third are 0, and are left out",
                )
    for mesh in root.iter("mesh"):
        factors = (mesh.get("scale") or "").split()
        if len(factors) > 3 and len(set(factors)) == 1:
            mesh.set("scale", " ".join(factors[:3]))
            note("scale of more than three factors", mesh, f"all are {factors[0]}, so three are read")
    if not (root.get("name") or "").strip():
        root.set("name", name)
        report.add("robot without a name", describe(root), f"it is called '{name}'", ImportSeverity.REPAIR)
    for link in root.findall("link"):
        _repair_inertials(link, note)
        for shape in (*link.findall("collision"), *link.findall("visual")):
            _repair_geometry(shape, note)
        for collision in link.findall("collision"):
            _repair_sizes(link, collision, note)
    for joint in root.findall("joint"):
        _repair_joint(joint, note)
    _add_world(root, note)
    _remove_loose_links(root, note)
    for color in list(root.iter("color")):
        numbers = _numbers(color.get("rgba"))
        if numbers is not None and len(numbers) == 3:
            color.set("rgba", f"{color.get('rgba')} 1")
            note("colour of three numbers", color, "it is opaque")
        elif numbers is None or len(numbers) != 4 or not all(map(math.isfinite, numbers)):
            note(f"colour '{color.get('rgba')}'", color, "these are not four numbers; it is left out")
            color.getparent().remove(color)
    _note_materials(root, report)


def _repair_inertials(link: Any, note: Any) -> None:
    """Leave at most an `<inertial>` with a mass, and a complete `<inertia>`."""
    for inertial in link.findall("inertial"):
        mass, inertia = inertial.find("mass"), inertial.find("inertia")
        density = inertial.find("density")
        if mass is not None and density is not None:
            note("density beside a mass", inertial, "the mass counts")
        if mass is None:
            if density is not None and (_numbers(density.get("value")) or [0.0])[0] > 0.0:
                link.set("density", density.get("value"))
                note("density in place of a mass", inertial, "the colliders weigh with it")
            else:
                note("<inertial> without a mass", inertial, "mass and inertia are those of the colliders")
            link.remove(inertial)
            continue
        if inertia is not None and any(inertia.get(entry) is None for entry in ("ixx", "iyy", "izz")):
            note("incomplete <inertia>", inertia, "the inertia is that of the colliders, or a ball of water")
            inertial.remove(inertia)
        elif inertia is None and (_numbers(mass.get("value")) or [0.0])[0] > 0.0:
            where = "its colliders" if link.find("collision") is not None else "a ball of water"
            note("mass without an <inertia>", inertial, f"the inertia is that of {where} where it has one")


def _repair_geometry(shape: Any, note: Any) -> None:
    """Leave what is no shape out of a `<geometry>` that holds one shape: an origin, an extension."""
    for geometry in shape.findall("geometry"):
        for grid in geometry.findall("cdf"):
            _repair_grid(shape, grid, note)
        for plane in geometry.findall("plane"):
            if plane.get("normal") is None:
                plane.set("normal", "0 0 1")
        children = [child for child in geometry if isinstance(child.tag, str)]
        others = [child for child in children if child.tag not in SHAPES]
        if len(children) - len(others) == 1:
            for other in others:
                note(f"<{written_tag(other)}> in a <geometry>", other, "it is not read there")
                geometry.remove(other)


def _repair_grid(shape: Any, grid: Any, note: Any) -> None:
    """Read Bullet's grid of signed distances as the mesh of the same name, for which a grid is made here."""
    name = (grid.get("filename") or "").rsplit(".", 1)[0] + ".obj"
    note("<cdf>, a grid of distances", grid, f"the grid is made of the mesh '{name}'")
    grid.tag = "mesh"
    grid.set("filename", name)
    if shape.tag == "collision" and shape.find("sdf") is None:
        shape.append(shape.makeelement("sdf", {}))


def _repair_sizes(link: Any, collision: Any, note: Any) -> None:
    """Leave out colliders without extent, and make those without thickness thin plates."""
    for shape in collision.iterfind("geometry/*"):
        attributes = {"box": ("size",), "cylinder": ("radius", "length"), "capsule": ("radius",)}.get(
            shape.tag, ("radius",) if shape.tag == "sphere" else ()
        )
        values = {attribute: _numbers(shape.get(attribute)) for attribute in attributes}
        sizes = [abs(size) for part in values.values() for size in part or [math.nan]]
        if not sizes or min(sizes) != 0.0:
            continue  # nothing to repair, or for the checks to say
        if shape.tag in ("sphere", "capsule") or max(sizes) == 0.0:
            note("collider without extent", collision, "it touches nothing and is left out")
            link.remove(collision)
            return
        thin = SHEET_SHARE * max(sizes)
        for attribute, part in values.items():
            shape.set(attribute, " ".join(repr(size if size != 0.0 else thin) for size in part or ()))
        note("collider without thickness", shape, "it is a plate of a thousandth of its size")


def _repair_joint(joint: Any, note: Any) -> None:
    """Leave out limits that mean "none" in files: of effort and speed, 0 or less; ranges in reverse order."""
    for limit in joint.findall("limit"):
        if joint.get("type") in ("revolute", "prismatic", "planar"):
            lower, upper = _numbers(limit.get("lower", "0")), _numbers(limit.get("upper", "0"))
            if lower is not None and upper is not None and lower[0] > upper[0]:
                for name in ("lower", "upper"):
                    limit.attrib.pop(name, None)
                note(
                    "lower limit above the upper one",
                    limit,
                    f"{lower[0]:g} and {upper[0]:g} are read as no limits, as Bullet and MuJoCo read them",
                )
        for name in ("effort", "velocity"):
            numbers = _numbers(limit.get(name))
            if numbers is not None and numbers[0] < 0.0:
                del limit.attrib[name]
                note(f"negative {name} limit", limit, "there is no such limit")
            elif numbers == [0.0] and joint.get("type") in _DRIVEN:
                del limit.attrib[name]
                note(f"{name} limit 0", limit, LIMIT_OF_ZERO)


def _add_world(root: Any, note: Any) -> None:
    """Add the link that everything hangs from if the file does not define it, as `world`."""
    names = {link.get("name") for link in root.findall("link")}
    parents = [joint.find("parent") for joint in root.findall("joint")]
    used = [parent for parent in parents if parent is not None and parent.get("link") == "world"]
    if used and "world" not in names:
        root.insert(0, root.makeelement("link", {"name": "world"}))
        note("undefined link 'world'", used[0], "it is a link without mass at the base")
        return
    # A part of a robot, as a gripper, hangs from a link that another file has. A misspelt name would leave a
    # second link without parent.
    joints = root.findall("joint")
    children = {child.get("link") for joint in joints if (child := joint.find("child")) is not None}
    bases = [parent for parent in parents if parent is not None and parent.get("link") not in names]
    if len(bases) == 1 and bases[0].get("link") and names and names <= children:
        name = bases[0].get("link")
        root.insert(0, root.makeelement("link", {"name": name}))
        note(f"undefined link '{name}'", bases[0], "it is a link without mass at the base")


def _remove_loose_links(root: Any, note: Any) -> None:
    """Remove links without mass that no joint connects, but for the first link of the file."""
    ends = (end for joint in root.findall("joint") for end in joint if end.tag in ("parent", "child"))
    connected = {end.get("link") for end in ends}
    names = {link.get("name") for link in root.findall("link")}
    if not connected or not connected <= names:
        return  # the name of a link may be misspelt: the checks say so
    for link in root.findall("link"):
        if link.get("name") not in connected and link.find("inertial") is None:
            note("link without mass that no joint connects", link, "it is left out with its shapes")
            root.remove(link)


def _note_materials(root: Any, report: ImportReport) -> None:
    """Report materials that shapes name and the file does not define."""
    defined = {
        material.get("name")
        for material in root.iter("material")
        if material.find("color") is not None or material.find("texture") is not None
    }
    for material in root.iterfind("link/visual/material"):
        if material.get("name") and material.get("name") not in defined:
            report.add(
                f"undefined material '{material.get('name')}'",
                describe(material),
                "the shape has no colour of its own",
                ImportSeverity.REPAIR,
            )


def _numbers(text: str | None) -> list[float] | None:
    """Return the numbers of an attribute, None if it holds anything else."""
    try:
        return [float(part) for part in (text or "").split()] or None
    except ValueError:
        return None
