"""What builds, relinks and checks will take, from what earlier ones took.

What was never built takes as long as another build of the same study, by what its flags ask for
(LTO, -O3, instrumented); before the first build, what the size of the source lets expect, as a
range.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter

from ensign.builders.build_stage import StageResult
from ensign.builders.stage_facts import StageEntry, cached_stage
from ensign.builders.stages import Stage, to_do
from ensign.host.cache import Cache, key_of
from ensign.model.expectation import Basis, Work
from ensign.sources.size import SourceSize


@dataclass(frozen=True, slots=True)
class StageCost:
    """What a stage or a check takes by itself: seconds, and bytes in the cache.

    `relink_s` and `relink_bytes` are of one relink, and come on top. `seen` and `relink_seen` say
    whether it was measured, `like` whether others of its kind were; what was neither is a guess.
    """

    seconds: float
    size_bytes: int
    relink_s: float = 2.0
    relink_bytes: int = 5 * 2**20
    seen: bool = False
    relink_seen: bool = False
    like: bool = False


# For a program of some 100,000 lines on one core; the first real ones replace them.
GUESSES: Mapping[str, StageCost] = {
    "dependencies": StageCost(60.0, 100 * 2**20),
    "instrumented": StageCost(60.0, 20 * 2**20),
    "profile": StageCost(30.0, 2**20),
    "program": StageCost(60.0, 20 * 2**20),
    "check": StageCost(60.0, 2**20),
}


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What a study's builds, relinks and checks will take.

    A relink is made right after its build, so `relinks` takes what it adds to the builds' time.
    `seconds` has, by the key of each stage that waits, what it takes by itself, relinks included.
    """

    builds: Work
    relinks: Work
    checks: Work
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Known:
    """What an estimate is made from: the study's earlier builds, and the size of its source."""

    study: str
    cache: Cache
    size: SourceSize | None = None


# The least and the most that a guess may come to, as factors.
_BY_SIZE, _BY_NOTHING = 3.0, 6.0


def expected_seconds(known: Known, stages: Iterable[Stage]) -> dict[str, float]:
    """Tell what each stage is expected to take, by its key: as last time, else a guess."""
    return {each.key: _seconds(each, _cost_of(known, each)) for each in stages}


def remember_costs(known: Known, stages: Sequence[Stage], ends: Mapping[str, StageResult]) -> None:
    """Keep what each stage took, for the next estimate; of the first of a kind, for others, too."""
    for stage in reversed(stages):
        end = ends.get(stage.key)
        if end is not None and end.entry is not None:
            cost = _measured(stage, end.entry, _cost_of(known, stage))
            _remember(known.cache, _question(known.study, stage.kind, stage.label), cost)
            unit = replace(cost, seconds=cost.seconds / _effort(stage))
            _remember(known.cache, _question(known.study, _family(stage)), unit)


def check_cost(study: str, cache: Cache) -> StageCost:
    """Tell what the check of one variant is expected to take: all of a study do the same."""
    return _recall(cache, "check", _question(study, "check"))


def remember_check(study: str, seconds: float, size_bytes: int, cache: Cache) -> None:
    """Keep what a check took that was passed, for the next estimate."""
    _remember(cache, _question(study, "check"), StageCost(seconds, size_bytes, seen=True))


def estimate_of(
    known: Known, stages: Sequence[Stage], checks: tuple[int, int], cores: int
) -> BuildEstimate:
    """Add up what is not in the cache; what a stage is made from comes before it.

    `checks` counts those that wait, and those in the cache.
    """
    waiting = to_do(stages, lambda stage: cached_stage(known.cache, stage) is not None)
    costs = {each.key: _cost_of(known, each) for each in waiting}
    seconds = {each.key: _seconds(each, costs[each.key]) for each in waiting}
    builds_s = _wall_s(waiting, {key: cost.seconds for key, cost in costs.items()}, cores)
    builds = Work(
        "builds",
        waiting=len(waiting),
        there=len(stages) - len(waiting),
        wall_s=builds_s,
        disk_bytes=sum(cost.size_bytes for cost in costs.values()),
        basis=_basis(costs.values()),
        spread=_spread(known, costs.values()),
    )
    relinked = [each for each in waiting if each.relinks is not None]
    relinks = Work(
        "relinks",
        waiting=sum(map(_relinks, relinked)),
        there=sum(_relinks(each) for each in stages if each.key not in costs),
        wall_s=_wall_s(waiting, seconds, cores) - builds_s,
        disk_bytes=sum(_relinks(each) * costs[each.key].relink_bytes for each in relinked),
        basis="measured" if all(costs[each.key].relink_seen for each in relinked) else "guess",
    )
    relinks = replace(relinks, spread=_BY_SIZE if relinks.basis == "guess" else 1.0)
    return BuildEstimate(builds, relinks, _checks(known, *checks, cores), seconds)


def _checks(known: Known, waiting: int, there: int, cores: int) -> Work:
    """The baseline's comes first, the others then side by side."""
    one = check_cost(known.study, known.cache)
    if not one.seen and known.size is not None:
        one = replace(one, seconds=min(one.seconds, 1 + 2 * known.size.seconds))
    turns = min(waiting, 1) + max(waiting - 1, 0) / max(1, cores)
    return Work(
        "checks",
        waiting=waiting,
        there=there,
        wall_s=one.seconds * turns,
        disk_bytes=one.size_bytes * waiting,
        basis="measured" if one.seen else "guess",
        spread=1.0 if one.seen else _spread(known, [one]),
    )


def _wall_s(stages: Iterable[Stage], seconds: Mapping[str, float], cores: int) -> float:
    """Time of all on so many cores; `stages` has parents before children."""
    ready_s: dict[str, float] = {}
    for each in stages:
        before_s = max((ready_s.get(key, 0.0) for key in each.inputs), default=0.0)
        ready_s[each.key] = before_s + seconds[each.key]
    return max(sum(seconds.values()) / max(1, cores), *ready_s.values(), 0.0)


def _basis(costs: Iterable[StageCost]) -> Basis:
    known = list(costs)
    if all(cost.seen for cost in known):
        return "measured"
    return "alike" if all(cost.seen or cost.like for cost in known) else "guess"


def _spread(known: Known, costs: Iterable[StageCost]) -> float:
    """By what factor it may be more or less."""
    if all(cost.seen or cost.like for cost in costs):
        return 1.0
    return _BY_NOTHING if known.size is None else _BY_SIZE


def _relinks(stage: Stage) -> int:
    return 0 if stage.relinks is None else len(stage.relinks.seeds)


def _seconds(stage: Stage, cost: StageCost) -> float:
    return cost.seconds + _relinks(stage) * cost.relink_s


def _measured(stage: Stage, entry: StageEntry, before: StageCost) -> StageCost:
    """What an entry took; where it has no relinks, those of `before` stay."""
    facts = entry.facts
    one_bytes = 0 if facts.program is None else facts.program.artifact.size_bytes
    cost = replace(
        before,
        seconds=facts.build_s,
        size_bytes=max(entry.size_bytes - _relinks(stage) * one_bytes, 0),
        relink_bytes=one_bytes,
        seen=True,
    )
    if facts.relink_s is None or not _relinks(stage):
        return cost
    return replace(cost, relink_s=facts.relink_s / _relinks(stage), relink_seen=True)


def _cost_of(known: Known, stage: Stage) -> StageCost:
    own = _recalled(known.cache, _question(known.study, stage.kind, stage.label))
    if own is not None:
        return own
    unit = _recalled(known.cache, _question(known.study, _family(stage)))
    if unit is not None:
        return replace(unit, seconds=unit.seconds * _effort(stage), seen=False, like=True)
    guess = GUESSES[stage.kind]
    if known.size is None:
        return guess
    return replace(guess, seconds=known.size.seconds * _SHARES[stage.kind] * _effort(stage))


_FLAGS = re.compile(r"-flto\b|-O[0-9a-z]+")
# Of the time to compile the source once: dependencies may be half of it or none.
_SHARES = {"dependencies": 0.7, "instrumented": 1.0, "profile": 0.5, "program": 1.0}


def _family(stage: Stage) -> str:
    """Stages of one family differ by what their flags ask for."""
    return "compiled" if stage.kind in ("instrumented", "program") else f"any {stage.kind}"


def _effort(stage: Stage) -> float:
    """What the flags of a stage cost, in builds at -O2."""
    if stage.kind not in ("instrumented", "program"):
        return 1.0
    said = [part for argv in stage.commands for part in argv]
    said += [value for _, value in stage.env]
    flags = set(_FLAGS.findall(" ".join(said)))
    effort = 1.6 if "-flto" in flags else 1.0
    effort *= 0.6 if "-O0" in flags else 1.2 if flags & {"-O3", "-Ofast"} else 1.0
    return effort * (1.2 if stage.kind == "instrumented" else 1.0)


def _recall(cache: Cache, kind: str, question: str) -> StageCost:
    return _recalled(cache, question) or GUESSES[kind]


def _recalled(cache: Cache, question: str) -> StageCost | None:
    known = cache.recall(question)
    try:
        return None if known is None else _COST.validate_json(known)
    except ValueError:
        return None


_COST = TypeAdapter(StageCost)


def _remember(cache: Cache, question: str, cost: StageCost) -> None:
    cache.remember(question, json.dumps(asdict(cost)))


def _question(study: str, kind: str, label: str = "") -> str:
    return key_of(["cost", study, kind, label])
