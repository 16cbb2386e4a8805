"""Curves over a parameter in words and drawings."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

import report_data as data
from ensign.model.curves import Crossover
from ensign.model.finding_kinds.race import LINK_SATURATED
from ensign.model.results import Confirmation, Result
from ensign.model.trials import Better, Metric
from ensign.report.curve_charts import curves
from ensign.report.curves import CurvesView, curves_views


def view(result: Result) -> CurvesView:
    (found,) = curves_views(result)
    return found


def crossing(found: Crossover | None) -> str:
    base = data.curved_study()
    return view(replace(base, curves=(replace(base.curves[0], crossover=found),))).sentences[-1]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            Crossover(65536.0, 1024.0, 65536.0),
            "From 64 KiB on no two builds differ by more than 1 %; that begins at 1 KiB to 64 KiB.",
        ),
        (
            Crossover(64.0, 64.0, 64.0),
            "From 64 B on no two builds differ by more than 1 %; below that some do.",
        ),
        (
            Crossover(64.0, 1.0, 64.0),
            "From 64 B on no two builds differ by more than 1 %; that begins at 1 B to 64 B.",
        ),
        (
            Crossover(1.0, 1.0, 1.0),
            "No two builds differ by more than 1 %, whatever the size.",
        ),
        (
            Crossover(None, None, None),
            "Builds differ by more than 1 % at the greatest value, 64 KiB, too.",
        ),
        (
            Crossover(64.0, 1.0, None),
            (
                "It is not shown that no two builds differ by more than 1 % at 64 KiB. "
                "By their means none do from 64 B on."
            ),
        ),
        (
            Crossover(None, 65536.0, None),
            (
                "It is not shown that no two builds differ by more than 1 % at 64 KiB. "
                "Up to 1 KiB some do."
            ),
        ),
    ],
)
def test_where_builds_are_alike(found: Crossover, said: str) -> None:
    assert crossing(found) == said


def test_the_best_is_a_set_where_it_cannot_be_told() -> None:
    first, second, _ = view(data.curved_study()).sentences
    assert first == "Best of gcc-12: gcc-12-O2. Worst: gcc-12-O0."
    assert second.startswith(
        "Best of clang-19: clang-19-O2 and clang-19-O1 (cannot be told apart). "
    )


def test_from_where_on_the_link_is_full() -> None:
    def said(*workloads: str) -> tuple[str, ...]:
        found = tuple(LINK_SATURATED.found("full", each) for each in workloads)
        return view(data.curved_study(findings=found)).sentences

    assert "From 1 KiB on the link is full." in said("fill-1024", "fill-65536")
    assert "From 64 KiB on the link is full." in said("fill-1", "fill-65536")
    assert not any("link" in sentence for sentence in (*said(), *said("fill-1", "fill-1024")))


def test_a_confirmation_knows_of_the_link_by_the_pilots_of_the_exploration() -> None:
    full = LINK_SATURATED.found("full", "fill-65536")
    phase = Confirmation(("clang-19-O2",), 9, 9, 0.95, "ab", (), data.curved_study())
    explored = data.curved_study(findings=(full,), confirmation=phase)
    assert "From 64 KiB on the link is full." in view(explored).sentences


def test_a_cost_over_bytes_has_three_figures() -> None:
    shown = view(data.curved_study())
    titles = [graph.title for graph in shown.graphs]
    assert titles == [
        "CPU time per operation",
        "operations per second of CPU time",
        "Mb/s of CPU time",
    ]
    time, rate, megabits = (graph.curves[0].points[1] for graph in shown.graphs)
    assert rate.mean == pytest.approx(1e9 / time.mean)
    assert (rate.low, rate.high) == pytest.approx((1e9 / time.high, 1e9 / time.low))
    assert megabits.mean == pytest.approx(64 * 8 * rate.mean / 1e6)
    by_wall = view(replace(data.curved_study(), metric=Metric.WALL))
    assert [graph.title for graph in by_wall.graphs][1:] == ["operations per second", "Mb/s"]


def test_a_score_is_drawn_as_it_is() -> None:
    shown = view(data.curved_study(Better.HIGHER))
    assert [graph.title for graph in shown.graphs] == ["msg/s"]


def test_of_an_exploration_nothing_is_claimed() -> None:
    explored = data.curved_study(confirmation=Confirmation((), 0, 0, 0.95, "", ()))
    assert view(explored).sentences == ()
    second = data.curved_study()
    confirmed = Confirmation(("clang-19-O2",), 9, 9, 0.95, "ab", (), second)
    assert view(replace(explored, confirmation=confirmed)).sentences


def test_the_drawing_has_a_line_and_a_band_for_each_build() -> None:
    for graph in view(data.curved_study()).graphs:
        svg = ET.fromstring(curves(graph))  # noqa: S314  # our own
        lines = [each for each in svg.iter("polyline") if each.get("fill") == "none"]
        assert len(lines) == 2 * 4  # with the legend's
        assert sum("stroke-dasharray" in each.attrib for each in lines) == 2 * 2
        assert len([*svg.iter("polygon")]) == 4
        places = [float(each.get("cy", "")) for each in svg.iter("circle")]
        assert all(0 <= place <= 240 for place in places)
        texts = [each.text for each in svg.iter("text")]
        assert {"64 KiB", "gcc-12-O0", "size, B"} <= {*texts}


def test_an_unbounded_band_ends_at_the_frame() -> None:
    base = data.curved_study()
    (curve_set,) = base.curves
    curve = curve_set.curves[1]
    points = tuple(replace(each, low=0.0, high=float("inf")) for each in curve.points)
    wide = replace(
        curve_set,
        curves=(curve_set.curves[0], replace(curve, points=points), *curve_set.curves[2:]),
    )
    for graph in view(replace(base, curves=(wide,))).graphs:
        assert "inf" not in curves(graph)
        assert "nan" not in curves(graph)
