"""Sets of instructions of x86-64, and the levels that the psABI makes of them. Pure.

Names are those of Linux in /proc/cpuinfo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


def registers_text(registers: Mapping[str, int]) -> str:
    """Registers of a processor as the sheet has them."""
    return " ".join(f"{name}={registers[name]:x}" for name in sorted(registers))


# Shown by every Linux since 4.18, where they are there: what is not shown is lacking.
_SHOWN: Mapping[str, Mapping[str, int]] = {
    "1.0.ecx": {
        "pni": 0, "pclmulqdq": 1, "ssse3": 9, "fma": 12, "cx16": 13, "sse4_1": 19,
        "sse4_2": 20, "movbe": 22, "popcnt": 23, "aes": 25, "xsave": 26, "avx": 28, "f16c": 29,
        "rdrand": 30,
    },
    "7.0.ebx": {
        "fsgsbase": 0, "bmi1": 3, "avx2": 5, "bmi2": 8, "rtm": 11, "avx512f": 16, "avx512dq": 17,
        "rdseed": 18, "adx": 19, "avx512ifma": 21, "clflushopt": 23, "clwb": 24, "avx512pf": 26,
        "avx512er": 27, "avx512cd": 28, "sha_ni": 29, "avx512bw": 30, "avx512vl": 31,
    },
    "7.0.ecx": {
        "avx512vbmi": 1, "avx512_vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10,
        "avx512_vnni": 11, "avx512_bitalg": 12, "avx512_vpopcntdq": 14, "rdpid": 22,
    },
    "7.0.edx": {"avx512_4vnniw": 2, "avx512_4fmaps": 3},
    "d.1.eax": {"xsaveopt": 0, "xsavec": 1},
    "80000001.0.ecx": {
        "lahf_lm": 0, "abm": 5, "sse4a": 6, "3dnowprefetch": 8, "xop": 11, "fma4": 16, "tbm": 21,
    },
    "80000001.0.edx": {"3dnowext": 30, "3dnow": 31},
    "80000008.0.ebx": {"clzero": 0},
}  # fmt: skip
# Shown since a later Linux, or never. A new name belongs here.
_HIDDEN: Mapping[str, Mapping[str, int]] = {
    "7.0.ecx": {"pku": 3, "waitpkg": 5, "movdiri": 27, "movdir64b": 28},
    "7.0.edx": {
        "avx512_vp2intersect": 8, "serialize": 14, "tsxldtrk": 16, "amx_bf16": 22,
        "avx512_fp16": 23, "amx_tile": 24, "amx_int8": 25,
    },
    "7.1.eax": {
        "sha512": 0, "sm3": 1, "sm4": 2, "rao_int": 3, "avx_vnni": 4, "avx512_bf16": 5,
        "cmpccxadd": 7, "amx_fp16": 21, "avx_ifma": 23, "movrs": 31,
    },
    "7.1.edx": {
        "avx_vnni_int8": 4, "avx_ne_convert": 5, "amx_complex": 8, "avx_vnni_int16": 10,
        "apx_f": 21,
    },
    "1e.1.eax": {
        "amx_int8": 0, "amx_bf16": 1, "amx_complex": 2, "amx_fp16": 3, "amx_fp8": 4,
        "amx_transpose": 5, "amx_tf32": 6, "amx_avx512": 7, "amx_movrs": 8,
    },
    "80000001.0.ecx": {"mwaitx": 29},
    "80000008.0.ebx": {"rdpru": 4},
}  # fmt: skip
_AVX10, _AVX10_VERSION = ("7.1.edx", 19), "24.0.ebx"
_AVX10_1 = (
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi",
    "avx512_vbmi2", "avx512_vnni", "avx512_bitalg", "avx512_vpopcntdq", "avx512_bf16",
    "avx512_fp16", "gfni", "vaes", "vpclmulqdq",
)  # fmt: skip
# What compilers call otherwise. AVX10.1 is a name for instructions that all have others.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "3dnowa": ("3dnowext",), "bmi": ("bmi1",), "cmpxchg16b": ("cx16",), "crc32": ("sse4_2",),
    "gcchavesynccompareandswap16": ("cx16",), "lahfsahf": ("lahf_lm",), "lzcnt": ("abm",),
    "pclmul": ("pclmulqdq",), "prfchw": ("3dnowprefetch",), "rdrnd": ("rdrand",),
    "sahf": ("lahf_lm",), "sha": ("sha_ni",), "sse3": ("pni",),
    **dict.fromkeys(("avx101", "avx101256", "avx101512"), _AVX10_1),
    **dict.fromkeys(("avx102", "avx102256", "avx102512"), (*_AVX10_1, "avx10_2")),
    **dict.fromkeys(("ccmp", "cf", "egpr", "ndd", "nf", "ppx", "push2pop2", "zu"), ("apx_f",)),
}  # fmt: skip
# Registers that the operating system must keep, by their bits in XCR0.
_STATES = {
    "xsave": 1, "avx": 0b110, "avx512f": 0b1110_0110, "amx_tile": 0b11 << 17, "apx_f": 1 << 19,
}  # fmt: skip
_IN_AVX_REGISTERS = frozenset({"f16c", "fma", "fma4", "sha512", "sm3", "sm4", "vaes", "xop"})

_CERTAIN = frozenset(name for bits in _SHOWN.values() for name in bits)
_NAMED = _CERTAIN | {name for bits in _HIDDEN.values() for name in bits} | {"avx10_2"}


def plain(name: str) -> str:
    """A name without what compilers and Linux write differently."""
    return "".join(filter(str.isalnum, name.lower()))


_BY_PLAIN = {**{plain(name): (name,) for name in _NAMED}, **_ALIASES}


def names_of(said: str) -> tuple[str, ...]:
    """The names of what a compiler names; none where there is no name here."""
    return _BY_PLAIN.get(plain(said), ())


def is_always_shown(name: str) -> bool:
    """True if every Linux shows it in /proc/cpuinfo where it is there."""
    return name in _CERTAIN


def is_named(name: str) -> bool:
    """True if it is a name of the table."""
    return name in _NAMED


def registers_needed(name: str) -> str:
    """The set that brings the registers of this one: without that one there is neither."""
    if name.startswith("amx_"):
        return "amx_tile"
    if name.startswith(("avx512", "avx10_")):
        return "avx512f"
    if name.startswith(("avx", "vpclmul")) or name in _IN_AVX_REGISTERS:
        return "avx"
    return "xsave" if name.startswith("xsave") else name if name in _STATES else ""


def sets_of(registers: Mapping[str, int]) -> frozenset[str]:
    """Features of a processor by registers of `cpuid` (`7.0.ebx`), as far as `xcr0` permits."""
    shown, xcr0 = frozenset(_shown_by(registers)), registers.get("xcr0", 0)
    return frozenset(name for name in shown if _is_kept(registers_needed(name), shown, xcr0))


def _is_kept(needed: str, shown: frozenset[str], xcr0: int) -> bool:
    return not needed or (needed in shown and xcr0 & _STATES[needed] == _STATES[needed])


def _shown_by(registers: Mapping[str, int]) -> Iterator[str]:
    for table in (_SHOWN, _HIDDEN):
        for register, bits in table.items():
            value = registers.get(register, 0)
            yield from (name for name, bit in bits.items() if value >> bit & 1)
    register, bit = _AVX10
    if registers.get(register, 0) >> bit & 1:
        version = registers.get(_AVX10_VERSION, 0) & 0xFF
        yield from (f"avx10_{number}" for number in range(1, version + 1))


# x86-64 psABI 1.0, section 3.1.1 (abm is lzcnt).
_V2 = frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"])
_V3 = _V2 | frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"])
_V4 = _V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
FIRST_LEVEL = "x86-64"


@dataclass(frozen=True, slots=True)
class InstructionSets:
    """Instructions that code may use beyond what every x86-64 processor has.

    `unknown` are sets of instructions that a compiler names and that have no name here.
    """

    sets: frozenset[str]
    unknown: tuple[str, ...] = ()

    @property
    def level(self) -> str:
        """The lowest level that has all of them, or empty where none has."""
        if self.unknown:
            return ""
        levels = {FIRST_LEVEL: frozenset[str](), **LEVELS}
        return next((name for name, sets in levels.items() if self.sets <= sets), "")


@dataclass(frozen=True, slots=True)
class ProcessorSets:
    """Features of a processor, by names; some may not be known.

    `whole` where it was asked itself: it lacks what has a name and is not there. /proc/cpuinfo
    alone does not show all.
    """

    names: frozenset[str]
    whole: bool = False

    def lacking(self, used: Iterable[str]) -> frozenset[str]:
        """Those of the sets that it does not have for certain."""
        return frozenset(name for name in used if self._lacks(name))

    def not_known(self, used: InstructionSets) -> tuple[str, ...]:
        """Those of which nothing is known."""
        there = {plain(name) for name in self.names}
        hidden = sorted(used.sets - self.names - self.lacking(used.sets))
        return (*hidden, *(name for name in used.unknown if plain(name) not in there))

    def _lacks(self, name: str) -> bool:
        if name in self.names or not is_named(name):
            return False
        needed = registers_needed(name)
        without = needed not in ("", name) and self._lacks(needed)
        return self.whole or is_always_shown(name) or without
