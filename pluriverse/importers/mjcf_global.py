"""MJCF documents in global coordinates (`<compiler coordinate="global">`), which MuJoCo read until 2.3.3.

Positions in such a document are those in the world. Where no body is turned, the frames of all bodies are
parallel, so a position in a body is the difference to the body's own; orientations and axes stay as written.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import numpy as np

from pluriverse.importers.mjcf_tree import MjcfTree

_TURNS = {"quat", "axisangle", "xyaxes", "zaxis", "euler"}
_POSITIONS = ("pos", "fromto")
_PLACED = ("inertial", "joint", "freejoint", "geom", "site", "camera", "light")
"""Elements of a body whose positions are those in the world."""
_UNKNOWN = ("frame", "replicate", "composite", "flexcomp", "attach", "connect", "weld")
"""Elements that never had global coordinates, or of which is not known which ones they had."""

_Change = tuple[ElementTree.Element, str, np.ndarray]


def make_local(tree: MjcfTree) -> bool:
    """Rewrite the positions of a document from global to local coordinates; return whether that was possible.

    It is not if a body is turned, if a hinge or a geom does not say where it is, if defaults give positions,
    or if the document has elements with frames of other kinds. The document is unchanged then.
    """
    defaults = [element for default in tree.root.findall("default") for element in default.iter()]
    if any(name in element.attrib for element in defaults for name in _POSITIONS):
        return False
    if any(element.tag in _UNKNOWN for element in tree.root.iter()):
        return False
    try:
        changes = [
            change
            for world in tree.root.findall("worldbody")
            for body in world.findall("body")
            for change in _local_positions(body, np.zeros(3))
        ]
    except ValueError:
        return False
    for element, name, value in changes:
        element.set(name, " ".join(repr(float(number)) for number in value))
    return True


def _local_positions(body: ElementTree.Element, parent: np.ndarray) -> Iterator[_Change]:
    """Yield the positions in a body and those below it in local coordinates.

    A body without a position has that of its inertia, else of the middle of its geoms, else of its parent.
    All are right, since nothing in the document refers to the frame. `parent` is its position [m].

    Raises:
        ValueError: If something is turned, or has no position where it needs one, or one of too few numbers.
    """
    here = _numbers(body, "pos", 3)
    if here is None:
        if body.find("freejoint") is not None or any(
            joint.get("type") == "free" for joint in body.findall("joint")
        ):
            raise ValueError("coordinates of a free joint are those of the frame")
        here = _middle(body)
    if here is None:
        here = parent
    if _TURNS & body.attrib.keys():
        raise ValueError("the body is turned")
    yield body, "pos", here - parent
    for child in body:
        if child.tag == "body":
            yield from _local_positions(child, here)
        elif child.tag in _PLACED:
            position, ends = _numbers(child, "pos", 3), _numbers(child, "fromto", 6)
            if position is not None:
                yield child, "pos", position - here
            if ends is not None:
                yield child, "fromto", ends - np.tile(here, 2)
            if position is None and ends is None and _needs_position(child):
                raise ValueError("there is no position")


def _middle(body: ElementTree.Element) -> np.ndarray | None:
    """Return the position of a body's inertia, else the mean of its geoms' [m], None without any."""
    inertial = body.find("inertial")
    if inertial is not None:
        return _numbers(inertial, "pos", 3)
    middles = []
    for geom in body.findall("geom"):
        position, ends = _numbers(geom, "pos", 3), _numbers(geom, "fromto", 6)
        if ends is not None:
            position = 0.5 * (ends[:3] + ends[3:])
        if position is not None:
            middles.append(position)
    return np.mean(middles, axis=0) if middles else None


def _needs_position(element: ElementTree.Element) -> bool:
    """Return whether motion depends on where an element is."""
    if element.tag == "joint":
        return element.get("type") not in ("slide", "free")
    return element.tag in ("inertial", "geom", "site")


def _numbers(element: ElementTree.Element, name: str, count: int) -> np.ndarray | None:
    words = element.get(name, "").split()
    if not words:
        return None
    if len(words) != count:
        raise ValueError(f"{name} has {len(words)} numbers")
    return np.array([float(word) for word in words])
