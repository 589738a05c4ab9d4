"""Reading a scene file into plain values that know the lines they came from."""

import functools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from pluriverse.files import LFS_REMEDY, is_lfs_pointer
from pluriverse.scene.errors import SapSceneLoaderError
from pluriverse.scene.json_lines import FieldPath, find_json_lines

# A scene of thousands of bodies has some 1e5 values. The bound stops nested YAML aliases, which grow
# exponentially from a few lines, and huge files by mistake. A value takes some 300 bytes, its error 1 kB.
VALUE_COUNT_MAX = 500_000
# YAML takes some 30 microseconds a value and 1 a character, so these take some seconds.
YAML_PART_COUNT_MAX = 60_000
YAML_SIZE_MAX = 5_000_000
# Characters that start or separate values in YAML, including those within texts.
_YAML_PART = re.compile(r"[,\[{\n&*]|[-?:](?=\s)")
# Number of values that aliases and merges of a YAML file may expand to.
YAML_EXPANSION_MAX = 100_000
# A scene of that many values has some 10 MB; the bound stops what is no scene at all.
SCENE_SIZE_MAX = 64 * 2**20

# Robot files, which users may pass in place of a scene.
ROBOT_SUFFIXES = {
    ".urdf": "urdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), "usd"),
}


class SceneDocument:
    """The values of one scene file and the line of every field."""

    def __init__(self, path: Path, data: dict[str, Any], find_lines: Callable[[], dict[FieldPath, int]]):
        self.path = path
        self.data = data
        self._find_lines = find_lines

    @functools.cached_property
    def _lines(self) -> dict[FieldPath, int]:
        """The line of every field, found when the first message needs one."""
        return self._find_lines()

    def line(self, field: FieldPath) -> int | None:
        """Return the line of a field, or of the nearest field around it (None where unknown)."""
        for length in range(len(field), -1, -1):
            if field[:length] in self._lines:
                return self._lines[field[:length]]
        return None

    def located(self, field: FieldPath, message: str) -> str:
        """Return `message` behind the file, the line and the path of the field."""
        line = self.line(field)
        location = f"{self.path}:{line}" if line is not None else str(self.path)
        name = field_name(field)
        return _printable(f"{location}: {name}: {message}" if name else f"{location}: {message}")

    def error(self, field: FieldPath, message: str) -> SapSceneLoaderError:
        """Return the error that says `message` about a field."""
        return SapSceneLoaderError(self.located(field, message))


# A message need not quote more of a file than this.
MESSAGE_LENGTH_MAX = 3000


def _printable(text: str) -> str:
    """Return a text in one line, without what a terminal could take for a command."""
    line = " ".join(text.splitlines())
    if len(line) > MESSAGE_LENGTH_MAX:
        line = f"{line[:MESSAGE_LENGTH_MAX]}..."
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


def field_name(field: Iterable[str | int]) -> str:
    """Return a path of keys and indices as it is written: `joints[2].axis`."""
    text = ""
    for key in field:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text


def read_scene_document(
    path: Path, what: str = "a scene", *, value_count_max: int = VALUE_COUNT_MAX
) -> SceneDocument:
    """Read a `.json` file as JSON and any other as YAML.

    Args:
        path: The file.
        what: What it should be, for messages.
        value_count_max: How many values it may have.

    Raises:
        SapSceneLoaderError: The file cannot be read or is not a mapping.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise SapSceneLoaderError(f"{path}: this is no regular file; name a scene file")
        if path.exists() and path.stat().st_size > SCENE_SIZE_MAX:
            raise SapSceneLoaderError(
                f"{path}: the file has {path.stat().st_size / 2**20:.0f} MiB, but a scene has "
                f"{SCENE_SIZE_MAX // 2**20} MiB at most; keep large data in assets"
            )
        if is_lfs_pointer(path):
            raise SapSceneLoaderError(f"{path}: this is a pointer of Git LFS, not the file. {LFS_REMEDY}")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SapSceneLoaderError(f"{path}: there is no such scene file") from error
    except IsADirectoryError as error:
        raise SapSceneLoaderError(f"{path}: this is a folder; name the scene file in it") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SapSceneLoaderError(
            f"{path}:{line}: the file is not UTF-8 text (byte {error.start})"
        ) from error
    except OSError as error:
        raise SapSceneLoaderError(f"{path}: the file cannot be read: {error.strerror}") from error
    if path.suffix.lower() in ROBOT_SUFFIXES:
        kind = ROBOT_SUFFIXES[path.suffix.lower()]
        raise SapSceneLoaderError(
            f"{path}: this is a robot, not {what}; write a scene file with assets: [{{type: {kind}, source: "
            f"{path.name}}}]"
        )
    is_json = path.suffix.lower() == ".json"
    # What opens or follows a value; commas in texts count as well, and are few.
    if is_json and text.count(",") + text.count("[") + text.count("{") > value_count_max:
        raise SapSceneLoaderError(
            f"{path}:1: the file has more than {value_count_max:,} values; keep large data in assets"
        )
    if not is_json and (len(text) > YAML_SIZE_MAX or len(_YAML_PART.findall(text)) > YAML_PART_COUNT_MAX):
        raise SapSceneLoaderError(
            f"{path}:1: the file is too long for YAML ({YAML_PART_COUNT_MAX:,} lines, commas and such, or "
            f"{YAML_SIZE_MAX:,} characters); write it as JSON, which is read a hundred times faster"
        )
    data, find_lines = _read_json(path, text) if is_json else _read_yaml(path, text)
    if not isinstance(data, dict):
        names = {"NoneType": "nothing", "str": "a text", "list": "a list"}
        found = names.get(type(data).__name__, "a single value")
        raise SapSceneLoaderError(
            f"{path}:1: {what} is a mapping that begins with 'schema_version: 1'; the file holds {found}"
        )
    return SceneDocument(path, data, find_lines)


_Reading = tuple[Any, Callable[[], dict[FieldPath, int]]]


class _RepeatedKeyError(Exception):
    """A mapping has a key twice."""


def _mapping_without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _RepeatedKeyError
    return values


def _read_json(path: Path, text: str) -> _Reading:
    text = text.removeprefix("\ufeff")
    try:
        data = json.loads(text, object_pairs_hook=_mapping_without_repetition)
        return data, lambda: find_json_lines(text)[0]
    except _RepeatedKeyError as error:
        # Python's parser ends at the first closed mapping with a repetition, so the rest may not be valid.
        raise SapSceneLoaderError(_repeated_key_message(path, text)) from error
    except json.JSONDecodeError as error:
        position = _json_fault(text, error.pos)
        line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
        raise SapSceneLoaderError(
            f"{path}:{line}: not valid JSON: {error.msg} (column {column}){_json_hint(text, position)}"
        ) from error
    except ValueError as error:  # an integer of more digits than Python converts
        digits = re.search(r"\d{4000}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        raise SapSceneLoaderError(f"{path}:{line}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise SapSceneLoaderError(f"{path}:1: the file nests too deeply") from error


def _json_fault(text: str, position: int) -> int:
    """Return where a parser's error is: at a comma too many, where Python up to 3.12 names what follows."""
    before = text[:position].rstrip()
    if before.endswith(",") and text[position : position + 1] in ("}", "]"):
        return len(before) - 1
    return position


def _json_hint(text: str, position: int) -> str:
    """Return what to do about what people often write into JSON."""
    if text[position : position + 1] in ("/", "#"):
        return "; JSON has no comments, so remove it or write the scene as YAML"
    if re.match(r",\s*[}\]]", text[position:]):
        return "; remove this comma"
    return ""


def _repeated_key_message(path: Path, text: str) -> str:
    try:
        _, repeated = find_json_lines(text)
    except (AssertionError, IndexError, ValueError):  # behind the repetition the text is broken
        repeated = None
    if repeated is None:
        return f"{path}: a key stands twice in one mapping; keep one"
    key, line, first = repeated
    return f"{path}:{line}: the key '{key}' stands twice in one mapping (first in line {first}); keep one"


class _SceneYamlLoader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars of YAML 1.2, so that `1e6` is a number and `on` a word."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (as in PyYAML)


_SceneYamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_SceneYamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_SceneYamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)
_SceneYamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
    ),
    list("-+.0123456789"),
)
_SceneYamlLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"])


def _integer(text: str) -> int:
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


_SCALARS = {
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": _integer,
    "tag:yaml.org,2002:float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    "tag:yaml.org,2002:str": lambda text: text,
}


def _read_yaml(path: Path, text: str) -> _Reading:
    try:
        loader = _SceneYamlLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, dict
        data, lines = _YamlValues(path, loader).convert(node)
        return data, lambda: lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or ""
        hint = "; indent with spaces" if "'\\t'" in problem else ""
        raise SapSceneLoaderError(
            f"{path}:{mark.line + 1 if mark else 1}: not valid YAML: {problem}{hint}"
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise SapSceneLoaderError(
            f"{path}:{line}: not valid YAML: the character {chr(int(error.character))!r} is not allowed"
        ) from error
    except yaml.YAMLError as error:
        raise SapSceneLoaderError(f"{path}:1: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise SapSceneLoaderError(f"{path}:1: the file nests too deeply") from error


class _YamlValues:
    """Turns a tree of YAML nodes into plain values and notes the line of each."""

    def __init__(self, path: Path, loader: _SceneYamlLoader):
        self._path = path
        self._loader = loader
        self._lines: dict[FieldPath, int] = {}
        self._count = 0
        self._open: set[int] = set()  # the nodes above the current one: an alias to one of them never ends

    def convert(self, node: yaml.Node) -> tuple[Any, dict[FieldPath, int]]:
        return self._value(node, ()), self._lines

    def _fail(self, node: yaml.Node, message: str) -> NoReturn:
        raise SapSceneLoaderError(_printable(f"{self._path}:{node.start_mark.line + 1}: {message}"))

    def _spend(self, node: yaml.Node, count: int) -> None:
        """Count values that were made, also those of merges that another one replaces."""
        self._count += count
        if self._count > YAML_EXPANSION_MAX:
            self._fail(
                node, f"the file expands to more than {YAML_EXPANSION_MAX:,} values; use fewer YAML aliases"
            )

    def _value(self, node: yaml.Node, field: FieldPath) -> Any:
        self._lines[field] = node.start_mark.line + 1
        self._spend(node, 1)
        if id(node) in self._open:
            self._fail(node, "a YAML alias refers to a value that contains it")
        if isinstance(node, yaml.ScalarNode):
            if node.tag not in _SCALARS:
                self._fail(node, f"the YAML tag '{node.tag}' is not allowed in a scene")
            try:
                return _SCALARS[node.tag](node.value)
            except ValueError as error:  # such as an integer of more digits than Python converts
                self._fail(node, f"{node.value[:40]!r} is not a value: {error}")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
                return [self._value(item, (*field, index)) for index, item in enumerate(node.value)]
            if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
                return self._mapping(node, field)
        finally:
            self._open.discard(id(node))
        self._fail(node, f"the YAML tag '{node.tag}' is not allowed in a scene")

    def _mapping(self, node: yaml.MappingNode, field: FieldPath) -> dict[str, Any]:
        merged: dict[str, yaml.Node] = {}  # of several merged mappings the first one wins
        own: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for source in sources:
                    if not isinstance(source, yaml.MappingNode) or id(source) in self._open:
                        self._fail(value_node, "'<<' merges another mapping or a list of mappings")
                    self._spend(source, len(source.value))
                    for key, value in source.value:
                        if key.tag == "tag:yaml.org,2002:merge":
                            self._fail(key, "'<<' inside a mapping that is itself merged is not supported")
                        merged.setdefault(key.value, value)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._fail(key_node, "a key must be a word")
            if key_node.value in own:
                first = own[key_node.value][0].start_mark.line + 1
                self._fail(
                    key_node,
                    f"the key '{key_node.value}' stands twice in one mapping (first in line {first}); "
                    "keep one",
                )
            own[key_node.value] = (key_node, value_node)
        values = {key: self._value(value, (*field, key)) for key, value in merged.items() if key not in own}
        for key, (key_node, value_node) in own.items():
            values[key] = self._value(value_node, (*field, key))
            self._lines[(*field, key)] = key_node.start_mark.line + 1
        return values
