"""URDF importer: robots as ROS describes them, read by yourdfpy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry import MassProperties
from pluriverse.importers.assembly import assemble, check_hull_limit, free_label, make_hulls
from pluriverse.importers.asset_files import AssetFiles
from pluriverse.importers.base_attachment import mount, read_base_attachment, split_root_articulation
from pluriverse.importers.description import LinkDescription, RobotDescription
from pluriverse.importers.drive_options import Gains, Limits, give_drives
from pluriverse.importers.mass_repair import repair_masses
from pluriverse.importers.mechanics import merge_welded_links
from pluriverse.importers.report import ImportReport
from pluriverse.importers.solids import mass_from_shapes
from pluriverse.importers.urdf_custom import UrdfCustom
from pluriverse.importers.urdf_document import read_urdf
from pluriverse.importers.urdf_links import JointOrdering, add_links
from pluriverse.importers.urdf_shapes import UrdfShapes, as_collider


def add_urdf(
    builder: Any,
    source: str | Path,
    *,
    xform: Any = None,
    floating: bool | None = None,
    base_joint: Mapping[str, Any] | None = None,
    parent_body: int = -1,
    override_root_xform: bool = False,
    up_axis: Any = "z",
    scale: float = 1.0,
    mesh_scale: float | Sequence[float] = 1.0,
    load_visual_shapes: bool = True,
    hide_visuals: bool = False,
    force_show_colliders: bool = False,
    parse_visuals_as_colliders: bool = False,
    enable_self_collisions: bool = True,
    ignore_inertial_definitions: bool = False,
    collapse_fixed_joints: bool = False,
    planar_joints_turn: bool = False,
    split_bimanual_root_articulation: bool = False,
    joint_ordering: JointOrdering = "dfs",
    bodies_follow_joint_ordering: bool = True,
    mesh_maxhullvert: int = 64,
    package_dirs: Mapping[str, str | Path] | Sequence[str | Path] | None = None,
    drive_gains: Gains = None,
    effort_limit: Limits = None,
    strict: bool = False,
) -> ImportReport:
    """Add the links, joints and shapes of a URDF robot to `builder`.

    See `docs/importers.md` for what becomes of each element.

    Args:
        builder: The `ModelBuilder` to add to; its `default_shape_cfg` and `default_joint_cfg` give what URDF
            does not (material, armature, limit gains).
        source: Path of a URDF file, or its XML text.
        xform: Pose of the base link in the world.
        floating: Whether the base moves freely; otherwise it is fixed to the world.
        base_joint: Joint that holds the base instead of a fixed or free one, as a mapping: `joint_type`
            (fixed, free, revolute, prismatic, ball or d6), `axis` and the other fields of `JointDofConfig`,
            `linear_axes` and `angular_axes` of D6, `child_xform`, `collision_filter_parent`, `label`. At zero
            the base is where it is authored. It excludes `floating`.
        parent_body: Body that the base is mounted on; `xform` is then a pose in that body. -1 is the world.
        override_root_xform: Whether `xform` is the pose of the first body, whatever its pose in the file.
        up_axis: Axis of the file that shall point along the up axis of the builder: "x", "y", "z" or an
            `Axis`.
        scale: Factor on all lengths; masses are kept, inertias follow.
        mesh_scale: Further factor on meshes, or one per axis.
        load_visual_shapes: Whether display geometry is added.
        hide_visuals: Whether display geometry is added invisible.
        force_show_colliders: Whether colliders of links with display geometry are visible too.
        parse_visuals_as_colliders: Whether the display geometry of a link takes the place of its colliders.
        enable_self_collisions: Whether links of the robot collide with each other.
        ignore_inertial_definitions: Whether mass and inertia follow from the colliders and the density of
            `builder.default_shape_cfg` where `<inertial>` gives them; without `<inertial>` they always do.
        collapse_fixed_joints: Whether links behind fixed joints become part of their parents, but for joints
            with the attribute `dont_collapse="true"`.
        planar_joints_turn: Whether planar joints also turn about their axis: three degrees of freedom.
        split_bimanual_root_articulation: Whether what moves on a base that is fixed becomes an articulation
            of its own, `ROBOT/LINK`, if there are several: the two arms of a torso. The base keeps `ROBOT`.
        joint_ordering: Order of the links: "dfs" and "bfs" from the base, siblings as in the file;
            "dfs_by_name" with siblings by the names of their joints; or None for the order of the joints in
            the file.
        bodies_follow_joint_ordering: Whether bodies are in the order of the joints that hold them; otherwise
            in the order of the links in the file.
        mesh_maxhullvert: Largest number of vertices of the convex hull of a collision mesh.
        package_dirs: Folders that contain the packages of `package://` references, or folders by package
            name.
        drive_gains: Stiffness and damping of drives for joints that the asset has none for [N·m/rad and
            N·m·s/rad, of sliding joints N/m and N·s/m], which hold them where they begin; or a mapping from
            names of joints (with wildcards) to such pairs. None leaves them undriven.
        effort_limit: Largest effort of drives that the asset has no limit for [N·m or N]; or a mapping as
            above.
        strict: Whether to raise for features that cannot be represented, rather than warn.

    Returns:
        What was added, and what of the robot could not be represented.

    Raises:
        AssetError: If the document cannot be read, or a value in it is impossible.
        AssetFileError: If a collision mesh is missing.
        UnsupportedAssetError: If there are features that cannot be represented and `strict` is set.
        ValueError: If an option is out of range, or contradicts another.
    """
    if not 0.0 < scale < np.inf:
        raise ValueError(f"add_urdf: scale is {scale}, but it must be finite and > 0.")
    if joint_ordering not in ("dfs", "bfs", "dfs_by_name", None):
        raise ValueError(
            f"add_urdf: joint_ordering is {joint_ordering!r}, but it is 'dfs', 'bfs', 'dfs_by_name' or None."
        )
    check_hull_limit("add_urdf", mesh_maxhullvert)
    factors = np.asarray(mesh_scale, dtype=np.float64)
    if factors.shape not in ((), (3,)) or not np.all(np.isfinite(factors) & (factors != 0.0)):
        raise ValueError(
            f"add_urdf: mesh_scale is {mesh_scale}, but it is one factor or three, none of them 0."
        )
    attachment = read_base_attachment(
        "add_urdf",
        builder,
        xform=xform,
        up_axis=up_axis,
        floating=floating,
        base_joint=base_joint,
        parent_body=parent_body,
        override_root_xform=override_root_xform,
    )
    report = ImportReport(str(source))
    document = read_urdf(source, report)
    robot = RobotDescription(free_label(builder, document.robot.name), document.name)
    report.label = robot.label
    links = add_links(
        robot,
        document,
        floating=bool(floating),
        scale=scale,
        joint_ordering=joint_ordering,
        ignore_inertial_definitions=ignore_inertial_definitions,
        planar_joints_turn=planar_joints_turn,
        report=report,
    )
    pose = mount(robot, attachment)
    custom = UrdfCustom(builder, document.root, document.name)
    custom.describe(robot)
    give_drives("add_urdf", robot, drive_gains, effort_limit)
    shapes = UrdfShapes(
        document,
        AssetFiles(document.path, package_dirs),
        scale=scale,
        mesh_scale=factors,
        custom=custom,
        report=report,
    )
    for link, authored in zip(robot.links, links, strict=True):
        link.shapes = shapes.colliders(authored, link.label)
        visuals = []
        if load_visual_shapes or parse_visuals_as_colliders:
            visuals = shapes.visuals(authored, link.label)
        if parse_visuals_as_colliders and visuals:
            link.shapes = [as_collider(shape) for shape in visuals]
        elif visuals:
            show = not hide_visuals
            for shape in link.shapes:
                shape.is_visible = force_show_colliders or not show
            for shape in visuals:
                shape.is_visible = show
            link.shapes += visuals
    make_hulls(robot, mesh_maxhullvert, report)
    for link, authored in zip(robot.links, links, strict=True):
        if authored.inertial is None or ignore_inertial_definitions:
            density = document.density(link.name, builder.default_shape_cfg.density)
            link.mass_properties = mass_from_shapes(link, density, mesh_maxhullvert)
        elif authored.inertial.inertia is None and link.mass_properties.mass > 0.0:
            link.mass_properties = _with_inertia_of_shapes(link, mesh_maxhullvert)
    repair_masses(
        robot,
        report,
        armature_default=builder.default_joint_cfg.armature,
        mesh_maxhullvert=mesh_maxhullvert,
    )
    if collapse_fixed_joints:
        robot = merge_welded_links(robot, report)
    if split_bimanual_root_articulation:
        split_root_articulation(robot)
    if not bodies_follow_joint_ordering:
        places = {link.name: place for place, link in enumerate(document.robot.links)}
        robot.body_order = sorted(range(len(robot.links)), key=lambda link: places[robot.links[link].name])
    report.emit(strict=strict)
    assemble(
        builder,
        robot,
        xform=pose,
        parent_body=attachment.parent_body,
        enable_self_collisions=enable_self_collisions,
        mesh_maxhullvert=mesh_maxhullvert,
        report=report,
    )
    custom.set_rest(report.articulations)
    return report


def _with_inertia_of_shapes(link: LinkDescription, mesh_maxhullvert: int) -> MassProperties:
    """Return the mass properties of a link whose `<inertial>` has no inertia, with that of its shapes."""
    mass, com, inertia = link.mass_properties
    shapes = mass_from_shapes(link, 1000.0, mesh_maxhullvert)
    if shapes.mass == 0.0:
        return MassProperties(mass, com, inertia)
    return MassProperties(mass, com, shapes.inertia * (mass / shapes.mass))
