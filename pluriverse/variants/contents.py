"""Contents of a scene of variants: entities, the worlds of environments, and the numbers of variants."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.model.schema import ENTITY_OF_ARRAY
from pluriverse.types import Entity
from pluriverse.variants.config import SceneCfg
from pluriverse.variants.layout import Layout, Slot
from pluriverse.variants.tables import VARIANT_DEPENDENT_FIELDS, VariantRows, VariantTables


@dataclass
class SceneEntity:
    """An entity with all its variants."""

    name: str
    """Name in the scene."""
    variants: tuple[str, ...]
    """Names of its variants."""
    has_variants: bool
    """Whether it was configured with variants."""
    layouts: list[Layout]
    """Layouts of the variants."""
    rows: list[VariantRows | None]
    """Numbers of the variants of each layout; None for a layout of one variant."""
    assignment: np.ndarray
    """Variant of each environment at the beginning."""
    shares: np.ndarray
    """Share of each variant in draws, sum 1."""
    layout_of: np.ndarray = field(init=False)
    """Layout of each variant."""

    def __post_init__(self) -> None:
        self.layout_of = np.zeros(len(self.variants), dtype=np.int64)
        for index, layout in enumerate(self.layouts):
            self.layout_of[layout.variants] = index


@dataclass
class SceneContents:
    """What a scene of variants holds: its entities, their worlds, and where variants differ."""

    config: SceneCfg
    """What it was made from."""
    model: Model
    """Model of all worlds."""
    entities: dict[str, SceneEntity]
    """Entities by name."""
    tuples: list[tuple[int, ...]]
    """Layout of every entity, for each kind of world."""
    environment_tuple: np.ndarray
    """Index into `tuples` of each environment at the beginning."""
    environment_world: np.ndarray
    """World of each environment at the beginning."""
    tuple_first: np.ndarray | None
    """First world of each tuple, and the end, where environments may change theirs; else None."""
    tables: VariantTables
    """Numbers of variants that share layouts."""
    per_world_default_fields: dict[str, Any]
    """Default values of the arrays of the model that depend on variants, each in the shape of that array."""
    offsets: list[list[dict[Entity, int]]]
    """By kind, offset of each entity's entities in a world, for each kind of world."""
    builder: Any
    """The builder with all worlds. Variants that share a layout have the numbers of the first one in it."""
    first_environment: int = 0
    """Index of environment 0 in the whole scene, where only a part of its environments was made."""

    @property
    def environment_count(self) -> int:
        """Number of environments."""
        return self.config.num_envs

    def slots(self, entity: str) -> list[list[Slot]]:
        """Return the slots of each layout of an entity.

        Raises:
            KeyError: If there is no such entity.
        """
        return [layout.slots for layout in self._entity(entity).layouts]

    def variant_names(self, entity: str) -> tuple[str, ...]:
        """Return the names of the variants of an entity, by index.

        Raises:
            KeyError: If there is no such entity.
        """
        return self._entity(entity).variants

    def variant_rows(self, name: str) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Yield the defaults of all variants that share layouts, for an array of the model.

        Args:
            name: Name of the array.

        Yields:
            A key of the layout, its entries in the array in one world, and their values, shape [variant,
            entry, ...]. Layouts in which variants do not differ are left out.
        """
        if name not in VARIANT_DEPENDENT_FIELDS:
            return
        kind = ENTITY_OF_ARRAY[name]
        for position, entity in enumerate(self.entities.values()):
            for index, rows in enumerate(entity.rows):
                members = [row for row, layouts in enumerate(self.tuples) if layouts[position] == index]
                if rows is None or name not in rows.arrays or not members:
                    continue
                if self.tuple_first is not None:
                    world = int(self.tuple_first[members[0]])
                else:
                    environment = int(np.argmax(self.environment_tuple == members[0]))
                    if self.environment_tuple[environment] != members[0]:
                        continue
                    world = int(self.environment_world[environment])
                first = self.tables.world_first(kind, world) + self.offsets[members[0]][position][kind]
                count = rows.counts[kind]
                values = rows.arrays[name].reshape(len(rows.arrays[name]), count, -1)
                yield (entity.name, index), first + np.arange(count), values

    def mesh_rows(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the meshes that shapes of variants that share layouts may be given.

        Yields:
            Shapes of one world that is of such a layout, their entries in `shape_source_index` of the model,
            shape [variant, shape], and their sizes, shape [variant, shape, 3].
        """
        names = ("shape_source_index", "shape_scale")
        source, scale = (dict(_by_key(self.variant_rows(name))) for name in names)
        for key in {**source, **scale}:
            shapes = (source.get(key) or scale[key])[0]
            columns = []
            for name, rows in zip(names, (source, scale), strict=True):
                if key in rows:
                    columns.append(rows[key][1])
                else:  # variants do not differ in it
                    own = getattr(self.model, name).numpy()[shapes]
                    columns.append(own.reshape(1, len(shapes), -1))
            count = max(len(column) for column in columns)
            sources, scales = (np.broadcast_to(c, (count, *c.shape[1:])) for c in columns)
            yield shapes, sources[..., 0], scales

    def _entity(self, name: str) -> SceneEntity:
        if name not in self.entities:
            known = ", ".join(self.entities) or "none"
            raise KeyError(f"there is no entity '{name}'; the scene has {known}")
        return self.entities[name]


def _by_key(
    rows: Iterable[tuple[Any, np.ndarray, np.ndarray]],
) -> Iterator[tuple[Any, tuple[np.ndarray, np.ndarray]]]:
    for key, entries, values in rows:
        yield key, (entries, values)
