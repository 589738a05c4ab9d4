"""Inspection: MuJoCo's own objects of a `SolverMuJoCo` whose worlds have one structure, and maps to entities.

Scripts written for Newton read them as attributes of the solver. They are for reading: what a step starts
from is in `State` and `Control`.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.solvers.mujoco.engine import Engine
from pluriverse.solvers.mujoco.exchange.maps import ROW_SIZES
from pluriverse.solvers.mujoco.mapping.fields import write_shared
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup

MAPS = (
    "mjc_body_to_newton",
    "mjc_dof_to_newton_dof",
    "mjc_eq_to_newton_eq",
    "mjc_geom_to_newton_shape",
    "mjc_jnt_to_newton_dof",
    "mjc_jnt_to_newton_jnt",
    "mjc_mocap_to_newton_jnt",
)
"""Names of the maps that `make_map` knows."""


def fill_data(model: Any, data: Any, engine: Engine) -> None:
    """Fill MuJoCo's model and data with what the last step left of the first world, and evaluate it.

    Before the first step that is the initial state.

    Args:
        model: A copy of the model of the only group (`mujoco.MjModel`).
        data: Data of that model (`mujoco.MjData`).
        engine: The engine.
    """
    import mujoco

    group, exchange = engine.groups[0], engine.exchange
    world = int(group.worlds[0])
    if not exchange.known.numpy()[world]:
        listed: wp.array[int] = wp.array([world], dtype=int, device=engine.model.device)
        state, control = engine.model.state(), engine.model.control()
        exchange.push(listed, state, control, engine.solver.world_frozen, 1.0)
    for name in group.fields:
        write_shared(model, name, group.fields[name][0])
    for name in ROW_SIZES:
        values = exchange.rows.of_group(engine.groups, 0, name).numpy()[0]
        if name == "time":
            data.time = float(values[0])
        elif hasattr(data, name):
            target = getattr(data, name)
            target[...] = values.reshape(target.shape)
    mujoco.mj_forward(model, data)


def make_map(group: MujocoGroup, name: str, device: wp.Device) -> wp.array:
    """Return the flat index of the entity of each of MuJoCo's, -1 for none, shape [world, MuJoCo's entity].

    Args:
        group: The group, whose worlds are the rows.
        name: One of `MAPS`.
        device: Device of the array.
    """
    counts = {"body": "nbody", "dof": "nv", "eq": "neq", "geom": "ngeom", "jnt": "njnt", "mocap": "nmocap"}
    count = int(getattr(group.model, counts[name.split("_")[1]]))
    local = np.full(count, -1, dtype=np.int64)
    if name == "mjc_body_to_newton":
        local, first = group.mj_body.copy(), group.first_body
    elif name == "mjc_dof_to_newton_dof":
        local[group.dof_qvel] = np.arange(len(group.dof_qvel))
        first = group.first_dof
    elif name == "mjc_jnt_to_newton_dof":
        # The first degree of freedom of each joint: written last.
        local[group.dof_joint[::-1]] = np.arange(len(group.dof_joint))[::-1]
        first = group.first_dof
    elif name == "mjc_jnt_to_newton_jnt":
        owner = np.repeat(np.arange(len(group.joint_dof)), group.joint_dof_count)
        dof = np.concatenate(
            [np.arange(d, d + n) for d, n in zip(group.joint_dof, group.joint_dof_count, strict=True)]
            or [np.zeros(0, dtype=np.int64)]
        ).astype(np.int64)
        local[group.dof_joint[dof]] = owner
        first = group.first_joint
    elif name == "mjc_mocap_to_newton_jnt":
        local, first = group.mocap_joint.copy(), group.first_joint
    elif name == "mjc_eq_to_newton_eq":
        for column in group.equality_eq.T:
            local[column[column >= 0]] = np.flatnonzero(column >= 0)
        first = group.first_equality
    else:
        return wp.array(_flat_shapes(group), dtype=int, device=device)
    flat = np.where(local[None] >= 0, local[None] + first[:, None], -1)
    return wp.array(flat.astype(np.int32), dtype=int, device=device)


def shape_geoms(groups: list[MujocoGroup], shape_count: int, device: wp.Device) -> wp.array:
    """Return MuJoCo's geom of each shape, -1 for none, shape [shape]."""
    geoms = np.full(shape_count, -1, dtype=np.int32)
    for group in groups:
        geoms[_flat_shapes(group)] = np.arange(group.model.ngeom)[None]
    return wp.array(geoms, dtype=int, device=device)


def _flat_shapes(group: MujocoGroup) -> np.ndarray:
    """Return the flat shape of each geom, shape [world, geom]."""
    code = group.geom_shape[None]
    return np.where(code >= 0, code + group.first_shape[:, None], -1 - code).astype(np.int32)
