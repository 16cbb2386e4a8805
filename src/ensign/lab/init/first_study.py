"""From a source tree to a first study: look, build, try, write."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders.listed_tree import listing_of
from ensign.builders.request import BuildPorts
from ensign.builders.systems.build_system import Recognized
from ensign.builders.systems.registry import recognize
from ensign.host.cache import Cache
from ensign.host.files import write_atomically
from ensign.lab.init.attempts import Attempt, Executable, attempts, is_benchmark, ranked
from ensign.lab.init.draft import Draft, DraftWorkload, draft_text, study_name
from ensign.lab.init.exploration import (
    INPUT_FILE,
    Exploration,
    TriedCommand,
    content_of,
    explored,
)
from ensign.lab.init.search import LEAST_NS, LEAST_SHARE, chosen
from ensign.lab.ports import Ports
from ensign.lab.study.prepare import build_ports
from ensign.lab.study_file import parse_study
from ensign.model.build_events import OnEvent
from ensign.model.errors import InputError
from ensign.model.units import format_duration
from ensign.sources.obtain import lock_path
from ensign.toolchains.find import installed_compilers

_MOST_SAMPLES = 8
_MOST_PROGRAMS = 12
_TRYING_NS = 60 * 10**9
_PLACEHOLDER = "ensign-build/program"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user says of it; empty where ensign is to find out.

    `command` starts with the program's path in the built tree, or is `{artifact}` and its words.
    """

    folder: Path
    file: Path
    system: str = ""
    artifact: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class FirstStudy:
    """What was written, for people: the workload's command, what it took, and doubts."""

    file: Path
    system: str
    artifact: str
    command: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Who is told what is being done."""

    on_event: OnEvent
    show: Callable[[str], None]


def recognized_system(folder: Path, system: str = "") -> Recognized:
    """The build system of a tree, or the one of that name in it. InputError where there is none."""
    found = recognize(listing_of(folder))
    if system:
        found = tuple(each for each in found if each.system == system)
    if found:
        return found[0]
    what = f"no {system} build" if system else "no build system that ensign knows"
    raise InputError(
        f"{folder}: {what} is here (CMakeLists.txt, meson.build, configure, Makefile); name the "
        "folder that has it, or write [build] commands by hand: docs/tutorial/first-study.md"
    )


def first_study(wish: Wish, cache: Cache, ports: Ports, told: Callbacks) -> FirstStudy:
    """Write a study of a tree. InputError where nothing of it can be raced, with the way out."""
    system = recognized_system(wish.folder, wish.system)
    compilers = chosen_compilers(ports.env.get("PATH", ""))
    draft = Draft(
        name=study_name(wish.folder.resolve().name),
        system=system.system,
        artifact=_PLACEHOLDER,
        compilers=compilers,
        keys=system.keys,
        exclude=(INPUT_FILE,),
        notes=system.notes,
    )
    file = parse_study(_with_any_workload(draft), wish.file)
    build: BuildPorts = build_ports(file, cache, ports)
    with _no_lock_without_study(wish.file), explored(file, build, told.on_event) as exploration:
        programs = exploration.programs()
        if not programs:
            raise InputError(f"{wish.folder}: the build made no program that could be run")
        trial, count = _trial(wish, exploration, programs, build, told)
        if trial is None:
            raise InputError(_nothing_ran(wish, programs, count))
        libraries = exploration.libraries_of(trial.attempt.program)
        final = _final(replace(draft, runtime_files=libraries), trial)
        sample = trial.attempt.sample
        if sample is not None and sample.copies > 1:
            content = content_of(exploration.source, sample)
            write_atomically(wish.file.parent / INPUT_FILE, content)
        write_atomically(wish.file, draft_text(final, wish.file.name).encode())
    workload = final.workload
    assert workload is not None  # noqa: S101  # _final gives it one
    return FirstStudy(
        wish.file, final.system, final.artifact, shlex.join(workload.command), _doubts(trial)
    )


def chosen_compilers(path: str) -> tuple[str, ...]:
    """The newest GCC and the newest Clang on the search path, the default compiler's family first.

    InputError where there is neither.
    """
    found = installed_compilers(path)
    families = [[name for name in found if name.startswith(family)] for family in ("gcc", "clang")]
    chosen = tuple(names[-1] for names in families if names)
    if not chosen:
        raise InputError("no GCC and no Clang is installed; with Debian: apt-get install gcc")
    return chosen


def _with_any_workload(draft: Draft) -> str:
    any_workload = DraftWorkload("any", ("{artifact}",))
    return draft_text(replace(draft, workload=any_workload), "ensign.toml")


def _trial(
    wish: Wish,
    exploration: Exploration,
    programs: Sequence[Executable],
    ports: BuildPorts,
    told: Callbacks,
) -> tuple[TriedCommand | None, int]:
    end_ns = ports.clock.monotonic_ns() + _TRYING_NS

    def tried(attempt: Attempt) -> TriedCommand:
        told.show(f"trying {attempt.program.name} {shlex.join(attempt.words)}".rstrip())
        return exploration.tried(attempt)

    return chosen(
        _asked_for(wish, exploration, programs),
        tried,
        lambda: ports.clock.monotonic_ns() < end_ns,
    )


def _asked_for(
    wish: Wish, exploration: Exploration, programs: Sequence[Executable]
) -> Iterator[Attempt]:
    if wish.artifact:
        named = [each for each in programs if wish.artifact in (each.path, each.name)]
        if not named:
            there = ", ".join(each.path for each in programs[:_MOST_PROGRAMS])
            raise InputError(f"--artifact: the build makes no '{wish.artifact}', but {there}")
        programs = named
    order = ranked(programs, wish.folder.resolve().name)[:_MOST_PROGRAMS]
    if wish.command:
        for program in order[:1]:
            yield Attempt(program, tuple(shlex.split(wish.command))[1:])
        return
    samples = exploration.samples(_MOST_SAMPLES)
    for program in order:
        if is_benchmark(program):
            yield Attempt(program)
    for program in order:
        yield from attempts(program, samples)


def _final(draft: Draft, trial: TriedCommand) -> Draft:
    attempt = trial.attempt
    sample = attempt.sample
    given = ""
    if sample is not None:
        given = sample.path if sample.copies == 1 else INPUT_FILE
    seen = (
        f"Seen with the baseline: {format_duration(trial.user_ns)} of user time, "
        f"{trial.share_built:.0%} of the time in files of the build."
    )
    workload = DraftWorkload(
        name=study_name(attempt.program.name),
        command=("{artifact}", *attempt.words),
        input=given,
        comment=seen,
    )
    notes = (*draft.notes, *_doubts(trial))
    exclude = draft.exclude if given == INPUT_FILE else ()
    return replace(
        draft,
        artifact=attempt.program.path,
        workload=workload,
        notes=notes,
        exclude=exclude,
    )


def _doubts(trial: TriedCommand) -> tuple[str, ...]:
    found = []
    if trial.user_ns < LEAST_NS:
        found.append(
            f"The workload is short ({format_duration(trial.user_ns)} of user time): most of it "
            "may be the program's start. A longer one says more."
        )
    if trial.share_built < LEAST_SHARE:
        found.append(
            f"Only {trial.share_built:.0%} of the workload's time is in files of the build: flags "
            "can change no more than that."
        )
    return tuple(found)


def _nothing_ran(wish: Wish, programs: Sequence[Executable], count: int) -> str:
    names = ", ".join(each.path for each in programs[:4])
    return (
        f"{wish.folder} builds ({names}), but none of {count} commands that were tried ends well "
        "by itself; name one: ensign init --command 'PROGRAM WORDS…'"
    )


@contextmanager
def _no_lock_without_study(file: Path) -> Iterator[None]:
    """The lock that pins the source goes where no study comes of it."""
    lock = lock_path(file)
    before = lock.exists()
    try:
        yield
    finally:
        if not file.exists() and not before:
            lock.unlink(missing_ok=True)
