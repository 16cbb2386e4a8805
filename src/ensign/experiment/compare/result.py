"""From a finished race of commands to the evidence that is judged. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from ensign import __version__
from ensign.experiment.compare.bundle import CompareEvidence
from ensign.experiment.compare.options import CommandVariant, Options
from ensign.experiment.compare.pilot import CommandPilot
from ensign.experiment.compare.plan import race_ended_early
from ensign.experiment.compare.race_outcome import FinishedRace
from ensign.experiment.measurements import SeenRunning, spread_of
from ensign.experiment.record import Record
from ensign.model.finding_kinds.judgment import NO_TWIN
from ensign.model.results import VariantFacts
from ensign.model.trials import Trial

_NO_TWIN = "no A/A twin was raced: nothing shows what this measurement can be trusted with"


def compare_evidence(options: Options, raced: FinishedRace, redo: str = "") -> CompareEvidence:
    """A race that ended as what its result follows from."""
    record = compare_record(options, raced)
    return CompareEvidence(raced.experiment, record, named_trials(raced), redo)


def compare_record(options: Options, raced: FinishedRace) -> Record:
    """What the result rests on beside its trials."""
    left = [each for each in raced.commands if each.variant in raced.so_far.variants]
    pilots = raced.planned.pilots
    return Record(
        key="",
        raced=tuple(e.name for e in raced.commands if e.variant not in raced.same),
        rounds_planned=len({trial.round_index for trial in raced.outcome.trials}),
        builds=(),
        machine=raced.machine,
        findings=(
            *race_ended_early(raced.outcome.error),
            *raced.shared,
            *raced.planned.findings,
            *raced.planned.traces.findings,
            *raced.machine_findings,
            *(() if options.twin else (NO_TWIN.found(_NO_TWIN),)),
        ),
        commands=tuple((each.name, each.text) for each in raced.commands),
        toolchains=(),
        source=(),
        version=__version__,
        confinement=raced.confinement,
        made_at=raced.made_at,
        complete=True,
        metric=raced.experiment.metric,
        has_twin=options.twin,
        mode=raced.planned.mode,
        early=tuple(replace(each.failure, variant=each.command.name) for each in raced.early),
        seen={each.name: _seen(raced, each) for each in left},
        measured=tuple(
            _piloted(each, pilots) for each in left if each.variant in raced.planned.pilots
        ),
        doubt=raced.planned.doubt(loaded=options.serves),
        withheld=raced.withheld,
        stopped=raced.outcome.stopped,
        used_s=raced.spent_ns / 1e9,
    )


def named_trials(raced: FinishedRace) -> tuple[Trial, ...]:
    """The trials with the names that readers know; variants race under short ones.

    Those are safe in paths.
    """
    names = {each.variant: each.name for each in raced.commands}
    return tuple(_named(trial, names) for trial in raced.trials)


def _named(trial: Trial, names: Mapping[str, str]) -> Trial:
    def name(variant: str) -> str:
        return names.get(variant, variant)

    return replace(
        trial,
        variants=tuple(replace(each, variant=name(each.variant)) for each in trial.variants),
        slices=tuple(replace(each, variant=name(each.variant)) for each in trial.slices),
        failures=tuple(replace(each, variant=name(each.variant)) for each in trial.failures),
        findings=tuple(replace(each, subject=name(each.subject)) for each in trial.findings),
    )


def _seen(raced: FinishedRace, command: CommandVariant) -> SeenRunning:
    trace = raced.planned.traces.of(command.variant)
    return SeenRunning(trace.mapped, trace.not_judged)


def _piloted(command: CommandVariant, pilots: Mapping[str, CommandPilot]) -> VariantFacts:
    pilot = pilots[command.variant]
    return VariantFacts(
        variant=command.name,
        workload="",
        user_s=median(run.user_ns for run in pilot.runs) / 1e9,
        system_s=median(run.system_ns for run in pilot.runs) / 1e9,
        wall=spread_of([run.wall_ns / 1e9 for run in pilot.runs]),
        peak_memory_bytes=pilot.peak_memory_bytes,
        cost_ns=float(pilot.cpu_ns),
    )
