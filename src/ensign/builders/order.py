"""Which stages are of use, and in which order they start. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ensign.builders.stages import Stage


def needed(stages: Iterable[Stage], there: Callable[[Stage], bool]) -> list[Stage]:
    """The stages that are of use: of each variant the last one, and what leads to missing ones.

    `there` says whether a stage's result is at hand, and is asked once for each stage of use.
    """
    by_key = {stage.key: stage for stage in stages}
    waiting = [stage.key for stage in by_key.values() if stage.variants]
    wanted: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in wanted:
            continue
        wanted.add(key)
        if not there(by_key[key]):
            waiting += by_key[key].inputs
    return [stage for stage in by_key.values() if stage.key in wanted]


def to_do(stages: Iterable[Stage], there: Callable[[Stage], bool]) -> list[Stage]:
    """The stages that are of use and missing; `there` is asked as by `needed`."""
    missing: set[str] = set()

    def is_there(stage: Stage) -> bool:
        found = there(stage)
        if not found:
            missing.add(stage.key)
        return found

    return [stage for stage in needed(stages, is_there) if stage.key in missing]


def jobs_for(cores: int, stages_at_work: int) -> int:
    """Tell how many jobs a stage may use when so many run or could: all together, the cores."""
    return max(1, cores // max(1, min(cores, stages_at_work)))


def in_order(
    ready: Iterable[Stage], baseline_key: str, expected_s: Mapping[str, float]
) -> list[Stage]:
    """Sort stages that could start now: dependencies, the baseline, what others wait for.

    Among equals the longest is first.

    The baseline is early because nothing can be compared without it.
    """
    return sorted(
        ready,
        key=lambda stage: (
            stage.kind != "dependencies",
            stage.key != baseline_key,
            bool(stage.variants),
            -expected_s.get(stage.key, 0.0),
            stage.key,
        ),
    )
