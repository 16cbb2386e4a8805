"""Building all variants of a study: toolchains, source, stages, facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from ensign.builders.build_context import BuildContext
from ensign.builders.build_depends import require_dependencies, require_tests, stages_to_do
from ensign.builders.build_place import build_context_of, place_of, sandboxes_of
from ensign.builders.build_stage import Made
from ensign.builders.check_all import check_findings, check_variants
from ensign.builders.check_context import CheckContext
from ensign.builders.environments import environments_of
from ensign.builders.estimate import Known, expected_seconds, remember_costs
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
from ensign.builders.plan import plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import SourceTrees, obtain_sources
from ensign.builders.shown import confinement_of, way_out
from ensign.builders.stage_facts import StageFacts, reader
from ensign.builders.stages import Plan
from ensign.builders.toolchains_here import complaints_of, find_toolchains
from ensign.host.cache import Cache
from ensign.model.build_events import OnEvent, ignore
from ensign.model.errors import CommandFailed
from ensign.model.findings import Finding
from ensign.model.study_build import CheckSection
from ensign.model.variants import OWN_COMPILER
from ensign.proof.evidence import some
from ensign.sources.git import EMPTY_SUBMODULES
from ensign.sources.obtain import SourceTree
from ensign.sources.size import source_size


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
        for revision in sorted({each.revision for each in plan.stages}):
            require_tests(source.at(revision).tree, request.study)
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
        toolchains=tuple(
            (each.name, describe_toolchain(each))
            for each in toolchains.values()
            if each.name != OWN_COMPILER
        ),
    )


def _hint(source: SourceTree) -> str:
    """What may be missing in the source, where the baseline's build failed."""
    empty = dict(source.facts).get(EMPTY_SUBMODULES)
    if empty:
        return f"\nfolders of submodules are empty ({empty}); run 'git submodule update --init'"
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
