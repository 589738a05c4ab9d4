"""A part of the worlds of a scene is what these worlds are in the whole scene."""

from pathlib import Path

import numpy as np
import pytest

from pluriverse.scene import SapSceneLoaderError
from pluriverse.scene.loader import read_scene
from pluriverse.warnings import MissingEntityWarning

RANDOMIZED = """
schema_version: 1
worlds:
  - name: box
    count: 3
    joints: [{id: hover, type: free, child: box}]
    bodies:
      - id: box
        mass: 1.0
        inertia: &inertia [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]]
        transform: {p: [0, 0, 0.2]}
        shapes: [{type: box, hx: 0.1, hy: 0.1, hz: 0.1}]
  - name: ball
    count: 2
    gravities: [[0, 0, -1], [0, 0, -2]]
    max_rigid_contact: 7
    joints: [{id: hover, type: free, child: ball}]
    bodies:
      - id: ball
        mass: 1.0
        inertia: *inertia
        transform: {p: [0, 0, 0.2]}
        shapes: [{type: sphere, radius: 0.1}]
simulation: {max_rigid_contact: 5}
randomize:
  seed: 3
  terms:
    - {property: body_mass, distribution: {uniform: [1.0, 2.0]}, operation: scale}
"""


@pytest.fixture
def scene_file(tmp_path: Path) -> Path:
    path = tmp_path / "scene.yaml"
    path.write_text(RANDOMIZED)
    return path


def test_parts_stand_move_and_draw_as_in_the_whole(scene_file):
    """Worlds 2 to 3 of six have the pose, gravity, capacity, draws and bits that they have among all six."""
    read = read_scene(scene_file, num_worlds=6)
    whole, part = read.build("cpu"), read.build("cpu", worlds=range(2, 5))
    assert (part.model.world_count, part.first_world) == (3, 2)
    assert part.kind_of_world == whole.kind_of_world[2:5]
    assert part.settings.max_rigid_contact == whole.settings.max_rigid_contact[2:5]
    np.testing.assert_array_equal(part.model.gravity.numpy(), whole.model.gravity.numpy()[2:5])
    states = []
    for scene in (whole, part):
        with scene.simulation(threads=1) as simulation:
            scene.randomizer(simulation).apply()
            simulation.step(40)
            states.append((scene.model.body_mass.numpy(), simulation.state.body_q.numpy()))
    for in_whole, alone in zip(*states, strict=True):
        np.testing.assert_array_equal(alone, in_whole[2:5])


def test_a_part_may_lack_what_is_drawn_elsewhere(scene_file):
    """A term of balls draws nothing in a part of boxes, and says so."""
    scene_file.write_text(RANDOMIZED.replace("operation: scale}", "operation: scale, entities: ball}"))
    read = read_scene(scene_file)
    with pytest.warns(MissingEntityWarning, match="no body matches 'ball'.*another part may have some"):
        part = read.build("cpu", worlds=range(2))
    masses = part.model.body_mass.numpy().copy()
    with part.simulation(threads=1) as simulation, pytest.warns(MissingEntityWarning):
        part.randomizer(simulation).apply()
    np.testing.assert_array_equal(part.model.body_mass.numpy(), masses)
    with pytest.raises(SapSceneLoaderError, match="no body matches 'ball'"):
        read.build("cpu", counts=[2, 0])


@pytest.mark.parametrize("worlds", [range(-1, 2), range(3, 3), range(4, 7), range(0, 4, 2)])
def test_what_is_no_part_is_refused(scene_file, worlds):
    with pytest.raises(ValueError, match="range of neighbours among its 6 worlds"):
        read_scene(scene_file, num_worlds=6).build("cpu", worlds=worlds)
