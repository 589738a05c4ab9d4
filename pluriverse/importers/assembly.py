"""Putting a described robot into a builder."""

from typing import Any

import numpy as np

from pluriverse.geometry import Mesh
from pluriverse.geometry.convex_hull import compute_convex_hull, thicken_plane
from pluriverse.importers.description import (
    WORLD,
    DofDescription,
    JointDescription,
    LoopDescription,
    Placement,
    RobotDescription,
    ShapeDescription,
)
from pluriverse.importers.errors import AssetError
from pluriverse.importers.frames import IDENTITY, Frame, frame_from_transform
from pluriverse.importers.mechanics import find_group_parents, find_initial_poses, find_rigid_groups
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.types import EqType, GeoType, JointType

# Thickness of the plate that replaces a flat collision mesh, relative to its size; boxes of MJCF without
# thickness get the same.
PLATE_THICKNESS = 1e-3


def make_hulls(robot: RobotDescription, mesh_maxhullvert: int, report: ImportReport) -> None:
    """Make the convex hulls of all colliding meshes, so that a failure is found before anything is added.

    A flat mesh, such as that of a marker, becomes a plate.

    Raises:
        AssetError: If a mesh has no hull.
    """
    placed = [("the world", robot.world_shapes)] + [(link.element, link.shapes) for link in robot.links]
    for element, shapes in placed:
        for shape in shapes:
            if shape.mesh is None or shape.type is not GeoType.CONVEX_MESH:
                continue
            try:
                shape.mesh.convex_hull(mesh_maxhullvert)
            except ValueError as error:
                plate = _plate(shape.mesh, mesh_maxhullvert)
                if plate is None:
                    raise AssetError(
                        str(error).rstrip("."),
                        file=robot.source,
                        element=element,
                        value=shape.mesh.name,
                        remedy="Replace the collision mesh by a box, cylinder or sphere.",
                    ) from error
                shape.mesh = plate
                report.add(
                    "collision mesh without thickness",
                    plate.name,
                    f"it is a plate of {PLATE_THICKNESS:g} of its size",
                    ImportSeverity.REPAIR,
                )


def _plate(mesh: Mesh, max_vertices: int) -> Mesh | None:
    """Return the plate that replaces a flat mesh; None for any other mesh."""
    points = thicken_plane(mesh.vertices, PLATE_THICKNESS)
    if points is None:
        return None
    return Mesh(*compute_convex_hull(points, max_vertices, mesh.name), color=mesh.color, name=mesh.name)


def assemble(
    builder: Any,
    robot: RobotDescription,
    *,
    xform: Frame,
    parent_body: int = WORLD,
    enable_self_collisions: bool,
    mesh_maxhullvert: int,
    report: ImportReport,
) -> Placement:
    """Add the robot to `builder` at the pose `xform` in the world; record the indices in `report`.

    With a `parent_body`, `xform` is in the frame of that body, which takes the place of the world.

    Returns:
        The placement of the parts of the asset.
    """
    placement = Placement()
    ground = IDENTITY if parent_body == WORLD else frame_from_transform(builder.body_q[parent_body])
    poses = find_initial_poses(robot, ground @ xform)
    _make_labels_unique(robot)
    first = _counts(builder)
    bodies = _add_bodies(builder, robot, poses, placement)
    filters_parent = _find_filtering_joints(robot)
    trees: dict[int, list[int]] = {}  # joints below each link attached to the world
    tree_of_link: list[int] = []
    joint_of_link: list[int] = []
    for index, link in enumerate(robot.links):
        is_root = link.parent == WORLD
        parent = parent_body if is_root else bodies[link.parent]
        stands = xform if is_root else IDENTITY
        joint = _add_joint(
            builder,
            link.joint,
            parent,
            bodies[index],
            stands,
            placement,
            filters_parent=filters_parent[index],
        )
        joint_of_link.append(joint)
        tree_of_link.append(index if is_root or index in robot.tree_labels else tree_of_link[link.parent])
        trees.setdefault(tree_of_link[index], []).append(joint)
    root_count = sum(link.parent == WORLD for link in robot.links)
    mounted_on = _articulation_of(builder, parent_body, first[1])
    for root, joints in trees.items():
        label = robot.label if root_count == 1 else robot.links[root].label
        if mounted_on < 0 or robot.links[root].parent != WORLD:
            builder.add_articulation(joints, label=robot.tree_labels.get(root, label))
        else:
            builder.joint_articulation[joints] = mounted_on
    for loop in robot.loops:
        placement.constraints[loop.origin] = _close_loop(builder, loop, bodies, xform, parent_body)
    for loop_joint in robot.loop_joints:
        parent, child = loop_joint.links
        stands = xform if parent == WORLD else IDENTITY
        parent = parent_body if parent == WORLD else bodies[parent]
        enabled = loop_joint.enabled
        _add_joint(builder, loop_joint.joint, parent, bodies[child], stands, placement, enabled=enabled)
    for coupling in robot.couplings:
        placement.constraints[coupling.origin] = builder.add_equality_constraint_joint(
            joint_of_link[coupling.link],
            -1 if coupling.leader is None else joint_of_link[coupling.leader],
            polycoef=coupling.polynomial,
            joint1_axis=coupling.axis,
            joint2_axis=None if coupling.leader is None else coupling.leader_axis,
            label=coupling.label,
            enabled=coupling.enabled,
            custom_attributes=coupling.custom,
        )
    shapes = _add_shapes(builder, robot, bodies, xform, parent_body, mesh_maxhullvert, placement)
    _add_filters(builder, robot, shapes, enable_self_collisions)
    if parent_body != WORLD:
        _filter_parent(builder, robot, shapes, parent_body)
    (
        report.bodies,
        report.joints,
        report.coords,
        report.dofs,
        report.shapes,
        report.articulations,
    ) = map(range, first, _counts(builder))
    return placement


def _counts(builder: Any) -> tuple[int, ...]:
    """Return the number of entities of each kind."""
    kinds = ("body", "joint", "joint_coord", "joint_dof", "shape", "articulation")
    return tuple(getattr(builder, f"{kind}_count") for kind in kinds)


def _add_bodies(builder: Any, robot: RobotDescription, poses: list[Frame], placement: Placement) -> list[int]:
    """Add the bodies of all links and return them by link."""
    order = range(len(robot.links)) if robot.body_order is None else robot.body_order
    bodies = [WORLD] * len(robot.links)
    for index in order:
        link = robot.links[index]
        bodies[index] = builder.add_link(
            xform=_transform(poses[index]),
            mass=link.mass_properties.mass,
            com=link.mass_properties.com,
            inertia=link.mass_properties.inertia,
            label=link.label,
            lock_inertia=True,
            is_kinematic=link.is_kinematic,
            custom_attributes=link.custom,
        )
        placement.bodies.update(dict.fromkeys(link.origins, bodies[index]))
        placement.frames.update(link.origins)
    return bodies


def _articulation_of(builder: Any, body: int, first_joint: int) -> int:
    """Return the articulation of a body that joints from `first_joint` on can be part of, else -1.

    The joints of an articulation lie one after the other, so it is one without other joints behind its own.
    """
    if body == WORLD:
        return -1
    owners = np.asarray(builder.joint_articulation)[:first_joint]
    articulation = int(owners[np.asarray(builder.joint_child)[:first_joint] == body].max(initial=-1))
    mine = np.flatnonzero(owners == articulation)
    return articulation if articulation >= 0 and len(mine) == first_joint - mine[0] else -1


def free_label(builder: Any, label: str) -> str:
    """Return the label of a robot, with a number if the world that it is added to has one of that label."""
    taken = set()
    for kind in ("articulation", "body"):  # what is mounted on a robot has no articulation of its own
        here = np.flatnonzero(np.asarray(getattr(builder, f"{kind}_world")) == builder.current_world)
        labels = getattr(builder, f"{kind}_label")
        named = [labels[index] for index in here.tolist()]
        taken |= {name.partition("/")[0] for name in named if kind == "articulation" or "/" in name}
    number, result = 1, label
    while result in taken:
        number += 1
        result = f"{label}_{number}"
    return result


def _make_labels_unique(robot: RobotDescription) -> None:
    """Number shapes of equal labels: a geom and a site may share a name, as may two collisions of a link."""
    used: set[str] = set()
    for shape in [*robot.world_shapes, *(shape for link in robot.links for shape in link.shapes)]:
        label, number = shape.label, 1
        while shape.label in used:
            number += 1
            shape.label = f"{label}_{number}"
        used.add(shape.label)


def _add_joint(
    builder: Any,
    joint: JointDescription,
    parent: int,
    child: int,
    xform: Frame,
    placement: Placement,
    *,
    enabled: bool = True,
    filters_parent: bool = False,
) -> int:
    """Add the joint that connects `child` to `parent`, with its frame moved by `xform`."""
    coord, dof = builder.joint_coord_count, builder.joint_dof_count
    common: dict[str, Any] = {
        "label": joint.label,
        "collision_filter_parent": filters_parent,
        "enabled": enabled,
        "custom_attributes": joint.custom | _custom_of_dofs(joint),
    }
    parts = [(joint.origin, dof)]
    if joint.type is JointType.D6:
        parts = [(part.origin, dof + dof_index) for dof_index, part in enumerate(joint.dofs)]
    for origin, dof_index in parts:
        placement.joints[origin], placement.dofs[origin] = builder.joint_count, dof_index
    if joint.type is JointType.FREE:
        index = builder.add_joint_free(child, **common)
        pose = xform @ Frame(np.array(joint.q[:3]), np.array(joint.q[3:]))
        builder.joint_q[coord : coord + 7] = [*pose.position, *pose.quat]
        rotation = xform.matrix
        builder.joint_qd[dof : dof + 6] = [*(rotation @ joint.qd[:3]), *(rotation @ joint.qd[3:])]
        for name in ("armature", "damping", "friction"):
            if getattr(joint, name):
                getattr(builder, f"joint_{name}")[dof : dof + 6] = getattr(joint, name)
        return index
    common["parent_xform"] = _transform(xform @ joint.parent_frame)
    common["child_xform"] = _transform(joint.child_frame)
    if joint.type is JointType.FIXED:
        return builder.add_joint_fixed(parent, child, **common)
    if joint.type is JointType.DISTANCE:
        least, most = joint.distances
        return builder.add_joint_distance(parent, child, min_distance=least, max_distance=most, **common)
    if joint.type is JointType.BALL:
        index = builder.add_joint_ball(
            parent,
            child,
            armature=joint.armature,
            damping=joint.damping,
            friction=joint.friction,
            **common,
        )
    elif joint.type is JointType.D6:
        axes = [_dof_config(builder, part) for part in joint.dofs]
        linear, angular = axes[: joint.linear_count], axes[joint.linear_count :]
        index = builder.add_joint_d6(parent, child, linear_axes=linear, angular_axes=angular, **common)
        builder.joint_act[dof:] = [part.act or 0.0 for part in joint.dofs]
    else:
        assert joint.dof is not None
        add = builder.add_joint_revolute if joint.type is JointType.REVOLUTE else builder.add_joint_prismatic
        index = add(parent, child, axis=_dof_config(builder, joint.dof), **common)
        builder.joint_act[dof] = joint.dof.act or 0.0
    builder.joint_q[coord : coord + len(joint.q)] = joint.q
    builder.joint_qd[dof : dof + len(joint.qd)] = joint.qd
    return index


def _custom_of_dofs(joint: JointDescription) -> dict[str, Any]:
    """Return the custom attributes of the degrees of freedom, by key and place."""
    result: dict[str, Any] = {}
    for index, dof in enumerate(joint.dofs if joint.dof is None else [joint.dof]):
        for key, value in dof.custom.items():
            result.setdefault(key, {})[index] = value
    return result


def _close_loop(
    builder: Any, loop: LoopDescription, bodies: list[int], xform: Frame, parent_body: int
) -> int:
    """Add the equality constraint of a joint that closes a loop, and return its index."""
    ends = [parent_body if link == WORLD else bodies[link] for link in loop.links]
    frames = [
        xform @ frame if link == WORLD else frame for link, frame in zip(loop.links, loop.frames, strict=True)
    ]
    # The anchor of a weld is given in the second body, that of the others in the first.
    anchor = frames[1 if loop.type is EqType.WELD else 0].position
    index: int = builder.add_equality_constraint(
        loop.type,
        *ends,
        anchor=anchor,
        relpose=_transform(frames[0] @ frames[1].inverse()),
        axis=None if loop.axis is None else frames[0].matrix @ loop.axis,
        torquescale=loop.torquescale if loop.type is EqType.WELD else None,
        label=loop.label,
        enabled=loop.enabled,
        custom_attributes=loop.custom,
    )
    return index


def _dof_config(builder: Any, dof: DofDescription) -> Any:
    """Return the configuration of a degree of freedom; the builder supplies what the asset omits."""
    return builder.default_joint_cfg.merged(
        axis=dof.axis,
        limit_lower=dof.lower,
        limit_upper=dof.upper,
        limit_ke=dof.limit_ke,
        limit_kd=dof.limit_kd,
        armature=dof.armature,
        damping=dof.damping,
        friction=dof.friction,
        effort_limit=dof.effort_limit,
        velocity_limit=dof.velocity_limit,
        actuator_mode=dof.mode,
        target_ke=dof.target_ke,
        target_kd=dof.target_kd,
        target_pos=dof.target_pos,
        target_vel=dof.target_vel,
        target_lower=dof.target_lower,
        target_upper=dof.target_upper,
    )


def _add_shapes(
    builder: Any,
    robot: RobotDescription,
    bodies: list[int],
    xform: Frame,
    parent_body: int,
    mesh_maxhullvert: int,
    placement: Placement,
) -> list[tuple[int, int, ShapeDescription]]:
    """Add all shapes and return (index, link, description) of those that collide."""
    colliding = []
    placed = [(WORLD, shape) for shape in robot.world_shapes]
    placed += [(index, shape) for index, link in enumerate(robot.links) for shape in link.shapes]
    for link, shape in placed:
        config = builder.default_shape_cfg.copy()
        config.density = 0.0  # the mass of a link is that of its description
        for name, value in shape.cfg.items():
            setattr(config, name, value)
        config.is_visible = shape.is_visible
        config.has_shape_collision = config.has_shape_collision and shape.collides
        config.has_particle_collision = config.has_particle_collision and shape.collides
        if link == WORLD:
            config.collision_filter_parent = False  # scenery may touch what is mounted on it
        if shape.is_site:
            config.mark_as_site()
        mesh = shape.mesh
        if mesh is not None and shape.type is GeoType.CONVEX_MESH:
            mesh = mesh.convex_hull(mesh_maxhullvert)
        index = builder.add_shape(
            body=parent_body if link == WORLD else bodies[link],
            type=shape.type,
            xform=_transform(xform @ shape.frame if link == WORLD else shape.frame),
            cfg=config,
            scale=shape.scale,
            src=mesh,
            color=shape.color,
            appearance=shape.appearance,
            label=shape.label,
            custom_attributes=shape.custom,
        )
        placement.shapes[shape.origin] = index
        if config.has_shape_collision:
            colliding.append((index, link, shape))
    return colliding


def _find_filtering_joints(robot: RobotDescription) -> list[bool]:
    """Return, per link, whether its joint keeps the shapes of the link from those of its parent.

    The shapes of the asset are filtered pair by pair, see `_add_filters`. The flags of the joints do the same
    for shapes that are added to the links later.
    """
    groups = find_rigid_groups(robot, mocap_moves=True)
    parents = find_group_parents(robot, groups)
    link_of = {id(shape): index for index, link in enumerate(robot.links) for shape in link.shapes}
    touching = {
        frozenset(groups[link_of[id(shape)]] if id(shape) in link_of else WORLD for shape in pair)
        for pair in robot.paired_shapes
    }
    result = []
    for index, link in enumerate(robot.links):
        group = groups[index]
        fixed_base = link.parent != WORLD and groups[link.parent] == WORLD
        filters = group in parents and (robot.filter_static_parent or not fixed_base)
        result.append(filters and frozenset((group, parents[group])) not in touching)
    return result


def _add_filters(
    builder: Any,
    robot: RobotDescription,
    shapes: list[tuple[int, int, ShapeDescription]],
    enable_self_collisions: bool,
) -> None:
    """Filter the pairs of shapes that do not collide.

    These are neighbours across one joint (links welded together count as one), excluded links and shapes, and
    pairs that the bit masks rule out. Shapes that the asset pairs explicitly always collide.
    """
    groups = find_rigid_groups(robot, mocap_moves=True)
    parents = find_group_parents(robot, groups)
    excluded = {frozenset(pair) for pair in robot.excluded_pairs}
    excluded_shapes = {frozenset((id(a), id(b))) for a, b in robot.excluded_shapes}
    paired_shapes = {frozenset((id(a), id(b))) for a, b in robot.paired_shapes}
    for number, (index_a, link_a, shape_a) in enumerate(shapes):
        group_a = WORLD if link_a == WORLD else groups[link_a]
        for index_b, link_b, shape_b in shapes[:number]:
            group_b = WORLD if link_b == WORLD else groups[link_b]
            if group_a == group_b:
                continue  # the builder knows that shapes welded together do not collide
            if frozenset((id(shape_a), id(shape_b))) in paired_shapes:
                continue
            keep = frozenset((link_a, link_b)) not in excluded
            keep = keep and frozenset((id(shape_a), id(shape_b))) not in excluded_shapes
            if not enable_self_collisions and WORLD not in (link_a, link_b):
                keep = False
            if keep and (parents.get(group_a) == group_b or parents.get(group_b) == group_a):
                # Scenery may touch what is mounted on it; whether a fixed base may, is up to the format.
                static = WORLD in (group_a, group_b)
                keep = static and (WORLD in (link_a, link_b) or not robot.filter_static_parent)
            if keep:
                keep = bool(shape_a.contype & shape_b.conaffinity or shape_b.contype & shape_a.conaffinity)
            if not keep:
                builder.add_shape_collision_filter_pair(index_b, index_a)


def _filter_parent(
    builder: Any, robot: RobotDescription, shapes: list[tuple[int, int, ShapeDescription]], parent_body: int
) -> None:
    """Keep the base of a robot from colliding with the body that it is mounted on."""
    groups = find_rigid_groups(robot)
    bases = {
        groups[index]
        for index, link in enumerate(robot.links)
        if link.parent == WORLD and link.joint.filter_parent
    }
    own = {index for index, _, _ in shapes}
    of_parent = [index for index in np.flatnonzero(builder.shape_body == parent_body) if index not in own]
    for index, link, _ in shapes:
        if link != WORLD and groups[link] in bases:
            for other in of_parent:
                builder.add_shape_collision_filter_pair(int(other), index)


def _transform(frame: Frame) -> tuple[list[float], list[float]]:
    return frame.position.tolist(), frame.quat.tolist()
