"""Distribution: which worker of pytest-xdist runs which tests, and in which order.

A worker takes a whole file, so that it makes the fixtures of the file once and keeps what it has loaded. One
worker takes all tests that need Ray, which is started once then. Long files come first: whoever begins one
when the others have nothing left keeps a core idle meanwhile.
"""

import os
from contextlib import suppress
from typing import Any

import pytest

# A cluster of Ray costs as much to start as the tests that use it.
TOGETHER = ("tests/cluster/",)
# Each test takes tens of seconds by itself, and they share nothing.
APART = ("tests/test_cuda_compilation.py",)
# By processor time, with that of the processes that a test starts. Files not listed take less than 15 s.
LONGEST_FIRST = (
    "tests/cluster/",
    "tests/test_cuda_compilation.py",
    "tests/test_api_reference.py",
    "tests/cli/test_examples.py",
    "tests/collision/surface/test_mesh.py",
    "tests/test_benchmarks.py",
    "tests/physics/test_loop_joints.py",
    "tests/scene/test_fuzz.py",
    "tests/campaign/",
    "tests/drake/test_hydroelastic.py",
    "tests/collision/surface/test_height_field_walls.py",
    "tests/solvers/mujoco/mapping/",
    "tests/collision/test_distances.py",
    "tests/envs/test_environment.py",
    "tests/test_docs.py",
    "tests/solvers/test_first_step_recorded.py",
    "tests/test_architecture.py",
    "tests/scene/test_docs.py",
    "tests/builder/test_loop_joints.py",
    "tests/viewer/",
)
# Bytes. Workers had grown to 1.8e9 within the first third of a run; Ray and browsers take some besides.
WORKER_MEMORY = 3.0e9


def unit_of(name: str) -> str:
    """Return the name of what is given to one worker as a whole, for the full name of a test."""
    if name.startswith(APART):
        return name
    return next((room for room in TOGETHER if name.startswith(room)), name.split("::")[0])


def rank_of(name: str) -> int:
    """Return the place of a test among those that begin early; all others come after these."""
    return next(
        (rank for rank, start in enumerate(LONGEST_FIRST) if name.startswith(start)), len(LONGEST_FIRST)
    )


def worker_count() -> int:
    """Return one worker more than there are cores, since tests wait for processes, browsers and threads.

    It is left out where memory is short.
    """
    asked = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", "")
    if asked.isdecimal():
        return int(asked)
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return cores + 1 if memory >= (cores + 1) * WORKER_MEMORY else cores


def make_scheduler(config: pytest.Config, log: object) -> object:
    """Return a scheduler of pytest-xdist that gives units to workers in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class UnitScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

        def remove_node(self, node: Any) -> str | None:
            """Return the test during which a worker ended. The next worker gets those of its units after it.

            It would get this test, too, and end as well, and so would the next one.
            """
            units = self.assigned_work[node].values()
            ended = next(((unit, name) for unit in units for name, done in unit.items() if not done), None)
            if ended is None:
                return super().remove_node(node)
            unit, name = ended
            unit[name] = True
            super().remove_node(node)
            return name

        def _assign_work_unit(self, node: Any) -> None:
            """Give a unit to a worker, which may have ended: then the unit comes back with its others.

            The run ended in an error of its own where a worker ended while it was given something.
            """
            with suppress(OSError):
                super()._assign_work_unit(node)

        def _reschedule(self, node: Any) -> None:
            """Give a worker what it needs to go on: it begins a test once it knows the next, or that none is.

            The worker that replaces one that ended may get units of a test or of none, and waited for ever.
            """
            while not node.shutting_down and (
                not self.workqueue or self._pending_of(self.assigned_work[node]) <= 2
            ):
                super()._reschedule(node)

    config.option.loadscopereorder = False  # or units of many tests came first, however short these are
    return UnitScheduling(config, log)
