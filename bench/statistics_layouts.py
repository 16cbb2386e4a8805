"""Error rates of studies whose rounds share relinks, by simulation with known truth.

Prints the tables of docs/background/statistics/layouts.md.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from ensign.stats.layouts import blocked_split, nested_split, relink_spread
from ensign.stats.pair import PairRule, Rule, mean_and_half_width

if TYPE_CHECKING:
    from collections.abc import Sequence

RULE = PairRule(rule=Rule.T)
EXECUTION_SD = 0.004


def main(argv: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=20_000, help="simulated studies per cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    coverage(rng, options.studies)
    parts(rng, max(options.studies // 10, 20))


def coverage(rng: np.random.Generator, studies: int) -> None:
    """Coverage of 0 by the t interval, counting relinks or executions."""
    print("| relinks | rounds | sd between layouts | counting relinks | counting executions |")
    print("| --- | --- | --- | --- | --- |")
    for relinks, rounds in ((4, 8), (4, 20), (8, 8), (8, 16), (8, 12)):
        for layout_sd in (0.0, 0.004, 0.012):
            layouts = rng.normal(0, layout_sd, (studies, relinks))
            used = np.arange(rounds) % relinks
            d = layouts[:, used] + rng.normal(0, EXECUTION_SD, (studies, rounds))
            columns = np.stack([d[:, used == k].mean(axis=1) for k in range(relinks)], axis=1)
            shares = []
            for values in (columns, d):
                mean, half = mean_and_half_width(values, RULE)
                shares.append(f"{100 * float((np.abs(mean) <= half).mean()):.1f} %")
            print(f"| {relinks} | {rounds} | {100 * layout_sd:g} % | {' | '.join(shares)} |")
    print()


def parts(rng: np.random.Generator, studies: int) -> None:
    """Root mean squares of the two parts, and how often bound and band hold."""
    print("| sd between layouts | race | layout part | execution part | bound holds | band holds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for layout_sd in (0.0, 0.004, 0.012):
        for name, shared_sd in (("turns", 0.0), ("all at once", 0.02)):
            found = np.array([_one(rng, layout_sd, shared_sd) for _ in range(studies)])
            roots = 100 * np.sqrt((found[:, :2] ** 2).mean(axis=0))
            holds = 100 * found[:, 2:].mean(axis=0)
            print(
                f"| {100 * layout_sd:g} % | {name} | {roots[0]:.2f} % | {roots[1]:.2f} % "
                f"| {holds[0]:.1f} % | {holds[1]:.1f} % |"
            )


def _one(
    rng: np.random.Generator, layout_sd: float, shared_sd: float
) -> tuple[float, float, bool, bool]:
    """8 relinks in 3 executions; the true ratio of a ninth says whether the band holds.

    The natural link, from which ratios count, and its twin have noise of their own.
    """
    truth = rng.normal(0, layout_sd, 9)
    drift = rng.normal(0, shared_sd, (1, 3))
    d = truth[:8, None] + rng.normal(0, EXECUTION_SD, (8, 3)) + drift
    split = nested_split(d.tolist()) if shared_sd == 0 else blocked_split(d)
    natural = rng.normal(0, EXECUTION_SD, (2, 3)) + drift
    band = relink_spread(d - natural.mean(axis=0))
    if split is None:
        raise AssertionError
    new = float(truth[8])
    return (
        split.layout_sd,
        split.execution_sd,
        split.layout_high >= layout_sd,
        (band.low <= new <= band.high),
    )


if __name__ == "__main__":
    main()
