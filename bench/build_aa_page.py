"""Pages of `build_aa.py`, from its rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def aa_page(rows: Sequence[Row]) -> str:
    """A row for each program, and the sums."""
    budgets = ", ".join(sorted({row["budget"] for row in rows}))
    seconds = [each[tool]["seconds"] for row in rows for each in row["pairs"] for tool in each]
    lines = [
        "# A/A of builds: the same flags after a harmless edit",
        "",
        (
            f"Made by `python bench/build_aa.py`. Each study raced for {budgets}; each pair of"
            f" binaries took {statistics.median(seconds):.1f} s (median). A claim is an interval"
            " (95 %) that excludes 1. Half-widths are medians; the best is s·t/√k with other"
            " relinks in each of the k rounds."
        ),
        "",
        (
            "| program | code in | claims about flags | relinks, rounds | half-width: reached,"
            " best, ratio | claims by ensign compare | by hyperfine | relinks of build time |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    sums, of_all, ratios = [0, 0, 0], 0, []
    for row in rows:
        claims, pairs = row["claims"], row["pairs"]
        by = [
            sum(each["direction"] in ("faster", "slower") for each in claims),
            *(
                sum(map(_claims, (each[tool] for each in pairs)))
                for tool in ("ensign", "hyperfine")
            ),
        ]
        reached, best = _widths(claims)
        width = f"± {reached:.2%}, ± {best:.2%}, {reached / best:.2f}" if best else "unknown"
        ratios += [reached / best] if best else []
        sums, of_all = [a + b for a, b in zip(sums, by, strict=True)], of_all + len(claims)
        cells = [
            f"{row['program']} ({row['language']})",
            row["where"],
            f"{by[0]} of {len(claims)}",
            f"{row['relinks']}, {row['rounds']}",
            width,
            f"{by[1]} of {len(pairs)}",
            f"{by[2]} of {len(pairs)}",
            f"{row['relink_s'] / row['build_s']:.0%} of {row['build_s']:.1f} s",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    median = f"{statistics.median(ratios):.2f}" if ratios else "unknown"
    told = (
        f"Differences claimed about flags: {sums[0]} of {of_all}; of one binary each: by ensign "
        f"compare {sums[1]}, by hyperfine {sums[2]}. Half-widths over the best, median: {median}."
    )
    return "\n".join((*lines, "", told, ""))


def _claims(verdict: Row) -> bool:
    _, low, high = verdict["interval"]
    return bool(low > 1 or high < 1)


def _widths(claims: Sequence[Row]) -> tuple[float, float]:
    """Medians of half-widths of log ratios: reached, and best; 0 where unknown."""
    known = [
        (math.log(each["interval"][2] / each["interval"][1]) / 2, each["best"])
        for each in claims
        if each["best"] and each["interval"][1] and each["interval"][2]
    ]
    if not known:
        return 0.0, 0.0
    reached, best = zip(*known, strict=True)
    return statistics.median(reached), statistics.median(best)


def planted_page(rows: Sequence[Row], more: float) -> str:
    """How often the planted work was found."""
    budgets = ", ".join(sorted({row["budget"] for row in rows}))
    lines = [
        f"# {more:.0%} more work in a program that layouts move",
        "",
        (
            f"Made by `python bench/build_aa.py FOLDER --planted`: {budgets} of racing each, with"
            " other relinks each time. Spreads are standard deviations between layouts, of both"
            " builds."
        ),
        "",
        "| repetition | said | cost ratio | spread | relinks, rounds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for number, row in enumerate(rows):
        (claim,) = row["claims"]
        _, low, high = claim["interval"]
        said = "withheld" if claim["withheld"] else claim["direction"]
        spread = "unknown" if claim["layout_sd"] is None else f"{claim['layout_sd']:.2%}"
        cells = [number, said, f"{low:.4f} to {high:.4f}", spread,
                 f"{row['relinks']}, {row['rounds']}"]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    found = sum(row["claims"][0]["direction"] == "slower" for row in rows)
    return "\n".join((*lines, "", f"Found {found} of {len(rows)}.", ""))
