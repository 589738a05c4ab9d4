"""Lights: what scripts let shine on the pictures of a sim."""

import dataclasses

import numpy as np

LIGHT_COUNT = 4
"""Lights that a script may set."""


@dataclasses.dataclass
class DistantLight:
    """A light that is infinitely far away, and its share of ambient light."""

    intensity: np.ndarray
    """Red, green and blue of the light, from 0 up, shape [3]."""
    ambient: np.ndarray
    """Red, green and blue of the ambient light, shape [3]."""
    direction: np.ndarray
    """Where it stands, any length, shape [3]."""


class Lights:
    """The lights of a sim; those of our own until a script sets one."""

    def __init__(self) -> None:
        self.by_number: dict[int, DistantLight] = {}
        """Those that were set."""
        self.version = 0
        """Counts changes."""

    def set(self, number: int, light: DistantLight) -> None:
        """Set one of the lights."""
        self.by_number[number] = light
        self.version += 1
