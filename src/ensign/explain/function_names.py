"""One function under the names that different builds give it. Pure."""

from __future__ import annotations

import re

ALLOCATION = "malloc, free and their like"

# What compilers, linkers and BOLT make of a function: parts of it, clones, copies.
_CLONE = re.compile(
    r"(?:\.(?:part|cold|hot|constprop|isra|lto_priv|localalias|llvm|specialized|warm|org|exit|"
    r"split|sra|cfi|resolver|default)(?:\.\d+)*|\.\d+|/\d+(?:\(\*\d+\))?|\[clone [^]]*\]|"
    r"::h[0-9a-f]{16}| )+$"
)
_LEVELS = (
    r"(?:avx512|avx2|avx|evex512|evex|sse42|sse4_2|sse4_1|sse41|sse4|ssse3|sse3|sse2|fma4|fma)"
)
# glibc's and libm's: `__memmove_avx_unaligned_erms`, `__sin_fma`.
_CHOSEN = re.compile(rf"__(?:ieee754_)?([a-z][a-z0-9]*?)_({_LEVELS}(?:_[a-z0-9_]+)?|erms|c)")
_ALLOCATION = re.compile(
    r"(?:__libc_|_int_|je_|tc_|mi_)?(?:malloc|free|calloc|realloc|memalign)(?:_[a-z]+)*|"
    r"_mid_memalign|sysmalloc|unlink_chunk|tcache_[a-z_]+|malloc_consolidate|systrim"
)
# The same code under two names.
_SAME = {"memcpy": "memmove"}
_WITHIN = "__GI_"  # how glibc calls its own functions
_C_LIBRARY = re.compile(r"(?:libc|ld-linux)\b.*")


def source_name(symbol: str) -> str:
    """Name of a function as it was written: without the suffixes of clones and of cold parts."""
    return _CLONE.sub("", symbol) or symbol


def interface_of(name: str, file: str, allocators: tuple[str, ...]) -> str:
    """Name that all implementations of one interface share: `memmove`, or ALLOCATION.

    `file` is the library that has it, `allocators` are parts of the names of those that allocate.
    """
    if any(allocator in file for allocator in allocators):
        return ALLOCATION
    if _C_LIBRARY.fullmatch(file):
        name = name.removeprefix(_WITHIN)
        if _ALLOCATION.fullmatch(name):
            return ALLOCATION
    chosen = _CHOSEN.fullmatch(name)
    if chosen is None or not file.startswith(("libc.", "libc-", "libm.", "libm-")):
        return name
    return _SAME.get(chosen[1], chosen[1])
