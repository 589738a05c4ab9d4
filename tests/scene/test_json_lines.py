"""Lines of JSON values, against the lines that the YAML reader finds in the same text."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse.scene.document import read_scene_document
from pluriverse.scene.json_lines import find_json_lines

from .scene_files import write_scene

TEXT = """{
  "a": [1,
        {"b": null, "c\\"d": [[], {}, "x\\ny"]}],

  "e": "{not, [a: mapping",
  "f": {
    "g": true
  }
}
"""


def test_lines_of_keys_and_entries():
    lines, repeated = find_json_lines(TEXT)
    assert repeated is None
    assert lines == {
        (): 1,
        ("a",): 2,
        ("a", 0): 2,
        ("a", 1): 3,
        ("a", 1, "b"): 3,
        ("a", 1, 'c"d'): 3,
        ("a", 1, 'c"d', 0): 3,
        ("a", 1, 'c"d', 1): 3,
        ("a", 1, 'c"d', 2): 3,
        ("e",): 5,
        ("f",): 6,
        ("f", "g"): 7,
    }


def test_a_repeated_key_is_found_with_both_lines():
    assert find_json_lines('{"a": {"b": 1,\n"c": 2,\n"b": 3}}')[1] == ("b", 3, 1)


def fields(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from fields(below, (*path, key))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_value_has_a_line_and_only_values_have(value, indent, ascii_only):
    """Whatever the layout; the number of newlines before a key tells its line."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    lines, repeated = find_json_lines(text)
    assert repeated is None
    assert set(lines) == set(fields(value))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def test_json_and_yaml_readers_agree_on_the_lines(tmp_path):
    text = json.dumps(
        {"bodies": [{"id": "a", "shapes": [{"type": "box", "cfg": {"mu": 1}}]}], "name": "x"}, indent=2
    )
    as_json = read_scene_document(write_scene(tmp_path, text, "scene.json"))
    as_yaml = read_scene_document(write_scene(tmp_path, text, "scene.yaml"))
    for field in fields(as_json.data):
        assert as_json.line(field) == as_yaml.line(field), field
