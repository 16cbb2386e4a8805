"""A tree built once, to see which programs there are and what they do; nothing of it is kept."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.build import (
    build_context_of,
    find_toolchains,
    place_of,
    sandboxes_of,
)
from ensign.builders.build_context import Bounds, Runner
from ensign.builders.commands import with_jobs
from ensign.builders.plan import plan_builds
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import obtain_sources
from ensign.host.foreign_files import read_foreign
from ensign.host.tree_walk import passed_over, walk
from ensign.lab.init.attempts import INPUT, Attempt, Executable, Sample
from ensign.lab.study_file import StudyFile
from ensign.meter.following import read_followed
from ensign.model.build_events import BuildEvent, OnEvent
from ensign.model.errors import CommandFailed, EnsignError
from ensign.model.units import parse_duration_ns, parse_size_bytes
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.loaded_bytes import read_dynamic

# What an attempt reads if its sample is repeated; the study has it under the same name.
INPUT_FILE = "ensign-input"
_SAMPLE_US = 1000
_TRIAL_NS = 5 * 10**9
_LARGEST_SAMPLE_BYTES = 1 << 20
_LARGEST_LOG_BYTES = 64 << 20
_LEFT_OUT = ("conftest", "CMakeFiles", "CMakeTmp", ".git")
_LAST_LINES = 12


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """One execution of an attempt.

    `share_built` is the part of its CPU time that was in code that was built, `how` its end.
    """

    attempt: Attempt
    ok: bool
    user_ns: int
    share_built: float
    wall_ns: int
    how: str


@dataclass(frozen=True, slots=True)
class Exploration:
    """A built tree in its sandbox, for as long as it is there."""

    runner: Runner
    source: Path
    build_path: str
    meter: Path

    @property
    def tree(self) -> Path:
        """The tree as the host sees it."""
        return self.runner.sandbox.tree

    def programs(self) -> tuple[Executable, ...]:
        """The executables that the build made."""
        return tuple(Executable(name) for name in sorted(self._made()) if self._is_program(name))

    def library_folders(self) -> tuple[str, ...]:
        """Where shared libraries of the build are, as commands see it."""
        folders = {
            str(Path(self.build_path, name).parent) for name in self._made() if _is_library(name)
        }
        return tuple(sorted(folders))

    def libraries_of(self, program: Executable) -> tuple[str, ...]:
        """Shared libraries of the build that a program, or one of these, asks for by name."""
        by_name: dict[str, str] = {}
        for name in self._made():
            dynamic = read_dynamic(self.tree / name) if _is_library(name) else None
            if dynamic is not None:
                by_name.setdefault(dynamic.soname or Path(name).name, name)
        found: dict[str, None] = {}
        pending = [program.path]
        while pending:
            dynamic = read_dynamic(self.tree / pending.pop())
            for needed in () if dynamic is None else dynamic.needed:
                library = by_name.get(needed)
                if library is not None and library not in found:
                    found[library] = None
                    pending.append(library)
        return tuple(found)

    def samples(self, most: int) -> tuple[Sample, ...]:
        """Files of the source to be read: the largest of each kind, those for tests first."""
        best: dict[str, tuple[bool, int, str]] = {}
        for each in walk(self.source, on_error=passed_over):
            size = each.status.st_size
            if not stat.S_ISREG(each.status.st_mode) or not 0 < size <= _LARGEST_SAMPLE_BYTES:
                continue
            known = (_is_for_tests(each.name), size, each.name)
            suffix = Path(each.base).suffix
            best[suffix] = max(best.get(suffix, known), known)
        chosen = sorted(best.values(), reverse=True)[:most]
        return tuple(Sample(name, size) for _, size, name in chosen)

    def tried(self, attempt: Attempt) -> TriedCommand:
        """One execution, looked at while it runs; a program that changes its input has failed."""
        sample = attempt.sample
        given = None if sample is None else self._laid_down(sample)
        before = None if given is None else given.read_bytes()
        log = self.runner.sandbox.temporary / "followed"
        inside = f"{self.runner.build_context.sandboxes.temporary_path}/followed"
        follower = (
            *(str(self.meter), "follow", "--log", inside, "--sample-us", str(_SAMPLE_US), "--"),
        )
        name = "" if given is None else str(given.relative_to(self.tree))
        words = tuple(name if word == INPUT else word for word in attempt.words)
        outcome = self.runner.run(
            (f"{self.build_path}/{attempt.program.path}", *words),
            _TRIAL_NS,
            stdin=given if attempt.reads_input else None,
            stdout=self.runner.sandbox.temporary / "said",
            follower=follower,
        )
        changed = given is not None and _content(given) != before
        user_ns, share = self._spent(log)
        both_ns = max(1, outcome.user_ns + outcome.system_ns)
        how = "changed its input" if changed else outcome.describe()
        return TriedCommand(
            attempt=attempt,
            ok=outcome.ok and not changed,
            user_ns=round(user_ns * outcome.user_ns / both_ns),
            share_built=share,
            wall_ns=outcome.wall_ns,
            how=how,
        )

    def _spent(self, log: Path) -> tuple[int, float]:
        """CPU time of a followed command (ns), and what share of it was in the tree's code."""
        try:
            followed = read_followed(read_foreign(log, _LARGEST_LOG_BYTES))
        except (EnsignError, OSError):
            return 0, 0.0
        log.unlink(missing_ok=True)
        seen_ns = sum(each.cpu_ns for each in followed.samples)
        inside = f"{self.build_path}/"
        built = sum(each.cpu_ns for each in followed.samples if each.path.startswith(inside))
        return followed.cpu_ns, built / max(1, seen_ns)

    def _laid_down(self, sample: Sample) -> Path:
        """The sample in the tree, as the commands are to read it."""
        if sample.copies == 1:
            target = self.tree / sample.path
            if _content(target) is None:
                shutil.copyfile(self.source / sample.path, target)
            return target
        target = self.tree / INPUT_FILE
        target.write_bytes(content_of(self.source, sample))
        return target

    def _made(self) -> Iterator[str]:
        for each in walk(self.tree, on_error=passed_over):
            is_new = stat.S_ISREG(each.status.st_mode) and not (self.source / each.name).exists()
            if is_new and not any(part in each.name for part in _LEFT_OUT):
                yield each.name

    def _is_program(self, name: str) -> bool:
        path = self.tree / name
        if not os.access(path, os.X_OK) or _is_library(name):
            return False
        try:
            with elf_of(path) as elf:
                kinds = {str(each["p_type"]) for each in elf.iter_segments()}
                return elf["e_type"] == "ET_EXEC" or "PT_INTERP" in kinds
        except (DamagedFile, OSError):
            return False


@contextmanager
def explored(file: StudyFile, ports: BuildPorts, on_event: OnEvent) -> Iterator[Exploration]:
    """Build the baseline of a draft, without proof.

    CommandFailed with the last lines of a build that fails; other errors as `build_variants`.
    """
    baseline = file.variants[0]
    request = BuildRequest(file.study, file.path, (baseline,), baseline.name, update_lock=True)
    toolchains = find_toolchains(request, ports)
    sources = obtain_sources(request, ports, on_event)
    source = sources.first
    sandboxes = sandboxes_of(request, ports, toolchains)
    place = replace(place_of(sources.hashes, sandboxes, request, ports), recorder_path="")
    plan = plan_builds(request.study, request.variants, baseline.name, toolchains, place)
    stage = plan.stage(plan.stage_of[baseline.name])
    context = build_context_of(request, ports, sandboxes, place)
    deadline_ns = ports.clock.monotonic_ns() + parse_duration_ns(file.study.build.deadline)
    with sandboxes.sandbox() as sandbox:
        context.copy_pinned(source.tree, sandbox.tree, source.sha256)
        bounds = Bounds.of(sandbox, deadline_ns, parse_size_bytes(file.study.build.disk))
        log = sandbox.recorder.parent / "init.log"
        runner = Runner(context, sandbox, bounds, log, {**context.environment, **dict(stage.env)})
        on_event(BuildEvent("started", "a first build", 0.0, 0.0))
        for argv in with_jobs((*stage.clean, *stage.commands), ports.cores):
            outcome = runner.run(argv)
            if not outcome.ok:
                raise CommandFailed(_failure(argv, outcome.describe(), outcome.tail))
        assert ports.meter is not None  # noqa: S101  # whoever looks has one
        exploration = Exploration(runner, source.tree, sandboxes.build_path, ports.meter)
        folders = ":".join(exploration.library_folders())
        env = {**runner.env, **({"LD_LIBRARY_PATH": folders} if folders else {})}
        yield replace(exploration, runner=replace(runner, env=env))


def content_of(source: Path, sample: Sample) -> bytes:
    """What the copies of a sample are together."""
    return (source / sample.path).read_bytes() * sample.copies


def _failure(argv: Sequence[str], how: str, tail: str) -> str:
    lines = [line for line in tail.splitlines() if line.strip()][-_LAST_LINES:]
    said = "".join(f"\n  {line}" for line in lines)
    return f"the project does not build here: '{argv[0]}' {how}{said}"


def _is_for_tests(name: str) -> bool:
    return any(word in name.lower() for word in ("test", "example", "sample", "data", "bench"))


def _is_library(name: str) -> bool:
    base = Path(name).name
    return base.endswith(".so") or ".so." in base


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
