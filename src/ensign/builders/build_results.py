"""Results of the builds: facts, artifacts, findings. Pure, but for the paths in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.build_stage import BUILD_TREE, StageResult
from ensign.builders.recorder import CALLS, DEPENDENCY_CALLS, read_calls
from ensign.builders.relink import FOLDER, Relinked
from ensign.builders.stage_facts import StageEntry, StageFacts, program_of, proof_of
from ensign.builders.stages import Plan, Stage
from ensign.model.builds import BuildFacts, BuildStatus, MadeLibrary
from ensign.model.finding_kinds.builds import (
    BUILD_FAILED,
    BUILT_FILES_IN_SOURCE,
    DEPENDENCIES_BROKEN,
    IGNORED_FILES_LEFT,
    LEFT_RUNNING,
    NOT_BOLTED,
    NOT_RELINKED,
    RELINKS,
    SAME_BYTES,
    UNKNOWN_LTO_FLAG,
    VARIANT_LEFT_OUT,
)
from ensign.model.findings import Finding, Severity
from ensign.model.study_build import Build
from ensign.model.unit_choices import read_unit_choices
from ensign.model.variants import Variant
from ensign.proof.comparison import grouped
from ensign.proof.evidence import BuildEvidence, Request, some
from ensign.proof.facts import FileOrigins
from ensign.proof.leftovers import FILE as BEFORE
from ensign.proof.leftovers import read_leftovers
from ensign.proof.rules.description import describe, describe_units
from ensign.proof.rules.flags import flags_had
from ensign.proof.rules.judge import judge_all
from ensign.proof.rules.log import unknown_lto
from ensign.proof.rules.origin import undeclared
from ensign.sources.obtain import SourceTree
from ensign.toolchains.find import Toolchain
from ensign.toolchains.table import Flags


@dataclass(frozen=True, slots=True)
class BuildResult:
    """One variant. `artifact` is its program and `files` the root of all that was kept with it.

    Both are None if it failed. `tools` is filled for the baseline alone. `layouts` are its relinks,
    in folders that are laid over `files`; not each has a program of its own; they took `relink_s`,
    and leave files that are `unmoved` as they are.
    `seen` is what its
    flags are proved from, `others` the same of each file that is loaded with it, `findings` what
    came of that. A loader is to look in `libraries`, relative to `files`; `made` are libraries that
    were built and not kept. `stage` is what made it, `build_tree_sha256` what its tree was then,
    where that was kept; `check_ran` is False where its check never ran it. `not_compared` has
    workloads, and why their output was not, `printed_otherwise` those of which another revision
    prints something else, and where. `flag_files` are flags that some of its files lack, with the
    paths of those that have them. `idle` are symbols of functions that no training ran.
    """

    facts: BuildFacts
    artifact: Path | None
    files: Path | None
    tools: Mapping[str, Path]
    layouts: tuple[Path, ...] = ()
    relink_s: float = 0.0
    unmoved: tuple[str, ...] = ()
    seen: BuildEvidence | None = None
    findings: tuple[Finding, ...] = ()
    others: tuple[BuildEvidence, ...] = ()
    libraries: tuple[str, ...] = ()
    made: tuple[MadeLibrary, ...] = ()
    stage: Stage | None = None
    build_tree_sha256: str = ""
    check_ran: bool = True
    not_compared: tuple[tuple[str, str], ...] = ()
    printed_otherwise: tuple[tuple[str, str], ...] = ()
    flag_files: tuple[tuple[str, tuple[str, ...]], ...] = ()
    idle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildReport:
    """All variants in the order asked for, and what was found on the way, for the report."""

    results: tuple[BuildResult, ...]
    findings: tuple[Finding, ...]
    source: tuple[tuple[str, str], ...]
    toolchains: tuple[tuple[str, str], ...]
    confinement: str = ""

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
    made: Mapping[str, StageResult],
    cached: set[str],
    build: Build,
) -> BuildResult:
    """Give the result of a variant from how its stage ended.

    One that was built, but of other parts or with other flags than those asked for, is none.
    """
    stage = plan.stage(plan.stage_of[variant.name])
    end = made[stage.key]
    if end.entry is None:
        result = failed_result(variant, toolchain, f"{end.tail}{end.reason}", log_path=str(end.log))
        return replace(result, facts=replace(result.facts, error=end.error))
    entry = end.entry
    program, taken = program_of(entry), program_of(entry).taken
    flags = plan.flags_of[variant.name]
    files = entry.folder / "files"
    of_units = plan.units_of.get(variant.name)
    seen = _with_compiler(seen_of(variant, flags, entry), toolchain, build, of_units)
    others = tuple(seen_of_files(seen, entry))
    judged = judge_all(seen, others)
    wrong = tuple(finding for finding in judged if finding.severity is Severity.ERROR)
    if wrong:
        result = failed_result(variant, toolchain, wrong[0].text, log_path=str(end.log))
        facts = replace(
            result.facts,
            status=BuildStatus.NOT_AS_ASKED,
            build_s=entry.facts.chain_s,
        )
        return replace(result, facts=facts, findings=wrong)
    relinked = entry.facts.relinked or Relinked()
    facts = BuildFacts(
        variant=variant.name,
        choices=variant.choices,
        compiler=", ".join(seen.proof.binary.comments)
        if variant.by_project
        else describe_toolchain(toolchain),
        flags=flags.compile,
        link_flags=flags.link,
        status=BuildStatus.CACHED if stage.key in cached else BuildStatus.BUILT,
        build_s=entry.facts.chain_s,
        size_bytes=program.artifact.size_bytes,
        text_bytes=program.artifact.text_bytes,
        loadable_sha256=program.artifact.loadable_sha256,
        log_path=str(end.log),
        evidence=(
            *describe(seen),
            *(line for other in others for line in describe_units(other)),
            *entry.facts.profile.describe(),
        ),
        layouts=relinked.hashes,
        layout_kind=relinked.kind,
        files=taken.files,
        coverage=entry.facts.profile.coverage,
    )
    tools = {name: files / path for name, path in stage.tools}
    layouts = tuple(
        entry.folder / FOLDER / str(number) / stage.artifact for number in range(len(facts.layouts))
    )
    return BuildResult(
        facts=facts,
        artifact=files / stage.artifact,
        files=files,
        tools=tools,
        layouts=layouts,
        relink_s=entry.facts.relink_s or 0.0,
        unmoved=tuple(name for name, _ in relinked.obstacles),
        seen=seen,
        findings=judged,
        others=others,
        libraries=taken.folders,
        made=program.made,
        stage=stage,
        build_tree_sha256=entry.contents.get(BUILD_TREE, ""),
        flag_files=_flag_files(taken.files[0].path, (seen, *others)),
        idle=entry.facts.profile.idle,
    )


def _flag_files(
    program: str, every: Sequence[BuildEvidence]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    having = grouped(
        (flag, evidence.file or program)
        for evidence in every
        for flag in sorted(flags_had(evidence))
    )
    return tuple((flag, tuple(of)) for flag, of in having.items() if len(of) < len(every))


def left_out_result(variant: Variant, toolchain: Toolchain, reason: str) -> BuildResult:
    """Give the result of a variant that cannot exist here; nothing was tried."""
    result = failed_result(variant, toolchain, reason)
    return replace(result, facts=replace(result.facts, status=BuildStatus.LEFT_OUT))


def failed_result(
    variant: Variant, toolchain: Toolchain, log_tail: str, *, log_path: str = ""
) -> BuildResult:
    """Give the result of a variant whose build failed."""
    flags = toolchain.flags(variant)
    facts = BuildFacts(
        variant=variant.name,
        choices=variant.choices,
        compiler="" if variant.by_project else describe_toolchain(toolchain),
        flags=flags.compile,
        link_flags=flags.link,
        status=BuildStatus.FAILED,
        build_s=0.0,
        size_bytes=0,
        text_bytes=0,
        loadable_sha256="",
        log_path=log_path,
        log_tail=log_tail,
    )
    return BuildResult(facts, None, None, {})


def relink_findings(entry: StageEntry, variant: str, program: str) -> list[Finding]:
    """Why files of a variant have no relinks, or fewer, or other ones than were asked for."""
    relinked = entry.facts.relinked or Relinked()
    findings = [RELINKS.found(note, variant) for note in relinked.notes]
    for name, why in relinked.obstacles:
        which = "" if name == program else f"{name} "
        text = f"{which}cannot be relinked: {why}"
        findings.append(NOT_RELINKED.found(text, variant))
    return findings


def bolt_findings(entry: StageEntry, variant: str) -> list[Finding]:
    """Files loaded with the program that BOLT did not lay out, and why."""
    return [
        NOT_BOLTED.found(
            f"{name} runs as it was linked, without BOLT: {why}",
            variant,
        )
        for name, why in entry.facts.unable.items()
    ]


def seen_of(variant: Variant, flags: Flags, entry: StageEntry) -> BuildEvidence:
    """All evidence that was kept with the program of a variant."""
    log = entry.folder / "log.txt"
    proof = proof_of(entry)
    return BuildEvidence(
        subject=variant.name,
        proof=proof,
        request=None if variant.by_project else Request(variant, flags),
        calls=read_calls(entry.folder / CALLS),
        dependency_calls=read_calls(entry.folder / DEPENDENCY_CALLS),
        log=log.read_text(errors="replace") if log.exists() else "",
        took=_took(proof.origins[:1]),
    )


def _took(origins: Iterable[FileOrigins]) -> frozenset[str]:
    return frozenset(digest for origin in origins for digest in origin.outputs)


def _with_compiler(
    seen: BuildEvidence,
    toolchain: Toolchain,
    build: Build,
    of_units: tuple[Toolchain, Flags] | None,
) -> BuildEvidence:
    """The evidence, to be judged by the compiler asked for, and by what the study declares.

    `of_units` are compiler and flags of sources with other choices.
    """
    if seen.request is None:
        return seen
    units = read_unit_choices(seen.request.variant.units) if of_units else None
    if units is not None and units.functions:  # their source is compiled like the rest
        of_units = toolchain, seen.request.flags
    asked = (toolchain, *([of_units[0]] if of_units else []))
    real = {os.path.realpath(path) for each in asked for path in (each.cc, each.cxx) if path}
    called = {program for file in seen.proof.origins for program, _ in file.compiled}
    request = replace(
        seen.request,
        programs=frozenset(each for each in called if os.path.realpath(each) in real) | real,
        compiler=toolchain.kind.title,
        prebuilt=tuple(build.prebuilt),
        own_flags=tuple(build.own_flags),
        staged=bool(build.dependencies),
        units=units,
        unit_flags=of_units[1] if of_units else None,
    )
    strays = [stray for file in seen.proof.origins for stray in file.strays]
    left = tuple(undeclared(strays, request))
    declared = (unit for stray in strays if stray not in left for unit in stray.units)
    return replace(seen, request=request, prebuilt=frozenset(declared))


def seen_of_files(program: BuildEvidence, entry: StageEntry) -> Iterator[BuildEvidence]:
    """The same of each file that is loaded with it; flags of dependencies are judged if given."""
    own = program.request is not None and program.request.variant.dependencies != "plain"
    for name, proof in program_of(entry).file_proofs.items():
        calls, before = program.calls, program.dependency_calls
        if own:
            calls, before = (*before, *calls), ()
        yield replace(
            program,
            proof=proof,
            calls=calls,
            dependency_calls=before,
            file=name,
            took=_took(origin for origin in program.proof.origins if origin.path == name),
        )


def findings_of(
    results: Sequence[BuildResult],
    variants: Sequence[Variant],
    plan: Plan,
    ends: Mapping[str, StageResult],
) -> tuple[Finding, ...]:
    """Say which variants failed and why, and what the artifacts prove of the others' flags."""
    findings: list[Finding] = []
    for variant, result in zip(variants, results, strict=True):
        end = ends.get(plan.stage_of.get(variant.name, ""))
        if result.artifact is None:
            findings += result.findings or (_unbuilt(result, plan, ends),)
        elif end is not None and end.entry is not None:
            findings += result.findings
            program = plan.stage(plan.stage_of[variant.name]).artifact
            findings += relink_findings(end.entry, variant.name, program)
            findings += bolt_findings(end.entry, variant.name)
            findings += _no_effect(result)
    return tuple(findings)


def source_findings(
    source: SourceTree, baseline: str, ends: Mapping[str, StageResult]
) -> tuple[Finding, ...]:
    """Files of a source folder that stayed behind, and leftovers of an earlier build in it.

    `baseline` is the key of its stage, which keeps what lay in the tree before the first command.
    """
    findings = []
    if source.left_behind:
        text = (
            f"{len(source.left_behind)} files or folders that git ignores were left "
            f"behind: {some(source.left_behind)} (source.ignored = true takes them along)"
        )
        findings.append(IGNORED_FILES_LEFT.found(text))
    entry = ends[baseline].entry
    before = () if entry is None else read_leftovers(entry.folder / BEFORE)
    if before:
        names = some([leftover.path for leftover in before])
        text = (
            f"the source holds what an earlier build made: {names}; whatever of that got into "
            "a program is an error, the rest is harmless unless the build reads it"
        )
        findings.append(BUILT_FILES_IN_SOURCE.found(text))
    return tuple(findings)


def left_running(plan: Plan, facts: Mapping[str, StageFacts]) -> tuple[Finding, ...]:
    """Name what builds left running, now or when they were made; `facts` are by stages' keys."""
    findings = []
    for stage in plan.stages:
        names = facts[stage.key].left_running if stage.key in facts else ()
        if names:
            text = f"its build left {', '.join(names)} running, which was stopped"
            subject = stage.label if stage.kind == "program" else ""
            text = text if subject else f"{stage.label}: {text}"
            findings.append(LEFT_RUNNING.found(text, subject))
    return tuple(findings)


def _unbuilt(result: BuildResult, plan: Plan, ends: Mapping[str, StageResult]) -> Finding:
    facts = result.facts
    if facts.status == BuildStatus.LEFT_OUT:
        text = f"left out: {facts.log_tail}"
        return VARIANT_LEFT_OUT.found(text, facts.variant)
    return _failure(result, plan, ends)


def _failure(result: BuildResult, plan: Plan, ends: Mapping[str, StageResult]) -> Finding:
    name, tail = result.facts.variant, result.facts.log_tail
    why = result.facts.why_and_way_out
    kind, text = BUILD_FAILED, f"could not be built: {why}"
    before = _dependencies_of(name, plan)
    parent = None if before is None else ends.get(before.key)
    if unknown_lto(tail):
        kind = UNKNOWN_LTO_FLAG
        text = f"the compiler does not know the LTO flag: {unknown_lto(tail)}"
    elif before is not None and parent is not None and parent.entry is None:
        kind = DEPENDENCIES_BROKEN
        text = f"its bundled dependencies cannot be built with its flags: {why}"
        if before.label.startswith("dependencies with"):
            text = f"the bundled dependencies cannot be built: {why}"
    return kind.found(text, name)


def _dependencies_of(variant: str, plan: Plan) -> Stage | None:
    """The stage of the dependencies that a variant's program is built on, if there is one."""
    key = plan.stage_of.get(variant)
    while key:
        stage = plan.stage(key)
        if stage.kind == "dependencies":
            return stage
        key = stage.parent
    return None


def _no_effect(result: BuildResult) -> tuple[Finding, ...]:
    facts = result.facts
    if not facts.same_as:
        return ()
    what = "the binary: its loaded bytes are"
    if sum(file.kind != "object" for file in facts.files) > 1:
        what = "what was built: the loaded bytes of all its files are"
    text = f"no effect on {what} those of {facts.same_as}"
    return (SAME_BYTES.found(text, facts.variant),)


def same_bytes(results: tuple[BuildResult, ...], baseline: str) -> tuple[BuildResult, ...]:
    """Mark variants all of whose files are those of the baseline, or of an earlier variant."""
    order = sorted(results, key=lambda result: result.facts.variant != baseline)
    first: dict[str, str] = {}
    for result in order:
        if result.artifact is not None:
            first.setdefault(result.facts.identity, result.facts.variant)
    return tuple(_marked(result, first.get(result.facts.identity)) for result in results)


def _marked(result: BuildResult, same: str | None) -> BuildResult:
    if same is None or same == result.facts.variant:
        return result
    facts = replace(result.facts, status=BuildStatus.SAME, same_as=same)
    return replace(result, facts=facts)
