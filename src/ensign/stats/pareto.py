"""What is not beaten: the Pareto front of several costs. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(costs: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Places of the points that no other point beats: as good in all costs and better in one.

    Lower is better. Points that are equal in all costs do not beat each other.
    """
    return tuple(
        place
        for place, point in enumerate(costs)
        if not any(_beats(other, point) for other in costs)
    )


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
