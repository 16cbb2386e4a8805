"""The environments of a study's builds: obtained, looked into for compilers, entered for stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.builders.request import BuildPorts, BuildRequest
from ensign.host.cache import Cache
from ensign.host.confinement_probe import Confinement
from ensign.host.processes import Processes
from ensign.host.root_directory import RootDirectory
from ensign.model.builds import BuildEvent, EventKind, OnEvent, ignore
from ensign.model.study import Study
from ensign.model.study_environment import environment_of, program_of
from ensign.sources.debian_roots import NoEnvironment, NotMadeYet
from ensign.sources.environments import EnvironmentPorts, obtain_environment
from ensign.sources.obtain import lock_path
from ensign.toolchains.find import Toolchain
from ensign.toolchains.table import Family, Kind


@dataclass(frozen=True, slots=True)
class Environments:
    """Root directories by name, and why others cannot be had; of these, `later` a run makes."""

    roots: Mapping[str, RootDirectory] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    later: frozenset[str] = frozenset()


NO_ENVIRONMENTS = Environments()


def named_environments(request: BuildRequest) -> tuple[str, ...]:
    """Those in which variants are built."""
    usual = request.study.build.environment or ""
    environments = (environment_of(variant.compiler, usual) for variant in request.variants)
    return tuple(dict.fromkeys(name for name in environments if name))


def environments_of(
    request: BuildRequest,
    ports: BuildPorts,
    confinement: Confinement,
    on_event: OnEvent = ignore,
    *,
    makes: bool = True,
) -> Environments:
    """Obtain what builds need. InputError where one is not what the study or its lock file says."""
    roots: dict[str, RootDirectory] = {}
    problems: dict[str, str] = {}
    later: set[str] = set()
    for name in named_environments(request):
        if not confinement.works:
            remedy = f"; {confinement.remedy}" if confinement.remedy else ""
            problems[name] = f"environments need bubblewrap: {confinement.reason}{remedy}"
            continue
        asked = EnvironmentPorts(
            ports.processes,
            ports.cache,
            ports.env,
            request.path.absolute().parent,
            lock_path(request.path),
            request.update_lock,
            makes,
        )
        label, begun_ns = f"environment {name}", ports.clock.monotonic_ns()
        on_event(BuildEvent("started", label, 0.0, 0.0))
        try:
            roots[name] = obtain_environment(name, request.study.environments[name], asked)
        except NoEnvironment as missing:
            problems[name] = str(missing)
            later |= {name} if isinstance(missing, NotMadeYet) else set()
        kind: EventKind = "finished" if name in roots else "failed"
        elapsed_s = (ports.clock.monotonic_ns() - begun_ns) / 1e9
        on_event(BuildEvent(kind, label, elapsed_s, 0.0, problems.get(name, "")))
    return Environments(roots, problems, frozenset(later))


def unknown_toolchain(name: str, environment: str, problem: str) -> Toolchain:
    """Compiler whose environment cannot be had: what its name says, and the problem."""
    program = program_of(name)
    family = Family.CLANG if "clang" in program else Family.GCC
    digits = "".join(filter(str.isdigit, program.rpartition("-")[2])) or "0"
    return Toolchain(
        name=name,
        kind=Kind(family, (int(digits), 0, 0)),
        version_line=f"{name} (not there)",
        cc=f"/usr/bin/{program}",
        cxx="",
        ar="ar",
        ranlib="ranlib",
        nm="nm",
        ld="ld",
        linker_flag="",
        linker_version="",
        identity="",
        environment=environment,
        problem=problem,
    )


def environments_of_study(
    study: Study, path: Path, name: str, effects: tuple[Processes, Cache, Mapping[str, str]]
) -> RootDirectory:
    """One environment of a study file, as `obtain_environment` gives it; nothing is pinned."""
    folder = path.absolute().parent
    asked = EnvironmentPorts(*effects, folder, lock_path(path), pins=False)
    return obtain_environment(name, study.environments[name], asked)
