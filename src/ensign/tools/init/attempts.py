"""Commands that may be a workload of a program, the most promising first. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import PurePosixPath

from ensign.builders.systems.build_system import BUILD_FOLDER, SuiteCommand

_BENCHMARK = re.compile(r"bench|perf(?!ect|orm\b)|speed|timing", re.IGNORECASE)
_TEST = re.compile(r"(^|[_\-./])(unit)?tests?([_\-./]|$)|^test|tests?$|example|fuzz", re.IGNORECASE)
_NAME = re.compile(r"\{([A-Za-z][A-Za-z0-9_.+-]*)\}")
# What many programs call a benchmark of their own.
_OWN_BENCHMARKS = (("-b",), ("--benchmark",), ("bench",), ("speed",))
INPUT = "{input}"
OUTPUT = "{tmp}/output"
# A copy of the sample, for programs that change the file that they are given.
COPY = "{tmp}/copy"
# In place of a number that an option takes.
_OURS = (INPUT, OUTPUT, COPY)
_MOST_OPTIONS = 16
_SAMPLES_OF_OPTIONS = 2


@dataclass(frozen=True, slots=True)
class Executable:
    """An executable that was built; `path` is relative to the source folder."""

    path: str

    @property
    def name(self) -> str:
        """Its name, without what libtool puts before it."""
        return PurePosixPath(self.path).name.removeprefix("lt-")


@dataclass(frozen=True, slots=True)
class Sample:
    """Input of programs: a file of the source, this `content`, or a format that is `made`.

    Of content that a command wrote, `origin` says which one, for people.
    `copies` of it one after the other, if not 1; of what is made, so many times as much of it.
    """

    path: str
    size_bytes: int
    copies: int = 1
    content: bytes = field(default=b"", repr=False)
    origin: str = ""
    made: str = ""

    @property
    def total_bytes(self) -> int:
        """The size of what is read."""
        return self.size_bytes * self.copies

    @property
    def suffix(self) -> str:
        """Ending of its name, such as `.json`."""
        return PurePosixPath(self.path).suffix

    @property
    def is_file(self) -> bool:
        """True if it is a file of the source as it is there."""
        return self.copies == 1 and not self.content and not self.made


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command: words after the program, where `{input}` is the sample; else that is its input.

    `repeat` is how often the program is run, by a shell; `in_tmp` says that its folder is `{tmp}`.
    """

    program: Executable
    words: tuple[str, ...] = ()
    sample: Sample | None = None
    env: tuple[tuple[str, str], ...] = ()
    repeat: int = 1
    in_tmp: bool = False

    @property
    def reads_input(self) -> bool:
        """True if its standard input is the sample."""
        return self.sample is not None and not any(
            word.startswith((INPUT, COPY)) for word in self.words
        )

    @property
    def takes_files(self) -> bool:
        """True if the sample is named in its words."""
        return self.sample is not None and not self.reads_input

    @property
    def output(self) -> str:
        """The word that names what it writes; "" where it has none."""
        return self._beginning_with(OUTPUT)

    @property
    def copy(self) -> str:
        """The word that names a copy of its sample, which it changes; "" where it has none."""
        return self._beginning_with(COPY)

    def _beginning_with(self, placeholder: str) -> str:
        return next((word for word in self.words if word.startswith(placeholder)), "")

    @property
    def command(self) -> tuple[str, ...]:
        """As a study has it; `input` is the sample's file."""
        words = tuple(map(_as_it_is, self.words))
        copied = self.copy
        if self.repeat == 1 and not copied and not self.in_tmp:
            return ("{artifact}", *words)
        text = " ".join(_quoted(word) for word in ("{artifact}", *words))
        if self.reads_input:
            text += f' < "{INPUT}"'
        if copied:
            text = f'cp "{INPUT}" "{copied}" && {text}'
        if self.repeat > 1:
            text = f"for i in $(seq {self.repeat}); do {text} || exit; done"
        if self.in_tmp:
            text = f'cd "{{tmp}}" && {text}'
        return ("sh", "-c", text)

    @property
    def said(self) -> str:
        """The program's name and its words, for people."""
        return " ".join((self.program.name, *self.words))

    @property
    def total_bytes(self) -> int:
        """The size of what it reads."""
        return 0 if self.sample is None else self.sample.total_bytes

    def times(self, factor: int) -> Attempt | None:
        """The same on so many copies of its sample; None where it has none."""
        if self.sample is None:
            return None
        copies = self.sample.copies * factor
        return replace(self, sample=replace(self.sample, copies=copies))

    def on_a_copy(self) -> Attempt:
        """The same on a copy of its sample, made before each run."""
        assert self.sample is not None  # noqa: S101  # asked for where there is one
        copy = COPY + self.sample.suffix
        return replace(self, words=tuple(copy if word == INPUT else word for word in self.words))


def _as_it_is(word: str) -> str:
    """A word of a program as a study has it, where names in braces are placeholders."""
    return word if word.startswith(_OURS) else _NAME.sub(r"{{\1}}", word)


def _quoted(word: str) -> str:
    """A word of the shell; what a placeholder stands for may have blanks."""
    ours = word == "{artifact}" or word.startswith(_OURS)
    return f'"{word}"' if ours else shlex.quote(word)


def ranked(programs: Sequence[Executable], project: str) -> list[Executable]:
    """Benchmarks first, then what is called like the project, other programs, and tests."""

    def rank(program: Executable) -> tuple[int, int, str]:
        if _BENCHMARK.search(program.path):
            kind = 0
        elif _TEST.search(program.path):
            kind = 3
        else:
            kind = 1 if program.name in project or project in program.name else 2
        return kind, program.path.count("/"), program.path

    return sorted(programs, key=rank)


def is_benchmark(program: Executable) -> bool:
    """True if it is called one."""
    return _BENCHMARK.search(program.path) is not None


def is_test(program: Executable) -> bool:
    """True if it is called a test or an example."""
    return _TEST.search(program.path) is not None and not is_benchmark(program)


def suite_attempts(
    suite: Sequence[SuiteCommand], programs: Sequence[Executable]
) -> Iterator[Attempt]:
    """Tests or benchmarks that a build system lists, those that run a program of the build.

    A study runs them in the source folder, without other files that the build made.
    """
    by_path = {executable.path: executable for executable in programs}
    for command in suite:
        program = by_path.get(command.argv[0]) if command.argv else None
        made = any(f"{BUILD_FOLDER}/" in word for word in command.argv[1:])
        if program is not None and not made:
            yield Attempt(program, command.argv[1:], env=command.env)


def fitting(samples: Sequence[Sample], text: str) -> tuple[list[Sample], list[Sample]]:
    """Samples whose kind of file a text names, such as a program's help, and the others."""

    def named(sample: Sample) -> bool:
        kind = re.escape(sample.suffix.removeprefix("."))
        return (
            bool(kind) and re.search(rf"(?<![a-z]){kind}(?![a-z])", text, re.IGNORECASE) is not None
        )

    return list(filter(named, samples)), [sample for sample in samples if not named(sample)]


def attempts(
    program: Executable,
    samples: Sequence[Sample],
    options: Iterable[str] = (),
    choices: Sequence[str] = (),
) -> Iterator[Attempt]:
    """Attempts with a program, in this order.

    `options` are those that its help names, `choices` first words that it offers.
    """
    alone = Attempt(program)
    by_itself = is_benchmark(program) or is_test(program)
    known = tuple(dict.fromkeys(options))
    if by_itself:
        yield alone
    endings = ((), (INPUT,), (INPUT, OUTPUT))
    for sample, choice, more in product(samples[:_SAMPLES_OF_OPTIONS], choices, endings):
        yield Attempt(program, (choice, *more), sample)
    for sample in samples:
        yield from (Attempt(program, words, sample) for words in _forms(known))
    if not by_itself:
        yield alone
    for words in _OWN_BENCHMARKS:
        if not known or words[0] in known or not words[0].startswith("-"):
            yield Attempt(program, words)
    for sample, option in product(samples[:_SAMPLES_OF_OPTIONS], known[:_MOST_OPTIONS]):
        yield Attempt(program, (option, INPUT), sample)


def _forms(options: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Ways to tell a program what to read; those that the help does not name only without help."""
    yield ()
    yield (INPUT,)
    if "-c" in options or not options:
        yield ("-c", INPUT)
    reading = next((option for option in ("-i", "--input", "--in", "-f") if option in options), "")
    writing = next((option for option in ("-o", "--output", "--out") if option in options), "")
    if reading:
        yield (reading, INPUT)
    if reading and writing:
        yield (reading, INPUT, writing, OUTPUT)
    if writing:
        yield (writing, OUTPUT, INPUT)
    yield (INPUT, OUTPUT)
