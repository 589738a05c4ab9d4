"""Articulation view: robots of any worlds as arrays, as robot learning uses them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.dynamics import (
    eval_fk,
    eval_inverse_dynamics_force,
    eval_inverse_dynamics_passive,
    eval_jacobian,
    eval_mass_matrix,
)
from pluriverse.model import Control, Model, State
from pluriverse.model.entity_names import entity_name
from pluriverse.newton_names import explain_missing
from pluriverse.selection.entity_views import owned_ranges
from pluriverse.selection.layout import owned_by
from pluriverse.selection.patterns import Patterns, leaf, match_labels
from pluriverse.selection.root_state import RootState
from pluriverse.selection.transfer import scatter
from pluriverse.selection.view import View, select_rows, simulated_worlds
from pluriverse.types import Entity, JointType

# Custom frequency of the tendons that `SolverMuJoCo.register_custom_attributes` declares.
_TENDON = "mujoco:tendon"


class ArticulationView(View):
    """Articulations of any worlds with their joints, links and shapes, selected by their labels.

    Links are the bodies that the joints of an articulation move, in the order of the model. A filter on
    joints concerns joints, coordinates and degrees of freedom; a filter on links concerns links and shapes.
    Root transforms and velocities are always those of the articulation's first joint.

    Args:
        model: Model to view.
        pattern: Labels of articulations with or without wildcards, regular expressions, or indices.
        include_joints: Joints to keep: names, wildcards, regular expressions, or indices in the articulation.
        exclude_joints: Joints to leave out.
        include_links: Links to keep, in the same way.
        exclude_links: Links to leave out.
        include_shapes: Shapes to keep, in the same way, of the links that are kept.
        exclude_shapes: Shapes to leave out.
        include_joint_types: Types (`JointType`) of joints to keep.
        exclude_joint_types: Types of joints to leave out.
        worlds: Worlds, by their labels or indices; all if None.
        homogeneous: Whether to require that all articulations have equal numbers of joints, links and so on,
            so that every array is rectangular. Set it to False for ragged views of different robots.
        verbose: Whether to print what was found.

    Raises:
        KeyError: If a pattern or filter finds nothing.
        ValueError: If the articulations differ and `homogeneous` was not switched off.
    """

    def __init__(
        self,
        model: Model,
        pattern: Patterns,
        *,
        include_joints: Patterns | None = None,
        exclude_joints: Patterns | None = None,
        include_links: Patterns | None = None,
        exclude_links: Patterns | None = None,
        include_shapes: Patterns | None = None,
        exclude_shapes: Patterns | None = None,
        include_joint_types: Sequence[int] | None = None,
        exclude_joint_types: Sequence[int] | None = None,
        worlds: Patterns | None = None,
        homogeneous: bool = True,
        verbose: bool = False,
    ) -> None:
        what = type(self).__name__
        world = simulated_worlds(model, model.articulation_world.numpy())
        rows = select_rows(
            model, Entity.ARTICULATION, model.articulation_label, world, pattern, worlds, what=what
        )
        super().__init__(model, Entity.ARTICULATION, rows, world[rows])
        joint_articulation = model.joint_articulation.numpy()
        joints, joint_start = owned_by(self.row_ids, joint_articulation)
        empty = np.diff(joint_start) == 0
        if empty.any():
            row = int(self.row_ids[np.argmax(empty)])
            raise ValueError(f"{what}: {entity_name(model, Entity.ARTICULATION, row)} has no joints.")
        self._roots = RootState(model, joints[joint_start[:-1]], self.row_shape)
        self._add_joints(
            model,
            joints,
            joint_start,
            include_joints,
            exclude_joints,
            include_joint_types,
            exclude_joint_types,
        )
        self._add_links(
            model, joint_articulation, include_links, exclude_links, include_shapes, exclude_shapes
        )
        if homogeneous:
            self._check_equal()
        self._model_mask = wp.zeros(model.articulation_count, dtype=wp.bool, device=self.device)
        self._every_row = wp.full(self.count, value=True, dtype=wp.bool, device=self.device)
        if verbose:
            print(self)

    def _add_joints(
        self,
        model: Model,
        joints: np.ndarray,
        start: np.ndarray,
        include: Patterns | None,
        exclude: Patterns | None,
        include_types: Sequence[int] | None,
        exclude_types: Sequence[int] | None,
    ) -> None:
        kept = _filter(joints, start, model.joint_label, include, exclude, "joints", "joint")
        types = model.joint_type.numpy()[joints]
        if include_types is not None:
            kept &= np.isin(types, include_types)
        if exclude_types is not None:
            kept &= ~np.isin(types, exclude_types)
        joints, start = _keep(joints, start, kept)
        self._add_layout(Entity.JOINT, joints, start)
        for frequency, bound in (
            (Entity.JOINT_COORD, model.joint_q_start.numpy()),
            (Entity.JOINT_DOF, model.joint_qd_start.numpy()),
        ):
            index, joint_first = owned_ranges(joints, bound)
            self._add_layout(frequency, index, joint_first[start])

    def _add_links(
        self,
        model: Model,
        joint_articulation: np.ndarray,
        include: Patterns | None,
        exclude: Patterns | None,
        include_shapes: Patterns | None,
        exclude_shapes: Patterns | None,
    ) -> None:
        body_articulation = np.full(model.body_count, -1, dtype=np.int64)
        body_articulation[model.joint_child.numpy()] = joint_articulation
        links, start = owned_by(self.row_ids, body_articulation)
        kept = _filter(links, start, model.body_label, include, exclude, "links", "link")
        links, start = _keep(links, start, kept)
        self._add_layout(Entity.BODY, links, start)
        row_of_link = np.repeat(np.arange(self.count), np.diff(start))
        body_row = np.full(model.body_count + 1, -1, dtype=np.int64)  # the last entry is that of body -1
        body_row[links] = row_of_link
        shapes, shape_start = owned_by(np.arange(self.count), body_row[model.shape_body.numpy()])
        kept = _filter(
            shapes, shape_start, model.shape_label, include_shapes, exclude_shapes, "shapes", "shape"
        )
        self._add_layout(Entity.SHAPE, *_keep(shapes, shape_start, kept))

    def _check_equal(self) -> None:
        for frequency, layout in self._layouts.items():
            if layout.is_ragged:
                counts = np.diff(layout.start)
                other = int(np.argmax(counts != counts[0]))
                kind = frequency if isinstance(frequency, str) else frequency.key
                labels = self.articulation_labels
                raise ValueError(
                    f"{type(self).__name__}: the articulations differ: '{labels[0]}' in world "
                    f"{self.row_world[0]} has {counts[0]} entries of kind {kind}, "
                    f"'{labels[other]}' in world {self.row_world[other]} has {counts[other]}. Narrow the "
                    "pattern, or pass homogeneous=False for ragged arrays."
                )

    # what was found

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("ArticulationView")

    @property
    def articulation_ids(self) -> wp.array[int]:
        """Index of each articulation in the model, of the shape of the rows."""
        return wp.array(
            self.row_ids.reshape(self.row_shape).astype(np.int32), dtype=wp.int32, device=self.device
        )

    @property
    def articulation_mask(self) -> wp.array[bool]:
        """Which articulations of the model are in the view, shape [articulation of the model]."""
        mask = np.zeros(self.model.articulation_count, dtype=bool)
        mask[self.row_ids] = True
        return wp.array(mask, dtype=wp.bool, device=self.device)

    @property
    def articulation_labels(self) -> list[str]:
        """Label of each articulation, shape [row]."""
        return self.labels(Entity.ARTICULATION)

    @property
    def joint_count(self) -> int | None:
        """Joints of an articulation; None where they differ."""
        return self._count_of(Entity.JOINT)

    @property
    def joint_dof_count(self) -> int | None:
        """Degrees of freedom of an articulation; None where they differ."""
        return self._count_of(Entity.JOINT_DOF)

    @property
    def joint_coord_count(self) -> int | None:
        """Coordinates of an articulation; None where they differ."""
        return self._count_of(Entity.JOINT_COORD)

    @property
    def link_count(self) -> int | None:
        """Links of an articulation; None where they differ."""
        return self._count_of(Entity.BODY)

    @property
    def shape_count(self) -> int | None:
        """Shapes of an articulation; None where they differ."""
        return self._count_of(Entity.SHAPE)

    @property
    def tendon_count(self) -> int | None:
        """Number of tendons of an articulation, None where it differs."""
        if not self.model.custom_frequency_counts.get(_TENDON):
            return 0
        layout = self.layout(_TENDON)
        return None if layout.is_ragged else layout.count_max

    @property
    def tendon_names(self) -> list[str] | None:
        """Names of the tendons of an articulation, without prefixes; None where they differ."""
        count = self.tendon_count
        if not count:
            return None if count is None else []
        labels = self.model.custom_arrays["mujoco:tendon_label"]
        names = [leaf(labels[row]) for row in self.layout(_TENDON).index.tolist()]
        return names[:count] if names == names[:count] * self.count else None

    @property
    def joint_names(self) -> list[str] | None:
        """Names of the joints of an articulation, without prefixes; None where they differ."""
        return self._names_of(Entity.JOINT)

    @property
    def link_names(self) -> list[str] | None:
        """Names of the links of an articulation, without prefixes; None where they differ."""
        return self._names_of(Entity.BODY)

    @property
    def body_names(self) -> list[str] | None:
        """Other name of `link_names`."""
        return self.link_names

    @property
    def shape_names(self) -> list[str] | None:
        """Names of the shapes of an articulation, without prefixes; None where they differ."""
        return self._names_of(Entity.SHAPE)

    @property
    def joint_labels(self) -> list[str]:
        """Label of each joint, of the first articulation if all have the same number, else of all."""
        return self._labels_of(Entity.JOINT)

    @property
    def link_labels(self) -> list[str]:
        """Label of each link, of the first articulation if all have the same number, else of all."""
        return self._labels_of(Entity.BODY)

    @property
    def body_labels(self) -> list[str]:
        """Other name of `link_labels`."""
        return self.link_labels

    @property
    def shape_labels(self) -> list[str]:
        """Label of each shape, of the first articulation if all have the same number, else of all."""
        return self._labels_of(Entity.SHAPE)

    @property
    def joint_dof_names(self) -> list[str] | None:
        """Name of each degree of freedom, that of its joint; None where the articulations differ."""
        return self._numbered_names(self.model.joint_qd_start.numpy())

    @property
    def joint_coord_names(self) -> list[str] | None:
        """Name of each coordinate, that of its joint; None where the articulations differ."""
        return self._numbered_names(self.model.joint_q_start.numpy())

    @property
    def is_floating_base(self) -> bool | None:
        """Whether the root joint is free or a distance joint; None where the articulations differ."""
        return None if self._roots.is_mixed else bool(self._roots.is_floating[0])

    @property
    def is_fixed_base(self) -> bool | None:
        """Whether the root joint is neither; None where the articulations differ."""
        return None if self._roots.is_mixed else not self._roots.is_floating[0]

    @property
    def root_joint_type(self) -> JointType | None:
        """Type of the root joint; None where the articulations differ."""
        types = self._roots.types
        return JointType(int(types[0])) if (types == types[0]).all() else None

    # states and forces

    def get_root_transforms(self, source: Model | State, *, copy: bool = False) -> wp.array:
        """Return the pose of each root [m, xyzw], of the shape of the rows.

        With a floating base these are the coordinates of the free or distance joint: the pose of the child's
        joint frame in the parent's. Otherwise they are the frame of the root joint in the world
        (`Model.joint_X_p`). It is the memory of these arrays, as for `get_attribute`, or a copy.

        Raises:
            ValueError: If roots stand at irregular distances (as where some bases float and others are
                fixed), and no copy is asked for.
        """
        transforms = None if copy else self._roots.alias_transforms(source)
        if transforms is None and not copy:
            raise ValueError(self.irregular_message("the pose of roots"))
        return self._roots.copy_transforms(source) if transforms is None else transforms

    def set_root_transforms(
        self, target: Model | State, values: Any, mask: Any = None, *, indices: Any = None
    ) -> None:
        """Set the pose of each root [m, xyzw]; then call `eval_fk`. See `get_root_transforms`.

        A fixed base is moved in the model, for all states.
        """
        selected = self._masks.selected(mask, indices, what="set_root_transforms")
        self._roots.set_transforms(target, values, selected)

    def get_root_velocities(self, source: Model | State, *, copy: bool = False) -> wp.array:
        """Return the velocity of each root, of the shape of the rows; zero for a fixed base.

        That is the velocity of the centre of mass [m/s], then the angular velocity [rad/s], in world axes. It
        is the memory of `joint_qd`, as for `get_attribute`, a copy, or an array of zeros if all are fixed.

        Raises:
            ValueError: If roots stand at irregular distances, and no copy is asked for.
        """
        velocities = None if copy else self._roots.alias_velocities(source)
        if velocities is None and not copy and self._roots.is_floating.any():
            raise ValueError(self.irregular_message("the velocity of roots"))
        return self._roots.copy_velocities(source) if velocities is None else velocities

    def set_root_velocities(
        self, target: Model | State, values: Any, mask: Any = None, *, indices: Any = None
    ) -> None:
        """Set the velocity of each root; then call `eval_fk`. See `get_root_velocities`.

        Raises:
            ValueError: If a base of the view is fixed.
        """
        selected = self._masks.selected(mask, indices, what="set_root_velocities")
        self._roots.set_velocities(target, values, selected)

    def get_dof_positions(self, source: Model | State, *, copy: bool = False) -> wp.array:
        """Return the joint coordinates [m, rad or quaternion xyzw]; see `get_attribute`."""
        return self.get_attribute("joint_q", source, copy=copy)

    def set_dof_positions(
        self, target: Model | State, values: Any, mask: Any = None, *, indices: Any = None
    ) -> None:
        """Set the joint coordinates; then call `eval_fk`. See `set_attribute`."""
        self.set_attribute("joint_q", target, values, mask, indices=indices)

    def get_dof_velocities(self, source: Model | State, *, copy: bool = False) -> wp.array:
        """Return the joint velocities [m/s or rad/s]; see `get_attribute`."""
        return self.get_attribute("joint_qd", source, copy=copy)

    def set_dof_velocities(
        self, target: Model | State, values: Any, mask: Any = None, *, indices: Any = None
    ) -> None:
        """Set the joint velocities; then call `eval_fk`. See `set_attribute`."""
        self.set_attribute("joint_qd", target, values, mask, indices=indices)

    def get_dof_forces(self, source: Control, *, copy: bool = False) -> wp.array:
        """Return the generalized forces [N or N·m]; see `get_attribute`."""
        return self.get_attribute("joint_f", source, copy=copy)

    def set_dof_forces(self, target: Control, values: Any, mask: Any = None, *, indices: Any = None) -> None:
        """Set the generalized forces [N or N·m]; see `set_attribute`."""
        self.set_attribute("joint_f", target, values, mask, indices=indices)

    def get_link_transforms(self, source: Model | State, *, copy: bool = False) -> wp.array:
        """Return the poses of the links [m, xyzw]; see `get_attribute`."""
        return self.get_attribute("body_q", source, copy=copy)

    def get_link_velocities(self, source: Model | State, *, copy: bool = False) -> wp.array:
        """Return the velocities of the links; see `get_attribute`.

        They are those of the centres of mass [m/s], then the angular velocities [rad/s], in world axes.
        """
        return self.get_attribute("body_qd", source, copy=copy)

    def get_model_articulation_mask(self, mask: Any = None, *, indices: Any = None) -> wp.array[bool]:
        """Return which articulations of the model are selected, shape [articulation of the model].

        The array belongs to the view and is overwritten by each call.

        Args:
            mask: Which rows, as in `set_attribute`; all if None.
            indices: Rows, in place of a mask.
        """
        selected = self._masks.selected(mask, indices, what="get_model_articulation_mask")
        layout = self.layout(Entity.ARTICULATION)
        self._model_mask.zero_()
        truth = selected if selected.size else self._every_row
        scatter(
            layout.index_array,
            layout.in_order,
            layout.entry_row_array,
            self._masks.all_rows,
            truth,
            self.count,
            self._model_mask,
        )
        return self._model_mask

    def eval_fk(self, target: Model | State, mask: Any = None, *, indices: Any = None) -> None:
        """Write poses and velocities of the bodies of the view from their joint coordinates and velocities.

        Args:
            target: State, or model for its initial state.
            mask: Which rows, as in `set_attribute`; all if None.
            indices: Rows, in place of a mask.
        """
        selected = self.get_model_articulation_mask(mask, indices=indices)
        eval_fk(self.model, target.joint_q, target.joint_qd, target, mask=selected)  # type: ignore[arg-type]

    def eval_jacobian(
        self, state: State, J: wp.array | None = None, mask: Any = None, *, joint_S_s: wp.array | None = None
    ) -> wp.array:
        """Return the Jacobians of all articulations of the model, zero for those not selected here.

        See `pluriverse.eval_jacobian`; `mask` is one of this view, as in `set_attribute`. `joint_S_s` is not
        needed.
        """
        return eval_jacobian(self.model, state, J, self.get_model_articulation_mask(mask))

    def eval_mass_matrix(
        self,
        state: State,
        H: wp.array | None = None,
        mask: Any = None,
        *,
        J: wp.array | None = None,
        body_I_s: wp.array | None = None,
        joint_S_s: wp.array | None = None,
    ) -> wp.array:
        """Return the mass matrices of all articulations of the model, zero for those not selected here.

        See `pluriverse.eval_mass_matrix`; `mask` is one of this view, as in `set_attribute`. The last
        three are not needed.
        """
        return eval_mass_matrix(self.model, state, H, self.get_model_articulation_mask(mask))

    def eval_inverse_dynamics_passive(self, state: State, *, mask: Any = None, **outputs: Any) -> None:
        """Write terms of the manipulator equation of the articulations selected here, zero for all others.

        Args:
            state: State to evaluate at.
            mask: Which rows, as in `set_attribute`; all if None.
            outputs: Arrays that receive them; see `pluriverse.eval_inverse_dynamics_passive`.
        """
        selected = self.get_model_articulation_mask(mask)
        eval_inverse_dynamics_passive(self.model, state, mask=selected, **outputs)

    def eval_inverse_dynamics_force(self, state: State, *, mask: Any = None, **terms: Any) -> None:
        """Write the joint forces of the articulations selected here from their terms, zero for all others.

        Args:
            state: Not read; see `pluriverse.eval_inverse_dynamics_force`.
            mask: Which rows, as in `set_attribute`; all if None.
            terms: The terms, and `joint_f`, which receives the forces; see there.
        """
        selected = self.get_model_articulation_mask(mask)
        eval_inverse_dynamics_force(self.model, state, mask=selected, **terms)

    def _count_of(self, frequency: Entity) -> int | None:
        layout = self.layout(frequency)
        return None if layout.is_ragged else layout.count_max

    def _labels_of(self, frequency: Entity) -> list[str]:
        labels, count = self.labels(frequency), self._count_of(frequency)
        return labels if count is None else labels[:count]

    def _names_of(self, frequency: Entity) -> list[str] | None:
        count = self._count_of(frequency)
        if count is None:
            return None
        names = [leaf(label) for label in self.labels(frequency)]
        return names[:count] if names == names[:count] * self.count else None

    def _numbered_names(self, start: np.ndarray) -> list[str] | None:
        names = self.joint_names
        if names is None:
            return None
        joints = self.layout(Entity.JOINT).index[: len(names)]
        counts = start[joints + 1] - start[joints]
        return [
            name if count == 1 else f"{name}:{index}"
            for name, count in zip(names, counts.tolist(), strict=True)
            for index in range(count)
        ]


def _filter(
    entities: np.ndarray,
    start: np.ndarray,
    labels: Sequence[str],
    include: Patterns | None,
    exclude: Patterns | None,
    argument: str,
    kind: str,
) -> np.ndarray:
    """Return which entities two filters keep."""
    kept = np.ones(len(entities), dtype=bool)
    if include is None and exclude is None:
        return kept
    own_labels = [labels[entity] for entity in entities]
    numbers = np.arange(len(entities)) - np.repeat(start[:-1], np.diff(start))
    if include is not None:
        kept &= match_labels(
            own_labels, numbers, include, what=f"ArticulationView: include_{argument}", kind=kind
        )
    if exclude is not None:
        kept &= ~match_labels(
            own_labels, numbers, exclude, what=f"ArticulationView: exclude_{argument}", kind=kind
        )
    return kept


def _keep(entities: np.ndarray, start: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the selected entities, and the first one of each row."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return entities[kept], before[start]
