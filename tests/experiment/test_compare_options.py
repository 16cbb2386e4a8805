from dataclasses import replace

import pytest

from ensign.experiment.compare.commands import command_variants, parse_env
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.plan import (
    RacedWorkloads,
    budget_ns,
    experiment_of,
    output_findings,
    plan_race,
    with_memory,
)
from ensign.experiment.compare.variants import variant_specs
from ensign.experiment.machine import CpuPlan
from ensign.experiment.pilots import CommandPilot, PilotRun
from ensign.meter.requests import Load
from ensign.model.errors import InputError
from ensign.model.experiment import Experiment
from ensign.model.trials import Metric, Mode, Score, TaskActivity

S = 10**9
MS = 10**6
CPUS = CpuPlan((1,), (0,), (0,))
TWO = Options(commands=("old x", "new x"))
SERVERS = Options(commands=("a --port {port}", "b --port {port}"), load=("hit -p {port}",))


def pilot(
    name: str, cpu_ns: int, *, idle: float = 0.0, busy: int = 1, output: str = "same"
) -> CommandPilot:
    """Three runs of 100 ms: idle for a share of it, otherwise so many tasks at a time."""
    busy_ns = round((1 - idle) * 100 * MS)
    seen = TaskActivity(
        looks=100,
        observed_ns=100 * MS,
        idle_ns=100 * MS - busy_ns,
        several_ns=busy_ns if busy > 1 else 0,
        runnable_ns=busy * busy_ns,
        busiest_cpu_ns=cpu_ns // busy,
    )
    run = PilotRun(100 * MS, cpu_ns, 0, seen, peak_memory_bytes=100)
    return CommandPilot(name, (run,) * 3, output)


def test_the_first_command_is_the_baseline_and_names_are_unique() -> None:
    commands = command_variants(Options(commands=("gzip f", "gzip f", "gzip f"), names=("old",)))
    assert [command.name for command in commands] == ["old", "gzip f", "gzip f (2)"]


def test_an_option_given_once_stands_for_every_command() -> None:
    commands = command_variants(replace(TWO, prepare=("sync",), setup=("a", "b")))
    assert [command.prepare for command in commands] == [("sync",), ("sync",)]
    assert [command.setup for command in commands] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(commands=("one",)), "two commands"),
        (replace(TWO, prepare=("a", "b", "c")), "--prepare is given 3 times for 2"),
        (replace(TWO, budget_ns=0), "--budget"),
        (replace(TWO, slice_ns=10), "--slice"),
        (replace(TWO, names=("a", "b", "c")), "3 names for 2"),
        (replace(TWO, preload=("x",)), "--preload needs --load"),
        (Options(commands=("a {port}", "b {port}")), "no --load"),
        (replace(TWO, benchmarks="google-benchmarks"), "nearest is 'google-benchmark'"),
        (
            replace(TWO, benchmarks="pyperf", score=Score("(.)")),
            "and --score cannot be combined",
        ),
        (replace(TWO, benchmarks="pyperf", metric=Metric.CPU), "instead of cpu time"),
        (replace(TWO, benchmarks="pyperf", mode=Mode.INTERLEAVED), "whole executions"),
        (replace(TWO, benchmarks="pyperf", operations="3"), "no --operations"),
        (replace(TWO, benchmarks="pyperf", shell="/bin/sh"), "no --shell"),
        (replace(TWO, benchmarks="libtest", output="null"), "no --output null"),
        (replace(SERVERS, benchmarks="pyperf"), "no --load"),
        (replace(TWO, expected="f", output="null"), "what is printed"),
        (replace(TWO, expected_sha256="ABC"), "64 digits"),
        (replace(SERVERS, expected="f"), "not for servers"),
        (replace(SERVERS, commands=("a --port 1", "b --port {port}")), "{port}"),
        (replace(SERVERS, load=("hit",)), "the load 'hit'"),
        (replace(SERVERS, ready="soon"), "--ready"),
        (replace(SERVERS, output="f"), "batch programs"),
    ],
)
def test_wrong_options_are_one_clear_line(options: Options, said: str) -> None:
    with pytest.raises(InputError) as caught:
        command_variants(options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_baseline_races_against_its_twin() -> None:
    commands = command_variants(TWO)
    variants = variant_specs(commands, TWO, CPUS, {"1": 5, "2": 7})
    assert [variant.name for variant in variants] == ["1", "2", "twin"]
    assert variants[2].program == variants[0].program
    assert [variant.expected_ns for variant in variants] == [5, 7, 5]
    assert all(variant.program.cpus == (1,) for variant in variants)


def test_benchmarks_are_told_to_write_their_figures() -> None:
    options = replace(TWO, benchmarks="google-benchmark")
    spec = variant_specs(command_variants(options), options, CPUS, {})[0]
    assert spec.program.argv[:2] == ("old", "x")
    assert "--benchmark_out={tmp}/google-benchmark.json" in spec.program.argv
    assert spec.report is not None
    assert spec.report.file == "{tmp}/google-benchmark.json"
    options = replace(TWO, benchmarks="criterion", env=("A=b",))
    spec = variant_specs(command_variants(options), options, CPUS, {})[0]
    assert [each.name for each in spec.scores] == [""]
    assert spec.program.env == (("CRITERION_HOME", "{tmp}/criterion"), ("A", "b"))
    plan = plan_race(options, {"1": pilot("old x", 100 * MS), "2": pilot("new x", 100 * MS)}, ())
    assert (plan.metric, plan.mode) == (Metric.SCORE, Mode.ALTERNATING)


def test_servers_get_their_load_on_the_other_cpus() -> None:
    options = replace(SERVERS, operations="1000")
    variant = variant_specs(command_variants(options), options, CPUS, {})[0]
    assert isinstance(variant.load, Load)
    assert variant.load.process.cpus == (0,)
    assert variant.load.operations == 1000
    assert variant.ready is not None


def test_env_entries() -> None:
    assert parse_env(("A=1", "B=x=y")) == (("A", "1"), ("B", "x=y"))
    with pytest.raises(InputError, match="NAME=VALUE"):
        parse_env(("A",))


@pytest.mark.parametrize(
    ("second", "mode", "metric", "pinned"),
    [
        (pilot("b", 99 * MS), Mode.INTERLEAVED, Metric.CPU, True),
        # On a busy machine it had the CPU for a tenth of the time: that is no waiting.
        (pilot("b", 10 * MS), Mode.INTERLEAVED, Metric.CPU, True),
        (pilot("b", 10 * MS, idle=0.9), Mode.ALTERNATING, Metric.WALL, True),
        (pilot("b", 190 * MS, busy=2), Mode.ALTERNATING, Metric.WALL, False),
        (pilot("b", 60 * MS, busy=2), Mode.ALTERNATING, Metric.WALL, False),
        (pilot("b", 2 * MS, busy=2), Mode.INTERLEAVED, Metric.CPU, True),
    ],
)
def test_behavior_decides_how_to_race(
    second: CommandPilot, mode: Mode, metric: Metric, *, pinned: bool
) -> None:
    plan = plan_race(TWO, {"1": pilot("a", 99 * MS), "2": second}, ())
    assert (plan.mode, plan.metric, plan.pinned) == (mode, metric, pinned)


def test_wall_time_of_servers_is_that_of_whole_executions() -> None:
    pilots = {"1": pilot("a", 30 * MS, idle=0.7), "2": pilot("b", 30 * MS, idle=0.7)}
    usual = plan_race(SERVERS, pilots, ())
    assert (usual.mode, usual.metric) == (Mode.INTERLEAVED, Metric.CPU)
    wall = plan_race(replace(SERVERS, metric=Metric.WALL), pilots, ())
    assert (wall.mode, wall.metric) == (Mode.ALTERNATING, Metric.WALL)


def test_a_score_is_compared_by_turns() -> None:
    plan = plan_race(replace(TWO, score=Score("(.)")), {"1": pilot("a", 9 * MS)}, ())
    assert (plan.mode, plan.metric) == (Mode.ALTERNATING, Metric.SCORE)


def test_the_users_choice_goes_first_and_is_doubted() -> None:
    pilots = {"1": pilot("a", MS, idle=0.9), "2": pilot("b", MS, idle=0.9)}
    plan = plan_race(replace(TWO, mode=Mode.INTERLEAVED, metric=Metric.CPU), pilots, ())
    assert (plan.mode, plan.metric) == (Mode.INTERLEAVED, Metric.CPU)
    assert [finding.code for finding in plan.findings] == [
        "interleaved-by-request",
        "cpu-by-request",
    ]


def test_memory_is_told_then_taken_by_turns_then_refused() -> None:
    pilots = {"1": pilot("a", 99 * MS), "2": pilot("b", 99 * MS)}
    plan = plan_race(TWO, pilots, ())
    assert with_memory(TWO, plan, pilots, 10_000) == plan
    told = with_memory(TWO, plan, pilots, 600)
    assert (told.mode, [finding.code for finding in told.findings]) == (
        Mode.INTERLEAVED,
        ["memory"],
    )
    turns = with_memory(TWO, plan, pilots, 300)
    assert (turns.mode, turns.apart) == (Mode.ALTERNATING, True)
    with pytest.raises(InputError, match="one run takes"):
        with_memory(TWO, plan, pilots, 100)
    with pytest.raises(InputError, match="--mode interleaved keeps all"):
        with_memory(replace(TWO, mode=Mode.INTERLEAVED), plan, pilots, 300)


@pytest.mark.parametrize(
    ("size", "together"),
    [(None, None), (1, 3), (5, 7), (22, 24), (23, None), (40, None)],
)
def test_commands_race_in_groups_of_a_size_that_is_asked_for(
    size: int | None, together: int | None
) -> None:
    pilots = {str(number): pilot("a", 9 * MS) for number in range(1, 25)}
    plan = plan_race(replace(TWO, group_size=size), pilots, ())
    assert plan.together == together
    assert [each.code for each in plan.findings] == ["raced-in-groups"] * (together is not None)
    usual = plan_race(TWO, pilots, ())
    assert (plan.execution_ns > usual.execution_ns) == (together is not None)


def test_commands_that_do_not_fit_into_memory_race_in_groups_that_do() -> None:
    pilots = {str(number): pilot("a", 99 * MS) for number in range(1, 7)}
    plan = plan_race(TWO, pilots, ())
    assert plan.together is None
    grouped = with_memory(TWO, plan, pilots, 700)
    assert (grouped.mode, grouped.apart, grouped.together) == (Mode.INTERLEAVED, False, 5)
    assert [finding.code for finding in grouped.findings] == ["raced-in-groups"]
    assert grouped.execution_ns > plan.execution_ns
    asked = replace(TWO, mode=Mode.INTERLEAVED)
    assert with_memory(asked, plan_race(asked, pilots, ()), pilots, 700).together == 5
    assert with_memory(TWO, plan, pilots, 300).mode is Mode.ALTERNATING
    assert with_memory(replace(TWO, twin=False), plan, pilots, 700).mode is Mode.ALTERNATING


def test_the_budget_grows_for_slow_programs_only_when_it_was_left_to_us() -> None:
    assert budget_ns(TWO, 1 * S, 0) == 30 * S
    assert budget_ns(TWO, 20 * S, 10 * S) == 190 * S
    assert budget_ns(replace(TWO, budget_ns=60 * S), 20 * S, 10 * S) == 60 * S
    with pytest.raises(InputError, match=r"--budget 53s at least .2 executions., or 179s for 8"):
        budget_ns(replace(TWO, budget_ns=30 * S), 20 * S, 10 * S)


def ruled(options: Options, rounds: int) -> Experiment:
    return experiment_of(options, ("a", "b"), RacedWorkloads(("",), Metric.CPU), rounds, S)


def test_a_budget_alone_is_spent_whole() -> None:
    assert ruled(TWO, 100).precision == pytest.approx(0.005)
    assert ruled(replace(TWO, budget_ns=S), 100).precision is None
    assert ruled(replace(TWO, margin=0.01), 100).precision is None


def test_few_executions_are_not_peeked_into() -> None:
    assert not ruled(TWO, 7).sequential
    assert ruled(TWO, 8).sequential


def test_outputs_that_differ_are_found() -> None:
    assert output_findings((pilot("a", 1), pilot("b", 1))) == ()
    assert output_findings((pilot("a", 1), pilot("b", 1, output=""))) == ()
    (finding,) = output_findings((pilot("a", 1), pilot("b", 1, output="other")))
    assert finding.code == "outputs-differ"
    assert "printed other output than a" in finding.text
    assert finding.subject == "b"
    (finding,) = output_findings((pilot("a", 1), pilot("b", 1, output="other")), again="third")
    assert finding.code == "outputs-not-compared"
