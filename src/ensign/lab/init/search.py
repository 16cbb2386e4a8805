"""Which attempt becomes the workload: long enough, and at work in what was built. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from ensign.lab.init.attempts import Attempt
from ensign.lab.init.exploration import TriedCommand

# Enough of 50 ms on a processor that is twice as fast, or a build that is.
WANTED_NS = 120_000_000
LEAST_NS = 50_000_000
LONGEST_NS = 2_500_000_000
LEAST_SHARE = 0.5
_LARGEST_BYTES = 64 << 20
_ENOUGH = 0.7
_GROWTHS = 4
_GROWN = 1.3

Try = Callable[[Attempt], TriedCommand]


def chosen(
    attempts: Iterable[Attempt],
    tried: Try,
    has_time: Callable[[], bool],
) -> tuple[TriedCommand | None, int]:
    """The first attempt that will do, else the best of those that ran; how many were tried.

    Attempts that read a sample get more of it until they take long enough.
    """
    best: TriedCommand | None = None
    count = 0
    for attempt in attempts:
        for trial in _grown(attempt, tried):
            count += 1
            if trial.ok and (best is None or _worth(trial) > _worth(best)):
                best = trial
        if (best is not None and will_do(best)) or not has_time():
            break
    return best, count


def will_do(trial: TriedCommand) -> bool:
    """Whether builds can be told apart by it within seconds."""
    long_enough = trial.user_ns >= _ENOUGH * WANTED_NS and trial.wall_ns <= LONGEST_NS
    return trial.ok and long_enough and trial.share_built >= LEAST_SHARE


def _worth(trial: TriedCommand) -> tuple[bool, bool, float]:
    """First that it is at work in what was built, then that it is long enough, but not too long."""
    share = trial.share_built >= LEAST_SHARE
    short_enough = trial.wall_ns <= LONGEST_NS
    return share, short_enough, min(trial.user_ns, WANTED_NS) * trial.share_built


def _grown(attempt: Attempt, tried: Callable[[Attempt], TriedCommand]) -> Iterator[TriedCommand]:
    trial = tried(attempt)
    yield trial
    for _ in range(_GROWTHS):
        sample = trial.attempt.sample
        if not trial.ok or sample is None or trial.user_ns >= _ENOUGH * WANTED_NS:
            return
        factor = min(64, max(2, math.ceil(WANTED_NS / max(trial.user_ns, 1_000_000))))
        larger = trial.attempt.times(factor)
        if larger is None or sample.total_bytes * factor > _LARGEST_BYTES:
            return
        before_ns = trial.user_ns
        trial = tried(larger)
        yield trial
        if trial.user_ns < before_ns * _GROWN:
            return  # it reads no more than the first copy
