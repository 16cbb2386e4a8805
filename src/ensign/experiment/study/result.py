"""A study's rounds as a result, with what only studies show. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ensign.experiment.causes import as_judged, cause_tables
from ensign.experiment.judge import JudgedRounds, judge
from ensign.experiment.record import Record
from ensign.experiment.study.layouts import layout_facts, layouts_spread
from ensign.experiment.study.round_plan import FACTOR
from ensign.experiment.study_file import StudyFile
from ensign.host.files import file_sha256
from ensign.model.builds import BuildFacts
from ensign.model.comparisons import NO_EFFECTS, Factorial
from ensign.model.drive import Drive
from ensign.model.experiment import Experiment
from ensign.model.finding_kinds.race import (
    TRAINING_OVERLAPS_TESTS,
)
from ensign.model.findings import Finding, Severity
from ensign.model.results import Result
from ensign.model.study import Study
from ensign.model.study_workload import Workload, asked_curves
from ensign.model.training_choice import read_training_choice
from ensign.model.trials import TWIN, Trial
from ensign.model.units import parse_duration_ns, parse_share
from ensign.model.variants import AXES, DEFAULTS
from ensign.sources.obtain import lock_path
from ensign.stats.curves import curves_of
from ensign.stats.factorial import Design, Levels, factorial_reading
from ensign.stats.named_scores import workload_of
from ensign.stats.slice_length import change_of_log_ratio, slice_length_finding
from ensign.stats.trials import log_ratios
from ensign.stats.winner import barred

_COMPILER = "compiler"
_HARDENING = "hardening"
_NUMBER = r"\d+"


def experiment_of(study: Study) -> Experiment:
    """Quantity that a study measures, and the rule."""
    race = study.race
    return Experiment(
        name=study.name,
        title=study.title or study.name,
        question=study.question,
        workloads=tuple(workload.name for workload in study.workloads),
        metric=race.cost,
        level=race.level,
        margin=None if race.margin is None else parse_share(race.margin),
        precision=None if race.precision is None else parse_share(race.precision),
        sequential=race.stopping == "sequential",
        by_ranks=race.stopping == "sequential",
        slice_ns=parse_duration_ns(race.slice),
        seed=race.seed,
        budget_ns=parse_duration_ns(race.budget),
    )


def study_result(
    study: Study,
    record: Record,
    trials: tuple[Trial, ...],
    longer: tuple[Trial, ...] = (),
    relinked: tuple[Trial, ...] = (),
    *,
    finalists: int = 1,
) -> Result:
    """The result of the whole rounds. InputError without a single one.

    `longer` are the trials at longer slices, `relinked` those of the baseline's relinks, if there
    are any; what failed in one of them is nowhere.
    """
    beside = (failure for trial in (*longer, *relinked) for failure in trial.failures)
    record = replace(record, early=(*record.early, *beside))
    judged = judge(experiment_of(study), record, trials, finalists=finalists)
    gone = frozenset(failure.variant for failure in judged.result.failures)
    usual = [trial.without(gone) for trial in trials]
    raced = tuple(name for name in record.raced if name not in gone)
    moved = slice_length_findings(study, raced, usual, [trial.without(gone) for trial in longer])
    spread = layouts_spread(study, judged.executions, record.relinks)
    built = {build.variant: build.raced_as for build in record.builds}
    compilers = {facts.variant: dict(facts.choices).get(_COMPILER, "") for facts in record.builds}
    causes = cause_tables(study.explain, built, judged.costs, study.race.level)
    return replace(
        judged.result,
        findings=(*overlap_findings(study), *moved, *spread, *judged.result.findings),
        layouts=layout_facts(study, replace(record, raced=raced), judged.executions, relinked),
        # What lies between two ends is there for their causes.
        factorial=_effects(judged, record) if study.explain is None else NO_EFFECTS,
        prefer=study.race.prefer,
        causes=as_judged(causes, judged.result),
        curves=curves_of(
            asked_curves(study.workloads), judged.costs, judged.trials, compilers, judged.rule
        ),
    )


def _effects(judged: JudgedRounds, record: Record) -> Factorial:
    if not np.isfinite(judged.others.y).all():
        return NO_EFFECTS
    design = design_of(
        record.builds,
        [variant for variant in judged.costs.variants if variant != TWIN],
        judged.result.findings,
    )
    return factorial_reading(judged.costs, judged.others, design, judged.rule)


def design_of(
    builds: Sequence[BuildFacts], raced: Sequence[str], findings: Iterable[Finding]
) -> Design:
    """The builds that effects are read from, the first of `raced` being the baseline.

    A build of the same bytes as another counts with the other's variant. One that fails its check,
    or that an error speaks against, is left out: what it does is not what was asked for.
    """
    unfit = barred(findings, builds)
    levels_by_build: dict[str, tuple[Mapping[str, str], str]] = {}
    for build in builds:
        of_it = {build.variant, build.raced_as}
        if build.raced_as in raced and not of_it & unfit:
            levels_by_build[build.variant] = ({**DEFAULTS, **dict(build.choices)}, build.raced_as)
    if not raced or raced[0] not in levels_by_build:
        return Design((), (), ())
    values = {axis: {levels[axis] for levels, _ in levels_by_build.values()} for axis in AXES}
    axes = tuple(axis for axis in AXES if len(values[axis]) > 1)
    references = dict(levels_by_build[raced[0]][0])
    # A single option of hardening is added to the compiler's own defaults, whatever the baseline.
    if DEFAULTS[_HARDENING] in values[_HARDENING]:
        references[_HARDENING] = DEFAULTS[_HARDENING]
    return Design(
        axes,
        _at(references, axes),
        tuple((_at(levels, axes), variant) for levels, variant in levels_by_build.values()),
    )


def _at(levels: Mapping[str, str], axes: Sequence[str]) -> Levels:
    return tuple(levels[axis] for axis in axes)


def overlap_findings(study: Study) -> tuple[Finding, ...]:
    """An error where a training workload is a test, by what it runs; a name alone says nothing.

    Commands are equal whatever number stands for `{requests}`. Drives overlap where they have a
    command with the same pattern of keys in common, whatever their connections or sizes.
    """
    if study.training is None:
        return ()
    pairs = [
        f"{trained.name} runs the command of {test.name}"
        for trained in study.training.workloads
        for test in study.workloads
        if _same_command(trained, test)
    ]
    seen = "what PGO and BOLT gain there, they gain on what they have seen"
    text = f"training and tests overlap ({'; '.join(pairs)}): {seen}"
    choices = map(read_training_choice, study.training_choices)
    also = [choice for choice in choices if choice.names and not choice.without]
    told = TRAINING_OVERLAPS_TESTS.as_severity(Severity.WARNING, "variants ask for it by an axis")
    return (
        *((TRAINING_OVERLAPS_TESTS.found(text),) if pairs else ()),
        *(told.found(f"variants are trained on tests ({choice}): {seen}") for choice in also),
    )


def _same_command(one: Workload, other: Workload) -> bool:
    if one.drive is not None and other.drive is not None:
        return not _sent(one.drive).isdisjoint(_sent(other.drive))
    commands = (one.load or one.command or (), other.load or other.command or ())
    return (one.stdin, one.env) == (other.stdin, other.env) and _same(*commands)


def _sent(drive: Drive) -> set[tuple[object, ...]]:
    """Each command of a drive, with how its keys are drawn."""
    return {
        (line[0].upper(), line[1:], command.keys and command.keys.pattern)
        for command in drive.commands
        for line in command.lines
    }


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(
        a == b or _matches(a, b) or _matches(b, a) for a, b in zip(one, other, strict=True)
    )


def _matches(pattern: str, text: str) -> bool:
    """True if `text` is `pattern` with a number for `{requests}`."""
    parts = [re.escape(part) for part in pattern.split("{requests}")]
    return re.fullmatch(_NUMBER.join(parts), text) is not None


_SHOWN_DIGITS = 12


def with_redo(
    result: Result, file: StudyFile, raced: Mapping[str, str], bundle: Path | None = None
) -> Result:
    """The result with `redo` and `redo_with`; a `bundle` is unpacked first.

    `raced` has the `budget` and `precision` that it was raced with, where they are known.
    """
    study = (file.own or file.study).workloads
    raced_there = tuple(dict.fromkeys(map(workload_of, result.workload_names)))
    every = raced_there == tuple(workload.name for workload in study)
    chosen = () if every else raced_there
    options = [word for name in chosen for word in ("--workload", name)]
    options += _limits(file, raced)
    own = (file.own or file.study).sandbox
    options += ["--unconfined"] if own.confined and not file.study.sandbox.confined else []
    redo = {"redo": _redo(file, options, bundle), "redo_with": _redo_with(file, result.version)}
    return replace(result, extra={**result.extra, **redo})


def _redo(file: StudyFile, options: list[str], bundle: Path | None) -> str:
    """The command line that repeats the study, or those of its workloads that were raced."""
    study = file.path.name
    if bundle is None:
        return shlex.join(["ensign", "run", study, *options])
    unpacked = shlex.join(["ensign", "unbundle", bundle.name, "again"])
    return f"{unpacked} && {shlex.join(['ensign', 'run', f'again/{study}', *options])}"


def _limits(file: StudyFile, raced: Mapping[str, str]) -> list[str]:
    """The options by which it was raced with another budget or precision than the study's."""
    race = (file.own or file.study).race
    usual = {"budget": race.budget, "precision": race.precision}
    return [
        word
        for name, text in raced.items()
        if text and text != usual[name]
        for word in (f"--{name}", text)
    ]


def _redo_with(file: StudyFile, version: str) -> str:
    """Requirements of that command to repeat this study: version, and files by SHA-256."""
    files = [path for path in (file.path, lock_path(file.path)) if path.exists()]
    hashed = (f"{file_path.name} {file_sha256(file_path)[:_SHOWN_DIGITS]}…" for file_path in files)
    return f"ensign {version}, {', '.join(hashed)}"


def slice_length_findings(
    study: Study, raced: Sequence[str], usual: Sequence[Trial], longer: Sequence[Trial]
) -> tuple[Finding, ...]:
    """One finding per workload that was raced at both lengths. Pure."""
    metric = study.race.cost
    length_ms = parse_duration_ns(study.race.slice) / 1e6
    findings: list[Finding] = []
    for workload in study.race.slice_check:
        short = [trial for trial in usual if trial.workload == workload]
        long = [trial for trial in longer if trial.workload == workload]
        if not long:
            continue
        changes = {
            variant: change_of_log_ratio(
                log_ratios(short, variant, raced[0], metric),
                log_ratios(long, variant, raced[0], metric),
                study.race.level,
            )
            for variant in (*raced[1:], TWIN)
        }
        lengths = (length_ms, length_ms * FACTOR)
        findings.append(slice_length_finding(workload, lengths, changes))
    return tuple(findings)
