"""Gravity compensation: the share of each body's weight that is taken off it, as by a spring or a controller.

MJCF names it `gravcomp`. 1 makes a body weightless, more makes it rise. The lifting force acts at the centre
of mass, as `body_f` does, so it changes neither masses nor what bodies feel of each other.
"""

from weakref import WeakKeyDictionary

import warp as wp

from pluriverse.launch import kept_for
from pluriverse.model import Model
from pluriverse.model.attributes import GRAVITY_COMPENSATION, find_attribute

_none: WeakKeyDictionary[Model, wp.array] = WeakKeyDictionary()


def gravity_compensation(model: Model) -> wp.array:
    """Return the shares, shape [body], or an array without entries if the model has none."""
    shares = find_attribute(model, GRAVITY_COMPENSATION)
    return kept_for(model, _none, _make_none) if shares is None else shares


def _make_none(model: Model) -> wp.array:
    return wp.zeros(0, dtype=float, device=model.device)
