"""The namespace `mujoco` of an MJCF document: MuJoCo-specific values of bodies, joints, geoms, options.

They are kept where the model lacks them. What it has in its own terms, such as the stiffness of contacts,
is left to it, as are options of the whole model, which other files would share, unless
`SolverMuJoCo.register_custom_attributes` was called before. Values come from MuJoCo's compiled model, where
defaults are resolved; those that are MuJoCo's own are not written.
"""

import functools
from typing import Any

import numpy as np

from pluriverse.importers.custom_values import set_value
from pluriverse.importers.mjcf_enums import MjJoint
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLREF, SolrefMode
from pluriverse.mujoco_attributes.registration import declare_custom_attributes
from pluriverse.types import Entity

KEPT = "kept in model.mujoco, which SolverMuJoCo uses"

GEOM_FIELDS = (
    ("condim", "condim"),
    ("geom_priority", "priority"),
    ("geom_solimp", "solimp"),
    ("geom_solmix", "solmix"),
)
"""Attributes and the fields of geoms (`geom_*`) that they hold."""
READ_FIELDS = (
    ("contype", "contype"),
    ("conaffinity", "conaffinity"),
    ("geom_group", "group"),
)
"""The same of those that the solver has in other terms, to be read."""
JOINT_FIELDS = (
    ("limit_margin", "margin"),
    ("solimplimit", "solimp"),
    ("jnt_actgravcomp", "actgravcomp"),
)
DOF_FIELDS = (
    ("solreffriction", "solref"),
    ("solimpfriction", "solimp"),
)


class MujocoNamespace:
    """The MuJoCo-specific parameters that a builder can store.

    Args:
        builder: Builder that the document is added to.
        report: Report of the import.
    """

    def __init__(self, builder: Any, report: ImportReport):
        self._builder = builder
        self._report = report
        declare_custom_attributes(builder)
        self.is_asked = bool(builder.is_for_mujoco)
        """Whether all is to be as MuJoCo has it, whatever other solvers make of that."""

    def keeps(self, feature: str, entity: str) -> bool:
        """Return whether it is enough that the namespace keeps a feature, and report it.

        Otherwise the caller reports what solvers without it make of the feature.
        """
        if self.is_asked:
            self._report.add(feature, entity, KEPT, ImportSeverity.NOTE)
        else:
            self._report.further[feature] = KEPT
        return self.is_asked

    def selected(self, **values: Any) -> dict[str, Any]:
        """Return custom attributes by key: the given ones that are declared and differ from the default."""
        result = {}
        for name, value in values.items():
            attribute = self._builder.custom_attributes.read(f"mujoco:{name}")
            if attribute is None:
                continue
            row = attribute.convert(value)
            if not np.array_equal(row, attribute.column.default):
                result[attribute.key] = row.item() if row.ndim == 0 else row
        return result

    def of_body(self, source: MjcfSource, body: int) -> dict[str, Any]:
        """Return the custom attributes of a body."""
        policies = {element.id: element for element in source.spec.bodies}
        policy = getattr(policies.get(body), "sleep", 0)
        return self.selected(gravcomp=source.model.body_gravcomp[body], sleep_policy=int(policy))

    def of_joint(self, model: Any, joint: int, name: str) -> dict[str, Any]:
        """Return the custom attributes of the degrees of freedom of a joint."""
        dof = int(model.jnt_dofadr[joint])
        values = {key: getattr(model, f"jnt_{field}")[joint] for key, field in JOINT_FIELDS}
        values |= {key: getattr(model, f"dof_{field}")[dof] for key, field in DOF_FIELDS}
        solref = model.jnt_solref[joint]
        authored = not _is_default(solref)
        if authored:  # always, or only until the model gets gains
            mode = SolrefMode.RAW if self.is_asked else SolrefMode.MJCF_DEFAULT
            values |= {"solreflimit": solref, "solreflimit_mode": mode}
        if self.is_asked:
            values["joint_dof_label"] = name
            values.setdefault("solreflimit_mode", SolrefMode.MJCF_DEFAULT)
        if model.jnt_type[joint] == MjJoint.BALL:
            values["dof_passive_stiffness"] = model.jnt_stiffness[joint]
        return self.selected(**values)

    def of_geom(self, model: Any, geom: int) -> dict[str, Any]:
        """Return the custom attributes of a geom."""
        fields = (*GEOM_FIELDS, *READ_FIELDS) if self.is_asked else GEOM_FIELDS
        values = {key: getattr(model, f"geom_{field}")[geom] for key, field in fields}
        if self.is_asked and not _is_default(model.geom_solref[geom]):
            values |= {"solref": model.geom_solref[geom], "solref_mode": SolrefMode.RAW}
        return self.selected(**values)

    def of_equality(self, model: Any, equality: int) -> dict[str, Any]:
        """Return the custom attributes of an equality constraint."""
        return self.selected(eq_solref=model.eq_solref[equality], eq_solimp=model.eq_solimp[equality])

    def set_options(self, source: MjcfSource) -> set[str]:
        """Set the options that the document gives, and return their names in MJCF."""
        option, builder = source.model.opt, self._builder
        given = _given_options(source)
        for name in sorted(given):
            attribute = builder.custom_attributes.read(f"mujoco:{name}")
            if attribute is None or attribute.is_custom_frequency:
                continue
            if self.is_asked or attribute.frequency is Entity.WORLD:
                set_value(builder, builder.custom_attributes[attribute.key], getattr(option, name))
        for name, on in _given_switches(source).items() if self.is_asked else ():
            key = "mujoco:enable_sleeping" if name == "sleep" else f"mujoco:flag_{name}"
            if key in builder.custom_attributes:
                set_value(builder, builder.custom_attributes[key], on)
                given.add(f"flag {name}")
        return given


def _is_default(solref: np.ndarray) -> bool:
    """Return whether the constants of a reference are MuJoCo's own."""
    # Nearly always to the last bit, which is quicker to see.
    return np.array_equal(solref, DEFAULT_SOLREF) or np.allclose(solref, DEFAULT_SOLREF)


def _given_options(source: MjcfSource) -> set[str]:
    """Return the names of the options that a document sets; without XML, those that are not default."""
    if source.tree is not None:
        return {name for element in source.tree.root.iter("option") for name in element.attrib}
    return {
        name
        for name, default in _default_options().items()
        if np.any(default != getattr(source.model.opt, name))
    }


@functools.cache
def _default_options() -> dict[str, Any]:
    """Return the options of a document that sets none."""
    import mujoco

    default = mujoco.MjOption()
    values = {name: getattr(default, name) for name in dir(default) if not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, int | float | np.ndarray)}


def _given_switches(source: MjcfSource) -> dict[str, bool]:
    """Return the flags that a document sets; without XML, those that differ from the default."""
    import mujoco

    if source.tree is not None:
        flags = list(source.tree.root.iter("flag"))
        return {name: value == "enable" for flag in flags for name, value in flag.attrib.items()}
    default, own = mujoco.MjOption(), source.model.opt
    result = {}
    for kind, bits, sense in (("Disable", "disableflags", False), ("Enable", "enableflags", True)):
        changed = getattr(default, bits) ^ getattr(own, bits)
        for member, bit in getattr(mujoco, f"mjt{kind}Bit").__members__.items():
            if changed & int(bit) and member.startswith("mj"):
                on = bool(getattr(own, bits) & int(bit)) == sense
                result[member.partition("_")[2].lower()] = on
    return result
