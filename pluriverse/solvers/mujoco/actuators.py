"""General actuators, as custom attributes describe them, behind the actuators of the drives.

Their controls are those of `control.mujoco.ctrl`. Rows with `ctrl_source` `JOINT_TARGET` say how an asset
describes a drive, which the drive of the joint stands for: they become no actuators.
"""

from typing import Any

import numpy as np

from pluriverse.solvers.mujoco.choices import CtrlSource, TrnType
from pluriverse.solvers.mujoco.namespace_rows import (
    NO_ENTRY,
    as_columns,
    label_of,
    local_index,
    rows_of_worlds,
    values_of,
)
from pluriverse.solvers.mujoco.rows import ModelRows

AUTO = 2
_RANGES = (("ctrl", "ctrlrange"), ("force", "forcerange"), ("act", "actrange"))
_FIELDS = (
    "gear",
    "cranklength",
    "dynprm",
    "gainprm",
    "biasprm",
    "lengthrange",
    "ctrlrange",
    "forcerange",
    "actrange",
    "damping",
    "dampingpoly",
    "armature",
)
"""Attributes `actuator_*` with the names of the fields of `mjModel` that they become."""
_JOINTS = (TrnType.JOINT, TrnType.JOINT_IN_PARENT)
_SITES = (TrnType.SITE, TrnType.SLIDERCRANK)
_MUJOCO_NAME = {TrnType.JOINT_IN_PARENT: "JOINTINPARENT"}


class Actuators:
    """The extension of general actuators; see `extensions`."""

    def compiled_numbers(self, rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
        """Return types and targets of the actuators, and which limits they have."""
        if rows.custom_array("actuator_trntype") is None:
            return np.zeros((len(worlds), 0), dtype=np.int64)
        table = direct_rows(rows, worlds)
        names = ("trntype", "dyntype", "gaintype", "biastype", "actdim", "actearly", "ctrlspec")
        limits = [_limited(rows, name, bounds, table) for name, bounds in _RANGES]
        return as_columns(
            (table >= 0).astype(np.int64),
            *(values_of(rows, f"actuator_{name}", table) for name in names),
            *limits,
            _targets(rows, worlds, table),
        )

    def write(self, writer: Any) -> None:
        """Add the actuators of one world."""
        worlds = np.array([writer.world])
        table = direct_rows(writer.rows, worlds)
        targets = _targets(writer.rows, worlds, table)[0]
        tendons = [tendon.name for tendon in writer.spec.tendons]
        own_tendons = rows_of_worlds(writer.rows, "tendon", worlds).shape[1]
        tendons = tendons[len(tendons) - own_tendons :]  # those of the conversion come first
        for place, row in enumerate(table[0]):
            self._add(writer, int(row), targets[place], tendons)

    def put_fields(self, table: Any, rows: ModelRows, plan: Any) -> None:
        """Give the numbers of the actuators, and tell where their controls are."""
        own = direct_rows(rows, plan.worlds)
        group, model = table.group, table.group.model
        count = own.shape[1]
        controls = getattr(model, "actuator_ctrladr", np.arange(model.nu))
        first = len(controls) - count
        group.direct_ctrl = np.asarray(controls[first:], dtype=np.int64)
        group.direct_row = own
        if count == 0:
            return
        for name in _FIELDS:
            field = f"actuator_{name}"
            if not hasattr(model, field):
                continue
            edit = table.edit(field)
            edit[:, first:] = values_of(rows, field, own).reshape(edit[:, first:].shape)

    def _add(self, writer: Any, row: int, target: np.ndarray, tendons: list[str]) -> None:
        rows, mujoco = writer.rows, writer.mujoco
        label = label_of(rows, "actuator_label", row, f"actuator_{row}")
        name = writer.take_name("actuator", label)
        kind = TrnType(int(rows.custom_array("actuator_trntype")[row]))
        actuator = writer.spec.add_actuator(name=name)
        actuator.trntype = getattr(mujoco.mjtTrn, f"mjTRN_{_MUJOCO_NAME.get(kind, kind.name)}")
        first, second = _target_names(writer, kind, target, tendons)
        if first is None or (second is None and target[1] != NO_ENTRY):
            raise ValueError(
                f"SolverMuJoCo: actuator '{label}' (row {row}) acts on a {kind.name} that world "
                f"{writer.world} does not have. Correct mujoco:actuator_trnid (a degree of freedom, tendon, "
                "site or body of that world), and keep sites (include_sites=True)."
            )
        actuator.target = first
        if second and kind is TrnType.SITE:
            actuator.refsite = second
        elif second:
            actuator.slidersite = second
        for field, enum in (("dyntype", "Dyn"), ("gaintype", "Gain"), ("biastype", "Bias")):
            number = int(rows.custom_array(f"actuator_{field}")[row])
            setattr(actuator, field, getattr(mujoco, f"mjt{enum}")(number))
        for field in _FIELDS:
            value = rows.custom_array(f"actuator_{field}")[row]
            if field == "damping":  # with its polynomial, in newer versions of MuJoCo
                value = [value, *rows.custom_array("actuator_dampingpoly")[row]]
            if hasattr(actuator, field):
                _set(actuator, field, value)
        one = np.array([[row]])
        for limit, bounds in _RANGES:
            value = int(_limited(rows, limit, bounds, one)[0, 0])
            setattr(actuator, f"{limit}limited", mujoco.mjtLimited(value))
        actuator.actdim = int(rows.custom_array("actuator_actdim")[row])
        actuator.actearly = bool(rows.custom_array("actuator_actearly")[row])


def direct_rows(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return the rows of actuators that are not drives, world by world, shape [world, row], -1 for none."""
    table = rows_of_worlds(rows, "actuator", worlds)
    if table.shape[1] == 0:
        return table
    direct = (values_of(rows, "ctrl_source", table) == CtrlSource.CTRL_DIRECT) & (table >= 0)
    order = np.argsort(~direct, axis=1, kind="stable")
    table = np.where(np.take_along_axis(direct, order, axis=1), np.take_along_axis(table, order, axis=1), -1)
    return table[:, : int(direct.sum(axis=1).max(initial=0))]


def driven_dofs(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return the world-local degrees of freedom that general actuators of the first world act on."""
    table = direct_rows(rows, worlds[:1])
    if table.shape[1] == 0:
        return np.zeros(0, dtype=np.int64)
    on_joint = np.isin(values_of(rows, "actuator_trntype", table)[0], _JOINTS)
    targets = _targets(rows, worlds[:1], table)[0, on_joint, 0]
    return np.unique(targets[targets != NO_ENTRY])


def _targets(rows: ModelRows, worlds: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the world-local targets of actuators, shape [world, row, 2], `NO_ENTRY` for none."""
    trnid = values_of(rows, "actuator_trnid", table).reshape(*table.shape, 2).astype(np.int64)
    kind = values_of(rows, "actuator_trntype", table)
    result = np.full_like(trnid, NO_ENTRY)
    for entity, kinds in (("dof", _JOINTS), ("shape", _SITES), ("body", (TrnType.BODY,))):
        mine = np.isin(kind, kinds)
        result[mine] = local_index(rows, entity, worlds, trnid)[mine]
    own = rows_of_worlds(rows, "tendon", worlds)
    same = own[:, None, :] == trnid[:, :, :1]
    place = np.where(same.any(axis=-1), same.argmax(axis=-1) if own.shape[1] else 0, NO_ENTRY)
    tendon = kind == TrnType.TENDON
    result[tendon, 0] = place[tendon]
    return result


def _target_names(
    writer: Any, kind: TrnType, target: np.ndarray, tendons: list[str]
) -> tuple[str | None, str | None]:
    """Return the names of what an actuator acts on, and of the second site; None for what there is not."""
    first, second = (int(entry) for entry in target)
    if first == NO_ENTRY:
        return None, None
    if kind in _JOINTS:
        return writer.joint_name(first), None
    if kind is TrnType.TENDON:
        return tendons[first], None
    if kind is TrnType.BODY:
        return writer.body_name(first), None
    return writer.site_name(first), None if second == NO_ENTRY else writer.site_name(second)


def _limited(rows: ModelRows, name: str, bounds: str, table: np.ndarray) -> np.ndarray:
    """Return whether each row has a limit; what is left to MuJoCo's `autolimits` follows from the range."""
    flag = values_of(rows, f"actuator_{name}limited", table)
    has_range = (values_of(rows, f"actuator_{bounds}", table) != 0.0).any(axis=-1)
    return np.where(flag == AUTO, has_range, flag == 1).astype(np.int64)


def _set(actuator: Any, field: str, value: Any) -> None:
    """Set a field of the description, of which newer versions of MuJoCo may have more numbers."""
    current = getattr(actuator, field)
    if np.ndim(current):
        entries = np.zeros(len(current))
        given = np.atleast_1d(value)[: len(entries)]
        entries[: len(given)] = given
        setattr(actuator, field, entries)
    else:
        setattr(actuator, field, float(np.ravel(value)[0]))
