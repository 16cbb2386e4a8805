"""The heat map of workloads and builds: what each cell says, and how strong its colour is."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from ensign.model.comparisons import Direction
from ensign.report.view import ResultView, Row, VariantWorkloads
from ensign.report.words import signed

EDGES = (-0.10, -0.05, 0.0, 0.05, 0.10, 0.20)
UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`tone` is `unclear`, or a rank from 0 (much slower) to 6; `said` stands on hover."""

    tone: str
    text: str
    said: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One workload, a cell for each build; None where it was not measured."""

    workload: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Builds from the fastest to the slowest, without the twin; workloads in the study's order."""

    builds: tuple[str, ...]
    rows: tuple[HeatRow, ...]

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """Tone and what it means."""
        return tuple((str(rank), text) for rank, text in enumerate(_MEANINGS))


_MEANINGS = (
    "slower by 10 % or more", "slower by 5 to 10 %", "slower by up to 5 %",
    "faster by up to 5 %", "faster by 5 to 10 %", "faster by 10 to 20 %", "faster by more",
)  # fmt: skip


def heat_map(view: ResultView) -> HeatMap | None:
    """None without workloads; one alone is the suite itself, and has no map either."""
    variants = [variant for variant in view.variants if not variant.is_twin]
    workloads = dict.fromkeys(compared.row.label for one in variants for compared in one.rows)
    if len(workloads) < 2:  # noqa: PLR2004
        return None
    cells = [
        {compared.row.label: _cell(one, compared.row) for compared in one.rows} for one in variants
    ]
    return HeatMap(
        tuple(one.label for one in variants),
        tuple(
            HeatRow(workload, tuple(column.get(workload) for column in cells))
            for workload in workloads
        ),
    )


def _cell(variant: VariantWorkloads, row: Row) -> HeatCell:
    said = f"{row.label}, {variant.label}: {row.speedup} ({row.interval})"
    if row.direction is Direction.UNCLEAR:
        return HeatCell(UNCLEAR, "", said)
    point = row.span.point
    digits = 0 if abs(point) >= 0.0995 else 1  # noqa: PLR2004  # four characters fit
    return HeatCell(str(bisect_left(EDGES, point)), signed(point, digits), said)
