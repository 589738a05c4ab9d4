"""The custom attributes of the elements of an MJCF document: those of MuJoCo, and those of a user."""

import xml.etree.ElementTree as ElementTree
from typing import Any

from pluriverse.importers.custom_values import XmlAttributes, set_value
from pluriverse.importers.mjcf_namespace import MujocoNamespace
from pluriverse.importers.mjcf_observers import SensorElement
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.report import ImportReport
from pluriverse.types import Entity

_JOINT = (Entity.JOINT, Entity.JOINT_COORD, Entity.JOINT_CONSTRAINT)
_KINDS = {
    "body": (Entity.BODY,),
    "joint": (*_JOINT, Entity.JOINT_DOF),
    "geom": (Entity.SHAPE,),
    "site": (Entity.SHAPE,),
    "equality": (Entity.EQUALITY_CONSTRAINT,),
}
_ONCE = (Entity.ONCE, Entity.WORLD)
_JOINT_TYPES = ("free", "ball", "slide", "hinge")  # mujoco.mjtJoint


class MjcfCustom:
    """Reads the custom attributes that a builder declares from the elements of a document.

    Args:
        builder: Builder that the document is added to.
        report: Report of the import.
    """

    def __init__(self, builder: Any, report: ImportReport):
        self.namespace = MujocoNamespace(builder, report)
        self._builder = builder
        self._xml = XmlAttributes(builder, "mjcf")
        self._elements: dict[str, dict[int, ElementTree.Element]] = {}
        self._source: MjcfSource | None = None
        self.sensors: list[SensorElement] = []
        """The sensors of the document, which are removed before it is compiled."""

    @property
    def names(self) -> set[str]:
        """Names of the XML attributes that elements may carry for a user."""
        return self._xml.names([*(kind for kinds in _KINDS.values() for kind in kinds), *_ONCE])

    def bind(self, source: MjcfSource) -> None:
        """Set the compiled document from which elements are read."""
        self._source = source
        self._xml.file = source.name
        by_line = source.element_of_line
        if not by_line:
            return
        for kind, elements in (
            ("body", source.spec.bodies),
            ("joint", source.spec.joints),
            ("geom", source.spec.geoms),
            ("site", source.spec.sites),
            ("equality", source.spec.equalities),
        ):
            known = {element.id: by_line.get(element.info) for element in elements}
            self._elements[kind] = {index: own for index, own in known.items() if own is not None}
        for joint in source.spec.joints:  # of a freejoint MuJoCo does not tell the line
            body = by_line.get(joint.parent.info)
            free = None if body is None else body.find("freejoint")
            if joint.id not in self._elements["joint"] and free is not None:
                self._elements["joint"][joint.id] = free

    def of_body(self, body: int) -> dict[str, Any]:
        """Return the custom attributes of a body."""
        assert self._source is not None
        return self._read("body", body) | self.namespace.of_body(self._source, body)

    def of_joint(self, joint: int) -> dict[str, Any]:
        """Return the custom attributes of a joint."""
        return self._read("joint", joint, _JOINT)

    def of_dof(self, joint: int, name: str) -> dict[str, Any]:
        """Return the custom attributes of the degrees of freedom of a joint."""
        assert self._source is not None
        own = self._read("joint", joint, (Entity.JOINT_DOF,))
        return own | self.namespace.of_joint(self._source.model, joint, name)

    def of_geom(self, geom: int) -> dict[str, Any]:
        """Return the custom attributes of a geom."""
        assert self._source is not None
        return self._read("geom", geom) | self.namespace.of_geom(self._source.model, geom)

    def of_site(self, site: int) -> dict[str, Any]:
        """Return the custom attributes of a site."""
        return self._read("site", site)

    def of_equality(self, equality: int) -> dict[str, Any]:
        """Return the custom attributes of an equality constraint."""
        assert self._source is not None
        return self._read("equality", equality) | self.namespace.of_equality(self._source.model, equality)

    def set_options(self) -> set[str]:
        """Set the attributes of the world and of the whole model; return the names of options in MJCF."""
        source = self._source
        assert source is not None
        if source.element_of_line and source.tree is not None:
            for tag in ("option", "compiler", "flag", "custom", "statistic", "size"):
                for element in source.tree.root.iter(tag):
                    for key, value in self._xml.read(element.attrib, _ONCE, f"<{tag}>").items():
                        set_value(self._builder, self._builder.custom_attributes[key], value)
        return self.namespace.set_options(source)

    def _read(self, kind: str, index: int, frequencies: tuple[Entity, ...] | None = None) -> dict[str, Any]:
        source = self._source
        element = self._elements.get(kind, {}).get(index)
        if element is None or source is None or source.tree is None:
            return {}
        context: dict[str, Any] = {"use_degrees": bool(source.spec.compiler.degree)}
        if kind == "joint":
            context["joint_type"] = _JOINT_TYPES[int(source.model.jnt_type[index])]
        name = element.get("name")
        what = f"{kind} '{name}'" if name else f"{kind} {index}"
        attributes = source.tree.attributes(element)
        return self._xml.read(attributes, frequencies or _KINDS[kind], what, context)
