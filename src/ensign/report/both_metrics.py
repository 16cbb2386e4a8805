"""What is said where CPU time and wall time disagree: both, and why."""

from __future__ import annotations

from ensign.model.comparisons import Comparison, Direction, OtherMetric, TimeShares
from ensign.report.words import METRICS, interval_cell, span_of, speedup_cell

_BUSY_LOAD, _IDLE_SERVER = 0.9, 0.9
_TAKEN, _WAITING, _SEVERAL, _KERNEL = 0.1, 0.1, 1.2, 0.4


def both_said(comparison: Comparison) -> str:
    """What follows the sentence of the chosen cost, from a comma on; empty where both agree."""
    beside = comparison.beside
    if beside is None or not beside.disagrees or comparison.withheld:
        return ""
    other = beside.other
    metric = METRICS[other.metric]
    if other.direction is Direction.UNCLEAR:
        said = f"no difference is shown ({interval_cell(other)})"
    else:
        said = f"it is {speedup_cell(other)} ({interval_cell(other)})"
    return f", but by {metric} {said}: {_why(beside)}"


def other_cell(comparison: Comparison) -> str:
    """The interval of speedups by the other cost; empty where there is none."""
    if comparison.beside is None:
        return ""
    if comparison.withheld or not span_of(comparison.beside.other).is_finite:
        return interval_cell(comparison)
    return interval_cell(comparison.beside.other)


def _why(beside: OtherMetric) -> str:
    """The measured reason, with its figures."""
    if beside.baseline is None or beside.variant is None:
        return "where the time went was not measured"
    return _reason((beside.baseline, beside.variant))


def _reason(pair: tuple[TimeShares, TimeShares]) -> str:
    cpus = [each.cpu for each in pair]
    load = min(each.load for each in pair)
    taken = [each.taken or 0.0 for each in pair]
    waiting = [each.waiting for each in pair]
    system = [each.system for each in pair]
    reasons = (
        (
            load >= _BUSY_LOAD and max(cpus) < _IDLE_SERVER,
            f"the load generator set the pace ({_percent(load)} busy, the servers {_both(cpus)})",
        ),
        (max(taken) >= _TAKEN, f"others had the CPU in {_both(taken)} of the wall time"),
        (
            max(cpus) >= _SEVERAL,
            f"it keeps several CPUs busy ({cpus[0]:.1f} and {cpus[1]:.1f}), whose times add up",
        ),
        (
            max(waiting) >= _WAITING,
            f"{_both(waiting)} of the wall time passed waiting{_kernel(system)}",
        ),
        (max(system) >= _KERNEL, f"{_both(system)} of the CPU time is the kernel's"),
    )
    return next(
        (text for holds, text in reasons if holds),
        f"the reason is unknown; {_both(cpus)} of the wall time passed on a CPU",
    )


def _kernel(system: list[float]) -> str:
    if max(system) < _KERNEL:
        return ""
    return f", and {_both(system)} of the CPU time is the kernel's"


def _both(shares: list[float]) -> str:
    first, second = map(_percent, shares)
    return first if first == second else f"{first.removesuffix(' %')} and {second}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
