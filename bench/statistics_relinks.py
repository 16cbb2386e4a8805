"""Coverage of what a study says of relinks, by simulation with known truth.

python bench/statistics_relinks.py [--studies 2000]
The intervals of the mean, each variant's own spread, and the prediction of a fresh link: the tables
of bench/results/relinks.md, of which docs/background/statistics/layouts.md has the least. A cell
has the least and the greatest rate over variants of equal and unequal standard deviations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensign.model.trials import TWIN, Metric
from ensign.stats.layouts import by_relink
from ensign.stats.pair import PairRule, Rule, mean_and_half_width
from ensign.stats.rounds import RoundCosts
from ensign.stats.variance_components import fresh_link, own_spread

Floats = NDArray[np.float64]

RULE = PairRule(rule=Rule.T)
# Of the variants' spread between layouts, in that of the baseline: two to five variants.
PATTERNS = ((1.0,), (0.2,), (4.0,), (1.0, 0.3), (0.3, 0.3, 3.0), (1.0, 0.2, 0.5, 2.0))
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
RELINKS = (2, 3, 4, 6, 8, 12, 20, 30)
PER_RELINK = (1.0, 1.5, 2.0, 3.0)
Rates = Callable[["Design", Floats, np.random.Generator], list[float]]
_AT_ONCE = 100  # studies, which then fit into the caches
DRIFT = 0.5  # of a round, in standard deviations of one execution of the baseline


@dataclass(frozen=True, slots=True)
class Design:
    """A study; `share` is that of layouts in the variance of an execution of the baseline."""

    relinks: int
    rounds: int
    share: float
    pattern: tuple[float, ...]
    workloads: int = 1
    own_twin: bool = True

    @property
    def layout_sds(self) -> Floats:
        """Between layouts: of the baseline, its twin, and the variants."""
        return np.asarray(np.sqrt(self.share) * np.array([1.0, 1.0, *self.pattern]))

    @property
    def execution_sd(self) -> float:
        """Of all variants."""
        return float(np.sqrt(1 - self.share))

    def drawn(self, rng: np.random.Generator, studies: int) -> Floats:
        """y[study, variant, workload, round].

        A layout moves workloads together by the half of its variance. Every other variant races in
        a second group; what is compared is `stats.trials.log_cost`.
        """
        n, used = len(self.layout_sds), np.arange(self.rounds) % self.relinks
        shape = (studies, n, self.workloads, self.relinks)
        places = rng.normal(0, 1, shape)
        if self.workloads > 1:
            together = rng.normal(0, 1, (studies, n, 1, self.relinks))
            places = (places + together) / np.sqrt(2)
        if not self.own_twin:
            places[:, 1] = np.roll(places[:, 0], -1, axis=-1)
        y = (places * self.layout_sds[:, None, None])[..., used]
        y = y + rng.normal(0, DRIFT, (studies, 1, self.workloads, self.rounds))
        noise = rng.normal(0, self.execution_sd, y.shape)
        y = np.asarray(y + noise)
        for variant in range(3, n, 2):
            # Raced in a second group, with executions of its own of the same two copies.
            copies = rng.normal(0, self.execution_sd, noise[:, :2].shape)
            y[:, variant] += (noise[:, :2] - copies).mean(axis=1)
        return y


def main(argv: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000, help="simulated studies per cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--relinks", type=int, nargs="+", default=RELINKS)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    for table in options.tables:
        title, rates = TABLES[table]
        print(f"## {title}\n")
        print(f"| relinks | rounds | {' | '.join(f'{share:.0%}' for share in SHARES)} |")
        print(f"| --- | --- |{' --- |' * len(SHARES)}")
        for relinks in options.relinks:
            for times in PER_RELINK:
                rounds = round(relinks * times)
                cells = [
                    _cell(rng, options.studies, rates, Design(relinks, rounds, share, (1.0,)))
                    for share in SHARES
                ]
                print(f"| {relinks} | {rounds} | {' | '.join(cells)} |", flush=True)
        print()
    if "means" in options.tables:
        same_relinks(rng, options.studies)


def _cell(
    rng: np.random.Generator,
    studies: int,
    rates: Rates,
    of: Design,
) -> str:
    found: list[float] = []
    workloads = 3 if rates is means else 1
    # A prediction knows of no other variant.
    for pattern in PATTERNS[:3] if rates is fresh else PATTERNS:
        design = Design(of.relinks, of.rounds, of.share, pattern, workloads)
        found += rates(design, design.drawn(rng, studies), rng)
    return f"{100 * min(found):.1f} to {100 * max(found):.1f}"


def means(design: Design, y: Floats, _: np.random.Generator) -> list[float]:
    """Of each variant and the twin, and of pairs of variants, which race in two groups."""
    rates = []
    for values in (y.mean(axis=2, keepdims=True), y):
        of = _columns(values, design)
        rates += [_covers(of.log_ratios(name, "0")) for name in of.compared]
        rates.append(_covers(of.log_ratios(TWIN, "0")))
        if len(of.compared) > 1:
            pairs = zip(of.compared, of.compared[1:], strict=False)
            rates += [_covers(of.log_ratios(a, b)) for a, b in pairs]
    return rates


def _columns(y: Floats, design: Design, *, counted: bool = True) -> RoundCosts:
    """All studies as workloads of one; the first copy is called 0, the second is the twin."""
    n = y.shape[1]
    names = ("0", TWIN, *(str(each) for each in range(2, n)))
    flat = np.moveaxis(y, 1, 0).reshape(n, -1, design.rounds)
    rounds = tuple(range(design.rounds))
    workloads = tuple(map(str, range(flat.shape[1])))
    costs = RoundCosts(Metric.CPU, names, workloads, rounds, (), flat)
    return by_relink(costs, design.relinks, twin_apart=design.own_twin or not counted)


def _covers(d: Floats) -> float:
    mean, half = mean_and_half_width(d, RULE)
    return float((np.abs(mean) <= half).mean())


def own(design: Design, y: Floats, _: np.random.Generator) -> list[float]:
    """Of each variant; where each relink ran once, of layouts and executions together."""
    rounds = tuple(range(design.rounds))
    found = own_spread(y[:, :, 0], rounds, design.relinks, 0.95)
    if found is None:
        raise AssertionError
    truth = design.layout_sds
    if found.executions is None:
        truth = np.hypot(truth, design.execution_sd)
    tiny = 1e-12
    return list(((found.low <= truth + tiny) & (truth <= found.high + tiny)).mean(axis=0))


def fresh(design: Design, y: Floats, rng: np.random.Generator) -> list[float]:
    """Of each variant: whether the true ratio of one more pair of links lies in the interval."""
    rounds, rates = tuple(range(design.rounds)), []
    for variant, sd in enumerate(design.layout_sds[2:], start=2):
        inside = 0
        for start in range(0, len(y), _AT_ONCE):
            part = y[start : start + _AT_ONCE, :, 0]
            first, second = part[:, 0], part[:, 1]
            d = part[:, variant] - (first + second) / 2
            found = fresh_link(d, second - first, rounds, design.relinks)
            if found is None:
                raise AssertionError
            truth = rng.normal(0, np.hypot(sd, design.layout_sds[0]), len(part))
            inside += int(((found.low <= truth) & (truth <= found.high)).sum())
        rates.append(inside / len(y))
    return rates


def same_relinks(rng: np.random.Generator, studies: int) -> None:
    """The mean's interval where the twin has the baseline's relinks in another turn."""
    print("## The twin has the baseline's relinks in another turn\n")
    print("| relinks | share of layouts | both copies | the baseline alone |")
    print("| --- | --- | --- | --- |")
    for relinks in (3, 8):
        for share in (0.5, 1.0):
            design = Design(relinks, 2 * relinks, share, (0.2,), own_twin=False)
            y = design.drawn(rng, studies)
            rates = (
                _covers(_columns(y, design, counted=counted).log_ratios("2", "0"))
                for counted in (False, True)
            )
            print(f"| {relinks} | {share:.0%} | {' | '.join(f'{100 * r:.1f} %' for r in rates)} |")


TABLES: dict[str, tuple[str, Rates]] = {
    "means": ("Interval of the mean (95 %), geometric mean and single workloads", means),
    "own": ("Own standard deviation between layouts (95 %)", own),
    "fresh": ("Fresh link (90 %)", fresh),
}

if __name__ == "__main__":
    main()
