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


def text(difference: StudyDifference, width: int = 80) -> str:
    """For a terminal or a file: prose wrapped, tables as wide as they must be."""
    view = difference_view(difference)
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
    for line in view.significant:
        lines += wrapped(line, width)
    lines += [""]
    for note in view.notes:
        lines += wrapped(note, width)
    return "\n".join(lines) + "\n"


def markdown(difference: StudyDifference) -> str:
    """For a pull request: the answer, the geometric means; the rest folded."""
    view = difference_view(difference)
    parts = [
        f"**{safe(view.headline)}**",
        " ".join(map(safe, view.sentences)),
        *(f"> ⚠️ {safe(warning)}" for warning in view.warnings),
        grid(view.suite),
        f"#### {_SIGNIFICANT}",
        "\n".join(f"- {safe(line)}" for line in view.significant),
        *(folded(table) for table in (*view.differing, *view.workloads)),
        "\n".join(f"- {safe(note)}" for note in view.notes),
    ]
    return "\n\n".join(parts) + "\n"


def as_json(difference: StudyDifference) -> str:
    """Ratios of cost ratios (above 1: relatively slower in B); what is infinite is null."""
    document = {
        "a": asdict(difference.a),
        "b": asdict(difference.b),
        "baseline": difference.baseline,
        "twin": difference.twin,
        "level": difference.level,
        "margin": difference.margin,
        "suite": [_change(change, difference) for change in difference.suite],
        "workloads": [_change(workload, difference) for workload in difference.workloads],
        "significant": [asdict(significant) for significant in difference.significant],
        "builds": [{**asdict(build), "same": build.same} for build in difference.builds],
        "machine": [asdict(differing) for differing in difference.machine],
        "settings": [asdict(setting) for setting in difference.settings],
        "only_a": difference.only_a,
        "only_b": difference.only_b,
        "findings": [asdict(finding) for finding in difference.findings],
    }
    return json_visible(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def _change(change: RatioChange, difference: StudyDifference) -> dict[str, object]:
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
        "answer": answer(compared, difference.margin),
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


def difference_view(difference: StudyDifference) -> DifferenceView:
    """Everything that the renderers of a difference share."""
    rows = [change for change in difference.suite if change.comparison.variant != difference.twin]
    return DifferenceView(
        headline=_headline(rows, difference),
        sentences=(
            *_sides(difference),
            *_builds(difference),
            *_machine(difference),
            *_alone(difference),
        ),
        warnings=tuple(clean(finding.text) for finding in difference.findings),
        suite=_table("All workloads (geometric mean)", "variant", difference.suite, difference),
        workloads=tuple(
            _workloads(change.comparison.variant, difference) for change in difference.suite
        ),
        significant=_significant(difference),
        differing=tuple(
            Table(heading, ("", "A", "B"), tuple(map(_cells, differing)))
            for heading, differing in (
                ("Facts of the machine that differ", difference.machine),
                ("Settings that differ", difference.settings),
            )
            if differing
        ),
        notes=_notes(difference),
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


def _headline(rows: list[RatioChange], difference: StudyDifference) -> str:
    """Over all workloads, and which variants moved."""
    if not rows:
        return "The two studies have no variant in common but the baseline."
    moved = [change for change in rows if change.comparison.direction is not Direction.UNCLEAR]
    against = f"against {clean(difference.baseline)}"
    if moved:
        names = listed(tuple(change.comparison.variant for change in moved))
        return f"From A to B {pluralize(len(moved), 'variant')} changed {against}: {names}."
    within = [change for change in rows if change.comparison.size is Size.WITHIN]
    if len(within) == len(rows) and difference.margin is not None:
        limit = plain_share(difference.margin)
        return f"From A to B no variant changed {against} by more than {limit}: shown for each."
    left = tuple(row.comparison.variant for row in rows if row not in within)
    return (
        f"No evidence that a variant changed {against} from A to B; that it did not is not shown "
        f"for {listed(left)}."
    )


def _sides(difference: StudyDifference) -> tuple[str, ...]:
    return tuple(
        f"{letter}: {clean(side.label)} ({clean(side.name)}, {clean(side.made_at)}, "
        f"{pluralize(side.rounds, 'round')}, ensign {clean(side.version)})."
        for letter, side in (("A", difference.a), ("B", difference.b))
    )


def _builds(difference: StudyDifference) -> tuple[str, ...]:
    others = tuple(build.variant for build in difference.builds if not build.same)
    if not others:
        return ("Same builds: what gets loaded is the same bytes for every variant.",)
    if len(others) == len(difference.builds):
        return ("Other builds: no variant has the same bytes in both.",)
    return (f"Other builds: the bytes of {listed(others)} differ; the others are the same.",)


def _machine(difference: StudyDifference) -> tuple[str, ...]:
    machine = (
        "Another machine, or another state of it; what differs: "
        f"{listed(_names(difference.machine))}."
        if difference.machine
        else "Same machine, as far as its facts tell."
    )
    settings = (
        f"Measured otherwise; what differs: {listed(_names(difference.settings))}."
        if difference.settings
        else "Same settings."
    )
    return machine, settings


def _names(differing: tuple[Differing, ...]) -> tuple[str, ...]:
    return tuple(axis.name for axis in differing)


def _alone(difference: StudyDifference) -> tuple[str, ...]:
    return tuple(
        f"Only in {letter}: {listed(names)}."
        for letter, names in (("A", difference.only_a), ("B", difference.only_b))
        if names
    )


def _workloads(variant: str, difference: StudyDifference) -> Table:
    changes = tuple(
        workload for workload in difference.workloads if workload.comparison.variant == variant
    )
    return _table(f"{clean(variant)}, by workload", "workload", changes, difference)


def _table(
    heading: str, first: str, changes: tuple[RatioChange, ...], difference: StudyDifference
) -> Table:
    columns = (first, "A", "B", f"change, {plain_share(difference.level)} interval", "answer")
    rows = tuple(
        (
            clean(change.workload or change.comparison.variant),
            percent(speedup(change.ratio_a)),
            percent(speedup(change.ratio_b)),
            words.interval_cell(change.comparison),
            answer(change.comparison, difference.margin),
        )
        for change in changes
    )
    return Table(heading, columns, rows)


def _significant(difference: StudyDifference) -> tuple[str, ...]:
    lines = []
    for significant in difference.significant:
        kinds = (("gained", significant.faster), ("lost", significant.slower))
        parts = [f"{len(those)} {kind} ({listed(those)})" for kind, those in kinds if those]
        lines.append(f"{clean(significant.variant)}: {', '.join(parts) or 'none'}")
    return tuple(lines)


def _cells(differing: Differing) -> tuple[str, ...]:
    return clean(differing.name), clean(differing.a) or "none", clean(differing.b) or "none"


def _notes(difference: StudyDifference) -> tuple[str, ...]:
    level = plain_share(difference.level)
    intervals = (
        "Intervals are Welch's, from the rounds of both studies, which are independent. Each "
        f"covers {level} by itself; which workloads moved is told after Holm's adjustment, at "
        f"{level} for each variant's list."
    )
    return (_COLUMNS, intervals, _SCOPE, _NO_EVIDENCE)
