"""Files that workloads read, put below the study's folder: printed by a command, or fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.builders.build_context import Bounds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.sandbox_mounts import (
    confinement_of,
    given_env,
    is_shown_whole,
    shown_to_builds,
    tree_limits,
)
from ensign.builders.sandboxes import Sandbox, choose_sandboxes
from ensign.host.files import file_sha256, is_file, storage_errors
from ensign.host.foreign_files import hand_over
from ensign.host.processes import Outcome, ProcessRequest, read_tail
from ensign.model.builds import BuildEvent, OnEvent, ignore
from ensign.model.errors import CommandFailed, InputError
from ensign.model.quoting import quoted
from ensign.model.study_source import InputFile
from ensign.model.units import parse_duration_ns, parse_size_bytes
from ensign.sources.archive import fetch_file, fetch_wheel
from ensign.sources.downloads import Fetcher, FetchLimits

_PRINTED, _ERRORS = "input", "errors"


def make_inputs(request: BuildRequest, ports: BuildPorts, on_event: OnEvent = ignore) -> None:
    """Make or fetch what is not there yet.

    InputError where a file has another content than the study says, CommandFailed where a command
    fails; nothing is put there then.
    """
    for path, asked in missing_inputs(request).items():
        begun_ns = ports.clock.monotonic_ns()
        on_event(BuildEvent("started", f"input {path}", 0.0, 1.0))
        with ports.cache.temporary() as work:
            work.chmod(0o700)
            try:
                made = _Making(request, ports, path, asked).into(work)
            except (InputError, CommandFailed) as error:
                on_event(BuildEvent("failed", f"input {path}", 0.0, 0.0, str(error)))
                raise
            _put(made, request.path.absolute().parent, path)
        took_s = (ports.clock.monotonic_ns() - begun_ns) / 1e9
        on_event(BuildEvent("finished", f"input {path}", took_s, 1.0))


def missing_inputs(request: BuildRequest) -> Mapping[str, InputFile]:
    """Those that are not there yet. InputError where a file is there with another content."""
    missing = {}
    for path, asked in request.study.inputs.items():
        file = request.path.absolute().parent / path
        if not is_file(file):
            missing[path] = asked
        elif (sha256 := file_sha256(file)) != asked.sha256:
            raise InputError(
                f"{_key(path)}: the file there has the SHA-256 {sha256}, but the study wants "
                f"{asked.sha256}; delete the file to have it made again, or pin what it is"
            )
    return missing


@dataclass(frozen=True, slots=True)
class _Making:
    request: BuildRequest
    ports: BuildPorts
    path: str
    asked: InputFile

    def into(self, work: Path) -> Path:
        """The file, somewhere; it is what the study says."""
        made = self._fetched(work) if self.asked.command is None else self._printed(work)
        sha256 = file_sha256(made)
        if sha256 != self.asked.sha256:
            raise InputError(
                f"{_key(self.path)}: what was made has the SHA-256 {sha256}, but the study wants "
                f"{self.asked.sha256}; does the command print the same each time?"
            )
        return made

    def _fetched(self, work: Path) -> Path:
        limits = FetchLimits(parse_size_bytes(self.asked.limit))
        ports = self.ports
        fetcher = Fetcher(
            ports.processes, ports.cache, ports.env, self.request.path, work, {}, limits
        )
        try:
            if self.asked.wheel is not None:
                name, _, version = self.asked.wheel.partition("==")
                return fetch_wheel(name, version, self.asked.sha256, fetcher)
            return fetch_file(self.asked.url or "", self.asked.sha256, fetcher)
        except InputError as error:
            raise InputError(f"{_key(self.path)}: {error}") from None

    def _printed(self, work: Path) -> Path:
        request, ports = self.request, self.ports
        folder = request.path.absolute().parent
        confinement = confinement_of(request, ports)
        shown = shown_to_builds(request, ports, {}, confinement.user)
        sandboxes = choose_sandboxes(ports.cache, confinement, shown)
        if is_shown_whole(folder, ports.env):
            sandboxes = sandboxes.for_checks(folder)
        kept = work / _PRINTED
        with sandboxes.sandbox() as sandbox:
            sandbox.tree.mkdir(exist_ok=True)
            printed, errors = (sandbox.temporary / file_name for file_name in (_PRINTED, _ERRORS))
            outcome = self._run(sandbox, ("env", "-C", str(folder)), printed, errors)
            if not outcome.ok:
                error_lines = read_tail(errors).strip().splitlines()
                limit = f" ('limit' is {self.asked.limit})" if outcome.reason == "disk" else ""
                why = f"; it said: {quoted(error_lines[-1])}" if error_lines else ""
                text = f"{_key(self.path)}: its command {outcome.describe()}{limit}{why}"
                raise CommandFailed(text)
            # What ran there may have put a link in its place.
            if printed.is_symlink() or not is_file(printed):
                raise CommandFailed(f"{_key(self.path)}: the command deleted or moved its output")
            with storage_errors(kept):
                shutil.copyfile(printed, kept, follow_symlinks=False)
        return kept

    def _run(
        self, sandbox: Sandbox, before: tuple[str, ...], printed: Path, errors: Path
    ) -> Outcome:
        study, ports, asked = self.request.study, self.ports, self.asked
        deadline_ns = parse_duration_ns(asked.deadline)
        bounds = Bounds.of(sandbox, deadline_ns, parse_size_bytes(asked.limit))
        if sandbox.user is not None:
            hand_over(sandbox.folders, sandbox.user)
        home = str(sandbox.temporary)
        env = {
            **given_env(study.sandbox, ports.env),
            "PATH": ports.env.get("PATH", os.defpath),
            "HOME": home,
            "TMPDIR": home,
            "LC_ALL": "C",
            "TZ": "UTC",
        }
        return ports.processes.run(
            ProcessRequest(
                (*sandbox.argv, *before, *(asked.command or ())),
                env,
                sandbox.cwd,
                log=errors,
                deadline_ns=deadline_ns,
                limits=tree_limits(study.sandbox),
                disk=bounds.disk,
                stdout=printed,
            )
        )


def _put(made: Path, folder: Path, path: str) -> None:
    target = folder / path
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{_key(path)}: it lies outside of the study's folder")
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            shutil.copyfile(made, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _key(path: str) -> str:
    return f"'inputs.\"{path}\"'"
