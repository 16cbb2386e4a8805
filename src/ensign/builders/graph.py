"""Performing all stages of a plan, as parallel as cores allow."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.builders.build_context import BuildContext
from ensign.builders.build_stage import Made, perform_stage
from ensign.builders.order import in_order, jobs_for, needed
from ensign.builders.revisions import SourceTrees
from ensign.builders.running import Inputs
from ensign.builders.stage_facts import cached_stage
from ensign.builders.stages import Plan, Stage
from ensign.model.build_events import BuildEvent, EventKind, OnEvent
from ensign.model.errors import CommandFailed, Interrupted

_WAKE_UP_S = 0.5  # Python handles Ctrl-C between two waits of the main thread


@dataclass(frozen=True, slots=True)
class GraphContext:
    """Where a plan is performed: the source, the cores, what stages are expected to take.

    `baseline` is the key of the stage without which the rest is of no use.
    """

    source: SourceTrees
    baseline: str
    cores: int
    expected_s: Mapping[str, float]


@dataclass
class _Progress:
    waiting: dict[str, Stage]
    made: dict[str, Made] = field(default_factory=dict)
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
        self._results: queue.Queue[tuple[Stage, Made | BaseException]] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._progress = _Progress({stage.key: stage for stage in plan.stages})

    def run(self) -> tuple[dict[str, Made], set[str]]:
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
        self._progress.made[stage.key] = Made(entry, entry.folder / "log.txt")
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
        return Inputs(
            pinned.tree, pinned.sha256, made.get(stage.parent), made.get(stage.profile), tools
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

    def _finish(self, stage: Stage, made: Made) -> None:
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
