"""How many relinks some rounds are worth. Pure.

With k relinks in N rounds the variance of a mean is s²·(p/k + (1 - p)/N), p being the layouts' part
of the variance of one round, and n is k (Kalibera and Jones, ISMM 2013, section 6: repetition pays
at the highest level that varies). Another relink in every round (k = N) is the best there is.
"""

from __future__ import annotations

import math

from ensign.stats.student import two_sided_critical

# Half-widths over those of another relink in every round; 12 relinks come to it by themselves
# where layouts do not matter: t(11) / t(∞) is 1.12.
_WIDER = 1.125
_FEWEST = 2


def relinks_worth(layout_part: float, rounds: int, level: float) -> int:
    """The fewest relinks whose half-width is at most an eighth above the least possible."""
    if rounds <= _FEWEST:
        return _FEWEST

    def half_width(relinks: int) -> float:
        variance = layout_part / relinks + (1 - layout_part) / rounds
        return two_sided_critical(level, relinks - 1) * math.sqrt(variance)

    most = _WIDER * half_width(rounds)
    return next(k for k in range(_FEWEST, rounds + 1) if half_width(k) <= most)
