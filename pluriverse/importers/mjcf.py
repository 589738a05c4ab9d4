"""MJCF importer: the robots and scenes of MuJoCo, read by MuJoCo's own parser."""

from typing import Any

import numpy as np

from pluriverse.importers.assembly import assemble, free_label, make_hulls
from pluriverse.importers.base_attachment import mount, read_base_attachment
from pluriverse.importers.description import RobotDescription
from pluriverse.importers.drive_options import give_drives
from pluriverse.importers.errors import AssetError
from pluriverse.importers.joint_chains import merge_joint_chains
from pluriverse.importers.mass_repair import repair_masses
from pluriverse.importers.mechanics import merge_welded_links
from pluriverse.importers.mjcf_actuators import add_drives
from pluriverse.importers.mjcf_bodies import add_links
from pluriverse.importers.mjcf_custom import MjcfCustom
from pluriverse.importers.mjcf_edit import edit_document
from pluriverse.importers.mjcf_enums import MjJoint
from pluriverse.importers.mjcf_equality import add_equalities
from pluriverse.importers.mjcf_geoms import add_shapes
from pluriverse.importers.mjcf_keyframe import (
    controls_of,
    read_keyframes,
    select_keyframe,
    set_initial_state,
)
from pluriverse.importers.mjcf_observers import add_cameras, add_sensors, add_visual_cameras
from pluriverse.importers.mjcf_rows import RowWriter
from pluriverse.importers.mjcf_sensors import SensorReader
from pluriverse.importers.mjcf_source import check_numbers, read_mjcf
from pluriverse.importers.mjcf_switches import (
    adopt_gravity,
    apply_switches,
    disabled_flags,
    gravity_to_adopt,
    move_limits_to_margins,
    switch_off_actuators,
)
from pluriverse.importers.mjcf_unsupported import report_unsupported
from pluriverse.importers.option_checks import check_factor, check_hull_limit, read_patterns
from pluriverse.importers.options import MjcfOptions, MjcfSettings
from pluriverse.importers.path_resolver import PathResolver
from pluriverse.importers.report import ImportReport


def import_mjcf(
    builder: Any, source: Any, options: MjcfOptions, path_resolver: PathResolver | None = None
) -> ImportReport:
    """Add a MuJoCo model to `builder`: `add_mjcf` with all its options."""
    for name in ("scale", "armature_scale"):
        check_factor("add_mjcf", options, name, may_be_zero=name == "armature_scale")
    check_hull_limit("add_mjcf", options["mesh_maxhullvert"])
    attachment = read_base_attachment("add_mjcf", builder, options)
    report = ImportReport(str(source))
    custom = MjcfCustom(builder, report)
    settings: MjcfSettings = {**options, "custom": custom}
    if options["base_joint"] is not None:
        settings["floating"] = False
    for classes in ("ignore_names", "ignore_classes", "visual_classes", "collider_classes"):
        settings[classes] = read_patterns("add_mjcf", classes, options[classes])
    document = read_mjcf(
        source,
        edit=lambda spec, log: edit_document(spec, settings, log),
        report=report,
        custom_names=custom.names,
        path_resolver=path_resolver,
    )
    is_mounted = attachment.parent_body >= 0 and options["base_joint"] is None
    if is_mounted and options["floating"] is None and np.sum(document.model.jnt_type == MjJoint.FREE) == 1:
        settings["floating"] = False  # a joint to that body takes the place of the free one
    custom.bind(document)
    check_numbers(document)
    if not custom.namespace.is_asked:
        apply_switches(document, report)
        move_limits_to_margins(document, report)
    switch_off_actuators(document, report)
    label = free_label(builder, document.spec.modelname or "mjcf")
    robot = RobotDescription(label, document.name, filter_static_parent=False)
    report.label = robot.label
    link_of_joint, link_of_body = add_links(robot, document, settings, report)
    add_shapes(robot, document, link_of_body, settings, report)
    make_hulls(robot, settings["mesh_maxhullvert"], report)
    key = select_keyframe(document.model, settings["keyframe"], document.name)
    if key is not None:
        set_initial_state(robot, document.model, link_of_joint, key, settings)
    controls = controls_of(document.model, key)
    servos, drives = add_drives(robot, document, link_of_joint, controls, settings, report)
    pose = mount(robot, attachment)
    if not settings["skip_equality_constraints"]:
        add_equalities(robot, document, link_of_joint, link_of_body, settings, report)
    give_drives("add_mjcf", robot, settings["drive_gains"], settings["effort_limit"])
    report_unsupported(document, settings, report)
    gravity = gravity_to_adopt(document, builder, attachment.upright, report)
    repair_masses(
        robot,
        report,
        armature_default=builder.default_joint_cfg.armature,
        mesh_maxhullvert=settings["mesh_maxhullvert"],
    )
    if settings["collapse_fixed_joints"]:
        robot = merge_welded_links(robot, report)
    if not (robot.links or robot.world_shapes):
        raise AssetError(
            "there are no bodies and no geoms in it" + _left_out(report),
            file=document.name,
            element="<worldbody>",
            remedy="Check that this is the file of the robot, and what ignore_names and ignore_classes leave "
            "out.",
        )
    report.emit(strict=settings["strict"])
    custom.set_options()
    if gravity is not None:
        adopt_gravity(builder, gravity)
    placement = assemble(
        builder,
        merge_joint_chains(robot),
        xform=pose,
        parent_body=attachment.parent_body,
        enable_self_collisions=settings["enable_self_collisions"],
        mesh_maxhullvert=settings["mesh_maxhullvert"],
        report=report,
    )
    rows = RowWriter(builder, document, placement)
    if settings["scale"] == 1.0:
        if custom.namespace.is_asked or "contact" not in disabled_flags(document):
            rows.add_pairs()
        rows.add_tendons()
    rows.add_actuators(servos, controls, key, settings)
    cameras = add_cameras(builder, document, placement, pose, settings["scale"])
    add_sensors(builder, document, custom.sensors, placement, cameras)
    add_visual_cameras(builder, document, placement, pose, settings["scale"], report)
    sensors = SensorReader(builder, document, placement, pose, settings["scale"], drives, report)
    sensors.add(custom.sensors)
    report.keyframes = read_keyframes(builder, document.model, placement, pose, settings, report)
    return report


def _left_out(report: ImportReport) -> str:
    """Return a text on what was left out of a document that is now empty."""
    return "".join(f"; {entry}" for entry in report.repairs)
