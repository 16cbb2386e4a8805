"""Commands that may be a workload of a program, the most promising first. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

_BENCHMARK = re.compile(r"bench|perf(?!ect|orm\b)|speed|timing", re.IGNORECASE)
_TEST = re.compile(r"(^|[_\-./])(unit)?tests?([_\-./]|$)|^test|test$|example|fuzz", re.IGNORECASE)
# What many programs call a benchmark of their own.
_OWN_BENCHMARKS = (("-b",), ("--benchmark",), ("bench",), ("speed",))
INPUT = "{input}"


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
    """A file of the source that programs may read: `copies` of it one after the other, if not 1."""

    path: str
    size_bytes: int
    copies: int = 1

    @property
    def total_bytes(self) -> int:
        """The size of what is read."""
        return self.size_bytes * self.copies


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command: words after the program, where `{input}` is the sample; else that is its input."""

    program: Executable
    words: tuple[str, ...] = ()
    sample: Sample | None = None

    @property
    def reads_input(self) -> bool:
        """Whether its standard input is the sample."""
        return self.sample is not None and INPUT not in self.words

    def times(self, factor: int) -> Attempt | None:
        """The same on so many copies of its sample; None where it has none."""
        if self.sample is None:
            return None
        copies = self.sample.copies * factor
        return replace(self, sample=replace(self.sample, copies=copies))


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
    """Whether it is called one."""
    return _BENCHMARK.search(program.path) is not None


def attempts(program: Executable, samples: Sequence[Sample]) -> Iterator[Attempt]:
    """What to try with a program, in this order."""
    alone = Attempt(program)
    if is_benchmark(program) or _TEST.search(program.path):
        yield alone
    for sample in samples:
        yield Attempt(program, (), sample)
        yield Attempt(program, ("-c", INPUT), sample)
        yield Attempt(program, (INPUT,), sample)
    if not (is_benchmark(program) or _TEST.search(program.path)):
        yield alone
    for words in _OWN_BENCHMARKS:
        yield Attempt(program, words)
