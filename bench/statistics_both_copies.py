"""False alarms where the baseline's two copies are what variants are compared with.

python bench/statistics_both_copies.py [--races 20000]
The table of docs/background/statistics/both-copies.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ensign.stats.correlation import widening
from ensign.stats.looks import critical_value, looks_up_to, mixture_bound

Floats = NDArray[np.float64]
FEW, MANY = 40, 112
STALLS = 0.05


def false_alarms(d: Floats) -> tuple[float, float]:
    """Shares of races that call a difference at some look, to 40 and to 112 executions."""
    bound, found = mixture_bound(0.95), np.zeros(len(d), dtype=bool)
    few = 0.0
    for n in looks_up_to(MANY):
        seen = d[:, :n]
        half = critical_value(n, bound) * seen.std(axis=1, ddof=1) * widening(seen) / np.sqrt(n)
        found |= np.abs(seen.mean(axis=1)) > half
        few = float(found.mean()) if n == FEW else few
    return few, float(found.mean())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--races", type=int, default=20_000)
    shape, rng = (asked.parse_args().races, MANY), np.random.default_rng(1)
    laws: dict[str, Callable[[], Floats]] = {
        "normal": lambda: rng.normal(0, 1, shape),
        "t, 3 degrees of freedom": lambda: rng.standard_t(3, shape),
        "5 % 5 sd slower": lambda: rng.normal(0, 1, shape) + 5 * (rng.random(shape) < STALLS),
        "exponential": lambda: rng.exponential(1, shape),
        "lognormal (0.5)": lambda: rng.lognormal(0, 0.5, shape),
    }
    for name, drawn in laws.items():
        variant, first, second = drawn(), drawn(), drawn()
        pairs = (variant - first, variant - (first + second) / 2)
        cells = (f"{100 * few:.1f} %, {100 * all_:.1f} %" for few, all_ in map(false_alarms, pairs))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
