"""Choice of the attempt that becomes the workload: long enough, and at work in the build. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ensign.tools.init.attempts import Attempt

# Enough of 50 ms on a processor that is twice as fast, or a build that is.
WANTED_NS = 120_000_000
LEAST_NS = 50_000_000
LONGEST_NS = 1_000_000_000
LEAST_SHARE = 0.5
# Below it a build that is twice as fast is one percent faster at all that is measured.
LEAST_OF_ANY_USE = 0.02
LARGEST_BYTES = 64 << 20
_TELLING_BYTES = 256 << 10
_ENOUGH = 0.7
_GROWTHS = 4
_GROWN = 1.3
# Some work grows faster than what there is to do it on, so that the way back is the root.
_GROWS_MORE = 3
# So much time has some ten looks.
_TELLING_NS = 10_000_000
# What takes less is the start of a process and no more.
_LEAST_TO_REPEAT_NS = 300_000
_MOST_REPEATED = 6
_MOST_REPEATS = 500
_MOST_SEEN_AGAIN = 3
# Five rounds of four variants and the baseline's twin, pilots, and as much again.
_EXECUTIONS = 50
_LEAST_BUDGET_S = 20
_MOST_BUDGET_S = 120
# What takes tens of seconds needs minutes, and is taken where there is nothing else.
TRIAL_NS = 5 * 10**9
LONG_TRIAL_NS = 30 * 10**9
_LONG_BUDGET_S = 900
_MOST_LONG = 2
_BUSY = 4


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """One execution of an attempt.

    `share_built` is the part of its user time that was in code that was built, `share_of_cpu` of
    all its CPU time, the kernel's included; `elsewhere` is the file outside that had most of it;
    `how` is its end, `said` the first line that it said of it, as it came;
    `changed_input` and `wrote_beside` (into its folder, which is the source) tell that it failed
    for no other reason than that, `met_deadline` that it was still running when its time was up,
    `crowded` how many tasks there were for each CPU meanwhile.
    """

    attempt: Attempt
    ok: bool
    user_ns: int
    share_built: float
    share_of_cpu: float
    wall_ns: int
    how: str
    said: str = ""
    changed_input: bool = False
    wrote_beside: bool = False
    crowded: float = 1.0
    met_deadline: bool = False
    elsewhere: str = ""

    @property
    def alone_ns(self) -> float:
        """About the wall time that it would take on an idle machine."""
        return self.wall_ns / max(1.0, self.crowded)


Try = Callable[[Attempt], TriedCommand]


@dataclass(frozen=True, slots=True)
class Searched:
    """Outcome of a search: the best, if anything ran, all that ran, and the others."""

    best: TriedCommand | None
    ran: tuple[TriedCommand, ...] = ()
    failures: tuple[TriedCommand, ...] = ()


def chosen(attempts: Iterable[Attempt], tried: Try, has_time: Callable[[], bool]) -> Searched:
    """The first attempt that will do, also a second time, else the best of those that ran.

    What is told of it was seen the second time: a share of few looks, which was the first to be
    large enough of many, is too large.

    Attempts that read a sample get more of it until they take long enough; what changes its sample
    gets a copy. Where none will do, those that take most time are run several times in a row.
    """
    ran: list[TriedCommand] = []
    failed: set[Attempt] = set()
    failures: list[TriedCommand] = []
    for attempt in attempts:
        if not has_time():
            break
        for trial in _grown(attempt, tried):
            if trial.ok:
                ran.append(trial)
            else:
                failures.append(trial)
        last = ran[-1] if ran else None
        if last is not None and last.attempt not in failed and will_do(last):
            again = tried(last.attempt)
            if will_do(again):
                return Searched(again, tuple(ran), tuple(failures))
            failed.add(last.attempt)
            if again.ok:
                ran[-1] = again
            else:
                ran = [
                    tried_command
                    for tried_command in ran
                    if tried_command.attempt.words != last.attempt.words
                ]
    repeated = [] if _any_will_do(ran) else list(_repeated(ran, tried))
    ran += [trial for trial in repeated if trial.ok]
    return Searched(_seen_again(ran, tried), tuple(ran), tuple(failures))


def will_do(trial: TriedCommand) -> bool:
    """True if builds can be told apart by it within seconds."""
    long_enough = trial.user_ns >= _ENOUGH * WANTED_NS and trial.alone_ns <= LONGEST_NS
    return trial.ok and long_enough and trial.share_built >= LEAST_SHARE


def budget_s(trial: TriedCommand) -> int:
    """Racing time in which a few rounds of all variants fit surely, in seconds.

    More where the machine is busy now, but not as much as it may come to take.
    """
    each_ns = min(trial.wall_ns, _BUSY * trial.alone_ns)
    needed_s = math.ceil(_EXECUTIONS * each_ns / 10**9)
    most_s = _MOST_BUDGET_S if each_ns <= TRIAL_NS else _LONG_BUDGET_S
    return min(most_s, max(_LEAST_BUDGET_S, math.ceil(needed_s / 10) * 10))


def better(one: TriedCommand | None, other: TriedCommand | None) -> TriedCommand | None:
    """The one that tells builds apart more surely."""
    return max((tried for tried in (one, other) if tried is not None), key=_worth, default=None)


def too_long(failures: Iterable[TriedCommand]) -> tuple[Attempt, ...]:
    """Those that ran until their time was up, the plainest first; where, nobody has seen."""
    attempts = dict.fromkeys(failure.attempt for failure in failures if failure.met_deadline)
    return tuple(sorted(attempts, key=lambda attempt: len(attempt.words))[:_MOST_LONG])


def _seen_again(ran: Sequence[TriedCommand], tried: Try) -> TriedCommand | None:
    """The best, as it is the next time: of many it was also the luckiest."""
    for best in sorted(ran, key=_worth, reverse=True)[:_MOST_SEEN_AGAIN]:
        again = tried(best.attempt)
        if again.ok:
            return again
    return None


def _any_will_do(trials: Iterable[TriedCommand]) -> bool:
    return any(map(will_do, trials))


def _repeated(ran: Iterable[TriedCommand], tried: Try) -> Iterator[TriedCommand]:
    """The same several times in a row, most promising first, until one will do."""

    def promise(trial: TriedCommand) -> float:
        return trial.user_ns * trial.share_built

    order = sorted(ran, key=promise, reverse=True)
    for tried_command in order[:_MOST_REPEATED]:
        if not _LEAST_TO_REPEAT_NS <= tried_command.user_ns < _ENOUGH * WANTED_NS:
            continue
        most = LONGEST_NS / 2 / max(1.0, tried_command.alone_ns)
        repeat = min(_MOST_REPEATS, int(most), math.ceil(WANTED_NS / tried_command.user_ns))
        if repeat > 1:
            trial = tried(replace(tried_command.attempt, repeat=repeat))
            yield trial
            if will_do(trial):
                return


def _worth(trial: TriedCommand) -> tuple[bool, bool, float]:
    """That it will do, that it is not too long, then how long it is at work in what was built.

    Of what is short a few looks are all there are, so that its share counts for less.
    """
    short_enough = trial.alone_ns <= LONGEST_NS
    sure = trial.user_ns / (trial.user_ns + _TELLING_NS)
    return will_do(trial), short_enough, min(trial.user_ns, WANTED_NS) * trial.share_built * sure


def _grown(attempt: Attempt, tried: Try) -> Iterator[TriedCommand]:
    trial = tried(attempt)
    yield trial
    if trial.changed_input and attempt.takes_files:
        trial = tried(attempt.on_a_copy())
        yield trial
    if trial.wrote_beside and attempt.sample is None:
        trial = tried(replace(attempt, in_tmp=True))
        yield trial
    before: TriedCommand | None = None
    for _ in range(_GROWTHS):
        if not trial.ok or _is_enough(trial, before):
            return
        factor = min(64, max(2, math.ceil(WANTED_NS / max(trial.user_ns, 1_000_000))))
        larger = trial.attempt.times(factor)
        if larger is None or larger.total_bytes > LARGEST_BYTES:
            return
        before = trial
        trial = tried(larger)
        yield trial
        while trial.alone_ns > LONGEST_NS and factor > _GROWS_MORE:
            factor = math.isqrt(factor)
            between = before.attempt.times(factor)
            assert between is not None  # noqa: S101  # there was more of it
            trial = tried(between)
            yield trial
        # What reads little spends its time on its start, so that nothing follows from that.
        if trial.user_ns < before.user_ns * _GROWN and larger.total_bytes >= _TELLING_BYTES:
            return  # it reads no more than the first copy


def _is_enough(trial: TriedCommand, before: TriedCommand | None) -> bool:
    """True if it takes long enough, and more of it would not be more at work in what was built."""
    if trial.user_ns < _ENOUGH * WANTED_NS:
        return False
    grows = before is not None and trial.share_built > before.share_built
    return trial.share_built >= LEAST_SHARE or not grows or 2 * trial.alone_ns > LONGEST_NS
