"""MJCF importer: the robots and scenes of MuJoCo, read by MuJoCo's own parser."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.importers.assembly import assemble, check_hull_limit, free_label, make_hulls
from pluriverse.importers.base_attachment import mount, read_base_attachment
from pluriverse.importers.description import RobotDescription
from pluriverse.importers.drive_options import Gains, Limits, give_drives
from pluriverse.importers.errors import AssetError
from pluriverse.importers.joint_chains import merge_joint_chains
from pluriverse.importers.mass_repair import repair_masses
from pluriverse.importers.mechanics import merge_welded_links
from pluriverse.importers.mjcf_actuators import add_drives
from pluriverse.importers.mjcf_bodies import add_links
from pluriverse.importers.mjcf_custom import MjcfCustom
from pluriverse.importers.mjcf_edit import edit_document
from pluriverse.importers.mjcf_equality import add_equalities
from pluriverse.importers.mjcf_geoms import add_shapes
from pluriverse.importers.mjcf_keyframe import (
    controls_of,
    read_keyframes,
    select_keyframe,
    set_initial_state,
)
from pluriverse.importers.mjcf_observers import add_cameras, add_sensors, add_visual_cameras
from pluriverse.importers.mjcf_options import MjcfOptions
from pluriverse.importers.mjcf_rows import RowWriter
from pluriverse.importers.mjcf_sensors import SensorReader
from pluriverse.importers.mjcf_source import check_numbers, read_mjcf
from pluriverse.importers.mjcf_unsupported import report_unsupported
from pluriverse.importers.report import ImportReport


def add_mjcf(
    builder: Any,
    source: Any,
    *,
    xform: Any = None,
    floating: bool | None = None,
    base_joint: Mapping[str, Any] | None = None,
    parent_body: int = -1,
    override_root_xform: bool = False,
    up_axis: Any = "z",
    scale: float = 1.0,
    armature_scale: float = 1.0,
    hide_visuals: bool = False,
    force_show_colliders: bool = False,
    parse_visuals: bool = True,
    parse_visuals_as_colliders: bool = False,
    parse_meshes: bool = True,
    parse_sites: bool = True,
    enable_self_collisions: bool = True,
    ignore_names: Sequence[str] = (),
    ignore_classes: Sequence[str] = (),
    skip_equality_constraints: bool = False,
    visual_classes: Sequence[str] = ("visual",),
    collider_classes: Sequence[str] = ("collision",),
    no_class_as_colliders: bool = True,
    ignore_inertial_definitions: bool = False,
    collapse_fixed_joints: bool = False,
    mesh_maxhullvert: int = 64,
    keyframe: str | int | None = "auto",
    drive_gains: Gains = None,
    effort_limit: Limits = None,
    strict: bool = False,
) -> ImportReport:
    """Add the bodies, joints, shapes, drives and initial state of a MuJoCo model to `builder`.

    See `docs/importers.md` for what becomes of each element.

    Args:
        builder: The `ModelBuilder` to add to; its `default_shape_cfg` and `default_joint_cfg` give what MJCF
            does not.
        source: Path of an MJCF file, its XML text, or a `mujoco.MjSpec`, which is not changed.
        xform: Pose of the model's world frame in the world.
        floating: None takes the base as authored; True gives bodies fixed to the world a free joint; False
            fixes bodies that have one.
        base_joint: Joint that holds the base instead of a fixed or free one, as a mapping: `joint_type`
            (fixed, free, revolute, prismatic, ball or d6), `axis` and the other fields of `JointDofConfig`,
            `linear_axes` and `angular_axes` of D6, `child_xform`, `collision_filter_parent`, `label`. At zero
            the base is where it is authored. It excludes `floating`.
        parent_body: Body that the base is mounted on; `xform` is then a pose in that body. -1 is the world.
        override_root_xform: Whether `xform` is the pose of the first body, whatever its pose in the file.
        up_axis: Axis of the file that shall point along the up axis of the builder: "x", "y", "z" or an
            `Axis`.
        scale: Factor on all lengths; masses are kept, inertias follow.
        armature_scale: Factor on all armatures.
        hide_visuals: Whether display geometry is added invisible.
        force_show_colliders: Whether colliders of bodies with display geometry are visible too.
        parse_visuals: Whether display geometry is added.
        parse_visuals_as_colliders: Whether the display geometry of a body takes the place of its colliders.
        parse_meshes: Whether meshes are read; without them mesh geoms are left out.
        parse_sites: Whether sites are added.
        enable_self_collisions: Whether bodies of the model collide with each other.
        ignore_names: Regular expressions; bodies (with all below), geoms and sites of such names are left
            out.
        ignore_classes: Regular expressions; geoms of such default classes are left out.
        skip_equality_constraints: Whether equality constraints of bodies and joints are left out.
        visual_classes: Regular expressions of default classes whose geoms only display.
        collider_classes: Regular expressions of default classes whose geoms collide if their contact bits let
            them.
        no_class_as_colliders: Whether geoms in neither kind of class collide if their contact bits let them.
        ignore_inertial_definitions: Whether mass and inertia follow from the geoms where `<inertial>` gives
            them.
        collapse_fixed_joints: Whether bodies without a joint become part of their parent.
        mesh_maxhullvert: Largest number of vertices of the convex hull of a colliding mesh.
        keyframe: Keyframe of the initial state by name or index; "auto" takes one called home or stand, else
            the first; None takes the configuration as authored.
        drive_gains: Stiffness and damping of drives for joints that the asset has none for [N·m/rad and
            N·m·s/rad, of sliding joints N/m and N·s/m], which hold them where they begin; or a mapping from
            names of joints (with wildcards) to such pairs. None leaves them undriven.
        effort_limit: Largest effort of drives that the asset has no limit for [N·m or N]; or a mapping as
            above.
        strict: Whether to raise for features that cannot be represented, rather than warn.

    Returns:
        What was added, and what of the model could not be represented.

    Raises:
        AssetError: If the document cannot be read, or a value in it is impossible.
        UnsupportedAssetError: If there are features that cannot be represented and `strict` is set.
        ValueError: If an option is out of range, or contradicts another.
    """
    for name, factor in (("scale", scale), ("armature_scale", armature_scale)):
        if not 0.0 < factor < np.inf and not (name == "armature_scale" and factor == 0.0):
            raise ValueError(f"add_mjcf: {name} is {factor}, but it must be finite and > 0.")
    check_hull_limit("add_mjcf", mesh_maxhullvert)
    attachment = read_base_attachment(
        "add_mjcf",
        builder,
        xform=xform,
        up_axis=up_axis,
        floating=floating,
        base_joint=base_joint,
        parent_body=parent_body,
        override_root_xform=override_root_xform,
    )
    report = ImportReport(str(source))
    custom = MjcfCustom(builder, report)
    options = MjcfOptions(
        floating=False if base_joint is not None else floating,
        scale=scale,
        armature_scale=armature_scale,
        hide_visuals=hide_visuals,
        force_show_colliders=force_show_colliders,
        parse_visuals=parse_visuals,
        parse_visuals_as_colliders=parse_visuals_as_colliders,
        parse_meshes=parse_meshes,
        parse_sites=parse_sites,
        ignore_names=_patterns("ignore_names", ignore_names),
        ignore_classes=_patterns("ignore_classes", ignore_classes),
        visual_classes=_patterns("visual_classes", visual_classes),
        collider_classes=_patterns("collider_classes", collider_classes),
        no_class_as_colliders=no_class_as_colliders,
        ignore_inertial_definitions=ignore_inertial_definitions,
        mesh_maxhullvert=mesh_maxhullvert,
        keyframe=keyframe,
        custom=custom,
    )
    document = read_mjcf(
        source,
        edit=lambda spec, log: edit_document(spec, options, log),
        report=report,
        custom_names=custom.names,
    )
    custom.bind(document)
    check_numbers(document)
    label = free_label(builder, document.spec.modelname or "mjcf")
    robot = RobotDescription(label, document.name, filter_static_parent=False)
    report.label = robot.label
    link_of_joint, link_of_body = add_links(robot, document, options, report)
    add_shapes(robot, document, link_of_body, options, report)
    make_hulls(robot, mesh_maxhullvert, report)
    key = select_keyframe(document.model, keyframe, document.name)
    if key is not None:
        set_initial_state(robot, document.model, link_of_joint, key, options)
    controls = controls_of(document.model, key)
    servos = add_drives(robot, document.model, link_of_joint, controls, options, report)
    pose = mount(robot, attachment)
    if not skip_equality_constraints:
        add_equalities(robot, document, link_of_joint, link_of_body, options, report)
    give_drives("add_mjcf", robot, drive_gains, effort_limit)
    report_unsupported(document, builder, options, report, attachment.upright)
    repair_masses(
        robot,
        report,
        armature_default=builder.default_joint_cfg.armature,
        mesh_maxhullvert=mesh_maxhullvert,
    )
    if collapse_fixed_joints:
        robot = merge_welded_links(robot, report)
    if not (robot.links or robot.world_shapes):
        raise AssetError(
            "there are no bodies and no geoms in it" + _left_out(report),
            file=document.name,
            element="<worldbody>",
            remedy="Check that this is the file of the robot, and what ignore_names and ignore_classes leave "
            "out.",
        )
    report.emit(strict=strict)
    custom.set_options()
    placement = assemble(
        builder,
        merge_joint_chains(robot),
        xform=pose,
        parent_body=attachment.parent_body,
        enable_self_collisions=enable_self_collisions,
        mesh_maxhullvert=mesh_maxhullvert,
        report=report,
    )
    if custom.namespace.is_registered:
        rows = RowWriter(builder, document, placement)
        if scale == 1.0:
            rows.add_pairs()
            rows.add_tendons()
        rows.add_actuators(servos, controls, options)
        cameras = add_cameras(builder, document, placement, pose, scale)
        add_sensors(builder, document, custom.sensors, placement, cameras)
    add_visual_cameras(builder, document, placement, pose, scale, report)
    drives = servos if custom.namespace.is_registered else None
    SensorReader(builder, document, placement, pose, scale, drives, report).add(custom.sensors)
    report.keyframes = read_keyframes(builder, document.model, placement, pose, options, report)
    return report


def _left_out(report: ImportReport) -> str:
    """Return what of a document that is empty now was left out, in words."""
    return "".join(f"; {entry}" for entry in report.repairs)


def _patterns(name: str, patterns: Sequence[str]) -> tuple[str, ...]:
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"add_mjcf: {name} holds {pattern!r}, which is no regular expression: {error}."
            ) from error
    return patterns
