"""The one loop that races: rounds of every workload, each in an order of its own.

Commands and studies race by it alike. What differs is behind two ports: `Rounds` says what an
execution is and when to end, `TrialStore` keeps the trials, in memory or in a folder.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from ensign.experiment.judge import suite_rule
from ensign.model.comparisons import Comparison
from ensign.model.experiment import Experiment
from ensign.model.results import Stopped
from ensign.model.trials import TWIN, Trial, failed_variants
from ensign.stats.named_scores import judged_tests
from ensign.stats.pair import PairRule, Rule
from ensign.stats.rounds import RoundCosts, round_costs
from ensign.stats.stopping import race_may_stop
from ensign.stats.suite import compare_suite, round_geomeans

# Slices are kept in memory and in the export up to here (some 50 MB); totals always.
_MOST_SLICES = 200_000

Workload = TypeVar("Workload")


def order_of(workloads: Iterable[Workload], seed: int, round_index: int) -> list[Workload]:
    """The workloads of a round in its own random order, the same on every resumption."""
    shuffled = list(workloads)
    random.Random(f"{seed} {round_index}").shuffle(shuffled)  # noqa: S311  # not for secrets
    return shuffled


def trial_seed(race_seed: int, round_index: int, workload: str) -> int:
    """The seed of one trial, from which the meter draws the order of its variants.

    A variant's place in the order moves its cost: of seven equal variants the first one took 0.24 ±
    0.05 % more than their mean (docs/background/calibration.md). With one order for all workloads
    of a round that would not average out over the workloads: the round's geometric mean would have
    all of it.
    """
    trial = random.Random(f"{race_seed} {round_index} {workload}")  # noqa: S311  # not for secrets
    return trial.getrandbits(32)


@dataclass(slots=True)
class RaceState:
    """Progress of a race: `rounds` whole ones, all trials in order, and who failed.

    `used_ns` is the time of the whole rounds, `racing_ns` that of the trials in each of them, and
    `starting_ns` what the last one took besides.
    """

    used_ns: int = 0
    rounds: int = 0
    trials: list[Trial] = field(default_factory=list)
    gone: frozenset[str] = frozenset()
    racing_ns: list[int] = field(default_factory=list)
    starting_ns: int = 0

    def add(self, trial: Trial) -> None:
        """One more trial; what failed in it is out."""
        self.trials.append(trial)
        self.gone |= failed_variants([trial])


class Rounds(Protocol):
    """A race in rounds, and its end."""

    @property
    def workloads(self) -> Sequence[str]:
        """The workloads of each round."""

    @property
    def seed(self) -> int:
        """The seed of the whole race."""

    def nobody_left(self, gone: Collection[str]) -> bool:
        """True if nothing is left to compare with the baseline without those."""

    def ends(self, state: RaceState) -> Stopped | None:
        """Why no further round is begun, or None."""

    def trials(self, workload: str, state: RaceState) -> Generator[Trial, None, None]:
        """The next execution of that workload; of one alone also those of the rounds after it."""

    def after(self, state: RaceState) -> None:
        """Takes note of a whole round."""


class TrialStore(Protocol):
    """Storage of trials as they end, so that a race goes on where it was cut off."""

    def stored(self) -> Sequence[Trial]:
        """The trials that are there."""

    def add(self, trial: Trial) -> Trial:
        """Keeps the trial; what remains of it in memory."""


@dataclass(slots=True)
class MemoryStore:
    """Trials of one call, the later ones of a long race without their slices."""

    trials: list[Trial] = field(default_factory=list)
    slices: int = 0

    def stored(self) -> Sequence[Trial]:
        """The trials that are there."""
        return self.trials

    def add(self, trial: Trial) -> Trial:
        """Keeps the trial."""
        self.slices += len(trial.slices)
        kept = trial if self.slices <= _MOST_SLICES else replace(trial, slices=())
        self.trials.append(kept)
        return kept


def race_rounds(
    rounds: Rounds,
    store: TrialStore,
    clock_ns: Callable[[], int],
    on_trial: Callable[[RaceState, Trial], None],
    used_ns: int = 0,
) -> tuple[RaceState, Stopped]:
    """Races whole rounds until there is a reason to end; what is stored already is not raced again.

    What fails in one trial takes no part in later ones. What was stored took `used_ns`. Errors and
    KeyboardInterrupt pass; the finished trials are stored.
    """
    there = {(trial.round_index, trial.workload): trial for trial in store.stored()}
    state = RaceState(used_ns, gone=failed_variants(there.values()))
    while True:
        order = order_of(rounds.workloads, rounds.seed, state.rounds)
        waiting = [name for name in order if (state.rounds, name) not in there]
        if len(waiting) == len(order) and (reason := rounds.ends(state)) is not None:
            return state, reason
        before, begun_ns = len(state.trials), clock_ns()
        state.trials += [there[state.rounds, name] for name in order if name not in waiting]
        for name in waiting:
            if rounds.nobody_left(state.gone):
                return state, Stopped.FAILED
            with closing(rounds.trials(name, state)) as trials:
                for trial in trials:
                    state.add(store.add(trial))
                    on_trial(state, trial)
        raced = state.trials[before:]
        if not raced and order:
            return state, Stopped.BUDGET
        _count(state, raced, alone=len(order) == 1, took_ns=clock_ns() - begun_ns)
        if rounds.nobody_left(state.gone):
            return state, Stopped.FAILED
        rounds.after(state)


def _count(state: RaceState, raced: Sequence[Trial], *, alone: bool, took_ns: int) -> None:
    """One more whole round, or of a workload alone as many as it has trials."""
    racing_ns = [trial.wall_ns for trial in raced]
    state.racing_ns += racing_ns if alone else [sum(racing_ns)]
    state.rounds += len(raced) if alone else 1
    state.used_ns += took_ns
    state.starting_ns = max(0, took_ns - sum(racing_ns))


@dataclass(frozen=True, slots=True)
class SoFar:
    """Variants that are compared (the baseline first), by which rule; `names` are for people."""

    experiment: Experiment
    variants: tuple[str, ...]
    has_twin: bool = True
    names: Mapping[str, str] = field(default_factory=dict)

    def without(self, variants: Collection[str]) -> SoFar:
        """The same, of those that are left."""
        return replace(self, variants=tuple(e for e in self.variants if e not in variants))

    @property
    def rule(self) -> PairRule:
        """Rule for each variant's geometric mean."""
        return suite_rule(self.experiment).pair_rule

    @property
    def looks(self) -> bool:
        """True if the race may end before its time."""
        return self.rule.rule is Rule.SEQUENTIAL

    def comparisons(self, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
        """Every variant against the baseline, over all workloads, by the metric alone."""
        left = self.without(failed_variants(trials))
        costs, rule = left.costs(trials), suite_rule(self.experiment)
        rows = (
            compare_suite(costs, variant, left.variants[0], rule) for variant in left.variants[1:]
        )
        return tuple(
            replace(compared.comparison, variant=self._name(compared.comparison.variant))
            for compared in rows
        )

    def may_end(self, trials: Sequence[Trial]) -> Stopped | None:
        """Why the race may end at this look, or None."""
        left = self.without(failed_variants(trials))
        costs = left.costs(trials)
        pairs = (costs.log_ratios(variant, left.variants[0]) for variant in left.variants[1:])
        return race_may_stop((round_geomeans(pair).tolist() for pair in pairs), self.rule)

    def costs(self, trials: Sequence[Trial]) -> RoundCosts:
        """Costs of whole rounds, without variants that failed."""
        variants = (*self.variants, TWIN) if self.has_twin else self.variants
        gone = failed_variants(trials)
        tests = judged_tests(self.experiment.workloads, (trial.without(gone) for trial in trials))
        return round_costs(tests.trials, variants, tests.names, self.experiment.metric)

    def _name(self, variant: str) -> str:
        return self.names.get(variant, variant)
