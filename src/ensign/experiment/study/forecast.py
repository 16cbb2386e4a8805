"""`ensign plan`: what a study is going to do, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ensign.builders.forecast import Outlook, outlook
from ensign.builders.input_files import missing_inputs
from ensign.builders.request import BuildRequest
from ensign.experiment.machine import cpus_of_study
from ensign.experiment.ports import Ports
from ensign.experiment.study.budget import exact_rounds
from ensign.experiment.study.confirm_plan import TimeLeft, confirming, new_plan
from ensign.experiment.study.networks import refused_networks
from ensign.experiment.study.prepare import (
    build_ports,
    compilers_by_line,
    require_commands,
    require_source,
)
from ensign.experiment.study.record import usable_record
from ensign.experiment.study.request_problems import require_requests
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.stored import folder_of
from ensign.experiment.study_file import StudyFile
from ensign.host.cache import Cache
from ensign.host.search_path import apart_from, not_tried
from ensign.model.expectation import Expectation, PlannedVariant, Work, known_sum
from ensign.model.placeholders import shown
from ensign.model.study import Study
from ensign.model.study_workload import Workload, asked_curves
from ensign.model.trials import Metric, Mode
from ensign.model.units import parse_duration_ns
from ensign.model.variants import Variant

_AFRESH = "to confirm"
_NONE_AFRESH = Work(_AFRESH, 0, 0, 0, 0, "alike")
# Nothing was raced yet from which a number of confirming rounds could follow.
_NO_ROUNDS, _NO_TIME_LEFT = RoundPlan("", 0, {}, 0), TimeLeft(0, 1)


def expectation(
    file: StudyFile, cache: Cache, ports: Ports, *, only_look: bool = False
) -> Expectation:
    """Looks at the toolchains and the cache; builds and races nothing. InputError as `run`.

    With `only_look` nothing of the study's own is run either: compilers that are not surely this
    machine's are named, and not tried.
    """
    study = file.study
    require_source(file)
    require_commands(file, ports.env)
    require_requests(file)
    untried = _untried(file, ports) if only_look else {}
    # A run has left them out before it asks what is ahead.
    refused = refused_networks(file, ports) if only_look else {}
    if only_look:
        path = apart_from(ports.env.get("PATH", os.defpath), file.folders)
        ports = replace(ports, env={**ports.env, "PATH": path})
    ahead, second = None, _NONE_AFRESH
    tried = tuple(variant for variant in file.variants if variant.name not in untried)
    if tried:
        request = BuildRequest(study, file.path, tried, tried[0].name)
        with compilers_by_line(file):
            ahead = outlook(request, build_ports(file, cache, ports))
            second = second if untried else _afresh(file, cache, ports)
    cpus, _ = cpus_of_study(study.cpus)
    left_out = {} if ahead is None else ahead.left_out
    later = {} if ahead is None else ahead.later
    return Expectation(
        name=study.name,
        title=study.title,
        variants=() if ahead is None else tuple(_planned_of(file, tried, ahead)),
        workloads=tuple((workload.name, workload.shown) for workload in study.workloads),
        curves=tuple(curve.workloads for curve in asked_curves(study.workloads)),
        work=tuple(
            work
            for work in (*_builds(ahead), second, _racing(file))
            if work.waiting != 0 or work.there
        ),
        rounds=study.race.rounds,
        left_out=(*left_out.items(), *refused.items()),
        missing="" if ahead is None else ahead.missing,
        untried=(*untried.items(), *later.items()),
        confirming=_confirming(study),
        modes=tuple((workload.name, planned_mode(study, workload)) for workload in study.workloads),
        inputs=_inputs(file),
        confinement="" if ahead is None else ahead.confinement.said,
        cpus=(("programs", cpus.program), ("load generators", cpus.load), ("meter", cpus.meter)),
    )


def _inputs(file: StudyFile) -> tuple[str, ...]:
    request = BuildRequest(file.study, file.path, file.variants, file.variants[0].name)
    return tuple(
        f"{path}: {'fetched' if input_file.command is None else shown(input_file.command)}"
        for path, input_file in missing_inputs(request).items()
    )


def _untried(file: StudyFile, ports: Ports) -> dict[str, str]:
    """Variants whose compiler is not to be run by what only looks, and why."""
    path, folders = ports.env.get("PATH", os.defpath), file.folders
    reasons = {}
    for variant in file.variants:
        reason = not_tried(variant.compiler, path, folders)
        if reason:
            reasons[variant.name] = f"its compiler is '{variant.compiler}', and {reason}"
    return reasons


def _builds(ahead: Outlook | None) -> tuple[Work, ...]:
    if ahead is None:
        return ()
    builds = ahead.estimate
    return (builds.builds, builds.relinks, builds.checks)


def _planned_of(
    file: StudyFile, tried: Sequence[Variant], ahead: Outlook
) -> Iterator[PlannedVariant]:
    baseline = file.variants[0].name
    for variant in tried:
        if variant.name not in (*ahead.left_out, *ahead.later):
            yield _planned(variant, ahead, is_baseline=variant.name == baseline)


def _confirming(study: Study) -> tuple[int, int | None] | None:
    confirm = study.race.confirm
    return None if confirm is None else (confirm.finalists, confirm.rounds)


def _afresh(file: StudyFile, cache: Cache, ports: Ports) -> Work:
    """Builds and checks of a confirmation at most: nobody knows yet whose turn it will be."""
    confirm = file.study.race.confirm
    if confirm is None:
        return _NONE_AFRESH
    baseline, *others = file.variants
    names = [other.name for other in sorted(others, key=_effort)[: confirm.finalists]]
    supposed = confirming(file, new_plan(file, confirm, names, _NO_ROUNDS, _NO_TIME_LEFT))
    request = BuildRequest(supposed.study, file.path, supposed.variants, baseline.name)
    estimate = outlook(request, build_ports(file, cache, ports)).estimate
    parts = (estimate.builds, estimate.relinks, estimate.checks)
    return Work(
        _AFRESH,
        waiting=sum(work.waiting or 0 for work in parts),
        there=sum(work.there for work in parts),
        wall_s=known_sum(work.wall_s for work in parts),
        disk_bytes=known_sum(work.disk_bytes for work in parts),
        basis="unknown" if any(part.wall_s is None for part in parts) else "alike",
    )


def _effort(variant: Variant) -> tuple[bool, bool, bool]:
    """Sorts those first whose builds have most stages."""
    return (variant.bolt != "on", variant.pgo != "on", variant.lto == "off")


def _planned(variant: Variant, ahead: Outlook, *, is_baseline: bool) -> PlannedVariant:
    key = ahead.plan.stage_of[variant.name]
    known = ahead.estimate.builds.wall_s is not None
    seconds = ahead.estimate.seconds if known else {}
    return PlannedVariant(
        name=variant.name,
        compiler=ahead.toolchains[variant.compiler].version_line,
        flags=ahead.plan.flags_of[variant.name].compile,
        link_flags=ahead.plan.flags_of[variant.name].link,
        is_baseline=is_baseline,
        build_s=sum(seconds.get(stage.key, 0.0) for stage in ahead.plan.chain(key)),
    )


def _racing(file: StudyFile) -> Work:
    done, total = _trials(file)
    budget_s = parse_duration_ns(file.study.race.budget) / 1e9
    if total is None:
        return Work("trials", None, done, budget_s, 0, "budget")
    # More are there than planned where every variant failed in the first of them.
    waiting = max(0, total - done)
    left_s = budget_s * waiting / total if total else 0.0
    return Work("trials", waiting, done, left_s, 0, "budget")


def _trials(file: StudyFile) -> tuple[int, int | None]:
    """Number that is there, of how many; None where that follows from the budget alone."""
    folder = folder_of(file)
    record = usable_record(folder)
    names = [workload.name for workload in file.study.workloads]
    if record is not None and list(record.workloads) == names:
        planned = record.rounds_planned
        if exact_rounds(file.study) in (planned, None) or record.complete:
            return len(folder.done(record.key)), planned * len(names)
    exact = exact_rounds(file.study)
    return 0, None if exact is None else exact * len(names)


def planned_mode(study: Study, workload: Workload) -> str:
    """Modes by what the study says; pilots see the rest (`mode_of`)."""
    race, whole = study.race, "alternating (whole executions in turn)"
    if workload.by_turns:
        what = "its own speed" if workload.scored else "how much it did"
        return f"{whole}: it says {what}, which time in which it stood would change"
    if race.turns is Mode.DRIVEN:
        return f"driven: ensign's own load generator sends for {race.slice} to one at a time"
    if race.turns is Mode.ALTERNATING:
        return f"{whole}: 'race.mode' says so; the meter measures"
    sliced = f"interleaved (stopped and continued in slices of {race.slice}); the meter measures"
    if race.mode is not None:
        return f"{sliced}: 'race.mode' says so"
    if workload.load is not None and race.cost is Metric.WALL:
        return f"{whole}: wall time of slices has no queues; the meter measures"
    return f"{sliced}. If a pilot shows that it waits, or needs several CPUs: alternating"
