"""Which of several functions a library gives on this machine (IFUNC): asked of the loader.

Only libraries are asked that this process has loaded itself, such as the C library: there the
loader has made, or now makes, the choice that it makes for any program here. Nothing else is run.
"""

from __future__ import annotations

import ctypes
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, elf_of
from ensign.proof.functions import code_at, function_starts, loaded_code
from ensign.proof.instructions import FUSED, words_at

_MAPS = Path("/proc/self/maps")
_MOST_BYTES = 8 << 10
_MOST_PARTS = 8
_ENDS = ("ret", "jmp", "bnd jmp", "call", "ud2")  # a call at the end does not return
_PADDING = ("nop", "int3", "cs nop", "data16")
# Registers and masks that only EVEX instructions can name.
_EVEX = re.compile(r"\b[xy]mm(?:1[6-9]|2\d|3[01])\b|\bk[0-7]\b")


@dataclass(frozen=True, slots=True)
class ChosenFunction:
    """`address` is that of the choice, from where the library begins.

    `registers` are the widest that it uses: `zmm`, `evex` (up to 256 bits, by instructions of
    AVX-512), `ymm`, `xmm`, `general`; `vdso` is a function of the kernel's, which no file has;
    empty where its code could not be read. `fuses`: it multiplies and adds in one instruction;
    `repeats`: it copies or fills by the processor's string instructions, too.
    """

    name: str
    library: str
    address: int
    registers: str = ""
    fuses: bool = False
    repeats: bool = False


def chosen_functions(library: Path, names: Iterable[str]) -> tuple[ChosenFunction, ...]:
    """The choices of a library of this process among such functions; empty for other libraries."""
    base = _loaded_at(library)
    if base is None:
        return ()
    try:
        handle = ctypes.CDLL(str(library), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        with elf_of(library) as elf:
            return tuple(_choices(handle, elf, base, library.name, names))
    except (OSError, DamagedFile):
        return ()


def _choices(
    handle: ctypes.CDLL, elf: BoundedElf, base: int, library: str, names: Iterable[str]
) -> Iterator[ChosenFunction]:
    starts = function_starts(elf)
    for name in sorted(names):
        try:
            address = ctypes.cast(getattr(handle, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
        kernels = _kernels_functions()
        if address in kernels:
            yield ChosenFunction(name, "vDSO", address - kernels.start, "vdso")
        else:
            words = _instructions(elf, starts, address - base)
            yield _described(ChosenFunction(name, library, address - base), words)


def _loaded_at(library: Path) -> int | None:
    """Where this process has the beginning of that very file in memory; None where it has not."""
    try:
        status = library.stat()
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for line in lines:
        places, _, offset, on, inode, *_ = line.split(maxsplit=5)
        if (on, inode) == (device, str(status.st_ino)) and int(offset, 16) == 0:
            return int(places.partition("-")[0], 16)
    return None


def _kernels_functions() -> range:
    """Where the kernel's own functions are in this process."""
    for line in _MAPS.read_text().splitlines():
        if line.endswith("[vdso]"):
            start, _, end = line.split()[0].partition("-")
            return range(int(start, 16), int(end, 16))
    return range(0)


def _instructions(elf: BoundedElf, starts: tuple[int, ...], address: int) -> list[tuple[str, str]]:
    """Of a function, and of those into which it runs on at its end; empty where none is known."""
    segments = loaded_code(elf)
    following = bisect_right(starts, address)
    if not 0 < following < len(starts) or starts[following - 1] != address:
        return []
    for end in starts[following : following + _MOST_PARTS]:
        if end - address > _MOST_BYTES:
            break
        code = code_at(elf, segments, address, end - address)
        words = words_at(str(elf["e_machine"]), code) or []
        work = [each for each in words if not each[0].startswith(_PADDING)]
        if work and work[-1][0] in _ENDS:
            return words
    return []


def _described(found: ChosenFunction, words: list[tuple[str, str]]) -> ChosenFunction:
    if not words:
        return found
    mnemonics = [mnemonic for mnemonic, _ in words]
    return replace(
        found,
        registers=_widest(" ".join(operands for _, operands in words)),
        fuses=any(map(FUSED.fullmatch, mnemonics)),
        repeats=any(each.startswith("rep ") for each in mnemonics),
    )


def _widest(operands: str) -> str:
    if "zmm" in operands:
        return "zmm"
    if _EVEX.search(operands):
        return "evex"
    return next((each for each in ("ymm", "xmm") if each in operands), "general")
