"""Content of a report, as plain rows and sentences: the same for every renderer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

from ensign.model.builds import BuildFacts, BuildStatus, CheckStatus
from ensign.model.comparisons import Comparison, Direction
from ensign.model.finding_kinds.builds import SAME_BYTES
from ensign.model.finding_kinds.ran import RAN_SOMETHING_ELSE
from ensign.model.results import Result, SuiteComparison, WorkloadComparison
from ensign.model.trials import VariantFailure
from ensign.report import figures, words
from ensign.report.both_metrics import other_cell
from ensign.report.layouts import speaks_of_binaries, within_spread
from ensign.report.words import Span, clean, plain_share


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison, ready to show. `is_twin` marks the A/A twin.

    `other` is the interval by the other cost. `alone`: its own interval excludes 0, but nothing is
    claimed of it (after Holm, or in an exploration). `within_spread`: its whole interval lies in
    the layout spread of the baseline's relinks; `one_binary`: of a build that was not relinked.
    """

    name: str
    label: str
    span: Span
    interval: str
    speedup: str
    size: str
    statement: str
    direction: Direction
    executions: int
    is_twin: bool = False
    other: str = ""
    alone: bool = False
    workloads: int = 0
    non_inferior: str = ""
    within_spread: bool = False
    one_binary: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """One variant on one workload; costs are per operation."""

    row: Row
    baseline_cost: str
    variant_cost: str
    user_share: str


@dataclass(frozen=True, slots=True)
class BandCell:
    """Numbers of workloads of a variant in a band, by their mean and by their least speedup."""

    mean: int
    minimum: int

    @property
    def both(self) -> str:
        """`4`; `4 (3)` where the minimum over the rounds counts another number."""
        return str(self.mean) if self.mean == self.minimum else f"{self.mean} ({self.minimum})"


@dataclass(frozen=True, slots=True)
class VariantWorkloads:
    """All workloads of one variant, in the study's order, with a count in words.

    `bands` has a cell per band of the view, or none where the bands were not counted. `significant`
    says which workloads are shown to differ; empty where that was not asked.
    """

    name: str
    label: str
    summary: str
    is_twin: bool
    rows: tuple[WorkloadRow, ...]
    bands: tuple[BandCell, ...]
    significant: str

    @property
    def counts(self) -> tuple[int, ...]:
        """Workloads in each band, by their mean."""
        return tuple(cell.mean for cell in self.bands)


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A variant without a number of its own, and why."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResultView:
    """Rows of a result, best first; the twin stands last where it was raced.

    `has_workloads`: there are several, so that each has figures of its own.
    """

    suite: tuple[Row, ...]
    variants: tuple[VariantWorkloads, ...]
    bands: tuple[ChangeBand, ...]
    unmeasured: tuple[Unmeasured, ...]
    has_workloads: bool

    @property
    def compared(self) -> tuple[Row, ...]:
        """The suite's rows without the twin."""
        return tuple(row for row in self.suite if not row.is_twin)

    @property
    def all_bounded(self) -> bool:
        """True if every row of the suite has an interval with two ends."""
        return all(row.span.is_finite for row in self.suite)

    @property
    def twin(self) -> Row | None:
        """The twin's row over the suite, if there is one."""
        return next((row for row in self.suite if row.is_twin), None)


def view_of(result: Result) -> ResultView:
    """Everything that the renderers share."""
    suite = _suite_rows(result.suite, result)
    order = [row.name for row in suite]
    order += [name for name in _variants(result) if name not in order]
    variants = (_variant(name, result) for name in order)
    return ResultView(
        suite=suite,
        variants=tuple(variant for variant in variants if variant.rows),
        bands=bands(result.band_edges),
        unmeasured=_unmeasured(result, set(order)),
        has_workloads=len(result.workload_names) > 1,
    )


def status_of(build: BuildFacts) -> str:
    """`built`, and how the check of it ended, if there was one."""
    endings = {CheckStatus.PASSED: ", check passed", CheckStatus.FAILED: ", check FAILED"}
    return f"{clean(build.said)}{endings.get(build.check, '')}"


def row_of(comparison: Comparison, margin: float | None, *, twin: bool) -> Row:
    """A comparison with its cells in words."""
    name = clean(comparison.variant)
    return Row(
        name=comparison.variant,
        label=f"{name} (A/A twin)" if twin and "twin" not in name.lower() else name,
        span=words.span_of(comparison),
        interval=words.interval_cell(comparison),
        speedup=words.speedup_cell(comparison),
        size=words.size_cell(comparison),
        statement=words.statement(comparison, margin),
        direction=comparison.direction,
        executions=comparison.executions,
        is_twin=twin,
        other=other_cell(comparison),
    )


def _unclaimed(row: Row) -> Row:
    """The estimate in brackets, and no word of faster or slower."""
    if row.direction is Direction.UNCLEAR:
        return row
    return replace(
        row,
        alone=True,
        direction=Direction.UNCLEAR,
        speedup=f"({row.speedup})",
        statement="not claimed",
    )


def _suite_rows(suite: tuple[SuiteComparison, ...], result: Result) -> tuple[Row, ...]:
    ordered = sorted(suite, key=lambda compared: _ratio_or_last(compared.comparison))
    rows = [_suite_row(compared, result) for compared in ordered]
    return tuple(sorted(rows, key=attrgetter("is_twin")))


def _suite_row(compared: SuiteComparison, result: Result) -> Row:
    twin = compared.comparison.variant == result.twin
    row = row_of(compared.comparison, result.margin, twin=twin)
    row = row if result.confirmation is None else _unclaimed(row)
    failed = {build.variant for build in result.builds if build.check == "failed"}
    return replace(
        row,
        label=f"{row.label} (fails its check)" if row.name in failed else row.label,
        workloads=compared.workloads,
        non_inferior="" if twin else _non_inferior(compared),
        within_spread=bool(within_spread(compared.comparison, result)),
        one_binary=not twin and bool(result.builds) and speaks_of_binaries(row.name, result),
    )


def _non_inferior(compared: SuiteComparison) -> str:
    if compared.non_inferior is None:
        return ""
    if compared.non_inferior:
        return "shown"
    if not compared.not_shown:
        return "not shown"
    return f"not shown for {len(compared.not_shown)} of {compared.workloads + compared.lacking}"


def _variants(result: Result) -> list[str]:
    names = dict.fromkeys(compared.comparison.variant for compared in result.workloads)
    return sorted(names, key=lambda name: name == result.twin)


def _variant(name: str, result: Result) -> VariantWorkloads:
    pairs = [compared for compared in result.workloads if compared.comparison.variant == name]
    place = {workload: index for index, workload in enumerate(result.workload_names)}
    pairs.sort(key=lambda compared: place.get(compared.workload, len(place)))
    twin = name == result.twin
    rows = tuple(_workload_row(compared, result) for compared in pairs)
    counted = next((one for one in result.bands if one.variant == name), None)
    cells = () if counted is None else map(BandCell, counted.by_mean, counted.by_minimum)
    label = row_of(pairs[0].comparison, None, twin=twin).label if pairs else clean(name)
    return VariantWorkloads(
        name, label, _summary(rows), twin, rows, tuple(cells), _significant(name, result)
    )


def _significant(name: str, result: Result) -> str:
    significant_workloads = next((one for one in result.significant if one.variant == name), None)
    if significant_workloads is None:
        return ""
    kinds = (
        (significant_workloads.faster, Direction.FASTER),
        (significant_workloads.slower, Direction.SLOWER),
    )
    parts = [f"{len(those)} {kind.value} ({words.listed(those)})" for those, kind in kinds if those]
    return ", ".join(parts) or "none"


def _workload_row(compared: WorkloadComparison, result: Result) -> WorkloadRow:
    row = row_of(compared.comparison, result.margin, twin=False)
    if not _claimed(compared, result):
        row = _unclaimed(row)
    inside = bool(within_spread(compared.comparison, result, compared.workload))
    baseline_cost, variant_cost = _costs(compared)
    return WorkloadRow(
        row=replace(
            row, name=compared.workload, label=clean(compared.workload), within_spread=inside
        ),
        baseline_cost=baseline_cost,
        variant_cost=variant_cost,
        user_share=figures.share(compared.user_share),
    )


def _costs(compared: WorkloadComparison) -> tuple[str, str]:
    """The baseline's and the variant's, or what they say of their speed."""
    if compared.scores is None:
        return figures.cost(compared.baseline_cost_ns), figures.cost(compared.variant_cost_ns)
    baseline, variant = compared.scores
    return (
        figures.score_in_unit(baseline, compared.unit),
        figures.score_in_unit(variant, compared.unit),
    )


def _claimed(compared: WorkloadComparison, result: Result) -> bool:
    """True if faster or slower is said of a workload: by one judgment, the significant list's."""
    if result.confirmation is not None:
        return False
    significant = next(
        (one for one in result.significant if one.variant == compared.comparison.variant), None
    )
    return significant is None or compared.workload in (*significant.faster, *significant.slower)


def _summary(rows: tuple[WorkloadRow, ...]) -> str:
    directions = [compared.row.direction for compared in rows]
    parts = (
        f"{directions.count(direction)} {direction.value}"
        for direction in (Direction.FASTER, Direction.SLOWER)
    )
    alone = sum(compared.row.alone for compared in rows)
    unclear = directions.count(Direction.UNCLEAR) - alone
    texts = [*parts, f"{unclear} unclear"]
    if alone:
        texts.append(f"{alone} not claimed")
    return ", ".join(texts)


def _unmeasured(result: Result, measured: set[str]) -> tuple[Unmeasured, ...]:
    alike: dict[tuple[str, bool], list[BuildFacts]] = {}
    for build in result.builds:
        if build.variant not in measured and build.variant != result.baseline:
            # What failed several for the same reason is said once, with the log of the first.
            failed = build.status is BuildStatus.FAILED
            key = build.why_and_way_out if failed else build.variant
            alike.setdefault((key, failed), []).append(build)
    unmeasured = [
        Unmeasured(words.listed(tuple(facts.variant for facts in those)), _why(those[0], result))
        for those in alike.values()
    ]
    if not result.builds:
        unmeasured += (
            Unmeasured(clean(failure.variant), _failed(failure)) for failure in result.failures
        )
        same = (finding for finding in result.findings if finding.is_a(SAME_BYTES))
        unmeasured += (
            Unmeasured(clean(finding.subject), clean(finding.text))
            for finding in same
            if finding.subject not in measured
        )
    return tuple(unmeasured)


def _why(build: BuildFacts, result: Result) -> str:
    failed = {failure.variant: failure for failure in result.failures}
    if build.variant in failed:
        return _failed(failed[build.variant])
    reasons = {
        BuildStatus.FAILED: f"its build failed: {clean(build.failure)}",
        BuildStatus.NOT_AS_ASKED: "what was built is not what was asked for",
        BuildStatus.LEFT_OUT: f"left out: {clean(build.log_tail)}",
    }
    if build.out:
        return f"out: {clean(build.out)}"
    if not build.same_as:
        return reasons.get(build.status, "not measured")
    ended = ", which failed" if build.same_as in failed else ": no effect on the binary"
    return f"{clean(build.said)}{ended}"


def _failed(failure: VariantFailure) -> str:
    what = "ran something else" if failure.code == RAN_SOMETHING_ELSE.code else "failed"
    return f"{what} {clean(failure.where)}: {clean(failure.text)}"


def _ratio_or_last(comparison: Comparison) -> float:
    return comparison.ratio if math.isfinite(comparison.ratio) else math.inf


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
