"""From trials to what each variant used on each workload. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from statistics import fmean, stdev

from ensign.experiment.exclusions import failing_runs
from ensign.model.builds import BuildFacts
from ensign.model.experiment import Precision
from ensign.model.findings import Finding
from ensign.model.quoting import quoted
from ensign.model.results import FunctionCosts, MachineFacts, Result, Spread, Stopped, VariantFacts
from ensign.model.traced_execution import MappedFile, WhatRan
from ensign.model.trials import TWIN, Metric, Mode, Trial, VariantFailure, VariantTotals
from ensign.stats.both_metrics import time_shares
from ensign.stats.readings import most_gain
from ensign.stats.rounds import RoundCosts
from ensign.stats.trials import mean_cost_ns


@dataclass(frozen=True, slots=True)
class SeenRunning:
    """Files that one traced execution mapped for execution, and what it did not see."""

    mapped: tuple[MappedFile, ...] = ()
    not_judged: str = ""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Trials of these variants (baseline first), workloads and costs."""

    costs: RoundCosts
    seen: Mapping[str, SeenRunning] = field(default_factory=dict)

    def facts(self, trials: Sequence[Trial]) -> tuple[VariantFacts, ...]:
        """One for each variant and workload of the whole rounds."""
        return tuple(
            self._of([trial for trial in trials if trial.workload == workload], variant, workload)
            for workload in self.costs.workloads
            for variant in self.costs.variants
        )

    def _of(self, trials: Sequence[Trial], variant: str, workload: str) -> VariantFacts:
        totals = [trial.variant(variant) for trial in trials]
        baseline = self.costs.variants[0]
        seen = self.seen.get(baseline if variant == TWIN else variant, SeenRunning())
        scores = [one.score for one in totals if one.score is not None]
        return VariantFacts(
            variant=variant,
            workload=workload,
            user_s=fmean(one.user_ns for one in totals) / 1e9,
            system_s=fmean(one.system_ns for one in totals) / 1e9,
            wall=spread_of([one.wall_ns / 1e9 for one in totals]),
            peak_memory_bytes=max(one.peak_memory_bytes for one in totals),
            cost_ns=nan if scores else mean_cost_ns(trials, variant, self.costs.metric),
            operations=fmean(one.operations for one in totals),
            log_ratios=() if variant == baseline else self._log_ratios(variant, workload),
            exits=tuple(None if one.signal else one.exit for one in totals),
            failing_runs=failing_runs(trials, variant),
            ran=seen.mapped,
            not_judged=seen.not_judged,
            score=fmean(scores) if scores else None,
            unit=totals[0].unit,
            most_gain=self._most_gain(totals),
            shares=time_shares(trials, variant),
        )

    def _most_gain(self, totals: Sequence[VariantTotals]) -> float | None:
        walls = self.costs.metric is not Metric.CPU
        most = most_gain(
            sum(one.user_ns for one in totals),
            sum(one.cpu_ns for one in totals),
            sum(one.wall_ns if walls else one.cpu_ns for one in totals),
        )
        return most if math.isfinite(most) else None

    def _log_ratios(self, variant: str, workload: str) -> tuple[float, ...]:
        d = self.costs.log_ratios(variant, self.costs.variants[0])
        return tuple(d[self.costs.workloads.index(workload)].tolist())


def spread_of(values: Sequence[float]) -> Spread:
    """Spread of one value or more."""
    sd = stdev(values) if len(values) > 1 else 0.0
    return Spread(fmean(values), sd, min(values), max(values))


@dataclass(frozen=True, slots=True)
class Record:
    """`key` names the trials; `raced` are the variants that take part, the baseline first.

    `commands` has what ran per workload, `made_at` when it was written (ISO 8601); `complete` says
    whether everything that was planned is measured. `workloads` are those that were raced; empty
    means all of the study. `relinks` is how many of each variant the rounds used in turn,
    `spread_key` names the trials of the baseline's relinks; 0 and empty where there were none.
    `plan_sha256` is that of the plan by which a confirmation was raced. `expected` is the precision
    told after the first few rounds, where it was. `budget` and `precision` are those that it was
    raced with, which the command line may have set; empty in older records. The spread of the
    `first` rounds decided how many there were (`PairRule.first`). `metric` is the cost that was
    compared; empty where it is what the study says. `confinement` says what confined the programs.

    Of commands that were compared: `mode` is how they were to take turns, `early` has what failed
    before the race, `seen` what each ran in a traced execution, `measured` what is known where
    nothing was raced. `doubt` says why nothing is claimed whatever the numbers are, `withheld` why
    nothing is compared, `stopped` why there are no more rounds; `used_s` is the time of all.
    `functions` is where the time of variants went, where the race was sampled.
    """

    key: str
    raced: tuple[str, ...]
    rounds_planned: int
    builds: tuple[BuildFacts, ...]
    machine: MachineFacts
    findings: tuple[Finding, ...]
    commands: tuple[tuple[str, str], ...]
    toolchains: tuple[tuple[str, str], ...]
    source: tuple[tuple[str, str], ...]
    version: str
    made_at: str
    complete: bool
    workloads: tuple[str, ...] = ()
    relinks: int = 0
    spread_key: str = ""
    plan_sha256: str = ""
    expected: Precision | None = None
    budget: str = ""
    precision: str = ""
    ran: tuple[WhatRan, ...] = ()
    first: int = 0
    metric: str = ""
    has_twin: bool = True
    mode: Mode = Mode.INTERLEAVED
    early: tuple[VariantFailure, ...] = ()
    seen: Mapping[str, SeenRunning] = field(default_factory=dict)
    measured: tuple[VariantFacts, ...] = ()
    doubt: str = ""
    withheld: str = ""
    stopped: Stopped | None = None
    used_s: float | None = None
    functions: tuple[FunctionCosts, ...] = ()
    confinement: str = ""

    @property
    def twin_apart(self) -> bool:
        """True if the twin was raced with relinks of its own: there were enough that differ."""
        baseline = next((build for build in self.builds if build.variant == self.raced[0]), None)
        return baseline is None or len(baseline.layouts) >= 2 * self.relinks


COMPARISON = "comparison.json"  # in a bundle of commands
FIGURES = "figures"
_CLOSE = 1e-9
_MOST_TOLD = 20
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Verification:
    """`checked` says in sentences what was held against what, `differs` what is not as told."""

    checked: tuple[str, ...]
    differs: tuple[str, ...]

    def __add__(self, other: Verification) -> Verification:
        return Verification((*self.checked, *other.checked), (*self.differs, *other.differs))


def figures_of(result: Result) -> dict[str, object]:
    """All figures of a report, without how to repeat it."""
    from ensign.report import as_json  # noqa: PLC0415  # of races alone nobody keeps them

    figures: dict[str, object] = json.loads(as_json.render(replace(result, trials=(), extra={})))
    return figures


def verified_figures(kept: Mapping[str, object] | None, result: Result, basis: str) -> Verification:
    """Holds the figures that were kept (None: none were) against a result, made anew. Pure."""
    if kept is None:
        note = f"no figures were kept to compare with: they are computed anew from the {basis}"
        return Verification((note,), ())
    figures = figures_of(result)
    differs = list(differences(kept, figures))
    told = [f"{where}: it says {a}, but {b} follows" for where, a, b in differs[:_MOST_TOLD]]
    if len(differs) > _MOST_TOLD:
        told.append(f"and {len(differs) - _MOST_TOLD} more figures")
    return Verification(
        (f"{_count(figures)} figures are judged anew from the {basis}",), tuple(told)
    )


def differences(a: object, b: object, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Places where two JSON values differ, with both; numbers may differ by rounding. Pure."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in [*b, *(key for key in a if key not in b)]:
            place = f"{where}.{name}" if where else str(name)
            yield from differences(a.get(name, _Missing), b.get(name, _Missing), place)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for number, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif not _equal(a, b):
        yield quoted(where)[1:-1], _shown(a), _shown(b)


class _Missing:
    """Nothing where something is expected."""


def _equal(a: object, b: object) -> bool:
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b)
    )
    if numbers and isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=_CLOSE, abs_tol=1e-300)
    return type(a) is type(b) and a == b


def _shown(value: object) -> str:
    if value is _Missing:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _count(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(map(_count, value.values()))
    if isinstance(value, list):
        return sum(map(_count, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))
