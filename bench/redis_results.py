"""The tables of studies/redis/RESULTS.md, from the raw trials of a finished study.

python bench/redis_results.py studies/redis/full.toml        # or a bundle of it
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from ensign.experiment.judge import in_units, suite_rule
from ensign.experiment.study.confirm_plan import confirming_study, read_plan, record_name
from ensign.experiment.study.record import read_record
from ensign.experiment.study.result import experiment_of
from ensign.experiment.study.stored import folder_of, stored_rounds
from ensign.model.comparisons import Comparison, Direction
from ensign.model.trials import TWIN, Metric, Trial, VariantTotals
from ensign.report import words
from ensign.report.view import row_of
from ensign.stats.pair import log_interval
from ensign.stats.rounds import RoundCosts, round_costs
from ensign.stats.suite import SuiteRule, compare_suite, compare_workloads
from ensign.stats.twin import judge_twin
from ensign.tools import bundles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ensign.experiment.study_file import StudyFile
    from ensign.model.results import Result

COMPILERS = ("gcc-9-bullseye", "gcc-11", "gcc-12", "clang-14", "clang-19")
PUBLISHED = "Published: +5.13 % with GCC 9.4, by operations per second."


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    asked.add_argument("study", type=Path)
    with bundles.opened(asked.parse_args().study) as found:
        result = found.result()
        study, record, trials = stored_rounds(found.file)
        rule = suite_rule(experiment_of(study))
        variants, names = (*record.raced, TWIN), tuple(each.name for each in study.workloads)
        costs = {
            metric: in_units(round_costs(trials, variants, names, metric), record)
            for metric in (Metric.CPU, Metric.WALL)
        }
        print(_precision(result))
        print(_twin(costs[Metric.CPU], variants[0], study.race.level))
        print(_levels(costs, rule))
        print(_builds(result))
        print(_best(found.file, result))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _said(comparison: Comparison) -> str:
    return f"{words.speedup_cell(comparison)} ({words.interval_cell(comparison)})"


def _half(comparison: Comparison) -> float:
    return math.log(comparison.high / comparison.low) / 2


def _percent(share: float) -> str:
    return f"{share:.2%}".replace("%", " %")


def _precision(result: Result) -> str:
    suite = [_half(each.comparison) for each in result.suite]
    single = [_half(each.comparison) for each in result.workloads]
    expected = result.expected
    counts = (len(result.suite), len(result.workload_names), result.rounds_done)
    rows = [
        ["builds and twin, tests, rounds", ", ".join(map(str, counts))],
        ["racing", f"{result.racing_s / 60:.0f} min"],
        ["half-width of geometric means", _middle(suite)],
        ["half-width of single tests", _middle(single)],
    ]
    if expected is not None:
        said = f"{_percent(expected.suite)} and {_percent(expected.workload)}"
        rows.append(["both, as told before the first round", said])
    return "### Precision\n\n" + _table(["", ""], rows)


def _middle(halves: Sequence[float]) -> str:
    return f"median {_percent(median(halves))}, at most {_percent(max(halves))}"


def _twin(costs: RoundCosts, baseline: str, level: float) -> str:
    judged = judge_twin(costs, TWIN, baseline, SuiteRule(level))
    exits = f"{len(judged.exits)} of {len(costs.workloads)}, {judged.exits_allowed} allowed"
    rows = [["geometric mean", _said(judged.suite)], ["tests whose interval excludes 0", exits]]
    return "### A/A twin\n\n" + _table(["", ""], rows)


def _levels(costs: dict[Metric, RoundCosts], rule: SuiteRule) -> str:
    rows = []
    for compiler in COMPILERS:
        variant, base = f"{compiler}-O3-lto", f"{compiler}-O2"
        if not {variant, base} <= set(costs[Metric.CPU].variants):
            continue
        both = [compare_suite(costs[metric], variant, base, rule).comparison for metric in costs]
        rows.append([compiler, *map(_said, both)])
    header = ["`-O3 -flto` over `-O2`", "CPU time per request", "wall time"]
    table = f"{_table(header, rows)}\n{PUBLISHED}\n" if rows else "Not among the builds.\n"
    return f"### Levels and LTO\n\n{table}"


def _builds(result: Result) -> str:
    wall = {
        each.comparison.variant: each.comparison.beside.other
        for each in result.suite
        if each.comparison.beside is not None
    }
    size = {each.variant: each for each in result.builds}
    rows = []
    for each in sorted(result.suite, key=lambda one: one.comparison.ratio):
        name = each.comparison.variant
        build = size.get(name)
        counts = _counts(result, name)
        code = "" if build is None else f"{build.text_bytes / 2**20:.2f} MiB"
        rows.append([name, _said(each.comparison), _said(wall[name]), counts, code])
    header = ["build", "CPU time per request", "wall time", "tests faster, slower", "code"]
    return f"### All builds, against {result.baseline}\n\n" + _table(header, rows)


def _counts(result: Result, variant: str) -> str:
    directions = [
        each.comparison.direction for each in result.workloads if each.comparison.variant == variant
    ]
    return f"{directions.count(Direction.FASTER)}, {directions.count(Direction.SLOWER)}"


def _best(file: StudyFile, result: Result) -> str:
    phase = result.confirmation
    if phase is None or phase.result is None or not phase.finalists:
        return "Nothing is confirmed.\n"
    folder = folder_of(file)
    record = read_record(folder)
    plan = None if record is None else read_plan(folder, record.key)
    second = None if plan is None else read_record(folder, record_name(plan.exploration))
    assert plan is not None  # there is a result of it
    assert second is not None
    trials = folder.trials(second.key)
    variants, names = (*second.raced, TWIN), tuple(plan.workloads)
    rule = suite_rule(experiment_of(confirming_study(file.study, plan)), len(plan.finalists))

    def measured(metric: Metric) -> RoundCosts:
        return in_units(round_costs(trials, variants, names, metric), second)

    parts = (
        ("CPU time per request", measured(Metric.CPU)),
        ("wall time", measured(Metric.WALL)),
    )
    rows = []
    for variant in (*plan.finalists, TWIN):
        cells = [
            _said(compare_suite(costs, variant, variants[0], rule).comparison) for _, costs in parts
        ]
        cells += [_saved(trials, variant, variants[0], of, rule) for of in (_user, _system)]
        claim = compare_suite(parts[0][1], variant, variants[0], rule)
        shown = len(names) - len(claim.not_shown)
        rows.append([variant, *cells, f"{shown} of {len(names)}"])
    saved = ("user time saved, in points", "kernel time saved")
    limit = f"shown at most {rule.margin:.1%} slower"
    header = ["build", *(name for name, _ in parts), *saved, limit]
    head = f"### Confirmed, at level {plan.level_each:.3g} each, plan {plan.sha256[:12]}\n\n"
    return head + _table(header, rows) + _single(parts[0][1], plan.finalists[0], rule)


def _single(costs: RoundCosts, variant: str, rule: SuiteRule) -> str:
    rows = sorted(
        compare_workloads(costs, variant, costs.variants[0], rule), key=lambda row: row[1].ratio
    )
    cells = [[name, _said(row), row_of(row, rule.margin, twin=False).size] for name, row in rows]
    return f"\n{variant}, test by test:\n\n" + _table(
        ["test", "CPU time per request", "margin"], cells
    )


def _saved(
    trials: Sequence[Trial],
    variant: str,
    baseline: str,
    part: Callable[[VariantTotals], float],
    rule: SuiteRule,
) -> str:
    """Percent of the baseline's CPU time per request, mean over tests, with interval over rounds.

    The kernel splits CPU time into user and system by ticks: too coarse for ratios of single tests.
    """
    rounds: dict[int, list[float]] = {}
    for trial in trials:
        base, other = trial.variant(baseline), trial.variant(variant)
        share = (part(base) - part(other)) / base.cost(Metric.CPU)
        rounds.setdefault(trial.round_index, []).append(100 * share)
    found = log_interval([mean(each) for each in rounds.values()], rule.pair_rule)
    return f"{found.mean:.1f} ({found.low:.1f} to {found.high:.1f})"


def _user(totals: VariantTotals) -> float:
    return totals.user_ns / totals.operations


def _system(totals: VariantTotals) -> float:
    return totals.system_ns / totals.operations


if __name__ == "__main__":
    main()
