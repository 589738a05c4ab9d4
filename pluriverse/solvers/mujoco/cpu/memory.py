"""CPU memory: the layout of MuJoCo's memory for the kernels of the C engine, and functions to access it."""

import warp as wp

from pluriverse.solvers.mujoco.cpu.native_call import (
    are_below,
    call_guarded,
    read_integer,
    read_number,
    write_number,
)
from pluriverse.solvers.mujoco.cpu.worker import (
    GEOM_BODYID,
    XMAT,
    XPOS,
)

# Indices of functions in `library.function_addresses`.
STEP = wp.constant(0)
STEP1 = wp.constant(1)
STEP2 = wp.constant(2)
ADD_CONTACT = wp.constant(3)
MAKE_CONSTRAINT = wp.constant(4)
ISLAND = wp.constant(5)
PROJECT_CONSTRAINT = wp.constant(6)
REFERENCE_CONSTRAINT = wp.constant(7)
CONTACT_FORCE = wp.constant(8)
RESET_DATA = wp.constant(9)
SOLVE_MASS = wp.constant(10)
INTEGRATE_POSITIONS = wp.constant(11)
SET_CONST = wp.constant(12)
HANDLER = wp.constant(13)
YIELD = wp.constant(17)

# Offsets [B] in `CpuEngineData.layout`: of numbers in structs, fields of a contact, counters of warnings.
LAYOUT = (
    ("data", "ncon"),
    ("data", "time"),
    ("model", "opt.iterations"),
    ("contact", "dist"),
    ("contact", "pos"),
    ("contact", "frame"),
    ("contact", "includemargin"),
    ("contact", "friction"),
    ("contact", "solref"),
    ("contact", "solimp"),
    ("contact", "dim"),
    ("contact", "geom1"),
    ("contact", "geom2"),
    ("contact", "geom"),
    ("contact", "flex"),
    ("contact", "elem"),
    ("contact", "vert"),
    ("contact", "exclude"),
    ("contact", "efc_address"),
    ("warning", "CONTACTFULL"),
    ("warning", "CNSTRFULL"),
    ("warning", "BADQPOS"),
    ("warning", "BADQVEL"),
    ("warning", "BADQACC"),
    ("warning", "BADCTRL"),
)
(
    L_NCON,
    L_TIME,
    L_ITERATIONS,
    L_DIST,
    L_POS,
    L_FRAME,
    L_MARGIN,
    L_FRICTION,
    L_SOLREF,
    L_SOLIMP,
    L_DIM,
    L_GEOM1,
    L_GEOM2,
    L_GEOM,
    L_FLEX,
    L_ELEM,
    L_VERT,
    L_EXCLUDE,
    L_EFC,
    L_CONTACT_FULL,
    L_CONSTRAINT_FULL,
    L_BAD_QPOS,
    L_BAD_QVEL,
    L_BAD_QACC,
    L_BAD_CTRL,
) = (wp.constant(index) for index in range(len(LAYOUT)))
# After them: the size of a contact [B], and the number of islands that count iterations.
CONTACT_SIZE = wp.constant(len(LAYOUT))
ISLAND_COUNT = wp.constant(len(LAYOUT) + 1)

# MuJoCo's bits and bounds: `mjDSBL_CONTACT`, `mjMAXVAL`, `mjMINMU`.
DISABLE_CONTACT = wp.constant(1 << 4)
VALUE_MAX = wp.constant(wp.float64(1e10))
FRICTION_MIN = wp.constant(wp.float64(1e-5))
INFINITE = wp.constant(wp.float64(float("inf")))


@wp.struct
class CpuEngineData:
    """Data of the engine for its kernel."""

    function: wp.array[wp.uint64]
    layout: wp.array[int]
    worker_count: int
    group_count: int
    worker_taken: wp.array[int]  # [worker]
    world_worker: wp.array[int]  # [world] worker of the last step
    address: wp.array[wp.uint64]  # [worker, group, address]
    # fields that differ between the worlds of a group
    field_count: wp.array[int]  # [group]
    field_source: wp.array2d[wp.uint64]  # [group, field] address of the first row
    field_size: wp.array2d[wp.int64]  # [group, field] bytes of a row
    field_target: wp.array3d[wp.uint64]  # [worker, group, field] address in the worker's model
    # external contacts
    geom_force_space: wp.array[int]  # [world geom]
    geom_ke: wp.array[wp.float64]
    geom_kd: wp.array[wp.float64]
    slot_contact: wp.array[int]  # [slot] contact of MuJoCo, -1 for none
    # limits of joint speeds
    limit_speeds: int  # 1: they are enforced
    velocity_limit: wp.array[float]  # [dof] of the model
    body_flags: wp.array[int]  # [body] of the model
    speed_scratch: wp.array[wp.uint64]  # [worker] memory for three vectors of degrees of freedom


@wp.struct
class CpuStepStatus:
    """Status of each world, shape [world]."""

    frozen: wp.array[int]
    known: wp.array[int]
    stepped: wp.array[int]  # 1: the rows hold a new state
    failed: wp.array[int]  # steps so far that ended with an error of MuJoCo
    full: wp.array[int]  # steps so far in which contacts or constraints found no memory
    full_now: wp.array[int]
    iterations: wp.array[int]
    converged: wp.array[int]
    unconverged: wp.array[int]  # steps so far that ended at the limit of iterations
    contact_count: wp.array[int]
    needed_count: wp.array[int]  # most contacts of a step so far
    unlisted: wp.array[int]  # steps so far with more contacts than the list has slots


@wp.func
def are_sound(values: wp.array(dtype=wp.float64), first: int, count: int) -> bool:
    """Return whether numbers are finite and within MuJoCo's bounds."""
    return are_below(values, first, count, VALUE_MAX)


@wp.func
def are_finite(values: wp.array(dtype=wp.float64), first: int, count: int) -> bool:
    """Return whether numbers are finite."""
    return are_below(values, first, count, INFINITE)


@wp.func
def read_vec3(address: wp.uint64, offset: int) -> wp.vec3d:
    """Return three numbers in memory."""
    return wp.vec3d(
        read_number(address, offset), read_number(address, offset + 8), read_number(address, offset + 16)
    )


@wp.func
def read_vec2(address: wp.uint64, offset: int) -> wp.vec2d:
    """Return two numbers in memory."""
    return wp.vec2d(read_number(address, offset), read_number(address, offset + 8))


@wp.func
def write_vec3(address: wp.uint64, offset: int, value: wp.vec3d):
    """Write three numbers to memory."""
    for k in range(3):
        write_number(address, offset + 8 * k, value[k])


@wp.func
def read_mat33(address: wp.uint64, offset: int) -> wp.mat33d:
    """Return nine numbers in memory, row by row."""
    matrix = wp.mat33d()
    for row in range(3):
        for column in range(3):
            matrix[row, column] = read_number(address, offset + 8 * (3 * row + column))
    return matrix


@wp.func
def call(engine: CpuEngineData, function: int, model: wp.uint64, data: wp.uint64) -> int:
    """Call a function of MuJoCo on a model and data; return 1 if it ended with an error."""
    return call_guarded(
        engine.function[function],
        model,
        data,
        engine.function[HANDLER],
        engine.function[HANDLER + 1],
        engine.function[HANDLER + 2],
        engine.function[HANDLER + 3],
    )


@wp.func
def body_pose(engine: CpuEngineData, base: int, geom: int):
    """Return position and rotation of the body that carries a geom, as in the last step."""
    body = read_integer(engine.address[base + GEOM_BODYID], 4 * geom)
    return read_vec3(engine.address[base + XPOS], 24 * body), read_mat33(
        engine.address[base + XMAT], 72 * body
    )


@wp.func
def narrow(a: wp.vec3d) -> wp.vec3:
    """Return a vector in single precision."""
    return wp.vec3(float(a[0]), float(a[1]), float(a[2]))


@wp.func
def widen(a: wp.vec3) -> wp.vec3d:
    """Return a vector in double precision."""
    return wp.vec3d(wp.float64(a[0]), wp.float64(a[1]), wp.float64(a[2]))
