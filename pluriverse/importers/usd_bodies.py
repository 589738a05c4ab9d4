"""USD rigid bodies and joints as trees of links.

The bodies are the vertices of a graph, the joints its edges. A spanning tree of each connected part, rooted
at the world or at the root of its articulation, becomes links; the other joints close loops. So do distance
joints and disabled joints, which move nothing. Articulations are not required: a body without a joint moves
freely.
"""

import dataclasses
from collections import deque
from typing import Any

import numpy as np

from pluriverse.importers.description import (
    WORLD,
    JointDescription,
    LinkDescription,
    LoopJointDescription,
    RobotDescription,
)
from pluriverse.importers.frames import Frame
from pluriverse.importers.options import UsdSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_joints import JOINT_KINDS, UsdJoint, UsdJoints, joint_frames
from pluriverse.importers.usd_mass import NOTHING
from pluriverse.importers.usd_source import UsdSource, applied_schemas, authored
from pluriverse.types import GeoType, JointType

ARTICULATION_ROOT = "PhysicsArticulationRootAPI"
STAGE = ""  # path of the world among the bodies


@dataclasses.dataclass
class UsdBody:
    """A rigid body of the stage."""

    prim: Any
    """Its prim."""
    description: Any
    """Its description by the physics parser."""
    frame: Frame
    """Pose on the stage [m]."""
    articulation: str = ""
    """Path of the articulation it belongs to, if any."""
    link: int = WORLD
    """Index of its link."""

    @property
    def is_kinematic(self) -> bool:
        """Whether its motion is prescribed."""
        return bool(self.description.kinematicBody)


@dataclasses.dataclass
class _Edge:
    """A joint as seen from a body: the body at its other end."""

    joint: UsdJoint
    other: str
    reverse: bool  # the other is body 0
    stacked: list[UsdJoint] = dataclasses.field(default_factory=list)  # further joints of the same two bodies


def read_bodies(source: UsdSource, options: UsdSettings, report: ImportReport) -> dict[str, UsdBody]:
    """Return the bodies of the stage that move or may be fixed, by path, in the order of the stage."""
    bodies = {}
    for path, description in source.objects("RigidBody"):
        prim = source.prims[path]
        if not description.rigidBodyEnabled:
            if options["only_load_enabled_rigid_bodies"]:
                continue
            report.add(
                "rigidBodyEnabled = false",
                path,
                "it is a body as the others; only_load_enabled_rigid_bodies=True makes it part of the world",
            )
        if authored_animation(prim):
            report.add("animation", path, "it starts at the default time and moves by itself")
        bodies[path] = UsdBody(prim, description, source.world_frame(prim))
    for path, description in source.objects("Articulation"):
        for member in map(str, description.articulatedBodies):
            if member in bodies:
                bodies[member].articulation = path
    for body in bodies.values():
        # The parser knows no articulation without joints between bodies.
        above = body.prim
        while not body.articulation and above:
            if ARTICULATION_ROOT in applied_schemas(above):
                body.articulation = str(above.GetPath())
            above = above.GetParent()
    return bodies


def authored_animation(prim: Any) -> bool:
    """Return whether the pose of a prim changes with time on the stage."""
    from pxr import UsdGeom

    return bool(UsdGeom.Xformable(prim).TransformMightBeTimeVarying())


def add_links(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    options: UsdSettings,
    report: ImportReport,
) -> None:
    """Add a link per body, parents first, without mass and shapes yet."""
    joints = _read_joints(source, bodies, options, report)
    edges, closing = _spanning_trees(bodies, joints, source, report)
    maker = UsdJoints(source, options, report)
    for root in _roots(source, bodies, edges):
        if root != STAGE:
            _add_root(robot, bodies[root], root, options)
            if bodies[root].is_kinematic:
                report.add(
                    "kinematic body",
                    root,
                    "it stands still until its state is written, or joint_target_vel in the mode VELOCITY",
                    ImportSeverity.NOTE,
                )
        if root != STAGE and not edges[root] and not bodies[root].articulation:
            robot.tree_labels[bodies[root].link] = root  # a loose body, whatever else the stage holds
        for parent, edge in _walk(source, root, edges, options):
            _add_link(robot, bodies, parent, edge, maker)
            if parent == STAGE and options["floating"] and bodies[edge.other].articulation:
                report.add(
                    "floating=True",
                    edge.other,
                    f"joint '{edge.joint.path}' fixes it to the world nevertheless",
                )
    for joint in closing:
        links = tuple(bodies[path].link if path else WORLD for path in joint.bodies)
        loop = maker.closure(joint, (links[0], links[1]))
        if loop is not None:
            robot.loops.append(loop)
        else:
            _add_loop_joint(robot, bodies, joint, maker, report)
        if joint.description.jointEnabled and not joint.description.collisionEnabled:
            robot.excluded_pairs.append((links[0], links[1]))
    _set_velocities(robot, source, bodies, report)


def fix_what_cannot_move(robot: RobotDescription, report: ImportReport, *, is_mounted: bool) -> None:
    """Fix kinematic bodies that carry colliding planes, or that belong to an asset mounted on a body.

    Call it once the links have their shapes.
    """
    for link in robot.links:
        flat = any(shape.type is GeoType.PLANE and shape.collides for shape in link.shapes)
        if not (link.is_kinematic and (flat or is_mounted)):
            continue
        pose = Frame(np.array(link.joint.q[:3]), np.array(link.joint.q[3:]))
        link.joint = JointDescription(link.joint.label, JointType.FIXED, parent_frame=pose)
        link.is_kinematic = False
        why = "planes collide only if they are fixed" if flat else "it is mounted on a body"
        report.add(
            f"kinematic body that is fixed, because {why}",
            link.label,
            "it cannot be moved",
            ImportSeverity.NOTE,
        )


def _read_joints(
    source: UsdSource, bodies: dict[str, UsdBody], options: UsdSettings, report: ImportReport
) -> list[UsdJoint]:
    joints = []
    for kind in JOINT_KINDS:
        for path, description in source.objects(kind):
            if not description.jointEnabled and options["only_load_enabled_joints"]:
                report.add("jointEnabled = false", path, "it is left out", ImportSeverity.NOTE)
                continue
            if kind == "CustomJoint":
                report.add(kind, path, "it holds nothing")
                continue
            ends = (str(description.body0), str(description.body1))
            for side, end in enumerate(ends):
                target = str(getattr(description, f"rel{side}"))
                if target and not source.stage.GetPrimAtPath(target):
                    raise source.error(
                        path,
                        f"physics:body{side} is '{target}', and there is no such prim",
                        value=target,
                        remedy="Correct the relationship; without a target it is the world.",
                    )
                others = source.prims[path].GetRelationship(f"physics:body{side}").GetTargets()
                if len(others) > 1:
                    report.add(
                        f"several targets of physics:body{side}",
                        path,
                        f"it is '{target}'",
                        ImportSeverity.REPAIR,
                    )
                if end and end not in source.prims:
                    report.add(
                        "joint to a body that is left out",
                        path,
                        "it holds nothing",
                        ImportSeverity.NOTE,
                    )
                    break
            else:
                first, second = joint_frames(source, path, description)
                # A body that is not a link (a disabled one) is part of the world.
                names, frames = [], []
                for end, frame in zip(ends, (first, second), strict=True):
                    stands = end if end in bodies else STAGE
                    if end and stands == STAGE:
                        frame = source.world_frame(source.prims[end]) @ frame
                    names.append(stands)
                    frames.append(frame)
                if names[0] == names[1]:
                    what = names[0] or "the world"
                    if names[0] == STAGE and any(ends):
                        continue  # both ends stand still
                    raise source.error(
                        path,
                        f"it joins {what} to itself",
                        value=what,
                        remedy="Give physics:body0 and physics:body1 two different rigid bodies, or leave "
                        "one out for the world.",
                    )
                joints.append(UsdJoint(path, kind, description, (names[0], names[1]), (frames[0], frames[1])))
    return sorted(joints, key=lambda joint: source.order(joint.path))


def _spanning_trees(
    bodies: dict[str, UsdBody], joints: list[UsdJoint], source: UsdSource, report: ImportReport
) -> tuple[dict[str, list[_Edge]], list[UsdJoint]]:
    """Return, per body (and the world), its tree joints, and the loop joints.

    Kruskal's algorithm; joints excluded from articulations come last, so that they become loop joints.
    Distance joints and disabled joints are always loop joints, since they leave the bodies free.
    """
    part = {path: path for path in (STAGE, *bodies)}

    def find(path: str) -> str:
        while part[path] != path:
            part[path] = part[part[path]]
            path = part[path]
        return path

    edges: dict[str, list[_Edge]] = {path: [] for path in part}
    for path, body in bodies.items():
        if body.is_kinematic:
            part[find(path)] = find(STAGE)
    closing: list[UsdJoint] = []
    for joint in sorted(joints, key=lambda joint: bool(joint.description.excludeFromArticulation)):
        if all(path == STAGE or bodies[path].is_kinematic for path in joint.bodies):
            report.add("joint of kinematic bodies", joint.path, "it holds nothing", ImportSeverity.NOTE)
            continue
        ends = [find(path) for path in joint.bodies]
        moves_nothing = joint.kind == "DistanceJoint" or not joint.description.jointEnabled
        if ends[0] == ends[1] or moves_nothing:
            adds = not moves_nothing and _adds_mobility(source, bodies, joint)
            stack = _same_pair(edges, joint) if adds else None
            (closing if stack is None else stack).append(joint)
            continue
        part[ends[1]] = ends[0]
        stacked: list[UsdJoint] = []
        edges[joint.bodies[0]].append(_Edge(joint, joint.bodies[1], reverse=False, stacked=stacked))
        edges[joint.bodies[1]].append(_Edge(joint, joint.bodies[0], reverse=True, stacked=stacked))
    for around in edges.values():
        around.sort(key=lambda edge: source.order(edge.joint.path))
    return edges, closing


def _adds_mobility(source: UsdSource, bodies: dict[str, UsdBody], joint: UsdJoint) -> bool:
    """Return whether several joints between the same two bodies move them one after the other.

    Those of MuJoCo do, unless their articulation says otherwise; converters write none around a single body.
    """
    paths = {bodies[path].articulation for path in joint.bodies if path in bodies}
    prims = [source.stage.GetPrimAtPath(path) for path in paths if path]
    said = [authored(prim, "newton:jointsAddMobility") for prim in prims if prim]
    if any(value is not None for value in said):
        return any(value is True for value in said)
    return "MjcJointAPI" in applied_schemas(source.prims[joint.path])


def _same_pair(edges: dict[str, list[_Edge]], joint: UsdJoint) -> list[UsdJoint] | None:
    """Return the joints stacked on one that connects the same bodies in the same order, if there is one."""
    for edge in edges[joint.bodies[0]]:
        if edge.joint.bodies == joint.bodies:
            return edge.stacked
    return None


def _roots(source: UsdSource, bodies: dict[str, UsdBody], edges: dict[str, list[_Edge]]) -> list[str]:
    """Return the roots of the trees: the world, fixed bodies, and one body of each floating part."""
    roots_of_file = {
        str(path)
        for _, description in source.objects("Articulation")
        for path in description.rootPrims
        if str(path) in bodies
    }
    roots = [STAGE, *(path for path, body in bodies.items() if body.is_kinematic)]
    visited = set(roots)
    for root in roots:
        visited |= _connected(root, edges)
    for path in bodies:
        if path in visited:
            continue
        connected = _connected(path, edges)
        roots.append(next((member for member in bodies if member in connected & roots_of_file), path))
        visited |= connected
    return roots


def _connected(path: str, edges: dict[str, list[_Edge]]) -> set[str]:
    found, pending = {path}, [path]
    while pending:
        for edge in edges[pending.pop()]:
            if edge.other not in found:
                found.add(edge.other)
                pending.append(edge.other)
    return found


def _walk(
    source: UsdSource, root: str, edges: dict[str, list[_Edge]], options: UsdSettings
) -> list[tuple[str, _Edge]]:
    """Return (parent, joint to the child) of a tree, parents before children."""
    ordered: list[tuple[str, _Edge]] = []
    placed = {root}
    pending = deque((root, edge) for edge in edges[root])
    while pending:
        if options["joint_ordering"] is None:
            # The order of the stage, except that a child waits for its parent.
            first = min(pending, key=lambda item: source.order(item[1].joint.path))
            pending.remove(first)
            parent, edge = first
        else:
            parent, edge = pending.popleft()
        if edge.other in placed:
            continue
        placed.add(edge.other)
        ordered.append((parent, edge))
        below = [(edge.other, further) for further in edges[edge.other]]
        if options["joint_ordering"] == "dfs":
            pending.extendleft(reversed(below))
        else:
            pending.extend(below)
    return ordered


def _add_root(robot: RobotDescription, body: UsdBody, path: str, options: UsdSettings) -> None:
    """Add a body without a joint: free, kinematic, or fixed at its pose."""
    is_base = bool(body.articulation)
    if is_base and options["floating"] is False and not body.is_kinematic:
        joint = JointDescription(f"{path}/fixed_base", JointType.FIXED, parent_frame=body.frame)
    else:
        joint = JointDescription(
            f"{path}/floating_base",
            JointType.FREE,
            q=[*body.frame.position, *body.frame.quat],
            qd=[0.0] * 6,
        )
    _append(robot, body, path, WORLD, joint)
    robot.links[-1].is_kinematic = body.is_kinematic


def _add_link(
    robot: RobotDescription, bodies: dict[str, UsdBody], parent: str, edge: _Edge, maker: UsdJoints
) -> None:
    body = bodies[edge.other]
    link = WORLD if parent == STAGE else bodies[parent].link
    joints = [edge.joint, *edge.stacked]
    link, joint = _add_chain(robot, bodies, link, joints[0], maker, reverse=edge.reverse)
    for below in joints[1:]:
        # Links in between have the frame of the child, which all joints of a stack share.
        link = _add_intermediate(robot, joint, joints[0].path, link)
        side = 0 if edge.reverse else 1
        frame = below.frames[side]
        again = dataclasses.replace(
            below, frames=(frame, frame), bodies=(below.bodies[side], below.bodies[side])
        )
        link, joint = _add_chain(robot, bodies, link, again, maker, reverse=edge.reverse)
    _append(robot, body, edge.other, link, joint)


def _add_loop_joint(
    robot: RobotDescription,
    bodies: dict[str, UsdBody],
    joint: UsdJoint,
    maker: UsdJoints,
    report: ImportReport,
) -> None:
    """Add a loop joint that does more than constrain."""
    enabled = bool(joint.description.jointEnabled)
    if not enabled and joint.kind != "DistanceJoint":
        report.add(
            "jointEnabled = false of a joint with drive, limits, losses or slides",
            joint.path,
            "it is left out",
        )
        return
    first, second = joint.bodies
    # Its child is the body that is split: one that moves.
    reverse = second == STAGE or (bodies[second].is_kinematic and first != STAGE)
    parent, child = (second, first) if reverse else (first, second)
    link = WORLD if parent == STAGE else bodies[parent].link
    link, last = _add_chain(robot, bodies, link, joint, maker, reverse=reverse)
    robot.loop_joints.append(LoopJointDescription((link, bodies[child].link), last, enabled=enabled))


def _add_chain(
    robot: RobotDescription,
    bodies: dict[str, UsdBody],
    link: int,
    edge: UsdJoint,
    maker: UsdJoints,
    *,
    reverse: bool,
) -> tuple[int, JointDescription]:
    """Add the chain between two bodies, from a link on; return its last link and last joint."""
    poses = [bodies[path].frame if path else Frame(np.zeros(3), np.eye(4)[3]) for path in edge.bodies]
    chain = maker.chain(edge, (poses[0], poses[1]), reverse=reverse)
    for joint in chain[:-1]:
        link = _add_intermediate(robot, joint, edge.path, link)
    return link, chain[-1]


def _add_intermediate(robot: RobotDescription, joint: JointDescription, path: str, parent: int) -> int:
    """Add a link that only connects two joints, and return its index."""
    robot.links.append(
        LinkDescription(
            name=joint.label,
            label=f"{joint.label}_link",
            element=f"prim '{path}'",
            parent=parent,
            joint=joint,
            mass_properties=NOTHING,
            is_intermediate=True,
        )
    )
    return len(robot.links) - 1


def _append(robot: RobotDescription, body: UsdBody, path: str, parent: int, joint: JointDescription) -> None:
    """Add the link of a body."""
    body.link = len(robot.links)
    robot.links.append(
        LinkDescription(
            name=path.rpartition("/")[2],
            label=path,
            element=f"prim '{path}'",
            parent=parent,
            joint=joint,
            mass_properties=NOTHING,
        )
    )
    if body.articulation:
        root = body.link
        while robot.links[root].parent != WORLD:
            root = robot.links[root].parent
        robot.tree_labels.setdefault(root, body.articulation)


def _set_velocities(
    robot: RobotDescription, source: UsdSource, bodies: dict[str, UsdBody], report: ImportReport
) -> None:
    """Give free joints the velocities of their bodies; report those of bodies with other joints."""
    for path, body in bodies.items():
        joint = robot.links[body.link].joint
        velocity = np.array([body.description.linearVelocity, body.description.angularVelocity], dtype=float)
        for name, vector in zip(("physics:velocity", "physics:angularVelocity"), velocity, strict=True):
            for component in vector:
                source.number(path, name, component)
        if not velocity.any():
            continue
        if body.is_kinematic:
            report.add(
                "velocity of a kinematic body", path, "it stands still until a velocity or target moves it"
            )
            continue
        if joint.type is not JointType.FREE:
            consequence = "its joints start at their own state:*:physics:velocity"
            report.add("velocity of a body that is held", path, consequence)
            continue
        rotation = source.parent_rotation(body.prim)  # velocities are given in the space of the transform
        joint.qd = [*(source.length * rotation @ velocity[0]), *(np.pi / 180.0 * rotation @ velocity[1])]
