"""The difference of two studies as text, as GitHub Markdown and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.quoting import json_visible
from ensign.model.units import pluralize, speedup
from ensign.report import words
from ensign.report.github import safe
from ensign.report.plain_tables import Table, aligned, folded, grid, wrapped
from ensign.report.words import clean, listed, percent, plain_share
from ensign.stats.changes import Differing, RatioChange, StudyDifference

_SIGNIFICANT = "Workloads that moved (significant after Holm's adjustment)"
_COLUMNS = (
    "Columns A and B are speedups against the baseline of the same study. The change is the ratio "
    "of both, less 1: +2 % means that the variant stands 2 % better against the baseline in B. "
    "Costs of one study are never compared with those of the other."
)
_SCOPE = (
    "Rounds of one study share its boot and its builds: a change speaks of these two measurements, "
    "not of all boots of the two machines."
)
_NO_EVIDENCE = (
    "“No evidence of a change” is no evidence that nothing changed; that is said only where the "
    "whole interval lies within the margin."
)


def text(found: StudyDifference, width: int = 80) -> str:
    """For a terminal or a file: prose wrapped, tables as wide as they must be."""
    view = difference_view(found)
    lines = wrapped(view.headline, width)
    for sentence in view.sentences:
        lines += wrapped(sentence, width)
    for warning in view.warnings:
        lines += wrapped(f"! {warning}", width)
    for table in (view.suite, *view.workloads):
        lines += ["", *aligned(table)]
    for table in view.differing:
        lines += ["", table.heading]
        for name, a, b in table.rows:
            lines += wrapped(f"{name}: A {a}; B {b}", width)
    lines += ["", _SIGNIFICANT]
    for each in view.significant:
        lines += wrapped(each, width)
    lines += [""]
    for note in view.notes:
        lines += wrapped(note, width)
    return "\n".join(lines) + "\n"


def markdown(found: StudyDifference) -> str:
    """For a pull request: the answer, the geometric means; the rest folded."""
    view = difference_view(found)
    parts = [
        f"**{safe(view.headline)}**",
        " ".join(map(safe, view.sentences)),
        *(f"> ⚠️ {safe(warning)}" for warning in view.warnings),
        grid(view.suite),
        f"#### {_SIGNIFICANT}",
        "\n".join(f"- {safe(each)}" for each in view.significant),
        *(folded(table) for table in (*view.differing, *view.workloads)),
        "\n".join(f"- {safe(note)}" for note in view.notes),
    ]
    return "\n\n".join(parts) + "\n"


def as_json(found: StudyDifference) -> str:
    """Ratios of cost ratios (above 1: relatively slower in B); what is infinite is null."""
    said = {
        "a": asdict(found.a),
        "b": asdict(found.b),
        "baseline": found.baseline,
        "twin": found.twin,
        "level": found.level,
        "margin": found.margin,
        "suite": [_change(change, found) for change in found.suite],
        "workloads": [_change(workload, found) for workload in found.workloads],
        "significant": [asdict(significant) for significant in found.significant],
        "builds": [{**asdict(build), "same": build.same} for build in found.builds],
        "machine": [asdict(differing) for differing in found.machine],
        "settings": [asdict(setting) for setting in found.settings],
        "only_a": found.only_a,
        "only_b": found.only_b,
        "findings": [asdict(finding) for finding in found.findings],
    }
    return json_visible(json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def _change(change: RatioChange, found: StudyDifference) -> dict[str, object]:
    compared = change.comparison
    return {
        "variant": compared.variant,
        "workload": change.workload or None,
        "metric": compared.metric.value,
        "ratio_a": change.ratio_a,
        "ratio_b": change.ratio_b,
        "ratio": compared.ratio,
        "low": compared.low,
        "high": compared.high if math.isfinite(compared.high) else None,
        "direction": compared.direction.value,
        "size": None if compared.size is None else compared.size.value,
        "answer": answer(compared, found.margin),
    }


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """`headline` is the answer, `sentences` belong to it, `warnings` may overturn it."""

    headline: str
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    suite: Table
    workloads: tuple[Table, ...]
    significant: tuple[str, ...]
    differing: tuple[Table, ...]
    notes: tuple[str, ...]


def difference_view(found: StudyDifference) -> DifferenceView:
    """Everything that the renderers of a difference share."""
    rows = [change for change in found.suite if change.comparison.variant != found.twin]
    return DifferenceView(
        headline=_headline(rows, found),
        sentences=(*_sides(found), *_builds(found), *_machine(found), *_alone(found)),
        warnings=tuple(clean(finding.text) for finding in found.findings),
        suite=_table("All workloads (geometric mean)", "variant", found.suite, found),
        workloads=tuple(_workloads(change.comparison.variant, found) for change in found.suite),
        significant=_significant(found),
        differing=tuple(
            Table(heading, ("", "A", "B"), tuple(map(_cells, differing)))
            for heading, differing in (
                ("Facts of the machine that differ", found.machine),
                ("Settings that differ", found.settings),
            )
            if differing
        ),
        notes=_notes(found),
    )


def answer(comparison: Comparison, margin: float | None) -> str:
    """`gained`, `lost`, `shown to be within 1 %`, or `no evidence of a change`."""
    within = comparison.size is Size.WITHIN and margin is not None
    limit = "" if margin is None else plain_share(margin)
    if comparison.direction is Direction.UNCLEAR:
        return f"shown to be within {limit}" if within else "no evidence of a change"
    word = "gained" if comparison.direction is Direction.FASTER else "lost"
    if within:
        return f"{word}, by less than {limit}"
    beyond = comparison.size is Size.BEYOND
    return f"{word}, by more than {limit}" if beyond else word


def _headline(rows: list[RatioChange], found: StudyDifference) -> str:
    """Over all workloads, and which variants moved."""
    if not rows:
        return "The two studies have no variant in common but the baseline."
    moved = [change for change in rows if change.comparison.direction is not Direction.UNCLEAR]
    against = f"against {clean(found.baseline)}"
    if moved:
        names = listed(tuple(change.comparison.variant for change in moved))
        return f"From A to B {pluralize(len(moved), 'variant')} changed {against}: {names}."
    within = [change for change in rows if change.comparison.size is Size.WITHIN]
    if len(within) == len(rows) and found.margin is not None:
        limit = plain_share(found.margin)
        return f"From A to B no variant changed {against} by more than {limit}: shown for each."
    left = tuple(row.comparison.variant for row in rows if row not in within)
    return (
        f"No evidence that a variant changed {against} from A to B; that it did not is not shown "
        f"for {listed(left)}."
    )


def _sides(found: StudyDifference) -> tuple[str, ...]:
    return tuple(
        f"{letter}: {clean(side.label)} ({clean(side.name)}, {clean(side.made_at)}, "
        f"{pluralize(side.rounds, 'round')}, ensign {clean(side.version)})."
        for letter, side in (("A", found.a), ("B", found.b))
    )


def _builds(found: StudyDifference) -> tuple[str, ...]:
    others = tuple(build.variant for build in found.builds if not build.same)
    if not others:
        return ("Same builds: what gets loaded is the same bytes for every variant.",)
    if len(others) == len(found.builds):
        return ("Other builds: no variant has the same bytes in both.",)
    return (f"Other builds: the bytes of {listed(others)} differ; the others are the same.",)


def _machine(found: StudyDifference) -> tuple[str, ...]:
    machine = (
        f"Another machine, or another state of it; what differs: {listed(_names(found.machine))}."
        if found.machine
        else "Same machine, as far as its facts tell."
    )
    settings = (
        f"Measured otherwise; what differs: {listed(_names(found.settings))}."
        if found.settings
        else "Same settings."
    )
    return machine, settings


def _names(differing: tuple[Differing, ...]) -> tuple[str, ...]:
    return tuple(each.name for each in differing)


def _alone(found: StudyDifference) -> tuple[str, ...]:
    return tuple(
        f"Only in {letter}: {listed(names)}."
        for letter, names in (("A", found.only_a), ("B", found.only_b))
        if names
    )


def _workloads(variant: str, found: StudyDifference) -> Table:
    changes = tuple(
        workload for workload in found.workloads if workload.comparison.variant == variant
    )
    return _table(f"{clean(variant)}, by workload", "workload", changes, found)


def _table(
    heading: str, first: str, changes: tuple[RatioChange, ...], found: StudyDifference
) -> Table:
    columns = (first, "A", "B", f"change, {plain_share(found.level)} interval", "answer")
    rows = tuple(
        (
            clean(change.workload or change.comparison.variant),
            percent(speedup(change.ratio_a)),
            percent(speedup(change.ratio_b)),
            words.interval_cell(change.comparison),
            answer(change.comparison, found.margin),
        )
        for change in changes
    )
    return Table(heading, columns, rows)


def _significant(found: StudyDifference) -> tuple[str, ...]:
    lines = []
    for significant in found.significant:
        kinds = (("gained", significant.faster), ("lost", significant.slower))
        parts = [f"{len(those)} {kind} ({listed(those)})" for kind, those in kinds if those]
        lines.append(f"{clean(significant.variant)}: {', '.join(parts) or 'none'}")
    return tuple(lines)


def _cells(differing: Differing) -> tuple[str, ...]:
    return clean(differing.name), clean(differing.a) or "none", clean(differing.b) or "none"


def _notes(found: StudyDifference) -> tuple[str, ...]:
    level = plain_share(found.level)
    intervals = (
        "Intervals are Welch's, from the rounds of both studies, which are independent. Each "
        f"covers {level} by itself; which workloads moved is told after Holm's adjustment, at "
        f"{level} for each variant's list."
    )
    return (_COLUMNS, intervals, _SCOPE, _NO_EVIDENCE)
