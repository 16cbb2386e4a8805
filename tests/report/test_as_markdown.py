from __future__ import annotations

import re

import report_data as data
from ensign.report import as_markdown


def test_it_fits_into_a_comment() -> None:
    text = as_markdown.render(data.huge_study())
    assert len(text) < 65_536
    assert "more variants: see the HTML report" in text


def test_hostile_names_stay_text() -> None:
    text = as_markdown.render(data.extreme_study())
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(http", text)


def test_every_row_of_a_table_has_its_columns() -> None:
    for text in (as_markdown.render(data.study()), as_markdown.render(data.compared_several())):
        blocks = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
        assert blocks
        for block in blocks:
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(counts) == 1
