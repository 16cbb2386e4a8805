"""Variants that failed: out of the race, or measured all the same where that is asked. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ensign.model.finding_kinds.ran import (
    FAILING_RUNS,
    RAN_SOMETHING_ELSE,
    RELINK_FAILED,
    VARIANT_FAILED,
)
from ensign.model.findings import Finding
from ensign.model.results import FailingRuns
from ensign.model.trials import Trial, VariantFailure


def failures_of(failures: Iterable[VariantFailure]) -> tuple[VariantFailure, ...]:
    """What ended variants, the first for each of them."""
    found: dict[str, VariantFailure] = {}
    for failure in failures:
        found.setdefault(failure.variant, failure)
    return tuple(found.values())


def failing_runs(trials: Sequence[Trial], variant: str) -> tuple[FailingRuns, ...]:
    """How often the command ended with which failure; nothing where it never did."""
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
        said = ", ".join(map(str, failing_runs(trials, variant)))
        if said:
            text = f"{said}; measured all the same (--ignore-failure)"
            yield FAILING_RUNS.found(text, variant)


def failure_findings(
    failures: Sequence[VariantFailure], raced: Sequence[str]
) -> tuple[Finding, ...]:
    """`variant-failed` or `ran-something-else`, errors; `relink-failed` for other variants."""
    found = []
    for each in failures:
        if each.variant in raced and each.code == RAN_SOMETHING_ELSE.code:
            text = (
                f"ran other files {each.where} than when it was looked at, so it is out of this "
                f"race for good and not compared: {each.text}"
            )
            found.append(RAN_SOMETHING_ELSE.found(text, each.variant))
        elif each.variant in raced:
            text = (
                f"failed {each.where}, so it is out of this race for good and not compared: "
                f"{each.text}"
            )
            found.append(VARIANT_FAILED.found(text, each.variant))
        else:
            text = (
                f"{each.variant} of the baseline failed {each.where} and is left out: {each.text}"
            )
            found.append(RELINK_FAILED.found(text))
    return tuple(found)
