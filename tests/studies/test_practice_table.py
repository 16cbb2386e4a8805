"""The table of practices, from planted results."""

from __future__ import annotations

import csv
import io
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TABLE = runpy.run_path(str(ROOT / "bench/practice_table.py"))
BASE = {"compiler": "gcc-12", "optimization": "-O2", "lto": "off", "pgo": "off"}
BASE |= {"target": "default", "floating_point": "default"}


def build(variant: str, *, status: str = "built", **changes: str) -> dict[str, Any]:
    facts = {"log_tail": "", "check": "passed", "check_failed": "", "check_tail": "", "out": ""}
    return {"variant": variant, "choices": {**BASE, **changes}, "status": status, **facts}


def compared(variant: str, ratio: float, low: float, high: float) -> dict[str, Any]:
    interval = {"ratio": ratio, "low": low, "high": high, "level": 0.95}
    return {"variant": variant, **interval, "withheld": None}


def planted() -> dict[str, Any]:
    """A study of five builds, in which -O3 costs 0.8 of the baseline."""
    return {
        "experiment": {
            "baseline": "base", "title": "A|B", "metric": "cpu", "mode": "interleaved",
            "rounds_done": 12, "made_at": "2026-11-23T10:00:00", "withheld": "",
        },
        "machine": {"CPU": "Fast"},
        "aa": compared("twin", 1.0, 0.99, 1.01),
        "builds": [
            build("base"),
            build("o3", optimization="-O3"),
            build("v3", target="x86-64-v3"),
            build("v3-strict", target="x86-64-v3", floating_point="strict"),
        ],
        "suite": [compared("o3", 0.8, 0.5, 1.25), compared("v3", 0.9, 0.8, 1.0)],
        "factorial": {
            "main": [],
            "conditional": [
                {
                    "changes": [{"axis": "floating_point", "old": "default", "new": "strict"}],
                    "given": {"target": "x86-64-v3"}, "only": {"lto": "off"}, "groups": 1,
                    "ratio": 2.0, "low": 1.6, "high": 2.5, "level": 0.95,
                }
            ],
        },
        "failed": [],
        "findings": [],
        "layouts": {"raced": 12, "unable": []},
    }  # fmt: skip


def said(results: dict[str, Any], label: str) -> str:
    row = next(row for row in TABLE["ROWS"]["practices"] if label in row.label)
    cell: str = TABLE["figure"](results, row).cell()
    return cell


def test_a_ratio_of_costs_becomes_a_speedup_with_its_interval_turned_round() -> None:
    assert said(planted(), "`-O3`") == "+25.0 % (−20.0 % to +100.0 %)"


def test_a_practice_on_top_of_another_is_the_pair_itself() -> None:
    assert said(planted(), "multiply-add") == "−50.0 % (−60.0 % to −37.5 %)"
    results = planted()
    results["factorial"]["conditional"][0]["given"] = {"target": "native"}
    assert said(results, "multiply-add") == "withheld: the study has no such pair"


def test_an_average_of_several_pairs_is_not_the_pair() -> None:
    results = planted()
    results["factorial"]["conditional"][0]["groups"] = 2
    assert said(results, "multiply-add") == "withheld: the study has no such pair"


def test_equal_bytes_have_no_price_and_no_interval() -> None:
    results = planted()
    results["builds"][1] |= {"status": "same", "same_as": "base"}
    assert said(results, "`-O3`") == "0 (the same code)"


def test_equal_bytes_of_another_variant_take_its_figure() -> None:
    results = planted()
    results["builds"][1] |= {"status": "same", "same_as": "v3"}
    assert said(results, "`-O3`").startswith("+11.1 %")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "left out", "log_tail": "no -ljemalloc"}, "not possible here: no -ljemalloc"),
        ({"status": "failed"}, "it does not build"),
        ({"status": "not as asked"}, "it was not built as asked"),
        ({"check_failed": "fast: prints 2"}, "wrong results: fast: prints 2"),
        ({"check": "failed", "check_tail": "a | b"}, "wrong results: a / b"),
        ({"out": "crashes"}, "crashes"),
    ],
)
def test_a_build_that_may_not_count_is_withheld_with_the_reason(
    change: dict[str, str], why: str
) -> None:
    results = planted()
    results["builds"][1] |= change
    assert said(results, "`-O3`") == f"withheld: {why}"


def test_what_failed_or_has_an_error_or_was_not_raced_is_withheld() -> None:
    results = planted()
    results["failed"] = [{"variant": "o3"}]
    assert said(results, "`-O3`") == "withheld: it failed in the race"
    results = planted()
    results["findings"] = [
        {"severity": "warning", "subject": "o3", "code": "w", "text": "no matter"},
        {"severity": "error", "subject": "o3", "code": "lto-lost", "text": "no LTO\nat all"},
    ]
    assert said(results, "`-O3`") == "withheld: lto-lost: no LTO"
    results = planted()
    results["suite"] = []
    assert said(results, "`-O3`") == "withheld: it was not raced"
    assert said(planted(), "GCC 11") == "withheld: not in the study"


@pytest.mark.parametrize("where", ["row", "study"])
def test_what_the_judge_withheld_stays_withheld(where: str) -> None:
    results = planted()
    found = results["suite"][0] if where == "row" else results["experiment"]
    found["withheld"] = "self-timed"
    assert said(results, "`-O3`") == "withheld: self-timed"


def test_no_interval_is_no_figure() -> None:
    results = planted()
    results["suite"][0] |= {"low": None, "high": None}
    assert said(results, "`-O3`") == "withheld: too few rounds for an interval"


def columns(results: dict[str, Any]) -> dict[str, Any]:
    return {"a": TABLE["column"]("practices", results), "b": None}


def test_the_page_says_how_each_program_was_measured() -> None:
    results = planted()
    page = TABLE["markdown"]("practices", columns(results))
    assert "| `-O3` | +25.0 % (−20.0 % to +100.0 %) |\n" in page
    assert "| b | not raced |" in page
    assert "| a | A/B; cpu, interleaved, 12 rounds, 12 relinks, 2026-11-23, Fast; a copy of" in page
    assert "do not trust" not in page
    results["aa"] |= {"low": 1.001}
    assert "do not trust" in TABLE["markdown"]("practices", columns(results))


def test_csv_has_a_row_for_each_practice_and_program() -> None:
    text = TABLE["table_csv"]("practices", columns(planted()))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2 * len(TABLE["ROWS"]["practices"]) + 1
    (o3,) = (row for row in rows if row["practice"] == "`-O3`" and row["program"] == "a")
    assert (o3["speedup"], o3["low"], o3["high"]) == ("25.000", "-20.000", "100.000")
    assert o3["withheld"] == ""
    assert {row["withheld"] for row in rows if row["program"] == "b"} == {"not raced"}


def test_what_was_raced_on_another_machine_stays_in_the_table() -> None:
    results = planted()
    results["builds"][1] |= {"status": "same", "same_as": "base"}
    made = columns(results)
    kept = TABLE["of_csv"](TABLE["table_csv"]("practices", made))
    assert list(kept) == ["a"]
    again = {"a": kept["a"], "b": None}
    assert TABLE["markdown"]("practices", again) == TABLE["markdown"]("practices", made)
    assert TABLE["table_csv"]("practices", again) == TABLE["table_csv"]("practices", made)


@pytest.mark.parametrize("layouts", [None, {"raced": 12, "unable": ["o3"]}])
def test_what_is_of_one_binary_is_marked_and_not_quoted(layouts: dict[str, Any] | None) -> None:
    results = planted()
    made = {"zstd": TABLE["column"]("practices", results)}
    assert TABLE["worth"](made)["O3"][0]["worth"] == "GCC 12: zstd +25.0 %"
    results["layouts"] = layouts
    made = {"zstd": TABLE["column"]("practices", results)}
    assert said(results, "`-O3`") == "+25.0 % (−20.0 % to +100.0 %) †"
    assert "O3" not in TABLE["worth"](made)
    kept = TABLE["of_csv"](TABLE["table_csv"]("practices", made))
    assert TABLE["worth"](kept) == TABLE["worth"](made)


def test_text_of_others_cannot_break_the_table() -> None:
    assert TABLE["_line"]("a|b`<c\x1b[31m\nsecond") == "a/b'‹c?[31m"
    assert len(TABLE["_line"]("x" * 500)) == 100
