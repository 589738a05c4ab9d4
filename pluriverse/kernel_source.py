"""Kernel source: what Warp hands to the compiler for a CPU, changed so that it is compiled in less time.

A compiler simplifies a function before it copies it into the one that calls it, and simplifies the result
again. Most functions of a kernel are called from one place, up to the loop over threads, so most of a kernel
would be simplified at each level of calls. Such functions are marked to be copied before anything else is
done. What they compute stays the same to the bit: operations are fused within one expression only, which the
compiler settles before it looks at calls.

Besides, the compiler is told to leave out what takes long and gains nothing here.
"""

import contextlib
import functools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import warp as wp

from pluriverse.precompiled_headers import seal_headers

# Warp puts this at the top of sources that do without a type of numbers whose operators take a third of the
# time for its headers. Given to the compiler as an argument, it holds for the precompiled headers, too.
WITHOUT_BFLOAT16 = "#define WP_NO_BFLOAT16\n"
# The names of folders and files of modules of this package begin so.
OWN = "wp_pluriverse."
# What the compiler leaves out for modules of this package, where it takes long and makes no step faster: the
# search for cheaper indices in loops, copies of the bodies of loops whose count is unknown (a native snippet
# may ask for them), names of values, and checks of the compiler itself. LLVM's options hold for the whole
# process while modules of this package are compiled; Warp resets them then, and kernels of others wait.
# Templates that Warp's headers use are instantiated where these are precompiled, not again in each module.
FLAGS = (
    "-mllvm=-disable-lsr -mllvm=-unroll-runtime=false -discard-value-names -disable-llvm-verifier "
    "-fpch-instantiate-templates"
)
# The function that computes one thread of a kernel, and functions of kernels without a hint about copies.
_KERNEL = re.compile(r"^static (?=void \w+_cpu_kernel_forward\()", re.MULTILINE)
_FUNCTION = re.compile(r"^static (?!CUDA_CALLABLE |WP_|void adj_)(?:[^\n(]+ )?(\w+)\($", re.MULTILINE)
_CALL = re.compile(r"\b(\w+)\(")
# Functions of structs for derivatives, which nobody calls: not even compiled where they are `inline`.
_OF_STRUCT = re.compile(r"^(?=CUDA_CALLABLE (?:\w+ add|void adj_atomic_add)\()", re.MULTILINE)


def simplify_source(source: str) -> str:
    """Return the source of a module of kernels so that it is compiled in less time, to the same results."""
    source = _OF_STRUCT.sub("inline ", source)
    source = _KERNEL.sub("static WP_FORCEINLINE ", source)
    calls = Counter(_CALL.findall(source))

    def mark(match: re.Match[str]) -> str:
        text = match.group()
        if calls[match[1]] != 2:  # once where it is defined
            return text
        return text.replace("static ", "static WP_FORCEINLINE ", 1)

    return _FUNCTION.sub(mark, source)


def install() -> None:
    """Have Warp compile modules of this package from simplified sources, from now on."""
    build = getattr(getattr(wp, "_src", None), "build", None)
    compile_source = getattr(build, "build_cpu", None)
    if build is None or compile_source is None or hasattr(compile_source, "simplifies"):
        return  # Warp compiles in another way, or this was done before

    def compile_sealed(*arguments: Any, **options: Any) -> Any:
        result = compile_source(*arguments, **options)
        seal_headers(options.get("pch_dir"))
        return result

    @functools.wraps(compile_source)
    def build_cpu(obj_path: Any, cpp_path: Any, *arguments: Any, **options: Any) -> Any:
        path = Path(cpp_path)
        source = path.read_text(encoding="utf-8")
        if source.startswith(WITHOUT_BFLOAT16):
            options["extra_flags"] = f"{options.get('extra_flags', '')} -DWP_NO_BFLOAT16="
        if path.name.startswith(OWN):
            path.write_text(simplify_source(source), encoding="utf-8")
            flags = f"{options.get('extra_flags', '')} {FLAGS}"
            # A compiler that does not know one of the flags, or is given it twice, has to do without.
            with contextlib.suppress(Exception):
                return compile_sealed(obj_path, cpp_path, *arguments, **options | {"extra_flags": flags})
        return compile_sealed(obj_path, cpp_path, *arguments, **options)

    build_cpu.simplifies = True  # type: ignore[attr-defined]
    build.build_cpu = build_cpu
