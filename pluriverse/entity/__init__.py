"""Configurations of entities under the names that scenes of mjlab import; see `pluriverse.variants`."""

from pluriverse.variants.config import EntityCfg as EntityCfg
from pluriverse.variants.config import VariantEntityCfg as VariantEntityCfg

__all__: list[str] = []
