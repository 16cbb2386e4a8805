"""Invented results, realistic and extreme, for the tests of every renderer."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from ensign.model.builds import BuildError, BuildFacts, BuildStatus
from ensign.model.comparisons import Comparison, Direction, OtherMetric, Size, TimeShares
from ensign.model.curves import Crossover, Curve, CurvePoint, CurveSet, Extremes
from ensign.model.findings import Finding, Severity
from ensign.model.results import (
    Causes,
    CauseShare,
    CodeLine,
    Confirmation,
    FunctionCost,
    FunctionCosts,
    LatencyComparison,
    LayoutFacts,
    LayoutSplit,
    LayoutSpread,
    MachineFacts,
    Result,
    SignificantWorkloads,
    Spread,
    Stopped,
    SuiteComparison,
    VariantBands,
    VariantFacts,
    VariantLayouts,
    WorkloadComparison,
)
from ensign.model.trials import Better, Metric, Mode, NamedScore, SliceRecord, Trial, VariantTotals
from ensign.stats.suite import band_edges, count_bands

MARGIN = 0.01
HOSTILE = '<script>alert("x")</script>'
WORKLOADS = (
    "set", "get", "incr", "lpush", "rpush", "lpop", "sadd", "hset", "zadd", "lrange_100",
    "mset", "set-pipeline-16", "get-pipeline-16", "set-1kib",
)  # fmt: skip
TRUTH = {
    "clang-19-O3-lto": 0.961,
    "gcc-12-O3-lto": 0.978,
    "clang-19-O3": 0.984,
    "clang-19-O2": 0.996,
    "gcc-12-O3": 1.002,
    "gcc-11-Os": 1.083,
}
MACHINE = MachineFacts(
    (
        ("CPU", "Intel Xeon Platinum 8375C @ 2.90 GHz, 2 of 2 cores"),
        ("microcode", "0xd0003a5"),
        ("mitigations", "spectre_v2: Enhanced IBRS; meltdown: not affected"),
        ("governor", "unknown (virtual machine)"),
        ("ASLR", "full"),
        ("huge pages", "madvise"),
        ("steal time", "0.4 %"),
    )
)


SPREAD = LayoutFacts(
    raced=0,
    kind="object order and padding",
    splits=(LayoutSplit("gcc-12-O2", 8, 24, 0.012, 0.021, 0.004),),
    spreads=(
        LayoutSpread("", 8, 0.99, 1.02, 0.975, 1.03),
        LayoutSpread("set", 8, 0.98, 1.01, 0.96, 1.04),
    ),
)


def comparison(  # noqa: PLR0913
    variant: str,
    log_ratio: float,
    half: float,
    *,
    executions: int = 8,
    margin: float | None = MARGIN,
    baseline: str = "gcc-12-O2",
    metric: Metric = Metric.CPU,
) -> Comparison:
    """A comparison with the interval log_ratio ± half; its statements follow from that."""
    low, high = math.exp(log_ratio - half), math.exp(log_ratio + half)
    direction = Direction.FASTER if high < 1 else Direction.SLOWER if low > 1 else Direction.UNCLEAR
    size = None
    if margin is not None:
        limit = math.log1p(margin)
        inside = max(abs(log_ratio - half), abs(log_ratio + half)) < limit
        outside = log_ratio - half > limit or log_ratio + half < -limit
        size = Size.WITHIN if inside else Size.BEYOND if outside else Size.UNCLEAR
    beside = None
    if metric is Metric.CPU:
        wall = comparison(
            variant,
            log_ratio * 0.9,
            half * 1.6,
            margin=margin,
            baseline=baseline,
            metric=Metric.WALL,
        )
        beside = OtherMetric(wall, baseline=TimeShares(0.98, 0.2), variant=TimeShares(0.98, 0.21))
    return Comparison(
        variant, baseline, metric, math.exp(log_ratio), low, high, 0.95, direction, size,
        executions, "t", correlation=0.1, beside=beside,
    )  # fmt: skip


def unbounded(variant: str, executions: int = 2) -> Comparison:
    """Too few executions for an interval."""
    return Comparison(
        variant, "gcc-12-O2", Metric.CPU, 0.97, 0.0, math.inf, 0.95, Direction.UNCLEAR,
        Size.UNCLEAR, executions,
    )  # fmt: skip


_TOLD = BuildError("", 0, "unable to execute command: ld.lld")


def build(variant: str, status: str = "built", log_tail: str = "") -> BuildFacts:
    compiler, _, rest = variant.partition("-O")
    flags = ("-O" + rest.split("-")[0], *(("-flto",) if "lto" in variant else ()))
    failed = status == "failed"
    same_as = status.removeprefix("same as ") if status.startswith("same as ") else ""
    return BuildFacts(
        variant=variant,
        choices=(("compiler", compiler), ("optimization", flags[0])),
        compiler=compiler,
        flags=flags,
        link_flags=flags if "lto" in variant else (),
        status=BuildStatus.SAME if same_as else BuildStatus(status),
        same_as=same_as,
        build_s=41.3,
        size_bytes=0 if failed else 7_654_321,
        text_bytes=0 if failed else 2_123_456,
        loadable_sha256="" if failed else "9f" * 32,
        log_path=f".ensign/redis-quick/builds/{variant}.log",
        log_tail=log_tail,
        error=_TOLD if failed else None,
    )


def study(
    truth: dict[str, float] | None = None,
    names: tuple[str, ...] = WORKLOADS,
    **changes: object,
) -> Result:
    """A study of invented variants; every number follows from the seed."""
    draw = random.Random(7)  # noqa: S311
    truth = TRUTH if truth is None else truth
    variants = {**truth, "twin": 1.0}
    rows = []
    for workload in names:
        base = draw.uniform(800, 30_000)
        for variant, ratio in variants.items():
            spread = 0.0 if variant == "twin" else draw.gauss(0, 0.018)
            true = math.log(ratio) + spread + draw.gauss(0, 0.0015)
            entry = comparison(variant, true, draw.uniform(0.003, 0.008))
            cost = base * entry.ratio
            rows.append(WorkloadComparison(workload, entry, base, cost, draw.uniform(0.4, 0.8)))
    suite = tuple(_suite(variant, math.log(ratio), rows) for variant, ratio in variants.items())
    edges = band_edges(MARGIN)
    failed = "clang: error: unable to execute command: ld.lld\nmake: *** [all] Error 1"
    fields: dict[str, object] = {
        "name": "redis-quick",
        "title": "Redis 7.0.15: compiler, optimization level and LTO",
        "question": "Do more aggressive default flags, or another compiler, make Redis faster?",
        "baseline": "gcc-12-O2",
        "twin": "twin",
        "metric": Metric.CPU,
        "margin": MARGIN,
        "level": 0.95,
        "rounds_done": 8,
        "rounds_planned": 8,
        "racing_s": 287.0,
        "mode": Mode.INTERLEAVED,
        "slice_ns": 5_000_000,
        "freezer": "cgroup",
        "running_share": 0.982,
        "builds": (
            build("gcc-12-O2", "cached"),
            *(build(name) for name in truth),
            build("gcc-12-O2-fno-plt", "same as gcc-12-O2"),
            build("clang-14-O3-lto", "failed", failed),
        ),
        "suite": suite,
        "workloads": tuple(rows),
        "workload_names": names,
        "commands": tuple(
            (name, f"redis-benchmark -p {{port}} -t {name} -n 200000 -r 100000 -c 50 -q")
            for name in names
        ),
        "machine": MACHINE,
        "findings": (
            Finding(
                "same-bytes", Severity.NOTE, "the same bytes as gcc-12-O2: no effect on the binary",
                "gcc-12-O2-fno-plt",
            ),
            Finding(
                "few-decide", Severity.WARNING, "a few executions decide this", "clang-19-O2, mset"
            ),
        ),
        "toolchains": (("gcc-12", "12.2.0-14"), ("clang-19", "19.1.7-3")),
        "source": (("package", "redis 7.0.15"), ("sha256", "98066f53" * 8)),
        "version": "0.1.0",
        "made_at": "2025-11-21 05:10 UTC",
        "band_edges": edges,
        "significant": tuple(_named(variant, rows) for variant in variants),
        "bands": tuple(_bands(variant, rows, edges) for variant in variants),
        "extra": {"redo": "ensign run studies/redis/quick.toml"},
    }  # fmt: skip
    return Result(**{**fields, **changes})  # type: ignore[arg-type]


def latencies(names: tuple[str, ...] = ("get", "set")) -> tuple[LatencyComparison, ...]:
    """Two variants and the twin; the further out the percentile, the less is known of it."""
    variants = {"clang-19-O3-lto": -0.04, "gcc-11-Os": 0.08, "twin": 0.001}
    halves = {"p50": 0.005, "p95": 0.01, "p99": 0.03, "p999": 0.12}
    return tuple(
        LatencyComparison(
            name, percentile, comparison(variant, true, half), 2e5 * place, 2e5 * place * (1 + true)
        )
        for name in names
        for place, (percentile, half) in enumerate(halves.items(), start=1)
        for variant, true in variants.items()
    )


def confirmed_study(**changes: object) -> Result:
    """A study whose two best variants were confirmed, one of which is not faster after all."""
    second = study(
        {"clang-19-O3-lto": 0.968, "gcc-12-O3-lto": 0.999}, WORKLOADS[:3], level=0.975,
        rounds_done=16, rounds_planned=16, findings=(),
    )  # fmt: skip
    fields: dict[str, object] = {
        "finalists": ("clang-19-O3-lto", "gcc-12-O3-lto"), "rounds": 16, "rounds_done": 16,
        "level": 0.975, "plan_sha256": "ab" * 32, "fresh": ("executions", "relinks"),
        "result": second,
    }  # fmt: skip
    phase = Confirmation(**{**fields, **changes})  # type: ignore[arg-type]
    explored = study(names=WORKLOADS[:3], rounds_done=7, significant=(), confirmation=phase)
    suite = (replace(entry, non_inferior=None, not_shown=()) for entry in explored.suite)
    return replace(explored, suite=tuple(suite))


def _suite(variant: str, true: float, rows: list[WorkloadComparison]) -> SuiteComparison:
    mine = [row for row in rows if row.comparison.variant == variant]
    entry = comparison(variant, true + 0.0007, 0.0035)
    late = tuple(row.workload for row in mine if row.comparison.high > 1 + MARGIN)
    if variant == "twin":
        return SuiteComparison(entry, len(mine))
    return SuiteComparison(entry, len(mine), not late, late)


def _bands(variant: str, rows: list[WorkloadComparison], edges: tuple[float, ...]) -> VariantBands:
    mean = [1 / row.comparison.ratio - 1 for row in rows if row.comparison.variant == variant]
    least = [speedup - 0.006 for speedup in mean]
    return VariantBands(variant, count_bands(mean, edges), count_bands(least, edges))


def _named(variant: str, rows: list[WorkloadComparison]) -> SignificantWorkloads:
    mine = [row for row in rows if row.comparison.variant == variant]
    return SignificantWorkloads(
        variant,
        tuple(row.workload for row in mine if row.comparison.ratio > 1.02),
        tuple(row.workload for row in mine if row.comparison.ratio < 0.98),
    )


def huge_study() -> Result:
    """26 variants on 50 workloads."""
    names = {f"{cc}-O{level}{lto}{extra}": 0.9 + 0.01 * index for index, (cc, level, lto, extra) in
             enumerate((cc, level, lto, extra)
                       for cc in ("gcc-9", "gcc-11", "clang-14") for level in (2, 3)
                       for lto in ("", "-lto") for extra in ("", "-dependencies"))}  # fmt: skip
    names |= {"icx-2025-O3-fast-pgo-bolt": 0.84, "gcc-14-march-x86-64-v4": 1.3}
    return study(names, tuple(f"memtier-1key-set-{i}kib-pipeline-{i % 16}" for i in range(50)))


def extreme_study() -> Result:
    """Hostile and very long names, no intervals, huge differences, nothing finished."""
    long_name = "clang-19-O3-lto-" + "very-long-extra-flag-" * 8
    variants = (
        comparison(HOSTILE, math.log(0.3), 0.05),
        comparison(long_name, math.log(4.0), 0.9),
        unbounded("few\x1b[31mred\u202e"),
        comparison("tiny", 0.00002, 0.00001),
        unbounded("twin"),
    )
    workload = "w" * 120 + HOSTILE
    return study(
        suite=tuple(SuiteComparison(variant, 1) for variant in variants),
        significant=tuple(
            SignificantWorkloads(variant.variant, (workload,), ()) for variant in variants
        ),
        bands=tuple(
            VariantBands(variant.variant, (1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0))
            for variant in variants
        ),
        workloads=tuple(
            WorkloadComparison(workload, variant, 0.0, 1e12, math.nan) for variant in variants
        ),
        workload_names=(workload,),
        commands=((workload, "a" * 300 + HOSTILE),),
        title=HOSTILE,
        question=HOSTILE + " | `x` *y* [z](http://evil.example)",
        builds=(build(HOSTILE), build(long_name, "failed", HOSTILE * 3 + "\n\x1b[2J")),
        findings=(Finding("bad", Severity.ERROR, HOSTILE, HOSTILE),),
        machine=MachineFacts(((HOSTILE, HOSTILE),)),
        rounds_done=2,
        extra={"redo": HOSTILE},
    )


def empty_study() -> Result:
    """Nothing was raced: every build failed."""
    return study(
        suite=(), workloads=(), bands=(), significant=(), rounds_done=0,
        running_share=math.nan, racing_s=0.0,
        builds=(build("gcc-12-O2"), build("gcc-12-O3", "failed", "error")),
    )  # fmt: skip


def variant(name: str, seconds: float = 0.8, ratios: tuple[float, ...] = ()) -> VariantFacts:
    wall = Spread(seconds + 0.05, 0.012, seconds + 0.04, seconds + 0.09)
    return VariantFacts(
        name, "", seconds, 0.031, wall, 3_565_158, (seconds + 0.031) * 1e9, 1.0, ratios, (0,) * 5,
        shares=TimeShares(0.95, 0.037, taken=0.01),
    )  # fmt: skip


def compared(**changes: object) -> Result:
    """Two commands, the new one faster."""
    ratios = (-0.032, -0.030, -0.029, -0.031, -0.033)
    fields: dict[str, object] = {
        "name": "compare",
        "title": "new against old",
        "question": "",
        "baseline": "old",
        "twin": "twin",
        "metric": Metric.CPU,
        "margin": None,
        "level": 0.95,
        "rounds_done": 5,
        "rounds_planned": 5,
        "racing_s": 12.9,
        "mode": Mode.INTERLEAVED,
        "slice_ns": 5_000_000,
        "freezer": "cgroup",
        "running_share": 0.981,
        "builds": (),
        "suite": compared_rows(
            comparison("new", -0.031, 0.004, margin=None, baseline="old"),
            comparison("twin", 0.0005, 0.0025, margin=None, baseline="old"),
        ),
        "workloads": (),
        "workload_names": ("",),
        "commands": (("old", "./prog-old input"), ("new", "./prog-new input")),
        "machine": MACHINE,
        "findings": (
            Finding("outputs-differ", Severity.WARNING, "its output is not that of old", "new"),
        ),
        "toolchains": (),
        "source": (),
        "version": "0.1.0",
        "made_at": "2025-11-21 05:10 UTC",
        "measured": (
            variant("old"),
            variant("new", 0.775, ratios),
            variant("twin", 0.801, (0.001, -0.001, 0.0005, 0.002, -0.0012)),
        ),
        "precision": 0.005,
        "stopped": Stopped.PRECISION,
        "budget_s": 30.0,
        "used_s": 13.4,
        "seed": 1,
        "trials": (trial(),),
        "extra": {"redo": "ensign compare './prog-old input' './prog-new input'"},
    }
    return Result(**{**fields, **changes})  # type: ignore[arg-type]


def compared_rows(*rows: Comparison) -> tuple[SuiteComparison, ...]:
    """Of commands, on one workload."""
    return tuple(SuiteComparison(row, 1) for row in rows)


def compared_several() -> Result:
    """Four variants and a margin: every statement once; the twin is off."""
    rows = (
        comparison("quick", -0.40, 0.004, baseline="old"),
        comparison("half", -0.80, 0.02, baseline="old"),
        comparison("alike", 0.001, 0.004, baseline="old"),
        comparison("a-little-slower", 0.004, 0.003, baseline="old"),
        comparison("who-knows", 0.004, 0.03, baseline="old"),
    )
    names = ("old", *(row.variant for row in rows))
    return compared(
        suite=compared_rows(*rows, comparison("twin", 0.004, 0.002, baseline="old")),
        measured=(variant("old"), *(variant(row.variant, 0.8 * row.ratio) for row in rows)),
        commands=tuple((name, f"./prog-{name} input") for name in names),
        margin=MARGIN,
        stopped=Stopped.BUDGET,
        findings=(),
    )


def trial() -> Trial:
    totals = tuple(
        VariantTotals(
            name,
            850_000_000,
            806_000_000,
            775_000_000,
            31_000_000,
            0,
            1,
            3_565_158,
            2,
            9,
            2,
            scores=(NamedScore("parse", 2.5, "ms", Better.LOWER),),
        )
        for name in ("old", "new", "twin")
    )
    slices = (SliceRecord("old", 0, 5_000_000, 4_980_000, 0, filler=False),)
    return Trial(
        "", 0, 1, Mode.INTERLEAVED, "cgroup", 5_000_000, 1_763_700_000.0, 2_700_000_000,
        0.981, totals, slices,
    )  # fmt: skip


def explained() -> Result:
    """A comparison whose functions were looked into, one of them with a hostile name."""
    rows = (
        FunctionCost(
            "compress_block",
            "",
            60e6,
            71e6,
            0.11,
            0.092,
            0.128,
            facts=("412 bytes of code before, 380 after",),
            code=(
                (CodeLine(16, "movzx eax, byte ptr [rdi]", 0.04), CodeLine(19, "jne 0x10", 0.31)),
                (CodeLine(32, "vmovdqu ymm0, ymmword ptr [rdi]", 0.38, f"{HOSTILE}:212"),),
            ),
        ),
        FunctionCost(
            "memmove",
            "libc.so.6",
            12e6,
            14e6,
            0.02,
            0.015,
            0.025,
            ("__memmove_sse2_unaligned", "__memmove_avx_unaligned_erms"),
        ),
        FunctionCost(HOSTILE, "", 1.5e6, 0.0, -0.015, -0.017, -0.013),
        FunctionCost("(system calls and page faults)", "", 6e6, 6.4e6, 0.004, -0.002, 0.010),
        FunctionCost("emit", "", 20.5e6, 20.5e6, 0.0, -0.001, 0.001),
    )
    total = FunctionCost("", "", 100e6, 111.9e6, 0.119, 0.105, 0.133)
    lines = (
        FunctionCost("compress_block deflate.c:212", "", 30e6, 39e6, 0.09, 0.075, 0.105),
        FunctionCost("compress_block deflate.c:219", "", 30e6, 32e6, 0.02, 0.01, 0.03),
    )
    stacks = (
        FunctionCost("main;compress_block;emit", "", 40e6, 52e6, 0.12, 0.11, 0.13),
        FunctionCost("main;compress_block", "", 40.5e6, 39.5e6, -0.01, -0.02, 0.0),
        FunctionCost(f"main;{HOSTILE}", "", 7.5e6, 6.4e6, -0.011, -0.012, -0.01),
        FunctionCost("memmove", "libc.so.6", 12e6, 14e6, 0.02, 0.015, 0.025),
    )
    known = FunctionCosts(
        "gzip -5", "", 0.95, (9000, 4400), total, rows, rows[:1], lines, stacks, (104.5, 1170)
    )
    base = compared()
    same = replace(
        known,
        variant=base.comparisons[0].variant,
        by_source=(),
        by_line=(),
        by_stack=(),
        total=replace(total, low=-0.001),
    )
    unknown = FunctionCosts(HOSTILE, "", 0.95, (3, 2), unknown="3 and 2 samples were taken")
    return replace(base, functions=(known, same, unknown))


def caused() -> Result:
    """The same, explained by what was toggled: of one workload, by choices, sources and flags."""
    base = explained()
    name = base.comparisons[0].variant

    def share(name: str, effect: float, share: float, *, proven: bool = False) -> CauseShare:
        return CauseShare(
            name,
            effect,
            effect - 0.01,
            effect + 0.012,
            share,
            share - 0.1,
            share + 0.12,
            proven=proven,
        )

    choices = Causes(
        name,
        "",
        "choices",
        0.95,
        share("", -0.12, 1.0, proven=True),
        (
            share("-fno-plt", -0.1, 0.83, proven=True),
            share(HOSTILE, 0.02, -0.17, proven=True),
            CauseShare("lto: off → full", unknown="neither variant that would tell it was raced"),
        ),
        share("", -0.04, 0.34),
        different=True,
    )
    nothing = replace(choices, workload="w", total=share("", 0.001, 1.0), different=False)
    either = replace(
        share("src/a.c", -0.004, 0.03, proven=True), alone=-0.009, last=0.001, depends=True
    )
    unproven = replace(choices, by="sources", parts=(either,))
    groups = replace(choices, by="flag groups", parts=(share("-fa -fb", -0.1, 0.8),))
    same = CauseShare("-fpeel-loops", low=0.0, high=0.0)
    flags = replace(choices, by="flags", parts=(share("-fa", -0.1, 0.8, proven=True), same))
    causes = (choices, nothing, unproven, groups, flags)
    return replace(base, functions=base.functions[:1], causes=causes)


def relinks_of(names: Sequence[str], twin_sd: float = 0.02) -> LayoutFacts:
    """Eight relinks of each of these and of the baseline, in three rounds each."""
    draw = random.Random(11)  # noqa: S311

    def row(name: str, place: float, sd: float) -> VariantLayouts:
        ratios = tuple(math.exp(place + draw.gauss(0, sd)) for _ in range(16 if place == 0 else 8))
        fresh = None if place == 0 else math.hypot(sd, twin_sd) * 1.86
        return VariantLayouts(
            variant=name,
            executions=24 if place else 48,
            ratios=ratios,
            sd=sd,
            low=sd * 0.7,
            high=sd * 2.1,
            execution_sd=0.003,
            fresh_low=None if fresh is None else math.exp(place - fresh),
            fresh_high=None if fresh is None else math.exp(place + fresh),
        )

    sds = (0.03, 0.004, 0.012, 0.02, 0.008, 0.05)
    rows = (row(name, math.log(TRUTH[name]), sd) for name, sd in zip(names, sds, strict=False))
    kind = "object order and padding"
    return LayoutFacts(8, kind, variants=(row("gcc-12-O2", 0.0, twin_sd), *rows))


def relinked_study() -> Result:
    """Two variants whose rounds took turns with relinks."""
    names = ("clang-19-O3-lto", "gcc-12-O3-lto")
    truth = {name: TRUTH[name] for name in names}
    return study(truth, WORKLOADS[:2], layouts=relinks_of(names))


def curved_study(better: Better | None = None, **changes: object) -> Result:
    """A study whose one workload has a parameter: sizes, from which on builds are alike."""
    sizes = (1.0, 64.0, 1024.0, 65536.0)
    costs = {"gcc-12-O2": 0.0, "gcc-12-O0": 0.4, "clang-19-O2": -0.05, "clang-19-O0": 0.6}

    def point(value: float, share: float) -> CurvePoint:
        base = 50.0 + value / 20.0
        mean = base + 50.0 * share
        return CurvePoint(mean, mean * (1 - abs(share) / 20), mean * (1 + abs(share) / 20))

    curve_set = CurveSet(
        name="fill",
        parameter="size",
        unit="B",
        values=sizes,
        workloads=tuple(f"fill-{size:g}" for size in sizes),
        level=0.95,
        curves=tuple(
            Curve(name, name[:-3], tuple(point(size, share) for size in sizes))
            for name, share in costs.items()
        ),
        largest=(0.68, 0.64, 0.32, 0.0098),
        extremes=(
            Extremes("gcc-12", ("gcc-12-O2",), ("gcc-12-O0",)),
            Extremes("clang-19", ("clang-19-O2", "clang-19-O1"), ("clang-19-O0",)),
        ),
        crossover=Crossover(65536.0, 1024.0, 65536.0),
        score_unit="" if better is None else "msg/s",
        better=better,
    )
    found = study({"gcc-12-O0": 1.4, "clang-19-O2": 0.97}, curve_set.workloads, findings=())
    return replace(found, **{"curves": (curve_set,), **changes})  # type: ignore[arg-type]
