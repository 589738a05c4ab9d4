"""Worlds that hold different things: variants of an entity, shared out over worlds and changed at reset.

`pluriverse.entity` and `pluriverse.scene` give the configurations under the names that scenes of mjlab use.
"""

from pluriverse.variants.config import (
    EntityCfg,
    InitialStateCfg,
    PreparedWorlds,
    SceneCfg,
    VariantEntityCfg,
    VariantMode,
)
from pluriverse.variants.layout import Slot
from pluriverse.variants.scene import VariantScene, make_scene
from pluriverse.variants.simulation import VariantSimulation
from pluriverse.variants.tables import VARIANT_DEPENDENT_FIELDS

__all__ = [
    "VARIANT_DEPENDENT_FIELDS",
    "EntityCfg",
    "InitialStateCfg",
    "PreparedWorlds",
    "SceneCfg",
    "Slot",
    "VariantEntityCfg",
    "VariantMode",
    "VariantScene",
    "VariantSimulation",
    "make_scene",
]
