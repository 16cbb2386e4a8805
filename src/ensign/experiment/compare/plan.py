"""From pilots to the plan of a race: mode, metric, budget, rule. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ensign.experiment.compare.options import DEFAULT_BUDGET_NS, DEFAULT_PRECISION, Options
from ensign.experiment.groups import (
    FEWEST_VARIANTS,
    group_count,
    groups_finding,
    memory_finding,
    variants_together,
)
from ensign.experiment.metric_and_mode import Requested, choose
from ensign.experiment.pilots import CommandPilot
from ensign.model.errors import InputError
from ensign.model.experiment import Experiment
from ensign.model.finding_kinds.race import MEMORY, MEMORY_BY_TURNS, RACED_IN_GROUPS
from ensign.model.finding_kinds.ran import OUTPUTS_DIFFER, OUTPUTS_NOT_COMPARED, RACE_ENDED_EARLY
from ensign.model.findings import Finding
from ensign.model.trials import Metric, Mode
from ensign.model.units import format_duration
from ensign.stats.pair import FEWEST_FOR_LOOKS, Rule, rule_for

_FEWEST = 2
_OVERHEAD = 1.05
_RUNS_OF_BASELINE = 5
# What cannot fit is refused within 10 s, start-up included, or within a fifth of the budget.
_PATIENCE_NS = 8 * 10**9
# A run that takes so many times as long as the longest before, and so long at all, hangs.
_HANGS_AT = 20
_NO_HANG_NS = 10 * 10**9
_SHARE_OF_MEMORY = 0.8
# What starting and ending the meter takes on a busy machine.
STARTING_NS = 100_000_000
_NOTEWORTHY_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class RacePlan:
    """The race as planned. `pinned` is False where the variants need more than one CPU.

    `execution_ns` is what one execution of all variants (the twin's too) is expected to take;
    `expected_ns` the running time per variant. `apart`: servers are there by turns, too. What runs
    for longer than `deadline_ns` hangs; None where the user said when that is. `together` variants
    race at a time, the baseline and its twin among them; None: all.
    """

    mode: Mode
    metric: Metric
    pinned: bool
    expected_ns: Mapping[str, int]
    execution_ns: int
    findings: tuple[Finding, ...]
    apart: bool = False
    deadline_ns: int | None = None
    together: int | None = None


def plan_race(
    options: Options, pilots: Mapping[str, CommandPilot], findings: tuple[Finding, ...]
) -> RacePlan:
    """The plan after unmeasured runs of each variant; the user's own choices go first."""
    does = [pilot.behavior for pilot in pilots.values()]
    chosen = choose(asked(options), does)
    expected_ns = {variant: max(pilot.wall_ns, 1) for variant, pilot in pilots.items()}
    together = variants_together(len(pilots) - 1, options.group_size or "all")
    grouped = () if together is None else (groups_finding(together),)
    return RacePlan(
        mode=_driven(options, chosen.mode),
        metric=chosen.metric,
        pinned=not chosen.parallel,
        expected_ns=expected_ns,
        execution_ns=_execution_ns(options, pilots, together),
        findings=(*findings, *chosen.findings, *grouped),
        deadline_ns=None if options.deadline_ns else _hangs_after_ns(options, pilots),
        together=together,
    )


def _execution_ns(
    options: Options, pilots: Mapping[str, CommandPilot], together: int | None
) -> int:
    """Time of one execution of all variants, the twin's too, in all groups."""
    first, *others = pilots.values()
    groups = 1 if together is None else group_count(len(others), together)
    taking_part = (*[first] * (groups * options.copies), *others)
    running_ns = sum(max(pilot.wall_ns, 1) for pilot in taking_part)
    preparing_ns = sum(pilot.prepare_ns for pilot in taking_part)
    starting_ns = groups * STARTING_NS if groups > 1 else 0
    return round(running_ns * _OVERHEAD) + preparing_ns + starting_ns


def _driven(options: Options, mode: Mode) -> Mode:
    """Slices of a drive are sent by ourselves; latency is that of whole executions."""
    if options.drive is None or mode is Mode.ALTERNATING:
        return mode
    return Mode.ALTERNATING if options.drive.latency and not options.mode else Mode.DRIVEN


def _hangs_after_ns(options: Options, pilots: Mapping[str, CommandPilot]) -> int:
    longest_ns = max(run.wall_ns for pilot in pilots.values() for run in pilot.runs)
    return min(options.run_deadline_ns, max(_NO_HANG_NS, _HANGS_AT * longest_ns))


def asked(options: Options) -> Requested:
    """Choices that the rule has to keep to."""
    return Requested(
        metric=options.metric,
        mode=options.mode,
        serves=options.serves,
        loaded=options.serves,
        scored=options.scored,
    )


def with_memory(
    options: Options, plan: RacePlan, pilots: Mapping[str, CommandPilot], free: int
) -> RacePlan:
    """The plan for so much free memory: in smaller groups, or by turns where no group fits.

    InputError where not even one of them fits.
    """
    peaks = [pilot.peak_memory_bytes for pilot in pilots.values()]
    alive_together = plan.mode is Mode.INTERLEAVED or options.serves
    together = _peak_bytes(options, pilots, plan.together) if alive_together else max(peaks)
    allowed_bytes = round(free * _SHARE_OF_MEMORY)
    if together <= allowed_bytes:
        if together < allowed_bytes * _NOTEWORTHY_SHARE:
            return plan
        text = (
            f"all commands together take about {_size(together)} of the {_size(free)} of free "
            "memory"
        )
        return replace(plan, findings=(*plan.findings, MEMORY.found(text)))
    if max(peaks) > allowed_bytes:
        raise InputError(
            f"one run takes {_size(max(peaks))} of memory, and {_size(free)} are free; "
            "compare with a smaller input, or on a larger machine"
        )
    smaller = _in_smaller_groups(options, plan, pilots, allowed_bytes)
    if smaller is not None:
        return smaller
    if options.mode is Mode.INTERLEAVED:
        raise InputError(
            f"--mode interleaved keeps all commands in memory, about {_size(together)}, and "
            f"{_size(free)} are free; leave it out, and they take turns"
        )
    text = (
        f"all commands together would take about {_size(together)} of memory, and {_size(free)} "
        "is free: they take turns, one in memory at a time"
    )
    findings = (*plan.findings, MEMORY_BY_TURNS.found(text))
    return replace(plan, mode=Mode.ALTERNATING, apart=True, findings=findings)


def _in_smaller_groups(
    options: Options, plan: RacePlan, pilots: Mapping[str, CommandPilot], allowed_bytes: int
) -> RacePlan | None:
    """The plan in the largest groups that fit into memory; None where there are no such groups."""
    all_but_one = len(pilots) if plan.together is None else plan.together - 1
    for most in range(all_but_one, FEWEST_VARIANTS - 1, -1) if options.twin else ():
        if _peak_bytes(options, pilots, most) <= allowed_bytes:
            before = (finding for finding in plan.findings if not finding.is_a(RACED_IN_GROUPS))
            took_ns = _execution_ns(options, pilots, most)
            findings = (*before, memory_finding(most))
            return replace(plan, together=most, execution_ns=took_ns, findings=findings)
    return None


def _peak_bytes(options: Options, pilots: Mapping[str, CommandPilot], together: int | None) -> int:
    """Memory of the largest group of so many variants; None: of all."""
    first, *others = (pilot.peak_memory_bytes for pilot in pilots.values())
    count = len(others) if together is None else together - options.copies
    return options.copies * first + sum(sorted(others, reverse=True)[:count])


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**29 else f"{count / 2**20:.0f} MiB"


def budget_ns(options: Options, execution_ns: int, spent_ns: int) -> int:
    """The user's budget, or 30 s, or what eight executions need. InputError if too small."""
    if options.budget_ns is None:
        fewest = options.least_runs or FEWEST_FOR_LOOKS + 1
        needed_ns = spent_ns + fewest * execution_ns
        return needed_ns if options.runs else max(DEFAULT_BUDGET_NS, needed_ns)
    if options.budget_ns < spent_ns + _FEWEST * execution_ns:
        raise _too_small(options.budget_ns, spent_ns, execution_ns, spent_ns)
    return options.budget_ns


def _too_small(budget_ns: int, spent_ns: int, execution_ns: int, looking_ns: int) -> InputError:
    return InputError(
        f"--budget {format_duration(budget_ns)} is too small: looking at the commands took "
        f"{format_duration(spent_ns)}, and one execution of all variants takes about "
        f"{format_duration(execution_ns)}; {_nearest(looking_ns, execution_ns)}"
    )


def require_rest_of_budget(options: Options, spent_ns: int, execution_ns: int) -> None:
    """InputError as soon as one execution of all variants shows that no two more fit."""
    if options.budget_ns is not None and options.budget_ns < spent_ns + _FEWEST * execution_ns:
        # Slices are to be tried before the race.
        raise _too_small(options.budget_ns, spent_ns, execution_ns, spent_ns + execution_ns)


def longest_pilot_ns(options: Options) -> int | None:
    """Time of a first run that shows that it does not fit; None where nothing bounds it.

    The baseline runs five times at least: once alone, and twice, with its twin, in two executions.
    """
    if options.budget_ns is None or options.deadline_ns is not None or options.ignore_failure:
        return None
    return max(_PATIENCE_NS, options.budget_ns // _RUNS_OF_BASELINE)


def budget_too_small(options: Options, name: str, commands: int, after_ns: int) -> InputError:
    """Error for a command whose first run shows that it does not fit."""
    runs = commands + _FEWEST * (commands + 1)
    return InputError(
        f"--budget {format_duration(options.budget_ns or 0)} is too small: '{name}' alone takes "
        f"more than {format_duration(after_ns)}, and {runs} runs are needed at least; pass "
        f"--budget of {runs} times what it takes, more than {_ceil_seconds(runs * after_ns)}s "
        "(or --deadline, if it hangs)"
    )


def require_budget(options: Options, runs: Mapping[str, CommandPilot], commands: int) -> None:
    """InputError as soon as the commands run so far cannot fit, before the others are tried.

    Those that did not run yet are taken to be like the mean of those that did.
    """
    if options.budget_ns is None or not runs:
        return
    run_ns = [run.wall_ns + run.prepare_ns for run in runs.values()]
    first, rest = run_ns[0], sum(run_ns[1:])
    # Twice with its twin, and what looked at them.
    least_ns = sum(run_ns) + _FEWEST * (options.copies * first + rest)
    if least_ns <= options.budget_ns:
        return
    execution_ns = round(sum(run_ns) / len(run_ns) * (commands - len(run_ns)) + sum(run_ns) + first)
    # Once alone, and once followed.
    looking_ns = round(2 * sum(run_ns) / len(run_ns) * commands)
    raise InputError(
        f"--budget {format_duration(options.budget_ns)} is too small: one run takes "
        f"{format_duration(max(run_ns))}, so one execution of all variants takes about "
        f"{format_duration(execution_ns)}; {_nearest(looking_ns, execution_ns)}"
    )


def _nearest(spent_ns: int, execution_ns: int) -> str:
    least, several = (
        _ceil_seconds(round((spent_ns + count * execution_ns) * _OVERHEAD))
        for count in (_FEWEST, FEWEST_FOR_LOOKS)
    )
    return (
        f"pass --budget {least}s at least ({_FEWEST} executions), or {several}s for "
        f"{FEWEST_FOR_LOOKS}"
    )


def experiment_of(
    options: Options, names: Sequence[str], planned: RacedWorkloads, rounds: int, budget_ns: int
) -> Experiment:
    """Rule for the commands of these names when so many rounds fit into the budget."""
    precision = options.precision
    open_end = options.budget_ns is None and options.runs is None
    if precision is None and open_end and options.margin is None:
        precision = DEFAULT_PRECISION
    baseline, *others = names
    return Experiment(
        name="compare",
        title=f"{', '.join(others)} against {baseline}",
        question="",
        workloads=planned.workloads,
        metric=planned.metric,
        level=options.level,
        margin=options.margin,
        precision=precision,
        sequential=options.runs is None and rule_for(rounds) is Rule.SEQUENTIAL,
        by_ranks=True,
        slice_ns=options.slice_ns,
        seed=options.seed,
        budget_ns=budget_ns,
        score_unit="" if options.score is None else options.score.unit,
        time_unit=options.time_unit,
    )


@dataclass(frozen=True, slots=True)
class RacedWorkloads:
    """Workloads that are raced, and the cost by which they are compared."""

    workloads: tuple[str, ...]
    metric: Metric


def differing_outputs(pilots: Sequence[CommandPilot]) -> list[str]:
    """The commands whose unmeasured run printed other bytes than the baseline's."""
    known = [pilot for pilot in pilots if pilot.output]
    return [pilot.name for pilot in known[1:] if pilot.output != known[0].output]


def output_findings(pilots: Sequence[CommandPilot], again: str = "") -> tuple[Finding, ...]:
    """`outputs-differ` of each whose unmeasured run printed other bytes than the baseline's.

    `outputs-not-compared` where another run of the baseline printed not even its own (`again` is
    the hash of that; "" if there was none).
    """
    runs = [pilot for pilot in pilots if pilot.output]
    others = differing_outputs(pilots)
    if not others:
        return ()
    if again and again != runs[0].output:
        text = (
            f"outputs are not compared: that of {runs[0].name} differs from run to run, so whether "
            "the commands do the same work is not shown"
        )
        return (OUTPUTS_NOT_COMPARED.found(text),)
    text = (
        f"outputs differ: printed other output than {runs[0].name} (one unmeasured run each); "
        "is it the same work?"
    )
    return tuple(OUTPUTS_DIFFER.found(text, name) for name in others)


def race_ended_early(error: Exception | None) -> tuple[Finding, ...]:
    """`failed`, where something failed after some executions."""
    if error is None:
        return ()
    text = f"the race ended early: {str(error).splitlines()[0]}"
    return (RACE_ENDED_EARLY.found(text),)


def _ceil_seconds(ns: int) -> int:
    return -(-ns // 10**9)
