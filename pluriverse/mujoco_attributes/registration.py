"""The MuJoCo-specific custom attributes, in the namespace `mujoco`.

Importers fill them (`<geom condim>` of MJCF, `mjc:condim` of USD), the conversion reads them. Names, types,
defaults and kinds agree with those of Newton, so that its scripts work; rows of `mujoco:equality_constraint`
in Newton are equality constraints of the model here.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from pluriverse.builder.custom_attribute import CustomAttribute, CustomFrequency
from pluriverse.model.attributes import AttributeAssignment
from pluriverse.mujoco_attributes.choices import (
    DEFAULT_SOLIMP,
    DEFAULT_SOLREF,
    FLAGS_OFF,
    FLAGS_ON,
    NAMESPACE,
    NO_LENGTH,
    CtrlSource,
    CtrlType,
    SolrefMode,
    TargetKind,
    TrnType,
    as_number,
)
from pluriverse.mujoco_attributes.usd_actuators import actuator_rows, is_actuator
from pluriverse.mujoco_attributes.usd_tendons import is_tendon, tendon_rows
from pluriverse.types import Entity

VEC5 = wp.types.vector(5, wp.float32)
VEC6 = wp.types.vector(6, wp.float32)
VEC10 = wp.types.vector(10, wp.float32)

UNSET_BITS = np.iinfo(np.int64).min
"""Value of `contype` and `conaffinity` that were not authored."""
AUTO = 2
"""Value of a `limited` that depends on whether there is a range (MuJoCo's `autolimits`)."""

FREQUENCIES = (
    "pair",
    "tendon",
    "tendon_joint",
    "tendon_wrap",
    "tendon_equality",
    "actuator",  # behind the tendons that they may act on
    "camera",
    "sensor",
)
"""The custom frequencies; each has a `..._world`, those in `OWNED` an articulation and some a label."""
LABELLED = ("pair", "actuator", "tendon", "tendon_equality", "camera", "sensor")
OWNED = ("actuator", "tendon", "tendon_joint", "tendon_wrap")


class Entry(NamedTuple):
    """One custom attribute."""

    name: str
    dtype: Any
    default: Any
    mjc: str = ""
    """Name in MJCF and, after `mjc:`, in USD, where it is not the same as `name`."""
    references: str | None = None
    assignment: AttributeAssignment = AttributeAssignment.MODEL
    row_references: Callable[[Any], list[str | None]] | None = None


BODY = (
    Entry("gravcomp", float, 0.0),
    Entry("sleep_policy", int, 0, "sleep"),
)
SHAPE = (
    Entry("condim", int, 3),
    Entry("contype", wp.int64, UNSET_BITS),
    Entry("conaffinity", wp.int64, UNSET_BITS),
    Entry("geom_group", int, 0, "group"),
    Entry("geom_priority", int, 0, "priority"),
    Entry("geom_solimp", VEC5, DEFAULT_SOLIMP, "solimp"),
    Entry("geom_solmix", float, 1.0, "solmix"),
    Entry("solref", wp.vec2, (0.0, 0.0)),
    Entry("solref_mode", int, int(SolrefMode.MJCF_DEFAULT)),
)
JOINT_DOF = (
    Entry("limit_margin", float, 0.0, "margin"),
    Entry("solimplimit", VEC5, DEFAULT_SOLIMP),
    Entry("solreflimit", wp.vec2, (0.0, 0.0)),
    Entry("solreflimit_mode", int, int(SolrefMode.FORCE_SPACE)),
    Entry("solreffriction", wp.vec2, DEFAULT_SOLREF),
    Entry("solimpfriction", VEC5, DEFAULT_SOLIMP),
    Entry("dof_passive_stiffness", float, 0.0, "stiffness"),
    Entry("dof_springref", float, 0.0, "springref"),
    Entry("dof_ref", float, 0.0, "ref"),
    Entry("jnt_actgravcomp", bool, False, "actuatorgravcomp"),
    Entry("jnt_actfrclimited", bool, False),  # whether `joint_effort_limit` bounds all actuators together
    Entry("joint_dof_label", str, ""),
)
EQUALITY = (
    Entry("eq_solref", wp.vec2, DEFAULT_SOLREF, "solref"),
    Entry("eq_solimp", VEC5, DEFAULT_SOLIMP, "solimp"),
)
WORLD_OPTIONS = (
    Entry("impratio", float, 1.0),
    Entry("tolerance", float, 1e-8),
    Entry("ls_tolerance", float, 0.01),
    Entry("ccd_tolerance", float, 1e-6),
    Entry("sleep_tolerance", float, 1e-3),
    Entry("density", float, 0.0),
    Entry("viscosity", float, 0.0),
    Entry("wind", wp.vec3, (0.0, 0.0, 0.0)),
    Entry("magnetic", wp.vec3, (0.0, -0.5, 0.0)),
)
ONCE_OPTIONS = (
    Entry("iterations", int, 100),
    Entry("ls_iterations", int, 50),
    Entry("ccd_iterations", int, 35),
    Entry("sdf_iterations", int, 10),
    Entry("sdf_initpoints", int, 40),
    Entry("noslip_iterations", int, 0),
    Entry("noslip_tolerance", float, 1e-6),
    Entry("integrator", int, 3),
    Entry("solver", int, 2),
    Entry("cone", int, 0),
    Entry("jacobian", int, 2),
    Entry("enable_sleeping", bool, False, "sleep"),
    Entry("autolimits", bool, True),
)
PAIR = (
    Entry("pair_geom1", int, -1, "geom1", references="shape"),
    Entry("pair_geom2", int, -1, "geom2", references="shape"),
    Entry("pair_condim", int, 3, "condim"),
    Entry("pair_solref", wp.vec2, DEFAULT_SOLREF, "solref"),
    Entry("pair_solreffriction", wp.vec2, DEFAULT_SOLREF, "solreffriction"),
    Entry("pair_solimp", VEC5, DEFAULT_SOLIMP, "solimp"),
    Entry("pair_margin", float, 0.0, "margin"),
    Entry("pair_gap", float, 0.0, "gap"),
    Entry("pair_adhesion", float, 0.0, "adhesion"),
    Entry("pair_friction", VEC5, (1.0, 1.0, 0.005, 0.0001, 0.0001), "friction"),
)
_UNIT10 = (1.0, *[0.0] * 9)


def target_kinds(builder: Any) -> list[str | None]:
    """Return the kind of entity that `actuator_trnid` of each actuator of a builder indexes."""
    count = builder.custom_frequency_count(f"{NAMESPACE}:actuator")
    trntype = builder.custom_attributes[f"{NAMESPACE}:actuator_trntype"].column.resolved(count)
    return [_TARGET_KIND.get(TrnType(int(value))) for value in trntype]


_TARGET_KIND = {
    TrnType.JOINT: TargetKind.JOINT_DOF.value,
    TrnType.JOINT_IN_PARENT: TargetKind.JOINT_DOF.value,
    TrnType.TENDON: TargetKind.TENDON.value,
    TrnType.SITE: TargetKind.SHAPE.value,
    TrnType.SLIDERCRANK: TargetKind.SHAPE.value,
    TrnType.BODY: TargetKind.BODY.value,
}

ACTUATOR = (
    Entry("actuator_trnid", wp.vec2i, (-1, -1), row_references=target_kinds),
    Entry("actuator_target_label", str, ""),
    Entry("actuator_trntype", int, int(TrnType.JOINT), "trntype"),
    Entry("actuator_dyntype", int, 0, "dyntype"),
    Entry("actuator_gaintype", int, 0, "gaintype"),
    Entry("actuator_biastype", int, 0, "biastype"),
    Entry("actuator_ctrllimited", int, AUTO, "ctrllimited"),
    Entry("actuator_forcelimited", int, AUTO, "forcelimited"),
    Entry("actuator_ctrlrange", wp.vec2, (0.0, 0.0), "ctrlrange"),
    Entry("actuator_has_ctrlrange", int, 0, "ctrlrange"),
    Entry("actuator_forcerange", wp.vec2, (0.0, 0.0), "forcerange"),
    Entry("actuator_has_forcerange", int, 0, "forcerange"),
    Entry("actuator_gear", VEC6, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0), "gear"),
    Entry("actuator_damping", float, 0.0, "damping"),
    Entry("actuator_dampingpoly", wp.vec2, (0.0, 0.0), "damping"),
    Entry("actuator_armature", float, 0.0, "armature"),
    Entry("actuator_cranklength", float, 0.0, "cranklength"),
    Entry("actuator_dynprm", VEC10, _UNIT10, "dynprm"),
    Entry("actuator_gainprm", VEC10, _UNIT10, "gainprm"),
    Entry("actuator_biasprm", VEC10, (0.0,) * 10, "biasprm"),
    Entry("actuator_actlimited", int, AUTO, "actlimited"),
    Entry("actuator_actrange", wp.vec2, (0.0, 0.0), "actrange"),
    Entry("actuator_act", VEC10, (0.0,) * 10),  # its activations at the start and after a reset
    Entry("actuator_has_actrange", int, 0, "actrange"),
    Entry("actuator_lengthrange", wp.vec2, (0.0, 0.0), "lengthrange"),
    Entry("actuator_actdim", int, -1, "actdim"),
    Entry("actuator_ctrlspec", int, 0),
    Entry("actuator_actearly", bool, False, "actearly"),
    Entry("ctrl", float, 0.0, assignment=AttributeAssignment.CONTROL),
    Entry("ctrl_source", int, int(CtrlSource.CTRL_DIRECT)),
    Entry("ctrl_type", int, int(CtrlType.GENERAL)),
)
TENDON = (
    Entry("tendon_type", int, 0),
    Entry("tendon_stiffness", float, 0.0, "stiffness"),
    Entry("tendon_stiffnesspoly", wp.vec2, (0.0, 0.0), "stiffness"),
    Entry("tendon_damping", float, 0.0, "damping"),
    Entry("tendon_dampingpoly", wp.vec2, (0.0, 0.0), "damping"),
    Entry("tendon_frictionloss", float, 0.0, "frictionloss"),
    Entry("tendon_limited", int, AUTO, "limited"),
    Entry("tendon_range", wp.vec2, (0.0, 0.0), "range"),
    Entry("tendon_margin", float, 0.0, "margin"),
    Entry("tendon_solref_limit", wp.vec2, DEFAULT_SOLREF, "solreflimit"),
    Entry("tendon_limit_ke", float, 0.0),
    Entry("tendon_limit_kd", float, 0.0),
    Entry("tendon_solref_limit_mode", int, int(SolrefMode.RAW)),
    Entry("tendon_solimp_limit", VEC5, DEFAULT_SOLIMP, "solimplimit"),
    Entry("tendon_solref_friction", wp.vec2, DEFAULT_SOLREF, "solreffriction"),
    Entry("tendon_solimp_friction", VEC5, DEFAULT_SOLIMP, "solimpfriction"),
    Entry("tendon_armature", float, 0.0, "armature"),
    Entry("tendon_springlength", wp.vec2, (NO_LENGTH, NO_LENGTH), "springlength"),
    Entry("tendon_actuator_force_range", wp.vec2, (0.0, 0.0), "actuatorfrcrange"),
    Entry("tendon_actuator_force_limited", int, AUTO, "actuatorfrclimited"),
    Entry("tendon_joint_adr", int, -1, references=f"{NAMESPACE}:tendon_joint"),
    Entry("tendon_joint_num", int, 0),
    Entry("tendon_wrap_adr", int, -1, references=f"{NAMESPACE}:tendon_wrap"),
    Entry("tendon_wrap_num", int, 0),
)
TENDON_JOINT = (
    Entry("tendon_joint", int, -1, references="joint"),
    Entry("tendon_joint_dof", int, -1, references="joint_dof"),
    Entry("tendon_coef", float, 0.0, "coef"),
)
TENDON_WRAP = (
    Entry("tendon_wrap_type", int, 0),
    Entry("tendon_wrap_shape", int, -1, references="shape"),
    Entry("tendon_wrap_sidesite", int, -1, references="shape"),
    Entry("tendon_wrap_prm", float, 0.0),
)
TENDON_EQUALITY = (
    Entry("tendon_equality_tendon1", int, -1, "tendon1", references=f"{NAMESPACE}:tendon"),
    Entry("tendon_equality_tendon2", int, -1, "tendon2", references=f"{NAMESPACE}:tendon"),
    Entry("tendon_equality_polycoef", VEC5, (0.0, 1.0, 0.0, 0.0, 0.0), "polycoef"),
    Entry("tendon_equality_enabled", bool, True),
    Entry("tendon_equality_solref", wp.vec2, DEFAULT_SOLREF, "solref"),
    Entry("tendon_equality_solimp", VEC5, DEFAULT_SOLIMP, "solimp"),
)


def _kinds_of(name: str, builder: Any) -> list[str | None]:
    """Return, for each sensor, the kind of entity that its index names, which is in an attribute."""
    count = builder.custom_frequency_count(f"{NAMESPACE}:sensor")
    texts = builder.custom_attributes[f"{NAMESPACE}:{name}"].column.resolved(count)
    return [text or None for text in texts]


CAMERA = (
    Entry("camera_body", int, -1, references="body"),
    Entry("camera_xform", wp.transform, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
    Entry("camera_fovy", float, math.radians(45.0)),
    Entry("camera_mode", int, 0),
    Entry("camera_target", int, -1, references="body"),
    Entry("camera_resolution", wp.vec2i, (1, 1)),
)
SENSOR = (
    Entry("sensor_type", str, ""),
    Entry("sensor_object_kind", str, ""),
    Entry("sensor_object", int, -1, row_references=functools.partial(_kinds_of, "sensor_object_kind")),
    Entry("sensor_object_label", str, ""),
    Entry("sensor_reference_kind", str, ""),
    Entry("sensor_reference", int, -1, row_references=functools.partial(_kinds_of, "sensor_reference_kind")),
    Entry("sensor_cutoff", float, 0.0),
    Entry("sensor_noise", float, 0.0),
)

TABLES: tuple[tuple[Entity | str, tuple[Entry, ...]], ...] = (
    (Entity.BODY, BODY),
    (Entity.SHAPE, SHAPE),
    (Entity.JOINT_DOF, JOINT_DOF),
    (Entity.EQUALITY_CONSTRAINT, EQUALITY),
    (Entity.WORLD, WORLD_OPTIONS),
    (Entity.ONCE, ONCE_OPTIONS),
    (Entity.ONCE, tuple(Entry(f"flag_{name}", bool, True, name) for name in FLAGS_ON)),
    (Entity.ONCE, tuple(Entry(f"flag_{name}", bool, False, name) for name in FLAGS_OFF)),
    ("pair", PAIR),
    ("actuator", ACTUATOR),
    ("tendon", TENDON),
    ("tendon_joint", TENDON_JOINT),
    ("tendon_wrap", TENDON_WRAP),
    ("tendon_equality", TENDON_EQUALITY),
    ("camera", CAMERA),
    ("sensor", SENSOR),
)
"""All attributes by their frequency; texts are custom frequencies of the namespace."""
DEFAULTS = {entry.name: entry.default for _, entries in TABLES for entry in entries}
"""Defaults of the attributes, in double precision."""

CHOICES = {
    "integrator",
    "solver",
    "cone",
    "jacobian",
    "actuator_trntype",
    "actuator_dyntype",
    "actuator_gaintype",
    "actuator_biastype",
    "sleep_policy",
}
"""Attributes that assets give by name."""


_USD_PRIMS = {"tendon": (is_tendon, tendon_rows), "actuator": (is_actuator, actuator_rows)}
"""Frequencies whose rows come from USD prims: which prims, and which rows."""


def register_custom_attributes(builder: Any) -> None:
    """Let importers keep all that is MuJoCo's own in the namespace `mujoco` of `builder`.

    Call it before anything is added. To call it again changes nothing.

    Raises:
        ValueError: If an attribute is declared in another way already.
    """
    declare_custom_attributes(builder)
    builder.is_for_mujoco = True


def declare_custom_attributes(builder: Any) -> None:
    """Declare all attributes of the namespace `mujoco`, which `add_mjcf` does by itself.

    Raises:
        ValueError: If one is declared in another way already.
    """
    frequencies, attributes = _declarations()
    for frequency in frequencies:
        builder.add_custom_frequency(frequency)
    table = builder.custom_attributes
    for key in table.keys() & attributes.keys():
        if table.read(key).frequency != attributes[key].frequency:
            builder.add_custom_attribute(attributes[key])
    table.share(attributes)


@functools.cache
def _declarations() -> tuple[list[CustomFrequency], dict[str, CustomAttribute]]:
    """Return the frequencies and the attributes of the namespace, the latter shared by all builders."""
    frequencies, attributes = [], []
    for name in FREQUENCIES:
        key = f"{NAMESPACE}:{name}"
        frequencies.append(
            CustomFrequency(
                name,
                namespace=NAMESPACE,
                label_attribute=f"{key}_label" if name in LABELLED else None,
                articulation_owner_attribute=f"{key}_articulation" if name in OWNED else None,
                usd_prim_filter=_USD_PRIMS[name][0] if name in _USD_PRIMS else None,
                usd_entry_expander=_USD_PRIMS[name][1] if name in _USD_PRIMS else None,
            )
        )
        attributes.append(_attribute(key, Entry(f"{name}_world", int, -1, references="world")))
        if name in LABELLED:
            attributes.append(_attribute(key, Entry(f"{name}_label", str, "", "name")))
        if name in OWNED:
            attributes.append(
                _attribute(key, Entry(f"{name}_articulation", int, -1, references="articulation"))
            )
    for kind, entries in TABLES:
        key_or_kind = f"{NAMESPACE}:{kind}" if isinstance(kind, str) else kind
        attributes += [_attribute(key_or_kind, entry) for entry in entries]
    for attribute in attributes:
        attribute.column.is_shared = True
    return frequencies, {attribute.key: attribute for attribute in attributes}


# No closures: builders, which hold these, can be pickled.
def _raw_if_authored(name: str, value: Any, context: dict[str, Any]) -> int | None:
    """Return `RAW` for prims that author an attribute."""
    attribute = context["prim"].GetAttribute(name)
    return int(SolrefMode.RAW) if attribute and attribute.HasAuthoredValue() else None


def _name_of(value: Any, context: dict[str, Any]) -> str:
    return str(context["prim"].GetName())


def _as_radians(value: Any, context: dict[str, Any]) -> float:
    """Return an angle of USD, which has degrees, in radians; lengths stay."""
    angular = "Revolute" in str(context["prim"].GetTypeName())
    return math.radians(float(value)) if angular else float(value)


USD: dict[str, tuple[str | None, Callable[[Any, dict[str, Any]], Any] | None]] = {
    "solref_mode": ("*", functools.partial(_raw_if_authored, "mjc:solref")),
    "solreflimit_mode": ("*", functools.partial(_raw_if_authored, "mjc:solreflimit")),
    "joint_dof_label": ("*", _name_of),
    "dof_springref": ("mjc:springref", _as_radians),
    "dof_ref": ("mjc:ref", _as_radians),
    "enable_sleeping": (None, None),
    "autolimits": (None, None),
}
"""USD name and transformer of the attributes that are outside the `mjc:` schema, or in other units."""


def _attribute(frequency: Entity | str, entry: Entry) -> CustomAttribute:
    """Return the declaration of an attribute."""
    asset_name = entry.mjc or entry.name
    is_option = frequency in (Entity.WORLD, Entity.ONCE)
    usd = f"mjc:{'flag' if entry.name.startswith('flag_') else 'option'}:{asset_name}" if is_option else None
    names = entry.name in CHOICES
    usd = usd or (None if isinstance(frequency, str) else f"mjc:{asset_name}")
    usd, usd_transformer = USD.get(entry.name, (usd, _by_name(entry.name) if names else None))
    return CustomAttribute(
        entry.name,
        entry.dtype,
        frequency,
        entry.assignment,
        NAMESPACE,
        entry.references,
        entry.default,
        mjcf_attribute_name=asset_name,
        usd_attribute_name=usd,
        mjcf_value_transformer=_by_name(entry.name) if names else None,
        usd_value_transformer=usd_transformer,
        row_references=entry.row_references,
    )


def _by_name(name: str) -> Callable[[Any, Any], int]:
    return functools.partial(_as_number_of, name)


def _as_number_of(name: str, value: Any, context: Any) -> int:
    return as_number(name, value)
