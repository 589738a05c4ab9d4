"""Configurations: the user-level description of a scene of many environments."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


class VariantMode(enum.Enum):
    """How much the variants of an entity may differ."""

    ANY = "any"
    """In any respect, including bodies, joints, drives, shapes, number of articulations."""
    SINGLE_LAYOUT = "single_layout"
    """In meshes, their attributes, and masses only, on a floating base; anything else is an error."""


class PreparedWorlds(enum.Enum):
    """Number of worlds prepared for environments whose variants differ in layout."""

    OWN = "own"
    """One for each environment and combination of layouts, so that every choice is possible."""
    SHARED = "shared"
    """A shared pool per combination, as large as draws by the weights need."""


@dataclass
class InitialStateCfg:
    """Initial pose and velocity of an entity."""

    pos: Sequence[float] | None = None
    """Position of the root [m]; as authored if None. An entity of several roots, or with a fixed one, is
    moved as a whole by it."""
    rot: Sequence[float] | None = None
    """Orientation of the root, quaternion xyzw; as authored if None."""
    lin_vel: Sequence[float] = (0.0, 0.0, 0.0)
    """Velocity of the centre of mass of a floating root [m/s], world axes."""
    ang_vel: Sequence[float] = (0.0, 0.0, 0.0)
    """Angular velocity of a floating root [rad/s], world axes."""
    joint_pos: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    """Joint coordinates [m, rad] by regular expression for the last part of the label. Position targets of
    drives follow."""
    joint_vel: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    """Joint velocities [m/s, rad/s] by regular expression."""


_InitialState = InitialStateCfg  # its name inside of EntityCfg, where the public one is an attribute


@dataclass
class EntityCfg:
    """An entity of every environment: a robot, an object, a pile.

    `spec_fn` is a function that returns a `mujoco.MjSpec` or a `ModelBuilder`, one of these, or the path of
    an asset: MJCF, URDF, USD, or a mesh, which becomes a free body that collides as its convex hull.
    """

    InitialStateCfg: ClassVar[type[_InitialState]] = _InitialState

    spec_fn: Callable[[], Any] | Any = None
    """The asset, or what makes it."""
    init_state: _InitialState = field(default_factory=_InitialState)
    """Its initial state."""


@dataclass
class VariantEntityCfg(EntityCfg):
    """An entity that differs between environments."""

    variants: Mapping[str, Callable[[], Any] | Any] = field(default_factory=dict)
    """Variants by name, each as `EntityCfg.spec_fn`."""
    assignment: Mapping[str, float] | Callable[[int], Sequence[int]] | None = None
    """Assignment of variants to environments. None for equal shares; weights by name, 1 for those not named;
    or a function of the number of environments that returns one index per environment."""
    mode: VariantMode = VariantMode.ANY
    """How much the variants may differ."""


@dataclass
class SceneCfg:
    """Environments that each hold one of every entity."""

    num_envs: int = 1
    """Number of environments."""
    entities: Mapping[str, EntityCfg] = field(default_factory=dict)
    """Entities by name."""
    ground_height: float | None = 0.0
    """Height of the plane under all environments [m]; None for none."""
    gravity: float | Sequence[float] = -9.81
    """Gravity [m/s²], a vector or its z component."""
    reassignable: bool = False
    """Whether environments may change their variants while the simulation runs, for which worlds are
    prepared; see `VariantSimulation.reassign`."""
    prepared_worlds: PreparedWorlds = PreparedWorlds.OWN
    """How worlds are prepared for that."""
    share_layouts: bool = True
    """Whether variants of equal structure share one layout of bodies and shape slots, in which a variant is a
    row of values. Otherwise each variant is its own kind of world."""
    prepare_builder: Callable[[Any], None] | None = None
    """Called with every new `ModelBuilder` before an asset is read into it, for example
    `SolverMuJoCo.register_custom_attributes`."""
    seed: int = 0
    """Seed of the draws of `VariantSimulation.reassign`, together with environment and episode."""
