"""Error rates of the statistics, simulated with known truth; prints the tables of the docs.

PYTHONPATH=tests python bench/statistics_error_rates.py --races 100000 --seed 1
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

import numpy as np

from ensign.stats.holm import holm_adjusted
from ensign.stats.looks import critical_value, looks_up_to
from ensign.stats.pair import PairRule, Rule, mean_and_half_width
from ensign.stats.stopping import SIGNED_RANK_LOOKS
from ensign.stats.student import two_sided_critical, two_sided_p
from ensign.stats.suite import round_geomeans, upper_bounds
from ensign.stats.twin import exits_for_finding
from simulated_races import (
    INDEPENDENT_NOISE,
    drifting,
    exclusions,
    normal,
    of_two_variants,
    run_races,
    signed_rank_rejections,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SEQUENTIAL = PairRule()
FIXED = PairRule(rule=Rule.T)
HORIZON = 112
LOOKS = looks_up_to(HORIZON)
LOOKS_40 = looks_up_to(40)
MARGIN = 0.01
ALPHA = 0.05
STOPPED_ROUNDS = 12


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--races", type=int, default=100_000, help="simulated races per cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    races: int = options.races
    print(f"{races} races per cell, seed {options.seed}; Monte Carlo error of a share of 5 %:")
    print(f"± {100 * math.sqrt(0.05 * 0.95 / races):.2f} % (one standard error)\n")
    rng = np.random.default_rng(options.seed)
    false_alarms(rng, races)
    drift(rng, races)
    coverage_at_stopping(rng, races)
    power(rng, races)
    geomean_coverage(rng, races // 10)
    non_inferior_errors(rng, races // 10)
    twin_errors(rng, races // 10)


def share(hits: object) -> str:
    """Percent, with one digit more than is shown to people."""
    return f"{100 * float(np.mean(np.asarray(hits))):.2f} %"


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def head(title: str, *columns: str) -> None:
    print(f"\n{title}\n")
    row(*columns)
    row(*["---"] * len(columns))


def at_every_n(d: Floats, critical: Callable[[int], float], last: int) -> NDArray[np.bool_]:
    """Races in which 0 is excluded at any n from 5 to `last`, looking after every execution."""
    n = np.arange(5, last + 1)
    mean = np.cumsum(d[:, :last], axis=1)[:, 4:] / n
    squares = np.cumsum(d[:, :last] ** 2, axis=1)[:, 4:]
    sd = np.sqrt((squares - n * mean**2) / (n - 1))
    c = np.asarray([critical(int(one)) for one in n])
    return np.asarray((np.abs(mean) > c * sd / np.sqrt(n)).any(axis=1))


def false_alarms(rng: np.random.Generator, races: int) -> None:
    head(
        "False alarms of one pair (A/A), 5 % level",
        "noise of d",
        "looks to 40",
        "looks to 112",
        "t interval at every look to 40",
        "t after every execution to 40",
        "t at n = 40 alone",
        "mixture after every execution to 40, b = 20",
        "signed rank, its six looks",
        "signed rank at the looks to 40",
        "both sets of looks",
    )
    both = sorted({*SIGNED_RANK_LOOKS, *LOOKS_40})
    laws = dict(INDEPENDENT_NOISE)
    laws |= {f"{name}, in both variants": of_two_variants(law) for name, law in laws.items()}
    for name, law in laws.items():
        d = law(rng, (races, HORIZON))
        sequential = exclusions(d, 0.0, SEQUENTIAL, LOOKS)
        row(
            name,
            share(sequential[:, : len(LOOKS_40)].any(axis=1)),
            share(sequential.any(axis=1)),
            share(exclusions(d, 0.0, FIXED, LOOKS_40).any(axis=1)),
            share(at_every_n(d, lambda n: two_sided_critical(0.95, n - 1), 40)),
            share(exclusions(d, 0.0, FIXED, [40])),
            share(at_every_n(d, lambda n: critical_value(n, 20.0), 40)),
            share(signed_rank_rejections(d).any(axis=1)),
            share(signed_rank_rejections(d, LOOKS_40).any(axis=1)),
            share(signed_rank_rejections(d, both).any(axis=1)),
        )


def drift(rng: np.random.Generator, races: int) -> None:
    head(
        "False alarms where a drift is left in d (looks to 40)",
        "drift in d",
        "t mixture",
        "signed rank",
    )
    for correlation in (0.1, 0.3, 0.5, 0.8):
        d = drifting(rng, (races, 40), correlation)
        row(
            f"each execution resembles the last, correlation {correlation:g}",
            share(exclusions(d, 0.0, SEQUENTIAL, LOOKS_40).any(axis=1)),
            share(signed_rank_rejections(d).any(axis=1)),
        )
    for slope in (0.5, 1.0, 2.0):
        d = normal(rng, (races, 40)) + slope * np.linspace(-0.5, 0.5, 40)
        row(
            f"a straight trend of {slope:g} sd over 40 executions, mean 0",
            share(exclusions(d, 0.0, SEQUENTIAL, LOOKS_40).any(axis=1)),
            share(signed_rank_rejections(d).any(axis=1)),
        )


def coverage_at_stopping(rng: np.random.Generator, races: int) -> None:
    rules = {
        "precision 0.5 %": PairRule(precision=0.005),
        "margin 1 %": PairRule(margin=MARGIN),
        "margin 1 % or precision 0.5 %": PairRule(margin=MARGIN, precision=0.005),
    }
    head(
        "Coverage at stopping (0.8 % times the noise, budget 112 executions)",
        "noise of d",
        "true difference",
        "stops by",
        "coverage",
        "bias of the estimate",
        "stopped early",
        "median executions",
    )
    for name, law in INDEPENDENT_NOISE.items():
        for truth in (0.0, 0.005, 0.02):
            d = truth + 0.008 * law(rng, (races // 2, HORIZON))
            for label, rule in rules.items():
                ended = run_races(d, rule)
                row(
                    name,
                    f"{100 * truth:g} %",
                    label,
                    f"{100 * ended.covers(truth):.2f} %",
                    f"{100 * float(ended.mean.mean() - truth):+.3f} %",
                    share(ended.early),
                    int(np.median(ended.executions)),
                )


def power(rng: np.random.Generator, races: int) -> None:
    head(
        "Power: races in which 0 is excluded",
        "true difference / sd",
        "by 10",
        "by 20",
        "by 40",
        "by 112",
        "signed rank by 40",
        "one t interval at 40",
    )
    for ratio in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0):
        d = ratio + normal(rng, (races // 2, HORIZON))
        found = exclusions(d, 0.0, SEQUENTIAL, LOOKS)
        row(
            ratio,
            *(share(found[:, : LOOKS.index(n) + 1].any(axis=1)) for n in (10, 20, 40, 112)),
            share(signed_rank_rejections(d).any(axis=1)),
            share(exclusions(d, 0.0, FIXED, [40])),
        )


def suite_of(
    rng: np.random.Generator, shape: tuple[int, int, int], shared: float, own: float
) -> Floats:
    """d[study, workload, round]: a relink's effect that a round shares, and each race's own."""
    studies, _, rounds = shape
    return shared * rng.standard_normal((studies, 1, rounds)) + own * rng.standard_normal(shape)


def geomean_coverage(rng: np.random.Generator, studies: int) -> None:
    head(
        "Coverage of the suite's geometric mean (12 workloads; sd of a race 0.8 %)",
        "rounds",
        "sd shared by a round",
        "over rounds",
        "per-workload formula",
        "workloads stopped one by one",
    )
    for rounds in (8, 12, 16):
        for shared in (0.0, 0.004, 0.008):
            d = suite_of(rng, (studies, 12, rounds), shared, 0.008)
            mean, half = mean_and_half_width(round_geomeans(d), FIXED)
            se = np.sqrt((d.var(axis=2, ddof=1) / rounds).sum(axis=1)) / 12
            row(
                rounds,
                f"{100 * shared:g} %",
                share(np.abs(mean) <= half),
                share(np.abs(mean) <= 1.96 * se),
                share(stopped_one_by_one(rng, studies, shared)) if rounds == STOPPED_ROUNDS else "",
            )


def stopped_one_by_one(
    rng: np.random.Generator, studies: int, shared: float, truth: float = 0.01
) -> NDArray[np.bool_]:
    """Whether a geomean of workloads, each stopped when its own direction is clear, covers."""
    d = truth + suite_of(rng, (studies, 12, 40), shared, 0.008)
    estimate = np.empty((studies, 12))
    variance = np.empty((studies, 12))
    going = np.ones((studies, 12), dtype=np.bool_)
    for n in LOOKS_40:
        mean, half = mean_and_half_width(d[:, :, :n], SEQUENTIAL)
        estimate[going] = mean[going]
        variance[going] = (d[:, :, :n].var(axis=2, ddof=1) / n)[going]
        going &= np.abs(mean) <= half
    se = np.sqrt(variance.sum(axis=1)) / 12
    return np.asarray(np.abs(estimate.mean(axis=1) - truth) <= 1.96 * se)


def non_inferior_errors(rng: np.random.Generator, studies: int) -> None:
    head(
        "'No workload slower than 1 %' (50 workloads, 5 % level): shown in this share of studies",
        "truth",
        "sd of a race",
        "rounds",
        "shown",
        "Holm names no slower workload",
    )
    m = math.log1p(MARGIN)
    cases = {
        "one workload slower by the margin, others 5 % faster": (m, -0.05),
        "all slower by the margin": (m, m),
        "one workload 2 % slower, others equal": (math.log(1.02), 0.0),
        "all equal": (0.0, 0.0),
        "all 1 % faster": (-0.01, -0.01),
    }
    for name, (first, others) in cases.items():
        for own in (0.003, 0.008):
            for rounds in (3, 8, 12):
                truth = np.full((50, 1), others)
                truth[0] = first
                d = truth + suite_of(rng, (min(studies, 4000), 50, rounds), 0.0, own)
                shown = (upper_bounds(d, 0.95) < m).all(axis=1)
                row(name, f"{100 * own:g} %", rounds, share(shown), share(holm_silent(d)))


def holm_silent(d: Floats) -> NDArray[np.bool_]:
    """Studies in which Holm's list of slower workloads is empty."""
    n = d.shape[2]
    mean = d.mean(axis=2)
    p = two_sided_p(mean / (d.std(axis=2, ddof=1) / math.sqrt(n)), n - 1)
    adjusted = np.asarray([holm_adjusted(study) for study in p])
    return np.asarray(~((adjusted <= ALPHA) & (mean > 0)).any(axis=1))


def twin_errors(rng: np.random.Generator, studies: int) -> None:
    head(
        "Findings about an honest twin (8 rounds)",
        "workloads",
        "exits needed",
        "sd shared / own",
        "by exits",
        "by the geometric mean",
        "either",
    )
    for workloads in (5, 12, 50):
        for shared in (0.0, 0.5):
            d = suite_of(rng, (studies, workloads, 8), shared, 1.0)
            mean, half = mean_and_half_width(d, FIXED)
            needed = exits_for_finding(workloads)
            exits = (np.abs(mean) > half).sum(axis=1) >= needed
            g, g_half = mean_and_half_width(round_geomeans(d), FIXED)
            geomean = np.abs(g) > g_half
            row(workloads, needed, shared, share(exits), share(geomean), share(exits | geomean))


if __name__ == "__main__":
    main()
