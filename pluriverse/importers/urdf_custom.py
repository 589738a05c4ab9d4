"""Custom attributes in URDF: attributes that a builder declares are read from XML attributes.

A body has those of its `<link>`, a joint and its degrees of freedom those of `<joint>`, a shape those of
`<collision>` or `<visual>`, the articulation, the world and the whole model those of `<robot>`.
"""

from typing import Any

from pluriverse.importers.custom_values import XmlAttributes, set_value
from pluriverse.importers.description import RobotDescription, ShapeDescription
from pluriverse.types import Entity, JointType

_JOINT = (Entity.JOINT, Entity.JOINT_DOF, Entity.JOINT_COORD, Entity.JOINT_CONSTRAINT)
_OF_DOFS = (Entity.JOINT_DOF, Entity.JOINT_COORD)
_ONCE = (Entity.ONCE, Entity.WORLD)
# What the elements of a tag become.
_FREQUENCIES = {
    "robot": (Entity.ARTICULATION, *_ONCE),
    "link": (Entity.BODY,),
    "joint": _JOINT,
    "collision": (Entity.SHAPE,),
    "visual": (Entity.SHAPE,),
}


def custom_names(builder: Any) -> dict[str, set[str]]:
    """Return the XML attributes that a builder declares, by the tag of the elements that may carry them."""
    xml = XmlAttributes(builder, "urdf")
    return {tag: xml.names(frequencies) for tag, frequencies in _FREQUENCIES.items()}


class UrdfCustom:
    """Reads the custom attributes that a builder declares from a document.

    Args:
        builder: Builder that the document is added to.
        root: The `<robot>` element.
        file: Name of the document in messages.
    """

    def __init__(self, builder: Any, root: Any, file: str):
        self._builder = builder
        self._root = root
        self._xml = XmlAttributes(builder, "urdf", file)
        self._links = {link.get("name"): link for link in root.findall("link")}
        self._joints = {joint.get("name"): joint for joint in root.findall("joint")}

    def describe(self, robot: RobotDescription) -> None:
        """Give the links and their joints their custom attributes.

        Raises:
            AssetError: If a text is no value of its attribute.
        """
        for link in robot.links:
            element = self._links.get(link.name)
            if element is not None:
                link.custom = self._xml.read(element.attrib, _FREQUENCIES["link"], f"link '{link.name}'")
            name = link.joint.label.rpartition("/")[2]
            joint = self._joints.get(name)
            if joint is None or link.joint.label != f"{robot.label}/{name}":
                continue  # the base
            kinds = _JOINT if link.joint.dof_count else tuple(set(_JOINT) - set(_OF_DOFS))
            if link.joint.type is JointType.FREE:
                kinds = tuple(set(kinds) - {Entity.JOINT_CONSTRAINT})
            context = {"joint_type": joint.get("type")}
            link.joint.custom = self._xml.read(joint.attrib, kinds, f"joint '{name}'", context)

    def set_shape(self, shape: ShapeDescription, link: str, kind: str, number: int) -> None:
        """Give a shape the custom attributes of an element of a link.

        Args:
            shape: The shape.
            link: Name of the link.
            kind: "collision" or "visual".
            number: Index of the element in the link.

        Raises:
            AssetError: If a text is no value of its attribute.
        """
        element = self._links[link].findall(kind)[number]
        what = f"<{kind}> {number} of link '{link}'"
        shape.custom = self._xml.read(element.attrib, _FREQUENCIES[kind], what)

    def set_rest(self, articulations: range) -> None:
        """Set the attributes of the articulations, of the world and of the whole model.

        Raises:
            AssetError: If a text is no value of its attribute.
        """
        what, attributes = "<robot>", self._builder.custom_attributes
        for key, value in self._xml.read(self._root.attrib, (Entity.ARTICULATION,), what).items():
            for articulation in articulations:
                attributes[key].values[articulation] = value
        for key, value in self._xml.read(self._root.attrib, _ONCE, what).items():
            set_value(self._builder, attributes[key], value)
