"""Reading of scene files: numbers, lines and names of fields."""

import json

import pytest

from pluriverse.scene import SapSceneLoaderError
from pluriverse.scene.document import field_name, read_scene_document

from .scene_files import load_text, write_scene


def read(folder, text):
    return read_scene_document(write_scene(folder, text))


def test_numbers_are_those_of_yaml_1_2(tmp_path):
    """`1e6` is a number, `1_0` and `1:30` are texts, `010` is ten, `on` is a word."""
    text = "a: 1e6\nb: .5\nc: 1.\nd: -.inf\ne: 0x10\nf: 0o10\ng: 1:30\nh: 010\n"
    text += "i: on\nj: yes\nk: true\nl: null\nm: ~\nn:\n"
    data = read(tmp_path, text).data
    assert data == {
        "a": 1e6,
        "b": 0.5,
        "c": 1.0,
        "d": float("-inf"),
        "e": 16,
        "f": 8,
        "g": "1:30",
        "h": 10,
        "i": "on",
        "j": "yes",
        "k": True,
        "l": None,
        "m": None,
        "n": None,
    }
    assert isinstance(data["a"], float)


def test_fields_know_their_lines(tmp_path):
    document = read(tmp_path, "name: x\nbodies:\n  - id: a\n    shapes:\n      - type: box\n        hx: 1\n")
    assert document.line(("bodies", 0, "shapes", 0, "hx")) == 6
    assert document.line(("bodies", 0, "shapes", 0, "missing")) == 5  # the nearest field around it
    assert document.line(("nowhere",)) == 1


def test_field_names_read_like_the_document():
    assert field_name(("joints", 2, "axis")) == "joints[2].axis"
    assert field_name((0, "a", "b")) == "[0].a.b"


def test_anchors_and_merge_keys(tmp_path):
    text = """
    base: &base {a: 1, b: 2}
    one: {<<: *base, b: 3}
    two: {<<: [{a: 5}, *base]}
    three: *base
    """
    data = read(tmp_path, text).data
    assert data["one"] == {"a": 1, "b": 3}
    assert data["two"] == {"a": 5, "b": 2}
    assert data["three"] == {"a": 1, "b": 2}


def test_json_by_suffix(tmp_path):
    content = {"name": "x", "bodies": [{"id": "a"}]}
    path = write_scene(tmp_path, json.dumps(content), "scene.json")
    assert read_scene_document(path).data == content


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "a: [1, 2", r"a\.yaml:\d: not valid YAML"),
        ("a.yaml", "a: 1\nb: {c: 2\n", r"a\.yaml:\d: not valid YAML"),
        (
            "a.yaml",
            "a: 1\nb: 2\na: 3\n",
            r"a\.yaml:3: the key 'a' stands twice in one mapping \(first in line 1\)",
        ),
        (
            "a.yaml",
            "a: !!python/object/apply:os.getcwd []",
            "tag 'tag:yaml.org,2002:python/object/apply:os.getcwd'",
        ),
        ("a.yaml", "a: !!python/name:os.system", "is not allowed"),
        ("a.yaml", "a: !mine 1", "tag '!mine' is not allowed"),
        ("a.yaml", "a: &x [*x]", "alias refers to a value that contains it"),
        ("a.yaml", "a: *x", "not valid YAML: found undefined alias"),
        ("a.yaml", "[1, 2]", "the file holds a list"),
        ("a.yaml", "", "the file holds nothing"),
        ("a.yaml", "--- {}\n--- {}\n", "not valid YAML"),
        ("a.yaml", "? [a]\n: 1\n", "a key must be a word"),
        ("a.yaml", "<<: 3\n", "'<<' merges"),
        ("a.yaml", "a: " + "[" * 3000, "nests too deeply"),
        ("a.yaml", "a: \x07", "not valid YAML"),
        ("a.json", '{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("a.json", '{\n"a": 1,\n}', r"a\.json:2: not valid JSON.*remove this comma"),
        ("a.json", "[1]", "the file holds a list"),
        ("a.json", '{"a":' + "[" * 100000, "nests too deeply"),
    ],
)
def test_broken_documents(tmp_path, name, text, message):
    with pytest.raises(SapSceneLoaderError, match=message):
        read_scene_document(write_scene(tmp_path, text, name))


def test_nested_aliases_do_not_fill_the_memory(tmp_path, monkeypatch):
    """Thirty lines that double each other would expand to a billion values."""
    monkeypatch.setattr("pluriverse.scene.document.YAML_EXPANSION_MAX", 10_000)
    lines = ["a0: &a0 [1, 1]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30)]
    with pytest.raises(SapSceneLoaderError, match="expands to more than"):
        read(tmp_path, "\n".join(lines))


def test_unreadable_files(tmp_path):
    with pytest.raises(SapSceneLoaderError, match="there is no such scene file"):
        read_scene_document(tmp_path / "none.yaml")
    with pytest.raises(SapSceneLoaderError, match="this is a folder"):
        read_scene_document(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: \xe9\n")
    with pytest.raises(SapSceneLoaderError, match="not UTF-8"):
        read_scene_document(latin)
    pointer = tmp_path / "pointer.yaml"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(SapSceneLoaderError, match=r"pointer of Git LFS.*`git lfs pull`"):
        read_scene_document(pointer)


def test_sections_whose_entries_are_commented_out_count_as_not_written(tmp_path):
    """YAML makes null of them, at any depth."""
    text = (
        "simulation:\n  solver:\nbuilder:\n  defaults:\n    joint:\n    shape:\n"
        "assets:\nbodies:\n  - id: a\n    mass: 1\n    inertia: [1, 1, 1]\n    shapes:\n    physics:\n"
        "joints:\n  - {id: f, type: free, child: a}\narticulations:\ninitial_joint_q:\npost_build:\n"
    )
    assert load_text(tmp_path, text).model.body_count == 1
