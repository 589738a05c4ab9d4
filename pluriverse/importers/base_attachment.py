"""Base attachment: how and where the base of an asset is attached, by options that all importers share."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.builder.inputs import as_axis, upright_rotation
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.importers.description import (
    WORLD,
    DofDescription,
    JointDescription,
    LinkDescription,
    RobotDescription,
)
from pluriverse.importers.frames import Frame, frame_from_transform, make_frame
from pluriverse.importers.mechanics import find_initial_poses, find_rigid_groups
from pluriverse.types import Axis, JointTargetMode, JointType

# Keys of a base joint, by its type, in addition to `_KEYS`.
_AXES = ("linear_axes", "angular_axes")
_FIELD_OF_DOF = {
    "limit_lower": "lower",
    "limit_upper": "upper",
    "actuator_mode": "mode",
    **{
        name: name
        for name in (
            *("axis", "limit_ke", "limit_kd", "target_pos", "target_vel", "target_ke", "target_kd"),
            *("armature", "damping", "friction", "effort_limit", "velocity_limit"),
            *("target_lower", "target_upper"),
        )
    },
}
_KEYS = ("joint_type", "child_xform", "collision_filter_parent", "label")
_KEYS_OF_TYPE = {
    JointType.FIXED: (),
    JointType.FREE: (),
    JointType.BALL: ("armature", "damping", "friction"),
    JointType.REVOLUTE: (*_FIELD_OF_DOF, "angular_axes"),
    JointType.PRISMATIC: (*_FIELD_OF_DOF, "linear_axes"),
    JointType.D6: _AXES,
}


class BaseAttachmentError(ValueError):
    """An asset cannot be attached as an option of an importer asks."""

    def __init__(self, importer: str, option: str, message: str):
        self.option = option
        """The option."""
        super().__init__(f"{importer}: {option}: {message}")


@dataclasses.dataclass(frozen=True)
class BaseAttachment:
    """How an asset is attached."""

    importer: str
    """Name of the importer, for messages."""
    pose: Frame
    """Pose of the asset, rotated upright, in the world or in `parent_body`."""
    upright: Frame
    """Rotation from the up axis of the file to that of the builder."""
    parent_body: int
    """Body that it is attached to, or `WORLD`."""
    base_joint: JointDescription | None
    """The joint of its base; None for the importer's own."""
    override_root_xform: bool
    """Whether `pose` is that of the first body, whatever its pose in the file."""


def read_base_attachment(importer: str, builder: Any, options: Mapping[str, Any]) -> BaseAttachment:
    """Return how an asset is attached.

    Raises:
        BaseAttachmentError: If the options contradict each other or a value is out of range.
    """
    base_joint, floating, parent_body = (options[name] for name in ("base_joint", "floating", "parent_body"))
    up_axis = options.get("up_axis", Axis.Z)  # a stage says itself what is up
    if base_joint is not None and floating is not None:
        raise BaseAttachmentError(
            importer, "base_joint", "it takes the place of floating. Leave floating out."
        )
    if isinstance(parent_body, bool) or not isinstance(parent_body, int | np.integer):
        raise BaseAttachmentError(importer, "parent_body", f"{parent_body!r} is not the index of a body.")
    if not WORLD <= parent_body < builder.body_count:
        raise BaseAttachmentError(
            importer,
            "parent_body",
            f"body {parent_body} does not exist; there are {builder.body_count} bodies. Pass an index that "
            "add_body() or the report of an earlier asset gave, or -1 for the world.",
        )
    if floating and parent_body != WORLD:
        raise _free_on_body(importer, "floating=True")
    try:
        up = Axis.from_any(up_axis)
    except ValueError:
        raise BaseAttachmentError(importer, "up_axis", f"{up_axis!r} is none of 'x', 'y' and 'z'.") from None
    upright = make_frame(quat=upright_rotation(up, builder.up_axis))
    return BaseAttachment(
        importer,
        frame_from_transform(options["xform"]) @ upright,
        upright,
        int(parent_body),
        None if base_joint is None else _joint(importer, base_joint, int(parent_body)),
        options["override_root_xform"],
    )


def mount(robot: RobotDescription, attachment: BaseAttachment) -> Frame:
    """Give the base of a robot its joint, and return the pose of the robot in its parent.

    Raises:
        BaseAttachmentError: If the robot has no base, or several, or one that cannot be attached so.
    """
    if attachment.base_joint is not None:
        _replace_base_joint(robot, attachment, attachment.base_joint)
    if attachment.parent_body != WORLD:
        _fix_free_base(robot, attachment)
    if not attachment.override_root_xform:
        return attachment.pose
    if not robot.links:
        raise BaseAttachmentError(
            attachment.importer, "override_root_xform", "the asset has no body to be placed. Leave it out."
        )
    return attachment.pose @ find_initial_poses(robot)[0].inverse()


def _fix_free_base(robot: RobotDescription, attachment: BaseAttachment) -> None:
    """Let a fixed joint take the place of the free one of an asset that is mounted on a body.

    Raises:
        BaseAttachmentError: If several joints are free.
    """
    free = [index for index, link in enumerate(robot.links) if link.joint.type is JointType.FREE]
    if len(free) > 1:
        names = ", ".join(f"'{robot.links[index].joint.label}'" for index in free[:4])
        raise _free_on_body(attachment.importer, f"each of the joints {names}")
    for index in free:
        label = f"{robot.links[index].joint.label.rpartition('/')[0]}/fixed_base"
        pose = find_initial_poses(robot)[index]
        joint = JointDescription(label, JointType.FIXED, parent_frame=pose)
        robot.links[index] = dataclasses.replace(robot.links[index], joint=joint)


def _free_on_body(importer: str, what: str) -> BaseAttachmentError:
    return BaseAttachmentError(
        importer,
        "parent_body",
        f"{what} lets the asset move freely, so it cannot be mounted on a body. Pass floating=False, or a "
        "base_joint.",
    )


def _replace_base_joint(robot: RobotDescription, attachment: BaseAttachment, joint: JointDescription) -> None:
    """Replace the joint of the base of a robot; at zero of the new one the base is where it is authored."""
    base = _find_base(robot, attachment.importer)
    pose = find_initial_poses(robot)[base]
    link = robot.links[base]
    label = joint.label or f"{link.joint.label.rpartition('/')[0]}/base_joint"
    if joint.type is JointType.FREE:
        joint = dataclasses.replace(joint, label=label, q=[*pose.position, *pose.quat])
    else:
        joint = dataclasses.replace(joint, label=label, parent_frame=pose @ joint.child_frame)
    robot.links[base] = dataclasses.replace(link, joint=joint)


def _find_base(robot: RobotDescription, importer: str) -> int:
    """Return the base link of a robot; fixed trees of a file with other trees are scenery."""
    roots = [index for index, link in enumerate(robot.links) if link.parent == WORLD]
    root_of_link: list[int] = []
    moving = set()
    for index, link in enumerate(robot.links):
        root_of_link.append(index if link.parent == WORLD else root_of_link[link.parent])
        if link.joint.type is not JointType.FIXED:
            moving.add(root_of_link[index])
    bases = sorted(moving) or roots
    if len(bases) != 1:
        names = ", ".join(f"'{robot.links[base].label}'" for base in bases[:4])
        found = f"this asset has several ({names})" if bases else "this asset has no body"
        raise BaseAttachmentError(
            importer, "base_joint", f"it holds one base, but {found}. Import them from files of their own."
        )
    link = robot.links[bases[0]]
    if link.joint.type not in (JointType.FIXED, JointType.FREE):
        raise BaseAttachmentError(
            importer,
            "base_joint",
            f"'{link.label}' is held by joint '{link.joint.label}' of the file. Remove that joint there, or "
            "leave base_joint out.",
        )
    return bases[0]


def _joint(importer: str, options: Mapping[str, Any], parent_body: int) -> JointDescription:
    """Return the joint that the mapping `base_joint` describes."""
    if not isinstance(options, Mapping):
        raise BaseAttachmentError(
            importer, "base_joint", f"{options!r} is no mapping. Write it as {{'joint_type': 'fixed'}}."
        )
    kind = _joint_type(importer, options.get("joint_type"))
    known = (*_KEYS, *_KEYS_OF_TYPE[kind])
    for key in options:
        if key not in known:
            raise BaseAttachmentError(
                importer,
                "base_joint",
                f"a {kind.name.lower()} joint has no {key!r}; there are {', '.join(known)}."
                + (" xform gives the pose of the base." if key == "parent_xform" else ""),
            )
    joint = JointDescription(
        label=options.get("label") or "",
        type=kind,
        child_frame=frame_from_transform(options.get("child_xform")),
        filter_parent=bool(options.get("collision_filter_parent", True)),
    )
    linear, angular = ([_dof(importer, axis) for axis in options.get(name) or ()] for name in _AXES)
    if kind is JointType.D6:
        joint.dofs, joint.linear_count = linear + angular, len(linear)
        if not joint.dofs or len(linear) > 3 or len(angular) > 3:
            raise BaseAttachmentError(
                importer,
                "base_joint",
                f"{len(linear)} linear and {len(angular)} angular axes; a D6 joint has up to three of each, "
                "and one at least.",
            )
    elif kind in (JointType.REVOLUTE, JointType.PRISMATIC):
        own = {name: options[name] for name in _FIELD_OF_DOF if name in options}
        axes = linear + angular
        if own or not axes:
            axes.append(_dof(importer, own))
        if len(axes) != 1:
            raise BaseAttachmentError(
                importer,
                "base_joint",
                f"a {kind.name.lower()} joint has one axis, but {len(axes)} are given.",
            )
        joint.dof = axes[0]
    elif kind is JointType.BALL:
        for name in _KEYS_OF_TYPE[kind]:
            setattr(joint, name, options.get(name))
    elif kind is JointType.FREE and parent_body != WORLD:
        raise _free_on_body(importer, "a base_joint of type FREE")
    size = {JointType.BALL: 3, JointType.FREE: 6, JointType.FIXED: 0}.get(kind, len(joint.dofs) or 1)
    joint.q, joint.qd = [0.0] * size, [0.0] * size
    if kind is JointType.BALL:
        joint.q = [0.0, 0.0, 0.0, 1.0]
    return joint


def _joint_type(importer: str, value: Any) -> JointType:
    """Return the joint type of a value or a name."""
    names = {kind.name.lower(): kind for kind in _KEYS_OF_TYPE}
    kind = names.get(value.lower()) if isinstance(value, str) else value
    if kind not in _KEYS_OF_TYPE:
        raise BaseAttachmentError(
            importer, "base_joint", f"joint_type is {value!r}, but it is one of {', '.join(names)}."
        )
    return JointType(kind)


def _dof(importer: str, value: Any) -> DofDescription:
    """Return the degree of freedom described by a configuration, a mapping of its fields, or an axis."""
    if isinstance(value, JointDofConfig):
        fields = {name: getattr(value, name) for name in _FIELD_OF_DOF}
    elif isinstance(value, Mapping):
        fields = dict(value)
        for name in fields:
            if name not in _FIELD_OF_DOF:
                raise BaseAttachmentError(
                    importer, "base_joint", f"an axis has no {name!r}; there are {', '.join(_FIELD_OF_DOF)}."
                )
    else:
        fields = {"axis": value}
    try:
        axis = as_axis(fields.pop("axis", 0), "its axis")
        mode = fields.pop("actuator_mode", None)
        dof = DofDescription(axis, mode=None if mode is None else JointTargetMode(mode))
        for name, number in fields.items():
            if number is not None:
                setattr(dof, _FIELD_OF_DOF[name], float(number))
        return dof
    except (TypeError, ValueError) as error:
        raise BaseAttachmentError(importer, "base_joint", str(error)) from error


def split_root_articulation(robot: RobotDescription) -> None:
    """Give each limb of a fixed base its own articulation, if there are several."""
    groups = find_rigid_groups(robot)
    limbs: list[tuple[int, LinkDescription]] = [
        (index, link)
        for index, link in enumerate(robot.links)
        if link.parent != WORLD and groups[index] == index and groups[link.parent] == WORLD
    ]
    if len(limbs) > 1:
        robot.tree_labels |= {index: f"{robot.label}/{link.name}" for index, link in limbs}
