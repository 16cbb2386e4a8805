"""Names of the bands of change; which workload falls into which is decided in `stats.bands`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ensign.report.words import plain_share


@dataclass(frozen=True, slots=True)
class ChangeBand:
    """One band of speedups in words; `rank` counts from the worst."""

    rank: int
    label: str
    short: str


def bands(edges: tuple[float, ...]) -> tuple[ChangeBand, ...]:
    """The bands between these edges (`Result.band_edges`); none without edges."""
    if not edges:
        return ()
    ends = edges[1:]
    better = [f"+{_bare(low)} to +{plain_share(high)}" for low, high in pairwise(ends)]
    worse = f"worse than −{plain_share(-edges[0])}"
    equal = f"within {plain_share(ends[0])}"
    labels = [worse, equal, *better, f"above +{plain_share(ends[-1])}"]
    shorts = ["worse", "equal", *(f"to +{plain_share(high)}" for high in ends[1:]), "more"]
    return tuple(
        ChangeBand(rank, label, short)
        for rank, (label, short) in enumerate(zip(labels, shorts, strict=True))
    )


def _bare(share: float) -> str:
    return plain_share(share).removesuffix(" %")
