"""Variants and workloads that are out of a race, and what is not claimed for that. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ensign.model.finding_kinds.race import CLOCK_UNKNOWN, SELF_TIMED
from ensign.model.finding_kinds.ran import (
    FAILING_RUNS,
    RAN_SOMETHING_ELSE,
    RELINK_FAILED,
    VARIANT_FAILED,
)
from ensign.model.findings import Finding
from ensign.model.results import FailingRuns, Result, SuiteComparison
from ensign.model.trials import Trial, VariantFailure
from ensign.stats.named_scores import JudgedTests


def failures_of(failures: Iterable[VariantFailure]) -> tuple[VariantFailure, ...]:
    """Failures that ended variants, the first for each of them."""
    failures_by_variant: dict[str, VariantFailure] = {}
    for failure in failures:
        failures_by_variant.setdefault(failure.variant, failure)
    return tuple(failures_by_variant.values())


def failing_runs(trials: Sequence[Trial], variant: str) -> tuple[FailingRuns, ...]:
    """Share of executions in which the command ended with which failure; nothing if none."""
    ends = Counter(
        (totals.exit, totals.signal)
        for trial in trials
        for totals in trial.variants
        if totals.variant == variant and (totals.exit or totals.signal)
    )
    return tuple(
        FailingRuns(exit_, signal, count, len(trials))
        for (exit_, signal), count in ends.most_common()
    )


def ignored_findings(trials: Sequence[Trial], variants: Sequence[str]) -> Iterator[Finding]:
    """`failing-runs`: what failed and was measured all the same."""
    for variant in variants:
        runs = ", ".join(map(str, failing_runs(trials, variant)))
        if runs:
            text = f"{runs}; measured all the same (--ignore-failure)"
            yield FAILING_RUNS.found(text, variant)


def failure_findings(
    failures: Sequence[VariantFailure], raced: Sequence[str]
) -> tuple[Finding, ...]:
    """`variant-failed` or `ran-something-else`, errors; `relink-failed` for other variants."""
    findings = []
    for failure in failures:
        if failure.variant in raced and failure.code == RAN_SOMETHING_ELSE.code:
            text = (
                f"ran other files {failure.where} than when it was looked at, so it is out of this "
                f"race for good and not compared: {failure.text}"
            )
            findings.append(RAN_SOMETHING_ELSE.found(text, failure.variant))
        elif failure.variant in raced:
            text = (
                f"failed {failure.where}, so it is out of this race for good and not compared: "
                f"{failure.text}"
            )
            findings.append(VARIANT_FAILED.found(text, failure.variant))
        else:
            failed = f"{failure.variant} of the baseline failed {failure.where}"
            text = f"{failed} and is left out: {failure.text}"
            findings.append(RELINK_FAILED.found(text))
    return tuple(findings)


_NOT_JUDGED = (SELF_TIMED, CLOCK_UNKNOWN)


def judged_workloads(names: Sequence[str], findings: Sequence[Finding]) -> tuple[str, ...]:
    """The workloads whose cost means something; all, where none does. Pure."""
    unfit = {finding.subject for finding in findings if finding.is_a(*_NOT_JUDGED)}
    return tuple(name for name in names if name not in unfit) or tuple(names)


def without_claims(result: Result) -> Result:
    """The result of a study whose workloads all run for a fixed time: nothing is claimed. Pure."""
    unfit = {finding.subject: finding for finding in result.findings if finding.is_a(*_NOT_JUDGED)}
    if not unfit or not unfit.keys() >= set(result.workload_names):
        return result
    why = "its workloads run for a fixed time, so their costs say nothing of its speed"
    if any(finding.is_a(CLOCK_UNKNOWN) for finding in unfit.values()):
        why = (
            "whether its workloads run for a fixed time is not known, "
            "so their costs may mean nothing"
        )
    return replace(
        result,
        suite=tuple(
            replace(compared, comparison=compared.comparison.without_claim(why), non_inferior=None)
            for compared in result.suite
        ),
        workloads=tuple(
            replace(workload, comparison=workload.comparison.without_claim(why))
            for workload in result.workloads
        ),
        significant=(),
        bands=(),
    )


def same_programs(names: Sequence[str]) -> str:
    """Why those of these names are not compared, the baseline first. Pure."""
    return (
        f"the same program and libraries: there is nothing to compare between {listed(names)} "
        "(--race-same races them all the same)"
    )


def as_far_as_shown(suite: SuiteComparison, tests: JudgedTests) -> SuiteComparison:
    """The suite's comparison, which claims nothing of a test that the variant lacks. Pure."""
    lacking = {test for test, variant in tests.lacking if variant == suite.comparison.variant}
    if not lacking or suite.non_inferior is None:
        return suite
    not_shown = (*suite.not_shown, *sorted(lacking))
    return replace(suite, non_inferior=False, not_shown=not_shown, lacking=len(lacking))


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
