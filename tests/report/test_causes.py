"""Sentences about causes."""

from __future__ import annotations

from dataclasses import replace

import report_data as data
from ensign.report.causes import cause_sections


def test_causes_that_cancel_are_told_by_their_sizes() -> None:
    base = data.caused()
    large = replace(base.causes[0].parts[0], effect=0.208, share=5.65)
    table = replace(base.causes[0], parts=(large, *base.causes[0].parts[1:]))
    (section,) = cause_sections(replace(base, causes=(table,)))
    assert "Causes cancel in part: +20.8 % is -fno-plt, +2.0 % is " in section.text
    assert "−4.0 % is not explained" in section.text
    (usual,) = cause_sections(replace(base, causes=base.causes[:1]))
    assert "Of that, 83 % is -fno-plt, −17 % is " in usual.text
