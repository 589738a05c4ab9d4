"""Simulations to look at."""

import pytest

import pluriverse as pv

pytest.importorskip("viser", reason="the extra 'view' is not installed")


@pytest.fixture
def simulation():
    """The mixed scene: eight worlds of five kinds."""
    with pv.load_scene("mixed").simulation(threads=1) as simulation:
        yield simulation


@pytest.fixture
def viewer(simulation):
    with pv.view(simulation, verbose=False) as viewer:
        yield viewer
