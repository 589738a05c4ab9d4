"""Inline joints, articulations and initial positions."""

import warnings
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.bodies import find_body
from pluriverse.scene.errors import FieldError
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.selectors import find_joint, suggestion
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


class JointDefaults(SceneMapping):
    """The properties of one degree of freedom."""

    axis: Axis | None = None
    target_pos: Number | None = None
    target_vel: Number | None = None
    target_lower: Limit | None = None
    target_upper: Limit | None = None
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


# Limits [rad] beyond this are several turns, as few joints have; beyond the other they stand for none.
ANGLE_MAX = 8.0 * np.pi
NO_LIMIT = 1.0e4

DOF_FIELDS = tuple(JointDefaults.model_fields)
_AXIS_LISTS = ("linear_axes", "angular_axes")
_DISTANCES = ("min_distance", "max_distance")
_FIELDS_OF_JOINT: dict[str, tuple[str, ...]] = {
    "revolute": DOF_FIELDS,
    "prismatic": DOF_FIELDS,
    "ball": ("armature", "friction", "damping", "target_kd", "effort_limit", "actuator_mode"),
    "d6": _AXIS_LISTS,
    "distance": _DISTANCES,
    "fixed": (),
    "free": (),
}
JOINT_TYPES = tuple(_FIELDS_OF_JOINT)
# Names of these joints in other programs.
_OTHER_NAMES = {
    "hinge": "revolute",
    "continuous": "revolute",
    "slide": "prismatic",
    "slider": "prismatic",
    "floating": "free",
    "spherical": "ball",
    "weld": "fixed",
}
# Joint types of other programs that are d6 joints here.
_AS_D6 = {
    "universal": "two angular_axes",
    "planar": "two linear_axes and one of angular_axes",
    "cylindrical": "one of linear_axes and one of angular_axes",
}


class JointAxis(JointDefaults):
    """One axis of a d6 joint; an axis alone takes everything else from the defaults."""

    axis: Axis


def _axis_alone(value: Any) -> Any:
    return value if isinstance(value, dict | JointAxis) else {"axis": value}


AnyJointAxis = Annotated[JointAxis, BeforeValidator(_axis_alone, json_schema_input_type=Axis | JointAxis)]


class AnyJoint(JointDefaults):
    """Keys of a joint about its motion."""

    type: Name
    child_xform: Transform = IDENTITY
    label: Name | None = None
    collision_filter_parent: bool = True
    linear_axes: list[AnyJointAxis] | None = Field(
        default=None, max_length=3, description="d6: axes to slide along"
    )
    angular_axes: list[AnyJointAxis] | None = Field(
        default=None, max_length=3, description="d6: axes to turn about, each carried by the one before"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.type in _FIELDS_OF_JOINT:
            for field in (*DOF_FIELDS, *_AXIS_LISTS, *_DISTANCES):
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

    def motion(self, default: Any) -> dict[str, Any]:
        """Return the given options of the motion, with axes as complete configurations.

        Args:
            default: Configuration of degrees of freedom that gives what was not said.
        """
        options = self.given(_FIELDS_OF_JOINT[self.type])
        for name in _AXIS_LISTS:
            if name in options:
                configs = [axis.given(DOF_FIELDS) for axis in options[name]]
                options[name] = [default.merged(**config) for config in configs]
        return options


class BaseJoint(AnyJoint):
    """The joint that holds the base of an asset to the world, or to the body that it is mounted on."""

    type: Literal["fixed", "free", "revolute", "prismatic", "ball", "d6"] = Field(
        validation_alias=AliasChoices("type", "joint_type")
    )


class Joint(AnyJoint):
    """A joint between a parent body (or the world) and a child body."""

    id: Name
    parent: Reference | None = "world"
    child: Reference
    parent_xform: Transform = IDENTITY
    min_distance: Number | None = Field(default=None, description="distance: m, negative for none; -1")
    max_distance: Number | None = Field(default=None, description="distance: m, negative for none; 1")
    closes_loop: bool = Field(
        default=False,
        description="whether it connects two bodies of a tree that has a joint for each already",
    )
    enabled: bool = Field(default=True, description="only with closes_loop: whether it acts from the start")

    @model_validator(mode="after")
    def _check_enabled(self) -> Self:
        """Check that a joint which is off leaves its child another one."""
        if not (self.enabled or self.closes_loop):
            raise ValueError(
                "enabled: false is for joints that close loops; a body that moves freely has type: free "
                "(and closes_loop: true where this joint is meant in addition)"
            )
        return self

    @model_validator(mode="after")
    def _check_distances(self) -> Self:
        """Check that a distance joint holds something."""
        if self.type != "distance":
            return self
        shortest = -1.0 if self.min_distance is None else self.min_distance
        longest = 1.0 if self.max_distance is None else self.max_distance
        if shortest <= 0.0 and longest < 0.0:
            raise ValueError(
                "this joint allows every distance; give max_distance (or min_distance), or write type: free"
            )
        if longest == 0.0 or 0.0 <= longest < shortest:
            raise ValueError(
                f"min_distance {shortest:g} and max_distance {longest:g} leave no distance; give a "
                "max_distance that is greater than 0 and not below the other"
            )
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


def add_joint(assembly: Assembly, joint: Joint) -> None:
    """Add a joint to the world; one that closes a loop waits for `add_loop_joint`."""
    if joint.id in assembly.joint_ids:
        raise FieldError(f"the joint id {joint.id!r} is taken by an earlier joint; ids must differ", "id")
    # A joint that closes a loop becomes a constraint. Its coordinates must not shift those of other joints.
    assembly.joint_ids[joint.id] = None if joint.closes_loop else _add_joint(assembly, joint)


def add_loop_joint(assembly: Assembly, joint: Joint) -> None:
    """Add a joint that closes a loop, after everything that counts coordinates."""
    if joint.closes_loop:
        _add_joint(assembly, joint)


def _add_joint(assembly: Assembly, joint: Joint) -> int:
    """Add a joint to the world and return its index."""
    if joint.type not in JOINT_TYPES:
        if joint.type in _AS_D6:
            raise FieldError(f"write a {joint.type} joint as type d6 with {_AS_D6[joint.type]}", "type")
        if joint.type in _OTHER_NAMES:
            raise FieldError(f"a {joint.type} joint is of type {_OTHER_NAMES[joint.type]} here", "type")
        raise FieldError(
            f"there is no joint type {joint.type!r}; {suggestion(joint.type, JOINT_TYPES)}", "type"
        )
    child = find_body(assembly, joint.child, "child")
    if child == -1:
        raise FieldError("the world cannot be the child of a joint; swap parent and child", "child")
    parent = find_body(assembly, joint.parent, "parent")
    if parent == child:
        raise FieldError(f"the joint connects body {joint.child!r} with itself", "child")
    if not joint.closes_loop:
        _check_only_joint(assembly, joint, child)
    _check_angles(joint)
    builder = assembly.builder
    options: dict[str, Any] = {
        "parent": parent,
        "child": child,
        "parent_xform": joint.parent_xform.as_list(),
        "child_xform": joint.child_xform.as_list(),
        "label": joint.label or joint.id,
        "collision_filter_parent": joint.collision_filter_parent,
        "enabled": joint.enabled,
    }
    options |= joint.motion(builder.default_joint_cfg)
    match joint.type:
        case "fixed":
            index = builder.add_joint_fixed(**options)
        case "free":
            index = builder.add_joint_free(**options)
        case "ball":
            index = builder.add_joint_ball(**options)
        case "d6":
            index = builder.add_joint_d6(**options)
        case "distance":
            index = builder.add_joint_distance(**options)
        case "revolute":
            index = builder.add_joint_revolute(**options)
        case _:
            index = builder.add_joint_prismatic(**options)
    return int(index)


def _check_angles(joint: Joint) -> None:
    """Warn of limits of a revolute joint that are many turns, and so more likely degrees."""
    for name in ("limit_lower", "limit_upper"):
        limit = getattr(joint, name)
        if joint.type == "revolute" and limit is not None and ANGLE_MAX < abs(limit) < NO_LIMIT:
            warnings.warn(
                f"joint {joint.id!r}: {name} is {limit:g} rad, which is {abs(limit) / (2.0 * np.pi):.0f} "
                f"turns; angles are in radians: {limit:g} degrees are {limit:g} * pi / 180",
                stacklevel=2,
            )


def _check_only_joint(assembly: Assembly, joint: Joint, child: int) -> None:
    """Check that a body has no joint yet.

    Raises:
        FieldError: It has one.
    """
    builder = assembly.builder
    earlier = np.flatnonzero(np.asarray(builder.joint_child) == child)
    if len(earlier):
        raise FieldError(
            f"body {joint.child!r} has a joint already ('{builder.joint_label[earlier[0]]}'); if this one "
            "closes a loop, write closes_loop: true",
            "child",
        )


def add_articulation(assembly: Assembly, articulation: Articulation, number: int) -> None:
    """Group joints into one tree."""
    joints = []
    for index, name in enumerate(articulation.joints):
        if name in assembly.joint_ids:
            joint = assembly.joint_ids[name]
            if joint is None:
                raise FieldError(
                    f"joint {name!r} closes a loop, so it belongs to no articulation; leave it out",
                    "joints",
                    index,
                )
            joints.append(joint)
            continue
        joints.append(find_joint(name, assembly.builder.joint_label, {}, "joints", index))
    for index, joint in enumerate(joints):
        if joint in assembly.articulated_joints:
            raise FieldError(
                f"joint {articulation.joints[index]!r} is listed in an articulation already; list it once",
                "joints",
                index,
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


def fix_unjointed_bodies(assembly: Assembly) -> None:
    """Fix inline bodies without a joint in place, and warn of it."""
    builder = assembly.builder
    jointed = set(np.asarray(builder.joint_child).tolist())
    loose = {name: body for name, body in assembly.body_ids.items() if body not in jointed}
    for body in loose.values():
        label = builder.body_label[body]
        joint = builder.add_joint_fixed(-1, body, parent_xform=builder.body_q[body], label=f"{label}_fixed")
        builder.add_articulation([joint], label=label)
    if loose:
        warnings.warn(
            f"no joint holds body {', '.join(map(repr, loose))}, so it stays where it is; write a joint of "
            "type free to let it move, or fixed to say that it stands still",
            stacklevel=2,
        )


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
