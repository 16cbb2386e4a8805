"""The page docs/background/calibration.md, from the raw results of the last run of each section."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

Row = dict[str, object]

HEAD = """# Calibration

Made by `make bench` (`python bench/calibrate.py`); raw results of every single run in `bench/results/`. A comparison is
"significant" when its 95 % interval of the cost ratio B / A excludes 1. ensign's interval is its own
([one pair](statistics/one-pair.md)); hyperfine's and pyperf's are Welch's t interval over the runs that they report, all of A
and then all of B, with as many runs as take the same time. Times include everything that a user waits for.
"""


def render(results: Path) -> str:
    """The whole page; a section that was never run is left out. `notes.md` is by hand."""
    notes = results / "notes.md"
    parts = [HEAD, *([notes.read_text()] if notes.exists() else [])]
    for name, section in SECTIONS.items():
        path = results / f"{name}.json"
        if not path.exists():
            continue
        record = json.loads(path.read_text())
        when = datetime.fromtimestamp(record["started_unix_s"], tz=UTC)
        made = f"{when:%Y-%m-%d %H:%M} UTC, {record['seconds'] / 60:.0f} min"
        command = f"python bench/calibrate.py --only {name} --repetitions {record['repetitions']}"
        parts.append(f"{section(record['rows'])}\n`{command}` ({made})\n")
    return "\n".join(parts)


def _false_alarms(rows: list[Row]) -> str:
    lines = [
        "## False alarms: A against an identical A\n",
        "| program | tool | comparisons | significant | median 95 % half-width | median time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (program, tool), group in _grouped(rows, "program", "tool"):
        lines.append(
            f"| {program} | {tool} | {len(group)} | **{_significant(group)}** | "
            f"{_half_width(group)} | {_seconds(group)} |"
        )
    share = median(_number(row, "running_share") for row in rows if row["tool"] == "ensign")
    lines.append(
        f"\nA variant was running for {share:.1%} of the time between the first and the last slice (median).\n"
    )
    return "\n".join(lines)


def _detection(rows: list[Row]) -> str:
    lines = [
        "## Detection: B has more input to compress\n",
        "| planted | tool | comparisons | interval above 1 | below 1 | mean estimate | median 95 % half-width |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = {"more1": "+1 % input", "more2": "+2 % input"}
    for (planted, tool), group in _grouped(rows, "program", "tool"):
        above = sum(_number(row, "low") > 1 for row in group)
        below = sum(_number(row, "high") < 1 for row in group)
        mean = sum(_number(row, "ratio") for row in group) / len(group) - 1
        lines.append(
            f"| {names[planted]} | {tool} | {len(group)} | **{above}** | {below} | {mean:+.2%} | {_half_width(group)} |"
        )
    return "\n".join(lines) + "\n"


def _precision(rows: list[Row]) -> str:
    ours = [row for row in rows if row["tool"] == "ensign"]
    theirs = [row for row in rows if row["tool"] == "hyperfine"]
    needed = [
        _number(row, "seconds") * (((_number(row, "high") - _number(row, "low")) / 2) / 0.005) ** 2
        for row in theirs
    ]
    return (
        "## Time to ± 0.5 % (`gzip -6` of 4 MB against itself)\n\n"
        "| tool | comparisons | median time | median 95 % half-width |\n| --- | --- | --- | --- |\n"
        f"| ensign `--precision 0.5%` | {len(ours)} | {_seconds(ours)} | {_half_width(ours)} |\n"
        f"| hyperfine, same time | {len(theirs)} | {_seconds(theirs)} | {_half_width(theirs)} |\n"
        f"| hyperfine, time for ± 0.5 % if its runs were independent (they are not) | | {median(needed):.0f} s | 0.50 % |\n"
    )


def _statistics(rows: list[Row]) -> str:
    lines = ["## Statistics on a million samples\n", "| what | ms |", "| --- | --- |"]
    lines += [f"| {row['what']} | {_number(row, 'ms'):.1f} |" for row in rows]
    return "\n".join(lines) + "\n"


def _slices(rows: list[Row]) -> str:
    lines = [
        "## Bias of slicing: Redis, clang-19 `-O3 -flto` over gcc-12 `-O2`, server CPU per request\n",
        "| load | slice | cost ratio | 95 % interval | executions | a variant running |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['load']} | {row['slice']} | {_number(row, 'ratio'):.4f} | "
        f"{_number(row, 'low'):.4f} to {_number(row, 'high'):.4f} | {row['runs']} | "
        f"{_number(row, 'running_share'):.1%} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _twins(rows: list[Row]) -> str:
    lines = [
        "## Seven copies of one Redis: does a variant's place matter?\n",
        "Server CPU per request over the mean of the copies, geometric mean of 16 workloads, ± one standard error; the true value is 0.\n",
        "| | " + " | ".join(str(place) for place in range(1, 8)) + " |",
        "| --- " * 8 + "|",
    ]
    for (by,), group in _grouped(rows, "by"):
        cells = (f"{_number(row, 'percent'):+.2f} ± {_number(row, 'error'):.2f} %" for row in group)
        lines.append(f"| {by} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


SECTIONS: dict[str, Callable[[list[Row]], str]] = {
    "aa": _false_alarms,
    "detection": _detection,
    "precision": _precision,
    "statistics": _statistics,
    "slices": _slices,
    "twins": _twins,
}


def _grouped(rows: Iterable[Row], *keys: str) -> Iterable[tuple[tuple[str, ...], list[Row]]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
    return groups.items()


def _significant(rows: list[Row]) -> int:
    return sum(_number(row, "low") > 1 or _number(row, "high") < 1 for row in rows)


def _half_width(rows: list[Row]) -> str:
    return f"{median((_number(row, 'high') - _number(row, 'low')) / 2 for row in rows):.2%}"


def _seconds(rows: list[Row]) -> str:
    return f"{median(_number(row, 'seconds') for row in rows):.1f} s"


def _number(row: Row, key: str) -> float:
    value = row[key]
    return float(value) if isinstance(value, int | float) else float("nan")
