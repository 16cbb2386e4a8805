"""The differential flame graph: widths by time, colors by what is added."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from ensign.model.results import FunctionCost, FunctionCosts
from ensign.report import drawing
from ensign.report.flame_graph import flame_graph


def row(name: str, before: float, after: float, file: str = "") -> FunctionCost:
    adds = (after - before) / 100
    return FunctionCost(name, file, before, after, adds, adds - 0.01, adds + 0.01)


def boxes(*rows: FunctionCost) -> dict[str, tuple[float, float, float, str]]:
    """Left edge, height, width and color by the name of the function."""
    total = row("", sum(r.before_ns for r in rows), sum(r.after_ns for r in rows))
    drawn = flame_graph(FunctionCosts("b", "w", 0.95, total=total, by_stack=rows))
    assert drawn is not None
    svg = ET.fromstring(str(drawn))  # noqa: S314  # drawn here
    found = {}
    for box in svg.iter("rect"):
        x, y, width = (float(box.attrib[key]) for key in ("x", "y", "width"))
        found[box.findtext("title", "").partition(":")[0]] = (x, y, width, box.attrib["fill"])
    return found


def test_inlined_functions_stand_below_and_within_theirs() -> None:
    found = boxes(
        row("main;work;step", 10, 30), row("main", 40, 40), row("memcpy", 50, 30, "libc.so")
    )
    whole, main, work = found["all CPU time"], found["main"], found["work"]
    assert main[2] / whole[2] == 0.6
    assert round(work[2] / main[2], 3) == round(40 / 120, 3)
    assert found["step"][0] == work[0] >= main[0]
    assert whole[1] < main[1] < work[1] < found["step"][1]
    assert found["memcpy [libc.so]"][0] >= main[0] + main[2] - 0.1


def test_what_adds_is_orange_and_what_is_saved_is_blue() -> None:
    found = boxes(
        row("slow", 10, 40), row("fast", 50, 30), row("same", 40, 40), row("tiny", 0, 0.01)
    )
    assert found["slow"][3] == drawing.HEAT[0].light
    assert found["fast"][3] == drawing.HEAT[6].light
    assert found["same"][3] == drawing.GRID.light
    assert "tiny" not in found


def test_nothing_is_drawn_without_debug_information() -> None:
    assert flame_graph(FunctionCosts("b", "w", 0.95, total=row("", 1, 2))) is None


def test_names_of_strangers_are_escaped() -> None:
    found = boxes(row("f<int>&;\x1b[31mg", 50, 60))
    assert "f<int>&" in found
    assert not any("\x1b" in name for name in found)
