"""Effects of axes against simulated rounds with known truth; bounds as in test_simulated_pairs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from ensign.model.comparisons import AxisChange, Effect, Size
from ensign.model.errors import InputError
from ensign.model.trials import Metric
from ensign.report.trade import pareto_front
from ensign.stats.factorial import Design, Levels, factorial_reading
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import SuiteRule

AXES = ("compiler", "optimization", "lto", "pgo")
REFERENCES = ("gcc", "-O2", "off", "off")
# As the builds of Redis: a full 2 × 2 × 2, and three more that hold some axes fixed.
POINTS: tuple[Levels, ...] = (
    *product(("gcc", "clang"), ("-O2", "-O3"), ("off", "full"), ("off",)),
    ("gcc", "-O3", "full", "on"),
    ("clang", "-O3", "full", "on"),
    ("gcc", "-O3", "off", "on"),
)
LTO = AxisChange("lto", "off", "full")
O3 = AxisChange("optimization", "-O2", "-O3")
PGO = AxisChange("pgo", "off", "on")
CLANG = AxisChange("compiler", "gcc", "clang")
RULE = SuiteRule(margin=0.01)


def name(point: Levels) -> str:
    return " ".join(point)


def design(points: tuple[Levels, ...] = POINTS) -> Design:
    return Design(AXES, REFERENCES, tuple((point, name(point)) for point in points))


def truth(point: Levels) -> float:
    """ln cost: each step has its own worth, and LTO is worth more at -O3."""
    compiler, level, lto, pgo = point
    total = -0.03 * (compiler == "clang") - 0.01 * (level == "-O3") - 0.05 * (pgo == "on")
    return total - (0.02 if level == "-O3" else 0.004) * (lto == "full")


def costs_of(y: np.ndarray, variants: tuple[str, ...], metric: Metric = Metric.CPU) -> RoundCosts:
    workloads = tuple(f"w{i}" for i in range(y.shape[1]))
    return RoundCosts(metric, variants, workloads, tuple(range(y.shape[2])), (), y)


def exact(points: tuple[Levels, ...] = POINTS, rounds: int = 4) -> RoundCosts:
    y = np.array([np.full((3, rounds), truth(point)) for point in points])
    return costs_of(y + np.linspace(0, 1, 3 * rounds).reshape(3, rounds), tuple(map(name, points)))


def log_ratio(effect: Effect) -> float:
    return math.log(effect.comparison.ratio)


def main_of(change: AxisChange, points: tuple[Levels, ...] = POINTS) -> Effect:
    reading = factorial_reading(exact(points), exact(points), design(points), RULE)
    return next(each for each in reading.main if each.changes == (change,))


def test_a_main_effect_averages_over_all_matched_pairs_and_no_others() -> None:
    assert main_of(LTO).groups == 5  # four without a profile, one with
    assert log_ratio(main_of(LTO)) == pytest.approx(-(3 * 0.02 + 2 * 0.004) / 5)
    assert main_of(CLANG).groups == 5
    assert log_ratio(main_of(CLANG)) == pytest.approx(-0.03)
    assert main_of(PGO).groups == 3
    assert log_ratio(main_of(PGO)) == pytest.approx(-0.05)


def test_an_effect_says_what_all_its_pairs_share() -> None:
    assert main_of(PGO).only == (("optimization", "-O3"),)
    assert main_of(O3).only == (("pgo", "off"),)
    assert main_of(LTO).only == ()


def test_without_matched_pairs_there_is_no_effect() -> None:
    points = (("gcc", "-O2", "off", "off"), ("clang", "-O3", "off", "off"))
    reading = factorial_reading(exact(points), exact(points), design(points), RULE)
    assert (reading.main, reading.conditional, reading.interactions) == ((), (), ())


def test_conditional_effects_are_those_of_one_value_and_of_single_pairs() -> None:
    reading = factorial_reading(exact(), exact(), design(), RULE)
    found = {each.given: each for each in reading.conditions_of(LTO)}
    at_o3, at_o2 = found[(O3.axis, "-O3"),], found[(O3.axis, "-O2"),]
    assert at_o3.groups == 3
    assert log_ratio(at_o3) == pytest.approx(-0.02)
    assert at_o2.groups == 2
    assert log_ratio(at_o2) == pytest.approx(-0.004)
    single = (("compiler", "gcc"), ("optimization", "-O3"), ("pgo", "off"))
    assert found[single].groups == 1
    with_profile = found[(PGO.axis, "on"),]  # one pair alone: said once
    assert with_profile.only == (("compiler", "gcc"), ("optimization", "-O3"))


def test_an_interaction_is_the_difference_of_matched_differences() -> None:
    reading = factorial_reading(exact(), exact(), design(), RULE)
    found = {each.changes: each for each in reading.interactions}
    both = found[O3, LTO]
    assert both.groups == 2
    assert log_ratio(both) == pytest.approx(-0.016)
    assert log_ratio(found[CLANG, LTO]) == pytest.approx(0)
    assert (O3, PGO) not in found  # no profile at -O2


def test_builds_of_one_point_are_averaged_and_one_variant_may_be_two_builds() -> None:
    points = (("gcc", "-O2", "off", "off"), ("gcc", "-O2", "off", "on"), ("gcc", "-O2", "off", "x"))
    y = np.array([np.zeros((1, 2)), np.full((1, 2), 0.1), np.full((1, 2), 0.3)])
    builds = ((points[0], "a"), (points[1], "b"), (points[1], "c"), (points[2], "a"))
    costs = costs_of(y, ("a", "b", "c"))
    reading = factorial_reading(costs, costs, Design(AXES, REFERENCES, builds), RULE)
    profiled, same = reading.main
    assert profiled.groups == 1
    assert log_ratio(profiled) == pytest.approx(0.2)
    assert (log_ratio(same), same.comparison.size, same.significant) == (0, Size.WITHIN, False)


def test_both_metrics_stand_beside_each_other() -> None:
    wall = exact()
    wall = costs_of(wall.y / 2, wall.variants, Metric.WALL)
    effect = factorial_reading(exact(), wall, design(), RULE).main[0]
    assert effect.other is not None
    assert effect.other.metric is Metric.WALL
    assert math.log(effect.other.ratio) == pytest.approx(log_ratio(effect) / 2)


def test_a_variant_that_was_not_raced_is_an_error() -> None:
    unknown = Design(AXES, REFERENCES, ((POINTS[0], name(POINTS[0])), (POINTS[1], "unknown")))
    with pytest.raises(InputError, match="unknown"):
        factorial_reading(exact(), exact(), unknown, RULE)


STUDIES, ROUNDS, WORKLOADS = 400, 8, 10


def simulated(seed: int, *, effects: bool) -> list[RoundCosts]:
    """Noise that a round's variants share, that a variant's workloads share, and of each alone.

    Workloads differ tenfold in noise, and in what a build does to them; the mean is the truth.
    """
    rng = np.random.default_rng(seed)
    variants = tuple(map(name, POINTS))
    true = np.array([truth(point) if effects else 0.0 for point in POINTS])
    scale = np.geomspace(0.002, 0.02, WORKLOADS)[:, None]
    own = rng.normal(0, 0.01, (len(POINTS), WORKLOADS, 1))
    own -= own.mean(axis=1, keepdims=True)
    found = []
    for _ in range(STUDIES):
        y = true[:, None, None] + own + rng.normal(8, 1, (WORKLOADS, 1))
        y = y + rng.normal(0, 0.1, ROUNDS) + rng.normal(0, 0.004, (len(POINTS), 1, ROUNDS))
        found.append(costs_of(y + scale * rng.standard_normal(y.shape), variants))
    return found


def test_intervals_of_every_kind_of_effect_cover_the_truth() -> None:
    readings = [factorial_reading(c, c, design(), RULE) for c in simulated(1, effects=True)]
    exactly = factorial_reading(exact(), exact(), design(), RULE)
    for kind in ("main", "conditional", "interactions"):
        for place, known in enumerate(getattr(exactly, kind)):
            found = [getattr(reading, kind)[place].comparison for reading in readings]
            held = [one.low <= known.comparison.ratio <= one.high for one in found]
            # Five standard errors of 400 studies are 5.5 points.
            assert np.mean(held) == pytest.approx(0.95, abs=0.05), (kind, known)


def test_subtracting_two_intervals_would_not_do() -> None:
    """Half-widths added as if independent: round noise that cancels makes them far too wide."""
    found = []
    for costs in simulated(2, effects=True)[:100]:
        reading = factorial_reading(costs, costs, design(), RULE)
        effect = next(each for each in reading.main if each.changes == (LTO,)).comparison
        g = costs.y.mean(axis=1)
        variants = [costs.variants.index(name(p)) for p in (POINTS[0], POINTS[1])]
        independent = math.sqrt(float(g[variants].var(axis=1, ddof=1).sum()) / ROUNDS)
        found.append(independent / (math.log(effect.high / effect.low) / 2))
    assert np.median(found) > 5


def test_at_most_one_study_in_twenty_names_an_effect_where_there_is_none() -> None:
    readings = [factorial_reading(c, c, design(), RULE) for c in simulated(3, effects=False)]
    for kind in ("main", "conditional", "interactions"):
        wrong = [any(each.significant for each in getattr(reading, kind)) for reading in readings]
        assert np.mean(wrong) < 0.05 + 0.05, kind


def test_one_round_gives_no_interval_and_names_nothing() -> None:
    reading = factorial_reading(exact(rounds=1), exact(rounds=1), design(), RULE)
    assert all(each.comparison.high == math.inf and not each.significant for each in reading.main)


def test_the_front_is_what_nothing_else_beats() -> None:
    costs = [(1.0, 5.0), (2.0, 4.0), (2.0, 5.0), (3.0, 3.0), (3.0, 3.0), (4.0, 3.0)]
    assert pareto_front(costs) == (0, 1, 3, 4)
    assert pareto_front([]) == ()
