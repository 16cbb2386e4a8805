"""Whole outputs against files in golden/; on a mismatch the actual text is written beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import report_data as data
from ensign.report import as_csv, as_json, as_markdown, as_terminal
from ensign.report.terminal_page import Screen
from report_simulation import simulated_study

GOLDEN = Path(__file__).parent / "golden"
_whole = partial(as_terminal.render, details=True)
CASES: dict[str, Callable[[], str]] = {
    "study-60.txt": lambda: _whole(data.study(), Screen(60, unicode=False)),
    "study-120.txt": lambda: _whole(data.study(), Screen(120)),
    "study-empty.txt": lambda: _whole(data.empty_study()),
    "study-extreme.txt": lambda: _whole(data.extreme_study()),
    "study-huge.txt": lambda: _whole(data.huge_study(), Screen(100)),
    "study-spread.txt": lambda: _whole(data.study(layouts=data.SPREAD), Screen(100)),
    "study-relinks.txt": lambda: _whole(data.relinked_study(), Screen(100)),
    "study-relinks.csv": lambda: as_csv.render(data.relinked_study()),
    "study-relinks.json": lambda: as_json.render(data.relinked_study()),
    "study-latency.txt": lambda: _whole(data.study(latency=data.latencies()), Screen(80)),
    "study-latency-120.txt": lambda: _whole(data.study(latency=data.latencies()), Screen(120)),
    "study-latency.md": lambda: as_markdown.render(data.study(latency=data.latencies())),
    "study-latency.csv": lambda: as_csv.render(data.study(latency=data.latencies())),
    "study-confirmed.txt": lambda: _whole(data.confirmed_study(), Screen(100)),
    "study-confirmed.md": lambda: as_markdown.render(data.confirmed_study()),
    "study-confirmed.csv": lambda: as_csv.render(data.confirmed_study()),
    "study-confirmed.json": lambda: as_json.render(data.confirmed_study()),
    "study-choices.txt": lambda: _whole(simulated_study(), Screen(100)),
    "study-curves.txt": lambda: _whole(data.curved_study(), Screen(80)),
    "study-curves-brief.txt": lambda: as_terminal.render(data.curved_study()),
    "study-curves.md": lambda: as_markdown.render(data.curved_study()),
    "study-curves.csv": lambda: as_csv.render(data.curved_study()),
    "compare-60.txt": lambda: _whole(data.compared(), Screen(60, unicode=False)),
    "compare-120.txt": lambda: _whole(data.compared(), Screen(120)),
    "compare-several.txt": lambda: _whole(data.compared_several()),
    "explain-60.txt": lambda: _whole(data.explained(), Screen(60, unicode=False)),
    "explain-120.txt": lambda: _whole(data.explained(), Screen(120)),
    "explain-brief.txt": lambda: as_terminal.render(data.explained()),
    "why-60.txt": lambda: _whole(data.caused(), Screen(60, unicode=False)),
    "why-brief.txt": lambda: as_terminal.render(data.caused()),
    "why.md": lambda: as_markdown.render(data.caused()),
    "why.json": lambda: as_json.render(data.caused()),
    "explain.md": lambda: as_markdown.render(data.explained()),
    "explain.json": lambda: as_json.render(data.explained()),
    "study-brief.txt": lambda: as_terminal.render(data.study()),
    "study-confirmed-brief.txt": lambda: as_terminal.render(data.confirmed_study()),
    "compare-brief.txt": lambda: as_terminal.render(data.compared()),
    "study.md": lambda: as_markdown.render(data.study()),
    "study-extreme.md": lambda: as_markdown.render(data.extreme_study()),
    "study-spread.md": lambda: as_markdown.render(data.study(layouts=data.SPREAD)),
    "compare.md": lambda: as_markdown.render(data.compared_several()),
    "study.csv": lambda: as_csv.render(data.study()),
    "study-extreme.csv": lambda: as_csv.render(data.extreme_study()),
    "compare.csv": lambda: as_csv.render(data.compared_several()),
    "study.json": lambda: as_json.render(data.study()),
    "study-extreme.json": lambda: as_json.render(data.extreme_study()),
    "compare.json": lambda: as_json.render(data.compared()),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    path, actual = GOLDEN / name, CASES[name]()
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    beside = path.with_name(f"{name}.actual")
    if actual != expected:
        beside.write_text(actual, encoding="utf-8")
        pytest.fail(f"{path.name} differs; the actual text is in {beside}")
    beside.unlink(missing_ok=True)
