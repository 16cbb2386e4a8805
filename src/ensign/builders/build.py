"""Building all variants of a study: toolchains, source, stages, facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ensign.builders.build_context import BuildContext
from ensign.builders.build_depends import missing_at_hand, require_dependencies, stages_to_do
from ensign.builders.build_stage import Made
from ensign.builders.check_all import check_findings, check_variants, count_missing
from ensign.builders.check_context import CheckContext, compared_workloads
from ensign.builders.compilers import mixture, refusal_of_build
from ensign.builders.environments import (
    NO_ENVIRONMENTS,
    Environments,
    environments_of,
    unknown_toolchain,
)
from ensign.builders.estimate import (
    BuildEstimate,
    Known,
    estimate_of,
    expected_seconds,
    remember_costs,
)
from ensign.builders.graph import Graph, GraphContext
from ensign.builders.outcomes import (
    BuildReport,
    BuildResult,
    describe_toolchain,
    findings_of,
    left_out_result,
    left_running,
    result_of,
    same_bytes,
    source_findings,
)
from ensign.builders.plan import BuildPlace, plan_builds, variant_flags
from ensign.builders.profiles import files_named
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import (
    SourceTrees,
    obtain_sources,
    pinned_hashes,
    revisions_of,
)
from ensign.builders.sandboxes import Sandboxes, choose_sandboxes
from ensign.builders.shown import (
    confinement_of,
    given_env,
    sandbox_key,
    shown_to_builds,
    tree_limits,
    way_out,
)
from ensign.builders.stage_facts import StageFacts, cached_stage, reader
from ensign.builders.stages import Plan
from ensign.host.cache import Cache, key_of
from ensign.host.confinement_probe import Confinement
from ensign.host.files import file_sha256, is_file
from ensign.host.processor import read_processor
from ensign.model.build_events import OnEvent, ignore
from ensign.model.errors import CommandFailed, InputError
from ensign.model.findings import Finding
from ensign.model.study_build import CheckSection
from ensign.model.study_environment import environment_of
from ensign.model.variants import Variant, trained
from ensign.proof.evidence import some
from ensign.sources.obtain import SourceTree, lock_path, read_lock
from ensign.sources.size import size_at_hand, source_size
from ensign.toolchains.find import Toolchain, ToolchainFinder
from ensign.toolchains.places import RootPlace


class WrongBaseline(CommandFailed):
    """The baseline is not what was asked for, and all others would rest on it."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(f"nothing can be compared with the baseline {findings[0].said}")
        self.findings = tuple(findings)


def build_variants(
    request: BuildRequest, ports: BuildPorts, on_event: OnEvent = ignore
) -> BuildReport:
    """Build every variant, or take it from the cache. A failing build is a failed variant.

    What was built is checked then. CommandFailed if the baseline fails or is not what was asked
    for, InputError if a compiler or
    the source is missing or the source is not what its lock file pins, StorageFailed if the disk is
    full, Interrupted.
    """
    environments = environments_of(request, ports, confinement_of(request, ports), on_event)
    toolchains = find_toolchains(request, ports, environments)
    complaints = complaints_of(request, ports, toolchains, environments)
    if request.baseline in complaints:
        raise CommandFailed(f"the baseline cannot be built: {complaints[request.baseline]}")
    source = obtain_sources(request, ports, on_event)
    sandboxes = sandboxes_of(request, ports, toolchains)
    place = place_of(source.hashes, sandboxes, request, ports, environments)
    buildable = [each for each in request.variants if each.name not in complaints]
    plan = plan_builds(request.study, buildable, request.baseline, toolchains, place)
    if request.study.build.system == "debian":
        waiting = stages_to_do(plan, ports.cache)
        for revision, name in sorted({(each.revision, each.environment) for each in waiting}):
            tree = source.at(revision).tree
            require_dependencies(tree, request, ports, environments.roots.get(name))
    known = Known(request.study.name, ports.cache, source_size(source.first.tree))
    expected_s = expected_seconds(known, plan.stages)
    context = GraphContext(source, plan.stage_of[request.baseline], ports.cores, expected_s)
    build_context = replace(
        build_context_of(request, ports, sandboxes, place),
        roots=environments.roots,
        source_again=partial(obtain_sources, replace(request, update_lock=False), ports, ignore),
    )
    try:
        ends, cached = Graph(plan, context, build_context, on_event).run()
    except CommandFailed as failed:
        raise CommandFailed(
            f"{failed}{_hint(source.first)}{way_out(str(failed), sandboxes.confinement)}"
        ) from None
    remember_costs(known, plan.stages, ends)
    build = request.study.build
    results = tuple(
        left_out_result(variant, toolchains[variant.compiler], complaints[variant.name])
        if variant.name in complaints
        else result_of(variant, toolchains[variant.compiler], plan, ends, cached, build)
        for variant in request.variants
    )
    _require_baseline(results, request.baseline)
    results = same_bytes(results, request.baseline)
    findings = (
        *source.findings(),
        *source_findings(source.first, plan.stage_of[request.baseline], ends),
        *findings_of(results, request.variants, plan, ends),
        *left_running(plan, _facts_of_stages(plan, ends, ports.cache)),
    )
    results = _check(request, source, build_context, results, ports.cores, on_event)
    return BuildReport(
        results=results,
        findings=(*sandboxes.confinement.findings(), *findings, *check_findings(results)),
        source=source.facts,
        confinement=sandboxes.confinement.said,
        toolchains=tuple((each.name, describe_toolchain(each)) for each in toolchains.values()),
    )


def _hint(source: SourceTree) -> str:
    """What may be missing in the source, where the baseline's build failed."""
    if not source.left_behind:
        return ""
    return (
        f"\nfiles that git ignores are not part of the source ({some(source.left_behind)}); "
        "source.ignored = true takes them along"
    )


def _require_baseline(results: Sequence[BuildResult], name: str) -> None:
    """WrongBaseline where it was built, but of other parts than those asked for."""
    baseline = next(each for each in results if each.facts.variant == name)
    if baseline.artifact is None and baseline.findings:
        raise WrongBaseline(baseline.findings)


def _facts_of_stages(plan: Plan, ends: Mapping[str, Made], cache: Cache) -> dict[str, StageFacts]:
    """What was recorded of each stage, also of those that led to what was in the cache."""
    found: dict[str, StageFacts] = {}
    for stage in plan.stages:
        end = ends.get(stage.key)
        if end is None:
            facts = cache.facts(stage.kind, stage.key, reader(stage.kind))
            found |= {} if facts is None else {stage.key: facts}
        elif end.entry is not None:
            found[stage.key] = end.entry.facts
    return found


def _check(
    request: BuildRequest,
    source: SourceTrees,
    build_context: BuildContext,
    results: tuple[BuildResult, ...],
    cores: int,
    on_event: OnEvent,
) -> tuple[BuildResult, ...]:
    check = request.study.check or CheckSection()
    baseline = next(each for each in results if each.facts.variant == request.baseline)
    folder = request.path.absolute().parent
    context = CheckContext(
        request.study,
        check,
        source.first.tree,
        source.first.sha256,
        folder,
        baseline,
        build_context,
        revisions={name: (each.tree, each.sha256) for name, each in source.by_revision.items()},
    )
    if not check.commands and not context.workloads:
        return results
    return check_variants(context, results, cores, on_event)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What `build_variants` will do: its plan, its cost, and the variants that cannot be built.

    `later` are variants of environments that a run makes before. `missing` says what must be
    installed before, as far as the source is at hand.
    """

    plan: Plan
    estimate: BuildEstimate
    toolchains: Mapping[str, Toolchain]
    left_out: Mapping[str, str]
    confinement: Confinement
    later: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: str = ""


def outlook(request: BuildRequest, ports: BuildPorts) -> Outlook:
    """Tell what `build_variants` will take, before anything is fetched or built.

    Without a lock file nothing is taken to be in the cache. InputError as `build_variants`.
    """
    revisions = revisions_of(request.variants, request.baseline)
    hashes = pinned_hashes(revisions, read_lock(lock_path(request.path)))
    confinement = confinement_of(request, ports)
    environments = environments_of(request, ports, confinement, makes=False)
    toolchains = find_toolchains(request, ports, environments)
    sandboxes = sandboxes_of(request, ports, toolchains)
    place = place_of(hashes, sandboxes, request, ports, environments)
    complaints = complaints_of(request, ports, toolchains, environments)
    awaited = _awaiting(request, environments)
    left_out = {name: why for name, why in complaints.items() if name not in awaited}
    later = {name: why for name, why in complaints.items() if name in awaited}
    built = [variant for variant in request.variants if variant.name not in complaints]
    plan = plan_builds(request.study, built, request.baseline, toolchains, place)
    checks = (0, 0)
    check = request.study.check or CheckSection()
    if check.commands or compared_workloads(request.study, check):
        build_context = build_context_of(request, ports, sandboxes, place)
        results = _cached_results(request, built, plan, toolchains, ports.cache)
        checks = _count_checks(request, check, place, build_context, results)
        checks = (checks[0] + len(built) - len(results), checks[1])
    size = size_at_hand(
        request.study.source, request.path, place.source_sha256 or None, ports.cache
    )
    known = Known(request.study.name, ports.cache, size)
    at_once = ports.cores if sandboxes.concurrent else 1
    estimate = estimate_of(known, plan.stages, checks, at_once)
    missing = missing_at_hand(request.study, place.source_sha256, plan, ports)
    return Outlook(plan, estimate, toolchains, left_out, confinement, later, missing)


def _awaiting(request: BuildRequest, environments: Environments) -> set[str]:
    """Variants of environments that a run makes before it builds."""
    usual = request.study.build.environment or ""
    return {
        each.name
        for each in request.variants
        if environment_of(each.compiler, usual) in environments.later
    }


def _cached_results(
    request: BuildRequest,
    variants: Sequence[Variant],
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    cache: Cache,
) -> tuple[BuildResult, ...]:
    """The results of variants whose programs are in the cache."""
    found = []
    for variant in variants:
        stage = plan.stage(plan.stage_of[variant.name])
        entry = cached_stage(cache, stage)
        if entry is not None:
            made = {stage.key: Made(entry, entry.folder / "log.txt")}
            toolchain, build = toolchains[variant.compiler], request.study.build
            result = result_of(variant, toolchain, plan, made, {stage.key}, build)
            found += [result] if result.artifact is not None else []
    return tuple(found)


def _count_checks(
    request: BuildRequest,
    check: CheckSection,
    place: BuildPlace,
    build_context: BuildContext,
    results: Sequence[BuildResult],
) -> tuple[int, int]:
    """How many checks of these wait, and how many are in the cache; all wait for the baseline's."""
    baseline = next((each for each in results if each.facts.variant == request.baseline), None)
    if baseline is None:
        return len(results), 0
    folder = request.path.absolute().parent
    nowhere = Path()  # nothing is fetched yet, and a key needs the source's hash alone
    context = CheckContext(
        request.study,
        check,
        nowhere,
        place.source_sha256,
        folder,
        baseline,
        build_context,
        revisions={name: (nowhere, sha256) for name, sha256 in place.revisions.items()},
    )
    return count_missing(context, results)


def sandboxes_of(
    request: BuildRequest, ports: BuildPorts, toolchains: Mapping[str, Toolchain]
) -> Sandboxes:
    """Where a request is built: confined, if that is wanted and works here. InputError."""
    confinement = confinement_of(request, ports)
    return choose_sandboxes(
        ports.cache, confinement, shown_to_builds(request, ports, toolchains, confinement.user)
    )


def build_context_of(
    request: BuildRequest, ports: BuildPorts, sandboxes: Sandboxes, place: BuildPlace
) -> BuildContext:
    """Where a request's stages are carried out."""
    return BuildContext(
        processes=ports.processes,
        cache=ports.cache,
        sandboxes=sandboxes,
        clock=ports.clock,
        path=place.path,
        meter=ports.meter,
        trainer=ports.trainer,
        given_env=given_env(request.study.sandbox, ports.env),
        sandbox_key=place.sandbox_key,
        caller=ports.env,
        limits=tree_limits(request.study.sandbox),
    )


def place_of(
    hashes: Mapping[str, str],
    sandboxes: Sandboxes,
    request: BuildRequest,
    ports: BuildPorts,
    environments: Environments = NO_ENVIRONMENTS,
) -> BuildPlace:
    """What a plan needs to know of this machine and of the files that the training names.

    `hashes` are of the source's trees by revision, the baseline's first.
    """
    recorded = ports.meter is not None
    return BuildPlace(
        source_sha256=next(iter(hashes.values())),
        build_path=sandboxes.build_path,
        processor=read_processor().identity,
        path=ports.env.get("PATH", "/usr/bin:/bin"),
        recorder_path=f"{sandboxes.recorder_path}/bin" if recorded else "",
        training_sha256=_training_sha256(request),
        sandbox_key=sandbox_key(request.study.sandbox, ports.env),
        roots=environments.roots,
        revisions=hashes,
    )


def _training_sha256(request: BuildRequest) -> str:
    """Hash of the files beside the study that its training names."""
    folder = request.path.absolute().parent
    files = [(name, folder / name) for name in files_named(request.study) if name]
    return key_of([(name, file_sha256(path)) for name, path in files if is_file(path)])


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
