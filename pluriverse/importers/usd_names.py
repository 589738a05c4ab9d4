"""Types, schemas and properties of a stage that look like physics, and that usd-core does not know by name.

USD takes any name, and usd-core passes over those that it does not know. A misspelt joint leaves bodies free,
a misspelt schema makes a body part of the world.
"""

import functools
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_axes import MEMBERS, PROPERTY, SCHEMAS
from pluriverse.importers.usd_custom import UsdCustom
from pluriverse.importers.usd_source import UsdSource, applied_schemas

# Beginnings of names of UsdPhysics, and of what is meant to be one.
NAMESPACES = ("Physics", "UsdPhysics")
# Properties that carry physics.
PHYSICAL = re.compile(rf"physics:.+|{PROPERTY.pattern}")
# Properties in which simulators keep books: indices, and the name of the engine.
BOOKS = re.compile(r"physics:(tensor|newton):.*|physics:engine")
# Properties that are read without their schema, `PhysicsMassAPI`.
READ = tuple(
    f"physics:{name}" for name in ("mass", "density", "centerOfMass", "diagonalInertia", "principalAxes")
)
# Properties that move nothing by themselves.
HARMLESS = ("physics:axis", "physics:simulationOwner", "physics:startsAsleep")
# Schemas of other simulators, whose attributes are read or reported one by one.
VENDORS = re.compile(r"Physx|Newton|Mjc|Isaac|Omni|Tensor|[wW]arp")
# Likeness of names from which on one may be a slip for the other.
LIKENESS = 0.85
# Other names of a property that files have, by which it is found.
ALIASES = {"linearvelocity": "velocity"}


class _Names(NamedTuple):
    """What usd-core knows of UsdPhysics."""

    types: tuple[str, ...]
    schemas: tuple[str, ...]
    owners: dict[str, list[str]]
    """The schemas and types with each property."""
    values: dict[str, Any]
    """Values of the properties where a file says nothing."""


def report_misnamed(
    source: UsdSource, report: ImportReport, custom: UsdCustom, *, reported: Iterable[str]
) -> None:
    """Report types, schemas and properties that usd-core passes over.

    Args:
        source: The stage.
        report: Report of the import.
        custom: What a builder reads in addition.
        reported: Beginnings of types and schemas that have reports of their own.
    """
    from pxr import Usd

    registry = Usd.SchemaRegistry()
    special = tuple(reported)
    for path, prim in source.prims.items():
        schemas = applied_schemas(prim)
        strange = [schema for schema in schemas if _is_strange(registry, schema)]
        properties = [name for name in map(str, prim.GetAuthoredPropertyNames()) if PHYSICAL.fullmatch(name)]
        kind = str(prim.GetTypeName())
        is_strange = bool(kind) and not registry.IsTyped(registry.GetTypeFromSchemaTypeName(kind))
        if not (strange or properties or is_strange):
            continue
        explained = False  # whether properties belong to something that is reported by itself
        for schema in strange:
            explained |= _report_schema(schema, prim, schemas, special, report)
        if is_strange:
            explained |= kind.startswith(special) or custom.has_rows(prim)
            known = prim.GetPrimDefinition().GetPropertyNames()
            if not explained and (set(properties) - set(known) or kind.startswith(NAMESPACES)):
                report.add(f"type {kind}", path, f"it does nothing: {_unknown(kind, known_names().types)}")
                explained = True
        if not explained:
            _report_properties(prim, properties, custom, report)


@functools.cache
def known_names() -> _Names:
    """Return the names of UsdPhysics, from the registry of usd-core."""
    from pxr import Plug, Tf, Usd

    registry = Usd.SchemaRegistry()
    names = [
        str(registry.GetSchemaTypeName(kind))
        for base in (Usd.Typed, Usd.APISchemaBase)
        for kind in Plug.Registry.GetAllDerivedTypes(Tf.Type.Find(base))
    ]
    names = sorted(name for name in names if name.startswith("Physics"))
    types = tuple(name for name in names if registry.FindConcretePrimDefinition(name))
    schemas = tuple(name for name in names if registry.FindAppliedAPIPrimDefinition(name))
    owners: dict[str, list[str]] = {}
    values: dict[str, Any] = {}
    for name in (*schemas, *types):
        definition = registry.FindConcretePrimDefinition(name) or registry.FindAppliedAPIPrimDefinition(name)
        for member in map(str, definition.GetPropertyNames()):
            if member.startswith("physics:"):
                owners.setdefault(member, []).append(name)
                values.setdefault(member, definition.GetAttributeFallbackValue(member))
    return _Names(types, (*schemas, SCHEMAS["state"]), owners, values)


def _is_strange(registry: Any, schema: str) -> bool:
    """Return whether usd-core does not know an applied schema, and no reader does."""
    base = schema.partition(":")[0]
    return base != SCHEMAS["state"] and not registry.FindAppliedAPIPrimDefinition(base)


def _report_schema(
    schema: str, prim: Any, schemas: list[str], special: tuple[str, ...], report: ImportReport
) -> bool:
    """Report an unknown schema; return whether physical properties of its prim may belong to it."""
    base, path = schema.partition(":")[0], str(prim.GetPath())
    if base.startswith(special):
        return base.startswith(NAMESPACES)
    if VENDORS.match(base):
        return False
    if _is_physical_name(base, known_names().schemas):
        report.add(f"schema {base}", path, f"it does nothing: {_unknown(base, known_names().schemas)}")
        return True
    if any(other.startswith("Physics") for other in (*schemas, str(prim.GetTypeName()))):
        report.add(f"schema {base}", path, "it is not read", ImportSeverity.NOTE)
    return False


def _report_properties(prim: Any, properties: list[str], custom: UsdCustom, report: ImportReport) -> None:
    """Report the properties of a prim that neither its type nor its schemas have."""
    path, kind = str(prim.GetPath()), str(prim.GetTypeName())
    known = {*map(str, prim.GetPrimDefinition().GetPropertyNames()), *custom.names, *READ}
    is_joint = kind.startswith("Physics") and kind.endswith("Joint")
    for name in properties:
        attribute = prim.GetAttribute(name)
        if name in known or (attribute and not attribute.HasAuthoredValue()):
            continue
        consequence, default, severity = _explain(name, is_joint=is_joint)
        if consequence and not (attribute and _is_default(attribute.Get(), default)):
            report.add(name, path, consequence, severity)


def _explain(name: str, *, is_joint: bool) -> tuple[str, Any, ImportSeverity]:
    """Return what becomes of a property that its prim does not have, its default, and how much that matters.

    An empty text: it is the property of an axis, which the readers of joints report.
    """
    part = PROPERTY.fullmatch(name)
    names, loss = known_names(), ImportSeverity.LOSS
    if BOOKS.fullmatch(name):
        return "it belongs to another solver", None, ImportSeverity.NOTE
    if part and part.group(3) not in MEMBERS[part.group(1)]:
        return f"it is not read: {_unknown(part.group(3), MEMBERS[part.group(1)])}", None, loss
    if part:
        return "" if is_joint else "it is not read: the prim is no joint", None, loss
    if name not in names.owners:
        return (
            f"it is not read: {_unknown(name, names.owners)}",
            names.values.get(_closest(name, names.owners)),
            loss,
        )
    owners = " or ".join(names.owners[name])
    # Whoever removes a schema from a prim leaves its properties, so that it may be meant.
    severity = ImportSeverity.WARNING if names.owners[name][0] in names.schemas else loss
    if name in HARMLESS:
        severity = ImportSeverity.NOTE
    return f"it is not read, since it belongs to {owners}", names.values[name], severity


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a property says what holds without it."""
    if default is None or value is None:
        return False
    try:
        first, second = (np.array(item, dtype=np.float64) for item in (value, default))
    except (TypeError, ValueError):
        return bool(value == default)
    return first.shape == second.shape and np.array_equal(first, second)


def _is_physical_name(name: str, names: Iterable[str]) -> bool:
    """Return whether an unknown schema is meant as one of UsdPhysics."""
    return name.startswith(NAMESPACES) or bool(_closest(name, names))


def _unknown(name: str, names: Iterable[str]) -> str:
    """Return that USD does not know a name, with the one that is likely meant."""
    close = _closest(name, names)
    return f"USD has no such name{f'; did you mean {close}?' if close else ''}"


def _closest(name: str, names: Iterable[str]) -> str:
    """Return the name that another one is likely a slip for, or an empty text."""
    key, keys = _key(name), {_key(known): known for known in names}
    close = get_close_matches(ALIASES.get(key, key), keys, n=1, cutoff=LIKENESS)
    return keys[close[0]] if close else ""


def _key(name: str) -> str:
    """Return what tells a name of UsdPhysics from others: its letters without "usd" and "physics"."""
    return re.sub(r"usd|physics|[^a-z0-9]", "", name.lower())
