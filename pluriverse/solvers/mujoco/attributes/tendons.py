"""Fixed and spatial tendons, and constraints between their lengths, from custom attributes."""

from typing import Any

import numpy as np

from pluriverse.mujoco_attributes.choices import DEFAULT_SOLREF, FIXED, NO_LENGTH, SolrefMode, WrapType
from pluriverse.solvers.mujoco.attributes.namespace_rows import (
    NO_ENTRY,
    as_columns,
    label_of,
    local_index,
    rows_of_worlds,
    values_of,
)
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows

AUTO = 2
# Length [m or rad] that stands for no limit where one is switched off.
FAR = 1e10
_LIMITS = (
    ("tendon_limited", "tendon_range"),
    ("tendon_actuator_force_limited", "tendon_actuator_force_range"),
)
_FIELDS = (
    ("tendon_stiffness", "tendon_stiffness"),
    ("tendon_stiffnesspoly", "tendon_stiffnesspoly"),
    ("tendon_damping", "tendon_damping"),
    ("tendon_dampingpoly", "tendon_dampingpoly"),
    ("tendon_frictionloss", "tendon_frictionloss"),
    ("tendon_range", "tendon_range"),
    ("tendon_margin", "tendon_margin"),
    ("tendon_solimp_limit", "tendon_solimp_lim"),
    ("tendon_solref_friction", "tendon_solref_fri"),
    ("tendon_solimp_friction", "tendon_solimp_fri"),
    ("tendon_armature", "tendon_armature"),
    ("tendon_actuator_force_range", "tendon_actfrcrange"),
)
"""Attributes and the fields of `mjModel` that they become."""


class Tendons:
    """The extension of tendons; see `extensions`."""

    def compiled_numbers(self, rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
        """Return types, paths and limits of tendons, and constraints between tendons."""
        table = rows_of_worlds(rows, "tendon", worlds)
        if rows.custom_array("tendon_type") is None:
            return np.zeros((len(worlds), 0), dtype=np.int64)
        limits = [_limited(rows, limited, bounds, table) for limited, bounds in _LIMITS]
        joints, wraps = _passed(rows, "joint", table), _passed(rows, "wrap", table)
        dof = _joint_dofs(rows, joints)
        pulley = np.where(
            values_of(rows, "tendon_wrap_type", wraps) == WrapType.PULLEY,
            values_of(rows, "tendon_wrap_prm", wraps),
            0.0,
        )
        equality = rows_of_worlds(rows, "tendon_equality", worlds)
        return as_columns(
            (table >= 0).astype(np.int64),
            values_of(rows, "tendon_type", table),
            *limits,
            local_index(rows, "dof", worlds, dof),
            values_of(rows, "tendon_wrap_type", wraps),
            local_index(rows, "shape", worlds, values_of(rows, "tendon_wrap_shape", wraps)),
            local_index(rows, "shape", worlds, values_of(rows, "tendon_wrap_sidesite", wraps)),
            pulley,
            values_of(rows, "tendon_springlength", table),
            *(_index_in(table, values_of(rows, f"tendon_equality_tendon{end}", equality)) for end in (1, 2)),
        )

    def write(self, writer: Any) -> None:
        """Add the tendons of one world, and the constraints between them."""
        rows, worlds, world = writer.rows, np.array([writer.world]), writer.world
        table = rows_of_worlds(rows, "tendon", worlds)[0]
        names = []
        for index, row in enumerate(table):
            label = label_of(rows, "tendon_label", int(row), f"tendon_{index}")
            names.append(writer.take_name("tendon", label))
            self._add(writer, int(row), names[-1])
        for index, row in enumerate(rows_of_worlds(rows, "tendon_equality", worlds)[0]):
            label = label_of(rows, "tendon_equality_label", int(row), f"tendon_equality_{index}")
            ends = [
                int(values_of(rows, f"tendon_equality_tendon{end}", np.array([[row]]))[0, 0])
                for end in (1, 2)
            ]
            if ends[0] not in table or (ends[1] >= 0 and ends[1] not in table):
                raise ValueError(
                    f"SolverMuJoCo: tendon equality '{label}' (row {row}) of world {world} couples the "
                    f"tendons {ends}, which are not both in that world."
                )
            equality = writer.spec.add_equality(name=writer.take_name("equality", label))
            equality.type = writer.mujoco.mjtEq.mjEQ_TENDON
            equality.objtype = writer.mujoco.mjtObj.mjOBJ_TENDON
            ends_at = [int(np.flatnonzero(table == end)[0]) if end >= 0 else -1 for end in ends]
            equality.name1, equality.name2 = names[ends_at[0]], names[ends_at[1]] if ends_at[1] >= 0 else ""
            data = np.zeros(len(equality.data))
            data[:5] = rows.custom_array("tendon_equality_polycoef")[row]
            equality.data = data
            equality.active = bool(rows.custom_array("tendon_equality_enabled")[row])
            equality.solref = rows.custom_array("tendon_equality_solref")[row]
            equality.solimp = rows.custom_array("tendon_equality_solimp")[row]

    def put_fields(self, table: Any, rows: ModelRows, plan: Any) -> None:
        """Write the values of the tendons and their constraints."""
        own = rows_of_worlds(rows, "tendon", plan.worlds)
        if own.shape[1]:
            first = table.group.model.ntendon - own.shape[1]
            for name, field in _FIELDS:
                edit = table.edit(field)
                edit[:, first:] = values_of(rows, name, own).reshape(edit[:, first:].shape)
            unlimited = (_limit_mode(rows, own) == SolrefMode.FORCE_SPACE) & (
                values_of(rows, "tendon_limit_ke", own) <= 0.0
            )
            table.edit("tendon_range")[:, first:][unlimited] = (-FAR, FAR)
            length = values_of(rows, "tendon_springlength", own)
            given = (length != NO_LENGTH).any(axis=-1, keepdims=True)
            edit = table.edit("tendon_lengthspring")
            edit[:, first:] = np.where(given, _band(length), edit[:, first:])
            self._put_coefficients(table, rows, own, first)
        equality = rows_of_worlds(rows, "tendon_equality", plan.worlds)
        if equality.shape[1]:
            first = table.group.model.neq - equality.shape[1]
            table.edit("eq_data")[:, first:, :5] = values_of(rows, "tendon_equality_polycoef", equality)
            table.edit("eq_active0")[:, first:] = values_of(rows, "tendon_equality_enabled", equality)
            table.edit("eq_solref")[:, first:] = values_of(rows, "tendon_equality_solref", equality)
            table.edit("eq_solimp")[:, first:] = values_of(rows, "tendon_equality_solimp", equality)

    def _put_coefficients(self, table: Any, rows: ModelRows, own: np.ndarray, first: int) -> None:
        """Write the coefficients of the joints of fixed tendons; those of one tendon are contiguous."""
        model = table.group.model
        fixed = values_of(rows, "tendon_type", own)[0] == FIXED
        if not fixed.any():
            return
        joints = _passed(rows, "joint", own)
        values = values_of(rows, "tendon_coef", joints)
        address = model.tendon_adr[first:][fixed]
        count = model.tendon_num[first:][fixed]
        entries = np.concatenate(
            [start + np.arange(size) for start, size in zip(address, count, strict=True)]
        )
        table.edit("wrap_prm")[:, entries] = values

    def _add(self, writer: Any, row: int, name: str) -> None:
        rows, mujoco = writer.rows, writer.mujoco
        label = f"SolverMuJoCo: tendon '{name}' (row {row})"
        tendon = writer.spec.add_tendon(name=name)
        one = np.array([[row]])
        for attribute, field in (
            ("tendon_stiffness", "stiffness"),
            ("tendon_damping", "damping"),
            ("tendon_frictionloss", "frictionloss"),
            ("tendon_range", "range"),
            ("tendon_margin", "margin"),
            ("tendon_solref_limit", "solref_limit"),
            ("tendon_solimp_limit", "solimp_limit"),
            ("tendon_solref_friction", "solref_friction"),
            ("tendon_solimp_friction", "solimp_friction"),
            ("tendon_armature", "armature"),
            ("tendon_actuator_force_range", "actfrcrange"),
            ("tendon_springlength", "springlength"),
        ):
            value = values_of(rows, attribute, one)[0, 0]
            if field == "springlength":
                value = _band(value)
            elif field == "solref_limit" and _limit_mode(rows, one)[0, 0] != SolrefMode.RAW:
                value = np.array(DEFAULT_SOLREF)
            elif field in ("stiffness", "damping"):
                value = np.array([value, *values_of(rows, f"{attribute}poly", one)[0, 0]])
            setattr(tendon, field, value if np.ndim(value) else float(value))
        for (limited, bounds), field in zip(_LIMITS, ("limited", "actfrclimited"), strict=True):
            setattr(tendon, field, mujoco.mjtLimited(int(_limited(rows, limited, bounds, one)[0, 0])))
        if int(rows.custom_array("tendon_type")[row]) == FIXED:
            self._wrap_joints(writer, tendon, one, label)
        else:
            self._wrap_shapes(writer, tendon, one, label)

    def _wrap_joints(self, writer: Any, tendon: Any, one: np.ndarray, label: str) -> None:
        rows = writer.rows
        joints = _passed(rows, "joint", one)
        dofs = _joint_dofs(rows, joints)[0] - rows.first["dof"][writer.world]
        if len(dofs) == 0:
            raise ValueError(f"{label} has no joint. Add rows of mujoco:tendon_joint, and their range.")
        for dof, coef in zip(dofs, values_of(rows, "tendon_coef", joints)[0], strict=True):
            tendon.wrap_joint(writer.joint_name(int(dof)), float(coef))

    def _wrap_shapes(self, writer: Any, tendon: Any, one: np.ndarray, label: str) -> None:
        rows, worlds = writer.rows, np.array([writer.world])
        wraps = _passed(rows, "wrap", one)
        shapes = local_index(rows, "shape", worlds, values_of(rows, "tendon_wrap_shape", wraps))[0]
        sides = local_index(rows, "shape", worlds, values_of(rows, "tendon_wrap_sidesite", wraps))[0]
        kinds = values_of(rows, "tendon_wrap_type", wraps)[0]
        if len(kinds) == 0:
            raise ValueError(f"{label} passes nothing. Add rows of mujoco:tendon_wrap, and their range.")
        for wrap, kind, shape, side in zip(wraps[0], kinds, shapes, sides, strict=True):
            if kind == WrapType.PULLEY:
                tendon.wrap_pulley(float(rows.custom_array("tendon_wrap_prm")[wrap]))
                continue
            is_site = kind == WrapType.SITE
            name = writer.site_name(int(shape)) if is_site else writer.geom_name(int(shape))
            side_site = "" if side == NO_ENTRY else writer.site_name(int(side))
            if name is None or side_site is None:
                expected = "site" if is_site or side_site is None else "geom"
                raise ValueError(
                    f"{label}: row {wrap} of mujoco:tendon_wrap names a shape that is no {expected} of world "
                    f"{writer.world}. Mark sites by add_site(), and keep them (include_sites=True)."
                )
            if is_site:
                tendon.wrap_site(name)
            else:
                tendon.wrap_geom(name, side_site)


def authored_limit_solref(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return `tendon_solref_lim` of the tendons of the namespace, shape [row, tendon, 2], without forces.

    A kernel turns gains that are forces into `solref` (`constraint_kernels`). Without stiffness there is no
    limit at all (see `Tendons.put_fields`).
    """
    own = rows_of_worlds(rows, "tendon", worlds)
    is_raw = (_limit_mode(rows, own) == SolrefMode.RAW)[..., None]
    return np.where(is_raw, values_of(rows, "tendon_solref_limit", own), np.array(DEFAULT_SOLREF))


def force_limits(rows: ModelRows, worlds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which tendon limits have force-space gains, their stiffness and damping, shape [row, tendon]."""
    table = rows_of_worlds(rows, "tendon", worlds)
    stiffness, damping = (values_of(rows, f"tendon_limit_{gain}", table) for gain in ("ke", "kd"))
    return (_limit_mode(rows, table) == SolrefMode.FORCE_SPACE) & (table >= 0), stiffness, damping


def wrapped_shapes(rows: ModelRows) -> np.ndarray:
    """Return the flat shapes that spatial tendons wrap around; they are geoms even if they never collide."""
    kind = rows.custom_array("tendon_wrap_type")
    if kind is None or len(kind) == 0:
        return np.zeros(0, dtype=np.int64)
    shapes = values_of(rows, "tendon_wrap_shape", np.flatnonzero(kind == WrapType.GEOM))
    return np.unique(shapes[shapes >= 0]).astype(np.int64)


def _passed(rows: ModelRows, kind: str, table: np.ndarray) -> np.ndarray:
    """Return the rows of `tendon_joint` or `tendon_wrap` of all tendons of each world, tendon by tendon.

    Shape [world, entry], -1 where a world has fewer.
    """
    is_fixed = values_of(rows, "tendon_type", table) == FIXED
    selected = (table >= 0) & (is_fixed if kind == "joint" else ~is_fixed)
    first = values_of(rows, f"tendon_{kind}_adr", table)
    count = np.where(selected, values_of(rows, f"tendon_{kind}_num", table), 0).astype(np.int64)
    total = count.sum(axis=1)
    result = np.full((len(table), int(total.max(initial=0))), -1, dtype=np.int64)
    flat_first, flat_count = first.reshape(-1).astype(np.int64), count.reshape(-1)
    flat_start = np.cumsum(flat_count) - flat_count
    entries = np.repeat(flat_first - flat_start, flat_count) + np.arange(int(flat_count.sum()))
    result[np.arange(result.shape[1]) < total[:, None]] = entries
    return result


def _joint_dofs(rows: ModelRows, joints: np.ndarray) -> np.ndarray:
    """Return the flat degree of freedom of rows of `tendon_joint`, -1 for none."""
    dof = values_of(rows, "tendon_joint_dof", joints)
    joint = values_of(rows, "tendon_joint", joints)
    known = (joint >= 0) & (joints >= 0)
    start = rows.array("joint_qd_start")
    index = np.where(known, joint, 0).astype(np.int64)
    unclear = known & (dof < 0) & (start[index + 1] - start[index] != 1)
    if unclear.any():
        row, name = int(joints[unclear][0]), rows.model.joint_label[int(index[unclear][0])]
        raise ValueError(
            f"SolverMuJoCo: row {row} of mujoco:tendon_joint names joint '{name}', which has other than one "
            "degree of freedom. Give mujoco:tendon_joint_dof as well."
        )
    return np.where(dof >= 0, dof, np.where(known, start[index], -1)).astype(np.int64)


def _limit_mode(rows: ModelRows, table: np.ndarray) -> np.ndarray:
    """Return the mode that determines the `solref` of the limit of each row."""
    return values_of(rows, "tendon_solref_limit_mode", table).astype(np.int64)


def _limited(rows: ModelRows, limited: str, bounds: str, table: np.ndarray) -> np.ndarray:
    """Return whether each row has a limit; if left to MuJoCo's `autolimits`, the range decides."""
    flag = values_of(rows, limited, table)
    has_range = (values_of(rows, bounds, table) != 0.0).any(axis=-1)
    return np.where(flag == AUTO, has_range, flag == 1).astype(np.int64)


def _band(length: np.ndarray) -> np.ndarray:
    """Return the two rest lengths of a spring; the second may be missing."""
    result = np.array(length, dtype=np.float64)
    result[..., 1] = np.where(result[..., 1] == NO_LENGTH, result[..., 0], result[..., 1])
    return result


def _index_in(table: np.ndarray, rows_named: np.ndarray) -> np.ndarray:
    """Return the index of rows in the table of their world, `NO_ENTRY` for none."""
    if rows_named.ndim != 2 or rows_named.shape[1] == 0:
        return np.zeros((len(table), 0), dtype=np.int64)
    same = table[:, None, :] == rows_named[:, :, None]
    return np.where(same.any(axis=-1), same.argmax(axis=-1), NO_ENTRY)
