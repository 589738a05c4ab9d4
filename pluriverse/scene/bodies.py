"""Inline bodies, joints, articulations and initial positions."""

from typing import Any, Literal

from pydantic import AliasChoices, Field, model_validator

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.errors import FieldError
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.selectors import find_joint, suggestion
from pluriverse.scene.shapes import AnyShape, Overrides, add_shape
from pluriverse.scene.values import (
    IDENTITY,
    Axis,
    Index,
    Limit,
    Name,
    NotNegative,
    Number,
    Reference,
    Transform,
)


class Body(Overrides):
    """A body with its shapes."""

    id: Name
    label: Name | None = None
    transform: Transform = IDENTITY
    mass: NotNegative = Field(
        default=0.0, description="kg, added to what the shapes weigh, at the body origin"
    )
    shapes: list[AnyShape] = Field(default_factory=list)


class JointDefaults(SceneMapping):
    """The properties of one degree of freedom."""

    axis: Axis | None = None
    target_pos: Number | None = None
    target_vel: Number | None = None
    target_ke: NotNegative | None = None
    target_kd: NotNegative | None = None
    limit_lower: Limit | None = None
    limit_upper: Limit | None = None
    limit_ke: NotNegative | None = None
    limit_kd: NotNegative | None = None
    armature: NotNegative | None = None
    damping: NotNegative | None = None
    friction: NotNegative | None = None
    effort_limit: NotNegative | None = None
    velocity_limit: NotNegative | None = None
    actuator_mode: Literal[0, 1, 2, 3, 4] | None = None


DOF_FIELDS = tuple(JointDefaults.model_fields)
_FIELDS_OF_JOINT = {
    "revolute": DOF_FIELDS,
    "prismatic": DOF_FIELDS,
    "ball": ("armature", "friction", "damping"),
    "fixed": (),
    "free": (),
}
JOINT_TYPES = tuple(_FIELDS_OF_JOINT)
JOINT_TYPES_LATER = ("d6", "distance", "universal", "planar", "cable")


class Joint(JointDefaults):
    """A joint between a parent body (or the world) and a child body."""

    id: Name
    type: Name
    parent: Reference | None = "world"
    child: Reference
    parent_xform: Transform = IDENTITY
    child_xform: Transform = IDENTITY
    label: Name | None = None
    collision_filter_parent: bool = True

    @model_validator(mode="after")
    def _check(self) -> "Joint":
        if self.type in _FIELDS_OF_JOINT:
            for field in DOF_FIELDS:
                if field in self.given() and field not in _FIELDS_OF_JOINT[self.type]:
                    kinds = [kind for kind, fields in _FIELDS_OF_JOINT.items() if field in fields]
                    raise ValueError(
                        f"a {self.type} joint has no {field}; remove it or use a joint of type "
                        f"{' or '.join(kinds)}"
                    )
        lower, upper = self.limit_lower, self.limit_upper
        if lower is not None and upper is not None and lower > upper:
            raise ValueError(f"limit_lower {lower:g} is above limit_upper {upper:g}; swap them")
        return self


class Articulation(SceneMapping):
    """The joints of one tree."""

    id: Name | None = None
    label: Name | None = None
    joints: list[Name] = Field(min_length=1)


class InitialJointQ(SceneMapping):
    """One entry of the initial generalized position."""

    joint: Reference | None = Field(default=None, validation_alias=AliasChoices("joint", "joint_label"))
    offset: Index = 0
    index: Index | None = None
    value: Number

    @model_validator(mode="after")
    def _one_target(self) -> "InitialJointQ":
        if (self.joint is None) == (self.index is None):
            raise ValueError("give either 'joint' (with an optional 'offset') or 'index'")
        if self.index is not None and self.wrote("offset"):
            raise ValueError("'offset' counts inside a joint; with 'index' it has no meaning, so remove it")
        return self


def add_body(assembly: Assembly, body: Body) -> None:
    """Add a body and its shapes to the world."""
    if body.id in assembly.body_ids:
        raise FieldError(f"the body id {body.id!r} is taken by an earlier body; ids must differ", "id")
    if body.id == "world":
        raise FieldError("'world' means the world itself and cannot be the id of a body", "id")
    index = assembly.builder.add_link(
        xform=body.transform.as_list(), mass=body.mass, label=body.label or body.id
    )
    assembly.body_ids[body.id] = index
    material = body.configuration()
    for number, shape in enumerate(body.shapes):
        with assembly.at("shapes", number):
            add_shape(assembly, shape, index, material)


def find_body(assembly: Assembly, reference: str | int | None, *path: str) -> int:
    """Return the index of a body named by id, label or index; -1 for the world.

    Raises:
        FieldError: There is no such body.
    """
    labels = assembly.builder.body_label
    if reference is None or reference in ("world", -1):
        return -1
    if isinstance(reference, int):
        if not 0 <= reference < len(labels):
            raise FieldError(f"there is no body {reference}; this world has {len(labels)} bodies", *path)
        return reference
    if reference in assembly.body_ids:
        return assembly.body_ids[reference]
    for matches in (
        [body for body, label in enumerate(labels) if label == reference],
        [body for body, label in enumerate(labels) if label.endswith(f"/{reference}")],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise FieldError(
                f"{reference!r} is ambiguous, it fits {len(matches)} bodies; give more of the label "
                "or an index",
                *path,
            )
    names = dict.fromkeys(["world", *assembly.body_ids, *labels])
    raise FieldError(f"there is no body {reference!r}; {suggestion(reference, names)}", *path)


def add_joint(assembly: Assembly, joint: Joint) -> None:
    """Add a joint to the world, or note that its type is not supported."""
    if joint.id in assembly.joint_ids:
        raise FieldError(f"the joint id {joint.id!r} is taken by an earlier joint; ids must differ", "id")
    if joint.type not in JOINT_TYPES:
        if joint.type not in JOINT_TYPES_LATER:
            raise FieldError(
                f"there is no joint type {joint.type!r}; {suggestion(joint.type, JOINT_TYPES)}", "type"
            )
        assembly.joint_ids[joint.id] = None
        assembly.note_unsupported(f"joint type={joint.type}")
        return
    child = find_body(assembly, joint.child, "child")
    if child == -1:
        raise FieldError("the world cannot be the child of a joint; swap parent and child", "child")
    parent = find_body(assembly, joint.parent, "parent")
    if parent == child:
        raise FieldError(f"the joint connects body {joint.child!r} with itself", "child")
    builder = assembly.builder
    options: dict[str, Any] = {
        "parent": parent,
        "child": child,
        "parent_xform": joint.parent_xform.as_list(),
        "child_xform": joint.child_xform.as_list(),
        "label": joint.label or joint.id,
        "collision_filter_parent": joint.collision_filter_parent,
    }
    options |= joint.given(_FIELDS_OF_JOINT[joint.type])
    match joint.type:
        case "fixed":
            index = builder.add_joint_fixed(**options)
        case "free":
            index = builder.add_joint_free(**options)
        case "ball":
            index = builder.add_joint_ball(**options)
        case "revolute":
            index = builder.add_joint_revolute(**options)
        case _:
            index = builder.add_joint_prismatic(**options)
    assembly.joint_ids[joint.id] = index


def add_articulation(assembly: Assembly, articulation: Articulation, number: int) -> None:
    """Group joints into one tree."""
    joints = []
    for place, name in enumerate(articulation.joints):
        if name in assembly.joint_ids:
            joint = assembly.joint_ids[name]
            if joint is not None:
                joints.append(joint)
                continue
            raise FieldError(
                f"joint {name!r} is of a type that is not supported, so this articulation cannot be built",
                "joints",
                place,
            )
        joints.append(find_joint(name, assembly.builder.joint_label, {}, "joints", place))
    for place, joint in enumerate(joints):
        if joint in assembly.articulated_joints:
            raise FieldError(
                f"joint {articulation.joints[place]!r} is listed in an articulation already; list it once",
                "joints",
                place,
            )
        assembly.articulated_joints.add(joint)
    assembly.builder.add_articulation(
        joints, label=articulation.label or articulation.id or f"articulation_{number}"
    )


def articulate_remaining_joints(assembly: Assembly) -> None:
    """Group the inline joints that no articulation lists, one articulation per tree."""
    builder = assembly.builder
    rest = sorted(set(assembly.known_joint_ids().values()) - assembly.articulated_joints)
    tree_of_body: dict[int, list[int]] = {}
    trees: list[list[int]] = []
    for joint in rest:
        parent, child = int(builder.joint_parent[joint]), int(builder.joint_child[joint])
        tree = tree_of_body.get(parent) if parent >= 0 else None
        below = tree_of_body.get(child)
        if tree is None and below is None:
            trees.append(tree := [])
        elif tree is None:
            tree = below
        elif below is not None and below is not tree:
            trees.remove(below)
            tree.extend(below)
            tree_of_body.update({body: tree for body, other in tree_of_body.items() if other is below})
        assert tree is not None
        tree.append(joint)
        tree_of_body[child] = tree
        if parent >= 0:
            tree_of_body[parent] = tree
    for tree in trees:
        builder.add_articulation(sorted(tree))


def set_initial_joint_q(assembly: Assembly, entry: InitialJointQ) -> None:
    """Write one entry of the generalized position."""
    assembly.builder.joint_q[joint_coord(assembly, entry.joint, entry.offset, entry.index)] = entry.value


def joint_coord(assembly: Assembly, joint: str | int | None, offset: int, index: int | None) -> int:
    """Return the place in `joint_q` of a coordinate of a joint, or of an index from either end.

    Raises:
        FieldError: There is no such joint or coordinate.
    """
    builder = assembly.builder
    if joint is None:
        count = len(builder.joint_q)
        if index is None or not -count <= index < count:
            raise FieldError(
                f"index {index} is out of range; joint_q has {count} entries in this world", "index"
            )
        return index % count
    number = find_joint(joint, builder.joint_label, assembly.known_joint_ids(), "joint")
    start, end = joint_range(builder.joint_q_start, number, len(builder.joint_q))
    if not 0 <= offset < end - start:
        raise FieldError(
            f"offset {offset} is out of range; joint {joint!r} has {end - start} coordinates", "offset"
        )
    return start + offset


def joint_range(starts: Any, joint: int, count: int) -> tuple[int, int]:
    """Return first and last (exclusive) entry of a joint in an array of `count` entries."""
    return int(starts[joint]), int(starts[joint + 1]) if joint + 1 < len(starts) else count
