"""The plan of a study's rounds, their progress, and the missing trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from ensign.experiment.groups import variants_together
from ensign.experiment.loop import order_of
from ensign.experiment.pilots import CommandPilot
from ensign.experiment.self_timed import self_timed_findings
from ensign.experiment.study.budget import (
    LONGER_EXECUTIONS,
    Demand,
    WorkloadPilot,
    exact_rounds,
    fewest,
    fitted,
    group_findings,
    is_adaptive,
    most_variants_of,
    spread_variants,
)
from ensign.experiment.study.pilots import (
    Pilots,
    PlanContext,
    piloted,
)
from ensign.experiment.study.variants import VariantSet
from ensign.model.errors import CommandFailed, InputError, RaceFailed
from ensign.model.experiment import Precision
from ensign.model.finding_kinds.race import CONNECTIONS_BY_TURNS, MEMORY_SHORT
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import Mode, Trial, failed_variants
from ensign.model.units import format_size, parse_duration_ns
from ensign.stats.expected import pilot_rounds
from ensign.store.folder import StudyFolder

_SLICED = (
    "; it ended well alone: what depends on time may not bear to be stopped for the others, then "
    'race.mode = "alternating" runs it whole'
)


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The plan fixed before the first round. `key` names it in the store.

    `rounds` are `exact` where the study says how many; else as many as fit into `allowed_ns` (None:
    no limit), by this estimate, until it is `closed`: then it is how many there were. They take
    about `round_ns` each, and all racing `expected_ns`; `spent_ns` went into the pilots before,
    `used_ns` into the rounds in the end, and each race takes `overhead_ns` besides its own time.
    From the first `pilots` rounds the `precision` to expect is told; where one is asked for, the
    spread of the `first` of them counts in the intervals (of `finalists`, each judged more
    strictly), and `reached` is the half-width of the widest geometric mean at the end.

    `together` variants race at a time (None: all), `most_variants` has the workloads of whose
    variants only fewer fit into memory, `at_once` those of whose connections so many send in one
    slice. All variants of a race take about `memory_bytes` of the `free_bytes` that they may.
    Rounds take turns with so many `relinks` of each variant; 0: each is one binary.
    `self_timed` says of the workloads that run for a fixed time how that showed; of those
    `clock_unknown` it was not tried. `alone` is what the baseline used by itself, where its work is
    the same in the race: in slices that shows who ends so.

    `executions` has the workloads that are executed several times a round, from the round
    `dealt_from` on.

    What the baseline does decides on `metric` (empty: what the study says), which workloads run
    by turns (`alternating`) and which get all CPUs (`wide`); `seen` says why. `stopped` says why
    rounds that were looked at as they came ended.
    """

    key: str
    rounds: int
    requests: Mapping[str, int | None]
    expected_ns: int
    together: int | None = None
    precision: Precision | None = None
    most_variants: Mapping[str, int] = field(default_factory=dict)
    at_once: Mapping[str, int] = field(default_factory=dict)
    exact: bool = True
    closed: bool = True
    allowed_ns: int | None = None
    round_ns: int = 0
    spent_ns: int = 0
    relinks: int = 0
    used_ns: int = 0
    overhead_ns: int = 0
    pilots: int = 0
    first: int = 0
    finalists: int = 1
    reached: float | None = None
    memory_bytes: int = 0
    free_bytes: int | None = None
    self_timed: Mapping[str, str] = field(default_factory=dict)
    clock_unknown: tuple[str, ...] = ()
    alone: Mapping[str, CommandPilot] = field(default_factory=dict)
    metric: str = ""
    alternating: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    seen: tuple[Finding, ...] = ()
    stopped: Stopped | None = None
    executions: Mapping[str, int] = field(default_factory=dict)
    dealt_from: int = 0

    def executions_of(self, workload: str, round_index: int) -> int:
        """Number of its executions in that round."""
        return self.executions.get(workload, 1) if round_index >= self.dealt_from else 1

    def placed(self, variants: VariantSet, workload: str) -> VariantSet:
        """The variants as they race in that workload."""
        most = fewest(self.together, self.most_variants.get(workload))
        return replace(
            variants,
            most_variants=most,
            at_once=self.at_once.get(workload),
            cpus=variants.cpus.widened() if workload in self.wide else variants.cpus,
            alternating=workload in self.alternating,
        )


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """Progress of the rounds; times in ns. `trial` is the one that just ended."""

    done: int
    total: int
    round_index: int
    workload: str
    trial: Trial


def missing_trials(
    study: Study, variants: VariantSet, plan: RoundPlan, folder: StudyFolder
) -> tuple[tuple[int, Workload], ...]:
    """Round and workload of each trial that the store lacks, in the order of racing.

    None where every variant failed: nothing is left to be compared.
    """
    stored = folder.done(plan.key)
    if stored and variants.has_failed(failed_variants(folder.trials(plan.key))):
        return ()
    return tuple(
        (round_index, workload)
        for round_index in range(plan.rounds)
        for workload in order_of(study.workloads, study.race.seed, round_index)
        if (round_index, workload.name) not in stored
    )


def race_failed(
    error: CommandFailed, study: Study, variants: VariantSet, workload: Workload
) -> RaceFailed:
    """The baseline failed in a race, though it ran alone before."""
    sliced = study.race.mode != "alternating" and not variants.alternating
    way_out = _SLICED if sliced and workload.command is not None else ""
    return RaceFailed(f"{error}{way_out}")


FACTOR = 4


def with_longer_slices(study: Study, plan: RoundPlan) -> tuple[Study, RoundPlan]:
    """The study and plan of the check; no workloads where the study asks for none. Pure."""
    sliced = set(study.race.slice_check).difference(plan.alternating)
    chosen = [w for w in study.workloads if w.name in sliced]
    slice_ns = parse_duration_ns(study.race.slice) * FACTOR
    race = study.race.model_copy(update={"slice": f"{slice_ns}ns"})
    longer = study.model_copy(update={"workloads": chosen, "race": race})
    # All connections, where only some fit into a usual slice: is it the same with more at a time?
    key = longer_key(plan.key)
    return longer, replace(plan, key=key, rounds=LONGER_EXECUTIONS, at_once={}, closed=True)


def longer_key(key: str) -> str:
    """Key under which the trials of the check are kept."""
    return f"{key}-longer"


_PLAN = TypeAdapter(RoundPlan)
# A slice lasts for two rounds of requests then, also of a variant that is a quarter slower or a
# third faster: whether it sends once or twice would move what beginning a slice costs per request.
_ROUNDS_PER_SLICE = 1.5


def fixed_plan(
    context: PlanContext,
    study: Study,
    variants: VariantSet,
    key: str,
    pilots: Pilots | None = None,
) -> RoundPlan:
    """The stored plan of that key, or a new one from pilots, stored before it is used.

    InputError as `piloted`, which is called where there are no `pilots` yet.
    """
    stored = context.folder.read_json(f"plans/{key}")
    if stored is None:
        plan = _new_plan(study, variants, key, pilots or piloted(context, study, variants))
        write_plan(context.folder, plan)
        return plan
    return _read(context.folder, key, stored)


def taken_up(folder: StudyFolder, plan: RoundPlan) -> RoundPlan:
    """The stored plan of the same key, or this one, which is stored now."""
    stored = folder.read_json(f"plans/{plan.key}")
    if stored is None:
        write_plan(folder, plan)
        return plan
    return _read(folder, plan.key, stored)


def write_plan(folder: StudyFolder, plan: RoundPlan) -> None:
    """Replaces the stored plan in one step."""
    folder.write_json(f"plans/{plan.key}", _PLAN.dump_python(plan, mode="json"))


def plan_findings(plan: RoundPlan) -> tuple[Finding, ...]:
    """Findings on a plan before it is carried out. Pure."""
    return (
        *group_findings(plan.together, plan.most_variants),
        *_memory_findings(plan),
        *turns_findings(plan.at_once),
        *plan.seen,
        *self_timed_findings(plan.self_timed, plan.clock_unknown),
    )


def _read(folder: StudyFolder, key: str, stored: Mapping[str, object]) -> RoundPlan:
    try:
        return _PLAN.validate_python({"key": key, **stored})
    except ValidationError:
        raise InputError(
            f"plan {key} in {folder.root} is damaged; delete it and run again"
        ) from None


def _new_plan(study: Study, variants: VariantSet, key: str, found: Pilots) -> RoundPlan:
    compared = len(variants.artifacts) - 1
    together = variants_together(compared, study.race.group_size)
    largest = max(compared + 2, spread_variants(study))
    pilots: dict[str, WorkloadPilot] = {}
    for name, measured in found.by_workload.items():
        most = most_variants_of(measured.peak_memory_bytes, variants.memory_bytes, largest)
        pilots[name] = replace(measured, most_variants=most if most < largest else None)
    fit = fitted(Demand(study, pilots, compared, together), found.spent_ns)
    return RoundPlan(
        key,
        fit.rounds,
        fit.requests,
        fit.total_ns,
        together=together,
        most_variants={
            name: pilot.most_variants
            for name, pilot in pilots.items()
            if pilot.most_variants is not None and pilot.most_variants != together
        },
        at_once=connections_at_once(study, pilots),
        exact=exact_rounds(study) is not None,
        closed=False,
        allowed_ns=fit.allowed_ns,
        round_ns=fit.round_ns,
        spent_ns=found.spent_ns,
        relinks=variants.rotation,
        overhead_ns=max(pilot.overhead_ns for pilot in pilots.values()),
        pilots=pilot_rounds(max(compared, 1), len(study.workloads), fit.rounds),
        memory_bytes=max(
            pilot.peak_memory_bytes * (fewest(together, pilot.most_variants) or compared + 2)
            for pilot in pilots.values()
        ),
        free_bytes=variants.memory_bytes,
        self_timed={name: pilot.self_timed for name, pilot in pilots.items() if pilot.self_timed},
        clock_unknown=tuple(
            name
            for name, pilot in pilots.items()
            if pilot.self_timed is None and name in found.sights
        ),
        alone={
            workload.name: found.sights[workload.name]
            for workload in study.workloads
            if workload.name in found.sights and not is_adaptive(workload)
        },
        metric=found.decided.metric.value,
        alternating=found.decided.alternating,
        wide=found.decided.wide,
        seen=found.decided.findings,
    )


def raced_ns(trials: Sequence[Trial], overhead_ns: int) -> int:
    """Time that stored trials took, with what each of their races took besides. Pure."""
    races = sum(max(1, len(trial.groups)) for trial in trials)
    return sum(trial.wall_ns for trial in trials) + races * overhead_ns


def _memory_findings(plan: RoundPlan) -> tuple[Finding, ...]:
    if plan.free_bytes is None or plan.memory_bytes <= plan.free_bytes:
        return ()
    text = (
        f"even the fewest variants that can race together need about "
        f"{format_size(plan.memory_bytes)} by the pilot, "
        f"more than the {format_size(plan.free_bytes)} that they may take"
    )
    return (MEMORY_SHORT.found(text),)


def connections_at_once(study: Study, pilots: Mapping[str, WorkloadPilot]) -> dict[str, int]:
    """Connections that send in one slice of a workload; without those where it is all of them.

    A slice ends when the last reply is there. Where one pipeline of requests on each connection
    takes longer, slices would be as long as that: few, and far in time from the baseline's.
    """
    if study.race.turns is not Mode.DRIVEN or study.race.slice_connections == "all":
        return {}
    slice_ns = parse_duration_ns(study.race.slice)
    fitting = {
        workload.name: _fitting(workload, pilots[workload.name], slice_ns)
        for workload in study.workloads
    }
    return {name: number for name, number in fitting.items() if number is not None}


def turns_findings(at_once: Mapping[str, int]) -> tuple[Finding, ...]:
    """Finding on workloads whose connections send by turns."""
    if not at_once:
        return ()
    fewest, most = min(at_once.values()), max(at_once.values())
    range_ = str(fewest) if fewest == most else f"{fewest} to {most}"
    whose = "1 workload" if len(at_once) == 1 else f"{len(at_once)} workloads"
    text = (
        f"{whose}: {range_} connections send in one slice, by turns, because all "
        'at once would outlast it; race.slice_connections = "all" lets them'
    )
    return (CONNECTIONS_BY_TURNS.found(text),)


def _fitting(workload: Workload, pilot: WorkloadPilot, slice_ns: int) -> int | None:
    drive = workload.drive
    if drive is None or drive.rate_per_s is not None:
        return None
    round_ns = pilot.ns_per_request * drive.pipeline
    number = max(1, round(slice_ns / (_ROUNDS_PER_SLICE * round_ns)))
    return number if number < drive.connections else None
