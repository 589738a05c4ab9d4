"""MJCF bodies and joints as links.

MuJoCo allows several joints on a body, which act one after the other. Such a body becomes a chain
of links without mass, one per joint, that ends in the body: the joint coordinates, and with them the
equations of motion, are those of MuJoCo (`mj_kinematics` composes the joints in the same way). Chains that
are D6 joints become one in the end (`joint_chains`).
"""

import dataclasses
from typing import Any

import numpy as np

from pluriverse.geometry import MassProperties, quat_to_matrix
from pluriverse.importers.description import (
    WORLD,
    DofDescription,
    JointDescription,
    LinkDescription,
    RobotDescription,
)
from pluriverse.importers.errors import AssetError
from pluriverse.importers.frames import IDENTITY, Frame, make_frame, quat_from_axis_angle, quat_from_wxyz
from pluriverse.importers.mjcf_enums import MjJoint
from pluriverse.importers.mjcf_repair import BOUND
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.types import JointTargetMode, JointType

NO_JOINT = -1  # index of a joint that the importer adds


def body_name(model: Any, body: int) -> str:
    """Return the name of a MuJoCo body, `body_INDEX` where it has none."""
    return model.body(body).name or f"body_{body}"


def add_links(
    robot: RobotDescription, source: MjcfSource, options: MjcfSettings, report: ImportReport
) -> tuple[dict[int, int], dict[int, int]]:
    """Add a link per body and per further joint of a body; return the links of MuJoCo's joints and bodies."""
    import mujoco

    model = source.model
    paths = {0: f"{robot.label}/worldbody"}
    link_of_body = {0: WORLD}
    link_of_joint: dict[int, int] = {}
    for body in range(1, model.nbody):
        name = body_name(model, body)
        above = int(model.body_parentid[body])
        path = paths[body] = f"{paths[above]}/{name}"
        parent = link_of_body[above]
        _report_body(model, body, name, options, report)
        joints = _joints(robot, source, body, path, parent == WORLD, options, report)
        for joint, description in joints[:-1]:
            link_of_joint[joint] = len(robot.links)
            robot.links.append(
                LinkDescription(
                    name=f"{name}/{description.label.rpartition('/')[2]}",
                    label=f"{description.label}_link",
                    element=f"body '{name}'",
                    parent=parent,
                    joint=description,
                    mass_properties=MassProperties(0.0, np.zeros(3), np.zeros((3, 3))),
                    is_intermediate=True,
                )
            )
            parent = link_of_joint[joint]
        joint, description = joints[-1]
        link_of_body[body] = len(robot.links)
        if joint != NO_JOINT:
            link_of_joint[joint] = link_of_body[body]
        robot.links.append(
            LinkDescription(
                name=name,
                label=path,
                element=f"body '{name}'",
                parent=parent,
                joint=description,
                mass_properties=_mass_properties(model, body, options["scale"]),
                is_mocap=bool(model.body_mocapid[body] >= 0),
                custom=options["custom"].of_body(body),
                origins={("body", body): IDENTITY},
            )
        )
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT:
        for link in robot.links:
            link.joint.filter_parent = False
    for exclude in source.spec.excludes:
        first_body, second_body = (model.body(name).id for name in (exclude.bodyname1, exclude.bodyname2))
        robot.excluded_pairs.append((link_of_body[first_body], link_of_body[second_body]))
    return link_of_joint, link_of_body


def _joints(
    robot: RobotDescription,
    source: MjcfSource,
    body: int,
    path: str,
    is_base: bool,
    options: MjcfSettings,
    report: ImportReport,
) -> list[tuple[int, JointDescription]]:
    """Return the joints of a body, at least one, with their indices in the file (or `NO_JOINT`)."""
    model = source.model
    frame = make_frame(model.body_pos[body], quat_from_wxyz(model.body_quat[body])).scaled(options["scale"])
    first = int(model.body_jntadr[body])
    joints = range(first, first + int(model.body_jntnum[body]))
    has_free_joint = len(joints) > 0 and model.jnt_type[joints[0]] == MjJoint.FREE
    if is_base and options["floating"] is True and not has_free_joint:
        if joints:
            raise AssetError(
                "floating=True asks for a free base, but the body is held to the world by joint "
                f"'{model.joint(joints[0]).name}'",
                file=robot.source,
                element=f"body '{body_name(model, body)}'",
                value=options["floating"],
                remedy="Remove that joint from the file, or import with floating=None.",
            )
        return [(NO_JOINT, _free_joint(f"{path}/floating_base", frame))]
    if not joints or (has_free_joint and options["floating"] is False):
        label = f"{path}/{'fixed_base' if is_base else 'fixed'}"
        return [(NO_JOINT, JointDescription(label, JointType.FIXED, parent_frame=frame))]
    return [
        (joint, _joint(source, joint, path, frame if joint == first else IDENTITY, options, report))
        for joint in joints
    ]


def _report_body(model: Any, body: int, name: str, options: MjcfSettings, report: ImportReport) -> None:
    if model.body_mocapid[body] >= 0:
        report.add("mocap body", name, "it stands still where it is authored")
    first, count = model.body_jntadr[body], model.body_jntnum[body]
    if model.jnt_actgravcomp[first : first + count].any() and not options["custom"].namespace.keeps(
        "actuatorgravcomp", name
    ):
        report.add(
            "actuatorgravcomp",
            name,
            "gravity is compensated without the actuator, whose force and range do not include it",
        )


def _mass_properties(model: Any, body: int, scale: float) -> MassProperties:
    rotation = quat_to_matrix(quat_from_wxyz(model.body_iquat[body]))
    inertia = rotation @ np.diag(model.body_inertia[body]) @ rotation.T
    mass = float(model.body_mass[body])
    if mass <= 2.0 * BOUND:  # none, made compilable
        # MuJoCo weighs constraints and contacts of a body at its centre of mass, also where it has no mass.
        com = np.zeros(3) if model.body_jntnum[body] else scale * model.body_ipos[body]
        return MassProperties(0.0, com, np.zeros((3, 3)))
    if model.body_inertia[body].max() <= 2.0 * BOUND:
        inertia = np.zeros((3, 3))
    return MassProperties(mass, scale * model.body_ipos[body], scale**2 * inertia)


def _free_joint(label: str, frame: Frame) -> JointDescription:
    return JointDescription(label, JointType.FREE, q=[*frame.position, *frame.quat], qd=[0.0] * 6)


def _joint(
    source: MjcfSource, joint: int, path: str, frame: Frame, options: MjcfSettings, report: ImportReport
) -> JointDescription:
    model = source.model
    kind = int(model.jnt_type[joint])
    dof = int(model.jnt_dofadr[joint])
    number = joint - int(model.body_jntadr[model.jnt_bodyid[joint]])
    default_name = "floating_base" if kind == MjJoint.FREE else f"joint_{number}" if number else "joint"
    name = model.joint(joint).name or default_name
    label = f"{path}/{name}"
    _report_joint(model, joint, dof, name, kind, options, report)
    armature = options["armature_scale"] * float(model.dof_armature[dof])
    damping = float(model.dof_damping[dof])
    friction = float(model.dof_frictionloss[dof])
    custom, origin = options["custom"].of_joint(joint), ("joint", joint)
    if kind in (MjJoint.FREE, MjJoint.BALL):
        custom |= options["custom"].of_dof(joint, name)
    if kind == MjJoint.FREE:
        return dataclasses.replace(
            _free_joint(label, frame),
            armature=armature,
            damping=damping,
            friction=friction,
            custom=custom,
            origin=origin,
        )
    anchor = make_frame(options["scale"] * model.jnt_pos[joint])
    if kind == MjJoint.BALL:
        return JointDescription(
            label,
            JointType.BALL,
            parent_frame=frame @ anchor,
            child_frame=anchor,
            q=[0.0, 0.0, 0.0, 1.0],
            qd=[0.0] * 3,
            armature=armature,
            damping=damping,
            friction=friction,
            custom=custom,
            origin=origin,
        )
    length = options["scale"] if kind == MjJoint.SLIDE else 1.0
    axis = np.array(model.jnt_axis[joint])
    reference = length * float(model.qpos0[model.jnt_qposadr[joint]])
    # The coordinate is `ref` at the authored pose of the body, so the joint frame is offset backwards by it.
    back = make_frame(quat=quat_from_axis_angle(axis, -reference))
    if kind == MjJoint.SLIDE:
        back = make_frame(-reference * axis)
    description = DofDescription(
        axis,
        lower=-np.inf,
        upper=np.inf,
        armature=armature,
        damping=damping,
        friction=friction,
        custom=options["custom"].of_dof(joint, name),
    )
    if model.jnt_limited[joint]:
        description.lower, description.upper = (length * float(bound) for bound in model.jnt_range[joint])
    stiffness = float(model.jnt_stiffness[joint])
    if (
        stiffness > 0.0
    ):  # a spring is a drive with a constant target; see mjcf_actuators for joints that have both
        description.mode = JointTargetMode.POSITION
        description.target_ke = stiffness
        description.target_kd = 0.0
        description.target_pos = length * float(model.qpos_spring[model.jnt_qposadr[joint]])
        description.effort_limit = np.inf
    return JointDescription(
        label,
        JointType.PRISMATIC if kind == MjJoint.SLIDE else JointType.REVOLUTE,
        parent_frame=frame @ anchor @ back,
        child_frame=anchor,
        dof=description,
        q=[reference],
        qd=[0.0],
        custom=custom,
        origin=origin,
    )


def _report_joint(
    model: Any, joint: int, dof: int, name: str, kind: int, options: MjcfSettings, report: ImportReport
) -> None:
    if kind == MjJoint.BALL and model.jnt_limited[joint]:
        report.add("limit of a ball joint", name, "it turns without limit")
    kept = kind == MjJoint.BALL and options["custom"].namespace.keeps
    if (
        kind in (MjJoint.BALL, MjJoint.FREE)
        and model.jnt_stiffness[joint] != 0.0
        and not (kept and kept("stiffness of a ball joint", name))
    ):
        report.add("stiffness of a ball or free joint", name, "it has no spring")
    if kind == MjJoint.FREE and np.any(model.body_ipos[model.jnt_bodyid[joint]] != 0.0):
        for quantity in ("armature", "damping", "frictionloss"):
            if np.any(getattr(model, f"dof_{quantity}")[dof : dof + 6] != 0.0):
                report.add(
                    f"{quantity} of a free joint",
                    name,
                    "it acts on the velocity of the centre of mass, in MuJoCo on that of the body's origin",
                    ImportSeverity.NOTE,
                )
    for quantity, row in (("stiffnesspoly", joint), ("dampingpoly", dof)):
        table = getattr(model, f"{'jnt' if quantity[0] == 's' else 'dof'}_{quantity}", None)
        if table is not None and np.any(table[row] != 0.0):
            report.add(f"nonlinear {quantity[:-4]} of a joint", name, "only the linear part acts")
