"""Doubles of the ports: they answer as a test says, and keep what they were asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ensign.builders.training import TrainingRun
from ensign.host.processes import Outcome, ProcessRequest
from ensign.host.programs import Answer, Programs, natural
from ensign.meter.client import Json, Verb
from ensign.model.errors import Interrupted


@dataclass
class FakeClock:
    """Starts at `start_unix_s` and moves by `advance_ns` alone."""

    start_unix_s: float = 0.0
    elapsed_ns: int = 0

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return self.elapsed_ns

    def unix_s(self) -> float:
        """See `Clock.unix_s`."""
        return self.start_unix_s + self.elapsed_ns / 1e9

    def advance_ns(self, ns: int) -> None:
        """Let time pass."""
        self.elapsed_ns += ns


@dataclass
class FakeProcesses:
    """Answers by a function and keeps the requests for the test to read."""

    answer: Callable[[ProcessRequest], Outcome]
    requests: list[ProcessRequest] = field(default_factory=list)
    stopped: bool = False

    def run(self, request: ProcessRequest) -> Outcome:
        """See `Processes.run`."""
        if self.stopped:
            raise Interrupted("interrupted")
        self.requests.append(request)
        return self.answer(request)

    def interrupt(self) -> None:
        """See `Processes.interrupt`."""
        self.stopped = True


@dataclass(frozen=True, slots=True)
class FakePrograms:
    """Answers by name; a command is answered by the name of its program."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    known_packages: frozenset[str] = frozenset()

    def find(self, name: str) -> Path | None:
        """See `Programs.find`."""
        return Path("/usr/bin") / name if name in self.answers else None

    def matching(self, pattern: str) -> tuple[str, ...]:
        """See `Programs.matching`."""
        names = (name for name in self.answers if re.fullmatch(pattern, name))
        return tuple(sorted(names, key=natural))

    def ask(self, argv: Sequence[str]) -> Answer:
        """See `Programs.ask`."""
        name = Path(argv[0]).name
        return self.answers.get(name, Answer(success=False, line=f"{name}: not found"))

    def packages(self) -> frozenset[str]:
        """See `Programs.packages`."""
        return self.known_packages

    def not_tried(self, name: str, folders: Sequence[Path]) -> str:
        """See `Programs.not_tried`: all may be."""
        del name, folders
        return ""

    def apart_from(self, folders: Sequence[Path]) -> Programs:
        """See `Programs.apart_from`."""
        del folders
        return self


@dataclass
class FakeMeter:
    """Replays canned records, request by request, and keeps the requests for the test to read."""

    replies: Sequence[Iterable[Json]]
    requests: list[tuple[Verb, Json]] = field(default_factory=list)
    interrupted: bool = False
    ended: list[Json] = field(default_factory=list)

    def run(self, verb: Verb, request: Json) -> Generator[Json, None, None]:
        """The next canned reply; IndexError when there are no more."""
        self.requests.append((verb, request))
        yield from self.replies[len(self.requests) - 1]

    def interrupt(self, only: Json | None = None) -> None:
        """See `StoppableMeter.interrupt`; `ended` has the requests ended alone."""
        if only is None:
            self.interrupted = True
        else:
            self.ended.append(only)


@dataclass
class FakeTrainer:
    """Keeps the runs for the test to read, and answers each with the same text."""

    answer: str = ""
    runs: list[TrainingRun] = field(default_factory=list)

    def train(self, run: TrainingRun) -> str:
        """See `Trainer.train`."""
        self.runs.append(run)
        return self.answer
