"""What builds will take, from what earlier ones took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ensign.builders.cache import Cache, key_of
from ensign.builders.order import needed
from ensign.builders.perform import Made
from ensign.builders.stages import Stage

# For a program of some 100,000 lines on one core; the first real build replaces them.
DEFAULT_SECONDS: Mapping[str, float] = {
    "dependencies": 60.0,
    "instrumented": 60.0,
    "profile": 30.0,
    "program": 60.0,
}
DEFAULT_BYTES: Mapping[str, int] = {
    "dependencies": 100 * 2**20,
    "instrumented": 20 * 2**20,
    "profile": 2**20,
    "program": 20 * 2**20,
}


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What a study's builds will take.

    `wall_s` is for everything that is not in the cache, on all cores; `disk_bytes` what it will
    add to the cache. `known` says whether all of it was built before, so that this is no default.
    `waiting` and `cached` count stages. `seconds` has, by the key of each stage that waits, what it
    is expected to take by itself.
    """

    wall_s: float
    disk_bytes: int
    known: bool
    waiting: int
    cached: int
    seconds: Mapping[str, float]


def expected_seconds(study: str, stages: Iterable[Stage], cache: Cache) -> dict[str, float]:
    """Tell what each stage is expected to take, by its key: as last time, else a default."""
    expected: dict[str, float] = {}
    for stage in stages:
        known = cache.recall(_question(study, stage))
        expected[stage.key] = DEFAULT_SECONDS[stage.kind] if known is None else float(known)
    return expected


def remember_seconds(
    study: str, stages: Iterable[Stage], ends: Mapping[str, Made], cache: Cache
) -> None:
    """Keep what each stage took, for the next estimate."""
    for stage in stages:
        end = ends.get(stage.key)
        if end is not None and end.entry is not None:
            cache.remember(_question(study, stage), str(end.entry.facts["build_s"]))


def estimate_of(study: str, stages: Sequence[Stage], cores: int, cache: Cache) -> BuildEstimate:
    """Add up what is not in the cache; what a stage is made from comes before it."""
    there: set[str] = set()

    def cached(stage: Stage) -> bool:
        if _has(stage, cache):
            there.add(stage.key)
        return stage.key in there

    waiting = [each for each in needed(stages, cached) if each.key not in there]
    expected_s = expected_seconds(study, waiting, cache)
    ready_s: dict[str, float] = {}
    for each in waiting:  # parents come before children
        before_s = max((ready_s.get(key, 0.0) for key in each.inputs), default=0.0)
        ready_s[each.key] = before_s + expected_s[each.key]
    known = all(cache.recall(_question(study, each)) is not None for each in waiting)
    return BuildEstimate(
        wall_s=max(sum(expected_s.values()) / max(1, cores), *ready_s.values(), 0.0),
        disk_bytes=sum(DEFAULT_BYTES[each.kind] for each in waiting),
        known=known,
        waiting=len(waiting),
        cached=len(stages) - len(waiting),
        seconds=expected_s,
    )


def _has(stage: Stage, cache: Cache) -> bool:
    return cache.get(stage.kind, stage.key) is not None


def _question(study: str, stage: Stage) -> str:
    return key_of(["seconds", study, stage.kind, stage.label])
