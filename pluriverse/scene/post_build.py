"""Edits of a world after everything in it was added: the `post_build` list.

An operation is a class: its fields are the arguments, `apply` does it. Registering the class is all that a
new operation needs.
"""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import numpy as np
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)

from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.scene.assembly import Assembly
from pluriverse.scene.bodies import find_body
from pluriverse.scene.errors import FieldError
from pluriverse.scene.joints import joint_coord, joint_range
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.selectors import JointSelection, Selection, suggestion
from pluriverse.scene.shape_assembly import add_shape
from pluriverse.scene.shapes import SHAPES, Shape
from pluriverse.scene.values import (
    Index,
    Name,
    NotNegative,
    Number,
    Positive,
    Reference,
    parse_gravity,
    parse_number,
    reported,
    shown,
)
from pluriverse.types import FLOATING_JOINTS, GeoType, JointType, ShapeFlags

OPERATIONS: dict[str, type["Operation"]] = {}
"""The operations by the name in `op`; `add_shape` is followed by the type of the shape."""


def register_operation(name: str) -> Callable[[type["Operation"]], type["Operation"]]:
    """Make a class the operation that scenes call `name`."""

    def register(operation: type[Operation]) -> type[Operation]:
        OPERATIONS[name] = operation
        return operation

    return register


class Operation(SceneMapping):
    """An edit of one world."""

    op: Name

    @abc.abstractmethod
    def apply(self, assembly: Assembly) -> None:
        """Do the edit.

        Raises:
            FieldError: It cannot be done.
        """


TARGET_MODES = {"none": 0, "position": 1, "velocity": 2, "position_velocity": 3, "effort": 4}


def _target_mode(value: Any, *path: str | int) -> int:
    if isinstance(value, str) and value.strip().lower() in TARGET_MODES:
        return TARGET_MODES[value.strip().lower()]
    if isinstance(value, int) and not isinstance(value, bool) and value in TARGET_MODES.values():
        return value
    raise FieldError(
        f"{shown(value)} is not a drive mode; allowed: {', '.join(TARGET_MODES)} or 0 to 4", *path
    )


TargetMode = Annotated[
    int,
    PlainValidator(reported(_target_mode)),
    WithJsonSchema({"enum": [*TARGET_MODES, *TARGET_MODES.values()]}),
]


def _not_negative(value: Any, *path: str | int) -> float:
    number = parse_number(value, *path)
    if number < 0.0:
        raise FieldError(f"{number:g} is negative; this array holds values from 0 up", *path)
    return number


def _integer(value: Any, *path: str | int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(f"{shown(value)} is not an integer", *path)
    return value


def _parser(name: str) -> Callable[..., float]:
    """Return what reads an entry of an array."""
    if name == "joint_target_mode":
        return _target_mode
    if name in ("shape_collision_group", "shape_flags"):
        return _integer
    return parse_number if MODEL_ARRAYS[name].low is None else _not_negative


# Parsers of the entries of each array that scenes may edit.
_ARRAYS: dict[str, Callable[..., float]] = {
    name: _parser(name)
    for name in (
        "shape_margin",
        "shape_gap",
        "shape_material_ke",
        "shape_material_ke_per_mass",
        "shape_material_tau",
        "shape_material_mu",
        "shape_material_restitution",
        "shape_material_mu_torsional",
        "shape_material_mu_rolling",
        "shape_material_kh",
        "shape_collision_group",
        "shape_flags",
        "joint_target_ke",
        "joint_target_kd",
        "joint_target_mode",
        "joint_target_pos",
        "joint_target_vel",
        "joint_armature",
        "joint_q",
        "joint_qd",
    )
}


def _array(assembly: Assembly, name: str, field: str) -> Any:
    """Return a builder array, or None (and a note) if scenes cannot edit it."""
    if name not in _ARRAYS:
        with assembly.at(field):
            assembly.note_unsupported(f"post_build array {name!r}; {suggestion(name, _ARRAYS)}")
        return None
    return getattr(assembly.builder, name)


class AddShape(Operation):
    """Add a shape to a body or the world; the other keys are those of an inline shape."""

    body: Reference | None = "world"

    def apply(self, assembly: Assembly) -> None:
        """Add the shape."""
        if not isinstance(self, Shape):
            raise AssertionError(f"{type(self).__name__} is not a shape")
        add_shape(assembly, self, find_body(assembly, self.body, "body"), {})


# One model per type of shape, such as `AddBox`, so that each accepts just the sizes of its type.
for _name, _shape in SHAPES.items():
    OPERATIONS[f"add_shape {_name}"] = type(
        f"Add{_shape.__name__}", (AddShape, _shape), {"__module__": __name__}
    )


@register_operation("set_array")
class SetArray(Selection, Operation):
    """Write entries of an array: one value, a list, or values of another array."""

    array: Name
    value: Any = None
    values: list[Any] | None = None
    from_array: Name | None = None
    from_range: Selection | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "SetArray":
        sources = [name for name in ("value", "values", "from_array") if getattr(self, name) is not None]
        if len(sources) != 1:
            found = f"; this has {' and '.join(sources)}" if sources else ""
            raise ValueError(f"give one of 'value', 'values' and 'from_array'{found}")
        if self.from_range is not None and self.from_array is None:
            raise ValueError("'from_range' needs 'from_array'")
        return self

    def apply(self, assembly: Assembly) -> None:
        """Write the entries."""
        array = _array(assembly, self.array, "array")
        if array is None:
            return
        check = _ARRAYS[self.array]
        indices = self.indices(len(array))
        if self.from_array is not None:
            source = _array(assembly, self.from_array, "from_array")
            if source is None:
                return
            # Without a range of its own, the source has that of the target: the targets of the first nine
            # degrees of freedom come from the first nine coordinates.
            if self.from_range is None:
                picked = self.indices(len(source))
            else:
                with assembly.at("from_range"):
                    picked = self.from_range.indices(len(source))
            if len(picked) != len(indices):
                raise FieldError(
                    f"{len(picked)} entries of {self.from_array} do not fit {len(indices)} entries of "
                    f"{self.array}",
                    "from_range" if self.from_range is not None else "from_array",
                )
            values = [check(source[index].item(), "from_array") for index in picked]
        elif self.values is not None:
            if len(self.values) != len(indices):
                raise FieldError(
                    f"{len(self.values)} values for {len(indices)} selected entries of {self.array}", "values"
                )
            values = [check(value, "values", index) for index, value in enumerate(self.values)]
        else:
            values = [check(self.value, "value")] * len(indices)
        for index, value in zip(indices, values, strict=True):
            array[index] = value


@register_operation("copy_array")
class CopyArray(Selection, Operation):
    """Copy entries of an array to another."""

    src: Name
    dst: Name
    src_range: Selection | None = None
    dst_range: Selection | None = None

    def apply(self, assembly: Assembly) -> None:
        """Copy the entries."""
        source = _array(assembly, self.src, "src")
        target = _array(assembly, self.dst, "dst")
        if source is None or target is None:
            return
        picked = self._picked(assembly, "src_range", len(source))
        indices = self._picked(assembly, "dst_range", len(target))
        if len(picked) != len(indices):
            raise FieldError(
                f"{len(picked)} entries of {self.src} do not fit {len(indices)} entries of {self.dst}"
            )
        check = _ARRAYS[self.dst]
        values = [check(source[index].item(), "src") for index in picked]
        for index, value in zip(indices, values, strict=True):
            target[index] = value

    def _picked(self, assembly: Assembly, field: str, length: int) -> list[int]:
        selection = getattr(self, field)
        if selection is None:
            return self.indices(length)
        with assembly.at(field):
            return selection.indices(length)


@register_operation("set_joint_targets")
class SetJointTargets(JointSelection, Operation):
    """Set the drive of degrees of freedom."""

    mode: TargetMode = TARGET_MODES["position"]
    ke: NotNegative = 0.0
    kd: NotNegative = 0.0

    def apply(self, assembly: Assembly) -> None:
        """Set mode and gains; joints that have no such drive are left as they are, with a warning."""
        builder = assembly.builder
        dofs = selected_dofs(assembly, self)
        undrivable = [dof for dof in dofs if not self._drives(builder, dof)]
        if undrivable:
            owners = dict.fromkeys(_joint_of_dof(builder, dof) for dof in undrivable)
            names = ", ".join(f"'{builder.joint_label[joint]}'" for joint in owners)
            if len(undrivable) == len(dofs):
                raise FieldError(
                    f"{names}: a free joint has no drive, and a ball joint none of a position; select joints "
                    "that turn or slide"
                )
            assembly.warn(
                f"set_joint_targets leaves out {names}: a free joint has no drive, and a ball joint none of "
                "a position; select the joints that turn or slide to say so"
            )
        for dof in sorted(set(dofs) - set(undrivable)):
            builder.joint_target_mode[dof] = self.mode
            builder.joint_target_ke[dof] = self.ke
            builder.joint_target_kd[dof] = self.kd

    def _drives(self, builder: Any, dof: int) -> bool:
        """Return whether a degree of freedom can have the drive."""
        kind = builder.joint_type[_joint_of_dof(builder, dof)]
        return kind not in FLOATING_JOINTS and (kind != JointType.BALL or self.ke == 0.0)


@register_operation("set_joint_armature")
class SetJointArmature(JointSelection, Operation):
    """Set the armature of degrees of freedom."""

    value: NotNegative

    def apply(self, assembly: Assembly) -> None:
        """Set the armature."""
        for dof in selected_dofs(assembly, self):
            assembly.builder.joint_armature[dof] = self.value


@register_operation("set_joint_q")
class SetJointQ(Operation):
    """Set one entry of the generalized position."""

    joint: Reference | None = Field(default=None, validation_alias=AliasChoices("joint", "joint_label"))
    offset: Index = 0
    index: Index | None = None
    value: Number

    @model_validator(mode="after")
    def _one_target(self) -> "SetJointQ":
        if (self.joint is None) == (self.index is None):
            raise ValueError("give either 'joint' (with an optional 'offset') or 'index'")
        return self

    def apply(self, assembly: Assembly) -> None:
        """Set the entry."""
        assembly.builder.joint_q[joint_coord(assembly, self.joint, self.offset, self.index)] = self.value


@register_operation("copy_joint_q_to_joint_targets")
class CopyJointQToJointTargets(JointSelection, Operation):
    """Set the targets of joints to their present positions; of all joints if none are named."""

    def apply(self, assembly: Assembly) -> None:
        """Copy the positions."""
        builder = assembly.builder
        if self.selects_joints:
            joints = self.joint_indices(builder.joint_label, assembly.known_joint_ids())
        elif self.index is None and self.range is None:
            joints = list(range(len(builder.joint_label)))
        else:  # coordinates and degrees of freedom are numbered differently
            raise FieldError(
                "name the joints by 'joint', 'joints', 'label_prefix' or 'match', or none for all of them"
            )
        copied = 0
        for joint in joints:
            coords = range(*joint_range(builder.joint_q_start, joint, len(builder.joint_q)))
            dofs = range(*joint_range(builder.joint_qd_start, joint, len(builder.joint_qd)))
            # A quaternion is no target position: free and ball joints are left as they are.
            if len(coords) == len(dofs):
                for coord, dof in zip(coords, dofs, strict=True):
                    builder.joint_target_pos[dof] = builder.joint_q[coord]
                    copied += 1
        if copied == 0:
            raise FieldError(
                "none of the selected joints has a target position; select revolute or prismatic joints"
            )


@register_operation("scale_sphere_shapes")
class ScaleSphereShapes(Operation):
    """Multiply the radius of every sphere; masses stay."""

    factor: Positive = 1.0

    def apply(self, assembly: Assembly) -> None:
        """Scale the spheres."""
        builder = assembly.builder
        spheres = [shape for shape, kind in enumerate(builder.shape_type) if kind == GeoType.SPHERE]
        if not spheres:
            raise FieldError("this world has no sphere to scale; remove the operation")
        for shape in spheres:
            builder.shape_scale[shape, 0] *= self.factor


@register_operation("approximate_meshes")
class ApproximateMeshes(Operation):
    """Replace the meshes that collide by simpler geometry; masses stay."""

    method: Literal["bounding_box", "bounding_sphere", "convex_hull", "coacd", "vhacd", "quadratic"] = (
        "convex_hull"
    )
    match: Name | None = Field(default=None, description="only shapes whose label contains this")
    keep_visual_shapes: bool = Field(default=False, description="whether the meshes stay to be seen")
    options: dict[Name, bool | int | float | str] = Field(
        default={}, description="of the method, such as threshold of coacd"
    )

    def apply(self, assembly: Assembly) -> None:
        """Replace the meshes."""
        builder = assembly.builder
        kinds = [GeoType.MESH] if self.method == "convex_hull" else [GeoType.MESH, GeoType.CONVEX_MESH]
        collides = (builder.shape_flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0
        shapes = np.flatnonzero(np.isin(builder.shape_type, kinds) & collides).tolist()
        if self.match is not None:
            labels = [builder.shape_label[shape] for shape in shapes]
            shapes = [shape for shape, label in zip(shapes, labels, strict=True) if self.match in label]
            if not shapes:
                known = suggestion(self.match, labels) if labels else "no mesh collides"
                raise FieldError(
                    f"no label of a mesh that collides contains {self.match!r}; {known}", "match"
                )
        try:
            builder.approximate_meshes(
                self.method,
                shape_indices=shapes,
                raise_on_failure=True,
                keep_visual_shapes=self.keep_visual_shapes,
                **self.options,
            )
        except (TypeError, ImportError) as error:
            raise FieldError(str(error)) from error


_ATTRIBUTES: dict[str, Callable[..., Any]] = {
    "gravity": parse_gravity,
    "rigid_gap": _not_negative,
    "default_body_armature": _not_negative,
}


@register_operation("set_attr")
class SetAttribute(Operation):
    """Set an attribute of the builder; it governs what is added afterwards (`gravity`: the whole world)."""

    name: Name
    value: Any

    def apply(self, assembly: Assembly) -> None:
        """Set the attribute."""
        if self.name not in _ATTRIBUTES:
            with assembly.at("name"):
                assembly.note_unsupported(
                    f"post_build set_attr {self.name!r}; {suggestion(self.name, _ATTRIBUTES)}"
                )
            return
        setattr(assembly.builder, self.name, _ATTRIBUTES[self.name](self.value, "value"))


def selected_dofs(assembly: Assembly, selection: JointSelection) -> list[int]:
    """Return the degrees of freedom of selected joints, or those of an index or range."""
    builder = assembly.builder
    count = len(builder.joint_qd)
    if not selection.selects_joints:
        return selection.indices(count)
    joints = selection.joint_indices(builder.joint_label, assembly.known_joint_ids())
    dofs = [dof for joint in joints for dof in range(*joint_range(builder.joint_qd_start, joint, count))]
    if not dofs:
        raise FieldError("the selected joints have no degree of freedom; select joints that move")
    return dofs


def _joint_of_dof(builder: Any, dof: int) -> int:
    return int(np.searchsorted(builder.joint_qd_start, dof, side="right")) - 1


def operation_names() -> list[str]:
    """Return what `op` may be."""
    return list(dict.fromkeys(name.split()[0] for name in OPERATIONS))


class UnsupportedOperation(BaseModel):
    """An operation that is not supported yet, or unknown; its arguments are not checked."""

    model_config = ConfigDict(extra="allow", frozen=True)
    op: str

    def apply(self, assembly: Assembly) -> None:
        """Report the unsupported operation."""
        with assembly.at("op"):
            assembly.note_unsupported(f"post_build op={self.op}; {suggestion(self.op, operation_names())}")


def _operation_tag(value: Any) -> Any:
    name = value.get("op") if isinstance(value, dict) else getattr(value, "op", None)
    if not isinstance(name, str):
        return None
    if name == "add_shape":
        kind = value.get("type", "box") if isinstance(value, dict) else getattr(value, "type", "box")
        return f"add_shape {kind}"
    return name if name in OPERATIONS else "unsupported"


if TYPE_CHECKING:
    AnyOperation = Operation | UnsupportedOperation
else:
    _MODELS = OPERATIONS | {"unsupported": UnsupportedOperation}
    AnyOperation = Annotated[
        Union[tuple(Annotated[model, Tag(name)] for name, model in _MODELS.items())],  # noqa: UP007
        Discriminator(_operation_tag),
    ]
