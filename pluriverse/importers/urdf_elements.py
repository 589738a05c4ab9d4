"""The elements of a URDF document as values, with the defaults of the format.

The document has passed the checks of `urdf_document` before, so every number is one, and every required
element is there. Lengths are in metres, angles in radians, as written.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from pluriverse.importers.frames import IDENTITY, Frame, quat_from_matrix

# Types of joints that have no axis.
AXIS_FREE = ("fixed", "floating", "spherical")


@dataclasses.dataclass
class Inertial:
    """An `<inertial>`."""

    origin: Frame
    mass: float
    """Mass [kg]."""
    inertia: np.ndarray | None
    """Inertia about the origin in its axes [kg·m²], shape [3, 3], None if it is left to the shapes."""


@dataclasses.dataclass
class Material:
    """A `<material>`, or a reference to one by its name."""

    name: str | None
    rgba: tuple[float, ...] | None
    """Red, green, blue and opacity."""
    texture: str | None
    """Image file as written, None without one. Exporters leave an empty name behind."""

    @property
    def is_reference(self) -> bool:
        """Whether it says nothing but a name."""
        return self.rgba is None and self.texture is None


@dataclasses.dataclass
class Shape:
    """A `<collision>` or `<visual>`."""

    element: Any
    """The element itself."""
    name: str | None
    origin: Frame
    geometry: Any
    """The one element that `<geometry>` holds, such as `<box>`."""
    material: Material | None


@dataclasses.dataclass
class Link:
    """A `<link>`."""

    element: Any
    """The element itself."""
    name: str
    inertial: Inertial | None
    collisions: list[Shape]
    visuals: list[Shape]


@dataclasses.dataclass
class Limit:
    """The `<limit>` of a joint; what is not written is None."""

    lower: float | None
    upper: float | None
    effort: float | None
    velocity: float | None


@dataclasses.dataclass
class Mimic:
    """A `<mimic>`: q = multiplier * q of the other joint + offset."""

    joint: str | None
    multiplier: float
    offset: float


@dataclasses.dataclass
class Joint:
    """A `<joint>`."""

    element: Any
    """The element itself."""
    name: str
    type: str
    parent: str
    child: str
    origin: Frame
    axis: np.ndarray
    """Axis of any length, shape [3]."""
    limit: Limit | None
    damping: float | None
    """As written in `<dynamics>`."""
    friction: float | None
    mimic: Mimic | None


@dataclasses.dataclass
class Robot:
    """A `<robot>`."""

    name: str
    links: list[Link]
    joints: list[Joint]
    materials: dict[str | None, Material]
    """Those that links may refer to."""


def read_robot(root: Any) -> Robot:
    """Return what a checked `<robot>` element holds."""
    materials = [_material(element) for element in root.findall("material")]
    return Robot(
        root.get("name"),
        [_link(element) for element in root.findall("link")],
        [_joint(element) for element in root.findall("joint")],
        {material.name: material for material in materials},
    )


def _link(element: Any) -> Link:
    inertial = element.find("inertial")
    return Link(
        element,
        element.get("name"),
        None if inertial is None else _inertial(inertial),
        [_shape(shape) for shape in element.findall("collision")],
        [_shape(shape) for shape in element.findall("visual")],
    )


def _inertial(element: Any) -> Inertial:
    inertia = element.find("inertia")
    matrix = None
    if inertia is not None:
        rows = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))
        matrix = np.array([[float(inertia.get(name, "0")) for name in row] for row in rows])
    return Inertial(_origin(element), float(element.find("mass").get("value")), matrix)


def _shape(element: Any) -> Shape:
    geometry = next(child for child in element.find("geometry") if isinstance(child.tag, str))
    material = element.find("material")
    return Shape(
        element,
        element.get("name"),
        _origin(element),
        geometry,
        None if material is None else _material(material),
    )


def _material(element: Any) -> Material:
    color, texture = element.find("color"), element.find("texture")
    rgba = None if color is None else tuple(float(channel) for channel in color.get("rgba").split())
    return Material(element.get("name"), rgba, None if texture is None else texture.get("filename", ""))


def _joint(element: Any) -> Joint:
    axis, limit, dynamics, mimic = (element.find(tag) for tag in ("axis", "limit", "dynamics", "mimic"))
    # Nobody checks what joints without an axis say of one.
    has_axis = axis is not None and element.get("type") not in AXIS_FREE
    xyz = axis.get("xyz", "1 0 0") if has_axis else "1 0 0"
    return Joint(
        element,
        element.get("name"),
        element.get("type"),
        element.find("parent").get("link"),
        element.find("child").get("link"),
        _origin(element),
        np.array([float(part) for part in xyz.split()]),
        None
        if limit is None
        else Limit(*(_number(limit, name) for name in ("lower", "upper", "effort", "velocity"))),
        _number(dynamics, "damping"),
        _number(dynamics, "friction"),
        None
        if mimic is None
        else Mimic(mimic.get("joint"), float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))),
    )


def _number(element: Any, name: str) -> float | None:
    """Return a number as written, None if it or its element is missing."""
    text = None if element is None else element.get(name)
    return None if text is None else float(text)


def _origin(element: Any) -> Frame:
    """Return the pose of the `<origin>` of an element. Roll, pitch and yaw turn about fixed axes, in turn."""
    origin = element.find("origin")
    if origin is None:
        return IDENTITY
    position = np.array([float(part) for part in origin.get("xyz", "0 0 0").split()])
    angles = [float(part) for part in origin.get("rpy", "0 0 0").split()]
    (cr, cp, cy), (sr, sp, sy) = map(math.cos, angles), map(math.sin, angles)
    rotation = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return Frame(position, quat_from_matrix(np.array(rotation)))
