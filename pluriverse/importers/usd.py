"""USD importer: bodies, joints and colliders of UsdPhysics, read by usd-core's physics parser."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry import MassProperties
from pluriverse.importers.assembly import assemble, check_hull_limit, make_hulls
from pluriverse.importers.base_attachment import mount, read_base_attachment
from pluriverse.importers.description import RobotDescription, ShapeDescription
from pluriverse.importers.drive_options import Gains, Limits, give_drives
from pluriverse.importers.errors import AssetError
from pluriverse.importers.frames import IDENTITY
from pluriverse.importers.mass_repair import repair_masses
from pluriverse.importers.mechanics import merge_welded_links
from pluriverse.importers.report import ImportReport
from pluriverse.importers.urdf_links import JointOrdering
from pluriverse.importers.usd_bodies import UsdBody, add_links, fix_what_cannot_move, read_bodies
from pluriverse.importers.usd_cameras import add_cameras
from pluriverse.importers.usd_couplings import add_couplings
from pluriverse.importers.usd_custom import UsdCustom
from pluriverse.importers.usd_filters import add_filters
from pluriverse.importers.usd_mass import body_mass, collider_mass
from pluriverse.importers.usd_materials import UsdMaterials
from pluriverse.importers.usd_options import UsdOptions
from pluriverse.importers.usd_shapes import GEOMETRY, UsdShapes, is_site
from pluriverse.importers.usd_source import UsdSource, applied_schemas, read_usd, usd_errors
from pluriverse.importers.usd_unsupported import report_unsupported, set_gravity

COLLIDER_KINDS = (
    "SphereShape",
    "CubeShape",
    "CapsuleShape",
    "Capsule1Shape",
    "CylinderShape",
    "Cylinder1Shape",
    "ConeShape",
    "PlaneShape",
    "MeshShape",
    "SpherePointsShape",
    "CustomShape",
)


def add_usd(
    builder: Any,
    source: str | Path | Any,
    *,
    xform: Any = None,
    floating: bool | None = None,
    base_joint: Mapping[str, Any] | None = None,
    parent_body: int = -1,
    override_root_xform: bool = False,
    root_path: str = "/",
    ignore_paths: Sequence[str] | None = None,
    only_load_enabled_rigid_bodies: bool = False,
    only_load_enabled_joints: bool = True,
    skip_mesh_approximation: bool = False,
    load_sites: bool = True,
    load_visual_shapes: bool = True,
    hide_collision_shapes: bool = False,
    force_show_colliders: bool = False,
    apply_up_axis_from_stage: bool = False,
    joint_drive_gains_scaling: float = 1.0,
    force_position_velocity_actuation: bool = False,
    enable_self_collisions: bool = True,
    collapse_fixed_joints: bool = False,
    mesh_maxhullvert: int = 64,
    joint_ordering: JointOrdering = "dfs",
    bodies_follow_joint_ordering: bool = True,
    drive_gains: Gains = None,
    effort_limit: Limits = None,
    strict: bool = False,
) -> ImportReport:
    """Add the rigid bodies, joints, colliders and display geometry of a USD stage to `builder`.

    Lengths are in `metersPerUnit` of the stage; one that does not say is in centimetres, as USD has it, which
    is warned about. The physics scene of the stage, if there is one, sets `builder.gravity`. See
    `docs/importers.md` for what becomes of each schema.

    Args:
        builder: The `ModelBuilder` to add to; its `default_shape_cfg` and `default_joint_cfg` give what the
            stage does not.
        source: Path of a USD file (usd, usda, usdc, usdz), the text of a usda file, or a `Usd.Stage`.
        xform: Pose of the stage in the world, z up.
        floating: False fixes articulations that no joint holds to the world where they stand; otherwise they
            move freely.
        base_joint: Joint that holds the base instead of a fixed or free one, as a mapping: `joint_type`
            (fixed, free, revolute, prismatic, ball or d6), `axis` and the other fields of `JointDofConfig`,
            `linear_axes` and `angular_axes` of D6, `child_xform`, `collision_filter_parent`, `label`. At zero
            the base is where it is authored. It excludes `floating`.
        parent_body: Body that the base is mounted on; `xform` is then a pose in that body. -1 is the world.
        override_root_xform: Whether `xform` is the pose of the first body, whatever its pose in the file.
        root_path: Prim whose subtree is imported.
        ignore_paths: Regular expressions; prims whose path starts with a match are left out.
        only_load_enabled_rigid_bodies: Whether bodies with `rigidBodyEnabled = false` are part of the world;
            otherwise they move as the others.
        only_load_enabled_joints: Whether joints with `jointEnabled = false` are left out.
        skip_mesh_approximation: Whether the bounding cubes and spheres of collision meshes are not used.
        load_sites: Whether prims with `MjcSiteAPI` or `NewtonSiteAPI` are added as sites.
        load_visual_shapes: Whether display geometry is added.
        hide_collision_shapes: Whether colliders of bodies with display geometry are invisible.
        force_show_colliders: Whether all colliders are visible.
        apply_up_axis_from_stage: Whether the axes of the stage are kept, whichever points up; otherwise the
            stage is turned so that its up axis is that of the builder. If they are kept, the builder takes
            over the up axis of the stage.
        joint_drive_gains_scaling: Factor on stiffness and damping of angular drives.
        force_position_velocity_actuation: Whether drives with stiffness and damping follow a velocity target
            too, also where the stage has none.
        enable_self_collisions: Whether bodies that joints connect to one tree collide with each other, where
            the articulation does not say.
        collapse_fixed_joints: Whether bodies behind fixed joints become part of their parents.
        mesh_maxhullvert: Largest number of vertices of the convex hull of a collision mesh.
        joint_ordering: Order of the joints: "dfs" and "bfs" from the base of each tree, or None for that of
            the stage.
        bodies_follow_joint_ordering: Whether bodies are in the order of the joints that hold them; otherwise
            in that of the stage.
        drive_gains: Stiffness and damping of drives for joints that the asset has none for [N·m/rad and
            N·m·s/rad, of sliding joints N/m and N·s/m], which hold them where they begin; or a mapping from
            names of joints (with wildcards) to such pairs. None leaves them undriven.
        effort_limit: Largest effort of drives that the asset has no limit for [N·m or N]; or a mapping as
            above.
        strict: Whether to raise for features that cannot be represented, rather than warn.

    Returns:
        What was added, and what of the stage could not be represented.

    Raises:
        ImportError: If usd-core is not installed.
        AssetError: If the stage cannot be read, or a value in it is impossible.
        AssetFileError: If there is no such file.
        UnsupportedAssetError: If there are features that cannot be represented and `strict` is set.
        ValueError: If an option is out of range, or contradicts another.
    """
    if not 0.0 <= joint_drive_gains_scaling < np.inf:
        raise ValueError(
            f"add_usd: joint_drive_gains_scaling is {joint_drive_gains_scaling}, but it must be finite and "
            ">= 0."
        )
    if joint_ordering not in ("dfs", "bfs", None):
        raise ValueError(f"add_usd: joint_ordering is {joint_ordering!r}, but it is 'dfs', 'bfs' or None.")
    check_hull_limit("add_usd", mesh_maxhullvert)
    attachment = read_base_attachment(
        "add_usd",
        builder,
        xform=xform,
        floating=floating,
        base_joint=base_joint,
        parent_body=parent_body,
        override_root_xform=override_root_xform,
    )
    options = UsdOptions(
        floating=False if base_joint is not None else floating,
        root_path=root_path,
        ignore_paths=_patterns(ignore_paths),
        only_load_enabled_rigid_bodies=only_load_enabled_rigid_bodies,
        only_load_enabled_joints=only_load_enabled_joints,
        skip_mesh_approximation=skip_mesh_approximation,
        load_sites=load_sites,
        load_visual_shapes=load_visual_shapes,
        hide_collision_shapes=hide_collision_shapes,
        force_show_colliders=force_show_colliders,
        up_axis=builder.up_axis,
        apply_up_axis_from_stage=apply_up_axis_from_stage,
        joint_drive_gains_scaling=joint_drive_gains_scaling,
        force_position_velocity_actuation=force_position_velocity_actuation,
        enable_self_collisions=enable_self_collisions,
        mesh_maxhullvert=mesh_maxhullvert,
        joint_ordering=joint_ordering,
        bodies_follow_joint_ordering=bodies_follow_joint_ordering,
    )
    report = ImportReport(str(source))
    stage = read_usd(source, options, report)
    default = stage.stage.GetDefaultPrim()
    robot = RobotDescription(str(default.GetPath()) if default else root_path, stage.name)
    report.label = robot.label
    custom = UsdCustom(builder, stage)
    with usd_errors(stage.name):
        bodies = read_bodies(stage, options, report)
        add_links(robot, stage, bodies, options, report)
        add_couplings(robot, stage, report)
        colliders, densities = _add_colliders(
            robot, stage, bodies, options, report, builder.default_shape_cfg.density
        )
        _add_display(robot, stage, bodies, colliders, options, report)
        add_filters(robot, stage, bodies, colliders, options, report)
        report_unsupported(stage, report, custom)
    if not (robot.links or robot.world_shapes):
        raise AssetError(
            "there are no rigid bodies, no colliders and no display geometry in it",
            file=stage.name,
            element=f"prim '{root_path}'",
            remedy="Check that this is the file of the robot, its references, and what root_path and "
            "ignore_paths leave out.",
        )
    fix_what_cannot_move(robot, report, is_mounted=attachment.parent_body >= 0)
    pose = mount(robot, attachment)
    make_hulls(robot, mesh_maxhullvert, report)
    _set_masses(robot, stage, bodies, colliders, densities, mesh_maxhullvert)
    give_drives("add_usd", robot, drive_gains, effort_limit)
    repair_masses(
        robot,
        report,
        armature_default=builder.default_joint_cfg.armature,
        mesh_maxhullvert=mesh_maxhullvert,
    )
    custom.describe(robot)
    for link in robot.links:
        link.origins.setdefault(link.label, IDENTITY)
    if collapse_fixed_joints:
        robot = merge_welded_links(robot, report)
    if not bodies_follow_joint_ordering:
        robot.body_order = _stage_order(robot, bodies)
    report.emit(strict=strict)
    if apply_up_axis_from_stage:
        builder.up_axis = stage.up_axis
    set_gravity(stage, builder, report)
    placement = assemble(
        builder,
        robot,
        xform=pose if override_root_xform else pose @ stage.turn,
        parent_body=attachment.parent_body,
        enable_self_collisions=True,  # the filters of the stage have it
        mesh_maxhullvert=mesh_maxhullvert,
        report=report,
    )
    stands = pose if override_root_xform else pose @ stage.turn
    add_cameras(builder, stage, bodies, placement, stands, report)
    custom.set_rest(placement, report.articulations)
    return report


def _add_colliders(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    options: UsdOptions,
    report: ImportReport,
    density: float,
) -> tuple[dict[str, tuple[Any, list[ShapeDescription]]], dict[str, float]]:
    """Add the colliders; return them and their densities by path, `density` where a material has none."""
    maker = UsdShapes(source, options, report)
    materials = UsdMaterials(source, report)
    colliders: dict[str, tuple[Any, list[ShapeDescription]]] = {}
    densities = {}
    for path, description in source.objects(*COLLIDER_KINDS):
        prim = source.prims[path]
        if str(prim.GetTypeName()) not in GEOMETRY:
            report.add(f"collider of type {prim.GetTypeName()}", path, "it is left out")
            continue
        body = str(description.rigidBody)
        if body and body not in source.prims:
            continue  # a collider of a body that is left out
        stands = bodies[body].frame if body in bodies else IDENTITY
        approximation = getattr(description, "approximation", None)
        shapes = maker.collider(prim, approximation, stands)
        densities[path] = materials.apply(path, prim, description, shapes, density)
        for shape in shapes:
            shape.collides = bool(description.collisionEnabled)
            shape.is_visible = shape.is_visible or options.force_show_colliders
        colliders[path] = (description, shapes)
        if body in bodies:
            robot.links[bodies[body].link].shapes += shapes
        else:
            robot.world_shapes += shapes
    known = {path for path, _ in source.objects(*COLLIDER_KINDS)}
    for path, prim in source.prims.items():
        if path not in known and "PhysicsCollisionAPI" in applied_schemas(prim):
            report.add(f"collider of type {prim.GetTypeName() or 'none'}", path, "it is left out")
    return colliders, densities


def _set_masses(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    colliders: dict[str, tuple[Any, list[ShapeDescription]]],
    densities: dict[str, float],
    mesh_maxhullvert: int,
) -> None:
    """Give the links their mass: that of their colliders, as far as `MassAPI` does not say otherwise."""
    parts: dict[str, list[MassProperties]] = {path: [] for path in bodies}
    for path, (description, shapes) in colliders.items():
        carrier = str(description.rigidBody)
        if carrier in bodies and description.collisionEnabled:
            prim, body = source.prims[path], bodies[carrier].prim
            parts[carrier].append(
                collider_mass(source, prim, body, shapes, densities[path], mesh_maxhullvert)
            )
    for path, owner in bodies.items():
        robot.links[owner.link].mass_properties = body_mass(source, owner.prim, parts[path])


def _add_display(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    colliders: dict[str, tuple[Any, list[ShapeDescription]]],
    options: UsdOptions,
    report: ImportReport,
) -> None:
    """Add the geometry that does not collide: display geometry and sites."""
    maker = UsdShapes(source, options, report)
    carried = dict.fromkeys(source.prims, "")  # body that carries each prim
    for path in source.prims:
        carried[path] = path if path in bodies else carried.get(path.rpartition("/")[0], "")
    with_display = set()
    for path, prim in source.prims.items():
        if path in colliders or str(prim.GetTypeName()) not in GEOMETRY:
            continue
        body = bodies.get(carried[path])
        stands = IDENTITY if body is None else body.frame
        if is_site(prim):
            shapes = maker.site(prim, stands) if options.load_sites else []
        else:
            shapes = maker.visual(prim, stands) if options.load_visual_shapes else []
            if shapes:
                with_display.add(carried[path])
        if body is None:
            robot.world_shapes += shapes
        else:
            robot.links[body.link].shapes += shapes
    if options.hide_collision_shapes and not options.force_show_colliders:
        for description, shapes in colliders.values():
            if str(description.rigidBody) in with_display:
                for shape in shapes:
                    shape.is_visible = False


def _stage_order(robot: RobotDescription, bodies: dict[str, UsdBody]) -> list[int]:
    """Return the links in the order of their bodies on the stage, those between joints last."""
    place = {link.label: index for index, link in enumerate(robot.links)}
    order = [place[path] for path in bodies if path in place]
    return order + [index for index in range(len(robot.links)) if index not in set(order)]


def _patterns(patterns: Sequence[str] | None) -> tuple[str, ...]:
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns or ())
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"add_usd: ignore_paths holds {pattern!r}, which is no regular expression: {error}."
            ) from error
    return patterns
