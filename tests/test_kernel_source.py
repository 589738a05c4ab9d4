"""Kernel sources: functions that are called once are copied before they are simplified, to equal results."""

import platform
import re

import numpy as np
import pytest
import warp as wp

from pluriverse.kernel_source import FLAGS, OWN, install, simplify_source

SOURCE = """#define WP_NO_BFLOAT16
CUDA_CALLABLE Pair add(const Pair& a, const Pair& b)
CUDA_CALLABLE void adj_atomic_add(Pair* p, Pair t)
static CUDA_CALLABLE wp::int32 native_0(
static WP_NOINLINE wp::int32 large_0(
    native_0(x);
static wp::vec_t<3, wp::float32> once_0(
    large_0(x);
static void twice_0(
static void adj_once_0(
template <bool wp_linear_contiguous>
static void step_1a2b_cpu_kernel_forward(
    once_0(x); twice_0(x); twice_0(y); another_once_0(z);
"""


def test_only_functions_that_are_called_once_and_have_no_hint_are_copied_first():
    """Native functions, those with a hint, those of derivatives and those called twice stay as they are."""
    expected = SOURCE
    for before, after in (
        ("CUDA_CALLABLE Pair", "inline CUDA_CALLABLE Pair"),
        ("CUDA_CALLABLE void adj", "inline CUDA_CALLABLE void adj"),
        ("static wp::vec_t", "static WP_FORCEINLINE wp::vec_t"),
        ("static void step", "static WP_FORCEINLINE void step"),
    ):
        assert expected.count(before) == 1
        expected = expected.replace(before, after)
    assert simplify_source(SOURCE) == expected


@wp.func
def fuse(a: float, b: float, c: float) -> float:
    return a * b + c * c


@wp.func
def chain(a: float, b: float, c: float) -> float:
    return a * fuse(a, b, c) + wp.sin(b) * c


def make_kernel(module: str):
    @wp.kernel(enable_backward=False, module=module)
    def evaluate(numbers: wp.array2d[float], result: wp.array[float]):
        thread, _ = wp.tid()
        result[thread] = chain(numbers[thread, 0], numbers[thread, 1], numbers[thread, 2])

    return evaluate


def test_warp_compiles_modules_of_this_package_from_changed_sources_to_equal_bits(monkeypatch, tmp_path):
    """The text that Warp makes has what is looked for, and results are those of the text as it was."""
    install()
    wp.init()  # which sets the folder
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    rng = np.random.default_rng(5)
    numbers = wp.array(rng.normal(size=(1000, 3)), dtype=float, device="cpu")
    results = []
    for module in ("pluriverse.evaluation", "others.evaluation"):
        result = wp.full(1000, np.nan, dtype=float, device="cpu")
        wp.launch(make_kernel(module), dim=(1000, 1), inputs=[numbers, result], device="cpu")
        results.append(result.numpy())
    np.testing.assert_array_equal(*results)
    ours, others = (
        next(tmp_path.glob(f"wp_{name}.evaluation_*/*.cpp")).read_text() for name in ("pluriverse", "others")
    )
    assert simplify_source(others) != others
    for name in (r"void \w+_cpu_kernel_forward", r"wp::float32 fuse_0", r"wp::float32 chain_0"):
        assert re.search(rf"^static {name}\(", others, flags=re.MULTILINE)
        assert re.search(rf"^static WP_FORCEINLINE {name}\(", ours, flags=re.MULTILINE)
    assert others.startswith("#define WP_NO_BFLOAT16\n")


def test_flags_are_for_modules_of_this_package_and_for_compilers_that_know_them(monkeypatch, tmp_path):
    """Where compiling fails, it is tried once more without them."""
    calls = []

    def build_cpu(obj_path, cpp_path, extra_flags=""):
        calls.append(extra_flags)
        if unknown[0] in extra_flags:
            raise RuntimeError("unknown flag")

    monkeypatch.setattr(wp._src.build, "build_cpu", build_cpu)
    install()
    ours, others = (tmp_path / f"{name}step_1a2b.cpp" for name in (OWN, "wp_others."))
    for path in (ours, others):
        path.write_text(SOURCE)
    plain = "-march=native -DWP_NO_BFLOAT16="
    unknown = [""]
    for unknown[0], expected in (
        ("-unknown", [f"{plain} {FLAGS}", plain]),
        (FLAGS, [f"{plain} {FLAGS}", plain, plain]),
    ):
        calls.clear()
        for path in (ours, others):
            wp._src.build.build_cpu("", path, extra_flags="-march=native")
        assert calls == expected


def test_headers_are_sealed_when_a_module_has_been_compiled(monkeypatch, tmp_path):
    """Otherwise the next process would not trust them, and precompile them again."""

    def build_cpu(obj_path, cpp_path, pch_dir=None, extra_flags=""):
        (tmp_path / "builtin_1.pch").write_text("headers")
        if fails:
            raise RuntimeError("damaged headers")

    monkeypatch.setattr(wp._src.build, "build_cpu", build_cpu)
    install()
    source = tmp_path / f"{OWN}step_1a2b.cpp"
    source.write_text(SOURCE)
    seal = tmp_path / "builtin_1.pch.sha256"
    fails = True
    with pytest.raises(RuntimeError):
        wp._src.build.build_cpu("", source, pch_dir=str(tmp_path))
    assert not seal.exists()
    fails = False
    wp._src.build.build_cpu("", source, pch_dir=str(tmp_path))
    assert seal.exists()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the target is one of x86")
def test_flags_do_not_outlast_the_modules_of_this_package(tmp_path):
    """Kernels of others become the same code before and after, with copies of the bodies of their loops."""
    install()
    wp.init()  # which loads the compiler
    text = """extern "C" float sum(const float* x, int n)
{
    float s = 0.0f;
    for (int i = 0; i < n; ++i)
        s = x[i] * s + 1.0f;
    return s;
}
"""
    codes = []
    for name in ("wp_others.", OWN, "wp_others."):
        source, code = tmp_path / f"{name}sum_1a2b.cpp", tmp_path / "sum.o"
        source.write_text(text)
        wp._src.build.build_cpu(str(code), str(source), extra_flags="-target-cpu x86-64-v3")
        codes.append(code.read_bytes())
    assert codes[0] == codes[2]
    assert len(codes[1]) < len(codes[0])
