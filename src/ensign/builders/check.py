"""Checking what was built: the program's own tests, and output that must be the baseline's.

A check runs in a copy of the source tree. What decides its outcome is hashed into the key of a
cache entry, which keeps the log and the outputs; only an end at a limit is not kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from ensign.builders.build_context import Bounds, BuildContext, Runner
from ensign.builders.build_results import BuildResult
from ensign.builders.build_stage import BUILD_TREE, environment_of
from ensign.builders.check_context import CheckContext, kept
from ensign.builders.check_run import Checked, CheckRun, LimitMetError, varying
from ensign.builders.collector import set_up_recorder
from ensign.builders.estimate import EarlierBuilds, remember_check
from ensign.builders.rebuilt_programs import changes, look
from ensign.builders.sandboxes import Sandbox
from ensign.host.entry import Entry, Facts
from ensign.host.files import storage_errors, tree_entries
from ensign.host.processes import read_tail
from ensign.model.units import parse_duration_ns, parse_size_bytes

_KIND = "check"
_LOG = "log.txt"
_OUTPUTS = "outputs"


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """Record of a check, kept beside its log and outputs; see `Checked`."""

    variant: str
    failed: str
    void: str
    ran: bool | None
    out: bool
    apart: Mapping[str, str]
    otherwise: Mapping[str, str] = field(default_factory=dict)


_FACTS = TypeAdapter(CheckFacts)


def _read(raw: Facts) -> CheckFacts:
    return _FACTS.validate_python(raw)


def cached_check(context: CheckContext, key: str) -> Checked | None:
    """Outcome of an earlier check with this key; None if there was none."""
    entry = context.build_context.cache.get(_KIND, key, _read)
    return None if entry is None else _checked(entry)


def _checked(entry: Entry[CheckFacts]) -> Checked:
    log, facts = entry.folder / _LOG, entry.facts
    return Checked(
        failed=facts.failed,
        tail=read_tail(log) if facts.failed else "",
        log=log,
        outputs=entry.folder / _OUTPUTS,
        void=facts.void,
        ran=facts.ran,
        out=facts.out,
        apart=facts.apart,
        otherwise=facts.otherwise,
    )


def perform_check(
    context: CheckContext, result: BuildResult, key: str, expected: Checked | None, jobs: int
) -> Checked:
    """Check one variant. What fails is a result, not an error.

    `expected` is how the baseline's ended; None for the baseline itself. StorageFailed if the disk
    is full, Interrupted if the processes were interrupted.
    """
    cache, clock = context.build_context.cache, context.build_context.clock
    started_ns = clock.monotonic_ns()
    log = context.build_context.new_log(_KIND, key)

    def fill(folder: Path) -> Facts:
        (folder / _OUTPUTS).mkdir()
        facts = _Check(context, result, expected, jobs, log, folder / _OUTPUTS).facts()
        shutil.copyfile(log, folder / _LOG)
        return asdict(facts)

    try:
        entry = cache.make(_KIND, key, fill, _read)
    except LimitMetError as met:
        return Checked(str(met), read_tail(log), log, log.parent, out=met.out)
    log.unlink(missing_ok=True)
    checked = _checked(entry)
    if not checked.failed:  # a failure may have come early
        check_s = (clock.monotonic_ns() - started_ns) / 1e9
        remember_check(EarlierBuilds(context.study.name, cache), check_s, entry.size_bytes)
    return checked


@dataclass(frozen=True, slots=True)
class _Check:
    context: CheckContext
    result: BuildResult
    expected: Checked | None
    jobs: int
    log: Path
    outputs: Path

    def facts(self) -> CheckFacts:
        differing: dict[str, str] = {}
        follow = self.context.build_context.meter is not None
        facts = self._in_a_sandbox(differing, follow=follow)
        if follow and facts.failed and not facts.void and not facts.out:
            # Some tests fail because they are followed: debuggers, sanitizers.
            facts = replace(self._in_a_sandbox(differing, follow=False), ran=facts.ran)
        if facts.failed or self.expected is None:
            return facts
        apart: dict[str, str] = {}
        otherwise: dict[str, str] = {}
        for name, differs in differing.items():
            changed = self._baseline_changed(name, self.expected.outputs / name)
            if not changed and self.context.may_print_otherwise(self.result):
                otherwise[name] = differs
            elif not changed:
                failed = f"the output of workload {name} is not the baseline's: {differs}"
                return replace(facts, failed=failed, out=True)
            else:
                apart[name] = varying(changed)
        return replace(facts, apart=apart, otherwise=otherwise)

    def _in_a_sandbox(self, differing: dict[str, str], *, follow: bool) -> CheckFacts:
        context, result = self.context, self.result
        with _build_context_of(context, result).sandboxes.sandbox() as sandbox:
            _furnish(context, result, sandbox)
            seen = look(sandbox, _programs(context, result))
            runner = _runner(context, result, sandbox, self.log)
            run = CheckRun(context, result, runner, self.outputs, follow)
            failed = run.commands(self.jobs)
            ran = run.what_ran(seen)
            void = changes(sandbox, seen) or ran.another
            if void:
                failed = f"the check did not run the program that is raced: {void}"
            apart: dict[str, str] = {}
            out = False
            if not failed:
                with context.turns:
                    if self.expected is None:
                        failed = run.baseline(apart)
                    else:
                        failed = run.workloads(self.expected, differing)
                out = bool(failed)
            return CheckFacts(result.facts.variant, failed, void, ran.own, out, apart)

    def _baseline_changed(self, name: str, wanted: Path) -> str:
        """In what the baseline's output is another one by now, after it was the same twice."""
        context, baseline = self.context, self.context.baseline
        (workload,) = (one for one in context.workloads if one.name == name)
        with _build_context_of(context, baseline).sandboxes.sandbox() as sandbox, context.turns:
            _furnish(context, baseline, sandbox)
            runner = _runner(context, baseline, sandbox, self.log)
            run = CheckRun(context, baseline, runner, self.outputs, follow=False)
            return run.changed(workload, wanted)


def _furnish(context: CheckContext, result: BuildResult, sandbox: Sandbox) -> None:
    """Copy the source, then the baseline's tools, then what the variant has of its own.

    Instead of the source it may be the tree in which the variant was built, as it was afterwards.
    """
    build, own = context.study.build, result.files
    if own is None:
        raise FileNotFoundError(f"{result.facts.variant} was not built")
    if context.check.in_build_tree and result.stage is not None:
        context.build_context.copy_pinned(
            own.parent / BUILD_TREE, sandbox.tree, result.build_tree_sha256
        )
        set_up_recorder(result.stage, sandbox, context.build_context)
    else:
        again = context.build_context.source_again
        tree, sha256 = context.source_of(result)
        context.build_context.copy_pinned(tree, sandbox.tree, sha256, again)
    for name, path in context.baseline.tools.items():
        _put(path, sandbox.tree / build.tools[name])
    if context.study.takes_more_than_program:
        apart = set(build.tools.values())
        for name, path in tree_entries(own):
            if path.is_file() and name not in apart:
                _put(path, sandbox.tree / name, follow=False)
    _put(own / build.artifact, sandbox.tree / build.artifact)


def _put(source: Path, target: Path, *, follow: bool = True) -> None:
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        # What is newer than it was would be made again, with all that is made from it.
        times = target.stat() if target.is_file() else source.stat()
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=follow)
        if not target.is_symlink():
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


def _programs(context: CheckContext, result: BuildResult) -> tuple[str, ...]:
    """Files that are raced: the program and what is kept beside it, by their places in the tree."""
    artifact = context.study.build.artifact
    return (artifact, *(name for name in kept(context, result) if name != artifact))


def _build_context_of(context: CheckContext, result: BuildResult) -> BuildContext:
    """Variants run here, wherever they were built; what needs their compiler runs beside that."""
    if context.check.in_build_tree and result.stage is not None:
        return context.build_context.within(result.stage.environment)
    return context.build_context


def _runner(context: CheckContext, result: BuildResult, sandbox: Sandbox, log: Path) -> Runner:
    build_context = _build_context_of(context, result)
    deadline_ns = build_context.clock.monotonic_ns() + parse_duration_ns(context.check.deadline)
    bounds = Bounds.of(sandbox, deadline_ns, parse_size_bytes(context.study.build.disk))
    env: Mapping[str, str] = build_context.environment
    if context.check.in_build_tree and result.stage is not None:
        env = environment_of(result.stage, build_context)
    return Runner(build_context, sandbox, bounds, log, {**env, **_libraries(context, result)})


def _libraries(context: CheckContext, own: BuildResult) -> dict[str, str]:
    """Folders in which the loader finds what was built with the program."""
    place = context.build_context.sandboxes.build_path
    folders = [f"{place}/{library}".rstrip("/") for library in own.libraries]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}
