from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ensign.model.trials import Trial
from ensign.stats.disturbed import taken_findings, taken_share

MakeTrial = Callable[..., Trial]


def disturbed(make_trial: MakeTrial, cpu_wait_ns: int | None) -> Trial:
    trial = make_trial({"a": (80, 100, 1), "b": (80, 100, 1)})
    return replace(
        trial, variants=tuple(replace(one, cpu_wait_ns=cpu_wait_ns) for one in trial.variants)
    )


def test_the_share_is_of_the_wall_time_where_it_was_read(make_trial: MakeTrial) -> None:
    totals = [*disturbed(make_trial, 20).variants, *disturbed(make_trial, None).variants]
    assert taken_share(totals) == pytest.approx(0.2)
    assert taken_share(disturbed(make_trial, None).variants) is None


@pytest.mark.parametrize(("cpu_wait_ns", "count"), [(None, 0), (0, 0), (4, 0), (20, 1), (90, 1)])
def test_much_of_it_is_a_finding(
    make_trial: MakeTrial, cpu_wait_ns: int | None, count: int
) -> None:
    assert len(taken_findings([disturbed(make_trial, cpu_wait_ns)])) == count


def test_what_it_did_to_the_ratios_is_said(make_trial: MakeTrial) -> None:
    trials = [disturbed(make_trial, 50 if index % 2 else 2) for index in range(12)]
    ratios = [(0.05 if index % 4 == 1 else -0.05) if index % 2 else 0.001 for index in range(12)]
    (found,) = taken_findings(trials, ratios)
    assert "other processes used the CPU for 26 % of the race" in found.text
    assert "the half with the least of it vary by 0.00 %, of the other half by 5.48 %" in found.text
