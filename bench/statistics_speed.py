"""Time of the statistics on a million samples.

python bench/statistics_speed.py --samples 1000000
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

from ensign.model.trials import Metric
from ensign.stats.pair import PairNames, PairRule, Rule, compare
from ensign.stats.rounds import RoundCosts
from ensign.stats.stopping import signed_rank_p
from ensign.stats.suite import SuiteRule, compare_suite, compare_workloads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    print(f"| on {options.samples} samples | ms |")
    print("| --- | --- |")
    for row in measure(options.samples, options.seed):
        print(f"| {row['what']} | {row['ms']:.1f} |")


def measure(samples: int = 1_000_000, seed: int = 1) -> list[dict[str, object]]:
    """Milliseconds of each statistic on that many samples."""
    rng = np.random.default_rng(seed)
    d: list[float] = rng.normal(0.001, 0.01, samples).tolist()
    names = PairNames("variant", "baseline", Metric.CPU)
    costs = suite_costs(rng, samples)
    tasks: dict[str, Callable[[], object]] = {
        "one pair, sequential interval": lambda: compare(names, d, PairRule(margin=0.01)),
        "one pair, t interval": lambda: compare(names, d, PairRule(rule=Rule.T)),
        "signed rank": lambda: signed_rank_p(d),
        "suite: geometric mean and no-slower claim": lambda: compare_suite(
            costs, "variant", "baseline", SuiteRule(margin=0.01)
        ),
        "suite: every workload": lambda: compare_workloads(
            costs, "variant", "baseline", SuiteRule()
        ),
    }
    compare(names, [0.0, 0.1, 0.2], PairRule(rule=Rule.T))
    return [{"what": name, "ms": 1000 * seconds_of(task)} for name, task in tasks.items()]


def suite_costs(rng: np.random.Generator, samples: int) -> RoundCosts:
    """Two variants, 50 workloads, as many rounds as give that many costs."""
    rounds = max(2, samples // 100)
    return RoundCosts(
        metric=Metric.CPU,
        variants=("baseline", "variant"),
        workloads=tuple(f"workload-{w}" for w in range(50)),
        rounds=tuple(range(rounds)),
        left_out=(),
        y=rng.normal(10.0, 0.01, (2, 50, rounds)),
    )


def seconds_of(task: Callable[[], object]) -> float:
    """Best of three, which is the time without the machine's own noise."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
