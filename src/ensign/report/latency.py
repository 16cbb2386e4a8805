"""Latency of each variant on each workload that kept it, as cells: the same for every renderer."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.results import LatencyComparison, Result
from ensign.report import figures, words
from ensign.report.words import clean

HEADING = "Latency"
COLUMNS = (("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9"))
READ = (
    "Intervals are speedups, as everywhere: above 0 the variant answers sooner. One execution "
    "gives one value of a percentile."
)


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One variant: an interval for each percentile; of the baseline its latencies."""

    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """One workload, the baseline first."""

    workload: str
    rows: tuple[LatencyRow, ...]


def latency_tables(result: Result) -> tuple[LatencyTable, ...]:
    """A table for each workload whose latency was kept."""
    found = {
        (each.workload, each.comparison.variant, each.percentile): each for each in result.latency
    }
    names = dict.fromkeys(each.workload for each in result.latency)
    variants = dict.fromkeys(each.comparison.variant for each in result.latency)
    return tuple(
        LatencyTable(
            clean(name),
            (
                _baseline([found[name, next(iter(variants)), key] for key, _ in COLUMNS]),
                *(_row([found[name, variant, key] for key, _ in COLUMNS]) for variant in variants),
            ),
        )
        for name in names
    )


def _baseline(row: list[LatencyComparison]) -> LatencyRow:
    cells = tuple(figures.cost(each.baseline_ns) for each in row)
    return LatencyRow(clean(row[0].comparison.baseline), cells)


def _row(row: list[LatencyComparison]) -> LatencyRow:
    cells = tuple(words.interval_cell(each.comparison) for each in row)
    return LatencyRow(clean(row[0].comparison.variant), cells)
