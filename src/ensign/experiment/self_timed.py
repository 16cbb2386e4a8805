"""Programs and loads that run for a fixed time: what they cost says nothing of their speed. Pure.

Interleaved with others, such a program gets a part of the time between its start and its end, so
it uses less CPU time than alone, though nothing about its work has changed. Whatever does a fixed
amount of work uses as much as alone, on a busy machine too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ensign.experiment.pilots import CommandPilot
from ensign.model.finding_kinds.race import CLOCK_UNKNOWN, SELF_TIMED, SELF_TIMED_COUNTED
from ensign.model.findings import Finding
from ensign.model.traced_execution import TracedExecution
from ensign.model.trials import Mode, Trial, VariantTotals

# Of the least that any run alone used: two commands and the twin leave a third or so.
_MARKEDLY_LESS = 0.7
# Of an execution alone, so that each is stopped for a half of it at a time.
_SLICES_OF_A_RUN = 4
# What is over while it stands is seen to be when it goes on.
_WITH_ITS_LAST_STOP = 1.7
_SOME_WAITING = 0.2
# Alone and interleaved it takes the same time from start to end, though not to run. On a busy
# machine it ends late; then it must have used less, too.
_SAME_SPAN = 0.1
_SPAN_WITH_LESS = 0.25
_LESS = 0.9
# Three share the time, so work that is a third less takes twice as long between start and end.
_LATE = 1.6
# Of less than this a start-up or a clock tick is a part.
NOTEWORTHY_NS = 8_000_000
# A CPU clock that runs four times as fast leaves a quarter, or (where a program doubles its work
# until it has seen enough) a half at most.
CLOCK_RATE = 4
_MARKEDLY_FASTER = 0.6
# Where it looks back there are two.
_FEWEST_READS = 2
# Following costs time of its own, which must not stand for what the faster clock left out.
_ABOUT_AS_MUCH = 0.8
_READ_NS = 50_000
# Executions of a race that say it: so many alike, or so many by their medians.
TO_BE_SURE = 2
FOR_A_MEDIAN = 10

REMEDY = (
    "What it costs says nothing of its speed. Say what it achieves: --score PATTERN --better "
    "higher|lower (a number that it prints), or --operations PATTERN"
)
_REMEDY_OF_STUDY = (
    "what it costs says nothing of its speed; give the workload `score = { pattern, unit, better }`"
    " (a number that it prints), or `operations`"
)


@dataclass(frozen=True, slots=True)
class SelfTimed:
    """A command that runs for a fixed time, and how that showed."""

    name: str
    how: str

    def finding(self, *, counted: bool) -> Finding:
        """Finding about it; it is no error where its operations are counted."""
        text = f"runs for a fixed time: {self.how}"
        if counted:
            text += "; its cost per operation is compared, by turns"
            return SELF_TIMED_COUNTED.found(text, self.name)
        return SELF_TIMED.found(f"{text}. {REMEDY}", self.name)


def clock_slice_ns(usual_ns: int, pilots: Sequence[CommandPilot]) -> int:
    """Length of slices that shows the clock: long where somebody waits.

    Waiting goes on while a program is stopped. In short slices it would lose no time by that, and
    one that runs for a fixed time would do as much as alone.
    """
    idle = max(pilot.behavior.idle_share for pilot in pilots)
    if idle < _SOME_WAITING:
        return usual_ns
    return max(usual_ns, min(pilot.wall_ns for pilot in pilots) // _SLICES_OF_A_RUN)


def by_the_wall_clock(pilots: Mapping[str, CommandPilot], sliced: Trial) -> tuple[SelfTimed, ...]:
    """Variants that used markedly less CPU time where all variants took turns."""
    self_timed: list[SelfTimed] = []
    for totals in sliced.variants:
        pilot = pilots.get(totals.variant)
        if pilot is None or pilot.least_cpu_ns < NOTEWORTHY_NS:
            continue
        share = (totals.cpu_ns + totals.load_cpu_ns) / pilot.least_cpu_ns
        less = share < _MARKEDLY_LESS and not _took_longer(pilot, sliced, totals)
        allowed = _SPAN_WITH_LESS if share < _LESS else _SAME_SPAN
        if less or _same_span(pilot, sliced, totals, allowed):
            self_timed.append(_by_turns(pilot.name, share))
        elif totals.load_cpu_ns and _ended_meanwhile(pilot, sliced, totals):
            ran = 100 * totals.wall_ns / pilot.wall_ns
            how = (
                f"taking turns with others it ran for {ran:.0f} % of the time that it took alone, "
                "and ended as if it had never been stopped"
            )
            self_timed.append(SelfTimed(pilot.name, how))
    return tuple(self_timed)


def by_another(
    found: Sequence[SelfTimed],
    pilots: Mapping[str, CommandPilot],
    sliced: Trial,
    alone_again: Callable[[], Mapping[str, CommandPilot]],
) -> tuple[SelfTimed, ...]:
    """Those of whom another execution says it, too, beside the runs before and others after it."""
    found = by_both(found, by_the_wall_clock(pilots, sliced))
    return by_both(found, by_the_wall_clock(alone_again(), sliced)) if found else ()


def by_the_first(
    pilots: Mapping[str, CommandPilot], trials: Sequence[Trial]
) -> tuple[SelfTimed, ...]:
    """Those of whom the first two executions of a race say it."""
    return by_both(*(by_the_wall_clock(pilots, trial) for trial in trials[:TO_BE_SURE]))


def by_both(first: Sequence[SelfTimed], second: Sequence[SelfTimed]) -> tuple[SelfTimed, ...]:
    """Those of whom two executions say it: one may have been disturbed."""
    again = {timed.name for timed in second}
    return tuple(timed for timed in first if timed.name in again)


def by_median(pilots: Mapping[str, CommandPilot], race: Sequence[Trial]) -> tuple[SelfTimed, ...]:
    """Variants that used markedly less in slices than alone, and no more time from start to end.

    Both by the medians: on a busy machine single executions, alone or in the race, say little.
    That time must be the same alone and in the race again and again, as only a clock's is: who got
    faster since the pilots looks like that, too. Whole executions tell nothing.
    """
    self_timed: list[SelfTimed] = []
    race = [trial for trial in race if trial.mode is Mode.INTERLEAVED]
    for variant, pilot in pilots.items():
        own = [(trial, one) for trial in race for one in trial.variants if one.variant == variant]
        alone_ns = median(run.cpu_ns + run.load_cpu_ns for run in pilot.runs)
        unclear = pilot.behavior.waits or alone_ns < NOTEWORTHY_NS
        if unclear or len(pilot.runs) == 1 or not own:
            continue
        share = median(one.cpu_ns + one.load_cpu_ns for _, one in own) / alone_ns
        spans_ns = sorted(_span_ns(trial, variant) for trial, _ in own)
        middle_half = spans_ns[len(own) // 4 : len(own) - len(own) // 4]
        steady = _are_alike(middle_half, _SPAN_WITH_LESS)
        as_alone = _is_that_alone(pilot, median(spans_ns), _SPAN_WITH_LESS)
        if share < _MARKEDLY_LESS and steady and as_alone:
            self_timed.append(_by_turns(pilot.name, share))
    return tuple(self_timed)


def _are_alike(times_ns: Sequence[int], allowed: float) -> bool:
    return max(times_ns) < (1 + allowed) * min(times_ns)


def _is_that_alone(pilot: CommandPilot, span_ns: float, allowed: float) -> bool:
    """True if it is the time from start to end that each run alone took, or so much beside it."""
    steady = _are_alike([run.wall_ns for run in pilot.runs], allowed)
    return steady and abs(span_ns / max(pilot.wall_ns, 1) - 1) < allowed


def _by_turns(name: str, share: float) -> SelfTimed:
    how = (
        f"taking turns with others it used {share * 100:.0f} % of the CPU time that it used "
        "alone, in the same time from start to end"
    )
    return SelfTimed(name, how)


def _took_longer(pilot: CommandPilot, sliced: Trial, totals: VariantTotals) -> bool:
    """True if it ended so late that its work decided on it: a processor may only have warmed up.

    Who waits goes on waiting while it stands, so its span says nothing.
    """
    if pilot.behavior.waits or totals.load_cpu_ns:
        return False
    return _span_ns(sliced, totals.variant) > _LATE * pilot.wall_ns


def _same_span(pilot: CommandPilot, sliced: Trial, totals: VariantTotals, allowed: float) -> bool:
    """True if it ended at the usual time, or so much beside it, though it ran for a part of it.

    Where the machine got busier meanwhile its CPU time alone would not tell. One that mostly waits
    always ends so: its timers go on.
    """
    if pilot.behavior.waits or len(pilot.runs) == 1:
        return False
    earliest_ns, span_ns = _spans_ns(sliced, totals.variant)
    stood = totals.wall_ns < _MARKEDLY_LESS * span_ns
    closest_ns = min(max(pilot.wall_ns, earliest_ns), span_ns)
    return stood and _is_that_alone(pilot, closest_ns, allowed)


def by_the_cpu_clock(
    name: str,
    hurried: TracedExecution,
    usually: Callable[[], TracedExecution],
    alone_ns: int | None = None,
) -> SelfTimed | None:
    """True if it used markedly less when its CPU clock ran four times as fast, as in `hurried`.

    An execution that is followed likewise, with the clock as it is, is asked for only where it may
    end so: it looked at its CPU time or set a timer by it, and did not use about as much as it does
    when it is not followed (`alone_ns`, where that is known). A limit of CPU time that was reached
    needs no other.
    """
    if not hurried.followed:
        return None
    if hurried.cpu_limits_reached:
        return SelfTimed(name, "it ran until its limit of CPU time")
    if not _may_end_by_it(hurried, alone_ns):
        return None
    usual = usually()
    known = usual.followed and usual.cpu_ns >= NOTEWORTHY_NS
    if not known or not 0 < hurried.cpu_ns < _MARKEDLY_FASTER * usual.cpu_ns:
        return None
    how = (
        f"with its CPU clock running {CLOCK_RATE} times as fast it used "
        f"{100 * hurried.cpu_ns / usual.cpu_ns:.0f} % of the CPU time"
    )
    return SelfTimed(name, how)


def _ended_meanwhile(pilot: CommandPilot, sliced: Trial, totals: VariantTotals) -> bool:
    """True if a load on a server that mostly waits ended by the time that passed while it stood.

    Its CPU time is little, and starting it is a part of that.
    """
    if not pilot.behavior.waits or totals.wall_ns >= _MARKEDLY_LESS * pilot.wall_ns:
        return False
    return _span_ns(sliced, totals.variant) < _WITH_ITS_LAST_STOP * pilot.wall_ns


def _span_ns(sliced: Trial, variant: str) -> int:
    return _spans_ns(sliced, variant)[1]


def _spans_ns(sliced: Trial, variant: str) -> tuple[int, int]:
    """Time from its start to its earliest end, and to its latest; 0 where it had no slice.

    Where its last slice is next to nothing, it may have ended with the slice before.
    """
    own = [record for record in sliced.slices if record.variant == variant and not record.filler]
    if not own:
        return 0, 0
    ends_ns = [record.start_ns + record.wall_ns - own[0].start_ns for record in own[-2:]]
    brief = own[-1].wall_ns < _SAME_SPAN * own[-2:][0].wall_ns
    return ends_ns[0] if brief else ends_ns[-1], ends_ns[-1]


def asks_for_cpu_time(seen: TracedExecution) -> bool:
    """True if a program could end by its CPU time; what was not followed is taken not to."""
    if not seen.followed:
        return False
    return seen.cpu_limits_reached > 0 or seen.cpu_timers > 0 or _reads(seen) >= _FEWEST_READS


def _reads(seen: TracedExecution) -> int:
    return max(seen.cpu_clock_reads, seen.children_clock_reads)


def _may_end_by_it(hurried: TracedExecution, alone_ns: int | None) -> bool:
    reads = _reads(hurried)
    if not asks_for_cpu_time(hurried):
        return False
    return alone_ns is None or hurried.cpu_ns - reads * _READ_NS < _ABOUT_AS_MUCH * alone_ns


def withheld_text(found: Sequence[SelfTimed]) -> str:
    """Why nothing is said of which is faster."""
    names = list(dict.fromkeys(timed.name for timed in found))
    end = "ends" if len(names) == 1 else "end"
    return f"not judged: {' and '.join(names)} {end} by the clock. {REMEDY}."


def self_timed_findings(how: Mapping[str, str], unknown: Sequence[str] = ()) -> tuple[Finding, ...]:
    """One per workload that runs for a fixed time, and per workload that was not asked. Pure."""
    findings = [
        SELF_TIMED.found(f"runs for a fixed time: {sign}; {_REMEDY_OF_STUDY}", workload)
        for workload, sign in how.items()
    ]
    text = (
        "not judged: to find out whether it runs for a fixed time would take too much of the "
        "budget; a larger budget tells, or `operations` or `score` of the workload"
    )
    findings += (CLOCK_UNKNOWN.found(text, workload) for workload in unknown)
    return tuple(findings)
