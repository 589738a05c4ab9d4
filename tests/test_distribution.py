"""Workers of pytest-xdist share the tests by units, and begin with the longest."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import distribution

TESTS = Path(__file__).resolve().parent

# A suite of files of one test each and of files of several, shared out as those of the package are.
SHARED_OUT = """
from tests import distribution
def pytest_xdist_make_scheduler(config, log):
    return distribution.make_scheduler(config, log)
"""
ENDS_ITS_WORKER = "import os\ndef test_before(): pass\ndef test_ends_its_worker(): os._exit(3)\n"
TESTS_OF_A_FILE = "def test_one(): pass\n", "def test_one(): pass\ndef test_two(): pass\n"


def test_names_in_the_lists_exist():
    """A file that is renamed is renamed in the lists as well."""
    for name in (*distribution.TOGETHER, *distribution.APART, *distribution.LONGEST_FIRST):
        assert (TESTS.parent / name).exists(), name


def test_a_unit_is_a_file_and_a_room_with_ray_is_one_unit():
    names = [
        "tests/cluster/test_a.py::test",
        "tests/cluster/test_b.py::test",
        "tests/ik/test_c.py::test[a::b]",
    ]
    assert [distribution.unit_of(name) for name in names] == [
        "tests/cluster/",
        "tests/cluster/",
        "tests/ik/test_c.py",
    ]


def test_kernels_for_cuda_are_compiled_by_different_workers():
    names = [f"{distribution.APART[0]}::test[{number}]" for number in range(2)]
    assert [distribution.unit_of(name) for name in names] == names


def test_a_test_that_ends_its_worker_is_not_given_to_the_next_one():
    """The others of its file are; without that, each worker ended in turn."""
    config = SimpleNamespace(getvalue={"tx": ["popen"]}.get, option=SimpleNamespace())
    scheduler = distribution.make_scheduler(config, None)
    scheduler.assigned_work["worker"] = {"file": {"first": True, "hangs": False, "last": False}}
    assert scheduler.remove_node("worker") == "hangs"
    assert scheduler.workqueue == {"file": {"first": True, "hangs": True, "last": False}}
    assert not scheduler.assigned_work


def test_what_a_worker_that_has_just_ended_was_given_goes_to_another():
    """Its end is not noticed yet when it reports its last test and is given more, which cannot be sent."""

    class Worker:
        shutting_down = False

        def send_runtest_some(self, indices):
            raise OSError("cannot send (already closed?)")

        def shutdown(self):
            self.shutting_down = True

    config = SimpleNamespace(getvalue={"tx": ["popen"]}.get, option=SimpleNamespace())
    scheduler = distribution.make_scheduler(config, None)
    worker = Worker()
    scheduler.assigned_work[worker] = {"file": {"ends": False}}
    scheduler.workqueue["next"] = dict.fromkeys(("one", "two", "three"), False)
    scheduler.registered_collections[worker] = ["one", "two", "three"]
    scheduler._reschedule(worker)
    assert not scheduler.workqueue
    assert scheduler.remove_node(worker) == "ends"
    assert list(scheduler.workqueue) == ["file", "next"]


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_run_goes_on_to_its_end_when_a_worker_ends(tmp_path, place):
    """One test failed, all others ran: both those that nobody had yet, and those that the worker had.

    The next worker has one test to do, or none, where the last file ends its worker, and waited for more.
    """
    (tmp_path / "conftest.py").write_text(SHARED_OUT)
    names = [f"test_{letter}.py" for letter in "bcdefg"]
    for number, name in enumerate(names):
        (tmp_path / name).write_text(TESTS_OF_A_FILE[number % 2])
    (tmp_path / {"first": "test_a.py", "last": "test_z.py"}[place]).write_text(
        ENDS_ITS_WORKER + "def test_after(): pass\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(TESTS.parent)}
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", "-q", "--rootdir", tmp_path]
    process = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 1, process.stdout
    assert "1 failed, 11 passed" in process.stdout
    assert "test_ends_its_worker" in process.stdout


def test_long_files_come_first():
    names = ["tests/ik/test_c.py::test", "tests/viewer/test_a.py::test", "tests/cluster/test_a.py::test"]
    assert sorted(names, key=distribution.rank_of) == names[::-1]


@pytest.mark.parametrize(("memory", "count"), [(8e9, 2), (16e9, 3)])
def test_there_is_a_worker_more_than_cores_where_memory_allows_it(monkeypatch, memory, count):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": memory / 4096, "SC_PAGE_SIZE": 4096}.get)
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    assert distribution.worker_count() == count


def test_there_are_as_many_workers_as_are_asked_for(monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "5")
    assert distribution.worker_count() == 5
