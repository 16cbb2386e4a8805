"""A plan as text, for any width: what will be built and raced, how long, how much disk."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from ensign.model.expectation import Basis, Expectation, PlannedVariant, Work
from ensign.model.units import format_duration, format_size
from ensign.report.words import clean, counted

_INDENT = "    "
_BASIS: Mapping[Basis, str] = {
    "measured": "as before",
    "guess": "a guess",
    "budget": "the budget",
}


def plan(expected: Expectation, width: int = 80) -> str:
    """The whole plan; nothing in it is measured, it is what was asked for and what is expected."""
    lines = [f"{expected.title or expected.name}", ""]
    lines += _variants(expected.variants, width)
    workloads = counted(len(expected.workloads), "workload")
    lines += ["", f"{workloads}, {_sweeps(expected.sweeps)}:"]
    for name, command in expected.workloads:
        lines += _wrapped(f"  {name}: {command}", width)
    if expected.confirming is not None:
        finalists, sweeps = expected.confirming
        lines += _wrapped(
            f"These explore; then the best (at most {finalists}) are built afresh and confirmed in "
            f"{_sweeps(sweeps)}, within the same budget.",
            width,
        )
    lines += [""]
    for variant, why in expected.left_out:
        lines += _wrapped(f"Left out: {variant}: {why}", width)
    lines += ["Expected:", *_work(expected.work), "", *_wrapped(_cpus(expected), width)]
    return "\n".join(lines) + "\n"


def _sweeps(number: int | None) -> str:
    return "as many sweeps as the budget holds" if number is None else counted(number, "sweep")


def _waiting(number: int | None) -> str:
    return "fitting" if number is None else str(number)


def _variants(variants: tuple[PlannedVariant, ...], width: int) -> list[str]:
    lines = [f"{counted(len(variants), 'variant')}:"]
    for variant in variants:
        marks = "  (baseline)" if variant.is_baseline else ""
        if variant.build_s:
            marks += f"  about {format_duration(variant.build_s * 1e9)}"
        lines += _wrapped(
            f"  {variant.name}: {variant.compiler} {' '.join(variant.flags)}; "
            f"link {' '.join(variant.link_flags) or 'without flags'}{marks}",
            width,
        )
    return lines


def _work(work: tuple[Work, ...]) -> list[str]:
    """A row for each kind of work and one for all of it."""
    rows = [("", "to do", "there", "time", "disk", "")]
    rows += [
        (each.name, _waiting(each.waiting), str(each.there),
         *_expected(each.wall_s, each.disk_bytes), _BASIS[each.basis] if each.waiting != 0 else "")
        for each in work
    ]  # fmt: skip
    wall_s, disk_bytes = sum(each.wall_s for each in work), sum(each.disk_bytes for each in work)
    rows.append(("in all", "", "", *_expected(wall_s, disk_bytes), ""))
    name, *numbers, basis = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join(
            (
                row[0].ljust(name),
                *(cell.rjust(width) for cell, width in zip(row[1:-1], numbers, strict=True)),
                row[-1].ljust(basis),
            )
        ).rstrip()
        for row in rows
    ]


def _expected(wall_s: float, disk_bytes: int) -> tuple[str, str]:
    return (
        format_duration(wall_s * 1e9) if wall_s > 0 else "",
        format_size(disk_bytes) if disk_bytes else "",
    )


def _cpus(expected: Expectation) -> str:
    return "CPUs: " + ", ".join(
        f"{what} on {','.join(map(str, numbers))}" for what, numbers in expected.cpus
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        clean(text),
        width,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
