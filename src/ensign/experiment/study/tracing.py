"""Traced executions of built variants: one per variant and workload, kept with the study."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ensign.builders.build_results import BuildResult
from ensign.experiment.ports import Ports
from ensign.experiment.study.executed_files import Judged, judge_ran
from ensign.experiment.study.prepare import BuiltPrograms
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.experiment.tracing import TraceOptions, Tracer
from ensign.host.files import copy_tree
from ensign.host.temporary import temporary_folder
from ensign.meter.requests import VariantSpec
from ensign.model.builds import BuildStatus
from ensign.model.errors import CommandFailed
from ensign.model.executed_files import RanFile, RanOnce
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.traced_execution import TracedExecution
from ensign.proof.loaded_bytes import read_dynamic
from ensign.store.folder import StudyFolder

_TRACES = TypeAdapter(tuple[RanOnce, ...])
# Tells shares of the time to a few percent, and costs a traced execution little.
_SAMPLE_US = 1000
# Enough for what loads libraries late, and soon over.
_REQUESTS = 1000


class BuiltNotRunError(CommandFailed):
    """The baseline ran other files than were built: nothing can be compared with it."""


def judged_by_run(
    study: Study,
    programs: BuiltPrograms,
    variants: VariantSet,
    key: str,
    store: tuple[StudyFolder, Ports, Callable[[str], None]],
    known: Sequence[RanOnce] = (),
) -> Judged:
    """Judge what every variant runs. BuiltNotRunError where the baseline runs something else.

    `store` keeps the traces under `key`, carries them out, and is told of each workload. What is
    `known` is not traced again.
    """
    folder, ports, on_trace = store
    raced = [programs.report.result(name) for name, _ in programs.artifacts]
    traces = _stored(folder, key)
    if traces is None:
        tracer = ports.tracing(ports.meter)
        there = {(each.variant, each.workload): each for each in known}
        missing = missing_traces(study, raced, there.keys())
        traces = (*known, *_traced(study, variants, missing, tracer, on_trace))
        folder.write_json(f"ran/{key}", {"traces": _TRACES.dump_python(traces, mode="json")})
    judged = judge_ran(raced, traces, study.build.artifact)
    baseline = raced[0].facts.variant
    for finding in judged.findings:
        if baseline in judged.wrong and finding.subject == baseline:
            raise BuiltNotRunError(f"what ran is not what was built: {finding.text}")
    return judged


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
        first = next(each for each in judged.findings if each.subject in judged.wrong)
        raise BuiltNotRunError(f"what ran is not what was built: {first.said}")
    results = tuple(
        replace(each, facts=replace(each.facts, status=BuildStatus.SAME, same_as=judged.same[name]))
        if (name := each.facts.variant) in judged.same
        else each
        for each in programs.report.results
    )
    return replace(programs, artifacts=left, report=replace(programs.report, results=results))


def _stored(folder: StudyFolder, key: str) -> tuple[RanOnce, ...] | None:
    stored = folder.read_json(f"ran/{key}")
    if stored is None:
        return None
    try:
        return _TRACES.validate_python(stored.get("traces"), strict=False)
    except ValidationError:
        return None


def missing_traces(
    study: Study, results: Sequence[BuildResult], known: Collection[tuple[str, str]]
) -> dict[str, tuple[Workload, ...]]:
    """On which workloads variants are still to be traced. Pure.

    A variant that is one file and built no library is like the baseline in all but its code.
    """
    found: dict[str, tuple[Workload, ...]] = {}
    for number, result in enumerate(results):
        name = result.facts.variant
        alone = sum(each.loaded for each in result.facts.files) <= 1 and not result.made
        chosen = study.workloads[:1] if alone and number else study.workloads
        found[name] = tuple(each for each in chosen if (name, each.name) not in known)
    return found


def _traced(
    study: Study,
    variants: VariantSet,
    missing: Mapping[str, Sequence[Workload]],
    tracer: Tracer,
    on_trace: Callable[[str], None],
) -> Iterator[RanOnce]:
    for name, workloads in missing.items():
        if not workloads:
            continue
        with laid_out(variants, name) as place:
            for workload in workloads:
                on_trace(workload.name)
                yield traced_once(study, place, workload, tracer)[1]


@dataclass(frozen=True, slots=True)
class LaidOut:
    """One variant with its files in the folder `root`, for as long as they are looked at.

    `variant` is what it is called in its commands.
    """

    variants: VariantSet
    root: Path
    variant: str


@contextmanager
def laid_out(variants: VariantSet, name: str, variant: str = "") -> Iterator[LaidOut]:
    """The variant of that name, in a copy of its files."""
    with temporary_folder("ran") as scratch:
        root = scratch.resolve() / "files"
        one = _in_place(variants, name, dict(variants.artifacts)[name], root)
        yield LaidOut(one, root, variant or name)


def _in_place(variants: VariantSet, name: str, path: str, root: Path) -> VariantSet:
    """That variant alone, its files copied to `root` for as long as they are looked at."""
    tree = variants.trees[path]
    copy_tree(Path(tree.folders[0]), root, [each for each in tree.without if "/" in each])
    placed = replace(tree, folders=(str(root),), in_place=True)
    return replace(
        variants, artifacts=((name, path),), trees={path: placed}, relinks={}, rotation=0, twin=None
    )


def traced_once(
    study: Study,
    place: LaidOut,
    workload: Workload,
    tracer: Tracer,
    deadline_ns: int | None = None,
) -> tuple[TracedExecution, RanOnce]:
    """One execution, without what it wrote among its own files, and what ran in it."""
    ((name, _),) = place.variants.artifacts
    requests = workload.fixed_requests
    if requests is None and workload.sends_requests:
        requests = workload.rounding * max(1, _REQUESTS // workload.rounding)
    request = race_request(study, place.variants, workload, requests, seed=study.race.seed)
    variant = replace(request.variants[0], name=place.variant)
    behind, env = _behind_env(variant)
    wish = TraceOptions(study.race.ports, deadline_ns=deadline_ns, sample_us=_SAMPLE_US)
    seen = tracer.trace(behind, wish)
    files = tuple(each for each in _files(seen, place.root) if each.path not in env)
    inside = f"{place.root}{os.sep}"
    ways = tuple(each for each in seen.ways if not each.path.startswith(inside))
    outside = replace(seen, ways=ways, written=tuple(each.path for each in ways))
    return outside, RanOnce(name, workload.name, files, _gaps(seen))


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


def _gaps(seen: TracedExecution) -> str:
    if seen.not_judged or seen.followed:
        return seen.not_judged
    return "it could not be followed"


def _files(seen: TracedExecution, root: Path) -> Iterator[RanFile]:
    inside = f"{root}{os.sep}"
    times = {each.path: each.cpu_ns for each in seen.samples}
    found: Mapping[str, RanFile] = {
        each.path: replace(
            _file(each.path, each.sha256, inside),
            made=each.path in seen.written,
            cpu_ns=times.get(each.path, 0),
        )
        for each in seen.mapped
    }
    yield from found.values()


def _file(path: str, sha256: str, inside: str) -> RanFile:
    if path.startswith(inside):
        return RanFile(path[len(inside) :], sha256, built=True)
    dynamic = read_dynamic(Path(path))
    return RanFile(path, sha256, built=False, soname="" if dynamic is None else dynamic.soname)
