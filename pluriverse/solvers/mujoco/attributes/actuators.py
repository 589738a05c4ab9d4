"""General actuators from custom attributes, placed after the actuators of the drives.

Their controls are `control.mujoco.ctrl`. Rows with `ctrl_source` `JOINT_TARGET` keep an asset's description
of a drive; the drive of the joint replaces them, so they become no actuators. An actuator with several
controls (`actuator_ctrlspec`, of a PID controller or an orientation) has one row for the first control,
followed by rows with `CTRL_FURTHER` for the others, which only use `ctrl` and its range.
"""

from typing import Any

import numpy as np

from pluriverse.mujoco_attributes.choices import CtrlSource, TrnType
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
_RANGES = (("force", "forcerange"), ("act", "actrange"))
_INPUTS = ((1, "ctrlrange"), (2, "velrange"), (4, "ffrange"))
"""Bits of the inputs of a PID controller, in the order of its controls, and the names of their ranges."""
_OUTPUT_FIELDS = ("gear", "lengthrange")
"""Attributes with one value per output; an orientation has three outputs."""
_FIELDS = (
    "cranklength",
    "dynprm",
    "gainprm",
    "biasprm",
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
        table, controls = direct_rows(rows, worlds), control_rows(rows, worlds)
        names = ("trntype", "dyntype", "gaintype", "biastype", "actdim", "actearly", "ctrlspec")
        limits = [_limited(rows, name, bounds, table) for name, bounds in _RANGES]
        return as_columns(
            (table >= 0).astype(np.int64),
            values_of(rows, "ctrl_source", controls),
            _limited(rows, "ctrl", "ctrlrange", controls),
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
        controls = _controls_of_actuators(writer.rows, worlds)
        for index, row in enumerate(table[0]):
            self._add(writer, int(row), targets[index], tendons, controls[index])

    def put_fields(self, table: Any, rows: ModelRows, plan: Any) -> None:
        """Write the values of the actuators, and the positions of their controls."""
        own, controls = direct_rows(rows, plan.worlds), control_rows(rows, plan.worlds)
        group, model = table.group, table.group.model
        first_control = model.nu - controls.shape[1]
        group.direct_ctrl = np.arange(first_control, model.nu)
        group.direct_row = controls
        group.start_act = np.zeros((len(plan.worlds), model.na))
        if own.shape[1] == 0:
            return
        first = len(model.actuator_ctrlnum) - own.shape[1]
        self._check_controls(rows, plan.worlds, model.actuator_ctrlnum[first:])
        table.edit("actuator_ctrlrange")[:, first_control:] = values_of(rows, "actuator_ctrlrange", controls)
        model.actuator_ctrllimited[first_control:] = _limited(rows, "ctrl", "ctrlrange", controls[:1])[0]
        outputs = np.repeat(own, model.actuator_outnum[first:], axis=1)
        for name in (*_FIELDS, *_OUTPUT_FIELDS):
            field, source = f"actuator_{name}", outputs if name in _OUTPUT_FIELDS else own
            if hasattr(model, field):
                edit = table.edit(field)
                part = edit[:, edit.shape[1] - source.shape[1] :]
                part[...] = values_of(rows, field, source).reshape(part.shape)
        activations = values_of(rows, "actuator_act", own)
        for index in range(own.shape[1]):
            at, count = int(model.actuator_actadr[first + index]), int(model.actuator_actnum[first + index])
            given = activations[:, index, :count]  # further ones start at 0
            group.start_act[:, at : at + given.shape[1]] = given

    def _check_controls(self, rows: ModelRows, worlds: np.ndarray, expected: np.ndarray) -> None:
        """Raise if an actuator of the first world has more or fewer rows than controls.

        Raises:
            ValueError: If so.
        """
        for row, controls, count in zip(
            direct_rows(rows, worlds[:1])[0], _controls_of_actuators(rows, worlds), expected, strict=True
        ):
            if len(controls) != count:
                label = label_of(rows, "actuator_label", int(row), f"actuator_{row}")
                raise ValueError(
                    f"SolverMuJoCo: actuator '{label}' (row {row}) takes {count} controls, but has rows for "
                    f"{len(controls)}. Add a row with mujoco:ctrl_source {int(CtrlSource.CTRL_FURTHER)} "
                    "(CTRL_FURTHER) after it for each control but the first, or choose other inputs by "
                    "mujoco:actuator_ctrlspec."
                )

    def _add(
        self, writer: Any, row: int, target: np.ndarray, tendons: list[str], controls: list[int]
    ) -> None:
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
        for field in (*_FIELDS, *_OUTPUT_FIELDS):
            value = rows.custom_array(f"actuator_{field}")[row]
            if field == "damping":  # with its polynomial, in newer versions of MuJoCo
                value = [value, *rows.custom_array("actuator_dampingpoly")[row]]
            if hasattr(actuator, field):
                _set(actuator, field, value)
        one = np.array([[row]])
        for limit, bounds in _RANGES:
            value = int(_limited(rows, limit, bounds, one)[0, 0])
            setattr(actuator, f"{limit}limited", mujoco.mjtLimited(value))
        inputs = actuator.ctrlspec = int(rows.custom_array("actuator_ctrlspec")[row])
        names = [name for bit, name in _INPUTS if inputs & bit]
        if actuator.gaintype != getattr(mujoco.mjtGain, "mjGAIN_PID", None) or len(names) != len(controls):
            names = ["ctrlrange"]
        actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
        for name, control in zip(names, controls, strict=False):
            if _limited(rows, "ctrl", "ctrlrange", np.array([[control]]))[0, 0]:
                setattr(actuator, name, rows.custom_array("actuator_ctrlrange")[control])
                if name == "ctrlrange":
                    actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.actdim = int(rows.custom_array("actuator_actdim")[row])
        actuator.actearly = bool(rows.custom_array("actuator_actearly")[row])


def direct_rows(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return the rows of actuators that are not drives, world by world, shape [world, row], -1 for none."""
    return _rows_with(rows, worlds, [CtrlSource.CTRL_DIRECT])


def control_rows(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return the rows of all controls of these actuators, shape [world, row], -1 for none."""
    return _rows_with(rows, worlds, [CtrlSource.CTRL_DIRECT, CtrlSource.CTRL_FURTHER])


def _rows_with(rows: ModelRows, worlds: np.ndarray, sources: list[CtrlSource]) -> np.ndarray:
    table = rows_of_worlds(rows, "actuator", worlds)
    if table.shape[1] == 0:
        return table
    selected = np.isin(values_of(rows, "ctrl_source", table), sources) & (table >= 0)
    order = np.argsort(~selected, axis=1, kind="stable")
    table = np.where(
        np.take_along_axis(selected, order, axis=1), np.take_along_axis(table, order, axis=1), -1
    )
    return table[:, : int(selected.sum(axis=1).max(initial=0))]


def _controls_of_actuators(rows: ModelRows, worlds: np.ndarray) -> list[list[int]]:
    """Return the rows of the controls of each actuator of the first world.

    Raises:
        ValueError: If a further control follows no actuator.
    """
    result: list[list[int]] = []
    follows = False
    for row in rows_of_worlds(rows, "actuator", worlds[:1])[0].tolist():
        source = int(rows.custom_array("ctrl_source")[row])  # type: ignore[index]
        if source == CtrlSource.CTRL_DIRECT:
            result.append([row])
        elif source == CtrlSource.CTRL_FURTHER:
            if not follows:
                raise ValueError(
                    f"SolverMuJoCo: row {row} of mujoco:actuator is a further control (ctrl_source "
                    "CTRL_FURTHER), but the row before is no actuator with its own controls. Put it right "
                    "after its actuator, which has ctrl_source CTRL_DIRECT."
                )
            result[-1].append(row)
        follows = source != CtrlSource.JOINT_TARGET
    return result


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
    position = np.where(same.any(axis=-1), same.argmax(axis=-1) if own.shape[1] else 0, NO_ENTRY)
    tendon = kind == TrnType.TENDON
    result[tendon, 0] = position[tendon]
    return result


def _target_names(
    writer: Any, kind: TrnType, target: np.ndarray, tendons: list[str]
) -> tuple[str | None, str | None]:
    """Return the names of what an actuator acts on, and of the second site; None for each that is absent."""
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
    """Return whether each row has a limit; if left to MuJoCo's `autolimits`, the range decides."""
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
