"""Scratch: whose places a chunk borrows, and which addresses that changes."""

import ctypes
import mmap

import numpy as np
import pytest
import warp as wp

from pluriverse.launch import load_kernels_of, record
from pluriverse.launch_list import array_offsets
from pluriverse.scratch import ON_DEMAND_MIN, Borrowing, Scratch, borrow, zeros_on_demand
from pluriverse.simulation.statistics import add_to_count, count_steps


@wp.struct
class Numbers:
    scale: float
    values: wp.array[float]


@wp.struct
class Nested:
    flag: bool
    numbers: Numbers
    others: wp.array[float]


def test_launches_that_borrow_write_to_the_places_of_others():
    """A recorded launch finds an array elsewhere; the array that it was recorded with stays as it is."""
    counts = wp.zeros(6, dtype=wp.int64, device="cpu")
    places = Scratch(counts, np.arange(6), np.ones(6, dtype=int))
    borrowing = borrow(np.array([4, 5]), np.array([1, 2]), [places], {})
    load_kernels_of(add_to_count.module.name, "cpu")
    load_kernels_of("pluriverse.launch_list", "cpu")
    graph = record(wp.get_device("cpu"), lambda: count_steps(counts[4:], 7), borrowing=borrowing)
    wp.capture_launch(graph)
    assert counts.numpy().tolist() == [0, 7, 0, 0, 0, 0]


def test_arrays_are_found_in_structures_of_structures():
    """The addresses of all arrays, and nothing else, are where they are looked for."""
    nested = Nested()
    nested.flag, nested.numbers.scale = True, 2.0
    nested.numbers.values, nested.others = (wp.zeros(3, dtype=float, device="cpu") for _ in range(2))
    struct = nested.__ctype__()
    found = [ctypes.c_uint64.from_buffer(struct, offset).value for offset in array_offsets(type(struct))]
    assert found == [nested.numbers.values.ptr, nested.others.ptr]


def test_only_addresses_inside_of_moved_arrays_change():
    """The first and the last byte of an array move with it; what is between two arrays does not."""
    borrowing = Borrowing([(1000, 1100, -64), (5000, 5010, 8)])
    addresses = np.array([0, 999, 1000, 1099, 1100, 4999, 5000, 5009, 5010, 2**62])
    expected = addresses + np.array([0, 0, -64, -64, 0, 0, 8, 8, 0, 0])
    assert borrowing.move(addresses).tolist() == expected.tolist()
    assert Borrowing().move(addresses).tolist() == addresses.tolist()


@pytest.mark.parametrize(
    ("borrower", "lender", "fits"),
    [
        ([2, 3], [0, 1], True),
        ([2], [0, 1], True),
        ([0, 1, 2], [3, 4], False),  # one world more
        ([4, 5], [0, 1], False),  # the first place is too small
        ([3, 4], [0, 1], False),  # the second place is too small
        ([0, 2], [1, 3], True),  # as far apart
        ([0, 1], [0, 2], False),  # another distance
    ],
)
def test_chunk_borrows_only_where_every_world_finds_room(borrower, lender, fits):
    """Worlds 4 and 5 have three entries, the others two."""
    count = np.array([2, 2, 2, 2, 3, 3])
    first = np.cumsum(count) - count
    array = wp.zeros(14, dtype=wp.float64, device="cpu")
    borrowing = borrow(np.array(borrower), np.array(lender), [Scratch(array, first, count)], {})
    assert (borrowing is not None) == fits
    if borrowing is not None:
        addresses = array.ptr + 8 * first[borrower]
        assert (borrowing.move(addresses) == array.ptr + 8 * first[lender[: len(borrower)]]).all()


def test_entries_of_no_world_come_to_lie_where_no_chunk_is_at_work():
    """Entry 0 and the last one are of no world. Who borrows finds them in the room of the queue."""
    first, count = np.array([1, 3, 5, 7]), np.full(4, 2)
    array = wp.zeros(10, dtype=wp.float64, device="cpu")
    scratch = Scratch(array, first, count, has_common_entries=True)
    entries = array.ptr + 8 * np.arange(array.size)
    moved = {}
    for queue in ([0, 2, 3], [1, 3, 2]):
        lender, rooms = np.array(queue[:1]), {}
        for world in queue[1:]:
            borrowing = borrow(np.array([world]), lender, [scratch], rooms)
            found = moved[queue[0], world] = borrowing.move(entries)
            (room,) = rooms.values()
            assert room.ptr <= found[0]
            assert found[-1] < room.ptr + 8 * room.size
            assert (np.diff(found) == 8).all()
    # Chunks of a queue share places; what is of no world is elsewhere for each of them.
    assert (moved[0, 2][[5, 6]] == moved[0, 3][[7, 8]]).all()
    assert not np.isin(moved[0, 2][[0, 9]], moved[0, 3][[7, 8]]).any()
    assert not np.isin([moved[0, 2], moved[0, 3]], [moved[1, 2], moved[1, 3]]).any()


def test_memory_on_demand_is_zero_and_can_be_written():
    """A large array is one of zeros, on pages of its own; a small one and an empty one are, too."""
    for size in (0, 3, ON_DEMAND_MIN):
        array = zeros_on_demand(size, wp.vec3d, "cpu")
        assert array.shape == (size,)
        assert not array.numpy().any()
        array.fill_(wp.vec3d(1.0, 2.0, 3.0))
        assert (array.numpy() == [1.0, 2.0, 3.0]).all()
    assert array.ptr % mmap.PAGESIZE == 0
