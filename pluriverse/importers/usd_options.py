"""Options of the USD importer, as its parts read them."""

import dataclasses

from pluriverse.importers.urdf_links import JointOrdering
from pluriverse.types import Axis


@dataclasses.dataclass(frozen=True)
class UsdOptions:
    """The options of `add_usd`; see there."""

    floating: bool | None
    root_path: str
    ignore_paths: tuple[str, ...]
    only_load_enabled_rigid_bodies: bool
    only_load_enabled_joints: bool
    skip_mesh_approximation: bool
    load_sites: bool
    load_visual_shapes: bool
    hide_collision_shapes: bool
    force_show_colliders: bool
    up_axis: Axis
    """Axis of the builder that points up."""
    apply_up_axis_from_stage: bool
    joint_drive_gains_scaling: float
    force_position_velocity_actuation: bool
    enable_self_collisions: bool
    mesh_maxhullvert: int
    joint_ordering: JointOrdering
    bodies_follow_joint_ordering: bool
