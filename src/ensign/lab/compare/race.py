"""The race itself: executions until the answer is sure enough or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.meter.requests import RaceRequest
from ensign.model.errors import EnsignError
from ensign.model.results import Stopped
from ensign.model.trials import Trial
from ensign.stats.looks import next_look

_UNTIL_THE_BUDGET_ENDS = 1_000_000
_LAST_FEW = 4
# Slices are kept in memory and in the export up to here (some 50 MB); totals always.
_MOST_SLICES = 200_000


@dataclass(frozen=True, slots=True)
class RaceLimits:
    """When a race ends: at `deadline_ns` on the clock given, or at a look.

    `may_end` is asked at each look; it returns why the race may end, or None. With `look` False
    nothing is looked at before the end (too few executions fit for that). `names` are what the user
    calls the variants; `execution_ns` is what one execution is expected to take, before the first.
    """

    deadline_ns: int
    look: bool
    may_end: Callable[[Sequence[Trial]], Stopped | None]
    names: Mapping[str, str] = field(default_factory=dict)
    execution_ns: int = 0


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
    request: RaceRequest,
    limits: RaceLimits,
    clock_ns: Callable[[], int],
    on_trial: Callable[[Sequence[Trial]], None],
) -> RaceOutcome:
    """Races in batches that end at the looks, as long as another execution fits.

    The meter ends a batch where one as long as its longest would not fit, which may have been an
    odd one: then there is another batch, until not even one like the last few fits. Of a long race
    the later trials have no slices.

    What was measured is returned also when Ctrl-C or a failure ends the race. Raises the failure
    where nothing was.
    """
    done: list[Trial] = []
    starting_ns, before, slices = 0, -1, 0
    try:
        while True:
            begun_ns = clock_ns()
            batch = _batch(request, limits, done, begun_ns + starting_ns)
            if batch is None or len(done) == before:
                return RaceOutcome(tuple(done), Stopped.BUDGET)
            before = len(done)
            with closing(race(meter, batch, first_round=before, names=limits.names)) as trials:
                for trial in trials:
                    slices += len(trial.slices)
                    done.append(trial if slices <= _MOST_SLICES else replace(trial, slices=()))
                    on_trial(done)
                    request = request.without({each.variant for each in trial.failures})
                    if all(variant.required for variant in request.variants):
                        return RaceOutcome(tuple(done), Stopped.FAILED)
            starting_ns = _starting_ns(done[before:], clock_ns() - begun_ns)
            if len(done) < before + batch.executions:
                continue
            reason = limits.may_end(done) if limits.look else None
            if reason is not None:
                return RaceOutcome(tuple(done), reason)
    except KeyboardInterrupt:
        return RaceOutcome(tuple(done), Stopped.INTERRUPTED)
    except EnsignError as error:
        if not done:
            raise
        return RaceOutcome(tuple(done), Stopped.FAILED, error)


def _starting_ns(trials: Sequence[Trial], took_ns: int) -> int:
    """What a batch takes beside its executions: starting the meter, and ending it."""
    return max(0, took_ns - sum(trial.wall_ns for trial in trials))


def _batch(
    request: RaceRequest, limits: RaceLimits, done: Sequence[Trial], now_ns: int
) -> RaceRequest | None:
    """What to race next; None where another execution does not fit. The first one always does."""
    left_ns = limits.deadline_ns - now_ns
    like = max((trial.wall_ns for trial in done[-_LAST_FEW:]), default=limits.execution_ns)
    if left_ns <= 0 or (done and left_ns < like):
        return None
    wanted = next_look(len(done)) - len(done) if limits.look else _UNTIL_THE_BUDGET_ENDS
    seed = request.seed + len(done)
    return replace(request, executions=wanted, budget_ns=left_ns, seed=seed)
