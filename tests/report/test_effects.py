from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

import report_data as data
from ensign.model.builds import CheckStatus
from ensign.model.comparisons import AxisChange, Direction, Effect, Factorial
from ensign.model.findings import Finding, Severity
from ensign.report import as_json, as_markdown
from ensign.report.charts import placed
from ensign.report.effects import (
    change_words,
    condition_words,
    effects_view,
    restriction_words,
    shown,
)
from ensign.report.html_figures import UNCLEAR, heat_map, user_figure
from ensign.report.trade import hardening_rows, trade_view
from ensign.report.view import view_of
from report_simulation import simulated_study

LTO = AxisChange("lto", "off", "full")
O3 = AxisChange("optimization", "-O2", "-O3")
MARGIN = math.log1p(data.MARGIN)


def effect(
    log_ratio: float,
    half: float,
    *,
    significant: bool,
    changes: tuple[AxisChange, ...] = (LTO,),
    **more: Any,
) -> Effect:
    fields: dict[str, Any] = {"given": (), "only": (), "groups": 4, "other": None, **more}
    return Effect(
        changes=changes,
        comparison=data.comparison("full", log_ratio, half),
        significant=significant,
        **fields,
    )


def said(*main: Effect, **lists: tuple[Effect, ...]) -> tuple[str, ...]:
    factorial = Factorial(main, lists.get("conditional", ()), lists.get("interactions", ()))
    view = effects_view(data.study(factorial=factorial))
    assert view is not None
    return view.sentences


def test_nothing_is_said_only_where_the_whole_interval_lies_within_the_margin() -> None:
    inside = effect(0.001, MARGIN - 0.002, significant=False)
    across = effect(0.001, MARGIN + 0.002, significant=False)
    assert "is worth nothing beyond the margin of 1 %" in said(inside)[0]
    assert "is unclear: between" in said(across)[0]
    assert "nothing" not in said(across)[0]


def test_what_changes_no_byte_has_no_effect() -> None:
    assert "has no effect: the programs are the same" in said(effect(0, 0, significant=False))[0]


def test_without_a_margin_nothing_is_nothing() -> None:
    none = Effect(
        (LTO,), (), (), 4, data.comparison("full", 0, 0.001, margin=None), None, significant=False
    )
    view = effects_view(data.study(margin=None, factorial=Factorial((none,), (), ())))
    assert view is not None
    assert "is unclear" in view.sentences[0]


def test_a_direction_is_said_only_after_holm() -> None:
    found = effect(-0.02, 0.003, significant=True)
    assert said(found) == (
        "LTO is worth +2.0 % (+1.7 to +2.3 %), over 4 matched pairs, one binary each.",
    )
    missed = effect(-0.02, 0.003, significant=False)
    # Its own interval excludes 0: elsewhere that pair may be called faster, so not "unclear" here.
    assert (
        "is not claimed after Holm's adjustment, by its own interval between 1.7" in said(missed)[0]
    )
    assert shown(missed).direction is Direction.UNCLEAR


def test_a_small_effect_is_named_with_the_margin() -> None:
    assert (
        "+0.5 %, less than the margin of 1 % (" in said(effect(-0.005, 0.001, significant=True))[0]
    )


def test_what_an_effect_depends_on_is_said_where_the_interaction_is_shown() -> None:
    main = effect(-0.01, 0.002, significant=True)
    at_o3 = effect(-0.019, 0.003, significant=True, given=(("optimization", "-O3"),))
    at_o2 = effect(0.0, 0.003, significant=False, given=(("optimization", "-O2"),))
    both = effect(-0.016, 0.004, significant=True, changes=(O3, LTO), groups=2)
    lists = {"conditional": (at_o3, at_o2), "interactions": (both,)}
    alone, together = said(main, **lists)
    assert "It depends: at -O3 +1.9 % (" in alone
    assert "; at -O2 nothing beyond 1 % (" in alone
    assert together.startswith("-O3 instead of -O2 and LTO together give 1.6 % more than each")
    unknown = replace(both, significant=False)
    (without,) = said(main, conditional=(at_o3, at_o2), interactions=(unknown,))
    assert "It depends" not in without


def test_a_level_that_pays_only_when_code_is_aligned_is_said() -> None:
    aligned = AxisChange("alignment", "default", "loops")
    main = effect(-0.04, 0.01, significant=True, changes=(O3,), groups=2)
    conditions = tuple(
        effect(
            ratio, 0.01, significant=ratio != 0, changes=(O3,), groups=1, given=(("alignment", at),)
        )
        for ratio, at in ((0.0, "default"), (-0.08, "loops"))
    )
    both = effect(-0.08, 0.01, significant=True, changes=(O3, aligned), groups=1)
    alone, together = said(main, conditional=conditions, interactions=(both,))
    assert "It depends: with default alignment unclear (" in alone
    assert "; with functions and loops aligned +8.3 % (" in alone
    assert together.startswith("-O3 instead of -O2 and alignment of functions and loops together ")
    assert restriction_words((("alignment", "functions"),)) == "with functions aligned"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (LTO, "LTO"),
        (AxisChange("lto", "full", "off"), "no LTO"),
        (AxisChange("lto", "full", "thin"), "thin LTO instead of LTO"),
        (O3, "-O3 instead of -O2"),
        (AxisChange("pgo", "off", "on"), "PGO"),
        (AxisChange("hardening", "default", "canary"), "hardening canary"),
        (AxisChange("hardening", "none", "canary"), "hardening canary instead of none"),
        (AxisChange("flags", "", "-fno-plt"), "flags -fno-plt"),
        (AxisChange("flags", "-fno-plt", ""), "flags none instead of -fno-plt"),
        (AxisChange("alignment", "default", "functions"), "alignment of functions"),
        (
            AxisChange("alignment", "functions", "loops"),
            "alignment of functions and loops instead of functions",
        ),
        (AxisChange("dependencies", "plain", "flags"), "giving the flags to the dependencies"),
    ],
)
def test_changes_are_said_as_people_say_them(change: AxisChange, words: str) -> None:
    assert change_words(change) == words


def test_conditions_leave_out_what_nobody_asked_for_only_where_all_share_them() -> None:
    conditions = (("compiler", "gcc-12"), ("lto", "off"), ("pgo", "on"))
    assert condition_words(conditions) == "with gcc-12, without LTO, with PGO"
    assert restriction_words(conditions) == "with gcc-12, with PGO"


def test_the_note_says_of_what_it_speaks() -> None:
    view = effects_view(simulated_study())
    assert view is not None
    for part in ("matched pairs", "Holm", "Without relinks", "margin of 1 %"):
        assert part in view.note
    assert view.other_metric == "wall time"


def test_the_front_is_of_builds_that_pass_their_checks() -> None:
    result = simulated_study()
    trade = trade_view(result, view_of(result))
    assert trade is not None
    assert [point.number for point in trade.points] == list(range(1, 25))
    fastest = trade.points[0]
    assert fastest.fronts == "size and build time"
    wrong = tuple(
        replace(build, check=CheckStatus.FAILED) if build.variant == fastest.label else build
        for build in result.builds
    )
    failed = replace(result, builds=wrong)
    without = trade_view(failed, view_of(failed))
    assert without is not None
    assert len(without.points) == 23


def test_what_an_error_speaks_against_trades_nothing() -> None:
    result = simulated_study()
    fastest = view_of(result).compared[0].name
    error = Finding("no-trace", Severity.ERROR, "LTO has no trace", fastest)
    unfit = replace(result, findings=(error,))
    trade = trade_view(unfit, view_of(unfit))
    assert trade is not None
    assert fastest not in {point.label for point in trade.points}
    figure = user_figure(unfit, view_of(unfit))
    assert figure is not None
    assert figure.caption.startswith("gcc-12-O3-lto-pgo-bolt")


def test_unknown_sizes_are_on_no_front() -> None:
    result = simulated_study()
    unknown = replace(result, builds=tuple(replace(one, size_bytes=0) for one in result.builds))
    trade = trade_view(unknown, view_of(unknown))
    assert trade is not None
    assert len(trade.sentences) == 1
    assert all(not point.on_size_front and point.size == "unknown" for point in trade.points)


def test_hardening_is_held_against_the_same_build_without_it() -> None:
    result = simulated_study()
    rows = hardening_rows(result, effects_view(result))
    assert [row.effect.label for row in rows] == [
        "hardening canary", "hardening fortify", "hardening pie", "hardening openssf"
    ]  # fmt: skip
    sizes = {build.variant: build.size_bytes for build in result.builds}
    change = sizes["gcc-12-O2-hard-pie"] / sizes["gcc-12-O2"] - 1
    assert rows[2].size == f"{change * 100:+.1f} %".replace("-", "−")
    assert hardening_rows(data.study(), None) == ()


def test_the_map_has_a_cell_for_each_workload_and_build_and_no_figure_where_it_is_unclear() -> None:
    heat = heat_map(view_of(simulated_study()))
    assert heat is not None
    assert (len(heat.rows), len(heat.builds)) == (50, 23)
    cells = [cell for row in heat.rows for cell in row.cells if cell is not None]
    assert len(cells) == 50 * 23
    assert all((cell.text == "") == (cell.tone == UNCLEAR) for cell in cells)
    assert all(" to " in cell.said for cell in cells)
    assert heat_map(view_of(data.empty_study())) is None


def test_labels_do_not_cover_each_other_while_there_is_room() -> None:
    points = [(100.0 + 14 * (i % 4), 100.0 + 14 * (i // 4)) for i in range(12)]
    labels = placed(points, [(str(i),) for i in range(12)], (300, 300))
    centers = {(label.x, label.y) for label in labels}
    assert len(centers) == 12
    close = [
        (one, other)
        for i, one in enumerate(labels)
        for other in labels[i + 1 :]
        if abs(one.x - other.x) < 6 and abs(one.y - other.y) < 12
    ]
    assert close == []


def test_json_and_markdown_have_the_effects() -> None:
    effects = json.loads(as_json.render(simulated_study()))["factorial"]
    assert effects["main"][3]["changes"] == [{"axis": "lto", "old": "off", "new": "full"}]
    assert effects["main"][3]["other_metric"]["metric"] == "wall"
    assert {"main", "conditional", "interactions"} == set(effects)
    text = as_markdown.render(simulated_study())
    assert "LTO is worth +1.2 %" in text
    assert "| clang-19-O3-lto-pgo-bolt |" in text
