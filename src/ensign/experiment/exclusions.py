"""Workloads whose costs say nothing of speed, and what is not claimed for that. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.experiment.shared_files import listed
from ensign.model.finding_kinds.race import CLOCK_UNKNOWN, SELF_TIMED
from ensign.model.findings import Finding
from ensign.model.results import Result, SuiteComparison
from ensign.stats.named_scores import JudgedTests

_NOT_JUDGED = (SELF_TIMED, CLOCK_UNKNOWN)


def judged_workloads(names: Sequence[str], findings: Sequence[Finding]) -> tuple[str, ...]:
    """The workloads whose cost means something; all, where none does. Pure."""
    unfit = {finding.subject for finding in findings if finding.is_a(*_NOT_JUDGED)}
    return tuple(name for name in names if name not in unfit) or tuple(names)


def without_claims(result: Result) -> Result:
    """The result of a study whose workloads all run for a fixed time: nothing is claimed. Pure."""
    unfit = {each.subject: each for each in result.findings if each.is_a(*_NOT_JUDGED)}
    if not unfit or not unfit.keys() >= set(result.workload_names):
        return result
    why = "its workloads run for a fixed time, so their costs say nothing of its speed"
    if any(each.is_a(CLOCK_UNKNOWN) for each in unfit.values()):
        why = (
            "whether its workloads run for a fixed time is not known, "
            "so their costs may mean nothing"
        )
    return replace(
        result,
        suite=tuple(
            replace(each, comparison=each.comparison.without_claim(why), non_inferior=None)
            for each in result.suite
        ),
        workloads=tuple(
            replace(each, comparison=each.comparison.without_claim(why))
            for each in result.workloads
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
    """Of a test that the variant lacks it is not shown that it is no slower. Pure."""
    lacking = {test for test, variant in tests.lacking if variant == suite.comparison.variant}
    if not lacking or suite.non_inferior is None:
        return suite
    not_shown = (*suite.not_shown, *sorted(lacking))
    return replace(suite, non_inferior=False, not_shown=not_shown, lacking=len(lacking))
