"""URDF links and joints as links of a described robot."""

import dataclasses
from collections import deque

import numpy as np

from pluriverse.geometry import MassProperties, transform_mass_properties
from pluriverse.importers.description import (
    WORLD,
    CouplingDescription,
    DofDescription,
    JointDescription,
    LinkDescription,
    RobotDescription,
)
from pluriverse.importers.frames import Frame
from pluriverse.importers.options import JointOrdering
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_document import UrdfDocument
from pluriverse.importers.urdf_elements import Joint, Link
from pluriverse.types import JointType

# Range [rad] from which a continuous joint was meant to turn freely: a bit less than 3.14 to either side.
_TURN = 6.25


def add_links(
    robot: RobotDescription,
    document: UrdfDocument,
    *,
    floating: bool,
    scale: float,
    joint_ordering: JointOrdering,
    ignore_inertial_definitions: bool,
    planar_joints_turn: bool,
    report: ImportReport,
) -> list[Link]:
    """Add a link per URDF link; return these in the same order.

    Links without `<inertial>` have no mass yet.
    """
    links = {link.name: link for link in document.robot.links}
    ordered = _order(document, joint_ordering)
    index_of: dict[str, int] = {}
    for name, joint in ordered:
        link = links[name]
        parent = WORLD if joint is None else index_of[joint.parent]
        if joint is None:
            if floating and _floats_already(document, name):
                floating = False
                report.add("base that holds a floating joint", name, "it stands still", ImportSeverity.NOTE)
            description = _base_joint(robot.label, floating)
        else:
            description = _joint(joint, robot.label, scale, planar_joints_turn, report)
            description.is_kept = str(joint.element.get("dont_collapse")).lower() == "true"
            if description.type is JointType.FREE:
                parent = _detach(robot, parent, description, joint, report)
        index_of[name] = len(robot.links)
        robot.links.append(
            LinkDescription(
                name=name,
                label=f"{robot.label}/{name}",
                element=f"link '{name}' (line {link.element.sourceline})",
                parent=parent,
                joint=description,
                mass_properties=_inertial(link, scale, ignore_inertial_definitions, report),
            )
        )
    for _, joint in ordered:
        if joint is not None and joint.mimic is not None:
            _add_mimic(robot, joint, index_of, document, scale, report)
    return [links[name] for name, _ in ordered]


def _add_mimic(
    robot: RobotDescription,
    joint: Joint,
    index_of: dict[str, int],
    document: UrdfDocument,
    scale: float,
    report: ImportReport,
) -> None:
    """Add the coupling of a `<mimic>`: q = multiplier * q of the other joint + offset."""
    mimic = joint.mimic
    assert mimic is not None
    leader = next((other for other in document.robot.joints if other.name == mimic.joint), None)
    links = [index_of[part.child] for part in (joint, leader) if part is not None]
    scalar = all(robot.links[link].joint.dof is not None for link in links)
    if robot.links[links[0]].joint.type is JointType.FIXED:
        report.add("<mimic> on a fixed joint", joint.name, "it stays fixed", ImportSeverity.NOTE)
        return
    is_locked = leader is not None and leader.type == "fixed" and robot.links[links[0]].joint.dof is not None
    if not is_locked and (leader is None or leader is joint or not scalar):
        report.add(
            "<mimic>",
            joint.name,
            "it moves on its own: a joint of one axis can follow only another one of one axis",
        )
        return
    assert leader is not None
    lengths = [scale if part.type == "prismatic" else 1.0 for part in (joint, leader)]
    slope = lengths[0] / lengths[1] * mimic.multiplier
    polynomial = np.array([lengths[0] * mimic.offset, slope, 0.0, 0.0, 0.0])
    label = f"{robot.label}/{joint.name}_mimic"
    if is_locked:  # what it follows is fixed at 0
        polynomial[1] = 0.0
        report.add("<mimic> of a fixed joint", joint.name, "it is held at its offset", ImportSeverity.NOTE)
    robot.couplings.append(CouplingDescription(label, links[0], None if is_locked else links[1], polynomial))


def _order(document: UrdfDocument, joint_ordering: JointOrdering) -> list[tuple[str, Joint | None]]:
    """Return (link, joint to its parent) with parents before children."""
    children: dict[str, list[Joint]] = {link.name: [] for link in document.robot.links}
    for joint in document.robot.joints:
        children[joint.parent].append(joint)
    if joint_ordering == "dfs_by_name":
        for siblings in children.values():
            siblings.sort(key=lambda joint: joint.name)
    jointed = {joint.child for joint in document.robot.joints}
    root = next(link.name for link in document.robot.links if link.name not in jointed)
    ordered: list[tuple[str, Joint | None]] = [(root, None)]
    if joint_ordering is None:
        placed, waiting = {root}, list(document.robot.joints)
        while waiting:  # the order of the file, except that a child waits for its parent
            joint = next(joint for joint in waiting if joint.parent in placed)
            waiting.remove(joint)
            placed.add(joint.child)
            ordered.append((joint.child, joint))
        return ordered
    pending = deque(children[root])
    while pending:
        joint = pending.popleft()
        ordered.append((joint.child, joint))
        if joint_ordering == "bfs":
            pending.extend(children[joint.child])
        else:
            pending.extendleft(reversed(children[joint.child]))
    return ordered


def _floats_already(document: UrdfDocument, root: str) -> bool:
    """Return whether the base has no mass or shapes and only holds what floats, such as a link `world`."""
    link = next(link for link in document.robot.links if link.name == root)
    inertial = link.inertial
    kinds = {joint.type for joint in document.robot.joints if joint.parent == root}
    return kinds == {"floating"} and not link.collisions and (inertial is None or not inertial.mass)


def _base_joint(label: str, floating: bool) -> JointDescription:
    if floating:
        return JointDescription(
            f"{label}/floating_base", JointType.FREE, q=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], qd=[0.0] * 6
        )
    return JointDescription(f"{label}/fixed_base", JointType.FIXED)


def _joint(
    joint: Joint, label: str, scale: float, planar_joints_turn: bool, report: ImportReport
) -> JointDescription:
    frame = joint.origin.scaled(scale)
    label = f"{label}/{joint.name}"
    element = f"joint '{joint.name}'"
    if joint.element.find("safety_controller") is not None:
        report.add("<safety_controller>", joint.name, "it does not act", ImportSeverity.NOTE)
    if joint.type == "fixed":
        return JointDescription(label, JointType.FIXED, parent_frame=frame)
    if joint.type == "floating":
        return JointDescription(label, JointType.FREE, q=[*frame.position, *frame.quat], qd=[0.0] * 6)
    if joint.type == "spherical":
        return _ball_joint(joint, label, frame, report)
    length = scale if joint.type in ("prismatic", "planar") else 1.0
    dof = DofDescription(joint.axis / np.linalg.norm(joint.axis))
    limit = joint.limit
    if limit is not None:
        dof.effort_limit = limit.effort
        dof.velocity_limit = None if limit.velocity is None else length * limit.velocity
    if joint.type != "continuous":
        if limit is None or (limit.lower is None and limit.upper is None):
            report.add("missing limits", element, "it moves without limits", ImportSeverity.NOTE)
        else:
            dof.lower, dof.upper = length * (limit.lower or 0.0), length * (limit.upper or 0.0)
            if not dof.lower <= 0.0 <= dof.upper:
                report.add(
                    "position 0 outside the limits",
                    element,
                    "it starts there nevertheless; set joint_q",
                    ImportSeverity.NOTE,
                )
    elif limit is not None and 0.0 < (limit.upper or 0.0) - (limit.lower or 0.0) < _TURN:
        # Exporters write all sorts of ranges here; only one of less than a turn may have been meant.
        report.add(
            "range of a continuous joint",
            element,
            "it turns without limits, as the format has it; one of type 'revolute' keeps to its range",
            ImportSeverity.WARNING,
        )
    if dof.lower is None:
        dof.lower, dof.upper = -np.inf, np.inf
    dof.damping, dof.friction = joint.damping, joint.friction
    if joint.type == "planar":
        dofs = [dataclasses.replace(dof, axis=direction) for direction in _plane(dof.axis)]
        if planar_joints_turn:
            dofs.append(dataclasses.replace(dof, lower=-np.inf, upper=np.inf, velocity_limit=None))
        else:
            report.add(
                "planar joint", joint.name, "it slides in its plane without rotating", ImportSeverity.NOTE
            )
        rest = [0.0] * len(dofs)
        return JointDescription(
            label,
            JointType.D6,
            parent_frame=frame,
            dofs=dofs,
            linear_count=2,
            q=rest,
            qd=list(rest),
        )
    kind = JointType.PRISMATIC if joint.type == "prismatic" else JointType.REVOLUTE
    return JointDescription(label, kind, parent_frame=frame, dof=dof, q=[0.0], qd=[0.0])


def _ball_joint(joint: Joint, label: str, frame: Frame, report: ImportReport) -> JointDescription:
    """Return the joint of the type `spherical`, which is not part of URDF but in use."""
    if joint.limit is not None:
        report.add("limit of a spherical joint", joint.name, "it turns without limit")
    return JointDescription(
        label,
        JointType.BALL,
        parent_frame=frame,
        q=[0.0, 0.0, 0.0, 1.0],
        qd=[0.0] * 3,
        damping=joint.damping or 0.0,
        friction=joint.friction or 0.0,
    )


def _plane(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that make a right-handed frame with a unit normal: x and y for z."""
    # The projection of y onto the plane; for a normal near y it is too short, so x is used.
    other = np.array([0.0, 1.0, 0.0] if abs(normal[1]) < 0.9 else [1.0, 0.0, 0.0])
    second = other - (other @ normal) * normal
    second /= np.linalg.norm(second)
    return np.cross(second, normal), second


def _detach(
    robot: RobotDescription, parent: int, joint: JointDescription, urdf_joint: Joint, report: ImportReport
) -> int:
    """Return the parent of a floating joint, the world, and let its coordinates be those in the world.

    A floating joint holds nothing, so that the link moves the same whatever its coordinates refer to.
    """
    pose = Frame(np.array(joint.q[:3]), np.array(joint.q[3:]))
    index = parent
    can_move = False
    while index != WORLD:
        above = robot.links[index].joint
        can_move = can_move or above.type is not JointType.FIXED
        pose = above.parent_frame @ above.motion() @ above.child_frame.inverse() @ pose
        index = robot.links[index].parent
    if can_move:
        report.add(
            "floating joint on a link that moves",
            urdf_joint.name,
            "its coordinates are those in the world",
            ImportSeverity.NOTE,
        )
    joint.q = [*pose.position, *pose.quat]
    return WORLD


def _inertial(
    link: Link, scale: float, ignore_inertial_definitions: bool, report: ImportReport
) -> MassProperties:
    inertial = link.inertial
    if inertial is None or ignore_inertial_definitions:
        return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
    inertia = np.zeros((3, 3)) if inertial.inertia is None else inertial.inertia
    if inertial.mass == 0.0:
        if inertia.any():
            report.add("inertia without mass", f"link '{link.name}'", "the link has neither")
        return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
    frame = inertial.origin.scaled(scale)
    part = MassProperties(inertial.mass, np.zeros(3), scale**2 * inertia)
    return transform_mass_properties(part, frame.position, frame.matrix)
