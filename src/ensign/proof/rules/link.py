"""LTO, compilers, archives and the order of the link line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from ensign.model.finding_kinds.proof import (
    ARCHIVE_AFTER_SHARED,
    ARCHIVE_BEFORE_OBJECTS,
    ARCHIVE_PASSED_OVER,
    ARCHIVE_UNUSED,
    DUPLICATE_LIBRARY,
    FLAG_UNDONE,
    LINK_FLAG_MISSING,
    LTO_COMPILE_ONLY,
    LTO_HALFWAY,
    LTO_NOT_LINKED,
    OPTIMIZATION_MISSING_AT_LINK,
    WRONG_ARCHIVER,
)
from ensign.model.findings import Finding
from ensign.proof.comparison import grouped
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown, some, units_of_build
from ensign.proof.facts import Order, OrderFact, Unit, UnitKind
from ensign.proof.flags import level_of, linker_of, lto_of
from ensign.proof.rules.units import mixed_compilers

# `cc` and `c++` may be any; `gcc` and `g++` are one compiler.
_NAMED = re.compile(r"(?:^|[/-])(gcc|g\+\+|clang|clang\+\+)(-\d+)?$")

_TO_LINKS = (
    'hand the flags to links as well, as build.rewrite.link = ["{ldflags}"] does; '
    'with a build.system, flags_by = "recorder" does the same'
)
_ORDERS = {
    Order.BEFORE_OBJECTS: ARCHIVE_BEFORE_OBJECTS,
    Order.AFTER_SHARED: ARCHIVE_AFTER_SHARED,
    Order.DUPLICATE: DUPLICATE_LIBRARY,
    Order.UNUSED: ARCHIVE_UNUSED,
    Order.UNLINKED: ARCHIVE_PASSED_OVER,
}


def link_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """All that concerns how objects became one artifact."""
    units = units_of_build(seen)
    lto = [unit.source for unit in own_units(seen) if lto_of(unit.words)]
    if lto or any(unit.kind is UnitKind.LTRANS for unit in units):
        yield from _lto(seen, units, lto)
    yield from (
        seen.finding(LINK_FLAG_MISSING, f"{text}; {_TO_LINKS}") for text in _untold_links(seen)
    )
    yield from archiver_findings(seen)
    yield from mixed_compilers(seen, grouped(_compilers(seen, units)), "units")
    by = seen.proof.link.by or "the link line"
    for fact in seen.proof.link.order:
        yield seen.finding(_ORDERS[fact.order], f"{_order(fact)} (by {by})")


def _lto(seen: BuildEvidence, units: Sequence[Unit], compiled: Sequence[str]) -> Iterator[Finding]:
    early = [unit for unit in units if unit.kind is UnitKind.EARLY]
    ltrans = [unit for unit in units if unit.kind is UnitKind.LTRANS]
    # Where LTO was asked for, the variant is not what its name says.
    asked = seen.request is not None and seen.request.variant.lto != "off"
    not_linked = LTO_NOT_LINKED if asked else LTO_HALFWAY
    link = seen.link
    clang = link is not None and "clang" in link.program
    at_link = None if link is None else lto_of(link.ran[1:])
    if early and not ltrans and (seen.proof.binary.read or link is not None):
        text = (
            f"{len(early)} units were compiled for LTO, but the link generated no code for them "
            "(no LTRANS unit): LTO did not happen; pass -flto when linking, too"
        )
        yield seen.finding(not_linked, text)
    elif link is None and ltrans and _have_one_level(ltrans):
        text = (
            "the link generated code with the options that the objects recorded, and had no -O of "
            "its own: -O and -flto are to be passed when linking, too"
        )
        yield seen.finding(OPTIMIZATION_MISSING_AT_LINK, text)
    elif clang and at_link is False and seen.proof.objects.fat:
        text = (
            f"{len(compiled)} units were compiled for LTO, but the link took the machine code of "
            "fat objects: LTO did not happen; pass -flto when linking, too"
        )
        yield seen.finding(not_linked, text)
    elif at_link is False:
        text = (
            f"-flto is passed when compiling ({shown(compiled)}) "
            "but not when linking, which leaves it to the linker whether and how LTO is done"
        )
        yield seen.finding(LTO_COMPILE_ONLY, text)
    elif link is not None and at_link and not level_of(link.ran[1:]):
        at = " ".join(_ltrans_levels(seen)) or "an unknown level"
        text = f"the LTO link has no -O option; code was generated at {at}"
        if clang:
            text = "the LTO link has no -O option; lld and LLVM's plugin take -O2 then"
        yield seen.finding(OPTIMIZATION_MISSING_AT_LINK, text)
    elif seen.request is not None:
        wanted = level_of(seen.request.flags.link)
        levels = _ltrans_levels(seen) if ltrans else [level_of(link.ran[1:])] if link else []
        if wanted and levels and levels != [wanted]:
            text = f"{wanted} was asked for at the LTO link, but code was generated at "
            yield seen.finding(FLAG_UNDONE, text + " ".join(levels))


def _ltrans_levels(seen: BuildEvidence) -> list[str]:
    """The optimization levels at which GCC generated code at the link."""
    ltrans = (unit for unit in seen.proof.binary.units if unit.kind is UnitKind.LTRANS)
    return sorted({level_of(unit.flags) for unit in ltrans})


def _have_one_level(ltrans: Sequence[Unit]) -> bool:
    """True if GCC was told a level once: the objects' own, not the link's, which comes after it."""
    levels = [sum(bool(level_of([word])) for word in unit.flags or ()) for unit in ltrans]
    return all(count == 1 for count in levels)


def _untold_links(seen: BuildEvidence) -> Iterator[str]:
    """Linker, allocator and what LTO generates, of which nothing but the link can be told."""
    request, link = seen.request, seen.link
    if request is None or link is None or not link.is_compiler:
        return
    if PurePosixPath(link.line.output or "").name != PurePosixPath(seen.proof.binary.path).name:
        return  # whatever linked it, it was another call
    flags = request.flags.link
    wanted, told = linker_of(flags), linker_of(link.ran[1:])
    if request.variant.linker != "default" and wanted != told:
        was = f"told -fuse-ld={told}" if told else f"not told -fuse-ld={wanted}"
        yield f"the linker {wanted} was asked for, but the link was {was}"
    there = {*link.ran, *(word.text for word in link.line.inputs)}
    libraries = [flag for flag in flags if flag.startswith("-l") and flag not in there]
    if libraries and not seen.proof.binary.shared_library:
        yield f"the link was not told {', '.join(libraries)}, which was asked for"
    generating = [flag for flag in flags if flag.startswith("-Wl,-plugin-opt=")]
    untold = [flag for flag in generating if flag not in link.ran]
    if untold:
        yield f"the LTO link was not told {', '.join(untold)}, which was asked for"


def archiver_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Archives whose index leaves out LTO objects."""
    for archive in seen.proof.unindexed:
        text = (
            f"{archive.path} holds {archive.lto_members} LTO objects that its index leaves out: "
            "it was made by an archiver that cannot read them; use gcc-ar or llvm-ar"
        )
        yield seen.finding(WRONG_ARCHIVER, text)


def _compilers(seen: BuildEvidence, units: Sequence[Unit]) -> list[tuple[str, str]]:
    """Compilers with what they made, by units of the artifact, else by calls that nobody asked."""
    compilers = [
        (unit.compiler, unit.name)
        for unit in units
        if unit.kind not in (UnitKind.ASSEMBLER, UnitKind.OTHER) and unit.name != "<artificial>"
    ]
    if compilers or seen.request is not None:
        return compilers
    named = [(_compiler_of_call(unit), unit.source) for unit in own_units(seen)]
    return [(compiler, source) for compiler, source in named if compiler]


def _compiler_of_call(unit: Compiled) -> str:
    named = _NAMED.search("" if unit.call is None else unit.call.program)
    if named is None:
        return ""
    family = "Clang" if named[1].startswith("clang") else "GCC"
    return f"{family}{named[2] or ''}"


def _order(fact: OrderFact) -> str:
    symbols = ", ".join(fact.symbols)
    match fact.order:
        case Order.BEFORE_OBJECTS:
            needing = f", which needs {symbols} of it" if symbols else ""
            instead = f": the program uses {fact.winner}'s {symbols}" if fact.winner else ""
            return (
                f"{fact.library} stands before {fact.other}{needing}; "
                f"a linker takes nothing from an archive for what comes later{instead}"
            )
        case Order.AFTER_SHARED:
            return (
                f"{fact.library} stands after {fact.other}, which has {symbols} too: "
                f"the program uses {fact.other}'s"
            )
        case Order.DUPLICATE:
            return f"{fact.library} is on the link line more than once"
        case Order.UNLINKED:
            return (
                f"{fact.library} defines {some(fact.symbols)}, but no link of this build names "
                f"it: the program takes that from {fact.other or 'a shared library'}"
            )
        case Order.UNUSED:
            return f"{fact.library} contributed nothing to the program"
