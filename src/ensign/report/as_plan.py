"""A plan as text, for any width: what will be built and raced, how long, how much disk."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from ensign.model.cluster import Cluster
from ensign.model.expectation import Basis, Expectation, PlannedVariant, Work, known_sum
from ensign.model.units import format_duration, format_size, pluralize
from ensign.report.words import KINDS_OF_CAUSE, clean

_INDENT = "    "
_NAMED = 4
_BASIS: Mapping[Basis, str] = {
    "measured": "as before",
    "alike": "as the others",
    "unknown": "not known yet",
    "budget": "the budget",
}


def plan(expected: Expectation, width: int = 80) -> str:
    """The whole plan; nothing in it is measured, it is what was asked for and what is expected."""
    lines = [f"{expected.title or expected.name}", ""]
    lines += _variants(expected.variants, width)
    workloads = pluralize(len(expected.workloads), "workload")
    lines += ["", f"{workloads}, {_rounds(expected.rounds)}:"]
    for name, command in _workloads(expected):
        lines += _wrapped(f"  {name}: {command}", width)
    for names, how in _modes(expected.modes):
        lines += _wrapped(f"  {names}: {how}", width)
    for item in expected.inputs:
        lines += _wrapped(f"Made first: {clean(item)}", width)
    if expected.confirming is not None:
        finalists, rounds = expected.confirming
        lines += _wrapped(
            f"These explore; then the best (at most {finalists}) are built afresh and confirmed in "
            f"{_rounds(rounds)}, within the same budget.",
            width,
        )
    lines += [""]
    for variant, why in expected.left_out:
        lines += _wrapped(f"Left out: {variant}: {why}", width)
    for variant, why in expected.untried:
        lines += _wrapped(f"{variant}: not tried: {why}; a run builds it", width)
    if expected.missing:
        lines += _wrapped(f"Missing: {clean(expected.missing)}", width)
    lines += ["Expected:", *_work(expected.work), "", *_wrapped(_cpus(expected), width)]
    if expected.confinement:
        lines += _wrapped(f"Builds and races: {clean(expected.confinement)}", width)
    return "\n".join(lines) + "\n"


def on_cluster(cluster: Cluster, expected: Expectation, budget_ns: float, width: int = 80) -> str:
    """What a cluster is going to be given, before anything is submitted."""
    builds = [work for work in expected.work if work.basis != "budget"]
    build_s = known_sum(work.wall_s for work in builds)
    jobs = cluster.builds.parts(len(expected.variants))
    hosts, kinds = len(cluster.slots), cluster.hosts
    of_kinds = ", ".join(
        f"{clean(name)} {group.size}"
        + (f" (share {group.share:g})" if group.share is not None else "")
        for name, group in kinds.items()
    )
    took = "not known yet" if build_s is None else f"{format_duration(build_s * 1e9)} on one node"
    limits = (cluster.builds.time_limit, cluster.time_limit)
    sentences = [
        f"Builds: {pluralize(jobs, 'job')} of at most {limits[0]}, in all {took}.",
        (
            f"Races: {pluralize(hosts, 'host')} of {pluralize(len(kinds), 'kind')} ({of_kinds}), "
            f"each for {format_duration(budget_ns)} in jobs of at most {limits[1]}; in all "
            f"{format_duration(budget_ns * hosts)} of whole nodes."
        ),
        f"If all hosts are free at once, races end {format_duration(budget_ns)} after the builds.",
    ]
    alone = [name for name, group in kinds.items() if group.size == 1]
    if alone:
        sentences.append(
            f"A single host says nothing of its kind: {', '.join(map(clean, alone))} will have no "
            "claim, nor will the fleet."
        )
    lines = ["", "On the cluster:", *(line for one in sentences for line in _wrapped(one, width))]
    return "\n".join(lines) + "\n"


def _workloads(expected: Expectation) -> list[tuple[str, str]]:
    """Those of a curve are said once, by the first of them."""
    ends = {curve[0]: (len(curve), curve[-1]) for curve in expected.curves}
    later = {name for curve in expected.curves for name in curve[1:]}
    named = [(name, command) for name, command in expected.workloads if name not in later]
    return [
        (f"{name} … {ends[name][1]} ({ends[name][0]} values)", command)
        if name in ends
        else (name, command)
        for name, command in named
    ]


def _modes(modes: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Numbers of variants by how they take turns: said once for all that do alike."""
    by_how: dict[str, list[str]] = {}
    for name, how in modes:
        by_how.setdefault(how, []).append(name)
    if len(by_how) == 1:
        return [("turns", next(iter(by_how)))]
    return [
        (f"turns of {', '.join(names)}", how)
        if len(names) <= _NAMED
        else (f"turns of {names[0]} and {len(names) - 1} more", how)
        for how, names in by_how.items()
    ]


def _rounds(number: int | None) -> str:
    return "as many rounds as the budget holds" if number is None else pluralize(number, "round")


def _waiting(number: int | None) -> str:
    return "fitting" if number is None else str(number)


def _variants(variants: tuple[PlannedVariant, ...], width: int) -> list[str]:
    lines = [f"{pluralize(len(variants), 'variant')}:"]
    for variant in variants:
        marks = "  (baseline)" if variant.is_baseline else ""
        if variant.build_s:
            marks += f"  about {format_duration(variant.build_s * 1e9)}"
        lines += _wrapped(
            f"  {variant.name}: {variant.compiler} {' '.join(variant.flags)}; "
            f"link {' '.join(variant.link_flags) or 'without flags'}{marks}",
            width,
        )
    return lines


def _work(work: tuple[Work, ...]) -> list[str]:
    """A row for each kind of work and one for all of it."""
    rows = [("", "to do", "there", "time", "disk", "")]
    rows += [
        (item.name, _waiting(item.waiting), str(item.there),
         _time(item.wall_s), _disk(item.disk_bytes),
         _BASIS[item.basis] if item.waiting != 0 else "")
        for item in work
    ]  # fmt: skip
    rows.append(("in all", "", "", *_total(work), ""))
    name, *numbers, basis = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join(
            (
                row[0].ljust(name),
                *(cell.rjust(width) for cell, width in zip(row[1:-1], numbers, strict=True)),
                row[-1].ljust(basis),
            )
        ).rstrip()
        for row in rows
    ]


def in_all(work: Sequence[Work]) -> tuple[float, int, bool]:
    """The time of all work (s) and its disk (bytes), as far as they are known, and if they are."""
    known = not any(step.wall_s is None for step in work)
    disk_bytes = sum(step.disk_bytes or 0 for step in work)
    return sum(step.wall_s or 0.0 for step in work), disk_bytes, known


def _time(wall_s: float | None) -> str:
    return "?" if wall_s is None else format_duration(wall_s * 1e9) if wall_s > 0 else ""


def _disk(size_bytes: int | None) -> str:
    return "?" if size_bytes is None else format_size(size_bytes) if size_bytes else ""


def _total(work: Sequence[Work]) -> tuple[str, str]:
    wall_s, disk_bytes, known = in_all(work)
    more = "" if known else "+ ?"
    parts = (_time(wall_s), _disk(disk_bytes))
    time, disk = (" ".join(filter(None, (part, more))) for part in parts)
    return time, disk


def before_proof(by: str, causes: int, budget_ns: int) -> str:
    """What is raced to prove causes."""
    kind, _ = KINDS_OF_CAUSE[by]
    return (
        f"What comes from each {kind}? {causes} causes are toggled, and race for "
        f"{format_duration(budget_ns)}; Ctrl-C keeps what is known.\n"
    )


def before_run(expected: Expectation) -> str:
    """One line for the start of a run: what is ahead, and how long it takes."""
    ahead = [work for work in expected.work if work.waiting != 0 and work.wall_s != 0]
    parts = [_ahead(work) for work in ahead]
    text = "; ".join(parts) or "everything is there already"
    wall_s, _, known = in_all(ahead)
    total = f"; in all {_time(wall_s)}" if len(parts) > 1 and known else ""
    return f"expected: {text}{total}"


def _ahead(work: Work) -> str:
    if work.wall_s is None:
        return f"{_waiting(work.waiting)} {work.name} (how long is {_BASIS[work.basis]})"
    return f"{work.name} {_time(work.wall_s)} ({_BASIS[work.basis]})"


def _cpus(expected: Expectation) -> str:
    return "CPUs: " + ", ".join(
        f"{what} on {','.join(map(str, numbers))}" for what, numbers in expected.cpus
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        clean(text),
        width,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
