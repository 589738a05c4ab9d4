"""Which bodies, shapes or sites a sensor of a model is about, by labels or indices."""

import re
from collections.abc import Sequence

import numpy as np

from pluriverse.model import Model
from pluriverse.model.entity_names import entity_name
from pluriverse.selection.patterns import Patterns, match_labels
from pluriverse.types import Entity, GeoType, ShapeFlags


def select_entities(model: Model, kind: str, patterns: Patterns, what: str) -> np.ndarray:
    """Return indices of bodies or shapes: those of a list of numbers as given, others in ascending order.

    Args:
        model: The model.
        kind: "body" or "shape".
        patterns: Labels, patterns or indices.
        what: The argument, for messages.

    Raises:
        IndexError: If an index is out of range.
        KeyError: If a pattern finds nothing.
        ValueError: If the list is empty, or names one twice.
    """
    labels: Sequence[str] = getattr(model, f"{kind}_label")
    single = isinstance(patterns, str | re.Pattern | int | np.integer)
    values = [patterns] if single else list(patterns)  # type: ignore[arg-type]
    if not values:
        raise ValueError(f"{what} is an empty list. Name at least one {kind}.")
    if not all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values):
        found = match_labels(labels, np.arange(len(labels)), patterns, what=what, kind=kind)
        return np.flatnonzero(found)
    for value in values:
        if not 0 <= value < len(labels):  # type: ignore[operator]
            raise IndexError(f"{what}: {kind} {value} does not exist; the model has {len(labels)}.")
    if len(set(values)) < len(values):
        raise ValueError(f"{what}: {values} names a {kind} twice. Name each once.")
    return np.array(values, dtype=np.int64)


def select_sites(model: Model, patterns: Patterns, what: str) -> np.ndarray:
    """Return indices of sites.

    Raises:
        ValueError: If a shape is none.
    """
    shapes = select_entities(model, "shape", patterns, what)
    flags = model.shape_flags.numpy()[shapes]
    if not (flags & ShapeFlags.SITE).all():
        wrong = int(shapes[np.flatnonzero((flags & ShapeFlags.SITE) == 0)[0]])
        kind = GeoType(int(model.shape_type.numpy()[wrong])).name.lower()
        raise ValueError(
            f"{what}: {entity_name(model, Entity.SHAPE, wrong)} is a {kind}, but no site. Add a "
            "site there by builder.add_site()."
        )
    return shapes


def world_of(model: Model, world: np.ndarray) -> np.ndarray:
    """Return the worlds of entities, those of the only world for entities of none; -1 is left of others."""
    return np.where(world < 0, 0, world) if model.world_count == 1 else world
