"""Two studies with their results, as one difference: what changed, and what else was not equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ensign.experiment.record import Record
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
from ensign.tools.measured_studies import (
    MeasuredStudy,
    common_variants,
    common_workloads,
    measured,
    require_comparable,
    strictest,
)

# These change by the minute on any machine.
_PASSING = frozenset({"steal", "load average"})
_Rounds = tuple[Study, Record, tuple[Trial, ...]]


def differences(a: Path, b: Path) -> StudyDifference:
    """Comparison of B with A; each is a study file or a bundle.

    InputError where nothing is measured, or where they cannot be compared.
    """
    return _difference(measured(a), measured(b))


def study_difference(labels: tuple[str, str], a: _Rounds, b: _Rounds) -> StudyDifference:
    """The difference of two studies from their raw trials. Pure; InputError as `differences`."""
    return _difference(MeasuredStudy(labels[0], *a), MeasuredStudy(labels[1], *b))


def _difference(a: MeasuredStudy, b: MeasuredStudy) -> StudyDifference:
    record_a, record_b = a.record, b.record
    shared, variants = common_workloads((a, b)), common_variants((a, b))
    require_comparable((a, b), shared)
    costs_a, costs_b = a.costs(shared), b.costs(shared)
    for one, costs in ((a, costs_a), (b, costs_b)):
        if not costs.rounds:
            raise InputError(f"{one.label} has no complete round of the workloads that both have")
    rule = ChangeRule(*strictest((a, b)))
    changes = [
        variant_changes(costs_a, costs_b, variant, record_a.raced[0], rule)
        for variant in (*variants, TWIN)
    ]
    return StudyDifference(
        a=_side(a, costs_a),
        b=_side(b, costs_b),
        baseline=record_a.raced[0],
        twin=TWIN,
        level=rule.level,
        margin=rule.margin,
        builds=_builds(record_a, record_b, (record_a.raced[0], *variants)),
        machine=tuple(_differing(_facts(record_a), _facts(record_b))),
        settings=tuple(_differing(_settings(a, shared), _settings(b, shared))),
        suite=tuple(change.suite for change in changes),
        workloads=tuple(change for each in changes for change in each.workloads),
        significant=tuple(change.significant for change in changes),
        only_a=_alone(a, b),
        only_b=_alone(b, a),
        findings=_findings(changes[-1]),
    )


def _side(one: MeasuredStudy, costs: RoundCosts) -> StudySide:
    record = one.record
    return StudySide(one.label, one.study.name, record.made_at, record.version, len(costs.rounds))


def _builds(a: Record, b: Record, names: Sequence[str]) -> tuple[BuildPair, ...]:
    hashes_a, hashes_b = (
        {build.variant: build.identity for build in record.builds} for record in (a, b)
    )
    return tuple(BuildPair(name, hashes_a.get(name, ""), hashes_b.get(name, "")) for name in names)


def _facts(record: Record) -> dict[str, str]:
    return {name: value for name, value in record.machine.facts if name not in _PASSING}


def _settings(one: MeasuredStudy, shared: Sequence[str]) -> dict[str, str]:
    """Circumstances of a measurement, in words; commands with their numbers of requests."""
    study, record, trials = one.study, one.record, one.trials
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
            f"preload of {workload.name}": "; ".join(workload.preload_shown)
            for workload in study.workloads
            if workload.name in shared
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


def _alone(one: MeasuredStudy, other: MeasuredStudy) -> tuple[str, ...]:
    """Variants and workloads that the other study lacks."""
    raced = other.record.raced
    variants = [f"variant {name}" for name in one.record.raced if name not in raced]
    known = {workload.name for workload in other.study.workloads}
    workloads = [
        f"workload {workload.name}"
        for workload in one.study.workloads
        if workload.name not in known
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
