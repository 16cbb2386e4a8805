"""Instructions that code may use, by what its compiler says of its flags. Pure.

Names are those of Linux in /proc/cpuinfo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ensign.model.instructions import InstructionSets, names_of, plain

BASE_FLAG = "-march=x86-64"
_MACRO = re.compile(r"#define (__(?:[A-Z]|3dNOW)[A-Z0-9_]*?(?:__|_16)) 1$", re.MULTILINE)
_RUST_FEATURE = re.compile(r'^target_feature="([^"]+)"$', re.MULTILINE)
_X86 = "#define __x86_64__ 1"
_RUST_X86 = 'target_arch="x86_64"'
# What the flags of a target define besides: arithmetic and registers that follow from the rest.
_NO_SETS = re.compile(
    r"FP_FAST_\w+|FLT\w+|EVEX\d+|BIGGEST_ALIGNMENT|[A-Z]+_MATH|LONG_DOUBLE_\d+|ANDROID"
    r"|APX_INLINE_\w+|CRT-STATIC"
)
# Compilers make none of these of ordinary code: enclaves, keys, shadow stacks, what only the kernel
# may do, and LWP, which new microcode took away; or they are hints, which all processors take.
# Processors have them that Linux, or a virtual machine, then hides.
_OF_NO_CODE = frozenset({
    "cldemote", "enqcmd", "ermsb", "hle", "hreset", "invpcid", "kl", "lwp", "mpx", "pconfig",
    "prefetchi", "prefetchwt1", "ptwrite", "sgx", "shstk", "uintr", "usermsr", "wbnoinvd",
    "widekl", "xsaves",
})  # fmt: skip
_OF_ALL = frozenset({"cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})


def set_named(said: str) -> str:
    """Linux' name of what a macro or a flag says (`AES`, `sse4.1`); empty where none is known."""
    names = names_of(said)
    return names[0] if len(names) == 1 and _is_a_set(said) else ""


def deciding_flags(flags: Iterable[str]) -> tuple[str, ...]:
    """Those of a compiler's flags that decide about instructions."""
    rust = re.compile(r"-Ctarget-(cpu|feature)=")
    return tuple(
        flag
        for flag in flags
        if rust.match(flag) or (flag.startswith("-m") and not flag.startswith("-mtune"))
    )


def instructions_of(macros: str, base: str) -> InstructionSets | None:
    """Instructions by what GCC or Clang defines beyond `BASE_FLAG`; None if not x86-64."""
    if _X86 not in macros.splitlines():
        return None
    own_macros = set(_MACRO.findall(macros)) - set(_MACRO.findall(base))
    return _named(macro[2:].removesuffix("__") for macro in own_macros)


def instructions_of_rust(cfg: str) -> InstructionSets | None:
    """Instructions by what `rustc --print cfg` says with the flags; None if not x86-64."""
    if _RUST_X86 not in cfg.splitlines():
        return None
    return _named(_RUST_FEATURE.findall(cfg))


def _named(said: Iterable[str]) -> InstructionSets:
    """Instructions that a compiler names; of what has no name here, nothing is known."""
    sets = sorted({each for each in said if _is_a_set(each)})
    return InstructionSets(
        frozenset(name for set_name in sets for name in names_of(set_name)),
        tuple(set_name for set_name in sets if not names_of(set_name)),
    )


def _is_a_set(said: str) -> bool:
    return plain(said) not in _OF_NO_CODE | _OF_ALL and not _NO_SETS.fullmatch(said.upper())
