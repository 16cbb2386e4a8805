"""From trials with samples to rows: names across builds, what is unknown, and why."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.explain.function_costs import (
    FEW_SAMPLES,
    KERNEL,
    NO_FILE,
    NO_NAME,
    NO_SLICES,
    UNTOLD,
    FunctionReader,
    function_costs,
)
from ensign.meter.client import find_meter
from ensign.meter.questions import located
from ensign.model.results import FunctionCost, FunctionCosts
from ensign.model.trials import (
    TWIN,
    CodeSamples,
    Mode,
    SampledFile,
    Trial,
    VariantTotals,
)

SOURCE = """
__attribute__((noipa)) int work(int n) { int s = 0; while (n--) s += s * n; return s; }
static inline __attribute__((always_inline)) int twice(int n) { return n * n + work(n); }
int main(int count, char **words) { (void)words; return twice(count) & 1; }
"""
MS = 10**6


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    (folder / "p.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "p.c", "-o", "p"], cwd=folder, check=True)
    return folder / "p"


def offset_of(program: Path, symbol: str) -> int:
    """A place in the file; these programs have their code where it is loaded."""
    said = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in said.splitlines()]
    return next(int(word[0], 16) for word in words if word[-1] == symbol)


def totals(variant: str, user_ms: float, samples: CodeSamples | None) -> VariantTotals:
    user = round(user_ms * MS)
    return VariantTotals(variant, user, user, user, 0, 0, 1, 1, 0, 0, 5, code_samples=samples)


def trial(number: int, *variants: VariantTotals, mode: Mode = Mode.INTERLEAVED) -> Trial:
    return Trial("", number, 1, mode, "cgroup", 5 * MS, 0.0, 100, 1.0, variants, ())


def sampled(path: Path, places: dict[int, int], **more: int) -> CodeSamples:
    return CodeSamples((SampledFile(str(path), tuple(places.items())),), **more)


def costs(trials: Sequence[Trial]) -> FunctionCosts:
    reader = FunctionReader(lambda _trial, _variant, file: Path(file.path))
    (found,) = function_costs(trials, "1", reader, 0.95)
    return found


def by_name(rows: Sequence[FunctionCost]) -> dict[str, FunctionCost]:
    return {row.name: row for row in rows}


def test_places_are_functions_with_what_was_inlined(program: Path) -> None:
    work, main = offset_of(program, "work"), offset_of(program, "main")
    found = located(find_meter(), {program: [work, main, 1], Path("/dev/null"): [1]})
    first, second, nowhere = found[program]
    assert (first.function, first.inlined, first.start) == ("work", ("work",), work)
    assert first.file.endswith("p.c")
    assert first.line == 2
    assert second.function == "main"
    assert nowhere.function == ""
    assert found[Path("/dev/null")] == ()


def test_rows_add_up_and_the_twin_is_the_baseline(program: Path) -> None:
    work, main = offset_of(program, "work"), offset_of(program, "main")
    half = sampled(program, {work: 20, main: 20})
    more = sampled(program, {work: 60, main: 20}, elsewhere=20)
    trials = [
        trial(n, totals("1", 10, half), totals(TWIN, 12, half), totals("2", 22, more))
        for n in range(4)
    ]
    found = costs(trials)
    assert found.total is not None
    assert found.total.difference == pytest.approx(1)
    rows = by_name(found.by_symbol)
    assert rows["work"].before_ns == pytest.approx(5.5 * MS)
    assert rows["work"].after_ns == pytest.approx(13.2 * MS)
    assert rows[NO_FILE].after_ns == pytest.approx(4.4 * MS)
    assert rows[KERNEL].difference == 0
    assert sum(row.difference for row in found.by_symbol) == pytest.approx(1)
    assert found.samples == (320, 400)
    assert {row.name for row in found.by_source} >= {"work", "main"}
    lines = {row.name: row for row in found.by_line}
    [line] = [name for name in lines if name.startswith("work ")]
    assert re.fullmatch(r"work \w+\.c:\d+", line)
    assert lines[line].difference == pytest.approx(rows["work"].difference)


def test_what_is_inlined_stands_below_its_function(program: Path) -> None:
    # `main` has `twice` inlined at all its places but its first and last ones.
    work, main = offset_of(program, "work"), offset_of(program, "main")
    places = {main + n: 40 for n in range(12)}
    taken = sampled(program, {work: 60, **places})
    found = costs([trial(n, totals("1", 9, taken), totals("2", 9, taken)) for n in range(4)])
    stacks = {row.name: row.before_ns for row in found.by_stack}
    assert stacks["main;twice"] > 0
    assert stacks["work"] == pytest.approx(by_name(found.by_symbol)["work"].before_ns)
    assert sum(stacks.values()) == pytest.approx(9 * MS)


def test_system_calls_are_told_by_samples_where_nobody_sleeps(program: Path) -> None:
    """The clock's ticks book much of short system calls as the user's."""
    work = sampled(program, {offset_of(program, "work"): 40}, in_calls=10)
    calling = sampled(program, {offset_of(program, "work"): 40}, in_calls=40)

    def used(variant: str, ms: int, samples: CodeSamples) -> VariantTotals:
        found = totals(variant, ms, samples)
        return replace(found, user_ns=found.user_ns * 3 // 4, system_ns=found.user_ns // 4)

    trials = [trial(n, used("1", 50, work), used("2", 80, calling)) for n in range(3)]
    rows = by_name(costs(trials).by_symbol)
    assert rows[KERNEL].before_ns == pytest.approx(10 * MS)
    assert rows[KERNEL].after_ns == pytest.approx(40 * MS)
    assert rows["work"].difference == pytest.approx(0)
    driven = [replace(each, mode=Mode.DRIVEN) for each in trials]
    rows = by_name(costs(driven).by_symbol)
    assert rows[KERNEL].before_ns == pytest.approx(12.5 * MS)
    asleep = [
        replace(each, variants=tuple(replace(v, wall_ns=2 * v.wall_ns) for v in each.variants))
        for each in trials
    ]
    rows = by_name(costs(asleep).by_symbol)
    assert rows[KERNEL].before_ns == pytest.approx(12.5 * MS)
    # Others took the processor: who sleeps would stand in calls, and fewer do than are accounted.
    stolen = [
        replace(each, variants=tuple(replace(v, code_samples=work) for v in each.variants))
        for each in asleep
    ]
    rows = by_name(costs(stolen).by_symbol)
    assert rows[KERNEL].before_ns == pytest.approx(10 * MS)


def test_what_has_few_samples_is_one_row(program: Path) -> None:
    work, main = offset_of(program, "work"), offset_of(program, "main")
    most = sampled(program, {work: 40, main: 1})
    found = costs([trial(n, totals("1", 9, most), totals("2", 9, most)) for n in range(3)])
    assert set(by_name(found.by_symbol)) == {"work", FEW_SAMPLES, KERNEL}


def test_a_file_that_is_gone_has_no_names(tmp_path: Path) -> None:
    lost = sampled(tmp_path / "gone", {100: 40})
    trials = [trial(n, totals("1", 9, lost), totals("2", 9, lost)) for n in range(3)]
    assert set(by_name(costs(trials).by_symbol)) == {NO_NAME, KERNEL}


@pytest.mark.parametrize(
    ("samples", "mode", "why"),
    [
        (None, Mode.ALTERNATING, NO_SLICES),
        (CodeSamples(unknown=50), Mode.INTERLEAVED, UNTOLD),
        (CodeSamples(elsewhere=2, in_calls=1), Mode.INTERLEAVED, "6 and 6 samples"),
        (CodeSamples(in_calls=50), Mode.INTERLEAVED, "in system calls"),
    ],
)
def test_what_is_not_known_says_why(samples: CodeSamples | None, mode: Mode, why: str) -> None:
    trials = [
        trial(n, totals("1", 9, samples), totals("2", 9, samples), mode=mode) for n in range(3)
    ]
    found = costs(trials)
    assert why in found.unknown
    assert found.by_symbol == ()


def test_each_group_has_its_own_baseline(program: Path) -> None:
    work = sampled(program, {offset_of(program, "work"): 40})
    other = "1 (group 2)"
    grouped = [
        replace(
            trial(
                n,
                *(
                    totals(name, ms, work)
                    for name, ms in (("1", 10), ("2", 20), (other, 30), ("3", 60))
                ),
            ),
            groups=(("1", "2"), (other, "3")),
        )
        for n in range(3)
    ]
    reader = FunctionReader(lambda _trial, _variant, file: Path(file.path))
    found = function_costs(grouped, "1", reader, 0.95)
    assert [each.variant for each in found] == ["2", "3"]
    assert [each.total and each.total.difference for each in found] == [
        pytest.approx(1),
        pytest.approx(1),
    ]


def test_page_faults_are_means_of_executions(program: Path) -> None:
    taken = sampled(program, {offset_of(program, "work"): 40})
    trials = [
        trial(
            n,
            replace(totals("1", 10, taken), page_faults=100),
            replace(totals(TWIN, 10, taken), page_faults=110),
            replace(totals("2", 10, taken), page_faults=1000 + n),
        )
        for n in range(4)
    ]
    assert costs(trials).page_faults == (105, 1001.5)


def test_relinks_have_the_lines_of_the_files_that_they_lie_over(
    program: Path, tmp_path: Path
) -> None:
    relink = tmp_path / "layouts" / "0" / program.name
    relink.parent.mkdir(parents=True)
    subprocess.run(["strip", "-g", "-o", relink, program], check=True)
    main = offset_of(program, "main")
    taken = sampled(relink, {main + n: 40 for n in range(12)})
    trials = [trial(n, totals("1", 9, taken), totals("2", 9, taken)) for n in range(4)]
    assert costs(trials).by_stack == ()
    reader = FunctionReader(
        lambda _trial, _variant, file: Path(file.path), {relink.parent: program.parent}
    )
    (told,) = function_costs(trials, "1", reader, 0.95)
    assert "main;twice" in {row.name for row in told.by_stack}
    assert told.by_line
