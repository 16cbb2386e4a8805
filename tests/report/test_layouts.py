from __future__ import annotations

import html
import json
from dataclasses import replace

import report_data as data
from ensign.model.results import LayoutBand, LayoutFacts, LayoutSplit, SuiteComparison
from ensign.report import as_html, as_json, as_markdown, as_terminal
from ensign.report.layouts import layout_text, scope
from ensign.report.verdict import study_verdict
from report_data import comparison, study

BAND = LayoutFacts(
    raced=0,
    kind="object order and padding",
    splits=(LayoutSplit("gcc-12-O2", 8, 24, 0.012, 0.021, 0.004),),
    bands=(
        LayoutBand("", 8, 0.99, 1.02, 0.975, 1.03),
        LayoutBand("set", 8, 0.98, 1.01, 0.96, 1.04),
    ),
)
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
    result = study(layouts=BAND)
    text = layout_text(result)
    assert "another one lies between 2.9 % slower and 2.6 % faster (95 %)" in text
    assert "lay between 2.0 % slower and 1.0 % faster" in text
    assert "set −1.0 to +2.0 %" in text
    assert "between layouts 1.21 % (at most 2.12 % at 95 %), of an execution 0.40 %" in text
    assert "layouts are 90 % of the variance" in text
    for whole in (as_markdown.study(result), as_html.study(result)):
        plain = html.unescape(whole).replace("\u202f", " ").replace("\xa0", " ")
        assert "another one lies between 2.9 % slower and 2.6 % faster" in plain
    assert "another one lies" in " ".join(as_terminal.study(result).split())
    written = json.loads(as_json.study(result))["layouts"]
    assert written["bands"][0]["high"] == 1.03
    assert written["splits"][0]["execution_sd"] == 0.004
    assert "layouts" not in json.loads(as_json.study(study()))


def test_a_difference_inside_the_band_is_a_doubt_and_beyond_it_none() -> None:
    def verdict_of(log_ratio: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        rows = (SuiteComparison(comparison("a", log_ratio, 0.004), 14),)
        said = study_verdict(study(suite=rows, layouts=BAND))
        return said.details, said.caveats

    details, caveats = verdict_of(-0.015)
    assert any("that the flags of a are the reason is not shown" in each for each in caveats)
    assert not any("beyond" in each for each in details)
    details, caveats = verdict_of(-0.08)
    assert any("beyond what a relink of the baseline does" in each for each in details)
    assert not any("reason" in each for each in caveats)


def test_a_split_without_any_spread_has_no_shares() -> None:
    still = replace(BAND.splits[0], layout_sd=0.0, layout_high=0.0, execution_sd=0.0)
    assert "variance" not in layout_text(data.study(layouts=replace(BAND, splits=(still,))))
