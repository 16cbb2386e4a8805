"""Re-derives the constants of the sequential rule and of the signed-rank test; prints tables.

PYTHONPATH=tests python bench/statistics_constants.py --replications 1000000
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

import numpy as np

from ensign.stats.looks import FIRST_LOOKS, LEVELS, mixture_bound
from ensign.stats.stopping import LARGEST_P, SIGNED_RANK_LOOKS, null_distribution
from simulated_races import largest_log_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CHUNK = 100_000


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1_000_000, help="simulated A/A races")
    parser.add_argument("--horizon", type=int, default=1_000_000, help="executions of the longest")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    print(f"{options.replications} normal A/A races, seed {options.seed}\n")
    print_bounds(rng, options.replications, options.horizon)
    print_signed_rank(rng, options.replications)


def print_bounds(rng: np.random.Generator, races: int, horizon: int) -> None:
    """Print the b used, the b that the simulation gives, and the false alarms of the used one."""
    print(f"Bound b of the t mixture (looks up to {horizon} executions)\n")
    print("| level | first look | b used | b found | false alarms, looks to 40 | whole horizon |")
    print("| --- | --- | --- | --- | --- | --- |")
    for first in FIRST_LOOKS:
        to_40, whole = chunked_bounds(rng, races, horizon, first)
        for level in LEVELS:
            used = mixture_bound(level, first)
            found = math.exp(float(np.quantile(whole, level)))
            error = quantile_error(whole, level)
            print(
                f"| {level:g} | {first} | {used:g} | {found:.2f} ± {found * error:.2f} "
                f"| {100 * float((to_40 > math.log(used)).mean()):.2f} % "
                f"| {100 * float((whole > math.log(used)).mean()):.2f} % |"
            )


def chunked_bounds(
    rng: np.random.Generator, races: int, horizon: int, first: int
) -> tuple[Floats, Floats]:
    """Largest ln b per race, of the looks to 40 and of all, in chunks that fit in memory."""
    to_40, whole = [], []
    for start in range(0, races, CHUNK):
        by_look = largest_log_bounds(rng, min(CHUNK, races - start), horizon, first)
        to_40.append(by_look[40])
        whole.append(by_look[max(by_look)])
    return np.concatenate(to_40), np.concatenate(whole)


def quantile_error(values: Floats, level: float) -> float:
    """Standard-error of a quantile: half the quantiles' distance one standard error either side."""
    step = math.sqrt(level * (1 - level) / values.size)
    low, high = np.quantile(values, [max(level - step, 0.0), min(level + step, 1.0)])
    return float(high - low) / 2


def print_signed_rank(rng: np.random.Generator, races: int) -> None:
    """Print the false alarms over the six looks for p limits around the one used."""
    smallest = np.concatenate(
        [smallest_p(rng, min(CHUNK, races - start)) for start in range(0, races, CHUNK)]
    )
    looks = ", ".join(str(look) for look in SIGNED_RANK_LOOKS)
    print(f"\nSigned-rank test at {looks} executions (any symmetric law)\n")
    print("| two-sided p at most | false alarms over all looks |")
    print("| --- | --- |")
    for limit in (0.0145, 0.0150, LARGEST_P, 0.0160, 0.0165):
        mark = " (used)" if limit == LARGEST_P else ""
        print(f"| {limit:.4f}{mark} | {100 * float((smallest <= limit).mean()):.2f} % |")


def smallest_p(rng: np.random.Generator, races: int) -> Floats:
    """Smallest exact p of each race over the looks; normal noise stands for any symmetric law."""
    d = rng.standard_normal((races, SIGNED_RANK_LOOKS[-1]))
    smallest = np.ones(races)
    for n in SIGNED_RANK_LOOKS:
        order = np.argsort(np.abs(d[:, :n]), axis=1)
        statistic = np.take_along_axis(d[:, :n] > 0, order, axis=1) @ np.arange(1, n + 1)
        upper = np.maximum(statistic, n * (n + 1) // 2 - statistic)
        tail = np.cumsum(null_distribution(range(1, n + 1))[::-1])[::-1]
        smallest = np.minimum(smallest, 2 * tail[upper])
    return smallest


if __name__ == "__main__":
    main()
