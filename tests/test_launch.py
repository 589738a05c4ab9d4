"""Launches: all kernels go through one function, in blocks of one size."""

from pathlib import Path

import pytest
import warp as wp

import pluriverse
from pluriverse import ModelBuilder, Simulation
from pluriverse.launch import BLOCK_DIM

SOURCES = Path(pluriverse.__file__).parent


def test_nothing_launches_by_itself():
    """No module but one calls Warp's launch, whose blocks would have another size."""
    callers = [path.name for path in SOURCES.rglob("*.py") if "wp.launch(" in path.read_text()]
    assert callers == ["launch.py"]


@pytest.fixture
def falling_box():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
    return builder.finalize(device="cpu")


def test_steps_are_launched_and_loaded_in_blocks_of_one_size(falling_box, monkeypatch):
    """Collision, solver and statistics ask for the size that their modules were compiled for."""
    launch, load = wp.launch, wp.load_module
    sizes = {"launch": set(), "load": set()}

    def noted_launch(*positional, **named):
        sizes["launch"].add(named.get("block_dim"))
        return launch(*positional, **named)

    def noted_load(*positional, **named):
        sizes["load"].add(named.get("block_dim"))
        return load(*positional, **named)

    monkeypatch.setattr(wp, "launch", noted_launch)
    monkeypatch.setattr(wp, "load_module", noted_load)
    Simulation(falling_box, dt=0.005, record=False).step(2)
    assert sizes == {"launch": {BLOCK_DIM}, "load": {BLOCK_DIM}}
