"""Code at places in a program's file: functions by name, and loops."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ensign.meter.client import find_meter
from ensign.meter.questions import NO_INSTRUCTION, Instruction, MachineCode, disassembled
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.functions import code_at, function_starts, loaded_code
from ensign.proof.instructions import BITS
from ensign.proof.symbol_tables import function_symbols

_LARGEST_FUNCTION_BYTES = 1 << 20
_JUMP = re.compile(r"j[a-z]+|loop[a-z]*")
_TARGET = re.compile(r"0x[0-9a-f]+|[0-9]")  # small ones are written so


@dataclass(frozen=True, slots=True)
class FunctionPlace:
    """Start and end of a function, as addresses; without a name where none is."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Loop:
    """Code from the target of a jump backwards to the jump's end, by its place in the function."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """In bytes."""
        return self.end - self.start

    def holds(self, place: int) -> bool:
        """True of a place in the function that is in the loop."""
        return self.start <= place < self.end

    def share_of(self, samples: Counter[int]) -> float:
        """Share of the samples that stand in it, by their places in the function."""
        inside = sum(count for at, count in samples.items() if self.holds(at))
        return inside / max(1, samples.total())

    def crosses(self, function: int, border: int) -> bool:
        """True if it touches more pieces of so many bytes than it must; `function` is where."""
        first, last = (function + self.start) // border, (function + self.end - 1) // border
        return last - first + 1 > -(-self.size // border)


@dataclass(frozen=True, slots=True)
class CodeMap:
    """Functions of a file, in order, and how its places become addresses."""

    path: Path
    segments: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]
    names: tuple[str, ...]

    def address_of(self, offset: int) -> int | None:
        """Address of the place, before the base; None where it is not loaded as code."""
        for at, size, address in self.segments:
            if at <= offset < at + size:
                return address + offset - at
        return None

    def offset_of(self, address: int) -> int | None:
        """The place of an address in the file; None where nothing of it is loaded as code."""
        for at, size, start in self.segments:
            if start <= address < start + size:
                return at + address - start
        return None

    def function_at(self, address: int) -> FunctionPlace | None:
        """The function that holds an address; None before the first one."""
        index = bisect_right(self.starts, address) - 1
        if index < 0:
            return None
        ends = [at + size for _, size, at in self.segments if at <= address < at + size]
        ends += self.starts[index + 1 : index + 2]
        return FunctionPlace(self.names[index], self.starts[index], min(ends))


def read_code_map(path: Path) -> CodeMap | None:
    """None where it is no ELF file, or damaged."""
    try:
        with elf_of(path) as elf:
            names = dict.fromkeys(function_starts(elf), "")
            for table in (".dynsym", ".symtab"):
                for symbol in function_symbols(elf, table):
                    names[symbol.address] = symbol.name
            ordered = sorted(names)
            segments = tuple(
                (int(segment["p_offset"]), int(segment["p_filesz"]), int(segment["p_vaddr"]))
                for segment in loaded_code(elf)
            )
            return CodeMap(path, segments, tuple(ordered), tuple(names[at] for at in ordered))
    except (DamagedFile, OSError):
        return None


def loops_of(path: Path, function: FunctionPlace) -> tuple[Loop, ...]:
    """Its loops, the smallest first; none where the processor is another one than x86."""
    size = min(function.end - function.start, _LARGEST_FUNCTION_BYTES)
    try:
        with elf_of(path) as elf:
            bits = BITS.get(elf["e_machine"])
            if bits is None:
                return ()
            code = code_at(elf, loaded_code(elf), function.start, size)
    except (DamagedFile, OSError):
        return ()
    (instructions,) = disassembled(find_meter(), [MachineCode(bits, 0, code)])
    return loops_in(instructions)


def hottest_loop(loops: Iterable[Loop], samples: Counter[int], largest_bytes: int) -> Loop | None:
    """The smallest loop of at most so many bytes with half of the samples."""
    ordered = sorted(loops, key=lambda loop: (loop.size, loop.start))
    short = (loop for loop in ordered if loop.size <= largest_bytes)
    return next((loop for loop in short if 2 * loop.share_of(samples) >= 1), None)


def loops_in(instructions: Iterable[Instruction]) -> tuple[Loop, ...]:
    """Loops of code that begins at address 0, the smallest first."""
    return tuple(sorted(set(_loops(instructions)), key=lambda loop: loop.size))


def _loops(instructions: Iterable[Instruction]) -> Iterator[Loop]:
    for instruction in instructions:
        if instruction.mnemonic == NO_INSTRUCTION:
            return
        if _JUMP.fullmatch(instruction.mnemonic) and _TARGET.fullmatch(instruction.operands):
            target = int(instruction.operands, 0)
            if target <= instruction.address:
                yield Loop(target, instruction.address + instruction.size_bytes)
