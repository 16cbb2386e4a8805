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

from ensign.builders.built_again import Ran, Seen, changes, look, what_ran
from ensign.builders.estimate import remember_check
from ensign.builders.isolation import Room
from ensign.builders.outcomes import BuildResult
from ensign.builders.perform import BUILD_TREE, environment_of, set_up_recorder
from ensign.builders.same_output import difference
from ensign.builders.workshop import Bounds, Runner, Workshop
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
from ensign.model.placeholders import fill_all, names_in
from ensign.model.study import Check, Study, Workload, longest_run_ns
from ensign.model.units import format_size, parse_duration_ns, parse_size_bytes

_KIND = "check"
_SCHEMA = 2
_LOG = "log.txt"
_OUTPUTS = "outputs"
_FOLLOWED = "followed-{}.json"
# What ends a command at a limit says as much about this machine as about the program.
_NOT_KEPT = ("deadline", "disk", "ended")


@dataclass(frozen=True, slots=True)
class Ground:
    """What all checks of a study share.

    `source` is the pristine tree and `source_sha256` its hash; relative paths of workloads start at
    `folder`. `baseline` was built, and has the tools. Workloads take `turns`: what they write in
    that folder is in the others' way.
    """

    study: Study
    check: Check
    source: Path
    source_sha256: str
    folder: Path
    baseline: BuildResult
    workshop: Workshop
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


def check_key(ground: Ground, result: BuildResult) -> str:
    """The hash of all that decides how the check of a variant ends."""
    named = _named(ground)
    return key_of(
        {
            **({"named": named} if named else {}),
            **_of_tree(ground, result),
            "schema": _SCHEMA,
            "source": ground.source_sha256,
            "place": ground.workshop.isolation.build_path,
            "check": ground.check.model_dump(mode="json", exclude={"deadline"}),
            "artefact": [ground.study.build.artefact, result.facts.loadable_sha256],
            **({"libraries": result.libraries} if result.libraries else {}),
            "kept": _kept(ground, result),
            "tools": {name: file_sha256(path) for name, path in ground.baseline.tools.items()},
            "baseline": ground.baseline.facts.loadable_sha256 if ground.workloads else "",
            "workloads": [
                [each.name, each.command, each.input, _input_sha256(ground, each)]
                for each in ground.workloads
            ],
        }
    )


def _of_tree(ground: Ground, result: BuildResult) -> dict[str, object]:
    """What else decides where a check runs in the build's own tree."""
    stage = result.stage
    if not ground.check.in_build_tree or stage is None:
        return {}
    return {"tree": stage.key, "commands": stage.check_commands, "env": stage.env}


def _named(ground: Ground) -> dict[str, str]:
    """Files and folders beside the study that commands name: their outputs are compared."""
    words = {word for each in ground.workloads for word in each.command or () if word}
    paths = {word: ground.folder / word for word in sorted(words)}
    files = {word: file_sha256(path) for word, path in paths.items() if is_file(path)}
    rest = ((word, path) for word, path in paths.items() if word not in (*files, "."))
    return files | {word: tree_sha256(path) for word, path in rest if is_folder(path)}


def _kept(ground: Ground, result: BuildResult) -> dict[str, str]:
    """Files kept beside the artefact, which may be read when it runs."""
    if result.files is None or not ground.study.build.keep:
        return {}
    apart = {ground.study.build.artefact, *ground.tools.values()}
    return {
        name: file_sha256(path)
        for name, path in tree_entries(result.files)
        if path.is_file() and name not in apart
    }


def _input_sha256(ground: Ground, workload: Workload) -> str:
    if workload.input is None:
        return ""
    path = ground.folder / workload.input
    if path.is_dir():
        return tree_sha256(path)
    return file_sha256(path) if path.is_file() else ""


def cached_check(ground: Ground, key: str) -> Checked | None:
    """How an earlier check with this key ended; None if there was none."""
    entry = ground.workshop.cache.get(_KIND, key)
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


def compared_workloads(study: Study, check: Check) -> tuple[Workload, ...]:
    """The workloads that a check names, or all whose output can be compared."""
    named = check.same_output
    if named is None:
        return tuple(filter(comparable, study.workloads))
    return tuple(each for each in study.workloads if each.name in named)


def comparable(workload: Workload) -> bool:
    """Whether it has an output of its own, and can be run outside a race."""
    words = (*(workload.command or ()), workload.input or "")
    apart = {name for word in words for name in names_in(word)} & {"port", "arm"}
    return workload.command is not None and not apart


class _LimitMetError(Exception):  # ends `fill`, is never seen outside
    def __init__(self, text: str, *, out: bool) -> None:
        super().__init__(text)
        self.out = out


def perform_check(
    ground: Ground, result: BuildResult, key: str, expected: Checked | None, jobs: int
) -> Checked:
    """Check one variant. What fails is a result, not an error.

    `expected` is how the baseline's ended; None for the baseline itself. StorageFailed if the disk
    is full, Interrupted if the processes were interrupted.
    """
    cache, clock = ground.workshop.cache, ground.workshop.clock
    started_ns = clock.monotonic_ns()
    log = ground.workshop.new_log(_KIND, key)

    def fill(folder: Path) -> Mapping[str, object]:
        (folder / _OUTPUTS).mkdir()
        follow = ground.workshop.meter is not None
        facts = in_a_room(folder / _OUTPUTS, follow=follow)
        if follow and facts["failed"] and not facts["void"]:
            # Some tests fail because they are followed: debuggers, sanitizers.
            facts = in_a_room(folder / _OUTPUTS, follow=False) | {"ran": facts["ran"]}
        shutil.copyfile(log, folder / _LOG)
        return {"variant": result.facts.variant, **facts}

    def in_a_room(outputs: Path, *, follow: bool) -> dict[str, object]:
        with ground.workshop.isolation.room() as room:
            _furnish(ground, result, room)
            seen = look(room, _programs(ground, result))
            run = _Run(ground, result, _runner(ground, result, room, log), outputs, follow)
            failed = run.commands(jobs)
            ran = run.what_ran(seen)
            void = changes(room, seen) or ran.another
            if void:
                failed = f"the check did not try the program that is raced: {void}"
            apart: dict[str, str] = {}
            out = False
            if not failed:
                with ground.turns:
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
        remember_check(ground.study.name, check_s, entry.size_bytes, cache)
    return checked


def _furnish(ground: Ground, result: BuildResult, room: Room) -> None:
    """Copy the source, then the baseline's tools, then what the variant has of its own.

    Instead of the source it may be the tree in which the variant was built, as it was afterwards.
    """
    build, own = ground.study.build, result.files
    if own is None:
        raise FileNotFoundError(f"{result.facts.variant} was not built")
    if ground.check.in_build_tree and result.stage is not None:
        copy_tree(own.parent / BUILD_TREE, room.tree)
        set_up_recorder(result.stage, room, ground.workshop)
    else:
        copy_tree(ground.source, room.tree)
    for name, path in ground.baseline.tools.items():
        _put(path, room.tree / build.tools[name])
    if build.keep:
        apart = set(build.tools.values())
        for name, path in tree_entries(own):
            if path.is_file() and name not in apart:
                _put(path, room.tree / name, follow=False)
    _put(own / build.artefact, room.tree / build.artefact)


def _put(source: Path, target: Path, *, follow: bool = True) -> None:
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        # What is newer than it was would be made again, with all that is made from it.
        times = target.stat() if target.is_file() else source.stat()
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=follow)
        if not target.is_symlink():
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


def _programs(ground: Ground, result: BuildResult) -> tuple[str, ...]:
    """What is raced: the program and what is kept beside it, by their places in the tree."""
    artefact = ground.study.build.artefact
    return (artefact, *(name for name in _kept(ground, result) if name != artefact))


def _runner(ground: Ground, result: BuildResult, room: Room, log: Path) -> Runner:
    workshop = ground.workshop
    deadline_ns = workshop.clock.monotonic_ns() + parse_duration_ns(ground.check.deadline)
    bounds = Bounds.of(room, deadline_ns, parse_size_bytes(ground.study.build.disk))
    env: Mapping[str, str] = workshop.environment
    if ground.check.in_build_tree and result.stage is not None:
        env = environment_of(result.stage, workshop)
    return Runner(workshop, room, bounds, log, {**env, **_libraries(ground, result)})


def _libraries(ground: Ground, own: BuildResult) -> dict[str, str]:
    """Where the loader finds what was built with the program."""
    place = ground.workshop.isolation.build_path
    folders = [f"{place}/{each}".rstrip("/") for each in own.libraries]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


@dataclass(frozen=True, slots=True)
class _Run:
    ground: Ground
    result: BuildResult
    runner: Runner
    outputs: Path
    follow: bool

    def commands(self, jobs: int) -> str:
        check, stage = self.ground.check, self.result.stage
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
        workshop = self.ground.workshop
        if workshop.meter is None or not self.follow:
            return ()
        log = f"{workshop.isolation.temporary_path}/{_FOLLOWED.format(number)}"
        return (str(workshop.meter), "follow", "--log", log, "--")

    def what_ran(self, seen: Seen) -> Ran:
        """By what the followed commands wrote down, as far as they came."""
        room, isolation = self.runner.room, self.ground.workshop.isolation
        logs = sorted(room.temporary.glob(_FOLLOWED.format("*")))
        if not logs:
            return Ran(None)
        inside = {isolation.build_path: room.tree, isolation.temporary_path: room.temporary}
        return what_ran(logs, room, seen, inside)

    def baseline(self, apart: dict[str, str]) -> str:
        """Run each workload of the baseline twice; `apart` gets those that cannot be compared.

        What the study names must run; what is compared by default need not.
        """
        asked = self.ground.check.same_output is not None
        for workload in self.ground.workloads:
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
            differs = difference(_text(first), _text(again), self.ground.check.tolerance)
            if differs:
                apart[workload.name] = f"the baseline's differs from run to run ({differs})"
            again.unlink()
        return ""

    def workloads(self, expected: Checked) -> str:
        """Run those of which there is something to compare with."""
        for workload in self.ground.workloads:
            if workload.name in expected.apart:
                continue
            output, wanted = self.outputs / workload.name, expected.outputs / workload.name
            failed = self._workload(workload, output)
            if failed:
                return failed
            differs = difference(_text(wanted), _text(output), self.ground.check.tolerance)
            if differs:
                return f"the output of workload {workload.name} is not the baseline's: {differs}"
        return ""

    def _workload(self, workload: Workload, output: Path) -> str:
        """Run in the study's folder, as races do. Say what failed; empty if nothing did."""
        command = fill_all(workload.command or (), self._values())
        outcome = self.runner.run(
            ("env", "-C", str(self.ground.folder), *command),
            self._deadline_ns(workload),
            stdin=None if workload.input is None else self.ground.folder / workload.input,
            stdout=output,
        )
        return self._failure(outcome, f"workload {workload.name}", workload)

    def _deadline_ns(self, workload: Workload) -> int:
        """Its own; where nobody asked for the check, no longer than could be raced."""
        if self.ground.check.same_output is not None:
            return parse_duration_ns(workload.deadline)
        return longest_run_ns(self.ground.study, workload)

    def _failure(self, outcome: Outcome, called: str, workload: Workload | None = None) -> str:
        """Say what failed; empty if nothing did."""
        if outcome.ok:
            return ""
        deadline = f"'check.deadline' is {self.ground.check.deadline}"
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
        isolation = self.ground.workshop.isolation
        place = isolation.build_path
        tools = {name: f"{place}/{path}" for name, path in self.ground.tools.items()}
        artefact = f"{place}/{self.ground.study.build.artefact}"
        return {**tools, "artefact": artefact, "files": place, "tmp": isolation.temporary_path}


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="surrogateescape")
