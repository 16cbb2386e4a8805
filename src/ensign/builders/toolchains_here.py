"""The compilers of a request, here or in its environments, and what these cannot build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ensign.builders.compilers import mixture, refusal_of_build
from ensign.builders.environments import (
    NO_ENVIRONMENTS,
    Environments,
    unknown_toolchain,
)
from ensign.builders.plan import variant_flags
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.shown import confinement_of
from ensign.host.cache import Cache, key_of
from ensign.meter.processor import read_processor
from ensign.model.errors import InputError
from ensign.model.study_environment import environment_of
from ensign.model.variants import Variant, trained
from ensign.toolchains.find import Toolchain, ToolchainFinder
from ensign.toolchains.places import RootPlace


def find_toolchains(
    request: BuildRequest, ports: BuildPorts, environments: Environments = NO_ENVIRONMENTS
) -> dict[str, Toolchain]:
    """Find all compilers that the variants name. InputError if one is missing.

    One whose environment cannot be had is there, with its problem.
    """
    usual = request.study.build.environment or ""
    with _finders(request, ports, environments) as finder_of:
        found: dict[str, Toolchain] = {}
        for name in dict.fromkeys(variant.compiler for variant in request.variants):
            environment = environment_of(name, usual)
            if environment in environments.problems:
                problem = environments.problems[environment]
                found[name] = unknown_toolchain(name, environment, problem)
            else:
                found[name] = finder_of(environment).find(name)
        if mixed := mixture(found.values()):
            raise InputError(mixed)
        for name in {variant.compiler for variant in request.variants if trained(variant)}:
            if not found[name].problem:
                profilers = finder_of(found[name].environment).profilers(found[name])
                found[name] = replace(found[name], profilers=profilers)
        return found


@contextmanager
def _finders(
    request: BuildRequest, ports: BuildPorts, environments: Environments
) -> Iterator[Callable[[str], ToolchainFinder]]:
    """Who finds compilers, of this machine or of an environment."""
    confinement = confinement_of(request, ports) if environments.roots else None
    with ports.cache.temporary() as scratch:

        def finder_of(environment: str) -> ToolchainFinder:
            if not environment or confinement is None:
                return ToolchainFinder(ports.processes, scratch, ports.env.get("PATH"))
            own = scratch / f"in-{environment}"
            own.mkdir(exist_ok=True)
            place = RootPlace(environments.roots[environment], confinement)
            return ToolchainFinder(ports.processes, own, place=place)

        yield finder_of


def complaints_of(
    request: BuildRequest,
    ports: BuildPorts,
    toolchains: Mapping[str, Toolchain],
    environments: Environments = NO_ENVIRONMENTS,
) -> dict[str, str]:
    """Why variants cannot be built here, by name: by tables, by this processor, by a tiny link."""
    complaints: dict[str, str] = {}
    processor = read_processor()
    with _finders(request, ports, environments) as finder_of:
        for variant in request.variants:
            toolchain = toolchains[variant.compiler]
            finder = finder_of("" if toolchain.problem else toolchain.environment)
            lacking = processor.lacks(variant.target)
            if toolchain.problem:
                complaint = toolchain.problem
            elif lacking:
                complaint = f"this processor lacks {', '.join(lacking)}"
            else:
                complaint = refusal_of_build(request.study, toolchain, variant)
            if not complaint and trained(variant):
                complaint = _profiling_complaint(finder, toolchain, variant, ports)
            if not complaint:
                complaint = _probe(finder, request, toolchain, variant, ports.cache)
            if complaint:
                complaints[variant.name] = complaint
    return complaints


def _profiling_complaint(
    finder: ToolchainFinder, toolchain: Toolchain, variant: Variant, ports: BuildPorts
) -> str:
    if ports.trainer is None:
        return "nothing here can run the training"
    return finder.profiling_complaint(toolchain, variant)


def _probe(
    finder: ToolchainFinder,
    request: BuildRequest,
    toolchain: Toolchain,
    variant: Variant,
    cache: Cache,
) -> str:
    """Compile and link, but without the study's further flags, which may need its source tree."""
    plain = replace(variant, flags="")
    flags = variant_flags(request.study.build, toolchain, plain)
    identity = toolchain.identity_for(variant)
    question = key_of(["probe", identity, flags.compile, flags.link])
    if cache.recall(question) == "works":
        return ""
    complaint = finder.complaint(toolchain.cc, flags.compile, flags.link)
    if not complaint:
        cache.remember(question, "works")
        return ""
    return f"{variant.compiler} cannot do it: {complaint}"
