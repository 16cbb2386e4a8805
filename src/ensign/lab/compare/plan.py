"""From pilots to the plan of a race: mode, metric, budget, rule. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ensign.lab.compare.options import DEFAULT_BUDGET_NS, DEFAULT_PRECISION, Options
from ensign.lab.compare.pilot import PilotRun
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.trials import Metric, Mode
from ensign.model.units import format_duration
from ensign.stats.pair import FEWEST_FOR_LOOKS, PairRule, rule_for

_FEWEST = 2
_OVERHEAD = 1.05
_RUNS_OF_BASELINE = 5
# What cannot fit is refused within so long, or within a fifth of the budget.
_PATIENCE_NS = 10 * 10**9


@dataclass(frozen=True, slots=True)
class RacePlan:
    """How the race is run. `pinned` is False where the arms need more than one CPU.

    `execution_ns` is what one execution of all arms (the twin's too) is expected to take;
    `expected_ns` the running time per arm.
    """

    mode: Mode
    metric: Metric
    pinned: bool
    expected_ns: Mapping[str, int]
    execution_ns: int
    findings: tuple[Finding, ...]


def plan_race(
    options: Options, runs: Mapping[str, PilotRun], findings: tuple[Finding, ...]
) -> RacePlan:
    """The plan after one unmeasured run per arm; the user's own choices go first."""
    pilots = tuple(runs.values())
    parallel = any(run.parallel for run in pilots)
    waiting = parallel or any(run.sleeps for run in pilots)
    mode = options.mode or (Mode.WHOLE if waiting else Mode.GATED)
    metric = options.metric or (Metric.WALL if waiting else Metric.CPU)
    expected_ns = {arm: max(run.wall_ns, 1) for arm, run in runs.items()}
    once_ns = sum(expected_ns.values()) + pilots[0].wall_ns
    preparing_ns = sum(run.prepare_ns for run in pilots) + pilots[0].prepare_ns
    if options.mode is Mode.GATED and waiting:
        text = (
            "gated by request, though it waits or runs in parallel: waiting goes on while stopped"
        )
        findings = (*findings, Finding("gated-by-request", Severity.WARNING, text))
    return RacePlan(
        mode=mode,
        metric=metric,
        pinned=not parallel or mode is Mode.GATED,
        expected_ns=expected_ns,
        execution_ns=round(once_ns * _OVERHEAD) + preparing_ns,
        findings=findings,
    )


def budget_ns(options: Options, execution_ns: int, spent_ns: int) -> int:
    """The user's budget, or 30 s, or what eight executions need. InputError if too small."""
    if options.budget_ns is None:
        return max(DEFAULT_BUDGET_NS, spent_ns + (FEWEST_FOR_LOOKS + 1) * execution_ns)
    if options.budget_ns < spent_ns + _FEWEST * execution_ns:
        raise InputError(
            f"--budget {format_duration(options.budget_ns)} is too small: looking at the commands "
            f"took {format_duration(spent_ns)}, and one execution of all arms takes about "
            f"{format_duration(execution_ns)}; {_nearest(spent_ns, execution_ns)}"
        )
    return options.budget_ns


def longest_pilot_ns(options: Options) -> int | None:
    """When the first run of a command shows that it does not fit; None where nothing bounds it.

    The baseline runs five times at least: once alone, and twice, with its twin, in two executions.
    """
    if options.budget_ns is None or options.deadline_ns is not None or options.ignore_failure:
        return None
    return max(_PATIENCE_NS, options.budget_ns // _RUNS_OF_BASELINE)


def cut_short(options: Options, name: str, commands: int, after_ns: int) -> InputError:
    """What is said of a command whose first run shows that it does not fit."""
    runs = commands + _FEWEST * (commands + 1)
    return InputError(
        f"--budget {format_duration(options.budget_ns or 0)} is too small: '{name}' alone takes "
        f"more than {format_duration(after_ns)}, and {runs} runs are needed at least; pass "
        f"--budget of {runs} times what it takes, more than {_ceil_seconds(runs * after_ns)}s "
        "(or --deadline, if it hangs)"
    )


def require_budget(options: Options, runs: Mapping[str, PilotRun], commands: int) -> None:
    """InputError as soon as the commands run so far cannot fit, before the others are tried.

    Those that did not run yet are taken to be like the mean of those that did.
    """
    if options.budget_ns is None or not runs:
        return
    each = [run.wall_ns + run.prepare_ns for run in runs.values()]
    first, rest = each[0], sum(each[1:])
    # Twice with its twin, and what looked at them.
    least_ns = sum(each) + _FEWEST * (2 * first + rest)
    if least_ns <= options.budget_ns:
        return
    execution_ns = round(sum(each) / len(each) * (commands - len(each)) + sum(each) + first)
    looking_ns = round(sum(each) / len(each) * commands)
    raise InputError(
        f"--budget {format_duration(options.budget_ns)} is too small: one run takes "
        f"{format_duration(max(each))}, so one execution of all arms takes about "
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


def pair_rule(options: Options, executions: int) -> PairRule:
    """How pairs are judged when so many executions fit into the budget."""
    precision = options.precision
    if precision is None and options.budget_ns is None and options.margin is None:
        precision = DEFAULT_PRECISION
    return PairRule(
        level=options.level,
        margin=options.margin,
        precision=precision,
        rule=rule_for(executions),
    )


def differing_outputs(runs: Sequence[PilotRun]) -> list[str]:
    """The commands whose unmeasured run printed other bytes than the baseline's."""
    return [run.name for run in runs[1:] if run.output_sha256 != runs[0].output_sha256]


def output_findings(runs: Sequence[PilotRun], again: PilotRun | None = None) -> tuple[Finding, ...]:
    """`outputs-differ`, where one unmeasured run of each printed different bytes.

    `outputs-not-compared` where another run of the baseline, `again`, does not even print its own.
    """
    others = differing_outputs(runs)
    if not others:
        return ()
    if again is not None and again.output_sha256 != runs[0].output_sha256:
        text = (
            f"outputs are not compared: that of {runs[0].name} differs from run to run, so whether "
            "the commands do the same work is not shown"
        )
        return (Finding("outputs-not-compared", Severity.NOTE, text),)
    text = (
        f"outputs differ: {', '.join(others)} printed something else than {runs[0].name} "
        "(one unmeasured run each); do they do the same work?"
    )
    return (Finding("outputs-differ", Severity.WARNING, text),)


def failure_findings(error: Exception | None) -> tuple[Finding, ...]:
    """`failed`, where something failed after some executions."""
    if error is None:
        return ()
    text = f"the race ended early: {str(error).splitlines()[0]}"
    return (Finding("failed", Severity.ERROR, text),)


def _ceil_seconds(ns: int) -> int:
    return -(-ns // 10**9)
