"""Which score is the better one, where its unit says it. Pure."""

from __future__ import annotations

import re

from ensign.model.trials import Better

_TIMES = frozenset(
    {"ps", "ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "second", "seconds"}
    | {"nsec", "usec", "msec", "nanoseconds", "microseconds", "milliseconds"}
    | {"min", "minute", "minutes", "h", "hour", "hours"}
)
_RATE = re.compile(r".+(/|\bper )\s*(s|sec|second|min|minute|h|hour)")
_RATES = re.compile(r"[kmgtp]?(bps|flops|fps|iops|ips|ops|qps|rps|tps)")
_COSTS = frozenset({"cycles", "instructions"})


def better_by(unit: str) -> Better | None:
    """Lower of a time (`ms`, `ns/iter`), higher of a rate (`MB/s`); None where it says neither."""
    said = unit.strip()
    if _RATE.fullmatch(said.lower()) or _RATES.fullmatch(said.lower()):
        return Better.HIGHER
    first = re.split(r"[/ ]", said, maxsplit=1)[0]
    if first in _TIMES or first.lower() in _COSTS:
        return Better.LOWER
    return None


def contradiction(unit: str, better: Better) -> str:
    """What is wrong with a score that says the opposite of its unit; empty where nothing is."""
    by_unit = better_by(unit)
    if by_unit in (None, better):
        return ""
    what = "a time" if by_unit is Better.LOWER else "a rate"
    return f"'{unit}' is {what}, of which the {by_unit.value} number is the better one"
