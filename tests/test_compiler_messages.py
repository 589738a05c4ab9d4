"""Compiler messages: tests fail where a kernel of the package is compiled with a warning."""

from types import SimpleNamespace

import pytest
import warp as wp

import pluriverse.launch  # noqa: F401 - which lets Warp compile as the package does
from tests.conftest import complaints_about_kernels, pytest_runtest_makereport


@wp.func_native("return b & c == 0 ? a : b;")
def doubtful(a: int, b: int, c: int) -> int: ...


@wp.func_native("return ((b & c) == 0) ? a : b;")
def plain(a: int, b: int, c: int) -> int: ...


def compile_kernel(function, name, folder, monkeypatch):
    """Compile a kernel that calls a function, in a module of the package that no cache has."""

    @wp.kernel(enable_backward=False, module=f"pluriverse.{name}")
    def evaluate(values: wp.array[int]):
        thread, _ = wp.tid()
        values[thread] = function(values[thread], 2, 3)

    wp.init()  # which sets the folder
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(folder))
    wp.launch(evaluate, dim=(1, 1), inputs=[wp.zeros(1, dtype=int, device="cpu")], device="cpu")


def test_a_warning_of_the_compiler_is_found_in_what_a_test_writes(capfd, monkeypatch, tmp_path):
    """Two operators in doubtful order are found; the same with parentheses is no complaint."""
    compile_kernel(plain, "plain", tmp_path, monkeypatch)
    assert complaints_about_kernels(capfd.readouterr().err) == []
    compile_kernel(doubtful, "doubtful", tmp_path, monkeypatch)
    complaints = complaints_about_kernels(capfd.readouterr().err)
    assert any("wp_pluriverse.doubtful" in line and "warning" in line for line in complaints)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Pluriverse compiled 3 modules in 2 s.", "passed"),
        ("/cache/wp_pluriverse.doubtful_0/wp_pluriverse.doubtful_0.cpp:1:2: warning: precedence", "failed"),
        ("2 warnings generated.", "failed"),
        ("/cache/wp_others_0/wp_others_0.cpp:1:2: warning: precedence", "passed"),
    ],
)
def test_a_test_during_which_the_compiler_complained_fails(text, outcome):
    """What is said about kernels of others, or by the bar, is no failure."""
    hook = pytest_runtest_makereport()
    next(hook)
    with pytest.raises(StopIteration) as end:
        hook.send(SimpleNamespace(when="call", outcome="passed", capstderr=text, longrepr=None))
    assert end.value.value.outcome == outcome
