"""Checking what was built: the program's own tests, and output that must be the baseline's.

A check runs in a copy of the source tree. What decides its outcome is hashed into the key of a
cache entry, which keeps the log and the outputs; only an end at a limit is not kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ensign.builders.build_context import Bounds, BuildContext, Runner
from ensign.builders.build_stage import BUILD_TREE, environment_of, set_up_recorder
from ensign.builders.built_again import Ran, TreeBefore, changes, look, what_ran
from ensign.builders.estimate import remember_check
from ensign.builders.outcomes import BuildResult
from ensign.builders.same_output import difference
from ensign.builders.sandboxes import Sandbox
from ensign.host.cache import Entry, key_of
from ensign.host.files import (
    copy_tree,
    file_sha256,
    is_file,
    is_folder,
    storage_errors,
    tree_entries,
    tree_sha256,
)
from ensign.host.processes import Outcome, read_tail
from ensign.model.placeholders import fill_all, names_in, program_values
from ensign.model.study import Study, longest_run_ns
from ensign.model.study_build import CheckSection
from ensign.model.study_workload import Workload
from ensign.model.units import format_size, parse_duration_ns, parse_size_bytes

_KIND = "check"
_SCHEMA = 2
_LOG = "log.txt"
_OUTPUTS = "outputs"
_FOLLOWED = "followed-{}.json"
# What ends a command at a limit says as much about this machine as about the program.
_NOT_KEPT = ("deadline", "disk", "ended")


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What all checks of a study share.

    `source` is the pristine tree and `source_sha256` its hash; relative paths of workloads start at
    `folder`. `baseline` was built, and has the tools. Workloads take `turns`: what they write in
    that folder is in the others' way.
    """

    study: Study
    check: CheckSection
    source: Path
    source_sha256: str
    folder: Path
    baseline: BuildResult
    build_context: BuildContext
    turns: Lock = field(default_factory=Lock, compare=False)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Those whose output is compared, as far as the baseline's is the same twice."""
        return compared_workloads(self.study, self.check)

    @property
    def tools(self) -> Mapping[str, str]:
        """Name and place in the tree of the baseline's tools."""
        return self.study.build.tools


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


def check_key(context: CheckContext, result: BuildResult) -> str:
    """The hash of all that decides how the check of a variant ends."""
    named = _named(context)
    return key_of(
        {
            **({"named": named} if named else {}),
            **_of_tree(context, result),
            "schema": _SCHEMA,
            "source": context.source_sha256,
            "place": context.build_context.sandboxes.build_path,
            "check": context.check.model_dump(mode="json", exclude={"deadline"}),
            "artifact": [context.study.build.artifact, result.facts.loadable_sha256],
            **({"libraries": result.libraries} if result.libraries else {}),
            "kept": _kept(context, result),
            "tools": {name: file_sha256(path) for name, path in context.baseline.tools.items()},
            "baseline": context.baseline.facts.loadable_sha256 if context.workloads else "",
            "workloads": [
                [
                    each.name,
                    each.command,
                    each.stdin,
                    _input_sha256(context, each),
                    *([each.env] if each.env else []),
                ]
                for each in context.workloads
            ],
        }
    )


def _of_tree(context: CheckContext, result: BuildResult) -> dict[str, object]:
    """What else decides where a check runs in the build's own tree."""
    stage = result.stage
    if not context.check.in_build_tree or stage is None:
        return {}
    return {"tree": stage.key, "commands": stage.check_commands, "env": stage.env}


def _named(context: CheckContext) -> dict[str, str]:
    """Files and folders beside the study that commands name: their outputs are compared."""
    words = {word for each in context.workloads for word in each.own_texts if word}
    paths = {word: context.folder / word for word in sorted(words)}
    files = {word: file_sha256(path) for word, path in paths.items() if is_file(path)}
    rest = ((word, path) for word, path in paths.items() if word not in (*files, "."))
    return files | {word: tree_sha256(path) for word, path in rest if is_folder(path)}


def _kept(context: CheckContext, result: BuildResult) -> dict[str, str]:
    """Files kept beside the artifact, which may be read when it runs."""
    if result.files is None or not context.study.build.runtime_files:
        return {}
    apart = {context.study.build.artifact, *context.tools.values()}
    return {
        name: file_sha256(path)
        for name, path in tree_entries(result.files)
        if path.is_file() and name not in apart
    }


def _input_sha256(context: CheckContext, workload: Workload) -> str:
    if workload.stdin is None:
        return ""
    path = context.folder / workload.stdin
    if path.is_dir():
        return tree_sha256(path)
    return file_sha256(path) if path.is_file() else ""


def cached_check(context: CheckContext, key: str) -> Checked | None:
    """How an earlier check with this key ended; None if there was none."""
    entry = context.build_context.cache.get(_KIND, key)
    return None if entry is None else _checked(entry)


def _checked(entry: Entry) -> Checked:
    log = entry.folder / _LOG
    failed = str(entry.facts["failed"])
    return Checked(
        failed=failed,
        tail=read_tail(log) if failed else "",
        log=log,
        outputs=entry.folder / _OUTPUTS,
        void=str(entry.facts["void"]),
        ran=None if entry.facts["ran"] is None else bool(entry.facts["ran"]),
        out=bool(entry.facts["out"]),
        apart=apart if isinstance(apart := entry.facts["apart"], dict) else {},
    )


def compared_workloads(study: Study, check: CheckSection) -> tuple[Workload, ...]:
    """The workloads that a check names, or all whose output can be compared."""
    named = check.same_output
    if named is None:
        return tuple(filter(comparable, study.workloads))
    return tuple(each for each in study.workloads if each.name in named)


def comparable(workload: Workload) -> bool:
    """Whether it has an output of its own, and can be run outside a race."""
    apart = {name for word in workload.own_texts for name in names_in(word)} & {"port", "variant"}
    return workload.command is not None and not apart


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

    def fill(folder: Path) -> Mapping[str, object]:
        (folder / _OUTPUTS).mkdir()
        follow = context.build_context.meter is not None
        facts = in_a_sandbox(folder / _OUTPUTS, follow=follow)
        if follow and facts["failed"] and not facts["void"]:
            # Some tests fail because they are followed: debuggers, sanitizers.
            facts = in_a_sandbox(folder / _OUTPUTS, follow=False) | {"ran": facts["ran"]}
        shutil.copyfile(log, folder / _LOG)
        return {"variant": result.facts.variant, **facts}

    def in_a_sandbox(outputs: Path, *, follow: bool) -> dict[str, object]:
        with context.build_context.sandboxes.sandbox() as sandbox:
            _furnish(context, result, sandbox)
            seen = look(sandbox, _programs(context, result))
            run = _Run(context, result, _runner(context, result, sandbox, log), outputs, follow)
            failed = run.commands(jobs)
            ran = run.what_ran(seen)
            void = changes(sandbox, seen) or ran.another
            if void:
                failed = f"the check did not try the program that is raced: {void}"
            apart: dict[str, str] = {}
            out = False
            if not failed:
                with context.turns:
                    failed = run.baseline(apart) if expected is None else run.workloads(expected)
                out = bool(failed)
            return {"failed": failed, "void": void, "ran": ran.own, "out": out, "apart": apart}

    try:
        entry = cache.make(_KIND, key, fill)
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
        copy_tree(own.parent / BUILD_TREE, sandbox.tree)
        set_up_recorder(result.stage, sandbox, context.build_context)
    else:
        copy_tree(context.source, sandbox.tree)
    for name, path in context.baseline.tools.items():
        _put(path, sandbox.tree / build.tools[name])
    if build.runtime_files:
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
    return (artifact, *(name for name in _kept(context, result) if name != artifact))


def _runner(context: CheckContext, result: BuildResult, sandbox: Sandbox, log: Path) -> Runner:
    build_context = context.build_context
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
            output, wanted = self.outputs / workload.name, expected.outputs / workload.name
            failed = self._workload(workload, output)
            if failed:
                return failed
            differs = difference(_text(wanted), _text(output), self.context.check.tolerance)
            if differs:
                return f"the output of workload {workload.name} is not the baseline's: {differs}"
        return ""

    def _workload(self, workload: Workload, output: Path) -> str:
        """Run in the study's folder, as races do. Say what failed; empty if nothing did."""
        values = self._values()
        command = fill_all(workload.command or (), values)
        env = fill_all((f"{key}={text}" for key, text in workload.env.items()), values)
        outcome = self.runner.run(
            ("env", "-C", str(self.context.folder), *env, *command),
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
        limit = {
            "deadline": f" ({deadline})",
            "disk": f" ('build.disk' is {format_size(self.runner.bounds.disk.size_bytes)})",
        }
        failed = f"'{called}' {outcome.describe()}{limit.get(outcome.reason, '')}"
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
