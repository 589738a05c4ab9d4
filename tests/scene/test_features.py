"""Scenes that use every feature of the format: each loads strictly and steps, and none is forgotten."""

import inspect
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from pluriverse.scene import load_scene, scene_json_schema
from pluriverse.scene.control_sequence import ControlFile
from pluriverse.scene.document import read_scene_document
from pluriverse.scene.joints import JOINT_TYPES
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.post_build import _ARRAYS, _ATTRIBUTES, TARGET_MODES, operation_names
from pluriverse.scene.schema import Scene
from pluriverse.scene.shapes import SHAPES
from pluriverse.scene.terrain import TERRAINS

from .test_git_source import commit_files

FOLDER = Path(__file__).parent / "features"
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".yaml", ".json"))

# Blocks with pages and tests of their own.
ELSEWHERE = ("pluriverse.scene.randomize", "pluriverse.scene.variants", "pluriverse.scene.sweep_file")
ELSEWHERE_CLASSES = ("VariantContent", "VariantEntity", "VariantsSection", "SolverOptions")


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Return a folder with the scenes, a repository and robots in the place of what they would fetch."""
    folder = tmp_path_factory.mktemp("features")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    repository = folder / "repository"
    shutil.copytree(FOLDER / "assets", repository / "assets")
    commit = commit_files(repository, {"readme": "robots"})
    text = (folder / "sources.yaml").read_text()
    text = text.replace("file:///REPOSITORY", f"file://{repository}").replace("0123456789" * 4, commit)
    (folder / "sources.yaml").write_text(text)
    robot = folder / "menagerie" / "unitree_go2"
    shutil.copytree(FOLDER / "assets" / "parts", robot / "parts")
    for name in ("go2.xml", "scene.xml"):
        shutil.copy(FOLDER / "assets" / "tool.xml", robot / name)
    return folder


@pytest.fixture
def fetchable(features, monkeypatch):
    """Let the scenes fetch from the folder itself."""
    monkeypatch.setenv("SAP_WARP_ASSET_CACHE", str(features / "cache"))
    monkeypatch.delenv("SAP_WARP_ASSET_OFFLINE", raising=False)
    monkeypatch.setenv("MENAGERIE_ROOT", str(features / "menagerie"))
    return features


def needs(path):
    """Skip the test of a scene whose optional package is missing."""
    if path.name == "assets_usd.yaml":
        pytest.importorskip("pxr", reason="usd-core is not installed")
    if path.name == "sources.yaml":
        pytest.importorskip("mujoco_menagerie", reason="mujoco-menagerie is not installed")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_scene_loads_strictly_and_steps(fetchable, path):
    """Nothing in it is unsupported, and its worlds move with finite states."""
    needs(path)
    scene = load_scene(fetchable / path.name, device="cpu")
    assert scene.unsupported_features == ()
    with scene.simulation(threads=1) as simulation:
        scene.play(simulation, 5)
        assert np.isfinite(simulation.state.joint_q.numpy()).all()
        assert simulation.report().frozen_worlds == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_json_schema_accepts_the_scene(path):
    """An editor with the schema marks nothing in it."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    document = read_scene_document(path).data
    text = json.dumps(document).replace("-Infinity", "-1e308").replace("Infinity", "1e308")
    validator = jsonschema.Draft202012Validator(scene_json_schema())
    errors = [(list(error.path), error.message[:200]) for error in validator.iter_errors(json.loads(text))]
    assert errors == []


@pytest.mark.parametrize(
    "text",
    [
        "bodis: []",
        "bodies: [{id: a, mas: 1}]",
        "bodies: [{id: a, shapes: [{type: sphere, hx: 1}]}]",
        "bodies: [{id: a, shapes: [{type: spere}]}]",
        "assets: [{type: urdf, source: a.urdf, armature_scale: 2}]",
        "assets: [{type: sdf, source: a.sdf}]",
        "post_build: [{op: set_joint_target, range: all}]",
        "post_build: [{op: add_shape, type: box, radius: 1}]",
        "simulation: {solver: {max_iteration: 3}}",
        "constraints: [{type: joint, body1: a}]",
        "ground: {terrain: {type: wave, size: [1, 1], seed: 1}}",
        "ground: 3",
    ],
)
def test_the_json_schema_marks_what_the_loader_refuses(tmp_path, text):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    path = tmp_path / "scene.yaml"
    path.write_text(text)
    validator = jsonschema.Draft202012Validator(scene_json_schema())
    assert not validator.is_valid(read_scene_document(path).data)


def models_below(model=SceneMapping):
    for below in model.__subclasses__():
        yield below
        yield from models_below(below)


def declaring_class(model, key):
    """Return the class that brings a key to a model: its own, or one that it builds on."""
    field = model.key_names()[key]
    return next(base for base in model.__mro__ if field in inspect.get_annotations(base))


def documents():
    """Yield every document of the folder with the model that reads it."""
    for path in FILES:
        yield path, Scene
    for path in (FOLDER / "assets").glob("*.json"):
        yield path, ControlFile


def mappings(value, models):
    """Yield the mappings below a value with the models that read them."""
    if isinstance(value, dict):
        if id(value) in models:
            yield value, models[id(value)]
        for below in value.values():
            yield from mappings(below, models)
    elif isinstance(value, list):
        for below in value:
            yield from mappings(below, models)


def used_keys():
    """Return the keys that the scenes use, with the class that declares each."""
    used = set()
    for path, root in documents():
        data = read_scene_document(path).data
        models = {}
        root.model_validate(data, context=models)
        models[id(data)] = root
        for mapping, model in mappings(data, models):
            used |= {(declaring_class(model, key), key) for key in mapping}
    return used


def test_every_key_and_every_alias_is_used_somewhere():
    """A new key of the format needs a place in these scenes."""
    declared = {
        (declaring_class(model, key), key)
        for model in models_below()
        if model.__module__ not in ELSEWHERE and model.__name__ not in ELSEWHERE_CLASSES
        for key in model.key_names()
    }
    missing = sorted(
        (model.__name__, key)
        for model, key in declared - used_keys()
        if model.__module__ not in ELSEWHERE and (model.__name__, key) not in WITHOUT_EFFECT
    )
    assert missing == []


# Blocks with tests of their own, what needs another package, and parameters of other contact models
# (they warn).
WITHOUT_EFFECT = {
    ("Scene", "randomize"),
    ("Scene", "variants"),
    ("Source", "examples_asset"),
    *(
        ("ShapeConfiguration", key)
        for key in ("kd", "kf", "ka", "shape_kd", "shape_kf", "shape_ka", "contact_ka")
    ),
    ("ShapeConfiguration", "shape_material_ka"),
}


def values_of(*keys):
    """Return what stands behind some keys anywhere in the scenes."""

    def walk(value):
        if isinstance(value, dict):
            for key, below in value.items():
                if key in keys:
                    yield below
                yield from walk(below)
        elif isinstance(value, list):
            for below in value:
                yield from walk(below)

    return [value for path, _ in documents() for value in walk(read_scene_document(path).data)]


NAMES = {
    "types of shape": (("type",), SHAPES),
    "types of joint": (("type",), JOINT_TYPES),
    "types of asset": (("type",), ("urdf", "mjcf", "usd", "URDF")),
    "types of terrain": (("type",), TERRAINS),
    "operations": (("op",), operation_names()),
    "arrays": (("array", "src", "dst", "from_array"), _ARRAYS),
    "attributes": (("name",), _ATTRIBUTES),
    "modes of targets": (("mode",), [*TARGET_MODES, 1]),
    "modes of actuators": (("actuator_mode",), range(5)),
    "parents": (("parent",), ["world", -1, None, 1, "rail"]),
    "orders of joints": (("joint_ordering",), ["dfs", "bfs", None]),
    "up axes": (("up_axis",), ["x", "y", "z"]),
    "grounds": (("ground",), [True, False, None]),
    "floating": (("floating",), [True, None]),
}


@pytest.mark.parametrize("what", NAMES)
def test_every_name_that_a_value_may_be_is_used_somewhere(what):
    keys, names = NAMES[what]
    found = values_of(*keys)
    assert [
        name for name in names if not any(value == name and type(value) is type(name) for value in found)
    ] == []


FORMS = {
    "range": [
        *(r"^all$", r"^head:\d+$", r"^tail:\d+$", r"^from:\d+$", r"^from:-\d+$"),
        *(r"^\[\d+, \d+\]$", r"^\[-\d+, None\]$", r"^\[-\d+, -\d+\]$"),
    ],
    "index": [r"^\d+$", r"^-\d+$"],
    "axis": [r"^[xyz]$", r"^-[xyz]$", r"^AXIS\.Z$", r"^\d$", r"^\[.*\]$"],
    "transform": [r"^identity$", r"^None$", r"^{'p'", r"^{'q'"],
    "q": [r"^identity$", r"^None$", r"^\[", r"^{'axis_angle'"],
    "angle": [r"pi"],
    "color": [r"^\[0\.", r"^\[255"],
    "mesh_scale": [r"^\d", r"^\["],
    "scale": [r"^\d"],
    "source": [r"^assets/", r"^<", r"^{'path'", r"^{'git'", r"^{'menagerie'"],
    "sparse": [r"^assets$", r"^\["],
    "menagerie": [r"^\w", r"^{'robot'"],
    "gravity": [r"^-?\d", r"^\["],
    "inertia": [r"^\[\d", r"^\[\["],
    "value": [r"^-?[\d.]+$", r"pi", r"^position$", r"^\["],
    "limit_lower": [r"^-?[\d.]+$", r"^-pi$", r"^-inf$"],
    "linear_axes": [r"\['x', {'axis'"],
    "joints": [r"^\['\w+', 2\]$"],
    "keyframe": [r"^open$", r"^None$"],
    "control": [r"loop"],
}


@pytest.mark.parametrize("key", FORMS)
def test_every_form_of_a_value_is_used_somewhere(key):
    found = [str(value) for value in values_of(key)]
    assert [form for form in FORMS[key] if not any(re.search(form, text) for text in found)] == []
