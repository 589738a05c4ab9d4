"""Options of the importers, each declared once with its default and meaning.

`ModelBuilder.add_mjcf`, `add_urdf` and `add_usd` take them as keywords; scene files have the same names.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

if TYPE_CHECKING:
    from pluriverse.importers.mjcf_custom import MjcfCustom
    from pluriverse.types import Axis

Gains = tuple[float, float] | Mapping[str, tuple[float, float]] | None
"""Stiffness and damping, or these by the names of joints."""
Limits = float | Mapping[str, float] | None
"""Largest effort, or this by the names of joints."""
JointOrdering = Literal["dfs", "bfs", "dfs_by_name"] | None
"""Order in which the joints of an asset are added."""


class ImportOptions(TypedDict, total=False):
    """Options of every importer."""

    xform: Any
    """Pose of the asset in the world, or in `parent_body`: of the world frame of a MuJoCo model, the base
    link of a URDF robot, or the stage, rotated so that its up axis is that of the builder."""
    floating: bool | None
    """Whether the base moves freely. True frees a base that the file fixes to the world; False fixes a free
    one in place. None keeps the base as authored, which in URDF is fixed."""
    base_joint: Mapping[str, Any] | None
    """Joint of the base instead of a fixed or free one, as a mapping: `joint_type` (fixed, free,
    revolute, prismatic, ball or d6), `axis` and the other fields of `JointDofConfig`, `linear_axes` and
    `angular_axes` of D6, `child_xform`, `collision_filter_parent`, `label`. At zero the base has its authored
    pose. It excludes `floating`."""
    parent_body: Annotated[int, -1]
    """Body that the base is mounted on; `xform` is then a pose in that body. -1 is the world."""
    override_root_xform: Annotated[bool, False]
    """Whether `xform` is the pose of the first body, whatever its pose in the file."""
    enable_self_collisions: Annotated[bool, True]
    """Whether bodies of the asset collide with each other. A USD articulation may override it."""
    force_show_colliders: Annotated[bool, False]
    """Whether colliders of bodies with display geometry are visible too."""
    collapse_fixed_joints: Annotated[bool, False]
    """Whether bodies behind fixed joints, in MJCF bodies without a joint, become part of their parents. URDF
    joints with the attribute `dont_collapse="true"` stay."""
    mesh_maxhullvert: Annotated[int, 64]
    """Largest number of vertices of the convex hull of a collision mesh."""
    drive_gains: Gains
    """Stiffness and damping of drives for joints without one in the asset [N·m/rad and N·m·s/rad, of slides
    N/m and N·s/m], whose targets are the initial positions; or a mapping from names of joints (with
    wildcards) to such pairs. None leaves them undriven."""
    effort_limit: Limits
    """Largest effort of drives without a limit in the asset [N·m or N]; or a mapping as above."""
    strict: Annotated[bool, False]
    """Whether to raise for features that cannot be represented, rather than warn."""


class XmlOptions(ImportOptions, total=False):
    """Options of MJCF and URDF."""

    up_axis: Annotated[Any, "z"]
    """Axis of the file that becomes the up axis of the builder: "x", "y", "z" or an `Axis`."""
    scale: Annotated[float, 1.0]
    """Factor on all lengths; masses are kept, inertias follow."""
    hide_visuals: Annotated[bool, False]
    """Whether display geometry is added invisible."""
    parse_visuals_as_colliders: Annotated[bool, False]
    """Whether the display geometry of a body replaces its colliders."""
    ignore_inertial_definitions: Annotated[bool, False]
    """Whether mass and inertia follow from the colliders even where `<inertial>` gives them."""


class OrderOptions(ImportOptions, total=False):
    """Options of URDF and USD."""

    load_visual_shapes: Annotated[bool, True]
    """Whether display geometry is added."""
    joint_ordering: Annotated[JointOrdering, "dfs"]
    """Order of the joints: "dfs" and "bfs" from the base of each tree, siblings as in the file;
    "dfs_by_name", of URDF only, with siblings by the names of their joints; or None for the order in the
    file."""
    bodies_follow_joint_ordering: Annotated[bool, True]
    """Whether bodies are in the order of their joints; otherwise in that of the file."""


class MjcfOptions(XmlOptions, total=False):
    """Options of `add_mjcf`."""

    armature_scale: Annotated[float, 1.0]
    """Factor on all armatures."""
    parse_visuals: Annotated[bool, True]
    """Whether display geometry is added."""
    parse_meshes: Annotated[bool, True]
    """Whether meshes are read; without them mesh geoms are left out."""
    parse_sites: Annotated[bool, True]
    """Whether sites are added."""
    ignore_names: Annotated[Sequence[str], ()]
    """Regular expressions; bodies (with all below), geoms and sites of such names are left out."""
    ignore_classes: Annotated[Sequence[str], ()]
    """Regular expressions; geoms of such default classes are left out."""
    skip_equality_constraints: Annotated[bool, False]
    """Whether equality constraints of bodies and joints are left out."""
    visual_classes: Annotated[Sequence[str], ("visual",)]
    """Regular expressions of default classes whose geoms only display."""
    collider_classes: Annotated[Sequence[str], ("collision",)]
    """Regular expressions of default classes whose geoms collide if their contact bits allow it."""
    no_class_as_colliders: Annotated[bool, True]
    """Whether geoms in neither kind of class collide if their contact bits allow it."""
    keyframe: Annotated[str | int | None, "auto"]
    """Keyframe of the initial state by name or index; "auto" takes one called home or stand, else the first;
    None takes the configuration as authored."""


class UrdfOptions(XmlOptions, OrderOptions, total=False):
    """Options of `add_urdf`."""

    mesh_scale: Annotated[float | Sequence[float], 1.0]
    """Further factor on meshes, or one per axis."""
    planar_joints_turn: Annotated[bool, False]
    """Whether planar joints also rotate about their axis: three degrees of freedom."""
    split_bimanual_root_articulation: Annotated[bool, False]
    """Whether each limb on a fixed base becomes its own articulation, `ROBOT/LINK`, if there are several,
    like the two arms of a torso. The base keeps `ROBOT`."""
    package_dirs: Mapping[str, str | Path] | Sequence[str | Path] | None
    """Folders that contain the packages of `package://` references, or folders by package name."""


class UsdOptions(OrderOptions, total=False):
    """Options of `add_usd`."""

    root_path: Annotated[str, "/"]
    """Prim whose subtree is imported."""
    ignore_paths: Annotated[Sequence[str], ()]
    """Regular expressions; prims whose path starts with a match are left out."""
    only_load_enabled_rigid_bodies: Annotated[bool, False]
    """Whether bodies with `rigidBodyEnabled = false` are part of the world; otherwise they move like the
    others."""
    only_load_enabled_joints: Annotated[bool, True]
    """Whether joints with `jointEnabled = false` are left out."""
    skip_mesh_approximation: Annotated[bool, False]
    """Whether the bounding cubes and spheres of collision meshes are not used."""
    load_sites: Annotated[bool, True]
    """Whether prims with `MjcSiteAPI` or `NewtonSiteAPI` are added as sites."""
    hide_collision_shapes: Annotated[bool, False]
    """Whether colliders of bodies with display geometry are invisible."""
    apply_up_axis_from_stage: Annotated[bool, False]
    """Whether the axes of the stage are kept; otherwise the stage is rotated so that its up axis is that of
    the builder. If they are kept, the builder adopts the up axis of the stage."""
    joint_drive_gains_scaling: Annotated[float, 1.0]
    """Factor on stiffness and damping of angular drives."""
    force_position_velocity_actuation: Annotated[bool, False]
    """Whether drives with stiffness and damping also follow a velocity target, even if the stage has none."""


class MjcfSettings(MjcfOptions):
    """Inputs of the parts of the MJCF importer: all options, and the reader of custom attributes."""

    custom: "MjcfCustom"
    """Reads the custom attributes that the builder declares."""


class UsdSettings(UsdOptions):
    """Inputs of the parts of the USD importer: all options, and the up axis of the builder."""

    up_axis: "Axis"
    """Axis of the builder that points up."""
