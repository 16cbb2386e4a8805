"""Notes on what was measured and what an interval speaks of: said once in each report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ensign.model.finding_kinds.race import (
    LOAD_BOTTLENECK,
    LONGER_WOULD_TELL,
    MOSTLY_SYSTEM,
    MOSTLY_WAITING,
)
from ensign.model.findings import Finding, Severity
from ensign.model.results import Confirmation, Result, Stopped
from ensign.model.trials import Mode
from ensign.model.units import format_duration, pluralize
from ensign.report import figures
from ensign.report.confirmation import exploration_text, plan_text
from ensign.report.layouts import layout_text, scope
from ensign.report.words import METRICS_IN_FULL, clean, listed, plain_share

# Notes that are a part of the answer.
_ANSWERS = (MOSTLY_WAITING, MOSTLY_SYSTEM, LOAD_BOTTLENECK, LONGER_WOULD_TELL)


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """One finding about one subject, or the same about several, ready to show."""

    severity: Severity
    code: str
    subjects: str
    text: str


def list_findings(findings: Iterable[Finding]) -> tuple[ListedFinding, ...]:
    """In their order; what is said of several subjects in the same words is one of them."""
    subjects: dict[tuple[Severity, str, str], list[str]] = {}
    for finding in findings:
        subjects.setdefault((finding.severity, finding.code, finding.text), []).append(
            finding.subject
        )
    return tuple(
        ListedFinding(
            severity, clean(code), listed(tuple(dict.fromkeys(filter(None, about)))), clean(text)
        )
        for (severity, code, text), about in subjects.items()
    )


def briefly_told(findings: Iterable[Finding]) -> tuple[ListedFinding, ...]:
    """Those that ask for something, or belong to the answer, the worst first, one for each code."""
    asking = [finding for finding in findings if _rank(finding) is not None]
    asking.sort(key=lambda finding: _rank(finding) or 0)
    by_code: dict[tuple[Severity, str], list[Finding]] = {}
    for one in asking:
        by_code.setdefault((one.severity, one.code), []).append(one)
    return tuple(map(_one_of, by_code.values()))


def _rank(finding: Finding) -> int | None:
    """Rank of a finding; None for one that asks for nothing."""
    if finding.severity is Severity.ERROR:
        return 0
    if finding.is_a(*_ANSWERS):
        return 1
    return 2 if finding.severity is Severity.WARNING else None


def _one_of(alike: list[Finding]) -> ListedFinding:
    """The first of one code; how many more there are in other words."""
    first, *others = list_findings(alike)
    if not others:
        return first
    subjects = listed(tuple(dict.fromkeys(finding.subject for finding in alike if finding.subject)))
    text = f"{first.text} (and {len(others)} more like it)"
    return ListedFinding(first.severity, first.code, subjects, text)


_STOPPED = {
    Stopped.DECIDED: "it stopped when every comparison was decided",
    Stopped.PRECISION: "it stopped when the asked precision was reached",
    Stopped.BUDGET: "it stopped at the end of the budget",
    Stopped.EXECUTIONS: "it stopped at the number of executions asked for",
    Stopped.INTERRUPTED: "it was interrupted: this is what was measured until then",
    Stopped.FAILED: "it ended because something failed: this is what was measured until then",
    Stopped.WITHHELD: "nothing was raced",
}


@dataclass(frozen=True, slots=True)
class Note:
    """A heading of a few words and its paragraph."""

    heading: str
    text: str


def notes(result: Result) -> tuple[Note, ...]:
    """Origin of the numbers, and their subject: those of the confirmation."""
    confirmation = result.confirmation
    if confirmation is not None and confirmation.result is not None:
        second = (note for note in notes(confirmation.result) if note.heading != _MANY)
        return (*_phases(result, confirmation), *second)
    return (*_phases(result, confirmation), *_of_rounds(result))


def _phases(result: Result, confirmation: Confirmation | None) -> tuple[Note, ...]:
    if confirmation is None:
        return ()
    texts = [exploration_text(result), plan_text(confirmation)]
    if confirmation.finalists:
        level = 1 - len(confirmation.finalists) * (1 - confirmation.level)
        texts.append(f"Together the finalists' claims hold at {plain_share(level)}.")
    return (Note("Two phases", " ".join(filter(None, texts))),)


def _of_rounds(result: Result) -> tuple[Note, ...]:
    if not result.rounds_done:
        return (Note("What was measured", "Nothing was raced."),)
    several = len(result.workload_names) > 1
    return (
        Note("What was measured", _measured(result)),
        *([Note("Precision", text)] if (text := _precision(result)) else []),
        Note("How to read it", _SPEEDUP),
        Note("What an interval speaks of", scope(result)),
        *([Note("Layouts", text)] if (text := layout_text(result)) else []),
        *([Note(_MANY, _several(result.level))] if several or len(result.suite) > _PAIR else []),
        *(
            [Note("Significant after Holm", _significant(result.level))]
            if several and result.significant
            else []
        ),
        *([Note("By estimates alone", text)] if (text := _by_estimates(result)) else []),
        *([Note("No workload slower", _non_inferior(result.margin))] if several else []),
        *([Note("A/A twin", _TWIN)] if result.twin else []),
        *([Note("Confinement", _confinement(result))] if result.confinement else []),
    )


def _confinement(result: Result) -> str:
    return f"Programs ran {clean(result.confinement)}."


def _measured(result: Result) -> str:
    metric = METRICS_IN_FULL[result.metric]
    stopped = "" if result.stopped is None else f"; {_STOPPED[result.stopped]}"
    if len(result.workload_names) > 1:
        rounds = f"{result.rounds_done} of {pluralize(result.rounds_planned, 'round')}"
        number = f"{rounds} over {pluralize(len(result.workload_names), 'workload')}"
    else:
        number = f"{pluralize(result.rounds_done, 'execution')} of each variant"
    used = f"It{stopped.removeprefix('; it')}. " if stopped else ""
    if result.used_s is not None and result.budget_s is not None:
        budget = figures.seconds(result.budget_s)
        used = f"It took {figures.seconds(result.used_s)} of a budget of {budget}{stopped}. "
    return (
        f"{number}, each with fresh processes; "
        f"{_turns(result.mode, result.slice_ns, result.freezer)}. "
        f"Cost is {metric}. {used}Racing took {figures.seconds(result.racing_s)}; between the "
        f"first and the last slice a variant was running {figures.share(result.running_share)} of "
        "the time."
    )


def _precision(result: Result) -> str:
    reached = result.reached
    if reached is None:
        return ""
    text = (
        f"The median half-width of the intervals is {reached.suite:.2%} for geometric means and "
        f"{reached.workload:.2%} for single workloads."
    )
    if result.expected is not None:
        text += (
            f" After the first few rounds {result.expected.suite:.2%} and "
            f"{result.expected.workload:.2%} were expected."
        )
    return text.replace("%", " %")


def _by_estimates(result: Result) -> str:
    """Whom the rule of the first Redis study would choose: best mean, and no workload slower."""
    if not result.bands or not result.band_edges:
        return ""
    better = {
        compared.comparison.variant: compared.comparison.ratio
        for compared in result.suite
        if compared.comparison.ratio < 1 and compared.comparison.variant != result.twin
    }
    fit = sorted(
        (band for band in result.bands if band.variant in better),
        key=lambda bands: better[bands.variant],
    )
    by_mean = next((bands.variant for bands in fit if not bands.by_mean[0]), "none")
    by_least = next((bands.variant for bands in fit if not bands.by_minimum[0]), "none")
    limit = plain_share(-result.band_edges[0])
    means = f"{clean(by_mean)} by the workloads' means over the rounds"
    least = "the same" if by_least == by_mean else clean(by_least)
    return (
        f'The rule "best geometric mean, and no workload slower by more than {limit}" chooses '
        f"{means}, and {least} by their least rounds. Estimates decide in it, not intervals."
    )


def redo_notes(result: Result) -> tuple[Note, ...]:
    """Way to repeat the study, where that is known; the HTML has a section for it."""
    command, needed = result.extra.get("redo", ""), result.extra.get("redo_with", "")
    if not command:
        return ()
    return (Note("To do it again", clean(f"{command} (with {needed})" if needed else command)),)


def _turns(mode: Mode, slice_ns: int, freezer: str) -> str:
    if mode is Mode.ALTERNATING:
        return "whole executions in random balanced turns"
    by = {"cgroup": "stopped by a control group", "signal": "stopped by signals"}
    how = by.get(freezer, freezer)
    return (
        f"raced in slices of {format_duration(slice_ns)}, one variant at a time, the others {how}"
    )


def _several(level: float) -> str:
    missing = round(1 / (1 - level)) if level < 1 else 0
    return (
        f"Each interval covers {plain_share(level)} by itself, not all of them at once: of "
        f"{missing} such intervals about one misses. The best of several looks a little better "
        "than it is until a fresh run confirms it."
    )


def _significant(level: float) -> str:
    return (
        "Whether a workload is significantly faster or slower is decided by a t test over the "
        "rounds, adjusted by Holm's method: "
        f"in {plain_share(level)} of studies no workload is wrongly in a variant's list. "
        "A workload that is not significant may differ all the same."
    )


def _non_inferior(margin: float | None) -> str:
    if margin is None:
        return "No margin was set, so nothing is said about it."
    limit = plain_share(margin)
    return (
        f"This is shown only where every single workload's bound lies below a slowdown of {limit}. "
        "That no slowdown was noticed would be no evidence."
    )


BY_MINIMUM = (
    "In brackets, where it differs: by the minimum over the rounds, as the Redis compiler study "
    "counted. It falls as rounds are added, also where nothing differs."
)
_MANY = "Several variants"
# One variant and the twin.
_PAIR = 2
SIGNIFICANT_HEADING = "Workloads shown to differ (significant after Holm's adjustment)"
_SPEEDUP = (
    "Speedup is the baseline's cost over the variant's cost, minus 1: +5 % does 5 % more work in "
    "the same time. Where no difference is shown, the interval stands alone and the answer is "
    "“unclear”."
)
_TWIN = (
    "The baseline takes part twice, the second time from its own copy of its files. The twin's "
    "true speedup is 0, so its interval shows what this measurement can be trusted with. Ratios "
    "of variants are to the mean of both."
)
