"""What is raced: the inputs and programs of a study, obtained and built."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ensign.builders.build import build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.input_files import make_inputs
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import obtain_sources
from ensign.builders.toolchains_here import flags_between
from ensign.experiment.confinement import confined_ports
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache
from ensign.experiment.study.training import MeterTrainer
from ensign.experiment.study.variants import ProgramTree
from ensign.experiment.study_file import StudyFile
from ensign.host.cache import Cache
from ensign.host.entry import CacheChanged
from ensign.meter.client import find_meter
from ensign.model.builds import BuildEvent, OnEvent, ignore
from ensign.model.finding_kinds.builds import CACHE_REPLACED
from ensign.model.placeholders import names_in
from ensign.model.study_build import Build
from ensign.model.study_problems import Where
from ensign.model.study_source import PathSource
from ensign.model.unit_choices import can_be_named
from ensign.model.variants import Variant
from ensign.proof.evidence import own_units
from ensign.sources.obtain import lock_path
from ensign.toolchains.find import MissingCompiler
from ensign.toolchains.single_flags import SingleFlag


@dataclass(frozen=True, slots=True)
class BuiltPrograms:
    """Variants that take part, the baseline first, and paths. Equal variants are left out.

    `tools` are other programs of the baseline's build, by name; `relinks` are paths by variant.
    `trees` has, by path, what each program or relink runs with.
    """

    report: BuildReport
    artifacts: tuple[tuple[str, str], ...]
    tools: tuple[tuple[str, str], ...]
    relinks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[str, ProgramTree] = field(default_factory=dict)


def single_flags_between(
    file: StudyFile, a: Variant, b: Variant, ports: Ports
) -> tuple[SingleFlag, ...]:
    """Flags in which the compiler sets two variants apart; none of two compilers."""
    request = BuildRequest(file.study, file.path, (a, b), a.name)
    with open_cache(ports) as cache:
        return flags_between(request, build_ports(file, cache, ports))


def sources_of(file: StudyFile, ports: Ports) -> list[str]:
    """Sources that can have flags of their own, by the path below the source's folder.

    A glob names each, and no call compiles it together with others.
    """
    with open_cache(ports) as cache:
        report = build_programs(file, cache, ports).report
    names: set[str] = set()
    together: set[str] = set()
    for one in (result.seen for result in report.results if result.seen is not None):
        for unit in own_units(one):
            name = one.relative(unit.source)
            names.add(name)
            if unit.call is not None and len(unit.call.line.sources) > 1:
                together.add(name)
    return sorted(name for name in names - together if can_be_named(name))


def obtain_inputs(
    file: StudyFile, cache: Cache, ports: Ports, on_event: OnEvent, *, update_lock: bool
) -> str:
    """Fetches the source and what workloads read, and builds nothing; text of the lock file."""
    variants = file.variants
    request = BuildRequest(file.study, file.path, variants, variants[0].name, update_lock)
    with compilers_by_line(file):
        make_inputs(request, build_ports(file, cache, ports), on_event)
        obtain_sources(request, build_ports(file, cache, ports), on_event)
    return lock_path(file.path).read_text()


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
    """Files that each program that was built runs with, and each of its relinks."""
    for result in report.results:
        if result.files is None:
            continue
        counted = {file.path for file in result.facts.files}
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
        *(("", one) for one in file.study.workloads),
        *(("training", one) for one in (() if training is None else training.workloads)),
    ):
        ends: list[tuple[Where, list[str] | None]] = [
            (("ends", number, "command"), end.command) for number, end in enumerate(workload.ends)
        ]
        named = [
            (("load",), workload.load),
            *(ends or [(("command",), workload.command)]),
            *((("preload", number), argv) for number, argv in enumerate(workload.preload_commands)),
            *(((key,), argv) for key, argv in workload.commands_around.items()),
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
