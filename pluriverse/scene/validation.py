"""Checking a document against the schema, with errors in the terms of the format."""

import copy
from typing import Any, TypeVar

from pydantic import ValidationError

from pluriverse.scene.assets import ASSET_TYPES
from pluriverse.scene.constraints import CONSTRAINTS
from pluriverse.scene.document import FieldPath, SceneDocument
from pluriverse.scene.errors import SapSceneLoaderError, joined_messages
from pluriverse.scene.mapping import TAG_MARK, SceneMapping
from pluriverse.scene.post_build import OPERATIONS
from pluriverse.scene.schema import SCHEMA_VERSION, Scene
from pluriverse.scene.selectors import suggestion
from pluriverse.scene.terrain import TERRAINS
from pluriverse.scene.values import shown

Mapping = TypeVar("Mapping", bound=SceneMapping)


def validate_scene(document: SceneDocument, *, strict: bool, features: list[str]) -> Scene:
    """Return the scene that a document describes; see `validate_document`."""
    return validate_document(document, Scene, strict=strict, features=features)


def check_version(document: SceneDocument) -> None:
    """Check the version of the format that a document is written in.

    Raises:
        SapSceneLoaderError: This program does not read that version.
    """
    version = document.data.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise document.error(
            ("schema_version",),
            f"{shown(version)} is not a version this program reads; write {SCHEMA_VERSION}",
        )


def validate_document(
    document: SceneDocument, model: type[Mapping], *, strict: bool, features: list[str]
) -> Mapping:
    """Return what a document describes.

    Args:
        document: What the file says.
        model: What it should be.
        strict: Whether an unknown key is an error; otherwise it is left out and noted in `features`.
        features: Receives a text per key that was left out.

    Raises:
        SapSceneLoaderError: It is not.
    """
    check_version(document)
    # A section that is there but empty counts as not written.
    data = {key: value for key, value in document.data.items() if value is not None}
    for _ in range(2):
        models: dict[int, type[SceneMapping]] = {id(data): model}
        try:
            return model.model_validate(data, context=models)
        except ValidationError as error:
            problems = [_Problem(data, problem, models) for problem in error.errors(include_url=False)]
        if strict or any(not problem.is_unknown_key for problem in problems):
            break
        data = copy.deepcopy(data)
        for problem in problems:
            features.append(document.located(problem.field, problem.message))
            parent: Any = data
            key: Any  # the path was found by walking the same data
            for key in problem.field[:-1]:
                parent = parent[key]
            del parent[problem.field[-1]]
    problems.sort(key=lambda problem: document.line(problem.field) or 0)
    raise SapSceneLoaderError(
        joined_messages([document.located(problem.field, problem.message) for problem in problems])
    )


class _Problem:
    """One error of Pydantic in the words of the scene format."""

    def __init__(self, data: Any, problem: Any, models: dict[int, type[SceneMapping]]):
        kind = problem["type"]
        context = problem.get("ctx", {})
        self.is_unknown_key = kind == "extra_forbidden"
        self.field, parent, value = _walk(data, problem["loc"], is_missing=kind == "missing")
        model = models.get(id(parent))
        if self.is_unknown_key:
            self.message = self._unknown_key(str(self.field[-1]), parent, model)
        elif kind == "scene_value":
            self.field += tuple(context["path"])
            self.message = context["message"]
        else:
            self.message = _message(kind, context, value, problem["msg"], self.field)

    def _unknown_key(self, key: str, parent: Any, model: type[SceneMapping] | None) -> str:
        names = model.key_names() if model else {}
        if key in names:
            twin = next(other for other in parent if other != key and names.get(other) == names[key])
            return f"'{key}' and '{twin}' mean the same; keep one"
        return f"unknown key '{key}'; {suggestion(key, names)}"


def _walk(data: Any, location: tuple[str | int, ...], *, is_missing: bool) -> tuple[FieldPath, Any, Any]:
    """Return path, mapping and value of an error.

    Pydantic's location also names the members of unions it tried; those are no keys of the document.
    """
    field: FieldPath = ()
    parent: Any = None
    value: Any = data
    for depth, key in enumerate(location):
        is_key = isinstance(value, dict) and isinstance(key, str) and key in value
        if isinstance(key, str) and key.startswith(TAG_MARK) and not is_key:
            continue
        is_index = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if is_key or is_index:
            parent, value = value, value[key]
        elif is_missing and depth == len(location) - 1:
            parent, value = value, None
        else:
            continue
        field = (*field, key)
    return field, parent, value


_NOT_A = {
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "a mapping of keys and values",
    "model_attributes_type": "a mapping of keys and values",
    "dict_type": "a mapping of keys and values",
}


def _message(kind: str, context: dict[str, Any], value: Any, fallback: str, field: FieldPath) -> str:
    if kind == "missing":
        return "this required key is missing"
    if kind in _NOT_A:
        return f"{shown(value)} is not {_NOT_A[kind]}"
    if kind in ("literal_error", "enum"):
        return f"{shown(value)} is not allowed here; write {context['expected']}"
    if kind == "string_too_short":
        return "this text must not be empty"
    if kind == "too_long":
        return f"the list has {context['actual_length']} entries, but {context['max_length']} are allowed"
    if kind == "too_short":
        return f"the list needs at least {context['min_length']} entry"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _tag_message(context, value, field)
    if kind == "value_error":
        return str(context["error"])
    return f"{shown(value)}: {fallback}"


_KINDS = {
    "assets": ASSET_TYPES,
    "constraints": tuple(CONSTRAINTS),
    "terrain": tuple(TERRAINS),
    "post_build": tuple(dict.fromkeys(name.split()[0] for name in OPERATIONS)),
}


def _tag_message(context: dict[str, Any], value: Any, field: FieldPath) -> str:
    """Describe the allowed values of the key that selects the kind of a mapping (`op` or `type`)."""
    if not isinstance(value, dict):
        return f"{shown(value)} is not a mapping of keys and values"
    if "tag" not in context:
        key = "op" if "operation" in context["discriminator"] else "type"
        section = next((part for part in reversed(field) if isinstance(part, str)), "")
        kinds = f"; write one of {', '.join(_KINDS[section])}" if section in _KINDS else ""
        return f"the required key '{key}' is missing or not a text{kinds}"
    tags = [tag.strip(" '").removeprefix(TAG_MARK) for tag in context["expected_tags"].split(",")]
    shapes = [tag.removeprefix("add_shape ") for tag in tags if tag.startswith("add_shape ")]
    given = str(value.get("type"))
    return f"there is no type {given!r}; {suggestion(given, shapes or tags)}"
