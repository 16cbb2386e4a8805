"""How often functions of slow relinks are named, wrongly and rightly, by simulation.

Prints the table of docs/background/statistics/relink-shares.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from ensign.stats.relink_shares import share_changes, shown_growths, slowest_first

SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
EXECUTION_SD, EXECUTIONS = 0.01, 4


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=4_000, help="simulated studies per cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    print("| relinks | samples of each | slow half spends more | named | another one named |")
    print("| --- | --- | --- | --- | --- |")
    for relinks, samples in ((6, 40), (8, 100), (12, 300), (24, 60)):
        _row(rng, (relinks, samples, 0.0), options.studies)
    for samples in (100, 300, 1000):
        for slower in (0.05, 0.1):
            _row(rng, (12, samples, slower), max(options.studies // 10, 20))


def _row(rng: np.random.Generator, cell: tuple[int, int, float], studies: int) -> None:
    found = [named(rng, *cell) for _ in range(studies)]
    right = sum(0 in each for each in found) / studies
    wrong = sum(bool(each - {0}) for each in found) / studies
    relinks, samples, slower = cell
    if not slower:
        right, wrong = 0.0, sum(bool(each) for each in found) / studies
    hit = f"{100 * right:.0f} %" if slower else "–"
    more = f"{100 * slower:g} %, in one function"
    print(f"| {relinks} | {samples} | {more if slower else '0 %'} | {hit} | {100 * wrong:.1f} % |")


def named(rng: np.random.Generator, relinks: int, samples: int, slower: float) -> frozenset[int]:
    """Functions shown of one variant; its slow half spends `slower` more time, in the first."""
    costs: dict[str, list[float]] = {}
    counts: dict[str, dict[int, int]] = {}
    for number in range(relinks):
        own = SHARES.copy()
        own[0] += slower * (number % 2)
        noise = rng.normal(0, EXECUTION_SD, EXECUTIONS)
        costs[str(number)] = (np.log(own.sum()) + noise).tolist()
        drawn = rng.multinomial(int(rng.poisson(samples)), own / own.sum())
        counts[str(number)] = dict(enumerate(drawn.tolist()))
    order = slowest_first(costs, {name: sum(each.values()) for name, each in counts.items()})
    means = [float(np.mean(costs[name])) for name in order]
    (shown,) = shown_growths([share_changes(means, [counts[name] for name in order])], 0.95)
    return frozenset(each.key for each in shown)


if __name__ == "__main__":
    main()
