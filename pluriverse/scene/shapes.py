"""Shapes and their material: the part of the format that describes them, and adding them to a builder."""

import dataclasses
import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, Field, field_validator

from pluriverse.scene.mapping import SceneMapping, tag_of, tagged
from pluriverse.scene.terrain import AnyTerrain
from pluriverse.scene.values import (
    IDENTITY,
    Color,
    Index,
    Name,
    NotNegative,
    Number,
    Scale,
    Size,
    Transform,
)

MATERIAL_FIELDS = ("margin", "gap", "mu", "ke", "ke_per_mass", "tau")


class Material(SceneMapping):
    """Contact properties; bodies, shapes and assets accept them directly as well."""

    margin: NotNegative | None = Field(
        default=None,
        validation_alias=AliasChoices("margin", "contact_margin", "shape_margin"),
        description="m",
    )
    gap: NotNegative | None = Field(
        default=None, validation_alias=AliasChoices("gap", "shape_gap"), description="m"
    )
    mu: NotNegative | None = Field(
        default=None, validation_alias=AliasChoices("mu", "shape_mu"), description="friction coefficient"
    )
    ke: NotNegative | None = Field(
        default=None, validation_alias=AliasChoices("ke", "shape_ke"), description="contact stiffness, N/m"
    )
    ke_per_mass: NotNegative | None = Field(
        default=None, description="contact stiffness per effective mass, 1/s²"
    )
    tau: NotNegative | None = Field(
        default=None,
        validation_alias=AliasChoices("tau", "shape_tau", "relaxation_time"),
        description="dissipation time, s",
    )


class ShapeConfiguration(Material):
    """All fields of a `cfg` block and of `builder.defaults.shape`."""

    density: NotNegative | None = Field(default=None, description="kg/m³")
    collision_group: Index | None = None
    collision_filter_parent: bool | None = None
    has_shape_collision: bool | None = None
    has_particle_collision: bool | None = None
    is_visible: bool | None = None
    is_site: bool | None = None
    is_hydroelastic: bool | None = None
    is_solid: bool | None = None
    flags: Index | None = Field(
        default=None, description="1 visible, 2 collides, 4 collides with particles, 8 site"
    )
    restitution: NotNegative | None = None
    mu_torsional: NotNegative | None = None
    mu_rolling: NotNegative | None = None
    kh: NotNegative | None = None
    # Parameters of other contact models. They have no meaning here; the loader says so.
    kd: Number | None = Field(default=None, validation_alias=AliasChoices("kd", "shape_kd"))
    kf: Number | None = Field(default=None, validation_alias=AliasChoices("kf", "shape_kf"))
    ka: Number | None = Field(
        default=None, validation_alias=AliasChoices("ka", "shape_ka", "contact_ka", "shape_material_ka")
    )


FOREIGN_MATERIAL_FIELDS = ("kd", "kf", "ka")

_FLAG_FIELDS = {
    1: "is_visible",
    2: "has_shape_collision",
    4: "has_particle_collision",
    8: "is_site",
    16: "is_hydroelastic",
}


class Overrides(Material):
    """Material options of a body, a shape or an asset."""

    physics: Material | None = None
    shape: Material | None = None

    cfg: ShapeConfiguration | None = None

    def material(self) -> dict[str, Any]:
        """Return the material fields set here; `physics` is overridden by `shape`, this by direct keys."""
        merged: dict[str, Any] = {}
        for block in (self.physics, self.shape):
            if block is not None:
                merged |= block.given(MATERIAL_FIELDS)
        return merged | self.given(MATERIAL_FIELDS)

    def configuration(self) -> dict[str, Any]:
        """Return all shape fields set here; `cfg` overrides everything else."""
        return self.material() | (self.cfg.given() if self.cfg is not None else {})


class Shape(Overrides):
    """Keys of every shape."""

    transform: Transform = IDENTITY
    label: Name | None = None
    color: Color | None = None


class Box(Shape):
    """A box of half extents `hx`, `hy`, `hz` [m]."""

    type: Literal["box"] = "box"
    hx: Size = 0.5
    hy: Size = 0.5
    hz: Size = 0.5


class Sphere(Shape):
    """A sphere of `radius` [m]."""

    type: Literal["sphere"]
    radius: Size = 1.0


class Capsule(Shape):
    """A capsule along local z [m]; `half_height` leaves out the caps."""

    type: Literal["capsule"]
    radius: Size = 1.0
    half_height: Size = 0.5


class Cylinder(Shape):
    """A cylinder along local z [m]."""

    type: Literal["cylinder"]
    radius: Size = 1.0
    half_height: Size = 0.5


class Cone(Shape):
    """A cone along local z, apex at +`half_height` [m]."""

    type: Literal["cone"]
    radius: Size = 1.0
    half_height: Size = 0.5


class Ellipsoid(Shape):
    """An ellipsoid of semi-axes `a`, `b`, `c` [m]."""

    type: Literal["ellipsoid"]
    a: Size = 1.0
    b: Size = 0.75
    c: Size = 0.5


class MeshShape(Shape):
    """A triangle mesh from a file."""

    type: Literal["mesh"]
    path: Name = Field(description="relative to the scene file")
    mesh_scale: Scale = Field(default=(1.0, 1.0, 1.0), validation_alias=AliasChoices("mesh_scale", "scale"))
    axis_order: tuple[Index, Index, Index] | None = None
    face_order: tuple[Index, Index, Index] | None = None
    is_solid: bool | None = None

    @field_validator("axis_order", "face_order")
    @classmethod
    def _permutation(cls, value: tuple[int, int, int] | None) -> tuple[int, int, int] | None:
        if value is not None and sorted(value) != [0, 1, 2]:
            raise ValueError(f"{list(value)} is not an order of the indices 0, 1, 2")
        return value


class Plane(Shape):
    """A plane that faces local +z, solid below; infinite along an axis of extent 0."""

    type: Literal["plane"]
    width: NotNegative = Field(default=0.0, description="extent along x, m")
    length: NotNegative = Field(default=0.0, description="extent along y, m")


class HeightfieldShape(Shape):
    """Terrain that is fixed to the world."""

    type: Literal["heightfield"]
    terrain: AnyTerrain


SHAPES: dict[str, type[Shape]] = {
    "box": Box,
    "sphere": Sphere,
    "capsule": Capsule,
    "cylinder": Cylinder,
    "cone": Cone,
    "ellipsoid": Ellipsoid,
    "mesh": MeshShape,
    "plane": Plane,
    "heightfield": HeightfieldShape,
}


if TYPE_CHECKING:
    AnyShape = Shape
else:
    AnyShape = Annotated[tagged(SHAPES), tag_of("type", "box")]


def shape_configuration(default: Any, *layers: dict[str, Any]) -> Any:
    """Return a copy of a builder's shape configuration with fields overridden, the last layer winning.

    Raises:
        FieldError: A field contradicts another.
    """
    fields: dict[str, Any] = {}
    for layer in layers:
        fields |= layer
    foreign = [name for name in FOREIGN_MATERIAL_FIELDS if fields.pop(name, None) is not None]
    if foreign:
        warnings.warn(
            f"scene: {', '.join(foreign)} are parameters of another contact model and have no effect here; "
            "dissipation is set by tau, friction by mu",
            stacklevel=2,
        )
    flags = fields.pop("flags", None)
    if flags is not None:
        for bit, name in _FLAG_FIELDS.items():
            fields.setdefault(name, bool(flags & bit))
    configuration = dataclasses.replace(default, **fields)
    if configuration.is_site:
        configuration = dataclasses.replace(
            configuration,
            has_shape_collision=False,
            has_particle_collision=False,
            density=0.0,
            collision_group=0,
        )
    return configuration
