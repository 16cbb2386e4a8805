"""Building all variants of a study: toolchains, source, stages, facts."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ensign.builders.build_context import BuildContext
from ensign.builders.build_depends import require_dependencies, require_tests, stages_to_do
from ensign.builders.build_place import build_context_of, place_of, sandboxes_of
from ensign.builders.build_results import (
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
from ensign.builders.build_stage import StageResult, perform_stage
from ensign.builders.check_all import check_findings, check_variants
from ensign.builders.check_context import CheckContext
from ensign.builders.environments import environments_of
from ensign.builders.estimate import EarlierBuilds, expected_seconds, remember_costs
from ensign.builders.plan import plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import SourceTrees, obtain_sources
from ensign.builders.sandbox_mounts import confinement_of, way_out
from ensign.builders.stage_facts import StageFacts, cached_stage, reader
from ensign.builders.stage_runs import Inputs
from ensign.builders.stages import Plan, Stage, in_order, jobs_for, needed
from ensign.builders.toolchains_here import complaints_of, find_toolchains
from ensign.host.cache import Cache
from ensign.model.builds import BuildEvent, EventKind, OnEvent, ignore
from ensign.model.errors import CommandFailed, Interrupted
from ensign.model.findings import Finding
from ensign.model.study_build import CheckSection
from ensign.model.variants import OWN_COMPILER
from ensign.proof.evidence import some
from ensign.sources.checkouts import EMPTY_SUBMODULES
from ensign.sources.obtain import SourceTree

_WAKE_UP_S = 0.5  # Python handles Ctrl-C between two waits of the main thread


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
    buildable = [variant for variant in request.variants if variant.name not in complaints]
    plan = plan_builds(request.study, buildable, request.baseline, toolchains, place)
    if request.study.build.system == "debian":
        for revision in sorted({stage.revision for stage in plan.stages}):
            require_tests(source.at(revision).tree, request.study)
        waiting = stages_to_do(plan, ports.cache)
        for revision, name in sorted({(stage.revision, stage.environment) for stage in waiting}):
            tree = source.at(revision).tree
            require_dependencies(tree, request, ports, environments.roots.get(name))
    earlier = EarlierBuilds(request.study.name, ports.cache)
    expected_s = expected_seconds(earlier, plan.stages)
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
    remember_costs(earlier, plan.stages, ends)
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
            (toolchain.name, describe_toolchain(toolchain))
            for toolchain in toolchains.values()
            if toolchain.name != OWN_COMPILER
        ),
    )


def _hint(source: SourceTree) -> str:
    """Guess at what is missing in the source, where the baseline's build failed."""
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
    baseline = next(result for result in results if result.facts.variant == name)
    if baseline.artifact is None and baseline.findings:
        raise WrongBaseline(baseline.findings)


def _facts_of_stages(
    plan: Plan, ends: Mapping[str, StageResult], cache: Cache
) -> dict[str, StageFacts]:
    """Records of each stage, also of those that led to what was in the cache."""
    known_facts: dict[str, StageFacts] = {}
    for stage in plan.stages:
        end = ends.get(stage.key)
        if end is None:
            facts = cache.facts(stage.kind, stage.key, reader(stage.kind))
            known_facts |= {} if facts is None else {stage.key: facts}
        elif end.entry is not None:
            known_facts[stage.key] = end.entry.facts
    return known_facts


def _check(
    request: BuildRequest,
    source: SourceTrees,
    build_context: BuildContext,
    results: tuple[BuildResult, ...],
    cores: int,
    on_event: OnEvent,
) -> tuple[BuildResult, ...]:
    check = request.study.check or CheckSection()
    baseline = next(result for result in results if result.facts.variant == request.baseline)
    folder = request.path.absolute().parent
    context = CheckContext(
        request.study,
        check,
        source.first.tree,
        source.first.sha256,
        folder,
        baseline,
        build_context,
        revisions={name: (tree.tree, tree.sha256) for name, tree in source.by_revision.items()},
    )
    if not check.commands and not context.workloads:
        return results
    return check_variants(context, results, cores, on_event)


@dataclass(frozen=True, slots=True)
class GraphContext:
    """Context of a plan: the source, the cores, what stages are expected to take.

    `baseline` is the key of the stage without which the rest is of no use.
    """

    source: SourceTrees
    baseline: str
    cores: int
    expected_s: Mapping[str, float]


@dataclass
class _Progress:
    waiting: dict[str, Stage]
    made: dict[str, StageResult] = field(default_factory=dict)
    cached: set[str] = field(default_factory=set)
    started_ns: dict[str, int] = field(default_factory=dict)

    @property
    def running(self) -> int:
        return sum(key not in self.made for key in self.started_ns)


class Graph:
    """Runs the stages of one plan; used once."""

    def __init__(
        self, plan: Plan, context: GraphContext, build_context: BuildContext, on_event: OnEvent
    ) -> None:
        self._plan = plan
        self._context = context
        self._build_context = build_context
        self._on_event = on_event
        self._results: queue.Queue[tuple[Stage, StageResult | BaseException]] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._progress = _Progress({stage.key: stage for stage in plan.stages})

    def run(self) -> tuple[dict[str, StageResult], set[str]]:
        """Build everything; how each stage ended by key, and the keys found in the cache.

        CommandFailed if the baseline fails, Interrupted on Ctrl-C: nothing goes on running then.
        """
        progress = self._progress
        try:
            self._take_cached()
            while progress.waiting or progress.running:
                self._start_ready()
                self._take_result()
        except KeyboardInterrupt:
            raise Interrupted("interrupted while building; finished builds are kept") from None
        finally:
            if progress.running:
                self._build_context.processes.interrupt()
            for thread in self._threads:
                thread.join()
        return progress.made, progress.cached

    def _take_cached(self) -> None:
        """Look for programs first: what leads to cached ones need not be there."""
        of_use = {stage.key for stage in needed(self._plan.stages, self._try_cache)}
        for key in list(self._progress.waiting):
            if key not in of_use:
                del self._progress.waiting[key]

    def _try_cache(self, stage: Stage) -> bool:
        entry = cached_stage(self._build_context.cache, stage)
        if entry is None:
            return False
        del self._progress.waiting[stage.key]
        self._progress.made[stage.key] = StageResult(entry, entry.folder / "log.txt")
        self._progress.cached.add(stage.key)
        self._tell("cached", stage, 0.0)
        return True

    def _start_ready(self) -> None:
        context, progress = self._context, self._progress
        ready = [
            stage
            for stage in progress.waiting.values()
            if all(key in progress.made for key in stage.inputs)
        ]
        most = context.cores if self._build_context.sandboxes.concurrent else 1
        at_work = min(most, progress.running + len(progress.waiting))
        for stage in in_order(ready, context.baseline, context.expected_s):
            inputs = {key: progress.made[key] for key in stage.inputs}
            failed = next((made for made in inputs.values() if made.entry is None), None)
            if failed is not None:
                del progress.waiting[stage.key]
                self._finish(stage, failed)
            elif progress.running < most:
                del progress.waiting[stage.key]
                self._start(stage, self._inputs(stage), jobs_for(context.cores, at_work))

    def _inputs(self, stage: Stage) -> Inputs:
        made = {key: self._progress.made[key].entry for key in stage.inputs}
        tools: dict[str, Path] = {}
        if stage.training_steps is not None and stage.training_steps.tools_from:
            source = self._plan.stage(stage.training_steps.tools_from)
            entry = made[source.key]
            if entry is not None:
                tools = {name: entry.folder / "files" / path for name, path in source.tools}
        pinned = self._context.source.at(stage.revision)
        other, sources = stage.laid_over
        return Inputs(
            pinned.tree,
            pinned.sha256,
            made.get(stage.parent),
            made.get(stage.profile),
            tools,
            laid_over=self._context.source.at(other).tree if sources else None,
        )

    def _start(self, stage: Stage, inputs: Inputs, jobs: int) -> None:
        self._progress.started_ns[stage.key] = self._build_context.clock.monotonic_ns()
        self._tell("started", stage, 0.0)
        thread = threading.Thread(target=self._work, args=(stage, inputs, jobs), daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self, stage: Stage, inputs: Inputs, jobs: int) -> None:
        try:
            self._results.put((stage, perform_stage(stage, inputs, jobs, self._build_context)))
        except BaseException as error:  # noqa: BLE001  # raised again in the main thread
            self._results.put((stage, error))

    def _take_result(self) -> None:
        if not self._progress.running:
            return
        try:
            stage, result = self._results.get(timeout=_WAKE_UP_S)
        except queue.Empty:
            return
        if isinstance(result, BaseException):
            raise result
        self._finish(stage, result)

    def _finish(self, stage: Stage, made: StageResult) -> None:
        self._progress.made[stage.key] = made
        now_ns = self._build_context.clock.monotonic_ns()
        elapsed_s = (now_ns - self._progress.started_ns.get(stage.key, now_ns)) / 1e9
        if made.entry is not None:
            self._tell("finished", stage, elapsed_s)
            return
        if stage.variants or stage.key in self._progress.started_ns:
            self._tell("failed", stage, elapsed_s, made.why)
        if stage.key == self._context.baseline:
            raise CommandFailed(f"the baseline {stage.label} could not be built: {made.told}")

    def _tell(self, kind: EventKind, stage: Stage, elapsed_s: float, text: str = "") -> None:
        expected_s = self._context.expected_s.get(stage.key, 0.0)
        self._on_event(BuildEvent(kind, stage.label, elapsed_s, expected_s, text))
