"""What exploring flatters and confirming covers, by simulation with known truth.

Prints the table of docs/background/statistics/confirmation.md.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from ensign.stats.pair import PairRule, Rule, mean_and_half_width
from ensign.stats.suite import SuiteRule

if TYPE_CHECKING:
    from collections.abc import Sequence

ALONE = PairRule(rule=Rule.T)
EXPLORING, FINALISTS, CONFIRMING = 7, 3, 16
OWN_SD, BASELINE_SD = 0.008, 0.004


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=20_000, help="simulated studies per row")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    print("| variants | sd of true effects | flattered by | explored | pooled | best | all three |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for variants in (5, 20, 50):
        for spread in (0.0, 0.004):
            print(row(rng, options.studies, variants, spread))


def row(rng: np.random.Generator, studies: int, variants: int, spread: float) -> str:
    """How much the best of the exploration is overrated, and how often intervals cover."""
    truth = rng.normal(0, 1, (studies, variants)) * spread
    explored = geomeans(rng, truth, EXPLORING)
    order = np.argsort(explored.mean(axis=-1), axis=1)[:, :FINALISTS]
    true = np.take_along_axis(truth, order, axis=1)
    best = np.take_along_axis(explored, order[:, :1, None], axis=1)
    confirming = geomeans(rng, true, CONFIRMING)
    pooled = np.concatenate([best, confirming[:, :1]], axis=-1)
    within = covered(confirming, true, SuiteRule(finalists=FINALISTS).pair_rule)
    cells = [
        f"{-100 * (best.mean(axis=-1) - true[:, :1]).mean():.2f} %",
        *(
            f"{100 * share.mean():.1f} %"
            for share in (
                covered(best, true[:, :1], ALONE),
                covered(pooled, true[:, :1], ALONE),
                within[:, 0],
                within.all(axis=1),
            )
        ),
    ]
    return f"| {variants} | {100 * spread:.1f} % | {' | '.join(cells)} |"


def geomeans(rng: np.random.Generator, truth: np.ndarray, rounds: int) -> np.ndarray:
    """g[study, variant, round]; all variants of a round are compared with the same baseline."""
    studies, variants = truth.shape
    baseline = rng.normal(0, BASELINE_SD, (studies, 1, rounds))
    return truth[:, :, None] + rng.normal(0, OWN_SD, (studies, variants, rounds)) - baseline


def covered(g: np.ndarray, truth: np.ndarray, rule: PairRule) -> np.ndarray:
    """Whether each interval contains the truth."""
    mean, half = mean_and_half_width(g, rule)
    return np.asarray(np.abs(mean - truth) <= half)


if __name__ == "__main__":
    main()
