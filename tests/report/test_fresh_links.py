from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest

import report_data as data
from ensign.model.results import LayoutFacts, Result
from ensign.report import as_html, as_json, as_markdown, as_terminal, html_figures
from ensign.report.charts import Stack, stacks
from ensign.report.drawing import width_of
from ensign.report.layouts import fresh_sentence, layout_text, own_spread_text, wide_spreads
from ensign.report.verdict import verdict_of
from ensign.report.view import view_of
from unwrapped import unwrapped

BEST = "clang-19-O3-lto"


def with_fresh(low: float, high: float) -> Result:
    """The study with another prediction of its best variant, as log ratios."""
    result = data.relinked_study()
    return changed(result, BEST, fresh_low=math.exp(low), fresh_high=math.exp(high))


def changed(result: Result, name: str, **fields: float | None) -> Result:
    facts = result.layouts
    assert facts is not None
    rows = (
        replace(each, **fields) if name in ("", each.variant) else each  # type: ignore[arg-type]
        for each in facts.variants
    )
    return replace(result, layouts=replace(facts, variants=tuple(rows)))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.12, -0.03, "be 3.0 to 12.7 % faster than a fresh link of gcc-12-O2 (90 %)."),
        (0.03, 0.12, "be 3.0 to 11.3 % slower than a fresh link of gcc-12-O2 (90 %)."),
        (-0.05, 0.02, "be between 2.0 % slower and 5.1 % faster than a fresh link of"),
    ],
)
def test_a_fresh_link_stands_beside_the_mean(low: float, high: float, said: str) -> None:
    result = with_fresh(low, high)
    assert said in verdict_of(result).details[0]
    assert said in unwrapped(as_terminal.render(result))
    assert said in as_markdown.render(result).replace("\\", "")


def test_what_is_hardly_known_is_not_foretold() -> None:
    assert fresh_sentence(BEST, with_fresh(-1.5, 1.4)) == ()
    assert fresh_sentence(BEST, changed(data.relinked_study(), BEST, fresh_low=None)) == ()
    assert fresh_sentence("gcc-12-O2", data.relinked_study()) == ()
    assert fresh_sentence(BEST, data.study()) == ()


def test_a_spread_above_the_margin_is_said_and_one_below_it_in_details_alone() -> None:
    result = data.relinked_study()
    (said,) = wide_spreads(result)
    assert f"{BEST} 3.0 % (2.1 to 6.5 %) and gcc-12-O2 2.0 % (1.4 to 4.3 %)." in said
    assert "gcc-12-O3-lto" not in said
    assert said in verdict_of(result).details
    assert "gcc-12-O3-lto 0.40 % (0.28 to 0.84 %)" in layout_text(result)
    assert wide_spreads(changed(result, "", sd=0.001)) == ()
    assert wide_spreads(changed(result, "", low=0.0)) == ()
    assert wide_spreads(replace(result, margin=None)) == ()


def test_relinks_that_ran_once_do_not_tell_layouts_from_executions() -> None:
    result = changed(data.relinked_study(), "", execution_sd=None, low=0.0)
    for text in (*wide_spreads(result), own_spread_text(result)):
        assert "with the noise of executions in it" in text
        assert "3.0 % (at most 6.5 %)" in text
    assert "Each relink ran once" in layout_text(result)
    assert "Each relink ran once" not in layout_text(data.relinked_study())


def test_without_relinks_of_the_twin_no_spread_of_one_variant_is_told() -> None:
    result = changed(data.relinked_study(), "", sd=None, low=None, high=None, execution_sd=None)
    assert wide_spreads(result) == ()
    assert own_spread_text(result).startswith("Too few relinks of gcc-12-O2 differ")


def test_every_relink_is_a_dot_and_a_number() -> None:
    result = data.relinked_study()
    rows = json.loads(as_json.render(result))["layouts"]["variants"]
    assert [len(row["ratios"]) for row in rows] == [16, 8, 8]
    figure = html_figures.dots_figure(result, view_of(result))
    assert figure is not None
    # Below the dots of the two variants stand their means.
    assert figure.chart.count("<circle ") == 32 + 2
    assert "Each dot is a relink" in as_html.render(result)
    assert "Each dot is a relink" not in as_html.render(data.study())
    assert "Each dot is a relink" not in as_html.render(
        data.study(layouts=LayoutFacts(raced=6, kind="order"))
    )


def test_the_counts_beside_stacks_have_the_space_of_the_longest() -> None:
    value = "12 faster, 10 slower, 12 unclear, 15 not claimed"
    chart = stacks([Stack("a" * 40, value, (1, 2, 0, 0, 0, 0))], "Counts")
    assert value in chart
    assert "a" * 40 in chart
    assert width_of(value) > 6.5 * len(value)
    name, counts = sorted(map(float, re.findall(r'<text class="said" x="0" y="([0-9.]+)"', chart)))
    assert counts - name > 12  # on a line of its own
