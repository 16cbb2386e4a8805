"""The main questions about a build that the evidence leaves open. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown, units_of_build
from ensign.proof.facts import UnitKind
from ensign.proof.flags import lto_of
from ensign.proof.rules_profile import Dated, uses_profile
from ensign.proof.rust_calls import linked_crates

_SHOW = "a compile_commands.json, or -g (Clang: with -grecord-command-line), shows them"


def open_questions(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[Finding]:
    """A note for each of flags, definitions, LTO, profile and link order that cannot be seen."""
    if linked_crates(seen):
        yield from (seen.finding(NOT_JUDGED, f"not judged: {text}") for text in _order(seen))
        return
    units = own_units(seen)
    for text in (
        *_flags(seen, units),
        *_definitions(units),
        *_lto(seen, units),
        *_profile(units, profiles, sources),
        *_order(seen),
    ):
        yield seen.finding(NOT_JUDGED, f"not judged: {text}")


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


def _definitions(units: Sequence[Compiled]) -> Iterator[str]:
    told = [unit for unit in units if unit.words is not None]
    unseen = [
        unit
        for unit in told
        if unit.call is None and (unit.unit is None or unit.unit.kind is not UnitKind.CLANG)
    ]
    if unseen:
        yield (
            "definitions (_FORTIFY_SOURCE, NDEBUG): GCC records none; a compile_commands.json "
            "shows them"
        )


def _lto(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[str]:
    if seen.link is not None:
        return
    told = [unit for unit in units if unit.words is not None]
    ltrans = any(unit.kind is UnitKind.LTRANS for unit in units_of_build(seen))
    lto = any(lto_of(unit.words) for unit in told) or ltrans or seen.proof.objects.lto
    if ltrans:
        yield "whether the link was told -flto: it did LTO, but no command that linked is known"
    elif lto:
        yield "whether LTO was done at the link: no command that linked is known"
    elif not told:
        yield "LTO: neither flags nor a command that linked are known"


def _profile(
    units: Sequence[Compiled], profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[str]:
    told = [unit for unit in units if unit.words is not None]
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


def _order(seen: BuildEvidence) -> Iterator[str]:
    if seen.proof.link.unknown and not seen.proof.link.by:
        yield f"the order of the link: {seen.proof.link.unknown}"
