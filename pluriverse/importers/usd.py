"""USD importer: bodies, joints and colliders of UsdPhysics, read by usd-core's physics parser."""

from pathlib import Path
from typing import Any

from pluriverse.geometry import MassProperties
from pluriverse.importers.assembly import assemble, make_hulls
from pluriverse.importers.base_attachment import mount, read_base_attachment
from pluriverse.importers.description import RobotDescription, ShapeDescription
from pluriverse.importers.drive_options import give_drives
from pluriverse.importers.errors import AssetError
from pluriverse.importers.frames import IDENTITY
from pluriverse.importers.mass_repair import repair_masses
from pluriverse.importers.mechanics import merge_welded_links
from pluriverse.importers.option_checks import (
    check_factor,
    check_hull_limit,
    check_joint_ordering,
    read_patterns,
)
from pluriverse.importers.options import UsdOptions, UsdSettings
from pluriverse.importers.path_resolver import PathResolver
from pluriverse.importers.report import ImportReport
from pluriverse.importers.usd_actuators import add_actuators
from pluriverse.importers.usd_axes import report_limp_drives
from pluriverse.importers.usd_bodies import UsdBody, add_links, fix_what_cannot_move, read_bodies
from pluriverse.importers.usd_cameras import add_cameras
from pluriverse.importers.usd_couplings import add_couplings
from pluriverse.importers.usd_custom import UsdCustom
from pluriverse.importers.usd_filters import add_filters
from pluriverse.importers.usd_mass import body_mass, collider_mass
from pluriverse.importers.usd_materials import UsdMaterials
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


def import_usd(
    builder: Any, source: str | Path | Any, options: UsdOptions, path_resolver: PathResolver | None = None
) -> ImportReport:
    """Add a USD stage to `builder`: `add_usd` with all its options."""
    check_factor("add_usd", options, "joint_drive_gains_scaling", may_be_zero=True)
    check_joint_ordering("add_usd", options, "dfs", "bfs")
    check_hull_limit("add_usd", options["mesh_maxhullvert"])
    attachment = read_base_attachment("add_usd", builder, options)
    settings: UsdSettings = {**options, "up_axis": builder.up_axis}
    settings["ignore_paths"] = read_patterns("add_usd", "ignore_paths", options["ignore_paths"])
    if options["base_joint"] is not None:
        settings["floating"] = False
    report = ImportReport(str(source))
    stage = read_usd(source, settings, report, path_resolver)
    default = stage.stage.GetDefaultPrim()
    robot = RobotDescription(str(default.GetPath()) if default else settings["root_path"], stage.name)
    report.label = robot.label
    custom = UsdCustom(builder, stage)
    with usd_errors(stage.name):
        bodies = read_bodies(stage, settings, report)
        add_links(robot, stage, bodies, settings, report)
        add_couplings(robot, stage, report)
        colliders, densities = _add_colliders(
            robot, stage, bodies, settings, report, builder.default_shape_cfg.density
        )
        _add_display(robot, stage, bodies, colliders, settings, report)
        add_filters(robot, stage, bodies, colliders, settings, report)
        report_unsupported(stage, report, custom)
    if not (robot.links or robot.world_shapes):
        raise AssetError(
            "there are no rigid bodies, no colliders and no display geometry in it",
            file=stage.name,
            element=f"prim '{settings['root_path']}'",
            remedy="Check that this is the file of the robot, its references, and what root_path and "
            "ignore_paths leave out.",
        )
    fix_what_cannot_move(robot, report, is_mounted=attachment.parent_body >= 0)
    pose = mount(robot, attachment)
    make_hulls(robot, settings["mesh_maxhullvert"], report)
    _set_masses(robot, stage, bodies, colliders, densities, settings["mesh_maxhullvert"])
    with usd_errors(stage.name):
        add_actuators(robot, stage, custom, report, armature_default=builder.default_joint_cfg.armature)
    give_drives("add_usd", robot, settings["drive_gains"], settings["effort_limit"])
    report_limp_drives(robot, report)
    repair_masses(
        robot,
        report,
        armature_default=builder.default_joint_cfg.armature,
        mesh_maxhullvert=settings["mesh_maxhullvert"],
    )
    custom.describe(robot)
    for link in robot.links:
        link.origins.setdefault(link.label, IDENTITY)
    if settings["collapse_fixed_joints"]:
        robot = merge_welded_links(robot, report)
    if not settings["bodies_follow_joint_ordering"]:
        robot.body_order = _stage_order(robot, bodies)
    report.emit(strict=settings["strict"])
    if settings["apply_up_axis_from_stage"]:
        builder.up_axis = stage.up_axis
    set_gravity(stage, builder, report)
    placement = assemble(
        builder,
        robot,
        xform=pose if settings["override_root_xform"] else pose @ stage.up_axis_frame,
        parent_body=attachment.parent_body,
        enable_self_collisions=True,  # the filters of the stage have it
        mesh_maxhullvert=settings["mesh_maxhullvert"],
        report=report,
    )
    base_pose = pose if settings["override_root_xform"] else pose @ stage.up_axis_frame
    add_cameras(builder, stage, bodies, placement, base_pose, report)
    custom.set_rest(placement, report.articulations)
    return report


def _add_colliders(
    robot: RobotDescription,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    options: UsdSettings,
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
        base_pose = bodies[body].frame if body in bodies else IDENTITY
        approximation = getattr(description, "approximation", None)
        shapes = maker.collider(prim, approximation, base_pose)
        densities[path] = materials.apply(path, prim, description, shapes, density)
        for shape in shapes:
            shape.collides = bool(description.collisionEnabled)
            shape.is_visible = shape.is_visible or options["force_show_colliders"]
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
    """Give the links their mass: that of `MassAPI`, else that of their colliders."""
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
    options: UsdSettings,
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
        base_pose = IDENTITY if body is None else body.frame
        if is_site(prim):
            shapes = maker.site(prim, base_pose) if options["load_sites"] else []
        else:
            shapes = maker.visual(prim, base_pose) if options["load_visual_shapes"] else []
            if shapes:
                with_display.add(carried[path])
        if body is None:
            robot.world_shapes += shapes
        else:
            robot.links[body.link].shapes += shapes
    if options["hide_collision_shapes"] and not options["force_show_colliders"]:
        for description, shapes in colliders.values():
            if str(description.rigidBody) in with_display:
                for shape in shapes:
                    shape.is_visible = False


def _stage_order(robot: RobotDescription, bodies: dict[str, UsdBody]) -> list[int]:
    """Return the links in the order of their bodies on the stage, those that only connect joints last."""
    link_index = {link.label: index for index, link in enumerate(robot.links)}
    order = [link_index[path] for path in bodies if path in link_index]
    return order + [index for index in range(len(robot.links)) if index not in set(order)]
