"""Which instructions code may use, by what its compiler says of its flags. Pure.

Names are those of Linux in /proc/cpuinfo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ensign.model.instructions import InstructionSets

BASE_FLAG = "-march=x86-64"
_MACRO = re.compile(r"#define (__[A-Z][A-Z0-9_]*?(?:__|_16)) 1$", re.MULTILINE)
_RUST_FEATURE = re.compile(r'^target_feature="([^"]+)"$', re.MULTILINE)
_X86 = "#define __x86_64__ 1"
_RUST_X86 = 'target_arch="x86_64"'
# What the flags of a target define besides: arithmetic and registers that follow from the rest.
_NO_SETS = re.compile(
    r"FP_FAST_\w+|FLT\w+|EVEX\d+|BIGGEST_ALIGNMENT|[A-Z]+_MATH|LONG_DOUBLE_\d+|ANDROID"
)
# Compilers make none of these of ordinary code: enclaves, keys, shadow stacks, hints. Processors
# have them that Linux, or a virtual machine, then hides.
_OF_NO_CODE = frozenset({
    "ENQCMD", "HRESET", "KL", "PCONFIG", "PREFETCHI", "PREFETCHWT1", "PTWRITE", "SGX", "SHSTK",
    "UINTR", "USERMSR", "WIDEKL",
})  # fmt: skip
_OTHERWISE = {
    "ABM": "abm", "AVX5124FMAPS": "avx512_4fmaps", "AVX5124VNNIW": "avx512_4vnniw",
    "AMXBF16": "amx_bf16", "AMXINT8": "amx_int8", "AMXTILE": "amx_tile",
    "AVX512BF16": "avx512_bf16", "AVX512BITALG": "avx512_bitalg", "AVX512FP16": "avx512_fp16",
    "AVX512VBMI2": "avx512_vbmi2", "AVX512VNNI": "avx512_vnni",
    "AVX512VP2INTERSECT": "avx512_vp2intersect", "AVX512VPOPCNTDQ": "avx512_vpopcntdq",
    "AVXIFMA": "avx_ifma", "AVXVNNI": "avx_vnni", "BMI": "bmi1", "CRC32": "sse4_2",
    "GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16", "LAHF_SAHF": "lahf_lm", "LZCNT": "abm",
    "MWAITX": "mwaitx", "PCLMUL": "pclmulqdq", "PRFCHW": "3dnowprefetch", "RDRND": "rdrand",
    "SHA": "sha_ni", "SSE3": "pni",
}  # fmt: skip
_ALIKE = frozenset({
    "ADX", "AES", "AMX_BF16", "AMX_INT8", "AMX_TILE", "AVX", "AVX2", "AVX512BW", "AVX512CD",
    "AVX512DQ", "AVX512ER", "AVX512F", "AVX512IFMA", "AVX512PF", "AVX512VBMI", "AVX512VL",
    "BMI2", "CLDEMOTE", "CLFLUSHOPT", "CLWB", "CLZERO", "F16C", "FMA", "FMA4", "FSGSBASE",
    "GFNI", "INVPCID", "LWP", "MOVBE", "MOVDIR64B", "MOVDIRI", "PKU", "POPCNT", "RDPID",
    "RDPRU", "RDSEED", "RTM", "SERIALIZE", "SSE4A", "SSE4_1", "SSE4_2", "SSSE3", "TBM",
    "TSXLDTRK", "VAES", "VPCLMULQDQ", "WAITPKG", "WBNOINVD", "XOP", "XSAVE", "XSAVEC",
    "XSAVEOPT", "XSAVES",
})  # fmt: skip
_RUST_NAMES = {
    "bmi1": "bmi1", "cmpxchg16b": "cx16", "lahfsahf": "lahf_lm", "lzcnt": "abm",
    "sha": "sha_ni", "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2",
    **{f"avx512{name}": f"avx512_{name}" for name in ("bf16", "bitalg", "fp16", "vbmi2", "vnni")},
    **{f"avx512{name}": f"avx512_{name}" for name in ("vp2intersect", "vpopcntdq")},
    **{name: name for name in ("pclmulqdq", "rdrand")},
    **{name.lower(): name.lower() for name in _ALIKE},
}  # fmt: skip
_OF_ALL = frozenset({"fxsr", "sse", "sse2", "x87"})


def set_named(macro: str) -> str:
    """Linux' name of what a macro tells of (`AES` of `__AES__`); empty where it is none known."""
    return _OTHERWISE.get(macro, macro.lower()) if _is_known(macro) else ""


def deciding_flags(flags: Iterable[str]) -> tuple[str, ...]:
    """Those of a compiler's flags that decide about instructions."""
    rust = re.compile(r"-Ctarget-(cpu|feature)=")
    return tuple(
        flag
        for flag in flags
        if rust.match(flag) or (flag.startswith("-m") and not flag.startswith("-mtune"))
    )


def instructions_of(macros: str, base: str) -> InstructionSets | None:
    """By what GCC or Clang defines with the flags, and with `BASE_FLAG`; None if not x86-64."""
    if _X86 not in macros.splitlines():
        return None
    found = set(_MACRO.findall(macros)) - set(_MACRO.findall(base))
    names = sorted(filter(_is_a_set, (each[2:].removesuffix("__") for each in found)))
    known = {name: _OTHERWISE.get(name, name.lower()) for name in names if _is_known(name)}
    return InstructionSets(
        frozenset(known.values()), tuple(name for name in names if name not in known)
    )


def instructions_of_rust(cfg: str) -> InstructionSets | None:
    """By what `rustc --print cfg` says with the flags; None if not x86-64."""
    if _RUST_X86 not in cfg.splitlines():
        return None
    found = sorted(filter(_is_a_set, set(_RUST_FEATURE.findall(cfg)) - _OF_ALL))
    return InstructionSets(
        frozenset(_RUST_NAMES[name] for name in found if name in _RUST_NAMES),
        tuple(name for name in found if name not in _RUST_NAMES),
    )


def _is_a_set(name: str) -> bool:
    return name.upper() not in _OF_NO_CODE and not _NO_SETS.fullmatch(name)


def _is_known(name: str) -> bool:
    return name in _OTHERWISE or name in _ALIKE
