from __future__ import annotations

import report_data as data
from ensign.model.results import SignificantWorkloads
from ensign.report import as_html, as_markdown, as_terminal
from ensign.report.view import view_of

SIGNIFICANT = (
    SignificantWorkloads("clang-19-O3", ("mset",), ("set", "get")),
    SignificantWorkloads("gcc-12-O3", (), ()),
)


def test_a_line_names_what_differs() -> None:
    said = {
        one.name: one.significant for one in view_of(data.study(significant=SIGNIFICANT)).variants
    }
    assert said["clang-19-O3"] == "2 faster (set and get), 1 slower (mset)"
    assert said["gcc-12-O3"] == "none"
    assert said["clang-19-O2"] == ""


def test_every_report_has_the_line() -> None:
    result = data.study(significant=SIGNIFICANT)
    line = "clang-19-O3: 2 faster (set and get), 1 slower (mset)"
    assert line in as_terminal.render(result, details=True)
    assert f"- {line}" in as_markdown.render(result)
    assert "Significant after Holm: 2 faster (set and get), 1 slower (mset)" in as_html.render(
        result
    )


def test_without_names_nothing_is_said_of_holm() -> None:
    result = data.study(significant=())
    for text in (
        as_terminal.render(result, details=True),
        as_markdown.render(result),
        as_html.render(result),
    ):
        assert "Holm" not in text
