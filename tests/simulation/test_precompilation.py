"""Precompilation: what all simulations need is compiled beside the reading of a scene."""

import threading

import warp as wp

from pluriverse.simulation import precompilation


def begin(monkeypatch, cache):
    """Return which modules are loaded in the background, and by which threads."""
    loaded, threads = [], set()

    def load(name, device):
        loaded.append(wp.get_module(name))
        threads.add(threading.current_thread())

    monkeypatch.setattr(precompilation, "_has_begun", False)
    monkeypatch.setattr(precompilation, "load_kernels_of", load)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(cache))
    monkeypatch.setattr(precompilation.os, "cpu_count", lambda: 2)
    precompilation.begin_precompiling(wp.get_device("cpu"))
    precompilation.begin_precompiling(wp.get_device("cpu"))
    for thread in threading.enumerate():
        if thread.name.startswith("pluriverse precompilation"):
            thread.join()
    return loaded, threads


def test_modules_with_kernels_are_compiled_once_beside_the_main_thread(monkeypatch, tmp_path):
    """With an empty cache every module of the list is loaded, by another thread, and has kernels."""
    loaded, threads = begin(monkeypatch, tmp_path)
    assert len(loaded) == len(precompilation._NEEDED)
    assert all(module.kernels for module in loaded)
    assert len(threads) == 1
    assert threading.main_thread() not in threads


def test_nothing_is_compiled_beside_a_filled_cache(monkeypatch, tmp_path):
    """Where the first of the modules is in the cache there is nothing to gain."""
    name = wp.get_module("pluriverse.launch_list").get_module_identifier(block_dim=1)
    (tmp_path / name).mkdir()
    assert begin(monkeypatch, tmp_path) == ([], set())
