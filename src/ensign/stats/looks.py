"""Rounds at which a race may be looked at, and how far an interval must reach there.

The interval after n executions is mean ± c_n · s/√n. c_n is the anytime-valid t mixture of
Wang and Ramdas (arXiv 2310.03722, the Gaussian mixture with g = 1; κ = 1 + n):

    A = (κ · b²)^(1/n),    c_n = √[(n - 1) · κ · (A - 1) / (κ - A)],    infinite when A >= κ.

b = 1/alpha is their theorem for deciding after every single execution. Deciding only at the looks
below allows the smaller b of `mixture_bound`, calibrated by simulating normal races with looks
up to a million executions (bench/statistics_constants.py re-derives them).
"""

from __future__ import annotations

import math
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING

from ensign.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_LOOKS = (5, 10)
LEVELS = (0.9, 0.95, 0.975, 0.99)

_BOUNDS = MappingProxyType(
    {
        (0.9, 5): 4.6,
        (0.95, 5): 9.0,
        (0.975, 5): 16.1,
        (0.99, 5): 35.2,
        (0.9, 10): 3.3,
        (0.95, 10): 6.6,
        (0.975, 10): 13.3,
        (0.99, 10): 32.7,
    }
)


def looks(first: int = 5) -> Iterator[int]:
    """5, 7, 10, 14, 20, 28, 40, 56, … without end: each is twice the one before the last.

    With `first` 10 the same row starts at 10. InputError for any other first look.
    """
    if first not in FIRST_LOOKS:
        raise InputError(f"the first look can be after 5 or 10 executions, not after {first}")
    now, after = (5, 7) if first == FIRST_LOOKS[0] else (10, 14)
    while True:
        yield now
        now, after = after, 2 * now


def next_look(executions: int, first: int = 5) -> int:
    """First look after more than `executions` executions."""
    return next(look for look in looks(first) if look > executions)


def is_look(executions: int, first: int = 5) -> bool:
    """True if the race may be looked at after this many executions."""
    return executions >= first and next_look(executions - 1, first) == executions


def looks_up_to(executions: int, first: int = 5) -> tuple[int, ...]:
    """All looks of a race of so many executions."""
    return tuple(takewhile(lambda look: look <= executions, looks(first)))


def mixture_bound(level: float, first: int = 5) -> float:
    """B of a confidence level for looks from `first` on. InputError if there is none."""
    for (known_level, known_first), bound in _BOUNDS.items():
        if known_first == first and math.isclose(known_level, level, abs_tol=1e-9):
            return bound
    offered = ", ".join(f"{known:g}" for known in LEVELS)
    raise InputError(
        f"no sequential interval of level {level:g} with the first look after {first} executions; "
        f"levels are {offered}, first looks 5 and 10"
    )


def critical_value(executions: int, bound: float) -> float:
    """c_n for n `executions` and b `bound`; infinite where n is too small for an interval."""
    if executions < 2:  # noqa: PLR2004 - one execution has no spread
        return math.inf
    kappa = 1.0 + executions
    # A - 1 by expm1: at a million executions A is 1 to within a few parts in 10⁵.
    above_one = math.expm1(math.log(kappa * bound * bound) / executions)
    if above_one >= executions:
        return math.inf
    return math.sqrt((executions - 1) * kappa * above_one / (executions - above_one))


def anytime_p(t: float, executions: int) -> float:
    """The p-value that goes with c_n by the theorem (b = 1/p): valid whenever one looks.

    `t` is the mean over its standard error. c_n = |t| solved for b, and 1 where that is below 1.
    """
    if executions < 2 or math.isnan(t):  # noqa: PLR2004 - one execution has no spread
        return 1.0
    kappa, free = 1.0 + executions, executions - 1
    if math.isinf(t):
        return math.exp(-(executions - 1) * math.log(kappa) / 2)
    a = kappa * (t * t + free) / (free * kappa + t * t)
    log_b = (executions * math.log(a) - math.log(kappa)) / 2
    return min(1.0, math.exp(-log_b))
