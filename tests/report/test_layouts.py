from __future__ import annotations

import html
import json
from dataclasses import replace

import report_data as data
from ensign.model.results import LayoutFacts, SuiteComparison
from ensign.report import as_html, as_json, as_markdown, as_terminal
from ensign.report.layouts import layout_text, scope
from ensign.report.verdict import verdict_of
from ensign.report.view import view_of
from report_data import SPREAD, comparison, study

RACED = LayoutFacts(raced=6, kind="shuffled sections", unable=("clang-19-O3-lto-bolt",))


def test_without_relinks_it_speaks_of_binaries() -> None:
    assert "not of these flags" in scope(study())
    assert layout_text(study()) == ""


def test_raced_relinks_speak_of_flags_and_name_what_could_not_be_relinked() -> None:
    said = scope(study(layouts=RACED))
    assert said.startswith("These flags, layouts as sampled")
    assert "not of these flags" not in said
    assert "clang-19-O3-lto-bolt could not be relinked" in said
    assert "Each relink ran once" in layout_text(study(layouts=RACED))


def test_the_band_and_the_parts_of_the_spread_are_in_every_report() -> None:
    result = study(layouts=SPREAD)
    text = layout_text(result)
    assert "another one lies between 2.9 % slower and 2.6 % faster (95 %)" in text
    assert "lay between 2.0 % slower and 1.0 % faster" in text
    assert "set −1.0 to +2.0 %" in text
    assert ": 1.21 % (at most 2.12 %) and 0.40 %, layouts being 90 % of the variance." in text
    for whole in (as_markdown.render(result), as_html.render(result)):
        plain = html.unescape(whole).replace("\u202f", " ").replace("\xa0", " ")
        assert "another one lies between 2.9 % slower and 2.6 % faster" in plain
    assert "another one lies" in " ".join(as_terminal.render(result, details=True).split())
    written = json.loads(as_json.render(result))["layouts"]
    assert written["spreads"][0]["high"] == 1.03
    assert written["splits"][0]["execution_sd"] == 0.004
    assert "layouts" not in json.loads(as_json.render(study()))


def test_a_difference_inside_the_band_is_a_doubt_and_beyond_it_none() -> None:
    def verdict_at(log_ratio: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        rows = (SuiteComparison(comparison("a", log_ratio, 0.004), 14),)
        said = verdict_of(study(suite=rows, layouts=SPREAD))
        return said.details, said.caveats

    details, caveats = verdict_at(-0.015)
    assert any("that the flags of a are the reason is not shown" in each for each in caveats)
    assert not any("beyond" in each for each in details)
    details, caveats = verdict_at(-0.08)
    assert any("beyond what a relink of the baseline does" in each for each in details)
    assert not any("reason" in each for each in caveats)


def test_rows_whose_whole_interval_lies_in_the_band_are_marked() -> None:
    rows = tuple(
        SuiteComparison(comparison(name, log_ratio, half), 14)
        for name, log_ratio, half in (
            ("inside", -0.015, 0.004),
            ("reaches-out", -0.015, 0.02),
            ("beyond", -0.08, 0.004),
            ("twin", 0.0, 0.001),
        )
    )
    result = study(suite=rows, layouts=SPREAD, twin="twin")
    marked = {row.name for row in view_of(result).suite if row.within_spread}
    assert marked == {"inside"}
    said = {each["variant"]: each for each in json.loads(as_json.render(result))["suite"]}
    assert {name: each["within_layout_spread"] for name, each in said.items()} == {
        "inside": True, "reaches-out": False, "beyond": False, "twin": None,
    }  # fmt: skip
    without = view_of(study(suite=rows))
    assert not any(row.within_spread for row in without.suite)


def test_a_workload_is_told_by_its_own_spread() -> None:
    inside = replace(SPREAD.spreads[1], low=0.5, high=2.0)
    result = study(layouts=replace(SPREAD, spreads=(SPREAD.spreads[0], inside)))
    for variant in view_of(result).variants:
        marked = {entry.row.name for entry in variant.rows if entry.row.within_spread}
        assert marked == (set() if variant.is_twin else {"set"})
    page = as_html.render(result)
    assert page.count(">within the layout spread<") == as_markdown.render(result).count(
        "<sub>within"
    )
    one = study(layouts=SPREAD, names=("set",))
    assert any(entry.row.within_spread for each in view_of(one).variants for entry in each.rows)


def test_a_split_without_any_spread_has_no_shares() -> None:
    still = replace(SPREAD.splits[0], layout_sd=0.0, layout_high=0.0, execution_sd=0.0)
    assert "variance" not in layout_text(data.study(layouts=replace(SPREAD, splits=(still,))))
