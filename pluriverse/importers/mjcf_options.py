"""The options of `add_mjcf`, and what the builder keeps, as the parts of the importer pass them on."""

import dataclasses
from collections.abc import Sequence

from pluriverse.importers.mjcf_custom import MjcfCustom


@dataclasses.dataclass(frozen=True, kw_only=True)
class MjcfOptions:
    """The keyword options of `add_mjcf`, see there, and the reader of custom attributes."""

    floating: bool | None
    scale: float
    armature_scale: float
    hide_visuals: bool
    force_show_colliders: bool
    parse_visuals: bool
    parse_visuals_as_colliders: bool
    parse_meshes: bool
    parse_sites: bool
    ignore_names: Sequence[str]
    ignore_classes: Sequence[str]
    visual_classes: Sequence[str]
    collider_classes: Sequence[str]
    no_class_as_colliders: bool
    ignore_inertial_definitions: bool
    mesh_maxhullvert: int
    keyframe: str | int | None
    custom: MjcfCustom
    """Reads the custom attributes that the builder declares."""
