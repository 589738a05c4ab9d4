"""Repairs of MJCF documents that MuJoCo's parser or compiler refuses, mostly old files.

Each repair is reported. What cannot be repaired remains MuJoCo's error.
"""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry.image_file import check_pixel_count, check_png
from pluriverse.geometry.mesh_file import load_triangles
from pluriverse.importers.errors import AssetLimitError
from pluriverse.importers.mjcf_enums import MjGeom, MjJoint
from pluriverse.importers.mjcf_global import make_local
from pluriverse.importers.mjcf_pairs import touch_elsewhere
from pluriverse.importers.mjcf_tree import MjcfTree
from pluriverse.importers.report import ImportReport, ImportSeverity

# Least mass [kg] and inertia [kg·m²] that let MuJoCo compile a moving body that has none: twice its limit;
# such bodies count as massless afterwards.
BOUND = 2e-15
# Principal moments relative to the largest: negative ones up to this are rounding.
INERTIA_ROUNDING = 1e-5

# Relative excess over the least change of repaired moments, since MuJoCo compares them without tolerance.
MARGIN = 1e-9

# Half the range of a locked joint, in the units of the file: MuJoCo requires a range of some width.
LOCKED = 1e-5

_MUJOCO_MESHES = (".stl", ".obj", ".msh")
"""Extensions of mesh files that MuJoCo reads."""
_SIZE_COUNT: dict[int, int] = {
    MjGeom.SPHERE: 1,
    MjGeom.CAPSULE: 2,
    MjGeom.ELLIPSOID: 3,
    MjGeom.CYLINDER: 2,
    MjGeom.BOX: 3,
}


def repair_tree(
    tree: MjcfTree, message: str, elements: dict[str, ElementTree.Element], report: ImportReport
) -> bool:
    """Repair the element that MuJoCo's parser complains about; return whether it could be.

    Args:
        tree: The document.
        message: The complaint.
        elements: Elements of the document by MuJoCo's position text ("line 3").
        report: Report of the import.
    """
    match = re.search(r"Element '[^']*', (line \d+)", message)
    element = None if match is None else elements.get(match.group(1))
    if element is None:
        return False
    name = element.get("name")
    called = f"<{element.tag}>" + (f" '{name}'" if name else "")

    def note(feature: str, consequence: str) -> bool:
        report.add(feature, called, consequence, ImportSeverity.REPAIR)
        return True

    quoted = re.search(r"'([^']*)'(?! \()", message.partition("\n")[0])
    word = quoted.group(1) if quoted else ""
    if "global coordinates" in message and make_local(tree):
        del element.attrib["coordinate"]
        return note("global coordinates", "positions are made relative to the bodies that they are in")
    if "unrecognized attribute" in message and word in element.attrib:
        del element.attrib[word]
        return note(f"unknown attribute '{word}'", "it is ignored")
    if "unrecognized element" in message:
        _parent_of(tree.root, element).remove(element)
        return note(f"unknown element <{element.tag}>", "it is ignored with all in it")
    if "unique element 'inertial' found" in message:
        for extra in element.findall("inertial")[1:]:
            element.remove(extra)
        return note("several <inertial>", "the first one counts")
    if "required attribute missing: 'pos'" in message and element.tag == "inertial":
        element.set("pos", "0 0 0")
        return note("<inertial> without a place", "it is at the origin of the body")
    if "required attribute missing: 'mass'" in message and element.tag == "inertial":
        _parent_of(tree.root, element).remove(element)
        return note("<inertial> without a mass", "mass and inertia are those of the geoms")
    if "repeated name" in message and element.tag in ("texture", "material", "mesh"):
        _parent_of(tree.root, element).remove(element)
        return note(f"two of a name: {element.tag}", "the first one counts")
    if "repeated name" in message and element.tag in ("body", "joint", "geom", "site", "camera", "light"):
        known = {other.get("name") for other in tree.root.iter(element.tag)}
        given = next(new for k in itertools.count(1) if (new := f"{name}_{k}") not in known)
        element.set("name", given)
        return note(f"two of a name: {element.tag}", f"this one is called '{given}'")
    if "invalid keyword" in message and element.tag == "joint" and element.get("type") == "fixed":
        _parent_of(tree.root, element).remove(element)
        return note("joint of type fixed", "the body is welded to its parent")
    if "rgba" in message and "enough data" in message:
        element.attrib.pop("rgba", None)
        return note("colour of too few numbers", "it has the default colour")
    return False


def _parent_of(root: ElementTree.Element, element: ElementTree.Element) -> ElementTree.Element:
    return next(above for above in root.iter() if any(child is element for child in above))


def repair_spec(spec: Any, report: ImportReport) -> None:
    """Repair the elements of a document (`mujoco.MjSpec`) that keep it from being compiled."""
    spec.memory = -1  # what is compiled is not simulated, so no file need reserve memory for that
    _read_meshes(spec)
    _check_height_fields(spec, report.source)
    _drop_pictures(spec, report)
    _drop_contacts(spec, report)
    _drop_tendons(spec, report)
    _drop_actuators(spec, report)
    for number, geom in enumerate(list(spec.geoms)):
        _repair_size(spec, geom, geom.name or f"geom {number}", report)
    for joint in spec.joints:
        if joint.limited == 1 and joint.range[0] == joint.range[1]:  # mjLIMITED_TRUE
            joint.range = joint.range + np.array([-LOCKED, LOCKED])
            report.add("range of no width", joint.name, "the joint is locked there", ImportSeverity.REPAIR)
        if joint.limited == 2 and joint.range[0] > joint.range[1]:  # mjLIMITED_AUTO
            report.add(
                "range that ends below its begin",
                joint.name,
                "the joint moves without limits, as in MuJoCo",
                ImportSeverity.REPAIR,
            )
        is_limited = joint.limited != 0  # mjLIMITED_FALSE
        if joint.type == MjJoint.BALL and is_limited and joint.range[0] < 0.0 < joint.range[1]:
            joint.range = np.array([0.0, joint.range[1]])
            report.add(
                "range of a ball joint that begins below 0",
                joint.name,
                "its upper end bounds the angle of the whole rotation",
                ImportSeverity.REPAIR,
            )
    for body in spec.bodies:
        if body.explicitinertial and body.mass > 0.0:
            _repair_inertia(body, report)


def _read_meshes(spec: Any) -> None:
    """Read the mesh files that MuJoCo cannot decode."""
    folder = Path(spec.modelfiledir) / spec.meshdir
    for mesh in spec.meshes:
        path = folder / mesh.file
        if not mesh.file or path.suffix.lower() in _MUJOCO_MESHES or not path.is_file():
            continue
        vertices, triangles, _, _ = load_triangles(path, apply_up_axis=True)
        mesh.name = mesh.name or path.stem
        mesh.file = ""
        mesh.uservert, mesh.userface = vertices.astype(float).reshape(-1), triangles.reshape(-1)


def _drop_pictures(spec: Any, report: ImportReport) -> None:
    """Leave out elements that only affect pictures if their files or materials are missing."""
    known = {material.name for material in spec.materials}
    for kind, elements in (("geom", spec.geoms), ("site", spec.sites), ("tendon", spec.tendons)):
        for number, element in enumerate(elements):
            if element.material and element.material not in known:
                report.add(
                    f"undefined material '{element.material}'",
                    element.name or f"{kind} {number}",
                    "it has its own or the default colour",
                    ImportSeverity.REPAIR,
                )
                element.material = ""
    folder = Path(spec.modelfiledir) / spec.texturedir
    for texture in list(spec.textures):
        files = [file for file in (texture.file, *texture.cubefiles) if file]
        missing = [file for file in files if not ((folder / file).is_file() or file in spec.assets)]
        problem = _too_large(texture, [spec.assets.get(file, folder / file) for file in files])
        if missing:
            report.add("missing texture", missing[0], "it is not drawn", ImportSeverity.WARNING)
        elif problem:
            report.add("texture", texture.name or files[0], f"it is not drawn: {problem}")
        if missing or problem:
            for material in spec.materials:
                names = list(material.textures)
                material.textures = ["" if name == texture.name else name for name in names]
            spec.delete(texture)


def _too_large(texture: Any, files: list[Path | bytes]) -> str:
    """Return a text if a texture is too large, else an empty one."""
    try:
        for file in files:
            check_png(file, "the image")
        if not files:
            check_pixel_count(texture.width, texture.height, "the image")
    except ValueError as error:
        return str(error)
    return ""


def _check_height_fields(spec: Any, file: str) -> None:
    """Raise if an image of heights is too large, since the ground must not be left out.

    Raises:
        AssetLimitError: If one is.
    """
    folder = Path(spec.modelfiledir) / spec.meshdir
    for field in spec.hfields:
        if field.file:
            try:
                check_png(spec.assets.get(field.file, folder / field.file), "the image")
            except ValueError as error:
                raise AssetLimitError(
                    str(error).rpartition(". ")[0],
                    file=file,
                    element=f'<hfield name="{field.name}">',
                    value=field.file,
                    remedy="Scale the image down.",
                ) from error


def _drop_contacts(spec: Any, report: ImportReport) -> None:
    """Leave out rules for contacts of geoms and bodies that do not exist: they change nothing."""
    geoms = {geom.name for geom in spec.geoms}
    bodies = {body.name for body in spec.bodies}
    rules = [("contact pair", pair, {pair.geomname1, pair.geomname2} - geoms) for pair in spec.pairs]
    rules += [("exclusion", rule, {rule.bodyname1, rule.bodyname2} - bodies) for rule in spec.excludes]
    for kind, rule, missing in rules:
        if missing:
            what = " and ".join(f"'{name}'" for name in sorted(missing))
            consequence = "it is left out"
            if kind == "contact pair":
                left = [geom for geom in spec.geoms if geom.name in (rule.geomname1, rule.geomname2)]
                for geom in left:
                    if geom.contype == 0 and geom.conaffinity == 0:
                        touch_elsewhere(geom, rule)
                        consequence = f"'{geom.name}' touches shapes that are not of the file instead"
            report.add(f"{kind} of missing elements", what, consequence, ImportSeverity.REPAIR)
            spec.delete(rule)


def _drop_tendons(spec: Any, report: ImportReport) -> None:
    """Leave out tendons along joints and sites that do not exist, as files shared by robots and objects have.

    Actuators and sensors of such a tendon are removed with it.
    """
    import mujoco

    kinds = (mujoco.mjtWrap.mjWRAP_JOINT, mujoco.mjtWrap.mjWRAP_SITE)
    for tendon in list(spec.tendons):
        steps = [tendon.path[number] for number in range(len(tendon.path))]
        if not steps or not all(step.type in kinds and step.target is None for step in steps):
            continue  # the compiler reports one that is incomplete
        name = tendon.name
        report.add(
            "tendon along what there is not", name or "tendon", "it is left out", ImportSeverity.REPAIR
        )
        users = [
            ("actuator", user) for user in spec.actuators if _is_on_tendon(user.trntype, user.target, name)
        ]
        users += [
            ("sensor", user) for user in spec.sensors if _is_on_tendon(user.objtype, user.objname, name)
        ]
        for kind, user in users:
            report.add(
                f"{kind} of a tendon left out", user.name or kind, "it is left out", ImportSeverity.REPAIR
            )
            spec.delete(user)
        spec.delete(tendon)


def _drop_actuators(spec: Any, report: ImportReport) -> None:
    """Leave out included actuators of a robot that is missing: none of their joints exists."""
    import mujoco

    joints = {joint.name for joint in spec.joints}
    on_joints = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    actuators = list(spec.actuators)
    if len(actuators) < 2 or any(
        actuator.trntype not in on_joints or actuator.target in joints for actuator in actuators
    ):
        return  # a single one, or one among others, is a slip that the compiler reports
    for actuator in actuators:
        report.add(
            "actuator of what there is not",
            actuator.name or "actuator",
            "it is left out",
            ImportSeverity.REPAIR,
        )
        spec.delete(actuator)


def _is_on_tendon(kind: Any, target: str, tendon: str) -> bool:
    import mujoco

    return (
        kind in (mujoco.mjtTrn.mjTRN_TENDON, mujoco.mjtObj.mjOBJ_TENDON) and bool(tendon) and target == tendon
    )


def _repair_size(spec: Any, geom: Any, name: str, report: ImportReport) -> None:
    """Leave out a geom without extent, and make one without thickness a thin plate."""
    count = _SIZE_COUNT.get(int(geom.type), 0)
    if geom.meshname or count == 0:
        return
    if not np.isnan(geom.fromto[0]):
        count = 1  # the length is that of the line
    sizes = np.array(geom.size[:count])
    if not np.isfinite(sizes).all() or sizes.min() != 0.0:
        return  # nothing to repair, or for the compiler to say
    if count == 1 or sizes.max() == 0.0 or int(geom.type) == MjGeom.CAPSULE:
        report.add("geom without extent", name, "it touches nothing and is left out", ImportSeverity.REPAIR)
        spec.delete(geom)
        return
    sizes[sizes == 0.0] = 1e-3 * sizes.max()
    geom.size = [*sizes, *geom.size[count:]]
    report.add(
        "geom without thickness", name, "it is a plate of a thousandth of its size", ImportSeverity.REPAIR
    )


def _repair_inertia(body: Any, report: ImportReport) -> None:
    """Change an authored inertia to one that MuJoCo accepts."""
    full = np.array(body.fullinertia)
    is_full = not np.isnan(full[0])
    inertia = np.diag(full[:3] if is_full else np.array(body.inertia))
    if is_full:
        inertia[np.triu_indices(3, 1)] = full[3:]
        inertia += np.triu(inertia, 1).T
    if not np.isfinite(inertia).all():
        return
    moments, axes = np.linalg.eigh(inertia)
    if moments[0] < -INERTIA_ROUNDING * max(moments[2], 0.0):
        diagonal = np.diagonal(inertia)
        instead = "the products of inertia exceed what the moments allow; they are left out"
        if not (diagonal > 0.0).all():
            radius = (body.mass / (4.0 / 3.0 * np.pi * 1000.0)) ** (1.0 / 3.0)
            diagonal = np.full(3, 0.4 * body.mass * radius**2)
            instead = "that of a ball of water takes its place"
        report.add(
            "negative principal moment of inertia",
            f"body '{body.name}', {moments[0]:.3g} kg·m²",
            instead,
            ImportSeverity.REPAIR,
        )
        moments, axes = np.linalg.eigh(np.diag(diagonal))
    elif not (is_full and moments[0] <= 0.0) and moments[0] + moments[1] >= moments[2]:
        return
    possible = np.maximum(moments, 0.0)
    lack = possible[2] - possible[0] - possible[1]
    if lack > 0.0:
        # The least change of the second moments of mass, of which one is negative: it becomes 0.
        possible[:2] += 0.5 * (1.0 + MARGIN) * lack
    if lack > INERTIA_ROUNDING * possible[2]:
        report.add(
            "impossible inertia",
            f"body '{body.name}'",
            "the largest principal moment exceeds the sum of the others, which no body has; they are raised",
            ImportSeverity.REPAIR,
        )
    if is_full:
        possible = np.maximum(possible, MARGIN * possible[2])  # the compiler diagonalizes it again
        inertia = axes @ np.diag(possible) @ axes.T
        body.fullinertia = [*np.diagonal(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    else:
        order = np.abs(axes).argmax(axis=0)  # eigenvalues are sorted, the authored moments are not
        body.inertia = possible[np.argsort(order)]
