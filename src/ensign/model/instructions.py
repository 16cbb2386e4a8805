"""Sets of instructions of x86-64, and the levels that the psABI makes of them. Pure.

Names are those of Linux in /proc/cpuinfo.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ensign.model.cpuid import is_always_shown, is_named, plain, registers_needed

# x86-64 psABI 1.0, section 3.1.1 (abm is lzcnt).
_V2 = frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"])
_V3 = _V2 | frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"])
_V4 = _V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
FIRST_LEVEL = "x86-64"


@dataclass(frozen=True, slots=True)
class InstructionSets:
    """What code may use beyond what every x86-64 processor has.

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
    """What a processor has, by names; of some it may not be known.

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
