"""What is fixed before the rounds of a study, how far they are, and which trials are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ensign.experiment.compare.pilot import CommandPilot
from ensign.experiment.loop import order_of
from ensign.experiment.study.budget import LONGER_EXECUTIONS
from ensign.experiment.study.groups import fewest
from ensign.experiment.study.variants import VariantSet
from ensign.model.errors import CommandFailed, RaceFailed
from ensign.model.findings import Finding
from ensign.model.precision import Precision
from ensign.model.results import Stopped
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import Trial, failed_variants
from ensign.model.units import parse_duration_ns
from ensign.store.folder import StudyFolder

_SLICED = (
    "; it ended well alone: what depends on time may not bear to be stopped for the others, then "
    'race.mode = "alternating" runs it whole'
)


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What was fixed before the first round. `key` names it in the store.

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
    """How far the rounds are; times in ns. `trial` is the one that just ended."""

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
    """Where the trials of the check are kept."""
    return f"{key}-longer"
