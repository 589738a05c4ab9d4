"""Asset files: URDF, MJCF and USD files, and primitive bodies, as assets."""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.gymapi.asset import Asset, FixedTendon
from pluriverse.gymapi.enums import DofDriveMode
from pluriverse.gymapi.errors import GymWarning
from pluriverse.gymapi.structures import ActuatorProperties, AssetOptions, TendonProperties
from pluriverse.gymapi.values import Quat, Transform, Vec3
from pluriverse.importers import AssetWarning, ImportReport
from pluriverse.importers.mjcf_repair import LOCKED
from pluriverse.model_builder import ModelBuilder
from pluriverse.mujoco_attributes.choices import CtrlSource, TrnType
from pluriverse.types import GeoType, JointTargetMode, JointType, ShapeFlags

# Contact stiffness of shapes without compliance [N/m]. It is far above what a step resolves, so that the
# near-rigid bound of the solver decides.
CONTACT_STIFFNESS = 1.0e10
# Time over which overlap is resolved [s].
CONTACT_DISSIPATION_TIME = 0.01
# Stiffness and damping of joint limits: near rigid, overshoot resolved over 10 ms.
LIMIT_STIFFNESS = 1.0e8
LIMIT_DAMPING = 1.0e6

# Dimensions of contacts from which on MuJoCo resists turning about the normal, and rolling.
CONDIM_TORSION, CONDIM_ROLLING = 4, 6

# Time [s] after which decompositions report their progress.
PROGRESS_TIME = 2.0

# Mass [kg] and rotational inertia [kg·m²] of moving bodies without mass: far below those of parts of robots.
MASS_FLOOR = 1.0e-3
INERTIA_FLOOR = 1.0e-6


def asset_builder(options: AssetOptions) -> ModelBuilder:
    """Return an empty builder with the defaults of the options."""
    builder = ModelBuilder()
    shape = builder.default_shape_cfg
    shape.density = float(options.density)
    shape.ke, shape.tau = CONTACT_STIFFNESS, CONTACT_DISSIPATION_TIME
    shape.mu_torsional = shape.mu_rolling = 0.0
    joint = builder.default_joint_cfg
    joint.limit_ke, joint.limit_kd = LIMIT_STIFFNESS, LIMIT_DAMPING
    joint.effort_limit = joint.velocity_limit = np.inf
    joint.actuator_mode = JointTargetMode.NONE
    if options.use_physx_armature:
        joint.armature = float(options.armature)
    else:
        builder.default_body_armature = float(options.armature)
    return builder


def load_urdf(root: str, filename: str, options: AssetOptions) -> Asset:
    """Return the asset of a URDF file."""
    path = _path(root, filename)

    def read(builder: ModelBuilder, visuals: bool) -> ImportReport:
        return builder.add_urdf(
            path,
            floating=not options.fix_base_link,
            load_visual_shapes=visuals,
            collapse_fixed_joints=options.collapse_fixed_joints,
            planar_joints_turn=True,
            joint_ordering="dfs_by_name",
            package_dirs=[root] if root else None,
        )

    builder = asset_builder(options)
    report = read(builder, False)
    prefix = f"{report.label}/"  # names of links may have slashes of their own
    asset = _finish(path.stem, builder, options, own_name=lambda label, before: label.removeprefix(prefix))
    _note_merged_links(asset, report, lambda label: label.removeprefix(prefix))
    asset.read_visuals = lambda: _read_visuals(read, options, report)
    return asset


def _read_visuals(
    read: Callable[[ModelBuilder, bool], ImportReport], options: AssetOptions, known: ImportReport
) -> ModelBuilder:
    """Return the builder of a file read again with display geometry; only warn of new findings."""
    builder = asset_builder(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssetWarning)  # most of it was said before
        report = read(builder, True)
    said = {(entry.feature, entry.consequence) for entry in known.entries}
    report.entries = [entry for entry in report.entries if (entry.feature, entry.consequence) not in said]
    report.emit(strict=False)
    return builder


def load_mjcf(root: str, filename: str, options: AssetOptions) -> Asset:
    """Return the asset of an MJCF file.

    `collapse_fixed_joints` leaves bodies without joints as they are: scripts rely on their indices.
    """
    import mujoco

    from pluriverse.importers.mjcf_source import read_mjcf

    path = _path(root, filename)
    found = read_mjcf(path, edit=_drop_sensors, report=ImportReport(str(path)))
    model, source = found.model, path
    locked = _locked_roots(model)
    if locked and not options.fix_base_link:
        floating = read_mjcf(
            path,
            edit=lambda spec, report: _let_float(spec, report, locked),
            report=ImportReport(str(path)),
        )
        model, source = floating.model, floating.spec
        warnings.warn(
            f"{path.name}: body '{locked[0]}' hangs on the world by joints whose range leaves them no play. "
            "It floats, as scripts of this API expect of such files. Set fix_base_link=True to hold it.",
            GymWarning,
            stacklevel=4,
        )

    def read(builder: ModelBuilder, visuals: bool) -> ImportReport:
        return builder.add_mjcf(
            source,
            floating=False if options.fix_base_link else None,
            parse_visuals=visuals,
            parse_sites=False,
            keyframe=None,
        )

    builder = asset_builder(options)
    report = read(builder, False)
    _leave_motors_to_dofs(builder)
    # The script sets the targets, whatever control range the actuators have in the file.
    builder.joint_target_lower[:], builder.joint_target_upper[:] = -np.inf, np.inf
    # Contacts of a file rotate freely unless its condim says otherwise; this API has no condim per shape.
    if (model.geom_condim < CONDIM_TORSION).all():
        builder.shape_material_mu_torsional[:] = 0.0
    if (model.geom_condim < CONDIM_ROLLING).all():
        builder.shape_material_mu_rolling[:] = 0.0
    names: dict[str, list[str]] = {}
    for joint in range(model.njnt):
        if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            body = model.body(model.jnt_bodyid[joint]).name
            names.setdefault(body, []).append(model.joint(joint).name or f"joint_{joint}")
    actuators = [_actuator(model, index) for index in range(model.nactuator)]
    modes = dict.fromkeys((name for part in names.values() for name in part), DofDriveMode.DOF_MODE_NONE)
    for actuator in actuators:
        if actuator.joint:
            modes[actuator.joint] = _MODES[actuator.type]
    world = f"{report.label}/worldbody/"
    asset = _finish(
        path.stem,
        builder,
        options,
        chain_names=names,
        drive_modes=modes,
        own_name=lambda label, before: label.removeprefix(f"{before}/").removeprefix(world),
    )
    asset.actuators = actuators
    asset.read_visuals = lambda: _read_visuals(read, options, report)
    _add_tendons(asset, model)
    return asset


def _leave_motors_to_dofs(builder: ModelBuilder) -> None:
    """Let motors of joints be the drives of their DOFs alone, which this API commands by efforts.

    Nothing here writes the controls that they would follow otherwise.
    """
    kind, source, gain, bias = (
        builder.custom_attributes[f"mujoco:{name}"].values
        for name in ("actuator_trntype", "ctrl_source", "actuator_gaintype", "actuator_biastype")
    )
    for row in range(builder.custom_frequency_count("mujoco:actuator")):
        is_motor = not gain[row] and not bias[row] and source[row] == CtrlSource.CTRL_DIRECT
        if is_motor and kind[row] in (TrnType.JOINT, TrnType.JOINT_IN_PARENT):
            source[row] = CtrlSource.JOINT_TARGET


def _note_merged_links(asset: Asset, report: ImportReport, own_name: Callable[[str], str]) -> None:
    """Record the poses of links that were merged into others."""
    for label, body in report.merged_links.items():
        asset.merged_links[own_name(label)] = own_name(body)
        position, quat = report.merged_poses[label][:3], report.merged_poses[label][3:]
        asset.merged_poses[own_name(label)] = Transform(Vec3(*position.tolist()), Quat(*quat.tolist()))


def _drop_sensors(spec: Any, report: ImportReport) -> None:
    """Remove sensors, so that a dangling reference does no harm."""
    for sensor in list(spec.sensors):
        spec.delete(sensor)


def _locked_roots(model: Any) -> list[str]:
    """Return the bodies that only locked hinges and slides join to the world."""
    import mujoco

    names = []
    for body in range(1, model.nbody):
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        rows = slice(first, first + count)
        is_single = model.jnt_type[rows] >= int(mujoco.mjtJoint.mjJNT_SLIDE)
        is_locked = (model.jnt_limited[rows] != 0) & (np.ptp(model.jnt_range[rows], axis=1) <= 4.0 * LOCKED)
        name = model.body(body).name
        if model.body_parentid[body] == 0 and count and name and (is_single & is_locked).all():
            names.append(name)
    return names


def _let_float(spec: Any, report: ImportReport, names: list[str]) -> None:
    """Give bodies free joints in place of their joints to the world."""
    _drop_sensors(spec, report)
    for name in names:
        body = spec.body(name)
        for joint in list(body.joints):
            spec.delete(joint)
        body.add_freejoint(name=f"floating_{name}")


def load_usd(root: str, filename: str, options: AssetOptions) -> Asset:
    """Return the asset of a USD file."""
    path = _path(root, filename)

    def read(builder: ModelBuilder, visuals: bool) -> ImportReport:
        return builder.add_usd(
            path,
            floating=False if options.fix_base_link else None,
            load_visual_shapes=visuals,
            collapse_fixed_joints=options.collapse_fixed_joints,
        )

    builder = asset_builder(options)
    report = read(builder, False)
    modes = {}
    for label, start, count in zip(
        builder.joint_label, builder.joint_qd_start, builder.joint_dof_dim.sum(axis=1), strict=True
    ):
        if count == 1:
            driven = _DRIVES.get(int(builder.joint_target_mode[start]))
            modes[_last(label)] = driven or DofDriveMode(int(options.default_dof_drive_mode))
    asset = _finish(path.stem, builder, options, drive_modes=modes)
    _note_merged_links(asset, report, _last)
    asset.read_visuals = lambda: _read_visuals(read, options, report)
    return asset


def primitive(name: str, options: AssetOptions, add_shape: Callable[[ModelBuilder, int], Any]) -> Asset:
    """Return the asset of one body with one shape, which `add_shape(builder, body)` adds."""
    builder = asset_builder(options)
    body = builder.add_link(label=name)
    add_shape(builder, body)
    if options.fix_base_link:
        joint = builder.add_joint_fixed(-1, body, label="fixed_base")
    else:
        joint = builder.add_joint_free(body, label="floating_base")
    builder.add_articulation([joint], label=name)
    return _finish(name, builder, options)


def _finish(
    name: str,
    builder: ModelBuilder,
    options: AssetOptions,
    *,
    chain_names: dict[str, list[str]] | None = None,
    drive_modes: dict[str, DofDriveMode] | None = None,
    own_name: Callable[[str, str], str] | None = None,
) -> Asset:
    builder.own_gravity = None  # that of the simulation acts, whatever the file says
    if options.replace_cylinder_with_capsule:
        kinds = builder.shape_type.copy()
        builder.shape_type = np.where(kinds == GeoType.CYLINDER, int(GeoType.CAPSULE), kinds)
    if options.vhacd_enabled or options.convex_decomposition_from_submeshes:
        _decompose(builder, options)
    # Contacts and limits are rigid, whatever softness the file gives them.
    builder.shape_material_ke = np.full(builder.shape_count, CONTACT_STIFFNESS)
    builder.shape_material_tau = np.full(builder.shape_count, CONTACT_DISSIPATION_TIME)
    limited = ~(builder.joint_limit_ke <= 0.0)
    builder.joint_limit_ke[limited], builder.joint_limit_kd[limited] = LIMIT_STIFFNESS, LIMIT_DAMPING
    if options.override_com or options.override_inertia:
        _override_masses(builder, options)
    _raise_to_floor(builder)
    return Asset(name, builder, options, chain_names=chain_names, drive_modes=drive_modes, own_name=own_name)


def _decompose(builder: ModelBuilder, options: AssetOptions) -> None:
    """Decompose collision meshes into convex pieces, each a shape of its own. Masses stay."""
    shapes = np.flatnonzero(np.isin(builder.shape_type, (GeoType.MESH, GeoType.CONVEX_MESH)))
    # Meshes with signed distances collide with their own triangles.
    collides = (builder.shape_flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0
    shapes = shapes[~(collides & (builder.shape_type == GeoType.MESH))[shapes]]
    if options.convex_decomposition_from_submeshes:
        builder.approximate_meshes("components", shapes)
        return
    params = options.vhacd_params
    settings: dict[str, Any] = {
        "maxConvexHulls": int(params.max_convex_hulls),
        "maxNumVerticesPerCH": int(params.max_num_vertices_per_ch),
        "resolution": int(params.resolution),
        "asyncACD": False,
    }
    if params.concavity > 0.0:
        settings["minimumVolumePercentErrorAllowed"] = 100.0 * float(params.concavity)
    began = time.monotonic()
    for number, shape in enumerate(shapes.tolist(), start=1):
        triangle_count = len(builder.meshes[int(builder.shape_source_index[shape])].triangles)
        if time.monotonic() - began > PROGRESS_TIME:
            print(
                f"V-HACD: mesh {number} of {len(shapes)} ({builder.shape_label[shape]}, {triangle_count} "
                "triangles); decompositions are kept for the next time",
                file=sys.stderr,
                flush=True,
            )
        builder.approximate_meshes("vhacd", [shape], **settings)


def _raise_to_floor(builder: ModelBuilder) -> None:
    """Give a small mass to moving bodies without mass, such as those between two slides."""
    moving = builder.joint_child[builder.joint_type != JointType.FIXED]
    light = moving[builder.body_mass[moving] == 0.0]
    builder.body_mass[light] = MASS_FLOOR
    builder.body_inertia[light] = INERTIA_FLOOR * np.eye(3)


def shape_mass_properties(builder: ModelBuilder, body: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass and inertia of the shapes of a body at density 1000 kg/m³."""
    scratch = ModelBuilder()
    link = scratch.add_link()
    sources = builder.shape_source
    for shape in np.flatnonzero(builder.shape_body == body).tolist():
        config = scratch.default_shape_cfg.copy()
        config.density = 1000.0
        scratch.add_shape(
            body=link,
            type=int(builder.shape_type[shape]),
            xform=builder.shape_transform[shape],
            cfg=config,
            scale=builder.shape_scale[shape],
            src=sources[shape],
        )
    return float(scratch.body_mass[0]), scratch.body_com[0].copy(), scratch.body_inertia[0].copy()


def _override_masses(builder: ModelBuilder, options: AssetOptions) -> None:
    """Compute centres of mass and inertias from the shapes; masses stay."""
    for body in range(builder.body_count):
        mass, com, inertia = shape_mass_properties(builder, body)
        if mass == 0.0:
            continue
        if options.override_com:
            builder.body_com[body] = com
        if options.override_inertia:
            builder.body_inertia[body] = inertia * (builder.body_mass[body] / mass)


_DRIVES = {
    int(JointTargetMode.POSITION): DofDriveMode.DOF_MODE_POS,
    int(JointTargetMode.POSITION_VELOCITY): DofDriveMode.DOF_MODE_POS,
    int(JointTargetMode.VELOCITY): DofDriveMode.DOF_MODE_VEL,
    int(JointTargetMode.EFFORT): DofDriveMode.DOF_MODE_EFFORT,
}
_MODES = {
    "motor": DofDriveMode.DOF_MODE_EFFORT,
    "position": DofDriveMode.DOF_MODE_POS,
    "velocity": DofDriveMode.DOF_MODE_VEL,
    "general": DofDriveMode.DOF_MODE_EFFORT,
}


def _actuator(model: Any, index: int) -> ActuatorProperties:
    """Return the properties of an actuator in a file."""
    joint = int(model.actuator_trnid[index, 0]) if int(model.actuator_trntype[index]) in (0, 1) else -1
    control = int(model.actuator_ctrladr[index])  # the first, where there are several
    gear = float(model.actuator_gear[model.actuator_outadr[index], 0])
    gain, bias = float(model.actuator_gainprm[index, 0]), model.actuator_biasprm[index]
    kind = "position" if bias[1] < 0.0 else "velocity" if bias[2] < 0.0 else "motor"
    result = ActuatorProperties(
        name=model.actuator(index).name,
        joint=model.joint(joint).name if joint >= 0 else "",
        control_limited=bool(model.actuator_ctrllimited[control]),
        force_limited=bool(model.actuator_forcelimited[index]),
        type=kind,
        kp=float(-bias[1]),
        kv=float(-bias[2]),
    )
    if result.control_limited:
        result.lower_control_limit, result.upper_control_limit = map(float, model.actuator_ctrlrange[control])
    if result.force_limited:
        result.lower_force_limit, result.upper_force_limit = map(float, model.actuator_forcerange[index])
    if kind == "motor":
        most = result.upper_control_limit if result.control_limited else 1.0
        force = abs(gain) * most
        result.motor_effort = gear * min(force, result.upper_force_limit)
    return result


def _add_tendons(asset: Asset, model: Any) -> None:
    """Record the fixed tendons of a file."""
    for index in range(model.ntendon):
        rows = range(int(model.tendon_adr[index]), int(model.tendon_adr[index] + model.tendon_num[index]))
        if any(int(model.wrap_type[row]) != 1 for row in rows):  # mjWRAP_JOINT
            continue
        names = [model.joint(int(model.wrap_objid[row])).name for row in rows]
        lower, upper = (float(bound) for bound in model.tendon_range[index])
        properties = TendonProperties(
            name=model.tendon(index).name,
            is_limited=bool(model.tendon_limited[index]),
            lower_limit=lower,
            upper_limit=upper,
            fixed_lower_limit=lower,
            fixed_upper_limit=upper,
            stiffness=float(model.tendon_stiffness[index]),
            damping=float(model.tendon_damping[index]),
            fixed_spring_rest_length=float(np.ravel(model.tendon_lengthspring[index])[0]),
            limit_stiffness=float(asset.options.tendon_limit_stiffness),
            num_joints=len(names),
        )
        dofs = [asset.dof_index_of(name) for name in names]
        asset.tendons.append(FixedTendon(properties, dofs, [float(model.wrap_prm[row]) for row in rows]))


def _path(root: str, filename: str) -> Path:
    path = Path(root or ".") / filename
    if not path.is_file():
        raise FileNotFoundError(f"there is no file '{path}'. Check rootpath and filename.")
    return path


def _last(label: str) -> str:
    return label.rpartition("/")[2]
