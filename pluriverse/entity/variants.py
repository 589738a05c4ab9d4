"""Arrays that depend on the variant of an entity, under the name that scenes of mjlab import."""

from pluriverse.variants.tables import VARIANT_DEPENDENT_FIELDS as VARIANT_DEPENDENT_FIELDS
