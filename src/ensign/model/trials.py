"""Records of a race: one trial is one execution of one race with all its variants."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from ensign.model.findings import Finding
from ensign.model.validation import Count, Finite

# Where programs are looked at: more looks in the same time, at no less precision.
SAMPLED_SLICE = "1ms"
SHORTEST_SLICE_NS, LONGEST_SLICE_NS = 100_000, 60 * 10**9


class Mode(StrEnum):
    """Ways in which variants take turns: slices of programs or of ensign's load, or executions."""

    INTERLEAVED = "interleaved"
    DRIVEN = "driven"
    ALTERNATING = "alternating"


class Metric(StrEnum):
    """The cost that is compared.

    CPU time of the variant (of the server, for servers), wall time, or what the program says of
    itself.
    """

    CPU = "cpu"
    WALL = "wall"
    SCORE = "score"

    @property
    def other(self) -> Metric:
        """The cost that stands beside it: wall time beside CPU time, CPU time beside all else."""
        return Metric.WALL if self is Metric.CPU else Metric.CPU


class Better(StrEnum):
    """Direction in which scores get better."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class Score:
    """Score that a program prints of its own speed: the last match of the pattern's first group."""

    pattern: str
    unit: str = ""
    better: Better = Better.HIGHER

    @property
    def has_names(self) -> bool:
        """True if the pattern has a group `name`, too: each name that it matches is a score."""
        return "name" in re.compile(self.pattern).groupindex


@dataclass(frozen=True, slots=True)
class NamedScore:
    """One of several scores of an execution: each is a test of its own.

    `failed` says why there is no `value` (None).
    """

    name: str
    value: Annotated[Finite, Field(gt=0)] | None
    unit: str = ""
    better: Better = Better.HIGHER
    failed: str = ""


class WaitsFor(StrEnum):
    """What a system call waits for, by its number and the file that it is about."""

    DISK = "disk"
    TIMER = "timer"
    SOCKET = "socket"
    PIPE = "pipe"
    TERMINAL = "terminal"
    LOCK = "lock"
    CHILD = "child"
    EVENTS = "events"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WaitCall:
    """A system call in which a task sleeps; `call` is empty where it is not known by name."""

    what: WaitsFor
    call: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """A time (ns) in which the tasks of a program slept in these calls and no others."""

    ns: Count
    calls: tuple[WaitCall, ...]


@dataclass(frozen=True, slots=True)
class TaskActivity:
    """States of a program's tasks while it ran, by looks at them; times in ns.

    A task that has no CPU because others have it could run all the same, so load on the machine
    changes this little. `idle_ns`: no task could run; `several_ns`: two or more could;
    `runnable_ns`: summed over the tasks; `storage_ns`: idle with a task in uninterruptible sleep.
    `busiest_cpu_ns` is the CPU time of the task that used most. `waits` are what the tasks slept
    in while none could run; `reads` and `writes` are calls, `processes` different ones, as far as
    they were seen; `children_cpu_ns` is the CPU time of those that ended before it. A link between
    two ends carried `link_bytes` in its busier direction, in `link_ns` of the time.
    """

    looks: Count = 0
    observed_ns: Count = 0
    idle_ns: Count = 0
    several_ns: Count = 0
    runnable_ns: Count = 0
    storage_ns: Count = 0
    most_tasks: Count = 0
    busiest_cpu_ns: Count = 0
    waits: tuple[Wait, ...] = ()
    processes: Count = 0
    children_cpu_ns: Count = 0
    reads: Count = 0
    read_bytes: Count = 0
    writes: Count = 0
    written_bytes: Count = 0
    link_bytes: Count = 0
    link_ns: Count = 0

    @property
    def idle_share(self) -> float:
        """Share of the time in which no task could run."""
        return self.idle_ns / self.observed_ns if self.observed_ns else 0.0

    @property
    def runnable(self) -> float:
        """Mean number of tasks that could run, over the time in which one could; 1 or more."""
        busy_ns = self.observed_ns - self.idle_ns
        return self.runnable_ns / busy_ns if busy_ns else 1.0


BASELINE = "baseline"
TWIN = "twin"


_GROUP = " (group "


def name_in_group(variant: str, number: int) -> str:
    """Name of the baseline or the twin in a group of that number; the first is 1."""
    return variant if number == 1 else f"{variant}{_GROUP}{number})"


def name_without_group(name: str) -> str:
    """Name of the variant that has that name in a group."""
    return name.partition(_GROUP)[0]


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of one variant's operations in one execution, in ns but for their `count`."""

    p50: Count
    p95: Count
    p99: Count
    p999: Count
    max: Count
    mean: Count
    count: Count


@dataclass(frozen=True, slots=True)
class RaceMapping:
    """A file seen mapped for execution in a race; `device`, `inode` as `/proc/PID/maps` has them.

    Where it was `deleted`, or seen from an `other_root` directory, the path does not lead to it.
    `last_look` is the last look at the execution at which it was seen, counted from 1.
    """

    path: str
    device: str
    inode: int
    deleted: bool = False
    other_root: bool = False
    last_look: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SampledFile:
    """Places in a file where tasks stood, each with how often.

    Where it was `deleted`, or seen from an `other_root` directory, the path does not lead to it.
    """

    path: str
    places: tuple[tuple[Count, Count], ...]
    deleted: bool = False
    other_root: bool = False


@dataclass(frozen=True, slots=True)
class CodeSamples:
    """Places of tasks at the ends of slices, as counts.

    `elsewhere` is in code of no file, `in_calls` in system calls, where a task may have slept;
    of `unknown` the kernel does not tell.
    """

    files: tuple[SampledFile, ...] = ()
    elsewhere: Count = 0
    in_calls: Count = 0
    unknown: Count = 0


@dataclass(frozen=True, slots=True)
class VariantTotals:
    """Resources that one variant used in one execution, over the whole process tree.

    `wall_ns` is the time in which the variant was running, `cpu_ns` = `user_ns` + `system_ns` that
    of the program (of the server, for servers, from the load generator's start to its end);
    `load_cpu_ns` that of the load generator. `operations` is 1 for a batch program and the number
    of completed requests for a server. `counters` maps event names to counts, where there are any;
    `latency` is there where a drive was asked to keep it. `exit` (or `signal`) is how the program
    or the load generator ended, which is other than 0 only where failures are ignored.
    `cpu_wait_ns` is the time in which others had the CPU that it wanted, where the machine tells;
    `activity` (and that of the load) is there where it was observed, `score` where it says one.
    `scores` are several of them, by name; `unit` is that of the one `score`. `mapped` is what was
    seen in a few looks; it is not stored. `code_samples` are there where they were asked for.
    `page_faults` are minor and major ones.
    """

    variant: str
    wall_ns: Count
    cpu_ns: Count
    user_ns: Count
    system_ns: Count
    load_cpu_ns: Count
    operations: Annotated[Count, Field(ge=1)]
    peak_memory_bytes: Count
    voluntary_switches: Count
    involuntary_switches: Count
    slices: Count
    counters: tuple[tuple[str, int], ...] = ()
    latency: Latency | None = None
    exit: int = 0
    signal: int = 0
    cpu_wait_ns: Count | None = None
    activity: TaskActivity | None = None
    load_activity: TaskActivity | None = None
    scores: tuple[NamedScore, ...] = ()
    unit: str = ""
    score: Annotated[Finite, Field(ge=0)] | None = None
    better: Better = Better.HIGHER
    mapped: tuple[RaceMapping, ...] = ()
    code_samples: CodeSamples | None = None
    page_faults: Count = 0

    def cost(self, metric: Metric) -> float:
        """Nanoseconds per completed operation.

        Where it says a score, that is the cost whatever the metric (its inverse where higher is
        better): it mostly runs for a fixed time, and then its times say nothing.
        """
        if self.score:
            return self.score if self.better is Better.LOWER else 1 / self.score
        if metric is Metric.SCORE:
            return 0.0
        spent = self.cpu_ns if metric is Metric.CPU else self.wall_ns
        return spent / self.operations


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """One slice: `start_ns` counts from the first slice of the execution."""

    variant: str
    start_ns: Count
    wall_ns: Count
    cpu_ns: Count
    load_cpu_ns: Count
    filler: bool
    cpu_wait_ns: Count | None = None


@dataclass(frozen=True, slots=True)
class VariantFailure:
    """Failure of a variant: a stable `code` (`crashed`, `deadline`, `failed` …), a text for people.

    `exit` and `signal` are those of the process that failed, where it was one. `workload` and
    `round` say in which execution; `round` is None where that was before the measured ones.
    """

    variant: str
    code: str
    text: str
    exit: int | None = None
    signal: int | None = None
    workload: str = ""
    round_index: int | None = None

    @property
    def where(self) -> str:
        """In which execution, in words; rounds are counted from 1."""
        if self.round_index is None:
            when = "before the race"
        else:
            when = f"in {'round' if self.workload else 'execution'} {self.round_index + 1}"
        return f"on workload {self.workload}, {when}" if self.workload else when


def failed_variants(trials: Iterable[Trial]) -> frozenset[str]:
    """The variants that failed in any of these trials: nothing is claimed of them."""
    return frozenset(failure.variant for trial in trials for failure in trial.failures)


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of one race, all variants. `workload` and `round` say where it belongs.

    `failures` has what ended variants in it: those have no totals here, nor in later trials.

    `running_share` is the share of the time between the first and the last slice in which a variant
    was running; `wall_ns` the time from the first spawn to the last exit; `started_unix_s` when.
    `steal_ns` is what the hypervisor gave to other machines meanwhile, over all CPUs. `groups`
    names the variants that were raced together where not all were: each group begins with its own
    execution of the baseline. The baseline itself leads the first.
    """

    workload: str
    round_index: Count
    seed: int
    mode: Mode
    freezer: str
    slice_ns: Count
    started_unix_s: Finite
    wall_ns: Count
    running_share: Finite
    variants: tuple[VariantTotals, ...]
    slices: tuple[SliceRecord, ...]
    findings: tuple[Finding, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    steal_ns: Count = 0
    failures: tuple[VariantFailure, ...] = ()

    def baselines_of(self, variant: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Both copies of the variant's own baseline and of the first group's, where these are two.

        A twin that took no part is not among them.
        """
        number = next((n for n, group in enumerate(self.groups, start=1) if variant in group), 1)
        if number == 1:
            return None
        own, first = self.groups[number - 1], self.groups[0]
        twin = name_in_group(TWIN, number)
        return (
            (own[0], *(name for name in own if name == twin)),
            (first[0], *(name for name in first if name == TWIN)),
        )

    def without(self, variants: Collection[str]) -> Trial:
        """The same trial, as if these variants had taken no part."""
        if not variants:
            return self
        return replace(
            self,
            variants=tuple(totals for totals in self.variants if totals.variant not in variants),
            slices=tuple(record for record in self.slices if record.variant not in variants),
            findings=tuple(finding for finding in self.findings if finding.subject not in variants),
            groups=tuple(
                tuple(name for name in group if name not in variants) for group in self.groups
            ),
        )

    def variant(self, name: str) -> VariantTotals:
        """The totals of the variant of that name; KeyError if it did not take part."""
        for totals in self.variants:
            if totals.variant == name:
                return totals
        raise KeyError(name)


def seen_in_race(trials: Iterable[Trial], variant: str) -> tuple[RaceMapping, ...]:
    """Files of a variant seen in the race, each once."""
    totals = (
        total
        for trial in trials
        for total in trial.variants
        if name_without_group(total.variant) == variant
    )
    return tuple(dict.fromkeys(file for total in totals for file in total.mapped))


_TIMES = frozenset(
    {"ps", "ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "second", "seconds"}
    | {"nsec", "usec", "msec", "nanoseconds", "microseconds", "milliseconds"}
    | {"min", "minute", "minutes", "h", "hour", "hours"}
)
_RATE = re.compile(r".+(/|\bper )\s*(s|sec|second|min|minute|h|hour)")
_RATES = re.compile(r"[kmgtp]?(bps|flops|fps|iops|ips|ops|qps|rps|tps)")
_COSTS = frozenset({"cycles", "instructions"})


def better_by(unit: str) -> Better | None:
    """Lower of a time (`ms`, `ns/iter`), higher of a rate (`MB/s`); None where it says neither."""
    name = unit.strip()
    if _RATE.fullmatch(name.lower()) or _RATES.fullmatch(name.lower()):
        return Better.HIGHER
    first = re.split(r"[/ ]", name, maxsplit=1)[0]
    if first in _TIMES or first.lower() in _COSTS:
        return Better.LOWER
    return None


def contradiction(unit: str, better: Better) -> str:
    """Contradiction between a score and its unit; empty where there is none."""
    by_unit = better_by(unit)
    if by_unit in (None, better):
        return ""
    what = "a time" if by_unit is Better.LOWER else "a rate"
    return f"'{unit}' is {what}, of which the {by_unit.value} number is the better one"
