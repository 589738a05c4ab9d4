"""Scenes damaged at random: each is refused with a scene error, or loads."""

import copy
import json
import random
import warnings

import pytest

from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.scene.document import read_scene_document

from .scene_files import places, write_scene

WHOLE = """
schema_version: 1
name: whole
simulation: {dt: 0.01, num_worlds: 2, max_rigid_contact: 16, solver: {max_iterations: 20, rho: 0.8}}
builder:
  rigid_gap: 0.01
  gravity: -9.81
  defaults: {shape: {mu: 0.5, ke: 1e4}, joint: {armature: 0.1}}
ground: {height: -1, label: floor, cfg: {mu: 0.3}}
assets:
  - id: robot
    type: mjcf
    source: "<mujoco><worldbody><body name='b'><joint/><geom size='0.1'/></body></worldbody></mujoco>"
    xform: {p: [0, 0, 1], q: {axis_angle: {axis: [0, 0, 1], angle: pi / 2}}}
bodies:
  - id: a
    transform: {p: [0, 0, 1], q: identity}
    mass: 1
    shapes: [{type: box, hx: 0.1, cfg: {density: 10}}]
  - {id: b, physics: {mu: 1}, shapes: [{type: capsule, radius: 0.1, half_height: 0.2, color: [1, 0, 0]}]}
joints:
  - {id: free, type: free, child: a}
  - {id: hinge, type: revolute, parent: a, child: b, axis: [0, 1, 0], limit_lower: -1, target_ke: 3}
articulations: [{id: tree, joints: [free, hinge]}]
initial_joint_q: [{joint: hinge, value: 0.1}, {index: 3, value: 1}]
post_build:
  - {op: set_joint_targets, joint: hinge, ke: 10, kd: 1}
  - {op: set_array, array: joint_armature, range: tail:2, values: [0.1, 0.2]}
  - {op: copy_array, src: joint_q, dst: joint_target_pos, src_range: {index: 0}, dst_range: {index: 0}}
  - {op: add_shape, type: sphere, radius: 0.1, body: b}
replicate: {spacing: [1, 0, 0]}
"""

JUNK = [
    None,
    True,
    -1,
    0,
    1e400,
    10**400,
    0.5,
    "",
    "x",
    "1/0",
    "pi",
    "free",
    [],
    [1],
    [1, 2, 3],
    {},
    {"x": 1},
    [[]],
]


def damaged(document, generator):
    """Return a copy of a document with one or two values replaced, removed, renamed or doubled."""
    result = copy.deepcopy(document)
    for _ in range(generator.choice([1, 1, 2])):
        path = generator.choice(list(places(result)))
        parent = result
        for key in path[:-1]:
            parent = parent[key]
        key = path[-1]
        match generator.randrange(4):
            case 0:
                parent[key] = generator.choice(JUNK)
            case 1:
                del parent[key]
            case 2 if isinstance(parent, dict):
                parent[f"{key}s"] = parent.pop(key)
            case _ if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            case _:
                parent[key] = [parent[key]]
    return result


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("strict", [True, False])
def test_damaged_scenes_are_refused_or_loaded(tmp_path, seed, strict):
    """No other error escapes, and what loads has a finite state."""
    generator = random.Random(seed)
    document = read_scene_document(write_scene(tmp_path, WHOLE)).data
    load_scene(tmp_path / "scene.yaml", device="cpu")
    messages = []
    for _ in range(25):
        path = write_scene(tmp_path, json.dumps(damaged(document, generator)), "damaged.json")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scene = load_scene(path, device="cpu", strict=strict)
            except SapSceneLoaderError as error:
                messages.append(str(error))
                continue
        assert scene.model.world_count >= 1
    assert all("damaged.json" in message for message in messages)
