"""What is said of traced executions, by canned ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from ensign.experiment.compare.commands import command_variants
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.tracing import Traces, Tracing
from ensign.experiment.tracing import TraceOptions
from ensign.meter.requests import VariantSpec
from ensign.model.traced_execution import (
    MappedFile,
    TracedExecution,
    Way,
    WrittenFile,
    nothing_seen,
)
from fakes import FakeClock

SECOND = 10**9


def seen(*hashes: str, written: tuple[str, ...] = (), not_judged: str = "") -> TracedExecution:
    return TracedExecution(
        mapped=tuple(MappedFile(f"/{index}", each) for index, each in enumerate(hashes)),
        written=written,
        cpu_clock_reads=0,
        processes=1,
        threads=1,
        not_judged=not_judged,
        ways=tuple(WrittenFile(path, frozenset({Way.OPENED})) for path in written),
    )


@dataclass
class Canned:
    """Gives what is canned for a variant, and remembers what it was asked."""

    by_variant: dict[str, TracedExecution]
    asked: list[str] = field(default_factory=list)

    def trace(self, variant: VariantSpec, wish: TraceOptions = TraceOptions()) -> TracedExecution:  # noqa: ARG002, B008
        self.asked.append(variant.name)
        return self.by_variant[variant.name]


def traced(canned: Canned, options: Options, *walls_s: float) -> Traces:
    commands = command_variants(options)
    tracing = Tracing(options, commands, canned, FakeClock().monotonic_ns)
    walls = {
        command.variant: round(s * SECOND) for command, s in zip(commands, walls_s, strict=True)
    }
    return tracing.trace(walls)


def codes(traces: Traces) -> list[str]:
    return [finding.code for finding in traces.findings]


PAIR = Options(commands=("a 1", "b 1"))


def test_all_that_ran_counts_and_the_order_does_not() -> None:
    same = Canned({"1": seen("x", "y"), "2": seen("y", "x", "y")})
    assert codes(traced(same, PAIR, 1, 1)) == ["same-bytes"]
    other = Canned({"1": seen("x", "y"), "2": seen("x", "z")})
    assert codes(traced(other, PAIR, 1, 1)) == []


def test_other_arguments_are_not_the_same() -> None:
    canned = Canned({"1": seen("x"), "2": seen("x")})
    traces = traced(canned, Options(commands=("a 1", "b 2")), 1, 1)
    assert codes(traces) == ["same-program"]
    assert (traces.same, traces.findings[0].text.endswith("the arguments differ")) == ({}, True)


def test_what_was_not_seen_in_full_is_not_the_same_as_anything() -> None:
    canned = Canned({"1": seen("x", not_judged="dark"), "2": seen("x", not_judged="dark")})
    traces = traced(canned, PAIR, 1, 1)
    assert codes(traces) == ["not-judged"]
    assert traces.findings[0].subject == ""
    one = Canned({"1": seen("x"), "2": nothing_seen("dark")})
    assert traced(one, PAIR, 1, 1).findings[0].subject == "b 1"


def test_a_long_command_is_not_traced_within_a_short_budget() -> None:
    canned = Canned({"1": seen("x"), "2": seen("x")})
    traces = traced(canned, Options(commands=("a", "b"), budget_ns=10 * SECOND), 2.1, 0.1)
    assert canned.asked == []
    assert codes(traces) == ["not-judged"]
    assert "budget" in traces.findings[0].text
    assert traces.for_lack_of_time


def test_without_a_budget_there_is_time() -> None:
    canned = Canned({"1": seen("x"), "2": seen("x")})
    traced(canned, PAIR, 60, 60)
    assert canned.asked == ["1", "2"]


def test_the_twin_is_traced_where_the_baseline_alone_writes() -> None:
    canned = Canned(
        {"1": seen("x", written=("/a.1",)), "2": seen("y"), "twin": seen("x", written=("/a.2",))}
    )
    traces = traced(canned, PAIR, 1, 1)
    assert canned.asked == ["1", "2", "twin"]
    assert (codes(traces), traces.apart) == ([], False)
    canned.by_variant["twin"] = canned.by_variant["1"]
    traces = traced(canned, PAIR, 1, 1)
    assert (codes(traces), traces.apart) == (["shared-files"], True)


def test_files_are_named_the_first_few() -> None:
    paths = tuple(f"/file{number}" for number in range(5))
    canned = Canned({"1": seen("x", written=paths), "2": seen("y", written=paths)})
    (finding,) = traced(canned, PAIR, 1, 1).findings
    assert "/file0, /file1, /file2 and 2 more" in finding.text
    assert canned.asked == ["1", "2"]
