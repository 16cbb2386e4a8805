"""Checking all variants of a study, the baseline first, as parallel as cores allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from threading import Lock

from ensign.builders.build_results import BuildResult
from ensign.builders.check import cached_check, perform_check
from ensign.builders.check_context import CheckContext, check_key
from ensign.builders.check_run import Checked
from ensign.builders.estimate import EarlierBuilds, check_cost
from ensign.builders.sandbox_mounts import shown_to_checks
from ensign.builders.stages import jobs_for
from ensign.model.builds import BuildEvent, BuildFacts, CheckStatus, EventKind, OnEvent
from ensign.model.errors import CommandFailed, InputError, Interrupted
from ensign.model.finding_kinds.builds import CHECK_FAILED, CHECK_NEVER_RAN_IT, OUTPUT_NOT_COMPARED
from ensign.model.finding_kinds.ran import OUTPUTS_DIFFER
from ensign.model.findings import Finding

_WAY_OUT = (
    "a check must not build: with check.in_build_tree = true it runs in the tree of each build, "
    "where 'ctest', 'meson test --no-rebuild', 'ninja test' and 'make check' find it built"
)
_WAKE_UP_S = 0.5  # Python handles Ctrl-C between two waits of the main thread


def check_variants(
    context: CheckContext, results: Sequence[BuildResult], cores: int, on_event: OnEvent
) -> tuple[BuildResult, ...]:
    """Check what was built; the results with how it ended in their facts.

    Variants with equal bytes are checked once. CommandFailed if the baseline fails: a check that
    it does not pass says nothing about the others. Interrupted on Ctrl-C.
    """
    shown = shown_to_checks(context.study, context.folder, context.build_context.caller)
    sandboxes = context.build_context.sandboxes.for_checks(*shown)
    context = replace(context, build_context=replace(context.build_context, sandboxes=sandboxes))
    checks = _Checks(context, cores, on_event)
    baseline = checks.run([context.baseline], None)[0]
    if baseline.void:
        raise InputError(
            "the study's check is void, it did not run the program that is raced: "
            f"{baseline.void}; {_WAY_OUT}; log: {baseline.log}"
        )
    if baseline.failed:
        raise CommandFailed(
            f"the baseline {context.baseline.facts.variant} fails the study's check, so it says "
            f"nothing about the others: {baseline.failed}; log: {baseline.log}\n{baseline.tail}"
        )
    first = _name(context.baseline)
    if not context.check.commands and {workload.name for workload in context.workloads} <= set(
        baseline.apart
    ):
        return tuple(_not_compared(result, first, baseline) for result in results)
    built = [result for result in results if result.artifact is not None and _name(result) != first]
    ends = dict(zip(map(_name, built), checks.run(built, baseline), strict=True))
    ends[first] = baseline
    return tuple(_with_end(result, ends.get(_name(result))) for result in results)


def check_findings(results: Sequence[BuildResult]) -> tuple[Finding, ...]:
    """Say which variants failed (they are measured, but cannot win), and whom no command ran."""
    missed = [name for result in results if not result.check_ran for name in [_name(result)]]
    never = (
        CHECK_NEVER_RAN_IT.found(
            f"the commands of the check never executed the program ({', '.join(missed)}), so they "
            "prove nothing",
        ),
    )
    apart: dict[str, str] = {}
    for workload, why in (pair for result in results for pair in result.not_compared):
        apart.setdefault(workload, f"output not compared: {why}")
    failed = (
        CHECK_FAILED.found(f"{_verdict(facts)}: {facts.check_failed}", name)
        for facts, name in ((result.facts, _name(result)) for result in results)
        if facts.check == CheckStatus.FAILED
    )
    told = (OUTPUT_NOT_COMPARED.found(text, workload) for workload, text in apart.items())
    differ = (
        OUTPUTS_DIFFER.found(
            f"prints otherwise than the baseline's revision: {where}", _name(result)
        )
        for result in results
        for _, where in result.printed_otherwise[:1]
    )
    return (*(never if missed else ()), *differ, *told, *failed)


def _verdict(facts: BuildFacts) -> str:
    return "is out and not raced" if facts.out else "fails the check"


def count_missing(context: CheckContext, results: Sequence[BuildResult]) -> tuple[int, int]:
    """Numbers of checks of these programs that wait and that are in the cache."""
    keys = {check_key(context, result) for result in results}
    there = sum(cached_check(context, key) is not None for key in keys)
    return len(keys) - there, there


def _name(result: BuildResult) -> str:
    return result.facts.variant


def _not_compared(result: BuildResult, baseline: str, end: Checked) -> BuildResult:
    """Nothing is shown of anybody; why, is told with the baseline."""
    apart = tuple(end.apart.items()) if _name(result) == baseline else ()
    return replace(result, not_compared=apart)


def _with_end(result: BuildResult, end: Checked | None) -> BuildResult:
    if end is None:
        return result
    facts = replace(
        result.facts,
        check=_status(end),
        check_failed=end.failed,
        check_tail=end.tail,
        out=end.failed if end.out else "",
    )
    apart = tuple(end.apart.items())
    return replace(
        result,
        facts=facts,
        check_ran=end.ran is not False,
        not_compared=apart,
        printed_otherwise=tuple(end.otherwise.items()),
    )


def _status(end: Checked) -> CheckStatus:
    if end.failed:
        return CheckStatus.FAILED
    return CheckStatus.NOT_CHECKED if end.otherwise else CheckStatus.PASSED


@dataclass(frozen=True, slots=True)
class _Checks:
    context: CheckContext
    cores: int
    on_event: OnEvent
    progress: Lock = field(default_factory=Lock)

    def run(self, results: Sequence[BuildResult], baseline: Checked | None) -> list[Checked]:
        """Outcomes in order; those in the cache are taken from there."""
        keys = [check_key(self.context, result) for result in results]
        first = dict(reversed([*zip(keys, results, strict=True)]))
        ends: dict[str, Checked] = {}
        for key, result in first.items():
            end = cached_check(self.context, key)
            if end is not None:
                ends[key] = end
                self._tell("cached", result, 0)
        missing = {key: result for key, result in first.items() if key not in ends}
        ends |= self._perform(missing, baseline)
        return [ends[key] for key in keys]

    def _perform(
        self, missing: Mapping[str, BuildResult], baseline: Checked | None
    ) -> dict[str, Checked]:
        if not missing:
            return {}
        processes = self.context.build_context.processes
        at_once = self.cores if self.context.build_context.sandboxes.concurrent else 1
        jobs = jobs_for(self.cores, min(at_once, len(missing)))
        with ThreadPoolExecutor(at_once) as pool:
            futures = {
                key: pool.submit(self._one, key, result, baseline, jobs)
                for key, result in missing.items()
            }
            try:
                _wait(list(futures.values()))
                return {key: future.result() for key, future in futures.items()}
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                processes.interrupt()
                if isinstance(error, KeyboardInterrupt):
                    raise Interrupted("interrupted while checking; the builds are kept") from None
                raise

    def _one(self, key: str, result: BuildResult, baseline: Checked | None, jobs: int) -> Checked:
        clock = self.context.build_context.clock
        started_ns = clock.monotonic_ns()
        cache = self.context.build_context.cache
        last = check_cost(EarlierBuilds(self.context.study.name, cache))
        self._tell("started", result, 0, expected_s=0.0 if last is None else last.seconds)
        end = perform_check(self.context, result, key, baseline, jobs)
        elapsed_ns = clock.monotonic_ns() - started_ns
        self._tell("failed" if end.failed else "finished", result, elapsed_ns, text=end.failed)
        return end

    def _tell(
        self,
        kind: EventKind,
        result: BuildResult,
        elapsed_ns: int,
        *,
        expected_s: float = 0.0,
        text: str = "",
    ) -> None:
        label = f"check of {_name(result)}"
        with self.progress:
            self.on_event(BuildEvent(kind, label, elapsed_ns / 1e9, expected_s, text))


def _wait(futures: list[Future[Checked]]) -> None:
    """Return when all are done; raise the first error at once."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=_WAKE_UP_S, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
