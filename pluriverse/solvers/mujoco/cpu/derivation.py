"""CPU derivation: let MuJoCo compute the derived fields of a world after kernels wrote its fields.

Reads   fields of a world
Writes  its derived fields: inverse weights, subtree masses, lengths of tendons, mean inertia

A thread copies the fields of the world into its worker, calls `mj_setConst`, and copies the derived fields
out. Fields that MuJoCo decides for one world, but the worlds of a group share, are restored.
"""

import warp as wp

from pluriverse.solvers.mujoco.cpu.memory import SET_CONST, YIELD, CpuEngineData, call
from pluriverse.solvers.mujoco.cpu.native_call import (
    acquire_worker,
    copy_memory,
    read_number,
    release_worker,
    write_number,
)
from pluriverse.solvers.mujoco.cpu.worker import ADDRESS_COUNT, DATA, MODEL
from pluriverse.solvers.mujoco.exchange.maps import ExchangeMaps
from pluriverse.solvers.mujoco.mapping.group_fields import MEAN_INERTIA_MIN
from pluriverse.types import BodyFlags

# Fields that `mj_setConst` of some versions decides from the values of one world. If all worlds of a group
# share them, they are restored afterwards.
PROTECTED = (
    "body_sameframe",
    "geom_sameframe",
    "site_sameframe",
    "eq_data",
    "geom_aabb",
    "geom_rbound",
    "bvh_aabb",
)
PROTECTED_COUNT = wp.constant(len(PROTECTED))
_MEAN_MIN = wp.constant(wp.float64(MEAN_INERTIA_MIN))


@wp.struct
class Derivation:
    """Tables of the fields of each group for the kernel, filled with the workers."""

    is_derived: wp.array2d[int]  # [group, field] whether MuJoCo computes the field
    mean_field: wp.array[int]  # [group] field of the mean inertia, -1 for none
    mass_field: wp.array[int]  # [group] field of the diagonal of the mass matrix
    protected_target: wp.array3d[wp.uint64]  # [worker, group, number] address in the worker's model
    protected_source: wp.array2d[wp.uint64]  # [group, number] address in the group's model
    protected_size: wp.array2d[wp.int64]  # [group, number] bytes; 0 for none


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.cpu.derivation")
def derive_world(
    worlds: wp.array[int],  # [row]
    selected: wp.array[int],  # [world]
    group: int,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    derivation: Derivation,
    world_body: wp.array[int],  # [world] first body
    body_flags: wp.array[int],  # [body]
    dof_child: wp.array[int],  # [nv] world-local body that moves
    world_frozen: wp.array[int],  # [world] out
):
    """Derive the fields of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    if selected[world] == 0:
        return
    worker = acquire_worker(
        engine.worker_taken, engine.world_worker[world], engine.worker_count, engine.function[YIELD]
    )
    base = (worker * engine.group_count + group) * ADDRESS_COUNT
    world_row = wp.int64(maps.world_row[world])
    for entry in range(engine.field_count[group]):
        size = engine.field_size[group, entry]
        row = engine.field_source[group, entry] + wp.uint64(world_row * size)
        copy_memory(engine.field_target[worker, group, entry], row, size)
    failed = call(engine, SET_CONST, engine.address[base + MODEL], engine.address[base + DATA])
    if failed != 0:
        world_frozen[world] = 1
    else:
        for entry in range(engine.field_count[group]):
            if derivation.is_derived[group, entry] != 0:
                size = engine.field_size[group, entry]
                row = engine.field_source[group, entry] + wp.uint64(world_row * size)
                copy_memory(row, engine.field_target[worker, group, entry], size)
        mean_field = derivation.mean_field[group]
        if mean_field >= 0:
            # Prescribed joints are excluded from the scale of the solver's tolerance, unless all joints are
            # prescribed.
            mass = engine.field_target[worker, group, derivation.mass_field[group]]
            total = wp.float64(0.0)
            all_total = wp.float64(0.0)
            count = int(0)
            for dof in range(dof_child.shape[0]):
                number = read_number(mass, 8 * dof)
                all_total += number
                if (body_flags[world_body[world] + dof_child[dof]] & BodyFlags.KINEMATIC) == 0:
                    total += number
                    count += 1
            if count == 0:
                total = all_total
                count = dof_child.shape[0]
            mean = wp.max(total / wp.float64(count), _MEAN_MIN)
            write_number(engine.field_source[group, mean_field] + wp.uint64(world_row * wp.int64(8)), 0, mean)
    for number in range(PROTECTED_COUNT):
        size = derivation.protected_size[group, number]
        if size > wp.int64(0):
            copy_memory(
                derivation.protected_target[worker, group, number],
                derivation.protected_source[group, number],
                size,
            )
    release_worker(engine.worker_taken, worker)
