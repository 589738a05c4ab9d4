"""Validation: check that the variants of an entity differ only where a single layout allows it.

This is the form of mjlab's scenes: a floating base, one tree of bodies and joints, equal primitive
geoms, actuators, sensors, tendons and equality constraints, and one way of giving inertia to each body.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.types import GeoType, JointType
from pluriverse.variants.layout import PADDING_PREFIX, body_paths, shape_role


def check_reserved_names(what: str, builder: Any, spec: Any) -> None:
    """Check that no name of a builder, or of the `mujoco.MjSpec` it was made from, begins like padding.

    Raises:
        ValueError: If one does.
    """
    elements = ("meshes", "materials", "textures", "actuators", "sensors", "tendons", "equalities")
    names = [] if spec is None else [each.name for kind in elements for each in getattr(spec, kind)]
    for label in (*builder.body_label, *builder.joint_label, *builder.shape_label, *names):
        # Importers prefix a name with the path of its body.
        if f"/{label}".find(f"/{PADDING_PREFIX}") >= 0:
            raise ValueError(
                f"{what}: the name '{label}' begins with '{PADDING_PREFIX}', which is reserved for the "
                "shapes that fill empty slots. Rename it."
            )


def check_single_layout(
    entity: str, names: Sequence[str], builders: Sequence[Any], specs: Sequence[Any]
) -> None:
    """Check that variants agree in everything but meshes, their attributes and masses.

    Args:
        entity: Name of the entity.
        names: Names of the variants.
        builders: Their builders.
        specs: The `mujoco.MjSpec` of each, None where there is none.

    Raises:
        ValueError: If they do not; the message names the variant and the mismatch.
    """
    for name, builder in zip(names, builders, strict=True):
        roots = np.flatnonzero(builder.joint_parent < 0)
        kinds = [JointType(builder.joint_type[root]) for root in roots]
        if kinds != [JointType.FREE]:
            joints = ", ".join(kind.name for kind in kinds) or "no joint"
            raise ValueError(
                f"{_what(entity, name)} has the roots [{joints}], but a single layout needs exactly one root "
                f"body with a free joint. Add one, or {_REMEDY}."
            )
    first = _facts(builders[0], specs[0])
    for name, builder, spec in zip(names[1:], builders[1:], specs[1:], strict=True):
        for topic, value in _facts(builder, spec).items():
            if topic in first and value != first[topic]:
                raise ValueError(
                    f"{_what(entity, name)} differs from variant '{names[0]}' in {topic}: "
                    f"{_difference(first[topic], value)}. Make them agree, or {_REMEDY}."
                )


_REMEDY = "let variants differ in anything with mode=VariantMode.ANY"


def _what(entity: str, variant: str) -> str:
    return f"entity '{entity}', variant '{variant}'"


def _facts(builder: Any, spec: Any) -> dict[str, list[Any]]:
    """Return what must agree, by topic, as lists of texts and numbers."""
    paths = [f"/{path[1:].partition('/')[2]}" for path in body_paths(builder)]  # the root's name is free
    kinds = [JointType(kind).name for kind in builder.joint_type]
    facts: dict[str, list[Any]] = {
        "its body tree": paths,
        "its joints": [
            (paths[child], kind, tuple(np.round(builder.joint_axis[start : start + size], 9).ravel()))
            for child, kind, start, size in zip(
                builder.joint_child.tolist(),
                kinds,
                builder.joint_qd_start.tolist(),
                builder.joint_dof_dim.sum(axis=1).tolist(),
                strict=True,
            )
        ],
        "its primitive geoms": [
            (
                paths[body] if body >= 0 else "world",
                GeoType(kind).name,
                shape_role(flags),
                tuple(np.round(scale, 9).tolist()),
                tuple(np.round(pose, 9).tolist()),
            )
            for body, kind, flags, scale, pose in zip(
                builder.shape_body.tolist(),
                builder.shape_type.tolist(),
                builder.shape_flags.tolist(),
                builder.shape_scale,
                builder.shape_transform,
                strict=True,
            )
            if kind not in (GeoType.MESH, GeoType.CONVEX_MESH)
        ],
        "its equality constraints": builder.equality_constraint_type.tolist(),
    }
    if spec is not None:
        facts["its actuators"] = [_element(actuator, "target") for actuator in spec.actuators]
        facts["its sensors"] = [_element(sensor, "objname") for sensor in spec.sensors]
        facts["its tendons"] = [tendon.name for tendon in spec.tendons]
        facts["how inertia is given"] = [_inertial_mode(body) for body in spec.bodies]
    else:
        facts["its drives"] = builder.joint_target_mode.tolist()
    return facts


def _element(element: Any, field: str) -> tuple[str, str]:
    return element.name, str(getattr(element, field, ""))


def _inertial_mode(body: Any) -> str:
    """Return whether the inertia of a body follows from its geoms, or is given as a diagonal or in full."""
    if not body.explicitinertial:
        return "from geoms"
    return "fullinertia" if np.isfinite(body.fullinertia).all() else "diagonal"


def _difference(first: list[Any], other: list[Any]) -> str:
    """Return where two lists begin to differ."""
    for index, (mine, theirs) in enumerate(zip(first, other, strict=False)):
        if mine != theirs:
            return f"entry {index} is {theirs}, not {mine}"
    longer, which = (other, "has") if len(other) > len(first) else (first, "lacks")
    return f"it {which} {longer[min(len(first), len(other))]}"
