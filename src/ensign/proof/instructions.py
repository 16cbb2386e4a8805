"""Instruction sets that code computes with: counted from its instructions.

Of large programs pieces are read, spread evenly; the figures are shares of what was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ensign.meter.client import find_meter
from ensign.meter.questions import MachineCode, disassembled
from ensign.proof.bounded_elf import DamagedFile, elf_of
from ensign.proof.loaded_bytes import code_sections, pieces

_MOST_BYTES = 512 << 10
_NEAR = 6
_MULTIPLY = re.compile(r"v?mul[sp][sd]")
_ADD = re.compile(r"v?(?:add|sub)[sp][sd]")
_FUSED = re.compile(r"vf(?:n?m)(?:add|sub)\w*")
_PROBE = re.compile(r"(?:qword|dword) ptr \[[re]sp(?: \+ \w+)?\], 0$")
BITS = {"EM_X86_64": 64, "EM_386": 32}


@dataclass(frozen=True, slots=True)
class Instructions:
    """Counts. `pairs` are multiplications whose result is added soon after, which could be fused.

    `fused` are those that are; `wide` uses registers of 256 bits or more, `widest` of 512;
    `probes` touch the stack as stack clash protection does. `partial`: pieces were read, not all.
    """

    read: int = 0
    pairs: int = 0
    fused: int = 0
    wide: int = 0
    widest: int = 0
    probes: int = 0
    partial: bool = False


def read_instructions(path: Path) -> Instructions | None:
    """Count; None where the processor is another one than x86, or the file is damaged."""
    try:
        with elf_of(path) as elf:
            bits = BITS.get(elf["e_machine"])
            if bits is None:
                return None
            sections = [
                code_section
                for code_section in code_sections(elf)
                if code_section["sh_type"] == "SHT_PROGBITS"
            ]
            total = sum(int(each["sh_size"]) for each in sections)
            codes: list[MachineCode] = []
            for section in sections:
                size = min(int(section["sh_size"]), elf.size_bytes)
                for at, length in pieces(size, total, _MOST_BYTES):
                    code = elf.piece(int(section["sh_offset"]) + at, length)
                    codes.append(MachineCode(bits, 0, code))
            read = disassembled(find_meter(), codes)
            instructions = (
                count((instruction.mnemonic, instruction.operands) for instruction in piece)
                for piece in read
            )
            return _sum(instructions, partial=total > _MOST_BYTES)
    except DamagedFile:
        return None


def count(instructions: Iterable[tuple[str, str]]) -> Instructions:
    """Count them, given as mnemonic and operands. Pure."""
    read = pairs = fused = wide = widest = probes = 0
    products: dict[str, int] = {}
    for mnemonic, operands in instructions:
        if mnemonic.startswith("."):
            continue
        read += 1
        if _MULTIPLY.fullmatch(mnemonic):
            products[operands.partition(",")[0]] = read
        elif _ADD.fullmatch(mnemonic):
            words = [word.strip() for word in operands.split(",")]
            if any(read - products.pop(word, -_NEAR - 1) <= _NEAR for word in words):
                pairs += 1
        elif _FUSED.fullmatch(mnemonic):
            fused += 1
        elif mnemonic == "or" and _PROBE.match(operands):
            probes += 1
        if "ymm" in operands or "zmm" in operands:
            wide += 1
            widest += "zmm" in operands
    return Instructions(read, pairs, fused, wide, widest, probes)


def _sum(found: Iterable[Instructions], *, partial: bool) -> Instructions:
    every = list(found)
    names = ("read", "pairs", "fused", "wide", "widest", "probes")
    totals = {name: sum(getattr(instructions, name) for instructions in every) for name in names}
    return Instructions(**totals, partial=partial)
