"""A tree built once, to see which programs there are and what they do; nothing of it is kept."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from ensign.builders.build_depends import require_dependencies
from ensign.builders.first_error import excerpt, first_error
from ensign.builders.inspection import ask_cmake, asked_of
from ensign.builders.open_tree import OpenedTree, opened_tree
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.revisions import obtain_sources
from ensign.builders.stage_runs import StageFailedError
from ensign.builders.systems.build_system import BUILD_FOLDER, Recognized, SuiteCommand, Target
from ensign.experiment.study_file import StudyFile
from ensign.host.files import remove_tree
from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.host.processes import read_tail
from ensign.host.tree_walk import passed_over, walk
from ensign.meter.followed_files import FollowedTime, read_followed
from ensign.model.builds import BuildEvent, OnEvent
from ensign.model.errors import CommandFailed, EnsignError, InputError
from ensign.model.placeholders import fill_all
from ensign.model.study_source import VENDORED
from ensign.proof.loaded_bytes import read_dynamic
from ensign.tools.init import build_options
from ensign.tools.init.attempts import Attempt, Executable, Sample, ranked
from ensign.tools.init.documented_commands import is_manual_of, plain_text
from ensign.tools.init.samples import content_of, given_name
from ensign.tools.init.search import LARGEST_BYTES, TRIAL_NS, TriedCommand

_SAMPLE_US = 1000
_TELLING_NS = 20 * 10**6
_MOST_CROWDED = 4.0
_HELP_NS = 2 * 10**9
_LARGEST_SAMPLE_BYTES = 1 << 20
_LARGEST_LOG_BYTES = 64 << 20
_LARGEST_TEXT_BYTES = 1 << 18
_MOST_TEXTS = 40
_MOST_FILES = 20_000
_LONGEST_SAID = 100
_TEXTS = re.compile(
    r"(^|/)(readme[^/]*|usage[^/]*|[^/]*\.([1-8]|md|txt|sh)|run-?tests?[^/]*)$", re.IGNORECASE
)
_IN_TESTS = re.compile(r"(^|/)(debian/)?tests?/[^/.]*$")
_SAYS_USAGE = re.compile(
    rb"^[ \t]*(usage|syntax)\b|\busage:|\btry [^\n]{0,80}--?help", re.IGNORECASE | re.MULTILINE
)
_MOST_ON_DEMAND = 12
_IN_BUILD = f"{BUILD_FOLDER}/"


@dataclass(frozen=True, slots=True)
class _Spent:
    """CPU time of a command, and what share of it was in code of the tree: of user time, of all.

    `elsewhere` is the file outside of the tree that had most of it.
    """

    cpu_ns: int
    share_of_user: float
    share_of_cpu: float
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class Exploration:
    """A built tree in its sandbox, for as long as it is there."""

    opened: OpenedTree
    recognized: Recognized
    meter: Path
    made: tuple[Target, ...]

    @property
    def source(self) -> Path:
        """The tree as it was before."""
        return self.opened.source

    def programs(self) -> tuple[Executable, ...]:
        """The executables that the build made."""
        return tuple(Executable(target.path) for target in self.made if target.kind == "program")

    def library_folders(self) -> tuple[str, ...]:
        """Folders of shared libraries of the build, as commands see them."""
        folders = {
            str(Path(self.opened.seen_as, library.path).parent) for library in self._libraries()
        }
        return tuple(sorted(folders))

    def _libraries(self) -> tuple[Target, ...]:
        return tuple(target for target in self.made if target.kind == "shared library")

    def libraries_of(self, program: Executable) -> tuple[str, ...]:
        """Shared libraries of the build that a program, or one of these, asks for by name."""
        by_name: dict[str, str] = {}
        tree = self.opened.tree
        for target in self._libraries():
            dynamic = read_dynamic(tree / target.path)
            if dynamic is not None:
                by_name.setdefault(dynamic.soname or target.name, target.path)
        libraries: dict[str, None] = {}
        pending = [program.path]
        while pending:
            dynamic = read_dynamic(tree / pending.pop())
            for needed in () if dynamic is None else dynamic.needed:
                library = by_name.get(needed)
                if library is not None and library not in libraries:
                    libraries[library] = None
                    pending.append(library)
        return tuple(libraries)

    def files(self) -> dict[str, int]:
        """Regular files of the source that are not too large to be read, with their sizes.

        Without crates that were fetched for its build: races run where these are not.
        """
        sizes: dict[str, int] = {}
        for item in walk(self.source, on_error=passed_over):
            if item.name.startswith(f"{VENDORED}/"):
                continue
            size = item.status.st_size
            if stat.S_ISREG(item.status.st_mode) and 0 < size <= _LARGEST_SAMPLE_BYTES:
                sizes[item.name] = size
            if len(sizes) >= _MOST_FILES:
                break
        return sizes

    def texts(self, files: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Texts of the project for its users, and the scripts of its tests, by their names."""
        chosen = [file for file in files if _TEXTS.search(file) or _IN_TESTS.search(file)]
        for name in sorted(chosen, key=lambda each: each.count("/"))[:_MOST_TEXTS]:
            with suppress(HostileFileError, OSError):
                text = read_foreign(self.source / name, _LARGEST_TEXT_BYTES)
                yield name, text.decode(errors="replace")

    def suite(self) -> tuple[tuple[SuiteCommand, ...], tuple[SuiteCommand, ...]]:
        """The benchmarks and tests that the build system lists."""
        try:
            inspected = asked_of(self.opened, self.recognized)
        except (HostileFileError, InputError):
            return (), ()
        return inspected.benchmarks, inspected.tests

    def more_options(self) -> tuple[str, ...]:
        """Options with which the build may make more programs."""
        built = self.opened.tree / BUILD_FOLDER

        def said(path: Path) -> bytes:
            with suppress(HostileFileError, OSError):
                return read_foreign(path, _LARGEST_SAMPLE_BYTES)
            return b""

        if self.recognized.system == "cmake":
            cache = said(built / "CMakeCache.txt").decode(errors="replace")
            return build_options.of_cmake_cache(cache)
        if self.recognized.system == "meson":
            return build_options.of_meson(said(built / "meson-info/intro-buildoptions.json"))
        return build_options.OF_CARGO_LIBRARY if self.recognized.system == "cargo" else ()

    def failed_quietly(self) -> CommandFailed | None:
        """The error of a build that ended well, by what it printed; None if it printed none."""
        output = read_tail(self.opened.runner.log, _LARGEST_LOG_BYTES)
        error = first_error(output, tree=self.opened.seen_as)
        if error is None:
            return None
        lines = "".join(f"\n  {line}" for line in excerpt(output, error))
        text = f"the project does not build here: no program was made: {error.said}"
        return CommandFailed(f"{text}{lines}")

    def with_more_programs(self) -> tuple[Exploration, Mapping[str, tuple[str, ...]]]:
        """With programs that are built on demand alone, such as tests; what to ask for, by path.

        As it was, and none, where there are none, or they do not build.
        """
        asked = self._on_demand()
        words = tuple(
            dict.fromkeys(word for target_words in asked.values() for word in target_words)
        )
        if not words:
            return self, {}
        before = ("--target",) if self.recognized.system == "cmake" else ()
        try:
            # The build's own command, as a study has it that names these targets.
            self.opened.run(((*self.opened.stage.commands[-1], *before, *words),))
        except StageFailedError:
            return self, {}
        made = tuple(target for target in self.opened.made() if target not in self.made)
        new = {
            target.path: asked.get(target.path) or words
            for target in made
            if target.kind == "program"
        }
        return replace(self, made=(*self.made, *made)), new

    def _on_demand(self) -> dict[str, tuple[str, ...]]:
        """Programs that were not built, by path, with the words that a build is told for each."""
        system, tree = self.recognized.system, self.opened.tree
        if system == "autotools" and not self.recognized.keys:
            return {"": ("check", "TESTS=")}
        if system not in ("cmake", "meson"):
            return {}
        try:
            targets = asked_of(self.opened, self.recognized).targets
        except (HostileFileError, InputError):
            return {}
        missing = {
            target.path: target.name if system == "cmake" else target.path.removeprefix(_IN_BUILD)
            for target in targets
            if target.kind == "program" and not _is_made(tree / target.path)
        }
        order = ranked([Executable(path) for path in missing], "")
        return {
            executable.path: (missing[executable.path],) for executable in order[:_MOST_ON_DEMAND]
        }

    def help_of(self, program: Executable) -> str:
        """A program's text on how it is used; empty where it says nothing."""
        for word in ("--help", "-h"):
            output = self._fresh("said")
            argv = (f"{self.opened.seen_as}/{program.path}", word)
            command = ("sh", "-c", 'exec "$@" 2>&1', "sh", *argv)
            self.opened.runner.run(command, _HELP_NS, stdout=output)
            text = _beginning(output).decode(errors="replace")
            if len(text.splitlines()) > 1:
                return text
        return ""

    def tried(self, attempt: Attempt, patience_ns: int = TRIAL_NS) -> TriedCommand:
        """One execution, looked at while it runs; a program that changes its input has failed."""
        sample = attempt.sample
        given = None if sample is None else self._laid_down(sample)
        before = None if given is None else given.read_bytes()
        runner = self.opened.runner
        temporary = runner.build_context.sandboxes.temporary_path
        log, output = (self._fresh(name) for name in ("followed", "said"))
        follower = (str(self.meter), "follow", "--log", f"{temporary}/followed")
        values = {
            "artifact": f"{self.opened.seen_as}/{attempt.program.path}",
            "artifact_dir": str(Path(self.opened.seen_as, attempt.program.path).parent),
            "input": "" if given is None else str(given.relative_to(self.opened.tree)),
            "tmp": f"{temporary}/{_folder_name(attempt)}",
        }
        (runner.sandbox.temporary / _folder_name(attempt)).mkdir(exist_ok=True)
        crowd = crowdedness()
        outcome = replace(runner, env={**runner.env, **dict(attempt.env)}).run(
            fill_all(attempt.command, values),
            round(patience_ns * min(_MOST_CROWDED, crowd)),
            stdin=given if attempt.reads_input else None,
            stdout=output,
            follower=(*follower, "--sample-us", str(_SAMPLE_US), "--"),
        )
        changed = given is not None and _content(given) != before
        spent, writes = self._spent(log)
        both_ns = outcome.user_ns + outcome.system_ns
        # The kernel tells user from system time by its ticks, of which short programs see none.
        of_user = outcome.user_ns / both_ns if both_ns > _TELLING_NS else 1.0
        answer = _beginning(output)
        asks = bool(_SAYS_USAGE.search(answer))
        how = "writes beside the source" if writes else outcome.describe()
        how = "changed its input" if changed else how
        return TriedCommand(
            attempt=attempt,
            ok=outcome.ok and not changed and not asks and not writes,
            user_ns=round(spent.cpu_ns * of_user),
            share_built=spent.share_of_user,
            share_of_cpu=spent.share_of_cpu,
            elsewhere=spent.elsewhere,
            wall_ns=outcome.wall_ns,
            how="says how it is used" if asks else how,
            said="" if asks else _first_line(outcome.tail, answer),
            changed_input=outcome.ok and changed,
            wrote_beside=outcome.ok and writes and not changed and not asks,
            crowded=crowd,
            met_deadline=outcome.reason == "deadline",
        )

    def written_by(self, attempt: Attempt) -> bytes:
        """Content of the output that an attempt names, or else prints; empty if it fails."""
        if not self.tried(attempt).ok:
            return b""
        folder = self.opened.sandbox.temporary
        if attempt.output:
            folder /= _folder_name(attempt)
        if folder.is_symlink():  # which leads out; whoever was run has ended
            return b""
        with suppress(HostileFileError, OSError):
            return read_foreign(
                folder / (PurePosixPath(attempt.output).name or "said"), LARGEST_BYTES
            )
        return b""

    def _spent(self, log: Path) -> tuple[_Spent, bool]:
        """Shares of a command's CPU time, and whether it wrote into the tree.

        In a race that would be the source folder, to which it may not write.
        """
        try:
            followed = read_followed(read_foreign(log, _LARGEST_LOG_BYTES))
        except (EnsignError, OSError):
            return _Spent(0, 0.0, 0.0), False
        log.unlink(missing_ok=True)
        inside = f"{self.opened.seen_as}/"
        built = [sample for sample in followed.samples if sample.path.startswith(inside)]
        elsewhere = {
            sample.path: sample.cpu_ns
            for sample in followed.samples
            if sample.path and not sample.path.startswith(inside)
        }

        def share(of: Callable[[FollowedTime], int]) -> float:
            return sum(map(of, built)) / max(1, sum(map(of, followed.samples)))

        spent = _Spent(
            followed.cpu_ns,
            share_of_user=share(lambda time: time.user_ns),
            share_of_cpu=share(lambda time: time.cpu_ns),
            elsewhere=max(elsewhere, key=elsewhere.__getitem__, default=""),
        )
        return spent, any(change.path.startswith(inside) for change in followed.written)

    def _laid_down(self, sample: Sample) -> Path:
        """The sample in the tree, as the commands are to read it."""
        target = self.opened.tree / given_name(sample)
        content = content_of(self.source, sample)
        # Whoever was run before may have put links there, which lead out.
        if not target.parent.resolve().is_relative_to(self.opened.tree.resolve()):
            raise CommandFailed(f"a program of this tree replaced the folder of {sample.path}")
        if target.is_symlink() or _content(target) != content:
            remove_tree(target)
            with target.open("xb") as file:
                file.write(content)
        return target

    def _fresh(self, name: str) -> Path:
        """A path in the temporary folder where nothing is, whatever programs left there."""
        path = self.opened.sandbox.temporary / name
        remove_tree(path)
        return path


@contextmanager
def explored(
    file: StudyFile, recognized: Recognized, ports: BuildPorts, on_event: OnEvent
) -> Iterator[Exploration]:
    """Build the baseline of a draft, without proof.

    CommandFailed with the lines that say why a build fails, InputError where a package's build
    dependencies are missing; other errors as `build_variants`.
    """
    baseline = file.variants[0]
    request = BuildRequest(file.study, file.path, (baseline,), baseline.name, update_lock=True)
    sources = obtain_sources(request, ports, on_event)
    with opened_tree(request, ports, sources, "init") as opened:
        if recognized.system == "debian":
            require_dependencies(opened.source, request, ports)
        on_event(BuildEvent("started", "a first build", 0.0, 0.0))
        try:
            opened.run(opened.stage.clean)
            if recognized.system == "cmake" and not file.study.build.in_source:
                ask_cmake(opened)
            opened.run(opened.stage.commands)
        except StageFailedError as failed:
            raise CommandFailed(_failure(failed, opened)) from None
        assert ports.meter is not None  # noqa: S101  # whoever looks has one
        exploration = Exploration(opened, recognized, ports.meter, opened.made())
        folders = ":".join(exploration.library_folders())
        env = {**opened.runner.env, **({"LD_LIBRARY_PATH": folders} if folders else {})}
        runner = replace(opened.runner, env=env)
        yield replace(exploration, opened=replace(opened, runner=runner))


def crowdedness() -> float:
    """Number of tasks for each CPU, by the load of the last minute; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _failure(failed: StageFailedError, opened: OpenedTree) -> str:
    """The cause of the failure, with its lines of the log: other jobs of make print on after it."""
    error = first_error(failed.output, tree=opened.seen_as)
    what = str(failed) if error is None else error.said
    lines = [f"  {line}" for line in excerpt(failed.output or read_tail(opened.runner.log), error)]
    way_out = [error.way_out] if error is not None and error.way_out else []
    text = [f"the project does not build here: {what}", *lines, *way_out]
    return "\n".join((*text, f"log: {opened.runner.log}"))


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 14)
    except OSError:
        return b""


def _first_line(tail: str, answer: bytes) -> str:
    """First line of a command, on its standard error if anything; `tail` is the log's."""
    errors = re.split(r"^\$ .*\n", tail, flags=re.MULTILINE)[-1]
    for text in (errors, answer.decode(errors="replace")):
        lines = (line.strip() for line in text.splitlines())
        first = next(filter(None, lines), "")
        if first:
            return first[:_LONGEST_SAID]
    return ""


def _folder_name(attempt: Attempt) -> str:
    """Name of its own folder for temporary files, in that of all."""
    return f"{abs(hash((attempt.program, attempt.words))):x}"


def _is_made(path: Path) -> bool:
    """True if it is more than the empty file that `ctest` was shown."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


class Usage:
    """An explored tree's view of its programs: files, texts, and help."""

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._by_program: dict[Executable, str] = {}

    @cached_property
    def files(self) -> dict[str, int]:
        """As `Exploration.files`."""
        return self._exploration.files()

    @cached_property
    def texts(self) -> dict[str, str]:
        """Texts of the project for its users, by the names of its files, without markup."""
        texts = self._exploration.texts(list(self.files))
        return {name: plain_text(text) for name, text in texts}

    def of(self, program: Executable) -> str:
        """A program's help, or its manual page; empty where there is neither."""
        if program not in self._by_program:
            manuals = (
                text for name, text in self.texts.items() if is_manual_of(name, program.name)
            )
            self._by_program[program] = self._exploration.help_of(program) or next(manuals, "")
        return self._by_program[program]
