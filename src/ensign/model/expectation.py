"""Forecast of a study, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

# Earlier ones of the same study; others of their kind in it; nothing; or what the study allows.
Basis = Literal["measured", "alike", "unknown", "budget"]


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one kind: how many pieces wait (None: as many as fit), how many are there already.

    `wall_s` is what those that wait take on all cores, `disk_bytes` what stays of them on disk,
    each None where no earlier work says; `basis` says what both rest on.
    """

    name: str
    waiting: int | None
    there: int
    wall_s: float | None
    disk_bytes: int | None
    basis: Basis


Number = TypeVar("Number", int, float)


def known_sum(parts: Iterable[Number | None]) -> Number | None:
    """The sum; None where a part is unknown."""
    known = list(parts)
    total: Number | None = None
    return total if None in known else sum(value for value in known if value is not None)


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant: flags at compilation and at the link, and what its build will take (0: cached)."""

    name: str
    compiler: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    is_baseline: bool
    build_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Expectation:
    """Content of `ensign plan`. `work` is in its order: builds, relinks, checks, racing.

    `confirming` is how many finalists at most, and how many rounds of these, follow the `rounds`;
    None rounds are as many as the budget holds. `untried` are variants that nothing is known of,
    each with the reason: their compilers are the study's own, and planning runs nothing of it.
    `missing` says what must be installed before. `modes` says of each workload how its variants
    take turns, `inputs` which of its files are made or fetched first, `confinement` what confines
    builds and races here, or why nothing does. `curves` are the workloads of each parameter.
    """

    name: str
    title: str
    variants: tuple[PlannedVariant, ...]
    workloads: tuple[tuple[str, str], ...]
    work: tuple[Work, ...]
    rounds: int | None
    cpus: tuple[tuple[str, tuple[int, ...]], ...]
    left_out: tuple[tuple[str, str], ...] = ()
    untried: tuple[tuple[str, str], ...] = ()
    confirming: tuple[int, int | None] | None = None
    missing: str = ""
    modes: tuple[tuple[str, str], ...] = ()
    inputs: tuple[str, ...] = ()
    confinement: str = ""
    curves: tuple[tuple[str, ...], ...] = ()
