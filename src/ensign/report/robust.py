"""What is said where a winner is chosen by the worst of its layouts."""

from __future__ import annotations

from collections.abc import Sequence

from ensign.model.results import Result, SuiteComparison
from ensign.model.units import speedup
from ensign.report.words import clean, listed, percent

_ODDS = "about one fresh link in 20 is slower"
_UNKNOWN = "not known"


def robust_details(
    best: SuiteComparison, faster: Sequence[SuiteComparison], result: Result
) -> tuple[str, ...]:
    """Why this one of those that are `faster` was chosen; nothing where the mean decides."""
    if result.prefer == "mean":
        return ()
    baseline, variant = clean(result.baseline), best.comparison.variant
    why = (
        f"Robust: its worst layout is {_worst(variant, result)} than the mean of {baseline} "
        f"({_ODDS}); the worst of {baseline} itself is {_worst(result.baseline, result)}."
    )
    passed = [each.comparison for each in faster if each.comparison.ratio < best.comparison.ratio]
    if not passed:
        return (why,)
    names = listed(tuple(each.variant for each in passed))
    worst = listed(tuple(_worst(each.variant, result) for each in passed))
    is_, its = ("is", "its") if len(passed) == 1 else ("are", "their")
    return why, f"On average {names} {is_} faster still, but at {its} worst {worst}."


def none_robust(faster: Sequence[SuiteComparison], result: Result) -> str:
    """Why none of those that are shown to be faster wins; empty where none could be chosen."""
    if result.prefer == "mean" or not faster:
        return ""
    baseline, first = clean(result.baseline), faster[0].comparison.variant
    own, worst = _worst(result.baseline, result), _worst(first, result)
    if own == _UNKNOWN:
        return f"No winner: how far links of {baseline} differ is not known, so none is robust."
    if worst == _UNKNOWN:
        return (
            f"No winner: {clean(first)} is faster on average, but was raced as one binary: its "
            "worst layout is not known."
        )
    return (
        f"No winner: {clean(first)} is faster on average, but its worst layout is {worst} than "
        f"the mean of {baseline}, whose own worst is {own}."
    )


def _worst(variant: str, result: Result) -> str:
    """`2.1 % faster`, `0.4 % slower`."""
    ratio = None if result.layouts is None else result.layouts.worst_of(variant)
    if ratio is None:
        return _UNKNOWN
    amount = percent(abs(speedup(ratio))).removeprefix("+")
    return f"{amount} {'slower' if ratio > 1 else 'faster'}"
