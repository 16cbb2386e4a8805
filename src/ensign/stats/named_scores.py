"""Executions with several scores as trials of their own: each score is a test.

One execution gives one value of each benchmark, so all of them share its noise (the same layout,
the same second of the machine). Nothing here or later takes them as independent: a round is one
observation, whatever the number of its tests (docs/background/statistics/rounds.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ensign.model.errors import CommandFailed
from ensign.model.finding_kinds.race import SCORE_MISSING
from ensign.model.findings import Finding
from ensign.model.trials import NamedScore, Trial, VariantTotals

_BETWEEN = "/"


@dataclass(frozen=True, slots=True)
class JudgedTests:
    """Tests that are judged, in order, their trials, and what is withheld, with who lacks it.

    A workload that says one score, or none, is a test by itself; without a name of its own (as
    commands that are compared) its scores are called as they are.
    """

    names: tuple[str, ...]
    trials: tuple[Trial, ...]
    findings: tuple[Finding, ...] = ()
    lacking: tuple[tuple[str, str], ...] = ()


def judged_tests(workloads: Sequence[str], trials: Iterable[Trial]) -> JudgedTests:
    """Each score of each workload as a test, called `WORKLOAD/SCORE`. Pure.

    A score that some variant lacks in some execution is withheld: with its other executions alone
    it would be judged by those in which it went well. CommandFailed where that is so of all.
    """
    trials = tuple(trials)
    if not any(totals.scores for trial in trials for totals in trial.variants):
        return JudgedTests(tuple(workloads), trials)
    parts = [
        _of_workload(name, [trial for trial in trials if trial.workload == name])
        for name in workloads
    ]
    return JudgedTests(
        tuple(name for part in parts for name in part.names),
        tuple(trial for part in parts for trial in part.trials),
        tuple(finding for part in parts for finding in part.findings),
        tuple(pair for part in parts for pair in part.lacking),
    )


def workload_of(test: str) -> str:
    """The workload in which a test is run."""
    return test.partition(_BETWEEN)[0]


def _of_workload(workload: str, trials: Sequence[Trial]) -> JudgedTests:
    names = dict.fromkeys(
        score.name for trial in trials for totals in trial.variants for score in totals.scores
    )
    if not names:
        return JudgedTests((workload,), tuple(trials))
    tables = [{totals.variant: _by_name(totals) for totals in trial.variants} for trial in trials]
    whole, split, lacking = [], [], []
    findings: list[Finding] = []
    for name in names:
        test = f"{workload}{_BETWEEN}{name}" if workload else name
        without = {
            variant: (why, trial.round_index)
            for trial, table in zip(reversed(trials), reversed(tables), strict=True)
            for variant, scores in table.items()
            for why in [_why_missing(scores.get(name))]
            if why
        }
        if without:
            findings.append(_withheld(test, without))
            lacking += [(test, variant) for variant in without]
            continue
        whole.append(test)
        split += [
            _with_score(trial, test, {variant: scores[name] for variant, scores in table.items()})
            for trial, table in zip(trials, tables, strict=True)
        ]
    if not whole:
        raise CommandFailed(
            f"{workload}: none of its {len(names)} benchmarks has a time in every execution of "
            f"every variant; of the first: {findings[0].text}"
        )
    return JudgedTests(tuple(whole), tuple(split), tuple(findings), tuple(lacking))


def _by_name(totals: VariantTotals) -> dict[str, NamedScore]:
    return {score.name: score for score in totals.scores}


def _why_missing(score: NamedScore | None) -> str:
    if score is None:
        return "it is missing"
    return score.failed or ("" if score.value else "it has no value")


def _withheld(test: str, without: dict[str, tuple[str, int]]) -> Finding:
    variant, (why, round_index) = next(iter(without.items()))
    others = f", and of {len(without) - 1} more" if len(without) > 1 else ""
    text = f"not judged: in round {round_index + 1} of {variant}{others} {why}"
    return SCORE_MISSING.found(text, test)


def _with_score(trial: Trial, test: str, scores: dict[str, NamedScore]) -> Trial:
    return replace(
        trial,
        workload=test,
        variants=tuple(
            replace(
                totals,
                scores=(),
                score=scores[totals.variant].value,
                unit=scores[totals.variant].unit,
                better=scores[totals.variant].better,
            )
            for totals in trial.variants
        ),
    )
