"""The result of an experiment, finished or interrupted: the input of every report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Literal

from ensign.model.builds import BuildFacts
from ensign.model.comparisons import (
    NO_EFFECTS,
    Comparison,
    Direction,
    Factorial,
    Size,
    TimeShares,
)
from ensign.model.experiment import Precision
from ensign.model.findings import Finding
from ensign.model.traced_execution import MappedFile, WhatRan
from ensign.model.trials import Metric, Mode, Trial, VariantFailure

if TYPE_CHECKING:  # few studies have some
    from ensign.model.curves import CurveSet


@dataclass(frozen=True, slots=True)
class WorkloadComparison:
    """A variant against the baseline on one workload, with what is needed to show it.

    Where a score is compared, `scores` are the baseline's and the variant's, in that `unit`, and
    their costs are not a number.
    """

    workload: str
    comparison: Comparison
    baseline_cost_ns: float
    variant_cost_ns: float
    user_share: float
    scores: tuple[float, float] | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """A variant against the baseline over all workloads of the rounds (geometric mean).

    `non_inferior` is the intersection–union claim "no workload slower than the margin":
    True when shown, False when not; `not_shown` names the workloads for which it is not shown,
    among them the tests that are `lacking`: they are none of the `workloads`.
    """

    comparison: Comparison
    workloads: int
    non_inferior: bool | None = None
    not_shown: tuple[str, ...] = ()
    lacking: int = 0


@dataclass(frozen=True, slots=True)
class LatencyComparison:
    """A variant's latency over the baseline's, at one `percentile` (`p50` … `p999`).

    Both latencies are geometric means over the rounds, in ns.
    """

    workload: str
    percentile: str
    comparison: Comparison
    baseline_ns: float
    variant_ns: float


@dataclass(frozen=True, slots=True)
class VariantBands:
    """Number of workloads of a variant in each band of speedup, the worst band first.

    A workload's speedup is that of its mean over the rounds, or the least of any round.
    """

    variant: str
    by_mean: tuple[int, ...]
    by_minimum: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SignificantWorkloads:
    """Workloads of a variant shown to differ, with one error probability for the whole list.

    An empty list is no evidence that nothing is slower; that is `SuiteComparison.non_inferior`.
    """

    variant: str
    slower: tuple[str, ...]
    faster: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayoutSplit:
    """Parts of a variant's spread: from layouts, and from executions.

    Standard deviations of log ratios (0.01 is about 1 %); `layout_high` is an upper bound at the
    study's level. `executions` counts those of all relinks together.
    """

    variant: str
    relinks: int
    executions: int
    layout_sd: float
    layout_high: float
    execution_sd: float


@dataclass(frozen=True, slots=True)
class VariantLayouts:
    """The relinks of one variant by themselves, over all workloads; the twin's are the baseline's.

    `sd` is the standard deviation of log costs between them, `low` to `high` its interval at the
    level of the study; None where relinks of the baseline were too few for a twin of its own.
    `execution_sd` is None where each relink ran once: `sd` and `high` have the noise of executions
    in them then, and `low` is 0. `ratios` are the costs of each relink over the mean of the
    baseline's, without what its rounds did to all variants, as far as the others show that. The
    true cost ratio of a fresh link to a fresh one of the baseline lies in `fresh_low` to
    `fresh_high` with 90 %; None of the baseline.
    """

    variant: str
    executions: int
    ratios: tuple[float, ...]
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    execution_sd: float | None = None
    fresh_low: float | None = None
    fresh_high: float | None = None


@dataclass(frozen=True, slots=True)
class LayoutSpread:
    """Cost ratios of relinks of the baseline over its natural link; `workload` is empty for all.

    `least` and `greatest` are measured; one more relink lies in `low` to `high` at the level of
    the study.
    """

    workload: str
    relinks: int
    least: float
    greatest: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WorstLayout:
    """The cost ratio that a fresh link of a variant stays below 19 times in 20.

    It is over the mean of the baseline's layouts, also for the baseline itself.
    """

    variant: str
    ratio: float


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """Relinks in a study. `raced` is how many of each variant the rounds used in turn, or 0.

    `kind` says in what relinks differ; `unable` names variants that were raced as one binary all
    the same. `spreads` come from a race of the baseline's relinks against its natural link, the
    spread of the whole suite first. `variants` and `worst` have each one whose relinks took turns.
    """

    raced: int
    kind: str
    unable: tuple[str, ...] = ()
    splits: tuple[LayoutSplit, ...] = ()
    spreads: tuple[LayoutSpread, ...] = ()
    worst: tuple[WorstLayout, ...] = ()
    variants: tuple[VariantLayouts, ...] = ()

    def worst_of(self, variant: str) -> float | None:
        """The worst layout to expect of a variant, as a cost ratio; None where it is not known."""
        return next((worst.ratio for worst in self.worst if worst.variant == variant), None)

    def of(self, variant: str) -> VariantLayouts | None:
        """The relinks of one variant, where they were raced in turn."""
        return next((layouts for layouts in self.variants if layouts.variant == variant), None)


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Description of this machine: ordered pairs of name and value, for people and comparison."""

    facts: tuple[tuple[str, str], ...]


STACK_SEPARATOR = ";"  # between a function and what is inlined into it


@dataclass(frozen=True, slots=True)
class CodeLine:
    """An instruction, so many bytes into its function, with its source line where that is known.

    `share` is how many of the samples in the function stand at it.
    """

    offset: int
    text: str
    share: float
    source: str = ""


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """CPU time of a function in the baseline and in a variant (ns per operation).

    `difference` is what it adds to the variant's cost, as a share of the baseline's whole cost,
    from `low` to `high`. `file` is the library that has it; empty for the program itself.
    `symbols` are what it is called in the one and in the other, where that is not its name;
    `facts` say how its code differs; `source` is the compile unit that has it, where that is known.
    `code` is where it spends its time in the one and in the other: its hottest loop, or what stands
    around its hottest instruction; of the functions that differ most alone. It is the `same_code`
    where two files have the same instructions of it, or of its hottest loop, which begins at other
    `loop_starts` then (modulo 64).
    """

    name: str
    file: str
    before_ns: float
    after_ns: float
    difference: float
    low: float
    high: float
    symbols: tuple[str, str] = ("", "")
    facts: tuple[str, ...] = ()
    source: str = ""
    code: tuple[tuple[CodeLine, ...], tuple[CodeLine, ...]] = ((), ())
    same_code: bool = False
    loop_starts: tuple[int, int] | None = None

    @property
    def excludes_zero(self) -> bool:
        """True if its own interval says that it differs."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class FunctionCosts:
    """All of the CPU time of a variant and of the baseline on a workload, by function.

    Rows add up to the `total`; those that differ most come first. `by_symbol` has functions as the
    linker knows them, `by_source` as they are written, inlined or not, `by_line` these with a line
    of their source, `by_stack` a function and those inlined into it, joined by semicolons; the last
    three are empty where there is no debug information. `samples` are those of the baseline (and
    its twin) and of the variant, and so are the `page_faults` of a mean execution. `unknown` is why
    there are no rows.
    """

    variant: str
    workload: str
    level: float
    samples: tuple[int, int] = (0, 0)
    total: FunctionCost | None = None
    by_symbol: tuple[FunctionCost, ...] = ()
    by_source: tuple[FunctionCost, ...] = ()
    by_line: tuple[FunctionCost, ...] = ()
    by_stack: tuple[FunctionCost, ...] = ()
    page_faults: tuple[float, float] = (0.0, 0.0)
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class CauseShare:
    """What a part of a difference adds, as a share of the baseline's cost, with its interval.

    `share` is of the whole difference. A part is `proven` where its effect differs from 0 beside
    all others (Holm's method). `alone` is what it adds to the baseline, `last` what it adds where
    all others are; where these differ it `depends` on others. `unknown` is why there is no figure.
    """

    name: str
    effect: float = 0.0
    low: float = 0.0
    high: float = 0.0
    share: float = 0.0
    share_low: float = 0.0
    share_high: float = 0.0
    proven: bool = False
    alone: float = 0.0
    last: float = 0.0
    depends: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Causes:
    """Shares of the difference between a variant and the baseline on a workload ("": on all).

    The parts, which are told apart `by` choices or sources, and the `rest` add up to the
    `total`. `different` says that the total differs from 0: without that nothing is proven.
    """

    variant: str
    workload: str
    by: str
    level: float
    total: CauseShare
    parts: tuple[CauseShare, ...]
    rest: CauseShare
    different: bool

    @property
    def by_one(self) -> bool:
        """True if one part is all of the difference: nothing was toggled for that."""
        rest = self.rest
        return len(self.parts) == 1 and rest.effect == rest.low == rest.high == 0


@dataclass(frozen=True, slots=True)
class Result:
    """Everything a report may show, of commands that were compared or of a study.

    Rows are against `baseline`; `twin` is its A/A twin's name, empty where none was raced. What
    failed while it was raced is in `failures` and in no other list but `builds`. `measured` has
    every variant on every workload. `band_edges` are the speedups (0.05 for +5 %) between the bands
    that `bands` counts. `factorial` has the effects of the axes. `expected` is the precision that
    was told before the first round, `precision` the half-width that was asked for (a share);
    `latency` has the workloads whose drives kept it. `stopped` says why there are no more rounds,
    where they were not counted beforehand, `withheld` why nothing is compared, where that is so.
    Times are those asked for (`budget_s`, None without one), used in all (`used_s`), and of racing
    alone (`racing_s`). A winner is chosen by what is preferred (`prefer`). `trials` are raw, where
    they are not stored elsewhere. `functions` says which ones the time of variants went to, where
    that was asked for, `causes` what the difference comes from, `curves` are curves over parameters
    of workloads. `extra` has further pairs for
    people; `redo` is the command line that repeats it. With a `confirmation` all other rows are an
    exploration, of which nothing is claimed.
    """

    name: str
    title: str
    question: str
    baseline: str
    twin: str
    metric: Metric
    margin: float | None
    level: float
    rounds_done: int
    rounds_planned: int
    racing_s: float
    mode: Mode
    slice_ns: int
    freezer: str
    running_share: float
    builds: tuple[BuildFacts, ...]
    suite: tuple[SuiteComparison, ...]
    workloads: tuple[WorkloadComparison, ...]
    workload_names: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    machine: MachineFacts
    findings: tuple[Finding, ...]
    toolchains: tuple[tuple[str, str], ...]
    source: tuple[tuple[str, str], ...]
    version: str
    made_at: str
    measured: tuple[VariantFacts, ...] = ()
    band_edges: tuple[float, ...] = ()
    bands: tuple[VariantBands, ...] = ()
    significant: tuple[SignificantWorkloads, ...] = ()
    layouts: LayoutFacts | None = None
    confirmation: Confirmation | None = None
    factorial: Factorial = NO_EFFECTS
    expected: Precision | None = None
    precision: float | None = None
    latency: tuple[LatencyComparison, ...] = ()
    failures: tuple[VariantFailure, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    ran: tuple[WhatRan, ...] = ()
    stopped: Stopped | None = None
    withheld: str = ""
    score_unit: str = ""
    time_unit: str = ""
    budget_s: float | None = None
    used_s: float | None = None
    seed: int = 0
    confinement: str = ""
    trials: tuple[Trial, ...] = ()
    prefer: Literal["mean", "robust"] = "mean"
    functions: tuple[FunctionCosts, ...] = ()
    causes: tuple[Causes, ...] = ()
    curves: tuple[CurveSet, ...] = ()

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each variant against the baseline, over all workloads; the twin is not among them."""
        return tuple(
            compared.comparison
            for compared in self.suite
            if compared.comparison.variant != self.twin
        )

    @property
    def aa(self) -> Comparison | None:
        """The baseline's copy against the baseline, where it was raced."""
        rows = (compared.comparison for compared in self.suite)
        return next((row for row in rows if row.variant == self.twin), None)

    def facts_of(self, variant: str) -> VariantFacts | None:
        """Resources that one variant used, where there is one workload alone."""
        mine = [facts for facts in self.measured if facts.variant == variant]
        return mine[0] if len(mine) == 1 else None

    @property
    def score_head(self) -> tuple[str, ...]:
        """Name of the column of scores; nothing where no variant has one."""
        if all(facts.score is None for facts in self.measured):
            return ()
        return (f"score, {self.score_unit}" if self.score_unit else "score",)

    def slower_workloads(self, variant: str) -> tuple[WorkloadComparison, ...]:
        """Workloads on which a variant is slower and not within the margin, the worst first.

        By their own intervals; `shown_slower` are those of them that hold after Holm.
        """
        comparisons = (
            workload
            for workload in self.workloads
            if workload.comparison.variant == variant
            and workload.comparison.direction is Direction.SLOWER
            and workload.comparison.size is not Size.WITHIN
        )
        return tuple(sorted(comparisons, key=lambda compared: -compared.comparison.ratio))

    def shown_slower(self, variant: str) -> tuple[WorkloadComparison, ...]:
        """Regressions of a variant: workloads shown to be slower, one error rate for their list."""
        after_holm = {
            name
            for significant in self.significant
            if significant.variant == variant
            for name in significant.slower
        }
        return tuple(
            workload
            for workload in self.slower_workloads(variant)
            if workload.workload in after_holm
        )

    @property
    def reached(self) -> Precision | None:
        """The median half-width of the variants' geometric means, and of all their workloads.

        None where an interval has no end: fewer than two rounds.
        """
        rows = [compared.comparison for compared in self.suite]
        cells = [compared.comparison for compared in self.workloads]
        # The twin's ratio is to one copy of the baseline, theirs to two: it is wider.
        suite = [_half_width(row) for row in rows if row.variant != self.twin or len(rows) == 1]
        workload = [
            _half_width(cell) for cell in cells if cell.variant != self.twin or len(rows) == 1
        ]
        if not suite or not workload or math.inf in (*suite, *workload):
            return None
        return Precision(median(suite), median(workload))


def _half_width(comparison: Comparison) -> float:
    if not 0 < comparison.low <= comparison.high < math.inf:
        return math.inf
    return math.log(comparison.high / comparison.low) / 2


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The second phase of a study whose rounds only explore; claims come from here alone.

    `plan_sha256` hashes the plan that was written before the first confirming trial; it is empty
    while the exploration is not finished. Without `finalists` nothing was worth confirming.
    `level` is that of each finalist's claims; `fresh` says what was made anew. `result` is None
    until all `rounds` of it are there: nothing is looked at before.
    """

    finalists: tuple[str, ...]
    rounds: int
    rounds_done: int
    level: float
    plan_sha256: str
    fresh: tuple[str, ...]
    result: Result | None = None


class Stopped(StrEnum):
    """Why a comparison ended."""

    DECIDED = "decided"
    PRECISION = "precision"
    BUDGET = "budget"
    EXECUTIONS = "executions"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class FailingRuns:
    """Share of a command's executions that ended with this status, or by this signal (or 0)."""

    exit: int
    signal: int
    count: int
    executions: int

    def __str__(self) -> str:
        how = f"were ended by signal {self.signal}" if self.signal else ""
        how = how or f"exited with status {self.exit}"
        return f"{self.count} of {self.executions} executions {how}"


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """One variant on one workload: means over its executions; memory is the largest peak seen.

    `user_s` and `system_s` are of the program (of the server), over its whole process tree; `wall`
    has mean, standard deviation, least and greatest (s). `cost_ns` is the mean cost of one
    operation in the metric of the comparison; `operations` the mean number of operations in an
    execution (1 for a batch program). `log_ratios` has ln(cost of this variant / cost of the
    baseline) of every execution, in order; it is empty for the baseline. `exits` has the status of
    every execution, None where a signal ended it; `failing_runs` says how often it failed, where
    failures are ignored. `ran` has each file that one traced execution mapped for execution,
    `not_judged` what it did not see. `score` is the mean of what it says of its own speed,
    in that `unit`. `most_gain` is the most that it could gain if its own code took no time (upper
    limit, 99 %); None where that is any. `shares` says where its time went.
    """

    variant: str
    workload: str
    user_s: float
    system_s: float
    wall: Spread
    peak_memory_bytes: int
    cost_ns: float
    operations: float = 1.0
    log_ratios: tuple[float, ...] = ()
    exits: tuple[int | None, ...] = ()
    failing_runs: tuple[FailingRuns, ...] = ()
    ran: tuple[MappedFile, ...] = ()
    not_judged: str = ""
    score: float | None = None
    unit: str = ""
    most_gain: float | None = None
    shares: TimeShares | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation (0 of a single value), least and greatest."""

    mean: float
    sd: float
    least: float
    greatest: float
