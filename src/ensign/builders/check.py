"""Checking what was built: the program's own tests, and output that must be the baseline's.

A check runs in a copy of the source tree. What decides its outcome is hashed into the key of a
cache entry, which keeps the log and the outputs; only an end at a limit is not kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from ensign.builders.build_context import Bounds, BuildContext, Runner
from ensign.builders.build_stage import BUILD_TREE, environment_of
from ensign.builders.built_again import Ran, TreeBefore, changes, look, what_ran
from ensign.builders.call_log import set_up_recorder
from ensign.builders.check_context import CheckContext, expected_path, kept
from ensign.builders.estimate import remember_check
from ensign.builders.outcomes import BuildResult
from ensign.builders.same_output import difference
from ensign.builders.sandboxes import Sandbox
from ensign.host.entry import Entry, Facts
from ensign.host.files import (
    file_sha256,
    storage_errors,
    tree_entries,
)
from ensign.host.processes import Outcome, read_tail
from ensign.model.placeholders import fill, fill_all, program_values
from ensign.model.study import longest_run_ns
from ensign.model.study_workload import Workload
from ensign.model.units import parse_duration_ns, parse_size_bytes

_KIND = "check"
_LOG = "log.txt"
_OUTPUTS = "outputs"
_FOLLOWED = "followed-{}.json"
# What ends a command at a limit says as much about this machine as about the program.
_NOT_KEPT = ("deadline", "disk", "ended", "memory", "processes")


@dataclass(frozen=True, slots=True)
class Checked:
    """How a check ended: what failed, empty if nothing did; the last lines of its log.

    `outputs` has the output of each workload that is compared, as far as it came. `void` says what
    else than the program was checked; `ran` whether the program ran, None where it was not seen.
    `out`: it is not to be raced, because a workload failed or gave another output. `apart` has the
    workloads that are not compared, and why (of the baseline alone).
    """

    failed: str
    tail: str
    log: Path
    outputs: Path
    void: str = ""
    ran: bool | None = None
    out: bool = False
    apart: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """What is kept of a check, beside its log and outputs; see `Checked`."""

    variant: str
    failed: str
    void: str
    ran: bool | None
    out: bool
    apart: Mapping[str, str]


_FACTS = TypeAdapter(CheckFacts)


def _read(raw: Facts) -> CheckFacts:
    return _FACTS.validate_python(raw)


def cached_check(context: CheckContext, key: str) -> Checked | None:
    """How an earlier check with this key ended; None if there was none."""
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
    )


class _LimitMetError(Exception):  # ends `fill`, is never seen outside
    def __init__(self, text: str, *, out: bool) -> None:
        super().__init__(text)
        self.out = out


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
        follow = context.build_context.meter is not None
        facts = in_a_sandbox(folder / _OUTPUTS, follow=follow)
        if follow and facts.failed and not facts.void:
            # Some tests fail because they are followed: debuggers, sanitizers.
            facts = replace(in_a_sandbox(folder / _OUTPUTS, follow=False), ran=facts.ran)
        shutil.copyfile(log, folder / _LOG)
        return asdict(facts)

    def in_a_sandbox(outputs: Path, *, follow: bool) -> CheckFacts:
        with _build_context_of(context, result).sandboxes.sandbox() as sandbox:
            _furnish(context, result, sandbox)
            seen = look(sandbox, _programs(context, result))
            run = _Run(context, result, _runner(context, result, sandbox, log), outputs, follow)
            failed = run.commands(jobs)
            ran = run.what_ran(seen)
            void = changes(sandbox, seen) or ran.another
            if void:
                failed = f"the check did not run the program that is raced: {void}"
            apart: dict[str, str] = {}
            out = False
            if not failed:
                with context.turns:
                    failed = run.baseline(apart) if expected is None else run.workloads(expected)
                out = bool(failed)
            return CheckFacts(result.facts.variant, failed, void, ran.own, out, apart)

    try:
        entry = cache.make(_KIND, key, fill, _read)
    except _LimitMetError as met:
        return Checked(str(met), read_tail(log), log, log.parent, out=met.out)
    log.unlink(missing_ok=True)
    checked = _checked(entry)
    if not checked.failed:  # a failure may have come early
        check_s = (clock.monotonic_ns() - started_ns) / 1e9
        remember_check(context.study.name, check_s, entry.size_bytes, cache)
    return checked


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
    if build.takes_more_than_program:
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
    """What is raced: the program and what is kept beside it, by their places in the tree."""
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
    """Where the loader finds what was built with the program."""
    place = context.build_context.sandboxes.build_path
    folders = [f"{place}/{each}".rstrip("/") for each in own.libraries]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


@dataclass(frozen=True, slots=True)
class _Run:
    context: CheckContext
    result: BuildResult
    runner: Runner
    outputs: Path
    follow: bool

    def commands(self, jobs: int) -> str:
        check, stage = self.context.check, self.result.stage
        commands: Sequence[Sequence[str]] = check.commands
        if check.in_build_tree and stage is not None:
            commands = stage.check_commands
        for number, argv in enumerate(commands):
            values = {**self._values(), "jobs": str(jobs)}
            filled = fill_all(argv, values)
            outcome = self.runner.run(filled, follower=self._follower(number))
            failed = self._failure(outcome, argv[0])
            if failed:
                return failed
        return ""

    def _follower(self, number: int) -> tuple[str, ...]:
        build_context = self.context.build_context
        if build_context.meter is None or not self.follow:
            return ()
        log = f"{build_context.sandboxes.temporary_path}/{_FOLLOWED.format(number)}"
        return (str(build_context.meter), "follow", "--log", log, "--")

    def what_ran(self, seen: TreeBefore) -> Ran:
        """By what the followed commands wrote down, as far as they came."""
        sandbox, sandboxes = self.runner.sandbox, self.context.build_context.sandboxes
        logs = sorted(sandbox.temporary.glob(_FOLLOWED.format("*")))
        if not logs:
            return Ran(None)
        inside = {sandboxes.build_path: sandbox.tree, sandboxes.temporary_path: sandbox.temporary}
        return what_ran(logs, sandbox, seen, inside)

    def baseline(self, apart: dict[str, str]) -> str:
        """Run each workload of the baseline twice; `apart` gets those that cannot be compared.

        What the study names must run; what is compared by default need not.
        """
        asked = self.context.check.same_output is not None
        for workload in self.context.workloads:
            if workload.has_expectation:
                failed = self._expectation(workload)
                if failed:
                    return failed
                continue
            first, again = (self.outputs / f"{name}{workload.name}" for name in ("", ".again-"))
            try:
                failed = self._workload(workload, first) or self._workload(workload, again)
            except _LimitMetError as met:
                if asked:
                    raise
                failed = str(met)
            if failed and asked:
                return failed
            if failed:
                apart[workload.name] = f"{failed} where checks are run"
                continue
            differs = difference(_text(first), _text(again), self.context.check.tolerance)
            if differs:
                apart[workload.name] = f"the baseline's differs from run to run ({differs})"
            again.unlink()
        return ""

    def workloads(self, expected: Checked) -> str:
        """Run those of which there is something to compare with."""
        for workload in self.context.workloads:
            if workload.name in expected.apart:
                continue
            if workload.has_expectation:
                failed = self._expectation(workload)
                if failed:
                    return failed
                continue
            output, wanted = self.outputs / workload.name, expected.outputs / workload.name
            failed = self._workload(workload, output)
            if failed:
                return failed
            differs = difference(_text(wanted), _text(output), self.context.check.tolerance)
            if differs:
                return f"the output of workload {workload.name} is not the baseline's: {differs}"
        return ""

    def _expectation(self, workload: Workload) -> str:
        """Run it and hold its output against what the study says."""
        output = self.outputs / workload.name
        failed = self._workload(workload, output)
        if failed:
            return failed
        said = f"the output of workload {workload.name} is not the expected one"
        given = file_sha256(output)
        if workload.expected_sha256 not in (None, given):
            return f"{said}: its SHA-256 is {given}"
        if workload.expected_file is None:
            return ""
        wanted = expected_path(self.context, workload)
        differs = difference(_text(wanted), _text(output), self.context.check.tolerance, "it")
        return f"{said} ({workload.expected_file}): {differs}" if differs else ""

    def _workload(self, workload: Workload, output: Path) -> str:
        """Run in the study's folder, as races do. Say what failed; empty if nothing did."""
        values = self._values()
        command = fill_all(workload.command or (), values)
        where = fill(workload.folder or ".", values)
        env = fill_all((f"{key}={text}" for key, text in workload.env.items()), values)
        outcome = self.runner.run(
            ("env", "-C", str(self.context.folder / where), *env, *command),
            self._deadline_ns(workload),
            stdin=None if workload.stdin is None else self.context.folder / workload.stdin,
            stdout=output,
        )
        return self._failure(outcome, f"workload {workload.name}", workload)

    def _deadline_ns(self, workload: Workload) -> int:
        """Its own; where nobody asked for the check, no longer than could be raced."""
        if self.context.check.same_output is not None:
            return parse_duration_ns(workload.deadline)
        return longest_run_ns(self.context.study, workload)

    def _failure(self, outcome: Outcome, called: str, workload: Workload | None = None) -> str:
        """Say what failed; empty if nothing did."""
        if outcome.ok:
            return ""
        deadline = f"'check.deadline' is {self.context.check.deadline}"
        if workload is not None:
            deadline += f", its own {workload.deadline}"
        limit = f" ({deadline})" if outcome.reason == "deadline" else ""
        limit = limit or self.runner.limit_met(outcome)
        failed = f"'{called}' {outcome.describe()}{limit}"
        if outcome.reason in _NOT_KEPT:
            raise _LimitMetError(failed, out=workload is not None)
        return failed

    def _values(self) -> dict[str, str]:
        sandboxes = self.context.build_context.sandboxes
        place = sandboxes.build_path
        tools = {name: f"{place}/{path}" for name, path in self.context.tools.items()}
        artifact = f"{place}/{self.context.study.build.artifact}"
        return {
            **tools,
            **program_values(artifact),
            "files": place,
            "tmp": sandboxes.temporary_path,
        }


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="surrogateescape")
