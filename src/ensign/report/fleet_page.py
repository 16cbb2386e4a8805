"""What is true of a fleet as one self-contained HTML file: offline, without scripts."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.comparisons import Comparison
from ensign.model.fleet import Fleet, FleetRow
from ensign.report import charts
from ensign.report.as_fleet import fleet_view
from ensign.report.as_html import fill
from ensign.report.html_figures import Figure
from ensign.report.view import Row
from ensign.report.words import clean, interval_cell, plain_share, span_of, speedup_cell

_HOST = "\N{NO-BREAK SPACE}" * 3


def render(fleet: Fleet) -> str:
    """The whole page: the answer, a chart of each variant, every table, findings."""
    view = fleet_view(fleet)
    headline, *details = view.sentences
    return fill(
        "fleet.html",
        title=fleet.title or fleet.name,
        digest_tag="",
        headline=headline,
        details=details,
        figures=[_chart(row, fleet) for row in fleet.suite],
        tables=(view.suite, view.hosts),
        folded=view.workloads,
        findings=fleet.findings,
        notes=view.notes,
    )


def _chart(row: FleetRow, fleet: Fleet) -> Figure:
    """A variant on each host, on each kind, and for the fleet."""
    title = f"{clean(row.variant)} over {clean(fleet.baseline)}, all workloads"
    level = plain_share(fleet.level)
    caption = (
        f"{title}: speedups with {level} intervals, right of the line is faster. A kind's interval "
        "counts its hosts, a host's its rounds; hollow: no difference is shown."
    )
    return Figure(charts.intervals(list(_rows(row, fleet)), fleet.margin, title), caption)


def _rows(row: FleetRow, fleet: Fleet) -> Iterator[Row]:
    if row.fleet is not None:
        yield _row("fleet", row.fleet)
    for kind in row.kinds:
        if kind.comparison is not None:
            yield _row(clean(kind.kind), kind.comparison)
        for host, comparison in zip(fleet.hosts, row.hosts, strict=True):
            if host.kind == kind.kind:
                yield _row(_HOST + clean(host.label), comparison)


def _row(label: str, comparison: Comparison) -> Row:
    interval, speedup = interval_cell(comparison), speedup_cell(comparison)
    return Row(
        label,
        label,
        span_of(comparison),
        interval,
        speedup,
        "",
        "",
        comparison.direction,
        comparison.executions,
    )
