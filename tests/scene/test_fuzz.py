"""Scenes that are wrong in any place and any way: refused with file and line, and nothing else happens.

Nothing else: no other error, no hang, no memory eaten, no file opened elsewhere, no program started.
"""

import copy
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import warnings
from pathlib import Path

import pytest
import warp as wp
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.scene.document import read_scene_document
from pluriverse.scene.schema import Scene

from .scene_files import places
from .test_features import FOLDER, mappings

# Without those whose assets come from elsewhere, or need a package that may be missing.
FILES = sorted(
    path
    for path in FOLDER.iterdir()
    if path.suffix in (".yaml", ".json") and path.stem not in ("sources", "assets_usd")
)
QUICK = [path for path in FILES if not path.stem.startswith(("assets", "terrain"))]

# Processor time to load or refuse any scene of this module [s]; most take a hundredth of a second.
LOAD_TIME_MAX = 20.0


class Watch:
    """Notes what Python is asked to do that a scene has no business with, while it is on.

    Only by the thread that loads the scene: others may be at work for what was tested before.
    """

    def __init__(self):
        self.on, self.thread = False, threading.get_ident()
        self.offences: list[str] = []
        roots = [FOLDER, sysconfig.get_paths()["stdlib"], sys.prefix, Path(__file__).parents[2]]
        roots += [
            wp.config.kernel_cache_dir,
            tempfile.gettempdir(),
            "/proc/meminfo",
            "/sys/fs/cgroup",
            "/dev/null",
        ]
        self.readable = tuple(str(Path(root)) for root in roots if root)
        sys.addaudithook(self.hear)

    def hear(self, event, arguments):
        if not self.on or threading.get_ident() != self.thread:
            return
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode()
            if Path(path).is_absolute() and not path.startswith(self.readable):
                self.offences.append(f"open {path}")
        elif event in (
            "subprocess.Popen",
            "os.system",
            "os.exec",
            "os.posix_spawn",
            "socket.connect",
            "pty.spawn",
        ):
            self.offences.append(event)

    def __enter__(self):
        self.on, self.offences = True, []

    def __exit__(self, *_):
        self.on = False
        assert self.offences == []


@pytest.fixture(scope="module")
def watch():
    for path in FILES:  # what compiles or imports on first use has done so
        load_scene(path, device="cpu")
    return Watch()


def outcome(path, watch, **options):
    """Return what is wrong with a scene, or None if it loads; check that nothing else happens."""
    begin = time.process_time()
    with watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            load_scene(path, device="cpu", num_worlds=8, **options)
        except SapSceneLoaderError as error:
            message = str(error)
        else:
            message = None
    assert time.process_time() - begin < LOAD_TIME_MAX
    if message is not None:
        for line in message.splitlines():
            if line.startswith(("and ", "load the scene with strict=False")):
                continue
            assert re.match(rf"(not supported: )?{re.escape(str(path.parent))}/[\w./]+:\d+: ", line), line
    return message


def validate(document):
    """Return the models that read the mappings of a document."""
    models: dict[int, type] = {}
    Scene.model_validate(document, context=models)
    models[id(document)] = Scene
    return models


def replaced(document, path, value):
    """Return a copy of a document with another value in one place."""
    result = copy.deepcopy(document)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return result


def linked(folder):
    """Let scenes of a folder find what those of the features use."""
    for path in FOLDER.iterdir():
        target = folder / path.name
        if not target.exists():
            target.symlink_to(path)
    return folder


def load_json(folder, document, watch):
    path = folder / "mutated.json"
    path.write_text(json.dumps(document))
    return outcome(path, watch, asset_roots=[FOLDER])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return linked(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_unknown_key_is_refused_in_every_mapping(folder, watch, path):
    """Each mapping of each scene in turn; the message names the key."""
    document = read_scene_document(path).data
    for mapping, _ in list(mappings(document, validate(document))):
        mapping["sizze"] = 1
        message = load_json(folder, document, watch)
        del mapping["sizze"]
        assert message is not None
        assert "unknown key 'sizze'" in message


# Values that may be anything, or that are not read: a list or a mapping in their place is no mistake.
ANYTHING = {"external_assets"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("junk", [{"zz": 1}, [["zz"]], "zz zz"], ids=["mapping", "list", "text"])
def test_a_value_of_the_wrong_kind_is_refused_in_every_place(folder, watch, path, junk):
    """But a text where names are free, which may then name nothing."""
    document = read_scene_document(path).data
    for place in places(document):
        key = next(part for part in reversed(place) if isinstance(part, str))
        if key in ANYTHING or (isinstance(junk, str) and key in FREE_TEXT):
            continue
        if load_json(folder, replaced(document, place, junk), watch) is None:
            raise AssertionError(f"{path.name}: {place} may be {junk!r}")


# Names that nothing else in these scenes refers to, or that choose what is looked for.
FREE_TEXT = {
    *("id", "label", "name", "description", "target", "visual_classes", "collider_classes", "ignore_names"),
    *("ignore_classes", "ignore_paths"),
}

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**30, -(10**30), 2**31, 1e308, 5e-324, -0.0, float("nan")])
    | st.sampled_from(
        ["", "pi", "1/0", "identity", "world", "../..", "/etc/passwd", "${HOME}", "\0", "9" * 400, "(" * 99]
    )
    | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=6) | st.sampled_from(["type", "id", "p", "q", "axis_angle", "op"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_scenes_with_anything_in_any_place_load_or_are_refused(folder, watch, data):
    path = data.draw(st.sampled_from(QUICK), "scene")
    document = read_scene_document(path).data
    for _ in range(data.draw(st.integers(1, 3), "mutations")):
        everywhere = list(places(document))
        place = everywhere[data.draw(st.integers(0, len(everywhere) - 1), "place")]
        document = replaced(document, place, data.draw(JUNK, "value"))
    load_json(folder, document, watch)


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_texts_with_anything_in_any_place_load_or_are_refused(folder, watch, data):
    """Cut, doubled, moved and overwritten stretches of YAML."""
    path = data.draw(st.sampled_from([path for path in QUICK if path.suffix == ".yaml"]), "scene")
    text = path.read_text()
    for _ in range(data.draw(st.integers(1, 4), "mutations")):
        begin = data.draw(st.integers(0, len(text)), "begin")
        end = min(len(text), begin + data.draw(st.integers(0, 12), "length"))
        match data.draw(st.sampled_from("dcx!")):
            case "d":
                text = text[:begin] + text[end:]
            case "c":
                text = text[:end] + text[begin:]
            case "x":
                text = text[:begin] + data.draw(st.text(max_size=6), "text") + text[end:]
            case _:
                word = data.draw(st.sampled_from(YAML_WORDS), "word")
                text = text[:begin] + word + text[end:]
    mutated = folder / "mutated.yaml"
    mutated.write_text(text, encoding="utf-8", errors="surrogatepass")
    outcome(mutated, watch, asset_roots=[FOLDER])


YAML_WORDS = [
    *(
        "&a ",
        "*a",
        "<<: ",
        "!!python/object/apply:os.system [ls]",
        "!!binary ",
        "? ",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
    ),
    *(
        "|",
        ">",
        "%YAML 9\n",
        "---\n",
        "...\n",
        "\t",
        "\r",
        "\x85",
        "\ufeff",
        "'",
        '"',
        "#",
        ".nan",
        ".inf",
        "0x",
        "0o9",
    ),
]


def mjcf(content, options=""):
    """Return a scene of one MJCF asset."""
    return f'assets: [{{type: mjcf, {options}source: "<mujoco><worldbody>{content}</worldbody></mujoco>"}}]\n'


BOMBS = {
    "aliases.yaml": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    )
    + "bodies: *j\n",
    "merges.yaml": "a: &a {k: 1}\n"
    + "".join(
        f"{b}: &{b} {{x: *{a}, y: *{a}}}\n"
        for a, b in zip("abcdefghijklmnopqrstuvwx", "bcdefghijklmnopqrstuvwxy", strict=True)
    ),
    "self.yaml": "bodies: &a [*a]\n",
    "deep.yaml": "bodies: " + "[" * 100_000,
    "deep_map.yaml": "bodies: " + "{a: " * 50_000,
    "deep.json": '{"bodies": ' + "[" * 200_000,
    "digits.yaml": "simulation: {num_worlds: " + "9" * 100_000 + "}\n",
    "digits.json": '{"simulation": {"num_worlds": ' + "9" * 100_000 + "}}",
    "hex.yaml": "simulation: {num_worlds: 0x" + "f" * 100_000 + "}\n",
    "key.yaml": "? " + "k" * 1_000_000 + "\n: 1\n",
    "worlds.yaml": "BOXsimulation: {num_worlds: 2147483647}\n",
    "more_worlds.yaml": "BOXreplicate: {num_worlds: 100000000}\n",
    "too_many_worlds.yaml": "BOXsimulation: {num_worlds: 100000000000000}\n",
    "count.yaml": "worlds: [{count: 2000000000, bodies: [{id: a, mass: 1, inertia: [1, 1, 1]}], "
    "joints: [{id: f, type: free, child: a}]}]\n",
    "many.json": '{"bodies": [' + "[]," * 400_000 + "[]]}",
    "too_many.json": '{"bodies": [' + "[]," * 5_000_000 + "[]]}",
    "recording.yaml": "BOXcontrol: {source: recording.json}\n",
    "long.yaml": "bodies: [" + "[]," * 30_000 + "[]]\n",
    "too_long.yaml": "bodies: [" + "[]," * 5_000_000 + "[]]\n",
    "longer.yaml": "name: " + "a " * 20_000_000 + "\n",
    "slots.yaml": "BOXsimulation: {max_rigid_contact: 2000000000}\n",
    "expression.yaml": "BOXbuilder: {rigid_gap: '" + "(" * 5000 + "1" + ")" * 5000 + "'}\n",
    "power.yaml": "BOXbuilder: {rigid_gap: '9**9**9**9'}\n",
    "terrain.yaml": "BOXground: {terrain: {type: wave, size: [100000, 100000], resolution: 1e-3}}\n",
    "replicate.yaml": mjcf("<replicate count='1000000000'><body><geom size='1'/></body></replicate>"),
    "composite.yaml": mjcf(
        "<body><flexcomp name='f' type='grid' count='10000 10000 100' spacing='1 1 1'/></body>"
    ),
    "pattern.yaml": mjcf(f"<body name='{'a' * 60}'><geom size='1'/></body>", "ignore_names: ['(a|a)*b'], "),
    "entities.yaml": 'assets:\n  - type: urdf\n    source: \'<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><robot name="&i;"/>\'\n',
    "code.yaml": "bodies: !!python/object/apply:os.system ['touch pwned']\n",
    "name.yaml": "BOXname: !!python/name:os.system\n",
}

RUN_BOMBS = """
import resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
import warp as wp
wp.config.log_level = wp.LOG_ERROR
from pluriverse.scene import SapSceneLoaderError, load_scene
load_scene("cartpole", device="cpu")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sorted(Path(sys.argv[1]).iterdir()):
    if path.name == 'recording.json': continue
    begin = time.process_time()
    try:
        load_scene(path, device="cpu")
        print(path.name, "loaded", 0, 0, sep="\\t")
    except SapSceneLoaderError as error:
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        text = " ".join(str(error)[:2000].split())
        print(path.name, text, time.process_time() - begin, grown / 1024, sep="\\t")
"""


def test_bombs_are_refused_quickly_and_within_little_memory(tmp_path):
    """In a process of their own, whose memory can be told: no more than some hundred megabytes for any."""
    box = (FOLDER / "box.yaml").read_text().split("simulation:")[0] + (
        "bodies: [{id: box, shapes: [{type: box}]}]\njoints: [{id: free, type: free, child: box}]\n"
    )
    bombs = tmp_path / "bombs"
    bombs.mkdir()
    for name, text in BOMBS.items():
        (bombs / name).write_text(text.replace("BOX", box))
    (bombs / "recording.json").write_text(
        '{"joint_target_pos": {"dt": 1, "values": [' + "1," * 10_000_000 + "1]}}"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    result = subprocess.run(
        [sys.executable, "-c", RUN_BOMBS, str(bombs)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
        env=environment,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [line.split("\t") for line in result.stdout.splitlines() if line.count("\t") == 3]
    assert [name for name, *_ in lines] == sorted(BOMBS)
    for name, message, seconds, megabytes in lines:
        assert message.startswith(f"{bombs}/{name.split(chr(46))[0]}."), (name, message)
        assert float(seconds) < LOAD_TIME_MAX, (name, seconds)
        assert float(megabytes) < 600.0, (name, megabytes)
    assert not (tmp_path / "pwned").exists()


def test_what_is_no_text_is_refused_with_its_line(tmp_path, watch):
    for name, data in {
        "bytes.yaml": b"name: a\nbodies: \xff\xfe\n",
        "control.yaml": b"name: a\nbodies: \x07\n",
        "bytes.json": b'{"name":\n "\xff"}',
        "empty.yaml": b"",
        "empty.json": b"",
        "zeros.yaml": bytes(1000),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        message = outcome(path, watch)
        assert message is not None


def test_tags_of_python_are_not_even_looked_at(tmp_path, watch):
    for tag in (
        "!!python/object/apply:os.system ['touch pwned']",
        "!!python/name:os.system",
        "!!set {a}",
        "!local 3",
    ):
        path = tmp_path / "scene.yaml"
        path.write_text(f"name: ok\nbodies: {tag}\n")
        assert f"{path}:2: the YAML tag" in (outcome(path, watch) or "")


def test_the_mutations_begin_from_valid_scenes(folder, watch):
    """Otherwise everything above would be refused for nothing."""
    for path in FILES:
        assert load_json(folder, read_scene_document(path).data, watch) is None, path
        if path.suffix == ".yaml":
            copy_of = folder / "copy.yaml"
            copy_of.write_text(yaml.safe_dump(read_scene_document(path).data))
            assert outcome(copy_of, watch, asset_roots=[FOLDER]) is None, path
