"""One traced execution of a variant: what ran, what was written."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ensign.host.files import file_sha256
from ensign.host.os_errors import is_shortage
from ensign.host.root_directory import RootDirectory, lies_in
from ensign.host.temporary import temporary_base
from ensign.meter.client import Meter, find_meter
from ensign.meter.followed_files import Followed, FollowedFile, read_followed
from ensign.meter.racing import race
from ensign.meter.requests import Load, ProcessSpec, RaceRequest, VariantFiles, VariantSpec
from ensign.model.errors import CommandFailed, InputError
from ensign.model.traced_execution import (
    FileTime,
    MappedFile,
    TracedExecution,
    WrittenFile,
    nothing_seen,
)
from ensign.model.trials import Mode, Trial
from ensign.proof.loaded_bytes import read_artifact

_SLICE_NS = 5_000_000
SAMPLE_US = 1000
_FEW = 3
NO_TIME = "looking had taken a tenth of the study's budget already"
_NO_RECORD = "the traced execution left no record"
# The meter's folder, where `{tmp}` is.
_COPY = re.compile(r"/(ensign-meter|run)-\d{7,}-[0-9a-f]{16}/files-\d+/")
_OWN_SCRATCH = re.compile(r"/(ensign-meter|run)-\d{7,}-[0-9a-f]{16}/")
_DELETED = "files that ran were gone, or others, afterwards"


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Options of a trace: the race's ports, how fast its CPU clocks seem to run, how long.

    The deadline is that of a batch program, or of a server's load, if that has none that is nearer.
    Where `sample_us` is not 0, running tasks are looked at so often.
    """

    ports: tuple[int, int] = (20_000, 29_999)
    cpu_clock_rate: int = 1
    deadline_ns: int | None = None
    sample_us: int = 0


class Tracer(Protocol):
    """Carries out traced executions."""

    def trace(self, variant: VariantSpec, wish: TraceOptions = ...) -> TracedExecution:
        """One execution of the variant. What fails is told in `not_judged`."""
        ...


@dataclass(slots=True)
class Identities:
    """Identities of files; each is read once, as long as it stays the same.

    Its change time tells, which no user can set; a modification time can be put back.
    """

    _known: dict[tuple[str, int, int, int], str] = field(default_factory=dict)

    def of(self, path: str, inode: int | None = None) -> str:
        """See `MappedFile.sha256`; empty where the file is gone, or has another inode."""
        try:
            status = Path(path).stat()
            if inode is not None and status.st_ino != inode:
                return ""
            key = (path, status.st_ctime_ns, status.st_ino, status.st_size)
            if key not in self._known:
                self._known[key] = _identity(Path(path))
        except OSError as error:
            if is_shortage(error):
                raise
            return ""
        return self._known[key]


def in_own_scratch(path: str) -> bool:
    """True if a file lies in the folder that the meter makes for a run, and removes."""
    return _OWN_SCRATCH.search(path) is not None


def _identity(path: Path) -> str:
    artifact = read_artifact(path)
    return file_sha256(path) if artifact is None else artifact.loadable_sha256


@dataclass(frozen=True, slots=True)
class MeterTracer:
    """A `Tracer` that puts `ensign-meter follow` in front of the program (or server)."""

    meter: Meter
    identities: Identities = field(default_factory=Identities)

    def trace(self, variant: VariantSpec, wish: TraceOptions = TraceOptions()) -> TracedExecution:
        """See `Tracer.trace`; a server's load runs as in the race, and is not traced."""
        # A file without a name cannot be left behind, whatever kills this process.
        with tempfile.TemporaryFile(dir=temporary_base()) as file:
            log = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            done: tuple[Trial, ...] = ()
            trouble = ""
            try:
                with closing(race(self.meter, _request(variant, wish, log))) as trials:
                    done = tuple(trials)
            except (CommandFailed, InputError) as error:
                trouble = f"the traced execution failed: {error}"
            text = file.read()
        if not text:
            return nothing_seen(trouble or _failure_of(done) or _NO_RECORD)
        root = variant.program.root or ""
        followed = _seen_outside(read_followed(text), root)
        seen = self._seen(followed, variant.files, trouble or _failure_of(done))
        seen = replace(seen, root=root)
        if not done or not done[0].variants:
            return seen
        totals = done[0].variants[0]
        # Following costs CPU time, too; only where the kernel counts no task's is that the best.
        own_ns = followed.cpu_ns or totals.cpu_ns
        return replace(seen, wall_ns=totals.wall_ns, cpu_ns=own_ns)

    def _seen(
        self, followed: Followed, files: VariantFiles | None, trouble: str
    ) -> TracedExecution:
        mapped = tuple(self._mapped(followed, files))
        gaps = [trouble] if trouble else []
        gaps += followed.gaps()
        gone = [file.path for file in mapped if not file.sha256]
        if gone:
            gaps.append(f"{_DELETED}: {first_few(gone)}")
        ways = tuple(
            WrittenFile(change.path, change.ways)
            for change in followed.written
            if not in_own_scratch(change.path)
        )
        return TracedExecution(
            mapped=mapped,
            written=tuple(way.path for way in ways),
            cpu_clock_reads=followed.cpu_clock_reads,
            processes=followed.processes,
            threads=followed.threads,
            not_judged="; ".join(gaps),
            followed=followed.saw_anything,
            ways=ways,
            programs=tuple(dict.fromkeys(program.path for program in followed.programs)),
            cpu_timers=followed.cpu_timers,
            cpu_limits_reached=followed.cpu_limits_reached,
            children_clock_reads=followed.children_clock_reads,
            code_made_at_run_time=followed.jit,
            read=tuple(path for path in followed.read if not in_own_scratch(path)),
            read_in_part=followed.read_in_part,
            exit_status=followed.exit,
            signal=followed.signal,
            samples=tuple(
                FileTime(original_of(sample.path, files) or sample.path, sample.cpu_ns)
                for sample in followed.samples
            ),
            calls=tuple((call.call, call.cpu_ns) for call in followed.calls),
        )

    def _mapped(self, followed: Followed, copied: VariantFiles | None) -> Iterator[MappedFile]:
        files = {
            (followed_file.path, followed_file.device, followed_file.inode): followed_file
            for followed_file in followed.mapped
        }
        for file in files.values():
            original = original_of(file.path, copied)
            if original is None:
                yield MappedFile(file.path, self._sha256(file), file.device, file.inode)
            else:
                yield MappedFile(original, self.identities.of(original))
        executables = {followed_file.path for followed_file in followed.mapped}
        asked = dict.fromkeys(program.path for program in followed.programs)
        for path in asked:
            # A script: what the kernel executed is its interpreter.
            if str(Path(path).resolve()) not in executables:
                original = original_of(path, copied) or path
                yield MappedFile(original, self.identities.of(original))

    def _sha256(self, file: FollowedFile) -> str:
        if file.deleted or file.other_root:
            return ""
        return self.identities.of(file.path, file.inode)


def _seen_outside(followed: Followed, root: str) -> Followed:
    """Observations of a follower in a root directory, with paths of this machine."""
    if not root:
        return followed
    known = RootDirectory("", Path(root), "")

    def place(path: str) -> str:
        if not path.startswith("/") or not lies_in(known.folder, path):
            return path
        return str(known.place(path) or f"{root}{path}")

    return followed.model_copy(
        update={
            "programs": tuple(
                e.model_copy(update={"path": place(e.path)}) for e in followed.programs
            ),
            "mapped": tuple(e.model_copy(update={"path": place(e.path)}) for e in followed.mapped),
            "written": tuple(
                e.model_copy(update={"path": place(e.path)}) for e in followed.written
            ),
            "read": tuple(map(place, followed.read)),
            "samples": tuple(
                e.model_copy(update={"path": place(e.path)}) for e in followed.samples
            ),
        }
    )


def original_of(path: str, copied: VariantFiles | None) -> str | None:
    """Path of a file in the meter's copy, which is gone by now: what it was copied from."""
    inside = _COPY.search(path)
    if inside is None or copied is None:
        return None
    places = (Path(folder, path[inside.end() :]) for folder in reversed(copied.folders))
    return next((str(place) for place in places if place.exists()), None)


def _request(variant: VariantSpec, wish: TraceOptions, log: str) -> RaceRequest:
    rate = str(wish.cpu_clock_rate)
    looks = ("--sample-us", str(wish.sample_us))
    wrapper = (str(find_meter()), "follow", "--log", log, "--cpu-clock-rate", rate, *looks, "--")
    program = replace(variant.program, argv=(*wrapper, *variant.program.argv), ignore_failure=True)
    if variant.load is None:
        program = _hurried(program, wish)
    elif isinstance(variant.load, Load):
        process = _hurried(variant.load.process, wish)
        variant = replace(variant, load=replace(variant.load, process=process))
    return RaceRequest(
        variants=(replace(variant, program=program, copy_program=False, ask_to_stop=True),),
        mode=Mode.ALTERNATING,
        slice_ns=_SLICE_NS,
        executions=1,
        seed=0,
        ports=wish.ports,
        env_padding=False,
        counters=(),
    )


def _hurried(process: ProcessSpec, wish: TraceOptions) -> ProcessSpec:
    limits = [
        limit_ns for limit_ns in (process.deadline_ns, wish.deadline_ns) if limit_ns is not None
    ]
    return replace(process, deadline_ns=min(limits, default=None))


def _failure_of(done: Sequence[Trial]) -> str:
    failures = [failure.text for trial in done for failure in trial.failures]
    return f"the traced execution failed: {failures[0]}" if failures else ""


def first_few(paths: Iterable[str], most: int = _FEW) -> str:
    """`a, b and 3 more`: so many paths, and how many more there are."""
    paths = list(paths)
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more
