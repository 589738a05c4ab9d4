"""Articulations: which joints belong together, and bodies that move freely."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.builder.inputs import Transform, Vector
from pluriverse.builder.joints import JointBuilder
from pluriverse.types import BodyFlags, Entity


class ArticulationBuilder(JointBuilder):
    """The part of a builder that adds articulations."""

    def add_body(
        self,
        *,
        xform: Transform | None = None,
        com: Vector | None = None,
        inertia: Any | None = None,
        mass: float = 0.0,
        label: str | None = None,
        lock_inertia: bool = False,
        is_kinematic: bool = False,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a body that moves freely: a link, its free joint and an articulation of the two.

        The arguments are those of `add_link`. The joint is called `LABEL_free_joint`, the articulation
        `LABEL_articulation`.

        Returns:
            Index of the body.
        """
        body = self.add_link(
            xform=xform,
            com=com,
            inertia=inertia,
            mass=mass,
            label=label,
            lock_inertia=lock_inertia,
            is_kinematic=is_kinematic,
            custom_attributes=custom_attributes,
        )
        label = self.body_label[body]
        joint = self.add_joint_free(child=body, label=f"{label}_free_joint")
        self.add_articulation([joint], label=f"{label}_articulation")
        return body

    def add_articulation(
        self,
        joints: Sequence[int],
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Declare that joints belong together, such as those of one robot.

        Every joint must be in one articulation. Where one is off (`enabled=False`), its child moves freely: a
        free joint called `BODY_free_joint` takes its place, and the joint itself is left to close a loop.

        Args:
            joints: Joints, in any order.
            label: Name; `articulation_INDEX` if None.
            custom_attributes: Custom attributes of the articulation, by key.

        Returns:
            Index of the articulation.

        Raises:
            ValueError: If a joint is listed twice, is in another articulation already, or in another world,
                or hangs a kinematic body on another body.
            IndexError: If there is no such joint.
        """
        index = self.articulation_count
        label = f"articulation_{index}" if label is None else label
        name = f"articulation '{label}' (index {index})"
        if len(joints) == 0:
            raise ValueError(f"{name}: no joints. An articulation needs at least one.")
        seen = set()
        for joint in joints:
            if not isinstance(joint, int | np.integer) or not 0 <= joint < self.joint_count:
                raise IndexError(
                    f"{name}: joint {joint!r} does not exist; there are {self.joint_count} joints. Use "
                    "the indices that add_joint_*() returned."
                )
            if joint in seen:
                raise ValueError(f"{name}: {self._joint_name(joint)} is listed twice. List every joint once.")
            if self.joint_articulation[joint] >= 0:
                other = int(self.joint_articulation[joint])
                raise ValueError(
                    f"{name}: {self._joint_name(joint)} is in articulation "
                    f"'{self.articulation_label[other]}' (index {other}) already. A joint belongs to one "
                    "articulation."
                )
            if self.joint_world[joint] != self.current_world:
                raise ValueError(
                    f"{name}: {self._joint_name(joint)} is in world {self.joint_world[joint]}, but the "
                    f"articulation is being added to world {self.current_world}. Add it between the same "
                    "begin_world() and end_world() as its joints."
                )
            if self.joint_enabled[joint]:
                self._check_kinematic_child(int(joint))
            seen.add(joint)
        custom = self._check_custom(custom_attributes, {Entity.ARTICULATION: 1}, name)
        joints = [self._free_if_off(int(joint)) for joint in joints]
        self._articulations.append(world=self.current_world)
        self._put_custom(custom, {Entity.ARTICULATION: index})
        self._joints.view("articulation")[np.asarray(joints)] = index
        self.articulation_label.append(label)
        return index

    def _free_if_off(self, joint: int) -> int:
        """Return a joint, or, if it is off, a new free joint for its child."""
        if self.joint_enabled[joint]:
            return joint
        child = int(self.joint_child[joint])
        return self.add_joint_free(child, label=f"{self.body_label[child]}_free_joint")

    def _check_kinematic_child(self, joint: int) -> None:
        """Raise if a joint hangs a kinematic body on another body."""
        parent, child = int(self.joint_parent[joint]), int(self.joint_child[joint])
        if parent < 0 or not self.body_flags[child] & BodyFlags.KINEMATIC:
            return
        raise ValueError(
            f"{self._joint_name(joint)}: its child {self._body_name(child)} is kinematic, but its parent is "
            f"{self._body_name(parent)}. Only a body whose joint hangs on the world can be kinematic: leave "
            "out is_kinematic=True, or pass parent=-1."
        )
