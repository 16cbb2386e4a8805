"""What a study is going to do, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass


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
    """What `ensign plan` shows. `build_s` and `disk_bytes` are for what is not in the cache.

    `racing_s` is the racing that is left; `known` says whether `build_s` rests on earlier builds.
    """

    name: str
    title: str
    variants: tuple[PlannedVariant, ...]
    workloads: tuple[tuple[str, str], ...]
    stages_waiting: int
    stages_cached: int
    build_s: float
    disk_bytes: int
    known: bool
    racing_s: float
    sweeps: int
    trials_done: int
    trials_total: int
    cpus: tuple[tuple[str, tuple[int, ...]], ...]
    left_out: tuple[tuple[str, str], ...] = ()
