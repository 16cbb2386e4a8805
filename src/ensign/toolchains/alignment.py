"""Alignment of functions and loops: flags of compilers, LTO links and BOLT. Pure.

Functions begin at a cache line, loops at the 32 bytes that processors fetch or keep decoded at
once, so that where code lies changes less of how fast it is. Compilers align the loops that they
expect to be hot. On x86-64 Clang keeps branches away from such boundaries, too: processors with
Intel's JCC erratum (Skylake to Comet Lake) do not keep those that touch one decoded.
"""

from __future__ import annotations

from ensign.model.variants import Variant
from ensign.toolchains.table import Family, Flags, Kind

FUNCTION_BYTES = 64
_LOOP_BYTES = 32
_FUNCTIONS = f"-falign-functions={FUNCTION_BYTES}"
_LOOPS = f"-falign-loops={_LOOP_BYTES}"
_JUMPS = f"-falign-jumps={_LOOP_BYTES}"
_BRANCHES = "-mbranches-within-32B-boundaries"
# LLVM's intermediate code keeps the alignment of functions alone. LLD and the linkers that have
# LLVM's plugin all know this spelling.
_LOOPS_AT_LTO_LINK = f"-Wl,-plugin-opt=-align-loops={_LOOP_BYTES}"
_RUST_FUNCTIONS = f"-Cllvm-args=-align-all-functions={FUNCTION_BYTES.bit_length() - 1}"
_RUST_LOOPS = f"-Cllvm-args=-align-loops={_LOOP_BYTES}"
# BOLT's compact way spends at most half a line, so that some functions stay where they come.
_BOLT_FUNCTIONS = (
    f"-align-functions={FUNCTION_BYTES}",
    f"-align-functions-max-bytes={FUNCTION_BYTES}",
    "-use-compact-aligner=0",
)
_BOLT_LOOPS = "-preserve-blocks-alignment"
_BOLT_BRANCHES = "-x86-branches-within-32B-boundaries"
_CLANG_WITH_LOOPS = 13
# Levels at which loops stay where they are, and those at which GCC aligns nothing at all.
_NO_LOOPS = {
    Family.GCC: ("-O0",),
    Family.CLANG: ("-O0", "-Os", "-Oz"),
    Family.RUST: ("-O0", "-Os", "-Oz"),
}
_SMALL = ("-Os", "-Oz")


def alignment_flags(kind: Kind, alignment: str, *, lto: bool = False) -> Flags:
    """Flags for compilers of C, at the link as well: with LTO code is generated there."""
    if alignment == "default":
        return Flags((), ())
    if alignment == "functions":
        return Flags((_FUNCTIONS,), (_FUNCTIONS,))
    if kind.family is Family.GCC:
        both: tuple[str, ...] = (_FUNCTIONS, _LOOPS, _JUMPS)
    else:
        both = (_FUNCTIONS, _LOOPS, *((_BRANCHES,) if kind.x86_64 else ()))
    of_link = (_LOOPS_AT_LTO_LINK,) if lto and kind.family is Family.CLANG else ()
    return Flags(both, (*both, *of_link))


def rust_alignment(alignment: str) -> tuple[str, ...]:
    """Flags for rustc."""
    words = {"functions": (_RUST_FUNCTIONS,), "loops": (_RUST_FUNCTIONS, _RUST_LOOPS)}
    return words.get(alignment, ())


def bolt_alignment(kind: Kind, alignment: str) -> tuple[str, ...]:
    """Options of BOLT, which lays out functions anew; of loops it keeps what the compiler did."""
    if alignment == "default":
        return ()
    if alignment == "functions":
        return _BOLT_FUNCTIONS
    branches = (_BOLT_BRANCHES,) if _BRANCHES in alignment_flags(kind, alignment).compile else ()
    return (*_BOLT_FUNCTIONS, _BOLT_LOOPS, *branches)


def alignment_refusal(kind: Kind, variant: Variant) -> str:
    """Why a compiler would not align what is asked for; empty where nothing speaks against it."""
    level, family = variant.optimization, kind.family
    if variant.alignment == "default":
        return ""
    if family is Family.GCC and level in _SMALL:
        return f"GCC aligns neither functions nor loops at {level}"
    if variant.alignment == "functions":
        return ""
    if family is Family.CLANG and kind.version[0] < _CLANG_WITH_LOOPS:
        return f"{_LOOPS} needs clang {_CLANG_WITH_LOOPS}"
    if level in _NO_LOOPS[family]:
        return f"at {level} {variant.compiler} aligns no loops; use alignment 'functions'"
    return ""
