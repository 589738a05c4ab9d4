"""Worlds with different contents: variants of an entity, distributed over worlds and changed at reset.

`pluriverse.entity` and `pluriverse.scene` export the configurations under the names that mjlab's scenes use.
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
from pluriverse.variants.scene import make_scene
from pluriverse.variants.simulation import VariantScene, VariantSimulation
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
