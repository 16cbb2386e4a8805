"""Curves over a parameter in words, rows and drawings: the same for every renderer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ensign.model.curves import Curve, CurvePoint, CurveSet, Extremes
from ensign.model.finding_kinds.race import LINK_SATURATED
from ensign.model.results import Result
from ensign.model.study_parameter import number_text
from ensign.model.trials import Metric
from ensign.report import figures
from ensign.report.confirmation import confirmed, findings_of
from ensign.report.words import METRICS, clean, listed, percent, plain_share
from ensign.stats.named_scores import workload_of

READ = (
    "Means of each build, and its distance from the baseline's as an interval: what all builds "
    "share, such as a slow hour of the machine, is not in it."
)
_MOST_CURVES = 8
_BYTES = "B"
_KIB = 1024
_BITS_OF_MEGABIT = 8 / 1e6


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve as it is drawn: `rank` is the compiler's, and the worst of it is dashed."""

    label: str
    points: tuple[CurvePoint, ...]
    rank: int
    is_worst: bool


@dataclass(frozen=True, slots=True)
class CurveGraph:
    """Curves of one figure over the parameter. `said` writes a value of it for people."""

    title: str
    along: str
    values: tuple[float, ...]
    ticks: tuple[str, ...]
    curves: tuple[Drawn, ...]
    said: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class CurvesView:
    """Curves for people: sentences, the table's head and rows, and what can be drawn."""

    name: str
    sentences: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    graphs: tuple[CurveGraph, ...]


def curves_views(result: Result) -> tuple[CurvesView, ...]:
    """One for each curve: of the confirmation, where there is one."""
    second = confirmed(result)
    shown = second if second is not None and second.curves else result
    explored = shown is result and result.confirmation is not None
    # A confirmation makes no pilots of its own, which tell whether a link is full.
    told = replace(shown, findings=findings_of(result))
    return tuple(_view(curve_set, told, explored=explored) for curve_set in shown.curves)


def _view(curve_set: CurveSet, result: Result, *, explored: bool) -> CurvesView:
    drawn = _drawn(curve_set)
    main, *others = _graphs(curve_set, result.metric, drawn)
    rows = [
        (
            value_text(value, curve_set.unit),
            *(main.said(one.points[index].mean) for one in drawn),
            percent(curve_set.largest[index]),
        )
        for index, value in enumerate(curve_set.values)
    ]
    sentences = () if explored else _sentences(curve_set, result)
    return CurvesView(
        f"{clean(curve_set.name)}: {main.title}",
        sentences,
        (main.along, *(one.label for one in drawn), "worst over best"),
        tuple(rows),
        (main, *others),
    )


def _drawn(curve_set: CurveSet) -> tuple[Drawn, ...]:
    """The best and the worst of each compiler; all of the few, where none was chosen."""
    compilers = list(dict.fromkeys(curve.compiler for curve in curve_set.curves))
    chosen = [
        (name, is_worst)
        for extremes in curve_set.extremes
        for name, is_worst in ((extremes.best[0], False), (extremes.worst[0], True))
        if not (is_worst and extremes.worst[0] == extremes.best[0])
    ]
    chosen = chosen or [(curve.variant, False) for curve in curve_set.curves]
    return tuple(
        Drawn(clean(name), curve.points, compilers.index(curve.compiler), is_worst)
        for name, is_worst in chosen[:_MOST_CURVES]
        for curve in [curve_set.curve_of(name)]
    )


def _graphs(curve_set: CurveSet, metric: Metric, drawn: tuple[Drawn, ...]) -> list[CurveGraph]:
    """Of a cost three figures: time per operation, operations per second, and bits per second."""
    if curve_set.better is not None:
        unit = clean(curve_set.score_unit)
        title = unit or "score"

        def in_unit(value: float) -> str:
            return figures.score_in_unit(value, "")

        return [CurveGraph(title, *_across(curve_set), drawn, in_unit)]
    time = METRICS[metric]
    of_time = " of CPU time" if metric is Metric.CPU else ""
    graphs = [CurveGraph(f"{time} per operation", *_across(curve_set), drawn, figures.cost)]
    rates = [1e9] * len(curve_set.values)
    graphs.append(_rate(f"operations per second{of_time}", curve_set, drawn, rates))
    if curve_set.unit == _BYTES:
        megabits = [1e9 * value * _BITS_OF_MEGABIT for value in curve_set.values]
        graphs.append(_rate(f"Mb/s{of_time}", curve_set, drawn, megabits))
    return graphs


def _rate(
    title: str, curve_set: CurveSet, drawn: Sequence[Drawn], at_one_ns: Sequence[float]
) -> CurveGraph:
    """What is done per second, from nanoseconds per operation."""
    curves = tuple(
        replace(
            one,
            points=tuple(
                CurvePoint(cost_ns / point.mean, cost_ns / point.high, _over(cost_ns, point.low))
                for point, cost_ns in zip(one.points, at_one_ns, strict=True)
            ),
        )
        for one in drawn
    )
    return CurveGraph(title, *_across(curve_set), curves, figures.rate)


def _across(curve_set: CurveSet) -> tuple[str, tuple[float, ...], tuple[str, ...]]:
    """What stands along the axis: its name, the values, and these in words."""
    along = (
        f"{curve_set.parameter}, {clean(curve_set.unit)}" if curve_set.unit else curve_set.parameter
    )
    return (
        along,
        curve_set.values,
        tuple(value_text(value, curve_set.unit) for value in curve_set.values),
    )


def _over(value: float, by: float) -> float:
    return value / by if by > 0 else float("inf")


def _sentences(curve_set: CurveSet, result: Result) -> tuple[str, ...]:
    margin = result.margin
    sentences = [
        sentence
        for extremes in curve_set.extremes
        for sentence in _of_compiler(extremes, curve_set.curves)
    ]
    sentences += _full_link(curve_set, result)
    if curve_set.crossover is not None and margin is not None:
        sentences.append(_crossover(curve_set, plain_share(margin)))
    return tuple(sentences)


def _full_link(curve_set: CurveSet, result: Result) -> list[str]:
    """From which value on the link between two ends is full, where it is."""
    full = {finding.subject for finding in result.findings if finding.is_a(LINK_SATURATED)}
    bound = [workload_of(test) in full for test in curve_set.workloads]
    if not bound[-1]:
        return []
    first = max((place + 1 for place, is_bound in enumerate(bound) if not is_bound), default=0)
    return [f"From {_with_unit(curve_set.values[first], curve_set.unit)} on the link is full."]


def _of_compiler(extremes: Extremes, curves: Sequence[Curve]) -> list[str]:
    if len([one for one in curves if one.compiler == extremes.compiler]) == 1:
        return []
    compiler = f" of {clean(extremes.compiler)}" if extremes.compiler else ""
    best = f"{listed(extremes.best)}{_if_several(extremes.best)}"
    worst = f"{listed(extremes.worst)}{_if_several(extremes.worst)}"
    return [f"Best{compiler}: {best}. Worst: {worst}."]


def _if_several(names: Sequence[str]) -> str:
    return " (cannot be told apart)" if len(names) > 1 else ""


def value_text(value: float, unit: str) -> str:
    """`64`; of bytes `16 KiB`."""
    if unit == _BYTES and value and value % _KIB == 0:
        return f"{number_text(value / _KIB)} KiB"
    return number_text(value)


def _with_unit(value: float, unit: str) -> str:
    text = value_text(value, unit)
    return text if not unit or not text[-1].isdigit() else f"{text} {clean(unit)}"


def _crossover(curve_set: CurveSet, margin: str) -> str:
    crossover = curve_set.crossover
    last = _with_unit(curve_set.values[-1], curve_set.unit)
    if crossover is None or crossover.low is None:
        return f"Builds differ by more than {margin} at the greatest value, {last}, too."
    first = curve_set.values[0]
    if crossover.high is None:
        known = ""
        if crossover.value is not None:
            known = (
                f" By their means none do from {_with_unit(crossover.value, curve_set.unit)} on."
            )
        if crossover.low != first:
            below = curve_set.values[curve_set.values.index(crossover.low) - 1]
            known += f" Up to {_with_unit(below, curve_set.unit)} some do."
        return f"It is not shown that no two builds differ by more than {margin} at {last}.{known}"
    if crossover.high == first:
        return f"No two builds differ by more than {margin}, whatever the {curve_set.parameter}."
    high = _with_unit(crossover.high, curve_set.unit)
    start = f"From {high} on no two builds differ by more than {margin}"
    if crossover.low == crossover.high:
        return f"{start}; below that some do."
    return f"{start}; that begins at {_with_unit(crossover.low, curve_set.unit)} to {high}."
