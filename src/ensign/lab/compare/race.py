"""The race itself: rounds until the answer is sure enough or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from ensign.lab.round_order import order_of, trial_seed
from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.meter.requests import RaceRequest
from ensign.model.errors import EnsignError
from ensign.model.results import Stopped
from ensign.model.trials import Trial
from ensign.stats.looks import is_look, next_look

_UNTIL_THE_BUDGET_ENDS = 1_000_000
_LAST_FEW = 4
# Slices are kept in memory and in the export up to here (some 50 MB); totals always.
_MOST_SLICES = 200_000


@dataclass(frozen=True, slots=True)
class RaceLimits:
    """When a race ends: at `deadline_ns` on the clock given, or at a look.

    `may_end` is asked at each look, from the `least` rounds on; it returns why the race may end, or
    None. With `look` False nothing is looked at before the end (too few rounds fit for that, or
    their number is given). There are at most the `most` rounds. `names` are what the user calls the
    variants; `round_ns` is what one round is expected to take, before the first.
    """

    deadline_ns: int
    look: bool
    may_end: Callable[[Sequence[Trial]], Stopped | None]
    names: Mapping[str, str] = field(default_factory=dict)
    round_ns: int = 0
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """The trials, and why there are no more.

    `stopped`: `FAILED` by that `error`, or because no command is left to compare with the baseline.
    """

    trials: tuple[Trial, ...]
    stopped: Stopped
    error: EnsignError | None = None


def run_race(
    meter: Meter,
    requests: Mapping[str, RaceRequest],
    limits: RaceLimits,
    clock_ns: Callable[[], int],
    on_trial: Callable[[Sequence[Trial]], None],
) -> RaceOutcome:
    """Races the workloads in rounds that end at the looks, as long as another round fits.

    A workload alone is raced in batches. The meter ends a batch where an execution as long as its
    longest would not fit, which may have been an odd one: then there is another batch, until not
    even one like the last few fits. Of a long race the later trials have no slices.

    What was measured is returned also when Ctrl-C or a failure ends the race. Raises the failure
    where nothing was.
    """
    state = _RaceUnderWay(meter, dict(requests), limits, clock_ns, on_trial)
    try:
        stopped = state.race()
        return RaceOutcome(tuple(state.done), stopped)
    except KeyboardInterrupt:
        return RaceOutcome(tuple(state.done), Stopped.INTERRUPTED)
    except EnsignError as error:
        if not state.done:
            raise
        return RaceOutcome(tuple(state.done), Stopped.FAILED, error)


@dataclass(slots=True)
class _RaceUnderWay:
    """A race under way: its trials in order, whole rounds but for the last one."""

    meter: Meter
    requests: dict[str, RaceRequest]
    limits: RaceLimits
    clock_ns: Callable[[], int]
    on_trial: Callable[[Sequence[Trial]], None]
    done: list[Trial] = field(default_factory=list)
    rounds: int = 0
    slices: int = 0
    starting_ns: int = 0
    last_ns: list[int] = field(default_factory=list)

    def race(self) -> Stopped:
        """Races until there is a reason to stop."""
        before = -1
        while True:
            if self.limits.most is not None and self.rounds >= self.limits.most:
                return Stopped.EXECUTIONS
            left_ns = self.limits.deadline_ns - self.clock_ns() - self.starting_ns
            if not self._fits(left_ns) or self.rounds == before:
                return Stopped.BUDGET
            before = self.rounds
            wanted = self._wanted()
            if len(self.requests) == 1:
                self._batch(wanted, left_ns)
            else:
                self._round()
            if self._nobody_left():
                return Stopped.FAILED
            reason = self._may_end()
            if reason is not None:
                return reason

    def _may_end(self) -> Stopped | None:
        if not self.limits.look or self.rounds < self.limits.least or not is_look(self.rounds):
            return None
        return self.limits.may_end(self.done)

    def _wanted(self) -> int:
        """How many rounds to the next look, or to the end."""
        wanted = _UNTIL_THE_BUDGET_ENDS
        if self.limits.look:
            wanted = next_look(self.rounds) - self.rounds
        if self.limits.most is not None:
            wanted = min(wanted, self.limits.most - self.rounds)
        return wanted

    def _fits(self, left_ns: int) -> bool:
        """Whether another round fits; the first one always does."""
        like = max(self.last_ns[-_LAST_FEW:], default=self.limits.round_ns)
        return left_ns > 0 and (not self.rounds or left_ns >= like)

    def _batch(self, executions: int, left_ns: int) -> None:
        """Executions of the one workload, until their number or the time is up."""
        ((name, request),) = self.requests.items()
        begun_ns, before = self.clock_ns(), len(self.done)
        seed = request.seed + self.rounds
        batch = replace(request, executions=executions, budget_ns=left_ns, seed=seed)
        self._trials(name, batch)
        took_ns = self.clock_ns() - begun_ns
        racing_ns = [trial.wall_ns for trial in self.done[before:]]
        self.last_ns += racing_ns
        self.rounds += len(racing_ns)
        # Starting the meter, and ending it.
        self.starting_ns = max(0, took_ns - sum(racing_ns))

    def _round(self) -> None:
        """One execution of each workload, in an order of its own."""
        begun_ns, race_seed = self.clock_ns(), next(iter(self.requests.values())).seed
        for name in order_of(self.requests, race_seed, self.rounds):
            seed = trial_seed(race_seed, self.rounds, name)
            self._trials(name, replace(self.requests[name], executions=1, seed=seed))
        self.rounds += 1
        self.last_ns.append(self.clock_ns() - begun_ns)

    def _trials(self, name: str, request: RaceRequest) -> None:
        names, first = self.limits.names, self.rounds
        raced = race(self.meter, request, workload=name, first_round=first, names=names)
        with closing(raced) as trials:
            for trial in trials:
                self.slices += len(trial.slices)
                kept = trial if self.slices <= _MOST_SLICES else replace(trial, slices=())
                self.done.append(kept)
                self.on_trial(self.done)
                gone = {each.variant for each in trial.failures}
                if gone:
                    self.requests = {key: each.without(gone) for key, each in self.requests.items()}
                    if self._nobody_left():
                        return

    def _nobody_left(self) -> bool:
        return all(each.required for each in next(iter(self.requests.values())).variants)
