"""Shapes: geometry that collides, weighs and is seen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.builder.articulations import ArticulationBuilder
from pluriverse.builder.inputs import Transform, Vector, as_transform, as_vector, upright_rotation
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.geometry import (
    Appearance,
    Heightfield,
    MassProperties,
    Mesh,
    box_mass_properties,
    capsule_mass_properties,
    cone_mass_properties,
    cylinder_mass_properties,
    ellipsoid_mass_properties,
    sphere_mass_properties,
    transform_mass_properties,
)
from pluriverse.types import Axis, Entity, GeoType, ShapeFlags

SHAPE_COLOR = (0.6, 0.63, 0.68)
"""Colour of shapes that are given none."""
GROUND_COLOR = (0.3, 0.33, 0.36)
"""Colour of the ground plane."""

# Sizes that each geometry needs, all > 0.
_SIZES: dict[GeoType, tuple[str, ...]] = {
    GeoType.SPHERE: ("radius",),
    GeoType.CAPSULE: ("radius", "half_height"),
    GeoType.CYLINDER: ("radius", "half_height"),
    GeoType.CONE: ("radius", "half_height"),
    GeoType.BOX: ("hx", "hy", "hz"),
    GeoType.ELLIPSOID: ("rx", "ry", "rz"),
}
_MASS_PROPERTIES: dict[GeoType, Callable[..., MassProperties]] = {
    GeoType.SPHERE: sphere_mass_properties,
    GeoType.CAPSULE: capsule_mass_properties,
    GeoType.CYLINDER: cylinder_mass_properties,
    GeoType.CONE: cone_mass_properties,
    GeoType.BOX: box_mass_properties,
    GeoType.ELLIPSOID: ellipsoid_mass_properties,
}


class ShapeBuilder(ArticulationBuilder):
    """The part of a builder that adds shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.default_shape_cfg = ShapeConfig()
        """What shapes take where no `cfg` is given."""
        self.rigid_gap: float = 0.1
        """Gap of shapes whose configuration has none [m]."""

    def add_shape(
        self,
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
        shape = self.shape_count
        label = f"shape_{shape}" if label is None else label
        name = f"shape '{label}' (index {shape})"
        self._check_body(body, name)
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
        config = self.default_shape_cfg if cfg is None else cfg
        config.check(name)
        size = _check_size(
            geometry, np.ones(3) if scale is None else as_vector(scale, f"{name}: scale"), name
        )
        pose = as_transform(xform, f"{name}: xform")
        mesh_index = -1
        if geometry in (GeoType.MESH, GeoType.CONVEX_MESH):
            if not isinstance(src, Mesh):
                raise TypeError(
                    f"{name}: src is {src!r}, but a {geometry.name} shape needs a pluriverse.Mesh."
                )
            if geometry is GeoType.MESH:
                src = src.with_signed_distance(**config.signed_distance_options)
            mesh_index = self._mesh_index(src)
        elif geometry is GeoType.HFIELD:
            if not isinstance(src, Heightfield):
                raise TypeError(
                    f"{name}: src is {src!r}, but an HFIELD shape needs a pluriverse.Heightfield."
                )
            mesh_index = self._mesh_index(src)
        elif src is not None:
            raise ValueError(f"{name}: src is given, but a {geometry.name} shape has no mesh.")
        if color is None:
            color = SHAPE_COLOR if src is None or src.color is None else src.color
        custom = self._check_custom(custom_attributes, {Entity.SHAPE: 1}, name)
        if body >= 0 and not is_static and not config.is_site and config.density > 0.0:
            if not self.body_lock_inertia[body]:
                part = _shape_mass(geometry, size, src, config, name)
                self._add_body_mass(body, transform_mass_properties(part, pose[:3].tolist(), pose[3:]))
        self._shapes.append(
            body=body,
            type=int(geometry),
            transform=pose,
            scale=size,
            flags=_flags_of(config, geometry),
            collision_group=0 if config.is_site else int(config.collision_group),
            filter_parent=config.collision_filter_parent,
            mesh=mesh_index,
            margin=config.margin,
            gap=self.rigid_gap if config.gap is None else config.gap,
            ke=np.nan if config.ke is None else config.ke,
            ke_per_mass=np.nan if config.ke_per_mass is None else config.ke_per_mass,
            tau=np.nan if config.tau is None else config.tau,
            mu=config.mu,
            restitution=config.restitution,
            mu_torsional=config.mu_torsional,
            mu_rolling=config.mu_rolling,
            kh=config.kh,
            is_solid=config.is_solid,
            color=as_vector(color, f"{name}: color"),
            appearance=-1 if appearance is None else self._appearance_index(appearance, name),
            world=self.current_world,
        )
        self.shape_label.append(label)
        self._put_custom(custom, {Entity.SHAPE: shape})
        return shape

    def add_shape_plane(
        self,
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
            xform = _plane_pose(plane)
        return self.add_shape(
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
        self,
        height: float = 0.0,
        cfg: ShapeConfig | None = None,
        label: str | None = "ground_plane",
        *,
        color: Vector | None = GROUND_COLOR,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add an infinite plane facing up, at `height` [m] along the axis of the builder that points up.

        Returns:
            Index of the shape.

        Raises:
            ValueError: If a value is out of range.
        """
        up = self.up_axis
        return self.add_shape_plane(
            xform=(*(height * np.array(up.vector)), *upright_rotation(Axis.Z, up)),
            width=0.0,
            length=0.0,
            cfg=cfg,
            color=color,
            label=label,
            custom_attributes=custom_attributes,
        )

    def add_shape_sphere(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        radius: float = 1.0,
        cfg: ShapeConfig | None = None,
        as_site: bool = False,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a sphere of `radius` [m].

        `as_site` makes it a mark without mass or collision; the other arguments are those of `add_shape`.
        """
        return self._add_primitive(
            GeoType.SPHERE, (radius, 0.0, 0.0), body, xform, cfg, as_site, color, label, custom_attributes
        )

    def add_shape_box(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        hx: float = 0.5,
        hy: float = 0.5,
        hz: float = 0.5,
        cfg: ShapeConfig | None = None,
        as_site: bool = False,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a box of half extents `hx`, `hy`, `hz` [m]. See `add_shape_sphere`."""
        size = (hx, hy, hz)
        return self._add_primitive(
            GeoType.BOX, size, body, xform, cfg, as_site, color, label, custom_attributes
        )

    def add_shape_capsule(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: ShapeConfig | None = None,
        as_site: bool = False,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a capsule along local z; `half_height` [m] leaves out the caps. See `add_shape_sphere`."""
        size = (radius, half_height, 0.0)
        return self._add_primitive(
            GeoType.CAPSULE, size, body, xform, cfg, as_site, color, label, custom_attributes
        )

    def add_shape_cylinder(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: ShapeConfig | None = None,
        as_site: bool = False,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a cylinder along local z [m]. See `add_shape_sphere`."""
        size = (radius, half_height, 0.0)
        return self._add_primitive(
            GeoType.CYLINDER, size, body, xform, cfg, as_site, color, label, custom_attributes
        )

    def add_shape_cone(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: ShapeConfig | None = None,
        as_site: bool = False,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a cone along local z, apex at +`half_height` [m]. See `add_shape_sphere`."""
        size = (radius, half_height, 0.0)
        return self._add_primitive(
            GeoType.CONE, size, body, xform, cfg, as_site, color, label, custom_attributes
        )

    def add_shape_ellipsoid(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        rx: float = 1.0,
        ry: float = 0.75,
        rz: float = 0.5,
        cfg: ShapeConfig | None = None,
        as_site: bool = False,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add an ellipsoid of semi-axes `rx`, `ry`, `rz` [m]. See `add_shape_sphere`."""
        size = (rx, ry, rz)
        return self._add_primitive(
            GeoType.ELLIPSOID, size, body, xform, cfg, as_site, color, label, custom_attributes
        )

    def add_shape_mesh(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        mesh: Mesh,
        scale: Vector | None = None,
        cfg: ShapeConfig | None = None,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a triangle mesh, `scale` times its size. See `add_shape`.

        The mesh must be closed to have the mass of a solid; with `cfg.is_solid` or `mesh.is_solid` false its
        surface weighs, `cfg.margin` thick.
        """
        return self.add_shape(
            body=body,
            type=GeoType.MESH,
            xform=xform,
            cfg=cfg,
            scale=scale,
            src=mesh,
            color=color,
            label=label,
            custom_attributes=custom_attributes,
        )

    def add_shape_convex_hull(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        mesh: Mesh,
        scale: Vector | None = None,
        cfg: ShapeConfig | None = None,
        color: Vector | None = None,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add the convex hull of a mesh, `scale` times its size.

        It has the mass of the hull. See `add_shape`.
        """
        return self.add_shape(
            body=body,
            type=GeoType.CONVEX_MESH,
            xform=xform,
            cfg=cfg,
            scale=scale,
            src=mesh,
            color=color,
            label=label,
            custom_attributes=custom_attributes,
        )

    def add_shape_heightfield(
        self,
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

        It is solid below and has no side walls. `pluriverse.geometry` has functions that make terrain.
        """
        return self.add_shape(
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
        self,
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
        config = self.default_shape_cfg.copy()
        config.mark_as_site()
        config.is_visible = visible
        return self.add_shape(
            body=body,
            type=type,
            xform=xform,
            cfg=config,
            scale=scale,
            label=label,
            custom_attributes=custom_attributes,
        )

    def set_appearance(self, shape: int, appearance: Appearance | None) -> None:
        """Give a shape a texture, opacity and gloss; None takes them away.

        Raises:
            IndexError: If there is no such shape.
            TypeError: If `appearance` is none.
        """
        if not isinstance(shape, int | np.integer) or not 0 <= shape < self.shape_count:
            raise IndexError(
                f"set_appearance: shape {shape!r} does not exist; there are {self.shape_count} shapes."
            )
        name = self._shape_name(int(shape))
        index = -1 if appearance is None else self._appearance_index(appearance, name)
        self.shape_appearance[shape] = index

    def add_shape_collision_filter_pair(self, shape_a: int, shape_b: int) -> None:
        """Keep two shapes from colliding.

        Raises:
            IndexError: If there is no such shape.
            ValueError: If the two are the same, or in different worlds.
        """
        for shape in (shape_a, shape_b):
            if not isinstance(shape, int | np.integer) or not 0 <= shape < self.shape_count:
                raise IndexError(
                    f"add_shape_collision_filter_pair: shape {shape!r} does not exist; there are "
                    f"{self.shape_count} shapes. Use the indices that add_shape_*() returned."
                )
        if shape_a == shape_b:
            raise ValueError(
                f"add_shape_collision_filter_pair: {self._shape_name(shape_a)} is given twice; a shape never "
                "collides with itself."
            )
        worlds = {int(self.shape_world[shape]) for shape in (shape_a, shape_b)} - {-1}
        if len(worlds) > 1:
            raise ValueError(
                f"add_shape_collision_filter_pair: {self._shape_name(shape_a)} and "
                f"{self._shape_name(shape_b)} are in the worlds {sorted(worlds)}; shapes of different "
                "worlds never collide."
            )
        self._filters.append(shape=(shape_a, shape_b))

    def _add_primitive(
        self,
        geometry: GeoType,
        size: tuple[float, float, float],
        body: int,
        xform: Transform | None,
        cfg: ShapeConfig | None,
        as_site: bool,
        color: Vector | None,
        label: str | None,
        custom_attributes: Mapping[str, Any] | None,
    ) -> int:
        config = self.default_shape_cfg if cfg is None else cfg
        if as_site:
            config = config.copy()
            config.mark_as_site()
        return self.add_shape(
            body=body,
            type=geometry,
            xform=xform,
            cfg=config,
            scale=size,
            color=color,
            label=label,
            custom_attributes=custom_attributes,
        )

    def _appearance_index(self, appearance: Appearance, name: str) -> int:
        """Return the index of an appearance in `appearances`, adding it if it is new."""
        if not isinstance(appearance, Appearance):
            raise TypeError(f"{name}: appearance is {appearance!r}, but it must be a pluriverse.Appearance.")
        index = self._appearance_of_content.setdefault(appearance.content_key, len(self.appearances))
        if index == len(self.appearances):
            self.appearances.append(appearance)
        return index

    def _mesh_index(self, mesh: Mesh | Heightfield) -> int:
        """Return the index of a mesh or height field in `meshes`, adding it if it is new."""
        index = self._mesh_of_content.setdefault(mesh.content_key, len(self.meshes))
        if index == len(self.meshes):
            self.meshes.append(mesh)
        return index


# Sizes [m] whose volumes and inertias are beyond single precision, and soon beyond double.
SIZE_MAX = 1e18


def _check_size(geometry: GeoType, size: np.ndarray, name: str) -> np.ndarray:
    """Return the size with unused components zero, or raise."""
    if not (np.abs(size[np.isfinite(size)]) < SIZE_MAX).all():
        raise ValueError(f"{name}: the size is {size.tolist()}, but shapes are smaller than {SIZE_MAX:g} m.")
    if geometry is GeoType.PLANE:
        if size[0] < 0.0 or size[1] < 0.0:
            raise ValueError(
                f"{name}: width is {size[0]} m and length {size[1]} m, but they must be >= 0 (0 for "
                "infinite)."
            )
        return np.array([size[0], size[1], 0.0])
    if geometry in (GeoType.MESH, GeoType.CONVEX_MESH):
        if not size.all():
            raise ValueError(f"{name}: scale is {size.tolist()}, but no factor may be 0.")
        return size
    if geometry is GeoType.HFIELD:
        if not (size > 0.0).all():
            raise ValueError(f"{name}: scale is {size.tolist()}, but the factors of a height field are > 0.")
        return size
    names = _SIZES[geometry]
    for component, value in zip(names, size, strict=False):
        if not value > 0.0:
            raise ValueError(
                f"{name}: {component} is {value} m, but a {geometry.name} needs {component} > 0."
            )
    size = size.copy()
    size[len(names) :] = 0.0
    return size


def _flags_of(config: ShapeConfig, geometry: GeoType) -> int:
    """Return the flags of a shape: planes and height fields are never compliant."""
    flags = config.flags
    if geometry in (GeoType.PLANE, GeoType.HFIELD):
        flags &= ~int(ShapeFlags.HYDROELASTIC)
    return flags


def _shape_mass(
    geometry: GeoType,
    size: np.ndarray,
    mesh: Mesh | Heightfield | None,
    config: ShapeConfig,
    name: str,
) -> MassProperties:
    """Return the mass properties of a shape in its own frame."""
    if geometry is GeoType.PLANE or isinstance(mesh, Heightfield):
        return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
    thickness = None if config.is_solid else config.margin
    try:
        if mesh is None:
            sizes = [float(value) for value in size[: len(_SIZES[geometry])]]
            return _MASS_PROPERTIES[geometry](*sizes, config.density, thickness=thickness)
        if not mesh.compute_inertia:
            return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
        if geometry is GeoType.CONVEX_MESH:
            mesh = mesh.convex_hull()
        if not (size == 1.0).all():
            mesh = mesh.scaled(size.tolist())
        if mesh.is_solid and not config.is_solid:
            mesh = Mesh(mesh.vertices, mesh.indices, is_solid=False, name=mesh.name)
        return mesh.mass_properties(config.density, thickness=config.margin)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _plane_pose(plane: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the pose with local z along the normal of a plane, at the point nearest to the origin."""
    coefficients = np.asarray(plane, dtype=np.float64)
    norm = float(np.linalg.norm(coefficients[:3])) if coefficients.shape == (4,) else 0.0
    if not 0.0 < norm < np.inf or not np.isfinite(coefficients).all():
        raise ValueError(
            f"add_shape_plane: plane is {np.asarray(plane).tolist()}, but it must be (a, b, c, d) with a "
            "normal (a, b, c) that is not zero."
        )
    normal = coefficients[:3] / norm
    # The shortest turn from z to the normal; for the opposite of z any turn by pi about a horizontal axis.
    quat = np.array([-normal[1], normal[0], 0.0, 1.0 + normal[2]])
    length = np.linalg.norm(quat)
    quat = quat / length if length > 1.0e-8 else np.array([1.0, 0.0, 0.0, 0.0])
    return np.concatenate([-coefficients[3] / norm * normal, quat])
