"""Exchange maps: the positions of every world's entities in MuJoCo's rows, and the rows themselves.

A *row* is a world's part of an array of `mjData`. The rows of a group are contiguous, in the order of
`MujocoGroup.worlds`, and so are the groups.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import quat_type, vec3_type
from pluriverse.model import Model, Topology
from pluriverse.solvers.mujoco.mapping.group import NO_SHAPE, JointKind, MujocoGroup
from pluriverse.types import BodyFlags

# Rows and the count in `mjModel` that gives their length, with a factor if an entry has several numbers.
ROW_SIZES = {
    "qpos": ("nq", 1),
    "qvel": ("nv", 1),
    "act": ("na", 1),
    "qacc_warmstart": ("nv", 1),
    "ctrl": ("nu", 1),
    "qfrc_applied": ("nv", 1),
    "xfrc_applied": ("nbody", 6),
    "mocap_pos": ("nmocap", 3),
    "mocap_quat": ("nmocap", 4),
    "eq_active": ("neq", 1),
    "time": (None, 1),
}
# Counts of `mjModel` that give the start of a world's rows, in the order of `ExchangeMaps.count`.
COUNTS = ("nq", "nv", "na", "nu", "nbody", "nmocap", "neq", "ngeom")
NQ, NV, NA, NU, NBODY, NMOCAP, NEQ, NGEOM = (wp.constant(index) for index in range(len(COUNTS)))


@wp.struct
class ExchangeMaps:
    """Maps of all groups; `MujocoGroup` explains them."""

    float_depth: int  # most joints that float below a body, on the way to a root
    # [world]
    world_group: wp.array[int]
    world_row: wp.array[int]  # position in the group
    world_start: wp.array2d[
        int
    ]  # [world, count] position of the world's first entry among those of all worlds
    # [group]
    count: wp.array2d[int]  # [group, count] entries of a world
    keeps_inputs: wp.array[int]  # [group] 1: rows are not written anew while state and control stay
    # [group + 1] where each group begins in the arrays below
    group_joint: wp.array[int]
    group_dof: wp.array[int]
    group_body: wp.array[int]
    # [group joint]
    joint_kind: wp.array[int]
    joint_child: wp.array[int]
    joint_parent: wp.array[int]
    joint_coord: wp.array[int]
    joint_dof: wp.array[int]
    joint_dof_count: wp.array[int]
    joint_qpos: wp.array[int]
    joint_qvel: wp.array[int]
    # [group dof]
    dof_joint: wp.array[int]  # world-local joint
    dof_qvel: wp.array[int]
    position_ctrl: wp.array[int]
    velocity_ctrl: wp.array[int]
    effort_ctrl: wp.array[int]
    # [group body]
    body_mj: wp.array[int]
    # [group geom], beginning at group_geom
    group_geom: wp.array[int]
    geom_shape: wp.array[int]
    # [group shape], beginning at group_shape
    group_shape: wp.array[int]
    shape_geom: wp.array[int]
    # general actuators of each world, from direct_start[world] to [world + 1]
    direct_start: wp.array[int]
    direct_ctrl: wp.array[int]  # entry of the world's ctrl
    direct_row: wp.array[int]  # entry of control.mujoco.ctrl
    # shapes that all worlds share: number of each, shape [shape], and its geom, shape [group, number]
    shape_number: wp.array[int]
    shared_geom: wp.array2d[int]
    # of all worlds, flat
    joint_rotation: wp.array[wp.quat]  # [joint] of the joint's frame in MuJoCo's body
    start_act: wp.array[wp.float64]  # [activation] of a world that starts anew


@wp.func
def geom_of_shape(topology: Topology, maps: ExchangeMaps, world: int, shape: int) -> int:
    """Return the geom of a flat shape in the group of a world, -1 for none or for no such shape."""
    if shape < 0 or shape >= maps.shape_number.shape[0]:
        return -1
    group = maps.world_group[world]
    local = shape - topology.world_shape[world]
    if local >= 0 and local < maps.group_shape[group + 1] - maps.group_shape[group]:
        return maps.shape_geom[maps.group_shape[group] + local]
    number = maps.shape_number[shape]
    if number < 0:
        return -1
    return maps.shared_geom[group, number]


@wp.func
def shape_of_geom(topology: Topology, maps: ExchangeMaps, world: int, geom: int) -> int:
    """Return the flat shape of a geom of the group of a world."""
    code = maps.geom_shape[maps.group_geom[maps.world_group[world]] + geom]
    if code >= 0:
        return topology.world_shape[world] + code
    return -1 - code


@wp.func
def is_prescribed(
    topology: Topology,
    maps: ExchangeMaps,
    body_flags: wp.array[int],  # [body]
    world: int,
    index: int,
) -> bool:
    """Return whether a joint of a group moves a kinematic body in a world."""
    return (body_flags[topology.world_body[world] + maps.joint_child[index]] & BodyFlags.KINEMATIC) != 0


@made_once
def rows_struct(real: Any) -> Any:
    """Return the `wp.struct` of all rows with numbers of type `real`."""
    annotations = {name: wp.array(dtype=wp.uint8 if name == "eq_active" else real) for name in ROW_SIZES}
    return wp.struct(type("Rows", (), {"__annotations__": annotations, "__module__": __name__}))


@made_once
def row_functions(real: Any) -> SimpleNamespace:
    """Return the `wp.func`s that read and write vectors and rotations in rows with numbers of type `real`.

    - `row_vec3(values, first)`, `row_rotation(values, first)`: a vector, a rotation.
    - `set_row_vec3(values, first, a)`, `set_row_rotation(values, first, q)`: the way back.

    MuJoCo has the scalar part of a quaternion first.
    """
    vec3, quat = vec3_type(real), quat_type(real)

    @wp.func
    def row_vec3(values: wp.array(dtype=real), first: int) -> vec3:
        return vec3(values[first], values[first + 1], values[first + 2])

    @wp.func
    def row_rotation(values: wp.array(dtype=real), first: int) -> quat:
        return quat(values[first + 1], values[first + 2], values[first + 3], values[first])

    @wp.func
    def set_row_vec3(values: wp.array(dtype=real), first: int, a: vec3):
        for k in range(3):
            values[first + k] = a[k]

    @wp.func
    def set_row_rotation(values: wp.array(dtype=real), first: int, q: quat):
        values[first] = q[3]
        for k in range(3):
            values[first + 1 + k] = q[k]

    return SimpleNamespace(
        row_vec3=row_vec3,
        row_rotation=row_rotation,
        set_row_vec3=set_row_vec3,
        set_row_rotation=set_row_rotation,
    )


class ExchangeRows:
    """The rows of all worlds, each an attribute with its name in `mjData`; `data` hands them to a kernel.

    Args:
        groups: Groups of all worlds.
        real: Type of the numbers.
        device: Device of the arrays.
    """

    def __init__(self, groups: Sequence[MujocoGroup], real: Any, device: wp.Device):
        self.real = real
        self.data = rows_struct(real)()
        for name, (count_name, factor) in ROW_SIZES.items():
            size = sum(
                group.world_count * factor * (getattr(group.model, count_name) if count_name else 1)
                for group in groups
            )
            array = wp.zeros(size, dtype=wp.uint8 if name == "eq_active" else real, device=device)
            setattr(self, name, array)
            setattr(self.data, name, array)

    def of_group(self, groups: Sequence[MujocoGroup], index: int, name: str) -> wp.array:
        """Return the rows of a group, shape [row, entry]."""
        count_name, factor = ROW_SIZES[name]

        def width(group: MujocoGroup) -> int:
            return factor * (getattr(group.model, count_name) if count_name else 1)

        first = sum(group.world_count * width(group) for group in groups[:index])
        group = groups[index]
        array: wp.array = getattr(self, name)
        if width(group) == 0:
            return wp.zeros((group.world_count, 0), dtype=array.dtype, device=array.device)
        part = array[first : first + group.world_count * width(group)]
        return part.reshape((group.world_count, width(group)))


def make_maps(model: Model, groups: Sequence[MujocoGroup]) -> ExchangeMaps:
    """Return the maps of all groups on the device of the model."""
    device = model.device
    world_group = np.zeros(model.world_count, dtype=np.int32)
    world_row = np.zeros(model.world_count, dtype=np.int32)
    world_start = np.zeros((model.world_count, len(COUNTS)), dtype=np.int32)
    counts = np.array([[getattr(group.model, name) for name in COUNTS] for group in groups], dtype=np.int64)
    offset = np.zeros(len(COUNTS), dtype=np.int64)
    rotation = np.tile(np.array([0.0, 0.0, 0.0, 1.0], dtype=np.float32), (max(model.joint_count, 1), 1))
    for index, group in enumerate(groups):
        rows = np.arange(group.world_count)
        world_group[group.worlds] = index
        world_row[group.worlds] = rows
        starts = offset + rows[:, None] * counts[index]
        world_start[group.worlds] = starts
        offset += group.world_count * counts[index]
        rotation[_flat_joints(group)] = group.joint_rotation.reshape(-1, 4)

    maps = ExchangeMaps()
    maps.float_depth = max((group.plan.structure.float_depth for group in groups), default=0)
    maps.world_group = wp.array(world_group, dtype=int, device=device)
    maps.world_row = wp.array(world_row, dtype=int, device=device)
    maps.world_start = wp.array(world_start, dtype=int, device=device)
    maps.count = wp.array(counts.astype(np.int32), dtype=int, device=device)
    # Torques on balls turn with them, and what floats is stepped by other kernels.
    turning = [JointKind.BALL, JointKind.FLOAT]
    keeps_inputs = np.array(
        [not np.isin(group.joint_kind, turning).any() for group in groups], dtype=np.int32
    )
    maps.keeps_inputs = wp.array(keeps_inputs, dtype=int, device=device)
    maps.joint_rotation = wp.array(rotation, dtype=wp.quat, device=device)
    maps.start_act = wp.array(_start_activations(groups), dtype=wp.float64, device=device)
    kinds = {
        "joint": [_joint_columns(group) for group in groups],
        "dof": [_dof_columns(group) for group in groups],
        "body": [_body_columns(group) for group in groups],
        "geom": [{"geom_shape": group.geom_shape} for group in groups],
        "shape": [{"shape_geom": group.shape_geom} for group in groups],
    }
    for kind, columns in kinds.items():
        sizes = [len(next(iter(column.values()))) for column in columns]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        setattr(maps, f"group_{kind}", wp.array(start, dtype=int, device=device))
        for name in columns[0]:
            values = np.concatenate([column[name] for column in columns]).astype(np.int32)
            setattr(maps, name, wp.array(values, dtype=int, device=device))
    for name, values in _direct_controls(model, groups).items():
        setattr(maps, name, wp.array(values.astype(np.int32), dtype=int, device=device))
    number, geom = _shared_shapes(model, groups)
    maps.shape_number = wp.array(number, dtype=int, device=device)
    maps.shared_geom = wp.array(geom, dtype=int, device=device)
    return maps


def _direct_controls(model: Model, groups: Sequence[MujocoGroup]) -> dict[str, np.ndarray]:
    """Return the positions of the controls of general actuators, world by world."""
    count = np.zeros(model.world_count, dtype=np.int64)
    for group in groups:
        count[group.worlds] = len(group.direct_ctrl)
    start = np.concatenate([[0], np.cumsum(count)])
    ctrl = np.zeros(int(start[-1]), dtype=np.int64)
    row = np.zeros(int(start[-1]), dtype=np.int64)
    for group in groups:
        if len(group.direct_ctrl):
            entries = start[group.worlds][:, None] + np.arange(len(group.direct_ctrl))
            ctrl[entries], row[entries] = group.direct_ctrl, group.direct_row
    return {"direct_start": start, "direct_ctrl": ctrl, "direct_row": row}


def assign_rotations(maps: ExchangeMaps, group: MujocoGroup) -> None:
    """Update the rotations of the joint frames of a group."""
    rotation = maps.joint_rotation.numpy()
    rotation[_flat_joints(group)] = group.joint_rotation.reshape(-1, 4)
    maps.joint_rotation.assign(rotation)


def assign_activations(maps: ExchangeMaps, groups: Sequence[MujocoGroup]) -> None:
    """Update the activations that worlds start with."""
    maps.start_act.assign(_start_activations(groups))


def _start_activations(groups: Sequence[MujocoGroup]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(group.start_act.reshape(-1) for group in groups)])


def _flat_joints(group: MujocoGroup) -> np.ndarray:
    """Return the flat indices of all joints of a group, row by row."""
    return (group.first_joint[:, None] + np.arange(len(group.joint_kind))).reshape(-1)


def _shared_shapes(model: Model, groups: Sequence[MujocoGroup]) -> tuple[np.ndarray, np.ndarray]:
    """Number the shapes that all worlds share; return the numbers, and the geom of each in each group."""
    coded = [group.geom_shape[(group.geom_shape < 0) & (group.geom_shape != NO_SHAPE)] for group in groups]
    shapes = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(-1 - codes for codes in coded)]))
    number = np.full(max(model.shape_count, 1), -1, dtype=np.int32)
    number[shapes] = np.arange(len(shapes))
    geom = np.full((len(groups), max(len(shapes), 1)), -1, dtype=np.int32)
    for index, group in enumerate(groups):
        for geom_index, code in enumerate(group.geom_shape):
            if code < 0 and code != NO_SHAPE:
                geom[index, number[-1 - code]] = geom_index
    return number, geom


def _joint_columns(group: MujocoGroup) -> dict[str, np.ndarray]:
    return {
        "joint_kind": group.joint_kind,
        "joint_child": group.joint_child,
        "joint_parent": group.joint_parent,
        "joint_coord": group.joint_coord,
        "joint_dof": group.joint_dof,
        "joint_dof_count": group.joint_dof_count,
        "joint_qpos": group.joint_qpos,
        "joint_qvel": group.joint_qvel,
    }


def _dof_columns(group: MujocoGroup) -> dict[str, np.ndarray]:
    return {
        "dof_joint": np.repeat(np.arange(len(group.joint_kind)), group.joint_dof_count)[
            np.argsort(_dofs_by_joint(group), kind="stable")
        ],
        "dof_qvel": group.dof_qvel,
        "position_ctrl": group.position_ctrl,
        "velocity_ctrl": group.velocity_ctrl,
        "effort_ctrl": group.effort_ctrl,
    }


def _dofs_by_joint(group: MujocoGroup) -> np.ndarray:
    """Return the world-local degrees of freedom in the order of the joints."""
    parts = [
        first + np.arange(count) for first, count in zip(group.joint_dof, group.joint_dof_count, strict=True)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _body_columns(group: MujocoGroup) -> dict[str, np.ndarray]:
    return {"body_mj": group.body_mj}
