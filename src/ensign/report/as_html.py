"""A result as one self-contained HTML file: offline, without scripts, light and dark."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import count

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from ensign import __version__
from ensign.model.builds import BuildFacts
from ensign.model.comparisons import Direction
from ensign.model.findings import Finding, Severity
from ensign.model.results import Result
from ensign.model.units import pluralize
from ensign.report import drawing, figures, html_figures, words
from ensign.report.bounds import READ as BOUNDS_READ
from ensign.report.bounds import bound_table
from ensign.report.causes import READ as CAUSES_READ
from ensign.report.confirmation import (
    confirmation_text,
    confirmed,
    exploration_text,
    findings_of,
    plan_text,
)
from ensign.report.curves import READ as CURVES_READ
from ensign.report.effects import effects_view
from ensign.report.function_costs import READ as FUNCTIONS_READ
from ensign.report.layouts import ONE_BINARY_NOTE, WITHIN_SPREAD, WITHIN_SPREAD_NOTE
from ensign.report.notes import BY_MINIMUM, list_findings, notes
from ensign.report.trade import hardening_rows, trade_view
from ensign.report.verdict import twin_sentence, verdict_of
from ensign.report.view import ResultView, status_of, view_of
from ensign.report.words import clean, plain_share

_SEVERITY_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


@dataclass(frozen=True, slots=True)
class Phase:
    """The second phase of a study: what the page shows of it, before the exploration."""

    text: str
    view: ResultView
    level: str
    margin: str
    figure: html_figures.Figure | None
    dots: html_figures.Figure | None
    blocks: list[html_figures.Block]
    twin: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildRow:
    """One build in words."""

    name: str
    status: str
    tone: str
    flags: str
    link_flags: str
    compiler: str
    file: str
    text: str
    time: str
    sha256: str
    log_tail: str
    log_path: str
    check_tail: str
    proof: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """Resources that one variant used on one workload, in words."""

    variant: str
    workload: str
    wall: str
    range: str
    user: str
    system: str
    memory: str
    score: str
    most_gain: str


def render(result: Result) -> str:
    """The whole page; charts are drawn on the way (about 50 ms each)."""
    view = view_of(result)
    effects, trade = effects_view(result), trade_view(result, view)
    several = view.has_workloads
    return fill(
        "result.html",
        result=result,
        title=result.title,
        version=result.version,
        digest_tag=_digest_tag(result),
        view=view,
        verdict=verdict_of(result),
        level=plain_share(result.level),
        chance=f"About {plain_share(1 - result.level)}",
        margin="" if result.margin is None else plain_share(result.margin),
        suite=html_figures.suite_figure(result, view),
        dots=html_figures.dots_figure(result, view),
        bands_chart=html_figures.bands_chart(view) if several else None,
        heat=html_figures.heat_map(view) if several else None,
        user=html_figures.user_figure(result, view) if several else None,
        effects=effects,
        effects_chart=html_figures.effects_chart(effects, result.margin),
        hardening=hardening_rows(result, effects),
        functions=html_figures.function_blocks(confirmed(result) or result),
        functions_read=FUNCTIONS_READ,
        causes=html_figures.cause_blocks(result),
        causes_read=CAUSES_READ,
        curves=html_figures.curves_blocks(result),
        curves_read=CURVES_READ,
        latency=figures.latency_tables(confirmed(result) or result),
        latency_columns=[head for _, head in figures.COLUMNS],
        latency_read=figures.READ,
        trade=trade,
        trade_charts=html_figures.trade_charts(trade),
        blocks=html_figures.blocks(result, view) if several else [],
        other_metric=words.METRICS[result.metric.other],
        twin=_twin(result),
        builds=[_built(build) for build in result.builds],
        confirmation=_confirmation(result),
        exploration=exploration_text(result),
        findings=list_findings(sorted(findings_of(result), key=_severity)),
        bounds=bound_table(result),
        bounds_read=BOUNDS_READ,
        measured=_measured(result),
        notes=notes(result),
        by_minimum=BY_MINIMUM,
        one_binary_note=ONE_BINARY_NOTE,
        within_spread=WITHIN_SPREAD,
        within_spread_note=WITHIN_SPREAD_NOTE,
        redo=result.extra.get("redo", "ensign run STUDY.toml"),
        redo_with=result.extra.get("redo_with", ""),
    )


def fill(template: str, **values: object) -> str:
    """A page from a template of this package, with its styles and a counter of its figures."""
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            number=partial(next, count(1)),
            light=Markup(drawing.variables(dark=False)),  # noqa: S704  # constants of this package
            dark=Markup(drawing.variables(dark=True)),  # noqa: S704
            chart_rules=Markup(drawing.chart_rules()),  # noqa: S704
        )
    )


def shows(page: str, result: Result) -> bool:
    """True if this page was made of this result by this version; drawing it anew changes nothing.

    The page carries a digest of all that it was made of.
    """
    return _digest_tag(result) in page


def _digest_tag(result: Result) -> Markup:
    sha256 = hashlib.sha256(f"{__version__} {result!r}".encode("utf-8", "replace")).hexdigest()
    return Markup('<meta name="ensign-result" content="{}">').format(sha256)


def _template(name: str) -> str:
    # Jinja2's own loader of packages takes whatever cannot be read for missing.
    return files("ensign.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache  # compiling its template takes as long as drawing two charts
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clean"] = clean
    environment.filters["prose"] = _prose
    environment.filters["owner"] = words.owner_of
    environment.filters["clean_block"] = words.clean_block
    return environment


def _prose(text: str) -> Markup:
    """Keeps names with hyphens, and figures with their unit, on one line where they fit."""
    tokens = text.replace(" %", "\N{NO-BREAK SPACE}%").split(" ")
    return Markup(" ").join(
        Markup('<span class="whole">{}</span>').format(token) if "-" in token else escape(token)
        for token in tokens
    )


def _severity(finding: Finding) -> int:
    return _SEVERITY_ORDER.index(finding.severity)


def _confirmation(result: Result) -> Phase | None:
    second = confirmed(result)
    if second is None or result.confirmation is None:
        return None
    view = view_of(second)
    return Phase(
        text=f"{confirmation_text(result.confirmation)} {plan_text(result.confirmation)}",
        view=view,
        level=plain_share(second.level),
        margin="" if second.margin is None else plain_share(second.margin),
        figure=html_figures.suite_figure(second, view),
        dots=html_figures.dots_figure(second, view),
        blocks=html_figures.blocks(second, view),
        twin=_twin(second),
    )


def _twin(result: Result) -> tuple[str, ...]:
    sentences = [
        twin_sentence(compared.comparison, result.margin)
        for compared in result.suite
        if compared.comparison.variant == result.twin
    ]
    by_variant = [
        one.comparison.direction
        for one in result.workloads
        if one.comparison.variant == result.twin
    ]
    if len(by_variant) > 1:
        out = len(by_variant) - by_variant.count(Direction.UNCLEAR)
        expected = len(by_variant) * (1 - result.level)
        sentences.append(
            f"{out} of its {pluralize(len(by_variant), 'workload interval')} "
            f"{'excludes' if out == 1 else 'exclude'} zero; by chance about "
            f"{expected:.1f} would."
        )
    return tuple(sentences)


def _measured(result: Result) -> list[MeasuredRow]:
    return [
        MeasuredRow(
            variant=clean(facts.variant),
            workload=clean(facts.workload),
            wall=figures.mean_and_sd(facts.wall, result.time_unit),
            range=figures.least_to_greatest(facts.wall, result.time_unit),
            user=figures.seconds(facts.user_s, result.time_unit),
            system=figures.seconds(facts.system_s, result.time_unit),
            memory=figures.size(facts.peak_memory_bytes),
            score="".join(figures.score(facts.score)),
            most_gain=figures.most_gain(facts.most_gain),
        )
        for facts in result.measured
    ]


def _built(build: BuildFacts) -> BuildRow:
    failed = build.bad
    return BuildRow(
        name=clean(build.variant),
        status=status_of(build),
        tone="error" if failed or build.check == "failed" else "",
        flags=clean(" ".join(build.flags)) or "none",
        link_flags=clean(" ".join(build.link_flags)) or "none",
        compiler=clean(dict(build.choices).get("compiler") or build.compiler),
        file=figures.size(build.size_bytes) if build.size_bytes else "",
        text=figures.size(build.text_bytes) if build.size_bytes else "",
        time=figures.seconds(build.build_s),
        sha256=clean(build.identity),
        log_tail=words.clean_block(build.log_tail),
        log_path=clean(build.log_path),
        check_tail=words.clean_block(build.check_tail),
        proof=tuple(map(clean, build.evidence)),
    )
