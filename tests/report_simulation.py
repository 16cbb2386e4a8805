"""A simulated study of 24 builds on 50 workloads, read by the statistics as a real one is."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

import report_data
from ensign.experiment.study.result import design_of
from ensign.model.builds import BuildFacts, BuildStatus, CheckStatus
from ensign.model.results import LayoutFacts, LayoutSplit, LayoutSpread, Result, WorkloadComparison
from ensign.model.trials import Metric
from ensign.model.variants import Variant
from ensign.stats.factorial import factorial_reading
from ensign.stats.holm import significant_workloads
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import (
    SuiteRule,
    band_edges,
    compare_suite,
    compare_workloads,
    variant_bands,
)
from ensign.variants.expand import named

TWIN = "twin"
ROUNDS = 8
_MATERIAL = (
    "set", "get", "incr", "lpush", "rpush", "lpop", "sadd", "hset", "zadd", "lrange", "mset",
    "zrange", "hgetall", "sinter", "xadd", "expire", "append",
)  # fmt: skip
WORKLOADS = tuple(f"{name}{how}" for how in ("", "-1kib", "-pipeline-16") for name in _MATERIAL)[
    :50
]


def every_variant() -> tuple[Variant, ...]:
    """Three compilers, two levels, LTO; profiles, dependencies, hardening: 24 in all."""
    grid = [
        Variant("", compiler, level, lto)
        for compiler, level, lto in product(
            ("gcc-12", "gcc-11", "clang-19"), ("-O2", "-O3"), ("off", "full")
        )
    ]
    extra = [
        Variant("", compiler, "-O3", lto, pgo="on", bolt=bolt)
        for compiler in ("gcc-12", "clang-19")
        for lto, bolt in (("off", "off"), ("full", "off"), ("full", "on"))
    ]
    extra += [
        Variant("", compiler, "-O3", "full", dependencies="flags")
        for compiler in ("gcc-12", "clang-19")
    ]
    hardened = [
        Variant("", "gcc-12", "-O2", hardening=option)
        for option in ("canary", "fortify", "pie", "openssf")
    ]
    return named([*grid, *extra, *hardened])


def true_log_cost(variant: Variant) -> float:
    """What each choice is worth; LTO is worth more at -O3, and -O3 nothing with Clang."""
    gcc = variant.compiler.startswith("gcc")
    high = variant.optimization == "-O3"
    cost = {"gcc-12": 0.0, "gcc-11": 0.006, "clang-19": -0.012}[variant.compiler]
    cost -= 0.009 * (high and gcc)
    cost -= (0.019 if high else 0.002) * (variant.lto == "full")
    cost -= 0.07 * (variant.pgo == "on") + 0.012 * (variant.bolt == "on")
    hardening = {"default": 0.0, "canary": 0.006, "fortify": 0.0005, "pie": 0.011, "openssf": 0.034}
    return cost + hardening[variant.hardening]


def rounds(rng: np.random.Generator, scale: float, metric: Metric) -> RoundCosts:
    """Costs of every build and the twin; `scale` of the truth is in this metric."""
    all_variants = every_variant()
    true = np.array([*map(true_log_cost, all_variants), 0.0]) * scale
    own = rng.normal(0, 0.02, (true.size, len(WORKLOADS), 1)) * (true != 0)[:, None, None]
    base = np.log(rng.uniform(800, 30_000, (len(WORKLOADS), 1)))
    noise = rng.normal(0, 0.006, (true.size, len(WORKLOADS), ROUNDS))
    shared = rng.normal(0, 0.002, (true.size, 1, ROUNDS))
    y = base + true[:, None, None] * (1 + 8 * own) + own + noise + shared
    variants = (*(variant.name for variant in all_variants), TWIN)
    return RoundCosts(metric, variants, WORKLOADS, tuple(range(ROUNDS)), (), y)


def build(variant: Variant, rng: np.random.Generator) -> BuildFacts:
    high, lto = variant.optimization == "-O3", variant.lto == "full"
    size = 7_000_000 * (1 + 0.08 * high - 0.11 * lto + 0.3 * (variant.bolt == "on"))
    size *= rng.uniform(0.98, 1.02)
    build_s = 35 * (1 + 0.2 * high + 1.1 * lto + 2.2 * (variant.pgo == "on"))
    flags = (variant.optimization, *(("-flto",) if lto else ()))
    return BuildFacts(
        variant=variant.name, choices=variant.choices, compiler=variant.compiler, flags=flags,
        link_flags=flags if lto else (), status=BuildStatus.BUILT,
        build_s=build_s * rng.uniform(0.95, 1.05) + 20 * (variant.bolt == "on"),
        size_bytes=int(size), text_bytes=int(size * 0.3), loadable_sha256="9f" * 32,
        check=CheckStatus.PASSED,
    )  # fmt: skip


@cache
def simulated_study() -> Result:
    """The study as its report gets it; every number follows from the seed."""
    rng = np.random.default_rng(11)
    costs, wall = rounds(rng, 1.0, Metric.CPU), rounds(rng, 0.6, Metric.WALL)
    rule = SuiteRule(margin=report_data.MARGIN)
    builds = tuple(build(variant, rng) for variant in every_variant())
    baseline, *others = costs.variants
    edges = band_edges(report_data.MARGIN)
    share = {name: rng.uniform(0.35, 0.85) for name in WORKLOADS}
    return report_data.study(
        builds=builds,
        baseline=baseline,
        suite=tuple(compare_suite(costs, variant, baseline, rule) for variant in others),
        workloads=tuple(
            WorkloadComparison(workload, one, 9_000.0, 9_000.0 * one.ratio, share[workload])
            for variant in others
            for workload, one in compare_workloads(costs, variant, baseline, rule)
        ),
        workload_names=WORKLOADS,
        commands=tuple((name, f"redis-benchmark -p {{port}} {name}") for name in WORKLOADS),
        bands=tuple(variant_bands(costs, variant, baseline, edges) for variant in others),
        significant=tuple(significant_workloads(costs, variant, baseline) for variant in others),
        factorial=factorial_reading(
            costs, wall, design_of(builds, costs.variants[:-1], ()), rule
        ),
        layouts=LayoutFacts(
            raced=0,
            kind="object order and padding",
            splits=(LayoutSplit(baseline, 8, 24, 0.006, 0.011, 0.004),),
            spreads=(LayoutSpread("", 8, 0.994, 1.006, 0.984, 1.014),),
        ),
        findings=(),
        rounds_done=ROUNDS,
        rounds_planned=ROUNDS,
        title="Redis 7.0.15: compilers, levels, LTO, profiles, hardening",
    )  # fmt: skip
