"""Scene files that are wrong: each error names the place, the value and the remedy."""

import json
import re

import numpy as np
import pytest

from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.scene.document import read_scene_document

from .scene_files import BOX, CHAIN, load_text, write_scene

BODY = "bodies:\n  - {id: a, shapes: [{type: box}]}\n"

# name: (scene, what the message must say)
WRONG = {
    # versions, sections and keys
    "version": ("schema_version: 2", [":1: schema_version: 2 is not a version", "write 1"]),
    "version of another type": ("schema_version: true", ["schema_version: True is not a version"]),
    "unknown section": (
        BODY + "simulatoin: {dt: 0.1}",
        ["unknown key 'simulatoin'; did you mean simulation"],
    ),
    "unknown key of a section": (
        "simulation: {timestep: 1}",
        ["simulation.timestep: unknown key 'timestep'"],
    ),
    "unknown solver option": (
        "simulation:\n  solver:\n    max_iteration: 3",
        [":3: simulation.solver.max_iteration", "did you mean max_iterations"],
    ),
    "unknown builder setting": ("builder: {rigid_gab: 1}", ["builder.rigid_gab", "did you mean rigid_gap?"]),
    "unknown default": (
        "builder: {defaults: {shape: {densty: 1}}}",
        ["builder.defaults.shape.densty", "did you mean density?"],
    ),
    "section of the wrong type": ("simulation: 3", ["simulation: 3 is not a mapping"]),
    "list instead of mapping": ("builder: [1]", ["builder: [1] is not a mapping"]),
    "mapping instead of list": ("bodies: {id: a}", ["bodies: {'id': 'a'} is not a list"]),
    "ground of the wrong type": ("ground: 3", ["ground: 3 is not a mapping"]),
    # numbers
    "text for a number": (BODY + "simulation: {dt: fast}", ["simulation.dt: 'fast' is not a number", "pi"]),
    "time step of zero": (
        BODY + "simulation: {dt: 0}",
        ["simulation.dt: 0 is out of range", "greater than 0"],
    ),
    "negative time step": (BODY + "simulation: {dt: -0.01}", ["simulation.dt: -0.01 is out of range"]),
    "infinite number": (
        BODY + "builder: {rigid_gap: .inf}",
        ["builder.rigid_gap: inf is not a finite number"],
    ),
    "boolean for a number": ("bodies: [{id: a, mass: true}]", ["bodies[0].mass: True is not a number"]),
    "no worlds": (
        BODY + "simulation: {num_worlds: 0}",
        ["simulation.num_worlds: 0 is out of range", "at least 1"],
    ),
    "worlds by halves": (
        BODY + "simulation: {num_worlds: 1.5}",
        ["simulation.num_worlds: 1.5 is not an integer"],
    ),
    "division by zero": ("bodies: [{id: a, mass: 1 / 0}]", ["bodies[0].mass: '1 / 0' divides by zero"]),
    "code for a number": (
        "bodies: [{id: a, mass: \"__import__('os').getpid()\"}]",
        ["bodies[0].mass", "is not a number", "parentheses"],
    ),
    "negative mass": ("bodies: [{id: a, mass: -1}]", ["bodies[0].mass: -1 is out of range", "at least 0"]),
    "negative friction": (
        "bodies: [{id: a, shapes: [{cfg: {mu: -0.1}}]}]",
        ["bodies[0].shapes[0].cfg.mu: -0.1 is out of range"],
    ),
    # transforms
    "short position": (
        "bodies: [{id: a, transform: {p: [1, 2]}}]",
        ["bodies[0].transform.p: [1, 2] is not a list of 3"],
    ),
    "unknown key of a transform": (
        "bodies: [{id: a, transform: {pos: [1, 2, 3]}}]",
        ["bodies[0].transform.pos: unknown key 'pos'; allowed here: p, q"],
    ),
    "text for a transform": (
        "bodies: [{id: a, transform: idenity}]",
        ["'idenity' is not a transform", "identity"],
    ),
    "quaternion of zero": (
        "bodies: [{id: a, transform: {q: [0, 0, 0, 0]}}]",
        ["bodies[0].transform.q", "has length 0", "[0, 0, 0, 1]"],
    ),
    "axis and angle as a quaternion": (
        "bodies: [{id: a, transform: {q: [0, 0, 1, 1.57]}}]",
        ["has length 1.861"],
    ),
    "rotation axis of zero": (
        "bodies: [{id: a, transform: {q: {axis_angle: {axis: [0, 0, 0], angle: 1}}}}]",
        ["bodies[0].transform.q.axis_angle.axis", "has no direction"],
    ),
    "angle missing": (
        "bodies: [{id: a, transform: {q: {axis_angle: {axis: [0, 0, 1]}}}}]",
        ["bodies[0].transform.q.axis_angle", "'angle' is missing"],
    ),
    "wrong entry of a vector": (
        "bodies: [{id: a, transform: {p: [0, up, 0]}}]",
        ["bodies[0].transform.p[1]: 'up' is not a number"],
    ),
    # bodies and shapes
    "body without id": ("bodies: [{mass: 1}]", ["bodies[0].id: this required key is missing"]),
    "empty id": ("bodies: [{id: ''}]", ["bodies[0].id: this text must not be empty"]),
    "body called world": ("bodies: [{id: world}]", ["bodies[0].id: 'world' means the world itself"]),
    "two bodies of one id": ("bodies: [{id: a}, {id: a}]", ["bodies[1].id: the body id 'a' is taken"]),
    "unknown type of shape": (
        "bodies: [{id: a, shapes: [{type: spere}]}]",
        ["bodies[0].shapes[0]", "there is no type 'spere'; did you mean sphere?"],
    ),
    "size of another shape": (
        "bodies: [{id: a, shapes: [{type: sphere, hx: 1}]}]",
        ["bodies[0].shapes[0].hx: unknown key 'hx'", "radius"],
    ),
    "misspelt size": (
        "bodies:\n  - id: a\n    shapes:\n      - {type: capsule, half_heigth: 1}",
        [":4: bodies[0].shapes[0].half_heigth", "did you mean half_height"],
    ),
    "size of zero": (
        "bodies: [{id: a, shapes: [{type: box, hx: 0}]}]",
        ["bodies[0].shapes[0].hx: 0 is out of range"],
    ),
    "misspelt cfg": (
        "bodies: [{id: a, shapes: [{cfg: {frictoin: 1}}]}]",
        ["bodies[0].shapes[0].cfg.frictoin: unknown key 'frictoin'"],
    ),
    "alias twice": (
        "bodies: [{id: a, shapes: [{cfg: {gap: 1, shape_gap: 2}}]}]",
        ["bodies[0].shapes[0].cfg.shape_gap: 'shape_gap' and 'gap' mean the same; keep one"],
    ),
    "text for a switch": (
        "bodies: [{id: a, shapes: [{cfg: {is_site: perhaps}}]}]",
        ["bodies[0].shapes[0].cfg.is_site: 'perhaps' is not true or false"],
    ),
    "colour": (
        "bodies: [{id: a, shapes: [{color: red}]}]",
        ["bodies[0].shapes[0].color: 'red' is not a list of 3"],
    ),
    "missing mesh": (
        "bodies: [{id: a, shapes: [{type: mesh, path: none.stl}]}]",
        ["bodies[0].shapes[0].path: there is no mesh file", "relative to the scene file"],
    ),
    "mesh without path": (
        "bodies: [{id: a, shapes: [{type: mesh}]}]",
        ["bodies[0].shapes[0].path: this required key"],
    ),
    "order of axes": (
        "bodies: [{id: a, shapes: [{type: mesh, path: a.stl, axis_order: [0, 0, 1]}]}]",
        ["bodies[0].shapes[0].axis_order: [0, 0, 1] is not an order"],
    ),
    # joints and articulations
    "joint without child": (
        BODY + "joints: [{id: j, type: free}]",
        ["joints[0].child: this required key is missing"],
    ),
    "unknown joint type": (
        BODY + "joints: [{id: j, type: revolut, child: a}]",
        ["joints[0].type: there is no joint type 'revolut'; did you mean revolute?"],
    ),
    "unknown child": (
        BODY + "joints: [{id: j, type: free, child: b}]",
        [":3: joints[0].child: there is no body 'b'", "a"],
    ),
    "unknown parent": (
        BODY + "joints: [{id: j, type: free, parent: wrld, child: a}]",
        ["joints[0].parent: there is no body 'wrld'; did you mean world?"],
    ),
    "world as child": (
        BODY + "joints: [{id: j, type: free, child: world}]",
        ["joints[0].child: the world cannot be"],
    ),
    "joint of a body with itself": (
        BODY + "joints: [{id: j, type: fixed, parent: a, child: a}]",
        ["joints[0].child: the joint connects body 'a' with itself"],
    ),
    "unknown axis": (
        BODY + "joints: [{id: j, type: revolute, child: a, axis: w}]",
        ["joints[0].axis: 'w' is not an axis; write x, y, z"],
    ),
    "axis of zero": (
        BODY + "joints: [{id: j, type: revolute, child: a, axis: [0, 0, 0]}]",
        ["joints[0].axis: [0, 0, 0] has no direction"],
    ),
    "axis of a free joint": (
        BODY + "joints: [{id: j, type: free, child: a, axis: x}]",
        ["joints[0]: a free joint has no axis", "revolute or prismatic"],
    ),
    "limits the wrong way round": (
        BODY + "joints: [{id: j, type: revolute, child: a, limit_lower: 1, limit_upper: -1}]",
        ["joints[0]: limit_lower 1 is above limit_upper -1"],
    ),
    "unknown actuator mode": (
        BODY + "joints: [{id: j, type: revolute, child: a, actuator_mode: 7}]",
        ["joints[0].actuator_mode: 7 is not allowed here"],
    ),
    "two joints of one id": (
        BODY + "joints: [{id: j, type: free, child: a}, {id: j, type: free, child: a}]",
        ["joints[1].id: the joint id 'j' is taken"],
    ),
    "unknown joint of an articulation": (
        BOX + "articulations: [{joints: [box_fre]}]",
        ["articulations[0].joints[0]: there is no joint 'box_fre'; did you mean box_free?"],
    ),
    "articulation without joints": (
        BOX + "articulations: [{joints: []}]",
        ["articulations[0].joints: the list needs"],
    ),
    "joint in two articulations": (
        BOX + "articulations: [{joints: [box_free]}, {joints: [box_free]}]",
        ["articulations[1].joints[0]: joint 'box_free' is listed in an articulation already"],
    ),
    # initial positions
    "initial position of nothing": (
        BOX + "initial_joint_q: [{value: 1}]",
        ["initial_joint_q[0]: give either 'joint'"],
    ),
    "offset beyond the joint": (
        CHAIN + "initial_joint_q: [{joint: shoulder, offset: 1, value: 1}]",
        ["initial_joint_q[0].offset: offset 1 is out of range; joint 'shoulder' has 1 coordinates"],
    ),
    "index beyond the array": (
        CHAIN + "initial_joint_q: [{index: 3, value: 1}]",
        ["initial_joint_q[0].index: index 3 is out of range; joint_q has 3 entries"],
    ),
    "initial position of an unknown joint": (
        CHAIN + "initial_joint_q: [{joint: should, value: 1}]",
        ["initial_joint_q[0].joint: there is no joint 'should'; did you mean"],
    ),
    # assets
    "missing asset": (
        "assets: [{type: urdf, source: none.urdf}]",
        ["assets[0].source: there is no file", "none.urdf"],
    ),
    "asset without source": ("assets: [{type: urdf}]", ["assets[0].source: this required key is missing"]),
    "asset without type": (
        "assets: [{source: a.urdf}]",
        ["the required key 'type' is missing", "urdf, mjcf, usd"],
    ),
    "source of the wrong type": (
        "assets: [{type: urdf, source: 3}]",
        ["assets[0].source: 3 is not a source"],
    ),
    "misspelt asset option": (
        "assets: [{type: urdf, source: a.urdf, floatng: true}]",
        ["assets[0].floatng: unknown key 'floatng'; did you mean floating"],
    ),
    "option of another importer": (
        "assets: [{type: urdf, source: a.urdf, armature_scale: 2}]",
        ["assets[0].armature_scale: unknown key 'armature_scale'"],
    ),
    "broken asset": ("assets: [{type: urdf, source: '<robot'}]", ["assets[0].source:"]),
    # several kinds of world
    "worlds beside bodies": (
        BOX + "worlds: [{scene: a.yaml}]",
        ["a scene with 'worlds' keeps its content there; move 'bodies'"],
    ),
    "empty kind": ("worlds: [{count: 2}]", ["worlds[0]: these worlds are empty"]),
    "missing scene": ("worlds: [{scene: none.yaml}]", ["worlds[0].scene: there is no scene file"]),
    "scene and bodies": (
        "worlds: [{scene: a.yaml, bodies: [{id: a}]}]",
        ["worlds[0]: 'scene' brings all content"],
    ),
    # sources
    "two sources": (
        "assets: [{type: mjcf, source: {path: a.xml, menagerie: go2}}]",
        ["assets[0].source: give one of 'path', 'git', 'menagerie' and", "this has path and menagerie"],
    ),
    "unit": (
        "bodies: [{id: a, shapes: [{hx: 100 mm}]}]",
        ["'100 mm' is not a number; leave the unit out"],
    ),
    "size": (
        "bodies: [{id: a, shapes: [{hx: 1e300}]}]",
        ["1e+300 is out of range; it must be at most"],
    ),
    "name of a joint elsewhere": (
        BOX.replace("type: free", "type: hinge"),
        ["joints[0].type: a hinge joint is of type revolute here"],
    ),
    "asset of another type": (
        "assets: [{type: mjcf, source: '<robot name=\"a\"/>'}]",
        ["assets[0].type: the document is a <robot>; write type: urdf"],
    ),
    "empty source": ("assets: [{type: mjcf, source: {}}]", ["assets[0].source: give one of"]),
    "misspelt source": (
        "assets: [{type: mjcf, source: {gti: {}}}]",
        ["assets[0].source.gti: unknown key 'gti'; did you mean git?"],
    ),
    "branch instead of a commit": (
        "assets:\n  - type: usd\n    source: {git: {repo: 'https://a.org/b', rev: main, path: c.usd}}",
        [":3: assets[0].source.git.rev: 'main' is not a full commit id", "40 hexadecimal digits"],
    ),
    "repository by another protocol": (
        "assets: [{type: usd, source: {git: {repo: 'http://a.org/b', rev: main, path: c.usd}}}]",
        ["assets[0].source.git.repo: 'http://a.org/b' is not an address", "https://HOST/PATH"],
    ),
    "git without path": (
        "assets: [{type: usd, source: {git: {repo: 'https://a.org/b', rev: main}}}]",
        ["assets[0].source.git.path: this required key is missing"],
    ),
    "git path that leaves": (
        "assets: [{type: usd, source: {git: {repo: 'https://a.org/b', rev: main, path: ../c}}}]",
        ["assets[0].source.git.path: '../c' leads out of the repository"],
    ),
    "git folders that leave": (
        "assets: [{type: usd, source: {git: {repo: 'https://a.org/b', rev: a, path: c, sparse: [a, /b]}}}]",
        ["assets[0].source.git.sparse[1]: '/b' must be relative"],
    ),
    "path that leaves": (
        "assets: [{type: urdf, source: /etc/hostname}]",
        ["assets[0].source: '/etc/hostname' lies outside of the folders", "asset_roots="],
    ),
    "folder as a source": ("assets: [{type: urdf, source: .}]", ["assets[0].source: there is no file"]),
    # options of assets
    "up axis": (
        "assets: [{type: urdf, source: <robot/>, up_axis: w}]",
        ["assets[0].up_axis: 'w' is not allowed here", "'z'"],
    ),
    "order of joints": (
        "assets: [{type: urdf, source: <robot/>, joint_ordering: bsf}]",
        ["assets[0].joint_ordering: 'bsf' is not allowed here", "'bfs'"],
    ),
    "hull of no vertices": (
        "assets: [{type: urdf, source: <robot/>, mesh_maxhullvert: 0}]",
        ["assets[0].mesh_maxhullvert: 0 is out of range; it must be at least 1"],
    ),
    "negative scale": (
        "assets: [{type: mjcf, source: <mujoco/>, scale: -1}]",
        ["assets[0].scale: -1 is out of range; it must be greater than 0"],
    ),
    "mesh scale of two": (
        "assets: [{type: urdf, source: {path: <robot/>, mesh_scale: [1, 2]}}]",
        ["assets[0].source.mesh_scale: [1, 2] is not a list of 3 numbers"],
    ),
    "expression that is none": (
        "assets: [{type: mjcf, source: <mujoco/>, ignore_names: ['(']}]",
        ["assets[0].ignore_names[0]: '(' is not a regular expression"],
    ),
    "unknown parent of an asset": (
        'assets: [{type: urdf, source: \'<robot name="a"><link name="b"/></robot>\', parent_body: table}]',
        ["assets[0].parent_body: there is no body 'table'"],
    ),
    "material of an asset": (
        "assets: [{type: urdf, source: <robot/>, physics: {friction: 1}}]",
        ["assets[0].physics.friction: unknown key 'friction'"],
    ),
    "missing packages": (
        "assets: [{type: urdf, source: <robot/>, package_dirs: [nowhere]}]",
        ["there is no folder", "nowhere"],
    ),
    # values
    "long expression": (
        BODY + "builder: {rigid_gap: '" + "1+" * 200 + "1'}",
        ["builder.rigid_gap: an expression of 401 characters is too long; 200 are allowed"],
    ),
    "power": (BODY + "builder: {rigid_gap: 2 ** 3}", ["builder.rigid_gap: '2 ** 3' is not a number"]),
    "function": (BODY + "builder: {rigid_gap: sin(1)}", ["builder.rigid_gap: 'sin(1)' is not a number"]),
    "name": (BODY + "builder: {gravity: -g}", ["builder.gravity: '-g' is not a number"]),
    "gravity of two": (BODY + "builder: {gravity: [0, 0]}", ["builder.gravity: [0, 0] is not a list of 3"]),
    "spacing of one": (BODY + "replicate: {spacing: 2}", ["replicate.spacing: 2 is not a list of 3 numbers"]),
    "list of no number": (
        BODY + "replicate: {spacing: [2, x, 0]}",
        ["replicate.spacing[1]: 'x' is not a number"],
    ),
    "more worlds than an index counts": (
        BODY + "simulation: {num_worlds: 10000000000}",
        ["simulation.num_worlds: 10,000,000,000 is out of range; it must be at most 2,147,483,647"],
    ),
    "number of bits": (
        "bodies: [{id: a, shapes: [{cfg: {flags: visible}}]}]",
        ["bodies[0].shapes[0].cfg.flags: 'visible' is not an integer"],
    ),
    "colour above 255": (
        "bodies: [{id: a, shapes: [{color: [256, 0, 0]}]}]",
        ["bodies[0].shapes[0].color: [256, 0, 0] is not a colour; write [r, g, b] with 0 to 1 or 0 to 255"],
    ),
    "scale of zero": (
        "bodies: [{id: a, shapes: [{type: mesh, path: a.stl, scale: 0}]}]",
        ["bodies[0].shapes[0].scale: 0: a scale factor must be positive"],
    ),
    "mesh of another format": (
        "bodies: [{id: a, shapes: [{type: mesh, path: scene.yaml}]}]",
        ["bodies[0].shapes[0].path: files ending in '.yaml' are not read; convert it to one of .stl"],
    ),
    "rotation by words": (
        "bodies: [{id: a, transform: {q: upright}}]",
        ["bodies[0].transform.q: 'upright' is not a rotation; write identity, a quaternion"],
    ),
    "axis and angle in a list": (
        "bodies: [{id: a, transform: {q: {axis_angle: [0, 0, 1, 2]}}}]",
        ["bodies[0].transform.q.axis_angle: [0, 0, 1, 2] is not a mapping with axis and angle"],
    ),
    "body that is a text": ("bodies: [box]", ["bodies[0]: 'box' is not a mapping of keys and values"]),
    "shape that is a text": (
        "bodies: [{id: a, shapes: [box]}]",
        ["bodies[0].shapes[0]: 'box' is not a mapping"],
    ),
    "joint that is a number": (BODY + "joints: [3]", ["joints[0]: 3 is not a mapping"]),
    "reference of the wrong kind": (
        BODY + "joints: [{id: j, type: free, child: [a]}]",
        ["joints[0].child: ['a'] is neither a name nor an index"],
    ),
    "body beyond the last": (
        BODY + "joints: [{id: j, type: free, child: 1}]",
        ["joints[0].child: there is no body 1; this world has 1 bodies"],
    ),
    "ambiguous joint": (
        CHAIN.replace("arm/slide", "leg/shoulder").replace("id: shoulder", "id: s")
        + "initial_joint_q: [{joint: shoulder, value: 1}]",
        ["initial_joint_q[0].joint: 'shoulder' is ambiguous, it fits arm/shoulder (index 0), leg/shoulder"],
    ),
    "offset with an index": (
        CHAIN + "initial_joint_q: [{index: 0, offset: 1, value: 1}]",
        ["initial_joint_q[0]: 'offset' counts inside a joint"],
    ),
    "initial position without value": (
        CHAIN + "initial_joint_q: [{joint: shoulder}]",
        ["initial_joint_q[0].value: this required key is missing"],
    ),
    "operation without name": (
        BOX + "post_build: [{range: all}]",
        ["post_build[0]: the required key 'op' is missing or not a text", "set_array"],
    ),
    "solver option of the wrong kind": (
        BODY + "simulation: {solver: {max_iterations: many}}",
        ["simulation.solver.max_iterations: 'many' is not an integer"],
    ),
    "solver preset": (
        BOX + "simulation: {solver: {contact_preset_variant: fast}}",
        ["simulation.solver", "fast", "approx32"],
    ),
    "gravity twice": (
        "worlds: [{gravity: 1, gravities: [1], bodies: [{id: a}]}]",
        ["worlds[0]: 'gravity' and 'gravities' exclude each other"],
    ),
    "worlds of worlds": (
        "worlds: [{scene: scene.yaml}]",
        ["worlds[0].scene: 'scene.yaml' has 'worlds' itself; list its kinds here instead"],
    ),
    "control without source": (
        BODY + "control: {loop: true}",
        ["control.source: this required key is missing"],
    ),
    "merge of a list": (
        "bodies: [{<<: [1], id: a}]",
        ["'<<' merges another mapping or a list of mappings"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_names_place_value_and_remedy(tmp_path, name):
    text, expected = WRONG[name]
    with pytest.raises(SapSceneLoaderError) as caught:
        load_text(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "scene.yaml"))
    for part in expected:
        assert part in message


def test_there_are_enough_of_them():
    assert len(WRONG) >= 100


# What only YAML can say, or JSON says otherwise.
YAML_ONLY = ("merge of a list", "mesh of another format")


@pytest.mark.parametrize("name", [name for name in WRONG if name not in YAML_ONLY])
def test_the_same_in_json_with_its_own_lines(tmp_path, name):
    """One value a line, so that the line is that of the value alone."""
    text, expected = WRONG[name]
    data = read_scene_document(write_scene(tmp_path, text)).data
    path = write_scene(tmp_path, json.dumps(data, indent=1).replace("scene.yaml", "scene.json"), "scene.json")
    with pytest.raises(SapSceneLoaderError) as caught:
        load_scene(path, device="cpu")
    first = str(caught.value).splitlines()[0]
    place = re.match(rf"{re.escape(str(path))}:(\d+): (?:([\w.\[\]]+): )?", first)
    assert place is not None
    key = re.findall(r"[A-Za-z_]+", place[2] or "")
    line = path.read_text().splitlines()[int(place[1]) - 1]
    assert not key or place[2].endswith("]") or key[-1] in line or "missing" in first
    for part in expected:
        part = re.sub(r"^:\d+: ", "", part).replace("scene.yaml", "scene.json")
        assert part in str(caught.value)


def test_all_errors_of_a_file_are_shown_together(tmp_path):
    with pytest.raises(SapSceneLoaderError) as caught:
        load_text(tmp_path, "simulation: {dt: 0}\nbodies:\n  - {mass: 1}\n  - {id: b, mas: 1}\n")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "3", "4"]


def test_many_errors_are_cut_short(tmp_path):
    with pytest.raises(SapSceneLoaderError, match="and 90 more errors"):
        load_text(tmp_path, "bodies: [" + ", ".join(["{mass: 1}"] * 100) + "]")


def test_a_body_without_joint_stays_where_it_is_and_is_warned_of(tmp_path):
    """As in the format's first implementation, without any report."""
    still = "\n  - {id: still, transform: {p: [3, 0, 2]}, shapes: [{type: sphere}]}"
    with pytest.warns(UserWarning, match="no joint holds body 'still', .* write a joint of type free"):
        scene = load_text(tmp_path, BOX.replace("bodies:", f"bodies:{still}"))
    body = scene.body_labels.index("still")
    with scene.simulation() as simulation:
        simulation.step(20)
        poses = simulation.state.body_q.numpy()
    np.testing.assert_allclose(poses[body, :3], [3, 0, 2])
    assert poses[1 - body, 2] < scene.state.body_q.numpy()[1 - body, 2]


SUSPECTED = {
    "gravity": ("builder: {gravity: 9.81}", "gravity is 9.81 m/s² along z, which is upwards; .* is -9.81"),
    "milliseconds": ("simulation: {dt: 5}", "dt is 5 s, .*milliseconds are written as 0.005"),
    "degrees": (
        "bodies: [{id: a, shapes: [{type: box}]}]\n"
        "joints: [{id: j, type: revolute, child: a, limit_upper: 180}]",
        "limit_upper is 180 rad, which is 29 turns; .* 180 degrees are 180 \\* pi / 180",
    ),
}


@pytest.mark.parametrize("name", SUSPECTED)
def test_values_that_look_like_another_unit_are_warned_of(tmp_path, name):
    text, message = SUSPECTED[name]
    with pytest.warns(UserWarning, match=message):
        load_text(tmp_path, text if "bodies:" in text else BOX + text)


WRONG_FILES = {
    "comment.json": ('{\n "bodies": [] // none\n}', r"comment\.json:2: .*JSON has no comments"),
    "comma.json": ('{"bodies": [],}', r"comma\.json:1: .*column 14.*remove this comma"),
    "tab.yaml": ("bodies:\n\t- {id: a}\n", r"tab\.yaml:2: .*indent with spaces"),
    "robot.urdf": ("<robot/>", r"robot, not a scene; write .*type: urdf, source: robot\.urdf"),
    "text.yaml": ("robot", r"text\.yaml:1: .*the file holds a text"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_files_of_another_kind_are_recognized_and_refused(tmp_path, name):
    text, message = WRONG_FILES[name]
    with pytest.raises(SapSceneLoaderError, match=message):
        load_scene(write_scene(tmp_path, text, name), device="cpu")


def test_a_robot_file_of_a_mesh_that_git_keeps_elsewhere_says_how_to_fetch_it(tmp_path):
    (tmp_path / "cup.urdf").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(SapSceneLoaderError, match=r"cup\.urdf' is a pointer of Git LFS.*`git lfs pull`"):
        load_text(tmp_path, "bodies: [{id: a, shapes: [{type: mesh, path: cup.urdf}]}]")


def test_a_scene_without_bodies_or_with_massless_ones_is_an_error(tmp_path):
    massless = "bodies: [{id: a}]\njoints: [{id: j, type: free, child: a}]"
    with pytest.raises(SapSceneLoaderError, match="mass"):
        load_text(tmp_path, massless)


def test_a_wrong_path_names_the_nearest_shipped_scene(tmp_path):
    with pytest.raises(SapSceneLoaderError, match="did you mean quadruped"):
        load_scene("quadrupet")
    with pytest.raises(SapSceneLoaderError, match="there is no such scene file"):
        load_scene(tmp_path / "quadruped.yaml")


def test_json_scenes_fail_with_the_path_of_the_field(tmp_path):
    path = write_scene(tmp_path, '{"bodies": [{"id": "a", "mass": "heavy"}]}', "scene.json")
    with pytest.raises(
        SapSceneLoaderError, match=r"scene\.json:1: bodies\[0\]\.mass: 'heavy' is not a number"
    ):
        load_scene(path, device="cpu")
