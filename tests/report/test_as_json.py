from __future__ import annotations

import json

import pytest

import report_data as data
from ensign.report import as_json

JUDGED = {"withheld", "correlation", "other_metric"}


def test_a_study_has_the_documented_keys() -> None:
    content = json.loads(as_json.render(data.study()))
    suite = {"variant", "ratio", "low", "high", "level", "direction", "size", "workloads"}
    suite |= {"within_layout_spread", "non_inferior", "not_shown", *JUDGED}
    workload = {
        "workload", "variant", "metric", "ratio", "low", "high", "direction", "size", "executions",
        "within_layout_spread", "baseline_cost_ns", "variant_cost_ns", "user_share",
        "baseline_score", "variant_score", "unit",
        *JUDGED,
    }  # fmt: skip
    assert {"suite", "workloads", "builds", "findings"} <= set(content)
    assert all(set(row) == suite for row in content["suite"])
    assert all(set(row) == workload for row in content["workloads"])
    assert "twin" in [row["variant"] for row in content["suite"]]
    assert len(content["workloads"]) == 7 * 14


def test_a_comparison_has_the_documented_keys() -> None:
    content = json.loads(as_json.render(data.compared_several()))
    keys = {
        "variant", "baseline", "metric", "ratio", "low", "high", "level", "direction", "size",
        "executions", *JUDGED,
    }  # fmt: skip
    assert all(set(row) == keys for row in (*content["comparisons"], content["aa"]))
    other = content["comparisons"][0]["other_metric"]
    assert (other["metric"], other["disagrees"]) == ("wall", False)
    assert other["variant"]["waiting"] == pytest.approx(0.02)
    assert content["machine"]["ASLR"] == "full"
    assert content["trials"][0]["variants"][0]["cpu_ns"] == 806_000_000
    row = dict(zip(content["slice_columns"], content["trials"][0]["slices"][0], strict=True))
    assert row["wall_ns"] == 5_000_000


def test_what_is_infinite_or_unknown_is_null() -> None:
    content = json.loads(as_json.render(data.extreme_study()))
    row = next(row for row in content["suite"] if row["variant"] == "twin")
    assert (row["low"], row["high"]) == (0.0, None)
    assert json.loads(as_json.render(data.empty_study()))["experiment"]["running_share"] is None
    alone = data.compared(suite=data.compared().suite[:1], twin="")
    assert json.loads(as_json.render(alone))["aa"] is None
