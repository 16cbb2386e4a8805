"""Which score is the better one, where its unit says it. Pure."""

from __future__ import annotations

import re

from ensign.model.trials import Better

_TIMES = frozenset(
    {"ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "second", "seconds", "min", "h"}
)
_RATE = re.compile(r".+(/|\bper )\s*(s|sec|second|min|minute|h|hour)")
_RATES = frozenset({"bps", "fps", "iops", "kbps", "mbps", "gbps", "ops", "qps", "rps", "tps"})
_COSTS = frozenset({"cycles", "instructions"})


def better_by(unit: str) -> Better | None:
    """Lower of a time (`ms`, `ns/iter`), higher of a rate (`MB/s`); None where it says neither."""
    said = unit.strip()
    if _RATE.fullmatch(said.lower()) or said.lower() in _RATES:
        return Better.HIGHER
    first = re.split(r"[/ ]", said, maxsplit=1)[0]
    if first in _TIMES or first.lower() in _COSTS:
        return Better.LOWER
    return None
