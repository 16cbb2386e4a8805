"""Objects compared with each other by what their bytes show, whatever their flags say. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ensign.model.finding_kinds.proof import FLAGS_MAY_DIFFER, MIXED_COMPILERS
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, own_units, shown
from ensign.proof.objects import ObjectFacts

# FORTIFY replaces these always, whatever the compiler knows of sizes.
_ALWAYS_CHECKED = frozenset(("printf", "fprintf", "vprintf", "vfprintf", "sprintf", "vsprintf"))


def object_findings(seen: BuildEvidence, objects: Sequence[ObjectFacts]) -> Iterator[Finding]:
    """Compilers, LTO and FORTIFY that only some objects have, where no flags tell it already."""
    told = any(unit.words is not None for unit in own_units(seen))
    compiled = [each for each in objects if each.compilers or each.language]
    if not told:
        yield from _compilers(seen, compiled)
        yield from _lto(seen, compiled)
    if not any(unit.asked for unit in own_units(seen)):
        yield from _fortify(seen, compiled)


def _compilers(seen: BuildEvidence, objects: Sequence[ObjectFacts]) -> Iterator[Finding]:
    by: defaultdict[str, list[str]] = defaultdict(list)
    for each in objects:
        for compiler in each.compilers:
            by[compiler].append(each.name)
    if len(by) > 1:
        parts = [f"{name} ({len(made)} objects: {shown(made)})" for name, made in by.items()]
        text = f"built with more than one compiler: {'; '.join(sorted(parts))}"
        yield seen.finding(MIXED_COMPILERS, text)


def _lto(seen: BuildEvidence, objects: Sequence[ObjectFacts]) -> Iterator[Finding]:
    without = [each.name for each in objects if not each.language]
    if without and len(without) < len(objects):
        text = (
            f"the objects differ: {len(objects) - len(without)} of {len(objects)} are for LTO, "
            f"not {shown(without)}"
        )
        yield seen.finding(FLAGS_MAY_DIFFER, text)


def _fortify(seen: BuildEvidence, objects: Sequence[ObjectFacts]) -> Iterator[Finding]:
    checked = [each.name for each in objects if each.checked - {"__stack_chk"}]
    plain = [each.name for each in objects if each.unchecked & _ALWAYS_CHECKED and not each.checked]
    if checked and plain:
        text = f"FORTIFY is in {shown(checked)}, not in {shown(plain)}"
        yield seen.finding(FLAGS_MAY_DIFFER, text)
