"""Named scores in the output of benchmark frameworks: parts that all share. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from statistics import fmean

from ensign.model.errors import CommandFailed
from ensign.model.quoting import visible
from ensign.model.trials import Better, NamedScore

_MOST_BENCHMARKS = 10_000
_LONGEST_NAME = 200
_LONGEST_REASON = 120


def named_score(name: str, seconds: Iterable[float]) -> NamedScore:
    """One benchmark: the mean of what its repetitions took; they are one observation."""
    values = list(seconds)
    if not values:
        return failed_score(name, "it has no values")
    if not all(math.isfinite(value) and value > 0 for value in values):
        return failed_score(name, "its time is no number above 0")
    mean = fmean(values)
    if not math.isfinite(mean):
        return failed_score(name, "its time is no number above 0")
    return NamedScore(shown_name(name), mean, "s", Better.LOWER)


def failed_score(name: str, why: str) -> NamedScore:
    """A benchmark that has no time, and why."""
    reason = visible(why)[:_LONGEST_REASON]
    return NamedScore(shown_name(name), None, "s", Better.LOWER, reason)


def shown_name(name: str) -> str:
    """A name that may stand in a report."""
    return visible(name)[:_LONGEST_NAME]


def all_scores(named_scores: Iterator[NamedScore]) -> tuple[NamedScore, ...]:
    """Each name once, and no more than anybody has; CommandFailed without any."""
    by_name: dict[str, NamedScore] = {}
    for score in named_scores:
        by_name.setdefault(score.name, score)
        if len(by_name) > _MOST_BENCHMARKS:
            raise CommandFailed(f"its report has more than {_MOST_BENCHMARKS:,} benchmarks")
    if not by_name:
        raise CommandFailed("its report has no benchmark")
    return tuple(by_name.values())


_LINE = re.compile(
    r"^test (?P<name>.+?) +\.\.\. bench: +(?P<value>[0-9][0-9.,]*) ns/iter", re.MULTILINE
)
# Of which one is a hundredth.
_COARSE_NS = 100


def scores(text: str) -> tuple[NamedScore, ...]:
    """One for each benchmark: its time per iteration, in seconds.

    Of those that say few whole nanoseconds a rounded digit would be the difference: they are
    withheld. CommandFailed where it prints no benchmark.
    """
    return all_scores(_scores(text))


def _scores(text: str) -> Iterator[NamedScore]:
    for match in _LINE.finditer(text):
        name, value = match["name"], match["value"].replace(",", "")
        if "." not in value and int(value) < _COARSE_NS:
            why = f"it prints whole nanoseconds, {value}: let it do more per iteration"
            yield failed_score(name, why)
        elif value.count(".") > 1:
            yield failed_score(name, "its time is no number")
        else:
            yield named_score(name, [float(value) * 1e-9])
