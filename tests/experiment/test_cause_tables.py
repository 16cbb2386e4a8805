"""Tables of causes from costs whose parts are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import report_data as data
from ensign.experiment.causes import as_judged, cause_tables
from ensign.model.comparisons import Direction
from ensign.model.study_explain import Explain, ToggledCause
from ensign.model.trials import Metric
from ensign.stats.rounds import RoundCosts

CAUSES = [
    ToggledCause(name="x", added="with x", removed="without x"),
    ToggledCause(name="y", added="with y", removed="without y"),
]


def costs(logs: Mapping[str, float], workloads: tuple[str, ...] = ("w",)) -> RoundCosts:
    """Six rounds of little noise around these."""
    rng = np.random.default_rng(7)
    means = np.array([*logs.values()])[:, None, None]
    y = means + rng.normal(0, 1e-4, (len(logs), len(workloads), 6))
    return RoundCosts(Metric.CPU, tuple(logs), workloads, tuple(range(6)), (), y)


def test_what_the_start_adds_is_left_over() -> None:
    logs = {"a": 0.0, "b": 0.10, "s": 0.04, "with x": 0.09, "with y": 0.05}
    logs |= {"without x": 0.05, "without y": 0.09}
    explain = Explain(variant="b", start="s", causes=CAUSES)
    (table,) = cause_tables(explain, {}, costs(logs), 0.95)
    assert [part.name for part in table.parts] == ["x", "y"]
    assert [part.share for part in (*table.parts, table.rest)] == pytest.approx(
        [0.5, 0.1, 0.4], abs=0.01
    )
    assert table.parts[0].proven
    del logs["s"]
    (table,) = cause_tables(explain, {}, costs(logs), 0.95)
    assert [part.share for part in table.parts] == pytest.approx([0.5, 0.1], abs=0.01)


def test_either_of_two_is_enough() -> None:
    logs = {"a": 0.0, "b": 0.10, "with x": 0.10, "with y": 0.10, "without x": 0.10}
    logs["without y"] = 0.10
    every = cause_tables(Explain(variant="b", causes=CAUSES), {}, costs(logs, ("v", "w")), 0.95)
    assert [table.workload for table in every] == ["v", "w", ""]
    for part in every[-1].parts:
        assert part.depends
        assert (part.share, part.alone, part.last) == pytest.approx((0.5, 0.105, 0.0), abs=0.01)


def test_a_cause_that_no_cell_tells_is_unknown() -> None:
    logs = {"a": 0.0, "b": 0.10, "with x": 0.10, "without x": 0.0}
    (table,) = cause_tables(Explain(variant="b", causes=CAUSES), {}, costs(logs), 0.95)
    assert [(part.name, bool(part.unknown), part.depends) for part in table.parts] == [
        ("x", False, False),
        ("y", True, False),
    ]


def test_ends_that_do_not_differ_have_no_causes() -> None:
    logs = dict.fromkeys(("a", "b", "with x", "without x", "with y", "without y"), 0.0)
    (table,) = cause_tables(Explain(variant="b", causes=CAUSES), {}, costs(logs), 0.95)
    assert not table.different
    assert not any(part.proven or part.depends for part in table.parts)


@pytest.mark.parametrize("workload", ["w", "elsewhere"])
def test_what_the_race_does_not_show_has_no_causes(workload: str) -> None:
    result = data.compared()
    row = next(each for each in result.suite if each.comparison.variant != result.twin)
    unclear = replace(row.comparison, direction=Direction.UNCLEAR, ratio=1.0, low=0.98, high=1.02)
    logs = {"a": 0.0, "b": 0.10, "with x": 0.10, "without x": 0.0}
    (table,) = cause_tables(Explain(variant="b", causes=CAUSES[:1]), {}, costs(logs), 0.95)
    table = replace(table, variant=unclear.variant, workload=workload)
    shown = replace(result, suite=(row,), workloads=())
    assert as_judged([table], shown) == (table,)
    (told,) = as_judged([table], replace(shown, suite=(replace(row, comparison=unclear),)))
    assert not told.different
    assert (told.total.low, told.total.high) == pytest.approx((-0.02, 0.02))
    assert not any(part.proven for part in told.parts)
