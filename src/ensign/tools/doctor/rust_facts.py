"""What recorded calls of rustc say of a program, line by line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ensign.model.checkup import Fact
from ensign.model.units import pluralize
from ensign.proof.rust_calls import Crate

_STANDARD = "the standard library came compiled"
_ACROSS = ("fat", "thin")


def levels_of(crates: Sequence[Crate]) -> Fact:
    """Their levels; all options of each as details."""
    levels = Counter(f"opt-level {each.value('opt-level')}" for each in crates)
    said = ", ".join(
        f"{level} ({pluralize(number, 'crate')})" for level, number in levels.most_common()
    )
    more = tuple(
        f"{each.name}: {' '.join(f'{name}={value}' for name, value in each.options.items())}"
        for each in crates
    )
    return Fact("flags", f"{said}; {_STANDARD}", more)


def optimizes_across(crates: Sequence[Crate]) -> bool:
    """Whether rustc optimized across crates when it linked."""
    return any(each.links and each.value("lto") in _ACROSS for each in crates)


def lto_of_crates(crates: Sequence[Crate]) -> str:
    """What rustc was told when it linked."""
    linked = [each for each in crates if each.links]
    if optimizes_across(linked):
        kinds = sorted({each.value("lto") for each in linked if each.value("lto") in _ACROSS})
        return f"done by rustc across {pluralize(len(crates), 'crate')} ({', '.join(kinds)})"
    if any("linker-plugin-lto" in each.options for each in linked):
        return "left to the linker (linker-plugin-lto)"
    return "none across crates"


def uses_profile(crates: Sequence[Crate]) -> int:
    """How many were compiled with a profile."""
    return sum("profile-use" in each.options for each in crates)


def targets_of_crates(crates: Sequence[Crate]) -> Iterator[str]:
    """The processor that each was compiled for; empty for the compiler's default."""
    return (each.value("target-cpu") for each in crates)
