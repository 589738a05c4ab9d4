"""The device that the tests of this room compare with the CPU."""

import os

import pytest
import warp as wp

from tests.simulation.worlds import KINDS


@pytest.fixture(scope="session")
def device() -> str:
    """Return the first CUDA device, or that which PLURIVERSE_TEST_DEVICE names; skip without one.

    With `PLURIVERSE_TEST_DEVICE=cpu`, the tests compare the CPU with itself, which shows that they run.
    """
    chosen = os.environ.get("PLURIVERSE_TEST_DEVICE", "cuda:0")
    if chosen not in {str(device) for device in wp.get_devices()}:
        pytest.skip(f"needs a CUDA device: Warp finds no '{chosen}' on this machine")
    return chosen


@pytest.fixture(scope="session")
def mixed_kinds() -> list[str]:
    """Return the kinds of 48 worlds in no order, so that a warp of the device holds several."""
    return [list(KINDS)[index] for index in (0, 1, 2, 3, 3, 1, 0, 2) * 6]
