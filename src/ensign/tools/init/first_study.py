"""From a source tree to a first study: look, build, try, write."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from ensign.builders.request import BuildPorts
from ensign.builders.systems.build_system import Recognized
from ensign.builders.systems.debian import RULES as DEBIAN_RULES
from ensign.builders.systems.registry import listing_of, recognize
from ensign.experiment.ports import Ports
from ensign.host.cache import Cache
from ensign.host.files import write_atomically
from ensign.model.errors import InputError
from ensign.model.units import format_duration
from ensign.sources.obtain import lock_path
from ensign.toolchains.find import installed_compilers
from ensign.tools.init.attempts import (
    INPUT,
    Attempt,
    Executable,
    Sample,
    attempts,
    fitting,
    is_benchmark,
    is_test,
    ranked,
    suite_attempts,
)
from ensign.tools.init.documented_commands import (
    Shown,
    choices_of,
    options_of,
    shown_attempts,
    shown_commands,
)
from ensign.tools.init.doubts import doubts, nothing_ran, nothing_works
from ensign.tools.init.draft import Draft, DraftWorkload, draft_text, study_name
from ensign.tools.init.exploration import Exploration, Usage, crowdedness
from ensign.tools.init.first_build import Building, Callbacks, explored_with_programs
from ensign.tools.init.made_samples import formats_of_name, is_made_whole, made_sample, made_samples
from ensign.tools.init.roundtrip import undoing_of, ways_back, writers, written_sample
from ensign.tools.init.samples import INPUT_FILE, content_of, given_name, is_for_tests, samples_of
from ensign.tools.init.search import (
    LEAST_OF_ANY_USE,
    LEAST_SHARE,
    LONG_TRIAL_NS,
    TriedCommand,
    better,
    budget_s,
    chosen,
    too_long,
    will_do,
)

_MOST_SAMPLES = 8
_MOST_PROGRAMS = 12
_MOST_SHOWN = 12
_MOST_MADE = 3
_MOST_FOR_TESTS = 3
_MOST_ONANYTHING = 3
ANYTHING: tuple[str, ...] = ("txt", "dat", "c", "bin")
_TRYING_NS = 75 * 10**9
_TRYING_WRITTEN_NS = 90 * 10**9
_TRYING_TESTS_NS = 105 * 10**9
_TRYING_MORE_NS = 30 * 10**9
# On a busy machine more is given, but somebody waits.
_MOST_SLOWER = 2.0
_PLACEHOLDER = "ensign-build/program"


@dataclass(frozen=True, slots=True)
class InitRequest:
    """The user's wishes; empty where ensign is to find out.

    `command` starts with the program's path in the built tree, or is `{artifact}` and its words.
    """

    folder: Path
    file: Path
    system: str = ""
    artifact: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class FirstStudy:
    """The written study, for people: the workload's command, what it took, and doubts."""

    file: Path
    system: str
    artifact: str
    command: str
    notes: tuple[str, ...]


def recognized_systems(folder: Path, system: str = "") -> tuple[Recognized, ...]:
    """The build systems of a tree, the one to prefer first; or the one of that name.

    InputError where there is none.
    """
    systems = recognize(listing_of(folder))
    if system:
        systems = tuple(recognized for recognized in systems if recognized.system == system)
    if systems:
        return systems
    what = f"no {system} build" if system else "no build system that ensign knows"
    raise InputError(
        f"{folder}: {what} is here (CMakeLists.txt, meson.build, configure, Makefile); name the "
        "folder that has it, or write [build] commands by hand: docs/tutorial/first-study.md"
    )


def first_study(wish: InitRequest, cache: Cache, ports: Ports, told: Callbacks) -> FirstStudy:
    """Write a study of a tree. InputError where nothing of it can be raced, with the way out."""
    path = ports.env.get("PATH", "")
    systems = recognized_systems(wish.folder, wish.system)
    drafts = [(_draft(wish.folder, system, path), system) for system in systems]
    with (
        _no_lock_without_study(wish.file),
        explored_with_programs(drafts, wish.file, Building(cache, ports, told)) as built,
    ):
        draft, exploration = built.draft, built.exploration
        programs = exploration.programs()
        found_trial = _trial(wish, exploration, programs, built.ports, told)
        trial = found_trial.best
        if trial is None:
            raise InputError(nothing_ran(wish.folder, wish.command, programs, found_trial.failures))
        if not wish.command and trial.share_of_cpu < LEAST_OF_ANY_USE:
            raise InputError(nothing_works(wish.folder, trial))
        if found_trial.targets:
            draft = replace(draft, keys={**draft.keys, "targets": ["all", *found_trial.targets]})
        libraries = exploration.libraries_of(trial.attempt.program)
        final = _final(replace(draft, runtime_files=libraries), trial)
        sample = trial.attempt.sample
        if sample is not None and not sample.is_file:
            content = content_of(exploration.source, sample)
            write_atomically(wish.file.parent / given_name(sample), content)
        write_atomically(wish.file, draft_text(final, wish.file.name).encode())
    workload = final.workload
    assert workload is not None  # noqa: S101  # _final gives it one
    return FirstStudy(
        wish.file, final.system, final.artifact, shlex.join(workload.command), doubts(trial)
    )


def _draft(folder: Path, system: Recognized, path: str) -> Draft:
    return Draft(
        name=study_name(folder.resolve().name),
        system=system.system,
        artifact=_PLACEHOLDER,
        compilers=chosen_compilers(path, system.system),
        keys=system.keys,
        exclude=(f"{INPUT_FILE}*",),
        notes=(*system.notes, *_of_debian(folder, system)),
    )


def _of_debian(folder: Path, system: Recognized) -> tuple[str, ...]:
    if system.system == "debian" or not (folder / DEBIAN_RULES).is_file():
        return ()
    note = (
        'This is a Debian source tree, built here by its own build system; system = "debian" '
        "builds it as the package is (docs/how-to/debian.md)."
    )
    return (note,)


def chosen_compilers(path: str, system: str) -> tuple[str, ...]:
    """The newest GCC and the newest Clang on the search path, the default compiler's family first.

    For Cargo it is rustc. InputError where there is none.
    """
    if system == "cargo":
        return ("rustc",)
    compilers = installed_compilers(path)
    families = [
        [name for name in compilers if name.startswith(family)] for family in ("gcc", "clang")
    ]
    chosen = tuple(names[-1] for names in families if names)
    if not chosen:
        raise InputError("no GCC and no Clang is installed; with Debian: apt-get install gcc")
    return chosen


@dataclass(frozen=True, slots=True)
class _Found:
    """The best command, if any ran; how others ended; what its build must be told for it."""

    best: TriedCommand | None
    failures: tuple[TriedCommand, ...]
    targets: tuple[str, ...] = ()


def _trial(
    wish: InitRequest,
    exploration: Exploration,
    programs: Sequence[Executable],
    ports: BuildPorts,
    told: Callbacks,
) -> _Found:
    begun_ns = ports.clock.monotonic_ns()
    slower = min(_MOST_SLOWER, crowdedness())

    def within(limit_ns: int) -> Callable[[], bool]:
        return lambda: ports.clock.monotonic_ns() < begun_ns + limit_ns * slower

    def tried(attempt: Attempt) -> TriedCommand:
        told.show(f"trying {attempt.program.name} {shlex.join(attempt.words)}".rstrip())
        return exploration.tried(attempt)

    order = _in_order(wish, programs)
    if wish.command:
        named = Attempt(order[0], tuple(shlex.split(wish.command))[1:])
        asked = tried(named)  # as it is, whatever it takes
        return _Found(asked if asked.ok else None, (asked,))
    failures: list[TriedCommand] = []
    best: TriedCommand | None = None
    ran: list[TriedCommand] = []
    usage = Usage(exploration)
    for phase, limit_ns in (
        (_of_programs(exploration, usage, order), _TRYING_NS),
        (_of_what_was_written(exploration, usage, ran), _TRYING_WRITTEN_NS),
        (_of_tests(exploration, order), _TRYING_TESTS_NS),
    ):
        searched = chosen(phase, tried, within(limit_ns))
        ran += searched.ran
        failures += searched.failures
        best = better(best, searched.best)
        if best is not None and will_do(best):
            return _Found(best, tuple(failures))
    if best is None or best.share_of_cpu < LEAST_OF_ANY_USE:
        for attempt in too_long(failures):
            told.show(f"trying {attempt.program.name} for longer")
            again = exploration.tried(attempt, LONG_TRIAL_NS)
            if again.ok and again.share_built >= LEAST_SHARE:
                return _Found(again, tuple(failures))
    more, targets = exploration.with_more_programs()
    begun_ns = ports.clock.monotonic_ns()
    new = _wished(wish, [program for program in more.programs() if program.path in targets])
    if not new:
        return _Found(best, tuple(failures))
    searched = chosen(_of_suite(more, new), tried, within(_TRYING_MORE_NS))
    best = better(best, searched.best)
    words = () if best is None else targets.get(best.attempt.program.path, ())
    return _Found(best, (*failures, *searched.failures), words)


def _in_order(wish: InitRequest, programs: Sequence[Executable]) -> list[Executable]:
    named = _wished(wish, programs)
    if wish.artifact and not named:
        there = ", ".join(program.path for program in programs[:_MOST_PROGRAMS])
        raise InputError(f"--artifact: the build makes no '{wish.artifact}', but {there}")
    return named


def _wished(wish: InitRequest, programs: Sequence[Executable]) -> list[Executable]:
    """Those that the user may mean, in the order in which they are tried."""
    wanted = [program for program in programs if wish.artifact in ("", program.path, program.name)]
    return ranked(wanted, wish.folder.resolve().name)


def _of_programs(
    exploration: Exploration, usage: Usage, order: Sequence[Executable]
) -> Iterator[Attempt]:
    """Benchmarks, then what programs show of themselves, then what can be tried of any program."""
    benchmarks, _ = exploration.suite()
    yield from suite_attempts(benchmarks, order)
    for program in order:
        if is_benchmark(program):
            yield Attempt(program)
    files, texts = usage.files, usage.texts.values()
    samples = samples_of(files, _MOST_SAMPLES)
    every = [Sample(name, size) for name, size in sorted(files.items(), key=lambda each: -each[1])]
    for program in _users_own(order)[:_MOST_PROGRAMS]:
        help_text = usage.of(program)
        of_name = " ".join(f".{suffix}" for suffix in formats_of_name(program.name))
        best = _to_read(samples, f"{program.name} {of_name} {help_text}")
        shown = [
            command for text in (help_text, *texts) for command in _shown(text, program, files)
        ]
        for shown_command in list(dict.fromkeys(shown))[:_MOST_SHOWN]:
            yield from shown_attempts(shown_command, program, best, every)
        yield from attempts(program, best, options_of(help_text), choices_of(help_text))
    yield from _on_anything(order)


def _of_what_was_written(
    exploration: Exploration, usage: Usage, ran: Sequence[TriedCommand]
) -> Iterator[Attempt]:
    """Output of commands that ran, given back to their programs, the other way."""
    for writer in writers(ran):
        help_text = usage.of(writer.program)
        undoing = undoing_of(options_of(help_text), choices_of(help_text))
        content = exploration.written_by(writer) if undoing else b""
        if content:
            yield from ways_back(writer, undoing, written_sample(writer, content))


def _to_read(samples: Sequence[Sample], text: str) -> list[Sample]:
    """Files of the tree that a text names, others for tests, made ones, and the rest of the tree.

    Made are those that it names, and those of which the tree has some to read.
    """
    named, others = fitting(samples, text)
    kinds = " ".join(sample.suffix for sample in (*named, *others) if is_made_whole(sample.suffix))
    for_tests = [sample for sample in others if is_for_tests(sample.path)][:_MOST_FOR_TESTS]
    rest = [other for other in others if other not in for_tests]
    return [*named, *for_tests, *made_samples(f"{text} {kinds}", _MOST_MADE), *rest]


def _users_own(order: Sequence[Executable]) -> Sequence[Executable]:
    """Those that are no tests; all where there is nothing else."""
    return [program for program in order if not is_test(program)] or order


def _on_anything(order: Sequence[Executable]) -> Iterator[Attempt]:
    """Made files for programs that do not say what they read."""
    for program in _users_own(order)[:_MOST_ONANYTHING]:
        for suffix, words in product(ANYTHING, ((), (INPUT,))):
            yield Attempt(program, words, made_sample(suffix))


def _shown(text: str, program: Executable, files: Mapping[str, int]) -> list[Shown]:
    return shown_commands(text, program.name, files)


def _of_suite(exploration: Exploration, order: Sequence[Executable]) -> Iterator[Attempt]:
    """Commands of these programs that the build system lists, then each by itself."""
    benchmarks, tests = exploration.suite()
    yield from suite_attempts((*benchmarks, *tests), order)
    yield from map(Attempt, order)


def _of_tests(exploration: Exploration, order: Sequence[Executable]) -> Iterator[Attempt]:
    _, tests = exploration.suite()
    yield from suite_attempts(tests, order)
    for program in [executable for executable in order if is_test(executable)][:_MOST_PROGRAMS]:
        yield Attempt(program)


def _final(draft: Draft, trial: TriedCommand) -> Draft:
    attempt = trial.attempt
    sample = attempt.sample
    given = ""
    if sample is not None:
        given = given_name(sample)
    seen = (
        f"Seen with the baseline: {format_duration(trial.user_ns)} of user time, "
        f"{trial.share_built:.0%} of it in files of the build."
    )
    workload = DraftWorkload(
        name=study_name(attempt.program.name),
        command=attempt.command,
        input=given,
        env=attempt.env,
        comment=seen,
    )
    notes = (*draft.notes, *doubts(trial))
    return replace(
        draft,
        artifact=attempt.program.path,
        workload=workload,
        notes=notes,
        budget=f"{budget_s(trial)}s",
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
