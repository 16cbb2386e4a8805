"""Forecast of a study's builds, before anything is fetched or built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ensign.builders.build_context import BuildContext
from ensign.builders.build_depends import missing_at_hand
from ensign.builders.build_place import build_context_of, place_of, sandboxes_of
from ensign.builders.build_results import BuildResult, result_of
from ensign.builders.build_stage import StageResult
from ensign.builders.check_all import count_missing
from ensign.builders.check_context import CheckContext, compared_workloads
from ensign.builders.environments import Environments, environments_of
from ensign.builders.estimate import BuildEstimate, EarlierBuilds, estimate_of
from ensign.builders.plan import BuildPlace, plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import pinned_hashes, revisions_of
from ensign.builders.sandbox_mounts import confinement_of
from ensign.builders.stage_facts import cached_stage
from ensign.builders.stages import Plan
from ensign.builders.toolchains_here import complaints_of, find_toolchains
from ensign.host.cache import Cache
from ensign.host.confinement_probe import Confinement
from ensign.model.study_build import CheckSection
from ensign.model.study_environment import environment_of
from ensign.model.variants import Variant
from ensign.sources.obtain import lock_path, read_lock
from ensign.toolchains.find import Toolchain


@dataclass(frozen=True, slots=True)
class Outlook:
    """Work of `build_variants`: its plan, its cost, and the variants that cannot be built.

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
    earlier = EarlierBuilds(request.study.name, ports.cache)
    at_once = ports.cores if sandboxes.concurrent else 1
    estimate = estimate_of(earlier, plan.stages, checks, at_once)
    missing = missing_at_hand(request.study, place.source_sha256, plan, ports)
    return Outlook(plan, estimate, toolchains, left_out, confinement, later, missing)


def _awaiting(request: BuildRequest, environments: Environments) -> set[str]:
    """Variants of environments that a run makes before it builds."""
    usual = request.study.build.environment or ""
    return {
        variant.name
        for variant in request.variants
        if environment_of(variant.compiler, usual) in environments.later
    }


def _cached_results(
    request: BuildRequest,
    variants: Sequence[Variant],
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    cache: Cache,
) -> tuple[BuildResult, ...]:
    """The results of variants whose programs are in the cache."""
    results = []
    for variant in variants:
        stage = plan.stage(plan.stage_of[variant.name])
        entry = cached_stage(cache, stage)
        if entry is not None:
            made = {stage.key: StageResult(entry, entry.folder / "log.txt")}
            toolchain, build = toolchains[variant.compiler], request.study.build
            result = result_of(variant, toolchain, plan, made, {stage.key}, build)
            results += [result] if result.artifact is not None else []
    return tuple(results)


def _count_checks(
    request: BuildRequest,
    check: CheckSection,
    place: BuildPlace,
    build_context: BuildContext,
    results: Sequence[BuildResult],
) -> tuple[int, int]:
    """Numbers of checks that wait and that are cached; all wait for the baseline's."""
    baseline = next(
        (result for result in results if result.facts.variant == request.baseline), None
    )
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
