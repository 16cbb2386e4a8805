"""LTO, compilers, archives and the order of the link line. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
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
    MIXED_COMPILERS,
    OPTIMIZATION_MISSING_AT_LINK,
    WRONG_ARCHIVER,
)
from ensign.model.findings import Finding, FindingKind
from ensign.proof.evidence import BuildEvidence, own_units, shown, some, units_of_build
from ensign.proof.facts import Order, Unit, UnitKind
from ensign.proof.flags import level_of, linker_of, lto_of
from ensign.proof.rules_flags import ltrans_levels

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
    yield from _lto(seen)
    yield from _told(seen)
    yield from archiver_findings(seen)
    yield from _compilers(seen)
    yield from _order(seen)


def _lto(seen: BuildEvidence) -> Iterator[Finding]:
    units = units_of_build(seen)
    early = [unit for unit in units if unit.kind is UnitKind.EARLY]
    ltrans = [unit for unit in units if unit.kind is UnitKind.LTRANS]
    compiled = [each.source for each in own_units(seen) if lto_of(each.words)]
    if not compiled and not ltrans:
        return
    link = seen.link
    clang = link is not None and "clang" in link.program
    at_link = None if link is None else lto_of(link.ran[1:])
    if early and not ltrans and (seen.proof.binary.read or link is not None):
        text = (
            f"{len(early)} units were compiled for LTO, but the link generated no code for them "
            "(no LTRANS unit): LTO did not happen; pass -flto when linking, too"
        )
        yield seen.finding(_not_linked(seen), text)
    elif link is None and ltrans and _once(ltrans):
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
        yield seen.finding(_not_linked(seen), text)
    elif at_link is False:
        text = (
            f"-flto is passed when compiling ({shown(compiled)}) "
            "but not when linking, which leaves it to the linker whether and how LTO is done"
        )
        yield seen.finding(LTO_COMPILE_ONLY, text)
    elif link is not None and at_link and not level_of(link.ran[1:]):
        at = " ".join(ltrans_levels(seen)) or "an unknown level"
        text = f"the LTO link has no -O option; code was generated at {at}"
        if clang:
            text = "the LTO link has no -O option; lld and LLVM's plugin take -O2 then"
        yield seen.finding(OPTIMIZATION_MISSING_AT_LINK, text)
    elif seen.request is not None:
        wanted = level_of(seen.request.flags.link)
        levels = ltrans_levels(seen) if ltrans else [level_of(link.ran[1:])] if link else []
        if wanted and levels and levels != [wanted]:
            text = f"{wanted} was asked for at the LTO link, but code was generated at "
            yield seen.finding(FLAG_UNDONE, text + " ".join(levels))


def _told(seen: BuildEvidence) -> Iterator[Finding]:
    """Linker, allocator and what LTO generates, of which nothing but the link can be told."""
    request, link = seen.request, seen.link
    if request is None or link is None or not link.is_compiler:
        return
    if PurePosixPath(link.line.output or "").name != PurePosixPath(seen.proof.binary.path).name:
        return  # whatever linked it, it was another call
    wanted, asked = linker_of(request.flags.link), linker_of(link.ran[1:])
    if request.variant.linker != "default" and wanted != asked:
        text = f"the linker {wanted} was asked for, but the link was not told -fuse-ld={wanted}"
        if asked:
            text = f"the linker {wanted} was asked for, but the link was told -fuse-ld={asked}"
        yield seen.finding(LINK_FLAG_MISSING, f"{text}; {_TO_LINKS}")
    words = {word.text for word in link.line.inputs}
    libraries = [flag for flag in request.flags.link if flag.startswith("-l")]
    lacking = [flag for flag in libraries if flag not in words and flag not in link.ran]
    if lacking and not seen.proof.binary.shared_library:
        text = f"the link was not told {', '.join(lacking)}, which was asked for"
        yield seen.finding(LINK_FLAG_MISSING, f"{text}; {_TO_LINKS}")
    generating = [flag for flag in request.flags.link if flag.startswith("-Wl,-plugin-opt=")]
    untold = [flag for flag in generating if flag not in link.ran]
    if untold:
        text = f"the LTO link was not told {', '.join(untold)}, which was asked for"
        yield seen.finding(LINK_FLAG_MISSING, f"{text}; {_TO_LINKS}")


def _not_linked(seen: BuildEvidence) -> FindingKind:
    """Where LTO was asked for, the variant is not what its name says."""
    asked = seen.request is not None and seen.request.variant.lto != "off"
    return LTO_NOT_LINKED if asked else LTO_HALFWAY


def _once(ltrans: list[Unit]) -> bool:
    """Whether GCC was told a level once: the objects' own, not the link's, which comes after it."""
    levels = [sum(bool(level_of([word])) for word in unit.flags or ()) for unit in ltrans]
    return all(count == 1 for count in levels)


def archiver_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Archives whose index leaves out LTO objects."""
    for archive in seen.proof.unindexed:
        text = (
            f"{archive.path} holds {archive.lto_members} LTO objects that its index leaves out: "
            "it was made by an archiver that cannot read them; use gcc-ar or llvm-ar"
        )
        yield seen.finding(WRONG_ARCHIVER, text)


def _compilers(seen: BuildEvidence) -> Iterator[Finding]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for unit in units_of_build(seen):
        if unit.kind not in (UnitKind.ASSEMBLER, UnitKind.OTHER) and unit.name != "<artificial>":
            names[unit.compiler].append(unit.name)
    if not names and seen.request is None:
        for each in own_units(seen):
            named = _NAMED.search("" if each.call is None else each.call.program)
            if named is not None:
                family = "Clang" if named[1].startswith("clang") else "GCC"
                names[f"{family}{named[2] or ''}"].append(each.source)
    if len(names) > 1:
        parts = [
            f"{compiler} ({len(units)} units: {shown(units)})" for compiler, units in names.items()
        ]
        text = f"built with more than one compiler: {'; '.join(sorted(parts))}"
        yield seen.finding(MIXED_COMPILERS, text)


def _order(seen: BuildEvidence) -> Iterator[Finding]:
    by = seen.proof.link.by
    for fact in seen.proof.link.order:
        symbols = ", ".join(fact.symbols)
        match fact.order:
            case Order.BEFORE_OBJECTS:
                text = (
                    f"{fact.library} stands before {fact.other}{_needing(symbols)}; "
                    "a linker takes nothing from an archive for what comes later"
                )
            case Order.AFTER_SHARED:
                text = (
                    f"{fact.library} stands after {fact.other}, which has {symbols} too: "
                    "the program uses those of the shared library"
                )
            case Order.DUPLICATE:
                text = f"{fact.library} is on the link line more than once"
            case Order.UNLINKED:
                source = fact.other or "a shared library"
                text = (
                    f"{fact.library} defines {some(fact.symbols)}, but no link of this build names "
                    f"it: the program takes that from {source}"
                )
            case _:
                text = f"{fact.library} contributed nothing to the program"
        yield seen.finding(_ORDERS[fact.order], f"{text} (by {by or 'the link line'})")


def _needing(symbols: str) -> str:
    return f", which needs {symbols} of it" if symbols else ""
