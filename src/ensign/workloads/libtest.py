"""What a benchmark program of Rust's own test harness prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ensign.model.trials import NamedScore
from ensign.workloads.framework_text import all_scores, failed_score, named_score

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
    for found in _LINE.finditer(text):
        name, said = found["name"], found["value"].replace(",", "")
        if "." not in said and int(said) < _COARSE_NS:
            why = f"it prints whole nanoseconds, {said}: let it do more per iteration"
            yield failed_score(name, why)
        elif said.count(".") > 1:
            yield failed_score(name, "its time is no number")
        else:
            yield named_score(name, [float(said) * 1e-9])
