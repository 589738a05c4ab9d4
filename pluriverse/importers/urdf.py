"""URDF importer: robot descriptions of ROS."""

from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry import MassProperties
from pluriverse.importers.assembly import assemble, free_label, make_hulls
from pluriverse.importers.asset_files import AssetFiles
from pluriverse.importers.base_attachment import mount, read_base_attachment, split_root_articulation
from pluriverse.importers.description import LinkDescription, RobotDescription
from pluriverse.importers.drive_options import give_drives
from pluriverse.importers.mass_repair import repair_masses
from pluriverse.importers.mechanics import merge_welded_links
from pluriverse.importers.option_checks import check_factor, check_hull_limit, check_joint_ordering
from pluriverse.importers.options import UrdfOptions
from pluriverse.importers.path_resolver import PathResolver
from pluriverse.importers.report import ImportReport
from pluriverse.importers.solids import mass_from_shapes
from pluriverse.importers.urdf_custom import UrdfCustom, custom_names
from pluriverse.importers.urdf_document import read_urdf
from pluriverse.importers.urdf_drake import read_drake_extensions
from pluriverse.importers.urdf_links import add_links
from pluriverse.importers.urdf_shapes import UrdfShapes, as_collider


def import_urdf(
    builder: Any, source: str | Path, options: UrdfOptions, path_resolver: PathResolver | None = None
) -> ImportReport:
    """Add a URDF robot to `builder`: `add_urdf` with all its options."""
    check_factor("add_urdf", options, "scale")
    check_joint_ordering("add_urdf", options, "dfs", "bfs", "dfs_by_name")
    check_hull_limit("add_urdf", options["mesh_maxhullvert"])
    factors = np.asarray(options["mesh_scale"], dtype=np.float64)
    if factors.shape not in ((), (3,)) or not np.all(np.isfinite(factors) & (factors != 0.0)):
        raise ValueError(
            f"add_urdf: mesh_scale is {options['mesh_scale']}, but it is one factor or three, none of them 0."
        )
    attachment = read_base_attachment("add_urdf", builder, options)
    report = ImportReport(str(source))
    document = read_urdf(source, report, custom_names(builder))
    robot = RobotDescription(free_label(builder, document.robot.name), document.name)
    report.label = robot.label
    links = add_links(
        robot,
        document,
        floating=bool(options["floating"]),
        scale=options["scale"],
        joint_ordering=options["joint_ordering"],
        ignore_inertial_definitions=options["ignore_inertial_definitions"],
        planar_joints_turn=options["planar_joints_turn"],
        report=report,
    )
    read_drake_extensions(robot, document.root, report)
    pose = mount(robot, attachment)
    custom = UrdfCustom(builder, document.root, document.name)
    custom.describe(robot)
    give_drives("add_urdf", robot, options["drive_gains"], options["effort_limit"])
    shapes = UrdfShapes(
        document,
        AssetFiles(document.path, options["package_dirs"], path_resolver),
        scale=options["scale"],
        mesh_scale=factors,
        custom=custom,
        report=report,
    )
    for link, authored in zip(robot.links, links, strict=True):
        link.shapes = shapes.colliders(authored, link.label)
        visuals = []
        if options["load_visual_shapes"] or options["parse_visuals_as_colliders"]:
            visuals = shapes.visuals(authored, link.label)
        if options["parse_visuals_as_colliders"] and visuals:
            link.shapes = [as_collider(shape) for shape in visuals]
        elif visuals:
            show = not options["hide_visuals"]
            for shape in link.shapes:
                shape.is_visible = options["force_show_colliders"] or not show
            for shape in visuals:
                shape.is_visible = show
            link.shapes += visuals
    make_hulls(robot, options["mesh_maxhullvert"], report)
    for link, authored in zip(robot.links, links, strict=True):
        if authored.inertial is None or options["ignore_inertial_definitions"]:
            # Some files give a density [kg/m³] in place of a mass.
            density = float(authored.element.get("density", builder.default_shape_cfg.density))
            link.mass_properties = mass_from_shapes(link, density, options["mesh_maxhullvert"])
        elif authored.inertial.inertia is None and link.mass_properties.mass > 0.0:
            link.mass_properties = _with_inertia_of_shapes(link, options["mesh_maxhullvert"])
    repair_masses(
        robot,
        report,
        armature_default=builder.default_joint_cfg.armature,
        mesh_maxhullvert=options["mesh_maxhullvert"],
    )
    if options["collapse_fixed_joints"]:
        robot = merge_welded_links(robot, report)
    if options["split_bimanual_root_articulation"]:
        split_root_articulation(robot)
    if not options["bodies_follow_joint_ordering"]:
        link_index = {link.name: index for index, link in enumerate(document.robot.links)}
        robot.body_order = sorted(
            range(len(robot.links)), key=lambda link: link_index[robot.links[link].name]
        )
    report.emit(strict=options["strict"])
    assemble(
        builder,
        robot,
        xform=pose,
        parent_body=attachment.parent_body,
        enable_self_collisions=options["enable_self_collisions"],
        mesh_maxhullvert=options["mesh_maxhullvert"],
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
