"""Custom attributes on a USD stage: attributes that a builder declares are read from the prims.

A body, joint or shape has the attributes of its prim, an articulation those of the prim that is its root,
and a constraint those of its joint. Attributes of worlds and of the whole model are those of the physics
scene. Rows of a custom frequency come from the prims that its filter selects.

Values are not converted from the units of the stage; a `usd_value_transformer` can do that.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pluriverse.importers.custom_values import set_value
from pluriverse.importers.description import Placement, RobotDescription
from pluriverse.importers.frames import IDENTITY
from pluriverse.importers.usd_source import UsdSource, authored
from pluriverse.model.attributes import GRAVITY_COMPENSATION
from pluriverse.mujoco_attributes.choices import NAMESPACE
from pluriverse.mujoco_attributes.registration import declare_custom_attributes
from pluriverse.types import Entity

ANY = "*"
_SHAPE, _BODY, _CONSTRAINT = (Entity.SHAPE,), (Entity.BODY,), (Entity.EQUALITY_CONSTRAINT,)
_JOINT = (Entity.JOINT, Entity.JOINT_DOF, Entity.JOINT_COORD, Entity.JOINT_CONSTRAINT)
_SCENE = (Entity.ONCE, Entity.WORLD)


class UsdCustom:
    """Reads the custom attributes that a builder declares from a stage.

    Args:
        builder: Builder that the stage is added to.
        source: The stage.
    """

    def __init__(self, builder: Any, source: UsdSource):
        self._builder = builder
        self._source = source
        # A builder may have the namespace of MuJoCo from an MJCF document, which is no wish to have it.
        self._attributes = [
            attribute
            for _, attribute in builder.custom_attributes.read_all()
            if attribute.namespace != NAMESPACE or builder.is_for_mujoco
        ]
        self._frequencies = [
            frequency
            for frequency in builder.custom_frequencies.values()
            if frequency.namespace != NAMESPACE or builder.is_for_mujoco
        ]
        self.names = {attribute.usd_attribute_name for attribute in self._attributes}
        """Names of the attributes of prims that are read."""

    def has_rows(self, prim: Any) -> bool:
        """Return whether a custom frequency has rows from a prim."""
        filters = [frequency.usd_prim_filter for frequency in self._frequencies]
        context = {"builder": self._builder, "stage": self._source.stage, "prim": prim}
        return any(chooses is not None and chooses(prim, context) for chooses in filters)

    def describe(self, robot: RobotDescription) -> None:
        """Give links, joints, shapes and constraints their custom attributes, and their prims as origins.

        Raises:
            AssetError: If a value is none of the type of its attribute.
        """
        weightless = {link.label: self._compensation(link.label) for link in robot.links}
        if any(weightless.values()):
            declare_custom_attributes(self._builder)  # acts in every solver
        if self._attributes or self._frequencies:
            self._describe_all(robot)
        for link in robot.links:
            if weightless[link.label]:
                link.custom = {**link.custom, GRAVITY_COMPENSATION: weightless[link.label]}

    def _compensation(self, path: str) -> float:
        """Return the share of the weight of a body that does not act."""
        prim = self._source.prims.get(path)
        if prim is None:
            return 0.0
        share = authored(prim, "mjc:gravcomp")
        if share is None:
            share = 1.0 if authored(prim, "physxRigidBody:disableGravity") else 0.0
        return float(share)

    def _describe_all(self, robot: RobotDescription) -> None:
        """Give them what the builder declares."""
        for link in robot.links:
            link.origins[link.label] = IDENTITY
            link.custom = self._read(link.label, _BODY)
        for joint in [*(link.joint for link in robot.links), *(loop.joint for loop in robot.loop_joints)]:
            kinds = [
                kind
                for kind in _JOINT
                if not (joint.dof_count == 0 and kind in (Entity.JOINT_DOF, Entity.JOINT_COORD))
                and not (joint.dof_count == 6 and kind is Entity.JOINT_CONSTRAINT)
            ]
            joint.custom = self._read(joint.label, kinds)
            joint.origin = joint.label
            for dof in joint.dofs:
                dof.origin = joint.label
        for shape in [*robot.world_shapes, *(shape for link in robot.links for shape in link.shapes)]:
            shape.origin = shape.label
            shape.custom = self._read(shape.label, _SHAPE)
        for loop in robot.loops:
            loop.origin, loop.custom = loop.label, self._read(loop.label, _CONSTRAINT)
        for coupling in robot.couplings:
            path = coupling.label.removesuffix("_mimic")
            coupling.origin, coupling.custom = coupling.label, self._read(path, _CONSTRAINT)

    def set_rest(self, placement: Placement, articulations: Iterable[int]) -> None:
        """Set attributes of the scene and of articulations, and add the rows of custom frequencies.

        Args:
            placement: Where the parts of the stage went.
            articulations: The articulations that were added.

        Raises:
            AssetError: If a value is none of the type of its attribute.
        """
        builder = self._builder
        for path, prim in self._source.prims.items():
            if str(prim.GetTypeName()) == "PhysicsScene":
                for key, value in self._read(path, _SCENE).items():
                    set_value(builder, builder.custom_attributes[key], value)
        for articulation in articulations:
            label = builder.articulation_label[articulation]
            for key, value in self._read(label, (Entity.ARTICULATION,)).items():
                builder.custom_attributes[key].values[articulation] = value
        context = {
            "builder": builder,
            "stage": self._source.stage,
            "path_body_map": placement.bodies,
            "path_joint_map": placement.joints,
            "path_dof_map": placement.dofs,
            "path_shape_map": placement.shapes,
            "path_row_map": {},  # custom frequency, prim: the last of its rows
        }
        for frequency in self._frequencies:
            if frequency.usd_prim_filter is None:
                continue
            for path, prim in self._source.prims.items():
                own = {**context, "prim": prim}
                if not frequency.usd_prim_filter(prim, own):
                    continue
                if frequency.usd_entry_expander is not None:
                    entries = list(frequency.usd_entry_expander(prim, own))
                else:
                    values = self._read(path, (frequency.key,))
                    entries = [values] if values else []
                rows = context["path_row_map"].setdefault(frequency.key, {})
                for added in builder.add_custom_values_batch(entries):
                    for key, row in added.items():
                        if builder.custom_attributes[key].frequency_key == frequency.key:
                            rows[path] = row

    def _read(self, path: str, kinds: Iterable[Entity | str]) -> dict[str, Any]:
        """Return the values that a prim has, by the keys of their attributes."""
        prim = self._source.stage.GetPrimAtPath(path) if path.startswith("/") else None
        if not prim:
            return {}
        result: dict[str, Any] = {}
        selected = set(kinds)
        for attribute in self._attributes:
            if attribute.frequency not in selected:
                continue
            value, found = None, None
            if attribute.usd_attribute_name != ANY:
                found = prim.GetAttribute(attribute.usd_attribute_name)
                if not found or not found.HasAuthoredValue():
                    continue
                value = found.Get()
            context = {"prim": prim, "attr": found, "builder": self._builder}
            try:
                if attribute.usd_value_transformer is not None:
                    value = attribute.usd_value_transformer(value, context)
                else:
                    value = _plain(value, attribute)
                if value is None:
                    continue
                attribute.convert(value)
            except (TypeError, ValueError) as error:
                raise self._source.error(
                    path,
                    str(error).rstrip("."),
                    value=value,
                    remedy=f"Correct '{attribute.usd_attribute_name}' there, or the type of the attribute.",
                ) from error
            result[attribute.key] = value
        return result


def _plain(value: Any, attribute: Any) -> Any:
    """Return a value of USD as numbers or a text."""
    if attribute.dtype is str:
        return str(value)
    if hasattr(value, "GetImaginary"):  # a quaternion, which has the scalar part first in USD
        return [*value.GetImaginary(), value.GetReal()]
    return value if np.isscalar(value) else np.array(value)
