"""Precompiled headers: threads that compile use those of the first one."""

import types

from pluriverse import precompiled_headers
from pluriverse.precompiled_headers import share_headers


def folder(path, *files):
    path.mkdir()
    for file in files:
        (path / file).touch()
    return types.SimpleNamespace(name=str(path))


def test_threads_share_the_folder_that_has_headers(monkeypatch, tmp_path):
    """Threads without a folder get the first one with headers, in the way in which Warp asks for it."""
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


def test_warp_keeps_headers_by_thread():
    """The attribute of Warp exists: otherwise nothing is shared, and each thread takes two seconds more."""
    import warp as wp

    wp.init()
    assert isinstance(wp._src.context.runtime._pch_dirs, dict)
