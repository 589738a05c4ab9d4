"""Addresses and offsets inside MuJoCo: what is read and written by address is what Python sees."""

import ctypes

import mujoco
import numpy as np
import pytest

from pluriverse.solvers.mujoco.cpu.library import (
    FUNCTIONS,
    address_of,
    contact_address,
    field_address,
    find_layout,
    function_address,
    function_addresses,
    load_library,
    set_memory,
)

BOX = """
<mujoco><option timestep="0.0123" iterations="77"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.09"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>
"""


@pytest.fixture
def stepped() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(BOX)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    return model, data


def test_numbers_in_structs_are_where_they_are_looked_for(stepped):
    """Counts, time and options read by address are those that the bindings tell."""
    model, data = stepped
    layout = find_layout()
    for name in ("ncon", "nefc"):
        assert ctypes.c_int32.from_address(data._address + layout.data[name]).value == getattr(data, name) > 0
    assert ctypes.c_double.from_address(data._address + layout.data["time"]).value == data.time > 0.0
    assert ctypes.c_double.from_address(field_address(model, "opt.timestep")).value == 0.0123
    assert ctypes.c_int32.from_address(field_address(model, "opt.iterations")).value == 77
    for name, kind in layout.model_type.items():
        if name.startswith("opt."):
            c_type = ctypes.c_double if kind is float else ctypes.c_int32
            read = c_type.from_address(field_address(model, name)).value
            assert read == getattr(model.opt, name.removeprefix("opt.")), name


def test_contacts_are_where_they_are_looked_for(stepped):
    """Fields of every contact read by address are those that the bindings tell."""
    _, data = stepped
    layout, base = find_layout(), contact_address(data)
    assert data.ncon == 4
    for index in range(data.ncon):
        start = base + index * layout.contact_size
        contact = data.contact[index]
        assert ctypes.c_double.from_address(start + layout.contact["dist"]).value == contact.dist
        assert ctypes.c_int32.from_address(start + layout.contact["geom2"]).value == contact.geom2 == 1
        frame = (ctypes.c_double * 9).from_address(start + layout.contact["frame"])
        np.testing.assert_array_equal(np.array(frame), contact.frame)


def test_to_look_leaves_no_trace(stepped):
    """The marks that find numbers are taken back."""
    model, data = stepped
    before = data.ncon, data.time, model.opt.timestep
    contact_address(data)
    find_layout.cache_clear()
    find_layout()
    assert (data.ncon, data.time, model.opt.timestep) == before


def test_memory_of_data_is_what_was_asked_for():
    model = mujoco.MjModel.from_xml_string(BOX)
    set_memory(model, 3_000_000)
    assert mujoco.MjData(model).narena == 3_000_000


def test_functions_are_found():
    """All functions have addresses in the library that the bindings use; others are named in the error."""
    addresses = function_addresses()
    assert len(addresses) == len(FUNCTIONS) + 5
    assert (addresses[: len(FUNCTIONS) + 1] > 0).all()  # with the handler, in all versions admitted so far
    with pytest.raises(RuntimeError, match="has no function mj_stepTwice"):
        function_address(load_library(), "mj_stepTwice")


def test_arrays_have_addresses(stepped):
    model, data = stepped
    assert field_address(model, "body_mass") == address_of(model.body_mass)
    assert ctypes.c_double.from_address(address_of(data.qpos)).value == data.qpos[0]
