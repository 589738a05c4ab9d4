r"""Regular expressions in scenes, of a form that cannot take forever.

Python's matcher tries every way to share a text among the repetitions of a pattern. `(a+)+` has
exponentially many ways, and k repetitions in a row of the order of n**k for n characters. Names of robots
have some tens of characters, so a few plain repetitions are harmless, and enough: `.*_(visual|collision)\d*`.
"""

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from pluriverse.scene.errors import FieldError
from pluriverse.scene.values import reported, shown

REPETITION_COUNT_MAX = 4
PATTERN_LENGTH_MAX = 200

# An escaped character, a set, the start of a group with what it is, its end, or a repetition.
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P?<[^>]*>|[:=!]|<[=!]))?|\)|[*+?]\??|\{[0-9,]*\}\??|.",
    re.DOTALL,
)


def _parse_pattern(value: Any) -> str:
    if not isinstance(value, str):
        raise FieldError(f"{shown(value)} is not a regular expression")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise FieldError(f"{shown(value)} is not a regular expression: {error}") from error
    if len(value) > PATTERN_LENGTH_MAX:
        raise FieldError(
            f"a regular expression of {len(value)} characters is too long; {PATTERN_LENGTH_MAX} are allowed"
        )
    count = 0
    repeats = [False]  # per open group: whether it holds a repetition or alternatives
    closed = False  # whether the last token closed a group that does
    for token in _TOKEN.findall(value):
        if token[0] == "(":
            repeats.append(False)
            closed = False
        elif token == ")":
            closed = repeats.pop() if len(repeats) > 1 else False
            repeats[-1] |= closed
        elif token[0] in "*+?{" and token != "{":
            if closed and token[0] != "?":
                raise FieldError(
                    f"{shown(value)} repeats a group that itself holds repetitions or alternatives, which "
                    "can take forever; write it without"
                )
            count += 1
            repeats[-1] = True
        else:
            repeats[-1] |= token == "|"
            closed = False
    if count > REPETITION_COUNT_MAX:
        raise FieldError(
            f"{shown(value)} has {count} repetitions (* + ? {{}}); {REPETITION_COUNT_MAX} are allowed, since "
            "more can take forever. Write several patterns"
        )
    return value


Pattern = Annotated[
    str, PlainValidator(reported(_parse_pattern)), WithJsonSchema({"type": "string", "format": "regex"})
]
