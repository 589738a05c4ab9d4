"""Engine library: addresses of MuJoCo's functions, and offsets of the fields of its structs.

Kernels call MuJoCo's C functions by address, and read and write the fields of `mjModel` and `mjData` by
address. NumPy gives the addresses of arrays. The bindings expose only the value of a plain number in a
struct, so its offset is found by writing a marker and checking which bytes change. Nothing here depends on
the order of fields in a version of MuJoCo.
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

# Functions that kernels call, in the order of `function_addresses`.
FUNCTIONS = (
    "mj_step",
    "mj_step1",
    "mj_step2",
    "mj_addContact",
    "mj_makeConstraint",
    "mj_island",
    "mj_projectConstraint",
    "mj_referenceConstraint",
    "mj_contactForce",
    "mj_resetData",
    "mj_solveM",
    "mj_integratePos",
    "mj_setConst",
)
# Sets the calling thread's error handler; the Python bindings use it to raise exceptions. It is not part of
# MuJoCo's interface, so a version may lack it: errors then end the process.
HANDLER_FUNCTION = "_mjPRIVATE_setTlsLogHandler"
# Marker values that no field of a fresh struct has; two of them, so that a chance match is detected.
_INTEGER_MARKS = (0x1B2C3D4E, 0x2C3D4E5F)
_NUMBER_MARKS = (8.25e77, 4.75e-77)
# Bytes around the centre in `mjStatistic` that hold all of it.
_STAT_SIZE = 64
# A probe model with so much memory for contacts, constraints and the solver.
_TINY_MODEL = (
    '<mujoco><size memory="{memory}"/><worldbody><body><freejoint/><geom size="1"/></body></worldbody>'
    "</mujoco>"
)


@dataclass(frozen=True)
class Layout:
    """Offsets of fields [B]."""

    data: dict[str, int]
    """Of numbers in `mjData`."""
    model: dict[str, int]
    """Of numbers in `mjModel`; those of its options are called `opt.timestep` and so on, and there is
    `stat.meaninertia`."""
    model_type: dict[str, type]
    """`int` or `float` for each of them."""
    contact: dict[str, int]
    """Of fields in `mjContact`."""
    contact_size: int
    """Size of an `mjContact`."""


@functools.cache
def find_misfit() -> str:
    """Return a sentence on how this version of MuJoCo differs from what the engine expects, or an empty text.

    All functions and fields must be found, and a step of a small model by address must give the bits of
    `mujoco.mj_step`.
    """
    try:
        step = function_address(load_library(), "mj_step")
        function_addresses()
        find_layout()
        model = mujoco.MjModel.from_xml_string(_TINY_MODEL.format(memory="5M"))
        ours, theirs = mujoco.MjData(model), mujoco.MjData(model)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(step)(model._address, ours._address)
        mujoco.mj_step(model, theirs)
        same = np.array_equal(ours.qpos, theirs.qpos) and ours.time == theirs.time > 0.0
        contact_address(ours)
    except RuntimeError as error:
        return str(error).removeprefix("SolverMuJoCo: ")
    except (AttributeError, OSError, TypeError, ValueError) as error:
        return f"MuJoCo {mujoco.mj_versionString()} cannot be called by address ({error})."
    if not same:
        return f"MuJoCo {mujoco.mj_versionString()} steps differently by address than in its Python package."
    return ""


@functools.cache
def load_library() -> ctypes.CDLL:
    """Return the MuJoCo library that its Python bindings use.

    Raises:
        RuntimeError: If it is not in the Python package.
    """
    name = {"darwin": "libmujoco.{}.dylib", "win32": "mujoco.dll"}.get(sys.platform, "libmujoco.so.{}")
    path = Path(mujoco.__file__).parent / name.format(mujoco.mj_versionString())
    if not path.is_file():
        raise RuntimeError(
            f"SolverMuJoCo: MuJoCo {mujoco.mj_versionString()} has no library '{path}'. Install MuJoCo from "
            "its wheel (pip install --force-reinstall mujoco)."
        )
    if np.dtype(mujoco.MJTNUM_DTYPE).itemsize != 8:
        raise RuntimeError(
            "SolverMuJoCo: this MuJoCo was built for single precision, but only builds with double precision "
            "are supported. Install MuJoCo from its wheel."
        )
    return ctypes.CDLL(str(path))


def function_address(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function.

    Raises:
        RuntimeError: If the library has no such function.
    """
    try:
        return int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
    except AttributeError:
        raise RuntimeError(
            f"SolverMuJoCo: MuJoCo {mujoco.mj_versionString()} has no function {name}. Install a version "
            "that the requirements of pluriverse admit."
        ) from None


@functools.cache
def function_addresses() -> np.ndarray:
    """Return the addresses of `FUNCTIONS`, then those that an error handler and waiting threads need.

    These are the addresses of `HANDLER_FUNCTION` (0 for none), `pthread_getspecific` and
    `pthread_setspecific`, a new key for thread-local data, and the address of `sched_yield`.
    """
    library, system = load_library(), ctypes.CDLL(None)
    key = ctypes.c_uint()
    if system.pthread_key_create(ctypes.byref(key), None) != 0:
        raise RuntimeError("SolverMuJoCo: the system has no thread-local storage left.")
    return np.array(
        [function_address(library, name) for name in FUNCTIONS]
        + [function_address(library, HANDLER_FUNCTION) if hasattr(library, HANDLER_FUNCTION) else 0]
        + [function_address(system, name) for name in ("pthread_getspecific", "pthread_setspecific")]
        + [key.value, function_address(system, "sched_yield")],
        dtype=np.uint64,
    )


def address_of(array: np.ndarray) -> int:
    """Return the address of the first element of an array."""
    return int(array.__array_interface__["data"][0])


def field_address(model: Any, name: str) -> int:
    """Return the address of a field of an `mjModel`, an array or a number; `opt.gravity` is an option.

    Raises:
        KeyError: If it is a number of unknown offset.
    """
    owner = model
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    value = getattr(owner, name.split(".")[-1])
    if isinstance(value, np.ndarray):
        return address_of(value)
    return int(model._address) + find_layout().model[name]


def contact_address(data: Any) -> int:
    """Return the address of the contacts of an `mjData`, which is the same in every step."""
    count = data.ncon
    data.ncon = 1
    address = address_of(data.contact.dist)
    data.ncon = count
    return address


@functools.cache
def find_layout() -> Layout:
    """Return the offsets of the fields in this version of MuJoCo.

    Raises:
        RuntimeError: If a field is not found.
    """
    model = mujoco.MjModel.from_xml_string(_TINY_MODEL.format(memory="5M"))
    other = mujoco.MjModel.from_xml_string(_TINY_MODEL.format(memory="7M"))
    data = mujoco.MjData(model)
    data_memory = _view(data._address, address_of(data.energy) - data._address)
    # `opt` is followed by `stat`, where `center` is among the first.
    size = address_of(model.stat.center) - model._address
    model_memory, other_memory = _view(model._address, size), _view(other._address, size)

    in_data = {name: _find(data, name, data_memory) for name in ("ncon", "nefc", "time")}
    in_model: dict[str, int] = {}
    types: dict[str, type] = {}
    for name in dir(model.opt):
        value = None if name.startswith("_") else getattr(model.opt, name)
        if isinstance(value, int | float):
            in_model[f"opt.{name}"] = _find(model.opt, name, model_memory)
            types[f"opt.{name}"] = type(value)
    offsets = [
        offset
        for offset in range(0, size - 7, 4)
        if _number(model_memory, offset) == model.narena and _number(other_memory, offset) == other.narena
    ]
    if len(offsets) != 1:
        raise _not_found("narena")
    in_model["narena"], types["narena"] = offsets[0], int
    nearby = _view(model._address + size - _STAT_SIZE, 2 * _STAT_SIZE)
    offset = _find(model.stat, "meaninertia", nearby)
    in_model["stat.meaninertia"], types["stat.meaninertia"] = size - _STAT_SIZE + offset, float

    data.ncon = 1
    contact = data.contact
    base, contact_size = address_of(contact.dist), contact.dist.strides[0]
    in_contact = {}
    for name in dir(contact):
        value = None if name.startswith("_") else getattr(contact, name)
        if isinstance(value, np.ndarray):
            in_contact[name] = address_of(value) - base
    data.ncon = 0
    return Layout(in_data, in_model, types, in_contact, contact_size)


def set_memory(model: Any, size: int) -> None:
    """Give data made for a model `size` [B] of memory for contacts, constraints and the solver."""
    _view(model._address + find_layout().model["narena"], 8).view(np.int64)[0] = size


def _view(address: int, size: int) -> np.ndarray:
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), dtype=np.uint8)


def _number(memory: np.ndarray, offset: int) -> int:
    return int(memory[offset : offset + 8].view(np.int64)[0])


def _find(owner: Any, name: str, memory: np.ndarray) -> int:
    """Return the offset of a number in the memory that holds it."""
    value = getattr(owner, name)
    marks: tuple[Any, ...] = _NUMBER_MARKS if isinstance(value, float) else _INTEGER_MARKS
    kind: Callable[[Any], np.generic] = np.float64 if isinstance(value, float) else np.int32
    before, offsets = memory.copy(), set()
    for mark in marks:
        setattr(owner, name, mark)
        changed = np.flatnonzero(memory != before)
        pattern = np.array([kind(mark)]).view(np.uint8)
        start = int(changed[0]) if len(changed) else 0
        # Bytes that the marker shares with the old value do not change, so start slightly before the first
        # change.
        for offset in range(max(start - len(pattern) + 1, 0), start + 1):
            if np.array_equal(memory[offset : offset + len(pattern)], pattern):
                offsets.add(offset)
    setattr(owner, name, value)
    if len(offsets) != 1 or not np.array_equal(memory, before):
        raise _not_found(name)
    return offsets.pop()


def _not_found(name: str) -> RuntimeError:
    return RuntimeError(
        f"SolverMuJoCo: the offset of '{name}' was not found in the memory of MuJoCo "
        f"{mujoco.mj_versionString()}. Install a version that the requirements of pluriverse admit."
    )
