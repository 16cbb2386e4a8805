"""Who ends by a clock, by canned executions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ensign.experiment.compare.commands import command_variants
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.plan import plan_race
from ensign.experiment.compare.planning import Planned
from ensign.experiment.compare.tracing import Traces
from ensign.experiment.compare.variants import beside_a_sleeper, variant_specs
from ensign.experiment.compare.workloads import PlannedWorkloads
from ensign.experiment.machine import CpuPlan
from ensign.experiment.pilots import CommandPilot, PilotRun
from ensign.experiment.self_timed import (
    by_median,
    by_the_cpu_clock,
    by_the_wall_clock,
    clock_slice_ns,
)
from ensign.experiment.study.phase import shown_again, shown_by_the_race
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.variants import VariantSet
from ensign.meter.client import Json
from ensign.meter.records import TrialPlace, trials
from ensign.model.study import Study
from ensign.model.traced_execution import TracedExecution, nothing_seen
from ensign.model.trials import Mode, TaskActivity, Trial
from fakes import FakeMeter

MS = 1_000_000
HURRIED = TracedExecution((), (), 0, 1, 1, "", cpu_ns=30 * MS)
USUAL = replace(HURRIED, cpu_ns=100 * MS)


def found(hurried: TracedExecution, usual: TracedExecution | None, alone_ms: int | None) -> bool:
    """Whether it is said to; without a usual execution none may be asked for."""

    def usually() -> TracedExecution:
        assert usual is not None
        return usual

    alone_ns = None if alone_ms is None else alone_ms * MS
    return by_the_cpu_clock("a", hurried, usually, alone_ns) is not None


@pytest.mark.parametrize(
    "hurried",
    [
        replace(HURRIED, cpu_timers=1),
        replace(HURRIED, cpu_clock_reads=2),
        replace(HURRIED, children_clock_reads=2),
    ],
)
@pytest.mark.parametrize("alone_ms", [100, None])
def test_each_way_to_ask_for_cpu_time_counts(
    hurried: TracedExecution, alone_ms: int | None
) -> None:
    assert found(hurried, USUAL, alone_ms)
    assert not found(hurried, HURRIED, alone_ms)


def test_who_does_not_ask_or_uses_as_much_as_alone_is_not_followed_again() -> None:
    assert not found(HURRIED, None, 100)
    assert not found(replace(HURRIED, cpu_clock_reads=46, cpu_ns=90 * MS), None, 100)


def test_what_following_may_have_cost_does_not_clear_it() -> None:
    reads = replace(HURRIED, cpu_clock_reads=1_000, cpu_ns=90 * MS)
    assert found(reads, replace(reads, cpu_ns=250 * MS), 100)


def test_a_limit_that_was_reached_needs_no_other_execution() -> None:
    assert found(replace(HURRIED, cpu_limits_reached=1), None, 100)


def test_of_what_was_not_followed_nothing_is_said() -> None:
    assert not found(nothing_seen("the machine forbids it"), None, 100)
    assert not found(replace(HURRIED, cpu_timers=1), nothing_seen("failed"), 100)


def alone(wall_ms: int, cpu_ms: int, idle: float, load_ms: int = 0) -> CommandPilot:
    """A command (or server) that was run once; so much of its time nothing of it could run."""
    wall_ns = wall_ms * MS
    activity = TaskActivity(
        looks=100, observed_ns=wall_ns, idle_ns=round(idle * wall_ns),
        runnable_ns=round((1 - idle) * wall_ns), busiest_cpu_ns=cpu_ms * MS,
    )  # fmt: skip
    return CommandPilot(
        "a", (PilotRun(wall_ns, cpu_ms * MS, 0, activity, load_cpu_ns=load_ms * MS),)
    )


def sliced(spans_ms: Sequence[tuple[int, int]], cpu_ms: int, load_ms: int = 0) -> Trial:
    """An execution in which the variant `1` ran in these slices: start and end."""
    running = sum(end - start for start, end in spans_ms) * MS
    here = {"execution": 0, "variant": "1"}
    records: list[Json] = [
        {"type": "start", "schema": 1, "freezer": "signals", "counters": [], "mode": "interleaved"},
        *(
            {"type": "slice", **here, "start_ns": start * MS, "wall_ns": (end - start) * MS,
             "cpu_ns": 0}
            for start, end in spans_ms
        ),
        {"type": "variant", **here, "wall_ns": running, "cpu_ns": cpu_ms * MS,
         "user_ns": cpu_ms * MS, "system_ns": 0, "operations": 1, "slices": len(spans_ms),
         "peak_memory_bytes": 0, "load_cpu_ns": load_ms * MS},
        {"type": "execution", "execution": 0, "wall_ns": running, "started_unix_ns": 1,
         "running_share": 1.0, "valid": True},
    ]  # fmt: skip
    (trial,) = trials(records, TrialPlace("w", 0, 0, 5 * MS))
    return trial


# A second of which a server is idle most: a load for a second, and one that sends a number.
ENDED = [(0, 250), (750, 1000), (1500, 1505)]
WENT_ON = [(0, 250), (750, 1000), (1500, 1750), (2250, 2400)]


@pytest.mark.parametrize(("spans", "ends"), [(ENDED, True), (WENT_ON, False)])
def test_a_load_on_an_idle_server_that_ends_by_the_clock(
    spans: list[tuple[int, int]], *, ends: bool
) -> None:
    """Starting it is most of its CPU time, so that does not tell."""
    pilot = alone(1000, 20, 0.9, load_ms=15)
    found = by_the_wall_clock({"1": pilot}, sliced(spans, 17, load_ms=14))
    assert bool(found) == ends


def turns(span_ms: int) -> list[tuple[int, int]]:
    """Every third slice of 5 ms, from 0 to the span."""
    return [(start, min(start + 5, span_ms)) for start in range(0, span_ms, 15)]


@pytest.mark.parametrize(
    ("span_ms", "cpu_ms", "ends"),
    [(300, 35, True), (300, 40, True), (350, 35, True), (350, 40, False), (420, 35, False)],
)
def test_on_a_busy_machine_one_that_ends_at_its_time_is_known(
    span_ms: int, cpu_ms: int, *, ends: bool
) -> None:
    """Alone it got so little once that its CPU time by turns seems no less."""
    runs = [*alone(300, 90, 0.0).runs, *alone(310, 80, 0.0).runs, *alone(305, 40, 0.0).runs]
    found = by_the_wall_clock({"1": CommandPilot("a", tuple(runs))}, sliced(turns(span_ms), cpu_ms))
    assert bool(found) == ends


@pytest.mark.parametrize(("last_ms", "ends"), [(450, True), (800, False)])
def test_one_that_ends_while_it_stands_is_seen_late(last_ms: int, *, ends: bool) -> None:
    # A run alone was robbed of its processor, so the CPU time says nothing.
    pilot = alone(400, 120, idle=0.3)
    pilot = replace(pilot, runs=(*pilot.runs, alone(403, 350, idle=0.3).runs[0]))
    slices = [(0, 100), (last_ms - 200, last_ms - 100), (last_ms, last_ms + 2)]
    assert bool(by_the_wall_clock({"1": pilot}, sliced(slices, 110))) is ends


@pytest.mark.parametrize(("span_ms", "ends"), [(310, True), (600, False)])
def test_less_cpu_time_alone_does_not_show_it(span_ms: int, *, ends: bool) -> None:
    """A processor that warmed up makes the same work cheaper, and it takes its turns for it."""
    runs = [*alone(300, 290, 0.0).runs, *alone(301, 280, 0.0).runs, *alone(302, 285, 0.0).runs]
    pilots = {"1": CommandPilot("a", tuple(runs))}
    found = by_the_wall_clock(pilots, sliced(turns(span_ms), 180))
    assert bool(found) == ends


@pytest.mark.parametrize(
    ("span_ms", "cpu_ms", "ends"),
    [(310, 45, True), (350, 50, True), (310, 80, False), (900, 45, False), (900, 80, False)],
)
def test_the_middle_of_some_executions_tells_what_single_ones_do_not(
    span_ms: int, cpu_ms: int, *, ends: bool
) -> None:
    """CPU times range by half; a faster machine alone makes nobody run for a fixed time."""
    runs = [*alone(300, 90, 0.0).runs, *alone(310, 80, 0.0).runs, *alone(305, 40, 0.0).runs]
    pilots = {"1": CommandPilot("a", tuple(runs))}
    race = [
        sliced(turns(span_ms + number % 3 * 10), round(cpu_ms * away))
        for number, away in enumerate((0.5, 0.6, 0.8, 1.0, 1.0, 1.0, 1.1, 1.3, 1.4, 1.5))
    ]
    assert bool(by_median(pilots, race)) == ends
    whole = [replace(each, mode=Mode.ALTERNATING) for each in race]
    assert by_median(pilots, whole) == ()
    slower_first = [*alone(300, 90, 0.0).runs, *alone(600, 80, 0.0).runs, *alone(305, 40, 0.0).runs]
    assert by_median({"1": CommandPilot("a", tuple(slower_first))}, race) == ()
    uneven = [sliced(turns(span_ms * times // 4), cpu_ms) for times in (2, 2, 3, 4, 4, 5, 6, 6)]
    assert by_median(pilots, uneven) == ()


@pytest.mark.parametrize(("after_ms", "ends"), [(285, True), (145, False)])
def test_executions_alone_after_the_race_tell_a_faster_machine_from_a_clock(
    monkeypatch: pytest.MonkeyPatch, after_ms: int, *, ends: bool
) -> None:
    """Before the race the work took twice the CPU time, and as long alone as then by turns."""
    study = Study.model_validate(
        {
            "name": "s",
            "layouts": "natural",
            "source": {"kind": "path", "path": "."},
            "build": {"commands": [["make"]], "artifact": "a"},
            "axes": {"compiler": ["gcc"]},
            "baseline": {},
            "race": {"budget": "60s"},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
        }
    )
    before = CommandPilot(
        "run", tuple(alone(300, cpu_ms, 0.0).runs[0] for cpu_ms in (290, 288, 291))
    )
    after = CommandPilot(
        "run", tuple(alone(after_ms + 15, after_ms + away, 0.0).runs[0] for away in (0, 1, 2))
    )
    looked: list[int] = []

    def look(*_: object, runs: int) -> CommandPilot:
        looked.append(runs)
        return after

    monkeypatch.setattr("ensign.experiment.study.pilots.looked_at", look)
    race = [replace(sliced(turns(310), 140), workload="run", round_index=n) for n in range(10)]
    rounds = RoundPlan("key", 10, {"run": None}, 0, alone={"run": before})
    found = shown_by_the_race(study, rounds.alone, race)
    assert list(found) == ["run"]
    variants = VariantSet((("1", "/1"),), {}, CpuPlan((), (), ()))
    again = shown_again(FakeMeter([]), study, variants, rounds, found, race)
    assert bool(again) == ends
    # A second of them: runs beside each other are disturbed together.
    assert looked == [4]


@pytest.mark.parametrize(("after_ms", "ends"), [(285, True), (145, False)])
def test_workloads_seem_to_end_by_the_clock_beside_the_runs_alone_they_are_given(
    after_ms: int, *, ends: bool
) -> None:
    options = Options(("a", "b"))
    before = CommandPilot("a", tuple(alone(300, cpu_ms, 0.0).runs[0] for cpu_ms in (290, 288, 291)))
    runs = tuple(alone(after_ms + 15, after_ms + away, 0.0).runs[0] for away in (0, 1, 2))
    plan = plan_race(options, {"1": before}, ())
    planned = PlannedWorkloads({"": Planned(plan, [], {"1": before}, Traces())})
    race = [replace(sliced(turns(310), 140), workload="") for _ in range(10)]
    assert planned.doubted(race) == ("",)
    assert planned.doubted(race[:9]) == ()
    after = planned.with_pilots("", {"1": replace(before, runs=runs)})
    assert bool(after.doubted(race)) == ends
    assert (after.seen_in(race) is not None) == ends


def test_a_program_that_sleeps_is_not_said_to_end_by_the_clock() -> None:
    pilot = alone(1000, 35, 0.9)
    assert by_the_wall_clock({"1": pilot}, sliced(ENDED, 35)) == ()


def test_slices_are_long_where_somebody_waits() -> None:
    busy, idle = alone(1000, 990, 0.0), alone(800, 300, 0.6)
    assert clock_slice_ns(5 * MS, [busy, busy]) == 5 * MS
    assert clock_slice_ns(5 * MS, [busy, idle]) == 200 * MS
    assert clock_slice_ns(5 * MS, [alone(8, 1, 0.9)]) == 5 * MS


def test_who_must_be_alone_takes_turns_with_a_sleeper() -> None:
    options = Options(("a", "b"))
    variants = variant_specs(command_variants(options), options, CpuPlan(), {"1": 200 * MS})
    command, sleeper = beside_a_sleeper(variants[0])
    assert (command.name, command.required) == ("1", True)
    assert sleeper.program.argv == ("sleep", "0.600000")
    assert sleeper.expected_ns == 600 * MS


def test_what_takes_far_longer_than_any_run_before_the_race_hangs() -> None:
    def deadline_s(options: Options, *wall_ms: int) -> float | None:
        pilots = {str(number): alone(ms, ms, 0.0) for number, ms in enumerate(wall_ms)}
        deadline_ns = plan_race(options, pilots, ()).deadline_ns
        return None if deadline_ns is None else deadline_ns / 10**9

    pair = Options(("a", "b"))
    assert deadline_s(pair, 20, 30) == 10
    assert deadline_s(pair, 900, 2000) == 40
    assert deadline_s(replace(pair, budget_ns=15 * 10**9), 900, 2000) == 15
    assert deadline_s(replace(pair, deadline_ns=10**9), 900, 2000) is None
