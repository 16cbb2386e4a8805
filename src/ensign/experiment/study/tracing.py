"""Traced executions of built variants: one per variant and workload, kept with the study."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ensign.builders.build_results import BuildResult
from ensign.experiment.study.executed_files import Judged, judge_ran
from ensign.experiment.study.prepare import BuiltPrograms
from ensign.experiment.study.variants import VariantSet, first_requests, race_request
from ensign.experiment.traced_files import SharedFile, shared_files, shared_finding
from ensign.experiment.tracing import NO_TIME, SAMPLE_US, TraceOptions, Tracer
from ensign.host.clock import Clock
from ensign.host.files import copy_tree
from ensign.host.temporary import temporary_folder
from ensign.meter.requests import VariantSpec
from ensign.model.builds import BuildStatus
from ensign.model.errors import CommandFailed, InputError
from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.traced_execution import (
    MappedFile,
    RanFile,
    RanOnce,
    TracedExecution,
    nothing_seen,
)
from ensign.model.trials import TWIN
from ensign.model.units import parse_duration_ns
from ensign.proof.loaded_bytes import read_dynamic
from ensign.store.folder import StudyFolder

_TRACES = TypeAdapter(tuple[RanOnce, ...])
# Tells shares of the time to a few percent, and costs a traced execution little.
# Enough for what loads libraries late, and soon over.
_REQUESTS = 1000

# What looking may take, beside the study's budget, which is for racing: a share of it, or this.
_SHARE_OF_BUDGET = 0.1
_AT_LEAST_NS = 10 * 10**9


class BuiltNotRunError(CommandFailed):
    """The baseline ran other files than were built: nothing can be compared with it."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Files that the baseline and its twin wrote, by workload; the twin where it says more.

    Variants run the same commands: what baseline and twin share, all share. Workloads of one server
    with equal arguments have what was seen of the first of them. `ran` is what the baseline ran,
    where all of it was seen.
    """

    by_workload: Mapping[str, Mapping[str, TracedExecution]]
    baseline: str
    ran: tuple[RanOnce, ...]

    @property
    def shared(self) -> dict[str, tuple[SharedFile, ...]]:
        """The files that both write, by workload; those alone that have some."""
        shared_by_workload = {name: shared_files(seen) for name, seen in self.by_workload.items()}
        return {name: files for name, files in shared_by_workload.items() if files}

    @property
    def of_baseline(self) -> dict[str, TracedExecution]:
        """Observations of the baseline, by workload."""
        return {name: seen[self.baseline] for name, seen in self.by_workload.items()}

    @property
    def apart(self) -> frozenset[str]:
        """The workloads whose variants cannot be alive at once."""
        return frozenset(self.shared)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """`shared-files` by workload, and `not-judged`, once for each reason."""
        names = {TWIN: f"{self.baseline} (twin)"}
        findings: list[Finding] = []
        for workload, files in self.shared.items():
            findings += shared_finding(files, names, apart=True, subject=workload)
        reasons: dict[str, list[str]] = {}
        for workload, seen in self.by_workload.items():
            for reason in {
                execution.not_judged for execution in seen.values() if not execution.followed
            }:
                reasons.setdefault(reason, []).append(workload)
        for reason, workloads in reasons.items():
            text = f"not judged: whether variants write the same files: {reason}"
            findings.append(NOT_JUDGED.found(text, ", ".join(workloads)))
        return tuple(findings)


_SHARING = TypeAdapter(Sharing)


@dataclass(frozen=True, slots=True)
class StudyTracing:
    """Tracer of variants, store of its observations, and the listener for each workload."""

    tracer: Tracer
    clock: Clock
    folder: StudyFolder
    on_trace: Callable[[str], None]

    def sharing(self, study: Study, variants: VariantSet, key: str) -> Sharing:
        """Observations, made now or by an earlier call under that key."""
        name = f"shared/{key}"
        stored = self.folder.read_json(name)
        if stored is not None:
            try:
                return _SHARING.validate_json(json.dumps(stored))
            except ValidationError:
                path = self.folder.json_file(name)
                raise InputError(f"{path} is damaged; delete it and run again") from None
        sharing = self._look(study, variants)
        self.folder.write_json(name, json.loads(_SHARING.dump_json(sharing)))
        return sharing

    def _look(self, study: Study, variants: VariantSet) -> Sharing:
        share_ns = round(parse_duration_ns(study.race.budget) * _SHARE_OF_BUDGET)
        end_ns = self.clock.monotonic_ns() + max(share_ns, _AT_LEAST_NS)
        name = variants.artifacts[0][0]
        traces: dict[str, dict[str, TracedExecution]] = {}
        ran: list[RanOnce] = []
        alike: dict[object, str] = {}
        for workload in study.workloads:
            key = _program(study, variants, workload)
            earlier = alike.setdefault(key, workload.name)
            if earlier != workload.name:
                traces[workload.name] = traces[earlier]
                continue
            self.on_trace(workload.name)
            first, files = self._baseline(study, variants, workload, end_ns)
            ran += (file for file in files if not file.not_judged)
            seen = {name: first}
            if first.written:
                seen[TWIN], _ = self._baseline(study, variants, workload, end_ns, TWIN)
            traces[workload.name] = seen
        return Sharing(traces, name, tuple(ran))

    def judged(
        self,
        study: Study,
        programs: BuiltPrograms,
        variants: VariantSet,
        key: str,
        known: Sequence[RanOnce] = (),
    ) -> Judged:
        """Files that every variant runs, by traces under that key; `known` ones are kept.

        BuiltNotRunError where the baseline runs something else than was built.
        """
        raced = [programs.report.result(name) for name, _ in programs.artifacts]
        traces = self._stored(key)
        if traces is None:
            there = {(execution.variant, execution.workload) for execution in known}
            missing = missing_traces(study, raced, there)
            traces = (*known, *self._traced(study, variants, missing))
            content = {"traces": _TRACES.dump_python(traces, mode="json")}
            self.folder.write_json(f"ran/{key}", content)
        judged = judge_ran(raced, traces, study.build.artifact)
        baseline = raced[0].facts.variant
        for finding in judged.findings:
            if baseline in judged.wrong and finding.subject == baseline:
                raise BuiltNotRunError(f"what ran is not what was built: {finding.text}")
        return judged

    def _stored(self, key: str) -> tuple[RanOnce, ...] | None:
        stored = self.folder.read_json(f"ran/{key}")
        if stored is None:
            return None
        try:
            return _TRACES.validate_python(stored.get("traces"), strict=False)
        except ValidationError:
            return None

    def _traced(
        self, study: Study, variants: VariantSet, missing: Mapping[str, Sequence[Workload]]
    ) -> Iterator[RanOnce]:
        for name, workloads in missing.items():
            if not workloads:
                continue
            with _laid_out(variants, name) as place:
                for workload in workloads:
                    self.on_trace(workload.name)
                    yield self._once(study, place, workload)[1]

    def _baseline(
        self,
        study: Study,
        variants: VariantSet,
        workload: Workload,
        end_ns: int,
        variant: str = "",
    ) -> tuple[TracedExecution, tuple[RanOnce, ...]]:
        """The baseline, or its twin: each in its own copy of the files."""
        left_ns = end_ns - self.clock.monotonic_ns()
        if left_ns <= 0:
            return nothing_seen(NO_TIME), ()
        with _laid_out(variants, variants.artifacts[0][0], variant) as place:
            seen, ran = self._once(study, place, workload, left_ns)
        return seen, (ran,)

    def _once(
        self, study: Study, place: _LaidOut, workload: Workload, deadline_ns: int | None = None
    ) -> tuple[TracedExecution, RanOnce]:
        """One execution, without what it wrote among its own files, and what ran in it."""
        ((name, _),) = place.variants.artifacts
        requests = workload.fixed_requests
        if requests is None and workload.sends_requests:
            requests = workload.rounding * max(1, _REQUESTS // workload.rounding)
        request = race_request(study, place.variants, workload, requests, seed=study.race.seed)
        variant = replace(request.variants[0], name=place.variant)
        behind, env = _behind_env(variant)
        wish = TraceOptions(study.race.ports, deadline_ns=deadline_ns, sample_us=SAMPLE_US)
        seen = self.tracer.trace(behind, wish)
        inside = f"{place.root}{os.sep}"
        mapped = {file.path: file for file in seen.mapped if file.path not in env}
        files = tuple(_file(file, seen, inside) for file in mapped.values())
        ways = tuple(file for file in seen.ways if not file.path.startswith(inside))
        outside = replace(seen, ways=ways, written=tuple(way.path for way in ways))
        gaps = seen.not_judged or ("" if seen.followed else "it could not be followed")
        return outside, RanOnce(name, workload.name, files, gaps)


def _program(study: Study, variants: VariantSet, workload: Workload) -> object:
    """Key that workloads of one server with equal arguments share."""
    requests = first_requests(workload)
    alone = variants.only_baseline()
    baseline = race_request(study, alone, workload, requests, seed=study.race.seed).variants[0]
    return workload.name if baseline.load is None else baseline.program


def judged_programs(programs: BuiltPrograms, judged: Judged) -> BuiltPrograms:
    """Those that are left to race; the facts of the others say why they are not.

    BuiltNotRunError where all but the baseline ran other files than were built.
    """
    left = tuple(
        (name, path)
        for name, path in programs.artifacts
        if name not in judged.wrong and name not in judged.same
    )
    if judged.wrong and len(left) <= 1:
        first = next(finding for finding in judged.findings if finding.subject in judged.wrong)
        raise BuiltNotRunError(f"what ran is not what was built: {first.said}")
    results = tuple(
        replace(
            result, facts=replace(result.facts, status=BuildStatus.SAME, same_as=judged.same[name])
        )
        if (name := result.facts.variant) in judged.same
        else result
        for result in programs.report.results
    )
    return replace(programs, artifacts=left, report=replace(programs.report, results=results))


def missing_traces(
    study: Study, results: Sequence[BuildResult], known: Collection[tuple[str, str]]
) -> dict[str, tuple[Workload, ...]]:
    """On which workloads variants are still to be traced. Pure.

    A variant that is one file and built no library is like the baseline in all but its code.
    """
    missing: dict[str, tuple[Workload, ...]] = {}
    for number, result in enumerate(results):
        name = result.facts.variant
        alone = sum(file.loaded for file in result.facts.files) <= 1 and not result.made
        chosen = study.workloads[:1] if alone and number else study.workloads
        missing[name] = tuple(workload for workload in chosen if (name, workload.name) not in known)
    return missing


@dataclass(frozen=True, slots=True)
class _LaidOut:
    """One variant with its files in the folder `root`, for as long as they are looked at.

    `variant` is what it is called in its commands.
    """

    variants: VariantSet
    root: Path
    variant: str


@contextmanager
def _laid_out(variants: VariantSet, name: str, variant: str = "") -> Iterator[_LaidOut]:
    """The variant of that name alone, in a copy of its files."""
    path = dict(variants.artifacts)[name]
    tree = variants.trees[path]
    with temporary_folder("ran") as scratch:
        root = scratch.resolve() / "files"
        copy_tree(Path(tree.folders[0]), root, [file for file in tree.without if "/" in file])
        placed = replace(tree, folders=(str(root),), in_place=True)
        one = replace(
            variants,
            artifacts=((name, path),),
            trees={path: placed},
            relinks={},
            rotation=0,
            twin=None,
        )
        yield _LaidOut(one, root, variant or name)


def _behind_env(variant: VariantSpec) -> tuple[VariantSpec, frozenset[str]]:
    """The variant with its library path given by `env`, and that path's folders.

    What stands in front of the program must not load the libraries that were built.
    """
    program = variant.program
    env = shutil.which("env")
    own = [f"{key}={text}" for key, text in program.env if key.startswith("LD_")]
    if not own or env is None:
        return variant, frozenset()
    rest = tuple((key, text) for key, text in program.env if not key.startswith("LD_"))
    placed = replace(program, argv=(env, *own, *program.argv), env=rest)
    paths = frozenset({env, os.path.realpath(env)})
    return replace(variant, program=placed), paths if program.argv[0] != "env" else frozenset()


def _file(file: MappedFile, seen: TracedExecution, inside: str) -> RanFile:
    made = file.path in seen.written
    cpu_ns = next((sample.cpu_ns for sample in seen.samples if sample.path == file.path), 0)
    if file.path.startswith(inside):
        own = file.path.removeprefix(inside)
        return RanFile(own, file.sha256, built=True, made=made, cpu_ns=cpu_ns)
    dynamic = read_dynamic(Path(file.path))
    soname = "" if dynamic is None else dynamic.soname
    return RanFile(file.path, file.sha256, built=False, soname=soname, made=made, cpu_ns=cpu_ns)
