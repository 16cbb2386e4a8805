"""The context of builds and checks: ports, limits, and commands in a sandbox."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ensign.builders.sandboxes import Sandbox, Sandboxes
from ensign.builders.training import Trainer
from ensign.host.cache import Cache
from ensign.host.clock import Clock
from ensign.host.confined_view import rustup_home
from ensign.host.disk_watch import DiskLimit, used_bytes
from ensign.host.entry import CacheChanged
from ensign.host.files import copy_tree, remove_tree, storage_errors, tree_sha256
from ensign.host.foreign_files import hand_over, remove_special
from ensign.host.processes import (
    Outcome,
    Processes,
    ProcessLimits,
    ProcessRequest,
    read_tail,
)
from ensign.host.root_directory import ROOT_PATH, RootDirectory
from ensign.host.storage import full_file_system
from ensign.model.errors import StorageFailed
from ensign.model.units import format_size

_TRIES = 3
_MOST_OUTPUT_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class BuildContext:
    """All that a stage or a check needs besides its plan; `path` is the PATH of its commands.

    `meter` is the program that records calls; without it none are recorded. `trainer` runs what
    collects profiles. `given_env` are the caller's variables that commands get; `sandbox_key`
    hashes what they may reach, where that is not the usual. `source_again` puts the source into the
    cache once more, at the same path. `limits` are each command's. `caller` is the environment of
    who started ensign, which no command gets. `roots` are the environments by name.
    """

    processes: Processes
    cache: Cache
    sandboxes: Sandboxes
    clock: Clock
    path: str
    meter: Path | None = None
    trainer: Trainer | None = None
    given_env: Mapping[str, str] = field(default_factory=dict)
    sandbox_key: str = ""
    caller: Mapping[str, str] = field(default_factory=dict)
    source_again: Callable[[], object] | None = None
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    roots: Mapping[str, RootDirectory] = field(default_factory=dict)

    def within(self, environment: str) -> BuildContext:
        """For commands in an environment, where there is one."""
        root = self.roots.get(environment)
        if root is None:
            return self
        sandboxes = self.sandboxes.within(root.folder, ROOT_PATH)
        return replace(self, sandboxes=sandboxes, path=ROOT_PATH)

    def new_log(self, kind: str, key: str) -> Path:
        """An empty log for what is being made, which stays there if that fails.

        StorageFailed if the disk is full.
        """
        # Two ensigns may be at the same stage.
        log = self.cache.folder / "logs" / f"{kind}-{key[:20]}-{os.getpid()}.log"
        with storage_errors(log):
            log.write_bytes(b"")
        return log

    def copy_pinned(
        self, tree: Path, target: Path, sha256: str, again: Callable[[], object] | None = None
    ) -> None:
        """Copy a tree of the cache to the new folder `target`, which is what `sha256` says then.

        The copy is judged, not the original: an earlier build may have written to that since it was
        judged, where nothing keeps builds from it. `again` makes the entry anew; without it, and
        where that does not help, CacheChanged. An empty hash is not looked at.
        """
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):  # another stage has just moved it out of use
                copy_tree(tree, target)
                if not sha256 or tree_sha256(target) == sha256:
                    return
            remove_tree(target)
            if tree.parent.exists():
                self.cache.quarantine(tree.parent, f"'{tree.name}' was changed while it was used")
            if again is None:
                break
            again()
        raise CacheChanged(
            f"{tree.parent.name[:40]} in the cache was changed by something else while it was used "
            "(a build without a sandbox may do that); it is out of use now: run again"
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment of every command: the same on any machine, but for PATH and requests."""
        rust = rustup_home(self.path)
        return {
            **({"RUSTUP_HOME": rust} if rust else {}),
            **self.given_env,
            "PATH": self.path,
            "HOME": self.sandboxes.temporary_path,
            "TMPDIR": self.sandboxes.temporary_path,
            "LC_ALL": "C",
            "TZ": "UTC",
        }


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of several commands together; `deadline_ns` is on the monotonic clock.

    `seeming_bytes` is what files in the sandbox seemed to have before.
    """

    deadline_ns: int
    disk: DiskLimit
    seeming_bytes: int = 0

    @classmethod
    def of(cls, sandbox: Sandbox, deadline_ns: int, disk_bytes: int) -> Bounds:
        """For commands that add at most so many bytes to what is in the sandbox now."""
        folders = sandbox.folders
        limit = DiskLimit(folders, disk_bytes, used_bytes(folders))
        return cls(deadline_ns, limit, remove_special(folders))


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs commands in a sandbox, within common bounds, with `env` as all of their environment."""

    build_context: BuildContext
    sandbox: Sandbox
    bounds: Bounds
    log: Path
    env: Mapping[str, str]

    @property
    def left_ns(self) -> int:
        """Time left until the deadline, not above 0 if it is over."""
        return self.bounds.deadline_ns - self.build_context.clock.monotonic_ns()

    @property
    def logged_bytes(self) -> int:
        """Length of the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def output_since(self, logged_bytes: int) -> str:
        """Text printed since the log had that length; the end of it, if that is much."""
        return read_tail(self.log, min(_MOST_OUTPUT_BYTES, self.logged_bytes - logged_bytes))

    def note(self, line: str) -> None:
        """Write a line to the log. StorageFailed if the disk is full."""
        with storage_errors(self.log), self.log.open("a") as file:
            file.write(f"{line}\n")

    def run(
        self,
        argv: tuple[str, ...],
        limit_ns: int | None = None,
        *,
        stdin: Path | None = None,
        stdout: Path | None = None,
        follower: tuple[str, ...] = (),
    ) -> Outcome:
        """Run a command, which the log gets before its output. Errors as `Processes.run`, `note`.

        A `follower` is put in front of it, and is no part of what the log shows.

        It may take what is left until the deadline, but no more than `limit_ns`. Without any time
        left it has timed out.
        """
        self.note(f"$ {shlex.join(argv)}")
        return self._run(
            ProcessRequest(
                (*follower, *argv),
                log=self.log,
                deadline_ns=limit_ns,
                stdin=stdin,
                stdout=stdout,
            )
        )

    def run_unlogged(self, argv: tuple[str, ...]) -> Outcome:
        """Run a command that is not the user's and that the log does not show; else as `run`."""
        return self._run(ProcessRequest(argv))

    def limit_met(self, outcome: Outcome) -> str:
        """Key of the study that set the limit which ended a command; empty if none did."""
        limits = self.build_context.limits
        if outcome.reason == "disk":
            return f" ('build.disk' is {format_size(self.bounds.disk.size_bytes)})"
        if outcome.reason == "memory" and limits.tree_memory_bytes is not None:
            return f" ('sandbox.memory' is {format_size(limits.tree_memory_bytes)})"
        if outcome.reason == "processes":
            return f" ('sandbox.processes' is {limits.tree_processes})"
        return ""

    def _run(self, request: ProcessRequest) -> Outcome:
        left_ns = self.left_ns
        if left_ns <= 0:
            return Outcome(None, None, "deadline")
        if request.deadline_ns is not None:
            left_ns = min(left_ns, request.deadline_ns)
        sandbox = self.sandbox
        if sandbox.user is not None:
            hand_over(sandbox.folders, sandbox.user)
        request = replace(
            request,
            argv=(*sandbox.argv, *request.argv),
            env=self.env,
            cwd=sandbox.cwd,
            deadline_ns=left_ns,
            limits=replace(self.build_context.limits, file_bytes=self.bounds.disk.size_bytes),
            disk=self.bounds.disk,
        )
        seeming_bytes = 0
        try:
            outcome = self.build_context.processes.run(request)
        finally:
            seeming_bytes = remove_special(sandbox.folders)
        # Files with holes take little of the disk, until they are copied.
        if seeming_bytes - self.bounds.seeming_bytes > self.bounds.disk.size_bytes:
            return replace(outcome, exit=None, signal=None, reason="disk")
        if not outcome.ok and outcome.reason != "disk":
            # Now, as long as all of it is there: what failed for lack of space says nothing else.
            full = full_file_system(sandbox.tree, outcome.tail)
            if full:
                raise StorageFailed(f"'{request.argv[len(sandbox.argv)]}' failed: {full}")
        return outcome
