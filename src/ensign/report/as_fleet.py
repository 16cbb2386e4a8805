"""What is true of a fleet as text, as GitHub Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ensign.model.comparisons import Comparison, Direction
from ensign.model.fleet import Fleet, FleetRow, KindValue
from ensign.model.quoting import json_visible
from ensign.model.units import pluralize, speedup
from ensign.report.github import safe
from ensign.report.plain_tables import Table, aligned, folded, grid, wrapped
from ensign.report.words import clean, interval_cell, listed, percent, plain_share, sentence

_NO_CLAIM = "no claim"
_METHOD = (
    "Hosts of a kind are a sample of it: intervals of kinds are those of Hartung and Knapp, from "
    "as many values as there are hosts; the fleet is the mean of kinds by their shares, with "
    "Satterthwaite's degrees of freedom. Each interval covers by itself."
)


def text(fleet: Fleet, width: int = 80, *, every_workload: bool = False) -> str:
    """For a terminal or a file: prose wrapped, tables as wide as they must be."""
    view = fleet_view(fleet)
    lines: list[str] = []
    for line in view.sentences:
        lines += wrapped(line, width)
    for warning in view.warnings:
        lines += wrapped(f"! {warning}", width)
    for table in (view.suite, view.hosts, *(view.workloads if every_workload else ())):
        lines += ["", *aligned(table)]
    lines += [""]
    for note in view.notes:
        lines += wrapped(note, width)
    return "\n".join(lines) + "\n"


def markdown(fleet: Fleet) -> str:
    """For a pull request: the answer and the table of all workloads; the rest folded."""
    view = fleet_view(fleet)
    headline, *sentences = view.sentences
    parts = [
        f"**{safe(headline)}**",
        " ".join(map(safe, sentences)),
        *(f"> ⚠️ {safe(warning)}" for warning in view.warnings),
        grid(view.suite),
        *(folded(table) for table in (view.hosts, *view.workloads)),
        "\n".join(f"- {safe(note)}" for note in view.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(fleet: Fleet) -> str:
    """Cost ratios against the baseline (below 1: faster); null where nothing is claimed."""
    document = {
        **{name: getattr(fleet, name) for name in ("name", "title", "baseline", "twin")},
        "metric": fleet.metric.value,
        "level": fleet.level,
        "margin": fleet.margin,
        "hosts": [asdict(host) for host in fleet.hosts],
        "kinds": [asdict(kind) for kind in fleet.kinds],
        "equal_shares": fleet.equal_shares,
        "suite": [_row(row) for row in fleet.suite],
        "workloads": [_row(row) for row in fleet.workloads],
        "choice": fleet.choice or None,
        "own_builds": [
            {"kind": kind_choice.kind, **_compared(kind_choice.comparison)}
            for kind_choice in fleet.own_builds
        ],
        "left_out": fleet.left_out,
        "findings": [asdict(finding) for finding in fleet.findings],
    }
    return json_visible(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def _row(row: FleetRow) -> dict[str, object]:
    return {
        "variant": row.variant,
        "workload": row.workload or None,
        "fleet": None if row.fleet is None else _compared(row.fleet),
        "kinds": [
            {
                "kind": kind_value.kind,
                "hosts": kind_value.hosts,
                "value": None
                if kind_value.comparison is None
                else _compared(kind_value.comparison),
                "between": kind_value.between,
                "next_host": kind_value.next_host,
            }
            for kind_value in row.kinds
        ],
        "hosts": [_compared(comparison) for comparison in row.hosts],
    }


def _compared(comparison: Comparison) -> dict[str, object]:
    return {
        "variant": comparison.variant,
        "baseline": comparison.baseline,
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "direction": comparison.direction.value,
        "size": None if comparison.size is None else comparison.size.value,
    }


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet in words; the first of the `sentences` is the answer; `warnings` may overturn it."""

    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    suite: Table
    hosts: Table
    workloads: tuple[Table, ...]
    notes: tuple[str, ...]


def fleet_view(fleet: Fleet) -> FleetView:
    """What every form of it shows."""
    return FleetView(
        sentences=tuple(_sentences(fleet)),
        warnings=tuple(
            clean(f"{finding.subject}: {finding.text}" if finding.subject else finding.text)
            for finding in fleet.findings
        ),
        suite=_table("All workloads (geometric mean)", "variant", fleet.suite, fleet),
        hosts=_hosts(fleet),
        workloads=tuple(
            _table(f"{clean(row.variant)}, by workload", "workload", rows, fleet)
            for row in fleet.suite
            if (rows := tuple(one for one in fleet.workloads if one.variant == row.variant))
        ),
        notes=tuple(_notes(fleet)),
    )


def _sentences(fleet: Fleet) -> Iterator[str]:
    rows = {row.variant: row for row in fleet.suite}
    against = clean(fleet.baseline)
    of = f"{pluralize(len(fleet.kinds), 'kind')}, {pluralize(len(fleet.hosts), 'host')}"
    chosen = rows.get(fleet.choice)
    if any(row.fleet is None for row in fleet.suite):
        unmeasured = any(kind_value.hosts == 0 for row in fleet.suite for kind_value in row.kinds)
        lacking = "without a measured host" if unmeasured else "with a single host"
        yield f"Nothing is claimed of the fleet: there is a kind {lacking} ({of})."
    elif chosen is None or chosen.fleet is None:
        yield f"For the fleet no variant is shown to be faster than {against} ({of})."
        yield from _own_builds(fleet)
    else:
        yield f"For the fleet {sentence(chosen.fleet, fleet.margin, against=True)}: {of}."
        yield from _by_kind(chosen)
        yield from _own_builds(fleet)
    for kind in () if chosen is None else chosen.kinds:
        if kind.next_host is not None:
            yield _next(kind)


def _by_kind(row: FleetRow) -> Iterator[str]:
    """Where the answer of the fleet is true, and where it is not shown or false."""
    known = [
        (kind_value.kind, kind_value.comparison)
        for kind_value in row.kinds
        if kind_value.comparison
    ]
    faster = [kind for kind, one in known if one.direction is Direction.FASTER]
    if len(faster) == len(known):
        yield f"That is shown for each kind ({listed(tuple(faster))})."
        return
    if faster:
        yield f"Of the kinds that is shown for {listed(tuple(faster))}."
    for kind, one in known:
        if one.direction is Direction.SLOWER:
            yield f"On {clean(kind)} it is slower: {interval_cell(one)}."
        elif one.direction is Direction.UNCLEAR:
            yield f"On {clean(kind)} it is not shown: {interval_cell(one)}."


def _own_builds(fleet: Fleet) -> Iterator[str]:
    for kind_choice in fleet.own_builds:
        verdict = sentence(kind_choice.comparison, None, against=True)
        yield f"On {clean(kind_choice.kind)} {verdict}: one build for all gives that up."
    if fleet.choice and not fleet.own_builds:
        yield "No other build is shown to be faster on any kind."


def _next(kind: KindValue) -> str:
    low, high = sorted(speedup(bound) for bound in kind.next_host or ())
    return (
        f"Hosts of {clean(kind.kind)} differ by {plain_share(round(kind.between, 4))} (standard "
        f"deviation); the next one will see {percent(low)} to {percent(high)}."
    )


def _table(heading: str, first: str, rows: tuple[FleetRow, ...], fleet: Fleet) -> Table:
    columns = (first, "fleet", *(clean(kind.name) for kind in fleet.kinds))
    cells = tuple(
        (
            clean(row.workload or row.variant),
            _NO_CLAIM if row.fleet is None else interval_cell(row.fleet),
            *(
                interval_cell(kind_value.comparison)
                if kind_value.comparison
                else _unclaimed(kind_value)
                for kind_value in row.kinds
            ),
        )
        for row in rows
    )
    return Table(f"{heading}, {plain_share(fleet.level)} intervals", columns, cells)


def _unclaimed(kind: KindValue) -> str:
    return "one host" if kind.hosts else "no host"


def _hosts(fleet: Fleet) -> Table:
    """A row for each host, a column for each variant over all workloads."""
    of_cluster = any(host.jobs for host in fleet.hosts)
    jobs = ("jobs",) if of_cluster else ()
    columns = ("host", "kind", "rounds", *jobs, *(clean(row.variant) for row in fleet.suite))
    rows = tuple(
        (
            clean(host.label),
            clean(host.kind),
            str(host.rounds),
            *((clean(", ".join(host.jobs)),) if of_cluster else ()),
            *(interval_cell(row.hosts[index]) for row in fleet.suite),
        )
        for index, host in enumerate(fleet.hosts)
    )
    return Table("Each host", columns, rows)


def _notes(fleet: Fleet) -> Iterator[str]:
    shares = ", ".join(f"{clean(kind.name)} {plain_share(kind.share)}" for kind in fleet.kinds)
    if fleet.equal_shares and len(fleet.kinds) > 1:
        yield f"Shares of the fleet: {shares}, equal because none were given (--share KIND=SHARE)."
    elif len(fleet.kinds) > 1:
        yield f"Shares of the fleet: {shares}."
    if fleet.left_out:
        yield f"Left out, because not all hosts have it: {listed(fleet.left_out)}."
    yield _METHOD
