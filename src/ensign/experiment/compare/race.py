"""Commands in rounds: until the answer is sure enough or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from ensign.experiment.groups import groups_in, race_in_groups
from ensign.experiment.loop import MemoryStore, RaceState, race_rounds, trial_seed
from ensign.meter.client import Meter
from ensign.meter.requests import RaceRequest
from ensign.model.errors import EnsignError
from ensign.model.results import Stopped
from ensign.model.trials import Trial
from ensign.stats.looks import is_look, next_look

_UNTIL_THE_BUDGET_ENDS = 1_000_000
_LAST_FEW = 4


@dataclass(frozen=True, slots=True)
class RaceLimits:
    """End of a race: at `deadline_ns` on the clock given, or at a look.

    `may_end` is asked at each look, from the `least` rounds on; it returns why the race may end, or
    None. With `look` False nothing is looked at before the end (too few rounds fit for that, or
    their number is given). There are at most the `most` rounds. `names` are what the user calls the
    variants; `round_ns` is what one round is expected to take, before the first. `together`
    variants race at a time on a workload; None: all.
    """

    deadline_ns: int
    look: bool
    may_end: Callable[[Sequence[Trial]], Stopped | None]
    names: Mapping[str, str] = field(default_factory=dict)
    round_ns: int = 0
    least: int = 0
    most: int | None = None
    together: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """The trials, and why there are no more.

    `stopped`: `FAILED` by that `error`, or because no command is left to compare with the baseline.
    """

    trials: tuple[Trial, ...]
    stopped: Stopped
    error: EnsignError | None = None


def race_commands(
    meter: Meter,
    requests: Mapping[str, RaceRequest],
    limits: RaceLimits,
    clock_ns: Callable[[], int],
    on_trial: Callable[[Sequence[Trial]], None],
) -> RaceOutcome:
    """Races the workloads in rounds that end at the looks, as long as another round fits.

    What was measured is returned also when Ctrl-C or a failure ends the race. Raises the failure
    where nothing was.
    """
    rounds, store = _CommandRounds(meter, requests, limits, clock_ns), MemoryStore()
    try:
        _, stopped = race_rounds(rounds, store, clock_ns, lambda state, _: on_trial(state.trials))
        return RaceOutcome(tuple(store.trials), stopped)
    except KeyboardInterrupt:
        return RaceOutcome(tuple(store.trials), Stopped.INTERRUPTED)
    except EnsignError as error:
        if not store.trials:
            raise
        return RaceOutcome(tuple(store.trials), Stopped.FAILED, error)


@dataclass(frozen=True, slots=True)
class _CommandRounds:
    """One execution of each workload; of one alone, batches of them.

    The meter ends a batch where an execution as long as its longest would not fit, which may have
    been an odd one: then there is another batch, until not even one like the last few fits.
    """

    meter: Meter
    requests: Mapping[str, RaceRequest]
    limits: RaceLimits
    clock_ns: Callable[[], int]

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(self.requests)

    @property
    def seed(self) -> int:
        return next(iter(self.requests.values())).seed

    def nobody_left(self, gone: Collection[str]) -> bool:
        variants = next(iter(self.requests.values())).variants
        return all(variant.required or variant.name in gone for variant in variants)

    def ends(self, state: RaceState) -> Stopped | None:
        limits = self.limits
        if limits.look and state.rounds >= limits.least and is_look(state.rounds):
            reason = limits.may_end(state.trials)
            if reason is not None:
                return reason
        if limits.most is not None and state.rounds >= limits.most:
            return Stopped.EXECUTIONS
        left_ns = self._left_ns(state)
        like = max(state.racing_ns[-_LAST_FEW:], default=limits.round_ns)
        # The first round always fits.
        fits = left_ns > 0 and (not state.rounds or left_ns >= like)
        return None if fits else Stopped.BUDGET

    def trials(self, workload: str, state: RaceState) -> Generator[Trial, None, None]:
        seed = trial_seed(self.seed, state.rounds, workload)
        request = replace(self.requests[workload].without(state.gone), executions=1, seed=seed)
        together = self.limits.together.get(workload)
        if len(self.requests) == 1 and groups_in(request, together) == 1:
            left_ns = self._left_ns(state)
            request = replace(request, executions=self._wanted(state.rounds), budget_ns=left_ns)
        names, first = self.limits.names, state.rounds
        raced = race_in_groups(
            self.meter, request, together, workload=workload, first_round=first, names=names
        )
        with closing(raced) as trials:
            for trial in trials:
                yield trial
                if self.nobody_left(state.gone):
                    return

    def after(self, state: RaceState) -> None:
        """Nothing is planned anew."""

    def _left_ns(self, state: RaceState) -> int:
        return self.limits.deadline_ns - self.clock_ns() - state.starting_ns

    def _wanted(self, rounds: int) -> int:
        """Number of rounds to the next look, or to the end."""
        wanted = _UNTIL_THE_BUDGET_ENDS
        if self.limits.look:
            wanted = next_look(rounds) - rounds
        if self.limits.most is not None:
            wanted = min(wanted, self.limits.most - rounds)
        return wanted
