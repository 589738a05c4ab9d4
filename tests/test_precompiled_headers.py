"""Precompiled headers: threads that compile share them, and processes, too, where they can be kept."""

import shutil
import types
from pathlib import Path

import warp as wp

from pluriverse import precompiled_headers
from pluriverse.precompiled_headers import seal_headers, share_headers


def folder(path, *files):
    path.mkdir()
    for file in files:
        (path / file).touch()
    return types.SimpleNamespace(name=str(path))


def test_threads_share_the_folder_that_has_headers(monkeypatch, tmp_path):
    """Where none are kept, threads get the first folder with headers, as Warp asks for it."""
    folders = {1: folder(tmp_path / "empty"), 2: folder(tmp_path / "filled", "builtin.pch")}
    runtime = types.SimpleNamespace(_pch_dirs=folders)
    source = types.SimpleNamespace(context=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(precompiled_headers.wp, "_src", source)
    share_headers()
    shared = runtime._pch_dirs
    assert shared[1] is folders[1]
    assert shared[2] is folders[2]
    assert 3 in shared
    assert shared[3] is folders[2]
    share_headers()
    assert runtime._pch_dirs is shared


def test_headers_are_kept_for_later_processes(monkeypatch, tmp_path):
    """Whoever compiles finds them in the kernel cache, under a name of their own for each processor."""
    wp.init()
    context = wp._src.context
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    names = []
    for processor in ("one", "another", "one"):
        monkeypatch.setattr(context.runtime, "_pch_dirs", {})
        monkeypatch.setattr(context, "_get_host_cpu_name", lambda processor=processor: processor)
        share_headers()
        assert context.runtime.get_clang_pch_dir() == context.runtime._pch_dirs[1].name
        names.append(context.runtime._pch_dirs[1].name)
    assert names[0] == names[2] != names[1]
    assert sorted(str(path) for path in tmp_path.iterdir()) == sorted(set(names))
    shutil.rmtree(tmp_path)  # a cache that was cleared meanwhile
    assert Path(context.runtime.get_clang_pch_dir()).is_dir()


def test_headers_that_were_damaged_are_made_anew(monkeypatch, tmp_path):
    """The first compile of a process removes what has no checksum or another one, and later ones nothing."""
    wp.init()
    runtime = wp._src.context.runtime
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(runtime, "_pch_dirs", {})
    share_headers()
    kept = Path(runtime.get_clang_pch_dir())
    names = ("builtin_whole.pch", "builtin_zeros.pch", "builtin_short.pch")
    for name in names:
        (kept / name).write_bytes(bytes(range(256)))
    seal_headers(kept)
    (kept / names[1]).write_bytes(bytes(256))
    (kept / names[2]).write_bytes(bytes(range(100)))
    (kept / "builtin_unsealed.pch").write_bytes(bytes(range(256)))
    (kept / "of_another_compiler.pch").write_bytes(bytes(256))
    monkeypatch.setattr(runtime, "_pch_dirs", {})
    share_headers()  # another process
    assert runtime.get_clang_pch_dir() == str(kept)
    left = {"builtin_whole.pch", "builtin_whole.pch.sha256", "of_another_compiler.pch"}
    assert {path.name for path in kept.iterdir()} == left
    (kept / names[1]).write_bytes(bytes(range(256)))  # which a thread has made and not yet sealed
    assert runtime.get_clang_pch_dir() == str(kept)
    assert {path.name for path in kept.iterdir()} == {*left, names[1]}


def test_headers_are_not_kept_without_a_cache(monkeypatch, tmp_path):
    """Nothing is written where kernels are not kept, or where Warp does not tell what headers depend on."""
    wp.init()
    context = wp._src.context
    for switch, value in ((wp.config, False), (context, None)):
        with monkeypatch.context() as patch:
            patch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
            patch.setattr(switch, "cache_kernels" if switch is wp.config else "_get_host_cpu_name", value)
            patch.setattr(context.runtime, "_pch_dirs", {})
            share_headers()
            assert context.runtime._pch_dirs == {}
    assert list(tmp_path.iterdir()) == []


def test_warp_keeps_headers_by_thread():
    """The attribute of Warp exists: otherwise nothing is shared, and each thread takes two seconds more."""
    wp.init()
    assert isinstance(wp._src.context.runtime._pch_dirs, dict)
