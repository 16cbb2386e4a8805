"""Times of builds, relinks and checks: as earlier ones of the same study took.

What was never built takes as long as the last build of its kind; where there is none, nothing is
said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter

from ensign.builders.build_stage import StageResult
from ensign.builders.stage_facts import StageEntry, cached_stage
from ensign.builders.stages import Stage, to_do
from ensign.host.cache import Cache, key_of
from ensign.model.expectation import Basis, Work


@dataclass(frozen=True, slots=True)
class StageCost:
    """Cost of a stage or a check by itself: seconds, and bytes in the cache.

    `relink_s` and `relink_bytes` are of one relink, and come on top; None where none was made.
    `alike`: another stage of its kind took it.
    """

    seconds: float
    size_bytes: int
    relink_s: float | None = None
    relink_bytes: int = 0
    alike: bool = False


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """Cost of a study's builds, relinks and checks.

    A relink is made right after its build, so `relinks` takes what it adds to the builds' time.
    `seconds` has, by the key of each stage that waits and of which something is known, what it
    takes by itself, relinks included.
    """

    builds: Work
    relinks: Work
    checks: Work
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EarlierBuilds:
    """Those of a study, by its name, as the cache remembers them."""

    study: str
    cache: Cache


def expected_seconds(earlier: EarlierBuilds, stages: Iterable[Stage]) -> dict[str, float]:
    """Tell what each stage is expected to take, by its key; nothing where nothing is known."""
    return _seconds(stages, _costs(earlier, stages))


def remember_costs(
    earlier: EarlierBuilds, stages: Sequence[Stage], ends: Mapping[str, StageResult]
) -> None:
    """Keep what each stage took, for the next estimate; of the first of a kind, for others, too."""
    for stage in reversed(stages):
        end = ends.get(stage.key)
        if end is not None and end.entry is not None:
            cost = _measured(stage, end.entry, _cost_of(earlier, stage))
            _remember(earlier, cost, stage.kind, stage.label)
            _remember(earlier, cost, _family(stage))


def check_cost(earlier: EarlierBuilds) -> StageCost | None:
    """Tell what the check of one variant took last: all of a study do the same."""
    return _recall(earlier, "check")


def remember_check(earlier: EarlierBuilds, seconds: float, size_bytes: int) -> None:
    """Keep what a check took that was passed, for the next estimate."""
    _remember(earlier, StageCost(seconds, size_bytes), "check")


def estimate_of(
    earlier: EarlierBuilds, stages: Sequence[Stage], checks: tuple[int, int], cores: int
) -> BuildEstimate:
    """Add up what is not in the cache; what a stage is made from comes before it.

    `checks` counts those that wait, and those in the cache.
    """
    waiting = to_do(stages, lambda stage: cached_stage(earlier.cache, stage) is not None)
    costs = _costs(earlier, waiting)
    known = len(costs) == len(waiting)
    builds_s = _wall_s(waiting, {key: cost.seconds for key, cost in costs.items()}, cores)
    alike = any(cost.alike for cost in costs.values())
    basis: Basis = "unknown" if not known else "alike" if alike else "measured"
    builds = Work(
        "builds",
        waiting=len(waiting),
        there=len(stages) - len(waiting),
        wall_s=builds_s if known else None,
        disk_bytes=sum(cost.size_bytes for cost in costs.values()) if known else None,
        basis=basis,
    )
    there = sum(_relinks(stage) for stage in stages) - sum(map(_relinks, waiting))
    seconds = _seconds(waiting, costs)
    both_s = _wall_s(waiting, seconds, cores) if len(seconds) == len(waiting) else None
    relinked = [(_relinks(stage), costs.get(stage.key)) for stage in waiting if stage.relinks]
    relinks = Work(
        "relinks",
        waiting=sum(number for number, _ in relinked),
        there=there,
        wall_s=None if both_s is None else both_s - builds_s,
        disk_bytes=None
        if both_s is None
        else sum(number * cost.relink_bytes for number, cost in relinked if cost is not None),
        basis="unknown" if both_s is None else "measured",
    )
    return BuildEstimate(builds, relinks, _checks(check_cost(earlier), *checks, cores), seconds)


def _checks(one: StageCost | None, waiting: int, there: int, cores: int) -> Work:
    """The baseline's comes first, the others then side by side."""
    if one is None and waiting:
        return Work("checks", waiting, there, None, None, "unknown")
    turns = min(waiting, 1) + max(waiting - 1, 0) / max(1, cores)
    each_s, each_bytes = (0.0, 0) if one is None else (one.seconds, one.size_bytes)
    return Work("checks", waiting, there, each_s * turns, each_bytes * waiting, "measured")


def _wall_s(stages: Iterable[Stage], seconds: Mapping[str, float], cores: int) -> float:
    """Time of all on so many cores; `stages` has parents before children."""
    ready_s: dict[str, float] = {}
    for stage in stages:
        before_s = max((ready_s.get(key, 0.0) for key in stage.inputs), default=0.0)
        ready_s[stage.key] = before_s + seconds.get(stage.key, 0.0)
    return max(sum(seconds.values()) / max(1, cores), *ready_s.values(), 0.0)


def _relinks(stage: Stage) -> int:
    return 0 if stage.relinks is None else len(stage.relinks.seeds)


def _costs(earlier: EarlierBuilds, stages: Iterable[Stage]) -> dict[str, StageCost]:
    costs = ((stage.key, _cost_of(earlier, stage)) for stage in stages)
    return {key: cost for key, cost in costs if cost is not None}


def _seconds(stages: Iterable[Stage], costs: Mapping[str, StageCost]) -> dict[str, float]:
    """Seconds of the stages of which all is known: of relinks, too, where they have any."""
    seconds = {}
    for stage in stages:
        cost, number = costs.get(stage.key), _relinks(stage)
        if cost is not None and (not number or cost.relink_s is not None):
            seconds[stage.key] = cost.seconds + number * (cost.relink_s or 0.0)
    return seconds


def _measured(stage: Stage, entry: StageEntry, before: StageCost | None) -> StageCost:
    """Cost of an entry; where it has no relinks, those of `before` stay."""
    facts, number = entry.facts, _relinks(stage)
    one_bytes = 0 if facts.program is None else facts.program.artifact.size_bytes
    took = facts.relink_s if number else None
    relink_s = None if before is None else before.relink_s
    return StageCost(
        facts.build_s,
        max(entry.size_bytes - number * one_bytes, 0),
        relink_s if took is None else took / number,
        one_bytes,
    )


def _cost_of(earlier: EarlierBuilds, stage: Stage) -> StageCost | None:
    own = _recall(earlier, stage.kind, stage.label)
    if own is not None:
        return own
    other = _recall(earlier, _family(stage))
    return None if other is None else replace(other, alike=True)


def _family(stage: Stage) -> str:
    return "compiled" if stage.kind in ("instrumented", "program") else f"any {stage.kind}"


_COST = TypeAdapter(StageCost)


def _recall(earlier: EarlierBuilds, kind: str, label: str = "") -> StageCost | None:
    known = earlier.cache.recall(_question(earlier, kind, label))
    try:
        return None if known is None else _COST.validate_json(known)
    except ValueError:
        return None


def _remember(earlier: EarlierBuilds, cost: StageCost, kind: str, label: str = "") -> None:
    earlier.cache.remember(_question(earlier, kind, label), json.dumps(asdict(cost)))


def _question(earlier: EarlierBuilds, kind: str, label: str) -> str:
    return key_of(["cost", earlier.study, kind, label])
