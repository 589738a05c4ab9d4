"""ShapeConfig: material, mass and collision behaviour of a shape."""

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.builder.other_names import other_names
from pluriverse.geometry.signed_distance import check_options
from pluriverse.types import GeoType, ShapeFlags
from pluriverse.warnings import PluriverseWarning


def _damping(config: "ShapeConfig") -> float:
    """Contact damping [N·s/m]: `ke * tau`; NaN without one of them."""
    return np.nan if config.ke is None or config.tau is None else config.ke * config.tau


def _set_damping(config: "ShapeConfig", kd: float) -> None:
    if not _is_number(kd) or not 0.0 <= kd < np.inf:
        raise ValueError(f"ShapeConfig: kd is {kd}, but it must be a finite number >= 0 (N·s/m).")
    if config.ke is None or not 0.0 < config.ke < np.inf:
        raise ValueError(
            f"ShapeConfig: kd is {kd} N·s/m, but ke is {_ke_words(config.ke)}, so there is no dissipation "
            "time kd / ke. Set a finite ke > 0 first, or tau itself."
        )
    config.tau = kd / config.ke


def _without_effect(name: str, meaning: str) -> property:
    """Return an attribute of Newton's that can only be 0 here: writing another number warns."""

    def put(config: "ShapeConfig", value: float) -> None:
        if not _is_number(value) or not 0.0 <= value < np.inf:
            raise ValueError(f"ShapeConfig: {name} is {value}, but it must be a finite number >= 0.")
        if value != 0.0:
            warnings.warn(
                f"ShapeConfig: {name} is {value}, but it changes nothing: {meaning}.",
                PluriverseWarning,
                stacklevel=3,
            )

    def get(config: "ShapeConfig") -> float:
        return 0.0

    return property(get, put, doc=f"Always 0: {meaning}.")


@other_names(
    kd=property(_damping, _set_damping),
    kf=_without_effect("kf", "friction is Coulomb's with stiction, and mu alone describes it"),
    ka=_without_effect("ka", "no surface sticks to another"),
)
@dataclass
class ShapeConfig:
    """Material, mass and collision behaviour of a shape.

    A contact damping `kd` [N·s/m], as argument or attribute, is another way to set `tau` = kd / ke. As an
    attribute, set it after `ke`. Newton's `kf` and `ka` are accepted with a warning and have no effect.
    """

    density: float = 1000.0
    """Density [kg/m³]; adds mass and inertia to the body."""
    ke: float | None = None
    """Contact stiffness [N/m]. None, or NaN, means not given. `SolverSAP` then makes contacts as stiff as the
    step resolves, whatever the masses, and `SolverMuJoCo` uses MuJoCo's default `solref`."""
    ke_per_mass: float | None = None
    """Contact stiffness per effective mass [1/s²], in place of `ke`; None, or NaN, means not given. A body's
    own weight compresses such a contact by g / ke_per_mass, whatever the mass. Importers set it from MuJoCo's
    `solref`."""
    tau: float | None = None
    """Contact dissipation time [s]. None, or NaN, means not given. `SolverSAP` then uses 0.01 s
    (`contact_tau_d`), and `SolverMuJoCo` critical damping."""
    mu: float = 1.0
    """Coefficient of friction; 0 is frictionless."""
    margin: float = 0.0
    """Distance by which the surface that makes contact lies outside the shape [m]; of a shell, the wall
    thickness."""
    gap: float | None = None
    """Distance beyond the margin from which contacts are created [m]; None takes `ModelBuilder.rigid_gap`."""
    restitution: float = 0.0
    """Coefficient of restitution, 0 to 1; that of a pair is the mean. `SolverMuJoCo` does not use it."""
    mu_torsional: float = 0.005
    """Coefficient of torsional friction [m]; `SolverSAP` uses it with `torsional_friction=True`."""
    mu_rolling: float = 1.0e-4
    """Coefficient of rolling friction [m]; `SolverSAP` uses it with `torsional_friction=True`."""
    kh: float = 1.0e10
    """Pressure per depth of a hydroelastic shape [N/m³]."""
    is_solid: bool = True
    """Whether the shape is solid; otherwise it has the mass of a shell with walls of thickness `margin`."""
    collision_group: int = 1
    """0 collides with nothing, a positive group with itself and all negative ones, a negative one with all
    others."""
    collision_filter_parent: bool = True
    """Whether the shape is filtered against the shapes of the parent and children of its body. Not filtered
    either where the joint has `collision_filter_parent=False`."""
    has_shape_collision: bool = True
    """Whether the shape collides with shapes."""
    has_particle_collision: bool = True
    """Whether the shape collides with particles."""
    is_visible: bool = True
    """Whether the shape is drawn."""
    is_site: bool = False
    """Whether the shape only marks a frame: no mass, no collision."""
    is_hydroelastic: bool = False
    """Whether the shape is compliant with the pressure `kh` times depth, and has patch contacts. Planes and
    height fields are always rigid, and ignore this flag."""

    sdf_max_resolution: int | None = None
    """Cells along the longest side of the signed distance grid of a triangle mesh; None for 64."""
    sdf_target_voxel_size: float | None = None
    """Edge of a cell of that grid [m]; takes precedence over `sdf_max_resolution`."""
    sdf_narrow_band_range: tuple[float, float] | None = None
    """Distances inside (<= 0) and outside (>= 0) up to which the grid has all its nodes [m]; None for two
    cells."""
    sdf_padding: float | None = None
    """Distance of the box of the grid from the mesh [m]; None for two cells."""

    @property
    def signed_distance_options(self) -> dict[str, Any]:
        """The given options of `Mesh.with_signed_distance`."""
        names = ("max_resolution", "target_voxel_size", "narrow_band_range", "padding")
        options = {name: getattr(self, f"sdf_{name}") for name in names}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def flags(self) -> int:
        """The booleans as `ShapeFlags`."""
        flags = ShapeFlags.VISIBLE if self.is_visible else ShapeFlags(0)
        if self.is_site:
            return int(flags | ShapeFlags.SITE)
        if self.has_shape_collision:
            flags |= ShapeFlags.COLLIDE_SHAPES
        if self.has_particle_collision:
            flags |= ShapeFlags.COLLIDE_PARTICLES
        if self.is_hydroelastic:
            flags |= ShapeFlags.HYDROELASTIC
        return int(flags)

    @flags.setter
    def flags(self, value: int) -> None:
        flags = ShapeFlags(value)
        self.is_visible = bool(flags & ShapeFlags.VISIBLE)
        self.has_shape_collision = bool(flags & ShapeFlags.COLLIDE_SHAPES)
        self.has_particle_collision = bool(flags & ShapeFlags.COLLIDE_PARTICLES)
        self.is_hydroelastic = bool(flags & ShapeFlags.HYDROELASTIC)
        self.is_site = bool(flags & ShapeFlags.SITE)
        if self.is_site:
            self.mark_as_site()

    def copy(self) -> "ShapeConfig":
        """Return a copy."""
        return copy.copy(self)

    def mark_as_site(self) -> None:
        """Make the shape a site: it marks a frame, without mass and collision."""
        self.is_site = True
        self.density = 0.0
        self.collision_group = 0
        self.has_shape_collision = False
        self.has_particle_collision = False
        self.is_hydroelastic = False

    def validate(self, shape_type: GeoType | int | None = None) -> None:
        """Check all values, as when a shape is added.

        Args:
            shape_type: Type of the shape that uses it, for the message.

        Raises:
            ValueError: If one is out of range.
        """
        kind = "" if shape_type is None else f" of a {GeoType(shape_type).name.lower()}"
        self.check(f"ShapeConfig{kind}")

    def check(self, what: str) -> None:
        """Check all values.

        Raises:
            ValueError: If one is out of range; `what` names its owner.
        """
        for name, unit in _NON_NEGATIVE.items():
            value = getattr(self, name)
            if name in _MAY_BE_MISSING and (value is None or (name in _MAY_BE_NAN and _is_nan(value))):
                continue
            if not _is_number(value) or not value >= 0.0 or (not np.isfinite(value) and name != "ke"):
                raise ValueError(f"{what}: {name} is {value}, but it must be a finite number >= 0{unit}.")
        check_options(what, **self.signed_distance_options)
        if self.collision_group != int(self.collision_group):
            raise ValueError(f"{what}: collision_group is {self.collision_group}, but it must be an integer.")


_MAY_BE_NAN = ("ke", "ke_per_mass", "tau")
_MAY_BE_MISSING = ("gap", *_MAY_BE_NAN)
_NON_NEGATIVE = {
    "density": " (kg/m³)",
    "ke": " (N/m), or None for a stiffness that is not given",
    "ke_per_mass": " (1/s²), or None for a stiffness that is not given",
    "tau": " (s), or None for a time that is not given",
    "mu": "",
    "margin": " (m)",
    "gap": " (m), or None for ModelBuilder.rigid_gap",
    "restitution": "",
    "mu_torsional": " (m)",
    "mu_rolling": " (m)",
    "kh": " (N/m³)",
}


def _is_nan(value: object) -> bool:
    return _is_number(value) and bool(np.isnan(value))  # type: ignore[call-overload]


def _ke_words(ke: float | None) -> str:
    return "not given" if ke is None or np.isnan(ke) else f"{ke} N/m"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
