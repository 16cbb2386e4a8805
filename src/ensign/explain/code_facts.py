"""What differs in the code of a function: its size, its vectors, its hottest loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ensign.host.foreign_files import HostileFileError
from ensign.meter.client import find_meter
from ensign.meter.questions import Instruction, MachineCode, disassembled
from ensign.model.results import CodeLine
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.instructions import BITS
from ensign.proof.sampled_code import Loop, hottest_loop, loops_in

_LARGEST_BYTES = 1 << 20
_LARGEST_LOOP_BYTES = 512
_FEWEST_SAMPLES = 30
_NOTEWORTHY = 0.05
_MOST_LISTED, _MOST_LINES = 5, 32  # functions, and instructions of each
_LINE = 64
_VECTOR = re.compile(r"\b([xyz])mm\d+")
_BITS_OF = {"x": 128, "y": 256, "z": 512}
# Packed operations; scalar ones use the same registers.
_PACKED = re.compile(
    r"v?(?:p\w+|mov(?:dq[au]\d*|[aul]p[sd]|nt\w+)|\w+p[sd]|lddqu|aes\w+)|"
    r"v(?:broadcast|perm|insert|extract|gather)\w+"
)
_LOCKED = re.compile(r"(?:lock |xchg|mfence)")
_DIVISION = re.compile(r"i?div|v?(?:div|sqrt)[sp][sd]")
_BRANCH = re.compile(r"(?:notrack |bnd )?(?:j[a-z]+|call)")
_NUMBER = re.compile(r"0x[0-9a-f]+|\b[0-9]+\b")


@dataclass(slots=True)
class SampledFunction:
    """A function in one program: `offset` is where its code begins in the file.

    `starts` are the addresses where relinks have it, `samples` counts places by their distance from
    its beginning, and `lines` are the sources of these (`file:line`).
    """

    path: Path
    offset: int
    size_bytes: int
    starts: set[int] = field(default_factory=set)
    samples: Counter[int] = field(default_factory=Counter)
    lines: dict[int, str] = field(default_factory=dict[int, str])


class CodeDifference(NamedTuple):
    """Facts on how a function's code differs, and where it spends its time before and after.

    It is the `same` where two files have the same instructions, or those of the hottest loop, which
    begins at other `loop_starts` then (modulo 64).
    """

    facts: tuple[str, ...] = ()
    code: tuple[tuple[CodeLine, ...], tuple[CodeLine, ...]] = ((), ())
    same: bool = False
    loop_starts: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Code:
    """`hottest_loop` is the smallest short loop with half of the samples."""

    function: SampledFunction
    instructions: tuple[Instruction, ...]
    hottest_loop: Loop | None

    @property
    def samples(self) -> Counter[int]:
        """Of the function, by place in it."""
        return self.function.samples

    def share_of(self, pattern: re.Pattern[str]) -> float:
        """Share of the samples that stand at such an instruction."""
        return self._share(
            bool(pattern.match(instruction.mnemonic)) for instruction in self.instructions
        )

    def vector_share(self, kind: str) -> float:
        """Share of the samples at instructions that compute with vectors of that width."""
        return self._share(_width(instruction) == kind for instruction in self.instructions)

    def _share(self, wanted: Iterator[bool]) -> float:
        samples = self.samples
        total = sum(
            samples[instruction.address]
            for instruction, is_wanted in zip(self.instructions, wanted, strict=True)
            if is_wanted
        )
        return total / max(1, samples.total())

    @property
    def wording(self) -> list[tuple[str, str]]:
        """Its instructions without what says where it lies and where other code and data do."""
        return list(self._worded(Loop(0, self.function.size_bytes)))

    @property
    def loop_wording(self) -> list[tuple[str, str]]:
        """The same of its hottest loop; empty without one."""
        loop = self.hottest_loop
        return [] if loop is None else list(self._worded(loop))

    def _worded(self, part: Loop) -> Iterator[tuple[str, str]]:
        for instruction in self.instructions:
            if not part.holds(instruction.address):
                continue
            target = _target(instruction)
            if target is not None and part.holds(target):
                yield instruction.mnemonic, str(target - part.start)
            elif target is not None or "rip" in instruction.operands:
                yield instruction.mnemonic, _NUMBER.sub("", instruction.operands)
            else:
                yield instruction.mnemonic, instruction.operands


def code_differences(
    pairs: Sequence[tuple[SampledFunction | None, SampledFunction | None]],
) -> tuple[CodeDifference, ...]:
    """Of each function, before and after; nothing where too little is known of its code.

    The first ones have their code. InternalError where the meter does not answer.
    """
    every = [
        function
        for pair in pairs
        for function in pair
        if function is not None and _is_known(function)
    ]
    codes = [_machine_code(function) for function in every]
    read = iter(disassembled(find_meter(), [code for code in codes if code is not None]))
    known = {
        id(function): _code(function, next(read))
        for function, code in zip(every, codes, strict=True)
        if code is not None
    }
    sides = [[known.get(id(function)) for function in pair] for pair in pairs]
    return tuple(
        _difference(before, after, listed=number < _MOST_LISTED)
        for number, (before, after) in enumerate(sides)
    )


def _code(function: SampledFunction, instructions: tuple[Instruction, ...]) -> _Code:
    loop = hottest_loop(loops_in(instructions), function.samples, _LARGEST_LOOP_BYTES)
    return _Code(function, instructions, loop)


def _difference(before: _Code | None, after: _Code | None, *, listed: bool) -> CodeDifference:
    code = (_listing(before), _listing(after)) if listed else ((), ())
    if before is None or after is None:
        return CodeDifference(code=code)
    same = before.wording == after.wording
    of_two = before.function.path != after.function.path
    places = _other_places(before, after)
    moved = places if before.loop_wording == after.loop_wording else None
    facts = _facts(before, after, places, same=same)
    return CodeDifference(facts, code, (same or moved is not None) and of_two, moved)


def _target(instruction: Instruction) -> int | None:
    """Where it jumps or calls to, from the beginning of its function; None where it does not."""
    if not _BRANCH.fullmatch(instruction.mnemonic):
        return None
    target = _NUMBER.fullmatch(instruction.operands)
    return None if target is None else int(target[0], 0)


def _is_known(function: SampledFunction) -> bool:
    return 0 < function.size_bytes <= _LARGEST_BYTES


def _machine_code(function: SampledFunction) -> MachineCode | None:
    """Its code as if it began at address 0: so are its samples counted."""
    try:
        with elf_of(function.path) as elf:
            bits = BITS.get(elf["e_machine"])
            if bits is None:
                return None
            return MachineCode(bits, 0, elf.piece(function.offset, function.size_bytes))
    except (DamagedFile, HostileFileError, OSError):
        return None


def _listing(code: _Code | None) -> tuple[CodeLine, ...]:
    """Its hottest loop; where that is none, or too long, what is around the hottest instruction."""
    if code is None or code.samples.total() < _FEWEST_SAMPLES:
        return ()
    samples, loop = code.samples, code.hottest_loop
    every = [
        instruction
        for instruction in code.instructions
        if loop is None or loop.holds(instruction.address)
    ]
    hottest = max(range(len(every)), key=lambda at: samples[every[at].address], default=0)
    start = max(0, min(hottest - _MOST_LINES // 2, len(every) - _MOST_LINES))
    return tuple(
        CodeLine(
            instruction.address,
            f"{instruction.mnemonic} {instruction.operands}".strip(),
            samples[instruction.address] / samples.total(),
            code.function.lines.get(instruction.address, ""),
        )
        for instruction in every[start : start + _MOST_LINES]
    )


def _facts(
    before: _Code, after: _Code, places: tuple[int, int] | None, *, same: bool
) -> tuple[str, ...]:
    one, two = before.function, after.function
    facts = []
    if same:
        facts.append(
            "the same instructions before and after: other data, another place, or more calls"
        )
    elif one.size_bytes != two.size_bytes:
        facts.append(f"{one.size_bytes:,} bytes of code before, {two.size_bytes:,} after")
    if min(one.samples.total(), two.samples.total()) < _FEWEST_SAMPLES:
        return tuple(facts)
    for letter, width in _BITS_OF.items():
        shares = before.vector_share(letter), after.vector_share(letter)
        facts += _changed(shares, f"in vectors of {width} bits")
    facts += _changed((before.share_of(_LOCKED), after.share_of(_LOCKED)), "at locks")
    facts += _changed((before.share_of(_DIVISION), after.share_of(_DIVISION)), "at divisions")
    return (*facts, *_loop_facts(before, after, places))


def _changed(shares: tuple[float, float], what: str) -> Iterator[str]:
    before, after = shares
    if abs(after - before) >= _NOTEWORTHY:
        yield f"{100 * before:.0f} % of its time {what} before, {100 * after:.0f} % after"


def _loop_facts(before: _Code, after: _Code, places: tuple[int, int] | None) -> Iterator[str]:
    one, two = before.hottest_loop, after.hottest_loop
    if one is None or two is None:
        return
    if one.size != two.size:
        yield f"its hottest loop has {one.size} bytes before, {two.size} after"
    if places is not None:
        yield f"its hottest loop begins at {places[0]} modulo {_LINE} before, at {places[1]} after"


def _other_places(before: _Code, after: _Code) -> tuple[int, int] | None:
    """Where the hottest loops begin, modulo 64, if that differs.

    None where one has no such loop, or relinks have it at several places.
    """
    starts = []
    for code in (before, after):
        loop = code.hottest_loop
        if loop is None or len(code.function.starts) != 1:
            return None
        starts.append((min(code.function.starts) + loop.start) % _LINE)
    return None if starts[0] == starts[1] else (starts[0], starts[1])


def _width(instruction: Instruction) -> str:
    """The widest kind of vector that it computes with; empty of scalars and of other code."""
    if not _PACKED.fullmatch(instruction.mnemonic):
        return ""
    registers = set(_VECTOR.findall(instruction.operands))
    return next((letter for letter in "zyx" if letter in registers), "")
