"""Base class of all mappings of the scene format."""

import functools
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Union, get_origin

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Tag,
    ValidationInfo,
    model_validator,
)


def _complete_schema(schema: dict[str, Any], model: type["SceneMapping"]) -> None:
    """Accept empty sections and the aliases of fields in the JSON Schema of a mapping."""
    properties = schema.get("properties", {})
    for name in _sections(model) & properties.keys():
        properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
    required = schema.get("required", [])
    for name, field in model.key_names().items():
        if field not in properties:
            continue
        properties.setdefault(name, properties[field])
        if name != field and field in required:  # either name will do
            required.remove(field)
            choices = [
                {"required": [key]} for key, set_by_it in model.key_names().items() if set_by_it == field
            ]
            schema.setdefault("allOf", []).append({"anyOf": choices})


class SceneMapping(BaseModel):
    """A mapping of the scene format. Keys it does not list are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_complete_schema)

    @model_validator(mode="before")
    @classmethod
    def _note_model(cls, data: Any, info: ValidationInfo) -> Any:
        """Record which model reads which mapping, so that an error can list the allowed keys."""
        if not isinstance(data, dict):
            return data
        if isinstance(info.context, dict):
            info.context[id(data)] = cls
        # A section whose entries are all commented out is null in YAML, and counts as not written.
        empty = {key for key in _sections(cls) & data.keys() if data[key] is None}
        return {key: value for key, value in data.items() if key not in empty} if empty else data

    @classmethod
    def key_names(cls) -> dict[str, str]:
        """Return every key that may be written, aliases included, with the field it sets; own ones first."""
        own = [field for field in cls.model_fields if field in cls.__annotations__]
        names = {field: field for field in [*own, *cls.model_fields]}
        for field, info in cls.model_fields.items():
            if isinstance(info.validation_alias, AliasChoices):
                names |= {str(choice): field for choice in info.validation_alias.choices}
        return names

    def given(self, fields: Iterable[str] | None = None) -> dict[str, Any]:
        """Return those of `fields` (None: all) that were written and are not null."""
        names = type(self).model_fields
        if fields is not None:
            names = {name: names[name] for name in fields if name in names}
        return {
            name: getattr(self, name)
            for name in names
            if getattr(self, name) is not None and self.wrote(name)
        }

    def wrote(self, field: str) -> bool:
        """Return whether the scene sets `field`."""
        return field in self.model_fields_set


@functools.cache
def _sections(model: type[SceneMapping]) -> frozenset[str]:
    """Return the fields of a mapping that hold another mapping, or a list."""
    return frozenset(
        name
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is list
        or (isinstance(field.annotation, type) and issubclass(field.annotation, SceneMapping))
    )


# Pydantic puts the tag of a member into the path of its errors. A mark distinguishes it from a key of the
# same name.
TAG_MARK = "="


def tag_of(key: str, default: str | None = None) -> Discriminator:
    """Choose among models by the value of `key`, which is marked."""

    def tag(value: Any) -> Any:
        tag_value = value.get(key, default) if isinstance(value, dict) else getattr(value, key, default)
        return TAG_MARK + tag_value if isinstance(tag_value, str) else None

    return Discriminator(tag)


def tagged(models: Mapping[str, type["SceneMapping"]]) -> Any:
    """Return the union of models that `tag_of` chooses from by their names."""
    return Union[tuple(Annotated[model, Tag(TAG_MARK + name)] for name, model in models.items())]  # noqa: UP007
