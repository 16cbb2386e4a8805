"""Relinks through `ensign run`, with real builds and races."""

from __future__ import annotations

import json

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, write_study


def report_of(ensign: Ensign, layouts: str) -> dict[str, object]:
    sampled = BATCH.replace('layouts = "natural"\n', "")
    write_study(ensign.folder, f"{sampled}\n[layouts]\n{layouts}\n")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    again = ensign("run", "study.toml")
    assert again.status == 0, again.err
    report = ensign("report", "study.toml", "--json", "-")
    assert report.status == 0, report.err
    parsed: dict[str, object] = json.loads(report.out)
    parsed["text"] = done.said
    return parsed


def test_rounds_take_turns_with_relinks(ensign: Ensign) -> None:
    said = report_of(ensign, "count = 2")
    assert said["layouts"]["raced"] == 2  # type: ignore[index]
    assert said["layouts"]["unable"] == []  # type: ignore[index]
    assert "These flags, layouts as sampled" in str(said["text"])
    assert {row["executions"] for row in said["workloads"]} == {2}  # type: ignore[attr-defined]
    assert len(list(ensign.folder.glob(".ensign/*/trials/*/*.csv.gz"))) == 6


def test_the_spread_of_the_baseline_is_measured_apart(ensign: Ensign) -> None:
    said = report_of(ensign, 'count = 3\nvariants = "baseline"')
    spreads = said["layouts"]["spreads"]  # type: ignore[index]
    assert [spread["workload"] for spread in spreads] == ["", "short", "long"]
    assert all(
        spread["low"] <= spread["least"] <= spread["greatest"] <= spread["high"]
        for spread in spreads
    )
    assert "only the baseline was relinked" in str(said["text"])
    assert {row["executions"] for row in said["workloads"]} == {3}  # type: ignore[attr-defined]
    assert len(list(ensign.folder.glob(".ensign/*/trials/*/*.csv.gz"))) == 6 + 6
