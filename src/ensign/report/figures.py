"""Quantities as people read them: costs, times, sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ensign.model.quoting import visible
from ensign.model.results import LatencyComparison, Result, Spread
from ensign.model.units import format_duration, format_gain, format_size
from ensign.report import words
from ensign.report.words import clean

HEADING = "Latency"
COLUMNS = (("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9"))
READ = (
    "Intervals are speedups, as everywhere: above 0 the variant answers sooner. One execution "
    "gives one value of a percentile."
)

_ANY_GAIN = 9.0


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
    compared_by_key = {
        (compared.workload, compared.comparison.variant, compared.percentile): compared
        for compared in result.latency
    }
    names = dict.fromkeys(compared.workload for compared in result.latency)
    variants = dict.fromkeys(compared.comparison.variant for compared in result.latency)
    return tuple(
        LatencyTable(
            clean(name),
            (
                _baseline([compared_by_key[name, next(iter(variants)), key] for key, _ in COLUMNS]),
                *(
                    _row([compared_by_key[name, variant, key] for key, _ in COLUMNS])
                    for variant in variants
                ),
            ),
        )
        for name in names
    )


def _baseline(row: list[LatencyComparison]) -> LatencyRow:
    cells = tuple(cost(compared.baseline_ns) for compared in row)
    return LatencyRow(clean(row[0].comparison.baseline), cells)


def _row(row: list[LatencyComparison]) -> LatencyRow:
    cells = tuple(words.interval_cell(compared.comparison) for compared in row)
    return LatencyRow(clean(row[0].comparison.variant), cells)


_UNITS = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
# From here on all digits before the point are shown, and none behind it.
_MANY = 1000


def cost(ns: float) -> str:
    """`812 ns`, `1.35 µs`, `0.84 s` of CPU or wall time per operation, to three figures."""
    if not math.isfinite(ns) or ns <= 0:
        return "unknown"
    unit, scale = _UNITS[0]
    for unit, scale in reversed(_UNITS):  # noqa: B007  # both are used after the loop
        if ns >= scale:
            break
    return f"{three_figures(ns / scale)} {unit}"


_NAMED = {"second": ("s", 1.0), "millisecond": ("ms", 1e3), "microsecond": ("µs", 1e6)}


def seconds(value_s: float, unit: str = "") -> str:
    """`0 s`, `31.2 ms`, `0.81 s`, `4 min 05 s`; or in the unit of that name."""
    if unit:
        short, scale = _NAMED[unit]
        return f"{three_figures(value_s * scale)} {short}"
    return "0 s" if value_s <= 0 else format_duration(value_s * 1e9)


def mean_and_sd(spread: Spread, unit: str = "") -> str:
    """`158 ms ± 3.1 ms`."""
    return f"{seconds(spread.mean, unit)} ± {seconds(spread.sd, unit)}"


def least_to_greatest(spread: Spread, unit: str = "") -> str:
    """`152 … 170 ms`, the unit once where both have it."""
    least, greatest = seconds(spread.least, unit), seconds(spread.greatest, unit)
    number, _, unit = least.rpartition(" ")
    return f"{number if greatest.endswith(f' {unit}') else least} … {greatest}"


def size(size_bytes: int) -> str:
    """`3.4 MiB`, or `unknown` where nothing was recorded."""
    return format_size(size_bytes) if size_bytes > 0 else "unknown"


def share(value: float) -> str:
    """`98.2 %` of a measured share; `unknown` when it is none."""
    return f"{value * 100:.1f} %" if math.isfinite(value) else "unknown"


def most_gain(share: float | None) -> str:
    """`+19 %`, rounded up; `any` where nearly all of it is the program's own code."""
    if share is None or share > _ANY_GAIN:
        return "any"
    return format_gain(share)


def score(value: float | None) -> tuple[str, ...]:
    """`1,234,567` or `0.0432`: nothing where there is none."""
    if value is None:
        return ()
    return (f"{value:,.0f}" if abs(value) >= _MANY else three_figures(value),)


def score_in_unit(value: float, unit: str) -> str:
    """`1,234,567 ops/s`; seconds as costs are shown: `645 ns`."""
    if unit == "s":
        return cost(value * 1e9)
    return visible(f"{score(value)[0]} {unit}".strip())


_LARGE = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def rate(value: float) -> str:
    """`1.35 M`, `13.5 k`, `0.42`: a number per second, to three figures."""
    if not math.isfinite(value) or value <= 0:
        return "unknown"
    letter, scale = next((one for one in _LARGE if value >= one[1]), ("", 1.0))
    return f"{three_figures(value / scale)} {letter}".strip()


def three_figures(value: float) -> str:
    """`1.35`, `13.5`, `135`, `1350`: never an exponent."""
    if value <= 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:.{digits}f}"
