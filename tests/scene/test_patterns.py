"""Regular expressions of scenes: the useful ones pass, those that could take forever do not."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse.scene import SapSceneLoaderError
from pluriverse.scene.errors import FieldError
from pluriverse.scene.patterns import PATTERN_LENGTH_MAX, _parse_pattern

from .scene_files import load_text


@pytest.mark.parametrize(
    "pattern",
    [
        "visual",
        "/World/GroundPlane",
        r".*_(visual|collision)\d*",
        r"(left|right)_(hip|knee)_.*",
        r"(left|right)?_foot",
        r"[*+?{}()|]+",
        r"a\*\+b*",
        r"(?i)finger_[0-9]{1,2}",
        r"(?:abc)+",
    ],
)
def test_patterns_that_people_write_are_accepted(pattern):
    assert _parse_pattern(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a+)+", "take forever"),
        ("(a*)*b", "take forever"),
        ("(a|a)*b", "take forever"),
        ("((a|b)c)+", "take forever"),
        ("(a|aa){2,50}", "take forever"),
        (r"([a-z]+)*\d", "take forever"),
        ("a*a*a*a*a*b", "5 repetitions"),
        ("a?a?a?a?a?aaaaa", "5 repetitions"),
        ("(", "not a regular expression"),
        ("[a", "not a regular expression"),
        ("*", "not a regular expression"),
        ("a" * (PATTERN_LENGTH_MAX + 1), "too long"),
        (3, "not a regular expression"),
    ],
)
def test_patterns_that_could_take_forever_are_refused(pattern, message):
    with pytest.raises(FieldError, match=message):
        _parse_pattern(pattern)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(st.text(alphabet="aab|()*+?{}2,[]^.\\", max_size=24))
def test_whatever_is_accepted_is_quick(pattern):
    """On the kind of text that makes matchers slow: many equal letters and another one at the end."""
    try:
        _parse_pattern(pattern)
    except FieldError:
        return
    begin = time.process_time()
    re.fullmatch(pattern, "a" * 60 + "!")
    assert time.process_time() - begin < 2.0


def test_a_scene_names_the_pattern_that_is_refused(tmp_path):
    text = "assets:\n  - type: mjcf\n    source: <mujoco/>\n    ignore_names:\n      - ok\n      - (a+)+\n"
    with pytest.raises(SapSceneLoaderError, match=r":6: assets\[0\]\.ignore_names\[1\]: '\(a\+\)\+'"):
        load_text(tmp_path, text)
