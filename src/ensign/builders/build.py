"""Building all variants of a study: toolchains, source, stages, facts."""

from __future__ import annotations

from collections.abc import Mapping

from ensign.builders.cache import Cache, key_of
from ensign.builders.estimate import BuildEstimate, estimate_of, expected_seconds, remember_seconds
from ensign.builders.events import BuildEvent, OnEvent, ignore
from ensign.builders.graph import Graph, Site
from ensign.builders.isolation import choose_isolation
from ensign.builders.outcomes import (
    BuildReport,
    describe_toolchain,
    failed_result,
    findings_of,
    result_of,
    same_bytes,
)
from ensign.builders.perform import Workshop
from ensign.builders.plan import Place, plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.sources.obtain import SourcePorts, SourceTree, lock_path, obtain, read_lock
from ensign.model.errors import CommandFailed
from ensign.model.variants import Variant
from ensign.toolchains.find import Toolchain, ToolchainFinder


def build_variants(
    request: BuildRequest, ports: BuildPorts, on_event: OnEvent = ignore
) -> BuildReport:
    """Build every variant, or take it from the cache. A failing build is a failed variant.

    CommandFailed if the baseline fails, InputError if a compiler or the source is missing or the
    source is not what its lock file pins, StorageFailed if the disk is full, Interrupted.
    """
    toolchains = find_toolchains(request, ports)
    complaints = _complaints(request, ports, toolchains)
    source = _obtain(request, ports, on_event)
    isolation = choose_isolation(ports.cache, ports.processes)
    place = Place(source.sha256, isolation.build_path)
    buildable = [each for each in request.variants if each.name not in complaints]
    plan = plan_builds(request.study, buildable, request.baseline, toolchains, place)
    expected_s = expected_seconds(request.study.name, plan.stages, ports.cache)
    site = Site(source.tree, plan.stage_of[request.baseline], ports.cores, expected_s)
    path = ports.env.get("PATH", "/usr/bin:/bin")
    workshop = Workshop(ports.processes, ports.cache, isolation, ports.clock, path)
    ends, cached = Graph(plan, site, workshop, on_event).run()
    remember_seconds(request.study.name, plan.stages, ends, ports.cache)
    results = tuple(
        failed_result(variant, toolchains[variant.compiler], complaints[variant.name])
        if variant.name in complaints
        else result_of(variant, toolchains[variant.compiler], plan, ends, cached)
        for variant in request.variants
    )
    return BuildReport(
        results=same_bytes(results, request.baseline),
        findings=findings_of(results, request.variants, plan, ends),
        source=source.facts,
        toolchains=tuple((each.name, describe_toolchain(each)) for each in toolchains.values()),
    )


def estimate(request: BuildRequest, ports: BuildPorts) -> BuildEstimate:
    """Tell what `build_variants` will take, before anything is fetched or built.

    Without a lock file nothing is taken to be in the cache. InputError as `build_variants`.
    """
    lock = read_lock(lock_path(request.path))
    place = Place(
        source_sha256="" if lock is None else lock.tree_sha256,
        build_path=choose_isolation(ports.cache, ports.processes).build_path,
    )
    toolchains = find_toolchains(request, ports)
    plan = plan_builds(request.study, request.variants, request.baseline, toolchains, place)
    return estimate_of(request.study.name, plan.stages, ports.cores, ports.cache)


def find_toolchains(request: BuildRequest, ports: BuildPorts) -> dict[str, Toolchain]:
    """Find all compilers that the variants name. InputError if one is missing."""
    with ports.cache.temporary() as scratch:
        finder = ToolchainFinder(ports.processes, scratch, ports.env.get("PATH"))
        names = dict.fromkeys(variant.compiler for variant in request.variants)
        return {name: finder.find(name) for name in names}


def _complaints(
    request: BuildRequest, ports: BuildPorts, toolchains: Mapping[str, Toolchain]
) -> dict[str, str]:
    """Say why combinations do not work here, by variant. CommandFailed if it is the baseline's."""
    complaints: dict[str, str] = {}
    with ports.cache.temporary() as scratch:
        finder = ToolchainFinder(ports.processes, scratch, ports.env.get("PATH"))
        for variant in request.variants:
            complaint = _complaint(finder, toolchains[variant.compiler], variant, ports.cache)
            if complaint:
                asked = f"'{variant.optimization}' with LTO '{variant.lto}'"
                complaints[variant.name] = f"{variant.compiler} cannot do {asked}: {complaint}"
    if request.baseline in complaints:
        raise CommandFailed(f"the baseline cannot be built: {complaints[request.baseline]}")
    return complaints


def _complaint(
    finder: ToolchainFinder, toolchain: Toolchain, variant: Variant, cache: Cache
) -> str:
    """Probe level and LTO, but not the study's further flags, which may need its source tree."""
    flags = toolchain.flags(variant.optimization, variant.lto)
    question = key_of(["probe", toolchain.identity, flags.compile, flags.link])
    if cache.recall(question) == "works":
        return ""
    complaint = finder.complaint(toolchain.cc, flags.compile, flags.link)
    if not complaint:
        cache.remember(question, "works")
    return complaint


def _obtain(request: BuildRequest, ports: BuildPorts, on_event: OnEvent) -> SourceTree:
    source_ports = SourcePorts(ports.processes, ports.cache, ports.env)
    started_ns = ports.clock.monotonic_ns()
    on_event(BuildEvent("started", "source", 0.0, 0.0))
    source = obtain(
        request.study.source, request.path, source_ports, update_lock=request.update_lock
    )
    elapsed_s = (ports.clock.monotonic_ns() - started_ns) / 1e9
    on_event(BuildEvent("finished", "source", elapsed_s, 0.0))
    return source
