"""What came of the builds: facts, artefacts, findings. Pure, but for the paths in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.cache import Entry
from ensign.builders.perform import Made
from ensign.builders.plan import Plan
from ensign.builders.profiles import describe_profile
from ensign.builders.verify import Evidence, describe, judge
from ensign.model.findings import Finding, Severity
from ensign.model.results import BuildFacts
from ensign.model.variants import Variant
from ensign.toolchains.find import Toolchain


@dataclass(frozen=True, slots=True)
class BuildResult:
    """One variant. `artefact` is its program and `files` the root of all that was kept with it.

    Both are None if it failed. `tools` is filled for the baseline alone.
    """

    facts: BuildFacts
    artefact: Path | None
    files: Path | None
    tools: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class BuildReport:
    """All variants in the order asked for, and what was learned on the way, for the report."""

    results: tuple[BuildResult, ...]
    findings: tuple[Finding, ...]
    source: tuple[tuple[str, str], ...]
    toolchains: tuple[tuple[str, str], ...]

    def result(self, variant: str) -> BuildResult:
        """Return the result of that variant; KeyError if it was not asked for."""
        for result in self.results:
            if result.facts.variant == variant:
                return result
        raise KeyError(variant)


def describe_toolchain(toolchain: Toolchain) -> str:
    """Name the compiler and its linker in one line."""
    return f"{toolchain.version_line}; linker: {toolchain.linker_version}"


def result_of(
    variant: Variant,
    toolchain: Toolchain,
    plan: Plan,
    made: Mapping[str, Made],
    cached: set[str],
) -> BuildResult:
    """Give the result of a variant from how its stage ended."""
    stage = plan.stage(plan.stage_of[variant.name])
    end = made[stage.key]
    if end.entry is None:
        log_path = str(end.log)
        return failed_result(variant, toolchain, end.reason, tail=end.tail, log_path=log_path)
    artefact = _object(end.entry, "artefact")
    flags = plan.flags_of[variant.name]
    files = end.entry.folder / "files"
    facts = BuildFacts(
        variant=variant.name,
        choices=variant.choices,
        compiler=describe_toolchain(toolchain),
        flags=flags.compile,
        link_flags=flags.link,
        status="cached" if stage.key in cached else "built",
        build_s=float(str(end.entry.facts["chain_s"])),
        size_bytes=int(str(artefact["size_bytes"])),
        text_bytes=int(str(artefact["text_bytes"])),
        loadable_sha256=str(artefact["loadable_sha256"]),
        log_path=str(end.log),
        evidence=(
            *describe(_evidence(end.entry)),
            *describe_profile(_object(end.entry, "profile")),
        ),
    )
    tools = {name: files / path for name, path in stage.tools}
    return BuildResult(facts, files / stage.artefact, files, tools)


def failed_result(
    variant: Variant, toolchain: Toolchain, reason: str, *, tail: str = "", log_path: str = ""
) -> BuildResult:
    """Give the result of a variant that could not be built."""
    flags = toolchain.flags(variant)
    facts = BuildFacts(
        variant=variant.name,
        choices=variant.choices,
        compiler=describe_toolchain(toolchain),
        flags=flags.compile,
        link_flags=flags.link,
        status="failed",
        build_s=0.0,
        size_bytes=0,
        text_bytes=0,
        loadable_sha256="",
        log_path=log_path,
        log_tail=f"{tail}{reason}",
    )
    return BuildResult(facts, None, None, {})


def _object(entry: Entry, name: str) -> Mapping[str, object]:
    value = entry.facts.get(name)
    return value if isinstance(value, Mapping) else {}


def _evidence(entry: Entry) -> Evidence:
    raw = json.loads(json.dumps(entry.facts["evidence"]))
    levels = tuple((str(level), int(count)) for level, count in raw.pop("levels"))
    return Evidence(levels=levels, comments=tuple(raw.pop("comments")), **raw)


def findings_of(
    results: Sequence[BuildResult],
    variants: Sequence[Variant],
    plan: Plan,
    ends: Mapping[str, Made],
) -> tuple[Finding, ...]:
    """Say which variants failed, and which flags have no trace in what was built."""
    findings = []
    for variant, result in zip(variants, results, strict=True):
        if result.artefact is None:
            text = f"{variant.name} could not be built: {result.facts.log_tail.splitlines()[-1]}"
            findings.append(Finding("build-failed", Severity.WARNING, text, variant.name))
            continue
        entry = ends[plan.stage_of[variant.name]].entry
        if entry is not None:
            evidence = _evidence(entry)
            findings += judge(evidence, variant.optimization, variant.lto, variant.name)
    return tuple(findings)


def same_bytes(results: tuple[BuildResult, ...], baseline: str) -> tuple[BuildResult, ...]:
    """Mark variants whose loaded bytes are those of the baseline, or of an earlier variant."""
    order = sorted(results, key=lambda result: result.facts.variant != baseline)
    first: dict[str, str] = {}
    for result in order:
        if result.artefact is not None:
            first.setdefault(result.facts.loadable_sha256, result.facts.variant)
    return tuple(_marked(result, first.get(result.facts.loadable_sha256)) for result in results)


def _marked(result: BuildResult, same: str | None) -> BuildResult:
    if same is None or same == result.facts.variant:
        return result
    facts = replace(result.facts, status=f"same as {same}")
    return replace(result, facts=facts)
