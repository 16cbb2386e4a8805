"""The compilers of a request, here or in its environments, and what these cannot build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ensign.builders.environments import (
    NO_ENVIRONMENTS,
    Environments,
    environments_of,
    unknown_toolchain,
)
from ensign.builders.plan import variant_flags
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.sandbox_mounts import confinement_of
from ensign.host.cache import Cache, key_of
from ensign.meter.questions import read_processor
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_environment import environment_of
from ensign.model.variants import Variant, of_units, trained
from ensign.toolchains.find import Toolchain, ToolchainFinder
from ensign.toolchains.places import RootPlace
from ensign.toolchains.single_flags import SingleFlag, single_flags, single_flags_of_clang
from ensign.toolchains.spelling import refusal
from ensign.toolchains.table import Family

_CARGO = "cargo"


def find_toolchains(
    request: BuildRequest, ports: BuildPorts, environments: Environments = NO_ENVIRONMENTS
) -> dict[str, Toolchain]:
    """Find all compilers that the variants name. InputError if one is missing.

    One whose environment cannot be had is there, with its problem.
    """
    usual = request.study.build.environment or ""
    with _finders(request, ports, environments) as finder_of:
        toolchains: dict[str, Toolchain] = {}
        every = (*request.variants, *filter(None, map(of_units, request.variants)))
        for name in dict.fromkeys(variant.compiler for variant in every):
            environment = environment_of(name, usual)
            if environment in environments.problems:
                problem = environments.problems[environment]
                toolchains[name] = unknown_toolchain(name, environment, problem)
            else:
                toolchains[name] = finder_of(environment).find(name)
        if mixed := mixture(toolchains.values()):
            raise InputError(mixed)
        for name in {variant.compiler for variant in request.variants if trained(variant)}:
            if not toolchains[name].problem:
                profilers = finder_of(toolchains[name].environment).profilers(toolchains[name])
                toolchains[name] = replace(toolchains[name], profilers=profilers)
        return toolchains


def flags_between(request: BuildRequest, ports: BuildPorts) -> tuple[SingleFlag, ...]:
    """Single flags in which the first two variants differ, if one compiler of C compiles them.

    None of Clang with LTO, which inlines and unrolls again when it links.
    """
    one, two = request.variants[:2]
    if one.compiler != two.compiler:
        return ()
    environments = environments_of(request, ports, confinement_of(request, ports))
    toolchain = find_toolchains(request, ports, environments)[one.compiler]
    if toolchain.problem:
        return ()
    if toolchain.kind.family is Family.CLANG:
        if {one.lto, two.lto} != {"off"}:
            return ()
        return single_flags_of_clang(one.optimization, two.optimization)
    with _finders(request, ports, environments) as finder_of:
        finder = finder_of(toolchain.environment)
        before, after = (finder.settings(toolchain, _asked(toolchain, v)) for v in (one, two))
    return single_flags(before, after)


def _asked(toolchain: Toolchain, variant: Variant) -> tuple[str, ...]:
    """A profile sets flags, too, wherever it is."""
    trained = ("-fprofile-use",) if variant.pgo == "on" else ()
    return (*toolchain.flags(variant).compile, *trained)


@contextmanager
def _finders(
    request: BuildRequest, ports: BuildPorts, environments: Environments
) -> Iterator[Callable[[str], ToolchainFinder]]:
    """The finder of compilers, of this machine or of an environment."""
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
            toolchain, other = toolchains[variant.compiler], of_units(variant)
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
            if not complaint and other is not None:
                complaint = _of_units(request.study, variant, other, toolchains)
            if complaint:
                complaints[variant.name] = complaint
    return complaints


def _of_units(
    study: Study, variant: Variant, other: Variant, toolchains: Mapping[str, Toolchain]
) -> str:
    """Why sources cannot have their other choices; empty where they can."""
    own, toolchain = toolchains[variant.compiler], toolchains[other.compiler]
    if own.kind.family is Family.RUST:
        return "rustc compiles crates: sources of one cannot have choices of their own"
    if own.environment != toolchain.environment:
        return "sources of one build cannot be compiled in two environments"
    if other.pgo == "on" != variant.pgo:
        return "only the whole build is trained: say which sources do not use the profile"
    if other.lto != "off" and variant.lto == "off":
        return "only the link of a whole build with LTO takes such sources: say which are without"
    lacking = ", ".join(read_processor().lacks(other.target))
    lacks = f"this processor lacks {lacking}" if lacking else ""
    return toolchain.problem or lacks or refusal_of_build(study, toolchain, other)


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


def mixture(toolchains: Iterable[Toolchain]) -> str:
    """Why these compilers cannot be on one axis; empty where they can.

    No source is one that rustc and a compiler of C both build, and a variant names one of them.
    """
    rust: list[str] = []
    others: list[str] = []
    for toolchain in toolchains:
        (rust if toolchain.kind.family is Family.RUST else others).append(toolchain.name)
    if not rust or not others:
        return ""
    return (
        f"'compiler' has {rust[0]} and {others[0]}: no program is built by either of them; "
        "compare the two programs as they are (ensign compare), or write a study for each"
    )


def refusal_of_build(study: Study, toolchain: Toolchain, variant: Variant) -> str:
    """Why this study's build of a variant cannot exist; empty where nothing speaks against it."""
    build = study.build
    told = variant.allocator in build.allocators  # by a word of the project's own
    asked = replace(variant, allocator="default") if told else variant
    if reason := refusal(toolchain.kind, asked):
        return reason
    rust = toolchain.kind.family is Family.RUST
    if rust and build.system not in (None, _CARGO):
        return f"system '{build.system}' builds with a compiler of C, not with {toolchain.name}"
    if not rust and build.system == _CARGO:
        return f"system 'cargo' builds with rustc, not with {toolchain.name}"
    if rust and build.system == _CARGO and not toolchain.cargo:
        return f"there is no cargo for {toolchain.name}; run 'apt-get install cargo'"
    return ""
