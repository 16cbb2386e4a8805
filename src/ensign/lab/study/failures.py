"""Variants that failed while they were raced: out, and nothing is claimed of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ensign.model.finding_kinds.ran import RAN_SOMETHING_ELSE, RELINK_FAILED, VARIANT_FAILED
from ensign.model.findings import Finding
from ensign.model.trials import Trial, VariantFailure


def failures_of(trials: Iterable[Trial]) -> tuple[VariantFailure, ...]:
    """What ended variants, the first for each of them."""
    found: dict[str, VariantFailure] = {}
    for trial in trials:
        for failure in trial.failures:
            found.setdefault(failure.variant, failure)
    return tuple(found.values())


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
