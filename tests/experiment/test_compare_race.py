import math
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import pytest

from ensign.experiment.compare.race import RaceLimits, race_commands
from ensign.experiment.loop import trial_seed
from ensign.meter.client import Json, Verb
from ensign.meter.requests import ProcessSpec, RaceRequest, VariantSpec
from ensign.model.errors import CommandFailed
from ensign.model.results import Stopped
from ensign.model.trials import TWIN, Metric, Mode, Trial
from ensign.stats.rounds import round_costs
from ensign.stats.suite import round_geomeans
from races import SimulatedMeter

MS = 1_000_000
S = 10**9


def a_request() -> RaceRequest:
    variants = tuple(VariantSpec(name, ProcessSpec(("true",))) for name in ("1", "2", "twin"))
    return RaceRequest(variants, Mode.INTERLEAVED, slice_ns=5 * MS, executions=1, seed=3)


def requests() -> dict[str, RaceRequest]:
    return {"": a_request()}


def never(_: Sequence[Trial]) -> Stopped | None:
    return None


def ignore(_: Sequence[Trial]) -> None:
    return


def test_batches_end_at_the_looks_and_the_race_at_the_look_that_suffices() -> None:
    meter = SimulatedMeter(lambda _variant, _n: 10 * MS)
    looked: list[int] = []

    def may_end(trials: Sequence[Trial]) -> Stopped | None:
        looked.append(len(trials))
        return Stopped.PRECISION if len(trials) >= 10 else None

    outcome = race_commands(
        meter,
        {"": a_request()},
        RaceLimits(10**12, look=True, may_end=may_end),
        meter.clock_ns,
        ignore,
    )
    assert looked == [5, 7, 10]
    assert outcome.stopped is Stopped.PRECISION
    assert [request["executions"] for _, request in meter.requests] == [5, 2, 3]
    assert [trial.round_index for trial in outcome.trials] == list(range(10))


def test_the_budget_ends_a_race_between_looks() -> None:
    meter = SimulatedMeter(lambda _variant, _n: 10 * MS)
    outcome = race_commands(
        meter,
        {"": a_request()},
        RaceLimits(250 * MS, look=True, may_end=never),
        meter.clock_ns,
        ignore,
    )
    assert outcome.stopped is Stopped.BUDGET
    assert len(outcome.trials) == 8
    assert meter.now_ns <= 250 * MS


@dataclass
class MeterOfBatches(SimulatedMeter):
    """As the real one, it starts none that would not fit if it took as long as its longest."""

    start_ns: int = 0

    def run(self, verb: Verb, request: Json) -> Generator[Json]:
        self.now_ns += self.start_ns
        longest_ns, begin_ns, held = 0, self.now_ns, list[Json]()
        for record in super().run(verb, {**request, "budget_ns": None}):
            held.append(record)
            if record["type"] in ("start", "execution"):
                yield from held
                held.clear()
                longest_ns = max(longest_ns, int(record.get("wall_ns", 0)))  # type: ignore[call-overload]
                spent_ns = self.now_ns - begin_ns + longest_ns
                if longest_ns and spent_ns > int(request["budget_ns"]):  # type: ignore[call-overload]
                    break
        yield {"type": "end", "status": "complete", "executions": 0}


def test_one_long_execution_does_not_end_a_race_early() -> None:
    """Of 60 s, one execution of 20 s left the last 20 s unused; 0.03 s suffice for another."""
    meter = MeterOfBatches(lambda _variant, n: 7 * S if n == 30 else 10 * MS)
    limits = RaceLimits(60 * S, look=True, may_end=never, round_ns=30 * MS)
    outcome = race_commands(meter, requests(), limits, meter.clock_ns, ignore)
    assert outcome.stopped is Stopped.BUDGET
    assert 60 * S - meter.now_ns < 30 * MS
    assert meter.now_ns <= 60 * S


@pytest.mark.parametrize(("start_ms", "budget_s"), [(0, 31), (400, 31), (400, 100), (20, 9)])
def test_a_long_execution_is_not_begun_where_it_does_not_fit(start_ms: int, budget_s: int) -> None:
    """A batch that began after a look took one execution more, whatever was left."""
    meter = MeterOfBatches(lambda _variant, _n: 1 * S, start_ns=start_ms * MS)
    limits = RaceLimits(budget_s * S, look=True, may_end=never, round_ns=3 * S)
    outcome = race_commands(meter, requests(), limits, meter.clock_ns, ignore)
    # What starting the meter takes is known after the first time.
    assert meter.now_ns <= budget_s * S + start_ms * MS
    assert meter.now_ns + 3 * S + 2 * start_ms * MS > budget_s * S
    assert outcome.trials


def test_a_long_race_keeps_totals_and_only_so_many_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensign.experiment.loop._MOST_SLICES", 30)
    meter = SimulatedMeter(lambda _variant, _n: 10 * MS)
    limits = RaceLimits(1 * S, look=True, may_end=never, round_ns=30 * MS)
    outcome = race_commands(meter, requests(), limits, meter.clock_ns, ignore)
    assert [len(trial.slices) for trial in outcome.trials[:11]] == [3] * 10 + [0]
    assert all(len(trial.variants) == 3 for trial in outcome.trials)
    assert len(outcome.trials) == 33


def test_without_looks_nobody_is_asked() -> None:
    meter = SimulatedMeter(lambda _variant, _n: 10 * MS)

    def may_end(_: Sequence[Trial]) -> Stopped | None:
        raise AssertionError

    limits = RaceLimits(200 * MS, look=False, may_end=may_end)
    outcome = race_commands(meter, requests(), limits, meter.clock_ns, ignore)
    assert len(outcome.trials) == 6
    assert len(meter.requests) == 1


def test_ctrl_c_keeps_what_was_measured() -> None:
    meter = SimulatedMeter(lambda _variant, _n: 10 * MS, interrupt_after=6)
    outcome = race_commands(
        meter,
        {"": a_request()},
        RaceLimits(10**12, look=True, may_end=never),
        meter.clock_ns,
        ignore,
    )
    assert outcome.stopped is Stopped.INTERRUPTED
    assert len(outcome.trials) == 6


def test_each_batch_has_its_own_seed() -> None:
    meter = SimulatedMeter(lambda _variant, _n: 10 * MS)
    race_commands(
        meter,
        {"": a_request()},
        RaceLimits(400 * MS, look=True, may_end=never),
        meter.clock_ns,
        ignore,
    )
    seeds = [request["seed"] for _, request in meter.requests][:3]
    assert seeds == [trial_seed(3, rounds, "") for rounds in (0, 5, 7)]


@dataclass
class FirstPaysMeter(SimulatedMeter):
    """Who is first in the order that the seed gives takes a fifth more."""

    def run(self, verb: Verb, request: Json) -> Generator[Json]:
        # Not for secrets.
        first = random.Random(str(request["seed"])).choice(("1", "2", "twin"))  # noqa: S311
        self.cost_ns = lambda variant, _n: 12 * MS if variant == first else 10 * MS
        yield from super().run(verb, request)


def test_what_the_first_place_costs_averages_out_over_the_workloads_of_a_round() -> None:
    meter = FirstPaysMeter(lambda _variant, _n: 10 * MS)
    eight = {f"w{number}": a_request() for number in range(8)}
    limits = RaceLimits(10**15, look=False, may_end=never, most=400)
    outcome = race_commands(meter, eight, limits, meter.clock_ns, ignore)
    seeds = [request["seed"] for _, request in meter.requests]
    assert len(set(seeds)) == len(seeds) == 3200
    costs = round_costs(outcome.trials, ("1", "2", "twin"), tuple(eight), Metric.CPU)
    ratios = round_geomeans(costs.log_ratios("2", "1"))
    # Of one workload: a third of the rounds is +ln 1.2, a third −ln 1.2, a third 0.
    alone = math.log(1.2) * math.sqrt(2 / 3)
    assert ratios.std() == pytest.approx(alone / math.sqrt(8), rel=0.15)
    assert abs(ratios.mean()) < 5 * alone / math.sqrt(8 * 400)


@dataclass
class FailingMeter(SimulatedMeter):
    fail_after: int = 0

    def run(self, verb: Verb, request: Json) -> Generator[Json]:
        for record in super().run(verb, request):
            if self._executions > self.fail_after:
                yield {"type": "error", "code": "crashed", "variant": "2", "text": "it fell over"}
            yield record


def test_a_failure_keeps_what_was_measured_and_calls_the_variant_by_its_name() -> None:
    meter = FailingMeter(lambda _variant, _n: 10 * MS, fail_after=6)
    limits = RaceLimits(10**12, look=True, may_end=never, names={"2": "new"})
    outcome = race_commands(meter, requests(), limits, meter.clock_ns, ignore)
    assert len(outcome.trials) == 6
    assert outcome.stopped is Stopped.FAILED
    assert str(outcome.error) == "new: it fell over"


def test_a_failure_before_anything_was_measured_is_raised() -> None:
    meter = FailingMeter(lambda _variant, _n: 10 * MS)
    limits = RaceLimits(10**12, look=True, may_end=never)
    with pytest.raises(CommandFailed, match="2: it fell over"):
        race_commands(meter, requests(), limits, meter.clock_ns, ignore)


def test_many_commands_race_in_groups_that_are_dealt_anew_in_each_round() -> None:
    """Each race is slower than the one before; `5` costs a tenth more than the baseline."""

    def cost_ns(variant: str, execution: int) -> int:
        return round(10 * MS * 1.01**execution * (1.1 if variant == "5" else 1.0))

    names = [str(number) for number in range(1, 11)]
    variants = tuple(VariantSpec(name, ProcessSpec(("true",))) for name in (*names, TWIN))
    request = replace(a_request(), variants=variants)
    meter = SimulatedMeter(cost_ns)
    limits = RaceLimits(10**12, look=True, may_end=never, most=6, together={"": 5})
    outcome = race_commands(meter, {"": request}, limits, meter.clock_ns, ignore)
    assert [len(trial.groups) for trial in outcome.trials] == [3] * 6
    assert [trial.round_index for trial in outcome.trials] == list(range(6))
    assert len({frozenset(map(frozenset, trial.groups)) for trial in outcome.trials}) == 6
    costs = round_costs(outcome.trials, (*names, TWIN), ("",), Metric.CPU)
    others = [name for name in names if name not in ("1", "5")]
    assert all(costs.log_ratios(name, "1") == pytest.approx(0, abs=1e-6) for name in others)
    assert costs.log_ratios("5", "1") == pytest.approx(math.log(1.1), abs=1e-6)
