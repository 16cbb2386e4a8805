from __future__ import annotations

import pytest

import report_data as data
from ensign.report import as_json, as_markdown, as_terminal
from ensign.report.terminal_page import Screen
from ensign.report.view import BandCell, bands, view_of
from ensign.stats.suite import band_edges


def test_the_edges_are_those_of_the_redis_study() -> None:
    assert [band.label for band in bands(band_edges())] == [
        "worse than −1 %", "within 1 %", "+1 to +5 %", "+5 to +10 %", "+10 to +20 %", "above +20 %",
    ]  # fmt: skip


@pytest.mark.parametrize("margin", [0.005, 0.03, 0.05, 0.07, 0.3])
def test_every_band_has_a_name(margin: float) -> None:
    edges = band_edges(margin)
    named = bands(edges)
    assert len({band.label for band in named}) == len({band.short for band in named})
    assert [band.rank for band in named] == list(range(len(edges) + 1))


def test_the_minimum_stands_in_brackets_where_it_differs() -> None:
    assert (BandCell(4, 4).both, BandCell(4, 3).both) == ("4", "4 (3)")


def test_a_variant_has_its_own_counts() -> None:
    result = data.study()
    by_name = {one.variant: one for one in result.bands}
    for variant in view_of(result).variants:
        assert variant.counts == by_name[variant.name].by_mean
        assert [cell.minimum for cell in variant.bands] == list(by_name[variant.name].by_minimum)


def test_without_counts_nothing_is_said_of_bands() -> None:
    result = data.study(bands=(), band_edges=())
    assert "by estimated speedup" not in as_terminal.render(result, Screen(120), details=True)
    assert "by estimated speedup" not in as_markdown.render(result)
    assert '"bands": []' in as_json.render(result)
