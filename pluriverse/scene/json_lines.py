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
    open_containers: list[_Place] = []
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        token = match.group()
        container = open_containers[-1] if open_containers else None
        if token == ":":
            continue
        if token in "}]":
            open_containers.pop()
            continue
        if token == ",":
            assert container is not None
            if isinstance(container.key, int):
                container.key += 1
            else:
                container.expects_key = True
            continue
        if container is not None and container.expects_key:
            container.key = str(json.loads(token, strict=False))
            container.expects_key = False
            if container.key in container.lines and repeated is None:
                repeated = (container.key, line, container.lines[container.key])
            container.lines[container.key] = line
            lines[(*container.field, container.key)] = line
            continue
        field: FieldPath = ()
        if container is not None:
            assert container.key is not None
            field = (*container.field, container.key)
            if container.is_list:
                lines[field] = line
        if token in "{[":
            open_containers.append(_Place(field, is_list=token == "["))
    return lines, repeated
