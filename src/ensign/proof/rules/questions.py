"""The main questions about a build that the evidence leaves open. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown, units_of_build
from ensign.proof.facts import UnitKind
from ensign.proof.flags import lto_of
from ensign.proof.rules.profile import Dated, uses_profile
from ensign.proof.rust_calls import linked_crates

_SHOW = "a compile_commands.json, or -g (Clang: with -grecord-command-line), shows them"


def open_questions(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[Finding]:
    """A note for each of flags, definitions, LTO, profile and link order that cannot be seen."""
    for text in _questions(seen, profiles, sources):
        yield seen.finding(NOT_JUDGED, f"not judged: {text}")


def _questions(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[str]:
    if not linked_crates(seen):
        units = own_units(seen)
        told = [unit for unit in units if unit.words is not None]
        yield from _flags(seen, units)
        yield from _definitions(told)
        yield from _lto(seen, told)
        yield from _profile(told, profiles, sources)
    if seen.proof.link.unknown and not seen.proof.link.by:
        yield f"the order of the link: {seen.proof.link.unknown}"


def _flags(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[str]:
    silent = [unit.source for unit in units if unit.words is None]
    others = {each.compiler for each in seen.proof.binary.units if each.kind is UnitKind.OTHER}
    if not units and others:
        yield (
            f"the flags of its units: {', '.join(sorted(others))} made them, and only those of C "
            "and C++ are judged"
        )
    elif not units:
        yield f"the flags and the compiler of each unit: nothing here says them; {_SHOW}"
    elif silent:
        yield (
            f"the flags of {len(silent)} of {len(units)} compile units ({shown(silent)}): nothing "
            f"here says them; {_SHOW}"
        )


def _definitions(told: Sequence[Compiled]) -> Iterator[str]:
    """Only calls, and what Clang recorded, have them."""
    kinds = [None if unit.unit is None else unit.unit.kind for unit in told if unit.call is None]
    if any(kind is not UnitKind.CLANG for kind in kinds):
        yield (
            "definitions (_FORTIFY_SOURCE, NDEBUG): GCC records none; a compile_commands.json "
            "shows them"
        )


def _lto(seen: BuildEvidence, told: Sequence[Compiled]) -> Iterator[str]:
    if seen.link is not None:
        return
    if any(unit.kind is UnitKind.LTRANS for unit in units_of_build(seen)):
        yield "whether the link was told -flto: it did LTO, but no command that linked is known"
    elif any(lto_of(unit.words) for unit in told) or seen.proof.objects.lto:
        yield "whether LTO was done at the link: no command that linked is known"
    elif not told:
        yield "LTO: neither flags nor a command that linked are known"


def _profile(
    told: Sequence[Compiled], profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[str]:
    using = uses_profile(told)
    if not told:
        yield "whether a profile was used, and whether it fits: no flags are known"
    elif using and not profiles:
        yield "whether the profile fits the sources: no profile file lies here"
    elif using:
        there = {each.path for each in sources}
        gone = [unit.source for unit in using if unit.source not in there]
        if gone:
            yield f"whether the profile fits {shown(gone)}: the source is not here"
