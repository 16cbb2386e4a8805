"""What the code itself shows where nobody says its flags. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.finding_kinds.proof import FAST_MATH_START, LOOKS_UNOPTIMIZED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, own_units, some
from ensign.proof.flags import level_of
from ensign.proof.rust_calls import linked_crates
from ensign.proof.unoptimized import Unoptimized

FLUSHED = "denormals are flushed to zero for the whole process"
_NOT_OPTIMIZED = ("", "-O0")


def code_findings(seen: BuildEvidence, look: Unoptimized | None) -> Iterator[Finding]:
    """That code looks unoptimized, unless known flags say the same, or the contrary of all."""
    if not look or linked_crates(seen):
        return
    levels = {level_of(unit.words) or "" for unit in own_units(seen) if unit.words is not None}
    if levels & {*_NOT_OPTIMIZED} or (levels and look.whole):
        return
    yield seen.finding(LOOKS_UNOPTIMIZED, _text(look))


def start_up_findings(seen: BuildEvidence, *, links_fast_math: bool) -> Iterator[Finding]:
    """What the file does to a process when it is loaded."""
    if links_fast_math:
        text = f"links fast-math start-up code (crtfastmath.o): {FLUSHED}"
        library = seen.proof.binary.shared_library
        yield seen.finding(FAST_MATH_START, text + (", also in programs that load it" * library))


def _text(look: Unoptimized) -> str:
    of = f"{look.unoptimized} of the {look.functions} functions that can be told"
    of += " in the pieces read" if look.partial else ""
    names = f" ({some(look.names)})" if look.names and not look.whole else ""
    what = "looks unoptimized" if look.whole else "parts look unoptimized"
    share = look.slots / max(look.instructions, 1)
    text = (
        f"{what} (-O0): {of}{names} keep their variables on the stack: {100 * share:.0f} % of "
        f"their instructions load or store one there, {look.reloads} of these what a register "
        f"still holds; {look.framed} have a frame pointer"
    )
    return text if look.vectors else f"{text}, none vector code"
