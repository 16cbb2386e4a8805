"""From a study file to programs that can be raced."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ensign.builders.build import build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.input_files import make_inputs
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.experiment.ports import Ports
from ensign.experiment.study.program_layout import ProgramTree
from ensign.experiment.study.study_confinement import confined_ports
from ensign.experiment.study.training import MeterTrainer
from ensign.experiment.study_file import StudyFile, read_study
from ensign.experiment.suites import expand_study
from ensign.host.cache import Cache, cache_folder
from ensign.host.entry import CacheChanged
from ensign.meter.client import find_meter
from ensign.model.build_events import BuildEvent, OnEvent, ignore
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import CACHE_REPLACED
from ensign.model.placeholders import names_in
from ensign.model.study import Study
from ensign.model.study_build import Build
from ensign.model.study_problems import Where
from ensign.model.study_source import PathSource
from ensign.store.bundle import is_bundle
from ensign.toolchains.find import MissingCompiler


@dataclass(frozen=True, slots=True)
class BuiltPrograms:
    """What takes part, the baseline first: variant and path. Equal variants are left out.

    `tools` are other programs of the baseline's build, by name; `relinks` are paths by variant.
    `trees` has, by path, what each program or relink runs with.
    """

    report: BuildReport
    artifacts: tuple[tuple[str, str], ...]
    tools: tuple[tuple[str, str], ...]
    relinks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[str, ProgramTree] = field(default_factory=dict)


def open_study(path: Path, ports: Ports | None = None) -> StudyFile:
    """The checked study; StudyError with line and key where it is wrong.

    What its suite is made of is fetched where the cache has it not.
    """
    if is_bundle(path):
        unbundle = shlex.join(["ensign", "unbundle", str(path), "FOLDER"])
        raise InputError(f"{path} is a bundle; take the study out of it first: {unbundle}")
    ports = ports or Ports()

    def expand(study: Study) -> Study:
        with open_cache(ports) as cache:
            return expand_study(study, path.absolute(), cache, ports)

    return read_study(path, machine_cpus=frozenset(os.sched_getaffinity(0)), expand=expand)


@contextmanager
def open_cache(ports: Ports) -> Iterator[Cache]:
    """The cache of sources and builds; what was taken from it stays while it is open."""
    with Cache(cache_folder(ports.env), clock=ports.clock) as cache:
        yield cache


def build_programs(
    file: StudyFile,
    cache: Cache,
    ports: Ports,
    on_event: OnEvent = ignore,
    *,
    update_lock: bool = False,
    install_dependencies: bool = False,
) -> BuiltPrograms:
    """Builds what is missing. CommandFailed if the baseline fails; see `build_variants`."""
    request = BuildRequest(
        file.study,
        file.path,
        file.variants,
        file.variants[0].name,
        update_lock,
        install_dependencies,
    )
    with compilers_by_line(file):
        make_inputs(request, build_ports(file, cache, ports), on_event)
        report = _built(request, build_ports(file, cache, ports), on_event)
    relinks = {result.facts.variant: tuple(map(str, result.layouts)) for result in report.results}
    raced = _raced(report, file.variants[0].name)
    return BuiltPrograms(report, *raced, relinks, dict(_trees(report, file.study.build)))


def _built(request: BuildRequest, ports: BuildPorts, on_event: OnEvent) -> BuildReport:
    """The builds, with what of the cache was made again for them.

    Builds and checks are foreign code: what is raced is looked at once more after all of them.
    """
    report = build_variants(request, ports, on_event)
    if not ports.cache.recheck("program"):
        report = build_variants(replace(request, update_lock=False), ports, on_event)
        if not ports.cache.recheck("program"):
            raise CacheChanged(
                "programs in the cache are changed by something else as soon as they are built: "
                f"{'; '.join(ports.cache.replaced())}"
            )
    replaced = ports.cache.replaced()
    for text in replaced:
        on_event(BuildEvent("replaced", "cache", 0.0, 0.0, text))
    return replace(
        report, findings=(*report.findings, *(CACHE_REPLACED.found(each) for each in replaced))
    )


def _trees(report: BuildReport, build: Build) -> Iterator[tuple[str, ProgramTree]]:
    """What each program that was built runs with, and each of its relinks."""
    for result in report.results:
        if result.files is None:
            continue
        counted = {each.path for each in result.facts.files}
        tree = ProgramTree(
            folders=(str(result.files),),
            program=build.artifact,
            libraries=result.libraries,
            without=tuple(sorted({build.tools[name] for name in result.tools} - counted)),
        )
        yield str(result.artifact), tree
        for path in result.layouts:
            over = str(path)[: -len(build.artifact) - 1]
            yield str(path), replace(tree, folders=(*tree.folders, over))


@contextmanager
def compilers_by_line(file: StudyFile) -> Iterator[None]:
    """Adds the line of the study to the complaint about a missing compiler."""
    try:
        yield
    except MissingCompiler as missing:
        study = file.study
        places: list[Where] = [
            ("axes", "compiler", index)
            for index, name in enumerate(study.axes.compiler)
            if name == missing.compiler
        ]
        places += [
            ("include", index, "compiler")
            for index, choice in enumerate(study.include)
            if choice.compiler == missing.compiler
        ]
        raise file.error(str(missing), *places[0]) from None


def require_source(file: StudyFile) -> None:
    """StudyError where the source is a folder that is not there: nothing of it can be planned."""
    source = file.study.source
    if isinstance(source, PathSource) and not (file.folder / source.path).is_dir():
        folder = (file.folder / source.path).resolve()
        raise file.error(f"the source folder {folder} is not there", "source", "path")


def require_commands(file: StudyFile, env: Mapping[str, str]) -> None:
    """StudyError where a program that workloads name is missing: before the builds, not after."""
    training = file.study.training
    for table, workload in (
        *(("", each) for each in file.study.workloads),
        *(("training", each) for each in (() if training is None else training.workloads)),
    ):
        named: list[tuple[Where, list[str] | None]] = [
            (("load",), workload.load),
            (("command",), workload.command),
            *((("preload", number), argv) for number, argv in enumerate(workload.preload_commands)),
        ]
        for where, argv in named:
            program = "" if argv is None else argv[0]
            if not program or names_in(program):
                continue
            place = str(file.folder / program) if "/" in program else program
            if shutil.which(place, path=env.get("PATH")) is None:
                raise file.error(
                    f"workload '{workload.name}': there is no program '{program}'; "
                    "install it, or correct its name",
                    *file.place_of(workload.name, table),
                    *where,
                )


def build_ports(file: StudyFile, cache: Cache, ports: Ports) -> BuildPorts:
    """The effects of building."""
    cores = len(os.sched_getaffinity(0))
    processes = ports.processes()
    return BuildPorts(
        processes=processes,
        clock=ports.clock,
        cache=cache,
        cores=cores,
        env=ports.env,
        meter=find_meter(),
        trainer=MeterTrainer(confined_ports(file, ports).meter, file.study, file.folder),
    )


def built_programs(path: Path, variants: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Paths of these variants' programs and of the tools, built if need be (for the benches)."""
    ports = Ports()
    with open_cache(ports) as cache:
        programs = build_programs(open_study(path), cache, ports)
    artifacts = dict(programs.artifacts)
    missing = [variant for variant in variants if variant not in artifacts]
    if missing:
        raise InputError(f"{path} has no variant of its own called {', '.join(missing)}")
    return artifacts, dict(programs.tools)


def _raced(
    report: BuildReport, baseline: str
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    distinct = [
        (result.facts.variant, str(result.artifact))
        for result in report.results
        if result.artifact is not None and not result.facts.same_as and not result.facts.out
    ]
    distinct.sort(key=lambda pair: pair[0] != baseline)
    tools = report.result(baseline).tools
    return tuple(distinct), tuple((name, str(path)) for name, path in tools.items())
