"""Every sentence that a verdict can make of a pair, as one list: `golden/sentences.txt`."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from ensign.model.comparisons import Comparison, OtherMetric, TimeShares
from ensign.model.findings import Finding, Severity
from ensign.model.results import Result, SuiteComparison
from ensign.model.trials import Metric, Mode
from ensign.report.both_metrics import both_said, why_they_disagree
from ensign.report.verdict import twin_sentence, verdict_of
from report_data import compared, comparison, confirmed_study, study, unbounded

GOLDEN = Path(__file__).parent / "golden" / "sentences.txt"
# The longest names that `compare` makes of commands.
NEW, OLD = "hwcaps=-AVX2,-FMA,-…", "releases/v1.10.0-rc1"
SIZES = {
    "25 times as fast": (-math.log(25.06), 0.02),
    "40 % faster": (-math.log(1.4), 0.02),
    "3 % faster": (-0.03, 0.004),
    "0.3 % faster": (-0.003, 0.001),
    "alike": (0.0002, 0.002),
    "unclear": (0.002, 0.03),
    "0.3 % more": (0.003, 0.001),
    "20 % more": (0.187, 0.01),
    "4 times": (math.log(4), 0.04),
}
OTHERS = {
    "25 times as fast": -math.log(26.05),
    "40 % faster": -math.log(1.04),
    "3 % faster": -0.05,
    "0.3 % faster": 0.02,
    "alike": 0.025,
    "unclear": 0.05,
    "0.3 % more": 0.02,
    "20 % more": 0.222,
    "4 times": -0.2,
}
CAUSES = {
    "load": (TimeShares(0.62, 0.3, load=0.99), TimeShares(0.58, 0.3, load=0.97)),
    "several CPUs": (TimeShares(1.52, 0.1), TimeShares(1.57, 0.1)),
    "taken": (TimeShares(0.95, 0.1, taken=0.04), TimeShares(0.6, 0.1, taken=0.38)),
    "waiting": (TimeShares(0.95, 0.1), TimeShares(0.5, 0.1)),
    "waiting in the kernel": (TimeShares(0.95, 0.1), TimeShares(0.5, 0.7)),
    "not measured": (None, None),
}


def pair(size: str, metric: Metric, *, margin: float | None = 0.01) -> Comparison:
    return comparison(NEW, *SIZES[size], margin=margin, baseline=OLD, metric=metric)


def with_other(size: str, metric: Metric, cause: str, *, shown: bool) -> Comparison:
    """A pair whose other cost says something else."""
    chosen = pair(size, metric)
    log_ratio = OTHERS[size] if shown else 0.001
    half = 0.004 if shown else 0.02
    other = comparison(NEW, log_ratio, half, baseline=OLD, metric=metric.other)
    return replace(chosen, beside=OtherMetric(other, disagrees=True, baseline=CAUSES[cause][0],
                                              variant=CAUSES[cause][1]))  # fmt: skip


def said(each: Comparison, *, mode: Mode = Mode.INTERLEAVED, workloads: int = 1) -> list[str]:
    """What a report begins with, a line each."""
    margin = None if each.size is None else 0.01
    result = compared(
        mode=mode, margin=margin, suite=(SuiteComparison(each, workloads),), twin="", findings=()
    )
    verdict = verdict_of(result)
    return [verdict.headline, *verdict.details]


def sentences() -> Iterator[tuple[str, list[str]]]:
    """What each is about, and the lines."""
    for metric, size in product(Metric, SIZES):
        yield f"{size}, {metric}", said(pair(size, metric))
        yield f"{size}, {metric}, no margin", said(pair(size, metric, margin=None))
    for mode, size in product((Mode.DRIVEN, Mode.ALTERNATING), ("3 % faster", "20 % more")):
        yield f"{size}, {mode}", said(pair(size, Metric.WALL), mode=mode)
        yield f"{size}, {mode}, 8 workloads", said(pair(size, Metric.CPU), mode=mode, workloads=8)
    for runs in (1, 3):
        yield f"{runs} executions", said(unbounded(NEW, runs))
    withheld = pair("3 % faster", Metric.CPU).without_claim("it runs for a fixed time")
    yield "withheld", said(withheld)
    for metric, size in product((Metric.CPU, Metric.WALL), SIZES):
        differing = with_other(size, metric, "load", shown=True)
        yield f"{size}, {metric}; differs", said(differing)
        yield f"{size}, {metric}; differs, 8 workloads", said(differing, workloads=8)
        if size not in ("alike", "unclear"):
            unshown = with_other(size, metric, "load", shown=False)
            yield f"{size}, {metric}; other not shown", said(unshown)
    for cause in CAUSES:
        yield (
            f"0.3 % faster, because of {cause}",
            said(with_other("0.3 % faster", Metric.CPU, cause, shown=True)),
        )


def verdicts() -> Iterator[tuple[str, list[str]]]:
    """Of studies: what each is about, and all lines."""
    names = ("set", "get", "incr")
    error = Finding("x", Severity.ERROR, "its output is wrong", "clang-19-O3-lto")
    many = {f"variant-{index}": 0.97 + index / 1000 for index in range(8)}
    cases: dict[str, Result] = {
        "a winner": study(names=names),
        "a winner, slower somewhere": study(),
        "a winner without rivals": study({"clang-19-O3": 0.9}, names),
        "many rivals": study(many, names),
        "one workload": study({"clang-19-O3": 0.9}, names[:1]),
        "every variant slower": study({"a": 1.05, "b": 1.08}, names),
        "none differs": study({"a": 1.0, "b": 1.001}, names, margin=0.05),
        "none shown": study({"a": 1.001, "b": 1.05}, names, margin=None),
        "nothing raced": study({}, names, suite=(), workloads=()),
        "the best is out": study(names=names, findings=(error,)),
        "all are out": study({"clang-19-O3-lto": 0.9}, names, findings=(error,)),
        "not finished": study(names=names, rounds_done=3),
        "confirmed": confirmed_study(),
        "not confirmed yet": confirmed_study(result=None, rounds_done=5),
        "exploring": confirmed_study(result=None, rounds_done=0, plan_sha256=""),
        "nothing to confirm": confirmed_study(result=None, finalists=()),
    }
    for about, result in cases.items():
        verdict = verdict_of(result)
        lines = [verdict.headline, *verdict.details, *(f"! {each}" for each in verdict.caveats)]
        yield f"study: {about}", lines
    for about, log_ratio in (("as it should be", 0.0), ("differs", 0.03), ("faster", -0.03)):
        twin = comparison("twin", log_ratio, 0.004, baseline=OLD)
        yield f"twin {about}", [twin_sentence(twin, 0.01)]


LIST = tuple(sentences())


def test_the_list_of_sentences() -> None:
    """Read it as a native reader would: a sentence that one stumbles over is a defect."""
    text = "".join(f"[{about}]\n{chr(10).join(lines)}\n" for about, lines in (*LIST, *verdicts()))
    actual = GOLDEN.with_suffix(".actual")
    if not GOLDEN.exists() or GOLDEN.read_text() != text:
        actual.write_text(text)
    assert GOLDEN.read_text() == text, f"see {actual}"


@pytest.mark.parametrize(("about", "lines"), LIST)
def test_a_sentence_takes_two_lines_and_has_one_scale(about: str, lines: list[str]) -> None:
    for line in lines:
        assert len(textwrap.wrap(line, 80)) <= 2, about
        assert not re.search(r"[+−]\d", line), "speedups with a sign are for tables"
        assert not (" longer" in line and " slower" in line and "between" not in line)


@pytest.mark.parametrize("metric", [Metric.CPU, Metric.WALL])
@pytest.mark.parametrize("size", SIZES)
def test_costs_that_agree_are_no_but(size: str, metric: Metric) -> None:
    same = pair(size, metric.other)
    agreeing = replace(pair(size, metric), beside=OtherMetric(same, disagrees=False))
    assert both_said(agreeing) == ""
    assert why_they_disagree(agreeing) == ""


def test_one_direction_of_about_one_size_is_joined_by_and() -> None:
    """20.6 % longer and 24.9 % more CPU time is one conclusion in two figures."""
    (both,) = said(with_other("20 % more", Metric.WALL, "several CPUs", shown=True))
    assert both.startswith(f"{NEW} takes 20.6 % longer than {OLD} (wall)")
    assert both.endswith(", and needs 24.9 % more CPU time.")
