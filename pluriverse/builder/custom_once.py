"""Values of the whole model that only some of its worlds give, as where one file of several has options."""

import warnings

import numpy as np

from pluriverse.builder.custom_columns import as_value
from pluriverse.builder.snapshot import Snapshot
from pluriverse.types import Entity


def warn_of_values_of_others(source: Snapshot) -> None:
    """Warn if a world with bodies gets a value of the whole model that only parts of other worlds give.

    A value that equals the default changes nothing for the worlds without one.
    """
    builder, occupied = source.builder, None
    for attribute in builder.custom_attributes.read_of(Entity.ONCE):
        column = attribute.column
        if not column.has_first or column.giving_worlds is None:
            continue
        value, default = as_value(column.rows[0]), as_value(np.asarray(column.default))
        if value == default:
            continue
        if occupied is None:
            occupied = np.unique(source.body_world[source.body_world >= 0])
        giving = np.concatenate(column.giving_worlds)
        others = np.setdiff1d(occupied, giving)
        if not len(others):
            continue
        names = [f"world {world} ('{source.world_label[world]}')" for world in (giving[0], others[0])]
        silent = f"{names[1]} gives none and gets"
        if len(others) > 1:
            silent = f"{names[1]} and {len(others) - 1} more give none and get"
        warnings.warn(
            f"{attribute.label} has one value for the whole model, {value}, given in {names[0]}; {silent} "
            f"{value} in place of the default {default}. Give the same in all worlds, or for all of them by "
            f"builder.custom_attributes['{attribute.key}'].values[0].",
            stacklevel=4,
        )
