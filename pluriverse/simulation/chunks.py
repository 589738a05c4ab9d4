"""Chunks: lists of worlds that one thread steps together."""

from collections.abc import Sequence

import numpy as np
import warp as wp

from pluriverse.math.lanes import LANES
from pluriverse.model import Contacts, Model
from pluriverse.scratch import Borrowing, Scratch, borrow

# Memory that a step touches per entity [B]: the arrays of model, two states and contacts, and those of a
# solver in double precision. An estimate is enough: it only decides how worlds are spread over chunks, never
# a result.
BODY_BYTES = 350
NODE_BYTES = 850
DOF_BYTES = 600
ROW_ENTRY_BYTES = 40
SHAPE_BYTES = 250
CONTACT_BYTES = 900
# Contacts per body that moves by itself: those of a box at rest on another one. Capacities are for the worst
# case and say little.
CONTACTS_PER_BODY = 4
# Most and least size of a chunk [B], where there is a choice. A small one costs more, since a kernel runs
# through its code anew for each chunk. A large one leaves the caches. With chunks of 4, 8, 12, 16 and 24 MB
# by this estimate, a step takes 1, 0.98, 1.04, 1.04 and 1.02 of the time for 512 G1 (200 kB) with random
# targets, 1, 1.01, 1.02, 1.08 and 1.13 for 1024 Go1 (90 kB), 1, 0.98, 1.01, 1.03 and 1.09 for 256 hands with
# objects (170 kB), which stay. Batches of 32 fit one chunk of 8 MB, and 32 G1 take 0.95 of their time in two.
# Measured with caches of 1 MB (second level) per core and 32 MB (third); with 1 and 8 MB, 8 boxes (70 kB)
# take 25 us in chunks of 16 to 128, 28 us in one of 256.
CHUNK_BYTES_MAX = 8 << 20
CHUNK_BYTES_MIN = 400 << 10
# With two or more chunks per thread, the others take over from a thread that another program delays.
CHUNKS_PER_THREAD = 2
# Tiles of a template that each chunk must have before whole tiles are shared out to several threads, and to
# one thread as parts of a full chunk: then a chunk has at most a quarter more work than another.
TILES_MIN = 4
# Work [B times steps] that is worth another thread. Measured: 5 to 12 B in a nanosecond, 30 us to wake a
# thread.
THREAD_WORK_BYTES = 300 << 10


def world_byte_counts(model: Model, contacts: Contacts) -> np.ndarray:
    """Return an estimate of the memory that a step of each world touches [B], shape [world]."""
    # Bodies that are fixed to others take part in few stages, and the contacts of all are those of one.
    moving_counts = np.array([min(template.node_count, template.dof_count) for template in model.templates])
    template_bytes = np.array(
        [
            BODY_BYTES * template.body_count
            + NODE_BYTES * moving_count
            + DOF_BYTES * template.dof_count
            + ROW_ENTRY_BYTES * template.row_size
            + SHAPE_BYTES * template.shape_count
            for template, moving_count in zip(model.templates, moving_counts, strict=True)
        ],
        dtype=np.float64,
    )
    slot_counts = np.diff(contacts.slot_start.numpy())
    contact_counts = np.minimum(slot_counts, CONTACTS_PER_BODY * moving_counts[model.world_template])
    return template_bytes[model.world_template] + CONTACT_BYTES * contact_counts


def split_worlds(
    byte_counts: np.ndarray,
    world_template: np.ndarray,
    thread_count: int,
    chunk_share: float = 1.0,
) -> list[np.ndarray]:
    """Split all worlds into chunks; a template that fills one chunk per thread gets chunks of its own.

    A chunk has at most about `CHUNK_BYTES_MAX`, and there is at least one chunk per thread. Worlds of one
    template run the same path through the kernels: ten kinds of worlds in chunks of their own take 6 % more
    than each kind alone, in mixed chunks 13 %. Templates too small for that are mixed, so that chunks have
    the same work even where the estimate of a template's work is wrong.

    Args:
        byte_counts: Memory that a step of each world touches [B], shape [world]. Also taken as its work.
        world_template: Template of each world, shape [world].
        thread_count: Number of threads that will share the work.
        chunk_share: Part of that memory that counts for the size of a chunk.

    Returns:
        World indices of each chunk, those with the most work first.
    """
    chunk_bytes_max = CHUNK_BYTES_MAX / chunk_share
    templates, template_index = np.unique(world_template, return_inverse=True)
    totals = np.bincount(template_index.reshape(-1), weights=byte_counts, minlength=len(templates))
    alone = templates[totals >= thread_count * chunk_bytes_max]
    groups = [np.flatnonzero(world_template == template) for template in alone]
    groups.append(np.flatnonzero(~np.isin(world_template, alone)))
    chunks = [
        worlds[chunk]
        for worlds in groups
        if len(worlds)
        for chunk in _split_mix(byte_counts[worlds], world_template[worlds], thread_count, chunk_bytes_max)
    ]
    order = np.argsort([-byte_counts[chunk].sum() for chunk in chunks], kind="stable")
    return [chunks[index].astype(np.int32) for index in order]


def queue_chunks(loads: Sequence[float], queue_count: int) -> list[list[int]]:
    """Return which chunks are stepped one after another, in queues of about the same work.

    Args:
        loads: Work of each chunk, the most first.
        queue_count: Number of queues, or fewer if there are fewer chunks.
    """
    queues: list[list[int]] = [[] for _ in range(min(queue_count, len(loads)))]
    totals = np.zeros(len(queues))
    for chunk, load in enumerate(loads):
        emptiest = int(np.argmin(totals))
        queues[emptiest].append(chunk)
        totals[emptiest] += load
    return queues


def borrowings(chunks: Sequence[np.ndarray], scratches: Sequence[Scratch]) -> list[Borrowing | None]:
    """Return how each chunk of a queue borrows scratch; None where it has places of its own, which it lends.

    Args:
        chunks: Worlds of each chunk.
        scratches: All scratch of a step.
    """
    result: list[Borrowing | None] = [None] * len(chunks)
    lenders: list[np.ndarray] = []
    rooms: dict[int, wp.array] = {}
    for index in sorted(range(len(chunks)), key=lambda index: -len(chunks[index])):
        found = (borrow(chunks[index], lender, scratches, rooms) for lender in lenders)
        result[index] = next((borrowing for borrowing in found if borrowing is not None), None)
        if result[index] is None:
            lenders.append(chunks[index])
    return result


def _split_mix(
    byte_counts: np.ndarray, world_template: np.ndarray, thread_count: int, chunk_bytes_max: float
) -> list[np.ndarray]:
    """Split some worlds into chunks of about the same work and the same mix of templates.

    Inside a chunk, worlds are sorted by template, and neighbours in memory stay together, so that threads do
    not write to the same cache lines. Worlds of one template come in whole tiles of `LANES`, which some
    stages compute at once, as far as that leaves no thread without work.
    """
    world_count = len(byte_counts)
    total = float(byte_counts.sum())
    target_count = int(np.ceil(total / chunk_bytes_max))
    if thread_count > 1:
        share = CHUNKS_PER_THREAD * thread_count
        target_count = max(target_count, share if total >= share * CHUNK_BYTES_MIN else thread_count)
        target_count = (
            -(-target_count // thread_count) * thread_count
        )  # no thread stands idle while the last chunks run
    chunk_count = min(max(target_count, 1), world_count)
    parts: list[list[np.ndarray]] = [[] for _ in range(chunk_count)]
    loads = np.zeros(chunk_count)
    for template in np.unique(world_template):
        worlds = np.flatnonzero(world_template == template)
        if thread_count == 1:
            has_tiles = TILES_MIN * LANES * byte_counts[worlds[0]] <= chunk_bytes_max
        else:
            has_tiles = len(worlds) >= TILES_MIN * LANES * chunk_count
        unit = LANES if has_tiles else 1
        unit_count, rest = divmod(len(worlds), unit)
        shares = np.full(chunk_count, unit_count // chunk_count * unit)
        emptiest = np.argsort(loads, kind="stable")
        shares[emptiest[: unit_count % chunk_count]] += unit
        shares[emptiest[unit_count % chunk_count]] += rest
        for chunk, part in enumerate(np.split(worlds, np.cumsum(shares)[:-1])):
            parts[chunk].append(part)
            loads[chunk] += byte_counts[part].sum()
    chunks = [np.concatenate(chunk) for chunk in parts]
    return [chunk for chunk in chunks if len(chunk)]
