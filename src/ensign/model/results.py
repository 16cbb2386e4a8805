"""What a finished (or interrupted) study says: the input of every report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from ensign.model.built_files import BuiltFile, identity
from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.effects import NO_EFFECTS, Factorial
from ensign.model.findings import Finding
from ensign.model.precision import Precision
from ensign.model.profile_coverage import ProfileCoverage
from ensign.model.ran import WhatRan
from ensign.model.traced import MappedFile
from ensign.model.trials import Metric, Mode, Trial, VariantFailure


class BuildStatus(StrEnum):
    """What came of a build: see `BuildFacts.status`."""

    BUILT = "built"
    CACHED = "cached"
    FAILED = "failed"
    LEFT_OUT = "left out"
    NOT_AS_ASKED = "not as asked"
    SAME = "same"


class CheckStatus(StrEnum):
    """What came of the check of a build."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """One variant as built.

    `status`: `left out`, nothing was tried; `not as asked`, built of other parts or with other
    flags; `same`, its loaded bytes are those of the variant `same_as`, which is raced for it.
    `flags` are the compile flags asked for, `link_flags` those at the link; `choices` the axis
    values. `build_s` is the time of the build itself, also when it came from the cache, with the
    collection of its profile, without its dependencies. Sizes are of the artifact: file, and all
    executable sections. `loadable_sha256` hashes the bytes that get loaded. `log_tail` has the last
    lines of a failed build, or the reason why one was left out. `evidence` says what the artifact
    shows of the flags. `check` is `passed`, `failed` or `not checked`; `check_failed` says what
    failed, `check_tail` has the last lines of the check's log then; `out` why it is not raced at
    all. `layouts` has the loadable hash of each relink, and `layout_kind` says in what they differ.
    `files` are all that count, the
    program first; records of earlier versions have none. `coverage` is how much of the program had
    a profile, for whom.
    """

    variant: str
    choices: tuple[tuple[str, str], ...]
    compiler: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    status: BuildStatus
    build_s: float
    size_bytes: int
    text_bytes: int
    loadable_sha256: str
    log_path: str = ""
    log_tail: str = ""
    evidence: tuple[str, ...] = ()
    check: CheckStatus = CheckStatus.NOT_CHECKED
    check_failed: str = ""
    check_tail: str = ""
    out: str = ""
    layouts: tuple[str, ...] = ()
    layout_kind: str = ""
    files: tuple[BuiltFile, ...] = ()
    same_as: str = ""
    coverage: tuple[ProfileCoverage, ...] = ()

    @property
    def identity(self) -> str:
        """One hash for all files that count; that of the program where it is the only one."""
        return identity(self.files, self.loadable_sha256)

    @property
    def said(self) -> str:
        """The status in words: `built`, `same as NAME`."""
        return f"same as {self.same_as}" if self.same_as else self.status

    @property
    def bad(self) -> bool:
        """Whether it was tried, and there is no build of it that may be used."""
        return self.status in (BuildStatus.FAILED, BuildStatus.NOT_AS_ASKED)

    @property
    def raced_as(self) -> str:
        """The variant that is raced for it: itself, or the one whose bytes it has."""
        return self.same_as or self.variant


@dataclass(frozen=True, slots=True)
class WorkloadComparison:
    """A variant against the baseline on one workload, with what is needed to show it."""

    workload: str
    comparison: Comparison
    baseline_cost_ns: float
    variant_cost_ns: float
    user_share: float


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """A variant against the baseline over all workloads of the rounds (geometric mean).

    `non_inferior` is the intersection–union claim "no workload slower than the margin":
    True when shown, False when not; `not_shown` names the workloads for which it is not shown.
    """

    comparison: Comparison
    workloads: int
    non_inferior: bool | None = None
    not_shown: tuple[str, ...] = ()


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
    """How many workloads of a variant lie in each band of speedup, the worst band first.

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
    """What part of a variant's spread comes from layouts, and what from executions.

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
class LayoutFacts:
    """Relinks in a study. `raced` is how many of each variant the rounds used in turn, or 0.

    `kind` says in what relinks differ; `unable` names variants that were raced as one binary all
    the same. `spreads` come from a race of the baseline's relinks against its natural link, the
    spread of the whole suite first.
    """

    raced: int
    kind: str
    unable: tuple[str, ...] = ()
    splits: tuple[LayoutSplit, ...] = ()
    spreads: tuple[LayoutSpread, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What this machine is: ordered pairs of name and value, for people and for comparison."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StudyResult:
    """Everything a report may show. Rows are against `baseline`; `twin` is its A/A twin's name.

    `band_edges` are the speedups (0.05 for +5 %) between the bands that `bands` counts.
    `factorial` has the effects of the axes. `expected` is the precision that was told before the
    first round; `latency` has the workloads whose drives kept it.
    `failures` has what failed while it was raced: those variants are in no other list but `builds`.
    `extra` has further pairs for people; `redo` is the command line that repeats the study. With a
    `confirmation` all other rows are an exploration, of which nothing is claimed.
    """

    name: str
    title: str
    question: str
    baseline: str
    twin: str
    metric: str
    margin: float | None
    level: float
    rounds_done: int
    rounds_planned: int
    racing_s: float
    mode: str
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
    band_edges: tuple[float, ...] = ()
    bands: tuple[VariantBands, ...] = ()
    significant: tuple[SignificantWorkloads, ...] = ()
    layouts: LayoutFacts | None = None
    confirmation: Confirmation | None = None
    factorial: Factorial = NO_EFFECTS
    expected: Precision | None = None
    latency: tuple[LatencyComparison, ...] = ()
    failures: tuple[VariantFailure, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    ran: tuple[WhatRan, ...] = ()

    def slower_workloads(self, variant: str) -> tuple[WorkloadComparison, ...]:
        """Workloads on which a variant is slower and not within the margin, the worst first.

        By their own intervals; `shown_slower` are those of them that hold after Holm.
        """
        found = (
            each
            for each in self.workloads
            if each.comparison.variant == variant
            and each.comparison.direction is Direction.SLOWER
            and each.comparison.size is not Size.WITHIN
        )
        return tuple(sorted(found, key=lambda each: -each.comparison.ratio))

    def shown_slower(self, variant: str) -> tuple[WorkloadComparison, ...]:
        """Regressions of a variant: workloads shown to be slower, one error rate for their list."""
        after_holm = {
            name for each in self.significant if each.variant == variant for name in each.slower
        }
        return tuple(each for each in self.slower_workloads(variant) if each.workload in after_holm)

    @property
    def reached(self) -> Precision | None:
        """The median half-width of the variants' geometric means, and of all their workloads.

        None where an interval has no end: fewer than two rounds.
        """
        rows = [each.comparison for each in self.suite]
        cells = [each.comparison for each in self.workloads]
        # The twin's ratio is to one copy of the baseline, theirs to two: it is wider.
        suite = [_half_width(each) for each in rows if each.variant != self.twin or len(rows) == 1]
        workload = [
            _half_width(each) for each in cells if each.variant != self.twin or len(rows) == 1
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
    result: StudyResult | None = None


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
class FailedVariant:
    """A command that failed, so that it is out of the race: see `VariantFailure`.

    `execution` counts from 1; None where it failed before the measured ones.
    """

    name: str
    command: str
    code: str
    text: str
    execution: int | None = None
    exit: int | None = None
    signal: int | None = None

    @property
    def when(self) -> str:
        """In which execution, in words."""
        return "before the race" if self.execution is None else f"in execution {self.execution}"


@dataclass(frozen=True, slots=True)
class FailingRuns:
    """How many of the executions of a command ended with this status, or by this signal (or 0)."""

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
    """One variant of `ensign compare`: means over its executions; memory is the largest peak seen.

    `user_s` and `system_s` are of the program (of the server), over its whole process tree.
    `cost_ns` is the mean cost of one operation in the metric of the comparison; `operations` the
    mean number of operations in an execution (1 for a batch program). `log_ratios` has ln(cost of
    this variant / cost of the baseline) of every execution, in order; it is empty for the baseline.
    `failing_runs` says how often it failed, where failures are ignored. `ran` has each file that
    one traced execution mapped for execution, `not_judged` what it did not see. `score` is the mean
    of what it says of its own speed.
    """

    name: str
    command: str
    user_s: float
    system_s: float
    wall_s: float
    peak_memory_bytes: int
    cost_ns: float
    operations: float = 1.0
    log_ratios: tuple[float, ...] = ()
    failing_runs: tuple[FailingRuns, ...] = ()
    ran: tuple[MappedFile, ...] = ()
    not_judged: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class CompareResult:
    """Everything that `ensign compare` may show.

    `variants` are in the user's order, the first is the baseline; `twin` is the A/A twin's variant,
    whose comparison is `aa`. `comparisons` has one row per further variant, without the twin; what
    failed is in `failed` alone, but for its earlier executions among the raw `trials`. `budget_s`
    and `precision` (a share) are what was asked for, `used_s` what was used. `withheld` says why
    nothing is compared, where that is so. `extra` has further pairs for people, such as the command
    line to redo it (`redo`).
    """

    variants: tuple[VariantFacts, ...]
    twin: VariantFacts | None
    comparisons: tuple[Comparison, ...]
    aa: Comparison | None
    metric: Metric
    mode: Mode
    slice_ns: int
    freezer: str
    level: float
    margin: float | None
    precision: float | None
    executions: int
    budget_s: float | None
    used_s: float
    running_share: float
    stopped: Stopped
    findings: tuple[Finding, ...]
    machine: MachineFacts
    trials: tuple[Trial, ...]
    seed: int
    version: str
    made_at: str
    withheld: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    failed: tuple[FailedVariant, ...] = ()
    score_unit: str = ""

    @property
    def score_head(self) -> tuple[str, ...]:
        """What the column of scores is called; nothing where no variant has one."""
        if all(variant.score is None for variant in self.variants):
            return ()
        return (f"score, {self.score_unit}" if self.score_unit else "score",)
