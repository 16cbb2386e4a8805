"""A shipment as the description of a pull request: what, why, what it does not say, how to redo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ensign.model.builds import BuildFacts, CheckStatus
from ensign.model.comparisons import Direction
from ensign.model.findings import Severity
from ensign.model.instructions import FIRST_LEVEL, LEVELS
from ensign.model.placeholders import shown
from ensign.model.results import Result, SuiteComparison
from ensign.model.shipment import Shipment
from ensign.report import as_markdown
from ensign.report.confirmation import confirmed, exploration_text, findings_of
from ensign.report.github import code_block, safe
from ensign.report.layouts import beside_spread, fresh_sentence, scope
from ensign.report.verdict import (
    robust_details,
    suite_sentence,
    unshown_claim,
    verdict_of,
    what_hurts,
)
from ensign.report.words import clean, plain_share
from ensign.stats.winner import shown_faster, winner

# By the compilers' tables of processors (`-march` of GCC 14 and LLVM 19).
_RUNS_ON = {
    FIRST_LEVEL: "every x86-64 processor",
    "x86-64-v2": (
        "Intel since Nehalem (2008) and Silvermont (Atom, 2013), AMD since Bulldozer (2011) and "
        "Jaguar (2013)"
    ),
    "x86-64-v3": (
        "Intel Core and Xeon since Haswell (2013) and Atom since Gracemont (2021), but not the "
        "Pentium and Celeron of those years; AMD since Excavator (2015), which is every Zen"
    ),
    "x86-64-v4": (
        "Intel Xeon since Skylake-SP (2017), Core X, and Core from Ice Lake to Rocket Lake, but "
        "not Core since Alder Lake (2021); AMD since Zen 4 (2022)"
    ),
}
_ELSEWHERE = (
    "Elsewhere it ends with an illegal instruction, perhaps late. A virtual machine has what its "
    "host lets it see. What the project itself builds for other processors, and chooses when it "
    "runs, is not counted."
)


def pull_request(result: Result, shipment: Shipment, study: str) -> str:
    """The page. `study` is the path of the study file, as its user wrote it."""
    build = next(facts for facts in result.builds if facts.variant == shipment.variant)
    second = confirmed(result)
    measured = None if second is None else _comparison(second, build)
    # A finalist's claims are those of the confirmation; nothing is claimed of an exploration.
    judged = result if second is None or measured is None else second
    measured = measured or _comparison(result, build)
    sections = (
        ("What", _what(shipment, build, result)),
        ("Why", _why(judged, measured)),
        ("What this does not say", _caveats(_doubts(judged, build, measured), build, result)),
        ("Verified", _verified(shipment)),
        ("Where it runs", [safe(clean(place)) for place in where_it_runs(shipment)]),
        ("To reproduce", [_block(_redo(shipment, study))]),
    )
    parts = [f"# {_title(shipment, build)}", *_hurts(judged, measured)]
    for heading, paragraphs in sections:
        parts += [f"## {heading}", *paragraphs]
    return "\n\n".join((*parts, "## All that was measured", as_markdown.render(result)))


def _title(shipment: Shipment, build: BuildFacts) -> str:
    choices = dict(build.choices)
    steps = [name for axis, name in (("pgo", "PGO"), ("bolt", "BOLT")) if choices.get(axis) == "on"]
    how = " ".join(shipment.flags)
    return safe(clean(f"Build with {how}{' and ' if steps else ''}{' and '.join(steps)}"))


def _hurts(result: Result, measured: SuiteComparison | None) -> Iterator[str]:
    """Slower workloads, which come before everything else."""
    if measured is None:
        return
    for line in what_hurts(measured.comparison.variant, result):
        yield f"> **{safe(clean(line[:1].upper() + line[1:]).removeprefix('But '))}**"


def _what(shipment: Shipment, build: BuildFacts, result: Result) -> Iterator[str]:
    names = ", ".join(_code(file.name) for file in shipment.files)
    choices = ", ".join(f"{axis} {value}" for axis, value in build.choices)
    yield f"Variant {safe(clean(shipment.variant))} ({safe(choices)}), by {names}."
    yield (
        f"- compiler: {safe(clean(shipment.compiler))}\n"
        f"- when compiling: {_code(' '.join(shipment.flags))}\n"
        f"- when linking: {_code(' '.join(shipment.link_flags))}"
    )
    revision = dict(build.choices).get("revision", "")
    if revision:
        commit = dict(result.source).get(f"commit of {revision}", "unknown")
        yield (
            f"It was measured, and the change applies, at revision {_code(revision)}: commit "
            f"{_code(commit)}. Merge that commit first."
        )
    yield _block(shipment.commands)


def _why(result: Result, measured: SuiteComparison | None) -> Iterator[str]:
    if measured is None:
        yield "Nothing was measured of this variant."
        return
    yield f"**{safe(suite_sentence(measured, result))}.**"
    yield from map(safe, fresh_sentence(measured.comparison.variant, result))
    if measured.non_inferior and result.margin is not None:
        limit = plain_share(result.margin)
        yield f"No workload is slower by more than {limit}: shown for each of them."
    if measured == winner(result):
        yield from map(safe, robust_details(measured, shown_faster(result), result))


def _caveats(doubts: Iterable[str], build: BuildFacts, result: Result) -> Iterator[str]:
    texts = (
        f"{finding.text} ({finding.code})"
        for finding in findings_of(result)
        if finding.severity is not Severity.NOTE and finding.subject in ("", build.variant)
    )
    lines = [*doubts, *verdict_of(result).caveats, *texts]
    yield "\n".join(f"- {safe(clean(line))}" for line in dict.fromkeys(lines))


def _doubts(result: Result, build: BuildFacts, measured: SuiteComparison | None) -> Iterator[str]:
    baseline = result.baseline
    if result.confirmation is not None:
        yield f"It is not confirmed. {exploration_text(result)}"
    if measured is None or measured.comparison.direction is not Direction.FASTER:
        yield f"It is not shown that {build.variant} is faster than {baseline}."
    if measured is not None and result.margin is not None and not measured.non_inferior:
        yield from unshown_claim(measured, result)
    yield scope(result)
    if measured is not None:
        yield from filter(None, beside_spread(measured.comparison, result)[1:])
    if build.check == CheckStatus.NOT_CHECKED:
        yield "Whether the program still does what it should was not checked by the study."
    if "on" in (dict(build.choices).get("pgo"), dict(build.choices).get("bolt")):
        yield "Profiles come from the training workloads of the study; another use may gain less."
    applied = dict(result.source).get("apply", "[]")
    if applied != "[]":
        yield f"The source was measured, and is changed, with the study's own patches: {applied}."


def _verified(shipment: Shipment) -> Iterator[str]:
    yield (
        "The project was built with this change by the commands above, without anything else that "
        "sets flags, and compared with the build that was measured:"
    )
    yield "\n".join(f"- {safe(clean(note))}" for note in shipment.verified.notes)
    if shipment.others:
        yield (
            "With other compilers the same change was built, and compared in the same way with "
            "what the study builds with these:"
        )
        yield "\n".join(f"- {safe(clean(other.compiler))}" for other in shipment.others)


def _redo(shipment: Shipment, study: str) -> tuple[str, ...]:
    others = [word for other in shipment.others for word in ("--with", other.name)]
    shipping = shown(["ensign", "ship", study, shipment.variant, *others])
    return shown(["ensign", "run", study]), shipping


def _comparison(result: Result, build: BuildFacts) -> SuiteComparison | None:
    """Facts of the variant, or of the one that has its bytes and was raced in its place."""
    return next(
        (compared for compared in result.suite if compared.comparison.variant == build.raced_as),
        None,
    )


def _code(text: str) -> str:
    """A code span; more backticks around it than there are in it."""
    text = clean(text) or " "
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"


def _block(lines: Iterable[str]) -> str:
    return code_block(lines)


def where_it_runs(shipment: Shipment) -> Iterator[str]:
    """Paragraphs: what it may use, which processors have that, and which hosts were looked at."""
    yield from _needs(shipment)
    if shipment.hosts:
        yield f"Processors that were looked at, which have all of it: {', '.join(shipment.hosts)}."
    yield from (f"{doubt[:1].upper()}{doubt[1:]}." for doubt in shipment.doubts)


def _needs(shipment: Shipment) -> Iterator[str]:
    used = shipment.instructions
    if used is None or used.unknown:
        more = "" if used is None else f" (the compiler names {', '.join(used.unknown)})"
        yield (
            f"Which instructions the program uses is not known{more}, so neither is where it runs. "
            "A target by its level (x86-64-v2, -v3, -v4) would say."
        )
        return
    level = used.level
    if level:
        yield f"It needs {level}: {_RUNS_ON[level]}."
    else:
        within = [name for name, sets in LEVELS.items() if sets <= used.sets]
        highest = within[-1] if within else FIRST_LEVEL
        beyond = sorted(used.sets - LEVELS.get(highest, frozenset()))
        yield (
            f"It may use {highest} and, beyond that, {', '.join(beyond)}: no level has these "
            "together, and there is no list of processors that do. 'ensign ship --host FILE' says "
            "whether a host has them."
        )
    if level != FIRST_LEVEL:
        yield _ELSEWHERE
