"""Asset: the blueprint of actors, as a builder of one robot or object, with names and default properties.

A free joint attaches the root body to the world, or a fixed one (`fix_base_link`, or if the file says so).
This joint is not among the joints of the asset.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from pluriverse.builder.columns import Table
from pluriverse.builder.loop_joints import replace_holding_joints
from pluriverse.gymapi.enums import DofDriveMode, DofType, JointType
from pluriverse.gymapi.structures import (
    ActuatorProperties,
    AssetOptions,
    ForceSensorProperties,
    TendonProperties,
)
from pluriverse.gymapi.values import DOF_PROPERTIES_DTYPE, IndexRange, Transform
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import Entity, EqType
from pluriverse.types import JointType as ModelJointType

# Bounds of at least this size [m or rad] count as unlimited: the default of builders is 1e10.
LIMIT_NONE = 1.0e9
# Value that an unlimited bound reads.
UNLIMITED = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class AssetJoint:
    """A joint of the API; several of them may form one joint of the model."""

    name: str
    type: JointType
    joint: int
    """Joint of the builder."""
    dofs: range
    """Degrees of freedom of the asset."""


@dataclasses.dataclass(frozen=True)
class AssetDof:
    """A degree of freedom of the asset."""

    name: str
    type: DofType
    joint: int
    """Joint of the builder."""
    dof: int
    """Degree of freedom of the builder."""
    coord: int
    """Coordinate of the builder; the first of four for a ball joint."""
    ball_axis: int
    """Component of the rotation vector of a ball joint; -1 elsewhere."""


@dataclasses.dataclass
class FixedTendon:
    """A fixed tendon: its length is the sum of coefficient times position over its joints, plus an offset."""

    properties: TendonProperties
    dofs: list[int]
    coefficients: list[float]


@dataclasses.dataclass
class ForceSensor:
    """A force sensor on a body of the asset."""

    body: int
    pose: Transform
    properties: ForceSensorProperties


class Asset:
    """Blueprint of actors: bodies, shapes, joints and degrees of freedom, with their defaults.

    Made by `Gym.load_asset` and its like.

    Args:
        name: Name for messages.
        builder: Builder of the asset alone, with one tree of joints.
        options: Options that it was read with.
        chain_names: Names of the joints of bodies that have several in the file, by name of the body.
        drive_modes: Drive modes of degrees of freedom by name, where the file gives them.
        own_name: Returns the name in the file of a body or joint, from its label and that of the body before
            it: of the parent of a body, of the child of a joint. By default the last part of its label.
        shape_filter: Pairs of shapes that the file keeps from colliding, shape [pair, 2].

    Raises:
        ValueError: If the builder has not exactly one root.
    """

    def __init__(
        self,
        name: str,
        builder: ModelBuilder,
        options: AssetOptions,
        *,
        chain_names: dict[str, list[str]] | None = None,
        drive_modes: dict[str, DofDriveMode] | None = None,
        own_name: Callable[[str, str], str] | None = None,
    ):
        self.name = name
        self.builder = builder = replace_holding_joints(builder)
        self.options = options.copy()
        self._own_name = own_name or (lambda label, before: _last(label))
        labels = builder.body_label
        parents = dict(zip(builder.joint_child.tolist(), builder.joint_parent.tolist(), strict=True))
        self.body_names = [
            self._own_name(label, labels[parent] if (parent := parents.get(body, -1)) >= 0 else "")
            for body, label in enumerate(labels)
        ]
        self.joints: list[AssetJoint] = []
        self.dofs: list[AssetDof] = []
        self.actuators: list[ActuatorProperties] = []
        self.tendons: list[FixedTendon] = []
        self.force_sensors: list[ForceSensor] = []
        self.sim: Any = None
        """Sim that it was loaded into."""
        self.actor_count = 0
        self.row_cache: dict[str, np.ndarray] = {}
        """Columns of the builder as rows of the model, by name."""
        self.overrides: dict[str, np.ndarray] = {}
        """Rows of actors created from now on, where they differ from those of earlier actors."""
        self.read_visuals: Callable[[], ModelBuilder] | None = None
        """Reads the file again, with display geometry; None where the builder has it."""
        self.drawn: Any = None
        """`pluriverse.gymapi.drawn_shapes.DrawnAsset`, once it was needed."""
        self.prototype: Any = None
        """Model of the asset alone, once it was needed."""
        self.merged_links: dict[str, str] = {}
        """Links merged by `collapse_fixed_joints`, with the body that contains each."""
        self.merged_poses: dict[str, Transform] = {}
        """Poses of these links in that body."""
        roots = np.flatnonzero((builder.joint_parent < 0) & (builder.joint_articulation >= 0))
        if len(roots) != 1:
            names = [self.body_names[body] for body in builder.joint_child[roots]]
            raise ValueError(
                f"{name}: it has {len(roots)} bodies that hang on the world ({', '.join(names) or 'none'}), "
                "but an asset is one robot or object. Load the others from files of their own."
            )
        self.root_joint = int(roots[0])
        self.root_body = int(builder.joint_child[self.root_joint])
        self.root_type = ModelJointType(builder.joint_type[self.root_joint])
        self._take_filters()
        self._sort_shapes()
        self._name_joints(chain_names or {})
        self.dof_properties = self._take_dof_properties(drive_modes or {})
        self.offsets = self.first_offsets = self._take_offsets()
        """Contact and rest offsets of the shapes of new actors [m], shape [shape, 2]; NaN for those of the
        sim. `first_offsets` are those of the first actor."""
        self.filter_bits = np.zeros(self.shape_count, dtype=np.int64)
        """Filter bits of the shapes of new actors."""
        self.thickness = np.full(self.shape_count, float(options.thickness))
        """Thickness of the shapes of new actors [m]."""

    @property
    def body_count(self) -> int:
        """Number of bodies."""
        return self.builder.body_count

    @property
    def shape_count(self) -> int:
        """Number of shapes."""
        return self.builder.shape_count

    @property
    def dof_count(self) -> int:
        """Number of degrees of freedom."""
        return len(self.dofs)

    @property
    def is_free(self) -> bool:
        """Whether the root moves freely."""
        return self.root_type is ModelJointType.FREE

    @functools.cached_property
    def dof_index(self) -> np.ndarray:
        """Degree of freedom of the builder for each of the asset."""
        return np.array([dof.dof for dof in self.dofs], dtype=np.int64)

    @functools.cached_property
    def dof_coord(self) -> np.ndarray:
        """Coordinate of the builder for each degree of freedom of the asset; the first of a ball joint."""
        return np.array([dof.coord for dof in self.dofs], dtype=np.int64)

    @functools.cached_property
    def dof_ball_axis(self) -> np.ndarray:
        """Component of the rotation vector for those of ball joints, -1 elsewhere."""
        return np.array([dof.ball_axis for dof in self.dofs], dtype=np.int64)

    @functools.cached_property
    def joint_of_body(self) -> np.ndarray:
        """Joint of the builder that moves each body; joints that close loops move none of them."""
        result = np.empty(self.body_count, dtype=np.int64)
        tree = np.flatnonzero(self.builder.joint_articulation >= 0)
        result[self.builder.joint_child[tree]] = tree
        return result

    @functools.cached_property
    def body_shape_ranges(self) -> list[IndexRange]:
        """Shapes of each body."""
        bodies = self.builder.shape_body
        starts = np.searchsorted(bodies, np.arange(self.body_count + 1))
        return [IndexRange(int(a), int(b - a)) for a, b in itertools.pairwise(starts)]

    @functools.cached_property
    def rigid_sizes(self) -> list[str]:
        """Labels of entities whose lengths do not change with the scale of an actor, mostly loops."""
        builder = self.builder
        rows = np.flatnonzero(builder.equality_constraint_type != EqType.JOINT)
        loose = np.flatnonzero((builder.joint_parent < 0) & (builder.joint_articulation < 0))
        return [
            *(builder.equality_constraint_label[row] for row in rows),
            *(builder.joint_label[joint] for joint in loose),
        ]

    def override_rows(self, rows: dict[str, np.ndarray]) -> None:
        """Set the rows of actors created from now on; existing actors keep theirs."""
        for name, values in rows.items():
            column = getattr(self.builder, name)
            if self.actor_count == 0:
                column[:] = values
            else:
                kind = np.int32 if column.dtype.kind == "i" else np.float32
                self.overrides[name] = np.array(values, dtype=kind).reshape(column.shape)
        self.row_cache.clear()

    def joint_index(self, name: str) -> int:
        """Return the index of a joint, -1 if there is none of that name."""
        return next((k for k, joint in enumerate(self.joints) if joint.name == name), -1)

    def dof_index_of(self, name: str) -> int:
        """Return the index of a degree of freedom, -1 if there is none of that name."""
        return next((k for k, dof in enumerate(self.dofs) if dof.name == name), -1)

    def body_index(self, name: str) -> int:
        """Return the index of a body, -1 if there is none of that name."""
        return self.body_names.index(name) if name in self.body_names else -1

    def __repr__(self) -> str:
        return f"Asset('{self.name}', {self.body_count} bodies, {self.dof_count} degrees of freedom)"

    def _take_filters(self) -> None:
        """Store the filtered pairs of the file separately, since a filter other than -1 replaces them."""
        builder = self.builder
        self.shape_filter = np.asarray(builder.shape_collision_filter_pairs)
        builder.shape_filters = Table(builder.shape_filters.columns)
        # Neighbours across a joint do not collide, whatever the filter.
        builder.joint_collision_filter_parent = np.ones(builder.joint_count, dtype=bool)
        builder.shape_collision_filter_parent = np.ones(builder.shape_count, dtype=bool)

    def _sort_shapes(self) -> None:
        """Drop the shapes of the world, and put the others in the order of their bodies."""
        builder = self.builder
        carrier = builder.shape_body.copy()
        order = np.argsort(carrier, kind="stable")
        order = order[carrier[order] >= 0]
        if np.array_equal(order, np.arange(len(carrier))):
            return
        new_index = np.full(len(carrier), -1)
        new_index[order] = np.arange(len(order))
        builder.tables[Entity.SHAPE] = builder.tables[Entity.SHAPE].taken(order)
        builder.shape_label = [builder.shape_label[shape] for shape in order]
        pairs = new_index[self.shape_filter]
        self.shape_filter = pairs[(pairs >= 0).all(axis=1)]

    def _name_joints(self, chain_names: dict[str, list[str]]) -> None:
        builder = self.builder
        for joint in range(builder.joint_count):
            kind = ModelJointType(builder.joint_type[joint])
            if joint == self.root_joint and kind in (ModelJointType.FREE, ModelJointType.FIXED):
                continue
            first_dof, first_coord = int(builder.joint_qd_start[joint]), int(builder.joint_q_start[joint])
            linear, angular = (int(count) for count in builder.joint_dof_dim[joint])
            child = int(builder.joint_child[joint])
            name = self._own_name(builder.joint_label[joint], builder.body_label[child])
            body = self.body_names[child]
            if kind is ModelJointType.D6:
                names = chain_names.get(body, [])
                if len(names) == linear + angular:  # several joints of the file are one of the model
                    for k, part in enumerate(names):
                        self._add_joint(part, joint, [part], k >= linear, first_dof + k, first_coord + k)
                    continue
                ends = ("x", "y", "yaw") if (linear, angular) == (2, 1) else range(linear + angular)
                parts = [f"{name}_{end}" for end in ends]
            elif kind is ModelJointType.BALL:
                parts = [f"{name}_{axis}" for axis in "xyz"]
            else:
                parts = [name] * (linear + angular)
            self._add_joint(name, joint, parts, linear, first_dof, first_coord)

    def _add_joint(
        self, name: str, joint: int, parts: list[str], linear: int | bool, dof: int, coord: int
    ) -> None:
        """Add a joint and its degrees of freedom; `linear` of them slide, none where it is True."""
        kind = ModelJointType(self.builder.joint_type[joint])
        sliding = 0 if linear is True else (len(parts) if linear is False else int(linear))
        ball = kind is ModelJointType.BALL
        if ball:
            sliding = 0
        first = len(self.dofs)
        for k, part in enumerate(parts):
            self.dofs.append(
                AssetDof(
                    part,
                    DofType.DOF_TRANSLATION if k < sliding else DofType.DOF_ROTATION,
                    joint,
                    dof + k,
                    coord if ball else coord + k,
                    k if ball else -1,
                )
            )
        named = {
            ModelJointType.FIXED: JointType.JOINT_FIXED,
            ModelJointType.BALL: JointType.JOINT_BALL,
            ModelJointType.FREE: JointType.JOINT_FLOATING,
        }.get(kind)
        if named is None:
            named = JointType.JOINT_PRISMATIC if sliding else JointType.JOINT_REVOLUTE
            if len(parts) > 1:
                named = JointType.JOINT_PLANAR
        self.joints.append(AssetJoint(name, named, joint, range(first, len(self.dofs))))

    def _take_dof_properties(self, drive_modes: dict[str, DofDriveMode]) -> np.ndarray:
        builder = self.builder
        at = self.dof_index
        properties = np.zeros(self.dof_count, dtype=DOF_PROPERTIES_DTYPE)
        if not len(at):
            return properties
        lower, upper = builder.joint_limit_lower[at], builder.joint_limit_upper[at]
        limited = (lower > -LIMIT_NONE) | (upper < LIMIT_NONE)
        properties["hasLimits"] = limited & (self.dof_ball_axis < 0)
        properties["lower"] = np.where(limited, lower, -UNLIMITED)
        properties["upper"] = np.where(limited, upper, UNLIMITED)
        default = int(self.options.default_dof_drive_mode)
        properties["driveMode"] = [int(drive_modes.get(dof.name, default)) for dof in self.dofs]
        properties["stiffness"] = builder.joint_target_ke[at]
        properties["damping"] = builder.joint_target_kd[at] + builder.joint_damping[at]
        for name, column in (
            ("velocity", builder.joint_velocity_limit),
            ("effort", builder.joint_effort_limit),
            ("friction", builder.joint_friction),
            ("armature", builder.joint_armature),
        ):
            properties[name] = np.minimum(column[at], UNLIMITED)
        builder.joint_act[at] = 0.0
        builder.joint_target_vel[at] = 0.0
        # A passive spring pulls to its rest position in the file; targets start at zero.
        passive = properties["driveMode"] == DofDriveMode.DOF_MODE_NONE
        builder.joint_target_pos[at] = np.where(passive, builder.joint_target_pos[at], 0.0)
        return properties

    def _take_offsets(self) -> np.ndarray:
        """Return the contact offsets of shapes from the options; NaN stands for that of the sim."""
        given = [self.options.contact_offset, self.options.rest_offset]
        return np.tile(
            [np.nan if offset is None else float(offset) for offset in given], (self.shape_count, 1)
        )


def _last(label: str) -> str:
    return label.rpartition("/")[2]
