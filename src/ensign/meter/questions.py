"""Questions that the meter answers line by line, without running anything."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter, ValidationError

from ensign.host.machine import Processor, processor_of, read_cpuinfo
from ensign.host.programs import Bounded, run_bounded
from ensign.meter.client import ended_early, find_meter
from ensign.model.calls import AskedCall, Call, CommandLine, Output
from ensign.model.errors import DeadlineMet, InternalError

_WITHIN = Bounded(deadline_s=10.0, most_bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class MeterAbilities:
    """`freezer` is `cgroup` or `signal`, `obstacle` why there are no control groups (or empty).

    `counters` are the names that can be counted; `version` is the meter's.
    """

    version: str
    freezer: str
    obstacle: str
    counters: tuple[str, ...]


class ProbeLine(BaseModel):
    """The meter's own words."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    meter: str
    freezer: str
    obstacle: str | None = None
    counters: tuple[str, ...] = ()


def read_abilities(executable: Path) -> MeterAbilities:
    """Ask the meter. Errors as those of `said_by`."""
    return parse_abilities(said_by(executable, "probe"))


def said_by(executable: Path, verb: str) -> str:
    """The meter's facts of this machine. InternalError where it does not answer.

    CommandFailed where it is killed or does not end, OSError where the system refuses to start it.
    """
    answer = run_bounded((str(executable), verb), os.environ, _WITHIN, with_errors=False)
    if answer.was_ended:
        raise DeadlineMet(f"{answer.problem}; run it again")
    if answer.problem:
        raise InternalError(f"{executable} {verb}: {answer.problem}")
    if answer.status is not None and answer.status < 0:
        raise ended_early(answer.status)
    return answer.text


def parse_abilities(text: str) -> MeterAbilities:
    """The one JSON line of `ensign-meter probe`. InternalError where it is none. Pure."""
    try:
        line = ProbeLine.model_validate_json(text)
    except ValidationError:
        raise InternalError(f"'ensign-meter probe' said {text[:80]!r}; run 'make setup'") from None
    return MeterAbilities(line.meter, line.freezer, line.obstacle or "", line.counters)


class ProcessorLine(BaseModel):
    """The meter's own words."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    registers: Mapping[str, NonNegativeInt]


def read_processor() -> Processor:
    """This one; where there is no meter, by what Linux shows alone. Errors as `said_by`."""
    registers: Mapping[str, int] = {}
    with suppress(InternalError):
        registers = read_registers(find_meter())
    return processor_of(read_cpuinfo(), registers)


def read_registers(executable: Path) -> Mapping[str, int]:
    """Its registers of `cpuid` that show features; none but on x86-64."""
    return parse_registers(said_by(executable, "processor"))


def parse_registers(text: str) -> Mapping[str, int]:
    """The one JSON line of `ensign-meter processor`. InternalError where it is none. Pure."""
    try:
        return ProcessorLine.model_validate_json(text).registers
    except ValidationError:
        problem = f"'ensign-meter processor' said {text[:80]!r}"
        raise InternalError(f"{problem}; run 'make setup'") from None


_BOUNDS = Bounded(deadline_s=60.0, most_bytes=1 << 30)

Answer = TypeVar("Answer", bound=BaseModel)


def ask(
    executable: Path,
    about: Literal["check", "parse", "disassemble", "units", "locate"],
    questions: Sequence[Mapping[str, object]],
    answer: type[Answer],
) -> tuple[Answer, ...]:
    """One answer to each question. InternalError where the meter gives none.

    CommandFailed where it is killed or does not end, OSError where the system refuses to start it.
    """
    lines = "".join(f"{json.dumps(question)}\n" for question in questions)
    outcome = run_bounded(
        (str(executable), about), os.environ, _BOUNDS, lines.encode(), with_errors=False
    )
    if outcome.was_ended:
        raise DeadlineMet(f"{outcome.problem}; run it again")
    if outcome.status is not None and outcome.status < 0:
        raise ended_early(outcome.status)
    try:
        answers = tuple(answer.model_validate_json(line) for line in outcome.output.splitlines())
    except ValidationError as error:
        raise InternalError(f"{executable} {about}: {error}; run 'make setup'") from None
    if len(answers) != len(questions):
        why = outcome.problem or f"status {outcome.status}"
        raise InternalError(f"{executable} {about} did not answer ({why}); run 'make setup'")
    return answers


NO_INSTRUCTION = ".byte"


class MachineCode(NamedTuple):
    """Code of x86 that is loaded at an address; `bits` is 64 or 32."""

    bits: int
    address: int
    code: bytes


class Instruction(NamedTuple):
    """`mnemonic` has its prefixes, NO_INSTRUCTION what begins none; `operands` as Intel's."""

    address: int
    size_bytes: int
    mnemonic: str
    operands: str


class _Disassembled(BaseModel):
    instructions: tuple[Instruction, ...]


def disassembled(
    executable: Path, pieces: Iterable[MachineCode]
) -> tuple[tuple[Instruction, ...], ...]:
    """The instructions of each piece. Errors as `ask`."""
    questions = [{**piece._asdict(), "code": piece.code.hex()} for piece in pieces]
    answers = ask(executable, "disassemble", questions, _Disassembled) if questions else ()
    return tuple(answer.instructions for answer in answers)


class CompileUnit(NamedTuple):
    """A compile unit's facts of itself; empty where it says nothing.

    `split`: the rest of it is in a file of its own (`-gsplit-dwarf`), and so is the producer.
    """

    producer: str = ""
    name: str = ""
    folder: str = ""
    language: int | None = None
    split: bool = False


class _Unit(BaseModel):
    producer: int
    name: int
    folder: int
    language: int | None
    split: bool


class _Units(BaseModel):
    texts: tuple[str, ...]
    units: tuple[_Unit, ...]
    damaged: str | None


def compile_units(executable: Path, source: Path | bytes) -> tuple[CompileUnit, ...] | str:
    """Those of a program, a library or an object, or of the content of one.

    A text where they cannot be read: why. Errors as `ask`.
    """
    of_path = isinstance(source, Path)
    data = os.fsencode(source.absolute()) if isinstance(source, Path) else source
    question = {"path" if of_path else "content": data.hex()}
    (answer,) = ask(executable, "units", [question], _Units)
    if answer.damaged is not None:
        return answer.damaged
    texts = answer.texts
    return tuple(
        CompileUnit(texts[u.producer], texts[u.name], texts[u.folder], u.language, u.split)
        for u in answer.units
    )


class Place(NamedTuple):
    """What lies at a place of a file: the function that has a symbol, and where that begins.

    `start` is an address, `within` is how far into the function the place is, `size` that of its
    code (bytes). `inlined` are the functions that the debug information has there, the innermost
    first, with `file` and `line` of that one; `unit` is the source that was compiled. What is
    not known is empty, or None.
    """

    function: str = ""
    start: int | None = None
    within: int | None = None
    size: int | None = None
    inlined: tuple[str, ...] = ()
    file: str = ""
    line: int | None = None
    unit: str = ""


class _Place(BaseModel):
    function: int | None
    start: int | None
    within: int | None
    size: int | None
    inlined: tuple[int, ...]
    file: int | None
    line: int | None
    unit: int | None


class _Places(BaseModel):
    texts: tuple[str, ...]
    places: tuple[_Place, ...]
    damaged: str | None


def located(
    executable: Path, asked: Mapping[Path, Sequence[int]]
) -> Mapping[Path, tuple[Place, ...]]:
    """What lies at the offsets in each file; nothing for one that is no program. Errors as `ask`.

    Its debug information may be in a file of its own, where the program names that.
    """
    questions = [
        {"path": os.fsencode(path.absolute()).hex(), "places": list(offsets)}
        for path, offsets in asked.items()
    ]
    answers = ask(executable, "locate", questions, _Places)
    return {path: tuple(_places(answer)) for path, answer in zip(asked, answers, strict=True)}


def _places(answer: _Places) -> Iterator[Place]:
    def text(place: int | None) -> str:
        return "" if place is None else answer.texts[place]

    for each in answer.places:
        code = (each.start, each.within, each.size)
        inlined = tuple(map(text, each.inlined))
        unit = os.path.normpath(text(each.unit)) if each.unit is not None else ""
        yield Place(text(each.function), *code, inlined, text(each.file), each.line, unit)


_LINE = TypeAdapter(CommandLine)
_NO_LINE = CommandLine()


class _Parsed(BaseModel):
    line: CommandLine | None
    outputs: tuple[str, ...]


def command_line(said: object) -> CommandLine:
    """The line of a recorded call; one that says nothing where it has none. ValueError."""
    return _NO_LINE if said is None else _LINE.validate_python(said)


def calls_of(executable: Path, asked: Iterable[AskedCall]) -> tuple[Call, ...]:
    """Calls as if they had been recorded when they succeeded, without hashes of what they wrote.

    InternalError where the meter does not answer.
    """
    every = tuple(asked)
    questions = [{"tool": call.tool, "arguments": call.argv[1:]} for call in every]
    answers = ask(executable, "parse", questions, _Parsed)
    return tuple(map(_call, every, answers))


def _call(asked: AskedCall, answer: _Parsed) -> Call:
    # What archivers write is known by what is in it, which nobody saw here.
    names: Sequence[str] = () if answer.line is None else answer.outputs
    paths = (os.path.normpath(str(PurePosixPath(asked.cwd) / name)) for name in names)
    return Call(
        tool=asked.tool,
        program=asked.argv[0],
        argv=asked.argv,
        ran=asked.argv,
        cwd=asked.cwd,
        started_unix_ns=0,
        wall_ns=0,
        exit=0,
        outputs=tuple(Output(path, "", 0) for path in paths),
        line=answer.line or _NO_LINE,
    )
