"""Findings on how far the numbers can be trusted."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

NO_TWIN = FindingKind(
    "no-twin",
    Severity.NOTE,
    "No A/A twin was raced, so nothing shows what this measurement can be trusted with.",
    "Leave out `--no-twin`: the twin also takes a quarter off the variance.",
)
TWIN_DIFFERS = FindingKind(
    "twin-differs",
    Severity.WARNING,
    "The A/A twin, an identical copy of the baseline, seems faster or slower than the baseline. "
    "Chance does this in fewer than one race in twenty.",
    "Look for what disturbs the setup, and race again.",
)
TWIN_EXITS = FindingKind(
    "twin-exits",
    Severity.WARNING,
    "The A/A twin differs from the baseline on more workloads than chance explains: intervals of "
    "this study are too narrow.",
    "Look for what disturbs the setup, and measure again.",
)
TWIN_GEOMEAN = FindingKind(
    "twin-geomean",
    Severity.WARNING,
    "The A/A twin differs from the baseline over all workloads.",
    "Do not trust differences of that size, and measure again.",
)
LAYOUT_SENSITIVE = FindingKind(
    "layout-sensitive",
    Severity.WARNING,
    "Relinks of one build differ by more than the margin, and slow ones spend more of their time "
    "in the functions that are named. Another harmless commit, which moves code as a relink does, "
    "may change the speed as much.",
    "Try other alignments (the axis `alignment`), or `-falign-loops` and `-falign-functions` for "
    "the file of that function.",
)
PLACES_UNKNOWN = FindingKind(
    "places-unknown",
    Severity.NOTE,
    "The kernel does not tell where stopped programs stand, so functions that are sensitive to "
    "layout are unknown.",
    "Nothing, or let ensign trace its own processes (`kernel.yama.ptrace_scope` below 3).",
)
TWIN_CHANGED = FindingKind(
    "twin-changed",
    Severity.WARNING,
    "The A/A twin changed against the baseline between two studies.",
    "Do not trust changes of that size.",
)
NO_SPREAD = FindingKind(
    "no-spread",
    Severity.WARNING,
    "All executions gave the same ratio: the clock is too coarse for the program, or its cost is "
    "not measured. The interval has no width because there is no spread.",
    "Take an input with which the program runs longer.",
)
CORRELATED_EXECUTIONS = FindingKind(
    "correlated-executions",
    Severity.WARNING,
    "Executions or rounds resemble the one before: something changes slowly, and there is less "
    "evidence than their number suggests. Intervals are widened where the rule allows it.",
    "Look for what changes slowly (temperature, other programs, a growing file), and race again.",
)
FEW_EXECUTIONS_DECIDE = FindingKind(
    "few-executions-decide",
    Severity.WARNING,
    "Interval and signed-rank test disagree: a few executions decide the answer.",
    "Race longer.",
)
INCOMPLETE_ROUNDS = FindingKind(
    "incomplete-rounds",
    Severity.NOTE,
    "Rounds that lack a workload or a variant are left out of the geometric mean.",
    "Nothing, or run the study again to complete them.",
)
NOISIEST_WORKLOAD = FindingKind(
    "noisiest-workload",
    Severity.WARNING,
    "One workload has more than half of the variance of the geometric means.",
    "Give it more work per execution, or ask whether it belongs in the study.",
)
SLICE_LENGTH = FindingKind(
    "slice-length",
    Severity.NOTE,
    "How cost ratios change when slices are longer.",
    "Use longer slices where a change matters. Each one begins with cold caches.",
    "no change is sure",
)
SLICE_LENGTH_MATTERS = SLICE_LENGTH.as_severity(
    Severity.WARNING, "an interval excludes “no change”"
)
CPU_TAKEN = FindingKind(
    "cpu-taken",
    Severity.WARNING,
    "Other processes used the CPU for more than 5 % of the time in which the variants could run. "
    "Wall times contain that, CPU times do not.",
    "Stop the other programs, or compare CPU time.",
)
TIMER_GRID = FindingKind(
    "timer-grid",
    Severity.WARNING,
    "Running times jump by equal steps: the load generator ends on a timer, and wall times mean "
    "little.",
    "Compare CPU time, or use another load generator.",
)
TICK_COUNTED = FindingKind(
    "tick-counted",
    Severity.WARNING,
    "All CPU times are multiples of the kernel's tick, so they are counted, not measured.",
    "Let the program run much longer than a tick, or measure where control groups can be used.",
)
STALE_READING = FindingKind(
    "stale-reading",
    Severity.WARNING,
    "The same CPU time was read again and again, to the last digit: a reading that stands still.",
    "Do not trust this workload's numbers; report it with the bundle of the study.",
)
LAYOUTS_SPREAD = FindingKind(
    "layouts-spread",
    Severity.WARNING,
    "Relinks of one variant differ by more than the margin: where code lies decides more than what "
    "was to be found. Intervals contain that, and are wide for it.",
    "Add the lines that the text names: they build the same variants with functions and loops "
    "aligned (`alignment`), whose speed depends less on where they lie.",
    "executions of the same relink differ less",
)
LAYOUTS_SPREAD_PERHAPS = LAYOUTS_SPREAD.as_severity(
    Severity.NOTE, "each relink ran about once, so that noise may be the reason"
)
