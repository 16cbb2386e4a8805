"""Content of a budget: how many rounds, of executions how long, in groups of how many. Pure.

The budget covers all racing of a study: pilots, start-ups, preloads, the rounds, the check at
longer slices, the race of relinks and the confirmation; builds and checks it does not.

Where the study says `rounds`, executions are as long as so many of them allow. Without (or with a
precision, where `rounds` are the fewest), they are as long as is best for the time, and rounds are
what fits. An execution's variance is a constant part and one that falls with its length; with
start-ups of s seconds the best length is √(s · r), r being the length at which both parts are
equal (Kalibera and Jones). On Redis r was about 0.2 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ensign.experiment.groups import (
    FEWEST_VARIANTS,
    NO_VARIANT,
    group_count,
    groups_finding,
    memory_finding,
    variants_together,
)
from ensign.model.errors import BudgetTooShort
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.units import format_duration, parse_duration_ns, pluralize
from ensign.stats.expected import FEWEST_ROUNDS

# More requests than the pilot's may make a server grow.
_GROWTH_LEFT = 1.5


def most_variants_of(peak_bytes: int, memory_bytes: int | None, variants: int) -> int:
    """Number of variants that fit into memory together, by the pilot's peak; at least 3."""
    if memory_bytes is None or peak_bytes <= 0:
        return variants
    return max(FEWEST_VARIANTS, min(variants, int(memory_bytes / (peak_bytes * _GROWTH_LEFT))))


def fewest(*limits: int | None) -> int | None:
    """The least of those limits that there are."""
    return min((limit for limit in limits if limit is not None), default=None)


def group_findings(together: int | None, most_variants: Mapping[str, int]) -> tuple[Finding, ...]:
    """Findings where variants race in groups: by choice, or because of memory, per workload."""
    findings = []
    if together is not None:
        findings.append(groups_finding(together))
    for workload, most in sorted(most_variants.items()):
        if together is None or most < together:
            findings.append(memory_finding(most, workload))
    return tuple(findings)


LONGER_EXECUTIONS = 6
SPREAD_EXECUTIONS = 3
# Of baseline and twin in slices, with copies, and one of them traced; of the budget at most.
CLOCK_EXECUTIONS = 2.5
CLOCKS_SHARE = 0.03
# For looking at what the baseline does on all workloads.
LOOKS_SHARE = 0.05
MOST_ROUNDS = 9999  # four digits in the names of trials
TOLERANCE = 0.05
SHORTEST_NS = 40_000_000
_LEAST_COMMAND_NS = 1_000_000
_PARTS_EQUAL_NS = 200_000_000
_BEST_NS = (60_000_000, 1_000_000_000)
_SLICES = 8
_ENOUGH_ROUNDS = 8
# Where executions can be longer instead: each of more would be one more file for little.
_MANY_ROUNDS = 200
_HALF = 0.5
# Where the number of rounds is fixed their length leaves time left for a machine that gets slower.
_TIME_LEFT = 0.95

Lengths = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WorkloadPilot:
    """Needs of the baseline: running time per request, start-up per variant, the race's own (ns).

    `most_variants` fit into memory together; None: all of them. `self_timed` says how it showed
    that the workload runs for a fixed time, "" where it does not; None where that is not known.
    """

    requests: int | None
    running_ns: int
    startup_ns: int
    peak_memory_bytes: int = 0
    most_variants: int | None = None
    overhead_ns: int = 0
    self_timed: str | None = None

    @property
    def ns_per_request(self) -> float:
        """Running time of one request."""
        return self.running_ns / (self.requests or 1)


@dataclass(frozen=True, slots=True)
class Fit:
    """So many rounds of these requests; `round_ns` each, `allowed_ns` for all rounds.

    `total_ns` is what everything is expected to take, from the pilots to the confirmation.
    """

    rounds: int
    requests: Mapping[str, int | None]
    round_ns: int
    allowed_ns: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class Demand:
    """Request of a study: `variants` besides the baseline, `together` variants at a time.

    A workload without a pilot is taken for the quickest there can be.
    """

    study: Study
    pilots: Mapping[str, WorkloadPilot]
    variants: int
    together: int | None = None

    def lengths(self, target_of: Callable[[Workload], float]) -> dict[str, float]:
        """Running time of each workload's executions (ns), which some studies fix."""
        return {
            workload.name: self._length(workload, target_of(workload))
            for workload in self.study.workloads
        }

    def round_ns(self, lengths: Lengths, variants: int | None = None) -> float:
        """Time of one execution of every workload."""
        return sum(self.execution_ns(name, lengths, variants) for name in lengths)

    def execution_ns(self, name: str, lengths: Lengths, variants: int | None = None) -> float:
        """Time of one execution of a workload, with all its groups."""
        pilot = self.pilots.get(name, WorkloadPilot(None, 0, 0))
        racing = self.variants if variants is None else variants
        most = fewest(self.together, pilot.most_variants)
        groups = 1 if most is None else group_count(racing, most)
        taking_part = racing + groups * NO_VARIANT
        return taking_part * (pilot.startup_ns + lengths[name]) + groups * pilot.overhead_ns

    def extras_ns(self, lengths: Lengths) -> float:
        """Time of the warm-up, of the check at longer slices, and of the race of relinks."""
        checked = [name for name in lengths if name in self.study.race.slice_check]
        extra = LONGER_EXECUTIONS * sum(self.execution_ns(name, lengths) for name in checked)
        relinks = spread_variants(self.study) - NO_VARIANT
        warming = self.round_ns(lengths) + self.confirming_ns(lengths)
        extra += self.study.race.warmup * warming
        return extra + (SPREAD_EXECUTIONS * self.round_ns(lengths, relinks) if relinks > 0 else 0)

    def confirming_ns(self, lengths: Lengths) -> float:
        """Time of one round of as many finalists as there may be; 0 where none are confirmed."""
        confirm = self.study.race.confirm
        if confirm is None or not self.variants:
            return 0.0
        return self.round_ns(lengths, min(confirm.finalists, self.variants))

    def total_ns(self, lengths: Lengths, rounds: float, confirming: float) -> float:
        """Time of so many rounds, of what comes besides, and of so many confirming rounds."""
        return (
            rounds * self.round_ns(lengths)
            + self.extras_ns(lengths)
            + confirming * self.confirming_ns(lengths)
        )

    @property
    def adapts(self) -> bool:
        """True if some executions can be made longer or shorter."""
        return any(is_adaptive(workload) for workload in self.study.workloads)

    def requests(self, lengths: Lengths) -> dict[str, int | None]:
        """Requests of each execution."""
        return {
            workload.name: _requests(workload, self.pilots[workload.name], lengths[workload.name])
            for workload in self.study.workloads
        }

    def _length(self, workload: Workload, target_ns: float) -> float:
        pilot = self.pilots.get(workload.name)
        if pilot is None:
            return SHORTEST_NS if is_adaptive(workload) else _LEAST_COMMAND_NS
        return (_requests(workload, pilot, target_ns) or 1) * pilot.ns_per_request


def fitted(demand: Demand, spent_ns: int) -> Fit:
    """Rounds and requests that fill what is left of the budget. InputError where none fit."""
    require_time_left(demand, spent_ns)
    race = demand.study.race
    left_ns = parse_duration_ns(race.budget) - spent_ns
    lengths = _best_lengths(demand, left_ns)
    round_ns = demand.round_ns(lengths)
    rest_ns = left_ns - demand.extras_ns(lengths)
    allowed_ns = _share(demand, lengths, rest_ns)
    fewest_rounds, _ = _least_rounds(demand.study)
    fits = max(fewest_rounds, min(MOST_ROUNDS, int(allowed_ns / round_ns)))
    rounds = exact_rounds(demand.study) or fits
    confirming = 0.0 if race.confirm is None else rest_ns - rounds * round_ns
    total_ns = spent_ns + left_ns - rest_ns + rounds * round_ns + confirming
    requests = demand.requests(lengths)
    return Fit(rounds, requests, round(round_ns), round(allowed_ns), round(total_ns))


def require_time_left(demand: Demand, spent_ns: int) -> None:
    """InputError, with the nearest that fits, where the least that is asked for does not fit.

    With some of the pilots, or none, it is refused what cannot fit whatever the others say.
    """
    race = demand.study.race
    budget_ns = parse_duration_ns(race.budget)
    rounds, confirming = _least_rounds(demand.study)
    shortest = demand.lengths(lambda _: SHORTEST_NS)
    needed_ns = spent_ns + demand.total_ns(shortest, rounds, confirming)
    if needed_ns <= budget_ns * (1 + TOLERANCE):
        return
    known = len(demand.pilots) == len(demand.study.workloads)
    ways = [f"give {'' if known else 'at least '}{_rounded_up(needed_ns)}"]
    time_left_ns = budget_ns - spent_ns - demand.total_ns(shortest, 0, confirming)
    fitting = int(time_left_ns / demand.round_ns(shortest))
    if race.rounds is not None and known and fitting >= FEWEST_ROUNDS:
        ways.append(f"or {fitting} rounds")
    if known and (names := _left_out(demand, budget_ns - spent_ns)):
        ways.append(f"or leave out {', '.join(names)}")
    raise BudgetTooShort(
        f"the budget of {race.budget} cannot hold {pluralize(rounds, 'round')} of "
        f"{pluralize(len(demand.study.workloads), 'workload')} with {demand.variants + 1} variants"
        f"{' and their confirmation' if confirming else ''}, which take "
        f"{'about' if known else 'at least'} {format_duration(needed_ns)}: {', '.join(ways)}",
        needed_ns,
    )


def exact_rounds(study: Study) -> int | None:
    """The number of rounds, where the study fixes it: with a precision it is the fewest."""
    return None if study.race.precision is not None else study.race.rounds


def spread_variants(study: Study) -> int:
    """Variants of the race of the baseline's relinks; 0 where there is none."""
    layouts = study.layouts
    return layouts.relinks + NO_VARIANT if layouts.variants == "baseline" else 0


def is_adaptive(workload: Workload) -> bool:
    """True if the number of its requests is chosen."""
    return workload.fixed_requests is None and workload.sends_requests


def _least_rounds(study: Study) -> tuple[int, int]:
    confirm = study.race.confirm
    confirming = 0 if confirm is None else confirm.rounds or FEWEST_ROUNDS
    return study.race.rounds or FEWEST_ROUNDS, confirming


def _share(demand: Demand, lengths: Lengths, rest_ns: float) -> float:
    """Time for the rounds, of that without extras: without numbers, half is to confirm."""
    race = demand.study.race
    if race.confirm is None:
        return rest_ns
    one_ns = demand.confirming_ns(lengths)
    if race.confirm.rounds is not None:
        return rest_ns - race.confirm.rounds * one_ns
    exact = exact_rounds(demand.study)
    if exact is not None:
        return min(rest_ns - FEWEST_ROUNDS * one_ns, exact * demand.round_ns(lengths))
    least = _least_rounds(demand.study)[0] * demand.round_ns(lengths)
    return min(max(rest_ns * _HALF, least), rest_ns - FEWEST_ROUNDS * one_ns)


def _best_lengths(demand: Demand, left_ns: float) -> dict[str, float]:
    study = demand.study
    slice_ns = parse_duration_ns(study.race.slice)

    def best_ns(workload: Workload) -> float:
        startup_ns = demand.pilots[workload.name].startup_ns
        wanted = max(math.sqrt(startup_ns * _PARTS_EQUAL_NS), _SLICES * slice_ns)
        return min(max(wanted, _BEST_NS[0]), max(_BEST_NS[1], _SLICES * slice_ns))

    def alike(target_ns: float) -> dict[str, float]:
        return demand.lengths(lambda _: target_ns)

    rounds, confirming = _least_rounds(study)
    best = demand.lengths(best_ns)
    if not demand.adapts:
        return best
    exact, enough = exact_rounds(study), max(_ENOUGH_ROUNDS, rounds)
    if exact is None:
        if study.race.confirm is not None and study.race.confirm.rounds is None:
            confirming = _ENOUGH_ROUNDS
        if demand.total_ns(best, _MANY_ROUNDS, confirming) < left_ns:
            many = max(_MANY_ROUNDS, rounds)
            return _longest(lambda ns: demand.total_ns(alike(ns), many, confirming), alike, left_ns)
        if demand.total_ns(best, enough, confirming) <= left_ns:
            return best
        rounds = enough
    elif study.race.confirm is not None and study.race.confirm.rounds is None:
        confirming = exact
    time_left_ns = left_ns * _TIME_LEFT
    return _longest(lambda ns: demand.total_ns(alike(ns), rounds, confirming), alike, time_left_ns)


def _longest(
    total_ns: Callable[[float], float],
    alike: Callable[[float], dict[str, float]],
    time_left_ns: float,
) -> dict[str, float]:
    """The longest equal lengths of which the total fits; 40 ms at least."""
    low, high = float(SHORTEST_NS), max(time_left_ns, SHORTEST_NS)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if total_ns(middle) <= time_left_ns else (low, middle)
    return alike(low)


def _left_out(demand: Demand, left_ns: float) -> list[str]:
    """Workloads, the slowest first, without which the rest fits; none where one alone does not."""
    shortest = demand.lengths(lambda _: SHORTEST_NS)
    slowest = sorted(shortest, key=lambda name: demand.execution_ns(name, shortest), reverse=True)
    rounds, confirming = _least_rounds(demand.study)
    for count in range(1, len(slowest)):
        kept = [
            workload for workload in demand.study.workloads if workload.name not in slowest[:count]
        ]
        rest = replace(demand, study=demand.study.model_copy(update={"workloads": kept}))
        if rest.total_ns(rest.lengths(lambda _: SHORTEST_NS), rounds, confirming) <= left_ns:
            return slowest[:count]
    return []


def _requests(workload: Workload, measured: WorkloadPilot, target_ns: float) -> int | None:
    if workload.fixed_requests is not None or measured.requests is None:
        return workload.fixed_requests
    if not is_adaptive(workload):
        return measured.requests
    wanted = target_ns / measured.ns_per_request
    return max(1, round(wanted / workload.rounding)) * workload.rounding


def _rounded_up(ns: float) -> str:
    """The least whole number of seconds or minutes that is enough, as a budget is written."""
    seconds = math.ceil(ns / 1e9 * 1.02)
    return f"{seconds}s" if seconds < 120 else f"{math.ceil(seconds / 60)}m"  # noqa: PLR2004


def require_any_time_left(study: Study, variants: int) -> None:
    """InputError where a study cannot fit its budget, whatever its programs take. Pure.

    `variants` do not count the baseline.
    """
    together = variants_together(variants, study.race.group_size)
    require_time_left(Demand(study, {}, variants, together), 0)
