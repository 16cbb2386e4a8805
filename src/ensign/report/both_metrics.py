"""The other cost beside the chosen one: what both say where they disagree, and why."""

from __future__ import annotations

from ensign.model.comparisons import Comparison, Direction, OtherMetric, Size, TimeShares
from ensign.report.words import METRICS, claim, interval_cell, span_of

_BUSY_LOAD, _IDLE_SERVER = 0.9, 0.9
_SEVERAL, _KERNEL = 1.2, 0.4


def both_said(comparison: Comparison, *, apart: bool = False) -> str:
    """Rest of the sentence of the chosen cost, from a comma on; empty where both agree.

    `apart`: as a sentence of its own, without its full stop.
    """
    beside = _disagreeing(comparison)
    if beside is None:
        return ""
    other = beside.other
    conjunction, subject = "but", comparison.direction is Direction.UNCLEAR
    if other.direction is Direction.UNCLEAR:
        unshown = "about equal" if other.size is Size.WITHIN else "unclear"
        text, subject = f"{'is ' if apart else ''}{unshown} by {METRICS[other.metric]}", False
    elif comparison.direction is other.direction:
        only = other.says_much_less(comparison)
        conjunction, text = "but" if only else "and", claim(other, only=only)
    else:
        text = claim(other)
    if apart:
        return f"{conjunction.capitalize()} it {text}"
    return f", {conjunction} {'it ' if subject else ''}{text}"


def why_they_disagree(comparison: Comparison) -> str:
    """A sentence with the measured reason; empty where both lead to one conclusion."""
    beside = _disagreeing(comparison)
    if beside is None or beside.baseline is None or beside.variant is None:
        return ""
    other = beside.other
    much = comparison.says_much_less(other) or other.says_much_less(comparison)
    if comparison.direction is other.direction and not much:
        return ""
    return f"CPU time and wall time differ: {_reason((beside.baseline, beside.variant))}."


def other_cell(comparison: Comparison) -> str:
    """The interval of speedups by the other cost; empty where there is none."""
    if comparison.beside is None:
        return ""
    if comparison.withheld or not span_of(comparison.beside.other).is_finite:
        return interval_cell(comparison)
    return interval_cell(comparison.beside.other)


def _disagreeing(comparison: Comparison) -> OtherMetric | None:
    beside = comparison.beside
    return None if beside is None or not beside.disagrees or comparison.withheld else beside


def _reason(pair: tuple[TimeShares, TimeShares]) -> str:
    """Changes along with the share of the wall time that passed on a CPU."""
    cpus = [shares.cpu for shares in pair]
    load = min(shares.load for shares in pair)
    taken = [shares.taken or 0.0 for shares in pair]
    waiting = [shares.waiting for shares in pair]
    if load >= _BUSY_LOAD and max(cpus) < _IDLE_SERVER:
        busy = f"({_percent(load)} busy, the servers {_both(cpus)})"
        return f"the load generator set the pace {busy}"
    if max(cpus) >= _SEVERAL:
        return f"{cpus[0]:.1f} and {cpus[1]:.1f} CPUs were busy on average"
    if abs(taken[1] - taken[0]) > abs(waiting[1] - waiting[0]):
        return f"other processes used the CPU for {_both(taken)} of the wall time"
    return f"{_both(waiting)} of the wall time passed waiting{_kernel(pair)}"


def _kernel(pair: tuple[TimeShares, TimeShares]) -> str:
    system = [shares.system for shares in pair]
    if max(system) < _KERNEL:
        return ""
    return f", and {_both(system)} of the CPU time is the kernel's"


def _both(shares: list[float]) -> str:
    first, second = map(_percent, shares)
    return first if first == second else f"{first.removesuffix(' %')} and {second}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
