"""Two studies with their results, as one difference: what changed, and what else was not equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ensign.experiment.judge import experiment_costs, suite_rule
from ensign.experiment.record import Record
from ensign.experiment.study.result import experiment_of
from ensign.experiment.study.run import stored_rounds
from ensign.model.comparisons import Direction
from ensign.model.errors import InputError
from ensign.model.finding_kinds.judgment import TWIN_CHANGED
from ensign.model.findings import Finding
from ensign.model.placeholders import shown
from ensign.model.study import Study
from ensign.model.trials import TWIN, Trial
from ensign.stats.changes import (
    BuildPair,
    ChangeRule,
    Differing,
    StudyDifference,
    StudySide,
    VariantChanges,
    variant_changes,
)
from ensign.stats.rounds import RoundCosts
from ensign.tools.bundles import opened

# These change by the minute on any machine.
_PASSING = frozenset({"steal", "load average"})
_Rounds = tuple[Study, Record, tuple[Trial, ...]]


def differences(a: Path, b: Path) -> StudyDifference:
    """Comparison of B with A; each is a study file or a bundle.

    InputError where nothing is measured, or where they cannot be compared.
    """
    with opened(a) as first, opened(b) as second:
        return study_difference(
            (str(first.path), str(second.path)),
            stored_rounds(first.file),
            stored_rounds(second.file),
        )


def study_difference(labels: tuple[str, str], a: _Rounds, b: _Rounds) -> StudyDifference:
    """The difference of two studies from their raw trials. Pure; InputError as `differences`."""
    (study_a, record_a, _), (study_b, record_b, _) = a, b
    names = [each.name for each in study_a.workloads]
    shared = [name for name in names if name in {workload.name for workload in study_b.workloads}]
    variants = [name for name in record_a.raced[1:] if name in record_b.raced]
    _require_comparable(labels, a, b, shared)
    costs_a, costs_b = (_costs(each, shared) for each in (a, b))
    for label, costs in zip(labels, (costs_a, costs_b), strict=True):
        if not costs.rounds:
            raise InputError(f"{label} has no complete round of the workloads that both have")
    rule = _rule(study_a, study_b)
    changes = [
        variant_changes(costs_a, costs_b, variant, record_a.raced[0], rule)
        for variant in (*variants, TWIN)
    ]
    return StudyDifference(
        a=_side(labels[0], study_a, record_a, costs_a),
        b=_side(labels[1], study_b, record_b, costs_b),
        baseline=record_a.raced[0],
        twin=TWIN,
        level=rule.level,
        margin=rule.margin,
        builds=_builds(record_a, record_b, (record_a.raced[0], *variants)),
        machine=tuple(_differing(_facts(record_a), _facts(record_b))),
        settings=tuple(_differing(_settings(a, shared), _settings(b, shared))),
        suite=tuple(each.suite for each in changes),
        workloads=tuple(change for each in changes for change in each.workloads),
        significant=tuple(each.significant for each in changes),
        only_a=_alone(a, b),
        only_b=_alone(b, a),
        findings=_findings(changes[-1]),
    )


def _require_comparable(
    labels: tuple[str, str], a: _Rounds, b: _Rounds, shared: Sequence[str]
) -> None:
    (study_a, record_a, trials_a), (study_b, record_b, trials_b) = a, b
    both = " and ".join(labels)
    if {each.started_unix_s for each in trials_a} & {each.started_unix_s for each in trials_b}:
        raise InputError(f"{both} have trials in common: they are the same measurement")
    if study_a.race.cost is not study_b.race.cost:
        metrics = f"{study_a.race.cost.value} and {study_b.race.cost.value}"
        raise InputError(f"{both} compare by different metrics ({metrics})")
    if record_a.raced[0] != record_b.raced[0]:
        baselines = f"{record_a.raced[0]} and {record_b.raced[0]}"
        raise InputError(f"{both} have different baselines ({baselines})")
    if not shared:
        raise InputError(f"{both} have no workload in common")


def _costs(rounds: _Rounds, shared: Sequence[str]) -> RoundCosts:
    study, record, trials = rounds
    by_name = {workload.name: workload for workload in study.workloads}
    chosen = study.model_copy(update={"workloads": [by_name[name] for name in shared]})
    return experiment_costs(experiment_of(chosen), record, trials)


def _rule(a: Study, b: Study) -> ChangeRule:
    """The stricter of both levels and margins; no margin where one study has none."""
    rules = (suite_rule(experiment_of(a)), suite_rule(experiment_of(b)))
    margins = [each.margin for each in rules if each.margin is not None]
    margin = min(margins) if len(margins) == len(rules) else None
    return ChangeRule(max(rule.level for rule in rules), margin)


def _side(label: str, study: Study, record: Record, costs: RoundCosts) -> StudySide:
    return StudySide(label, study.name, record.made_at, record.version, len(costs.rounds))


def _builds(a: Record, b: Record, names: Sequence[str]) -> tuple[BuildPair, ...]:
    hashes_a, hashes_b = (
        {build.variant: build.identity for build in record.builds} for record in (a, b)
    )
    return tuple(BuildPair(name, hashes_a.get(name, ""), hashes_b.get(name, "")) for name in names)


def _facts(record: Record) -> dict[str, str]:
    return {name: value for name, value in record.machine.facts if name not in _PASSING}


def _settings(rounds: _Rounds, shared: Sequence[str]) -> dict[str, str]:
    """Circumstances of a measurement, in words; commands with their numbers of requests."""
    study, record, trials = rounds
    env = {} if study.server is None else study.server.env
    return {
        "slice": study.race.slice,
        "mode": ", ".join(sorted({trial.mode.value for trial in trials})),
        "stopped by": trials[0].freezer,
        "margin": study.race.margin or "none",
        "level": f"{study.race.level:g}",
        "relinks": f"{record.relinks} in turn" if record.relinks else "none",
        "environment of the server": " ".join(f"{key}={env[key]}" for key in sorted(env)),
        "version of ensign": record.version,
        **{f"toolchain {name}": version for name, version in record.toolchains},
        **{f"source {name}": value for name, value in record.source},
        **{
            f"command of {name}": command
            for name, command in record.commands
            if name in shared or name == "server"
        },
        **{
            f"preload of {each.name}": "; ".join(each.preload_shown)
            for each in study.workloads
            if each.name in shared
        },
        **{
            f"{key} of {workload.name}": shown(argv)
            for workload in study.workloads
            if workload.name in shared
            for key, argv in workload.commands_around.items()
        },
    }


def _differing(a: Mapping[str, str], b: Mapping[str, str]) -> list[Differing]:
    return [
        Differing(name, a.get(name, ""), b.get(name, ""))
        for name in dict.fromkeys((*a, *b))
        if a.get(name, "") != b.get(name, "")
    ]


def _alone(one: _Rounds, other: _Rounds) -> tuple[str, ...]:
    """Variants and workloads that the other study lacks."""
    variants = [f"variant {name}" for name in one[1].raced if name not in other[1].raced]
    known = {each.name for each in other[0].workloads}
    workloads = [
        f"workload {workload.name}" for workload in one[0].workloads if workload.name not in known
    ]
    return (*variants, *workloads)


def _findings(twin: VariantChanges) -> tuple[Finding, ...]:
    comparison = twin.suite.comparison
    if comparison.direction is Direction.UNCLEAR and not (
        twin.significant.slower or twin.significant.faster
    ):
        return ()
    text = (
        "the identical copy of the baseline changed against the baseline between the two studies: "
        "changes of that size mean nothing here"
    )
    return (TWIN_CHANGED.found(text, TWIN),)
