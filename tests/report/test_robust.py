"""What is said of a winner that was chosen by the worst of its layouts."""

from __future__ import annotations

from dataclasses import replace

import report_data as data
from ensign.model.results import LayoutFacts, Result, WorstLayout
from ensign.report import as_html, as_markdown, as_terminal
from ensign.report.verdict import verdict_of
from ensign.tools.ship import chosen
from stats.test_winner import BASELINE, FAST, STEADY, raced

WORST = {"baseline": 1.04, "fast": 1.015, "steady": 0.962}


def test_the_verdict_says_why_and_who_was_passed_over() -> None:
    verdict = verdict_of(raced("robust", **WORST))
    assert verdict.headline.startswith(f"{STEADY} is ")
    assert (
        f"Robust: its worst layout is 4.0 % faster than the mean of {BASELINE} (about one "
        f"fresh link in 20 is slower); the worst of {BASELINE} itself is 3.8 % slower."
    ) in verdict.details
    assert f"On average {FAST} is faster still, but at its worst 1.5 % slower." in verdict.details
    assert not any("Robust" in line for line in verdict_of(raced("mean", **WORST)).details)


def test_where_none_is_robust_the_headline_says_why() -> None:
    def headline(result: Result) -> str:
        return verdict_of(result).headline

    assert headline(raced("robust", baseline=1.01, fast=1.04, steady=1.03)) == (
        f"No winner: {STEADY} is faster on average, but its worst layout is 2.9 % slower than the "
        f"mean of {BASELINE}, whose own worst is 1.0 % slower."
    )
    assert "raced as one binary: its worst layout is not known" in headline(
        raced("robust", baseline=1.01)
    )
    nothing = replace(raced("robust"), layouts=None)
    assert headline(nothing).startswith(f"No winner: how far links of {BASELINE} differ is not")


def test_every_format_has_the_sentence_and_the_same_build_is_shipped() -> None:
    result = raced("robust", **WORST)
    for text in (as_terminal.render(result), as_markdown.render(result), as_html.render(result)):
        assert "Robust: its worst layout is" in " ".join(text.split())
    assert chosen(result, None).variant == STEADY
    assert chosen(raced("mean", **WORST), None).variant == FAST


def test_of_two_phases_the_confirmation_decides_who_is_robust() -> None:
    both = data.confirmed_study()
    confirmation = both.confirmation
    assert confirmation is not None
    second = confirmation.result
    assert second is not None
    names = [second.baseline, *(each.comparison.variant for each in second.suite)]
    worst = tuple(WorstLayout(name, 1.05 - 0.01 * at) for at, name in enumerate(names))
    robust = replace(second, prefer="robust", layouts=LayoutFacts(12, "order", worst=worst))
    said = verdict_of(replace(both, confirmation=replace(confirmation, result=robust)))
    assert any(line.startswith("Robust: ") for line in said.details)
