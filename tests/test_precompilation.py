"""Precompilation: what all simulations need is compiled beside the reading of a scene."""

import subprocess
import sys
import threading
import time

import pytest
import warp as wp

from pluriverse import precompilation
from pluriverse.launch import RECORDING, load_kernels_of

EARLY_COUNT = 1 + len(precompilation._NEEDED)


@pytest.fixture(autouse=True)
def _alone():
    """Let the thread end that another test has begun with an empty cache: it would load by what is put in."""
    if precompilation._thread is not None:
        precompilation.go_on_precompiling()
        precompilation._thread.join()


def begin(monkeypatch, cache, early_count=EARLY_COUNT, *, is_importing=False):
    """Return which modules are loaded in the background before and after a step, and by which threads."""
    device = wp.get_device("cpu")  # which sets the folder of the cache, before it is replaced here
    early, late, threads = [], [], set()
    stepped = threading.Event()

    def load(name, device):
        (late if stepped.is_set() else early).append(wp.get_module(name))
        threads.add(threading.current_thread())

    monkeypatch.setattr(precompilation, "_has_begun", False)
    monkeypatch.setattr(precompilation, "_thread", None)
    monkeypatch.setattr(precompilation, "_has_imported", threading.Event())
    monkeypatch.setattr(precompilation, "_has_stepped", stepped)
    monkeypatch.setattr(precompilation, "load_kernels_of", load)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(cache))
    monkeypatch.setattr(precompilation.os, "cpu_count", lambda: 2)
    if is_importing:
        precompilation.begin_precompiling(device, is_importing=True)
        time.sleep(4 * precompilation.WAIT_TIME)
        assert [module.name for module in early] == ["pluriverse.launch_list"][:early_count]
    precompilation.begin_precompiling(device)
    precompilation.begin_precompiling(device)
    deadline = time.monotonic() + 300.0
    while precompilation._thread and len(early) < early_count and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(4 * precompilation.WAIT_TIME)  # in which nothing more is to come
    announced = precompilation.modules_compiled_later()
    precompilation.go_on_precompiling()
    for thread in threading.enumerate():
        if thread.name.startswith("pluriverse precompilation"):
            thread.join()
    assert [module.name for module in late] == announced
    return early, late, threads


@pytest.mark.parametrize("is_importing", [False, True])
def test_modules_with_kernels_are_compiled_once_beside_the_main_thread(monkeypatch, tmp_path, is_importing):
    """With an empty cache every module of both lists is loaded, by another thread, and has kernels.

    Those of the second list, which no step needs, come when a step was made. Where the main thread has still
    to import the package, the thread has loaded only the module that needs no other of it.
    """
    early, late, threads = begin(monkeypatch, tmp_path, is_importing=is_importing)
    assert len(early) == EARLY_COUNT
    assert len(late) == len(precompilation._NEEDED_LATER)
    assert all(module.kernels for module in early + late)
    assert len(threads) == 1
    assert threading.main_thread() not in threads


def fill(cache):
    """Put the first of the modules into a cache."""
    name = wp.get_module("pluriverse.launch_list").get_module_identifier(block_dim=1)
    (cache / name).mkdir()


def test_nothing_is_compiled_beside_a_filled_cache(monkeypatch, tmp_path):
    """Where the cache has the first of the modules and all of those for later there is nothing to gain."""
    fill(tmp_path)
    for name in precompilation._NEEDED_LATER:
        (tmp_path / f"wp_pluriverse.{name}_0123456").mkdir()
    assert begin(monkeypatch, tmp_path) == ([], [], set())


def test_the_start_after_one_that_ended_early_does_not_wait_for_what_comes_later(monkeypatch, tmp_path):
    """A cache that lacks a module of the second list gets these after the first step, by another thread."""
    fill(tmp_path)
    for name in precompilation._NEEDED_LATER[1:]:
        (tmp_path / f"wp_pluriverse.{name}_0123456").mkdir()
    early, late, threads = begin(monkeypatch, tmp_path, early_count=0)
    assert early == []
    assert len(late) == len(precompilation._NEEDED_LATER)
    assert threading.main_thread() not in threads


def test_kernels_can_be_launched_while_others_are_compiled(monkeypatch):
    """Who compiles beside the main thread holds the lock of launches no sooner than to load."""
    module_type = type(wp.get_module("pluriverse.launch_list"))
    compile_module = module_type._compile
    is_free = []

    def take():
        if not RECORDING.acquire(blocking=False):
            return False
        RECORDING.release()
        return True

    def compile_beside(self, *arguments, **options):
        launcher = threading.Thread(target=lambda: is_free.append(take()))
        launcher.start()
        launcher.join()
        return compile_module(self, *arguments, **options)

    monkeypatch.setattr(module_type, "_compile", compile_beside)
    load_kernels_of("pluriverse.launch_list", "cpu")
    assert is_free[0]


def test_the_command_begins_before_it_imports_scenes():
    """`pluriverse run` asks for the compiler before it imports scenes and solvers, and again then."""
    code = (
        "import sys, pluriverse.precompilation as p\n"
        "begun = []\n"
        "def begin(device, *, is_importing=False):\n"
        "    begun.append((is_importing, 'pluriverse.scene' in sys.modules))\n"
        "p.begin_precompiling = begin\n"
        "from pluriverse.cli import main\n"
        "sys.argv = ['pluriverse', 'run', 'cartpole', '--frames', '1']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(begun)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[(True, False), (False, True)]"
