"""Check that this machine can hold the worlds of a scene, before they are made.

A few characters of a scene can request more worlds than any memory holds, and a system without memory kills
processes without a message.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Host memory [bytes] at the peak of making a model, per body, joint, shape or degree of freedom: 650 to 1000
# were measured on the bundled scenes of 13, 22 and 64 bodies with 4000 worlds.
ENTITY_BYTES = 1000
# Per world, whatever it holds: ranges, gravity, counters and statistics.
WORLD_BYTES = 1000
# Per contact slot: shapes, points, normal, force, and data of the solver.
CONTACT_BYTES = 1000
# Indices are 32-bit integers.
ENTITY_COUNT_MAX = 2**31 - 1


def check_capacity(
    builders: Sequence[Any], counts: Sequence[int], contact_counts: Sequence[int | None]
) -> None:
    """Check that so many copies of the worlds in some builders fit into memory.

    Args:
        builders: A builder per kind of world.
        counts: Number of worlds of each kind.
        contact_counts: Contact slots in a world of each kind, where the scene sets them.

    Raises:
        ValueError: They do not.
    """
    sizes = [_entity_count(builder) for builder in builders]
    entity_count = sum(size * count for size, count in zip(sizes, counts, strict=True))
    world_count = sum(counts)
    slot_count = sum((slots or 0) * count for slots, count in zip(contact_counts, counts, strict=True))
    if max(entity_count, world_count, slot_count) > ENTITY_COUNT_MAX:
        raise ValueError(
            f"{world_count:,} worlds have {entity_count:,} bodies, joints, shapes and degrees of freedom and "
            f"{slot_count:,} contact slots in all, but a model counts to {ENTITY_COUNT_MAX:,}; ask for fewer"
        )
    needed = entity_count * ENTITY_BYTES + world_count * WORLD_BYTES + slot_count * CONTACT_BYTES
    available = available_memory()
    if available is not None and needed > available:
        raise ValueError(
            f"{world_count:,} worlds of this scene need about {needed / 2**30:,.1f} GiB of memory, and "
            f"{available / 2**30:,.1f} GiB are free; ask for fewer worlds or fewer contact slots "
            "(num_worlds, count, max_rigid_contact)"
        )


def _entity_count(builder: Any) -> int:
    """Return how many bodies, joints, shapes and degrees of freedom a builder holds."""
    return int(builder.body_count + builder.joint_count + builder.shape_count + builder.joint_dof_count)


def available_memory() -> int | None:
    """Return the memory that this process could still get [bytes], or None where the system does not say."""
    limits = [_system_memory(), _container_memory()]
    return min((limit for limit in limits if limit is not None), default=None)


def _system_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _container_memory() -> int | None:
    """Return what a container (a control group of Linux) leaves."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        return max(0, limit - int((folder / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no group, or one without a limit
        return None
