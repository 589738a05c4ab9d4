"""FieldTable: the arrays of `mjModel` of all worlds of a group.

A field of `mjModel` is either written from the values of the group, or derived from others by `mj_setConst`
(inverse weights, subtree masses, lengths of tendons) or from the bounds of geoms.
"""

from typing import Any

import numpy as np

from pluriverse.solvers.mujoco.mapping.group import MujocoGroup

DERIVED = (
    "body_subtreemass",
    "body_invweight0",
    "dof_invweight0",
    "dof_M0",
    "dof_length",
    "tendon_length0",
    "tendon_invweight0",
    "tendon_lengthspring",
    "actuator_acc0",
    "actuator_length0",
)
"""Fields that `mj_setConst` computes."""

SOURCES = (
    "qpos0",
    "body_gravcomp",
    "body_mass",
    "body_inertia",
    "body_ipos",
    "body_iquat",
    "body_pos",
    "body_quat",
    "jnt_pos",
    "jnt_axis",
    "dof_armature",
    "site_pos",
    "site_quat",
    "geom_pos",
    "geom_quat",
    "geom_size",
    "tendon_stiffness",
    "tendon_armature",
    "wrap_prm",
    "actuator_gear",
    "actuator_armature",
)
"""Fields from which others are derived."""

SHORTCUTS = ("body_sameframe", "geom_sameframe", "site_sameframe")
"""Fields that mark frames which coincide with others."""

# Difference up to which MuJoCo's compiler treats frames as equal [m, quaternion components].
FRAME_ERROR = 1e-6

SPECIAL_FRAME = ("body_ipos", "body_iquat", "jnt_pos", "jnt_axis")
"""Fields that decide whether MuJoCo treats a body as simple, with a diagonal mass matrix."""


class FieldTable:
    """Collects the fields of all worlds of a group, then writes them into it.

    Args:
        group: Group with its compiled model.
    """

    def __init__(self, group: MujocoGroup):
        self.group = group
        self._edits: dict[str, np.ndarray] = {}

    def edit(self, name: str) -> np.ndarray:
        """Return a field of all worlds to edit, shape [row, ...], initially with its current values."""
        if name not in self._edits:
            self._edits[name] = self.group.value(name).copy()
        return self._edits[name]

    def put(self, name: str, values: np.ndarray) -> None:
        """Set a field of all worlds."""
        field = self.group.shared(name)
        self._edits[name] = np.broadcast_to(values, (self.group.world_count, *field.shape)).astype(
            field.dtype
        )

    def apply(self) -> set[str]:
        """Write the fields into `group.model` and `group.fields`; return the names of those that changed."""
        changed = {name for name, values in self._edits.items() if put_field(self.group, name, values)}
        self._edits.clear()
        return changed


def put_field(group: MujocoGroup, name: str, values: np.ndarray) -> bool:
    """Write a field of all worlds, shape [row, ...]; return whether it changed."""
    shared = group.shared(name)
    if values.size == 0 or np.array_equal(values, group.value(name)):
        return False
    differs = name in group.fields or bool((values != values[:1]).any())
    if name in group.fields:
        group.fields[name][...] = values
    elif differs:
        group.fields[name] = np.array(values, dtype=shared.dtype, order="C")  # rows are copied by address
    write_shared(group.model, name, values[0])
    return True


def write_shared(model: Any, name: str, value: np.ndarray) -> None:
    """Write a field of a MuJoCo model; `opt.gravity` is one of its options."""
    owner = model
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    if np.ndim(getattr(owner, last)):
        getattr(owner, last)[...] = value
    else:
        setattr(owner, last, type(getattr(owner, last))(value))


def update_derived(group: MujocoGroup, changed: set[str]) -> set[str]:
    """Recompute the results of `mj_setConst` where their sources changed; return the changed names."""
    if not changed & set(SOURCES):
        return set()
    import mujoco

    model, data = group.model, mujoco.MjData(group.model)
    # Newer versions recompute these for one world; `set_shortcuts` does it for all.
    kept = {name: getattr(model, name).copy() for name in ("qpos0", *SHORTCUTS)}
    model.qpos0[:] = reference_qpos(model)
    try:
        return _update_derived(group, data)
    finally:
        for name, values in kept.items():
            getattr(model, name)[...] = values


def reference_qpos(model: Any) -> np.ndarray:
    """Return the coordinates at which MuJoCo derives fields: those of the model, free bodies at the origin.

    Masses and inverse weights as joints see them do not depend on where a tree is, but their rounding does.
    At the pose of the first world, a world in a group would differ from the same world alone. A tree stays
    where it is if a tendon or an actuator spans from it to another: their lengths at rest are those of the
    initial poses.
    """
    import mujoco

    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    free = free[~np.isin(model.body_rootid[model.jnt_bodyid[free]], _spanned_trees(model))]
    result = model.qpos0.copy()
    result[model.jnt_qposadr[free][:, None] + np.arange(7)] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    return result


def _spanned_trees(model: Any) -> list[int]:
    """Return the roots of the trees that spatial tendons, and actuators between sites, connect."""
    import mujoco

    spans = []
    for start, count in zip(model.tendon_adr, model.tendon_num, strict=True):
        kinds, objects = model.wrap_type[start : start + count], model.wrap_objid[start : start + count]
        at_site = kinds == mujoco.mjtWrap.mjWRAP_SITE
        at_geom = np.isin(kinds, (mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER))
        spans.append([*model.site_bodyid[objects[at_site]], *model.geom_bodyid[objects[at_geom]]])
    for sites in model.actuator_trnid[model.actuator_trntype == mujoco.mjtTrn.mjTRN_SITE]:
        if sites[1] >= 0:
            spans.append(list(model.site_bodyid[sites]))
    for sites in model.actuator_trnid[model.actuator_trntype == mujoco.mjtTrn.mjTRN_SLIDERCRANK]:
        spans.append(list(model.site_bodyid[sites]))
    trees = [np.unique(model.body_rootid[np.array(span, dtype=np.int64)]) for span in spans]
    return [int(root) for roots in trees if len(roots) > 1 for root in roots]


def _update_derived(group: MujocoGroup, data: Any) -> set[str]:
    import mujoco

    model = group.model
    preserved = model.eq_data.copy()  # some versions compute anchors of the poses in `qpos0`
    varying = [name for name in SOURCES if name in group.fields]
    derived = [name for name in DERIVED if hasattr(model, name) and getattr(model, name).size]
    if not varying:
        before = {name: getattr(model, name).copy() for name in derived}
        mujoco.mj_setConst(model, data)
        model.eq_data[...] = preserved
        after = {name: getattr(model, name).copy() for name in derived}
        result = set()
        for name in derived:
            write_shared(model, name, before[name])
            values = np.broadcast_to(after[name], (group.world_count, *after[name].shape))
            if put_field(group, name, values):
                result.add(name)
        return result
    tables = np.concatenate([group.fields[name].reshape(group.world_count, -1) for name in varying], axis=1)
    _, first, inverse = np.unique(_keys(tables), return_index=True, return_inverse=True)
    results = {name: np.zeros((len(first), *getattr(model, name).shape)) for name in derived}
    before = {name: getattr(model, name).copy() for name in derived}
    for number, row in enumerate(first):
        for name in varying:
            getattr(model, name)[...] = group.fields[name][row]
        mujoco.mj_setConst(model, data)
        for name in derived:
            results[name][number] = getattr(model, name)
    for name in varying:
        getattr(model, name)[...] = group.fields[name][0]
    model.eq_data[...] = preserved
    for name in derived:
        write_shared(model, name, before[name])
    inverse = inverse.reshape(-1)
    return {name for name in derived if put_field(group, name, results[name][inverse])}


def _keys(table: np.ndarray) -> np.ndarray:
    """Return one value per row that rows share exactly if they are equal, bit by bit."""
    rows = np.ascontiguousarray(table, dtype=np.float64)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)


def set_shortcuts(group: MujocoGroup) -> set[str]:
    """Mark exactly those frames for MuJoCo that coincide in every world; return the changed names.

    MuJoCo skips the pose of a geom or site that coincides with the frame of its body or with its centre of
    mass. It decides that when it compiles the first world.
    """
    model = group.model
    body_pos, body_quat = group.value("body_ipos"), group.value("body_iquat")
    none, body, inertia, body_rotation, inertia_rotation = range(5)  # mujoco.mjtSameFrame
    placed, turned = _is_zero(body_pos), _is_identity(body_quat)
    result = {"body_sameframe": np.select([placed & turned, turned], [body, body_rotation], none)}
    if "body_ipos" in group.tracked:  # kernels move frames on the device, so none stays where it is
        result["body_sameframe"][:] = none
    result["body_sameframe"][:1] = model.body_sameframe[:1]
    for kind, carrier in (("geom", model.geom_bodyid), ("site", model.site_bodyid)):
        pos, quat = group.value(f"{kind}_pos"), group.value(f"{kind}_quat")
        frame_pos, frame_quat = body_pos[:, carrier], body_quat[:, carrier]
        placed, turned = _is_zero(pos), _is_identity(quat)
        at_mass, along_axes = _is_zero(pos - frame_pos), _is_same_rotation(quat, frame_quat)
        result[f"{kind}_sameframe"] = np.select(
            [placed & turned, turned, at_mass & along_axes, along_axes],
            [body, body_rotation, inertia, inertia_rotation],
            none,
        )
        if group.tracked & {"body_ipos", f"{kind}_pos"}:
            result[f"{kind}_sameframe"][:] = none
    changed = set()
    for name, values in result.items():
        if not np.array_equal(getattr(model, name), values):
            getattr(model, name)[...] = values
            changed.add(name)
    return changed


def _is_zero(vectors: np.ndarray) -> np.ndarray:
    """Return which vectors, shape [row, entry, 3], are zero in all rows."""
    result: np.ndarray = (np.abs(vectors) < FRAME_ERROR).all(axis=(0, 2))
    return result


def _is_identity(quats: np.ndarray) -> np.ndarray:
    """Return which quaternions wxyz, shape [row, entry, 4], are no rotation in all rows."""
    return _is_same_rotation(quats, np.array([1.0, 0.0, 0.0, 0.0]))


def _is_same_rotation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return which quaternions, shape [row, entry, 4], are the same rotation in all rows."""
    same = (np.abs(a - b) < FRAME_ERROR).all(axis=2) | (np.abs(a + b) < FRAME_ERROR).all(axis=2)
    result: np.ndarray = same.all(axis=0)
    return result


def keep_free_of_trees(group: MujocoGroup, changed: set[str]) -> bool:
    """Switch off the compiled bounding volume trees if boxes moved; return whether they are off.

    The trees only save tests of pairs of geoms of the same two bodies; the contacts are the same without
    them.
    """
    import mujoco

    sources = {"geom_pos", "geom_quat", "geom_aabb", "body_ipos", "body_iquat"}
    bit = int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    if not (changed | group.tracked) & sources or group.model.opt.disableflags & bit:
        return False
    if not (group.model.body_geomnum > 1).any():
        return False
    group.model.opt.disableflags |= bit
    return True
