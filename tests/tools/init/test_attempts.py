"""Which commands are tried, in which order, and which of them is taken. Pure."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from ensign.builders.open_tree import OpenedTree
from ensign.builders.systems.build_system import Recognized, SuiteCommand
from ensign.model.placeholders import fill_all
from ensign.tools.init.attempts import (
    COPY,
    INPUT,
    OUTPUT,
    Attempt,
    Executable,
    Sample,
    attempts,
    fitting,
    ranked,
    suite_attempts,
)
from ensign.tools.init.doubts import doubts
from ensign.tools.init.exploration import Exploration
from ensign.tools.init.samples import samples_of
from ensign.tools.init.search import Searched, TriedCommand, budget_s, chosen, too_long, will_do

MS = 1_000_000
PROGRAM = Executable("ensign-build/pack")
SAMPLE = Sample("README", 1000)


def tried(attempt: Attempt, user_ms: float, *, ok: bool = True, share: float = 0.9) -> TriedCommand:
    ns = round(user_ms * MS)
    return TriedCommand(attempt, ok, ns, share, share, ns, "exited")


def forever() -> bool:
    return True


def test_benchmarks_come_first_and_tests_last() -> None:
    paths = ("tests/test-pack", "other", "bench/bench_pack", "src/pack", "perfect/tool", "fuzz/a")
    order = [each.path for each in ranked([Executable(path) for path in paths], "pack")]
    assert order[0] == "bench/bench_pack"
    assert order[1] == "src/pack"
    assert set(order[2:4]) == {"other", "perfect/tool"}
    assert set(order[4:]) == {"tests/test-pack", "fuzz/a"}


def test_a_filter_is_tried_on_input_before_it_is_tried_alone() -> None:
    words = [(each.words, each.reads_input) for each in attempts(PROGRAM, [SAMPLE])]
    assert words[:3] == [((), True), ((INPUT,), False), (("-c", INPUT), False)]
    assert ((), False) in words
    assert next(attempts(Executable("bench"), [SAMPLE])) == Attempt(Executable("bench"))


def test_options_that_a_help_names_are_tried_with_a_file() -> None:
    words = [each.words for each in attempts(PROGRAM, [SAMPLE], ["-i", "--out", "-z"])]
    assert ("-i", INPUT) in words
    assert ("-i", INPUT, "--out", OUTPUT) in words
    assert ("-z", INPUT) in words
    assert ("-c", INPUT) not in words


def test_first_words_that_a_help_offers_come_first() -> None:
    words = [each.words for each in attempts(PROGRAM, [SAMPLE], (), ["squeeze"])]
    assert words[:3] == [("squeeze",), ("squeeze", INPUT), ("squeeze", INPUT, OUTPUT)]


def test_tests_of_the_build_are_tried_if_they_need_no_other_file_of_it() -> None:
    suite = [
        SuiteCommand("a", ("ensign-build/pack", "data/x"), env=(("A", "b"),)),
        SuiteCommand("b", ("ensign-build/pack", "ensign-build/made.dat")),
        SuiteCommand("c", ("python3", "run.py")),
    ]
    found = list(suite_attempts(suite, [PROGRAM]))
    assert found == [Attempt(PROGRAM, ("data/x",), env=(("A", "b"),))]


def test_samples_of_a_kind_that_the_help_names_come_first() -> None:
    samples = [Sample("big.txt", 9), Sample("small.emf", 1)]
    named, others = fitting(samples, "converts EMF files")
    assert [each.path for each in (*named, *others)] == ["small.emf", "big.txt"]
    assert fitting(samples, "reframes") == ([], samples)


def test_samples_for_tests_come_first_and_much_larger_ones_are_taken_too() -> None:
    files = {"p/tests.xml": 2_000, "p/all.xml": 140_000, "test/a.c": 900, "src/b.c": 5_000}
    chosen = [each.path for each in samples_of(files, 8)]
    assert chosen == ["p/tests.xml", "test/a.c", "p/all.xml"]
    assert [each.path for each in samples_of({"src/b.c": 5}, 8)] == ["src/b.c"]


def test_crates_that_were_fetched_are_no_samples(tmp_path: Path) -> None:
    for name in ("data/input.txt", "ensign-crates/other/tests/large.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("x")
    opened = cast("OpenedTree", SimpleNamespace(source=tmp_path))
    explored = Exploration(opened, Recognized("cargo"), tmp_path, ())
    assert explored.files() == {"data/input.txt": 1}


def test_what_writes_beside_the_source_is_tried_in_a_folder_of_its_own() -> None:
    def look(attempt: Attempt) -> TriedCommand:
        trial = tried(attempt, 5.0 * attempt.repeat, ok=attempt.in_tmp)
        return replace(trial, wrote_beside=not attempt.in_tmp)

    best = chosen([Attempt(PROGRAM, ("-x",))], look, forever).best
    assert best is not None
    assert best.attempt.command[-1] == (
        'cd "{tmp}" && for i in $(seq 24); do "{artifact}" -x || exit; done'
    )
    assert chosen([Attempt(PROGRAM, (), SAMPLE)], look, forever).best is None


def test_commands_are_as_a_study_has_them() -> None:
    plain = Attempt(PROGRAM, ("-e", "{print}", "{print $1}", INPUT), SAMPLE)
    assert plain.command == ("{artifact}", "-e", "{{print}}", "{print $1}", INPUT)
    copied = Attempt(PROGRAM, ("-z", INPUT), Sample("a b.png", 3)).on_a_copy()
    assert copied.command[-1] == 'cp "{input}" "{tmp}/copy.png" && "{artifact}" -z "{tmp}/copy.png"'
    assert not copied.reads_input
    script = Attempt(PROGRAM, ("it's",), SAMPLE, repeat=3).command[-1]
    assert script == (
        'for i in $(seq 3); do "{artifact}" \'it\'"\'"\'s\' < "{input}" || exit; done'
    )


def test_a_repeated_command_runs_as_often_and_ends_with_a_failure(tmp_path: Path) -> None:
    values = {"artifact": "/bin/echo", "input": "/dev/null", "tmp": str(tmp_path)}
    for words, status in ((("a  b", "$HOME"), 0), (("x",), 1)):
        command = fill_all(Attempt(PROGRAM, words, SAMPLE, repeat=2).command, values)
        if status:
            command = tuple(word.replace("/bin/echo", "/bin/false") for word in command)
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == status
        assert done.stdout == ("" if status else "a  b $HOME\n" * 2)


def test_a_short_command_gets_more_to_read_until_it_is_long_enough() -> None:
    seen: list[int] = []

    def reads_all(attempt: Attempt) -> TriedCommand:
        assert attempt.sample is not None
        seen.append(attempt.sample.copies)
        return tried(attempt, attempt.sample.copies * 3.0)

    found = chosen([Attempt(PROGRAM, (), SAMPLE)], reads_all, forever)
    assert found.best is not None
    assert will_do(found.best)
    assert seen == [1, 40, 40]  # the last is the second look at what will do
    assert len(found.ran) == 2


def test_work_that_grows_faster_than_its_input_gets_less_of_it_again() -> None:
    seen: list[int] = []

    def square(attempt: Attempt) -> TriedCommand:
        assert attempt.sample is not None
        seen.append(attempt.sample.copies)
        return tried(attempt, attempt.sample.copies**2 * 3.0, ok=attempt.sample.copies < 30)

    found = chosen([Attempt(PROGRAM, (), SAMPLE)], square, forever)
    assert found.best is not None
    assert will_do(found.best)
    assert seen == [1, 40, 6, 6]


def test_what_works_more_in_the_build_the_more_it_reads_gets_more() -> None:
    def look(attempt: Attempt) -> TriedCommand:
        assert attempt.sample is not None
        copies = attempt.sample.copies
        return tried(attempt, copies * 3.0, share=min(0.9, 0.008 * copies))

    best = chosen([Attempt(PROGRAM, (), SAMPLE)], look, forever).best
    assert best is not None
    assert best.attempt.sample == replace(SAMPLE, copies=80)
    assert will_do(best)


def test_a_program_that_reads_no_more_is_run_several_times() -> None:
    def look(attempt: Attempt) -> TriedCommand:
        return tried(attempt, 2.0 * attempt.repeat)

    best = chosen([Attempt(PROGRAM, (), SAMPLE)], look, forever).best
    assert best is not None
    assert best.attempt == Attempt(PROGRAM, (), SAMPLE, repeat=60)
    assert will_do(best)


def test_the_start_of_a_process_is_not_repeated() -> None:
    found = chosen([Attempt(PROGRAM)], lambda each: tried(each, 0.2), forever)
    assert len(found.ran) == 1
    assert found.best is not None
    assert found.best.attempt.repeat == 1


def test_what_changes_its_input_gets_a_copy() -> None:
    def look(attempt: Attempt) -> TriedCommand:
        copied = any(word.startswith(COPY) for word in attempt.words)
        return replace(tried(attempt, 200.0, ok=copied), changed_input=not copied)

    best = chosen([Attempt(PROGRAM, ("-z", INPUT), SAMPLE)], look, forever).best
    assert best is not None
    assert best.attempt.words == ("-z", COPY)


def test_what_fails_the_second_time_is_not_taken() -> None:
    seen: list[str] = []

    def look(attempt: Attempt) -> TriedCommand:
        seen.append(attempt.program.path)
        again = seen.count("once") > 1 and attempt.program.path == "once"
        return tried(attempt, 200.0, ok=not again)

    given = [Attempt(Executable("once"), ("a",)), Attempt(Executable("always"), ("b",))]
    best = chosen(given, look, forever).best
    assert best is not None
    assert best.attempt.program.path == "always"


def test_what_will_do_ends_the_search_and_what_fails_never_wins() -> None:
    given = [Attempt(Executable(name)) for name in ("fails", "sleeps", "works", "late")]
    outcome = {
        "fails": {"user_ms": 900.0, "ok": False},
        "sleeps": {"user_ms": 200.0, "share": 0.1},
        "works": {"user_ms": 200.0},
    }

    def look(attempt: Attempt) -> TriedCommand:
        return tried(attempt, **outcome[attempt.program.path])  # type: ignore[arg-type]

    found = chosen(given, look, forever)
    assert found.best is not None
    assert found.best.attempt.program.path == "works"
    assert len(found.ran) == 2
    only_failed = chosen(given[:1], look, forever)
    assert only_failed == Searched(None, failures=(look(given[0]),))


def test_the_best_of_what_was_seen_is_taken_when_time_is_over() -> None:
    left = iter((True, True, False))

    def look(attempt: Attempt) -> TriedCommand:
        cost = {"a": 5.0, "b": 30.0, "c": 500.0}[attempt.program.path]
        return tried(attempt, cost, ok=attempt.repeat == 1)

    def programs() -> Iterator[Attempt]:
        yield from (Attempt(Executable(name)) for name in "abc")

    found = chosen(programs(), look, lambda: next(left))
    assert found.best is not None
    assert found.best.attempt.program.path == "b"


def test_too_long_is_worse_than_short() -> None:
    given = [Attempt(Executable("long")), Attempt(Executable("short"))]

    def look(attempt: Attempt) -> TriedCommand:
        cost = 4000.0 if attempt.program.path == "long" else 30.0
        return tried(attempt, cost, ok=attempt.repeat == 1)

    found = chosen(given, look, forever)
    assert found.best is not None
    assert found.best.attempt.program.path == "short"


def test_the_budget_holds_a_few_rounds() -> None:
    assert budget_s(tried(Attempt(PROGRAM), 200.0)) == 20
    assert budget_s(tried(Attempt(PROGRAM), 1100.0)) == 60
    assert budget_s(replace(tried(Attempt(PROGRAM), 4000.0), crowded=20.0)) == 40
    assert budget_s(tried(Attempt(PROGRAM), 5000.0)) == 120


def test_what_ran_until_its_time_was_up_is_tried_for_longer_the_plainest_first() -> None:
    late = [
        replace(tried(Attempt(PROGRAM, words), 0, ok=False), met_deadline=True)
        for words in (("--bench",), (), ("--bench",), ("a", "b"))
    ]
    failed = tried(Attempt(PROGRAM, ("x",)), 1, ok=False)
    assert [each.words for each in too_long([failed, *late])] == [(), ("--bench",)]
    assert too_long([failed]) == ()


def test_a_long_workload_gets_a_budget_to_fit_and_says_so() -> None:
    trial = tried(Attempt(PROGRAM), 10_700)
    assert budget_s(trial) == 540
    assert "An execution takes 10.7 s" in doubts(trial)[0]
    assert budget_s(replace(trial, wall_ns=29_000 * MS)) == 900


def test_a_share_of_few_looks_is_not_believed() -> None:
    def look(attempt: Attempt) -> TriedCommand:
        return tried(attempt, 1.4 * attempt.repeat, share=1.0 if attempt.repeat == 1 else 0.01)

    best = chosen([Attempt(PROGRAM)], look, forever).best
    assert best is not None
    assert best.attempt.repeat > 1


def test_what_takes_too_long_on_much_gets_less_until_it_does_not() -> None:
    def look(attempt: Attempt) -> TriedCommand:
        assert attempt.sample is not None
        copies = attempt.sample.copies
        ms = 0.5 * 1.5 ** (copies - 1)
        return tried(attempt, min(ms, 5000.0), ok=ms < 5000)

    best = chosen([Attempt(PROGRAM, (INPUT,), SAMPLE)], look, forever).best
    assert best is not None
    assert best.attempt.sample is not None
    assert 1 < best.attempt.sample.copies < 64


def test_a_share_that_was_luck_the_first_time_is_not_believed() -> None:
    looks: list[Attempt] = []

    def look(attempt: Attempt) -> TriedCommand:
        looks.append(attempt)
        lucky = attempt.words == ("-x",) and looks.count(attempt) == 1
        return tried(attempt, 200, share=0.6 if lucky or attempt.words == ("-y",) else 0.4)

    found = chosen([Attempt(PROGRAM, ("-x",)), Attempt(PROGRAM, ("-y",))], look, forever).best
    assert found is not None
    assert found.attempt.words == ("-y",)
    looks.clear()
    weak = chosen([Attempt(PROGRAM, ("-x",))], look, forever).best
    assert weak is not None
    assert weak.share_built == 0.4


def test_a_command_that_fails_the_next_time_is_not_taken() -> None:
    looks: list[Attempt] = []

    def look(attempt: Attempt) -> TriedCommand:
        looks.append(attempt)
        return tried(attempt, 20, ok=attempt.words != ("-x",) or len(looks) == 1, share=0.9)

    found = chosen([Attempt(PROGRAM, ("-x",)), Attempt(PROGRAM, ("-y",))], look, forever).best
    assert found is not None
    assert found.attempt.words == ("-y",)
