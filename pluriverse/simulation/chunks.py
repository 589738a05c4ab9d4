"""Chunks: lists of worlds that one thread steps together, small enough to stay in its cache."""

import os

import numpy as np

from pluriverse.model import Contacts, Model

# Memory that a step touches per entity [B]: the arrays of model, two states and contacts, and those of a
# solver in double precision. An estimate is enough: it only decides how many worlds share a chunk, never a
# result.
BODY_BYTES = 350
NODE_BYTES = 850
DOF_BYTES = 600
ROW_ENTRY_BYTES = 40
SHAPE_BYTES = 250
CONTACT_BYTES = 900

# Half of the cache, so that what a chunk shares with others (candidate pairs, hulls, code) fits beside it.
CACHE_SHARE = 0.5
# Second-level cache of a core [B] where the system does not tell: that of most CPUs since 2020 is at least
# this.
CACHE_BYTES_DEFAULT = 1 << 20
# Chunks per thread, where there are so many worlds. Threads take chunk after chunk, so the last one to finish
# is late by at most one chunk: an eighth of its work.
CHUNKS_PER_THREAD = 8


def cache_byte_count() -> int:
    """Return the size of the second-level cache of a core [B]."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (ValueError, OSError):
        size = 0
    return size if size > 0 else CACHE_BYTES_DEFAULT


def world_byte_counts(model: Model, contacts: Contacts) -> np.ndarray:
    """Return an estimate of the memory that a step of each world touches [B], shape [world]."""
    template_bytes = np.array(
        [
            BODY_BYTES * template.body_count
            + NODE_BYTES * template.node_count
            + DOF_BYTES * template.dof_count
            + ROW_ENTRY_BYTES * template.row_size
            + SHAPE_BYTES * template.shape_count
            for template in model.templates
        ],
        dtype=np.float64,
    )
    slot_counts = np.diff(contacts.rigid_contact_start.numpy())
    return template_bytes[model.world_template] + CONTACT_BYTES * slot_counts


def split_worlds(
    byte_counts: np.ndarray, world_template: np.ndarray, *, cache_bytes: int, thread_count: int
) -> list[np.ndarray]:
    """Split all worlds into chunks, those with the most work first.

    Worlds of one template stay together, since they run the same path through the kernels and share its
    tables.

    Args:
        byte_counts: Memory that a step of each world touches [B], shape [world]. Also taken as measure of its
            work.
        world_template: Template of each world, shape [world].
        cache_bytes: Second-level cache of a core [B].
        thread_count: Number of threads that will share the work.

    Returns:
        World indices of each chunk.
    """
    order = np.argsort(world_template, kind="stable")
    limit = CACHE_SHARE * cache_bytes
    if thread_count > 1:
        limit = min(limit, float(byte_counts.sum()) / (CHUNKS_PER_THREAD * thread_count))
    chunks: list[list[int]] = []
    filled = np.inf
    for world in order.tolist():
        if filled + byte_counts[world] > limit:
            chunks.append([])
            filled = 0.0
        chunks[-1].append(world)
        filled += byte_counts[world]
    chunks.sort(key=lambda chunk: -float(byte_counts[chunk].sum()))
    return [np.array(chunk, dtype=np.int32) for chunk in chunks]
