"""Whether what was built is younger than its sources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensign.model.finding_kinds.proof import SOURCE_CHANGED
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, shown
from ensign.proof.rules_profile import CLOCKS_APART_NS, Dated


def changed_source_findings(
    seen: BuildEvidence, built: Dated | None, sources: Sequence[Dated]
) -> Iterator[Finding]:
    """`source-changed`, where a source was written after the file that it is in."""
    if built is None:
        return
    later = [each.path for each in sources if each.written_ns > built.written_ns + CLOCKS_APART_NS]
    if later:
        text = f"may not be of these sources: {shown(later)} was changed after it was built"
        yield seen.finding(SOURCE_CHANGED, f"{text}; build it again")
