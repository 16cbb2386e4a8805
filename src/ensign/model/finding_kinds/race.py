"""Findings on how the race was run, and on what stood in its way."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

SELF_TIMED = FindingKind(
    "self-timed",
    Severity.ERROR,
    "The program ends by a clock, so that what it costs says nothing of its speed.",
    "Say what it achieves: `--score` or `--operations`; in a study `score` or `operations` of the "
    "workload.",
    "nothing says what it achieves",
)
SELF_TIMED_COUNTED = SELF_TIMED.as_severity(
    Severity.NOTE, "its operations or its score are known, and these are compared"
)
CLOCK_UNKNOWN = FindingKind(
    "clock-unknown",
    Severity.ERROR,
    "Whether the workload ends by a clock is not known, so it is raced and not judged.",
    "Give the study a larger budget, or the workload `operations` or `score`.",
)
SCORE_MISSING = FindingKind(
    "score-missing",
    Severity.WARNING,
    "A benchmark failed, has no number, or is missing in an execution of some variant, so it is "
    "judged for none.",
    "Run that program by hand. If variants are to differ in what they have, leave that benchmark "
    "out.",
)
MOSTLY_WAITING = FindingKind(
    "mostly-waiting",
    Severity.WARNING,
    "The program mostly waits for something other than a CPU: the text says for what, in which "
    "system call, and how much faster code could gain at most.",
    "Do not expect much of a compiler. Mend what it waits for, or measure what it computes.",
)
LINK_SATURATED = FindingKind(
    "link-saturated",
    Severity.WARNING,
    "The link between two ends is full: it carries as much as its rate allows.",
    "Do not expect much of a compiler there. Send less, or race over a faster link.",
)
MOSTLY_SYSTEM = FindingKind(
    "mostly-system",
    Severity.NOTE,
    "Most of the program's CPU time is spent in the kernel, which its flags do not reach.",
    "Nothing. For a clearer answer take an input with which it computes more.",
)
SHORT_PROCESSES = FindingKind(
    "short-processes",
    Severity.NOTE,
    "Most of the program's CPU time is that of many processes which it starts, so short that "
    "starting them is most of what they do.",
    "Start fewer of them, or compare what they compute on a larger input.",
)
SEVERAL_CPUS = FindingKind(
    "several-cpus",
    Severity.NOTE,
    "Several tasks of the program are busy at a time, so it gets all CPUs and its executions are "
    "not cut into slices.",
    "Nothing.",
)
FEW_CPUS = FindingKind(
    "few-cpus",
    Severity.WARNING,
    "A server and its load need more CPUs than there are and take time from each other.",
    "Use a machine with more CPUs.",
)
INTERLEAVED_BY_REQUEST = FindingKind(
    "interleaved-by-request",
    Severity.WARNING,
    "The race was interleaved because it was asked for, though the program's behavior speaks "
    "against it.",
    "Leave the mode out, and the rule chooses.",
)
CPU_BY_REQUEST = FindingKind(
    "cpu-by-request",
    Severity.NOTE,
    "CPU time was compared because it was asked for, though it says little of how long this "
    "program takes.",
    "Leave the metric out, or compare wall time.",
)
MEMORY = FindingKind(
    "memory",
    Severity.NOTE,
    "All commands together take much of the free memory, or more.",
    "Stop what else uses memory, or compare with a smaller input.",
    "they fit",
)
MEMORY_BY_TURNS = MEMORY.as_severity(Severity.WARNING, "they do not fit, and run by turns")
MEMORY_SHORT = FindingKind(
    "memory-short",
    Severity.WARNING,
    "Even the fewest variants that can race together need more memory than may be taken.",
    "Use smaller data or a larger machine.",
)
RACED_IN_GROUPS = FindingKind(
    "raced-in-groups",
    Severity.NOTE,
    "Variants raced in groups, each with the baseline and its twin: by `race.group_size` (of "
    "commands: `--group-size`), or because they do not all fit into memory.",
    'Nothing. `race.group_size = "all"` races them together where they fit.',
)
CONNECTIONS_BY_TURNS = FindingKind(
    "connections-by-turns",
    Severity.NOTE,
    "A part of the connections sends in each slice, by turns, because all at once would outlast "
    "the slice.",
    'Nothing. `race.slice_connections = "all"` lets all of them send.',
)
PUBLISHED_SUITE = FindingKind(
    "published-suite",
    Severity.NOTE,
    "The workloads are from a published suite; the text says which one, and what was scaled.",
    "Nothing; say it beside the numbers.",
)
TRAINING_OVERLAPS_TESTS = FindingKind(
    "training-overlaps-tests",
    Severity.ERROR,
    "A training workload is also a test: what PGO and BOLT gain here, they gain on what they have "
    "seen.",
    "Train with other workloads than those that are measured.",
)
DEALT = FindingKind(
    "dealt-by-need",
    Severity.NOTE,
    "The time that rounds left of the budget went to the workloads whose intervals were widest: "
    "they were executed several times a round.",
    "Nothing; a larger budget would go the same way.",
)
BUDGET_ENDED = FindingKind(
    "budget-ended",
    Severity.WARNING,
    "The budget ended before all rounds were raced: they took longer than the pilots said.",
    "Expect wider intervals, or raise `race.budget`.",
)
PRECISION_OUT_OF_REACH = FindingKind(
    "precision-out-of-reach",
    Severity.WARNING,
    "The budget is used up, and the precision asked for was not reached.",
    "Raise `race.budget` to what the text says, or be content with less precision.",
)
LONGER_WOULD_TELL = FindingKind(
    "longer-would-tell",
    Severity.NOTE,
    "How large a budget would decide what this race leaves open.",
    "Race again with that `--budget`, if the difference matters.",
)
CONFIRMED_BEYOND_BUDGET = FindingKind(
    "confirmed-beyond-budget",
    Severity.NOTE,
    "The budget was used up when a confirmation was asked for, so its time came on top.",
    "Set `race.confirm` from the start, and the budget is shared out.",
)
CONFIRM_PLAN_KEPT = FindingKind(
    "confirm-plan-kept",
    Severity.WARNING,
    "The study's margin or level changed after the plan of its confirmation was fixed; the plan "
    "counts.",
    "Start another study for another margin or level.",
)
CONFIRM_RESTARTED = FindingKind(
    "confirm-restarted",
    Severity.WARNING,
    "Trials of this confirmation were raced with other programs before, and are not counted.",
    "Nothing, if that was on purpose; a confirmation repeated until it looks right proves nothing.",
)

# What the meter warns of, by its own codes; `left-running` is one more.
NOT_COPIED = FindingKind(
    "not-copied",
    Severity.WARNING,
    "A variant runs from its original files, not from a copy of its own, so that its pages in "
    "memory may be older or shared.",
    "The text says why; where the scratch folder forbids execution, set `TMPDIR` to another one.",
)
ESCAPE = FindingKind(
    "escape",
    Severity.WARNING,
    "A process left its process tree; it was found again or ended.",
    "Let the program stay in the foreground (many servers have an option for that).",
)
OVERSHOOT = FindingKind(
    "overshoot",
    Severity.WARNING,
    "Stopping a program took more than 5 ms. Its CPU time is right, its slice was longer.",
    "Stop other programs on the machine.",
)
LOAD_BOTTLENECK = FindingKind(
    "load-bottleneck",
    Severity.WARNING,
    "The server mostly waits for its load, or the load generator is busy all the time and the "
    "server is not: wall times are those of the load.",
    "Compare CPU time, and give the load more threads and CPUs, or more requests for each process "
    "and connection.",
)
FILLER_FAILED = FindingKind(
    "filler-failed",
    Severity.WARNING,
    "A program that had finished and ran on as filler failed, and is not run again.",
    "Nothing, if it cannot run twice in one place; its measured run is unaffected.",
)
METER_WARNING = FindingKind(
    "meter-warning",
    Severity.WARNING,
    "The meter gave a warning that this version of ensign does not know.",
    "Use the meter that was installed with ensign (unset `ENSIGN_METER_PROGRAM`).",
)
