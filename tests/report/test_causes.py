"""Sentences about causes."""

from __future__ import annotations

from dataclasses import replace

import report_data as data
from ensign.report import as_terminal
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


def test_the_only_cause_is_told_as_such() -> None:
    base = data.caused()
    first = base.causes[0]
    name, zero = "allocator: default → tcmalloc", replace(first.rest, effect=0.0, low=0.0, high=0.0)
    part = replace(first.total, name=name, share=1.0, share_low=1.0, share_high=1.0, proven=True)
    only = replace(base, causes=(replace(first, parts=(part,), rest=zero),))
    assert cause_sections(only)[0].text.endswith(f", all of it by {name}.")
    told = as_terminal.render(only)
    assert f"all of it by {name}" in " ".join(told.split())
    assert "compress_block" in told  # where it lies was not told before
    assert "Why, by" not in told
    some_left = cause_sections(replace(base, causes=(replace(first, parts=(part,)),)))[0]
    assert "is not explained" in some_left.text


def test_what_depends_on_others_is_told_where_that_matters() -> None:
    base = data.caused()
    first = base.causes[0]
    parts = [
        replace(first.parts[0], effect=-0.1, alone=alone, last=-0.1, depends=True)
        for alone in (-0.105, -0.15)
    ]
    small, large = (
        cause_sections(replace(base, causes=(replace(first, parts=(part,)),)))[0].text
        for part in parts
    )
    assert "depends on the others" not in small
    assert "depends on the others: −15.0 % alone, −10.0 % beside them" in large
