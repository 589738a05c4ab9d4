"""Shapes: geometry that collides, has mass and is drawn."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from pluriverse.builder.bodies import add_body_mass
from pluriverse.builder.custom_attributes import check_custom_values, put_custom_values
from pluriverse.builder.inputs import Transform, Vector, as_transform, as_vector, upright_rotation
from pluriverse.builder.options import SHAPE_SECTIONS, PrimitiveOptions, ShapeOptions
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.builder.shape_geometry import check_size, flags_of, plane_pose, shape_mass
from pluriverse.builder.tables import BuilderTables
from pluriverse.builder.world_scope import check_body
from pluriverse.geometry import (
    Appearance,
    Heightfield,
    Mesh,
    transform_mass_properties,
)
from pluriverse.options import with_options
from pluriverse.types import Axis, Entity, GeoType

SHAPE_COLOR = (0.6, 0.63, 0.68)
"""Default colour of shapes."""
GROUND_COLOR = (0.3, 0.33, 0.36)
"""Colour of the ground plane."""


def add_shape(
    builder: BuilderTables,
    *,
    body: int,
    type: GeoType | int,
    xform: Transform | None = None,
    cfg: ShapeConfig | None = None,
    scale: Vector | None = None,
    src: Mesh | Heightfield | None = None,
    is_static: bool = False,
    color: Vector | None = None,
    appearance: Appearance | None = None,
    label: str | None = None,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a shape of any geometry; `add_shape_box` and so on are more convenient.

    Args:
        body: Body that carries it, -1 for the world.
        type: Geometry.
        xform: Pose in the frame of the body.
        cfg: Material, mass and collision behaviour; `default_shape_cfg` if None.
        scale: Size as `GeoType` says; (1, 1, 1) if None.
        src: Mesh or height field, where the geometry is one.
        is_static: Whether the shape adds no mass to the body.
        color: Red, green and blue from 0 to 1; that of the mesh if None.
        appearance: Texture, opacity and gloss, or None.
        label: Name; `shape_INDEX` if None.
        custom_attributes: Custom attributes of the shape, by key.

    Returns:
        Index of the shape.

    Raises:
        ValueError: If a value is out of range.
        IndexError: If there is no such body.
    """
    shape = builder.shape_count
    label = f"shape_{shape}" if label is None else label
    name = f"shape '{label}' (index {shape})"
    check_body(builder, body, name)
    try:
        geometry = GeoType(type)
    except ValueError:
        raise ValueError(f"{name}: type is {type!r}, which is no GeoType.") from None
    if geometry is GeoType.NONE:
        raise ValueError(
            f"{name}: type {geometry.name} is no geometry. Use a primitive, a mesh or a convex hull."
        )
    if geometry is GeoType.HFIELD and body >= 0:
        raise ValueError(
            f"{name}: body is {body}, but a height field is fixed to the world. Pass body=-1, or make a "
            "mesh of its vertices and indices."
        )
    config = builder.default_shape_cfg if cfg is None else cfg
    config.check(name)
    size = check_size(geometry, np.ones(3) if scale is None else as_vector(scale, f"{name}: scale"), name)
    pose = as_transform(xform, f"{name}: xform")
    source_index = -1
    if geometry in (GeoType.MESH, GeoType.CONVEX_MESH):
        if not isinstance(src, Mesh):
            raise TypeError(f"{name}: src is {src!r}, but a {geometry.name} shape needs a pluriverse.Mesh.")
        if geometry is GeoType.MESH:
            src = src.with_signed_distance(**config.signed_distance_options)
        source_index = mesh_index(builder, src)
    elif geometry is GeoType.HFIELD:
        if not isinstance(src, Heightfield):
            raise TypeError(f"{name}: src is {src!r}, but an HFIELD shape needs a pluriverse.Heightfield.")
        source_index = mesh_index(builder, src)
    elif src is not None:
        raise ValueError(f"{name}: src is given, but a {geometry.name} shape has no mesh.")
    if color is None:
        color = SHAPE_COLOR if src is None or src.color is None else src.color
    custom = check_custom_values(builder, custom_attributes, {Entity.SHAPE: 1}, name)
    if body >= 0 and not is_static and not config.is_site and config.density > 0.0:
        if not builder.body_lock_inertia[body]:
            part = shape_mass(geometry, size, src, config, name)
            add_body_mass(builder, body, transform_mass_properties(part, pose[:3].tolist(), pose[3:]))
    builder.tables[Entity.SHAPE].append(
        shape_body=body,
        shape_type=int(geometry),
        shape_transform=pose,
        shape_scale=size,
        shape_flags=flags_of(config, geometry),
        shape_collision_group=0 if config.is_site else int(config.collision_group),
        shape_collision_filter_parent=config.collision_filter_parent,
        shape_source_index=source_index,
        shape_margin=config.margin,
        shape_gap=builder.rigid_gap if config.gap is None else config.gap,
        shape_material_ke=np.nan if config.ke is None else config.ke,
        shape_material_ke_per_mass=np.nan if config.ke_per_mass is None else config.ke_per_mass,
        shape_material_tau=np.nan if config.tau is None else config.tau,
        shape_material_mu=config.mu,
        shape_material_restitution=config.restitution,
        shape_material_mu_torsional=config.mu_torsional,
        shape_material_mu_rolling=config.mu_rolling,
        shape_material_kh=config.kh,
        shape_is_solid=config.is_solid,
        shape_color=as_vector(color, f"{name}: color"),
        shape_appearance=-1 if appearance is None else appearance_index(builder, appearance, name),
        shape_world=builder.current_world,
    )
    builder.shape_label.append(label)
    put_custom_values(builder, custom, {Entity.SHAPE: shape})
    return shape


def add_shape_plane(
    builder: BuilderTables,
    plane: Sequence[float] | np.ndarray = (0.0, 0.0, 1.0, 0.0),
    *,
    xform: Transform | None = None,
    width: float = 10.0,
    length: float = 10.0,
    body: int = -1,
    cfg: ShapeConfig | None = None,
    color: Vector | None = None,
    label: str | None = None,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a plane, solid below.

    Args:
        plane: (a, b, c, d) of the plane a x + b y + c z + d = 0 with the normal (a, b, c); unused with
            `xform`.
        xform: Pose; the normal is local z.
        width: Extent along local x [m], 0 for infinite.
        length: Extent along local y [m], 0 for infinite.
        body: Body that carries it, -1 for the world.
        cfg: See `add_shape`.
        color: See `add_shape`.
        label: See `add_shape`.
        custom_attributes: See `add_shape`.

    Returns:
        Index of the shape.

    Raises:
        ValueError: If the normal is zero, or a value out of range.
    """
    if xform is None:
        xform = plane_pose(plane)
    return add_shape(
        builder,
        body=body,
        type=GeoType.PLANE,
        xform=xform,
        cfg=cfg,
        scale=(width, length, 0.0),
        is_static=True,
        color=color,
        label=label,
        custom_attributes=custom_attributes,
    )


def add_ground_plane(
    builder: BuilderTables,
    height: float = 0.0,
    cfg: ShapeConfig | None = None,
    label: str | None = "ground_plane",
    *,
    color: Vector | None = GROUND_COLOR,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add an infinite plane facing up, at `height` [m] along the up axis of the builder.

    Returns:
        Index of the shape.

    Raises:
        ValueError: If a value is out of range.
    """
    up = builder.up_axis
    return add_shape_plane(
        builder,
        xform=(*(height * np.array(up.vector)), *upright_rotation(Axis.Z, up)),
        width=0.0,
        length=0.0,
        cfg=cfg,
        color=color,
        label=label,
        custom_attributes=custom_attributes,
    )


@with_options(PrimitiveOptions, sections=SHAPE_SECTIONS)
def add_shape_sphere(
    builder: BuilderTables,
    body: int,
    *,
    radius: float = 1.0,
    **options: Unpack[PrimitiveOptions],
) -> int:
    """Add a sphere, centred on the origin of its frame.

    Args:
        body: Body that carries it, -1 for the world.
        radius: Radius [m].
    """
    return _add_primitive(builder, GeoType.SPHERE, (radius, 0.0, 0.0), body, options)


@with_options(PrimitiveOptions, sections=SHAPE_SECTIONS)
def add_shape_box(
    builder: BuilderTables,
    body: int,
    *,
    hx: float = 0.5,
    hy: float = 0.5,
    hz: float = 0.5,
    **options: Unpack[PrimitiveOptions],
) -> int:
    """Add a box, centred on the origin of its frame.

    Args:
        body: Body that carries it, -1 for the world.
        hx: Half extent along local x [m].
        hy: Half extent along local y [m].
        hz: Half extent along local z [m].
    """
    return _add_primitive(builder, GeoType.BOX, (hx, hy, hz), body, options)


@with_options(PrimitiveOptions, sections=SHAPE_SECTIONS)
def add_shape_capsule(
    builder: BuilderTables,
    body: int,
    *,
    radius: float = 1.0,
    half_height: float = 0.5,
    **options: Unpack[PrimitiveOptions],
) -> int:
    """Add a capsule along local z, centred on the origin of its frame.

    Args:
        body: Body that carries it, -1 for the world.
        radius: Radius of cylinder and caps [m].
        half_height: Half the length without the caps [m].
    """
    return _add_primitive(builder, GeoType.CAPSULE, (radius, half_height, 0.0), body, options)


@with_options(PrimitiveOptions, sections=SHAPE_SECTIONS)
def add_shape_cylinder(
    builder: BuilderTables,
    body: int,
    *,
    radius: float = 1.0,
    half_height: float = 0.5,
    **options: Unpack[PrimitiveOptions],
) -> int:
    """Add a cylinder along local z, centred on the origin of its frame.

    Args:
        body: Body that carries it, -1 for the world.
        radius: Radius [m].
        half_height: Half the length [m].
    """
    return _add_primitive(builder, GeoType.CYLINDER, (radius, half_height, 0.0), body, options)


@with_options(PrimitiveOptions, sections=SHAPE_SECTIONS)
def add_shape_cone(
    builder: BuilderTables,
    body: int,
    *,
    radius: float = 1.0,
    half_height: float = 0.5,
    **options: Unpack[PrimitiveOptions],
) -> int:
    """Add a cone along local z: its apex is at +`half_height`, its base at -`half_height`.

    Args:
        body: Body that carries it, -1 for the world.
        radius: Radius of the base [m].
        half_height: Half the height [m].
    """
    return _add_primitive(builder, GeoType.CONE, (radius, half_height, 0.0), body, options)


@with_options(PrimitiveOptions, sections=SHAPE_SECTIONS)
def add_shape_ellipsoid(
    builder: BuilderTables,
    body: int,
    *,
    rx: float = 1.0,
    ry: float = 0.75,
    rz: float = 0.5,
    **options: Unpack[PrimitiveOptions],
) -> int:
    """Add an ellipsoid, centred on the origin of its frame.

    Args:
        body: Body that carries it, -1 for the world.
        rx: Semi-axis along local x [m].
        ry: Semi-axis along local y [m].
        rz: Semi-axis along local z [m].
    """
    return _add_primitive(builder, GeoType.ELLIPSOID, (rx, ry, rz), body, options)


@with_options(ShapeOptions, sections=SHAPE_SECTIONS)
def add_shape_mesh(
    builder: BuilderTables,
    body: int,
    *,
    mesh: Mesh,
    scale: Vector | None = None,
    **options: Unpack[ShapeOptions],
) -> int:
    """Add a triangle mesh.

    The mesh must be closed to have the mass of a solid; with `cfg.is_solid` or `mesh.is_solid` false it is a
    shell of thickness `cfg.margin`.

    Args:
        body: Body that carries it, -1 for the world.
        mesh: The mesh.
        scale: One factor per axis; 1 if None.
    """
    return add_shape(
        builder,
        body=body,
        type=GeoType.MESH,
        scale=scale,
        src=mesh,
        **options,
    )


@with_options(ShapeOptions, sections=SHAPE_SECTIONS)
def add_shape_convex_hull(
    builder: BuilderTables,
    body: int,
    *,
    mesh: Mesh,
    scale: Vector | None = None,
    **options: Unpack[ShapeOptions],
) -> int:
    """Add the convex hull of a mesh, with the mass of the hull.

    Args:
        body: Body that carries it, -1 for the world.
        mesh: The mesh.
        scale: One factor per axis; 1 if None.
    """
    return add_shape(
        builder,
        body=body,
        type=GeoType.CONVEX_MESH,
        scale=scale,
        src=mesh,
        **options,
    )


def add_shape_heightfield(
    builder: BuilderTables,
    *,
    xform: Transform | None = None,
    heightfield: Heightfield,
    scale: Vector | None = None,
    cfg: ShapeConfig | None = None,
    color: Vector | None = GROUND_COLOR,
    label: str | None = None,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a height field, `scale` times its size, fixed to the world. See `add_shape`.

    Its heights rise along z of its frame: along the up axis of the builder unless `xform` is given. It is
    solid below and has no side walls. `pluriverse.geometry` has functions that make terrain.
    """
    if xform is None:
        xform = (0.0, 0.0, 0.0, *upright_rotation(Axis.Z, builder.up_axis))
    return add_shape(
        builder,
        body=-1,
        type=GeoType.HFIELD,
        xform=xform,
        cfg=cfg,
        scale=scale,
        src=heightfield,
        is_static=True,
        color=color,
        label=label,
        custom_attributes=custom_attributes,
    )


def add_site(
    builder: BuilderTables,
    body: int,
    *,
    xform: Transform | None = None,
    type: GeoType | int = GeoType.SPHERE,
    scale: Vector = (0.01, 0.01, 0.01),
    label: str | None = None,
    visible: bool = False,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Mark a frame on a body by a shape without mass or collision. See `add_shape`."""
    config = builder.default_shape_cfg.copy()
    config.mark_as_site()
    config.is_visible = visible
    return add_shape(
        builder,
        body=body,
        type=type,
        xform=xform,
        cfg=config,
        scale=scale,
        label=label,
        custom_attributes=custom_attributes,
    )


def set_appearance(builder: BuilderTables, shape: int, appearance: Appearance | None) -> None:
    """Give a shape a texture, opacity and gloss; None removes them.

    Raises:
        IndexError: If there is no such shape.
        TypeError: If `appearance` is not an `Appearance`.
    """
    if not isinstance(shape, int | np.integer) or not 0 <= shape < builder.shape_count:
        raise IndexError(
            f"set_appearance: shape {shape!r} does not exist; there are {builder.shape_count} shapes."
        )
    name = builder.shape_name(int(shape))
    index = -1 if appearance is None else appearance_index(builder, appearance, name)
    builder.shape_appearance[shape] = index


def add_shape_collision_filter_pair(builder: BuilderTables, shape_a: int, shape_b: int) -> None:
    """Keep two shapes from colliding.

    Raises:
        IndexError: If there is no such shape.
        ValueError: If the two are the same, or in different worlds.
    """
    for shape in (shape_a, shape_b):
        if not isinstance(shape, int | np.integer) or not 0 <= shape < builder.shape_count:
            raise IndexError(
                f"add_shape_collision_filter_pair: shape {shape!r} does not exist; there are "
                f"{builder.shape_count} shapes. Use the indices that add_shape_*() returned."
            )
    if shape_a == shape_b:
        raise ValueError(
            f"add_shape_collision_filter_pair: {builder.shape_name(shape_a)} is given twice; a shape never "
            "collides with itself."
        )
    worlds = {int(builder.shape_world[shape]) for shape in (shape_a, shape_b)} - {-1}
    if len(worlds) > 1:
        raise ValueError(
            f"add_shape_collision_filter_pair: {builder.shape_name(shape_a)} and "
            f"{builder.shape_name(shape_b)} are in the worlds {sorted(worlds)}; shapes of different "
            "worlds never collide."
        )
    builder.shape_filters.append(shape=(shape_a, shape_b))


def _add_primitive(
    builder: BuilderTables,
    geometry: GeoType,
    size: tuple[float, float, float],
    body: int,
    options: PrimitiveOptions,
) -> int:
    config = options.get("cfg")
    config = builder.default_shape_cfg if config is None else config
    if options.get("as_site"):
        config = config.copy()
        config.mark_as_site()
    values: dict[str, Any] = {**options, "cfg": config}
    values.pop("as_site", None)
    return add_shape(builder, body=body, type=geometry, scale=size, **values)


def appearance_index(builder: BuilderTables, appearance: Appearance, name: str) -> int:
    """Return the index of an appearance in `appearances`, adding it if it is new."""
    if not isinstance(appearance, Appearance):
        raise TypeError(f"{name}: appearance is {appearance!r}, but it must be a pluriverse.Appearance.")
    index = builder.appearance_of_content.setdefault(appearance.content_key, len(builder.appearances))
    if index == len(builder.appearances):
        builder.appearances.append(appearance)
    return index


def mesh_index(builder: BuilderTables, mesh: Mesh | Heightfield) -> int:
    """Return the index of a mesh or height field in `meshes`, adding it if it is new."""
    index = builder.mesh_of_content.setdefault(mesh.content_key, len(builder.meshes))
    if index == len(builder.meshes):
        builder.meshes.append(mesh)
    return index
