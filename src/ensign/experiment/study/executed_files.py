"""Comparison of the files that ran with those that were built, by traces. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ensign.builders.build_results import BuildResult
from ensign.experiment.study.variants import ProgramTree, VariantSet
from ensign.experiment.traced_files import ExpectedFiles, FileMismatch, compare_files, summarize
from ensign.experiment.tracing import Identities
from ensign.model.builds import BuiltFile, MadeLibrary
from ensign.model.errors import RaceFailed
from ensign.model.finding_kinds.builds import SAME_BYTES
from ensign.model.finding_kinds.ran import (
    ARTIFACT_NOT_RUN,
    BUILT_NOT_LOADED,
    FLAG_NOT_RUN,
    FLAG_NOT_RUN_BY_ALL,
    RAN_NOT_JUDGED,
    RAN_SOMETHING_ELSE,
    RAN_UNSEEN,
    UNMOVED_CODE,
)
from ensign.model.findings import Finding, Severity
from ensign.model.traced_execution import RanFile, RanOnce, WhatRan
from ensign.model.trials import Trial, VariantFailure, seen_in_race

# Of looks at every millisecond these are enough to name a share.
_LEAST_SEEN_NS, _LEAST_SHARE = 30_000_000, 0.05


@dataclass(frozen=True, slots=True)
class Judged:
    """Outcome. `wrong` variants ran other files than they were built of.

    `same` has the variants that ran nothing but equal files, with the one they are equal to;
    `traces` is what it rests on.
    """

    ran: tuple[WhatRan, ...]
    findings: tuple[Finding, ...]
    wrong: frozenset[str]
    same: Mapping[str, str]
    traces: tuple[RanOnce, ...] = ()


def judge_ran(results: Sequence[BuildResult], traces: Sequence[RanOnce], artifact: str) -> Judged:
    """`results` are of the variants that take part, the baseline first."""
    findings: list[Finding] = []
    wrong: set[str] = set()
    for result in results:
        name = result.facts.variant
        own = [trace for trace in traces if trace.variant == name]
        own_findings = [*_not_loaded(result, own), *_not_run(result, own, artifact)]
        if result is results[0]:
            own_findings += _unmoved(result, own)
        own_findings += _without_flags(result, own)
        wrong |= {name for finding in own_findings if finding.severity is Severity.ERROR}
        findings += own_findings
        findings += _not_judged(name, own)
    same = _same(results, traces, wrong)
    findings += (
        SAME_BYTES.found(
            f"no effect on what ran: all files that were loaded are those of {first}",
            name,
        )
        for name, first in same.items()
    )
    return Judged(tuple(_listed(traces)), tuple(findings), frozenset(wrong), same, tuple(traces))


def _unmoved(result: BuildResult, traces: Iterable[RanOnce]) -> Iterator[Finding]:
    """Files with a good part of the time that lie where they lie in all of its relinks."""
    if not result.layouts:
        return
    for trace in traces:
        total_ns = sum(ran_file.cpu_ns for ran_file in trace.files)
        if total_ns < _LEAST_SEEN_NS:
            continue
        still = [file for file in trace.files if not file.built or file.path in result.unmoved]
        parts = sorted(
            ((ran_file.cpu_ns / total_ns, ran_file.path) for ran_file in still), reverse=True
        )
        named = [f"{path} ({100 * share:.0f} %)" for share, path in parts if share >= _LEAST_SHARE]
        if named:
            text = f"of the time of {trace.workload}, these parts are in code that no relink moves:"
            yield UNMOVED_CODE.found(f"{text} {', '.join(named)}", result.facts.variant)


def _not_loaded(result: BuildResult, traces: Iterable[RanOnce]) -> Iterator[Finding]:
    """Libraries that were built, of which another one of the same name was loaded."""
    name = result.facts.variant
    kept = [file for file in result.facts.files if file.kind == "library"]
    told: set[str] = set()
    for trace in traces:
        loaded = {ran_file.path for ran_file in trace.files if ran_file.built}
        libraries: tuple[BuiltFile | MadeLibrary, ...] = (*kept, *result.made)
        for library in libraries:
            if library.path in loaded or library.path in told:
                continue
            others = [file for file in trace.files if not file.built and file.names & library.names]
            if others and not _stands_in(library, kept, loaded):
                told.add(library.path)
                text = (
                    f"built {library.path}, but {trace.workload} ran {others[0].path}: "
                    f"{_way_out(library, kept)}"
                )
                yield BUILT_NOT_LOADED.found(text, name)


def _stands_in(
    library: BuiltFile | MadeLibrary, kept: Iterable[BuiltFile], loaded: set[str]
) -> bool:
    """True if another file of that name which the build made was loaded."""
    return any(file.path in loaded and file.names & library.names for file in kept)


def _way_out(library: BuiltFile | MadeLibrary, kept: Sequence[BuiltFile]) -> str:
    if library.path in {file.path for file in kept}:
        return (
            "the loader finds the other one first; link the program with RPATH $ORIGIN, or without "
            "an RPATH that leads elsewhere"
        )
    return f'write runtime_files = ["{library.path}"] in [build], so that it runs with the program'


def _not_run(result: BuildResult, traces: Iterable[RanOnce], artifact: str) -> Iterator[Finding]:
    name = result.facts.variant
    program = result.facts.files[0].path if result.facts.files else artifact
    programs = {program, *(file.path for file in result.facts.files if file.kind == "program")}
    for trace in traces:
        if trace.not_judged or any(file.path in programs for file in trace.files if file.built):
            continue
        text = (
            f"{trace.workload} did not run {program}, so it says nothing about the build; "
            "let its command run {artifact}"
        )
        yield ARTIFACT_NOT_RUN.found(text, name)
        return


def _without_flags(result: BuildResult, traces: Sequence[RanOnce]) -> Iterator[Finding]:
    """Flags that only files have which did not run."""
    if not traces or any(execution.not_judged for execution in traces):
        return
    for flag, files in result.flag_files:
        bare = [
            trace.workload
            for trace in traces
            if not any(file.built and file.path in files for file in trace.files)
        ]
        if bare:
            kind = FLAG_NOT_RUN if len(bare) == len(traces) else FLAG_NOT_RUN_BY_ALL
            text = (
                f"{flag} was asked for, and nothing that {', '.join(bare)} ran has it: "
                f"{', '.join(files)} did not run; hand it to what does, as "
                'build.rewrite.compile = ["{cflags}"] does'
            )
            yield kind.found(text, result.facts.variant)


def _not_judged(name: str, traces: Iterable[RanOnce]) -> Iterator[Finding]:
    reasons: dict[str, list[str]] = {}
    for trace in traces:
        if trace.not_judged:
            reasons.setdefault(trace.not_judged, []).append(trace.workload)
    for reason, workloads in reasons.items():
        text = f"not judged: what {name} ran in {', '.join(workloads)}, because {reason}"
        yield RAN_NOT_JUDGED.found(text, name)


def _same(
    results: Sequence[BuildResult], traces: Sequence[RanOnce], wrong: set[str]
) -> dict[str, str]:
    first: dict[object, str] = {}
    same: dict[str, str] = {}
    for result in results:
        name = result.facts.variant
        own = [execution for execution in traces if execution.variant == name]
        files = [ran_file for trace in own for ran_file in trace.files]
        unknown = any(execution.not_judged for execution in own) or any(
            not ran_file.sha256 for ran_file in files
        )
        if not own or unknown or name in wrong:
            continue
        data = {(file.path, file.sha256) for file in result.facts.files if file.kind == "data"}
        ran = {(trace.workload, file.path, file.sha256) for trace in own for file in trace.files}
        key = (frozenset(ran), frozenset(data))
        if key in first:
            same[name] = first[key]
        else:
            first[key] = name
    return same


def _listed(traces: Iterable[RanOnce]) -> Iterator[WhatRan]:
    uses_by_file: dict[tuple[bool, str], list[tuple[RanOnce, str]]] = {}
    for trace in traces:
        for file in trace.files:
            uses_by_file.setdefault((not file.built, file.path), []).append((trace, file.sha256))
    for (foreign, path), uses in sorted(uses_by_file.items(), key=lambda pair: pair[0]):
        hashes = {sha256 for _, sha256 in uses}
        yield WhatRan(
            path=path,
            built=not foreign,
            variants=tuple(dict.fromkeys(trace.variant for trace, _ in uses)),
            workloads=tuple(dict.fromkeys(trace.workload for trace, _ in uses)),
            same=len(hashes) == 1 and "" not in hashes,
        )


@dataclass(frozen=True, slots=True)
class RaceCheck:
    """Holds each trial against the traced executions: who ran something else is out.

    `traces` are of all variants that take part, on each workload on which they were traced. The
    `baseline` is the variant that other variants are made of: its twin, and its relinks.
    """

    traces: Sequence[RanOnce]
    baseline: str
    identities: Identities = field(default_factory=Identities)

    def __call__(self, trial: Trial, variants: VariantSet) -> Trial:
        """The trial without the variants that ran something else, which have failed in it.

        What ran besides is a finding. RaceFailed where it is the baseline, or its twin.
        """
        failures: list[VariantFailure] = []
        findings: list[Finding] = []
        paths = dict(variants.artifacts)
        for variant in (totals.variant for totals in trial.variants):
            # The twin and the baseline of a later group have names of their own.
            path = paths.get(variant) or variants.twin or variants.artifacts[0][1]
            mismatch = self._seen(trial, variant, variants.trees.get(path))
            problems = (*mismatch.others, *mismatch.changed)
            if mismatch.unseen and not mismatch.own:
                problems = (*problems, *mismatch.unseen)
            if problems and (variant not in paths or variant == variants.artifacts[0][0]):
                raise RaceFailed(
                    f"{variant} ran other files than when it was looked at, on workload "
                    f"{trial.workload}: {summarize(problems)}; remove the study's results folder "
                    "to look at it again"
                )
            if problems:
                failures.append(
                    VariantFailure(
                        variant,
                        RAN_SOMETHING_ELSE.code,
                        summarize(problems),
                        workload=trial.workload,
                        round_index=trial.round_index,
                    )
                )
            elif mismatch.unseen:
                findings.append(RAN_UNSEEN.found(summarize(mismatch.unseen), variant))
        if not failures and not findings:
            return trial
        left = trial.without({failure.variant for failure in failures})
        return replace(
            left,
            failures=(*left.failures, *failures),
            findings=(*left.findings, *findings),
        )

    def _seen(self, trial: Trial, variant: str, tree: ProgramTree | None) -> FileMismatch:
        looked = self._looked_at(variant, trial.workload, tree)
        if looked is None:
            return FileMismatch()
        return compare_files(looked, seen_in_race([trial], variant), self.identities)

    def _looked_at(
        self, variant: str, workload: str, tree: ProgramTree | None
    ) -> ExpectedFiles | None:
        """Files of that variant there; where it was not traced, its own on another workload.

        It then runs the machine's files as the baseline does.
        """
        own = [execution for execution in self.traces if execution.variant == variant]
        own = own or [execution for execution in self.traces if execution.variant == self.baseline]
        here = [execution for execution in own if execution.workload == workload]
        chosen: list[RanOnce] = here[:1]
        if not here:
            chosen = own[:1]
            chosen += [
                replace(trace, files=tuple(file for file in trace.files if not file.built))
                for trace in self.traces
                if (trace.variant, trace.workload) == (self.baseline, workload)
            ][:1]
        files = dict(_placed([file for execution in chosen for file in execution.files], tree))
        if not files:
            return None
        return ExpectedFiles(
            identities={path: file.sha256 for path, file in files.items()},
            made=frozenset(path for path, file in files.items() if file.made),
            copied=None if tree is None else tree.files,
            whole=all(not execution.not_judged for execution in chosen),
        )


def _placed(files: Sequence[RanFile], tree: ProgramTree | None) -> Iterator[tuple[str, RanFile]]:
    """Files by the paths that they have in the race, or that they are copied from."""
    for file in files:
        if not file.built:
            yield file.path, file
        elif tree is not None:
            yield f"{tree.folders[0]}/{file.path}", file
