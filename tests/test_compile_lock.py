"""Compile lock: one of several processes compiles a module, and nobody waits for ever for it."""

import errno
import subprocess
import sys
import threading
import time

import pytest
import warp as wp

import pluriverse.launch  # noqa: F401 - which installs it
from pluriverse import compile_lock
from pluriverse.compile_lock import holding

needs_locks = pytest.mark.skipif(compile_lock.fcntl is None, reason="this system has no locks of files")

# Compiles one kernel at the same time as another process; prints how often it did, and the result.
COMPILE = """
import sys, time
from pathlib import Path
import warp as wp
wp.config.log_level = wp.LOG_WARNING
wp.config.kernel_cache_dir = sys.argv[1]
import pluriverse.launch
from warp._src import build

@wp.kernel(enable_backward=False, module="evaluation")
def double(numbers: wp.array[float]):
    thread, _ = wp.tid()
    numbers[thread] = 2.0 * numbers[thread]

def slow(*arguments, **options):
    compiled.append(1)
    time.sleep(1.0)
    return compile_source(*arguments, **options)

compiled, compile_source, build.build_cpu = [], build.build_cpu, slow
numbers = wp.array([1.5], dtype=float, device="cpu")
here, there = (Path(sys.argv[1]) / name for name in sys.argv[2:])
here.touch()
end = time.monotonic() + 300.0
while not there.exists() and time.monotonic() < end:
    time.sleep(0.01)
wp.launch(double, dim=(1, 1), inputs=[numbers], device="cpu")
print(len(compiled), numbers.numpy()[0])
"""


@needs_locks
def test_of_two_processes_that_need_a_module_at_once_one_compiles_it(tmp_path):
    """The other one waits, takes the result from the cache, and no lock is left."""
    script = tmp_path / "script.py"
    script.write_text(COMPILE)  # in a file, from which Warp reads what it translates
    processes = [
        subprocess.Popen([sys.executable, script, tmp_path, *names], stdout=subprocess.PIPE, text=True)
        for names in (("one", "two"), ("two", "one"))
    ]
    outputs = sorted(process.communicate()[0].split() for process in processes)
    assert outputs == [["0", "3.0"], ["1", "3.0"]]
    assert not list(tmp_path.rglob("*.lock"))


@needs_locks
def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path):
    """The system releases it, so that nobody waits."""
    path = tmp_path / "module.lock"
    hold = (
        "import sys, time; from pathlib import Path; from pluriverse.compile_lock import holding\n"
        "with holding(Path(sys.argv[1])): print('held', flush=True); time.sleep(600.0)"
    )
    process = subprocess.Popen([sys.executable, "-c", hold, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with holding(path, wait_limit=0.0) as is_held:
        assert not is_held
    process.kill()
    process.communicate()
    assert path.exists()
    with holding(path, wait_limit=0.0) as is_held:
        assert is_held


@needs_locks
def test_who_waits_gets_the_lock_when_it_is_free_and_goes_on_without_it_after_the_limit(tmp_path):
    """An owner that is suspended holds others up for the limit only, and its lock stays its own."""
    path, waiting, results = tmp_path / "module.lock", threading.Event(), []

    def wait(limit):
        waiting.set()
        with holding(path, wait_limit=limit) as is_held:
            results.append(is_held)

    with holding(path) as is_held:
        assert is_held
        begin = time.monotonic()
        wait(0.2)
        assert results == [False]
        assert time.monotonic() - begin >= 0.2
        assert path.exists()
        waiting.clear()
        thread = threading.Thread(target=wait, args=(60.0,))
        thread.start()
        waiting.wait()
        time.sleep(0.1)
        assert results == [False]
    thread.join()
    assert results == [False, True]
    assert not path.exists()


def test_where_nothing_can_be_locked_everybody_compiles(monkeypatch, tmp_path):
    """Without a folder, without locks in its file system or in the system, what follows is done unlocked."""
    with holding(tmp_path / "missing" / "module.lock") as is_held:
        assert not is_held

    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "no locks available")

    if compile_lock.fcntl is not None:
        monkeypatch.setattr(compile_lock.fcntl, "flock", refuse)
        with holding(tmp_path / "module.lock") as is_held:
            assert not is_held
    monkeypatch.setattr(compile_lock, "fcntl", None)
    with holding(tmp_path / "module.lock") as is_held:
        assert not is_held


def test_warp_compiles_modules_by_the_method_that_waits():
    """The method exists in this version of Warp, and was replaced."""
    assert wp._src.context.Module._compile.waits
