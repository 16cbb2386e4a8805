"""Refusals of the meter, said of the study's lines before anything is built."""

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
from ensign.builders.revisions import obtain_sources
from ensign.builders.toolchains_here import flags_between
from ensign.builders.training import TrainingRun
from ensign.experiment.confinement import confined_ports
from ensign.experiment.machine import cpus_of_study
from ensign.experiment.ports import Ports
from ensign.experiment.study.training import MeterTrainer
from ensign.experiment.study.variants import ProgramTree, VariantSet, race_request, training_request
from ensign.experiment.study_file import StudyFile, read_study
from ensign.experiment.suites import expand_study
from ensign.host.cache import Cache, cache_folder
from ensign.host.entry import CacheChanged
from ensign.meter.client import find_meter
from ensign.meter.racing import RequestProblem, check_races
from ensign.meter.requests import RaceRequest
from ensign.model.builds import BuildEvent, OnEvent, ignore
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import CACHE_REPLACED
from ensign.model.placeholders import names_in
from ensign.model.study import Study
from ensign.model.study_build import Build
from ensign.model.study_problems import Problem, Where
from ensign.model.study_source import PathSource
from ensign.model.study_workload import Workload
from ensign.model.unit_choices import can_be_named
from ensign.model.variants import Variant
from ensign.proof.evidence import own_units
from ensign.sources.obtain import lock_path
from ensign.store.bundle import is_bundle
from ensign.toolchains.find import MissingCompiler
from ensign.toolchains.single_flags import SingleFlag

# Of what is built; nothing is run.
_PROGRAM = "/program"
# As many as any pilot may find: a number that is chosen is no mistake of the study.
_REQUESTS = 1_000_000
# Where keys of a request come from: of the study, of its server, of a workload.
_Places = tuple[tuple[Where, Where], ...]
_OF_STUDY: _Places = ((("ports",), ("race", "ports")), (("slice_ns",), ("race", "slice")))
_OF_SERVER: _Places = (
    (("ready",), ("server", "ready")),
    (("program", "argv"), ("server", "command")),
    (("program", "env"), ("server", "env")),
    (("program",), ("server", "command")),
)
_OF_WORKLOAD: _Places = (
    (("load", "drive"), ("drive",)),
    (("load", "process", "argv"), ("load",)),
    (("load", "operations_pattern"), ("operations",)),
    (("load",), ("load",)),
    (("preload",), ("preload",)),
    (("program", "argv"), ("command",)),
    (("program", "stdin"), ("input",)),
    (("program", "stdout"), ("output",)),
    (("program",), ("command",)),
    (("score_pattern",), ("score", "pattern")),
    (("operations_pattern",), ("operations",)),
)


def require_requests(file: StudyFile, executable: Path | None = None) -> None:
    """StudyError, a line for each mistake, where the meter could not carry out what is asked."""
    asked = tuple(_requests(file))
    found = check_races(executable or find_meter(), [request for _, _, request in asked])
    problems = [
        study_problem(problem, file.study, workload, where)
        for (workload, where, _), wrong in zip(asked, found, strict=True)
        for problem in wrong
        if not _of_twin(problem)
    ]
    if problems:
        raise file.errors(tuple(dict.fromkeys(problems)))


def study_problem(
    problem: RequestProblem, study: Study, workload: Workload, start: Where
) -> Problem:
    """The mistake as one of the study's key that a value of the request comes from. Pure.

    `start` leads to the workload.
    """
    place = place_in_study(problem.steps, study, workload, start)
    text = problem.text.replace(f"`{_last_key(problem.steps)}`", f"`{_last_key(place)}`")
    whose = f"workload '{workload.name}': " if place[: len(start)] == start else ""
    return Problem(place, whose + text.replace("`", "'"))


def place_in_study(steps: Where, study: Study, workload: Workload, start: Where) -> Where:
    """Place in the study of a value of a workload's race. Pure."""
    if steps[:1] != ("variants",):
        return _found(steps, _OF_STUDY, ()) or start
    served = study.server is not None and workload.command is None
    of_server = _found(steps[2:], _OF_SERVER, ()) if served else None
    return of_server or _found(steps[2:], _OF_WORKLOAD, start) or start


def _found(steps: Where, places: _Places, start: Where) -> Where | None:
    for asked, written in places:
        if steps[: len(asked)] == asked:
            return (*start, *written, *steps[len(asked) :])
    return None


def _last_key(steps: Where) -> str:
    return next((step for step in reversed(steps) if isinstance(step, str)), "")


def _of_twin(problem: RequestProblem) -> bool:
    """The twin is the baseline again, with its mistakes."""
    return problem.steps[:1] == ("variants",) and problem.steps[1:2] not in ((), (0,))


def _requests(file: StudyFile) -> Iterator[tuple[Workload, Where, RaceRequest]]:
    """A race of each workload, as if the programs were there."""
    study = file.study
    cpus, _ = cpus_of_study(study.cpus)
    variants = VariantSet(
        artifacts=((file.variants[0].name, _PROGRAM),),
        tools=dict.fromkeys(study.build.tools, _PROGRAM),
        cpus=cpus,
        folder=str(file.folder),
    )
    for workload in study.workloads:
        requests = workload.fixed_requests or _REQUESTS
        request = race_request(study, variants, workload, requests, seed=study.race.seed)
        yield workload, file.place_of(workload.name), request
    for workload in () if study.training is None else study.training.workloads:
        run = TrainingRun(Path(_PROGRAM), workload, (), {}, 1)
        where = file.place_of(workload.name, "training")
        yield workload, where, training_request(study, variants, run)


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
    for one in (each.seen for each in report.results if each.seen is not None):
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
        *(("", each) for each in file.study.workloads),
        *(("training", each) for each in (() if training is None else training.workloads)),
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
