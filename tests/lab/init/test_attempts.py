"""Which commands are tried, in which order, and which of them is taken. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.lab.init.attempts import INPUT, Attempt, Executable, Sample, attempts, ranked
from ensign.lab.init.search import Searched, TriedCommand, budget_s, chosen, will_do

MS = 1_000_000
PROGRAM = Executable("ensign-build/pack")
SAMPLE = Sample("README", 1000)


def tried(attempt: Attempt, user_ms: float, *, ok: bool = True, share: float = 0.9) -> TriedCommand:
    return TriedCommand(attempt, ok, round(user_ms * MS), share, round(user_ms * MS), "exited")


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
    assert words[:4] == [((), True), (("-c", INPUT), False), ((INPUT,), False), ((), False)]
    assert next(attempts(Executable("bench"), [SAMPLE])) == Attempt(Executable("bench"))


def test_a_short_command_gets_more_to_read_until_it_is_long_enough() -> None:
    seen: list[int] = []

    def reads_all(attempt: Attempt) -> TriedCommand:
        assert attempt.sample is not None
        seen.append(attempt.sample.copies)
        return tried(attempt, attempt.sample.copies * 3.0)

    found = chosen([Attempt(PROGRAM, (), SAMPLE)], reads_all, forever)
    assert best is not None
    assert will_do(best)
    assert seen == [1, 40]
    assert count == 2


def test_a_program_that_reads_no_more_is_left_as_it_is() -> None:
    found = chosen([Attempt(PROGRAM, (), SAMPLE)], lambda each: tried(each, 2.0), forever)
    assert count == 2
    assert best is not None
    assert best.attempt.sample == SAMPLE
    assert not will_do(best)


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
    assert best is not None
    assert best.attempt.program.path == "works"
    assert count == 3
    assert chosen(given[:1], look, forever)[0] is None


def test_the_best_of_what_was_seen_is_taken_when_time_is_over() -> None:
    left = iter((True, False))

    def look(attempt: Attempt) -> TriedCommand:
        return tried(attempt, {"a": 5.0, "b": 30.0, "c": 500.0}[attempt.program.path])

    def programs() -> Iterator[Attempt]:
        yield from (Attempt(Executable(name)) for name in "abc")

    found = chosen(programs(), look, lambda: next(left))
    assert count == 2
    assert best is not None
    assert best.attempt.program.path == "b"


def test_too_long_is_worse_than_short() -> None:
    given = [Attempt(Executable("long")), Attempt(Executable("short"))]

    def look(attempt: Attempt) -> TriedCommand:
        return tried(attempt, 4000.0 if attempt.program.path == "long" else 30.0)

    found = chosen(given, look, forever)
    assert best is not None
    assert best.attempt.program.path == "short"
