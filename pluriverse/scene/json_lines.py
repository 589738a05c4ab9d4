"""The line of every value of a JSON text, which Python's parser does not tell."""

import json
import re

FieldPath = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


class _Place:
    """A list or mapping that is open, and where in it the scanner stands."""

    def __init__(self, field: FieldPath, *, is_list: bool):
        self.field = field
        self.is_list = is_list
        self.key: str | int | None = 0 if is_list else None
        self.expects_key = not is_list
        self.lines: dict[str, int] = {}


def find_json_lines(text: str) -> tuple[dict[FieldPath, int], tuple[str, int, int] | None]:
    """Return the line of every field of a valid JSON text, and the first key that stands twice in a mapping.

    A field is where its key stands, an entry of a list where it begins.

    Returns:
        The lines by field, and key, line and first line of a repeated key, or None.
    """
    lines: dict[FieldPath, int] = {(): 1}
    repeated: tuple[str, int, int] | None = None
    open_places: list[_Place] = []
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        token = match.group()
        place = open_places[-1] if open_places else None
        if token == ":":
            continue
        if token in "}]":
            open_places.pop()
            continue
        if token == ",":
            assert place is not None
            if isinstance(place.key, int):
                place.key += 1
            else:
                place.expects_key = True
            continue
        if place is not None and place.expects_key:
            place.key = str(json.loads(token, strict=False))
            place.expects_key = False
            if place.key in place.lines and repeated is None:
                repeated = (place.key, line, place.lines[place.key])
            place.lines[place.key] = line
            lines[(*place.field, place.key)] = line
            continue
        field: FieldPath = ()
        if place is not None:
            assert place.key is not None
            field = (*place.field, place.key)
            if place.is_list:
                lines[field] = line
        if token in "{[":
            open_places.append(_Place(field, is_list=token == "["))
    return lines, repeated
