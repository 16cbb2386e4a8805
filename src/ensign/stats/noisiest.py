"""Whether one workload has most of the noise of the geometric means.

A geometric mean has the mean of its workloads' log ratios, so that workload w adds v[w] / W²
to its variance, v[w] being the variance of its own log ratios over the rounds. Where one of them
adds more than all others together, the means tell little but its noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ensign.model.finding_kinds.judgment import NOISIEST_WORKLOAD
from ensign.model.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.stats.rounds import RoundCosts

_FEWEST_WORKLOADS = 5
_FEWEST_ROUNDS = 3
_TOO_MUCH = 0.5


def noisiest_findings(
    costs: RoundCosts, variants: Sequence[str], baseline: str
) -> tuple[Finding, ...]:
    """A warning where a workload has more than half of the variance, pooled over the `variants`."""
    number = len(costs.workloads)
    if number < _FEWEST_WORKLOADS or len(costs.rounds) < _FEWEST_ROUNDS or not variants:
        return ()
    d = np.stack([costs.log_ratios(variant, baseline) for variant in variants])
    variances = d.var(axis=-1, ddof=1).mean(axis=0)
    total = float(variances.sum())
    worst = int(variances.argmax())
    share = float(variances[worst]) / total if total else 0.0
    if share <= _TOO_MUCH:
        return ()
    deviation, narrower = math.sqrt(variances[worst]), math.sqrt(1 - share) * number / (number - 1)
    text = (
        f"its log ratios vary by {deviation * 100:.1f} % from round to round, which is "
        f"{share * 100:.0f} % of the variance of all {number} workloads' geometric means: "
        f"without it their intervals would be {narrower:.2f} times as wide"
    )
    return (NOISIEST_WORKLOAD.found(text, costs.workloads[worst]),)
