"""The answer to the study's question in a few sentences, and what must be said beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ensign.model.builds import BuildStatus, CheckStatus
from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.finding_kinds.race import LOAD_BOTTLENECK, MOSTLY_WAITING
from ensign.model.findings import Finding, Severity
from ensign.model.results import Result, SuiteComparison, WorkloadComparison
from ensign.model.trials import Metric
from ensign.model.units import pluralize, speedup
from ensign.report import words
from ensign.report.both_metrics import both_said, why_they_disagree
from ensign.report.confirmation import confirmation_text, confirmed, pending_text
from ensign.report.layouts import (
    beside_spread,
    fresh_sentence,
    speaks_of_binaries,
    wide_spreads,
)
from ensign.report.words import clean, listed, percent, plain_share, span_of
from ensign.stats.winner import able, barred, shown_faster, winner

_MOST_NAMED = 5
_TWO_LINES = 155


@dataclass(frozen=True, slots=True)
class Verdict:
    """`headline` is the answer; `details` belong to it; `caveats` may overturn it."""

    headline: str
    details: tuple[str, ...]
    caveats: tuple[str, ...]


def verdict_of(result: Result) -> Verdict:
    """The best variant that nothing speaks against, or none; of commands, each for itself.

    Where rounds only explored it is that of the confirmation; before its end nothing is claimed.
    Where no difference is shown, what bounds the program goes first: it is why.
    """
    verdict = _verdict_of(result)
    bound = _bound(result)
    if not bound:
        return verdict
    return replace(verdict, headline=bound, details=(verdict.headline, *verdict.details))


def _bound(result: Result) -> str:
    """What everything that was raced waits for; empty where it does not decide the verdict."""
    if result.withheld or any(
        compared.comparison.direction is not Direction.UNCLEAR
        for compared in (confirmed(result) or result).suite
        if compared.comparison.variant != result.twin
    ):
        return ""
    told = [finding for finding in result.findings if finding.is_a(MOSTLY_WAITING, LOAD_BOTTLENECK)]
    if not told or len({finding.subject for finding in told}) < len(result.workload_names):
        return ""
    subjects = dict.fromkeys(finding.subject for finding in told if finding.subject != result.twin)
    return f"{listed(tuple(subjects))}: {clean(told[0].text.partition('; ')[0])}."


def _verdict_of(result: Result) -> Verdict:
    confirmation = result.confirmation
    if result.causes:
        return _of_causes(result)
    of_phase = _of_suite if result.builds and not result.withheld else _of_each
    if confirmation is None or result.withheld:
        return of_phase(result)
    if confirmation.result is None:
        texts = (confirmation_text(confirmation),) if confirmation.finalists else ()
        caveats = _study_caveats(result, ()) if result.builds else _errors(result.findings)
        return Verdict(pending_text(confirmation, result.baseline), texts, tuple(caveats))
    verdict = of_phase(confirmation.result)
    return Verdict(
        verdict.headline, (*verdict.details, confirmation_text(confirmation)), verdict.caveats
    )


def _of_causes(result: Result) -> Verdict:
    """Why two differ: of all builds between them nothing else was asked."""
    from ensign.report.causes import cause_sections  # noqa: PLC0415  # few ask

    first, *others = cause_sections(result)
    told = [section for section in others if section.rows or not section.workload]
    alike = tuple(dict.fromkeys(section.workload for section in others if section not in told))
    more = [section.text for section in told[:_MOST_NAMED]]
    if len(told) > _MOST_NAMED:
        more.append(f"{pluralize(len(told) - _MOST_NAMED, 'more table')}.")
    if alike:
        more.append(f"No difference is shown on {listed(alike)}.")
    caveats = _study_caveats(result, ()) if result.builds else _errors(result.findings)
    return Verdict(first.text, tuple(more), tuple(caveats))


def _of_suite(result: Result) -> Verdict:
    pairs = [compared for compared in result.suite if compared.comparison.variant != result.twin]
    unfit = barred(result.findings, result.builds)
    left = able(result)
    caveats = (*_study_caveats(result, unfit & {e.comparison.variant for e in pairs}),)
    best, faster = winner(result), shown_faster(result)
    if best is None and _are_revisions(result):
        if len(pairs) == len(left) == 1:
            return _of_one(left[0], result, caveats)
        if result.aa is not None and all(build.same_as for build in result.builds[1:]):
            twin = twin_sentence(result.aa, result.margin)
            return Verdict(f"The same program and libraries. {twin}", (), caveats)
    if best is None:
        headline = _no_winner(left, result) if left or not pairs else _all_barred(pairs)
        headline = none_robust(faster, result) or headline
        return Verdict(headline, _others(left, result), caveats)
    beyond, inside = beside_spread(best.comparison, result)
    first, *others = _sentences(best, result)
    details = (
        *(f"{other}." for other in others),
        *fresh_sentence(best.comparison.variant, result),
        *filter(None, [why_they_disagree(best.comparison)]),
        *what_hurts(best.comparison.variant, result),
        *_claim(best, result),
        *(_rivals(best, left) if result.prefer == "mean" else ()),
        *robust_details(best, faster, result),
        *wide_spreads(result),
        *filter(None, [beyond]),
    )
    headline = f"{first}."
    return Verdict(headline, details, (*caveats, *filter(None, [inside])))


def _are_revisions(result: Result) -> bool:
    """True if builds differ in nothing but the commit: how is asked then, not which is best."""
    return all([axis for axis, _ in build.choices] == ["revision"] for build in result.builds)


def _of_one(compared: SuiteComparison, result: Result, caveats: tuple[str, ...]) -> Verdict:
    first, *others = _sentences(compared, result)
    details = (
        *(f"{other}." for other in others),
        *filter(None, [why_they_disagree(compared.comparison)]),
        *what_hurts(compared.comparison.variant, result),
    )
    return Verdict(f"{first}.", details, caveats)


def suite_sentence(compared: SuiteComparison, result: Result) -> str:
    """A variant over all workloads, by both costs where they disagree; without a full stop."""
    return ". ".join(_sentences(compared, result))


def _sentences(
    compared: SuiteComparison, result: Result, *, against: bool = True
) -> tuple[str, ...]:
    """Sentence by one cost; by the other, where they disagree, in the same one if it is short."""
    comparison, other = compared.comparison, both_said(compared.comparison)
    text = words.sentence(
        comparison,
        result.margin,
        against=against,
        mode=None if other or comparison.size is Size.WITHIN else result.mode,
        workloads=compared.workloads,
        binaries=speaks_of_binaries(comparison.variant, result),
    )
    if len(text) + len(other) <= _TWO_LINES:
        return (f"{text}{other}",)
    return (text, *filter(None, [both_said(comparison, apart=True)]))


def what_hurts(variant: str, result: Result) -> tuple[str, ...]:
    """The workloads on which a variant is slower, with how much; nothing where there is none."""
    shown = result.shown_slower(variant)
    alone = [compared for compared in result.slower_workloads(variant) if compared not in shown]
    lines = []
    if shown and len(result.workload_names) > 1:
        lines.append(f"But {_slower(shown)}.")
    if alone:
        mine = [workload for workload in result.workloads if workload.comparison.variant == variant]
        chance = len(mine) * (1 - result.level) / 2
        which = "interval" if len(mine) == 1 else "intervals"
        lines.append(
            f"By {'its own interval' if len(alone) == 1 else 'their own intervals'} alone, "
            f"{_slower(alone)}: of "
            f"{len(mine)} {which} about {chance:.1f} would say so by chance."
        )
    return tuple(lines)


def shown_regressions(variant: str, result: Result) -> str:
    """Workloads on which a variant is shown slower, with how much; empty where there are none."""
    shown = result.shown_slower(variant)
    return _slower(shown) if shown else ""


def _slower(pairs: Sequence[WorkloadComparison]) -> str:
    texts = [
        f"{clean(pair.workload)} {words.briefly(pair.comparison)}" for pair in pairs[:_MOST_NAMED]
    ]
    if len(pairs) > _MOST_NAMED:
        texts.append(f"{pluralize(len(pairs) - _MOST_NAMED, 'more workload')}")
    return listed(tuple(texts))


def _of_each(result: Result) -> Verdict:
    """One sentence per variant; the first one is the headline."""
    compared = [row for row in result.suite if row.comparison.variant != result.twin]
    texts = [f"{one}." for row in compared for one in _sentences(row, result)]
    why = dict.fromkeys(filter(None, (why_they_disagree(row.comparison) for row in compared)))
    caveats = [] if result.withheld else _errors(result.findings)
    for facts in result.measured:
        caveats += (f"{clean(facts.variant)}: {runs}." for runs in facts.failing_runs)
    if result.aa is not None and result.aa.direction is not Direction.UNCLEAR:
        caveats.append(twin_sentence(result.aa, result.margin))
    nothing = _sentence(result.withheld) if result.withheld else "Nothing was compared."
    headline = texts[0] if texts else nothing
    return Verdict(headline, (*texts[1:], *why), tuple(caveats))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def twin_sentence(aa: Comparison, margin: float | None) -> str:
    """Sentence on the A/A twin, the same program as the baseline."""
    span = span_of(aa)
    if aa.direction is Direction.UNCLEAR:
        if not span.is_finite:
            return "A/A twin: too few executions for an interval."
        level = plain_share(aa.level)
        inside = aa.size is Size.WITHIN and margin is not None
        limit = f", within {plain_share(margin)}" if inside and margin is not None else ""
        return (
            f"A/A twin (the baseline again): no difference shown, {words.between(span)} "
            f"({level}){limit}, as it should be."
        )
    text = words.sentence(replace(aa, variant="the baseline's copy"), None)
    return (
        f"A/A twin: {text}, though it is the same program. Distrust differences of that size here."
    )


def _errors(findings: tuple[Finding, ...]) -> list[str]:
    return [clean(finding.said) for finding in findings if finding.severity is Severity.ERROR]


def _no_winner(left: Sequence[SuiteComparison], result: Result) -> str:
    baseline = clean(result.baseline)
    if not left:
        return "No variant was compared with the baseline."
    metric = words.METRICS[Metric(result.metric)]
    if all(compared.comparison.direction is Direction.SLOWER for compared in left):
        return f"Every variant is slower than {baseline} by {metric}."
    alike = all(compared.comparison.size is Size.WITHIN for compared in left)
    if alike and result.margin is not None:
        limit = plain_share(result.margin)
        return f"No variant differs from {baseline} by more than {limit} ({metric})."
    return f"No variant is shown to be faster than {baseline} by {metric}."


def _all_barred(pairs: list[SuiteComparison]) -> str:
    if len(pairs) == 1:
        name = clean(pairs[0].comparison.variant)
        return f"No winner: {name} was measured, but is not to be used."
    return "No winner: every variant was measured, but none is to be used."


def _others(left: Sequence[SuiteComparison], result: Result) -> tuple[str, ...]:
    if not left:
        return ()
    first = left[0]
    nearest = f"Nearest: {'. '.join(_sentences(first, result, against=False))}."
    why = filter(None, [why_they_disagree(first.comparison)])
    variant = first.comparison.variant
    fresh = fresh_sentence(variant, result)
    return (nearest, *fresh, *why, *what_hurts(variant, result), *wide_spreads(result))


def _claim(best: SuiteComparison, result: Result) -> tuple[str, ...]:
    if best.non_inferior is None or result.margin is None:
        return ()
    if best.non_inferior:
        limit = plain_share(result.margin)
        return (f"No workload is slower by more than {limit}: shown for each of them.",)
    return unshown_claim(best, result)


def unshown_claim(compared: SuiteComparison, result: Result) -> tuple[str, ...]:
    """For which workloads it is open whether they are slower; those that are were said before."""
    if result.margin is None:
        return ()
    slower = {
        workload.workload for workload in result.slower_workloads(compared.comparison.variant)
    }
    others = tuple(name for name in compared.not_shown if name not in slower)
    if slower and not others:
        return ()
    names = f" for {listed(others)}" if others else ""
    limit = plain_share(result.margin)
    return (f"That no workload is slower by more than {limit} is not shown{names}.",)


def _rivals(best: SuiteComparison, left: Sequence[SuiteComparison]) -> tuple[str, ...]:
    # Two intervals against the baseline are not subtracted; overlap only says "not decided here".
    floor = best.comparison.high
    names = tuple(
        compared.comparison.variant
        for compared in left
        if compared is not best and compared.comparison.low <= floor
    )
    if not names:
        return ()
    return (f"Its interval overlaps with {listed(names)}: which is faster is not decided here.",)


NO_CHECK = "No check was run, so it is not shown that the variants compute the same."


def was_checked(result: Result) -> bool:
    """True if any build was checked."""
    return any(build.check != CheckStatus.NOT_CHECKED for build in result.builds)


def _study_caveats(result: Result, unfit: Collection[str]) -> list[str]:
    errors = _errors(result.findings)
    if not was_checked(result):
        errors.append(NO_CHECK)
    if unfit:
        errors.append(f"Left out of the verdict because of errors: {listed(tuple(sorted(unfit)))}.")
    if result.rounds_done < result.rounds_planned:
        done = f"{result.rounds_done} of {pluralize(result.rounds_planned, 'round')}"
        errors.append(f"Not finished: {done} are done. Run the same command to go on.")
    failed = tuple(build.variant for build in result.builds if build.status == BuildStatus.FAILED)
    if failed:
        errors.append(f"{pluralize(len(failed), 'build')} failed: {listed(failed)}.")
    for compared in result.suite:
        is_twin = compared.comparison.variant == result.twin
        if is_twin and compared.comparison.direction is not Direction.UNCLEAR:
            errors.append(twin_sentence(compared.comparison, result.margin))
    return errors


_ROBUST_ODDS = "about one fresh link in 20 is slower"
_UNKNOWN_WORST = "not known"


def robust_details(
    best: SuiteComparison, faster: Sequence[SuiteComparison], result: Result
) -> tuple[str, ...]:
    """Why this one of those that are `faster` was chosen; nothing where the mean decides."""
    if result.prefer == "mean":
        return ()
    baseline, variant = clean(result.baseline), best.comparison.variant
    why = (
        f"Robust: its worst layout is {_worst(variant, result)} than the mean of {baseline} "
        f"({_ROBUST_ODDS}); the worst of {baseline} itself is {_worst(result.baseline, result)}."
    )
    passed = [
        compared.comparison
        for compared in faster
        if compared.comparison.ratio < best.comparison.ratio
    ]
    if not passed:
        return (why,)
    names = listed(tuple(comparison.variant for comparison in passed))
    worst = listed(tuple(_worst(comparison.variant, result) for comparison in passed))
    is_, its = ("is", "its") if len(passed) == 1 else ("are", "their")
    return why, f"On average {names} {is_} faster still, but at {its} worst {worst}."


def none_robust(faster: Sequence[SuiteComparison], result: Result) -> str:
    """Why none of those that are shown to be faster wins; empty where none could be chosen."""
    if result.prefer == "mean" or not faster:
        return ""
    baseline, first = clean(result.baseline), faster[0].comparison.variant
    own, worst = _worst(result.baseline, result), _worst(first, result)
    if own == _UNKNOWN_WORST:
        return f"No winner: how far links of {baseline} differ is not known, so none is robust."
    if worst == _UNKNOWN_WORST:
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
        return _UNKNOWN_WORST
    amount = percent(abs(speedup(ratio))).removeprefix("+")
    return f"{amount} {'slower' if ratio > 1 else 'faster'}"
