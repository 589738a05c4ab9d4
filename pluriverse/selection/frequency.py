"""Frequency: which kind of entity an array has one entry for."""

import enum
from typing import Any

import warp as wp

from pluriverse.model import Model


class Frequency(enum.Enum):
    """Kind of entity that an array of a model, a state or a control has one entry for."""

    WORLD = "world"
    ARTICULATION = "articulation"
    JOINT = "joint"
    JOINT_DOF = "joint_dof"
    JOINT_COORD = "joint_coord"
    BODY = "body"
    SHAPE = "shape"
    EQUALITY_CONSTRAINT = "equality_constraint"


_DOF_ATTRIBUTES = (
    "joint_qd",
    "joint_f",
    "joint_act",
    "joint_axis",
    "joint_armature",
    "joint_damping",
    "joint_friction",
    "joint_target_mode",
    "joint_target_ke",
    "joint_target_kd",
    "joint_target_pos",
    "joint_target_vel",
    "joint_target_qd",
    "joint_limit_lower",
    "joint_limit_upper",
    "joint_limit_ke",
    "joint_limit_kd",
    "joint_target_lower",
    "joint_target_upper",
    "joint_effort_limit",
    "joint_velocity_limit",
)
_JOINT_ATTRIBUTES = (
    "joint_type",
    "joint_parent",
    "joint_child",
    "joint_X_p",
    "joint_X_c",
    "joint_articulation",
    "joint_enabled",
    "joint_world",
    "joint_dof_dim",
)
_BODY_ATTRIBUTES = (
    "body_q",
    "body_qd",
    "body_f",
    "body_mass",
    "body_inertia",
    "body_com",
    "body_flags",
    "body_world",
)
_SHAPE_ATTRIBUTES = (
    "shape_body",
    "shape_type",
    "shape_transform",
    "shape_scale",
    "shape_flags",
    "shape_world",
    "shape_collision_group",
    "shape_source_index",
    "shape_margin",
    "shape_gap",
    "shape_material_ke",
    "shape_material_tau",
    "shape_material_mu",
    "shape_material_restitution",
    "shape_material_mu_torsional",
    "shape_material_mu_rolling",
    "shape_material_kh",
    "shape_is_solid",
    "shape_collision_radius",
    "shape_aabb_lower",
    "shape_aabb_upper",
    "shape_enabled",
    "shape_appearance",
    "shape_color",
)

_EQUALITY_ATTRIBUTES = tuple(
    f"equality_constraint_{name}"
    for name in (
        "type",
        "body1",
        "body2",
        "anchor",
        "axis",
        "torquescale",
        "relpose",
        "joint1",
        "joint2",
        "joint1_axis",
        "joint2_axis",
        "polycoef",
        "enabled",
        "world",
    )
)

ATTRIBUTE_FREQUENCY: dict[str, Frequency] = {
    "gravity": Frequency.WORLD,
    "articulation_world": Frequency.ARTICULATION,
    "joint_q": Frequency.JOINT_COORD,
    "joint_target_q": Frequency.JOINT_COORD,
    **dict.fromkeys(_DOF_ATTRIBUTES, Frequency.JOINT_DOF),
    **dict.fromkeys(_JOINT_ATTRIBUTES, Frequency.JOINT),
    **dict.fromkeys(_BODY_ATTRIBUTES, Frequency.BODY),
    **dict.fromkeys(_SHAPE_ATTRIBUTES, Frequency.SHAPE),
    **dict.fromkeys(_EQUALITY_ATTRIBUTES, Frequency.EQUALITY_CONSTRAINT),
}
"""Frequency of each array of `Model`, `State` and `Control` that a view gives access to."""


def entity_count(model: Model, frequency: Frequency) -> int:
    """Return how many entities of a kind a model has."""
    return int(getattr(model, f"{frequency.value}_count"))


def check_source(source: Any, name: str, model: Model, *, what: str) -> tuple[Any, Frequency | str]:
    """Return an array and its frequency; that of a custom attribute may be a custom one.

    Raises:
        AttributeError: If there is no such array, or it has no entry per entity.
        ValueError: If the array belongs to another model.
    """
    key = name.replace(".", ":", 1)
    if key in model.attribute_specs:
        return _check_custom_source(source, key, model, what=what)
    frequency = ATTRIBUTE_FREQUENCY.get(name)
    array = getattr(source, name, None)
    if frequency is None or array is None:
        usable = [known for known in ATTRIBUTE_FREQUENCY if getattr(source, known, None) is not None]
        raise AttributeError(
            f"{what}: {type(source).__name__} has no attribute {name!r} with one entry per entity; it has "
            f"{', '.join(usable)}."
        )
    expected = entity_count(model, frequency)
    if array.shape[0] != expected:
        raise ValueError(
            f"{what}: {name} has {array.shape[0]} entries, but the view's model has {expected} of them. "
            "Pass a model, state or control that belongs to the model of the view."
        )
    return array, frequency


def _check_custom_source(source: Any, key: str, model: Model, *, what: str) -> tuple[Any, Frequency | str]:
    """Return the array of a custom attribute and its frequency."""
    spec = model.attribute_specs[key]
    array = source.custom_arrays.get(key)
    if array is None:
        raise AttributeError(
            f"{what}: {type(source).__name__} has no custom attribute '{key}', which is assigned to "
            f"{spec.assignment.name}."
        )
    if not isinstance(array, wp.array):
        raise AttributeError(
            f"{what}: custom attribute '{key}' has texts, which are on the host only. Read the list itself, "
            "with the indices of the view (`layout(frequency).index`)."
        )
    frequency = spec.frequency if isinstance(spec.frequency, str) else spec.frequency.key
    known = {member.value: member for member in Frequency}
    if not isinstance(spec.frequency, str) and frequency not in known:
        raise AttributeError(
            f"{what}: custom attribute '{key}' has one value per {frequency}, which belongs to no entity of "
            "a view. Read the array itself."
        )
    expected = model.get_frequency_count(spec.frequency)
    if array.shape[0] != expected:
        raise ValueError(
            f"{what}: {key} has {array.shape[0]} entries, but the view's model has {expected} of them. Pass "
            "a model, state or control that belongs to the model of the view."
        )
    return array, known.get(frequency, frequency)
